"""The search for hyperparameters on functions with known optima: it keeps the best, steps back from failures,
and ends when it is told to."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian.clock import check
from gramian.errors import NumericalError
from gramian.fitting import lbfgs
from gramian.fitting.lbfgs import maximise
from gramian.fitting.newton import polish
from gramian.fitting.progress import Report
from gramian.linalg import threads
from gramian.linalg.threads import each

FREE = [(-np.inf, np.inf)] * 2


def silent(start, starts, evaluations, best):
    pass


def hill(theta):
    """One maximum, at (1, -2), far from quadratic elsewhere."""
    a, b = theta - [1.0, -2.0]
    value = -np.log1p(a**2 + 10 * b**2) - 0.1 * a**4
    return value, np.array([-2 * a / (1 + a**2 + 10 * b**2) - 0.4 * a**3, -20 * b / (1 + a**2 + 10 * b**2)])


def two_hills(theta):
    """A low hill of height 1 at 0 and a high one of height 3 at 6."""
    low, high = np.exp(-(theta[0] ** 2) / 2), 3 * np.exp(-((theta[0] - 6) ** 2) / 2)
    return low + high - theta[1] ** 2, np.array([-theta[0] * low - (theta[0] - 6) * high, -2 * theta[1]])


def test_finds_the_maximum_to_many_digits():
    search = maximise(hill, [np.array([3.0, 3.0])], FREE, silent)
    assert_allclose(search.theta, [1.0, -2.0], atol=1e-10)
    assert search.stopped == "converged"
    assert search.starts == 1
    assert search.failures == 0


def test_keeps_the_best_of_all_starts():
    starts = [np.array([0.5, 0.5]), np.array([5.0, 0.5]), np.array([-1.0, 0.5])]
    for order in ([0, 1, 2], [1, 0, 2], [2, 0, 1]):
        search = maximise(two_hills, [starts[k] for k in order], FREE, silent)
        assert_allclose(search.theta, [6.0, 0.0], atol=1e-4)
        assert search.value == pytest.approx(3.0, abs=1e-6)
        assert search.starts == 3
    assert_allclose(maximise(two_hills, starts[:1], FREE, silent).theta, [0.0, 0.0], atol=1e-4)


def test_respects_limits():
    search = maximise(hill, [np.array([3.0, 3.0])], [(2.0, 5.0), (-np.inf, np.inf)], silent)
    assert_allclose(search.theta, [2.0, -2.0], atol=1e-8)
    assert search.stopped == "converged"


def test_everything_at_its_limits():
    search = maximise(hill, [np.array([3.0, 3.0])], [(2.0, 5.0), (0.0, 4.0)], silent)
    assert_allclose(search.theta, [2.0, 0.0])


def test_steps_back_from_failures():
    """Where a factorisation fails the search meets a wall and goes on from its best point, here to a maximum
    beside the wall."""
    calls = []

    def walled(theta):
        calls.append(theta.copy())
        if theta[1] > 1.0:
            raise NumericalError("K is not positive definite")
        return hill(theta)

    search = maximise(walled, [np.array([0.0, 0.9])], FREE, silent)
    assert_allclose(search.theta, [1.0, -2.0], atol=1e-8)
    assert search.evaluations == len(calls)
    assert search.failures == sum(theta[1] > 1.0 for theta in calls)


def test_a_maximum_against_a_wall():
    def walled(theta):
        if theta[0] < 1.5:
            raise NumericalError("K is not positive definite")
        return hill(theta)

    search = maximise(walled, [np.array([3.0, 3.0])], FREE, silent)
    assert search.failures > 0
    assert search.theta[0] == pytest.approx(1.5, abs=0.1)
    assert search.value > walled(np.array([3.0, 3.0]))[0]


def test_values_that_are_no_numbers_count_as_failures():
    def patchy(theta):
        value, gradient = hill(theta)
        return (np.nan if theta[1] > 1.0 else value), gradient

    search = maximise(patchy, [np.array([0.0, 0.9])], FREE, silent)
    assert_allclose(search.theta, [1.0, -2.0], atol=1e-8)
    assert np.isfinite(search.value)


@pytest.mark.parametrize("count", [1, 2])
def test_what_overflows_on_the_way_is_a_failure_and_no_warning(count):
    """On the thread that searches, and on those that it hands pieces to; elsewhere NumPy warns as before."""
    steep = np.array([1.0, 300.0])

    def patchy(theta):
        value, gradient = hill(theta)
        height = sum(each(lambda k: np.exp(-k * theta[1]), steep))  # infinite below -2.37
        return (value if np.isfinite(height) else np.inf), gradient

    before = threads.count()
    threads.set_threads(count)
    try:
        search = maximise(patchy, [np.array([3.0, 3.0])], FREE, silent)
        with pytest.warns(RuntimeWarning, match="overflow"):
            patchy(np.array([1.0, -2.5]))
    finally:
        threads.set_threads(before)
    assert search.failures > 0
    assert_allclose(search.theta, [1.0, -2.0], atol=1e-8)


def test_a_start_that_fails_is_passed_over():
    def walled(theta):
        if theta[1] > 1.0:
            raise NumericalError("K is not positive definite")
        return hill(theta)

    search = maximise(walled, [np.array([0.0, 3.0]), np.array([0.0, 0.0])], FREE, silent)
    assert_allclose(search.theta, [1.0, -2.0], atol=1e-8)
    assert search.starts == 2
    with pytest.raises(NumericalError, match="not positive definite"):
        maximise(walled, [np.array([0.0, 3.0]), np.array([0.0, 2.0])], FREE, silent)


class Clock:
    """Time that passes only when an evaluation takes it."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr("gramian.clock.now", lambda: self.now)

    def slow(self, objective, seconds=1.0):
        def taking_time(theta):
            self.now += seconds
            return objective(theta)

        return taking_time


