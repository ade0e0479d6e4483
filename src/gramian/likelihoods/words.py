"""The setting `likelihood`: None, a word, or an object."""

from __future__ import annotations

from gramian import likelihoods
from gramian.errors import ParameterError
from gramian.likelihoods.base import Likelihood
from gramian.words import LIKELIHOODS, quoted


def read_likelihood(given: object) -> Likelihood | None:
    """The likelihood that was meant; None: Gaussian noise, in closed form."""
    if given is None or isinstance(given, Likelihood):
        return given
    word = given.lower().replace("_", "-") if isinstance(given, str) else ""
    if word not in LIKELIHOODS:
        raise ParameterError(
            f"likelihood={given!r} is not known. Use {quoted(LIKELIHOODS)}. In Python a gramian likelihood"
            " such as gramian.StudentT(4.0) will do, too; None is Gaussian noise."
        )
    name = LIKELIHOODS[word]
    made: Likelihood | None = getattr(likelihoods, name)() if name else None
    return made
