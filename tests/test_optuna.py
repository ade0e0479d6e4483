"""The sampler for Optuna."""

from __future__ import annotations

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")

from gramian.errors import ParameterError  # noqa: E402
from gramian.optuna import GPSampler  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial) -> float:
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    size = trial.suggest_int("size", 1, 9, step=2)
    kind = trial.suggest_categorical("kind", ["a", None, "c"])
    share = trial.suggest_float("share", 0.0, 1.0, step=0.25)
    if trial.number == 12:
        raise ValueError("failed")
    return np.log10(rate / 1e-2) ** 2 + 0.3 * (size - 5) ** 2 + (kind is not None) + (share - 0.5) ** 2


def test_it_finds_what_there_is_on_the_steps_of_the_space():
    study = optuna.create_study(sampler=GPSampler(seed=0))
    study.optimize(objective, n_trials=32, catch=ValueError)
    assert study.best_value < 0.1
    assert study.best_params["size"] == 5
    assert study.best_params["kind"] is None
    for trial in study.trials:
        assert trial.params["size"] in (1, 3, 5, 7, 9)
        assert trial.params["share"] in (0.0, 0.25, 0.5, 0.75, 1.0)


def test_a_seed_gives_the_same_trials_and_large_values_are_found():
    def rise(trial) -> float:
        return -((trial.suggest_float("x", -1, 1) - 0.3) ** 2)

    found = []
    for _ in range(2):
        study = optuna.create_study(direction="maximize", sampler=GPSampler(seed=3, n_startup_trials=4))
        study.optimize(rise, n_trials=12)
        found.append([trial.params["x"] for trial in study.trials])
    assert found[0] == found[1]
    assert min(abs(x - 0.3) for x in found[0]) < 0.02


def test_trials_that_run_count_as_seen():
    study = optuna.create_study(sampler=GPSampler(seed=0, n_startup_trials=3))
    study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.5) ** 2, n_trials=6)
    running = [study.ask({"x": optuna.distributions.FloatDistribution(0, 1)}) for _ in range(3)]
    places = sorted(trial.params["x"] for trial in running)
    assert np.min(np.diff(places)) > 1e-4


def test_several_objectives_are_refused():
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=GPSampler())
    with pytest.raises(ParameterError, match="one objective"):
        study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 0.0), n_trials=1)
    with pytest.raises(ParameterError, match="n_startup_trials"):
        GPSampler(n_startup_trials=0)
