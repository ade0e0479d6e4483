"""What a kernel says of itself: true of composed kernels, the same for a user's own, and nothing more."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gramian as gm
from gramian.errors import ParameterError
from gramian.fitting.reach import within_reach
from gramian.gram import radial, tiles
from gramian.inference import Model
from gramian.kernels import (
    RBF,
    Brownian,
    Categorical,
    Constant,
    Cosine,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    SpectralMixture,
    Stationary,
    exp,
    map_inputs,
    poly,
    warp,
)
from gramian.kernels.profiles import Profile, Radial
from gramian.likelihoods import Gaussian
from gramian.means import ZeroMean
from gramian.params import Value, param, positive
from gramian.testing import check_kernel

X = np.random.default_rng(0).normal(size=(30, 2))


JAX_BEFORE_0_10 = tuple(map(int, jax.__version__.split(".")[:2])) < (0, 10)


class Cauchy(Stationary):
    """1 / (1 + r^2): a user's own, of a profile alone."""

    def profile(self, r2):
        return 1 / (1 + r2)


def _cauchy(u):
    u += 1.0
    k = np.reciprocal(u, out=u)
    return k, k**2


class FastCauchy(Cauchy):
    """The same, with all that it may say of itself."""

    low_precision = True

    def radial(self):
        return Radial(Profile(1.0, lambda u: _cauchy(u)[0], _cauchy, -1.0), (), self.lengthscale)


def double(x):
    return 2 * x


def first(x):
    return 1 + x[0] ** 2


# What composed kernels say. ---------------------------------------------------------------------------------


def test_a_function_of_differences_is_known_through_every_rule():
    parts = [RBF(), Matern12(), Periodic(), Cosine(), SpectralMixture(), Constant(), Categorical(), Cauchy()]
    for k in parts:
        assert all(
            made.stationary
            for made in (k, 2.0 * k, k + RBF(), k * RBF(), k**2, exp(k), poly(k, [1, 2]), k.on(0))
        )
    for k in (Linear(), Brownian(), Polynomial(), map_inputs(RBF(), double), warp(RBF(), first)):
        assert not any(made.stationary for made in (k, 2.0 * k, k + RBF(), k * RBF(), exp(k), k.on(0)))


def test_lengthscales_come_with_the_columns_they_are_for():
    a, b, c = RBF([1.0, 2.0]), Matern52(0.5), Cauchy(3.0)
    kernel = (2.0 * a.on(2, 0) + exp(b.on(1)) * Periodic()) * c + map_inputs(RBF(), double)
    found = kernel.lengthscales(range(3))
    assert [columns for _, columns in found] == [(2, 0), (1,), (0, 1, 2)]
    for (own, _), part in zip(found, (a, b, c), strict=True):
        assert own is part.lengthscale
    # columns of columns
    assert (a.on(1, 0)).on(5, 7).lengthscales(range(9)) == [(a.lengthscale, (7, 5))]


def test_lengths_of_change_are_lengthscales_and_parts_of_periods():
    turn = 2 * np.pi
    kernel = RBF([1.0, 2.0]).on(2, 0) + Matern52(0.5) * Periodic(0.1, [3.0, 6.0, 9.0]).on(1, 0, 2)
    kernel += map_inputs(RBF(), double) + 2.0 * Cosine(turn).on(1) + Linear()
    expected = [(2, 1.0), (0, 2.0), (0, 0.5), (1, 0.5), (2, 0.5)]
    expected += [(1, 0.3 / turn), (0, 0.6 / turn), (2, 0.9 / turn), (1, 1.0)]
    assert_allclose(kernel.change_lengths(range(3)), expected, rtol=1e-14)
    mixture = SpectralMixture([1.0, 2.0], [[1.0, 0.0], [0.5, 2.0]], [[1.0, 2.0], [0.5, 2.0]])
    expected = [(0, 0.5 / turn), (1, 0.5 / turn), (0, 1 / turn), (1, 0.25 / turn)]
    assert_allclose(mixture.change_lengths(range(2)), expected, rtol=1e-14)


def test_the_columns_that_a_kernel_speaks_of():
    assert (2.0 * RBF() + Linear()).columns_asked() == ()
    assert (RBF([1.0, 2.0]) * RBF().on(3)).columns_asked() == (0, 1, 3)
    assert (RBF([1.0, 2.0]).on("b", "a") + exp(RBF().on("c"))).columns_asked() == ("b", "a", "c")
    assert map_inputs(RBF([1.0, 2.0]), double).columns_asked() == ()
    assert (Linear([1.0, 2.0]).columns_asked(), Linear(np.eye(3)).columns_asked()) == ((0, 1), (0, 1, 2))


