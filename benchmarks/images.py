"""Gaussian processes of images: tables in Markdown.

    python benchmarks/images.py plan                     what exact inference with ConvNet takes, planned and
                                                         measured
    python benchmarks/images.py exact FOLDER [n [every]] MNIST, n labelled images (5,000), every 5th test
                                                         image: error of RBF and ConvNet, exact, one-hot
                                                         targets; --slanted: digits as they are
    python benchmarks/images.py patches FOLDER [minutes] MNIST, all rows: SVGP with Convolutional
    python benchmarks/images.py medical FOLDER OUT [data ...] --peer /path/to/venv/bin/python
                                                         breastmnist, retinamnist and MNIST by the number of
                                                         labels: kernels, logistic regression, an SVM, and a
                                                         CNN (torch, in an environment of its own); a picture

FOLDER holds mnist.npz, breastmnist.npz and retinamnist.npz.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.ndimage import affine_transform
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import gramian as gm
from gramian.gram import tiles

SIZES = (50, 100, 200, 500, 1000)
REPEATS = 3
DIGITS, TEST_DIGITS = 1500, 10  # of MNIST: labelled images to choose from, and every so many-th test image
Task = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def network(channels: int = 1) -> gm.Kernel:
    """Four layers of 3 x 3 on images of 14 x 14, windows of 2 x 2 averaged after the first: the best of eight
    on 1,500 held-out training images of MNIST (1,000 labels) that a value of 20 microseconds allows."""
    held: dict[str, Any] = {"variance": gm.fixed(2.0), "bias": gm.fixed(0.0)}
    return gm.ConvNet(4, (14, 14), channels, filter=3, pool=2, **held)


def of_breasts(channels: int = 1) -> gm.Kernel:
    """Windows of 4 x 4 after four of seven layers, at every other place: where something lies tells less. The
    best of seven by cross-validation on the training rows."""
    held: dict[str, Any] = {"variance": gm.fixed(2.0), "bias": gm.fixed(0.0)}
    return gm.ConvNet(7, (14, 14), channels, filter=3, pool=4, stride=2, after=4, **held)


def digits(folder: Path) -> Task:
    held = np.load(folder / "mnist.npz")
    return held["X_train"] / 255.0, held["y_train"], held["X_test"] / 255.0, held["y_test"]


def halved(X: np.ndarray, channels: int = 1) -> np.ndarray:
    """28 x 28 pixels as averages of 2 x 2, all images equally bright: k(x, x) grows with the square."""
    small = X.reshape(-1, 14, 2, 14, 2, channels).mean(axis=(2, 4)).reshape(len(X), -1)
    return small / np.sqrt(np.mean(small**2, axis=1, keepdims=True))


def upright(X: np.ndarray) -> np.ndarray:
    """Digits without their slant: sheared so that the ink's moment xy is 0 (LeCun et al. 1998)."""
    y, x = np.mgrid[:28, :28]
    found = []
    for image in X.reshape(-1, 28, 28):
        at = [np.sum(c * image) / np.sum(image) for c in (y, x)]
        slant = np.sum((y - at[0]) * (x - at[1]) * image) / np.sum((y - at[0]) ** 2 * image)
        shear = np.array([[1.0, 0.0], [slant, 1.0]])
        found.append(affine_transform(image, shear, at - shear @ [13.5, 13.5], order=1))
    return np.stack(found).reshape(len(X), -1)


# Exact inference. -------------------------------------------------------------------------------------------


def planned() -> None:
    """What gm.plan says, and what the Gram matrix of so many images takes; one thread of both."""
    print("| images | gm.plan: s | GB | measured: s | of the processor |\n|---|---|---|---|---|")
    X = np.random.default_rng(0).uniform(size=(1000, 196))
    for n in (250, 500, 1000, 5000):
        said = gm.plan((n, 196), network(), optimize=False).options[0]
        told = "| |"
        if n <= len(X):
            gp = gm.GPRegressor(network(), method="exact", noise=gm.fixed(1e-3), optimize=False)
            began, worked = time.perf_counter(), time.process_time()
            gp.fit(X[:n], X[:n, 0])
            told = f"{time.perf_counter() - began:.1f} | {time.process_time() - worked:.1f} |"
        print(f"| {n:,} | {said.fit_seconds:.1f} | {said.bytes / 1e9:.2f} | {told}", flush=True)


