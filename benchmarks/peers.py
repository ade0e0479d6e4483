"""Other libraries at tasks of the benchmarks, each in a process of its own: their thread pools and ours do
not get along in one.

    python benchmarks/peers.py TASK      seconds of one run, and the value it ended with where that can be
                                         compared, as JSON

The benchmarks run this themselves, with each interpreter of GRAMIAN_PEERS (paths, separated as in PATH;
without it, with their own) until one has the library. Only NumPy and that library are imported here, so an
interpreter needs nothing else.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

import numpy as np

SEED = 20
NOT_INSTALLED = 3  # the exit code


# What is given to all. --------------------------------------------------------------------------------------


def regression() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """10,000 rows of eight columns, their targets, and 512 inducing points."""
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((10_000, 8))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(10_000), X[:512].copy()


def labels(n: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows of eight columns and two classes, with logistic noise."""
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((n, 8))
    return X, (np.sin(X[:, 0]) + X[:, 1] + noise * rng.logistic(size=n) > 0).astype(int)


def points() -> tuple[np.ndarray, np.ndarray]:
    """32,768 rows of three columns, and a vector."""
    rng = np.random.default_rng(SEED)
    return rng.standard_normal((32_768, 3)), rng.standard_normal((32_768, 1))


def best(run: Callable[[], object], rounds: int) -> float:
    """Seconds of the best of some runs, after one to compile."""
    run()
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def mean(step: Callable[[], object], warm: int = 20, steps: int = 100) -> float:
    """Seconds of a step, the mean of a hundred."""
    for _ in range(warm):
        step()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - began) / steps


# What they do with it. --------------------------------------------------------------------------------------


def vfe_gpytorch() -> tuple[float, float | None]:
    """The collapsed bound with gradient."""
    import gpytorch
    import torch

    torch.set_default_dtype(torch.float64)
    X, y, Z = map(torch.tensor, regression())

    class Titsias(gpytorch.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            base = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1]))
            self.covar_module = gpytorch.kernels.InducingPointKernel(
                base, inducing_points=Z, likelihood=likelihood
            )

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Titsias(likelihood).train()
    bound = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def run() -> None:
        model.zero_grad()
        with gpytorch.settings.max_cholesky_size(10**6):
            (-bound(model(X), y)).backward()

    return best(run, 5), None


def vfe_gpflow() -> tuple[float, float | None]:
    import gpflow
    import tensorflow as tf

    X, y, Z = regression()
    model = gpflow.models.SGPR(
        (X, y[:, None]), gpflow.kernels.SquaredExponential(lengthscales=np.full(8, 2.0)), Z
    )
    model.likelihood.variance.assign(0.05)
    gpflow.set_trainable(model.inducing_variable, False)

    @tf.function
    def value_and_gradient():
        with tf.GradientTape() as tape:
            loss = model.training_loss()
        return loss, tape.gradient(loss, model.trainable_variables)

    return best(lambda: value_and_gradient()[0].numpy(), 5), -float(value_and_gradient()[0])


def ep_gpy() -> tuple[float, float | None]:
    import GPy

    X, y = labels(500, 0.3)
    kernel = GPy.kern.RBF(8, variance=4.0, lengthscale=np.full(8, 3.0), ARD=True)
    found = []

    def run() -> None:
        method = GPy.inference.latent_function_inference.expectation_propagation.EP()
        found.append(
            GPy.core.GP(
                X,
                y[:, None].astype(float),
                kernel=kernel.copy(),
                likelihood=GPy.likelihoods.Bernoulli(),
                inference_method=method,
            )
        )

    return best(run, 2), float(found[-1].log_likelihood())


