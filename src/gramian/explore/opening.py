"""A table or a model file as what the page begins with.

A table goes to the page as columns of numbers, with the words of those that are categories; the page chooses
which are drawn. A model goes there with the rows it was fitted to, can be asked along its columns, and, where
it has one or two columns and a kernel of known parts, stands beside a process of the same numbers that can be
moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gramian.arrays import Array
from gramian.data.sources import open_source
from gramian.errors import InputError, visible
from gramian.explore.compute import INTERVAL, Along
from gramian.explore.wire import MOST_POINTS, tree_of
from gramian.kernels import Kernel
from gramian.modelfile import load
from gramian.plots.common import typical

MOST_COLUMNS, MOST_WORDS = 60, 30
MODELS = ".gm"


@dataclass(frozen=True)
class Opened:
    """What the page begins with."""

    table: dict[str, Any] | None = None
    scene: dict[str, Any] | None = None  # of a model: its kernel and the like
    along: Along | None = None
    kernel: Kernel | None = None  # of a model, where the page cannot build it


def opened(path: Path | None, target: str | None = None, columns: Sequence[str] = ()) -> Opened:
    """A file by its kind: .gm is a model, everything else a table."""
    if path is None:
        return Opened()
    if path.suffix == MODELS:
        if target is not None or columns:
            raise InputError(
                f"--target and --columns are for tables; {path} is a model, which knows its own."
            )
        return _of_model(path)
    return Opened(table=_of_table(path, target, columns))


def _of_table(path: Path, target: str | None, columns: Sequence[str]) -> dict[str, Any]:
    beside = [target] if target is not None and target not in columns else []
    wanted = [*columns, *beside] if columns else None
    source = open_source(path, None, columns=wanted, missing="drop", indicators=False)
    names, words = source.columns.names, source.columns.categories
    many = {j for j, levels in words.items() if len(levels) > min(MOST_WORDS, max(len(source.X) // 2, 2))}
    shown = [j for j in range(len(names)) if j not in many][:MOST_COLUMNS]
    if len(shown) < 2:
        raise InputError(
            f"{path} has {len(shown)} column{'s' * (len(shown) != 1)} of numbers or few words; the explorer"
            " needs two: one to look along, and one to learn."
        )
    if target is None:
        target = next((names[j] for j in reversed(shown) if j not in words), names[shown[-1]])
    if target not in names:
        raise InputError(f"{path} has no column {target!r}. It has {', '.join(names)}.")
    if target not in [names[j] for j in shown]:
        raise InputError(f"{path}: the column {target!r} has too many different words to be drawn.")
    rows, note = _some(np.asarray(source.X), path.name)
    return _table(path.name, rows, [(names[j], j) for j in shown], words, target) | {"note": note}


def _of_model(path: Path) -> Opened:
    gp = load(path)
    fitted = getattr(gp, "fitted_", None)
    if fitted is None:
        raise InputError(f"{path} is a {type(gp).__name__}; the explorer opens regressors and classifiers.")
    first, classes = fitted.first, fitted.classes
    if classes is not None and len(classes) > 2:
        raise InputError(f"{path} tells {len(classes)} classes apart; the explorer draws two.")
    if not first.has_rows:
        raise InputError(
            f"{path} holds no rows to draw. Give their table instead, or a model of exact inference."
        )
    if classes is None and not first.single:
        raise InputError(f"{path} predicts several targets at once; the explorer draws one.")
    names, words = first.columns.names, first.columns.categories
    X, y = first.seen_points(), first.targets_of_rows()[:, 0]
    target = fitted.targets[0] if fitted.targets else "y"
    rows, note = _some(np.column_stack([X, y]), path.name)
    words = {**words, **({} if classes is None else {len(names): tuple(map(str, classes))})}
    listed = [(name, j) for j, name in enumerate(names)][:MOST_COLUMNS]
    numeric = [pair for pair in listed if pair[1] not in words]
    if not numeric:
        raise InputError(f"{path} has no column of numbers to look along.")
    table = _table(path.name, rows, [*numeric, (target, len(names))], words, target)
    table |= {"note": note, "model": [j for _, j in numeric], "columns_of_model": len(names)}

    def intervals(places: Array) -> tuple[Array, Array, Array]:
        if classes is not None:
            low, high = fitted.probability_interval(places, INTERVAL)
            return fitted.probabilities(places)[:, 1], low[:, 1], high[:, 1]
        seen = first.predictive(places)
        low, high = seen.interval(INTERVAL)
        return seen.mean, low, high

    along = Along(intervals, typical(X, first.columns.categories))
    scene, kernel = _beside(first, len(names), classes is not None)
    return Opened(table, scene, along, kernel)


def _beside(first: Any, d: int, labels: bool) -> tuple[dict[str, Any] | None, Kernel | None]:
    """A process with the numbers of the model, where one can stand beside it: f = m + s g is the process of
    s^2 k."""
    if d > 2 or first.model.warp is not None or first.n_functions > 1 or first.columns.categories:
        return None, None
    level = next(iter(first.model.mean.parameters().values()), None)
    if level is not None and level.value.size != 1:
        return None, None  # a line or more: the page has levels alone
    scale = float(first.facts.scale[0]) ** 2
    kernel = first.model.kernel if scale == 1 else scale * first.model.kernel
    tree = _scaled(tree_of(first.model.kernel), scale)
    scene: dict[str, Any] = {"kernel": {**tree_of(kernel)} if tree is None else tree}
    scene["mean"] = {
        "value": 0.0 if level is None else float(np.ravel(level.value)[0]),
        "held": level is None,
    }
    if labels:
        link = getattr(first.likelihood, "link", "logit")
        scene["likelihood"] = f"bernoulli-{link}"
    elif first.noise is not None:
        scene["likelihood"], scene["noise"] = "gaussian", float(np.max(first.noise))
    else:
        return None, None
    return scene, kernel if "text" in scene["kernel"] else None


def _scaled(tree: dict[str, Any], scale: float) -> dict[str, Any] | None:
    """The tree of scale times a kernel; None where it has other parts."""
    if "text" in tree:
        return None
    for term in tree["terms"]:
        if term["scale"] is not None:
            term["scale"] = float(f"{term['scale'] * scale:.6g}")
        elif scale != 1:
            term["scale"] = float(f"{scale:.6g}")
    return tree


def _some(rows: Array, name: str) -> tuple[Array, str]:
    """Rows without gaps, some of them at random where there are many."""
    whole = rows[np.all(np.isfinite(rows), axis=1)]
    if not len(whole):
        raise InputError(f"{name} has no row without a missing cell.")
    if len(whole) <= MOST_POINTS:
        return whole, ""
    some = np.sort(np.random.default_rng(0).choice(len(whole), MOST_POINTS, replace=False))
    return whole[some], f"{MOST_POINTS:,} of {len(whole):,} rows of {name}, chosen at random."


def _table(
    name: str,
    rows: Array,
    columns: Sequence[tuple[str, int]],
    words: Mapping[int, Sequence[str]],
    target: str,
) -> dict[str, Any]:
    listed = [
        {
            "name": visible(title),
            "values": rows[:, j].tolist(),
            "words": [visible(word) for word in words[j]] if j in words else None,
        }
        for title, j in columns
    ]
    return {"name": visible(name), "columns": listed, "target": visible(target)}
