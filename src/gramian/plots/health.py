"""The pictures of a report, each from its own data (`report.document.Picture`), as SVG inside the page.

Colours become variables of the page's style, so that one picture serves light, dark and paper; numbers are
cut to hundredths of a point, which halves them; names in a picture are its own, so that pictures do not mix.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gramian.errors import visible
from gramian.plots.common import BLUE, GREEN, INK, ORANGE, in_lines
from gramian.report import html
from gramian.report.document import Picture, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramian.report.summary import Summary

SIZE = (4.2, 3.1)  # inches
GRID = "#bbbbbb"
VARIABLES = {INK: "--ink", BLUE: "--blue", ORANGE: "--orange", GREEN: "--green", GRID: "--grid"}
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "font.size": 9.0,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.usetex": False,
    "text.parse_math": False,  # a name may have dollar signs
    "axes.unicode_minus": False,
}
LONG, LINE, TICK = 22, 30, 14  # letters of a name, of a line of one, and of one below a tick
DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1)), (0, (1, 1)))

NEAREST = 0.08  # of an axis, from one number below it to the next


def page(summary: Summary) -> str:
    """A summary as one HTML page with its pictures."""
    return html.page(summary, svg)


def svg(picture: Picture) -> str:
    """A picture as an SVG element."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    text = json.dumps([picture.kind, picture.title, plain(picture.data)], sort_keys=True)
    own = hashlib.sha256(text.encode()).hexdigest()[:10]
    with mpl.rc_context({**STYLE, "svg.hashsalt": own}), io.StringIO() as file:
        figure = Figure(figsize=SIZE, layout="constrained")
        draw(figure.subplots(), picture)
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        found = file.getvalue()
    return _inline(found, own, picture)


def draw(axis: Axes, picture: Picture) -> None:
    """A picture on axes."""
    found = plain(picture.data)
    data = {key: np.asarray(value) if _is_numbers(value) else value for key, value in found.items()}
    DRAWN[picture.kind](axis, data)


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and not isinstance(value[0], (str, dict))


def _inline(text: str, own: str, picture: Picture) -> str:
    """Without what a file needs and a page does not."""
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", text, count=1, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[a-zA-Z]\w*?_\d+">', "<g>", text)
    text = text.replace("xlink:href", "href")
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{own}-", text)
    head, _, body = text.partition(">")
    # of coordinates; not of what is written
    body = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d\d)\d+", r"\1", tag[0]), body)
    for colour, name in VARIABLES.items():
        body = re.sub(rf"(?<=[:\"\s]){colour}\b", f"var({name})", body, flags=re.IGNORECASE)
    box = re.search(r'viewBox="[^"]*"', head)
    label = _attribute(visible(f"{picture.title}. {picture.seen}"))
    return f'<svg {box[0] if box else ""} role="img" aria-label="{label}">{body}'


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def short(name: Any, letters: int = LONG) -> str:
    """A name that fits an axis."""
    text = visible(str(name))
    return text if len(text) <= letters else f"{text[: letters - 3]}..."


# Each kind. -------------------------------------------------------------------------------------------------


def observed(axis: Axes, data: Mapping[str, Any]) -> None:
    """What was observed against what was foretold."""
    mean, y = data["mean"], data["y"]
    many = len(y) > 120
    axis.vlines(mean, data["lower"], data["upper"], color=BLUE, alpha=0.12 if many else 0.3, linewidth=1.0)
    axis.plot(mean, y, "o", color=BLUE, markersize=2.4 if many else 3.2, markeredgewidth=0, alpha=0.8)
    ends = [float(np.min([mean.min(), y.min()])), float(np.max([mean.max(), y.max()]))]
    axis.plot(ends, ends, color=INK, linewidth=1.0, linestyle="--")
    reach = 0.05 * (ends[1] - ends[0]) or 1.0
    axis.set_ylim(ends[0] - 2 * reach, ends[1] + 2 * reach)
    axis.locator_params(axis="x", nbins=6)
    axis.set_xlabel("\n".join(in_lines(f"foretold {data['name']}", LINE)))
    axis.set_ylabel("observed")


