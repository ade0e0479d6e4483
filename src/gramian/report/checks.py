r"""What may be wrong with a model, looked for one after the other.

A check gives, for each code that it looks at, what it has found: nothing means that all is well, a code that
is absent could not be looked at. So that a good fit stays without findings, a check of numbers asks for both:
odds below CHANCE that it is chance, and an effect that matters.

    too narrow, too wide    the share of rows within their 95 % and 50 % intervals, against the binomial's
    off to one side         the mean normal score, against N(0, 1 / n)
    residuals follow x_j    one-way analysis of variance of normal scores z over up to BINS parts of a column:
                            F = (between / (b - 1)) / (within / (m - b)), eta^2 = between / (between + within)
    wider in some places    the same of |z| (Levene 1960), over each column and over the foretold mean
    too sure of classes     the mean of the largest probability less the share of right labels, against its
                            standard error sqrt(sum p (1 - p)) / m
    a season                the spectrum of Lomb and Scargle (`series.spectrum`), of a kernel without a wave
    overfitted              `fitting.folds`: rows that the search has not seen, beside left-out rows
    time                    the last fifth of the rows in time from all before them, beside left-out rows
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from gramian.arrays import Array
from gramian.data.inputs import some_of
from gramian.errors import GramianError
from gramian.fitting.folds import foretold
from gramian.gram import tiles
from gramian.report.codes import Finding, code_of
from gramian.report.held import Held, Output
from gramian.report.quality import MOST, ROWS_A_PARAMETER, some_rows
from gramian.report.relevance import Relevance, affordable
from gramian.report.rows import FEW as FEW_ROWS
from gramian.report.rows import MANY, TIMES
from gramian.series.spectrum import suggested

CHANCE = 1e-4  # odds of a finding where nothing is wrong
FEWEST = 20  # rows, for what is said of many together
NARROW, WIDE = 0.05, 0.15  # of coverage, that a 95 % interval may miss and a 50 % interval may exceed
OFF = 0.25  # standard deviations, on average
# robust standard deviations that a few rows are off by, who then make all scores; of t(3) one in 5,000 is
FAR, MOST_FAR = 15.0, 0.02
BEYOND_ITS_OWN = 1.0  # widths of its own 95 % interval, four standard deviations: a row nobody knows is wide
BINS, FOLLOWED, WIDER = 10, 0.1, 0.1  # parts of a column; shares of variance that go with it
WORSE = 1.25  # times the error of something simpler
LITTLE = 0.01  # of the average's error, that is no gain
IRRELEVANT = 0.002  # of the variance of f's mean
COPY = 0.9999  # rank correlation of a column with y
UNSURE = 0.08  # of probabilities
FEW_LABELS = 5  # rows of a class
SEASONAL, GOES_ON = 0.3, 0.2  # of the variance without a trend
# how often at least; of 300 draws of a Matern process, 15 have a wave as clear with four or five cycles, and
# one with more
CYCLES = {True: 4.0, False: 6.0}  # of the calendar, of others
FOLDS_COST = 2e7  # rows squared times parameters, up to which folds take a few seconds
UNSEEN, UNSEEN_ERROR = 1.35, 1.5  # times as far off as left-out rows, in standard deviations and in y
AHEAD, AHEAD_ROWS = 2.0, 2000
BEYOND, SOME, FEW_BEYOND = 0.1, 0.05, 3  # of a column's range; of the rows, and so many at least
PRIOR = 0.9  # of the prior's variance
LESS = 0.3  # nats a row
OF_SCORES = frozenset(("Q001", "Q002", "Q003", "Q004", "Q005", "Q006", "Q007"))
ERROR = 0.25  # of a typical standard deviation of f, that an approximation may be off

Found = dict[str, list[Finding]]


def sentence(text: str) -> str:
    """With a capital."""
    return text[:1].upper() + text[1:]


@dataclass(frozen=True, eq=False)
class Case:
    """A model, and how its predictions did."""

    learned: Any  # an estimators.learned.Learned
    held: Held | None  # what scores are of: given rows, or left-out ones
    left_out: Held | None
    table: Array | None = None  # the given rows, as the model reads them

    @property
    def fitted(self) -> Any:
        return self.learned.first

    @property
    def names(self) -> tuple[str, ...]:
        return self.learned.columns.names

    @property
    def whole(self) -> bool:
        """Whether it is one model, with its rows."""
        return not self.learned.models and self.fitted.has_rows

    def numeric(self) -> list[int]:
        return [j for j in range(len(self.names)) if j not in self.learned.columns.categories]


def checks() -> tuple[tuple[str, Callable[[Case], Found]], ...]:
    """Each with what it looks at, for people who wait."""
    return (
        ("notes of the fit", of_fit),
        ("columns", of_columns),
        ("predictions", of_predictions),
        ("classes", of_classes),
        ("rows that the search has not seen", of_search),
        ("time and seasons", of_time),
        ("the approximation", of_approximation),
        ("given rows", of_given),
    )


def with_causes(findings: list[Finding], tested: bool) -> list[Finding]:
    """Rows beyond the data are foretold badly by any kernel: their scores send nobody to another one."""
    if not tested or not any(found.code == "X001" for found in findings):
        return findings
    first = "See X001 first: rows beyond the data may be all of it."
    return [
        replace(found, cure=f"{first} {found.cure}") if found.code in OF_SCORES else found
        for found in findings
    ]


# What fits say of themselves. -------------------------------------------------------------------------------

FLOOR = (
    "That is right for numbers which a program computed. Of measurements look for rows that are copies, or"
    " give the noise that is known: noise=0.01, a variance."
)
CURES = {
    "F001": "Give it more time, or more iterations.",
    "P002": FLOOR,
    "P004": "Then f is little more than noise: give the lengthscale a prior, or the model other columns.",
}


def of_fit(case: Case) -> Found:
    outcome, fitted, rows = case.learned.outcome, case.fitted, case.learned.n_rows
    found: Found = {code: [] for code in ("F001", "F002", "F003")}
    if case.whole:
        found |= {"D001": [], "D004": []} if rows > 1 else {}
        gaussian = fitted.closed_form and fitted.single
        if rows > FEW_ROWS:
            words = bool(case.learned.columns.categories)
            found |= {"L001": [], "D010": []} if len(case.names) > 1 or words else {}
            found |= {"D011": [], "D012": []} if words else {}
            found |= {"D002": []} if fitted.rows.X.size <= MANY else {}
            found |= {"D005": [], "D006": []} if gaussian and fitted.model.warp is None else {}
    if outcome.stopped not in ("not optimised", "nothing to optimise"):
        found |= {"P001": []}
        found |= {"P002": []} if fitted.closed_form and fitted.model.gaussian.noise.trainable else {}
        found |= {"P004": []} if not fitted.model.deeper else {}
        found |= {"P005": []} if len(fitted.model.kernel.summands) > 1 and not fitted.model.deeper else {}
    if fitted.inference.search == "none":
        found["F005"] = []
    for note in outcome.notes:
        code = code_of(note)
        if code is not None and code != "P003":  # by what columns do to f, below
            text, _, cure = note.partition(". ")
            if code == "P002":  # whose name says it already
                text = sentence(text.replace("at its floor: ", "").removeprefix("noise: "))
            told = Finding(code, f"{text.rstrip('.')}.", cure or CURES.get(code, ""))
            found.setdefault(code, []).append(told)
    if not outcome.converged and outcome.stopped != "sampled" and not found["F001"]:
        found["F001"].append(Finding("F001", f"It ended by: {outcome.stopped}."))
    return found


# Columns. ---------------------------------------------------------------------------------------------------


def of_columns(case: Case) -> Found:
    found: Found = {}
    if len(case.names) < 2:
        return found
    shares = shares_of(case.learned)
    told = [note for note in case.learned.outcome.notes if code_of(note) == "P003"]
    if shares is not None:
        still = set()  # constant columns, which have a code of their own
        if case.whole:
            still = {case.names[j] for j in np.flatnonzero(np.ptp(case.fitted.rows.X, axis=0) == 0)}
        idle = [row.name for row in shares if row.total < IRRELEVANT and row.name not in still]
        found["P003"] = [_idle(idle)] if 0 < len(idle) < len(shares) else []
    elif told:
        found["P003"] = [Finding("P003", note) for note in told]
    if case.whole and case.learned.n_rows >= FEWEST:
        given_away = _given_away(case)
        found["L002"] = [given_away] if given_away is not None else []
    if case.learned.classes is not None and (seen := case.learned.labelled_rows()) is not None:
        counts = np.bincount(seen.codes, minlength=len(case.learned.classes))
        few = [f"{case.learned.classes[c]} ({counts[c]})" for c in np.flatnonzero(counts < FEW_LABELS)]
        text = f"{some_of(few)}: with so few rows little can be learned or said of them."
        found["D008"] = [Finding("D008", text, "Gather more, or join classes.")] if few else []
    return found


def shares_of(learned: Any) -> Relevance | None:
    """Which columns matter, where that takes no longer than for a summary."""
    if not learned.models:
        return learned.shares
    rows, seen = affordable(learned.n_rows * len(learned.models), len(learned.columns.names)), None
    if rows and len(learned.columns.names) > 1:
        seen = learned.labelled_rows()
    return None if seen is None else learned.relevance(rows)


def _idle(names: list[str]) -> Finding:
    one = len(names) == 1
    some = f"{names[0]!r} changes" if one else f"{some_of(names)} ({len(names)} columns) change"
    cure = f"{'It' if one else 'They'} can be left out: fits are quicker, and with few rows better."
    return Finding("P003", f"{some} predictions by less than {100 * IRRELEVANT:g} % of their variance.", cure)


def _given_away(case: Case) -> Finding | None:
    """A column that has the order of y, or names its classes."""
    at = some_rows(case.learned.n_rows, MOST)
    X, cure = (
        np.asarray(case.fitted.rows.X[at]),
        "If it is known only with the target, or after it, leave it out.",
    )
    if case.learned.classes is not None:
        codes = case.fitted.rows.Y[at, 0].astype(int)
        for j, name in enumerate(case.names):
            values, inverse = np.unique(X[:, j], return_inverse=True)
            if len(values) == len(case.learned.classes):
                pairs = np.unique(np.column_stack([inverse.reshape(-1), codes]), axis=0)
                if len(pairs) == len(values):
                    return Finding(
                        "L002", f"Column {name!r} has one value for each class, and no other.", cure
                    )
        return None
    Y = case.fitted.targets_of_rows()[at]
    for k in range(Y.shape[1]):
        seen = np.isfinite(Y[:, k])
        ranks = stats.rankdata(Y[seen, k])
        for j in case.numeric():
            x = X[seen, j]
            if len(x) < FEWEST or np.ptp(x) == 0 or np.ptp(ranks) == 0 or len(np.unique(x)) < FEWEST:
                continue
            if abs(np.corrcoef(stats.rankdata(x), ranks)[0, 1]) >= COPY:
                text = f"Column {case.names[j]!r} has the order of the target in every row."
                return Finding("L002", text, cure)
    return None


# Predictions of numbers. ------------------------------------------------------------------------------------


def of_predictions(case: Case) -> Found:
    held = case.held
    if held is None or not held.outputs:
        return {}
    found: Found = {}
    several = len(held.outputs) > 1
    for k, output in enumerate(held.outputs):
        if len(output.y) >= FEWEST:
            which = f"{output.name}: " if several else ""
            for code, finding in _of_output(case, held, k, output):
                found.setdefault(code, [])
                if finding is not None:
                    text, cure = finding
                    found[code].append(Finding(code, f"{which}{text}", cure))
    return found


Told = tuple[str, tuple[str, str] | None]


def _of_output(case: Case, held: Held, k: int, output: Output) -> Iterator[Told]:
    rmse = float(held.scores.columns[k]["rmse"])
    rivals = {rival.name: rival.numbers[k] for rival in held.rivals}
    rows, average = sentence(held.what), rivals.pop("the average", np.inf)
    if np.isfinite(average):
        bad = rmse >= (1 - LITTLE) * average
        text = f"{rows} are foretold with an error of {rmse:.3g}, the average with {average:.3g}."
        cure = (
            "The columns may tell nothing of the target; if they should, try other columns, another kernel,"
            " or more restarts (n_restarts=5)."
        )
        yield "Q001", (text, cure) if bad else None
        if rivals and not bad:
            best = min(rivals, key=lambda name: rivals[name])
            text = (
                f"{rows} are foretold with an error of {rmse:.3g}, {best} would do with {rivals[best]:.3g}."
            )
            cure = (
                "The search may have ended in a bad place (n_restarts=5), the kernel be too smooth, or the"
                ' method too rough: leave kernel and method to the data (no kernel, method="auto").'
            )
            yield "Q002", (text, cure) if rmse > WORSE * rivals[best] else None
    yield from _intervals(held, output)
    z, m = output.z, len(output.z)
    off = float(np.mean(z))
    side = "low" if off > 0 else "high"
    text = f"They are too {side} by {abs(off):.2f} standard deviations on average."
    cure = "Were the rows measured as those of the fit were?" if held.tested else "Look at the mean: mean=..."
    if case.whole and case.fitted.closed_form and case.fitted.rows.excess is None:
        yield "D007", _far_off(held, output)
    lopsided = abs(off) > OFF and 2 * stats.norm.sf(abs(off) * np.sqrt(m)) < CHANCE
    yield "Q005", (text, cure) if lopsided else None
    yield from _along_columns(case, held, output)


def _far_off(held: Held, output: Output) -> tuple[str, str] | None:
    """Rows that no tail accounts for, where the fit itself has taken none for outliers."""
    off = np.abs(output.y - output.mean)
    usual = float(np.median(off)) / stats.norm.ppf(0.75)
    far = np.flatnonzero((off > FAR * usual) & (off > BEYOND_ITS_OWN * (output.upper - output.lower)))
    if not usual > 0 or not 0 < len(far) <= max(1, MOST_FAR * len(off)):
        return None
    worst = far[np.argsort(-off[far], kind="stable")]
    named = ", ".join(str(int(output.rows[i])) for i in worst[:FEW_BEYOND])
    one, more = len(far) == 1, f" and {len(far) - FEW_BEYOND} more" if len(far) > FEW_BEYOND else ""
    text = (
        f"Row{'' if one else 's'} {named}{more} {'is' if one else 'are'} foretold with an error of"
        f" {off[worst[0]]:.3g}{'' if one else ' or less'}, half of the {held.what} with less than"
        f" {np.median(off):.3g}: {'it makes' if one else 'they make'} most of all scores."
    )
    cure = 'Correct mistakes; if they are none, give a likelihood with longer tails: likelihood="student-t".'
    return text, cure


def _intervals(held: Held, output: Output) -> Iterator[Told]:
    m, distance = len(output.pit), np.abs(output.pit - 0.5)
    inside = {level: int(np.sum(distance <= level / 2)) for level in (0.95, 0.5)}
    share95, share50 = inside[0.95] / m, inside[0.5] / m
    narrow = share95 < 0.95 - NARROW and stats.binom.cdf(inside[0.95], m, 0.95) < CHANCE
    text = f"95 % intervals hold {100 * share95:.0f} % of the {held.what}."
    cure = (
        'Without a kernel, and with hyper="auto", intervals are corrected by left-out rows; or give a'
        ' likelihood with longer tails: likelihood="student-t".'
    )
    if held.tested:
        cure = f"If these rows are of the same kind as those of the fit: {cure[0].lower()}{cure[1:]}"
    yield "Q003", (text, cure) if narrow else None
    if not held.discrete:  # whole numbers fill their intervals by steps
        wide = share50 > 0.5 + WIDE and stats.binom.sf(inside[0.5] - 1, m, 0.5) < CHANCE
        text = f"50 % intervals hold {100 * share50:.0f} % of the {held.what}."
        cure = (
            "They promise less than they could: a few outliers, or a noise that may not become smaller, can"
            " widen them for all."
        )
        yield "Q004", (text, cure) if wide else None


def _along_columns(case: Case, held: Held, output: Output) -> Iterator[Told]:
    """What residuals do along each column, the clearest."""
    z, X = output.z, held.X[output.rows]
    columns = [(name, X[:, j]) for j, name in enumerate(case.names) if np.isfinite(X[:, j]).all()]
    if not columns:
        return
    known = [(*_anova(values, z), name) for name, values in columns]
    odds, share, name = min(known, key=lambda own: (own[0], -own[1]))
    text = f"Along {name!r} they are off by more than chance ({100 * share:.0f} % of their variance)."
    cure = (
        "The kernel may be too smooth along it, or the column read as a number where it is a category: leave"
        " the kernel to the data, or give a lengthscale a column."
    )
    yield "Q006", (text, cure) if odds * len(columns) < CHANCE and share > FOLLOWED else None
    if held.discrete:
        return  # a residual among few values is as wide as the steps between them
    columns.append(("the foretold mean", output.mean))
    known = [(*_anova(values, np.abs(z)), name) for name, values in columns]
    odds, share, name = min(known, key=lambda own: (own[0], -own[1]))
    what = name if name == "the foretold mean" else repr(name)
    text = f"Along {what} errors are wider in some places than intervals say, and narrower in others."
    cure = (
        "Without a kernel the widths of intervals follow the rows; known variances of rows go to fit(X, y,"
        " noise_var=...), and a target that spreads with its size asks for its logarithm, or a warp."
    )
    yield "Q007", (text, cure) if odds * len(columns) < CHANCE and share > WIDER else None


def _anova(x: Array, z: Array) -> tuple[float, float]:
    """The odds that z has one mean in all parts of x, and the share of its variance between them."""
    values = np.unique(x)
    if len(values) <= BINS:
        part = np.searchsorted(values, x)
    else:
        edges = np.unique(np.quantile(x, np.linspace(0, 1, BINS + 1)[1:-1]))
        part = np.searchsorted(edges, x, side="right")
    _, part, counts = np.unique(part, return_inverse=True, return_counts=True)
    part, groups, m = part.reshape(-1), len(counts), len(z)
    if groups < 2 or m <= groups + 1:
        return 1.0, 0.0
    means = np.bincount(part, z) / counts
    within = float(np.sum((z - means[part]) ** 2))
    between = float(np.sum(counts * (means - np.mean(z)) ** 2))
    if within <= 0:
        return 1.0, 0.0
    F = (between / (groups - 1)) / (within / (m - groups))
    return float(stats.f.sf(F, groups - 1, m - groups)), between / (between + within)


# Classes. ---------------------------------------------------------------------------------------------------


def of_classes(case: Case) -> Found:
    held = case.held
    if held is None or held.P is None or held.codes is None or len(held.codes) < FEWEST:
        return {}
    found: Found = {"C001": [], "C002": []}
    loss, m = float(held.scores.columns[0]["log_loss"]), len(held.codes)
    rivals = {rival.name: rival.numbers for rival in held.rivals}
    if shares := rivals.pop("the shares of the classes", None):
        bad = loss >= (1 - LITTLE) * shares[1]
        text = (
            f"{sentence(held.what)} have a log loss of {loss:.3g}, the shares of the classes alone"
            f" {shares[1]:.3g}."
        )
        cure = (
            "The columns may tell nothing of the labels; if they should, try other columns or another kernel."
        )
        found["Q001"] = [Finding("Q001", text, cure)] if bad else []
        if rivals and not bad:
            name, (right, _) = next(iter(rivals.items()))
            own = float(held.scores.columns[0]["accuracy"])
            clear = right - own > 4 * np.sqrt(max(right * (1 - right), 0.01) / m)
            text = f"{100 * own:.0f} % of the labels are right, by {name} {100 * right:.0f} %."
            cure = "The search may have ended in a bad place: n_restarts=5, or another kernel."
            found["Q002"] = [Finding("Q002", text, cure)] if clear else []
    sure = np.max(held.P, axis=1)
    right = np.argmax(held.P, axis=1) == held.codes
    gap = float(np.mean(sure) - np.mean(right))
    odds = stats.norm.sf(abs(gap) * m / np.sqrt(max(float(np.sum(sure * (1 - sure))), 1e-12)))
    if abs(gap) > UNSURE and odds < CHANCE:
        code = "C001" if gap > 0 else "C002"
        text = (
            f"The most probable label has {100 * np.mean(sure):.0f} % on average, and is right for"
            f" {100 * np.mean(right):.0f} % of the {held.what}."
        )
        cure = (
            "Labels of new rows may be drawn otherwise than those of the fit."
            if held.tested
            else 'Try inference="ep", a kernel with a lower scale, or look for rows that repeat.'
        )
        found[code].append(Finding(code, text, cure))
    return found


# The search. ------------------------------------------------------------------------------------------------


def of_search(case: Case) -> Found:
    fitted, outcome = case.fitted, case.learned.outcome
    if case.learned.models or not outcome.evaluations or fitted.draws is not None:
        return {}
    n, p = fitted.n_rows, fitted.n_parameters
    few = n < ROWS_A_PARAMETER * p
    text = f"{p} parameters were searched for on {n:,} rows."
    cure = (
        'Intervals count what is not known of them with hyper="average"; priors, fewer columns or one'
        " lengthscale for all leave less to be found."
    )
    found: Found = {"Q009": [Finding("Q009", text, cure)] if few else []}
    affordable = n >= FEWEST and n * n * p <= FOLDS_COST
    if few and affordable and fitted.has_rows and fitted.closed_form and fitted.n_functions == 1:
        if fitted.inference.exact and not fitted.model.deeper and case.left_out is not None:
            overfitted = _overfitted(case, cure)
            if overfitted is not None:
                found["Q008"] = overfitted
    elif not few and case.left_out is not None:
        found["Q008"] = []
    if found.get("Q008"):
        found["Q009"] = []  # which says the same, more gently
    return found


def _overfitted(case: Case, cure: str) -> list[Finding] | None:
    fitted, held = case.fitted, case.left_out
    assert held is not None
    folds = foretold(fitted.model, fitted.rows, fitted.inference)
    if folds is None or not np.isfinite(folds.residual).any():
        return None
    residual = np.clip(folds.residual[np.isfinite(folds.residual)], -7.0, 7.0)
    scale = 1.0 if fitted.calibration is None else fitted.calibration.scale
    spread = float(np.sqrt(np.mean(residual**2))) / scale
    usual = float(np.sqrt(np.mean(held.outputs[0].z ** 2)))
    if spread > UNSEEN * max(usual, 1.0):
        text = (
            f"Rows that the search had not seen are {spread:.1f} times as far off as intervals say; left-out"
            f" rows, which it had seen, {usual:.1f} times."
        )
        return [Finding("Q008", text, cure)]
    if fitted.model.warp is None:
        unseen = float(np.sqrt(np.nanmean((fitted.rows.Y[:, 0] - folds.mean) ** 2)))
        seen = float(held.scores.columns[0]["rmse"])
        if unseen > UNSEEN_ERROR * seen:
            text = (
                f"Rows that the search had not seen are foretold with an error of {unseen:.3g}, left-out"
                f" rows, which it had seen, with {seen:.3g}."
            )
            return [Finding("Q008", text, cure)]
    return []


# Time. ------------------------------------------------------------------------------------------------------


def of_time(case: Case) -> Found:
    fitted = case.fitted
    plain = case.whole and fitted.closed_form and fitted.n_functions == 1 and not fitted.model.deeper
    if not plain or fitted.n_rows < FEWEST or not fitted.inference.leaves_out_cheaply:
        return {}
    found: Found = {}
    numeric, columns = case.numeric(), case.learned.columns
    dated = [j for j in numeric if (own := columns.readings.get(j)) is not None and own.origin is not None]
    named = [j for j in numeric if case.names[j].lower() in TIMES and _steady(fitted.rows.X[:, j])]
    times = dated or named
    if len(case.names) == 1 and numeric:
        found["S001"] = _season(case, 0, bool(dated))
    elif times:
        found["S001"] = _season(case, times[0], bool(dated))
    if times and FEWEST * 5 <= fitted.n_rows <= AHEAD_ROWS and case.left_out is not None:
        found["L003"] = _ahead(case, times[0])
    return found


def _steady(x: Array) -> bool:
    """Whether numbers rise with the rows, as times do that were written down as they passed."""
    steps = np.diff(np.asarray(x))
    return bool(np.all(steps >= 0) and np.any(steps > 0))


def _season(case: Case, j: int, dated: bool) -> list[Finding]:
    """What comes back in y, or in what other columns leave of it, that no part of the kernel repeats."""
    fitted = case.fitted
    paths = {path.rpartition(".")[2] for path in fitted.model.kernel.parameters()}
    if paths & {"period", "means"}:
        return []
    x, y = np.asarray(fitted.rows.X[:, j]), fitted.rows.under(fitted.model).Y[:, 0]
    known = np.isfinite(y)
    t, inverse = np.unique(x[known], return_inverse=True)
    if len(t) < 2 * FEWEST:
        return []
    y = np.bincount(inverse.reshape(-1), y[known]) / np.bincount(inverse.reshape(-1))
    reading = case.learned.columns.readings.get(j)
    days = reading.days if dated and reading is not None and reading.days is not None else 1.0
    t = t * days
    span, step = float(t[-1] - t[0]), float(np.median(np.diff(t)))
    for season in suggested(t, y, step, dated, np.random.default_rng(0)):
        share, goes_on = _wave(t, y, season.period)
        if span >= CYCLES[season.known] * season.period and share > SEASONAL and goes_on > GOES_ON:
            length = f"{season.period:.4g} days" if dated else f"{season.period:.4g}"
            every = f"every {season.name} ({length})" if season.known else f"every {length}"
            text = (
                f"Along {case.names[j]!r} the target comes back {every}, which is {100 * share:.0f} % of its"
                " variance. The kernel follows it between rows and forgets it beyond them."
            )
            unit = float(days) if dated else 1.0
            cure = (
                "Add a part that repeats to the kernel, such as Periodic(1.0,"
                f" {season.period / unit:.4g}) * RBF({max(10 * season.period, span) / unit:.3g}), or take"
                " GPForecaster."
            )
            return [Finding("S001", text, cure)]
    return []


def _wave(t: Array, y: Array, period: float) -> tuple[float, float]:
    """What a wave with one harmonic explains of y without a cubic trend, as a share; and what that of one
    half explains of the other, where a passing swing explains nothing."""
    u = (t - t[0]) / (t[-1] - t[0])
    angles = [2 * np.pi * k * t / period for k in (1, 2)]
    waves = np.column_stack([wave for angle in angles for wave in (np.sin(angle), np.cos(angle))])
    B = np.hstack([np.vander(2 * u - 1, 4), waves])
    coefficients = np.linalg.lstsq(B, y, rcond=None)[0]
    flat = y - B[:, :4] @ coefficients[:4]
    whole = float(np.sum((flat - np.mean(flat)) ** 2))
    if whole <= 0:
        return 0.0, 0.0
    share = 1 - float(np.sum((y - B @ coefficients) ** 2)) / whole
    across = 0.0
    for own, other in ((u <= 0.5, u > 0.5), (u > 0.5, u <= 0.5)):
        found = np.linalg.lstsq(waves[own], flat[own], rcond=None)[0]
        across += float(np.sum((flat[other] - waves[other] @ found) ** 2))
    return share, 1 - across / whole


def _ahead(case: Case, j: int) -> list[Finding]:
    """The last fifth of the rows in time, foretold by those before it at the same parameters."""
    fitted, held = case.fitted, case.left_out
    assert held is not None
    x = np.asarray(fitted.rows.X[:, j])
    order = np.argsort(x, kind="stable")
    cut = len(order) - len(order) // 5
    before, after = np.sort(order[:cut]), np.sort(order[cut:])
    try:
        past = fitted.conditioned(fitted.rows.take(before), fitted.inference, np.random.default_rng(0))
        mean = np.ravel(past.function(np.asarray(fitted.rows.X[after])).mean)
    except GramianError:
        return []
    y = fitted.rows.Y[after, 0]
    ahead = float(np.sqrt(np.nanmean((y - mean) ** 2)))
    output = held.outputs[0]
    last = np.isin(held.at[output.rows], after)
    between = float(np.sqrt(np.mean((output.y - output.mean)[last] ** 2))) if last.any() else np.inf
    if not ahead > AHEAD * between:
        return []
    text = (
        f"By {case.names[j]!r}, the last fifth of the rows has an error of {ahead:.3g} where all rows before"
        f" it are known, and of {between:.3g} where the rows around each are known as well."
    )
    cure = (
        "If new rows are later ones, the scores here are too good: hold the last rows back (--data), and give"
        " time a kernel that goes on (Linear, Periodic), or leave it out."
    )
    return [Finding("L003", text, cure)]


# Approximations. --------------------------------------------------------------------------------------------


def of_approximation(case: Case) -> Found:
    made = None if case.learned.models else case.fitted.certificate
    if made is None:
        return {}
    worst = max(made.mean_error_rms.value, made.std_error_rms.value)
    text = (
        f"The root mean square error of f is {made.mean_error_rms.value:.3g}, of its standard deviation"
        f" {made.std_error_rms.value:.3g}; a typical standard deviation of f is {made.typical_std:.3g}."
    )
    cure = "More inducing points, landmarks or features, another method, or exact inference (see plan())."
    bad = worst > ERROR * made.typical_std
    return {"A001": [Finding("A001", text, cure)] if bad else []}


# Given rows. ------------------------------------------------------------------------------------------------


def of_given(case: Case) -> Found:
    table, held = case.table, case.held
    if table is None:
        return {}
    found: Found = {"X002": []}
    if new := case.learned.columns.new_categories(table):
        told = ", ".join(f"{name} ({count:,} rows)" for name, count in new.items())
        cure = "They are predicted as unlike all others. Fit again with such rows."
        found["X002"].append(Finding("X002", f"{told}.", cure))
    if case.whole:
        found["X001"] = _beyond(case, table)
    other = case.left_out
    if held is not None and held.tested and other is not None and not found.get("X001"):
        found["X003"] = _worse_than_left_out(held, other)
    return found


def _beyond(case: Case, table: Array) -> list[Finding]:
    fitted, beyond = case.fitted, []
    out: NDArray[np.bool_] = np.zeros(len(table), dtype=bool)
    for j in case.numeric():
        seen, x = np.asarray(fitted.rows.X[:, j]), table[:, j]
        low, high = float(np.min(seen)), float(np.max(seen))
        room = BEYOND * (high - low)
        with np.errstate(invalid="ignore"):
            own = (x < low - room) | (x > high + room)
        if np.mean(own) > SOME and np.sum(own) >= FEW_BEYOND:
            beyond.append(f"{case.names[j]} ({np.sum(own):,} rows beyond {low:.4g} to {high:.4g})")
        out |= own
    if not beyond:
        return []
    text = f"{np.sum(out):,} of {len(table):,} rows: {some_of(beyond)}."
    if not fitted.model.deeper and np.isfinite(table[out]).all():
        rows = table[out][:MOST]
        try:
            var = fitted.latents(rows)[1][:, 0]
        except GramianError:
            var = None
        if var is not None:
            prior = tiles.diagonal(fitted.model.kernel, rows) * float(fitted.facts.scale[0]) ** 2
            lost = float(np.mean(var > PRIOR * prior))
            text += (
                f" For {100 * lost:.0f} % of these the model knows next to nothing more than before any data."
            )
    return [Finding("X001", text, "Believe the intervals, not the means; or fit with rows from there.")]


def _worse_than_left_out(held: Held, other: Held) -> list[Finding]:
    pairs: list[tuple[str, Array, Array]] = []
    if held.P is not None and other.P is not None:
        pairs.append(("", _label_density(held), _label_density(other)))
    elif held.outputs and len(held.outputs) == len(other.outputs):
        several = len(held.outputs) > 1
        for new, old in zip(held.outputs, other.outputs, strict=True):
            pairs.append((f"{new.name}: " if several else "", new.density, old.density))
    found = []
    for which, density, usual in pairs:
        if min(len(density), len(usual)) < FEWEST:
            continue
        lost = float(np.mean(usual) - np.mean(density))
        error = float(np.sqrt(np.var(density) / len(density) + np.var(usual) / len(usual)))
        if lost > LESS and lost > 4 * error:
            text = (
                f"{which}Their log density is {np.mean(density):.3g} a row, that of left-out rows of the fit"
                f" {np.mean(usual):.3g}."
            )
            cure = (
                "Were they drawn in another way, or later? Else the search has followed the rows of the fit:"
                " see Q008 and Q009."
            )
            found.append(Finding("X003", text, cure))
    return found


def _label_density(held: Held) -> Array:
    assert held.P is not None
    assert held.codes is not None
    return np.log(np.maximum(held.P[np.arange(len(held.codes)), held.codes], 1e-12))
