"""Deep Gaussian processes, measured: the step, one step's time beside GPyTorch's, test log-likelihoods on
published splits, labels, and a naive search beside the staged one on data of three layers.

    python benchmarks/deep.py step
    python benchmarks/deep.py speed --peer /path/to/venv/bin/python
    GRAMIAN_DATA=folder python benchmarks/deep.py uci uci20_energy uci20_concrete --splits 3
    python benchmarks/deep.py synthetic --rows 200
    GRAMIAN_DATA=folder python benchmarks/deep.py labels

`speed` runs GPyTorch in an environment of its own (torch and gpytorch), in the same minute, and says so where
there is none. With --picture a file name, `step` and `synthetic` draw what they have found.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import time

import numpy as np

import gramian as gm
from gramian.deep import layers as shapes
from gramian.deep import scheme
from gramian.deep.bound import programs
from gramian.deep.scheme import Deep
from gramian.fitting import layers as search
from gramian.fitting.progress import Report
from gramian.inference import Data, Model
from gramian.inference.svgp.bound import VariationalWeights
from gramian.likelihoods import Gaussian
from gramian.means import ConstantMean

WIDTH, POINTS, BATCH, DRAWS, COLUMNS = 8, 128, 1024, 10, 8  # of the step that is timed
TURNS = 10

PEER = """
import time, torch, gpytorch
from gpytorch.models.deep_gps import DeepGP, DeepGPLayer
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from gpytorch.mlls import DeepApproximateMLL, VariationalELBO

class Layer(DeepGPLayer):
    def __init__(self, inputs, outputs, points):
        batch = torch.Size([outputs]) if outputs else torch.Size([])
        Z = torch.randn(*batch, points, inputs)
        q = CholeskyVariationalDistribution(points, batch_shape=batch)
        strategy = VariationalStrategy(self, Z, q, learn_inducing_locations=True)
        super().__init__(strategy, inputs, outputs)
        self.mean_module = gpytorch.means.LinearMean(inputs) if outputs else gpytorch.means.ConstantMean()
        kernel = gpytorch.kernels.RBFKernel(ard_num_dims=inputs, batch_shape=batch)
        self.covar_module = gpytorch.kernels.ScaleKernel(kernel, batch_shape=batch)
    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

class Two(DeepGP):
    def __init__(self):
        super().__init__()
        self.first, self.last = Layer({d}, {width}, {points}), Layer({width}, None, {points})
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()
    def forward(self, x):
        return self.last(self.first(x))

torch.manual_seed(0)
X = torch.randn({batch}, {d}); y = torch.sin(2 * X[:, 0])
model = Two()
bound = DeepApproximateMLL(VariationalELBO(model.likelihood, model, 10 * {batch}))
adam = torch.optim.Adam(model.parameters(), lr=0.01)
times = []
with gpytorch.settings.num_likelihood_samples({draws}):
    for _ in range({turns} + 2):
        began, worked = time.perf_counter(), time.process_time()
        adam.zero_grad(); loss = -bound(model(X), y); loss.backward(); adam.step()
        times.append((time.perf_counter() - began, time.process_time() - worked))
