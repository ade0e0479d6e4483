"""The health of a model on a page: what was fitted, is it good, is it sound, which columns matter, where it
is least sure, and what to try next. Findings are those of `checks`, the page is a `Summary`.

Cost: leaving rows out (closed form or cavities, at most 2,000 rows are scored), the shares of columns as a
summary has them, some hundred predictions for pictures, and the largest eigenvalue of K up to 2,000 rows.
What would take a solve for each row is left out, and said. Where the time is limited (`clock`), what was not
looked at is named.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from gramian import clock
from gramian.arrays import Array
from gramian.clock import OutOfTime
from gramian.errors import GramianError, visible
from gramian.fitting.progress import Report
from gramian.gram import tiles
from gramian.linalg.memory import show_bytes
from gramian.report import pictures as pictured
from gramian.report.checks import Case, checks, shares_of, with_causes
from gramian.report.codes import CODES, Finding, checked, ordered
from gramian.report.document import Fact, Grid, Picture, Section, number
from gramian.report.held import Held, left_out, rows_of_the_fit
from gramian.report.pictures import cell_of
from gramian.report.relevance import Relevance
from gramian.report.summary import Summary
from gramian.version import __version__

MOST_PANELS, FEW_PANELS, MOST_CURVES, MOST_LABELS = 6, 2, 4, 12
MOST_READ = 16_000  # rows that ranges of columns are of
WORST = 8  # rows that are listed
FEW_COLUMNS = 5  # that are listed with them
DENSE = 2000  # rows of a K that is made for its largest eigenvalue
POWERS = 30  # steps towards it
EFFECTIVE = 2e10  # operations that an effective dimension may take
PACKAGES = ("numpy", "scipy", "jax", "scikit-learn")
WORDS_OF_NUMBERS = (
    "RMSE and MAE say how far the means are off; NLPD, MSLL and CRPS judge the intervals as well. Of all five"
    " less is better; R2 is 1 where nothing is missed."
)
WORDS_OF_LABELS = (
    "Log loss and Brier score judge probabilities: less is better. AUC is 1 where classes are told apart."
)
NO_TIME = "The time limit left no time for this"

Made = TypeVar("Made")


def health(
    title: str,
    learned: Any,
    given: tuple[Held, Array] | None = None,
    ignore: Sequence[str] = (),
    report: Report | None = None,
) -> Summary:
    """Of an `estimators.learned.Learned`. `given`: rows that were held back, with their whole table."""
    ignored, report, late = checked(tuple(ignore)), report or Report(), []

    def timely(what: str, made: Callable[[], Made]) -> Made | None:
        """What there is time for; the rest is named."""
        report.task(f"the report: {what}")
        try:
            if clock.over():
                raise OutOfTime
            return made()
        except OutOfTime:
            late.append(what)
            return None

    base = learned.summary(title)
    found = timely("left-out rows", lambda: left_out(learned))
    why = found if isinstance(found, str) else NO_TIME if found is None else ""
    own = None if isinstance(found, str) else found
    case = Case(learned, own if given is None else given[0], own, None if given is None else given[1])
    findings: list[Finding] = []
    passed: list[str] = []
    for what, check in checks():
        for code, told in (timely(what, partial(check, case)) or {}).items():
            findings += [finding for finding in told if code not in ignored]
            passed += [code] if not told and code not in ignored else []
    findings = with_causes(findings, case.held is not None and case.held.tested)
    shares = timely("columns", lambda: shares_of(learned))
    order = _order(learned, shares)
    sections = [
        _next(findings, late),
        _good(case, order, why),
        timely("curves", lambda: _effects(learned, order)),
        _columns(learned, shares),
        _rows(case, order),
        timely("algebra", lambda: _sound(learned)),
        _fitted(learned, base),
    ]
    made = [section for section in sections if section is not None]
    graver = ordered(findings)
    return Summary(_text(base, made, graver, passed), base.heading, made, graver, sorted(passed), ignored)


def _text(base: str, sections: Sequence[Section], findings: Sequence[Finding], passed: Sequence[str]) -> str:
    """The summary, what was found, and the tables."""
    found = [f"  {finding.level:<8} {finding}" for finding in findings] or ["  none"]
    well = [f"  {code}  {CODES[code].passed}" for code in sorted(passed)]
    lines = [base, "", "Findings", *found, "", "Passed", *(well or ["  nothing was looked at"])]
    for section in sections:
        if section.key not in ("fitted", "next"):
            lines += ["", *section.lines()]
    return visible("\n".join(lines))


def _order(learned: Any, shares: Relevance | None) -> list[int]:
    """Columns, those that matter most first."""
    names = learned.columns.names
    if shares is not None:
        return [names.index(row.name) for row in shares]
    known = not learned.models and not learned.first.model.deeper
    return learned.first.columns_by_relevance() if known else list(range(len(names)))


def _next(findings: Sequence[Finding], late: Sequence[str]) -> Section:
    """What to try, the gravest first."""
    cures = [
        f"{found.name[0].upper()}{found.name[1:]}: {found.cure[0].lower()}{found.cure[1:]}"
        for found in ordered(list(findings))
        if found.cure
    ]
    told = list(dict.fromkeys(cures)) or [
        "Nothing here asks for a change."
        if not findings
        else "See the findings: each says what it means and what to do."
    ]
    if late:
        told.append(f"{NO_TIME}: {', '.join(dict.fromkeys(late))}. Give more time.")
    return Section("next", "What to try next", tuple(told))


# Is it good? ------------------------------------------------------------------------------------------------


def _good(case: Case, order: Sequence[int], why: str) -> Section:
    held, title = case.held, "Is it good?"
    if held is None:
        told = (
            f"Not measured on left-out rows: {why}. Rows that were held back tell: give them with the report."
        )
        return Section("good", title, (told,))
    how = f"Measured on {held.part}, each foretold from all the others by the fitted parameters."
    if held.tested:
        again = rows_of_the_fit(case.fitted, held.X)
        how = f"Measured on {held.part} that came with the report, " + (
            f"of which {again:,} have the inputs of a row of the fit: new rows may be foretold worse."
            if again
            else "which the fit has not seen."
        )
    if held.P is not None:
        grids, pictures = _of_labels(case, held)
    else:
        grids, pictures = _of_numbers(case, held, order)
    read = WORDS_OF_LABELS if held.P is not None else WORDS_OF_NUMBERS
    return Section("good", title, (how, *_sentences(case, held), read), grids=grids, pictures=pictures)


def _sentences(case: Case, held: Held) -> list[str]:
    """The scores in words."""
    if held.P is not None:
        own = held.scores.columns[0]
        told = [
            f"{100 * own['accuracy']:.0f} % of the labels are right, with a log loss of"
            f" {own['log_loss']:.2f}."
        ]
        told += [
            f"{rival.name[0].upper()}{rival.name[1:]}: {100 * rival.numbers[0]:.0f} % right, log loss"
            f" {rival.numbers[1]:.2f}."
            for rival in held.rivals
        ]
        return told
    told = []
    for k, (output, scores) in enumerate(zip(held.outputs, held.scores.columns, strict=True)):
        which = f"{output.name}: " if len(held.outputs) > 1 else ""
        text = f"{which}predictions are off by {number(scores['rmse'], 3)} (root mean square)"
        beside = ", ".join(f"{rival.name} by {number(rival.numbers[k], 3)}" for rival in held.rivals)
        held95 = f"95 % intervals hold {100 * scores['coverage95']:.0f} % of the rows"
        explained = f"{100 * scores['r2']:.0f} % of the variance is explained" if scores["r2"] >= 0 else ""
        parts = [f"{text}; {beside}" if beside else text, *([explained] if explained else []), held95]
        sentence = "; ".join(parts) + "."
        told.append(sentence[0].upper() + sentence[1:] if not which else sentence)
    return told


def _of_numbers(case: Case, held: Held, order: Sequence[int]) -> tuple[tuple[Grid, ...], tuple[Picture, ...]]:
    _, *rows = held.scores.cells()
    titles = tuple(output.name for output in held.outputs) if len(held.outputs) > 1 else ("value",)
    cells = [(row[0], *row[1:]) for row in rows]
    cells += [(f"RMSE of {rival.name}", *(number(v) for v in rival.numbers)) for rival in held.rivals]
    grids = (Grid("Scores", ("score", *titles), tuple(cells), shown=40),)
    pictures: list[Picture] = []
    several = len(held.outputs) > 1
    for output in held.outputs[: 3 if several else 1]:
        pictures += [
            pictured.observed(output, several),
            *pictured.calibration(output, several, held.discrete),
        ]
        columns = order[: FEW_PANELS if several else MOST_PANELS]
        pictures += pictured.residuals(case.learned.columns, held, output, columns, several)
    return grids, tuple(pictures)


def _of_labels(case: Case, held: Held) -> tuple[tuple[Grid, ...], tuple[Picture, ...]]:
    P, codes = held.P, held.codes
    assert P is not None
    assert codes is not None
    labels = [str(label) for label in case.learned.classes]
    cells: list[tuple[Any, ...]] = [(row[0], row[1]) for row in held.scores.cells()[1:]]
    for rival in held.rivals:
        cells += [(f"accuracy of {rival.name}", f"{100 * rival.numbers[0]:.1f} %")]
        cells += [(f"log loss of {rival.name}", f"{rival.numbers[1]:.4g}")]
    grids = [Grid("Scores", ("score", "value"), tuple(cells), shown=40)]
    called = np.argmax(P, axis=1)
    table = np.zeros((len(labels), len(labels)), dtype=int)
    np.add.at(table, (codes, called), 1)
    if len(labels) <= MOST_LABELS:
        rows_of = tuple((label, *table[k].tolist()) for k, label in enumerate(labels))
        grids.append(
            Grid("Labels (rows) and what they were taken for (columns)", ("label", *labels), rows_of)
        )
    else:
        missed = np.argsort(np.diag(table) / np.maximum(np.sum(table, axis=1), 1), kind="stable")
        worst = tuple(
            (labels[c], int(np.sum(table[c])), int(table[c, c]))
            for c in missed[:MOST_LABELS]
            if np.sum(table[c])
        )
        grids.append(Grid("Labels that are recognised least", ("label", "rows", "right"), worst))
    return tuple(grids), (pictured.reliability(P, codes, labels),)


# What was learned. ------------------------------------------------------------------------------------------


def _effects(learned: Any, order: Sequence[int]) -> Section | None:
    """Predictions along the columns that matter most, the others at their medians."""
    fitted = learned.first
    if learned.models or not fitted.inference.leaves_out_cheaply:
        return None  # where a variance takes a solve
    try:
        seen = np.asarray(fitted.seen_points())
    except GramianError:
        return None
    pictures = []
    for j in order[:MOST_CURVES]:
        x, part = pictured.points(fitted, seen, j)
        rows = np.tile(pictured.typical(seen, learned.columns), (len(x), 1))
        rows[:, j] = x
        try:
            pictures += pictured.curves(learned, rows, x, j, part, seen[:, j])
        except GramianError:
            return None
    others = (
        " all other columns at their medians, categories at the most frequent one."
        if seen.shape[1] > 1
        else ""
    )
    told = f"Predictions along {'the columns that matter most,' if others else 'the column.'}{others}"
    return Section("learned", "What it learned", (told,), pictures=tuple(pictures))


# Columns and rows. ------------------------------------------------------------------------------------------


def _columns(learned: Any, shares: Relevance | None) -> Section | None:
    if len(learned.columns.names) < 2:
        return None
    title = "Which columns matter?"
    if shares is None:
        told = "Not measured here: it would take long, or rows are not there. relevance() does it."
        return Section("columns", title, (told,))
    rows = tuple((row.name, 100 * row.total, 100 * row.first) for row in shares)
    grid = Grid("Shares of the variance of f's mean, in %", ("column", "with others", "by itself"), rows, 15)
    some = shares.rows[:MOST_LABELS]
    picture = Picture(
        "shares",
        "shares of the columns",
        "How much of what the model says goes with each column: dark by itself, light together with others.",
        {
            "names": [row.name for row in some],
            "total": [row.total for row in some],
            "first": [row.first for row in some],
        },
    )
    told = (
        "They say what the model uses, not what causes what: of columns that say the same, it may use either."
    )
    return Section("columns", title, (told,), grids=(grid,), pictures=(picture,))


def _rows(case: Case, order: Sequence[int]) -> Section | None:
    held = case.held
    if held is None:
        return None
    columns, few = case.learned.columns, list(order[:FEW_COLUMNS])
    titles = tuple(columns.names[j] for j in few)

    def values(i: int) -> tuple[str, ...]:
        return tuple(cell_of(columns, j, float(held.X[i, j])) for j in few)

    grids = []
    if held.P is not None and held.codes is not None:
        labels = [str(label) for label in case.learned.classes]
        sure, called = np.max(held.P, axis=1), np.argmax(held.P, axis=1)
        own = held.P[np.arange(len(held.codes)), held.codes]
        head = ("row", "label", "taken for", "its probability", *titles)
        for title, rank in (("Where it is least sure", sure), ("The worst rows", own)):
            rows = tuple(
                (int(held.at[i]), labels[held.codes[i]], labels[called[i]], float(sure[i]), *values(i))
                for i in np.argsort(rank, kind="stable")[:WORST]
            )
            grids.append(Grid(title, head, rows))
    for output in held.outputs[:3]:
        which = f", {output.name}" if len(held.outputs) > 1 else ""
        head = ("row", "observed", "foretold", "lower 95", "upper 95", "off, in sd", *titles)
        wide = np.argsort(output.lower - output.upper, kind="stable")
        far = np.argsort(-np.abs(output.z), kind="stable")
        for title, rank in (("Where it is least sure", wide), ("The worst rows", far)):
            rows = tuple(
                (
                    int(held.at[output.rows[i]]),
                    float(output.y[i]),
                    float(output.mean[i]),
                    float(output.lower[i]),
                    float(output.upper[i]),
                    round(float(output.z[i]), 1),
                    *values(int(output.rows[i])),
                )
                for i in rank[:WORST]
            )
            grids.append(Grid(f"{title}{which}", head, rows))
    told = f"Rows are numbered from 0, as {'they were given' if held.tested else 'the model has them'}."
    return Section("rows", "Where it is least sure, and where it was wrong", (told,), grids=tuple(grids))


# Is it sound? -----------------------------------------------------------------------------------------------


def _sound(learned: Any) -> Section:
    outcome, fitted = learned.outcome, learned.first
    facts = [
        Fact(
            "search",
            f"{outcome.stopped} after {outcome.evaluations} evaluations from {outcome.starts}"
            f" start{'s' * (outcome.starts != 1)}",
        ),
        Fact("evidence", f"{learned.evidence}, in nats", learned.evidence.value),
        Fact(
            "jitter", f"{outcome.jitter:g} of the mean diagonal" if outcome.jitter else "none", outcome.jitter
        ),
        Fact(
            "parameters",
            f"{learned.n_parameters:,} searched on {learned.n_rows:,} rows",
            learned.n_parameters,
        ),
    ]
    told: list[str] = []
    if not learned.models:
        if (condition := _condition(fitted)) is not None:
            lost = np.log10(condition)
            text = (
                f"K + noise: at most about {condition:.1e}, so that some {lost:.0f} of 16 digits are"
                f" lost in solves"
            )
            facts.append(Fact("condition", text, condition))
        if (used := _effective(fitted)) is not None:
            text = f"about {used:.3g} of {fitted.n_rows:,}: as many numbers as f takes from the rows"
            facts.append(Fact("effective dimension", text, used))
        if fitted.inference.search == "none":
            chains = fitted.process.chains
            facts.append(Fact("R-hat", f"{chains.worst_rhat:.3f} at most; 1 is agreement", chains.worst_rhat))
        if (made := fitted.certificate) is not None:
            facts += [
                Fact("evidence, exact", f"from {made.evidence_lower} to {made.evidence_upper}"),
                Fact("error of f", f"rms {made.mean_error_rms}, largest {made.mean_error}"),
                Fact(
                    "error of its std", f"rms {made.std_error_rms}; a typical std is {made.typical_std:.4g}"
                ),
            ]
        elif not fitted.inference.exact and fitted.closed_form and fitted.has_rows:
            told.append(
                "How far the approximation is from exact inference is not known: certificate() before the"
                " report bounds it."
            )
    return Section("sound", "Is it sound?", tuple(told), tuple(facts))


def _condition(fitted: Any) -> float | None:
    """(largest eigenvalue of K + largest noise) / smallest noise, of closed-form models of few rows. The
    eigenvalue by powers of K on ones, whose entries are positive for the usual kernels."""
    if not (fitted.closed_form and fitted.has_rows) or fitted.model.deeper or fitted.n_rows > DENSE:
        return None
    rows, scale = fitted.rows, float(fitted.facts.scale[0])
    noise = np.full(len(rows.X), float(fitted.noise_of_outputs[0]))
    noise = (noise if rows.noise_var is None else noise + rows.noise_var) / scale**2
    if not np.min(noise) > 0:
        return None
    X = np.asarray(rows.X, dtype=np.float64)
    K = tiles.cross(fitted.model.kernel, X, X)
    v = np.ones(len(K))
    for _ in range(POWERS):
        v = K @ (v / np.linalg.norm(v))
    return float((np.linalg.norm(v) + np.max(noise)) / np.min(noise))


def _effective(fitted: Any) -> float | None:
    """tr K (K + D)^-1 = sum_i var f(x_i) / D_i, from some of the rows."""
    plain = fitted.closed_form and fitted.has_rows and fitted.inference.leaves_out_cheaply
    if not plain or fitted.model.deeper or fitted.inference.search == "none":
        return None
    n = fitted.n_rows
    at = np.arange(n)
    if (most := max(int(EFFECTIVE / n**2), 64)) < n:
        at = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
    noise = float(fitted.noise_of_outputs[0])
    D = noise if fitted.rows.noise_var is None else noise + fitted.rows.noise_var[at]
    if not np.min(D) > 0:
        return None
    var = fitted.latents(np.asarray(fitted.rows.X[at]))[1][:, 0]
    return float(n * np.mean(np.minimum(var / D, 1.0)))


# What was fitted. -------------------------------------------------------------------------------------------


def _fitted(learned: Any, base: Summary) -> Section:
    told = base["fitted"]
    n, d = learned.n_rows, len(learned.columns.names)
    facts = [Fact("rows", f"{n:,}", n), Fact("columns", f"{d:,}", d), *told.facts]
    q = 1 if learned.models else learned.first.n_functions
    held = _bytes(learned, n, d, q)
    if held:
        facts.append(Fact("memory", f"about {show_bytes(held)}, as planned", held))
    versions = {"gramian": __version__, "Python": platform.python_version()}
    versions |= {name: importlib.metadata.version(name) for name in PACKAGES}
    facts.append(Fact("report by", ", ".join(f"{name} {version}" for name, version in versions.items())))
    notes = next((section.sentences for section in base.sections if section.key == "notes"), ())
    grids = (*told.grids, _read(learned))
    return Section("fitted", "What was fitted, and how", (*told.sentences, *notes), tuple(facts), grids)


def _bytes(learned: Any, n: int, d: int, q: int) -> int:
    return 0 if learned.models else int(learned.first.inference.bytes_needed(n, d, q))


def _read(learned: Any) -> Grid:
    """The columns, how they were read, and what they hold."""
    columns, rows = learned.columns, None
    if not learned.models and learned.first.has_rows:
        X = learned.first.rows.X
        rows = np.asarray(X if len(X) <= MOST_READ else X[:: 2 * len(X) // MOST_READ])
    found = []
    for j, name in enumerate(columns.names):
        reading = columns.readings.get(j)
        kind = "numbers" if reading is None else "categories" if reading.categorical else reading.told
        if j in columns.categories:
            levels = columns.categories[j]
            found.append(
                (name, kind, f"{len(levels):,}: {', '.join(levels[:5])}{', ...' * (len(levels) > 5)}")
            )
        elif rows is not None:
            low, middle, high = (cell_of(columns, j, float(v)) for v in np.quantile(rows[:, j], [0, 0.5, 1]))
            found.append((name, kind, f"{low} to {high}, half below {middle}"))
        else:
            found.append((name, kind, ""))
    return Grid("Columns", ("column", "read as", "holds"), tuple(found))