def test_time_limit(monkeypatch):
    """Ends in time, and with the best so far."""
    clock = Clock(monkeypatch)
    search = maximise(clock.slow(hill), [np.array([30.0, 30.0])], FREE, silent, deadline=6.5)
    assert search.stopped == "time limit"
    assert clock.now == 6.0
    assert search.evaluations == clock.now
    assert search.value >= hill(np.array([30.0, 30.0]))[0]
    assert search.value == hill(search.theta)[0]


def test_time_limit_shorter_than_one_evaluation(monkeypatch):
    clock = Clock(monkeypatch)
    search = maximise(clock.slow(hill), [np.array([3.0, 3.0])], FREE, silent, deadline=0.1)
    assert search.stopped == "time limit"
    assert search.evaluations == 1
    assert np.array_equal(search.theta, [3.0, 3.0])


def test_a_slow_first_evaluation_says_nothing_of_the_others(monkeypatch):
    """It has programs to compile."""
    clock = Clock(monkeypatch)
    seconds = itertools.chain([5.0], itertools.repeat(0.1))

    def compiled(theta):
        clock.now += next(seconds)
        return hill(theta)

    search = maximise(compiled, [np.array([3.0, 3.0])], FREE, silent, deadline=5.95)
    assert search.evaluations == 10  # the first, and nine of a tenth of a second
    assert search.pace == pytest.approx(0.1)


def test_an_evaluation_that_is_given_up(monkeypatch):
    """The best of those before it is kept; where there is none, the start."""
    clock = Clock(monkeypatch)

    def tiled(theta):
        for _ in range(10):  # between its pieces it looks at the clock, as a factorisation does
            check()
            clock.now += 0.1
        return hill(theta)

    search = maximise(tiled, [np.array([3.0, 3.0])], FREE, silent, deadline=1.55)
    assert (search.stopped, search.evaluations) == ("time limit", 1)
    assert clock.now == pytest.approx(1.6)
    clock.now = 0.0
    search = maximise(tiled, [np.array([3.0, 3.0])], FREE, silent, deadline=0.55)
    assert (search.stopped, search.evaluations) == ("time limit", 0)
    assert np.array_equal(search.theta, [3.0, 3.0])


def test_time_limit_during_the_last_steps(monkeypatch):
    """Where L-BFGS is done and Newton's method is not: the best so far is kept."""
    clock = Clock(monkeypatch)
    whole = maximise(clock.slow(hill), [np.array([3.0, 3.0])], FREE, silent)
    clock.now = 0.0
    search = maximise(
        clock.slow(hill), [np.array([3.0, 3.0])], FREE, silent, deadline=whole.evaluations - 0.5
    )
    assert search.stopped == "time limit"
    assert_allclose(search.theta, [1.0, -2.0], atol=0.05)


def test_ample_time_changes_nothing(monkeypatch):
    clock = Clock(monkeypatch)
    free = maximise(clock.slow(hill), [np.array([3.0, 3.0])], FREE, silent)
    limited = maximise(clock.slow(hill), [np.array([3.0, 3.0])], FREE, silent, deadline=1e6)
    assert np.array_equal(free.theta, limited.theta)
    assert limited.stopped == "converged"


@pytest.mark.parametrize("k", [2, 3, 7])
def test_interrupt_keeps_the_best_so_far(k):
    values = []

    def interrupted(theta):
        if len(values) == k - 1:
            raise KeyboardInterrupt
        value, gradient = hill(theta)
        values.append(value)
        return value, gradient

    search = maximise(interrupted, [np.array([30.0, 30.0])], FREE, silent)
    assert search.stopped == "interrupted"
    assert search.value == max(values)
    assert hill(search.theta)[0] == max(values)


