"""All experiments by their names."""

from __future__ import annotations

from typing import Final

from gramian.data.tables import closest
from gramian.errors import ParameterError
from gramian.experiments.studies.approximations import APPROXIMATIONS
from gramian.experiments.studies.base import Experiment
from gramian.experiments.studies.classes import CLASSES
from gramian.experiments.studies.models import MODELS
from gramian.experiments.studies.teaching import TEACHING

EXPERIMENTS: Final[dict[str, Experiment]] = {
    each.name: each for each in (*APPROXIMATIONS, *TEACHING, *CLASSES, *MODELS)
}


def named(name: str) -> Experiment:
    """The experiment of that name."""
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    near = closest(name, list(EXPERIMENTS))
    cure = f"Did you mean {near}? " if near else ""
    raise ParameterError(
        f"There is no experiment {name!r}. {cure}gramian experiment --list shows all: "
        f"{', '.join(EXPERIMENTS)}."
    )
