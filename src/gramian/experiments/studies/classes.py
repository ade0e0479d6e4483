"""Classes: data of which all is known, and choices of trump in a game of cards.

binary-synthetic       f ~ GP(0, k), y ~ Bernoulli(logit f), in two columns: the parameters that made the
                       data, a plain guess, and those of the highest evidence
multiclass-synthetic   six functions, y ~ softmax of them, in one column and in two
jass                   which of six kinds of trump a player chooses, by kernels, training sizes, inducing
                       points and ways to deal with several classes, beside linear models and networks
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

from gramian.arrays import Array
from gramian.estimators import GPClassifier
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
from gramian.experiments.studies.drawing import COLOURS, DASHES, legend_beside, lines, panels
from gramian.experiments.studies.sets import DataFolder
from gramian.gp import GP
from gramian.inference.svgp.inducing import SVGP
from gramian.kernels import RBF, Kernel, Linear, Matern52
from gramian.params import fixed
from gramian.plots.common import INK
from gramian.report.evaluation import of_classes

# Two classes. -----------------------------------------------------------------------------------------------

HEIGHT, LENGTH = 6.0, 0.7  # of the functions that made the data: variance and lengthscale
SCORES = ("log_evidence", "error", "nlpd", "height", "lengthscale")
MAPS = ("quantity", "x", "z", "value")


def square(side: int) -> Array:
    """A grid of the square from -2 to 2."""
    line = np.linspace(-2, 2, side)
    return np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)


def drawn(cell: Cell, columns: int, functions: int, points: int) -> tuple[Array, Array, np.random.Generator]:
    """Places and functions there, f ~ GP(0, k); the same for all cells of a repeat and a size."""
    rng = rng_of(cell, "repeat", "rows", *(("columns",) if "columns" in cell else ()))
    X = rng.uniform(-2, 2, (points, columns))
    prior = GP(HEIGHT * RBF(LENGTH), mean=0.0)
    return X, prior.sample(X, functions, seed=int(rng.integers(2**31))), rng


def _binary_grid(quick: bool) -> list[Cell]:
    sizes, repeats = ((60, 200), 2) if quick else ((50, 100, 200, 400), 15)
    return [
        {"rows": n, "parameters": which, "repeat": repeat}
        for repeat in range(repeats)
        for n in sizes
        for which in ("true", "baseline", "optimised")
    ]


def _binary(cell: Cell, data: DataFolder) -> list[Row]:
    n = cell["rows"]
    X, f, rng = drawn(cell, 2, 1, n + 400)
    y = rng.random(len(X)) < 1 / (1 + np.exp(-f[:, 0]))
    start = {"true": (HEIGHT, LENGTH), "baseline": (1.0, 2.0), "optimised": (1.0, 2.0)}[cell["parameters"]]
    search = cell["parameters"] == "optimised"
    kernel: Kernel = start[0] * RBF(start[1])
    gp = GPClassifier(kernel, optimize=search, hyper="ml", n_restarts=1 if search else 0, random_state=0)
    gp.fit(X[:n], y[:n])
    P = gp.predict_proba(X[n:])
    values = [float(p.value) for p in gp.kernel_.parameters().values()]
    scores = of_classes(P, y[n:].astype(int)).columns[0]
    error = float(np.mean((P[:, 1] > 0.5) != y[n:]))
    rows: list[Row] = [
        {
            "log_evidence": gp.evidence_.value,
            "error": error,
            "nlpd": scores["log_loss"],
            "height": values[0],
            "lengthscale": values[1],
        }
    ]
    if cell["repeat"] == 0:  # a map for the picture
        at = square(33)
        P = gp.predict_proba(at)[:, 1]
        rows += [
            {"quantity": "probability", "x": float(a), "z": float(b), "value": float(p)}
            for (a, b), p in zip(at, P, strict=True)
        ]
        rows += [
            {"quantity": "observation", "x": float(a), "z": float(b), "value": float(label)}
            for (a, b), label in zip(X[:n], y[:n], strict=True)
        ]
    return rows


def _binary_shown(results: Results) -> Shown:
    shown, sizes = Shown(), sorted(results.each("rows"))
    which = results.each("parameters")
    scores = Results([row for row in results.rows if row.get("log_evidence") is not None])
    largest = max(sizes)
    figure, axes = panels(1, len(which), 11.0, 3.3, sharey=True)
    image = None
    for axis, name in zip(axes[0], which, strict=True):
        mine = results.where(rows=largest, parameters=name, repeat=0)
        grid = mine.where(quantity="probability").column("value")
        if not grid.size:
            continue
        side = int(np.sqrt(len(grid)))
        image = axis.imshow(
            grid.reshape(side, side).T, origin="lower", extent=(-2, 2, -2, 2), cmap="cividis", vmin=0, vmax=1
        )
        line = np.linspace(-2, 2, side)
        axis.contour(line, line, grid.reshape(side, side).T, [0.5], colors="white", linewidths=1.5)
        seen = mine.where(quantity="observation")
        for label, marker, colour in ((0.0, "x", "white"), (1.0, "o", INK)):
            dots = seen.where(value=label)
            axis.plot(
                dots.column("x"), dots.column("z"), marker, color=colour, markersize=3.5, markeredgewidth=0.9
            )
        evidence = scores.where(rows=largest, parameters=name, repeat=0).mean("log_evidence")
        axis.set(title=f"{name}: log evidence {evidence:.1f}", xlabel="x1")
    axes[0, 0].set_ylabel("x2")
    if image is not None:
        figure.colorbar(image, ax=list(axes[0]), label="probability of class 1", shrink=0.9)
    caption = (
        f"Probabilities after {largest} labels (crosses: class 0, dots: class 1); white line: one half."
        " Left: with the parameters that made the data."
    )
    shown.pictures.append(Illustration("maps", caption, figure))
    figure, axes = panels(1, 3, 11.0, 3.2)
    labels = {"log_evidence": "log evidence a row", "error": "share of wrong labels", "nlpd": "NLPD"}
    relative = Results([{**row, "log_evidence": row["log_evidence"] / row["rows"]} for row in scores.rows])
    for axis, (name, title) in zip(axes[0], labels.items(), strict=True):
        lines(axis, relative, "parameters", "rows", name, which, "x")
        axis.set(xlabel="training rows", ylabel=title)
    legend_beside(figure)
    shown.pictures.append(
        Illustration("scores", "Means over repetitions with one standard deviation.", figure)
    )
    body = []
    for n in sizes:
        for name in which:
            mine = scores.where(rows=n, parameters=name)
            numbers = [f"{mine.mean(s):.3g}" for s in ("error", "nlpd", "height", "lengthscale")]
            body.append([str(n), name, f"{mine.mean('log_evidence'):.1f}", *numbers])
    head = ["rows", "parameters", "log evidence", "error", "NLPD", "variance", "lengthscale"]
    shown.tables.append(SmallTable("Means over repetitions.", head, body))
    for n in sizes:
        told = [
            f"{mine.mean('log_evidence'):.1f} and {mine.mean('nlpd'):.3f} with the {name} parameters"
            for name in which
            for mine in [scores.where(rows=n, parameters=name)]
            if mine.rows
        ]
        shown.words.append(f"{n} rows, log evidence and NLPD: {', '.join(told)}.")
    return shown


BINARY_SYNTHETIC = Experiment(
    "binary-synthetic",
    "Does the evidence find the parameters that made the labels, and do they predict better than a guess?",
    f"A function of two columns is drawn from a process with variance {HEIGHT:g} and lengthscale {LENGTH:g},"
    " and labels from its logistic probabilities. Laplace's approximation with these parameters, with"
    " variance 1 and lengthscale 2, and with those of the highest evidence, found from there; 400 test"
    " rows.",
    _binary_grid,
    _binary,
    (*SCORES, *MAPS),
    _binary_shown,
)

# Six classes. -----------------------------------------------------------------------------------------------

SIX = 6


def _six_grid(quick: bool) -> list[Cell]:
    sizes, repeats = ((60, 150), 1) if quick else ((60, 150, 400, 1000), 10)
    return [
        {"columns": columns, "rows": n, "repeat": repeat}
        for repeat in range(repeats)
        for columns in (1, 2)
        for n in sizes
    ]


def _six(cell: Cell, data: DataFolder) -> list[Row]:
    n, columns = cell["rows"], cell["columns"]
    X, f, rng = drawn(cell, columns, SIX, n + 400)
    p = np.exp(f - np.max(f, axis=1, keepdims=True))
    p /= np.sum(p, axis=1, keepdims=True)
    y = np.array([rng.choice(SIX, p=row) for row in p])
    gp = GPClassifier(1.0 * RBF(1.0), n_restarts=0, random_state=0).fit(X[:n], y[:n])

    def probabilities(at: Array) -> Array:
        full = np.zeros((len(at), SIX))
        full[:, gp.classes_] = gp.predict_proba(at)
        return full

    P = np.maximum(probabilities(X[n:]), 1e-9)
    scores = of_classes(P / np.sum(P, axis=1, keepdims=True), y[n:]).columns[0]
    best = float(np.mean(np.argmax(p[n:], axis=1) != y[n:]))
    rows: list[Row] = [
        {
            "error": float(np.mean(np.argmax(P, axis=1) != y[n:])),
            "least_error": best,
            "nlpd": scores["log_loss"],
            "least_nlpd": float(-np.mean(np.log(p[n:][np.arange(400), y[n:]]))),
            "ece": scores["ece"],
        }
    ]
    if cell["repeat"] > 0:
        return rows
    at = np.linspace(-2, 2, 121)[:, None] if columns == 1 else square(33)
    P = probabilities(at)
    for k in range(SIX):
        values = P[:, k] if columns == 1 else (np.argmax(P, axis=1) == k) * np.max(P, axis=1)
        for place, value in zip(at, values, strict=True):
            z = {"z": float(place[1])} if columns == 2 else {}
            rows.append({"quantity": f"class {k}", "x": float(place[0]), **z, "value": float(value)})
    for place, label in zip(X[:n], y[:n], strict=True):
        z = {"z": float(place[1])} if columns == 2 else {}
        rows.append({"quantity": "observation", "x": float(place[0]), **z, "value": float(label)})
    return rows


def _six_shown(results: Results) -> Shown:
    from matplotlib.colors import ListedColormap

    shown, sizes = Shown(), sorted(results.each("rows"))
    scores = Results([row for row in results.rows if row.get("error") is not None])
    figure, axes = panels(2, len(sizes), max(4.3 * len(sizes), 8.6), 3.2)
    for (above, below), n in zip(axes.T, sizes, strict=True):
        mine = results.where(columns=1, rows=n, repeat=0)
        for k in range(SIX):
            curve = mine.where(quantity=f"class {k}")
            above.plot(
                curve.column("x"), curve.column("value"), color=COLOURS[k], linestyle=DASHES[k % 4],
                linewidth=1.5, label=f"class {k}",
            )  # fmt: skip
            dots = mine.where(quantity="observation", value=float(k))
            above.plot(dots.column("x"), np.full(len(dots.rows), -0.04 - 0.03 * k), "|", color=COLOURS[k])
        above.set(title=f"one column, {n} rows", xlabel="x", ylim=(-0.24, 1.03), ylabel="probability")
        mine = results.where(columns=2, rows=n, repeat=0)
        grids = [mine.where(quantity=f"class {k}").column("value") for k in range(SIX)]
        if grids[0].size:
            side = int(np.sqrt(len(grids[0])))
            which = np.argmax(grids, axis=0).reshape(side, side).T
            sure = np.max(grids, axis=0).reshape(side, side).T
            look = {"origin": "lower", "extent": (-2, 2, -2, 2), "interpolation": "nearest"}
            below.imshow(which, cmap=ListedColormap(COLOURS[:SIX]), vmin=-0.5, vmax=5.5, alpha=sure, **look)
            line = np.linspace(-2, 2, side)
            below.contour(line, line, sure, [0.8], colors=INK, linewidths=0.8, linestyles="--")
            for k in range(SIX):
                dots = mine.where(quantity="observation", value=float(k))
                for x, z in zip(dots.column("x"), dots.column("z"), strict=True):
                    below.text(x, z, str(k), fontsize=6, ha="center", va="center")
        below.set(title=f"two columns, {n} rows", xlabel="x1", ylabel="x2")
    legend_beside(figure)
    caption = (
        "Above: probabilities of six classes along one column, observations as ticks. Below: the most"
        " probable class of two columns, paler where less probable; dashed: probability 0.8; numbers:"
        " observations."
    )
    shown.pictures.append(Illustration("six-classes", caption, figure))
    body = []
    for columns in scores.each("columns"):
        for n in sizes:
            mine = scores.where(columns=columns, rows=n)
            if not mine.rows:
                continue
            names = ("error", "least_error", "nlpd", "least_nlpd", "ece")
            body.append([str(columns), str(n), *(f"{mine.mean(name):.3f}" for name in names)])
        done = [n for n in sizes if scores.where(columns=columns, rows=n).column("error").size]
        few, many = (scores.where(columns=columns, rows=n) for n in (min(done), max(done)))
        # the functions of each size are others: what is possible with them stands beside
        shown.words.append(
            f"{columns} column{'s' * (columns > 1)}: with {min(done)} rows {few.mean('error'):.1%} of the"
            f" labels are wrong, with {max(done)} {many.mean('error'):.1%}; whoever knows the functions has"
            f" {few.mean('least_error'):.1%} and {many.mean('least_error'):.1%} wrong. With {max(done)} rows"
            f" the NLPD is {many.mean('nlpd'):.3f} beside {many.mean('least_nlpd'):.3f}, the calibration"
            f" error {many.mean('ece'):.3f}."
        )
    head = ["columns", "rows", "error", "least possible", "NLPD", "least possible", "ECE"]
    shown.tables.append(
        SmallTable("Test scores; the least possible is that of the true functions.", head, body)
    )
    return shown


MULTICLASS_SYNTHETIC = Experiment(
    "multiclass-synthetic",
    "How near does a classifier of six classes come to the probabilities that made the labels?",
    f"Six functions from a process with variance {HEIGHT:g} and lengthscale {LENGTH:g}, in one column and in"
    " two; labels from their softmax. GPClassifier with an RBF kernel, softmax and variational inference;"
    " 400 test rows.",
    _six_grid,
    _six,
    ("error", "least_error", "nlpd", "least_nlpd", "ece", *MAPS),
    _six_shown,
)

# Jass. ------------------------------------------------------------------------------------------------------

JASS = "jass_trump"
WIDE = 3.0  # a first lengthscale for 37 columns of 0 and 1
STEPS = 400  # of a stochastic search


def _ard() -> Kernel:
    return 1.0 * RBF([WIDE] * 37)


def _points(m: int) -> Callable[[], Any]:
    return lambda: GPClassifier(1.0 * RBF(WIDE), method=SVGP(m, steps=STEPS), random_state=0)


def network(*widths: int) -> MLPClassifier:
    """With a decay of the weights, of 0.1, 1 and 3 the best by five folds of 100 and of 500 training rows.
    Stopped early by a tenth of so few rows it has learned nothing: 78 % and 72 % are wrong, not 45 and 28."""
    return MLPClassifier(widths, alpha=3.0, learning_rate_init=0.01, max_iter=2000, random_state=0)


# as they are compared: kernels, then ways with several classes, then inducing points, then others
MODELS: dict[str, Callable[[], Any]] = {
    "GP, RBF": lambda: GPClassifier(1.0 * RBF(WIDE), n_restarts=0, random_state=0),
    "GP, RBF-ARD": lambda: GPClassifier(_ard(), n_restarts=0, random_state=0),
    "GP, Matern-5/2": lambda: GPClassifier(1.0 * Matern52(WIDE), n_restarts=0, random_state=0),
    "GP, linear": lambda: GPClassifier(Linear(0.3) + fixed(1.0), n_restarts=0, random_state=0),
    "GP, one-vs-rest": lambda: GPClassifier(1.0 * RBF(WIDE), multiclass="ovr", n_restarts=0, random_state=0),
    "GP, one-vs-one": lambda: GPClassifier(1.0 * RBF(WIDE), multiclass="ovo", n_restarts=0, random_state=0),
    "GP, robust-max": lambda: GPClassifier(
        1.0 * RBF(WIDE), multiclass="robustmax", n_restarts=0, random_state=0
    ),
    "GP, 50 inducing points": _points(50),
    "GP, 200 inducing points": _points(200),
    "logistic regression": lambda: LogisticRegression(max_iter=2000),
    "linear SVM": lambda: LinearSVC(),
    "network 32": lambda: network(32),
    "network 64-64": lambda: network(64, 64),
}
QUICK = (
    "GP, RBF",
    "GP, linear",
    "GP, one-vs-rest",
    "GP, 50 inducing points",
    "logistic regression",
    "network 32",
)


def _jass_grid(quick: bool) -> list[Cell]:
    sizes, repeats = ((100, 250), 2) if quick else ((100, 250, 500, 1000, 2000), 5)
    return [
        {"set": JASS, "model": name, "rows": n, "repeat": repeat}
        for repeat in range(repeats)
        for n in sizes
        for name in (QUICK if quick else MODELS)
    ]


def _jass(cell: Cell, data: DataFolder) -> list[Row]:
    held = data.load(JASS)
    X, y = held["X_train"].astype(np.float64), held["y_train"].astype(int)
    order = rng_of(cell, "repeat", "rows").permutation(len(X))
    train, test = order[: cell["rows"]], order[-1500:]  # of the 4,000 rows; the 200 of the test part beside
    at = np.concatenate([X[test], held["X_test"].astype(np.float64)])
    truth = np.concatenate([y[test], held["y_test"].astype(int)])
    began = time.perf_counter()
    model = MODELS[cell["model"]]().fit(X[train], y[train])
    seconds = time.perf_counter() - began
    row: Row = {"error": float(np.mean(model.predict(at) != truth)), "fit_seconds": seconds}
    if hasattr(model, "predict_proba"):
        P = np.full((len(at), int(np.max(y)) + 1), 1e-9)
        P[:, model.classes_] = np.maximum(model.predict_proba(at), 1e-9)
        scores = of_classes(P / np.sum(P, axis=1, keepdims=True), truth).columns[0]
        row |= {"nlpd": scores["log_loss"], "ece": scores["ece"]}
    return [row]


def _jass_shown(results: Results) -> Shown:
    shown, order = Shown(), results.each("model")
    figure, axes = panels(1, 2, 12.0, 4.2)
    for axis, (name, label) in zip(
        axes[0], (("error", "share of wrong choices"), ("nlpd", "NLPD")), strict=True
    ):
        lines(axis, results, "model", "rows", name, order, "x")
        axis.set(xlabel="training rows", ylabel=label)
    legend_beside(figure)
    caption = (
        "Test scores against training rows; bars: one standard deviation over draws of the training rows."
    )
    shown.pictures.append(Illustration("jass", caption, figure))
    body = []
    for n in sorted(results.each("rows")):
        for model in order:
            mine = results.where(rows=n, model=model)
            spread = mine.column("error")
            if spread.size:
                deviation = f"{np.mean(spread):.3f} ± {np.std(spread):.3f}"
                numbers = [f"{mine.mean(name):.3g}" for name in ("nlpd", "ece", "fit_seconds")]
                body.append([model, str(n), deviation, *("-" if v == "nan" else v for v in numbers)])
        model, error = results.where(rows=n).best("model", "error")
        sure, nlpd = results.where(rows=n).best("model", "nlpd")
        shown.words.append(
            f"{n} training rows: the fewest wrong choices has {model} ({error:.1%}), the best probabilities"
            f" {sure} (NLPD {nlpd:.3f})."
        )
    head = ["model", "rows", "error", "NLPD", "ECE", "fit (s)"]
    shown.tables.append(SmallTable("Means over repetitions.", head, body))
    return shown


JASS_TRUMP = Experiment(
    "jass",
    "Which model foretells best what trump a player of Jass chooses, with how many rows?",
    "36 cards and whether the choice was passed on, as columns of 0 and 1; six kinds of trump. Gaussian"
    " processes with softmax (others where said), searched from one start; scikit-learn's logistic"
    " regression, linear SVM and small networks with weight decay beside them. 1,700 test rows, drawn from"
    " the rows that are not trained on and the 200 of the set's own test part.",
    _jass_grid,
    _jass,
    ("error", "nlpd", "ece", "fit_seconds"),
    _jass_shown,
)

CLASSES = (BINARY_SYNTHETIC, MULTICLASS_SYNTHETIC, JASS_TRUMP)
