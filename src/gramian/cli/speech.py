"""What the library says in the language of the command line.

Messages and notes name settings as Python writes them, `noise=0.01` or `inference="ep" or "vi"`; options are
these settings under names of their own. What holds for Python alone stands in a last sentence that begins
with "In Python", or before ", or on the command line", and is left out here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from gramian.words import LIKELIHOODS

# the options of fit, plan, predict, update, models and compare by the settings that they give
OPTIONS: Final[dict[str, str]] = {
    "kernel": "--kernel",
    "mean": "--mean",
    "missing": "--missing",
    "columns": "--columns",
    "noise": "--noise",
    "likelihood": "--likelihood",
    "inference": "--inference",
    "link": "--link",
    "multiclass": "--multiclass",
    "hyper": "--hyper",
    "outputs": "--outputs",
    "method": "--method",
    "size": "--size",
    "rank": "--size",
    "n_inducing": "--size",
    "n_features": "--size",
    "sampling": "--sampling",
    "inducing": "--sampling",
    "kind": "--kind",
    "n_restarts": "--restarts",
    "random_state": "--seed",
    "time_limit": "--time-limit",
    "memory_limit": "--memory-limit",
    "checkpoint": "--checkpoint",
    "exposure": "--exposure",
    "trials": "--trials",
    "target": "--target-kind",
    "task": "--task",
    "methods": "--methods",
    "sizes": "--sizes",
    "by": "--by",
    "cv": "--folds",
    "repeats": "--repeats",
    "test_size": "--test-size",
    "max_rows": "--max-rows",
    "tol": "--tol",
    "max_iter": "--max-iter",
    "variance_rows": "--variance-rows",
    "window": "--window",
    "refit": "--refit",
}
_NAME = "|".join(OPTIONS)
_VALUE = r""""[^"]*"|'[^']*'|\.\.\.|[A-Za-z_][\w.]*\([^()]*\)|[-+]?\w(?:[\w.+-]*\w)?"""
_SETTING = re.compile(rf"""\b({_NAME})=({_VALUE})((?:,? (?:or|and) "[\w-]+"|, "[\w-]+")*)""")
# without a value: those that can be no word of English
_BARE = re.compile(rf"\b({'|'.join(name for name in OPTIONS if '_' in name)})\b(?![(=\[])")
_PYTHON = re.compile(r" In Python .*", re.DOTALL)
_EITHER = re.compile(r":[^:;]*?, or on the command line (?=--)")
_CALLS = {"evaluate(X, y) scores": "gramian score takes", "compare_models has": "gramian models has"}
_PACKAGE = re.compile(r"\bgramian\.(?=\w+\()")


def said(text: str) -> str:
    """A message with its settings as options."""
    for call, command in _CALLS.items():
        text = text.replace(call, command)
    text = _EITHER.sub(": ", _PACKAGE.sub("", _PYTHON.sub("", text)))
    return _BARE.sub(lambda match: OPTIONS[match[1]], _SETTING.sub(_option, text))


def said_in(summary: str, facts: Sequence[str]) -> str:
    """The summary of a fit with these facts as options have it; the others may have names of columns that
    look like settings."""
    lines, fact = [], ""
    for line in summary.split("\n"):
        if not line.startswith(" " * 12):
            fact = line[2:11].strip() if line.startswith("  ") else ""
        lines.append(said(line) if fact in facts else line)
    return "\n".join(lines)


def _option(match: re.Match[str]) -> str:
    """The option with its value as one would type it, and further values that were named with it."""
    option, value, further = OPTIONS[match[1]], match[2], match[3].replace('"', "")
    words = {f"{kind}()": word for word, kind in LIKELIHOODS.items()}
    plain = "" if value == "..." else words.get(value, value.strip("\"'"))
    typed = plain if re.fullmatch(r"[-+\w.]*", plain) else f'"{plain}"'
    return f"{option} {typed}".rstrip() + further
