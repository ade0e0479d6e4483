"""What Markov chains leave: draws, and whether they can be trusted.

R-hat compares the spread between chains (each cut in two) with that within them, on ranks and on folded
ranks: 1 where all tell the same, above 1.01 where they do not yet. The effective sample size (ess) is how
many independent draws would know the mean as well. Both are those of arviz-stats (Vehtari et al. 2021).
"""

from __future__ import annotations

import dataclasses
import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian import forks
from gramian.arrays import Array
from gramian.errors import ParameterError, StateError
from gramian.linalg.state import Arrays, ObjectState, entries, taken, typed, typed_list
from gramian.params.space import aligned

PACKAGES = ("blackjax", "arviz_stats.base")
SAMPLERS = ("blocks", "nuts", "ess", "slices")
NO_DRAWS = 10  # of a chain: fewer say nothing
RHAT_LIMIT = 1.01
TOLD: dict[str, type] = {"sampler": str, "warmup": int, "stopped": str, "seconds": float}
SAVED = {"log_density": np.float64, "divergent": np.int64, "acceptance": np.float64, "steps": np.int64}
DIAGNOSTICS = ("rhat", "ess")
ESS_PER_CHAIN = 100  # below it neither ess nor R-hat are reliable themselves


@dataclass(frozen=True, eq=False)
class Chains:
    """Draws of the parameters and the whitened latent variables. Print it to read it."""

    values: Mapping[str, Array]  # of each trainable parameter, by path: (chains, draws, ...)
    latent: Array  # v: (chains, draws, m, latents); m = 0 where f was integrated out
    log_density: Array  # of the position and the data, up to a constant: (chains, draws)
    # These three are of a kept draw and those between it and the one before, where long chains let some go:
    divergent: NDArray[np.bool_]  # whether one of them was: (chains, draws)
    acceptance: Array  # their mean: (chains, draws)
    steps: NDArray[np.int64]  # gradients (nuts) or densities (ess), the sum: (chains, draws)
    log_likelihood: Array  # log p(y_i | f_i): (chains, draws, n); n = 0 where f was integrated out
    sampler: str = "nuts"
    warmup: int = 0
    stopped: str = ""  # "time limit" or "interrupted", where there are fewer draws than asked for
    seconds: float = 0.0

    @property
    def n_chains(self) -> int:
        return self.log_density.shape[0]

    @property
    def n_draws(self) -> int:
        """Of each chain."""
        return self.log_density.shape[1]

    @property
    def divergences(self) -> int:
        """Draws whose trajectory left the sampler's accuracy: the posterior is too sharp for its step."""
        return int(np.sum(self.divergent))

    @cached_property
    def rhat(self) -> dict[str, float]:
        """The rank-normalised R-hat of each number: parameters by name, latent variables as v[i], v[i,k]."""
        return self._each("rhat")

    @cached_property
    def ess(self) -> dict[str, float]:
        """The effective number of draws for the mean of each number, of all chains together."""
        return self._each("ess")

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat of all parameters and latent variables."""
        return max(self.rhat.values(), default=1.0)

    @property
    def converged(self) -> bool:
        """R-hat below 1.01 everywhere, no divergence, enough draws."""
        return not self.notes

    @property
    def settled(self) -> bool:
        """R-hat below 1.01 everywhere, and enough effective draws."""
        wanted = ESS_PER_CHAIN * self.n_chains
        return all(r < RHAT_LIMIT for r in self.rhat.values()) and all(e >= wanted for e in self.ess.values())

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What speaks against these draws, with the cure; nothing where nothing does."""
        notes = []
        if self.stopped:
            notes.append(
                f"The chains ended early ({self.stopped}) with {self.n_draws} draws each after a warm-up of"
                f" {self.warmup}."
            )
            if self.n_draws < NO_DRAWS:
                notes.append(
                    "That is no posterior: the parameters are hardly sampled, and close to where the chains"
                    " began. To compile them takes seconds of its own: give more time."
                )
        if self.divergences:
            share = self.divergences / self.divergent.size
            notes.append(
                f"{self.divergences} of {self.divergent.size} draws ({share:.1%}) were divergent: the"
                " posterior has corners that these steps cut. Give the parameters tighter priors, warm up"
                ' longer, or use sampler="ess".'
            )
        worst = max(self.rhat, key=lambda name: self.rhat[name], default="")
        if worst and not self.rhat[worst] < RHAT_LIMIT:
            notes.append(
                f"R-hat of {worst} is {self.rhat[worst]:.3f}, above {RHAT_LIMIT}: the chains do not agree"
                " yet. Take more draws."
            )
        fewest = min(self.ess, key=lambda name: self.ess[name], default="")
        wanted = ESS_PER_CHAIN * self.n_chains
        if fewest and not self.ess[fewest] >= wanted:
            notes.append(
                f"{fewest} has {self.ess[fewest]:.0f} effective draws, fewer than {wanted}: its summaries are"
                " rough. Take more draws."
            )
        return tuple(notes)

    def inference_data(self) -> Any:
        """The draws as an ArviZ object, for its plots, tables and comparisons (InferenceData; a DataTree from
        ArviZ 1 on). Needs ArviZ: pip install "gramian[arviz]"."""
        arviz = package("arviz", "arviz")
        groups: dict[str, dict[str, NDArray[Any]]] = {"posterior": dict(self.values)}
        if self.latent.size:
            groups["posterior"]["v"] = self.latent
        groups["sample_stats"] = {
            "lp": self.log_density,
            "diverging": self.divergent,
            "acceptance_rate": self.acceptance,
            "n_steps": self.steps,
        }
        if self.log_likelihood.size:
            groups["log_likelihood"] = {"y": self.log_likelihood}
        new = int(arviz.__version__.split(".")[0]) >= 1
        return arviz.from_dict(groups) if new else arviz.from_dict(**groups)

    def state(self) -> ObjectState:
        """The draws of the parameters and what is told of all draws; not the latent variables themselves."""
        arrays: Arrays = {f"chains.{path}": draws for path, draws in self.values.items()}
        arrays |= {f"chain_{name}": np.asarray(getattr(self, name), kind) for name, kind in SAVED.items()}
        found = {name: [float(value) for value in getattr(self, name).values()] for name in DIAGNOSTICS}
        told = {name: kind(getattr(self, name)) for name, kind in TOLD.items()}
        return ObjectState({**told, **found}, arrays)

    @classmethod
    def from_state(
        cls, state: ObjectState, shapes: Mapping[str, tuple[int, ...]], latent: tuple[int, int]
    ) -> Chains:
        """For parameters of these shapes, and as many latent variables and functions."""
        arrays, told = state.arrays, entries(state.described, "posterior", *TOLD, *DIAGNOSTICS)
        c, s = taken(arrays, "chain_log_density", (None, None)).shape
        known: dict[str, Any] = {
            name: taken(arrays, f"chain_{name}", (c, s), kind) for name, kind in SAVED.items()
        }
        if not np.all((known["divergent"] == 0) | (known["divergent"] == 1)):
            raise StateError("chain_divergent must be zeros and ones.")
        known["divergent"] = known["divergent"].astype(bool)
        values = {path: taken(arrays, f"chains.{path}", (c, s, *shape)) for path, shape in shapes.items()}
        known |= {name: typed(value, TOLD[name], name) for name, value in zip(TOLD, told, strict=False)}
        variables = np.broadcast_to(np.zeros(()), (c, s, *latent))
        chains = cls(values, variables, log_likelihood=np.zeros((c, s, 0)), **known)
        if chains.sampler not in SAMPLERS or chains.warmup < 0 or not 0 <= chains.seconds < np.inf:
            raise StateError(
                f"its chains are by {chains.sampler[:40]!r}, after a warm-up of {chains.warmup} in"
                f" {chains.seconds} s."
            )
        names = [name for name, _ in chains.numbers()]
        chains = dataclasses.replace(chains, latent=np.zeros((c, s, 0, latent[1])))
        for name, values in zip(DIAGNOSTICS, told[len(TOLD) :], strict=True):
            found = typed_list(values, float, name)
            if len(found) != len(names):
                raise StateError(f"{name} has {len(found)} entries, but must have {len(names)} numbers.")
            vars(chains)[name] = dict(zip(names, found, strict=True))  # as if computed already
        return chains

    def _each(self, statistic: str) -> dict[str, float]:
        """A diagnostic of each number. One that never moved has none: nan."""
        function, found = getattr(package("arviz_stats.base").array_stats, statistic), {}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for name, draws in self.numbers():
                moved = np.ptp(draws) > 0 and self.n_draws >= 4
                found[name] = float(function(np.ascontiguousarray(draws))) if moved else float("nan")
        return found

    def numbers(self) -> list[tuple[str, Array]]:
        """Each number's draws, (chains, draws), by name."""
        latent = self.latent if self.latent.shape[3:] != (1,) else self.latent[..., 0]
        numbers = []
        for name, draws in (*self.values.items(), ("v", latent)):
            for index in np.ndindex(draws.shape[2:]):
                label = f"{name}[{','.join(map(str, index))}]" if index else name
                numbers.append((label, draws[(slice(None), slice(None), *index)]))
        return numbers

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [("", "mean", "sd", "5 %", "95 %", "R-hat", "ess")]
        for name, draws in self.numbers()[: sum(int(np.prod(v.shape[2:])) for v in self.values.values())]:
            numbers = (np.mean(draws), np.std(draws), *np.quantile(draws, [0.05, 0.95]))
            told = (f"{self.rhat[name]:.3f}", f"{self.ess[name]:.0f}")
            rows.append((name, *(f"{value:.4g}" for value in numbers), *told))
        latent = [name for name in self.rhat if name.startswith("v[") and name not in self.values]
        if latent:
            worst, fewest = max(self.rhat[name] for name in latent), min(self.ess[name] for name in latent)
            name, told = f"v ({len(latent)} latent variables, the worst)", (f"{worst:.3f}", f"{fewest:.0f}")
            rows.append((name, "", "", "", "", *told))
        head = (
            f"{self.n_chains} chains of {self.n_draws} draws ({self.sampler}) after a warm-up of"
            f" {self.warmup}, {self.seconds:.0f} s"
        )
        return "\n".join([f"{head}, {self.divergences} divergent", *aligned(rows, ("",)), *self.notes])

    __repr__ = __str__


def ask_packages() -> None:
    """Refuses where one of the packages is missing: before any work, since draws without them are lost. To
    import them takes its time, which is better spent now than after the end, and runs programs of JAX."""
    forks.check()
    for name in PACKAGES:
        package(name)


def package(name: str, extra: str = "mcmc") -> Any:
    """A module of a package that is needed for chains alone; `extra`: what brings it along."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ArviZ announces its next version once a day
            return importlib.import_module(name)
    except ImportError:
        who, called = "MCMC needs" if extra == "mcmc" else "This needs", name.partition(".")[0]
        raise ParameterError(
            f"{who} the package {called.replace('_', '-')}, which is not installed: pip install"
            f' "gramian[{extra}]".'
        ) from None
