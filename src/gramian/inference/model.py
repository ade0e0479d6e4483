"""A model, what was observed, and what an evidence is.

For each output f(x) = m(x) + s g(x), g ~ GP(0, k), y ~ p(y | f), with s the output's scale (its standard
deviation when y is normalised, else 1), so that a kernel of unit variance is a sensible prior in any units.
With a warp w it is t = w(y) that p(t | f) is said of, and log p(y) = log p(t) + sum log w'(y).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.kernels.base import Kernel
from gramian.kernels.coregion import Coregion
from gramian.likelihoods import Gaussian, Likelihood
from gramian.linalg.executor import Piece
from gramian.means import Mean, OneOutput
from gramian.params import Tree
from gramian.processes.base import Process
from gramian.processes.prior import GaussianProcess, mean_block
from gramian.solvers.base import SolveOutcome
from gramian.warps import Warp


class Deeper(Tree):
    """The kernel of a layer after the first, which sees what the layer below gives. Paths: layer2.*, ..."""

    kernel: Kernel
    number: int = 2

    def label(self, field: str) -> str:
        return f"layer{self.number}" if field == "" else ""


class Link(Tree):
    """The kernel of the outputs before it in a chain, on their columns; an output may have none. Paths:
    link2.*, ... by its place in the chain."""

    kernel: Kernel
    number: int = 2

    def label(self, field: str) -> str:
        return f"link{self.number}" if field == "" else ""


class Model(Tree):
    """Everything that has parameters: the kernel, the mean, the likelihood. Paths: kernel.*, mean.*, the
    likelihood's own names (noise), and warp.*. Several latent functions share the kernel, unless `others` has
    one for each latent after the first. A deep model has the kernels of its layers after the first in
    `deeper` (gramian.deep), and `kernel` is that of the first. Outputs that inform each other have `outputs`,
    one for the whole kernel or one a summand (inference/coregional.py), or are a chain: `others` has a kernel
    of x for each output after the first, `links` those of outputs before it (inference/chained.py)."""

    kernel: Kernel
    mean: Mean
    likelihood: Likelihood
    others: tuple[Kernel, ...] = ()
    warp: Warp | None = None
    deeper: tuple[Deeper, ...] = ()
    outputs: tuple[Coregion, ...] = ()
    links: tuple[Link, ...] = ()

    def label(self, field: str) -> str:
        return "" if field == "likelihood" else field

    @property
    def kernels(self) -> list[tuple[Kernel, list[int]]]:
        """Each kernel with the latents that it is for."""
        return self.kernels_for(self.likelihood.latents)

    def by_column(self, d: int) -> dict[str, tuple[int, ...]]:
        """The paths of parameters that have an entry for each of d columns, or some of them, with those."""
        paths = {id(parameter): path for path, parameter in self.parameters().items()}
        found = [pair for kernel in (self.kernel, *self.others) for pair in kernel.by_column(range(d))]
        return {paths[id(p)]: own for p, own in (*found, *self.mean.by_column(range(d)))}

    def kernels_for(self, latents: int) -> list[tuple[Kernel, list[int]]]:
        """The same for so many latents: one an output, where noise is Gaussian."""
        if not self.others:
            return [(self.kernel, list(range(latents)))]
        return [(kernel, [k]) for k, kernel in enumerate((self.kernel, *self.others))]

    def priors(self, scale: Array) -> list[tuple[GaussianProcess, list[int]]]:
        """f before the data: for each kernel the latents it is for, with these scales, (L,)."""
        groups = self.kernels_for(len(scale))
        means = [OneOutput(self.mean, k) for _, (k,) in groups] if self.others else [self.mean]
        pairs = zip(groups, means, strict=True)
        return [(GaussianProcess(kernel, mean, scale[own]), own) for (kernel, own), mean in pairs]

    @property
    def gaussian(self) -> Gaussian:
        """The likelihood of inference in closed form."""
        assert isinstance(self.likelihood, Gaussian)
        return self.likelihood


@dataclass(frozen=True, eq=False)
class Data:
    """What was observed: n rows, and q outputs in closed form, else the columns that the likelihood reads.
    NaN in Y: not observed."""

    X: Array  # (n, d)
    Y: Array  # (n, q), or (n, columns)
    scale: Array  # (q,)
    # (n,): known noise variances, in the units of y squared, beside the likelihood's
    noise_var: Array | None = None
    # (n,): the same of rows that are taken for outliers (fitting/outliers.py), of the target the model sees
    excess: Array | None = None

    @property
    def pieces(self) -> Sequence[Piece]:
        """Descriptions of rows that stay where they are (inference/far.py); none where the rows are here."""
        return ()

    @property
    def here(self) -> bool:
        """Whether the rows are here, to be read."""
        return True

    def without_pieces(self) -> Data:
        """What a piece may know of the others."""
        return self

    @property
    def added_noise(self) -> Array | None:
        """(n,): all variances beside the likelihood's."""
        if self.excess is None or self.noise_var is None:
            return self.noise_var if self.excess is None else self.excess
        return self.noise_var + self.excess

    def take(self, at: Any) -> Data:
        """Some of the rows: a slice, or indices."""
        noise_var, excess = (None if v is None else v[at] for v in (self.noise_var, self.excess))
        X, Y = np.asarray(self.X[at], dtype=np.float64), np.asarray(self.Y[at], dtype=np.float64)
        return replace(self, X=X, Y=Y, noise_var=noise_var, excess=excess)

    @cached_property
    def missing(self) -> NDArray[np.bool_] | None:
        """What was not observed, (n, q); None where everything was."""
        missing = np.isnan(self.Y)
        return missing if missing.any() else None

    def under(self, model: Model) -> Data:
        """The same with t = w(y) in place of y, where the model has a warp."""
        return self if model.warp is None else replace(self, Y=model.warp.forward(self.Y))

    def log_slopes(self, model: Model) -> float:
        """sum log w'(y), of all that was observed."""
        return 0.0 if model.warp is None else float(np.nansum(model.warp.log_slope(self.Y)))

    def residual(self, model: Model) -> Array:
        """(y - m) / s, (n, q)."""
        q = self.Y.shape[1]
        return np.asarray((self.Y - mean_block(model.mean, self.X, q)) / self.scale)

    def prior(self, model: Model) -> GaussianProcess:
        """f before the data."""
        return GaussianProcess(model.kernel, model.mean, self.scale)