def pit(axis: Axes, data: Mapping[str, Any]) -> None:
    """How often y fell into each part of its own distribution."""
    counts, usual, spread = data["counts"], data["usual"], data["spread"]
    edges = np.linspace(0, 1, len(counts) + 1)
    axis.bar(
        edges[:-1], counts, np.diff(edges), align="edge", color=BLUE, alpha=0.55, edgecolor=INK, linewidth=0.5
    )
    for level, dash in ((usual, "-"), (usual - spread, "--"), (usual + spread, "--")):
        axis.axhline(max(level, 0.0), color=INK, linewidth=0.9, linestyle=dash)
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 1.12 * max(float(np.max(counts)), usual + spread))
    axis.set_xlabel("P(Y <= y)")
    axis.set_ylabel("rows")


def coverage(axis: Axes, data: Mapping[str, Any]) -> None:
    """The share of rows that intervals hold, against what they promise."""
    promised, held = 100 * data["promised"], 100 * data["held"]
    error = 200 * np.sqrt(data["promised"] * (1 - data["promised"]) / data["rows"])
    axis.fill_between(promised, promised - error, promised + error, color=GRID, alpha=0.5, linewidth=0)
    axis.plot([0, 100], [0, 100], color=INK, linewidth=1.0, linestyle="--")
    axis.plot(promised, held, "o-", color=BLUE, markersize=3, linewidth=1.2)
    axis.set_xlim(0, 100)
    axis.set_ylim(0, 100)
    axis.set_xlabel("intervals promise (%)")
    axis.set_ylabel("intervals hold (%)")


def residuals(axis: Axes, data: Mapping[str, Any]) -> None:
    """Normal scores along a column."""
    x, z = data["x"], data["z"]
    if apart := _apart(data):  # side by side, so that all are seen
        x = x + 0.5 * apart * (np.arange(len(x)) * 0.6180339887498949 % 1.0 - 0.5)
    many = len(z) > 120
    for level, dash in ((0.0, "-"), (-1.96, "--"), (1.96, "--")):
        axis.axhline(level, color=INK, linewidth=0.9, linestyle=dash)
    axis.plot(x, z, "o", color=BLUE, markersize=2.4 if many else 3.2, markeredgewidth=0, alpha=0.75)
    reach = max(3.0, 1.1 * float(np.max(np.abs(z)))) if len(z) else 3.0
    axis.set_ylim(-reach, reach)
    axis.set_ylabel("residual (sd)")
    along(axis, data)


def reliability(axis: Axes, data: Mapping[str, Any]) -> None:
    """How often it was so, against how probable it was called."""
    p, share, rows = data["p"], data["share"], data["rows"]
    error = 2 * np.sqrt(np.maximum(share * (1 - share), 0.25 / np.maximum(rows, 1)) / rows)
    low, high = np.maximum(share - error, 0), np.minimum(share + error, 1)
    axis.bar(100 * p, 100 * rows / np.sum(rows), 5.0, color=GRID, alpha=0.5)
    axis.plot([0, 100], [0, 100], color=INK, linewidth=1.0, linestyle="--")
    axis.vlines(100 * p, 100 * low, 100 * high, color=BLUE, linewidth=1.4)
    axis.plot(100 * p, 100 * share, "o", color=BLUE, markersize=4.5)
    axis.set_xlim(-3, 103)
    axis.set_ylim(-3, 103)
    axis.set_xlabel("probability (%)")
    axis.set_ylabel("was so (%)")


