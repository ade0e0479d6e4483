"""A summary as HTML. Text from files (names of columns, labels, cells) is escaped wherever it stands, and the
page forbids scripts, fonts and pictures from anywhere (Content-Security-Policy), so that it can be sent
on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from gramian.errors import visible
from gramian.report.codes import CODES, LEVELS
from gramian.report.document import Picture, numeric

if TYPE_CHECKING:
    from gramian.report.summary import Summary


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader  # when a page is wanted
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    return Environment(
        loader=PackageLoader("gramian", "report/templates"), autoescape=True, finalize=shown, trim_blocks=True
    )


def fragment(summary: Summary) -> str:
    """For notebooks: no pictures, no style of its own."""
    return str(_environment().get_template("fragment.html").render(summary=summary, numeric=numeric))


def page(summary: Summary, drawn: Callable[[Picture], str]) -> str:
    """The whole page; `drawn` gives a picture as SVG, with all text in it escaped."""
    from markupsafe import Markup

    return str(
        _environment()
        .get_template("page.html")
        .render(
            summary=summary,
            codes=CODES,
            numeric=numeric,
            drawn=lambda picture: Markup(drawn(picture)),  # matplotlib escapes text
            verdict=verdict(summary),
        )
    )


def verdict(summary: Summary) -> str:
    """In a sentence."""
    counts = {level: sum(found.level == level for found in summary.findings) for level in LEVELS}
    told = [f"{count} {level}{'s' * (count != 1)}" for level, count in counts.items() if count]
    looked = len(summary.passed) + len({found.code for found in summary.findings})
    if not told:
        return f"Nothing is wrong, as far as {looked} checks can see."
    *most, last = told
    return f"{', '.join(most)}{' and ' * bool(most)}{last} in {looked} checks."
