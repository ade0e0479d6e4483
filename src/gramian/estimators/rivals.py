"""Inducing points or neighbours, where exact inference does not fit: rows that are held out decide.

Many rows of few columns may be a rough function, which no number of inducing points holds and neighbours do,
or a smooth one, which inducing points know better. A part of the rows, in patches so that they lie as close
as among all, is fitted both ways, with as many inducing points a row as all rows would have; a tenth of it is
held out. Neighbours are taken where they raise the log density of held-out rows by more than two standard
errors.

Cost: two searches on PART rows; under a time limit, what TIME of it is enough for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gramian import clock
from gramian.clock import OutOfTime
from gramian.engines.neighbours import Neighbours
from gramian.engines.recipes import Sparse
from gramian.errors import GramianError
from gramian.estimators.guard import normal_densities
from gramian.fitting import stages
from gramian.fitting.budget import Budget
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
# of a limited time, for both searches, and the seconds below which neither would get anywhere
TIME, LEAST_TIME = 0.3, 20.0


def nearer(
    model: Model,
    data: Data,
    inducing: int,
    rng: np.random.Generator,
    report: Report,
    budget: Callable[[Scheme, Model, Data], Budget | None],
) -> tuple[Scheme, str] | None:
    """Neighbours with the reason, where they foretell held-out rows better than inducing points, of which all
    rows would have so many; None where they do not, or cannot be asked. `budget`: what a search may spend, as
    long as the clock says."""
    (n, d), time = data.X.shape, clock.end() - clock.now()
    if n < FROM_ROWS or d > MOST_COLUMNS or time < LEAST_TIME:
        return None
    order = in_random_order(data, rng)
    part = data.take(chosen("patches", model, data, min(PART, n), order, rng))
    mixed = rng.permutation(len(part.X))
    count = int(HELD_SHARE * len(mixed))
    held, kept = part.take(np.sort(mixed[:count])), part.take(np.sort(mixed[count:]))
    near = closed(Neighbours())
    points = closed(Sparse(max(FEWEST, inducing * len(kept.X) // n)))
    densities = []
    try:
        for method in (near, points):
            with clock.until(clock.now() + 0.5 * TIME * time):
                spent = budget(method, model, kept)
                searched = stages.fit(model, kept, method, 0, rng, report, spent, enough=WORTH)
                posterior = searched.inference.infer(searched.model, kept).posterior
                moments = posterior.moments(np.asarray(held.X))
            densities.append(normal_densities(searched.model, *moments, held))
    except (GramianError, OutOfTime):  # a kernel that one of them does not take; a busy machine
        return None
    gain = densities[0] - densities[1]
    gain = gain[np.isfinite(gain)]
    mean, error = float(np.mean(gain)), float(np.std(gain)) / np.sqrt(max(len(gain), 1))
    if not mean > 2 * error:
        return None
    why = f"on {len(kept.X):,} rows in patches they foretell {count} others better by {mean:.2f} nats a row"
    return near, f"exact inference on {n:,} rows does not fit, and {why} than inducing points do"