def test_parameters_that_have_an_entry_a_column():
    a, b, c = RBF([1.0, 2.0]), Periodic([1.0, 2.0], 3.0), Linear([1.0, 2.0, 3.0])
    kernel = a.on(2, 0) * exp(b.on(1, 2)) + c + RBF(1.0) + map_inputs(RBF([1.0, 2.0, 3.0]), double)
    found = kernel.by_column(range(3))
    assert [columns for _, columns in found] == [(2, 0), (1, 2), (0, 1, 2)]
    for (own, _), parameter in zip(found, (a.lengthscale, b.lengthscale, c.variance), strict=True):
        assert own is parameter


def test_levels_multiply_the_kernel():
    k = RBF(0.7)
    for kernel in (
        2.0 * k,
        2.0 * k + Constant(3.0),
        (2.0 * k) * Matern12(),
        Matern12() * (k + 1.0 * k) * (3.0 * k),
        (2.0 * k).on(1) + SpectralMixture([1.0, 2.0], [0.1, 0.2], [1.0, 2.0]),
        poly(k, param([0.5, 1.0])),
        warp(2.0 * k, first),
        map_inputs(2.0 * k, double),
    ):
        levels = kernel.levels()
        assert levels, kernel
        moved = kernel.with_parameters(
            [
                p.with_value(3 * p.value) if any(p is level for level in levels) else p
                for p in kernel.parameters().values()
            ]
        )
        assert_allclose(moved(X), 3 * kernel(X), rtol=1e-14)


@pytest.mark.parametrize(
    "kernel", [RBF(), 2.0 * RBF() + RBF(), exp(2.0 * RBF()), (2.0 * RBF()) ** 2], ids=str
)
def test_no_levels_where_there_are_none(kernel):
    assert kernel.levels() is None


def test_a_scale_that_stands_at_two_places_is_no_level():
    """k * k has one scale twice: times c, it multiplies by c^2."""
    k = 2.0 * RBF()
    assert (k * k).levels() is None
    assert (k + k).levels() is not None


def test_rough_parts_are_the_innermost():
    a, b = Matern12(), Brownian()
    assert (2.0 * a.on(0) + RBF() * b).rough_parts == [a, b]
    assert RBF().rough_parts == []


def test_summands():
    a, b, c = RBF(), Linear(), 2.0 * Matern52()
    assert (a + b + c).summands == (a, b, c)
    assert (a * b).summands == (a * b,)


def test_waves_are_missing_where_one_part_has_none():
    assert (RBF() * Periodic() + Cosine().on(1)).has_waves(3)
    kernel = RBF() + 2.0 * Linear()
    assert not kernel.has_waves(3)
    assert kernel.without_waves == Linear()
    assert exp(RBF()).without_waves == exp(RBF())


# A user's own. ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", [Cauchy([0.5, 2.0]), 2.0 * FastCauchy(0.6), FastCauchy(0.7).on(1)], ids=str
)
def test_ones_own_keeps_the_contract(kernel):
    check_kernel(kernel, n_columns=2)


def test_ones_own_is_worked_on_around_zero_in_32_bits():
    """Points 1e6 from the origin have no digits left in float32, their differences have."""
    kernel = 2.0 * FastCauchy(1.3)
    V = np.random.default_rng(1).normal(size=(30, 2))
    far = tiles.matmul(kernel, X + 1e6, X + 1e6, V, np.float32)
    assert_allclose(far, kernel(X) @ V, atol=1e-4)
    assert not np.array_equal(far, kernel(X) @ V)  # it was in 32 bits


def test_ones_own_radial_profile_is_taken():
    kernel = 3.0 * (2.0 * FastCauchy([0.5, 2.0]))
    fast = radial.taken(kernel, X, X[:9], 1e-10)
    assert fast is not None
    assert_allclose(fast.cross(np.empty((30, 9))), kernel(X, X[:9]), rtol=1e-13)


def test_ones_own_lengthscales_are_brought_within_reach():
    model = Model(2.0 * Cauchy([1.0, 1e6]), ZeroMean(), Gaussian(0.1))
    near = within_reach(model, X).kernel.parameters()["lengthscale"].value
    assert near[0] == 1.0
    assert near[1] < 10


