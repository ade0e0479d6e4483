"""A fitted model on a page: as text, as HTML and as JSON.

`gp.summary()` is this value with what is known at once; `gp.report()` (see `health`) the same with sections
on how good and how sound the model is, and findings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from gramian.errors import visible
from gramian.params.space import ParameterTable
from gramian.report.codes import CODES, Finding
from gramian.report.document import Fact, Grid, Section
from gramian.report.quality import Quality
from gramian.report.relevance import Relevance

MOST_CLASSES, MOST_OUTPUTS, MOST_ENTRIES = 12, 4, 10  # that are listed
MOST_COLUMNS = 8
MOST_PAIRS = 6  # of outputs
LISTED = ("NLPD", "MSLL", "CRPS", "Brier score", "ECE", "AUC")  # of the scores of left-out rows
_LONG_LIST = re.compile(r"\[([^\[\]]*)\]")


class Summary(str):
    """A model on a page. It is its own text, so that it prints, searches and compares as such; beside it are
    the sections, and what was found. `html()` and `json()` are the same for browsers and programs."""

    heading: str
    sections: tuple[Section, ...]
    findings: tuple[Finding, ...]
    passed: tuple[str, ...]  # codes of what was looked at and is well
    ignored: tuple[str, ...]  # codes that nobody wanted to hear of

    def __new__(
        cls,
        text: str,
        heading: str = "",
        sections: Sequence[Section] = (),
        findings: Sequence[Finding] = (),
        passed: Sequence[str] = (),
        ignored: Sequence[str] = (),
    ) -> Summary:
        made = super().__new__(cls, text)
        made.heading, made.sections = heading, tuple(sections)
        made.findings, made.passed, made.ignored = tuple(findings), tuple(passed), tuple(ignored)
        return made

    def __getitem__(self, key: Any) -> Any:
        """A part of the text; or a section by its key: summary["sound"]."""
        if not isinstance(key, str):
            return super().__getitem__(key)
        found = next((section for section in self.sections if section.key == key), None)
        if found is None:
            keys = ", ".join(section.key for section in self.sections)
            raise KeyError(f"no section {key!r}; there are {keys}")
        return found

    def to_dict(self) -> dict[str, Any]:
        """For programs: all of it in plain lists, words and numbers, those that are none as None."""
        return {
            "title": self.heading,
            "findings": [
                {"code": f.code, "level": f.level, "name": f.name, "text": f.text, "cure": f.cure}
                for f in self.findings
            ],
            "passed": [{"code": code, "name": CODES[code].passed} for code in self.passed],
            "ignored": list(self.ignored),
            "sections": {section.key: section.to_json() for section in self.sections},
        }

    def json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)

    def html(self) -> str:
        """One page that needs nothing else: no scripts, pictures inside."""
        from gramian.plots.health import page  # pictures are drawn where a page is wanted

        return page(self)

    def _repr_html_(self) -> str:
        """For notebooks: the tables, without pictures."""
        from gramian.report.html import fragment  # which needs Jinja2, and few need it

        return fragment(self)


def summary(title: str, fitted: Any, full: bool = False) -> Summary:
    """One model on a page, or in full. `fitted` is an `estimators.fitted.Fitted`."""
    facts, outcome = fitted.facts, fitted.outcome
    n, d = facts.rows, facts.columns
    starts = f"{outcome.starts} start{'s' * (outcome.starts != 1)}"
    searched = f"{outcome.iterations} iterations, {outcome.evaluations} evaluations, {starts}"
    known, units, foot = _classes(fitted) if fitted.classes is not None else _numbers(fitted)
    targets = ", ".join(fitted.columns.targets)
    head = f"{title}{f' of {targets}' if targets else ''} on {n:,} rows, {d} column{'s' * (d != 1)}{known}"
    told = [
        Fact("kernel", formula(fitted.kernel, full)),
        *(Fact("", formula(kernel, full)) for kernel in fitted.model.others),
        *(Fact(f"layer {own.number}", formula(own.kernel, full)) for own in fitted.model.deeper),
        *_outputs(fitted),
        _likelihood(fitted),
        *([Fact("warp", str(fitted.model.warp))] if fitted.model.warp is not None else []),
        *_averaged(fitted.draws),
        *_calibration(fitted.calibration),
        Fact("evidence", f"{fitted.evidence}, in nats{units}", fitted.evidence.value),
        Fact("method", f"{outcome.method} ({outcome.reason}); {outcome.solver}"),
        Fact("fit", f"{outcome.stopped}; {searched}, {outcome.seconds:.2f} s", outcome.seconds),
        *(Fact("", line) for line in outcome.choice),
        *(Fact("", str(stage)) for stage in outcome.stages if len(outcome.stages) > 1),
        *([Fact("edited", str(fitted.edits))] if fitted.edits and any(fitted.edits[:2]) else []),
        Fact("jitter", f"{outcome.jitter:g}" if outcome.jitter else "none", outcome.jitter),
        *read(fitted.columns.told()),
        *_quality(fitted.quality),
        *_columns(fitted.shares),
    ]
    listed = fitted.listed(full)
    lines = [head, *map(line_of, told), "", str(listed)]
    chains = str(fitted.process.chains) if fitted.inference.search == "none" else ""
    lines += ["", chains] if chains else []
    lines += ["", foot] if foot else []
    text = visible("\n".join(lines + noted(outcome.notes)))
    grids = (parameters_grid(listed),)
    sections = [Section("fitted", "What was fitted", (foot,) if foot else (), tuple(told), grids)]
    if outcome.notes:
        sections.append(Section("notes", "Notes", outcome.notes))
    return Summary(text, head, sections)


def line_of(fact: Fact) -> str:
    """A fact as a line of a summary."""
    return f"  {fact.name:<9} {fact.text}"


def parameters_grid(listed: ParameterTable) -> Grid:
    """The parameters as a table, with what they mean."""
    rows = tuple((row.name, row.value, row.prior, row.note) for row in listed.rows)
    more = sum(listed.left_out.values())
    title = "Parameters" + (f", {more} more of them are not shown" if more else "")
    return Grid(title, ("parameter", "value", "prior", "note"), rows, shown=60)


def _outputs(fitted: Any) -> list[Fact]:
    """What outputs have to do with each other."""
    known, names = fitted.output_correlations, fitted.output_names
    if known is not None:
        pairs = [(known[i, j], i, j) for i in range(len(known)) for j in range(i)]
        pairs.sort(key=lambda pair: -abs(pair[0]))
        shown = [f"{names[j]} and {names[i]} {r:+.2f}" for r, i, j in pairs[:MOST_PAIRS]]
        rest = ", ..." if len(pairs) > MOST_PAIRS else ""
        rank = ", ".join(str(one.rank) for one in fitted.model.outputs)
        what = f"coupled by functions that they share ({rank})"
        return [Fact("outputs", f"{what}; correlations of f: {', '.join(shown)}{rest}")]
    chain = fitted.output_chain
    if chain is None:
        return []
    facts = []
    for place, (name, link) in enumerate(chain):
        before = f", and of those before it by {formula(link)}" if link is not None else ""
        facts.append(Fact("outputs" if place == 0 else "", f"{place + 1}. {name}, of x{before}"))
    return facts


def read(told: Sequence[str]) -> list[Fact]:
    """How the columns were read, a line each."""
    return [Fact("read" if k == 0 else "", line) for k, line in enumerate(told)]


def _averaged(draws: Any) -> list[Fact]:
    if draws is None:
        return []
    what = f"averaged over {len(draws)} draws of the parameters from their posterior"
    return [Fact("predicts", f'{what}; shown are the best (hyper="map" predicts by these alone)')]


def _calibration(known: Any) -> list[Fact]:
    if known is None:
        return []
    text = f"standard deviations times {known.scale:.2f}"
    if known.widths is not None:
        text += ", more in some places and less in others"
    if not known.shares and known.widths is None:
        return [Fact("intervals", f"{text}: new rows are not those that parameters were fitted to")]
    if not known.shares:
        return [Fact("intervals", f"{text}, as left-out rows ask for")]
    wider = f"for {100 * sum(known.shares):.2g} % of the rows another {_range(known.wider)} times wider"
    return [Fact("intervals", f"{text}, and {wider}: what left-out rows ask for, and cannot exclude")]


def _range(wider: tuple[float, ...]) -> str:
    low, high = f"{wider[0]:.1f}", f"{wider[-1]:.1f}"
    return low if low == high else f"{low} to {high}"


def _quality(known: Quality) -> list[Fact]:
    first, *others = known.sentences
    lines = [Fact("quality", first), *(Fact("", sentence) for sentence in others)]
    if known.scores is not None and len(known.scores.columns) == 1:
        shown = [
            f"{title} {value}"
            for title, value in known.scores.cells()[1:]
            if title in LISTED and value != "-"
        ]
        rows = known.scores.rows
        lines.append(Fact("", f"{', '.join(shown)} (leave-one-out, {rows:,} row{'s' * (rows != 1)})"))
    return lines


def _columns(shares: Relevance | None) -> list[Fact]:
    if shares is None:
        return []
    shown = [f"{' '.join(row.name.split())} {100 * row.total:.0f} %" for row in shares.rows[:MOST_COLUMNS]]
    more = ", ..." if len(shares) > len(shown) else ""
    text = f"{', '.join(shown)}{more} (share of the variance of f's mean that needs each)"
    return [Fact("columns", text)]


def formula(kernel: Any, full: bool = False) -> str:
    """A kernel for reading; of long lists, unless in full, the first numbers and how many there are."""
    text = str(kernel)
    return text if full else _LONG_LIST.sub(_shortened, text)


def _shortened(match: re.Match[str]) -> str:
    entries = match[1].split(", ")
    few = len(entries) <= MOST_ENTRIES + 2
    return match[0] if few else f"[{', '.join(entries[:3])}, ... ({len(entries)} numbers)]"


def noted(notes: Sequence[str]) -> list[str]:
    """The notes of a fit as the last lines of its summary."""
    return ["", "Notes", *(f"  - {note}" for note in notes)] if notes else []


def _classes(fitted: Any) -> tuple[str, str, str]:
    """What is known of y, the units of the evidence, and a last line."""
    counted = zip(fitted.classes, fitted.class_counts(), strict=True)
    shown = [f"{label} ({count:,} rows)" for label, count in counted]
    more = ", ..." if len(shown) > MOST_CLASSES else ""
    return f", {len(shown)} classes", "", f"classes: {', '.join(shown[:MOST_CLASSES])}{more}"


def _numbers(fitted: Any) -> tuple[str, str, str]:
    scale = fitted.facts.scale
    known = f", {len(scale)} outputs" if len(scale) > 1 and fitted.closed_form else ""
    if not fitted.closed_form and not fitted.likelihood.location:
        return known, "", ""
    if not fitted.normalized:
        return known, ", of y", ""
    variances = ", ".join(f"{s**2:.4g}" for s in scale)
    foot = (
        f"kernel scales are in units of the variance of y ({variances}); noise and mean are in the units of y"
    )
    return known, ", of y divided by its standard deviation", foot


def _likelihood(fitted: Any) -> Fact:
    if fitted.noise is None:
        return Fact("likelihood", str(fitted.likelihood))
    noise = np.atleast_1d(fitted.noise)
    names = [f"{name} " for name in fitted.columns.targets] if len(noise) > 1 else []
    names = names if len(names) == len(noise) else [""] * len(noise)
    pairs = list(zip(names, noise, strict=True))[:MOST_OUTPUTS]
    shown = [f"{name}{v:.4g} (standard deviation {np.sqrt(v):.4g})" for name, v in pairs]
    text = ", ".join(shown) + (", ..." if len(noise) > MOST_OUTPUTS else "")
    beside = " and noise_var, row by row" if fitted.facts.known_noise else ""
    return Fact("noise", text + beside, noise.tolist())