print(*map(min, zip(*times[2:])))
"""


def step_data(n: int = 50) -> tuple[np.ndarray, np.ndarray]:
    X = np.linspace(0, 1, n)[:, None]
    return X, (X[:, 0] > 0.5) + 0.01 * np.random.default_rng(0).standard_normal(n)


def step(picture: str | None) -> None:
    """One, two and three layers on a step, without tuning."""
    X, y = step_data()
    one = gm.GPRegressor("rbf", warp=None, hyper="ml", n_restarts=10, random_state=0).fit(X, y)
    scale = len(y) * float(np.log(np.std(y)))  # evidences are of y / s
    print(f"one layer, exact, RBF: log evidence of y {one.evidence_.value - scale:.1f}")
    away, drawn = np.abs(X[:, 0] - 0.5) > 0.03, []
    for depth in (1, 2, 3):
        began, worked = time.perf_counter(), time.process_time()
        gp = gm.DeepGPRegressor(depth, random_state=0).fit(X, y)
        took = time.perf_counter() - began, time.process_time() - worked
        wrong = np.max(np.abs(gp.predict(X) - (X[:, 0] > 0.5))[away])
        bound, error = gp.evidence_.value - scale, gp.evidence_.standard_error
        print(
            f"{depth} layers: bound of y {bound:.1f} +- {error:.1f}, off by {wrong:.3f} beside the jump,"
            f" {took[0]:.1f} s ({took[1]:.1f} s of the processor)"
        )
        drawn.append(gp)
    if picture is not None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 3.2), layout="constrained")
        for gp, axis in zip(drawn, figure.subplots(1, 3, sharey=True), strict=True):
            gp.plot(np.linspace(-0.2, 1.2, 200)[:, None], ax=axis)
            axis.get_legend().remove()
            axis.set_title(f"{gp.n_layers_} layer{'s' * (gp.n_layers_ > 1)}: bound {gp.evidence_.value:.0f}")
        figure.savefig(picture, dpi=110)


def begun(
    X: np.ndarray, y: np.ndarray, depth: int, points: int, batch: int = 512, draws: int | None = None
) -> tuple[search.Run, Deep]:
    """A search of a deep model from a start that no shallow fit has made."""
    method = Deep((shapes.Layer(),) * depth, n_inducing=points, batch_size=batch, samples=draws)
    kernel = 1.0 * gm.RBF(np.std(X, axis=0) * np.sqrt(X.shape[1]))
    s = float(np.std(y))
    start = Model(kernel, ConstantMean(float(np.mean(y))), Gaussian(0.01 * s**2))
    data = Data(X, y[:, None], np.array([s]))
    model, rng = method.deeper(start, start, data), np.random.default_rng(0)
    found = method.prepared(model, data, rng)
    q = (VariationalWeights.prior(len(found.Z[-1])),)
    return search.Run(method, model, data, np.arange(len(X)), found, q, rng), method


def speed(peer: str | None) -> None:
    """One step of two layers, beside GPyTorch's."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10 * BATCH, COLUMNS))
    run, _ = begun(X, np.sin(2 * X[:, 0]), 2, POINTS, BATCH, DRAWS)
    free, times = np.zeros(run.space.size, bool), []
    with programs():
        for _ in range(TURNS + 2):
            began, worked = time.perf_counter(), time.process_time()
            run.step(np.arange(BATCH), 0.1, 0.01, free)
            times.append((time.perf_counter() - began, time.process_time() - worked))
    own = [min(values) for values in zip(*times[2:], strict=True)]
    print(f"gramian: {1e3 * own[0]:.0f} ms a step ({1e3 * own[1]:.0f} ms of the processor)")
    if peer is None or not pathlib.Path(peer).exists():
        print("GPyTorch was not measured: give --peer, the Python of an environment that has it.")
        return
    sizes = {"d": COLUMNS, "width": WIDTH, "points": POINTS, "batch": BATCH, "draws": DRAWS, "turns": TURNS}
    text = PEER
    for name, value in sizes.items():
        text = text.replace(f"{{{name}}}", str(value))
    told = subprocess.run([peer, "-c", text], capture_output=True, text=True)
    if told.returncode:
        print(f"GPyTorch was not measured: {told.stderr.strip().splitlines()[-1]}")
        return
    theirs = [float(value) for value in told.stdout.split()]
    print(f"GPyTorch: {1e3 * theirs[0]:.0f} ms a step ({1e3 * theirs[1]:.0f} ms of the processor)")
    print(f"ratio {theirs[0] / own[0]:.1f} ({theirs[1] / own[1]:.1f} of the processor's time; aim: 3)")


def uci(sets: list[str], splits: range, depth: int, points: int | None, steps: int | None) -> None:
    """Mean test log-likelihood in the units of y, one layer and several."""
    folder = pathlib.Path(os.environ.get("GRAMIAN_DATA", "data"))
    for name in sets:
        path = folder / f"{name}.npz"
        if not path.exists():
            print(f"{path} is not there: set GRAMIAN_DATA to the folder that has it.")
            continue
        with np.load(path, allow_pickle=False) as held:
            X, y, masks = held["X"].astype(float), held["y"].astype(float).ravel(), held["test_mask"]
        for k in splits:
            test = masks[:, k]
            for layers in (1, depth):
                began, worked = time.perf_counter(), time.process_time()
                gp = gm.DeepGPRegressor(layers, n_inducing=points, steps=steps, random_state=0)
                gp.fit(X[~test], y[~test])
                took = time.perf_counter() - began, time.process_time() - worked
                density = float(np.mean(gp.log_density(X[test], y[test])))
                rmse = float(np.sqrt(np.mean((gp.predict(X[test]) - y[test]) ** 2)))
                print(
                    f"{name}, split {k}, {layers} layers ({gp.n_layers_} kept): log-likelihood {density:.3f},"
                    f" RMSE {rmse:.4g}, bound {gp.evidence_.value:.0f}, {took[0]:.0f} s ({took[1]:.0f} s of"
                    " the processor)",
                    flush=True,
                )


