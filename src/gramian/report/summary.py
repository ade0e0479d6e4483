"""A fitted model as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from gramian.errors import visible
from gramian.report.quality import Quality
from gramian.report.relevance import Relevance

MOST_CLASSES, MOST_OUTPUTS, MOST_ENTRIES = 12, 4, 10  # that are listed
MOST_COLUMNS = 8
LISTED = ("NLPD", "MSLL", "CRPS", "Brier score", "ECE", "AUC")  # of the scores of left-out rows
_LONG_LIST = re.compile(r"\[([^\[\]]*)\]")


def summary(title: str, fitted: Any, full: bool = False) -> str:
    """One model on a page, or in full. `fitted` is an `estimators.fitted.Fitted`."""
    facts, outcome = fitted.facts, fitted.outcome
    n, d = facts.rows, facts.columns
    starts = f"{outcome.starts} start{'s' * (outcome.starts != 1)}"
    searched = f"{outcome.iterations} iterations, {outcome.evaluations} evaluations, {starts}"
    known, units, foot = _classes(fitted) if fitted.classes is not None else _numbers(fitted)
    targets = ", ".join(fitted.columns.targets)
    lines = [
        f"{title}{f' of {targets}' if targets else ''} on {n:,} rows, {d} column{'s' * (d != 1)}{known}",
        f"  kernel    {formula(fitted.kernel, full)}",
        *(f"            {formula(kernel, full)}" for kernel in fitted.model.others),
        *(f"  layer {own.number:<3} {formula(own.kernel, full)}" for own in fitted.model.deeper),
        f"  {_likelihood(fitted)}",
        *([f"  warp      {fitted.model.warp}"] if fitted.model.warp is not None else []),
        *_averaged(fitted.draws),
        *_calibration(fitted.calibration),
        f"  evidence  {fitted.evidence}, in nats{units}",
        f"  method    {outcome.method} ({outcome.reason}); {outcome.solver}",
        f"  fit       {outcome.stopped}; {searched}, {outcome.seconds:.2f} s",
        *(f"            {line}" for line in outcome.choice),
        *(f"            {stage}" for stage in outcome.stages if len(outcome.stages) > 1),
        *([f"  edited    {fitted.edits}"] if fitted.edits and any(fitted.edits[:2]) else []),
        f"  jitter    {outcome.jitter:g}" if outcome.jitter else "  jitter    none",
        *read(fitted.columns.told()),
        *_quality(fitted.quality),
        *_columns(fitted.shares),
        "",
        str(fitted.listed(full)),
    ]
    if fitted.inference.search == "none":
        lines += ["", str(fitted.process.chains)]
    lines += ["", foot] if foot else []
    return visible("\n".join(lines + noted(outcome.notes)))


def read(told: Sequence[str]) -> list[str]:
    """How the columns were read, a line each."""
    return [f"  {'read' if k == 0 else '':<8}  {line}" for k, line in enumerate(told)]


def _averaged(draws: Any) -> list[str]:
    if draws is None:
        return []
    what = f"averaged over {len(draws)} draws of the parameters from their posterior"
    return [f'  predicts  {what}, of which these are the best (hyper="map": by these alone)']


def _calibration(known: Any) -> list[str]:
    if known is None:
        return []
    text = f"  intervals standard deviations times {known.scale:.2f}"
    if known.widths is not None:
        text += ", more in some places and less in others"
    if not known.shares and known.widths is None:
        return [f"{text}: new rows are not those that parameters were fitted to"]
    if not known.shares:
        return [f"{text}, as left-out rows ask for"]
    wider = f"for {100 * sum(known.shares):.2g} % of the rows another {_range(known.wider)} times wider"
    return [f"{text}, and {wider}, as left-out rows ask for"]


def _range(wider: tuple[float, ...]) -> str:
    low, high = f"{wider[0]:.1f}", f"{wider[-1]:.1f}"
    return low if low == high else f"{low} to {high}"


def _quality(known: Quality) -> list[str]:
    first, *others = known.sentences
    lines = [f"  quality   {first}", *(f"            {sentence}" for sentence in others)]
    if known.scores is not None and len(known.scores.columns) == 1:
        shown = [
            f"{title} {value}"
            for title, value in known.scores.cells()[1:]
            if title in LISTED and value != "-"
        ]
        rows = known.scores.rows
        lines.append(f"            {', '.join(shown)} (leave-one-out, {rows:,} row{'s' * (rows != 1)})")
    return lines


def _columns(shares: Relevance | None) -> list[str]:
    if shares is None:
        return []
    shown = [f"{row.name} {100 * row.total:.0f} %" for row in shares.rows[:MOST_COLUMNS]]
    more = ", ..." if len(shares) > len(shown) else ""
    return [f"  columns   {', '.join(shown)}{more} (share of the variance of f's mean that needs each)"]


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


def _likelihood(fitted: Any) -> str:
    if fitted.noise is None:
        return f"likelihood {fitted.likelihood}"
    noise = np.atleast_1d(fitted.noise)
    names = [f"{name} " for name in fitted.columns.targets] if len(noise) > 1 else []
    names = names if len(names) == len(noise) else [""] * len(noise)
    pairs = list(zip(names, noise, strict=True))[:MOST_OUTPUTS]
    shown = [f"{name}{v:.4g} (standard deviation {np.sqrt(v):.4g})" for name, v in pairs]
    text = ", ".join(shown) + (", ..." if len(noise) > MOST_OUTPUTS else "")
    return f"noise     {text}" + (" and noise_var, row by row" if fitted.facts.known_noise else "")
