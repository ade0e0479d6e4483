"""What the command report does: a page on the health of a model, and what was found on the screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gramian.cli.speech import said
from gramian.cli.voice import note, say
from gramian.cli.work import check_output, known_rows, loaded_model
from gramian.errors import ParameterError
from gramian.report.codes import checked
from gramian.report.html import verdict


def report_model(
    model: Path,
    data: Path | None,
    out: Path,
    json: Path | None,
    targets: Sequence[str],
    beside: Mapping[str, str | None],
    ignore: Sequence[str],
) -> None:
    """Writes the page, and the JSON where it is wanted. Whatever can be refused is refused before the
    work."""
    codes = checked([code for given in ignore for code in given.split(",") if code.strip()])
    places = [place for place in (out, json) if place is not None]
    for place in places:
        check_output(place, model, *([] if data is None else [data]))
    if json is not None and json.resolve() == out.resolve():
        raise ParameterError(f"--out and --json are the same file, {out}. Give two names.")
    if data is None and (targets or any(beside.values())):
        raise ParameterError(
            "--target, --exposure and --trials are of the rows in --data, which was not given."
        )
    gp = loaded_model(model)
    given: dict[str, Any] = {}
    if data is not None:
        known = known_rows(gp, model, data, targets, beside)
        given = {"X": known.X, "y": known.y, **known.beside}
    made = gp.report(out, json=json, ignore=codes, **given)
    say(made.heading)
    say(verdict(made))
    for finding in made.findings:
        say(f"  {finding.level:<8} {said(str(finding))}")
    note(f"The page is in {out}" + (f", the same for programs in {json}." if json is not None else "."))
