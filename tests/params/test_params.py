"""Parameters: supports and their maps, priors, the flat vector of an optimiser, and what is refused."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import quad

from gramian.errors import ParameterError
from gramian.kernels import RBF, Categorical, Linear, Matern52, Periodic, Polynomial, SpectralMixture
from gramian.kernels.text import parse_kernel
from gramian.params import (
    Affine,
    Gamma,
    HalfNormal,
    Interval,
    InverseGamma,
    LogNormal,
    NonNegative,
    Normal,
    Parameter,
    ParameterSpace,
    ParameterTable,
    Positive,
    PositiveSemidefinite,
    Prior,
    Real,
    Support,
    Uniform,
    fixed,
    namespace,
    param,
)

modest = settings(max_examples=60, deadline=None)
SUPPORTS = [
    Real(),
    Affine(3.0, 0.5),
    Affine(-1.0, -2.0),
    Positive(),
    NonNegative(),
    Interval(0.0, 1.0),
    Interval(-2.0, 5.0),
]
unconstrained = st.lists(st.floats(-12, 12), min_size=1, max_size=4).map(np.array)


def differences(f, u: np.ndarray, h: float = 1e-4) -> np.ndarray:
    """The gradient of f at u by four-point central differences: errors h^4 / 30 times the fifth derivative,
    and eps / h times |f|."""
    slopes = []
    for k in range(u.size):
        step = np.zeros(u.size)
        step[k] = h
        step = step.reshape(u.shape)
        slopes.append((8 * (f(u + step) - f(u - step)) - (f(u + 2 * step) - f(u - 2 * step))) / (12 * h))
    return np.array(slopes).reshape(u.shape)


# Supports


@modest
@given(st.sampled_from(SUPPORTS), unconstrained)
def test_supports_map_back_and_forth(support, u):
    v = support.forward(u)
    assert support.problem(v) is None
    # v is rounded to eps times its own size and that of the support's ends (8 at most here), and du = dv /
    # (dv/du).
    slope = np.abs(support.pullback(u, np.ones_like(u)))
    lost = 8 * np.finfo(float).eps * (1 + np.abs(u) + (8 + np.abs(v)) / slope)
    assert np.all(np.abs(support.inverse(v) - u) <= lost)


@modest
@given(st.floats(-300, 0))
def test_small_numbers_of_the_unit_interval_keep_their_digits(u):
    v = Interval(0.0, 1.0).forward(np.array([u]))
    assert_allclose(v, np.exp(u) / (1 + np.exp(u)), rtol=1e-14)
    assert_allclose(Interval(0.0, 1.0).inverse(v), [u], rtol=1e-14, atol=1e-15)


@modest
@given(st.sampled_from(SUPPORTS), unconstrained)
def test_pullbacks_and_jacobians_of_supports_equal_differences(support, u):
    weights = np.cos(np.arange(u.size))
    slope = support.pullback(u, weights)
    scale = np.sum(np.abs(support.forward(u))) + np.max(np.abs(slope))
    assert_allclose(slope, differences(lambda u: np.sum(weights * support.forward(u)), u), atol=1e-9 * scale)
    value, gradient = support.log_jacobian(u)
    assert_allclose(
        value, np.sum(np.log(np.abs(support.pullback(u, np.ones_like(u))))), rtol=1e-10, atol=1e-10
    )
    assert_allclose(
        gradient, differences(lambda u: support.log_jacobian(u)[0], u), atol=1e-9 * (1 + abs(value))
    )


@modest
@given(st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_positive_semidefinite_matrices(n, seed):
    rng = np.random.default_rng(seed)
    u, grad = rng.standard_normal((2, n, n))
    support = PositiveSemidefinite()
    A = support.forward(u)
    assert support.problem(A) is None
    assert_allclose(support.forward(support.inverse(A)), A, atol=1e-13 * np.trace(A))
    slope = differences(lambda u: np.sum(grad * support.forward(u)), u)
    assert_allclose(support.pullback(u, grad), slope, atol=1e-9 * (1 + np.sum(np.abs(grad)) * np.trace(A)))


# Priors

PRIORS = [
    (LogNormal(0.3, 0.7), stats.lognorm(0.7, scale=np.exp(0.3))),
    (Normal(-0.4, 1.3), stats.norm(-0.4, 1.3)),
    (HalfNormal(1.3), stats.halfnorm(scale=1.3)),
    (Gamma(2.5, 1.7), stats.gamma(2.5, scale=1 / 1.7)),
    (InverseGamma(2.5, 1.7), stats.invgamma(2.5, scale=1.7)),
    (Uniform(0.01, 40.0), stats.uniform(0.01, 39.99)),
]
by_name = pytest.mark.parametrize(("prior", "published"), PRIORS, ids=lambda p: type(p).__name__)


@by_name
def test_priors_are_the_published_densities(prior, published):
    v = np.array([-3.0, -0.5, 0.0, 0.02, 0.5, 1.0, 7.0, 39.0, 41.0])
    inside = published.logpdf(v)
    if not isinstance(prior, (Normal, HalfNormal)):
        inside[v <= 0] = -np.inf
    assert_allclose(prior.log_density(v), inside, rtol=1e-12, atol=1e-12)


@by_name
@modest
@given(v=st.floats(0.05, 35.0))
def test_slopes_of_priors_equal_differences(prior, published, v):
    at = np.array([v])
    h = 1e-4 * v
    slope = differences(lambda v: float(prior.log_density(v)[0]), at, h)
    # InverseGamma at 0.05 has a log density of -30 and fifth derivatives of 1e10 h^4: 1e-8 relative to the
    # size of slope and value over v.
    assert_allclose(
        prior.slope(at),
        slope,
        atol=1e-8 * (abs(prior.slope(at)[0]) + (1 + abs(prior.log_density(at)[0])) / v),
    )


def test_priors_of_vectors_have_one_median_an_entry():
    prior = LogNormal((0.0, 1.0), 0.5)
    v = np.array([0.7, 2.0])
    assert_allclose(
        prior.log_density(v),
        [LogNormal(0.0, 0.5).log_density(v)[0], LogNormal(1.0, 0.5).log_density(v)[1]],
        rtol=1e-15,
    )
    assert LogNormal(np.array([0, 1]), 0.5) == LogNormal((0.0, 1.0), 0.5)
    assert hash(LogNormal([0, 1])) == hash(LogNormal((0, 1)))


@by_name
def test_the_density_of_theta_has_unit_mass(prior, published):
    """The change of variables: p(u) = p(v) |dv/du| integrates to 1, up to the mass that a support cuts
    off."""
    for support, mass in (
        (Positive(), 1 - published.cdf(0)),
        (Interval(0.0, 50.0), published.cdf(50) - published.cdf(0)),
    ):
        space = ParameterSpace({"v": param(1.0, prior=prior).within(support, "v")})
        total, error = quad(
            lambda u, space=space: np.exp(space.log_prior(np.array([u]))[0]),
            -35,
            25,
            limit=500,
            points=[-4, 0, 4],
        )
        assert abs(total - mass) < 1e-7 + error  # a Uniform's density has jumps, where quadrature is slow


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LogNormal(0, 0), "LogNormal: sigma is 0, but must be a finite positive number."),
        (lambda: Normal(np.nan, 1), "Normal: mu is nan, but must be a finite number."),
        (lambda: Normal("low", 1), "Normal: mu is 'low', but must be a finite number."),
        (lambda: Gamma(-1, 1), "Gamma: shape is -1, but must be a finite positive number."),
        (lambda: Gamma((1, 2), 1), "Gamma: shape is (1, 2), but must be a finite positive number."),
        (
            lambda: InverseGamma(1, np.inf),
            "InverseGamma: scale is inf, but must be a finite positive number.",
        ),
        (lambda: Uniform(2, 1), "Uniform: low is 2.0 and high is 1.0, but low must be below high."),
    ],
)
def test_impossible_priors_are_refused(make, message):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value) == message


# Parameters


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: param("a"), "A parameter must be a number or an array of numbers, not 'a'."),
        (lambda: param([[1.0], [1.0, 2.0]]), "A parameter must be a number or an array of numbers"),
        (lambda: param(np.inf), "A parameter must be finite, but inf is not."),
        (
            lambda: param(1.0, bounds=(2.0, 1.0)),
            "bounds=(2, 1) are empty: the lower one must be below the upper one.",
        ),
        (
            lambda: param(1.0, bounds=(2.0, 3.0)),
            "The value 1.0 lies outside its bounds (2, 3). Start inside them.",
        ),
        (lambda: param(1.0, bounds=(1, 2, 3)), "bounds=(1, 2, 3) are not a pair of numbers (low, high)."),
        (lambda: param(1.0, bounds=0.5), "bounds=0.5 are not a pair of numbers (low, high)."),
        (
            lambda: param(1.0, prior="wide"),
            "prior='wide' is not a prior. Give one such as LogNormal(0, 1) or Gamma(2, 1).",
        ),
        (
            lambda: RBF(param(3.0, prior=Uniform(0, 1))),
            "RBF: lengthscale is 3.0, which its prior Uniform(low=0.0, high=1.0) gives no probability.",
        ),
        (
            lambda: RBF(param(1.0, prior=LogNormal((0, 1)))),
            "sigma=1.0) has another number of entries. Give one an entry.",
        ),
        (
            lambda: RBF(param([1.0, 2.0, 3.0], prior=LogNormal((0, 1)))),
            "sigma=1.0) has another number of entries. Give one an entry.",
        ),
        (
            lambda: SpectralMixture([1.0], param([-1.0], prior=Gamma()), [1.0]),
            "means is [-1.0], which its prior Gamma(shape=2.0, rate=1.0) gives",
        ),
        (
            lambda: Linear(param(np.eye(2), prior=Normal())),
            "Linear: variance is a matrix, which takes no prior and no bounds.",
        ),
        (
            lambda: Linear(param(np.eye(2), bounds=(0, 2))),
            "Linear: variance is a matrix, which takes no prior and no bounds.",
        ),
    ],
)
def test_impossible_parameters_are_refused(make, message):
    with pytest.raises(ParameterError) as caught:
        make()
    assert message in str(caught.value)


def test_parameters_cannot_change():
    given = np.array([1.0, 2.0])
    kernel = RBF(given)
    given[0] = 99.0
    for same in (kernel, copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert same.lengthscale.value.tolist() == [1.0, 2.0]
        with pytest.raises(ValueError, match="read-only"):
            same.lengthscale.value[0] = 3.0
        with pytest.raises(dataclasses.FrozenInstanceError):
            same.lengthscale = 3.0


def test_parameters_are_numbers_to_numpy():
    p = param(0.5)
    assert float(p) == 0.5
    assert np.asarray(p).dtype == np.float64
    assert np.array(param([1, 2])).tolist() == [1.0, 2.0]


def test_with_value_stays_within_bounds():
    assert float(param(1.0, bounds=(0.5, 2.0)).with_value(2.0 + 1e-15)) == 2.0


def test_unknown_paths_are_refused():
    with pytest.raises(KeyError, match=r"no parameter named \['length'\]; there are \['lengthscale'\]"):
        RBF().with_values({"length": 1.0})


# The flat vector

KERNEL = (
    param(2.0, prior=Gamma(2, 1)) * RBF(param([0.5, 1.5], prior=LogNormal((0, 1), 0.7)))
    + Matern52(param(0.7, bounds=(0.1, 10.0)))
    + Categorical(param(0.3, prior=Uniform(0, 0.9)))
    + SpectralMixture([1.0], param([-0.4], prior=Normal(0, 1)), [1.0])
    + Polynomial(2, 0.5, fixed(0.0))
    + Linear([[2.0, 1.0], [1.0, 2.0]])
)
SPACE = ParameterSpace(KERNEL.parameters())


def test_theta_goes_there_and_back():
    values = SPACE.values(SPACE.theta)
    assert values.keys() == {path for path, p in KERNEL.parameters().items() if p.trainable}
    for path, value in values.items():
        assert_allclose(value, KERNEL.parameters()[path].value, rtol=1e-14, atol=1e-15)
    assert "polynomial.offset" not in values
    assert len(SPACE.names) == SPACE.theta.size == len(SPACE.limits) == 13
    assert SPACE.names[:4] == [
        "rbf.scale",
        "rbf.lengthscale[0]",
        "rbf.lengthscale[1]",
        "matern52.lengthscale",
    ]
    assert SPACE.names[-1] == "linear.variance[1,1]"


@modest
@given(st.integers(0, 2**32 - 1))
def test_gradients_and_priors_of_theta_equal_differences(seed):
    rng = np.random.default_rng(seed)
    theta = SPACE.theta + 0.3 * rng.standard_normal(SPACE.theta.size)
    weights = {path: rng.standard_normal(p.value.shape) for path, p in SPACE.trainable.items()}

    def total(theta):
        return sum(np.sum(weights[path] * v**2) for path, v in SPACE.values(theta).items())

    gradients = {path: 2 * weights[path] * v for path, v in SPACE.values(theta).items()}
    size = 1 + sum(np.sum(np.abs(weights[path]) * v**2) for path, v in SPACE.values(theta).items())
    assert_allclose(SPACE.pullback(theta, gradients), differences(total, theta), atol=1e-9 * size)
    value, slope = SPACE.log_prior(theta)
    if np.isfinite(value):  # a Uniform's edge may be passed
        assert_allclose(
            slope, differences(lambda t: SPACE.log_prior(t)[0], theta), atol=1e-9 * (1 + abs(value))
        )


def test_limits_come_from_bounds_and_uniform_priors():
    limits = dict(zip(SPACE.names, SPACE.limits, strict=True))
    assert_allclose(limits["matern52.lengthscale"], np.log([0.1, 10.0]))
    assert limits["rbf.scale"] == (-np.inf, np.inf)
    low, high = limits["categorical.similarity"]
    assert low == -np.inf
    assert high == pytest.approx(np.log(0.9 / 0.1))


def test_bounds_of_each_entry():
    kernel = RBF(param([1.0, 2.0, 3.0], bounds=([0.5, 1.0, 2.0], 10.0)))
    own, space = kernel.lengthscale, ParameterSpace(kernel.parameters())
    assert own.bounds == ((0.5, 1.0, 2.0), 10.0)
    assert_allclose(own.box, [[0.5, 1.0, 2.0], [10.0] * 3])
    assert_allclose(space.limits, np.log([[0.5, 10.0], [1.0, 10.0], [2.0, 10.0]]))
    assert [row.bounds for row in ParameterTable.of(kernel.parameters())] == [(0.5, 10), (1, 10), (2, 10)]
    # by no more than rounding beyond, in one entry: put back
    assert_allclose(space.arrays(np.log([0.5, 1.0 - 1e-12, 3.0]))[0], [0.5, 1.0, 3.0], rtol=0, atol=1e-15)
    with pytest.raises(ParameterError, match=r"outside its bounds \(\[0.5, 1, 2\], 10\)"):
        space.arrays(np.log([0.6, 0.9, 3.0]))
    assert parse_kernel(repr(kernel)).lengthscale.bounds == own.bounds


@pytest.mark.parametrize("bounds", [([0.1, 0.1], 1.0), (0.1, [1.0]), ([[0.1] * 3], 1.0)])
def test_bounds_of_another_number_of_entries_are_refused(bounds):
    with pytest.raises(ParameterError, match=r"do not belong to the value .* one number an entry"):
        param([0.5, 0.6, 0.7], bounds=bounds)
    with pytest.raises(ParameterError, match=r"do not belong to the value 0\.5"):
        param(0.5, bounds=([0.1], 1.0))


def test_a_space_without_free_parameters_is_empty():
    space = ParameterSpace(RBF(fixed(1.0)).parameters())
    assert space.theta.size == 0
    assert space.log_prior(space.theta) == (0.0, pytest.approx(np.zeros(0)))
    assert space.restarts(3, np.random.default_rng(0)) == []


def test_a_vector_of_another_length_is_refused():
    with pytest.raises(
        ParameterError, match=r"theta has shape \(2,\), but this model has 1 trainable numbers: lengthscale."
    ):
        ParameterSpace(RBF().parameters()).values(np.zeros(2))


def test_a_parameter_without_a_place_has_no_support():
    with pytest.raises(ParameterError, match="without a support"):
        _ = ParameterSpace({"v": param(1.0)}).theta


def test_a_space_says_what_its_parameters_say_one_by_one():
    """Entries of several parameters go through one call; the numbers are those of one call a parameter."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        theta = SPACE.theta + 0.2 * rng.standard_normal(SPACE.theta.size)
        values = SPACE.values(theta)
        total, slopes = 0.0, []
        for path, u in SPACE.split(theta).items():
            p = SPACE.parameters[path]
            assert np.array_equal(values[path], p.support.forward(u))
            alone = ParameterSpace({path: p}).log_prior(u.ravel())
            total, slopes = total + alone[0], [*slopes, alone[1]]
        value, slope = SPACE.log_prior(theta)
        assert_allclose(value, total, rtol=1e-13)
        assert_allclose(slope, np.concatenate(slopes), rtol=1e-13, atol=1e-15)


