"""Latent places of real tables: numbers in Markdown, and pictures.

    python benchmarks/latent.py oil FOLDER OUT      oil_flow: nearest-neighbour errors in the two dominant
                                                    dimensions, dimensions used, rows with half of their
                                                    cells missing
    python benchmarks/latent.py mnist FOLDER OUT    digits 0 to 4 in two dimensions

FOLDER holds the sets as NumPy files: oil_flow.npz, mnist.npz. OUT is for pictures.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA

import gramian as gm

SEED = 0


def neighbour_errors(X: np.ndarray, y: np.ndarray) -> int:
    """Rows whose nearest neighbour has another label."""
    gaps = np.sum((X[:, None] - X[None]) ** 2, axis=-1)
    np.fill_diagonal(gaps, np.inf)
    return int(np.sum(y[np.argmin(gaps, axis=1)] != y))


def oil(folder: Path, out: Path) -> None:
    data = np.load(folder / "oil_flow.npz")
    Y, y, new = data["X_train"], data["y_train"], data["X_test"]
    print("| model | seconds | errors of 1,000, 2-D | dimensions used |\n|---|---|---|---|")
    scaled = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    print(f"| PCA | | {neighbour_errors(PCA(2).fit_transform(scaled), y)} | |")
    began, busy = time.perf_counter(), time.process_time()
    gp = gm.GPLatent(10, random_state=SEED).fit(Y)
    took = f"{time.perf_counter() - began:.0f} ({time.process_time() - busy:.0f} of processors)"
    print(f"| GPLatent(10) | {took} | {neighbour_errors(gp.embedding_[:, :2], y)} | {gp.n_active_} |")
    gp.plot(y).savefig(out / "oil_map.png")
    gp.plot_reconstruction(0).savefig(out / "oil_along.png")
    absent = np.argsort(np.random.default_rng(SEED).random(new.shape), axis=1) < new.shape[1] // 2
    began = time.perf_counter()
    away = (gp.impute(np.where(absent, np.nan, new)) - new) / Y.std(axis=0)
    print(f"\nhalf of the cells missing, {len(new)} new rows, {time.perf_counter() - began:.0f} s:")
    print(f"RMSE of missing cells {np.sqrt(np.mean(away[absent] ** 2)):.3f}, median |error|", end=" ")
    print(f"{np.median(np.abs(away[absent])):.3f}; MSE of all cells {np.mean(away**2):.3f}")
    whole = (gp.reconstruct(new) - new) / Y.std(axis=0)
    print(f"nothing missing: RMSE of the reconstruction {np.sqrt(np.mean(whole**2)):.3f}")


def mnist(folder: Path, out: Path) -> None:
    data = np.load(folder / "mnist.npz")
    X, y = (data[name] for name in ("X_train", "y_train")) if "X_train" in data else (data["X"], data["y"])
    rows = np.concatenate([np.flatnonzero(y == digit)[:200] for digit in range(5)])
    pictures, labels = X[rows].reshape(len(rows), -1).astype(float), y[rows]
    began = time.perf_counter()
    gp = gm.GPLatent(2, scale="table", max_iter=200, random_state=SEED).fit(pictures)
    seconds = time.perf_counter() - began
    plane = neighbour_errors(PCA(2).fit_transform(pictures), labels)
    ours = neighbour_errors(gp.embedding_, labels)
    print(f"digits 0 to 4, {len(rows)} pictures, 2-D: {ours} errors in {seconds:.0f} s; PCA {plane}")
    gp.plot(labels).savefig(out / "digits_map.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["oil", "mnist"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    {"oil": oil, "mnist": mnist}[given.what](given.folder, given.out)


if __name__ == "__main__":
    main()