def synthetic(rows: int, steps: int | None, picture: str | None) -> None:
    """Data of three layers with lengthscales 0.2, 0.2 and 0.5: bounds of 1, 2 and 3 layers, by a search from
    plain starts (inner functions of unit variance and q of the prior, nothing held, no shallow model) and by
    the staged one."""
    lengths, rng = (0.2, 0.2, 0.5), np.random.default_rng(1)
    X = np.sort(rng.uniform(0, 1, rows))[:, None]
    h = X[:, 0]
    for length in lengths:
        K = np.exp(-0.5 * ((h[:, None] - h[None, :]) / length) ** 2) + 1e-8 * np.eye(rows)
        h = np.linalg.cholesky(K) @ rng.standard_normal(rows)
    y = h + 0.05 * np.std(h) * rng.standard_normal(rows)
    fits = []
    for depth in (1, 2, 3):
        began = time.process_time()
        gp = gm.DeepGPRegressor(depth, "rbf", n_inducing=100, steps=steps, random_state=0).fit(X, y)
        took = time.process_time() - began
        print(
            f"staged, {depth} layers ({gp.n_layers_} kept): bound {gp.evidence_}, {took:.0f} s of the"
            " processor",
            *gp.outcome_.stages[-1:],
            *(note for note in gp.outcome_.notes if "layers" in note),
            sep="\n    ",
            flush=True,
        )
        fits.append(gp)
        if depth > 1:
            inner, root = shapes.INNER, scheme.ROOT
            shapes.INNER, scheme.ROOT = 1.0, 1.0
            try:
                run, method = begun(X, y, depth, 100)
            finally:
                shapes.INNER, scheme.ROOT = inner, root
            many = steps or method.steps_for(rows)
            began = time.process_time()
            with programs():
                run.climb(0, many, many, Report(), [], None)
            model, found = run.result()
            took = time.process_time() - began
            bound = found.bound(model, run.data)
            print(f"naive, {depth} layers: bound {bound}, {took:.0f} s of the processor", flush=True)
    if picture is not None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 3.2), layout="constrained")
        for gp, axis in zip(fits, figure.subplots(1, 3, sharey=True), strict=True):
            gp.plot(ax=axis)
            axis.get_legend().remove()
            axis.set_title(f"{gp.layers} asked for, {gp.n_layers_} kept: bound {gp.evidence_.value:.0f}")
        figure.savefig(picture, dpi=110)


def labels() -> None:
    """Six classes, by one layer and by several: accuracy and mean log p of the test rows."""
    path = pathlib.Path(os.environ.get("GRAMIAN_DATA", "data")) / "jass_trump.npz"
    if not path.exists():
        print(f"{path} is not there: set GRAMIAN_DATA to the folder that has it.")
        return
    with np.load(path, allow_pickle=False) as held:
        X, y, X_test, y_test = (held[name] for name in ("X_train", "y_train", "X_test", "y_test"))
    for gp in (gm.GPClassifier(random_state=0), gm.DeepGPClassifier(2, random_state=0)):
        worked = time.process_time()
        gp.fit(X.astype(float), y)
        took = time.process_time() - worked
        P = gp.predict_proba(X_test.astype(float))
        own = P[np.arange(len(P)), np.searchsorted(gp.classes_, y_test)]
        told = gp.outcome_.stages[-1:] if hasattr(gp, "n_layers_") else gp.outcome_.choice[:1]
        right = np.mean(gp.classes_[np.argmax(P, axis=1)] == y_test)
        print(
            f"{type(gp).__name__}: accuracy {right:.3f}, mean log p {np.mean(np.log(own)):.3f},"
            f" {took:.0f} s of the processor; {' '.join(told)}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("step", "speed", "uci", "synthetic", "labels"))
    parser.add_argument("sets", nargs="*", default=["uci20_energy", "uci20_concrete"])
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the first split")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--points", type=int, help="inducing points of each layer; else as the library says")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--peer", help="the Python of an environment with torch and gpytorch")
    parser.add_argument("--picture", help="where to draw")
    given = parser.parse_args()
    if given.what == "step":
        step(given.picture)
    elif given.what == "speed":
        speed(given.peer)
    elif given.what == "labels":
        labels()
    elif given.what == "uci":
        uci(
            given.sets,
            range(given.first, given.first + given.splits),
            given.layers,
            given.points,
            given.steps,
        )
    else:
        synthetic(given.rows, given.steps, given.picture)


if __name__ == "__main__":
    main()
