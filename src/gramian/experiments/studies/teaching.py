"""The pictures that teach: what a prior says, what data change, and that two views of it are one.

    posterior-covariance        cov(f(x), f(z) | y) = k(x, z) - k(x, X) (K + s^2 I)^-1 k(X, z)
    kernels                     k(x, 0), and functions that it draws
    prior-draws                 Bishop's k(x, z) = t0 exp(-t1 |x - z|^2 / 2) + t2 + t3 x z (PRML, figure 6.5)
    weight-and-function-space   f = phi(x)'w, w ~ N(0, I): the posterior of w, and a process with k = phi'phi

Tidy tables of curves: a row has the quantity, where (x, of a covariance also z), and the value.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from sklearn.kernel_ridge import KernelRidge

from gramian.arrays import Array
from gramian.experiments.studies.base import (
    Cell,
    Experiment,
    Illustration,
    Results,
    Row,
    Shown,
    SmallTable,
    rng_of,
)
from gramian.experiments.studies.drawing import COLOURS, DASHES, MAP, mean_and_band, panels
from gramian.experiments.studies.sets import DataFolder
from gramian.gp import GP
from gramian.kernels import Linear, map_inputs
from gramian.kernels.text import parse_kernel
from gramian.plots.common import BLUE, INK, ORANGE

CURVE = ("quantity", "x", "z", "value")


def curve(quantity: str, x: Array, values: Array) -> list[Row]:
    """A function as rows."""
    return [{"quantity": quantity, "x": float(a), "value": float(b)} for a, b in zip(x, values, strict=True)]


def curves(x: Array, draws: Array) -> list[Row]:
    """Draws (points, count) as rows."""
    return [row for k, draw in enumerate(draws.T, start=1) for row in curve(f"draw {k}", x, draw)]


def read(results: Results, quantity: str) -> tuple[Array, Array]:
    """A function from its rows."""
    mine = results.where(quantity=quantity)
    return mine.column("x"), mine.column("value")


# Before and after data. -------------------------------------------------------------------------------------

KERNEL, NOISE = "1.0 * RBF(0.8)", 0.01
SEEN = (-2.1, 1.2, -0.4, 2.4, 0.5, -1.2)  # where f is observed, in this order


def _covariance_grid(quick: bool) -> list[Cell]:
    return [{"observations": n, "points": 25 if quick else 61} for n in (0, 1, 3, 6)]


def _covariance(cell: Cell, data: DataFolder) -> list[Row]:
    n, prior = cell["observations"], GP(parse_kernel(KERNEL), mean=0.0, noise=NOISE)
    X = np.array(SEEN[:n])[:, None]
    y = np.sin(1.5 * X[:, 0])
    process = prior.condition(X, y) if n else prior
    fine, coarse = np.linspace(-3, 3, 121), np.linspace(-3, 3, cell["points"])
    mean, var = process.moments(fine[:, None])
    rows = [*curve("mean", fine, mean), *curve("std", fine, np.sqrt(var))]
    rows += [*curves(fine, process.sample(fine[:, None], 4, seed=n)), *curve("observation", X[:, 0], y)]
    cov = process.cov(coarse[:, None])
    places = [(i, j) for i in range(len(coarse)) for j in range(len(coarse))]
    return rows + [
        {"quantity": "covariance", "x": float(coarse[i]), "z": float(coarse[j]), "value": float(cov[i, j])}
        for i, j in places
    ]


def _covariance_shown(results: Results) -> Shown:
    counts = results.each("observations")
    figure, axes = panels(2, len(counts), 11.0, 2.9)
    words, image = [], None
    for (above, below), n in zip(axes.T, counts, strict=True):
        mine = results.where(observations=n)
        x, mean = read(mine, "mean")
        _, std = read(mine, "std")
        mean_and_band(above, x, mean, std)
        for k in range(1, 5):
            above.plot(*read(mine, f"draw {k}"), color="#777777", linewidth=0.7, linestyle=DASHES[k - 1])
        above.plot(*read(mine, "observation"), "o", color=INK, markersize=5)
        above.set(ylim=(-3.2, 3.2), title=f"{n} observation{'s' * (n != 1)}", xlabel="x")
        _, cov = read(mine, "covariance")
        side = int(np.sqrt(len(cov)))
        image = below.imshow(
            cov.reshape(side, side), cmap=MAP, vmin=-0.4, vmax=1.0, extent=(-3, 3, 3, -3),
            interpolation="nearest",
        )  # fmt: skip
        seen, _ = read(mine, "observation")
        below.plot(seen, seen, "o", color="white", markeredgecolor=INK, markersize=5)
        below.set(xlabel="z")
        words.append((n, float(np.mean(std**2)), float(np.max(std))))
    axes[0, 0].set_ylabel("f(x)")
    axes[1, 0].set_ylabel("x")
    figure.colorbar(image, ax=list(axes[1]), label="cov(f(x), f(z))", shrink=0.9)
    said = [
        f"With {n} observation{'s' * (n != 1)} the variance of f is {mean:.3f} on average over x, and its"
        f" standard deviation at most {most:.2f}."
        for n, mean, most in words
    ]
    said.append("Observations take variance away where they are, and no observation adds any.")
    caption = (
        "Above: mean of f, its 95 % band and four draws (grey). Below: covariance of f at all pairs of"
        " points; dots mark the observations."
    )
    return Shown([Illustration("posterior-covariance", caption, figure)], words=said)


POSTERIOR_COVARIANCE = Experiment(
    "posterior-covariance",
    "What does an observation change in what a Gaussian process believes of all other places?",
    f"A process with kernel {KERNEL} and noise variance {NOISE} is conditioned on 0, 1, 3 and 6 values of"
    " sin(1.5 x); mean, standard deviation, draws and the full covariance are taken before and after.",
    _covariance_grid,
    _covariance,
    CURVE,
    _covariance_shown,
)

# Kernels. ---------------------------------------------------------------------------------------------------

KERNELS = (
    "RBF(0.7)",
    "Matern12(0.7)",
    "Matern32(0.7)",
    "Matern52(0.7)",
    "RationalQuadratic(0.7, 0.3)",
    "Periodic(0.8, 1.5)",
    "Periodic(0.8, 1.5) * RBF(2.0)",
    "Cosine(1.5)",
    "Linear()",
    "Polynomial(3, 0.3, 0.5)",
    "NeuralNetwork(4.0, 2.0)",
    "ArcCosine(0)",
    "ArcCosine(1)",
    "Brownian()",
    "IntegratedBrownian()",
    "RBF(2.0) + 0.1 * Matern12(0.3)",
)


def _kernels_grid(quick: bool) -> list[Cell]:
    return [{"kernel": kernel} for kernel in (KERNELS[:8] if quick else KERNELS)]


def _kernels(cell: Cell, data: DataFolder) -> list[Row]:
    kernel, x = parse_kernel(cell["kernel"]), np.linspace(-3, 3, 121)
    draws = GP(kernel, mean=0.0).sample(x[:, None], 3, seed=1)
    rows = curve("k(x, 0)", x, kernel(x[:, None], np.zeros((1, 1)))[:, 0])
    return rows + curve("k(x, 1)", x, kernel(x[:, None], np.ones((1, 1)))[:, 0]) + curves(x, draws)


def roughness(draws: list[Array]) -> float:
    """How much a draw moves within a step of the grid, against its own spread."""
    return float(np.mean([np.sqrt(np.mean(np.diff(f) ** 2)) / max(float(np.std(f)), 1e-12) for f in draws]))


def _kernels_shown(results: Results) -> Shown:
    kernels = results.each("kernel")
    across = 4
    down = -(-len(kernels) // across)
    figure, axes = panels(2 * down, across, 11.0, 1.9, sharex=True)
    rough = {}
    for k, kernel in enumerate(kernels):
        mine = results.where(kernel=kernel)
        shape, drawn = axes[2 * (k // across), k % across], axes[2 * (k // across) + 1, k % across]
        shape.plot(*read(mine, "k(x, 0)"), color=BLUE, linewidth=1.6, label="k(x, 0)")
        shape.plot(*read(mine, "k(x, 1)"), color=ORANGE, linewidth=1.2, linestyle="--", label="k(x, 1)")
        shape.set_title(kernel, fontsize=9)
        for j in (1, 2, 3):
            drawn.plot(*read(mine, f"draw {j}"), color=COLOURS[j - 1], linewidth=1.1, linestyle=DASHES[j - 1])
        rough[kernel] = roughness(_draws(mine)[1])
    for unused in range(len(kernels), down * across):
        axes[2 * (unused // across), unused % across].remove()
        axes[2 * (unused // across) + 1, unused % across].remove()
    for row in range(down):
        axes[2 * row, 0].set_ylabel("k")
        axes[2 * row + 1, 0].set_ylabel("f(x)")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=2, frameon=False)
    order = sorted(rough, key=lambda kernel: rough[kernel])
    words = [
        f"The smoothest draws are those of {order[0]}: along 0.05, a step of the grid, they move by"
        f" {100 * rough[order[0]]:.1f} % of their spread.",
        f"The roughest are those of {order[-1]}: {100 * rough[order[-1]]:.1f} % along the same step.",
    ]
    lines = [[kernel, f"{100 * rough[kernel]:.1f} %"] for kernel in order]
    table = SmallTable(
        "movement of a draw in a step of 0.05, of its own spread", ["kernel", "movement"], lines
    )
    caption = "Each kernel: k against 0 and against 1 (above), and three functions drawn from it (below)."
    return Shown([Illustration("kernels", caption, figure)], [table], words)


def _draws(results: Results) -> tuple[Array, list[Array]]:
    found = [read(results, name) for name in results.each("quantity") if str(name).startswith("draw")]
    return found[0][0], [draw for _, draw in found]


KERNELS_SHOWN = Experiment(
    "kernels",
    "What does a kernel look like, and what functions does it draw?",
    "Each kernel is evaluated against x = 0 and x = 1 on 121 points from -3 to 3, and three functions without"
    " noise are drawn there from the process with mean zero.",
    _kernels_grid,
    _kernels,
    CURVE,
    _kernels_shown,
)

# Bishop's four parameters. ----------------------------------------------------------------------------------

BISHOP = (
    (1.0, 4.0, 0.0, 0.0),
    (9.0, 4.0, 0.0, 0.0),
    (1.0, 64.0, 0.0, 0.0),
    (1.0, 0.25, 0.0, 0.0),
    (1.0, 4.0, 10.0, 0.0),
    (1.0, 4.0, 0.0, 5.0),
)


def bishop(t0: float, t1: float, t2: float, t3: float) -> str:
    """The kernel as text; a summand of weight zero is left out."""
    parts = [f"{t0!r} * RBF({1 / np.sqrt(t1):.12g})"]
    return " + ".join([*parts, *([f"Constant({t2!r})"] * (t2 > 0)), *([f"Linear({t3!r})"] * (t3 > 0))])


def _prior_grid(quick: bool) -> list[Cell]:
    return [dict(zip(("t0", "t1", "t2", "t3"), values, strict=True), draws=5) for values in BISHOP]


def _prior(cell: Cell, data: DataFolder) -> list[Row]:
    x = np.linspace(-1, 1, 121)
    kernel = parse_kernel(bishop(*(cell[name] for name in ("t0", "t1", "t2", "t3"))))
    process = GP(kernel, mean=0.0)
    std = np.sqrt(process.var(x[:, None]))
    return curve("std", x, std) + curves(x, process.sample(x[:, None], cell["draws"], seed=6))


def _prior_shown(results: Results) -> Shown:
    cells = list(dict.fromkeys(tuple(row[t] for t in ("t0", "t1", "t2", "t3")) for row in results.rows))
    figure, axes = panels(2, 3, 10.0, 2.9, sharex=True)
    words = []
    for axis, values in zip(axes.flat, cells, strict=False):
        mine = results.where(**dict(zip(("t0", "t1", "t2", "t3"), values, strict=True)))
        x, std = read(mine, "std")
        axis.fill_between(x, -1.96 * std, 1.96 * std, color=BLUE, alpha=0.15, linewidth=0)
        _, drawn = _draws(mine)
        for k, draw in enumerate(drawn):
            axis.plot(x, draw, color=COLOURS[k], linewidth=1.2, linestyle=DASHES[k % len(DASHES)])
        named = ", ".join(f"{value:g}" for value in values)
        axis.set_title(f"θ = ({named})", fontsize=10)
        turns = float(np.mean([np.sum(np.diff(np.sign(np.diff(draw))) != 0) for draw in drawn]))
        words.append(
            f"θ = ({named}): draws turn {turns:.1f} times between -1 and 1 on average; the standard deviation"
            f" is {std[len(std) // 2]:.2f} in the middle and {std[0]:.2f} at the ends."
        )
    for axis in axes[:, 0]:
        axis.set_ylabel("f(x)")
    for axis in axes[-1]:
        axis.set_xlabel("x")
    words.append("θ0 sets the height, θ1 how often functions turn, θ2 lifts them as a whole, θ3 tilts them.")
    caption = "Five draws and the 95 % band of the prior for six choices of the four parameters."
    return Shown([Illustration("prior-draws", caption, figure)], words=words)


PRIOR_DRAWS = Experiment(
    "prior-draws",
    "What do the four parameters of a kernel do to the functions that it draws?",
    "k(x, z) = θ0 exp(-θ1 |x - z|² / 2) + θ2 + θ3 x z with the six choices of Bishop, Pattern Recognition and"
    " Machine Learning, figure 6.5; five draws each.",
    _prior_grid,
    _prior,
    CURVE,
    _prior_shown,
)

# Weights and functions. -------------------------------------------------------------------------------------

BUMP, SPREAD = 0.5, 0.1  # width of a bump, and the noise's standard deviation
RANGE = 4.0  # bumps stand from -RANGE to RANGE
POWERS = {"line": 1, "cubic": 3}


def basis(name: str, x: Any, xp: Any) -> Any:
    """phi of one point x, (1,), by NumPy or by JAX (`xp`)."""
    if name in POWERS:
        return xp.stack([x[0] ** power for power in range(POWERS[name] + 1)])
    centres = np.linspace(-RANGE, RANGE, int(name.split()[0]))
    # int exp(-(x - c)^2 / l^2) exp(-(z - c)^2 / l^2) dc = l sqrt(pi / 2) exp(-(x - z)^2 / (2 l^2)): with this
    # height, many bumps are an RBF kernel of lengthscale l
    height = np.sqrt((centres[1] - centres[0]) / (BUMP * np.sqrt(np.pi / 2)))
    return height * xp.exp(-(((x[0] - centres) / BUMP) ** 2))


def _views_grid(quick: bool) -> list[Cell]:
    counts = (5, 10, 20, 40) if quick else (5, 7, 10, 14, 20, 40, 80)
    return [{"basis": name} for name in (*POWERS, *(f"{count} bumps" for count in counts))]


def _views(cell: Cell, data: DataFolder) -> list[Row]:
    name = cell["basis"]
    rng = rng_of({"what": "views"})
    X, x = np.sort(rng.uniform(-1.8, 1.8, 15)), np.linspace(-2.2, 2.2, 89)
    y = np.sin(2.5 * X) + SPREAD * rng.standard_normal(15)
    Phi, at = (np.stack([basis(name, np.array([p]), np) for p in places]) for places in (X, x))
    # the posterior of the weights: N(A^-1 Phi'y / s^2, A^-1), A = I + Phi'Phi / s^2 (PRML, 3.50 and 3.51)
    A = np.eye(Phi.shape[1]) + Phi.T @ Phi / SPREAD**2
    weights = np.linalg.solve(A, Phi.T @ y) / SPREAD**2
    weight_mean, weight_var = at @ weights, np.einsum("ij,ji->i", at, np.linalg.solve(A, at.T))
    kernel = map_inputs(Linear(), lambda point: basis(name, point, jnp))
    post = GP(kernel, mean=0.0, noise=SPREAD**2).condition(X[:, None], y)
    mean, var = post.moments(x[:, None])
    ridge = KernelRidge(alpha=SPREAD**2, kernel="precomputed").fit(Phi @ Phi.T, y).predict(at @ Phi.T)
    many = GP(parse_kernel(f"RBF({BUMP})"), mean=0.0, noise=SPREAD**2).condition(X[:, None], y)
    limit, limit_var = many.moments(x[:, None])
    found = {
        "weights: mean": weight_mean,
        "weights: std": np.sqrt(weight_var),
        "process: mean": mean,
        "process: std": np.sqrt(var),
        "ridge": ridge,
        "RBF: mean": limit,
        "RBF: std": np.sqrt(limit_var),
    }
    rows = [row for name, values in found.items() for row in curve(name, x, values)]
    return rows + curve("observation", X, y)


def _views_shown(results: Results) -> Shown:
    names = results.each("basis")
    drawn = [name for name in ("line", "cubic", "10 bumps", "40 bumps") if name in names]
    figure, axes = panels(1, len(drawn), 11.0, 3.1, sharey=True)
    for axis, name in zip(axes[0], drawn, strict=True):
        mine = results.where(basis=name)
        x, mean = read(mine, "weights: mean")
        _, std = read(mine, "weights: std")
        mean_and_band(axis, x, mean, std, "weights: mean of f, 95 % band")
        axis.plot(*read(mine, "process: mean"), color=ORANGE, linestyle="--", linewidth=1.6, label="process")
        axis.plot(*read(mine, "ridge"), color=INK, linestyle=":", linewidth=1.6, label="kernel ridge")
        axis.plot(*read(mine, "observation"), "o", color=INK, markersize=3.5, label="observations")
        axis.set(title=name, xlabel="x", ylim=(-2.4, 2.4))
    axes[0, 0].set_ylabel("f(x)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4, frameon=False)
    lines, apart = [], []
    for name in names:
        mine = results.where(basis=name)
        gaps = [
            float(np.max(np.abs(read(mine, a)[1] - read(mine, b)[1])))
            for a, b in (
                ("weights: mean", "process: mean"),
                ("weights: std", "process: std"),
                ("weights: mean", "ridge"),
                ("weights: mean", "RBF: mean"),
                ("weights: std", "RBF: std"),
            )
        ]
        lines.append([name, *(f"{gap:.1e}" for gap in gaps)])
        apart.append(gaps)
    head = ["basis", "process, mean", "process, std", "kernel ridge", "RBF, mean", "RBF, std"]
    same = max(max(gaps[:3]) for gaps in apart)
    words = [
        "The posterior of the weights, the Gaussian process with k = φ'φ and kernel ridge regression give the"
        f" same mean, the first two the same uncertainty: they differ by at most {same:.0e} anywhere."
    ]
    bumps = [(name, gaps) for name, gaps in zip(names, apart, strict=True) if "bumps" in name]
    if bumps:
        (first, few), (last, many) = bumps[0], bumps[-1]
        words.append(
            "Bumps on a line become the RBF kernel as they become many: the mean is off by"
            f" {few[3]:.2g} with {first} and by {many[3]:.1e} with {last}."
        )
    table = SmallTable("Largest difference to the weights' answer on 89 points.", head, lines)
    caption = (
        "One posterior seen twice: Bayesian linear regression of weights (blue, with its band), the Gaussian"
        " process with the kernel of the same features (dashed), and kernel ridge regression (dotted)."
    )
    return Shown([Illustration("weight-and-function-space", caption, figure)], [table], words)


WEIGHT_AND_FUNCTION_SPACE = Experiment(
    "weight-and-function-space",
    "Are Bayesian linear regression, a Gaussian process and kernel ridge regression the same thing?",
    f"15 noisy values of sin(2.5 x), noise {SPREAD}; features of a line, a cubic and bumps of width {BUMP}."
    " The posterior of the weights in closed form, the process with the kernel of the same features, and"
    " scikit-learn's kernel ridge with the noise variance as its penalty.",
    _views_grid,
    _views,
    CURVE,
    _views_shown,
)

TEACHING = (POSTERIOR_COVARIANCE, KERNELS_SHOWN, PRIOR_DRAWS, WEIGHT_AND_FUNCTION_SPACE)
