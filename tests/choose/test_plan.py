"""The plan: what each method takes, and what `auto` takes with its reason."""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm
from gramian.choose.plan import Rates, calibrate, show_seconds
from gramian.errors import MemoryLimitError, ParameterError
from gramian.experiments.measures import peak_memory
from gramian.inference import closed
from gramian.inference.base import OWN_NOISES
from gramian.linalg import memory


def test_a_table_with_every_engine():
    plan = gm.plan((2000, 4))
    assert {option.method.name for option in plan.options} == {
        "exact",
        "cg",
        "vfe",
        "fitc",
        "nystrom",
        "fourier",
        "neighbours",
    }
    assert plan.choice.method.name == "exact"
    text = str(plan)
    assert "2,000 rows, 4 columns" in text
    assert 'method="auto" takes exact' in text
    assert all(option.label in text for option in plan.options)


def test_shape_or_table():
    X = np.zeros((300, 2))
    assert gm.plan(X).rows == gm.plan((300, 2)).rows == 300
    for wrong in ((3,), (0, 2), np.zeros(3)):
        with pytest.raises(ParameterError, match="table or its shape"):
            gm.plan(wrong)


def test_kernels_without_a_spectrum_have_no_fourier_row():
    names = [option.method.name for option in gm.plan((1000, 2), gm.Linear()).options]
    assert "fourier" not in names


def test_memory_decides():
    small, large = gm.plan((10_000, 3), memory_limit="200MB"), gm.plan((10_000, 3), memory_limit="2GB")
    assert small.choice.method.name == "vfe"
    assert large.choice.method.name == "exact"
    exact = small.options[0]
    assert not exact.fits
    assert exact.why_not == "needs more memory"
    assert exact.bytes == pytest.approx(8 * 10_000**2, rel=0.1)
    assert all(option.bytes <= small.memory_limit for option in small.options if option.fits)


def test_time_decides():
    slow = gm.plan((30_000, 3), memory_limit="20GB", time_limit=5.0)
    assert slow.choice.method.name == "vfe"
    assert "takes too long" in slow.reason


def test_nothing_within_the_memory_limit():
    """The plan says what fit says: refused."""
    plan, X = gm.plan((400, 2), memory_limit="50kB"), np.zeros((400, 2))
    assert not any(option.fits for option in plan.options)
    smallest = min(plan.options, key=lambda option: option.bytes)
    need = f"{smallest.label} ({memory.show_bytes(smallest.bytes)} of 50 kB)"
    assert f"Nothing fits within the memory limit: the smallest need is that of {need}." in str(plan)
    assert "fit refuses to start. Raise memory_limit, or fit fewer rows." in str(plan)
    with pytest.raises(
        MemoryLimitError, match=f"{plan.choice.method.name}.*needs {memory.show_bytes(plan.choice.bytes)}"
    ):
        gm.GPRegressor(memory_limit="50kB").fit(X, X[:, 0])
    assert "fit refuses to start" in str(gm.GPClassifier(memory_limit="50kB").plan(X))


def test_nothing_within_the_time_limit(rng):
    """The plan says what fit does: a search of few evaluations, whose result comes late."""
    X = rng.standard_normal((60, 2))
    gp = gm.GPRegressor(time_limit=1e-6)
    plan = gp.plan(X)
    assert not any(option.fits for option in plan.options)
    assert "Nothing fits within the limits: the fastest is " in str(plan)
    assert " s of 1e-06 s).\n" in str(plan)
    assert 'method="auto" takes exact all the same: fit cuts its search for parameters short and ' in str(
        plan
    )
    assert "after the time limit. Raise time_limit, or fit fewer rows." in str(plan)
    gp.fit(X, X[:, 0])
    assert (gp.outcome_.method, gp.outcome_.reason, gp.outcome_.stopped) == (
        plan.choice.method.name,
        plan.reason,
        "time limit",
    )
    assert "search" not in str(gm.plan((60, 2), time_limit=1e-9, optimize=False))
    assert 'method="auto" takes vfe, 64 points all the same' in str(
        gm.plan((100_000, 2), memory_limit="1GB", time_limit=1e-6)
    )


def test_what_auto_takes_does_not_fit_but_another_does():
    small = {option.method.name: option.bytes for option in gm.plan((100_000, 2), memory_limit="1kB").options}
    assert small["fourier"] < small["vfe"]
    text = str(gm.plan((100_000, 2), memory_limit=small["fourier"]))
    assert "Within the memory limit: fourier, 64 features.\n" in text
    assert "vfe, 64 points, which needs" in text
    assert "Raise memory_limit, name such a method, or fit fewer rows." in text


