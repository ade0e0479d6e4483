"""The setting `outputs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gramian.errors import ParameterError
from gramian.kernels.coregion import Coregion

if TYPE_CHECKING:
    from gramian.estimators.regressor import GPRegressor


WORDS = {
    "independent": "each for itself",
    "coupled": "they share functions",
    "chained": "each may depend on those before it",
    "auto": "the data choose among these",
}


def read_outputs(value: Any) -> tuple[str, tuple[Coregion, ...]]:
    """The setting `outputs`: a word, and what is between the outputs where that was given."""
    if isinstance(value, str) and value in WORDS:
        return value, ()
    given = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not given or not all(isinstance(one, Coregion) for one in given):
        words = ", ".join(f'"{word}" ({meaning})' for word, meaning in WORDS.items())
        raise ParameterError(f"outputs={value!r} is not known. Use {words}, or Coregion(rank=2).")
    return "coupled", given


def check_outputs(gp: GPRegressor, gaussian: bool) -> None:
    """Refuses outputs that inform each other where there is no way to do it."""
    kind, _ = read_outputs(gp.outputs)
    if kind != "independent" and (not gaussian or gp.hyper in ("mcmc", "average")):
        why = 'leave likelihood, inference and hyper="mcmc" or "average", or use outputs="independent"'
        raise ParameterError(f"outputs={gp.outputs!r} is of Gaussian noise in closed form: {why}.")
