"""Writes the model files of this folder and what they predict: python -m tests.modelfile.old.make

They have format version 4, and stay as they are: files of a later version go into a folder of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gramian as gm

FOLDER = Path(__file__).parent
EXPECTED = FOLDER / "expected.json"
POINTS = [[0.3, 0.4], [-0.8, 1.1]]

KERNEL = 1.3 * gm.Matern52([0.9, 1.4])
OTHER = 0.7 * gm.RBF(1.1)
GIVEN: dict[str, Any] = {"optimize": False, "random_state": 0}
INDUCING = ((-1.0, 0.5), (0.2, -0.4), (1.1, 0.9))


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Seven rows of two columns, and a target."""
    rng = np.random.default_rng(5)
    X = np.round(rng.uniform(-1.5, 1.5, (7, 2)), 2)
    return X, np.round(np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(7), 3)


def regression(method: Any = "exact", target: Any = None, **settings: Any) -> gm.GPRegressor:
    """On the seven rows."""
    X, y = rows()
    own = {
        "kernel": KERNEL,
        "method": method,
        **({} if "likelihood" in settings or "inference" in settings else {"noise": 0.1}),
    }
    return gm.GPRegressor(**{**own, **GIVEN, **settings}).fit(X, y if target is None else target)


def classifier(classes: int = 2, **settings: Any) -> gm.GPClassifier:
    """On the seven rows."""
    labels = np.array(["a", "b", "c"])[[0, 1, 1, 0, 2 % classes, 1, 2 % classes]]
    return gm.GPClassifier(**{"kernel": KERNEL, **GIVEN, **settings}).fit(rows()[0], labels)


def named() -> gm.GPRegressor:
    """Columns with names, one of them of categories."""
    X, y = rows()
    frame = pd.DataFrame({"temp": X[:, 0], "load": X[:, 1], "site": list("abcabca")})
    kernel = gm.RBF([0.9, 1.4]).on("temp", "load") * gm.Categorical(0.4).on("site") + (0.2 * gm.Linear()).on(
        "load"
    )
    return gm.GPRegressor(kernel, noise=0.1, **GIVEN).fit(frame, y)


def points_of(name: str) -> Any:
    """Where a model is asked."""
    if name != "categories":
        return np.array(POINTS)
    return pd.DataFrame({"temp": [0.3, -0.8], "load": [0.4, 1.1], "site": ["b", "a"]})


TINY = gm.MCMC(chains=2, warmup=4, draws=4, rounds=1)
MODELS: dict[str, Callable[[], Any]] = {
    "exact": regression,
    "exact_two_outputs": lambda: regression(target=np.column_stack([rows()[1], 3 * rows()[0][:, 0]])),
    "laplace": lambda: classifier(inference="laplace"),
    "laplace_poisson": lambda: regression(
        likelihood=gm.Poisson(), inference="laplace", target=[0.0, 1, 3, 2, 0, 1, 5]
    ),
    "signed_sites": lambda: regression(likelihood=gm.StudentT(0.2), inference="laplace"),
    "ep": lambda: classifier(inference="ep"),
    "vi": lambda: classifier(inference="vi"),
    "vfe": lambda: regression(gm.Sparse(inducing=INDUCING)),
    "fourier": lambda: regression(gm.Fourier(8)),
    "nystrom": lambda: regression(gm.Nystrom(3, "pivoted")),
    "nystrom_laplace": lambda: classifier(method=gm.Nystrom(3, "pivoted"), inference="laplace"),
    "svgp": lambda: classifier(method=gm.SVGP(inducing=INDUCING)),
    "cg": lambda: regression(gm.CG(rank=3, probes=2)),
    "minres_two_noises": lambda: regression(
        gm.MINRES(rank=3, probes=2), target=np.column_stack([rows()[1], 3 * rows()[0][:, 0]])
    ),
    "cg_laplace": lambda: classifier(method=gm.CG(rank=3, probes=2), inference="laplace"),
    "coupled": lambda: classifier(3, inference="laplace"),
    "coupled_features": lambda: classifier(3, inference="laplace", method=gm.Nystrom(3, "pivoted")),
    "softmax_kernels": lambda: classifier(3, inference="vi", kernel=[KERNEL, OTHER, KERNEL]),
    "stacked": lambda: regression(likelihood=gm.Heteroscedastic(), kernel=[KERNEL, OTHER]),
    "mixture": lambda: classifier(inference=TINY),
    "mixture_parameters": lambda: regression(inference=TINY, hyper="mcmc"),
    "ovr": lambda: classifier(3, multiclass="ovr", inference="laplace"),
    "categories": named,
}


def answers(gp: Any, X: Any) -> dict[str, Any]:
    """What a model predicts, as lists."""
    if isinstance(gp, gm.GPClassifier):
        mean, var = gp.predict_latent(X)
        return {"probabilities": gp.predict_proba(X).tolist(), "mean": mean.tolist(), "var": var.tolist()}
    mean, std = gp.predict(X, return_std=True)
    mean_f, std_f = gp.predict(X, return_std=True, target="f")
    return {"mean": mean.tolist(), "std": std.tolist(), "mean f": mean_f.tolist(), "std f": std_f.tolist()}


def main() -> None:
    """Fits, saves, and asks each model."""
    expected: dict[str, Any] = {}
    for name, make in MODELS.items():
        gp = make()
        gp.save(FOLDER / f"{name}.gm")
        expected[name] = answers(gp, points_of(name))
        print(f"{(FOLDER / f'{name}.gm').stat().st_size:6,} bytes  {name}: {type(gp).__name__}")
    lines = [f"{json.dumps(name)}: {json.dumps(own)}" for name, own in expected.items()]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