def test_ones_own_lengthscales_are_those_of_kmeans():
    own, theirs = (gm.landmarks(2.0 * k([0.1, 50.0]), X, 5, "kmeans", 0).Z for k in (Cauchy, RBF))
    assert_array_equal(own, theirs)


def test_other_values_are_not_taken_for_those_of_the_parent():
    """A subclass of a whole kernel with a profile of its own has neither its spectrum nor its fast path."""

    class Wider(FastCauchy):
        def profile(self, r2):
            return 1 / (1 + r2 / 4)

    class Renamed(RBF):
        pass

    kernel = Wider(1.0)
    assert kernel.radial() is None
    assert not kernel.low_precision
    assert kernel.stationary
    assert Renamed(2.0).radial() is not None
    assert Renamed(2.0).has_waves(1)

    class Narrow(RBF):
        def profile(self, r2):
            return super().profile(2 * r2)

    with pytest.raises(ParameterError, match="no known spectral measure"):
        Narrow(1.0).waves((0,))


def test_a_parameter_cannot_have_the_name_of_what_a_kernel_says():
    with pytest.raises(ParameterError, match=r"Steps declares 'levels', which is what every kernel says"):

        class Steps(Kernel):
            levels: Value = positive(1.0)

            def pair(self, x, z):
                return self.levels * jnp.exp(-jnp.sum((x - z) ** 2))


# What says too much. ----------------------------------------------------------------------------------------


class NotOfDifferences(Kernel):
    stationary = True

    def pair(self, x, z):
        return x @ z + 1.0


class WrongLevels(Kernel):
    variance: Value = positive(1.0)

    def pair(self, x, z):
        return self.variance**2 * jnp.exp(-jnp.sum((x - z) ** 2))

    def levels(self):
        return [self.variance]


class WrongSlope(FastCauchy):
    def radial(self):
        form = super().radial()
        return form._replace(profile=form.profile._replace(slope=-2.0))


class WrongProfile(FastCauchy):
    def radial(self):
        return Radial(RBF().radial().profile, (), self.lengthscale)


class UnnamedParameter(FastCauchy):
    other: Value = positive(1.0)


TABLE = np.array([0.2, 0.8])


class WithAnArray(Cauchy):
    low_precision = True

    def profile(self, r2):
        return jnp.sum(TABLE / (1 + r2[..., None] * TABLE), axis=-1)


class Coarse(Cauchy):
    """exp(-r^2) by a power that leaves float32 one of its digits."""

    low_precision = True

    def profile(self, r2):
        return (1 + r2 / 1e6) ** -1e6


class WrongSummands(Cauchy):
    @property
    def summands(self):
        return (self, self)


class SomebodysLengthscale(Cauchy):
    def lengthscales(self, columns):
        return [(RBF().lengthscale, tuple(columns))]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (NotOfDifferences(), "loses digits when all inputs lie 1e6 from the origin"),
        (WrongLevels(), "with its levels times 1.75, k and 1.75 k differ"),
        (WrongSlope(), r"the gradient of lengthscale by radial\(\)"),
        (WrongProfile(), r"values by radial\(\) and by pair differ"),
        (UnnamedParameter(), r"radial\(\) must name all its 2 parameters"),
        pytest.param(
            WithAnArray(),
            "float64 fails after one in float32",
            marks=pytest.mark.skipif(JAX_BEFORE_0_10, reason="JAX 0.8 and 0.9 do not fail there"),
        ),
        (Coarse(), "float32 has less than 3 of its 7 digits"),
        (WrongSummands(), "is not the sum of its summands"),
        (SomebodysLengthscale(), "none of its parameters"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Kernel) else "",
)
def test_sayings_that_are_not_true_are_found(kernel, message):
    with pytest.raises(AssertionError, match=message):
        check_kernel(kernel)


def test_the_librarys_own_say_what_they_can():
    for kernel in (RBF(), Matern32(), Matern52()):
        assert kernel.radial() is not None
    for kernel in (Matern12(), RationalQuadratic(), RBF().on(0), RBF() + RBF()):
        assert kernel.radial() is None
    names = [getattr(gm.kernels, name) for name in gm.kernels.__all__]
    leaves = [
        kind
        for kind in names
        if isinstance(kind, type)
        and issubclass(kind, Kernel)
        and kind.__module__.endswith(("stationary", "dot_product", "categorical"))
    ]
    assert len(leaves) == 17
    assert all(kind().low_precision for kind in leaves if kind is not Stationary)
