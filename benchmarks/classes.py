"""Classification on real and synthetic data: tables in Markdown.

    python benchmarks/classes.py tenfold FOLDER     error and information (bits) of Laplace, EP, VI and MCMC,
                                                    ten folds
    python benchmarks/classes.py synthetic OUT      a binary task with known parameters: evidences at the true
                                                    and the optimised ones; a picture
    python benchmarks/classes.py six OUT            six classes in one and two dimensions: accuracy and
                                                    calibration; pictures
    python benchmarks/classes.py jass FOLDER        six classes, 4,000 rows: one-vs-rest, one-vs-one, softmax,
                                                    robust-max; dense and sparse
    python benchmarks/classes.py mnist FOLDER       ten digits, 60,000 images, stochastic variational
                                                    inference

FOLDER holds the sets as NumPy files: ionosphere.npz and so on. Information is the mean of log2 p(label) plus
the entropy of the training labels, as Kuss and Rasmussen 2005 measure it: 1 bit is all, 0 what the class
frequencies alone tell.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold

import gramian as gm

SEED = 0


# Ten folds. -------------------------------------------------------------------------------------------------


Fold = tuple[np.ndarray, np.ndarray]


def in_folds(folder: Path, name: str, whiten: bool) -> tuple[np.ndarray, np.ndarray, list[Fold]]:
    """Columns of unit variance, whitened ones also uncorrelated (principal components), the labels, and ten
    folds.

    Crabs have seven columns: five measures, the species, and the number of an animal within species and sex,
    by which the rows are ordered."""
    held = np.load(folder / f"{name}.npz")
    X, y = held["X"].astype(float), held["y"]
    if name == "crabs":
        X = np.column_stack([X, held["species"], np.tile(np.arange(50), 4)])
    X = X[:, np.ptp(X, axis=0) > 0]
    X = PCA(whiten=True).fit_transform(X) if whiten else (X - X.mean(axis=0)) / X.std(axis=0)
    return X, y, list(KFold(10, shuffle=True, random_state=SEED).split(X))


def told(gp: gm.GPClassifier, X: np.ndarray, y: np.ndarray, fold: Fold) -> tuple[float, float]:
    """The share of wrong labels and the bits told of those of the fold's test rows."""
    train, test = fold
    p = gp.predict_proba(X[test])
    code = np.searchsorted(gp.classes_, y[test])
    share = np.mean(y[train] == gp.classes_[1])
    entropy = -share * np.log2(share) - (1 - share) * np.log2(1 - share)
    return float(np.mean(np.argmax(p, axis=1) != code)), float(
        entropy + np.mean(np.log2(p[np.arange(len(test)), code]))
    )


def tenfold(folder: Path, chains: bool, sets: list[str], whiten: bool) -> None:
    """Kuss and Rasmussen's setting: probit, an isotropic RBF, maximum evidence with neither prior nor narrow
    bounds. The chains are of the latent function at EP's parameters, as theirs."""
    words = ["laplace", "ep", "vi", *(["mcmc"] if chains else [])]
    print("| set | rows | inference | error % | information, bits | seconds a fold | worst R-hat |")
    print("|---|---|---|---|---|---|---|")
    for name in sets:
        X, y, folds = in_folds(folder, name, whiten)
        at_ep = []
        for word in words:
            wrong, bits, seconds, worst = [], [], [], []
            for fold, (train, test) in enumerate(folds):
                scale, length = (
                    gm.param(10.0, bounds=(1e-4, 1e8)),
                    gm.param(np.sqrt(X.shape[1]), bounds=(1e-3, 1e4)),
                )
                kernel = at_ep[fold] if word == "mcmc" else scale * gm.RBF(length)
                began = time.perf_counter()
                inference, hyper = (gm.MCMC(warmup=150, draws=250), "map") if word == "mcmc" else (word, "ml")
                gp = gm.GPClassifier(
                    kernel, inference=inference, link="probit", hyper=hyper, random_state=SEED, n_restarts=0
                )
                gp.fit(X[train], y[train])
                errors, information = told(gp, X, y, (train, test))
                seconds.append(time.perf_counter() - began)
                wrong.append(errors)
                bits.append(information)
                if word == "ep":
                    found = {row.name: row.value for row in gp.parameters_}
                    at_ep.append(
                        gm.fixed(found["kernel.scale"]) * gm.RBF(gm.fixed(found["kernel.lengthscale"]))
                    )
                if word == "mcmc":
                    worst.append(gp.posterior_.chains.worst_rhat)
            rhat = f"{max(worst):.4f}" if worst else ""
            print(
                f"| {name} | {len(X)} | {word} | {100 * np.mean(wrong):.2f} | {np.mean(bits):.3f} |"
                f" {np.mean(seconds):.2f} | {rhat} |",
                flush=True,
            )


