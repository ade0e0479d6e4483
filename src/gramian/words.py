"""Words that people give for objects, in Python and on the command line, in one place that imports nothing:
`gramian --help` lists them without loading what they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# Likelihoods, and the classes in gramian.likelihoods that they stand for; "": Gaussian noise in closed form.
# Those whose settings have defaults: an Ordinal must be told its levels. A new one: its class, and a line.
LIKELIHOODS: Final[dict[str, str]] = {
    "gaussian": "",
    "student-t": "StudentT",
    "poisson": "Poisson",
    "negative-binomial": "NegativeBinomial",
    "binomial": "Binomial",
    "gamma": "Gamma",
    "beta": "Beta",
    "heteroscedastic": "Heteroscedastic",
}
# Families of the default kernel, and their classes in gramian.kernels; with + between them, a sum.
KERNELS: Final[dict[str, str]] = {
    "rbf": "RBF",
    "matern12": "Matern12",
    "matern32": "Matern32",
    "matern52": "Matern52",
}
# Methods: what gramian.choose.words makes of each is beside the engines.
METHODS: Final = (
    "exact",
    "statespace",
    "nystrom",
    "fourier",
    "vfe",
    "fitc",
    "dtc",
    "neighbours",
    "svgp",
    "cg",
    "minres",
)
# The kernels that the data choose from where none is given.
OF_NUMBERS: Final = ("matern52", "matern52 + matern12", "rbf + matern52")
OF_LABELS: Final = ("matern52", "rbf", "matern12")


def listed(words: Iterable[str]) -> str:
    """a, b or c."""
    *most, last = words
    return f"{', '.join(most)} or {last}"


def quoted(words: Iterable[str]) -> str:
    """Each in quotes, as in Python."""
    return ", ".join(f'"{word}"' for word in words)
