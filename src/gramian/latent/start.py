"""Where a search for latent places begins: the linear model of the same data.

With one noise for all columns that is principal components, with one a column factor analysis. Cells that
were not observed are filled in turn from the components and the components found anew, from column means on
(an EM algorithm for the same linear model). Places have variance 1 in each dimension, and the lengthscale of
a dimension falls with what it explains: as long as the first is to it, so that the kernel sees distances as
they are in the table.
"""

from __future__ import annotations

import numpy as np

from gramian.arrays import Array

ROUNDS = 30  # of filling gaps
STILL = 1e-4  # of the spread: by how much filled cells may still move
LONGEST = 20.0  # lengthscale of a dimension that explains next to nothing


def linear(Y: Array, Q: int, factors: bool, rng: np.random.Generator) -> tuple[Array, Array]:
    """Places (n, Q) and lengthscales (Q,) from columns of mean 0, nan where nothing was seen."""
    seen = ~np.isnan(Y)
    filled = np.where(seen, Y, 0.0)
    for _ in range(0 if seen.all() else ROUNDS):
        scores, axes = _components(filled, Q)
        low = np.where(seen, Y, scores @ axes)
        moved = np.max(np.abs(low - filled), initial=0.0)
        filled = low
        if moved < STILL:
            break
    if factors:
        from sklearn.decomposition import FactorAnalysis

        seed = int(rng.integers(2**31 - 1))
        found = FactorAnalysis(Q, random_state=seed, max_iter=200).fit(filled)
        scores, axes = found.transform(filled), found.components_
        sizes = np.linalg.norm(axes, axis=1) * np.std(scores, axis=0)
        order = np.argsort(-sizes, kind="stable")
        scores, sizes = scores[:, order], sizes[order]
    else:
        scores, axes = _components(filled, Q)
        sizes = np.std(scores, axis=0)
    spread = np.std(scores, axis=0)
    # a dimension in which nothing lies has no place to begin: a little noise
    empty = spread <= 1e-6 * max(float(spread[0]), 1e-300)
    scores = np.where(empty, rng.standard_normal(scores.shape), scores / np.where(empty, 1.0, spread))
    longer = sizes[0] / np.maximum(sizes, sizes[0] / LONGEST) if sizes[0] > 0 else np.ones(Q)
    return scores - np.mean(scores, axis=0), longer


def _components(Y: Array, Q: int) -> tuple[Array, Array]:
    """Scores (n, Q) and axes (Q, D), the largest entry of each axis positive."""
    n, D = Y.shape
    if n >= D:
        _, axes = np.linalg.eigh(Y.T @ Y)
        axes = axes.T[::-1][:Q]
    else:
        axes = np.linalg.svd(Y, full_matrices=False)[2][:Q]
    if len(axes) < Q:
        axes = np.concatenate([axes, np.zeros((Q - len(axes), D))])
    largest = np.argmax(np.abs(axes), axis=1)
    sign = np.where(axes[np.arange(Q), largest] < 0, -1.0, 1.0)
    axes = axes * sign[:, None]
    return Y @ axes.T, axes