# Synthetic. -------------------------------------------------------------------------------------------------


def synthetic(out: Path) -> None:
    """Inputs on [0, 1], a latent function of variance 7 and lengthscale 0.2, a logistic link."""
    rng = np.random.default_rng(SEED)
    X = np.sort(rng.uniform(0, 1, 250))[:, None]
    true = 7.0 * gm.RBF(0.2)
    f = gm.GPRegressor(true, normalize_y=False, mean="zero").sample(X, 1, random_state=SEED)[:, 0]
    y = rng.random(250) < 1 / (1 + np.exp(-f))
    print("| inference | at the true parameters | optimised | scale | lengthscale |")
    print("|---|---|---|---|---|")
    for word in ("laplace", "ep", "vi"):
        at_truth = gm.GPClassifier(true, inference=word, optimize=False).fit(X, y).evidence_.value
        gp = gm.GPClassifier(true, inference=word, random_state=SEED).fit(X, y)
        found = {row.name: row.value for row in gp.parameters_}
        print(
            f"| {word} | {at_truth:.3f} | {gp.evidence_.value:.3f} | {found['kernel.scale']:.3g} |"
            f" {found['kernel.lengthscale']:.3g} |",
            flush=True,
        )
        assert gp.evidence_.value >= at_truth - 1e-6
    out.mkdir(parents=True, exist_ok=True)
    gp.plot().savefig(out / "binary.png", dpi=110)


def six(out: Path) -> None:
    """The largest of six draws of a Gaussian process is the class."""
    out.mkdir(parents=True, exist_ok=True)
    print("| columns | model | accuracy | mean log p | mean p of the chosen class | evidence | seconds |")
    print("|---|---|---|---|---|---|---|")
    for d, n in ((1, 100), (2, 200)):
        rng = np.random.default_rng(SEED + d)
        X, new = rng.uniform(0, 1, (n, d)), rng.uniform(0, 1, (1000, d))
        both = np.vstack([X, new])
        prior = gm.GPRegressor(10.0 * gm.RBF(0.2 if d == 1 else 0.4), normalize_y=False, mean="zero")
        f = prior.sample(both, 6, random_state=SEED + d)
        labels = np.argmax(f, axis=1)
        for word, inference in (("softmax", "laplace"), ("softmax", "vi"), ("robustmax", "vi")):
            gp = gm.GPClassifier(
                1.0 * gm.RBF(0.3), multiclass=word, inference=inference, random_state=SEED, n_restarts=0
            )
            began = time.perf_counter()
            gp.fit(X, labels[:n])
            seconds = time.perf_counter() - began
            p = gp.predict_proba(new)
            known = np.isin(labels[n:], gp.classes_)
            code = np.searchsorted(gp.classes_, labels[n:][known])
            chosen = np.argmax(p, axis=1)
            right = np.mean(gp.classes_[chosen] == labels[n:])
            log_p = np.mean(np.log(p[known, :][np.arange(len(code)), code]))
            sure = np.mean(np.max(p, axis=1))
            print(
                f"| {d} | {word}, {inference} | {right:.3f} | {log_p:.3f} | {sure:.3f} |"
                f" {gp.evidence_.value:.2f} | {seconds:.1f} |",
                flush=True,
            )
            gp.plot().savefig(out / f"six_{d}d_{word}_{inference}.png", dpi=100)


# Real data of several classes. ------------------------------------------------------------------------------


