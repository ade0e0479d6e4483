"""Sequential design on two functions whose least values are known: Branin (2 variables, 30 trials) and
Hartmann-6 (6 variables, 50 trials).

    python benchmarks/sequential.py [--seeds 5] [--only gramian,optuna,random]

What is printed is the regret of the best trial, the median over seeds and its range, and seconds a trial.
Optuna's own Gaussian process (GPSampler) is tried where Optuna and PyTorch are installed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gramian as gm

ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def branin(x0: float, x1: float) -> float:
    bowl = x1 - 5.1 / (4 * np.pi**2) * x0**2 + 5 / np.pi * x0 - 6
    return float(bowl**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x0) + 10)


def hartmann6(**x: float) -> float:
    place = np.array([x[f"x{j}"] for j in range(6)])
    return -float(np.sum(ALPHA * np.exp(-np.sum(A * (place - P) ** 2, axis=1))))


# name -> function, space, trials, least value
FUNCTIONS: dict[str, tuple[Callable[..., float], dict[str, Any], int, float]] = {
    "branin": (branin, {"x0": (-5.0, 10.0), "x1": (0.0, 15.0)}, 30, 0.397887),
    "hartmann6": (hartmann6, {f"x{j}": (0.0, 1.0) for j in range(6)}, 50, -3.32237),
}


def ours(function: Callable[..., float], space: dict[str, Any], trials: int, seed: int) -> float:
    best = gm.Design(space, random_state=seed).run(function, trials).best
    assert best is not None
    return best[1]


def of_optuna(function: Callable[..., float], space: dict[str, Any], trials: int, seed: int) -> float:
    import optuna
    from optuna.samplers import GPSampler

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=GPSampler(seed=seed))
    study.optimize(
        lambda t: function(**{k: t.suggest_float(k, *v) for k, v in space.items()}), n_trials=trials
    )
    return float(study.best_value)


def at_random(function: Callable[..., float], space: dict[str, Any], trials: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    return min(function(**{k: rng.uniform(*v) for k, v in space.items()}) for _ in range(trials))


WAYS = {"gramian": ours, "optuna": of_optuna, "random": at_random}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default=",".join(WAYS))
    given = parser.parse_args()
    print("| function | way | regret, median | least to most | seconds a trial |\n|---|---|---|---|---|")
    for name, (function, space, trials, least) in FUNCTIONS.items():
        for way in given.only.split(","):
            try:
                began = time.perf_counter()
                found = [WAYS[way](function, space, trials, seed) - least for seed in range(given.seeds)]
            except ImportError as error:
                print(f"| {name} | {way} | not tried: {error} | | |")
                continue
            seconds = (time.perf_counter() - began) / given.seeds / trials
            spread = f"{min(found):.2g} to {max(found):.2g}"
            print(
                f"| {name}, {trials} trials | {way} | {np.median(found):.2g} | {spread} | {seconds:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