def exact(folder: Path, n: int, every: int, slanted: bool) -> None:
    """One-hot targets with Gaussian noise, the class of the largest mean: all ten share a factor."""
    X, y, X_test, y_test = digits(folder)
    X, y, X_test, y_test = X[:n], y[:n], X_test[::every], y_test[::every]
    ready = halved if slanted else lambda images: halved(upright(images))
    print(f"MNIST, {n:,} labelled images, {len(X_test):,} test images (every {every}th), slant {slanted}\n")
    print("| kernel | error | fit | predict | of the processor |\n|---|---|---|---|---|")
    tasks = {
        "RBF": (gm.RBF(gm.fixed(5.0)), X, X_test, 1e-4),
        "ConvNet": (network(), ready(X), ready(X_test), 2e-3),
    }
    for name, (kernel, rows, new, noise) in tasks.items():
        scale = 1 / float(np.mean(kernel.diag(rows[:100])))
        given: dict[str, Any] = {"noise": gm.fixed(noise), "normalize_y": False, "optimize": False}
        gp = gm.GPRegressor(gm.fixed(scale) * kernel, method="exact", **given)
        began, worked = time.perf_counter(), time.process_time()
        gp.fit(rows, np.eye(10)[y] - 0.1)
        fitted = time.perf_counter()
        f = gp.predict(new)
        wrong = np.mean(np.argmax(f, axis=1) != y_test)
        error = f"{100 * wrong:.2f} ± {100 * np.sqrt(wrong * (1 - wrong) / len(new)):.2f} %"
        times = f"{fitted - began:.0f} s | {time.perf_counter() - fitted:.0f} s"
        print(f"| {name} | {error} | {times} | {time.process_time() - worked:.0f} s |", flush=True)


def patches(folder: Path, minutes: float) -> None:
    """All rows, as long as it may take; inducing patches with their places, weights a place."""
    X, y, X_test, y_test = digits(folder)
    kernel = 1000.0 * gm.Convolutional(gm.RBF(1.5), (5, 5), (28, 28), weights="each", place=gm.RBF(3.0))
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


