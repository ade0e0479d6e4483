"""Inducing points or neighbours, where exact inference does not fit: rows that are held out decide.

Many rows of few columns may be a rough function, which no number of inducing points holds and neighbours do,
or a smooth one, which inducing points know better. A part of the rows, in patches so that they lie as close
as among all, is fitted both ways, with as many inducing points a row as all rows would have; a tenth of it is
held out. Neighbours are taken where they raise the log density of held-out rows by more than two standard
errors.

Cost: two searches on PART rows.
"""

from __future__ import annotations

import numpy as np

from gramian.arrays import Array
from gramian.engines.neighbours import Neighbours
from gramian.engines.recipes import Sparse
from gramian.errors import GramianError
from gramian.estimators.guard import normal_densities
from gramian.fitting import stages
from gramian.fitting.progress import Report
from gramian.fitting.rows import chosen, in_random_order
from gramian.inference import Data, Model
from gramian.inference.base import Scheme
from gramian.inference.conjugate import closed

FROM_ROWS = 20_000  # on, a part of the rows is few of them
MOST_COLUMNS = 5  # in more, no row is near
PART, HELD_SHARE = 8000, 0.1
FEWEST = 32  # inducing points that make a comparison
WORTH = 1e-3  # nats a row, that are worth more evaluations here


def nearer(
    model: Model, data: Data, inducing: int, rng: np.random.Generator, report: Report
) -> tuple[Scheme, str] | None:
    """Neighbours with the reason, where they foretell held-out rows better than inducing points, of which all
    rows would have so many; None where they do not, or cannot be asked."""
    n, d = data.X.shape
    if n < FROM_ROWS or d > MOST_COLUMNS:
        return None
    order = in_random_order(data, rng)
    part = data.take(chosen("patches", model, data, min(PART, n), order, rng))
    mixed = rng.permutation(len(part.X))
    count = int(HELD_SHARE * len(mixed))
    held, kept = part.take(np.sort(mixed[:count])), part.take(np.sort(mixed[count:]))
    near = closed(Neighbours())
    points = closed(Sparse(max(FEWEST, inducing * len(kept.X) // n)))
    try:
        densities = [_densities(method, model, kept, held, rng, report) for method in (near, points)]
    except GramianError:  # a kernel that one of them does not take
        return None
    gain = densities[0] - densities[1]
    gain = gain[np.isfinite(gain)]
    mean, error = float(np.mean(gain)), float(np.std(gain)) / np.sqrt(max(len(gain), 1))
    if not mean > 2 * error:
        return None
    why = f"on {len(kept.X):,} rows in patches they foretell {count} others better by {mean:.2f} nats a row"
    return near, f"exact inference on {n:,} rows does not fit, and {why} than inducing points do"


def _densities(
    method: Scheme, model: Model, data: Data, held: Data, rng: np.random.Generator, report: Report
) -> Array:
    searched = stages.fit(model, data, method, 0, rng, report, enough=WORTH)
    posterior = searched.inference.infer(searched.model, data).posterior
    return normal_densities(searched.model, *posterior.moments(np.asarray(held.X)), held)