@pytest.mark.parametrize("limit", [-1.0, 0, np.nan, "1 s"])
def test_a_time_limit_that_is_none_is_refused_as_fit_does(limit):
    X = np.zeros((5, 3))
    for ask in (lambda: gm.plan(X, None, None, limit), lambda: gm.GPRegressor(time_limit=limit).plan(X)):
        with pytest.raises(
            ParameterError, match=f"time_limit={limit!r} must be a positive number of seconds"
        ):
            ask()


def test_a_kernel_that_is_none_is_refused():
    with pytest.raises(ParameterError, match="kernel must be a gramian kernel or None, not 'rbf'"):
        gm.plan((5, 3), "rbf")
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    assert "fourier" in str(gm.plan((5, 3), gm.from_sklearn(RBF(0.5) + WhiteKernel(0.1))))


def test_costs_grow_as_they_should():
    a, b = (gm.plan((n, 3), memory_limit="1TB").options[0] for n in (5_000, 10_000))
    assert b.bytes / a.bytes == pytest.approx(4, rel=0.2)  # and some tiles
    assert 4 < b.final_seconds / a.final_seconds < 9


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("n", [100, 3000, 20_000, 10_000_000])
def test_a_fit_is_not_shorter_than_one_of_its_evaluations(n, optimize):
    for made in (
        gm.plan((n, 3), optimize=optimize),
        gm.GPClassifier(optimize=optimize).plan(np.zeros((n, 1))),
    ):
        for option in made.options:
            assert option.fit_seconds >= option.evaluation_seconds
            assert option.fit_seconds >= option.final_seconds


def test_calibration_is_made_once():
    assert calibrate(3) is calibrate(3)
    rates = calibrate(3)
    assert rates.flops > 1e8
    assert rates.values > 1e5
    assert Rates(2.0, 4.0).seconds(
        gm.Exact().work(10, 1, 1)._replace(flops=4.0, values=4.0, slopes=0.0)
    ) == pytest.approx(3.0)


def test_people_read_seconds():
    assert [show_seconds(s) for s in (0.001, 0.25, 90, 7200)] == ["< 0.01 s", "0.25 s", "1.5 min", "2 h"]
    assert [show_seconds(s) for s in (100_000, 5 * 86400, 1e9, np.inf)] == [
        "28 h",
        "5 days",
        "years",
        "years",
    ]
    huge = str(gm.plan((10**8, 3)))
    assert "years" in huge
    assert "more than a petabyte" in huge
    assert memory.allowed("1GB") == 10**9


def test_each_output_has_a_factor_of_its_own():
    """Each has its noise, up to the number from which on they share one."""
    n, q = 4000, 3
    one, few, many = (gm.plan((n, 4), memory_limit="8GB", outputs=k) for k in (1, q, OWN_NOISES + 1))
    prices = {plan: {option.method.name: option for option in plan.options} for plan in (one, few, many)}
    for name, option in prices[few].items():
        alone = prices[one][name]
        assert option.final_seconds == pytest.approx(q * alone.final_seconds)
        assert option.method.work(n, 4, q).flops == pytest.approx(q * alone.method.work(n, 4, 1).flops)
        assert option.bytes > alone.bytes
    assert prices[few]["exact"].bytes - prices[one]["exact"].bytes >= (q - 1) * 8 * n**2
    # one factor with as many right-hand sides
    assert prices[many]["exact"].bytes < 1.1 * prices[one]["exact"].bytes
    assert prices[many]["exact"].final_seconds == pytest.approx(prices[one]["exact"].final_seconds)


@pytest.mark.parametrize("method", [gm.Exact(), gm.Sparse(300)], ids=["exact", "vfe"])
def test_memory_of_several_noises_is_planned(method, rng):
    """What 5 noises take beyond 1 is as planned or less; what a process holds besides is the same for both.
    4 MB for the allocator: a quarter of one factor."""
    X, Y = rng.normal(size=(1500, 2)), rng.normal(size=(1500, 5))
    peaks = []
    for noise in ([0.1] * 5, [0.1] * 5, [0.1, 0.2, 0.3, 0.4, 0.5]):  # the first for what is made once
        held = {"optimize": False, "normalize_y": False, "mean": "zero"}
        gp = gm.GPRegressor(1.0 * gm.RBF(1.0), method=method, noise=gm.fixed(noise), **held)
        with peak_memory() as peak:
            gp.fit(X, Y)
        peaks.append(peak.bytes)
        del gp
    planned = [closed(method).bytes_needed(1500, 2, q) for q in (1, 5)]
    assert peaks[2] - peaks[1] <= planned[1] - planned[0] + 4 * 2**20