def test_the_arrays_of_a_space_make_the_tree_that_with_values_makes():
    theta = SPACE.theta + 0.01
    moved, slow = KERNEL.moved(SPACE.arrays(theta)), KERNEL.with_values(SPACE.values(theta))
    assert moved == slow
    assert moved.paths == slow.paths == KERNEL.paths
    assert not moved.parameters()["rbf.lengthscale"].value.flags.writeable


def test_arrays_are_refused_as_values_are():
    space = ParameterSpace(Matern52(param(0.7, bounds=(0.1, 10.0))).parameters())
    assert space.arrays(np.log([10.0]) + 1e-15)[0] == 10.0
    with pytest.raises(ParameterError, match="lies outside its bounds"):
        space.arrays(np.log([11.0]))
    with pytest.raises(ParameterError, match="must be finite"):
        ParameterSpace(RBF().parameters()).arrays(np.array([1e4]))


def test_what_a_tree_keeps_beside_its_fields_stays_out_of_copies():
    kernel = 2.0 * RBF([0.5, 1.5])
    assert kernel.bare() is kernel.bare()
    assert kernel.paths is kernel.paths
    for same in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel)), copy.copy(kernel)):
        assert set(vars(same)) == {"kernel", "scale"}
        assert same == kernel
    assert len(pickle.dumps(kernel)) == len(pickle.dumps(pickle.loads(pickle.dumps(kernel))))


