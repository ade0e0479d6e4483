"""What the page computes by itself is what the library computes: kernels, rules, approximations, searches."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from scipy import special

import gramian as gm
from gramian.explore import wire
from gramian.explore.compute import answer
from tests.explore.conftest import ask_node

RNG = np.random.default_rng(5)
X1 = RNG.uniform(-4, 4, (9, 1)).round(3)
X2 = RNG.uniform(-3, 3, (8, 2)).round(3)
GRID = {1: np.linspace(-5, 5, 7)[:, None], 2: RNG.uniform(-3, 3, (6, 2)).round(3)}
VALUES = {"lengthscale": 0.8, "alpha": 1.7, "period": 2.3, "variance": 0.6, "offset": 0.4, "bias": 0.9}


def factor(name: str, **changes):
    return {"name": name, "values": {key: VALUES[key] for key in wire.FACTORS[name][0]} | changes, "held": []}


def tree(*terms):
    return {"terms": [{"on": True, "scale": s, "held": False, "factors": fs} for s, fs in terms]}


def problem(kernel, X, y, likelihood="gaussian", mean=0.3, **numbers):
    return {
        "dims": X.shape[1],
        "kernel": kernel,
        "mean": {"value": mean, "held": False},
        "likelihood": {likelihood: {**numbers, "held": []}},
        "X": X.tolist(),
        "y": y.tolist(),
    }


def asked(ask, problem, way, grid=()):
    said = {"id": 1, "ask": ask, "problem": problem, "way": way, "grid": np.asarray(grid).tolist()}
    return wire.read(json.dumps(said))


@pytest.mark.parametrize("dims", [1, 2])
def test_every_kernel_of_the_page(dims):
    """The same numbers as gramian.kernels, far and near; 1e-12 is some tens of roundings."""
    X, Z = (X1, GRID[1]) if dims == 1 else (X2, GRID[2])
    trees = [tree((1.3, [factor(name)])) for name in wire.FACTORS]
    trees.append(tree((1.3, [factor("Periodic"), factor("RBF")]), (None, [factor("Linear")])))
    if dims == 2:
        trees.append(tree((0.7, [factor("Matern32", lengthscale=[0.4, 2.0])])))
    questions = [("gram", {"kernel": t, "X": X.tolist(), "Z": Z.tolist(), "dims": dims}) for t in trees]
    for t, said in zip(trees, ask_node(*questions), strict=True):
        kernel = asked("evidence", problem(t, X, X[:, 0], noise=0.1), {}).problem.prior.model.kernel
        np.testing.assert_allclose(said["K"], kernel(X).ravel(), rtol=1e-12, atol=1e-12, err_msg=str(kernel))
        np.testing.assert_allclose(said["C"], kernel(X, Z).ravel(), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(said["diagonal"], kernel.diag(X), rtol=1e-12, atol=1e-12)


RBF = tree((1.4, [factor("RBF")]))
LABELS = (np.sin(1.3 * X1[:, 0]) > 0).astype(float)
COUNTS = np.round(np.exp(1 + np.sin(X1[:, 0])))
CASES = {
    "exact": ("gaussian", {"noise": 0.05}, {"method": "exact"}),
    "vfe": ("gaussian", {"noise": 0.05}, {"method": "vfe", "size": 5}),
    "fitc": ("gaussian", {"noise": 0.05}, {"method": "fitc", "size": 5}),
    "dtc": ("gaussian", {"noise": 0.05}, {"method": "dtc", "size": 5}),
    **{f"logit {rule}": ("bernoulli-logit", {}, {"inference": rule}) for rule in wire.RULES},
    **{f"probit {rule}": ("bernoulli-probit", {}, {"inference": rule}) for rule in wire.RULES},
    **{f"poisson {rule}": ("poisson", {}, {"inference": rule}) for rule in wire.RULES},
}


def test_every_rule_and_approximation_of_the_page():
    """Evidence and posterior, for each likelihood, rule and method that the page solves by itself. Loops of
    the library end at 1e-9 (VI) and 1e-7 of a standard deviation (EP), hence the tolerance."""
    data = {"gaussian": np.sin(X1[:, 0]), "poisson": COUNTS}
    ways, problems = [], []
    for likelihood, numbers, way in CASES.values():
        ways.append({"method": "exact", "likelihood": likelihood, **way})
        problems.append(problem(RBF, X1, data.get(likelihood, LABELS), likelihood, **numbers))
    pairs = list(zip(problems, ways, strict=True))
    questions = [("solve", {"problem": p, "way": w, "grid": GRID[1].tolist()}) for p, w in pairs]
    for name, (p, w), said in zip(CASES, pairs, ask_node(*questions), strict=True):
        found = answer(asked("posterior", p, w, GRID[1]))
        assert said["kind"] == found["kind"], name
        assert said["fit"] + said["complexity"] == pytest.approx(said["evidence"], abs=1e-9)
        for key in ("evidence", "mean", "variance"):
            np.testing.assert_allclose(said[key], found[key], rtol=2e-6, atol=2e-6, err_msg=f"{name} {key}")
        diagonal = np.reshape(said["covariance"], (7, 7)).diagonal()
        np.testing.assert_allclose(diagonal, found["variance"], rtol=2e-6, atol=2e-6, err_msg=name)


def test_scenes_are_the_library_s():
    """Of every scene: the code that the page offers runs, and prints the evidence that the page shows."""
    (scenes,) = ask_node(("scenes", {}))
    assert len({scene["id"] for scene in scenes}) == len(scenes) >= 12
    here = {"gaussian", "bernoulli-logit", "bernoulli-probit", "poisson"}
    questions, names = [], []
    for scene in scenes:
        code = re.sub(r"^(deep|mean_\d, std)\w* = .*$|^print.*$", "", scene["code"], flags=re.MULTILINE)
        own: dict[str, object] = {}
        exec(compile(code, scene["id"], "exec"), own)
        for k, way in enumerate(scene["ways"]):
            post = own.get("post" if len(scene["ways"]) == 1 else f"post_{k + 1}")
            if post is None or way["likelihood"] not in here:
                continue
            names.append((scene["id"], post.evidence.value))
            questions.append(("solve", {"problem": scene, "way": way, "grid": scene["X"][:2]}))
    assert len(names) > 10
    for (name, evidence), said in zip(names, ask_node(*questions), strict=True):
        assert said["evidence"] == pytest.approx(evidence, rel=1e-7), name


def test_bishop_s_four_parameters():
    """theta_0 exp(-theta_1 (x - z)^2 / 2) + theta_2 + theta_3 x z, the six settings of his figure 6.5."""
    (settings,) = ask_node(("bishop", {}))
    assert len(settings) == 6
    x, z = X1, GRID[1]
    common = {"X": x.tolist(), "Z": z.tolist(), "dims": 1}
    for one, said in zip(
        settings, ask_node(*(("gram", {**common, "kernel": s["kernel"]}) for s in settings)), strict=True
    ):
        a, b, c, d = one["theta"]
        expected = a * np.exp(-b * (x - z.T) ** 2 / 2) + c + d * x * z.T
        np.testing.assert_allclose(said["C"], expected.ravel(), rtol=1e-6, atol=1e-9)


def test_the_page_climbs_to_the_top_that_the_library_finds():
    y = np.sin(X1[:, 0]) + np.array(
        [0.3, -0.3, 0.2, -0.2, 0.4, -0.1, 0.3, -0.4, 0.1]
    )  # noise: no top at zero
    regression = problem(RBF, X1, y, noise=0.05), {"method": "exact", "likelihood": "gaussian"}
    classes = (
        problem(RBF, X1, LABELS, "bernoulli-probit"),
        {"likelihood": "bernoulli-probit", "inference": "laplace"},
    )
    held = json.loads(json.dumps(regression[0]))
    held["kernel"]["terms"][0]["factors"][0]["held"] = ["lengthscale"]
    cases = [regression, (classes[0], {"method": "exact", **classes[1]}), (held, regression[1])]
    for (p, w), said in zip(
        cases, ask_node(*(("climb", {"problem": p, "way": w}) for p, w in cases)), strict=True
    ):
        best = answer(asked("optimise", p, w))
        assert said["evidence"] == pytest.approx(best["evidence"], abs=1e-4)
        assert np.all(np.diff(said["path"]) > -1e-9)
    assert (
        said["problem"]["kernel"]["terms"][0]["factors"][0]["values"]["lengthscale"] == VALUES["lengthscale"]
    )


@pytest.mark.parametrize(
    ("name", "of", "at"),
    [
        ("cdf", special.ndtr, np.linspace(-9, 9, 73)),
        ("logCdf", special.log_ndtr, np.linspace(-30, 8, 77)),
        ("logGamma", special.gammaln, [0.5, 1, 2, 3.5, 11, 30, 200]),
        ("sigmoid", special.expit, np.linspace(-40, 40, 41)),
    ],
)
def test_special_functions(name, of, at):
    (said,) = ask_node(("special", {"name": name, "at": list(map(float, at))}))
    np.testing.assert_allclose(said, of(at), rtol=1e-12, atol=1e-14)


def test_draws_have_the_covariance():
    """L w for each unit vector w gives back L L' = C."""
    C = gm.RBF(0.7)(X1) + 0.1 * np.eye(9)
    (said,) = ask_node(("draws", {"C": C.tolist(), "white": np.eye(9).tolist()}))
    L = np.array(said).T
    np.testing.assert_allclose(L @ L.T, C, atol=1e-9)  # with a jitter of 1e-10