class Images:
    """Training and test images (n, 28, 28, channels) with their labels."""

    def __init__(self, folder: Path, name: str, sizes: Sequence[int] = SIZES) -> None:
        held, self.sizes = np.load(folder / f"{name}.npz"), sizes
        self.name, self.ordered, self.mirrored = name, name == "retinamnist", name != "mnist"
        if name == "mnist":
            images = held["X_train"][:DIGITS], held["X_test"][::TEST_DIGITS]
            labels = held["y_train"][:DIGITS], held["y_test"][::TEST_DIGITS]
        else:
            train, test = np.flatnonzero(held["split"] < 2), np.flatnonzero(held["split"] == 2)
            images, labels = (held["X"][train], held["X"][test]), (held["y"][train], held["y"][test])
        self.X, self.new = (part.reshape(len(part), 28, 28, -1) / 255.0 for part in images)
        self.y, self.y_new = (part.ravel().astype(np.int64) for part in labels)
        self.channels = self.X.shape[3]

    def subsets(self) -> dict[tuple[int, int], np.ndarray]:
        """Rows by their number and the turn; all of them (but of MNIST), once."""
        n = len(self.y)
        found = {
            (size, turn): np.random.default_rng(turn).permutation(n)[:size]
            for size in self.sizes
            for turn in range(REPEATS)
            if size < n
        }
        return found if self.name == "mnist" else {**found, (n, 0): np.arange(n)}

    def gram(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """K(X, X), K(new, X) and k(new, new) of the network, of which each fit takes a part. In float32: the
        likelihood's curvature is far above its rounding. Functions of images that may be mirrored do not
        change with it: k(x, z) and k(x, mirrored z), averaged (Ginsbourger et al. 2016)."""
        ready = halved if self.mirrored else (lambda X, channels: halved(upright(X), channels))
        kernel = (of_breasts if self.name == "breastmnist" else network)(self.channels)
        X, new = (ready(part, self.channels) for part in (self.X, self.new))
        K, K_new, own = values(kernel, X, X, True), values(kernel, new, X), kernel.diag(new)
        if self.mirrored:
            turned, new_turned = (ready(part[:, :, ::-1], self.channels) for part in (self.X, self.new))
            K += values(kernel, X, turned, True)
            K_new += values(kernel, new_turned, X)
            own = own + np.concatenate(
                [
                    np.diag(kernel(new[at : at + 16], new_turned[at : at + 16]))
                    for at in range(0, len(new), 16)
                ]
            )
        scale = 1 / np.mean(np.diag(K))
        return scale * K, scale * K_new, scale * own


def values(kernel: gm.Kernel, X: np.ndarray, Z: np.ndarray, symmetric: bool = False) -> np.ndarray:
    """K(X, Z) in float32, in blocks of 128 rows, for which one program is compiled and little is padded;
    `symmetric`: Z are the rows X, or all of them mirrored."""
    K, size = np.zeros((len(X), len(Z)), np.float32), 128
    for i in range(0, len(X), size):
        for j in range(0, i + size if symmetric else len(Z), size):
            part = tiles.cross(kernel, X[i : i + size], Z[j : j + size], low=True)
            K[i : i + size, j : j + size] = part
            if symmetric:
                K[j : j + size, i : i + size] = part.T
    return K


def as_rows(K: np.ndarray, K_new: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose dot products are the kernel's values: those of a Cholesky factor, and one column more for
    what new rows have that others lack. Fits of parts of a costly Gram matrix need no new values of it."""
    L = np.linalg.cholesky(K.astype(np.float64) + 1e-6 * np.eye(len(K)))
    rest = solve_triangular(L, K_new.T.astype(np.float64), lower=True).T
    alone = np.sqrt(np.maximum(own - np.sum(rest**2, axis=1), 0.0))
    return np.hstack([L, np.zeros((len(L), 1))]), np.hstack([rest, alone[:, None]])


def medical(folder: Path, out: Path, peer: str | None, names: list[str], sizes: list[int]) -> None:
    found: dict[tuple[str, str], dict[int, list[list[float]]]] = {}
    print("| data | labels | method | accuracy | AUC | log loss | calibration error | s |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        data = Images(folder, name, sizes)
        began = time.process_time()
        K, K_new, own = data.gram()
        print(
            f"<!-- {name}: Gram matrix {time.process_time() - began:.0f} s of the processor -->", flush=True
        )
        trained = by_peer(data, peer)
        for (size, turn), rows in data.subsets().items():
            ready = as_rows(K[np.ix_(rows, rows)], K_new[:, rows], own)
            for method, make in methods(data, size, turn).items():
                began = time.process_time()
                p = make(rows, ready)
                scores = [*scored(p, data.y_new), time.process_time() - began]
                found.setdefault((name, method), {}).setdefault(size, []).append(scores)
                print(name, size, turn, method, *np.round(scores, 3), file=sys.stderr, flush=True)
            if trained is not None:
                p, took = trained[f"rows{size}_{turn}"], float(trained[f"seconds{size}_{turn}"])
                of_peer = found.setdefault((name, "CNN"), {}).setdefault(size, [])
                of_peer.append([*scored(p, data.y_new), took])
        for (of, method), by_size in found.items():
            for size, scores in by_size.items() if of == name else ():
                spread = zip(np.mean(scores, 0), np.std(scores, 0) / np.sqrt(len(scores)), strict=True)
                told = [f"{mean:.3f} ± {error:.3f}" for mean, error in spread]
                print(f"| {name} | {size} | {method} | {' | '.join(told)} |", flush=True)
        draw(found, out)


Ready = tuple[np.ndarray, np.ndarray]


def methods(data: Images, size: int, turn: int) -> dict[str, Callable[[np.ndarray, Ready], np.ndarray]]:
    """Each makes probabilities (new, classes) of rows, or of rows that stand for a part of a Gram matrix."""
    classes = np.arange(np.max(data.y) + 1)
    X, new = (part.reshape(len(part), -1) for part in (data.X, data.new))
    small, small_new = (halved(part, data.channels) for part in (data.X, data.new))

    def usual(model: Any, X: np.ndarray, new: np.ndarray, y: np.ndarray) -> np.ndarray:
        p = np.zeros((len(new), len(classes)))
        model.fit(X, y)
        p[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(new)
        return p

    def logistic(rows: np.ndarray, _: Ready) -> np.ndarray:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=2000))
        return usual(model, X[rows], new, data.y[rows])

    def svm(rows: np.ndarray, _: Ready) -> np.ndarray:
        model = make_pipeline(StandardScaler(), SVC(probability=True, random_state=0))
        return usual(model, X[rows], new, data.y[rows])

    def classified(rows: np.ndarray, ready: Ready) -> np.ndarray:
        kernel = gm.param(4.0) * gm.Linear(gm.fixed(1.0))
        model = gm.GPClassifier(kernel, mean="constant", method="exact", random_state=0)
        return usual(model, *ready, data.y[rows])

    def each_alone(rows: np.ndarray, ready: Ready) -> np.ndarray:
        kernel = gm.param(4.0) * gm.Linear(gm.fixed(1.0))
        model = gm.GPClassifier(kernel, mean="constant", multiclass="ovr", method="exact", random_state=0)
        return usual(model, *ready, data.y[rows])

    def rbf(rows: np.ndarray, _: Ready) -> np.ndarray:
        model = gm.GPClassifier(4.0 * gm.RBF(10.0), method="exact", random_state=0)
        return usual(model, small[rows], small_new, data.y[rows])

    def deep(rows: np.ndarray, _: Ready) -> np.ndarray:
        kernel = 4.0 * gm.DeepKernel(gm.RBF(1.0), gm.CNN((14, 14), data.channels, (4, 8), 4))
        return usual(gm.GPClassifier(kernel, random_state=0), small[rows], small_new, data.y[rows])

    def patches(rows: np.ndarray, _: Ready) -> np.ndarray:
        kernel = 100.0 * gm.Convolutional(gm.RBF(2.0), (5, 5), (14, 14), data.channels, "each")
        method = gm.SVGP(100, batch_size=64, steps=100)
        model = gm.GPClassifier(kernel, method=method, random_state=0)
        return usual(model, small[rows], small_new, data.y[rows])

    def ordinal(rows: np.ndarray, ready: Ready) -> np.ndarray:
        kernel = gm.param(4.0) * gm.Linear(gm.fixed(1.0))
        gp = gm.GPRegressor(kernel, likelihood=gm.Ordinal(len(classes)), method="exact", random_state=0)
        gp.fit(ready[0], data.y[rows].astype(float))
        each = [gp.log_density(ready[1], np.full(len(ready[1]), float(c))) for c in classes]
        return np.exp(np.stack(each, axis=1))

    found = {"logistic": logistic, "SVM": svm}
    if len(classes) == 2 or size <= 500:  # the bound of several classes takes minutes beyond
        found |= {"GP, RBF": rbf, "GP, ConvNet": classified}
    if len(classes) > 2:
        found["GP, ConvNet, one-vs-rest"] = each_alone
    if data.ordered:
        found["GP, ConvNet, ordinal"] = ordinal
    if data.name == "breastmnist" and size <= 200 and turn == 0:  # a fit takes 11 s and more of a core
        found |= {"GP, deep": deep, "GP, Convolutional": patches}
    return found


PEER = """
import sys, time
import numpy as np, torch
from torch import nn

torch.set_num_threads(1)
held = np.load(sys.argv[1])
(X, y, new), mirrored = (torch.from_numpy(held[k]) for k in ("X", "y", "new")), bool(held["mirrored"])
classes, found = int(y.max()) + 1, {}

def block(inputs, units):
    return [nn.Conv2d(inputs, units, 3, padding=1), nn.BatchNorm2d(units), nn.ReLU(), nn.MaxPool2d(2)]

for name in (k for k in held.files if k.startswith("rows")):
    torch.manual_seed(0)
    rows, began = torch.from_numpy(held[name]), time.process_time()
    net = nn.Sequential(*block(X.shape[1], 16), *block(16, 32), *block(32, 64), nn.Flatten(), nn.Dropout(0.5),
                        nn.Linear(64 * 9, classes))
    steps = max(300, 15 * len(rows) // 32)
    adam = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=1e-2)
    rate = torch.optim.lr_scheduler.OneCycleLR(adam, 4e-3, total_steps=steps)
    for _ in range(steps):
        some = rows[torch.randint(len(rows), (32,))]
        batch = torch.roll(X[some], torch.randint(-2, 3, (2,)).tolist(), (2, 3))
        if mirrored and torch.rand(()) < 0.5:
            batch = batch.flip(3)
        loss = nn.functional.cross_entropy(net(batch), y[some])
        adam.zero_grad(); loss.backward(); adam.step(); rate.step()
    net.eval()
    with torch.no_grad():
        found[name] = torch.cat([torch.softmax(net(part), 1) for part in new.split(500)]).numpy()
    found["seconds" + name[4:]] = time.process_time() - began
np.savez(sys.argv[2], **found)
"""


def by_peer(data: Images, peer: str | None) -> Any:
    """Probabilities of a network of three convolutions, trained on the same rows with shifted (and mirrored)
    copies, in an environment of its own; None where there is none."""
    if peer is None or not Path(peer).exists():
        print("<!-- the CNN was not trained: give --peer, the Python of an environment with torch -->")
        return None
    with tempfile.TemporaryDirectory() as place:
        given, made = Path(place) / "given.npz", Path(place) / "made.npz"
        X, new = (part.transpose(0, 3, 1, 2).astype(np.float32) for part in (data.X, data.new))
        rows = {f"rows{size}_{turn}": rows for (size, turn), rows in data.subsets().items()}
        np.savez(given, X=X, y=data.y, new=new, mirrored=data.mirrored, **rows)
        subprocess.run([peer, "-c", PEER, str(given), str(made)], check=True)
        return dict(np.load(made))


def scored(p: np.ndarray, y: np.ndarray) -> list[float]:
    """Accuracy, AUC, log loss and calibration error of the top class, in ten bins."""
    p = np.maximum(p, 1e-12) / np.sum(np.maximum(p, 1e-12), axis=1, keepdims=True)
    auc = roc_auc_score(y, p[:, 1]) if p.shape[1] == 2 else roc_auc_score(y, p, multi_class="ovr")
    top, right = np.max(p, axis=1), np.argmax(p, axis=1) == y
    bins = np.minimum((10 * top).astype(int), 9)
    gaps = [abs(np.sum(right[bins == b]) - np.sum(top[bins == b])) for b in range(10)]
    return [float(np.mean(right)), float(auc), float(log_loss(y, p)), float(sum(gaps) / len(y))]


def draw(found: dict[tuple[str, str], dict[int, list[list[float]]]], out: Path) -> None:
    """AUC and log loss by the number of labels, a column a data set; error bars are standard errors."""
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(name for name, _ in found))
    shape = {"figsize": (6 * len(names), 8), "squeeze": False, "layout": "constrained"}
    figure, axes = plt.subplots(2, len(names), **shape)
    for row, (which, said) in enumerate(((1, "AUC"), (2, "log loss"))):
        for axis, name in zip(axes[row], names, strict=True):
            ticks = sorted({size for (data, _), sizes in found.items() if data == name for size in sizes})
            for (data, method), by_size in found.items():
                if data == name:
                    scores = [np.array(turns)[:, which] for turns in by_size.values()]
                    error = [np.std(turns) / np.sqrt(len(turns)) for turns in scores]
                    mean = [np.mean(turns) for turns in scores]
                    axis.errorbar(list(by_size), mean, error, marker="o", capsize=3, label=method)
            axis.set(xscale="log", xlabel="labelled images", ylabel=said, title=name)
            axis.set_xticks(ticks, [f"{n:,}" for n in ticks])
            axis.set_xticks([], minor=True)
            axis.legend(fontsize="small")
    figure.savefig(out, dpi=100)
    plt.close(figure)


def main() -> None:
    warnings.filterwarnings("ignore", category=FutureWarning)  # of the SVM's probabilities
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("plan", "exact", "patches", "medical"))
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--peer", help="medical: the Python of an environment with torch")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="medical: numbers of labels")
    parser.add_argument("--slanted", action="store_true", help="exact: leave digits as they are")
    given = parser.parse_args()
    folder = Path(given.rest[0]) if given.rest else Path()
    if given.what == "plan":
        planned()
    elif given.what == "exact":
        n, every = (*map(int, given.rest[1:]), *(5000, 5)[len(given.rest) - 1 :])
        exact(folder, n, every, given.slanted)
    elif given.what == "patches":
        patches(folder, float(given.rest[1]) if len(given.rest) > 1 else 60.0)
    else:
        out = Path(given.rest[1]) if len(given.rest) > 1 else Path("images.png")
        medical(
            folder, out, given.peer, given.rest[2:] or ["breastmnist", "retinamnist", "mnist"], given.sizes
        )


if __name__ == "__main__":
    sys.exit(main())