# One's own supports and priors


@dataclasses.dataclass(frozen=True)
class OwnLogNormal(Prior):
    """As LogNormal, with no slope."""

    mu: float = 0.0
    sigma: float = 1.0

    def log_density(self, v):
        xp = namespace(v)
        return -0.5 * ((xp.log(v) - self.mu) / self.sigma) ** 2 - xp.log(v * self.sigma * np.sqrt(2 * np.pi))


@dataclasses.dataclass(frozen=True)
class OwnPositive(Support):
    """As Positive, with no slopes."""

    def problem(self, value):
        return None if np.all(value > 0) else "must be positive"

    def forward(self, u):
        return namespace(u).exp(u)

    def inverse(self, v):
        return namespace(v).log(v)

    def ends(self):
        return 0.0, np.inf


@dataclasses.dataclass(frozen=True)
class PlainNumpy(Prior):
    """Written for NumPy alone."""

    def log_density(self, v):
        return -np.log(1 + v)


@modest
@given(st.lists(st.floats(-12, 12), min_size=4, max_size=4).map(np.array))  # one shape: JAX compiles each
def test_slopes_that_nobody_wrote_are_those_of_the_formula(u):
    own, known = OwnPositive(), Positive()
    weights = np.cos(np.arange(u.size))
    assert_allclose(own.pullback(u, weights), known.pullback(u, weights), rtol=1e-14)
    for mine, theirs in zip(own.log_jacobian(u), known.log_jacobian(u), strict=True):
        assert_allclose(mine, theirs, rtol=1e-14, atol=1e-13)
    v = np.exp(u)
    assert_allclose(
        OwnLogNormal(0.3, 0.7).log_density(v), LogNormal(0.3, 0.7).log_density(v), rtol=1e-13, atol=1e-13
    )
    assert_allclose(OwnLogNormal(0.3, 0.7).slope(v), LogNormal(0.3, 0.7).slope(v), rtol=1e-12, atol=1e-13)


