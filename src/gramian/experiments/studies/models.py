"""Models for what one process on a table cannot do: layers, latent places, images, and seasons of a field.

deep                a step by one, two and three layers; data of three layers, by the library's search in
                    stages and by one from plain starts
latent              oil flow: nearest neighbours of another kind in the two main dimensions, missing cells
images-by-labels    ultrasound images by the number of labels: kernels, logistic regression, an SVM
seasons-of-crops    when a field turned green, was greenest, and was harvested, by draws
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from gramian.arrays import Array
from gramian.deep.bound import programs
from gramian.deep.layers import Layer
from gramian.deep.scheme import Deep
from gramian.estimators import DeepGPRegressor, GPClassifier
from gramian.estimators.forecaster import GPForecaster
from gramian.estimators.gplatent import GPLatent
from gramian.experiments.studies.base import (
    Cell,
    Experiment,
    Illustration,
    Results,
    Row,
    Shown,
    SmallTable,
    rng_of,
)
from gramian.experiments.studies.drawing import COLOURS, MARKERS, legend_beside, lines, mean_and_band, panels
from gramian.experiments.studies.sets import DataFolder
from gramian.experiments.studies.teaching import curve, read
from gramian.fitting.layers import Run
from gramian.fitting.progress import Report
from gramian.inference import Data, Model
from gramian.inference.svgp.bound import VariationalWeights
from gramian.kernels import RBF, ConvNet
from gramian.likelihoods import Gaussian
from gramian.means import ConstantMean
from gramian.params import fixed
from gramian.plots.common import BLUE, INK, ORANGE
from gramian.report.evaluation import of_classes

# Layers. ----------------------------------------------------------------------------------------------------

STEP, THREE, MANY = "a step", "three layers", "three layers, 1,000 rows"
LENGTHS = (0.2, 0.2, 0.5)  # of the layers that made the data


def _deep_grid(quick: bool) -> list[Cell]:
    size = {"rows": 50, "points": 20, "steps": 300} if quick else {"rows": 50, "points": 50, "steps": 1500}
    more = {**size, "rows": 80} if quick else {**size, "rows": 200, "points": 100}
    depths = (1, 2) if quick else (1, 2, 3)
    cells = [{"data": STEP, "search": "staged", "layers": depth, **size} for depth in depths]
    for kind, own in [(THREE, more)] if quick else [(THREE, more), (MANY, {**more, "rows": 1000})]:
        cells += [{"data": kind, "search": "staged", "layers": depth, **own} for depth in depths]
        cells += [{"data": kind, "search": "naive", "layers": depth, **own} for depth in depths[1:]]
    return cells


def deep_data(kind: str, n: int) -> tuple[Array, Array]:
    """A step with noise of 0.01; or a function of a function of a function, with noise of a twentieth."""
    rng = np.random.default_rng(1)
    if kind == STEP:
        X = np.linspace(0, 1, n)[:, None]
        return X, (X[:, 0] > 0.5) + 0.01 * rng.standard_normal(n)
    X = np.sort(rng.uniform(0, 1, n))[:, None]
    h = X[:, 0]
    for length in LENGTHS:
        K = np.exp(-0.5 * ((h[:, None] - h[None, :]) / length) ** 2) + 1e-8 * np.eye(n)
        h = np.linalg.cholesky(K) @ rng.standard_normal(n)
    return X, h + 0.05 * np.std(h) * rng.standard_normal(n)


def naive_bound(X: Array, y: Array, depth: int, points: int, steps: int) -> float:
    """The bound after a search from plain starts: inner functions of variance one and of q as the prior has
    it, no shallow model before, nothing held."""
    kernel, s = 1.0 * RBF(np.std(X, axis=0) * np.sqrt(X.shape[1])), float(np.std(y))
    layers = (*(Layer(kernel) for _ in range(depth - 1)), Layer())
    method = Deep(layers, n_inducing=points, steps=steps)
    start = Model(kernel, ConstantMean(float(np.mean(y))), Gaussian(0.01 * s**2))
    data, rng = Data(X, y[:, None], np.array([s])), np.random.default_rng(0)
    model = method.deeper(start, start, data)
    prepared = method.prepared(model, data, rng)
    plain = dataclasses.replace(prepared, T=tuple(np.zeros_like(T) for T in prepared.T))
    q = (VariationalWeights.prior(len(plain.Z[-1])),)
    run = Run(method, model, data, np.arange(len(X)), plain, q, rng)
    with programs():
        run.climb(0, steps, steps, Report(), [], None)
        model, found = run.result()
        return float(found.bound(model, data).value)


def _deep(cell: Cell, data: DataFolder) -> list[Row]:
    X, y = deep_data(cell["data"], cell["rows"])
    began = time.perf_counter()
    if cell["search"] == "naive":
        bound = naive_bound(X, y, cell["layers"], cell["points"], cell["steps"])
        return [{"bound": bound, "kept": cell["layers"], "seconds": time.perf_counter() - began}]
    # of the kernel that made the data, where there are rows enough for another to be chosen
    gp = DeepGPRegressor(
        cell["layers"], "rbf", n_inducing=cell["points"], steps=cell["steps"], random_state=0
    ).fit(X, y)  # fmt: skip
    seconds, x = time.perf_counter() - began, np.linspace(-0.1, 1.1, 121)
    mean, std = gp.predict(x[:, None], return_std=True)
    rows: list[Row] = [{"bound": gp.evidence_.value, "kept": gp.n_layers_, "seconds": seconds}]
    return rows + curve("mean", x, mean) + curve("std", x, std) + curve("observation", X[:, 0], y)


def _deep_shown(results: Results) -> Shown:
    shown, depths = Shown(), sorted(results.each("layers"))
    kinds = results.each("data")
    figure, axes = panels(len(kinds), len(depths), 3.7 * len(depths), 2.9, sharex=True, sharey="row")
    bounds = Results([row for row in results.rows if row.get("bound") is not None])
    for line, kind in zip(axes, kinds, strict=True):
        for axis, depth in zip(line, depths, strict=True):
            mine = results.where(data=kind, search="staged", layers=depth)
            x, mean = read(mine, "mean")
            if not x.size:
                continue
            mean_and_band(axis, x, mean, read(mine, "std")[1])
            axis.plot(*read(mine, "observation"), ".", color=INK, markersize=3.5)
            bound = bounds.where(data=kind, search="staged", layers=depth).mean("bound")
            axis.set_title(f"{kind}, {depth} layer{'s' * (depth > 1)}: bound {bound:.0f}", fontsize=10)
        line[0].set_ylabel("y")
    for axis in axes[-1]:
        axis.set_xlabel("x")
    caption = "Mean and 95 % band of an observation; the bound is on the log evidence of y in its own spread."
    shown.pictures.append(Illustration("deep", caption, figure))
    body = [
        [
            row["data"],
            row["search"],
            str(row["layers"]),
            str(row["kept"]),
            f"{row['bound']:.1f}",
            f"{row['seconds']:.0f}",
        ]
        for row in bounds.rows
    ]
    head = ["data", "search", "layers", "kept", "bound", "seconds"]
    shown.tables.append(SmallTable("Bounds on the log evidence; kept: layers of the answer.", head, body))
    for kind in kinds:
        mine = bounds.where(data=kind, search="staged")
        if not mine.rows:
            continue  # a run that was stopped
        told = ", ".join(
            f"{mine.where(layers=d).mean('bound'):.1f} with {d}" for d in sorted(mine.each("layers"))
        )
        shown.words.append(f"{kind}: the bound is {told} layers.")
        for row in bounds.where(data=kind, search="naive").rows:
            staged = mine.where(layers=row["layers"]).mean("bound")
            shown.words.append(
                f"{kind}, {row['layers']} layers: a search from plain starts ends at {row['bound']:.1f}, the"
                f" one in stages at {staged:.1f}, after as many steps."
            )
    return shown


DEEP = Experiment(
    "deep",
    "What do layers add on a jump and on data of several layers, and does the search in stages matter?",
    "A step with noise 0.01, and a draw of a process of three layers with lengthscales 0.2, 0.2 and 0.5."
    " Staged: DeepGPRegressor, which fits one layer first and falls back on it where depth does not help."
    " Naive: the same model and bound, searched from inner functions of variance one, with nothing held.",
    _deep_grid,
    _deep,
    ("bound", "kept", "seconds", "quantity", "x", "value"),
    _deep_shown,
)

# Latent places. ---------------------------------------------------------------------------------------------

OIL = "oil_flow"


def _latent_grid(quick: bool) -> list[Cell]:
    size = (
        {"rows": 150, "points": 15, "iterations": 60}
        if quick
        else {"rows": 1000, "points": 40, "iterations": 500}
    )
    models = [("PCA", 2), ("GPLatent", 3 if quick else 10)]
    return [{"set": OIL, "model": model, "dimensions": q, **size} for model, q in models]


def neighbour_errors(places: Array, labels: Array) -> int:
    """Rows whose nearest neighbour is of another kind."""
    gaps = np.sum((places[:, None] - places[None]) ** 2, axis=-1)
    np.fill_diagonal(gaps, np.inf)
    return int(np.sum(labels[np.argmin(gaps, axis=1)] != labels))


def _latent(cell: Cell, data: DataFolder) -> list[Row]:
    held = data.load(OIL)
    Y, labels, new = held["X_train"][: cell["rows"]], held["y_train"][: cell["rows"]], held["X_test"][:100]
    spread = np.std(Y, axis=0)
    absent = np.argsort(rng_of({"set": OIL}).random(new.shape), axis=1) < new.shape[1] // 2
    began = time.perf_counter()
    if cell["model"] == "PCA":
        pca = PCA(2).fit((Y - np.mean(Y, axis=0)) / spread)
        places, used = pca.transform((Y - np.mean(Y, axis=0)) / spread), 2
        seconds = time.perf_counter() - began
        filled = np.where(absent, np.mean(Y, axis=0), new)  # no model of gaps: means of columns
    else:
        gp = GPLatent(
            cell["dimensions"], n_inducing=cell["points"], max_iter=cell["iterations"], random_state=0
        ).fit(Y)  # fmt: skip
        places, used, seconds = gp.embedding_[:, :2], gp.n_active_, time.perf_counter() - began
        filled = gp.impute(np.where(absent, np.nan, new))
    away = ((filled - new) / spread)[absent]
    row: Row = {"errors": neighbour_errors(places, labels), "used": used, "seconds": seconds}
    rows = [{**row, "gap_rmse": float(np.sqrt(np.mean(away**2)))}]
    return rows + [
        {"quantity": f"kind {kind}", "x": float(x), "z": float(z)}
        for (x, z), kind in zip(places, labels, strict=True)
    ]


def _latent_shown(results: Results) -> Shown:
    shown, models = Shown(), results.each("model")
    figure, axes = panels(1, len(models), 10.0, 4.2)
    scores = Results([row for row in results.rows if row.get("errors") is not None])
    body = []
    for axis, model in zip(axes[0], models, strict=True):
        mine = results.where(model=model)
        for k, kind in enumerate(sorted(mine.each("quantity"))):
            dots = mine.where(quantity=kind)
            axis.plot(
                dots.column("x"), dots.column("z"), MARKERS[k], color=COLOURS[k], markersize=4,
                markerfacecolor="none", label=kind,
            )  # fmt: skip
        row = scores.where(model=model).rows[0]
        n = row["rows"]
        axis.set(
            title=f"{model}: {row['errors']:.0f} of {n} neighbours of another kind", xlabel="first dimension"
        )
        body.append(
            [model, str(row["errors"]), str(row["used"]), f"{row['gap_rmse']:.3f}", f"{row['seconds']:.0f}"]
        )
        gaps = "filled with columns' means" if model == "PCA" else "filled by the model"
        shown.words.append(
            f"{model}: {row['errors']} of {n} rows have a nearest neighbour of another kind in two"
            f" dimensions; missing cells, {gaps}, are off by {row['gap_rmse']:.2f} standard deviations."
            + (f" {row['used']} of {row['dimensions']} dimensions are in use." if model != "PCA" else "")
        )
    axes[0, 0].set_ylabel("second dimension")
    legend_beside(figure)
    caption = "Places of the rows in the two main dimensions, by the kind of flow, which no model has seen."
    shown.pictures.append(Illustration("latent", caption, figure))
    head = ["model", "errors", "dimensions used", "missing cells: RMSE", "seconds"]
    shown.tables.append(
        SmallTable(
            "Nearest neighbours of another kind, and half of the cells of new rows missing.", head, body
        )
    )
    return shown


LATENT = Experiment(
    "latent",
    "Does a latent Gaussian process tell kinds of flow apart that principal components mix?",
    "Oil flow: twelve measures, three kinds. GPLatent with more dimensions than are needed, and principal"
    " components; errors are rows whose nearest neighbour in the two main dimensions is of another kind. Of"
    " 100 new rows half of the cells are taken away and filled in. Full: 1,000 rows, ten dimensions, 40"
    " inducing points; quick: 150 rows, three dimensions, 15 points, a short search.",
    _latent_grid,
    _latent,
    ("errors", "used", "gap_rmse", "seconds", "quantity", "x", "z"),
    _latent_shown,
)

# Images. ----------------------------------------------------------------------------------------------------

BREAST = "breastmnist"
SCALE = 20.0  # of a network's functions, before they are probabilities


def _network() -> Any:
    return SCALE * ConvNet(7, (28, 28), 1, filter=3, variance=fixed(2.0), bias=fixed(0.1))


LEARNERS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=2000)),
    "SVM": lambda: make_pipeline(StandardScaler(), SVC(probability=True, random_state=0)),
    "GP, RBF": lambda: GPClassifier(4.0 * RBF(8.0), n_restarts=0, random_state=0),
    # held: a search would make the Gram matrix some forty times
    "GP, ConvNet": lambda: GPClassifier(_network(), optimize=False),
}


def _images_grid(quick: bool) -> list[Cell]:
    sizes, repeats = ((40, 80), 2) if quick else ((50, 100, 200, 500), 5)
    return [
        {"set": BREAST, "model": model, "labels": n, "repeat": repeat}
        for repeat in range(repeats)
        for n in sizes
        for model in LEARNERS
    ]


def _images(cell: Cell, data: DataFolder) -> list[Row]:
    held = data.load(BREAST)
    X, y = held["X"].reshape(len(held["X"]), -1) / 255.0, held["y"].ravel().astype(int)
    test = np.flatnonzero(held["split"] == 2)
    train = rng_of(cell, "repeat", "labels").permutation(np.flatnonzero(held["split"] < 2))[: cell["labels"]]
    began = time.perf_counter()
    model = LEARNERS[cell["model"]]().fit(X[train], y[train])
    P = np.maximum(model.predict_proba(X[test]), 1e-9)
    seconds = time.perf_counter() - began
    scores = of_classes(P / np.sum(P, axis=1, keepdims=True), y[test]).columns[0]
    return [
        {
            "accuracy": float(np.mean(np.argmax(P, axis=1) == y[test])),
            "auc": float(roc_auc_score(y[test], P[:, 1])),
            "nlpd": scores["log_loss"],
            "ece": scores["ece"],
            "seconds": seconds,
        }
    ]


def _images_shown(results: Results) -> Shown:
    shown, order = Shown(), results.each("model")
    figure, axes = panels(1, 2, 11.0, 3.8)
    for axis, (name, label) in zip(axes[0], (("auc", "AUC"), ("nlpd", "NLPD")), strict=True):
        lines(axis, results, "model", "labels", name, order, "x")
        axis.set(xlabel="labelled images", ylabel=label)
    legend_beside(figure)
    caption = "Test scores on 156 images; bars: one standard deviation over draws of the labelled images."
    shown.pictures.append(Illustration("images", caption, figure))
    body = []
    for n in sorted(results.each("labels")):
        for model in order:
            mine = results.where(model=model, labels=n)
            names = ("accuracy", "auc", "nlpd", "ece")
            body.append(
                [model, str(n), *(f"{mine.mean(name):.3f}" for name in names), f"{mine.mean('seconds'):.1f}"]
            )
        by = {model: results.where(model=model, labels=n).mean("auc") for model in order}
        best = max(by, key=lambda model: by[model])
        sure, nlpd = results.where(labels=n).best("model", "nlpd")
        shown.words.append(
            f"{n} labels: the highest AUC has {best} ({by[best]:.3f}), the best probabilities {sure} (NLPD"
            f" {nlpd:.3f})."
        )
    head = ["model", "labels", "accuracy", "AUC", "NLPD", "ECE", "seconds"]
    shown.tables.append(SmallTable("Means over repetitions.", head, body))
    return shown


IMAGES_BY_LABELS = Experiment(
    "images-by-labels",
    "With few labelled images, which model tells benign from malignant, and how sure is it rightly?",
    "BreastMNIST: ultrasound images of 28 x 28 pixels, its own 156 test images; labelled images are drawn"
    " from the other 624. An infinitely wide convolutional network of seven layers (ConvNet, held), an RBF"
    " kernel (fitted), logistic regression and an SVM.",
    _images_grid,
    _images,
    ("accuracy", "auc", "nlpd", "ece", "seconds"),
    _images_shown,
)

# Seasons. ---------------------------------------------------------------------------------------------------

FIELD = "ndvi_field_dtwsat"
EVENTS = ("green-up", "peak", "harvest")
YEARS = (2009, 2010, 2011, 2012)


def _seasons_grid(quick: bool) -> list[Cell]:
    years, draws = (YEARS[:2], 100) if quick else (YEARS, 300)
    return [{"set": FIELD, "season": year, "draws": draws} for year in years]


@cache
def _field(folder: DataFolder) -> tuple[Any, Any, Any]:
    """Dates, the index, and a forecaster fitted to all of it."""
    held = folder.load(FIELD)
    index = [str(band).lower() for band in held["bands"]].index("ndvi")
    dates, ndvi = held["days"].astype("M8[D]"), held["Y"][:, index]
    return dates, ndvi, GPForecaster(random_state=0).fit(dates, ndvi)


def _seasons(cell: Cell, data: DataFolder) -> list[Row]:
    dates, ndvi, gp = _field(data)
    year = cell["season"]
    start, end = np.datetime64(f"{year}-09-01"), np.datetime64(f"{year + 1}-02-15")
    draws = gp.draws(cell["draws"], start, end)
    peak, top = draws.highest(start, end)
    _, low = draws.lowest(start, peak)
    half = (low + top) / 2
    when = (draws.crossing(half, start, peak), peak, draws.crossing(half, peak, end, rising=False))
    rows: list[Row] = []
    for event, days in zip(EVENTS, when, strict=True):
        seen = days[~np.isnat(days)].astype("M8[D]").astype(float)
        named = {}
        if seen.size:
            quantiles = np.quantile(seen, [0.05, 0.5, 0.95]).astype("M8[D]")
            named = dict(zip(("day05", "day50", "day95"), map(str, quantiles), strict=True))
        rows.append({"event": event, **named, "happened": seen.size / len(days)})
    at = np.arange(start, end, np.timedelta64(3, "D"))
    values = draws(at)
    for name, level in (("low", 0.025), ("middle", 0.5), ("high", 0.975)):
        rows += curve(name, at.astype("M8[D]").astype(float), np.quantile(values, level, axis=1))
    inside = (dates >= start) & (dates <= end)
    return rows + curve("observation", dates[inside].astype(float), ndvi[inside])


def _between(results: Results, event: str) -> Any:
    """The 5 % and the 95 % quantile of the day of an event."""
    row = results.where(event=event).rows[0]
    return np.array([row["day05"], row["day95"]], "M8[D]")


def _seasons_shown(results: Results) -> Shown:
    from matplotlib.dates import DateFormatter, MonthLocator

    shown, years = Shown(), results.each("season")
    across = min(2, len(years))
    figure, axes = panels(-(-len(years) // across), across, 10.5, 3.2, sharey=True)
    body = []
    for axis, year in zip(axes.flat, years, strict=False):
        mine = results.where(season=year)
        x, middle = read(mine, "middle")
        days = x.astype("M8[D]")
        axis.fill_between(
            days, read(mine, "low")[1], read(mine, "high")[1], color=BLUE, alpha=0.18, linewidth=0
        )
        axis.plot(days, middle, color=BLUE, linewidth=1.6, label="median and 95 % band of f")
        seen, values = read(mine, "observation")
        axis.plot(seen.astype("M8[D]"), values, "o", color=INK, markersize=4, label="observations")
        line = [f"{year}/{(year + 1) % 100:02d}"]
        for k, event in enumerate(EVENTS):
            row = mine.where(event=event).rows[0]
            if not row["happened"]:
                line.append("not by then")
                continue
            place = _between(mine, event)
            level = 0.06 + 0.06 * k
            axis.plot(place, [level, level], color=ORANGE, linewidth=2.5, marker="|", markersize=8)
            axis.annotate(
                event, (place[1], level), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8
            )
            missing = f" ({1 - row['happened']:.0%} not by then)" if row["happened"] < 0.995 else ""
            line.append(f"{row['day05']} / {row['day50'][5:]} / {row['day95'][5:]}{missing}")
        body.append(line)
        axis.set_title(f"season {line[0]}", fontsize=10)
        axis.xaxis.set_major_locator(MonthLocator())  # type: ignore[no-untyped-call]
        axis.xaxis.set_major_formatter(DateFormatter("%b"))  # type: ignore[no-untyped-call]
        told = [row for row in mine.rows if row.get("event") and row["happened"]]
        if told:
            days_of = ", ".join(f"{row['event']} {row['day50']}" for row in told)
            spans = {row["event"]: np.ptp(_between(mine, row["event"]).astype(int)) for row in told}
            widest = max(spans, key=lambda event: spans[event])
            shown.words.append(
                f"Season {line[0]}, medians: {days_of}; least certain is the {widest}, within {spans[widest]}"
                " days in nine draws of ten."
            )
    for unused in axes.flat[len(years) :]:
        unused.remove()
    for axis in axes[:, 0]:
        axis.set_ylabel("NDVI")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=2, frameon=False)
    caption = "First crop of each season; orange: from the 5 % to the 95 % quantile of the day of each event."
    shown.pictures.append(Illustration("seasons", caption, figure))
    shown.tables.append(
        SmallTable("Days of events: 5 % / median / 95 % of draws.", ["season", *EVENTS], body)
    )
    return shown


SEASONS_OF_CROPS = Experiment(
    "seasons-of-crops",
    "When did a field turn green and when was it harvested, and how sure is that?",
    "One field in Mato Grosso, 93 irregular dates in four years. GPForecaster on all of it; draws of the"
    " function, and for each the day of its peak from September to mid-February, and of the crossings of"
    " half its height before and after. A full run has 300 draws and four seasons, a quick one 100 and two.",
    _seasons_grid,
    _seasons,
    ("event", "day05", "day50", "day95", "happened", "quantity", "x", "value"),
    _seasons_shown,
)

MODELS = (DEEP, LATENT, IMAGES_BY_LABELS, SEASONS_OF_CROPS)