def vi_gpflow() -> tuple[float, float | None]:
    """The full variational posterior, by L-BFGS."""
    import gpflow
    import tensorflow as tf

    X, y = labels(500, 0.3)
    kernel = gpflow.kernels.SquaredExponential(variance=4.0, lengthscales=np.full(8, 3.0))
    gpflow.set_trainable(kernel, False)
    found = []

    def probit(f):  # its own lies between 1e-3 and 1 - 1e-3: a bound of another model, 1.5 nats higher
        return 0.5 * (1 + tf.math.erf(f / np.sqrt(2.0))) * (1 - 2e-9) + 1e-9

    def run() -> None:
        model = gpflow.models.VGP(
            (X, y[:, None].astype(float)),
            kernel=kernel,
            likelihood=gpflow.likelihoods.Bernoulli(invlink=probit),
        )
        gpflow.optimizers.Scipy().minimize(
            model.training_loss, model.trainable_variables, options={"maxiter": 1000}, compile=True
        )
        found.append(model)

    return best(run, 2), float(found[-1].elbo())


def svgp_gpflow() -> tuple[float, float | None]:
    """A natural step of the variational parameters and one of Adam for the rest: 500 points, batches of
    1,024."""
    import gpflow
    import tensorflow as tf

    try:
        from tf_keras.optimizers.legacy import Adam
    except ImportError:
        Adam = tf.optimizers.Adam
    X, y = labels(20_000, 0.0)
    kernel = gpflow.kernels.SquaredExponential(variance=4.0, lengthscales=np.full(8, 3.0))
    model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Bernoulli(), X[:500].copy(), num_data=len(X))
    gpflow.set_trainable(model.q_mu, False)
    gpflow.set_trainable(model.q_sqrt, False)
    natural, adam = gpflow.optimizers.NaturalGradient(0.1), Adam(0.01)
    batches = iter(
        tf.data.Dataset.from_tensor_slices((X, y[:, None].astype(float))).repeat().shuffle(len(X)).batch(1024)
    )

    @tf.function
    def step(batch):
        natural.minimize(lambda: model.training_loss(batch), [(model.q_mu, model.q_sqrt)])
        adam.minimize(lambda: model.training_loss(batch), model.trainable_variables)

    return mean(lambda: step(next(batches))), None


def svgp_gpytorch() -> tuple[float, float | None]:
    import gpytorch
    import torch

    torch.set_default_dtype(torch.float64)
    X, y = labels(20_000, 0.0)
    X, y = torch.tensor(X), torch.tensor(y).double()

    class Sparse(gpytorch.models.ApproximateGP):
        def __init__(self, Z):
            free = gpytorch.variational.NaturalVariationalDistribution(len(Z))
            super().__init__(
                gpytorch.variational.VariationalStrategy(self, Z, free, learn_inducing_locations=True)
            )
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=8))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model, likelihood = Sparse(X[:500].clone()).train(), gpytorch.likelihoods.BernoulliLikelihood().train()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    natural = gpytorch.optim.NGD(model.variational_parameters(), num_data=len(X), lr=0.1)
    adam = torch.optim.Adam(model.hyperparameters(), lr=0.01)

    def step() -> None:
        rows = torch.randperm(len(X))[:1024]
        natural.zero_grad()
        adam.zero_grad()
        (-bound(model(X[rows]), y[rows])).backward()
        natural.step()
        adam.step()

    return mean(step), None


def products_keops() -> tuple[float, float | None]:
    from pykeops.numpy import Genred

    X, v = (part.astype(np.float32) for part in points())
    formula = Genred(
        "Exp(-SqDist(x, y) / IntCst(2)) * b",
        ["x = Vi(3)", "y = Vj(3)", "b = Vj(1)"],
        reduction_op="Sum",
        axis=1,
    )
    return best(lambda: formula(X, X, v, backend="CPU"), 3), float(
        np.sum(formula(X, X, v, backend="CPU") ** 2)
    )


TASKS = {
    "vfe GPyTorch": vfe_gpytorch,
    "vfe GPflow": vfe_gpflow,
    "ep GPy": ep_gpy,
    "vi GPflow": vi_gpflow,
    "svgp GPyTorch": svgp_gpytorch,
    "svgp GPflow": svgp_gpflow,
    "products KeOps": products_keops,
}


def main() -> int:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        seconds, value = TASKS[" ".join(sys.argv[1:])]()
    except ImportError as error:
        print(error, file=sys.stderr)
        return NOT_INSTALLED
    print(json.dumps({"seconds": seconds, "value": value}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