def test_a_prior_that_jax_cannot_follow_says_what_to_do():
    with pytest.raises(
        ParameterError, match=r"PlainNumpy\(\): its log_density cannot .* xp = gramian.params.namespace"
    ):
        PlainNumpy().slope(np.array([1.0]))


# Restarts


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_restarts_lie_within_limits_and_are_reproducible(count):
    def draw(seed):
        return np.array(SPACE.restarts(count, np.random.default_rng(seed)))

    points, limits = draw(3), np.array(SPACE.limits)
    assert points.shape == (count, SPACE.theta.size)
    assert np.all((points >= limits[:, 0]) & (points <= limits[:, 1]))
    free = ~np.isfinite(limits).all(axis=1)
    assert np.all(np.abs(points - SPACE.theta)[:, free] <= 2.0)
    assert np.array_equal(points, draw(3))
    assert not np.array_equal(points, draw(4))
    for point in points:
        assert np.isfinite(SPACE.log_prior(point)[0])


def test_restarts_cover_bounds_evenly():
    # Eight Sobol points have exactly one in each eighth of the range.
    space = ParameterSpace(Matern52(param(0.7, bounds=(0.1, 10.0))).parameters())
    points = np.sort(np.array(space.restarts(8, np.random.default_rng(0)))[:, 0])
    eighths = (points - np.log(0.1)) / np.log(100.0) * 8
    assert np.floor(eighths).tolist() == list(range(8))


# Tables


def test_table_of_parameters():
    table = ParameterTable.of(
        (2.0 * Periodic([0.5, 1.5], fixed(7.0))).parameters(), {"scale": "at its bound"}
    )
    assert table.names == ("scale", "lengthscale[0]", "lengthscale[1]", "period")
    assert table["scale"] == 2.0
    assert np.array_equal(table["lengthscale"], [0.5, 1.5])
    assert table.to_dict()["period"] == 7.0
    assert [row.trainable for row in table] == [True, True, True, False]
    assert len(table) == 4
    lines = str(table).split("\n")
    assert lines[0].split() == ["name", "value", "note"]
    assert lines[1].endswith("at its bound")
    assert lines[4].split() == ["period", "7", "fixed"]
    with pytest.raises(KeyError, match="no parameter named 'noise'; there are scale"):
        _ = table["noise"]


def test_parameter_text():
    assert repr(Parameter(np.array(0.1))) == "0.1"
    assert repr(param([1, 2], bounds=(0, 3))) == "param([1.0, 2.0], bounds=(0.0, 3.0))"
    assert repr(fixed(1 / 3)) == f"fixed({1 / 3!r})"
    assert param(1 / 3, bounds=(0, 1)).text(3) == "0.333"
