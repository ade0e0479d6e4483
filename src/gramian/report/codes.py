"""What a report looks for. A code stays what it is: people write it into scripts (`ignore=`), so one that is
no longer looked for is left out, and its number is not given to another.

    L   leakage: what a column knows that new rows will not have
    D   rows and targets
    P   parameters
    F   the search and the algebra
    A   approximations
    Q   predictions of left-out or held-back rows
    C   classes
    S   series
    X   rows that were given with the report
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gramian.errors import ParameterError

LEVELS = ("problem", "warning", "hint")  # wrong as it is; likely to mislead; worth a look


@dataclass(frozen=True)
class Code:
    """A check."""

    level: str
    name: str  # what is wrong where it finds something
    passed: str  # what is right where it finds nothing


CODES: dict[str, Code] = {
    "L001": Code("warning", "a column numbers or names the rows", "no column numbers or names the rows"),
    "L002": Code("problem", "a column gives the target away", "no column gives the target away"),
    "L003": Code(
        "warning",
        "rows ahead in time are foretold much worse than rows in between",
        "rows ahead in time are foretold as well as rows in between",
    ),
    "D001": Code("hint", "constant columns", "no column is constant"),
    "D002": Code("warning", "rows repeat others, target included", "no row is there twice"),
    "D003": Code("hint", "equal rows with different labels", "equal rows have equal labels"),
    "D004": Code("problem", "the target is constant", "the target varies"),
    "D005": Code("warning", "the target looks like counts or labels", "the target is no count"),
    "D006": Code("warning", "the target is positive and skewed", "the target is not skewed"),
    "D007": Code("hint", "outliers", "no row is taken for an outlier"),
    "D008": Code("hint", "classes with very few rows", "every class has some rows"),
    "D009": Code("warning", "a number that may stand for a missing value", "no number stands for a gap"),
    "D010": Code("hint", "equal columns", "no column repeats another"),
    "D011": Code("warning", "words that may be numbers or dates", "no category begins as numbers do"),
    "D012": Code("warning", "categories that may be one", "categories differ in more than capitals"),
    "P001": Code("warning", "a parameter is at its limit", "no parameter is at its limit"),
    "P002": Code("warning", "noise is at its floor", "noise is above its floor"),
    "P003": Code("hint", "columns that do not matter", "every column matters"),
    "P004": Code(
        "warning",
        "a lengthscale is below the steps of its column",
        "lengthscales are longer than the steps between values",
    ),
    "P005": Code("hint", "a summand of the kernel has vanished", "no summand of the kernel has vanished"),
    "F001": Code("problem", "the search did not end by itself", "the search for parameters ended by itself"),
    "F002": Code("problem", "a solver missed its tolerance", "solvers kept their tolerances"),
    "F003": Code("warning", "K + noise was singular to rounding", "K + noise needed no jitter"),
    "F004": Code("hint", "a time limit was passed", "time limits were kept"),
    "F005": Code("problem", "chains do not agree", "chains agree"),
    "F009": Code("hint", "a remark of the fit", "no other remark of the fit"),
    "A001": Code(
        "warning", "the approximation changes the answer", "the certificate finds no error that matters"
    ),
    "A002": Code("warning", "intervals of f are too narrow by the method", "the method keeps the width of f"),
    "Q001": Code("problem", "no better than the average", "better than the average"),
    "Q002": Code("problem", "worse than something simpler", "at least as good as neighbours and a line"),
    "Q003": Code("problem", "intervals are too narrow", "intervals are not too narrow"),
    "Q004": Code("hint", "intervals are too wide", "intervals are not too wide"),
    "Q005": Code("warning", "predictions are off to one side", "predictions are off to neither side"),
    "Q006": Code("warning", "residuals follow a column", "residuals follow no column"),
    "Q007": Code("hint", "residuals are wider in some places", "residuals are as wide as intervals say"),
    "Q008": Code(
        "problem", "overfitted: new rows are foretold worse", "rows that the search has not seen do as well"
    ),
    "Q009": Code("hint", "few rows for so many parameters", "rows enough for the parameters"),
    "C001": Code("warning", "probabilities are too sure", "probabilities are not too sure"),
    "C002": Code("hint", "probabilities are not sure enough", "probabilities are sure enough"),
    "S001": Code("warning", "a season that the kernel does not repeat", "no season that the kernel misses"),
    "X001": Code("warning", "rows beyond the data of the fit", "rows are where the fit has data"),
    "X002": Code("warning", "categories that the fit has not seen", "the fit has seen all categories"),
    "X003": Code(
        "problem",
        "given rows are foretold worse than left-out ones",
        "given rows are foretold as left-out ones",
    ),
}

# What fits say of themselves (`FitOutcome.notes`, also from files of older versions), by how it is put. None:
# something to know, and nothing to mend.
_NOTES: tuple[tuple[str, str | None], ...] = (
    (
        r"parameters are not fitted|stopped early|ended early|interrupted|fitted to the end|no posterior",
        "F001",
    ),
    (r"factorisations on the way failed|Inputs are uncertain|this summand is nearly noise", None),
    (r"The solver missed its tolerance", "F002"),
    (r"singular to rounding", "F003"),
    (r"time limit .*was passed|time limit (left no time|allows)", "F004"),
    (r"R-hat|effective draws|divergent", "F005"),
    (r"Constant columns", "D001"),
    (r"counts the rows|names or codes of rows", "L001"),
    (r"another's inputs with the same target", "D002"),
    (r"no model tells these apart", "D003"),
    (r"another's inputs with another target", None),
    (r"y is constant", "D004"),
    (r"y is whole numbers", "D005"),
    (r"y is positive with few large values", "D006"),
    (r"If that stands for a missing value", "D009"),
    (r"are equal in all rows", "D010"),
    (r"has words that begin with digits", "D011"),
    (r"differ in capitals or blanks alone", "D012"),
    (r"taken for an? outlier|taken for outliers", "D007"),
    (r"of the kernel has vanished", "P005"),
    (r"at its floor", "P002"),
    (r"at its (lower|upper) bound", "P001"),
    (r"far beyond the data", "P003"),
    (r"neighbours hardly inform each other", "P004"),
    (r"too narrow", "A002"),
)
NOTES = tuple((re.compile(pattern), code) for pattern, code in _NOTES)


@dataclass(frozen=True)
class Finding:
    """Something that a person should know, with what to do about it."""

    code: str
    text: str
    cure: str = ""

    @property
    def level(self) -> str:
        return CODES[self.code].level

    @property
    def name(self) -> str:
        return CODES[self.code].name

    def __str__(self) -> str:
        return f"{self.code}  {self.name}: {self.text}" + (f" {self.cure}" if self.cure else "")


def code_of(note: str) -> str | None:
    """The code of a note of a fit; None where there is nothing to mend."""
    return next((code for pattern, code in NOTES if pattern.search(note)), "F009")


def ordered(findings: list[Finding]) -> tuple[Finding, ...]:
    """The gravest first."""
    return tuple(sorted(findings, key=lambda found: (LEVELS.index(found.level), found.code)))


def checked(ignore: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Codes to be left out, if there are such."""
    given = (ignore,) if isinstance(ignore, str) else tuple(ignore)
    codes = tuple(str(code).strip().upper() for code in given)
    for written, code in zip(given, codes, strict=True):
        if code not in CODES:
            raise ParameterError(f"ignore has {written!r}, which is no code. There are {', '.join(CODES)}.")
    return codes