EvidenceKind = Literal[
    "exact", "lower bound", "upper bound", "approximation", "estimate", "none", "joint density"
]


@dataclass(frozen=True)
class Evidence:
    """log p(y) in nats, of y divided by its scale, and its kind; "none" with a nan where not computed."""

    value: float
    kind: EvidenceKind = "exact"
    standard_error: float = 0.0

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if self.kind == "none":
            return "not computed"
        spread = f" +- {self.standard_error:.2g}" if self.standard_error else ""
        return f"{self.value:.6g}{spread} ({self.kind})"


class Inferred(NamedTuple):
    """What inference gives."""

    posterior: Process
    evidence: Evidence
    outcome: SolveOutcome
    # where parameters were drawn: the model at their mean, for where one value must be told
    model: Model | None = None


@dataclass(frozen=True, eq=False)
class NoiseGroup:
    """Outputs that share their noise D = level + share * noise_var, in units of the scale squared."""

    outputs: list[int]
    level: float
    share: float
    noise_var: Array | None

    def noise(self, n: int) -> Array:
        """D of n rows."""
        if self.noise_var is not None:
            return self.level + self.share * self.noise_var
        D = np.empty(n)
        D.fill(self.level)  # half the time of np.full
        return D


def noise_groups(model: Model, data: Data) -> list[NoiseGroup]:
    """The outputs, gathered by what their D is: noise / s^2, plus what is added to it / s^2."""
    added = data.added_noise
    if len(data.scale) == 1:
        unit = float(data.scale[0]) ** 2
        share = 0.0 if added is None else 1 / unit
        level = float(model.gaussian.variances()[0]) / unit
        return [NoiseGroup([0], level, share, added)]
    # in this order: units that are the scales squared give equal numbers, and so one group
    noise = np.asarray(model.gaussian.noise) * (np.asarray(model.gaussian.unit) / data.scale**2)
    known = np.zeros_like(noise) if added is None else 1 / data.scale**2
    keys: dict[tuple[float, float], list[int]] = {}
    for k, key in enumerate(zip(noise, known, strict=True)):
        keys.setdefault((float(key[0]), float(key[1])), []).append(k)
    return [NoiseGroup(outputs, level, share, added) for (level, share), outputs in keys.items()]


def noise_gradient(model: Model, data: Data, by_level: Array) -> Array:
    """d/dnoise, one number or one an output as the noise is, from d/dD of each output, (q,)."""
    by_noise = by_level * np.asarray(model.gaussian.unit) / data.scale**2
    return by_noise if np.ndim(model.gaussian.noise) else np.sum(by_noise)
