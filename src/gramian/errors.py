"""Every error a user can meet. Each message says what was given, what was expected, and what to do.

Each is a `ValueError`, so code written for scikit-learn catches them too.
"""

from __future__ import annotations

import re

# what NumPy writes around a number or a text since its version 2, which nobody has written
_NUMPY = re.compile(
    r"""\bnp\.(?:str_|bytes_|u?int\w*|(?:long)?float\w*|longdouble)\(([^()'"]*|'[^']*'|"[^"]*")\)"""
)
# what a terminal obeys instead of showing it, and what reverses the order of a line: control characters but
# for tabs and line ends, marks and overrides of direction, line separators, halves of characters
_UNSEEN = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)
LONGEST = 4000  # characters of a message
_TRUTH = re.compile(r"\bnp\.(True|False)_")


def plain(text: str) -> str:
    """A text with numbers as people write them: 1.0 for np.float64(1.0)."""
    return _TRUTH.sub(r"\1", _NUMPY.sub(r"\1", text)) if "np." in text else text


def visible(text: str) -> str:
    """A text as people are shown it: what names, cells and paths from outside may hold of control characters
    is written as an escape, \\x1b for ESC. Twice is the same as once."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def brief(text: str) -> str:
    """A message without the middle, where a cell of a page or more stands in it: its beginning says what is
    wrong, its end what to do."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 4 :]}"


class GramianError(ValueError):
    """The parent of all errors raised by gramian on purpose."""

    def __init__(self, message: str = "") -> None:
        super().__init__(brief(visible(plain(message))))


class InputError(GramianError):
    """Data (X, y, a table) that cannot be used as they are."""


class ParameterError(GramianError):
    """A parameter, kernel or setting with an impossible value."""


class KernelTextError(ParameterError):
    """A kernel written as text that the kernel grammar does not accept."""


class NumericalError(GramianError):
    """A factorisation that fails even with jitter; the message names the probable cause."""


class MemoryLimitError(GramianError):
    """Work that would pass the memory limit, refused before anything large is allocated; or that the system
    has refused memory for."""


class ForkError(GramianError):
    """Work that needs the threads of JAX, in a forked process, which has none of them."""


class ClusterError(GramianError):
    """Work that was shared out to other processes or machines, and that nobody is left to do."""


class StateError(GramianError):
    """Plain values and arrays that do not make the object which they are said to be the state of."""


class ModelFileError(StateError):
    """A model file that is damaged, foreign, hostile, or holds what a code-free file cannot."""


class CheckpointError(GramianError):
    """A checkpoint of another fit, or a file that is none."""


class TableError(InputError):
    """A CSV or Parquet file that cannot be read; the message has file, line and column."""


class InputTypeError(InputError, TypeError):
    """A cell that is neither a number nor text."""
