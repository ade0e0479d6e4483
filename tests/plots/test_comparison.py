"""The picture of a comparison shows medians and quantiles of its runs, against size and time."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import gramian as gm
from gramian.errors import ParameterError
from gramian.experiments.compare import Comparison
from gramian.experiments.run import RunRecord
from gramian.plots.comparison import plot_comparison


def comparison(methods=("nystrom:uniform", "fourier:rff", "exact")) -> Comparison:
    rng = np.random.default_rng(0)
    runs = []
    for repeat in range(5):
        for method in methods:
            for size in (0,) if method == "exact" else (50, 200):
                time = {
                    "construction_seconds": 0.1 * (size + 1),
                    "total_seconds": 0.2 * (size + 1) + 0.01 * repeat,
                }
                errors = (
                    {}
                    if method == "exact"
                    else {"frobenius": float(rng.uniform(0.1, 0.2)), "probabilities_seconds": 1.0}
                )
                runs.append(
                    RunRecord(repeat, method, size, 80, 20, rmse=float(rng.uniform(1, 2)), **time, **errors)
                )
    return Comparison(tuple(runs), gm.RBF(1.0), 0.1, {})


def test_points_are_medians_against_size_and_time():
    drawn = comparison()
    figure = plot_comparison(drawn)
    assert isinstance(figure, Figure)
    by_size, by_time, rmse_by_size, rmse_by_time = figure.axes
    mine = [
        [run for run in drawn.runs if run.method == "nystrom:uniform" and run.size == size]
        for size in (50, 200)
    ]
    medians = [np.median([run.frobenius for run in runs]) for runs in mine]
    np.testing.assert_allclose(by_size.lines[0].get_ydata(), medians)
    # moved a little, so that bars do not hide each other
    np.testing.assert_allclose(by_size.lines[0].get_xdata(), [50, 200], rtol=0.06)
    # probabilities and construction
    np.testing.assert_allclose(by_time.lines[0].get_xdata(), [1 + 5.1, 1 + 20.1])
    np.testing.assert_allclose(
        rmse_by_time.lines[0].get_xdata(), [np.median([run.total_seconds for run in runs]) for runs in mine]
    )
    low, high = by_size.collections[0].get_segments()[0][:, 1]
    np.testing.assert_allclose([low, high], np.quantile([run.frobenius for run in mine[0]], (0.1, 0.9)))
    level = np.median([run.rmse for run in drawn.runs if run.method == "exact"])
    assert [
        line for line in rmse_by_size.lines if line.get_linestyle() == "--" and line.get_ydata()[0] == level
    ]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "nystrom:uniform",
        "fourier:rff",
        "exact",
    ]
    assert (by_size.get_xscale(), by_time.get_xscale()) == ("log", "log")
    assert by_size.get_yscale() == "linear"  # between 0.1 and 0.2: a logarithmic axis would have one tick


def test_measures_can_be_chosen_and_unknown_or_empty_ones_are_refused():
    figure = plot_comparison(comparison(), ["rmse"])
    assert [axis.get_ylabel() for axis in figure.axes] == ["test error (RMSE)", ""]
    with pytest.raises(ParameterError, match="'speed', which is not known"):
        plot_comparison(comparison(), ["speed"])
    with pytest.raises(ParameterError, match="'nlpd', but no run"):
        plot_comparison(comparison(), ["nlpd"])
    nothing = Comparison((RunRecord(0, "exact", 0, 8, 2, note="failed"),), gm.RBF(1.0), 0.1, {})
    with pytest.raises(ParameterError, match="No run has an error"):
        nothing.plot()
