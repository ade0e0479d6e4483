"""The public conformance suites: what the library has passes them, and what breaks a promise does not."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gramian as gm
from gramian.engines import Exact
from gramian.errors import NumericalError
from gramian.gram.operator import GramOperator
from gramian.inference import Conjugate, Evidence, Inferred, RuleOnEngine, on_engine
from gramian.inference.ep import EP
from gramian.inference.laplace import Laplace
from gramian.inference.softmax.laplace import SoftmaxLaplace
from gramian.inference.variational import VI
from gramian.likelihoods import Gaussian, Likelihood
from gramian.means import ConstantMean, LinearMean
from gramian.params import Parameter, positive
from gramian.processes import GaussianProcess, Posterior
from gramian.solvers import Cholesky, CholeskyFactor, Factor, Solution, SolveOutcome, Solver
from gramian.testing import check_factor, check_inference, check_likelihood, check_posterior
from tests.contracts.solvers import Direct, UnitProbes

# What keeps its promises. -----------------------------------------------------------------------------------


def test_cholesky():
    check_factor(Cholesky())


def test_a_solver_that_states_its_residual():
    check_factor(Approximate(1e-6), rtol=1e-4)


@pytest.mark.parametrize("noise", [0.2, 1.0, 5.0])
def test_gaussian(noise):
    check_likelihood(Gaussian(noise))


def test_likelihoods_that_have_no_more_than_a_log_prob():
    check_likelihood(Logistic(), outcomes=[-1.0, 1.0])
    check_likelihood(StudentT(1.5))


SPARSE = {name: gm.Sparse(8, name) for name in ("vfe", "fitc", "dtc")}
ENGINES = {
    "exact": Exact(),
    **SPARSE,
    "vfe, learned": gm.Sparse(5, "vfe", "kmeans", optimize_inducing=True),
    "nystrom": gm.Nystrom(8),
    "fourier": gm.Fourier(20),
}


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_closed_form(engine):
    check_inference(engine)


def test_products_alone():
    # a solver whose probes are the unit vectors: its traces are exact
    check_inference(gm.Krylov(UnitProbes()))
    check_inference(on_engine(gm.Krylov(UnitProbes()), Laplace()), gm.Poisson())
    # 32 random ones: tr(A^-1) / 2 = 45 is off by some 6
    check_inference(gm.Krylov(Direct()), slack=40.0)


@pytest.mark.parametrize("likelihood", [None, gm.Bernoulli(), gm.Poisson(), gm.StudentT()], ids=str)
@pytest.mark.parametrize("engine", ["exact", "vfe, learned", "fitc", "nystrom"])
@pytest.mark.parametrize("rule", [Laplace(), EP(), VI()], ids=lambda rule: rule.name)
def test_rules(rule, engine, likelihood):
    check_inference(on_engine(ENGINES[engine], rule), likelihood)


@pytest.mark.parametrize(
    ("rule", "likelihood"),
    [(SoftmaxLaplace(), gm.Softmax(3)), (VI(), gm.Softmax(3)), (VI(), gm.Heteroscedastic())],
    ids=str,
)
def test_rules_with_several_functions(rule, likelihood):
    check_inference(on_engine(Exact(), rule), likelihood, rows=12)


def test_an_engine_with_a_likelihood_gets_a_rule():
    check_inference(gm.Sparse(8), gm.Poisson())


def test_observations_of_ones_own():
    rng = np.random.default_rng(5)
    check_inference(on_engine(Exact(), EP()), Logistic(), y=rng.choice([-1.0, 1.0], 15))


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(3).uniform(-2, 2, (7, 2))


def test_prior(points):
    check_posterior(GaussianProcess(1.4 * gm.Matern32([0.5, 2.0]), ConstantMean(3.0), np.ones(1)), points)
    check_posterior(
        GaussianProcess(
            gm.Linear(1.0) + gm.Constant(2.0), LinearMean([1.0, 2.0], 0.5), np.array([1.0, 10.0])
        ),
        points,
    )


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_posterior(points, outputs, noise):
    X = np.random.default_rng(4).uniform(-2, 2, (20, 2))
    Y = np.column_stack([np.sin(X[:, 0]), 100 * X[:, 1]])[:, :outputs]
    gp = gm.GPRegressor(gm.Matern52(1.0), noise=gm.fixed(noise), optimize=False).fit(X, Y)
    assert isinstance(gp.posterior_, Posterior)
    check_posterior(gp.posterior_, np.concatenate([points, X[:3], points[:2]]))


# What does not. ---------------------------------------------------------------------------------------------


class StudentT(Likelihood):
    """log p of a t distribution with 5 degrees of freedom."""

    scale: Parameter = positive(1.0)

    def log_prob(self, y, f):
        constant = jax.scipy.special.gammaln(3.0) - jax.scipy.special.gammaln(2.5) - 0.5 * jnp.log(5 * jnp.pi)
        return constant - jnp.log(self.scale) - 3 * jnp.log1p(((y - f) / self.scale) ** 2 / 5)


class Logistic(Likelihood):
    """p(y = +-1 | f) = 1 / (1 + exp(-y f))."""

    def log_prob(self, y, f):
        return -jnp.logaddexp(0.0, -y * f)


class WithoutConstant(StudentT):
    def log_prob(self, y, f):
        return -3 * jnp.log1p(((y - f) / self.scale) ** 2 / 5)


class WrongDerivative(StudentT):
    def derivatives(self, y, f):
        first, second = super().derivatives(y, f)
        return first, -second


class WrongExpectation(Gaussian):
    def expected_log_prob(self, y, mean, var):
        return self.log_prob(y, mean)


class WrongPrediction(Gaussian):
    def predictive_log_prob(self, y, mean, var):
        return self.log_prob(y, mean)


class SummedUp(Gaussian):
    def log_prob(self, y, f):
        return jnp.sum(super().log_prob(y, f))


@pytest.mark.parametrize(
    ("likelihood", "promise"),
    [
        (WithoutConstant(1.0), "not to 1"),
        (WrongDerivative(1.0), "derivatives, the second"),
        (WrongExpectation(0.5), "expected_log_prob"),
        (WrongPrediction(0.5), "predictive_log_prob"),
        (SummedUp(0.5), "shape"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Likelihood) else "",
)
def test_broken_likelihoods(likelihood, promise):
    with pytest.raises(AssertionError, match=promise):
        check_likelihood(likelihood)


def test_outcomes_that_do_not_add_up():
    with pytest.raises(AssertionError, match="not to 1"):
        check_likelihood(Logistic(), outcomes=[-1.0, 1.0, 2.0])


@dataclasses.dataclass(frozen=True)
class Approximate(Solver):
    """Cholesky whose solutions are off by a share of themselves, and say so or not."""

    error: float
    honest: bool = True

    def factor(self, operator):
        return ApproximateFactor(Cholesky().factor(operator), self.error, self.honest)


@dataclasses.dataclass(frozen=True, eq=False)
class ApproximateFactor(Factor):
    inner: CholeskyFactor
    error: float
    honest: bool

    def solve(self, B):
        value, outcome = self.inner.solve(B)
        return Solution(
            value * (1 + self.error),
            dataclasses.replace(outcome, residual=self.error if self.honest else None),
        )

    def logdet(self):
        return self.inner.logdet()


class Changed(Solver):
    """Cholesky with one promise broken."""

    def __init__(self, promise):
        self.promise = promise

    def factor(self, operator):
        if self.promise == "changes the data":
            operator.X[:] += 1.0
        if self.promise == "NaN for a singular matrix" and np.all(operator.noise == 0):
            return ChangedFactor(np.full((operator.n, operator.n), np.nan), 0.0, self.promise)
        if self.promise == "jitter on a good matrix":
            operator = GramOperator(operator.kernel, operator.X, operator.noise + 1e-9)
            return ChangedFactor(Cholesky().factor(operator).L, 1e-9, self.promise)
        try:
            factor = Cholesky(ladder=(0.0,)).factor(operator)
        except NumericalError:
            if self.promise != "silent jitter":
                raise
            factor = Cholesky().factor(operator)
        return ChangedFactor(factor.L, 0.0, self.promise)


@dataclasses.dataclass(frozen=True, eq=False)
class ChangedFactor(CholeskyFactor):
    promise: str = ""

    def solve(self, B):
        value, outcome = super().solve(B)
        if self.promise == "overwrites B":
            B[:] = value
        if self.promise == "a column for a vector":
            value = value.reshape(len(B), -1)
        if self.promise == "does not converge":
            outcome = SolveOutcome(converged=False)
        return Solution(value, outcome)

    def logdet(self):
        return super().logdet() * (0.5 if self.promise == "half the logdet" else 1.0)

    def quad(self, b):
        return super().quad(b) * (1.001 if self.promise == "quad is off" else 1.0)


@pytest.mark.parametrize(
    ("solver", "promise"),
    [
        (Approximate(1e-6, honest=False), "outcome promises"),
        (Changed("changes the data"), "changed the data|A x - b"),
        (Changed("NaN for a singular matrix"), "not finite"),
        (Changed("jitter on a good matrix"), "jitter 1e-09"),
        (Changed("silent jitter"), "without a word"),
        (Changed("overwrites B"), "changed B"),
        (Changed("a column for a vector"), "shape"),
        (Changed("does not converge"), "did not converge"),
        (Changed("half the logdet"), "logdet"),
        (Changed("quad is off"), "quad"),
    ],
    ids=lambda value: getattr(value, "promise", "dishonest residual") if isinstance(value, Solver) else "",
)
def test_broken_solvers(solver, promise):
    with pytest.raises(AssertionError, match=promise):
        check_factor(solver)


def test_a_solver_with_no_promise_broken_passes():
    check_factor(Changed("none"))


class Wrong(RuleOnEngine):
    """Exact inference with one promise broken."""

    def __init__(self, promise, rule=None):
        super().__init__(rule or Conjugate(), Exact())
        object.__setattr__(self, "promise", promise)

    def prepared(self, model, data, rng):
        return self

    def infer(self, model, data, report=None):
        posterior, evidence, outcome, _ = super().infer(model, data)
        if self.promise == "another evidence":
            evidence = Evidence(evidence.value + 0.1)
        if self.promise == "wrong posterior":
            posterior = dataclasses.replace(posterior, alpha=1.01 * posterior.alpha)
        if self.promise == "too certain":
            posterior = dataclasses.replace(posterior, roots=tuple(1.01 * root for root in posterior.roots))
        if self.promise == "changes y":
            data.Y[:] = 0
        return Inferred(posterior, evidence, outcome)

    def evidence_and_gradient(self, model, data, workspace):
        evidence, gradients = super().evidence_and_gradient(model, data, workspace)
        if self.promise == "gradient of another parameter":
            gradients = [gradients[0], gradients[1][::-1], *gradients[2:]]
        if self.promise == "a gradient missing":
            gradients = gradients[:-1]
        if self.promise == "noise twice":
            gradients = [*gradients[:-1], 2 * gradients[-1]]
        return self._kind(evidence), gradients

    def evidence(self, model, data, workspace):
        return self._kind(super().evidence(model, data, workspace))

    def _kind(self, evidence):
        return Evidence(evidence.value, "lower bound") if self.promise == "two kinds" else evidence

    def cavities(self, model, data, posterior):
        found = super().cavities(model, data, posterior)
        return found._replace(var=-found.var) if self.promise == "negative cavities" else found

    def bytes_needed(self, n, d, q):
        return 5 if self.promise == "no idea of memory" else super().bytes_needed(n, d, q)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("another evidence", "different values"),
        ("wrong posterior", "posterior mean"),
        ("too certain", "posterior covariance"),
        ("changes y", "changed|different values|evidence"),
        ("gradient of another parameter", r"gradient of kernel\.lengthscale"),
        ("a gradient missing", "gradients for"),
        ("noise twice", "gradient of noise"),
        ("two kinds", "two kinds"),
        ("negative cavities", "a cavity has the variance"),
        ("no idea of memory", "bytes_needed"),
    ],
)
def test_broken_inference(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_inference(Wrong(broken))


def test_inference_with_no_promise_broken_passes():
    check_inference(Wrong("none"))


@pytest.mark.parametrize("rule", [Laplace(), EP(), VI()], ids=lambda rule: rule.name)
@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("another evidence", "different values"),
        ("wrong posterior", "posterior mean"),
        ("gradient of another parameter", r"gradient of kernel\.lengthscale"),
        ("negative cavities", "a cavity has the variance"),
    ],
)
def test_broken_rules(rule, broken, message):
    with pytest.raises(AssertionError, match=message):
        check_inference(Wrong(broken, rule))


class Biased(RuleOnEngine):
    """Adds a constant to the evidence everywhere: consistent with itself, but not with probability."""

    def __init__(self, kind, gap, rule=None):
        super().__init__(rule or Conjugate(), Exact())
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "gap", gap)

    def prepared(self, model, data, rng):
        return self

    def infer(self, model, data, report=None):
        posterior, evidence, outcome, _ = super().infer(model, data)
        return Inferred(posterior, self._moved(evidence), outcome)

    def evidence_and_gradient(self, model, data, workspace):
        evidence, gradients = super().evidence_and_gradient(model, data, workspace)
        return self._moved(evidence), gradients

    def evidence(self, model, data, workspace):
        return self._moved(super().evidence(model, data, workspace))

    def _moved(self, evidence):
        return Evidence(evidence.value + self.gap, self.kind)


@pytest.mark.parametrize(
    ("kind", "gap"), [("exact", 0.01), ("exact", -0.01), ("lower bound", 0.01), ("upper bound", -0.01)]
)
def test_evidence_of_the_wrong_size(kind, gap):
    with pytest.raises(AssertionError, match="not what its kind says"):
        check_inference(Biased(kind, gap))


def test_a_bound_on_the_wrong_side_of_a_quadrature():
    # the gap of the bound itself is less on two rows
    with pytest.raises(AssertionError, match="not what its kind says"):
        check_inference(Biased("lower bound", 0.1, VI()), gm.Poisson())


@pytest.mark.parametrize(("kind", "gap"), [("lower bound", -0.01), ("upper bound", 0.01)])
def test_bounds_on_their_side_pass(kind, gap):
    check_inference(Biased(kind, gap))


class Strange(GaussianProcess):
    """A prior with one promise broken."""

    promise = ""

    def moments(self, X):
        mean, var = super().moments(X)
        if self.promise == "negative variance":
            return mean, var - 2.0
        if self.promise == "another diagonal":
            return mean, var * (1 + 1e-15)
        if self.promise == "another mean":
            return mean + 0.1, var
        return mean, var

    def cov(self, X):
        cov = super().cov(X)
        if self.promise == "not symmetric":
            cov[0, 1] += 0.1
        if self.promise == "not positive":
            cov[0, 1] = cov[1, 0] = 3.0
        return cov

    def mean(self, X):
        mean = super().mean(X)
        return (
            mean + len(X)
            if self.promise == "depends on the other rows"
            else mean[:, 0]
            if self.promise == "one dimension"
            else mean
        )

    def sample(self, rng, X, n_samples, noise=None):
        draws = super().sample(
            np.random.default_rng() if self.promise == "no seed" else rng, X, n_samples, noise
        )
        if self.promise == "wrong spread":
            return self.mean(X)[:, :, None] + 1.2 * (draws - self.mean(X)[:, :, None])
        if self.promise == "wrong noise" and noise is not None:
            return super().sample(rng, X, n_samples, 4 * noise)
        return np.swapaxes(draws, 0, 2) if self.promise == "wrong shape" else draws


@pytest.mark.parametrize(
    ("promise", "message"),
    [
        ("negative variance", "a variance is"),
        ("another diagonal", "to the last bit"),
        ("another mean", "mean of moments"),
        ("not symmetric", "not symmetric"),
        ("not positive", "eigenvalue"),
        ("depends on the other rows", "depends on the others"),
        ("one dimension", "shape"),
        ("no seed", "same seed"),
        ("wrong spread", "covariance of draws"),
        ("wrong noise", "draws with noise"),
        ("wrong shape", "sample gives shape"),
    ],
)
def test_broken_processes(promise, message, points):
    broken = type("Broken", (Strange,), {"promise": promise})(gm.RBF(1.0), ConstantMean(0.5), np.ones(1))
    with pytest.raises(AssertionError, match=message):
        check_posterior(broken, points)


def test_a_process_with_no_promise_broken_passes(points):
    check_posterior(Strange(gm.RBF(1.0), ConstantMean(0.5), np.ones(1)), points)
