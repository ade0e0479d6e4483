"""Gaussian processes of images: tables in Markdown.

    python benchmarks/images.py plan                     what exact inference with ConvNet takes, planned and
                                                         measured on 100 images, for 500 to 5,000
    python benchmarks/images.py exact FOLDER [n]         MNIST, n labelled images (5,000), all test images:
                                                         error of RBF and ConvNet, exact, one-hot targets
    python benchmarks/images.py patches FOLDER [minutes] MNIST, all rows: SVGP with Convolutional
    python benchmarks/images.py medical FOLDER OUT       breastmnist and retinamnist by the number of labels:
                                                         kernels, logistic regression, an SVM; a picture

FOLDER holds mnist.npz, breastmnist.npz and retinamnist.npz.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import gramian as gm
from gramian.gram import tiles

SIZES = (50, 100, 200, 500)
REPEATS = 3
SCALE = 20.0  # of a network's functions, before they are probabilities
Task = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def network(channels: int = 1) -> gm.Kernel:
    return gm.ConvNet(7, (28, 28), channels, filter=3, variance=gm.fixed(2.0), bias=gm.fixed(0.1))


def digits(folder: Path) -> Task:
    held = np.load(folder / "mnist.npz")
    return held["X_train"] / 255.0, held["y_train"], held["X_test"] / 255.0, held["y_test"]


# Exact inference. -------------------------------------------------------------------------------------------


def seconds_a_pair(kernel: gm.Kernel, n: int = 100) -> float:
    X = np.random.default_rng(0).uniform(size=(n, 784))
    tiles.cross(kernel, X, X)
    began = time.perf_counter()
    tiles.cross(kernel, X, X)
    size = tiles.tile_size(n)
    return (time.perf_counter() - began) / (-(-n // size) * size) ** 2


def planned() -> None:
    pair = seconds_a_pair(network())
    print(f"a value: {1e6 * pair:.1f} microseconds here and now\n")
    print("| images | Gram matrix | with 10,000 new images | memory | gm.plan |")
    print("|---|---|---|---|---|")
    for n in (500, 1000, 2000, 5000):
        own, new = pair * (n + 512) * n / 2, pair * n * 10_000
        said = gm.plan((n, 784), network(), outputs=10, optimize=False).options[0]
        times = f"{own:.0f} s | {own + new:.0f} s"
        print(f"| {n:,} | {times} | {said.bytes / 1e9:.2f} GB | {said.fit_seconds:.0f} s |")


def exact(folder: Path, n: int) -> None:
    """One-hot targets with Gaussian noise, the class of the largest mean: all ten share a factor."""
    X, y, X_test, y_test = digits(folder)
    X, y = X[:n], y[:n]
    print(f"MNIST, {n:,} labelled images, {len(X_test):,} test images\n")
    print("| kernel | error | fit | predict |\n|---|---|---|---|")
    for name, kernel in {"RBF": gm.RBF(gm.fixed(5.0)), "ConvNet": network()}.items():
        scale = 1 / float(np.mean(kernel.diag(X[:100])))
        given: dict[str, Any] = {"noise": gm.fixed(1e-4), "normalize_y": False, "optimize": False}
        gp = gm.GPRegressor(gm.fixed(scale) * kernel, method="exact", **given)
        began = time.perf_counter()
        gp.fit(X, np.eye(10)[y] - 0.1)
        fitted = time.perf_counter()
        error = np.mean(np.argmax(gp.predict(X_test), axis=1) != y_test)
        times = f"{fitted - began:.0f} s | {time.perf_counter() - fitted:.0f} s"
        print(f"| {name} | {100 * error:.2f} % | {times} |", flush=True)


def patches(folder: Path, minutes: float) -> None:
    """All rows, as long as it may take; inducing patches, weights a place."""
    X, y, X_test, y_test = digits(folder)
    kernel = 1000.0 * gm.Convolutional(gm.RBF(1.5), (5, 5), (28, 28), weights="each")
    method = gm.SVGP(400, batch_size=128, steps=20_000, natural_step=0.03)
    limit = 60 * minutes
    gp = gm.GPClassifier(kernel, method=method, time_limit=limit, random_state=0, verbose=True)
    began, busy = time.perf_counter(), time.process_time()
    gp.fit(X, y)
    print(gp.summary())
    p = gp.predict_proba(X_test)
    error = 100 * np.mean(np.argmax(p, axis=1) != y_test)
    times = f"{time.perf_counter() - began:.0f} s, of a processor {time.process_time() - busy:.0f} s"
    print(f"error {error:.2f} %, log loss {log_loss(y_test, p):.4f}, {times}")


# Medical images by the number of labels. --------------------------------------------------------------------


def medical(folder: Path, out: Path) -> None:
    found: dict[tuple[str, str], dict[int, list[list[float]]]] = {}
    print("| data | labels | method | accuracy | AUC | log loss | calibration error | s |")
    print("|---|---|---|---|---|---|---|---|")
    for name, channels in (("breastmnist", 1), ("retinamnist", 3)):
        held = np.load(folder / f"{name}.npz")
        X, y = held["X"].reshape(len(held["X"]), -1) / 255.0, held["y"].ravel()
        train, test = np.flatnonzero(held["split"] < 2), np.flatnonzero(held["split"] == 2)
        for size in (*SIZES, len(train)):
            for method, make in methods(channels).items():
                scores = []
                for seed in range(REPEATS if size < len(train) else 1):
                    rows = np.random.default_rng(seed).permutation(train)[:size]
                    began = time.perf_counter()
                    model = make().fit(X[rows], y[rows])
                    p = np.zeros((len(test), len(np.unique(y))))
                    p[:, np.searchsorted(np.unique(y), model.classes_)] = model.predict_proba(X[test])
                    scores.append([*scored(p, y[test]), time.perf_counter() - began])
                found.setdefault((name, method), {})[size] = scores
                told = [
                    f"{m:.3f} ± {s:.3f}" for m, s in zip(np.mean(scores, 0), np.std(scores, 0), strict=True)
                ]
                print(f"| {name} | {size} | {method} | {' | '.join(told[:4])} | {told[4]} |", flush=True)
    draw(found, out)


def methods(channels: int) -> dict[str, Callable[[], Any]]:
    held: dict[str, Any] = {"random_state": 0}
    conv = 100.0 * gm.Convolutional(gm.RBF(2.0), (5, 5), (28, 28), channels, "each")
    deep = 4.0 * gm.DeepKernel(gm.RBF(1.0), gm.CNN((28, 28), channels, (4, 8), 4))
    return {
        "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=2000)),
        "SVM": lambda: make_pipeline(StandardScaler(), SVC(probability=True, random_state=0)),
        "GP, RBF": lambda: gm.GPClassifier(4.0 * gm.RBF(8.0), **held),
        # a search would make the Gram matrix some forty times
        "GP, ConvNet": lambda: gm.GPClassifier(SCALE * network(channels), optimize=False),
        "GP, Convolutional": lambda: gm.GPClassifier(conv, method=gm.SVGP(100, batch_size=128, steps=150)),
        "GP, deep": lambda: gm.GPClassifier(deep, **held),
    }


def scored(p: np.ndarray, y: np.ndarray) -> list[float]:
    """Accuracy, AUC, log loss and calibration error of the top class, in ten bins."""
    p = np.maximum(p, 1e-12) / np.sum(np.maximum(p, 1e-12), axis=1, keepdims=True)
    auc = roc_auc_score(y, p[:, 1]) if p.shape[1] == 2 else roc_auc_score(y, p, multi_class="ovr")
    top, right = np.max(p, axis=1), np.argmax(p, axis=1) == y
    bins = np.minimum((10 * top).astype(int), 9)
    gaps = [abs(np.sum(right[bins == b]) - np.sum(top[bins == b])) for b in range(10)]
    return [float(np.mean(right)), float(auc), float(log_loss(y, p)), float(sum(gaps) / len(y))]


def draw(found: dict[tuple[str, str], dict[int, list[list[float]]]], out: Path) -> None:
    import matplotlib.pyplot as plt

    names = sorted({name for name, _ in found})
    figure, axes = plt.subplots(1, len(names), figsize=(6 * len(names), 4), layout="constrained")
    for axis, name in zip(np.atleast_1d(axes), names, strict=True):
        for (data, method), by_size in found.items():
            if data == name:
                sizes = list(by_size)
                mean = [np.mean([s[1] for s in by_size[n]]) for n in sizes]
                error = [np.std([s[1] for s in by_size[n]]) for n in sizes]
                axis.errorbar(sizes, mean, error, marker="o", capsize=3, label=method)
        axis.set(xscale="log", xlabel="labelled images", ylabel="AUC", title=name)
        axis.legend()
    figure.savefig(out, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("plan", "exact", "patches", "medical"))
    parser.add_argument("rest", nargs="*")
    given = parser.parse_args()
    folder = Path(given.rest[0]) if given.rest else Path()
    if given.what == "plan":
        planned()
    elif given.what == "exact":
        exact(folder, int(given.rest[1]) if len(given.rest) > 1 else 5000)
    elif given.what == "patches":
        patches(folder, float(given.rest[1]) if len(given.rest) > 1 else 60.0)
    else:
        medical(folder, Path(given.rest[1]) if len(given.rest) > 1 else Path("images.png"))


if __name__ == "__main__":
    sys.exit(main())