def curve(axis: Axes, data: Mapping[str, Any]) -> None:
    """The mean and the 95 % interval along a column."""
    x, mean, low, high = data["x"], data["mean"], data["lower"], data["upper"]
    if "rows_x" in data and len(data["rows_x"]):
        axis.plot(
            data["rows_x"], data["rows_y"], "o", color=INK, markersize=2.2, markeredgewidth=0, alpha=0.55
        )
    if apart := _apart(data):
        axis.vlines(x, low, high, color=BLUE, alpha=0.4, linewidth=7)
        axis.plot(x, mean, "_", color=BLUE, markersize=12, markeredgewidth=2)
        axis.set_xlim(float(np.min(x)) - 0.6 * apart, float(np.max(x)) + 0.6 * apart)
    else:
        axis.fill_between(x, low, high, color=BLUE, alpha=0.22, linewidth=0)
        axis.plot(x, mean, color=BLUE, linewidth=1.6)
    axis.set_ylabel(short(data["target"]))
    along(axis, data)


def probabilities(axis: Axes, data: Mapping[str, Any]) -> None:
    """The probability of each label along a column."""
    x, colours = data["x"], (BLUE, ORANGE, GREEN, INK)
    marker = "o" if _apart(data) else ""
    for k, (label, p) in enumerate(zip(data["labels"], data["P"], strict=True)):
        style: dict[str, Any] = {
            "linestyle": DASHES[k % len(DASHES)],
            "color": colours[k % len(colours)],
            "marker": marker,
        }
        axis.plot(
            x, 100 * np.asarray(p, dtype=float), label=short(label), linewidth=1.6, markersize=4, **style
        )
    axis.set_ylim(0, 102)
    axis.set_ylabel("probability (%)")
    axis.figure.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=8)
    along(axis, data)


def shares(axis: Axes, data: Mapping[str, Any]) -> None:
    """Bars for columns, the one that matters most on top."""
    total, first, at = 100 * data["total"], 100 * data["first"], np.arange(len(data["names"]))
    axis.barh(at, total, color=BLUE, alpha=0.35, label="with others")
    axis.barh(at, np.minimum(first, total), color=BLUE, label="by itself")
    axis.set_yticks(at, [short(name) for name in data["names"]])
    axis.invert_yaxis()
    axis.set_xlim(0, 100)
    axis.set_xlabel("share of the variance of f's mean (%)")


DRAWN: dict[str, Callable[[Axes, Mapping[str, Any]], None]] = {
    "observed": observed,
    "pit": pit,
    "coverage": coverage,
    "residuals": residuals,
    "reliability": reliability,
    "curve": curve,
    "probabilities": probabilities,
    "shares": shares,
}


def _apart(data: Mapping[str, Any]) -> float:
    """How far the next of few values is, of a column that has no more than these; 0 of any other."""
    if "words" in data:
        return 1.0
    return float(np.min(np.diff(data["values"]))) if "values" in data else 0.0


def along(axis: Axes, data: Mapping[str, Any]) -> None:
    """Names an axis along a column: words and dates as people read them."""
    axis.set_xlabel("\n".join(in_lines(data["column"], LINE)))
    if "words" in data:
        words = [short(word, TICK) for word in data["words"]]
        step = max(1, -(-len(words) // 8))  # eight fit below each other
        steep = max(map(len, words), default=0) * len(words[::step]) > 40
        axis.set_xticks(range(0, len(words), step), words[::step])
        axis.tick_params("x", rotation=35 if steep else 0)
        if steep:
            for label in axis.get_xticklabels():
                label.set_horizontalalignment("right")
        return
    if "values" in data:
        values = [float(value) for value in data["values"]]
        shown, room = values[:1], NEAREST * (values[-1] - values[0])
        for value in values[1:-1]:
            if min(value - shown[-1], values[-1] - value) >= room:
                shown.append(value)
        shown.append(values[-1])
        axis.set_xticks(shown, [f"{value:.4g}" for value in shown])
    elif "origin" not in data:
        axis.locator_params(axis="x", nbins=6)
    else:
        from gramian.plots.dateaxis import DateTicks, DateWords  # which needs matplotlib

        first = (np.datetime64(data["origin"]) - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        ticks = DateTicks(float(first), float(data["days"]))
        axis.xaxis.set_major_locator(ticks)
        axis.xaxis.set_major_formatter(DateWords(ticks))
