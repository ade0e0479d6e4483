"""A fitted GPForecaster as a document and arrays, and back: what is known of each series, and its model,
whose own document and arrays are inside under the names "series0..." and so on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramian.data.columns import Columns
from gramian.errors import ModelFileError
from gramian.estimators.forecaster import FittedSeries, ForecastFitted
from gramian.estimators.regressor import GPRegressor
from gramian.linalg.state import Arrays, entries, joined, of_parts, typed, typed_list
from gramian.modelfile.document import Reader, encode
from gramian.series.model import Structure
from gramian.series.table import Layout
from gramian.series.times import Axis, Step

STEM = "series"
_WHOLE = ("layout", "axis", "series", "seconds")
_ONE = ("name", "model", "structure", "step", "times", "loc", "scale", "floor", "choice", "notes")


def describe(
    fitted: ForecastFitted, of_model: Callable[[GPRegressor], tuple[dict[str, Any], Arrays]]
) -> tuple[dict[str, Any], Arrays]:
    """What a fit has left; `of_model`: a regressor as a document and arrays."""
    models = [of_model(own.gp) for own in fitted.series]
    series = [
        {
            "name": own.name,
            "model": document,
            "structure": encode(own.structure, "structure"),
            "step": encode(own.step, "step"),
            "times": [own.centre, own.first, own.last],
            "loc": list(own.loc),
            "scale": list(own.scale),
            "floor": own.floor,
            "choice": list(own.choice),
            "notes": list(own.notes),
        }
        for own, (document, _) in zip(fitted.series, models, strict=True)
    ]
    return {
        "layout": encode(fitted.layout, "layout"),
        "axis": encode(fitted.axis, "axis"),
        "series": series,
        "seconds": fitted.seconds,
    }, joined([arrays for _, arrays in models], STEM)


def restore(
    columns: Columns, fitted: Any, arrays: Arrays, reader: Reader, of_document: Callable[[Any, Arrays], Any]
) -> ForecastFitted:
    """And back, after a check that it fits together; `of_document`: the inverse of `of_model`."""
    layout, axis, described, seconds = entries(fitted, "fitted", *_WHOLE)
    layout, axis = reader.one(layout, Layout, "layout"), reader.one(axis, Axis, "axis")
    if columns.given != (layout.regressors or (layout.date,)):
        raise ModelFileError("its columns are not the regressors of its table.")
    beside = columns if layout.regressors else None
    documents = typed_list(described, dict, "series")
    inside = of_parts(arrays, STEM, len(documents))
    found = tuple(
        _one(k, document, own, reader, beside, of_document)
        for k, (document, own) in enumerate(zip(documents, inside, strict=True))
    )
    names = {own.name for own in found}
    if not found or len(names) < len(found) or (not layout.name and names != {""}):
        raise ModelFileError(f"its {len(found)} series have {len(names)} different names.")
    if not 0 <= typed(seconds, float, "seconds") < np.inf:
        raise ModelFileError("its fit took no number of seconds.")
    return ForecastFitted(layout, axis, beside, found, seconds)


def _one(
    k: int,
    document: Any,
    arrays: Arrays,
    reader: Reader,
    columns: Columns | None,
    of_document: Callable[..., Any],
) -> FittedSeries:
    name, model, structure, step, times, loc, scale, floor, choice, notes = entries(
        document, f"series[{k}]", *_ONE
    )
    gp = of_document(model, arrays)
    structure = reader.one(structure, Structure, "structure")
    step = reader.one(step, Step, "step")
    numbers = [typed_list(part, float, f"series[{k}]") for part in (times, loc, scale)]
    if not all(np.isfinite(value) for part in numbers for value in part) or len(numbers[0]) != 3:
        raise ModelFileError(f"series[{k}] has times or scales that are not finite.")
    count = 0 if columns is None else len(columns.given)
    words = set() if columns is None else {columns.names[j] for j in columns.categories}
    regressors = () if columns is None else columns.given
    known = {*structure.numeric} == {*regressors} - words and {*structure.words} == words
    if not isinstance(gp, GPRegressor) or gp.fitted_.rows.X.shape[1] != 1 + count or not known:
        raise ModelFileError(f"series[{k}] is no regression of times and {count} regressors.")
    titles = [part.title for part in gp.fitted_.kernel.summands]
    if titles != list(structure.titles) or not len(numbers[1]) == len(numbers[2]) == count:
        raise ModelFileError(f"series[{k}] is not made of the parts that it names.")
    periods = [season.period for season in structure.seasons]
    periods += [season.period for pair in structure.crossed for season in pair]
    sizes = [step.size, *periods, *numbers[2]]
    if not all(0 < size < np.inf for size in sizes) or not 0 <= step.months <= 1200:
        raise ModelFileError(f"series[{k}] has a step, a period or a scale that is not positive.")
    centre, first, last = numbers[0]
    return FittedSeries(
        typed(name, str, "name"),
        gp,
        structure,
        step,
        centre,
        first,
        last,
        tuple(numbers[1]),
        tuple(numbers[2]),
        typed(floor, bool, "floor"),
        tuple(typed_list(choice, str, "choice")),
        tuple(typed_list(notes, str, "notes")),
    )
