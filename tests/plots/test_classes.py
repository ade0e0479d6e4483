"""Pictures of classes show the model's probabilities, draw no points where there are none, and refuse what
cannot be drawn."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import gramian as gm
from gramian.errors import ParameterError
from gramian.inference.mcmc.mixture import Mixture
from gramian.likelihoods import Heteroscedastic, Ordinal, Poisson, StudentT
from gramian.plots import plot_classes, plot_predictions
from gramian.report.facts import NoData

K = 4.0 * gm.RBF(0.7)
RNG = np.random.default_rng(0)
X1 = np.linspace(0, 2, 18)[:, None]
TWO = np.where(np.sin(3 * X1[:, 0]) > 0, "up", "down")
THREE = np.digitize(X1[:, 0], [0.7, 1.3])
FRAME = pd.DataFrame(
    {"age": RNG.normal(50, 9, 24), "bmi": RNG.normal(25, 3, 24), "site": ["n", "s", "w"] * 8}
)
ILL = (FRAME["age"] + 5 * (FRAME["site"] == "s") + RNG.normal(0, 4, 24)) > 51


def classifier(X, y, **settings) -> gm.GPClassifier:
    return gm.GPClassifier(settings.pop("kernel", K), optimize=False, **settings).fit(X, y)


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.fixture(scope="module")
def mixed() -> gm.GPClassifier:
    kernel = 4.0 * gm.RBF([9.0, 9.0]).on("age", "bmi") * gm.Categorical(0.5).on("site")
    return classifier(FRAME, ILL, kernel=kernel)


def test_two_classes_along_a_column():
    gp = classifier(X1, TWO)
    figure = gp.plot(n_points=30)
    above, below = figure.axes
    x = below.lines[1].get_xdata()
    assert x[0] < 0 < 2 < x[-1]
    np.testing.assert_allclose(above.lines[1].get_ydata(), gp.predict_latent(x[:, None])[0])
    np.testing.assert_allclose(below.lines[1].get_ydata(), gp.predict_proba(x[:, None])[:, 1])
    mean, var = gp.predict_latent(x[:, None])
    edges = above.collections[0].get_paths()[0].vertices[:, 1]
    assert edges.max() == pytest.approx(np.max(mean + 1.96 * np.sqrt(var)), rel=1e-3)
    down, up = (c.get_offsets() for c in below.collections[-2:])
    np.testing.assert_allclose(down, np.column_stack([X1[TWO == "down"], np.zeros(np.sum(TWO == "down"))]))
    np.testing.assert_allclose(up[:, 1], 1)
    assert (below.get_ylabel(), below.get_xlabel()) == ("probability of up", "x0")
    assert texts(figure) == ["down", "up", "95 % band"]


@pytest.mark.parametrize("how", ["softmax", "robustmax", "ovr", "ovo"])
def test_several_classes_along_a_column(how):
    codes, gp = THREE, classifier(X1, THREE, multiclass=how)
    figure = plot_classes(gp, n_points=12)
    above, below = figure.axes
    x = below.lines[0].get_xdata()
    P = gp.predict_proba(x[:, None])
    for k in range(3):
        np.testing.assert_allclose(below.lines[k].get_ydata(), P[:, k], atol=1e-12)
        # the rows of each class, also from binary models
        np.testing.assert_allclose(below.collections[k].get_offsets()[:, 0], X1[codes == k, 0])
    assert len({line.get_color() for line in below.lines}) == 3
    assert "latent function\nof each" in above.get_ylabel()
    assert texts(figure)[:3] == ["0", "1", "2"]


def test_draws_of_chains_have_pictures_too():
    gp = classifier(X1, TWO)
    drawn = Mixture(gp.fitted_.model, gp.fitted_.rows, {}, RNG.normal(size=(3, 18, 1)))
    gp.fitted_ = dataclasses.replace(gp.fitted_, process=drawn)
    below = gp.plot(n_points=5).axes[1]
    np.testing.assert_allclose(
        below.lines[1].get_ydata(), gp.predict_proba(below.lines[1].get_xdata()[:, None])[:, 1]
    )


def test_a_map_of_two_classes():
    X = RNG.uniform(0, 1, (25, 2))
    gp = classifier(X, X[:, 0] > 0.5, kernel=50.0 * gm.RBF(0.5))
    figure = plot_classes(gp, n_points=15)
    axis, bar = figure.axes
    assert axis.images[0].get_array().shape == (15, 15, 3)
    assert bar.get_ylabel() == "probability of True"
    boundary = next(c for c in axis.collections if c.get_linewidths()[0] == 1.5 and len(c.get_paths()))
    on_it = np.vstack([path.vertices for path in boundary.get_paths()])
    # straight pieces between 15 points a side
    assert np.max(np.abs(gp.predict_proba(on_it)[:, 1] - 0.5)) < 0.06
    assert texts(figure) == ["False", "True", "p(True) = 0.5", "p = 0.1 and 0.9"]
    false, true = [c for c in axis.collections if len(c.get_offsets()) > 1]
    np.testing.assert_allclose(false.get_offsets(), X[X[:, 0] <= 0.5])
    assert false.get_paths()[0].vertices.shape != true.get_paths()[0].vertices.shape  # other markers


def test_a_map_of_three_classes_is_deepest_where_it_is_sure():
    X = RNG.uniform(0, 1, (30, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [0.33, 0.66])]
    gp = classifier(X, y, kernel=50.0 * gm.RBF(0.5))
    figure = plot_classes(gp, n_points=8)
    axis, bar = figure.axes
    image = axis.images[0].get_array()
    u, v = (np.linspace(*limits, 8) for limits in (axis.get_xlim(), axis.get_ylim()))
    P = gp.predict_proba(np.column_stack([np.tile(u, 8), np.repeat(v, 8)])).reshape(8, 8, 3)
    depth = np.max(1 - image, axis=2)
    for k in range(3):
        mine = np.argmax(P, axis=2) == k
        hue = (1 - image[mine]) / np.max(1 - image[mine], axis=1, keepdims=True)
        np.testing.assert_allclose(hue, np.broadcast_to(hue[0], hue.shape), atol=1e-9)  # one colour a class
        assert np.all(np.diff(depth[mine][np.argsort(np.max(P, axis=2)[mine])]) >= -1e-12)
    assert bar.get_ylabel() == "probability of the most\nprobable class"
    assert "boundary between classes" in texts(figure)


def test_many_columns_are_slices_and_two_can_be_chosen(mixed):
    figure = mixed.plot(n_points=7)
    assert [axis.get_xlabel() for axis in figure.axes] == ["age", "bmi", "site"]
    x = figure.axes[0].lines[1].get_xdata()
    rows = pd.DataFrame({"age": x, "bmi": FRAME["bmi"].median(), "site": "n"})
    np.testing.assert_allclose(
        figure.axes[0].lines[1].get_ydata(), mixed.predict_proba(rows)[:, 1], rtol=1e-10
    )
    assert [text.get_text() for text in figure.axes[2].get_xticklabels()] == ["n", "s", "w"]
    axis = mixed.plot(columns=["age", 2], n_points=6).axes[0]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("age     (other columns at their medians)", "site")
    assert [text.get_text() for text in axis.get_yticklabels()] == ["n", "s", "w"]
    assert len(mixed.plot(columns="site").axes) == 2


def test_axes_of_ones_own_and_ranges(mixed):
    gp = classifier(X1, TWO)
    axis = Figure().subplots()
    assert plot_classes(gp, [[5.0], [6.0]], ax=axis, n_points=5) is axis.figure
    assert axis.get_xlim() == pytest.approx((4.96, 6.04))
    assert axis.get_ylabel() == "probability of up"
    with pytest.raises(ParameterError, match="ax has 1 axes, but the model has 3 columns"):
        plot_classes(mixed, ax=axis)


def test_without_data_there_are_no_points():
    gp = classifier(X1, TWO)
    gp.fitted_ = dataclasses.replace(gp.fitted_, rows=NoData(np.ones(1)))  # as from a file
    with pytest.raises(ParameterError, match="holds no data"):
        gp.plot()
    below = gp.plot(X1, n_points=5).axes[1]
    assert not any(len(c.get_offsets()) for c in below.collections[1:])
    assert len(plot_classes(classifier(X1, TWO), data=False, n_points=5).legends[0].get_texts()) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"columns": "height"}, "columns has 'height', which the model does not have. It has age, bmi, site"),
        ({"columns": [0, 1, 2]}, "must be one column, or two different ones"),
        ({"columns": [1, "bmi"]}, "must be one column, or two different ones"),
        ({"n_points": 1}, "n_points=1 must be a whole number from 2 on"),
    ],
)
def test_what_cannot_be_drawn_is_refused(mixed, settings, message):
    with pytest.raises(ParameterError, match=message):
        plot_classes(mixed, **settings)


def test_a_regressor_is_sent_elsewhere():
    with pytest.raises(ParameterError, match="plot_predictions"):
        plot_classes(gm.GPRegressor())


# Regressions with other likelihoods. ------------------------------------------------------------------------


def edges(axis) -> tuple[np.ndarray, np.ndarray]:
    x = axis.lines[0].get_xdata()
    vertices = next(c for c in axis.collections if "band" in c.get_label()).get_paths()[0].vertices
    pairs = [np.sort(vertices[vertices[:, 0] == at][:, 1]) for at in x]
    return np.array([pair[0] for pair in pairs]), np.array([pair[-1] for pair in pairs])


def test_counts_have_a_band_of_quantiles():
    y = np.random.default_rng(1).poisson(3 + 2 * np.sin(3 * X1[:, 0]))
    exposure = np.full(18, 2.0)
    gp = gm.GPRegressor(0.3 * gm.RBF(0.5), likelihood=Poisson(), optimize=False).fit(X1, y, exposure=exposure)
    axis = gp.plot(n_points=6).axes[0]
    x = axis.lines[0].get_xdata()[:, None]
    np.testing.assert_allclose(axis.lines[0].get_ydata(), gp.predict(x))
    low, high = edges(axis)
    draws = gp.sample(x, 20_000, target="y", random_state=0)
    # At least 2.5 % at or below the edge, and less below it; 20,000 draws know a share of 2.5 % within 0.005
    # (4.5 standard errors).
    assert np.all(np.mean(draws <= low[:, None], axis=1) > 0.02)
    assert np.all(np.mean(draws < low[:, None], axis=1) < 0.03)
    assert np.all(np.mean(draws > high[:, None], axis=1) < 0.03)
    assert np.all(np.mean(draws >= high[:, None], axis=1) > 0.02)
    np.testing.assert_allclose(axis.collections[0].get_offsets()[:, 1], y / 2)  # per unit of exposure
    rate = gp.plot(target="f", n_points=6).axes[0]
    mean, std = gp.predict(x, return_std=True, target="f")
    np.testing.assert_allclose(edges(rate)[1], np.exp(mean + 1.959963984540054 * std), rtol=1e-9)
    raw = gp.plot(target="f", transform=lambda f: f, n_points=6).axes[0]
    np.testing.assert_allclose(raw.lines[0].get_ydata(), mean, rtol=1e-9)


def test_other_likelihoods_are_drawn():
    y = np.sin(3 * X1[:, 0])
    gp = gm.GPRegressor(K, likelihood=StudentT(0.1, 2.0), optimize=False).fit(X1, y)
    # the variance is infinite, the quantiles are not
    low, high = edges(plot_predictions(gp, n_points=5).axes[0])
    assert np.all(np.isfinite(high - low))
    two = gm.GPRegressor(K, likelihood=Heteroscedastic(), inference="vi", optimize=False).fit(X1, y)
    axis = two.plot(target="f", output=1, n_points=5).axes[0]
    assert axis.get_ylabel() == "latent function 1"
    np.testing.assert_allclose(
        axis.lines[0].get_ydata(), two.predict(axis.lines[0].get_xdata()[:, None], target="f")[:, 1]
    )
    assert not any(c.get_label() == "data" for c in axis.collections)
    with pytest.raises(ParameterError, match="output=1 does not exist: the model has 1"):
        two.plot(output=1)
    classes = gm.GPRegressor(K, likelihood=Ordinal(3), optimize=False).fit(X1, THREE.astype(float))
    low, high = edges(classes.plot(n_points=5).axes[0])
    assert set(low) | set(high) <= {0, 1, 2}


def test_a_model_from_a_file_without_data_is_drawn_over_given_rows():
    gp = gm.GPRegressor(K, noise=0.1, optimize=False).fit(X1, np.sin(X1[:, 0]))
    gp.fitted_ = dataclasses.replace(gp.fitted_, rows=NoData(gp.fitted_.rows.scale))
    assert [c.get_label() for c in gp.plot(X1, n_points=5).axes[0].collections] == [
        "95 % band of a new observation y"
    ]


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_before_a_fit_the_prior_of_a_probability_is_drawn(link):
    """Its median is a half, and draws stay between 0 and 1; the default kernel is that of a fit."""
    for gp in (gm.GPClassifier(link=link), gm.GPClassifier(25.0 * gm.RBF(0.5), link=link)):
        figure = gp.plot(np.linspace(0, 2, 20)[:, None])
        (axis,) = figure.axes
        lines = [np.asarray(line.get_ydata(), dtype=float) for line in axis.get_lines()]
        assert any(np.allclose(values, 0.5) for values in lines)
        assert all(np.all((values >= 0) & (values <= 1)) for values in lines)
        assert any(np.ptp(values) > 0.1 for values in lines)
        assert axis.get_ylabel() == "probability of a class"