def test_tables_in_the_page():
    good = "x;label\n1;red\n2;blue\n\n3;red\n"
    said = ask_node(
        ("table", {"name": "a.csv", "text": "x,y\n1,2\n2,\n3,5\n", "xs": ["x"]}),
        ("table", {"name": "b.csv", "text": good, "xs": ["x"]}),
        ("table", {"name": "c.csv", "text": "x,y\n1,2\n2,abc\n", "xs": ["x"]}),
        ("table", {"name": "d.csv", "text": "x,y\n1,2\n2\n", "xs": ["x"]}),
        ("table", {"name": "e.csv", "text": "only\n1\n", "xs": ["only"]}),
        ("table", {"name": "f.csv", "text": 'x,y\n1,"2\n', "xs": ["x"]}),
        ("table", {"name": "g.csv", "text": "x,y\n", "xs": ["x"]}),
    )
    assert said[0]["scene"]["X"] == [[1], [3]]
    assert "1 of 3 rows" in said[0]["table"]["note"]
    assert said[1]["scene"]["y"] == [1, 0, 1]
    assert said[1]["scene"]["ways"][0]["likelihood"] == "bernoulli-logit"
    for found, told in zip(
        said[2:], ["line 3, column “y”", "line 3", "two columns", "quote", "no rows"], strict=True
    ):
        assert told in found["error"]