def test_interrupt_before_the_first_value_is_passed_on():
    def interrupted(theta):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        maximise(interrupted, [np.array([3.0, 3.0])], FREE, silent)


def test_iteration_limit():
    search = maximise(hill, [np.array([30.0, 30.0])], FREE, silent, iterations=2)
    assert search.stopped == "iteration limit"
    assert search.iterations == 2


def test_reports_each_evaluation():
    seen = []
    maximise(hill, [np.array([3.0, 3.0]), np.array([0.0, 0.0])], FREE, lambda *report: seen.append(report))
    starts, totals, evaluations, bests = zip(*seen, strict=True)
    assert set(starts) == {1, 2}
    assert set(totals) == {2}
    assert list(evaluations) == sorted(set(evaluations))
    assert all(b >= a for a, b in itertools.pairwise(bests))


def test_many_parameters_end_with_a_tight_run_instead_of_a_hessian():
    scales = np.linspace(1, 30, lbfgs.NEWTON_UP_TO + 5)

    def quadratic(theta):
        return -0.5 * float(scales @ (theta - 1) ** 2), -scales * (theta - 1)

    search = maximise(quadratic, [np.zeros(len(scales))], [(-np.inf, np.inf)] * len(scales), silent)
    assert_allclose(search.theta, 1.0, atol=1e-5)


# Newton's last steps. ---------------------------------------------------------------------------------------


def test_polish_finds_what_values_cannot_show():
    """A value rounded to 1e-6 hides the optimum within 1e-3; the gradient shows it."""

    def rounded(theta):
        value, gradient = hill(theta)
        return np.round(value, 6), gradient

    theta = polish(rounded, np.array([1.001, -2.0008]), FREE, 1e-5)
    assert_allclose(theta, [1.0, -2.0], atol=1e-10)


def test_polish_does_not_look_at_a_last_step_that_settles():
    """Value and Hessian take 3 evaluations, the first step one more; the second would leave no third."""
    seen = []
    theta = polish(lambda t: seen.append(t) or hill(t), np.array([1.001, -2.0008]), FREE, 1e-5)
    assert_allclose(theta, [1.0, -2.0], atol=1e-10)
    assert len(seen) == 4
    assert np.abs(seen[-1] - [1.0, -2.0]).max() > 1e-9  # it was needed


def test_polish_leaves_flat_directions_alone():
    theta = polish(
        lambda t: (-((t[0] - 1) ** 2), np.array([-2 * (t[0] - 1), 1e-9])), np.array([1.01, 5.0]), FREE, 1e-6
    )
    assert_allclose(theta[0], 1.0, atol=1e-8)
    assert theta[1] == 5.0


def test_polish_gives_up_where_it_does_not_help():
    # a plane has no maximum
    assert polish(lambda t: (float(t.sum()), np.ones(2)), np.array([0.0, 0.0]), FREE, 1e-6) is None
    assert polish(hill, np.array([4.0, 3.0]), FREE, 1e-6) is None  # no maximum within reach


def test_polish_moves_along_limits_and_away_from_them():
    at_limit = polish(hill, np.array([2.0, -1.99]), [(2.0, 5.0), (-5.0, 5.0)], 1e-6)
    assert_allclose(at_limit, [2.0, -2.0], atol=1e-8)
    away = polish(hill, np.array([0.99, -2.01]), [(0.99, 5.0), (-2.01, 5.0)], 1e-6)
    assert_allclose(away, [1.0, -2.0], atol=1e-8)
    everything = np.array([2.0, 0.0])
    assert polish(hill, everything, [(2.0, 5.0), (0.0, 5.0)], 1e-6) is everything


def test_polish_does_not_pay_more_than_the_slack():
    """A step to where the gradient vanishes but the value is lower is no improvement."""
    assert (
        polish(
            lambda t: (float(t[0] ** 2), np.array([-2 * (t[0] - 1)])), np.array([1.5]), [(-9.0, 9.0)], 1e-6
        )
        is None
    )


@pytest.mark.parametrize("limits", [[(-20.0, 20.0)] * 2, [(-20.0, 20.0), (-np.inf, np.inf)]])
def test_the_first_step_is_no_longer_than_one(limits):
    """However steep it is at the start, and whatever is bounded: parameters of logarithms that move by 20 say
    nothing, and an evidence there takes longest."""
    seen = []

    def steep(theta):
        seen.append(theta.copy())
        return -500.0 * float(np.sum((theta - 3.0) ** 2)), -1000.0 * (theta - 3.0)

    found = maximise(steep, [np.zeros(2)], limits, Report())
    assert np.linalg.norm(seen[1]) <= 1 + 1e-12
    np.testing.assert_allclose(found.theta, 3.0, atol=1e-6)
