"""A sampler for Optuna: `study = optuna.create_study(sampler=gramian.optuna.GPSampler(seed=0))`.

Trials are proposed by `gramian.Design`, from all that are complete and have the parameters of the search
space; conditional parameters, and the first trials of a study, come from Optuna's own random sampler. Trials
that run at the same time count as seen at what the model expects of them; those that failed or were pruned
are left out, as by Optuna's own samplers.

Needs Optuna: pip install "gramian[optuna]".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gramian.acquisition import Acquisition, read_acquisition
from gramian.errors import ParameterError
from gramian.sequential import Design

try:
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.search_space import IntersectionSearchSpace
    from optuna.study import StudyDirection
    from optuna.trial import TrialState
except ImportError as error:  # pragma: no cover - told apart by the message
    raise ImportError('gramian.optuna needs Optuna: pip install "gramian[optuna]"') from error

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial


class GPSampler(BaseSampler):
    """Proposes parameters by a Gaussian process.

    Parameters
    ----------
    acquisition : "log_ei", "lower_bound", "entropy", "thompson", or an `Acquisition`
    n_startup_trials : int
        Trials at random before the first model.
    seed : int, optional
    """

    def __init__(
        self, acquisition: str | Acquisition = "log_ei", n_startup_trials: int = 10, seed: int | None = None
    ) -> None:
        if not isinstance(n_startup_trials, int) or n_startup_trials < 1:
            raise ParameterError(f"n_startup_trials={n_startup_trials!r} must be a whole number from 1 on.")
        self._acquisition = read_acquisition(acquisition)
        self._first, self._seed = n_startup_trials, seed
        self._random = RandomSampler(seed=seed)
        self._space = IntersectionSearchSpace()

    def reseed_rng(self) -> None:
        self._seed = None
        self._random.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        if len(study.directions) > 1:
            raise ParameterError("GPSampler is for studies of one objective.")
        found = self._space.calculate(study)
        return {name: own for name, own in found.items() if not own.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        seen = [one for one in trials if _has(one, search_space)]
        if not search_space or len(seen) < self._first:
            return {}
        design = Design(
            {name: _limits(own) for name, own in search_space.items()},
            self._acquisition,
            maximise=study.direction == StudyDirection.MAXIMIZE,
            initial=1,
            random_state=None if self._seed is None else self._seed + trial.number,
        )
        for one in seen:
            design.tell(_point(one.params, search_space), one.value)
        running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        others = [one for one in running if one.number != trial.number and _has(one, search_space)]
        design.out.extend(_point(one.params, search_space) for one in others)
        return {name: _value(search_space[name], given) for name, given in design.ask().items()}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self._random.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self._random.before_trial(study, trial)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        self._random.after_trial(study, trial, state, values)


def _has(trial: FrozenTrial, space: Mapping[str, BaseDistribution]) -> bool:
    return all(name in trial.params for name in space)


def _limits(distribution: BaseDistribution) -> Any:
    """As `Design` has them; a choice is its place."""
    if isinstance(distribution, CategoricalDistribution):
        return list(range(len(distribution.choices)))
    assert isinstance(distribution, (FloatDistribution, IntDistribution))
    if isinstance(distribution, IntDistribution) and not distribution.log:
        return distribution.low, distribution.high, "int"
    kind = ("log",) if distribution.log else ()
    return distribution.low, distribution.high, *kind


def _point(params: Mapping[str, Any], space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    return {
        name: own.choices.index(params[name]) if isinstance(own, CategoricalDistribution) else params[name]
        for name, own in space.items()
    }


def _value(distribution: BaseDistribution, given: Any) -> Any:
    """On the distribution's own steps."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[given]
    assert isinstance(distribution, (FloatDistribution, IntDistribution))
    value, step = given, distribution.step
    if step is not None and not distribution.log:
        value = distribution.low + round((given - distribution.low) / step) * step
    value = min(max(value, distribution.low), distribution.high)
    return round(value) if isinstance(distribution, IntDistribution) else float(value)
