"""What the page may say, and what the library answers."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

import gramian as gm
from gramian.clock import Bell
from gramian.errors import InputError
from gramian.explore import compute, wire
from gramian.explore.opening import Opened
from gramian.explore.server import Explorer

GOOD = {
    "id": 3,
    "ask": "posterior",
    "problem": {
        "dims": 1,
        "kernel": {
            "terms": [
                {
                    "scale": 2.0,
                    "held": True,
                    "factors": [{"name": "RBF", "values": {"lengthscale": 0.7}, "held": []}],
                },
                {
                    "scale": None,
                    "factors": [{"name": "Linear", "values": {"variance": 0.5}, "held": ["variance"]}],
                },
            ]
        },
        "mean": {"value": 0.0, "held": True},
        "likelihood": {"gaussian": {"noise": 0.1, "held": []}},
        "X": [[0.0], [1.0], [2.5]],
        "y": [0.1, -0.4, 1.0],
    },
    "way": {"method": "exact", "inference": "laplace", "likelihood": "gaussian", "size": 4},
    "grid": [[0.5], [3.0]],
    "draws": 2,
}


def changed(**paths):
    """GOOD with other values at "a.b.0.c"."""
    said = json.loads(json.dumps(GOOD))
    for path, value in paths.items():
        *way, last = path.split("__")
        place = said
        for step in way:
            place = place[int(step) if step.isdigit() else step]
        place[int(last) if last.isdigit() else last] = value
    return json.dumps(said)


def test_a_message_becomes_a_process():
    message = wire.read(json.dumps(GOOD))
    expected = gm.GP(gm.fixed(2.0) * gm.RBF(0.7) + gm.Linear(gm.fixed(0.5)), noise=0.1)
    assert message.problem.prior.model.kernel == expected.model.kernel
    found = compute.answer(message)
    post = expected.condition(message.problem.X, message.problem.y)
    assert found["evidence"] == pytest.approx(post.evidence.value, rel=1e-12)
    np.testing.assert_allclose(found["mean"], post.mean(message.grid))
    assert np.shape(found["draws"]) == (2, 2)
    json.dumps(found, allow_nan=False)


FACTOR = "problem__kernel__terms__0__factors__0"


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("ask", "eval", "for ask"),
        ("id", "x", "for id"),
        ("id", True, "for id"),
        (f"{FACTOR}__name", "__import__('os').system('true')", "for kernel"),
        (f"{FACTOR}__name", "DeepKernel", "for kernel"),
        (f"{FACTOR}__name", ["RBF"], "for kernel"),
        (f"{FACTOR}__values", {"lengthscale": 1.0, "__class__": 1.0}, "a number called"),
        (f"{FACTOR}__values", {"lengthscale": "1 + 1"}, "no number"),
        (f"{FACTOR}__values", {"lengthscale": -1.0}, "must be positive"),
        (f"{FACTOR}__values", {"lengthscale": 1e300}, "beyond"),
        (f"{FACTOR}__values", {"lengthscale": [1.0, 1.0]}, "entries of lengthscale"),
        (f"{FACTOR}__values", {}, "no lengthscale"),
        ("problem__kernel", {"text": "RBF(1.0)"}, "no list for terms"),
        ("problem__kernel", {"opened": True}, "none was opened"),
        ("problem__kernel", {"terms": []}, "without a term"),
        ("problem__kernel__terms", [{"factors": []}], "without factors"),
        ("problem__kernel__terms", [{"factors": []}] * 99, "entries of terms"),
        ("problem__dims", 3, "for dims"),
        ("problem__X", [[1.0]], "1 points with 3 values"),
        ("problem__X", [[1.0, 2.0]] * 3, "entries of X"),
        ("problem__X", [[0.0]] * 2001, "entries of X"),
        ("problem__y", ["a", 1, 2], "no number for y"),
        ("problem__likelihood__gaussian__noise", 0.0, "must be positive"),
        ("way__method", "../../etc/passwd", "for method"),
        ("way__likelihood", "os", "for likelihood"),
        ("way__inference", "mcmc", "for inference"),
        ("way__size", 10**9, "for size"),
        ("grid", [[0.0]] * 2501, "entries of grid"),
        ("draws", 10**6, "for draws"),
        ("columns", [1, 2, 3], "entries of columns"),
    ],
)
def test_what_is_no_message_is_refused(path, value, told):
    with pytest.raises(InputError, match=told):
        wire.read(changed(**{path: value}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        "{",
        '{"ask": "stop"}',
        "[" * 200_000,
        changed(problem__y=[1, 2, float("nan")]),
        "x" * (wire.MOST_BYTES + 1),
    ],
    ids=["nothing", "list", "number", "cut", "no id", "nested", "nan", "long"],
)
def test_what_is_no_json_is_refused(text):
    with pytest.raises(InputError):
        wire.read(text)


def test_trees_and_kernels_are_each_other_s_inverse():
    kernel = (
        gm.fixed(2.0) * (gm.Periodic(0.8, gm.fixed(1.0)) * gm.RBF(3.0))
        + gm.Linear(0.5)
        + 1.5 * gm.Polynomial(degree=2, variance=0.3, offset=gm.fixed(1.0))
        + 0.5 * gm.Matern32([0.5, 2.0])
    )
    said = json.loads(json.dumps(GOOD))
    said["problem"] |= {"dims": 2, "kernel": wire.tree_of(kernel), "X": [[0.0, 1.0]] * 3}
    said["grid"] = []
    assert wire.read(json.dumps(said)).problem.prior.model.kernel == kernel
    assert wire.tree_of(gm.RBF(1.0) ** 2) == {"text": "RBF() ** 2", "opened": True}
    assert "text" in wire.tree_of(gm.Polynomial(degree=3))


def test_the_kernel_of_an_opened_model_stays_here():
    message = wire.read(changed(problem__kernel={"opened": True}, ask="optimise"), gm.RBF(0.7) ** 2)
    found = compute.answer(message)
    assert found["kernel"]["opened"] is True
    assert next(iter(message.problem.prior.model.kernel.parameters().values())).trainable is False
    assert found["likelihood"]["noise"] != 0.1


def test_held_numbers_stay():
    found = compute.answer(wire.read(changed(ask="optimise")))
    first, second = found["kernel"]["terms"]
    assert first["scale"] == 2.0
    assert second["factors"][0]["values"]["variance"] == 0.5
    assert first["factors"][0]["values"]["lengthscale"] != 0.7


@pytest.mark.parametrize("method", ["nystrom", "fourier", "cg"])
def test_methods_of_the_library_alone(method):
    stationary = GOOD["problem"]["kernel"]["terms"][:1]  # Fourier features have no lines
    found = compute.answer(wire.read(changed(way__method=method, problem__kernel__terms=stationary)))
    assert np.all(np.isfinite(found["mean"]))
    assert found["kind"] in ("approximation", "estimate", "exact", "lower bound")


def test_without_points_it_is_the_prior():
    found = compute.answer(wire.read(changed(problem__X=[], problem__y=[])))
    assert found["evidence"] is None
    np.testing.assert_allclose(found["variance"], [2 + 0.5 * 0.25, 2 + 0.5 * 9])
    with pytest.raises(InputError, match="no points"):
        compute.answer(wire.read(changed(problem__X=[], problem__y=[], ask="optimise")))


def test_a_deep_process(monkeypatch):
    """With so little time that its search ends with one layer: what two would take to compile is the
    matter of other tests."""
    monkeypatch.setattr(compute, "DEEP_SECONDS", 6.0)
    X = np.linspace(-1, 1, 12)[:, None]
    y = (X[:, 0] > 0).astype(float)
    message = wire.read(changed(ask="deep", problem__X=X.tolist(), problem__y=y.tolist()))
    found = compute.answer(message)
    assert np.shape(found["draws"]) == (2, 2)
    assert np.all(np.array(found["low"]) < np.array(found["high"]))
    with pytest.raises(InputError, match="five points"):
        compute.answer(wire.read(changed(ask="deep")))


# Work on threads: limits of time, and a page that leaves. ---------------------------------------------------


def waiting(message):
    while True:
        compute.clock.check()


def test_an_answer_has_a_limit_of_time(monkeypatch):
    monkeypatch.setitem(compute.ANSWERS, "posterior", waiting)
    monkeypatch.setattr(compute, "SECONDS", 0.05)
    monkeypatch.setattr(compute, "GRACE", 0.0)
    said = Explorer(Opened(), "token", 1)._answered(wire.read(json.dumps(GOOD)), Bell())
    assert "given up" in said["error"]


def test_a_page_that_leaves_stops_its_work(monkeypatch):
    began = threading.Event()

    def at_work(message):
        began.set()
        waiting(message)

    monkeypatch.setitem(compute.ANSWERS, "posterior", at_work)
    explorer, bell, said = Explorer(Opened(), "token", 1), Bell(), []
    work = threading.Thread(target=lambda: said.append(explorer._answered(wire.read(json.dumps(GOOD)), bell)))
    work.start()
    assert began.wait(60)
    bell.rung += 1
    work.join(60)
    assert said == [{"id": 3, "error": "Stopped."}]
