"""Results as one HTML page: the question, what it showed in words, pictures and tables, and how it was done.
Nothing is loaded from anywhere, no script runs; light and dark as the reader's system has it. Pictures stand
on white in both: their colours are made for it."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from html import escape
from typing import Any

from gramian.experiments.studies.base import Experiment, Illustration, Shown, SmallTable
from gramian.version import __version__

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --page: #fdfdfc; --faint: #666; --line: #ccc; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e6e3; --page: #17181a; --faint: #a5a5a5; --line: #444; }
}
body { font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 0 auto;
  max-width: 62rem; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.question { font-size: 1.15rem; margin: 0 0 1rem; } .faint, figcaption, caption { color: var(--faint); }
figure { margin: 1.5rem 0; } figure svg { display: block; width: 100%; height: auto; background: #fff;
  border-radius: .4rem; }
figcaption, caption { font-size: .92rem; text-align: left; padding: .4rem 0; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; }
.warning { border-left: .3rem solid #D55E00; padding: .1rem .8rem; }
@media print { body { max-width: none; } figure, tr { break-inside: avoid; } }
"""


def html_page(
    experiment: Experiment,
    shown: Shown,
    pictures: Sequence[tuple[Illustration, str]],
    notes: Sequence[str],
    settings: dict[str, Any],
    state: dict[str, Any],
) -> str:
    """The page. `pictures` with their SVG; `state`: cells, done and seconds."""
    name = escape(experiment.name)
    parts = [f'<h1>{name}</h1><p class="question">{escape(experiment.question)}</p>']
    if state["done"] < state["cells"]:
        parts.append(
            f'<p class="warning">Unfinished: {state["done"]} of {state["cells"]} cells are done. The same'
            " command does the rest.</p>"
        )
    if settings["quick"]:
        parts.append(
            '<p class="warning">A quick run: few repetitions, on parts of the data. It shows how things lie,'
            " not how much.</p>"
        )
    if shown.words:
        sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in shown.words)
        parts.append(f"<h2>What it showed</h2><ul>{sentences}</ul>")
    for picture, svg in pictures:
        caption = escape(picture.caption)
        inline = svg[svg.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{caption}"', 1)
        parts.append(f"<figure>{inline}<figcaption>{caption}</figcaption></figure>")
    parts += [_table(table) for table in shown.tables]
    parts.append(f"<h2>How it was done</h2><p>{escape(experiment.how)}</p>")
    data = settings["data"]
    if data:
        files = "".join(f"<li>{escape(file)}.npz, sha256 {sha[:16]}...</li>" for file, sha in data.items())
        parts.append(f"<p>Data:</p><ul>{files}</ul>")
    if notes:
        told = "".join(f"<li>{escape(note)}</li>" for note in notes[:20])
        parts.append(f"<h2>What could not be measured</h2><ul>{told}</ul>")
    busy = f"{state['seconds']:.0f} s for {state['done']} cells, compilations included"
    made = f"gramian {__version__}, Python {platform.python_version()}, {os.cpu_count()} cores; {busy}"
    parts.append(f'<p class="faint">{escape(made)}. All numbers are in results.csv beside this page.</p>')
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head += f"<title>{name}</title><style>{STYLE}</style>"
    body = "\n".join(parts)
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n'


def _table(table: SmallTable) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.head)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in line) + "</tr>" for line in table.lines
    )
    caption = f"<caption>{escape(table.caption)}</caption>"
    body = f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody>"
    return f'<div class="wide"><table>{caption}{body}</table></div>'