def jass(folder: Path, rows: int | None) -> None:
    held = np.load(folder / "jass_trump.npz")
    X, y, X_test, y_test = (
        held["X_train"].astype(float),
        held["y_train"],
        held["X_test"].astype(float),
        held["y_test"],
    )
    if rows is not None:
        X, y = X[:rows], y[:rows]
    d = X.shape[1]
    kernels = {
        "RBF": 2.0 * gm.RBF(np.sqrt(d)),
        "RBF, ARD": 2.0 * gm.RBF(np.full(d, np.sqrt(d))),
        "linear": 1.0 * gm.Linear(1.0 / d),
    }
    sparse = gm.SVGP(500, steps=600, learning_rate=0.03)
    few = gm.Nystrom(200, "kmeans")
    runs = [
        ("softmax", "vi", "RBF, ARD", sparse),
        ("softmax", "vi", "RBF", sparse),
        ("softmax", "vi", "linear", sparse),
        ("robustmax", "vi", "RBF, ARD", sparse),
        ("ovr", "laplace", "RBF", few),
        ("ovo", "laplace", "RBF", few),
        ("ovo", "laplace", "RBF", "exact"),
        ("ovr", "laplace", "RBF", "exact"),
        ("softmax", "laplace", "RBF", few),
        ("softmax", "laplace", "RBF", "exact"),
    ]
    print(f"{len(X):,} rows to train on, {len(X_test)} to test\n")
    print("| model | inference | kernel | method | accuracy | mean log p | evidence | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for multiclass, inference, kernel, method in runs:
        gp = gm.GPClassifier(
            kernels[kernel],
            multiclass=multiclass,
            inference=inference,
            method=method,
            random_state=SEED,
            n_restarts=0,
        )
        began = time.perf_counter()
        gp.fit(X, y)
        seconds, p = time.perf_counter() - began, gp.predict_proba(X_test)
        code = np.searchsorted(gp.classes_, y_test)
        right, log_p = np.mean(np.argmax(p, axis=1) == code), np.mean(np.log(p[np.arange(len(code)), code]))
        name = (
            method
            if isinstance(method, str)
            else f"{method.name}, {getattr(method, 'n_inducing', getattr(method, 'rank', ''))} points"
        )
        print(
            f"| {multiclass} | {inference} | {kernel} | {name} | {right:.3f} | {log_p:.3f} | {gp.evidence_} |"
            f" {seconds:.0f} |",
            flush=True,
        )


def mnist(folder: Path, points: int, steps: int, batch: int, components: int, limit: float | None) -> None:
    """On leading principal components: in all 784 directions inducing points take far longer to find their
    places."""
    held = np.load(folder / "mnist.npz")
    X, y = held["X_train"].reshape(len(held["X_train"]), -1) / 255.0, held["y_train"]
    test, y_test = held["X_test"].reshape(len(held["X_test"]), -1) / 255.0, held["y_test"]
    began = time.perf_counter()
    reduce = PCA(components, svd_solver="covariance_eigh").fit(X)
    method = gm.SVGP(points, batch_size=batch, steps=steps, learning_rate=0.03, natural_step=0.05)
    kernel = 15.0 * gm.Matern52(np.full(components, 9.0))
    gp = gm.GPClassifier(
        kernel, inference="vi", method=method, random_state=SEED, time_limit=limit, verbose=True
    )
    gp.fit(reduce.transform(X), y)
    seconds = time.perf_counter() - began
    p = gp.predict_proba(reduce.transform(test))
    wrong, log_p = (
        np.mean(gp.classes_[np.argmax(p, axis=1)] != y_test),
        np.mean(np.log(p[np.arange(len(y_test)), y_test])),
    )
    print(gp.summary())
    print(f"\ntest error {100 * wrong:.2f} %, mean log p {log_p:.4f}, fitted in {seconds:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["tenfold", "synthetic", "six", "jass", "mnist"])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("."))
    parser.add_argument("--no-chains", action="store_true", help="tenfold without MCMC")
    parser.add_argument(
        "--whiten", action="store_true", help="tenfold on principal components of unit variance"
    )
    parser.add_argument("--sets", nargs="+", default=["crabs", "ionosphere", "pima_uci"], help="of tenfold")
    parser.add_argument("--rows", type=int, help="of jass, to train on")
    parser.add_argument("--points", type=int, default=500, help="of mnist")
    parser.add_argument("--steps", type=int, default=2500, help="of mnist")
    parser.add_argument("--batch", type=int, default=1024, help="of mnist")
    parser.add_argument("--components", type=int, default=50, help="of mnist")
    parser.add_argument("--time-limit", type=float, help="of mnist, in seconds")
    given = parser.parse_args()
    if given.what == "tenfold":
        tenfold(given.folder, not given.no_chains, given.sets, given.whiten)
    elif given.what == "jass":
        jass(given.folder, given.rows)
    elif given.what == "mnist":
        mnist(given.folder, given.points, given.steps, given.batch, given.components, given.time_limit)
    else:
        {"synthetic": synthetic, "six": six}[given.what](given.folder)


if __name__ == "__main__":
    sys.exit(main())
