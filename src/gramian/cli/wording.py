"""Messages of the library in the words of the command line: its options for the settings of an estimator."""

from __future__ import annotations

import re

# settings whose option has another name than theirs; the others have the same
RENAMED = {
    "memory_limit": "memory-limit",
    "time_limit": "time-limit",
    "n_restarts": "restarts",
    "random_state": "seed",
    "max_rows": "max-rows",
    "test_size": "test-size",
    "max_iter": "max-iter",
    "variance_rows": "variance-rows",
}
SAME = (
    "missing", "method", "mean", "noise", "likelihood", "inference", "hyper", "link", "multiclass", "columns",
    "kernel", "task", "exposure", "size", "sampling", "kind", "methods", "sizes", "repeats", "tol",
)  # fmt: skip
_VALUE = r"'[^']*'|\"[^\"]*\"|\[?\.\.\.\]?|[\w.+-]+(?:\([^()]*\))?"
_GIVEN = re.compile(rf"(?<![\w.-])(?<!\w\()({'|'.join((*RENAMED, *SAME))})(?: = |=)({_VALUE})")
_NAMED = re.compile(rf"(?<![\w.-])({'|'.join(RENAMED)})\b")
_EITHER = re.compile(r":[^:;]*?, or on the command line (?=--)")


def in_options(message: str) -> str:
    """The message with `--memory-limit 2GB` for memory_limit='2GB', and so on."""
    message = _EITHER.sub(": ", message)
    message = _GIVEN.sub(lambda found: f"--{_option(found[1])} {_value(found[1], found[2])}", message)
    return _NAMED.sub(lambda found: f"--{_option(found[1])}", message)


def _option(setting: str) -> str:
    return RENAMED.get(setting, setting)


def _value(setting: str, value: str) -> str:
    """As one would type it: no quotes, and student-t for gramian.StudentT()."""
    value = value.strip("'\"[]")
    if setting == "likelihood":
        name = value.removeprefix("gramian.").split("(")[0]
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
    return value
