"""A fit that was killed goes on from its checkpoint, and ends with the same numbers to the last bit.

A kill is an exception that nobody catches, raised when the file has been written for the k-th time, after
which nothing is written any more: what the file holds is then what SIGKILL would leave. Some tests send the
signal to a process of their own."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from typer.testing import CliRunner

import gramian as gm
from gramian import journal
from gramian.cli.main import app
from gramian.engines.recipes import Sparse
from gramian.errors import CheckpointError, ParameterError
from gramian.modelfile import checkpoint, layout
from gramian.modelfile.document import canonical


class Killed(BaseException):
    """The end of a process."""


RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=60)
LABELS = np.where(Y > 0.3, "high", np.where(Y > -0.4, "middle", "low"))
BATCHES = gm.SVGP(8, batch_size=16, steps=40)

Case = tuple[Callable[[Any], Any], Any, Callable[[Any], Any]]  # the estimator, y, and what is asked of it


def mean_and_std(gp: Any) -> Any:
    return gp.predict(X, return_std=True)


CASES: dict[str, Case] = {
    "exact": (lambda ck: gm.GPRegressor("rbf", n_restarts=2, random_state=1, checkpoint=ck), Y, mean_and_std),
    "path": (lambda ck: gm.GPRegressor(random_state=1, checkpoint=ck), Y, mean_and_std),
    "laplace": (
        lambda ck: gm.GPClassifier("rbf", inference="laplace", random_state=1, checkpoint=ck),
        Y > 0,
        lambda gp: gp.predict_proba(X),
    ),
    "ovr": (
        lambda ck: gm.GPClassifier("rbf", multiclass="ovr", inference="ep", checkpoint=ck, random_state=1),
        LABELS,
        lambda gp: gp.predict_proba(X),
    ),
    "shared": (
        lambda ck: gm.GPClassifier("rbf", multiclass="ovr", shared=True, checkpoint=ck, random_state=1),
        LABELS,
        lambda gp: gp.predict_proba(X),
    ),
    "sparse": (
        lambda ck: gm.GPRegressor("rbf", method=gm.Sparse(8), random_state=1, checkpoint=ck),
        Y,
        mean_and_std,
    ),
    "batches": (
        lambda ck: gm.GPRegressor("rbf", method=BATCHES, random_state=1, checkpoint=ck),
        Y,
        mean_and_std,
    ),
    "layers": (
        lambda ck: gm.DeepGPRegressor(n_inducing=8, steps=30, batch_size=32, checkpoint=ck, random_state=1),
        Y,
        mean_and_std,
    ),
    "latent": (
        lambda ck: gm.GPLatent(1, n_inducing=5, max_iter=50, batch_size=20, random_state=1, checkpoint=ck),
        None,
        lambda gp: gp.embedding_,
    ),
    "chains": (
        lambda ck: gm.GPRegressor(
            "rbf",
            inference=gm.MCMC(2, warmup=12, draws=8, rounds=2),
            hyper="mcmc",
            random_state=1,
            checkpoint=ck,
        ),
        Y,
        mean_and_std,
    ),
    "blocks": (
        lambda ck: gm.GPClassifier(
            "rbf", inference=gm.MCMC(2, warmup=12, draws=8, rounds=2), random_state=1, checkpoint=ck
        ),
        Y > 0,
        lambda gp: gp.predict_proba(X),
    ),
}


def same(one: Any, other: Any) -> None:
    for a, b in zip(np.atleast_1d(one), np.atleast_1d(other), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.fixture
def kills(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Does work that is killed at the k-th write; gives how often was written."""
    monkeypatch.setattr(journal, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(journal, "SHARE", np.inf)
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # what a disk has when the power goes is no part of it

    def killed(k: int | None, work: Callable[[], Any]) -> int:
        count = 0

        def write(*given: Any) -> None:
            nonlocal count
            if k is None or count < k:
                layout.write(*given)
            count += 1
            if count == k:
                raise Killed

        monkeypatch.setattr(checkpoint, "write", write)
        if k is None:
            work()
        else:
            with pytest.raises(Killed):
                work()
        return count

    return killed


SLOW = ("layers", "latent", "chains", "blocks")  # that are killed once


@pytest.mark.parametrize("case", CASES)
def test_killed_and_resumed_is_as_if_nothing_had_been(
    case: str, kills: Callable[..., int], tmp_path: Path
) -> None:
    make, y, asked = CASES[case]
    path = tmp_path / "fit.ck"
    expected = asked(make(None).fit(X, y))
    writes = kills(None, lambda: same(asked(make(path).fit(X, y)), expected))
    assert writes > 3
    assert not path.exists()  # it has ended well
    for k in [2 * writes // 3] if case in SLOW else sorted({1, writes // 2, writes - 1}):
        kills(k, lambda: make(path).fit(X, y))
        assert path.exists()
        gp = make(path)
        assert kills(None, lambda gp=gp: gp.fit(X, y)) < writes  # what was found is not looked for again
        same(asked(gp), expected)
        assert "resumed fit.ck" in str(gp.outcome_.stages)
        assert not path.exists()


def test_killed_again_and_again(kills: Callable[..., int], tmp_path: Path) -> None:
    """Each run gets one evaluation further."""
    make, y, asked = CASES["exact"]
    gp, runs = make(tmp_path / "fit.ck"), 0
    for runs in range(1, 1000):  # noqa: B007 (counted)
        try:
            kills(1, lambda: gp.fit(X, y))
        except pytest.fail.Exception:  # nothing was left to be written
            break
    assert runs == make(None).fit(X, y).outcome_.evaluations + 1
    same(asked(gp), asked(make(None).fit(X, y)))


def chained(sampler: str) -> Case:
    """Of a warm-up with a window, after which what the chains have met is used: that is a part of their
    state, too."""
    chains = gm.MCMC(2, warmup=24, draws=4, rounds=1, sampler=sampler)
    make = lambda ck: gm.GPClassifier("rbf", inference=chains, random_state=1, checkpoint=ck)  # noqa: E731
    return make, Y > 0, lambda gp: gp.predict_proba(X)


LOOPS: dict[str, Case] = {
    **{sampler: chained(sampler) for sampler in ("blocks", "ess", "nuts", "slices")},
    "chains": (
        lambda ck: gm.GPRegressor(
            "rbf",
            inference=gm.MCMC(2, warmup=24, draws=4, rounds=1),
            hyper="mcmc",
            random_state=1,
            checkpoint=ck,
        ),
        Y,
        mean_and_std,
    ),
    "batches": CASES["batches"],
}


@pytest.mark.parametrize("case", LOOPS)
def test_a_loop_that_is_killed_after_each_of_its_steps(
    case: str, kills: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run takes one step from what the file of the run before it holds: whatever a step needs and the
    file has not, or has otherwise, shows in the last bits."""
    monkeypatch.setattr("gramian.inference.mcmc.sampling.PIECE_SECONDS", 1e-9)  # two draws
    make, y, asked = LOOPS[case]
    expected = asked(make(None).fit(X, y))
    gp, runs = make(tmp_path / "fit.ck"), 0
    for runs in range(1, 1000):  # noqa: B007 (counted)
        try:
            kills(1, lambda: gp.fit(X, y))
        except pytest.fail.Exception:  # nothing was left to be written
            break
    assert runs > 12
    same(asked(gp), expected)


@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=5, max_side=3)), st.data())
def test_a_file_keeps_arrays_as_they_lie_in_memory(array: Any, data: st.DataObject) -> None:
    """Where the axes of an array lie otherwise, BLAS adds in another order."""
    axes = data.draw(st.permutations(range(array.ndim)))
    laid = array.transpose(axes).copy().transpose(np.argsort(axes))
    book = journal.Journal("fit.ck", lambda book: None, {"X": ["", ""]})
    book.parts[""] = [journal.Entry(journal.STATE, "loop", arrays={"laid": laid})]
    with tempfile.TemporaryDirectory() as folder:
        layout.write(Path(folder, "fit.ck"), checkpoint.KIND, *checkpoint._described(book))
        _, parts = checkpoint._read(Path(folder, "fit.ck"))
    again = parts[""][0].arrays["laid"]
    np.testing.assert_array_equal(again, laid)
    apart = [k for k in range(array.ndim) if array.shape[k] > 1]  # the others have no distance in memory
    assert array.size == 0 or [again.strides[k] for k in apart] == [laid.strides[k] for k in apart]


def test_a_fit_that_goes_on_has_the_seed_that_it_began_with(
    kills: Callable[..., int], tmp_path: Path
) -> None:
    """A RandomState gives another number each time that it is asked."""
    gp = gm.GPRegressor("rbf", n_restarts=2, random_state=np.random.RandomState(3))
    expected = gp.fit(X, Y).outcome_
    other = gm.GPRegressor("rbf", n_restarts=2, random_state=np.random.RandomState(4)).fit(X, Y).outcome_
    assert expected.evaluations != other.evaluations  # from other starts
    gp.set_params(random_state=np.random.RandomState(3), checkpoint=tmp_path / "fit.ck")
    kills(5, lambda: gp.fit(X, Y))
    kills(None, lambda: gp.fit(X, Y))
    assert gp.outcome_.evaluations == expected.evaluations


def test_rows_that_stay_where_they_are_go_on_with_the_rows_that_were_brought(
    kills: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which rows those are, chance has said: random_state=None."""
    array = pytest.importorskip("dask.array", reason="collections are Dask's: pip install 'gramian[dask]'")
    monkeypatch.setattr("gramian.choose.far.FEWEST", 100)
    rng = np.random.default_rng(0)
    X = array.from_array(rng.normal(size=(2000, 2)), chunks=(500, 2))
    y = array.sin(2 * X[:, 0])
    gp = gm.GPRegressor("rbf", noise=0.01, method=Sparse(20), checkpoint=tmp_path / "fit.ck", verbose=False)
    kills(5, lambda: gp.fit(X, y))
    kills(None, lambda: gp.fit(X, y))
    assert "resumed fit.ck: 5 evaluations" in str(gp.outcome_.stages)
    assert not (tmp_path / "fit.ck").exists()
    kills(5, lambda: gp.fit(X, y))
    with pytest.raises(CheckpointError, match="first rows of X had other values"):
        gp.fit(X + 1.0, y)


SIGNALLED = """
import os, signal, sys
import numpy as np
import gramian as gm
from gramian import journal
from gramian.modelfile import checkpoint, layout

journal.LEAST_SECONDS, journal.SHARE, left = 0.0, np.inf, int(sys.argv[1])

def write(*given):
    global left
    layout.write(*given)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

checkpoint.write = write
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=40)
told = gm.GPRegressor("rbf", n_restarts=2, random_state=1, checkpoint="fit.ck").fit(X, y)
undisturbed = gm.GPRegressor("rbf", n_restarts=2, random_state=1).fit(X, y)
print(told.outcome_.stages[0])
for gp in (told, undisturbed):
    print(gp.predict(X).tobytes().hex(), gp.outcome_.evaluations)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_process_that_is_killed_and_one_that_goes_on(tmp_path: Path) -> None:
    def ran(writes: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", SIGNALLED, str(writes)]
        known = os.environ | {"PYTHONPATH": str(Path(gm.__file__).parents[1])}
        return subprocess.run(command, cwd=tmp_path, env=known, capture_output=True, text=True, timeout=300)

    assert ran(20).returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == ["fit.ck"]
    ended = ran(-1)
    assert ended.returncode == 0, ended.stderr
    told, resumed, undisturbed = ended.stdout.splitlines()
    assert "resumed fit.ck: 20 evaluations" in told
    assert resumed == undisturbed
    assert os.listdir(tmp_path) == []


# What stops a fit, and leaves its checkpoint. ---------------------------------------------------------------


def test_ctrl_c_leaves_a_model_and_a_checkpoint(
    kills: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, y, asked = CASES["path"]
    path, gp = tmp_path / "fit.ck", make(tmp_path / "fit.ck")
    expected = make(None).fit(X, y)
    before, count = gm.fitting.Objective.__call__, 0

    def pressed(objective: Any, vector: Any) -> Any:
        nonlocal count
        count += 1
        if count == 30:
            raise KeyboardInterrupt
        return before(objective, vector)

    with monkeypatch.context() as patch:
        patch.setattr(gm.fitting.Objective, "__call__", pressed)
        gp.fit(X, y)
    assert gp.outcome_.stopped == "interrupted"
    assert np.all(np.isfinite(gp.predict(X)))
    assert path.exists()
    gp.fit(X, y)
    same(asked(gp), asked(expected))
    assert gp.outcome_.evaluations == expected.outcome_.evaluations
    assert "resumed fit.ck: 29 evaluations" in gp.outcome_.stages[0]
    assert not path.exists()


def test_a_time_limit_leaves_a_checkpoint_from_which_more_time_goes_on(
    kills: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock on which every evaluation takes a second."""
    from gramian import clock

    path, time = tmp_path / "fit.ck", 0.0
    before = gm.fitting.Objective.__call__

    def slow(objective: Any, vector: Any) -> Any:
        nonlocal time
        time += 1.0
        return before(objective, vector)

    monkeypatch.setattr(clock, "now", lambda: time)
    monkeypatch.setattr(gm.fitting.Objective, "__call__", slow)
    made = lambda limit: gm.GPRegressor("rbf", checkpoint=path, time_limit=limit, random_state=0)  # noqa: E731
    expected = gm.GPRegressor("rbf", random_state=0).fit(X, Y)
    assert expected.outcome_.evaluations > 30
    for limit in (10.0, 12.0):
        gp = made(limit).fit(X, Y)
        assert gp.outcome_.stopped == "time limit"
        assert path.exists()
    assert 10 < gp.outcome_.evaluations < 25  # of both runs
    gp = made(None).fit(X, Y)
    assert gp.outcome_.stopped == "converged"
    same(mean_and_std(gp), mean_and_std(expected))
    assert not path.exists()


def test_a_fit_of_a_moment_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*given: Any) -> None:
        raise AssertionError("written")

    monkeypatch.setattr(checkpoint, "write", write)
    monkeypatch.setattr(journal, "LEAST_SECONDS", 1e9)  # however slow the machine is
    make, y, _ = CASES["exact"]
    make(tmp_path / "fit.ck").fit(X, y)
    assert os.listdir(tmp_path) == []


def test_writes_take_a_share_of_the_time_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand evaluations of 20 ms, on a clock of its own, and a disk that takes half a second."""
    from gramian import clock

    time, writes = 0.0, []
    monkeypatch.setattr(clock, "now", lambda: time)

    def write(book: journal.Journal) -> None:
        nonlocal time
        writes.append(time)
        time += 0.5

    book = journal.Journal("fit.ck", write)
    book.identify({"rows": ["60 rows", "1"]})

    def work() -> tuple[float, Any]:
        nonlocal time
        time += 0.02
        return 1.0, np.zeros(2)

    with journal.kept_in(book):
        for k in range(1000):
            journal.evaluated(np.full(2, float(k)), work)
    assert writes[0] >= journal.LEAST_SECONDS
    assert np.all(np.diff(writes) >= 0.5 / journal.SHARE)
    assert len(writes) == 2  # after 1 and 11 s, of 20 and what writing took


# Checkpoints of something else. -----------------------------------------------------------------------------


@pytest.fixture
def stopped(kills: Callable[..., int], tmp_path: Path) -> Path:
    """The checkpoint of a fit that was killed."""
    make, y, _ = CASES["exact"]
    kills(8, lambda: make(tmp_path / "fit.ck").fit(X, y))
    kills(None, lambda: None)
    return tmp_path / "fit.ck"


def test_progress_says_what_a_fit_goes_on_from(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    CASES["exact"][0](stopped).set_params(verbose=True).fit(X, Y)
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first.startswith("resumed fit.ck: 8 evaluations, ")
    assert first.endswith(" s of work")
    assert "start 1 of 3, evaluation 8, best" in second  # those before it are not told again


def test_another_fit_is_refused_with_what_differs(stopped: Path) -> None:
    known = stopped.read_bytes()
    made = CASES["exact"][0]
    moved = X.copy()
    moved[3, 1] += 1e-9
    cases = [
        (made(stopped), moved, Y, "its X had other values (60 rows of 2 columns)"),
        (made(stopped), X[:50], Y[:50], "its X was 60 rows of 2 columns, and now it is 50 rows of 2 columns"),
        (made(stopped), X, 2 * Y, "its y had other values"),
        (
            made(stopped).set_params(kernel="matern52"),
            X,
            Y,
            "its setting kernel was 'rbf', and now it is 'ma",
        ),
        (made(stopped).set_params(random_state=2), X, Y, "its setting random_state was 1, and now it is 2"),
        (
            made(stopped).set_params(kernel=gm.RBF(0.5)),
            X,
            Y,
            "its setting kernel was 'rbf', and now it is RBF",
        ),
        (made(stopped).set_params(n_restarts=3), X, Y, "its setting n_restarts was 2, and now it is 3"),
        (gm.GPClassifier("rbf", checkpoint=stopped), X, Y > 0, "its estimator was GPRegressor"),
    ]
    for gp, rows, y, words in cases:
        with pytest.raises(CheckpointError, match="is of another fit") as raised:
            gp.fit(rows, y)
        assert words in str(raised.value), words
        assert "remove the file to begin anew, or give another name" in str(raised.value)
        assert stopped.read_bytes() == known
    made(stopped).set_params(verbose=False, time_limit=1000.0, memory_limit="2GB").fit(X, Y)  # the same fit


def test_kernels_that_are_shown_alike_are_told_apart(kills: Callable[..., int], tmp_path: Path) -> None:
    path = tmp_path / "fit.ck"
    first = gm.RBF(gm.param(0.5, bounds=(0.1, 10.0))) + gm.RBF(gm.param(0.7, bounds=(0.1, 10.0)))
    one, other = first + gm.RBF(2.0), first + gm.RBF(3.0)
    assert repr(one)[:77] == repr(other)[:77]  # what a message has room for
    kills(3, lambda: gm.GPRegressor(one, checkpoint=path).fit(X, Y))
    with pytest.raises(CheckpointError, match=r"its setting kernel had other values"):
        gm.GPRegressor(other, checkpoint=path).fit(X, Y)


def test_damaged_files_are_refused_and_left_alone(stopped: Path) -> None:
    known, rng = stopped.read_bytes(), np.random.default_rng(0)
    flipped = []
    for _ in range(60):
        damaged = bytearray(known)
        damaged[rng.integers(len(known))] ^= int(rng.integers(1, 256))
        flipped.append(bytes(damaged))
    cut = [known[: int(length)] for length in np.linspace(0, len(known) - 1, 30)]
    for content in [*cut, *flipped, rng.bytes(1000), b"\x80\x04K\x01.", b"a,b\n1,2\n" * 9, known + b"more"]:
        stopped.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"The checkpoint .*fit.ck cannot be used|another fit"):
            CASES["exact"][0](stopped).fit(X, Y)
        assert stopped.read_bytes() == content


def test_made_up_files_with_a_right_checksum_are_refused(stopped: Path) -> None:
    metadata, arrays = layout.read(stopped, checkpoint.KIND)
    document = json.loads(metadata["document"])
    entry = document["parts"][""][-1]
    assert entry[0] == "value"

    def changed(change: Callable[[Any], Any]) -> dict[str, Any]:
        own = copy.deepcopy(document)
        change(own)
        return own

    def last(own: Any) -> Any:
        return own["parts"][""][-1]

    forged = [
        {},
        [],
        {"facts": document["facts"], "parts": {"": [["value", "key", 0.0, None]]}},
        changed(lambda own: own["facts"].update(X=["60 rows"])),
        changed(lambda own: own["facts"].update(X=[1, 2])),
        changed(lambda own: own.update(parts=[1])),
        changed(lambda own: last(own).__setitem__(0, "code")),
        changed(lambda own: last(own).__setitem__(1, 7)),
        changed(lambda own: last(own).__setitem__(2, -1.0)),
        changed(lambda own: last(own).__setitem__(2, "1")),
        changed(lambda own: last(own).__setitem__(4, {"": 1})),
        changed(lambda own: last(own)[4][0].__setitem__(1, "O")),
        changed(lambda own: last(own)[4][0].__setitem__(2, [10**9, 10**9])),
        changed(lambda own: last(own)[4][0].__setitem__(2, [-4])),
        changed(lambda own: last(own)[4][0].__setitem__(2, [1])),
        changed(lambda own: last(own)[4][0].__setitem__(3, "C")),
        changed(lambda own: last(own)[4][0].__setitem__(3, [1])),
        changed(lambda own: last(own)[4][0].__setitem__(3, [0, 0])),
        changed(lambda own: last(own)[4][0].__setitem__(3, [0.0])),
        changed(lambda own: own["parts"][""][0].__setitem__(3, "a seed")),
    ]
    for own in forged:
        layout.write(stopped, checkpoint.KIND, canonical(own), arrays)
        with pytest.raises(CheckpointError, match="cannot be used"):
            CASES["exact"][0](stopped).fit(X, Y)


def test_made_up_states_are_refused(kills: Callable[..., int], tmp_path: Path) -> None:
    make, y, _ = CASES["batches"]
    path = tmp_path / "fit.ck"
    kills(10, lambda: make(path).fit(X, y))
    kills(None, lambda: None)
    metadata, arrays = layout.read(path, checkpoint.KIND)
    document = json.loads(metadata["document"])
    (state,) = [entry for entry in document["parts"][""] if entry[0] == "state"]
    assert {"taken", "dice", "ended"} < set(state[3])
    for change in (
        lambda told: told.pop("ended"),
        lambda told: told.update(taken="many"),
        lambda told: told.update(dice=[]),
        lambda told: told["dice"].update(left=10**9),
        lambda told: told["dice"]["now"].update(state="no number"),
        lambda told: told["dice"].pop("before"),
    ):
        own = copy.deepcopy(document)
        (entry,) = [entry for entry in own["parts"][""] if entry[0] == "state"]
        change(entry[3])
        layout.write(path, checkpoint.KIND, canonical(own), arrays)
        content = path.read_bytes()
        with pytest.raises(CheckpointError, match="Remove the file"):
            make(path).fit(X, y)
        assert path.read_bytes() == content
    state[4] = [[name, kind, [1], [0]] for name, kind, *_ in state[4]]
    layout.write(path, checkpoint.KIND, canonical(document), arrays)
    with pytest.raises(CheckpointError, match="Remove the file"):
        make(path).fit(X, y)


def test_a_newer_format_asks_for_an_upgrade(stopped: Path) -> None:
    metadata, arrays = layout.read(stopped, checkpoint.KIND)
    newer = checkpoint.KIND._replace(version=checkpoint.KIND.version + 1)
    layout.write(stopped, newer, metadata["document"], arrays)
    with pytest.raises(CheckpointError, match="Upgrade"):
        CASES["exact"][0](stopped).fit(X, Y)


def test_names_that_cannot_be(tmp_path: Path) -> None:
    gp = gm.GPRegressor("rbf").fit(X, Y)
    gp.save(tmp_path / "model.gm")
    known = (tmp_path / "model.gm").read_bytes()
    with pytest.raises(CheckpointError, match=r"not one with a gramian checkpoint.* Give another name\.$"):
        gm.GPRegressor("rbf", checkpoint=tmp_path / "model.gm").fit(X, Y)
    assert (tmp_path / "model.gm").read_bytes() == known
    with pytest.raises(CheckpointError, match="folder"):
        gm.GPRegressor("rbf", checkpoint=tmp_path).fit(X, Y)
    for name in (3, "", tmp_path / "nowhere" / "fit.ck"):
        with pytest.raises(ParameterError, match="checkpoint="):
            gm.GPRegressor("rbf", checkpoint=name).fit(X, Y)


def test_a_checkpoint_that_cannot_be_written_does_not_end_a_fit(
    kills: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*given: Any) -> None:
        raise CheckpointError("fit.ck cannot be written: the disk is full.")

    make, y, asked = CASES["exact"]
    monkeypatch.setattr(checkpoint, "write", write)
    with pytest.warns(UserWarning, match="goes on without a checkpoint.*disk is full") as told:
        gp = make(tmp_path / "fit.ck").fit(X, y)
    assert len(told) == 1
    same(asked(gp), asked(make(None).fit(X, y)))


# Parts of it. -----------------------------------------------------------------------------------------------


def test_what_no_longer_fits_is_found_anew(kills: Callable[..., int], tmp_path: Path) -> None:
    """As on another processor, which rounds otherwise: the rest of the entries are of another path."""
    make, y, asked = CASES["exact"]
    path = tmp_path / "fit.ck"
    kills(20, lambda: make(path).fit(X, y))
    metadata, arrays = layout.read(path, checkpoint.KIND)
    document = json.loads(metadata["document"])
    document["parts"][""][10][1] = "0" * 16
    layout.write(path, checkpoint.KIND, canonical(document), arrays)
    gp = make(path)
    kills(None, lambda: gp.fit(X, y))
    same(asked(gp), asked(make(None).fit(X, y)))
    assert "did not fit (11), and were found anew" in gp.outcome_.stages[0]


def test_a_checkpoint_is_no_part_of_a_model(tmp_path: Path) -> None:
    gp = gm.GPRegressor("rbf", checkpoint=tmp_path / "fit.ck").fit(X, Y)
    gp.save(tmp_path / "model.gm")
    assert gm.load(tmp_path / "model.gm").checkpoint is None


def test_uncertain_inputs_are_one_fit(kills: Callable[..., int], tmp_path: Path) -> None:
    path = tmp_path / "fit.ck"
    expected = gm.GPRegressor("rbf", random_state=0).fit(X, Y, X_var=0.01).predict(X)
    gp = gm.GPRegressor("rbf", random_state=0, checkpoint=path)
    writes = kills(None, lambda: gp.fit(X, Y, X_var=0.01))
    kills(writes - 3, lambda: gp.fit(X, Y, X_var=0.01))
    with pytest.raises(CheckpointError, match="its X_var had other values"):
        gp.fit(X, Y, X_var=0.02)
    with pytest.raises(CheckpointError, match="its method was none, and now it is exact"):
        gp.fit(X, Y)
    assert kills(None, lambda: gp.fit(X, Y, X_var=0.01)) < 10
    same(gp.predict(X), expected)


def test_a_forecast_goes_on(kills: Callable[..., int], tmp_path: Path) -> None:
    dates = np.datetime64("2024-01-01") + np.arange(50)
    y = np.sin(np.arange(50)) + 0.05 * np.arange(50)
    gp = gm.GPForecaster([7], warp=None, random_state=0)
    expected = gp.fit(dates, y).forecast(5)["mean"]
    gp.set_params(checkpoint=tmp_path / "fit.ck")
    writes = kills(None, lambda: gp.fit(dates, y))
    kills(writes - 2, lambda: gp.fit(dates, y))
    assert kills(None, lambda: gp.fit(dates, y)) < writes
    same(gp.forecast(5)["mean"], expected)


def test_on_the_command_line(
    kills: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint stays until the model is on disk."""
    monkeypatch.chdir(tmp_path)
    np.savetxt("table.csv", np.column_stack([X, Y]), delimiter=",", header="a,b,y", comments="")
    command = ["fit", "table.csv", "-t", "y", "-k", "rbf", "--restarts", "0", "-o", "model.gm"]

    def ran(*more: str) -> Any:
        return CliRunner().invoke(app, [*command, *more])

    assert ran().exit_code == 0
    known = gm.load("model.gm").theta_
    os.remove("model.gm")
    kills(5, lambda: ran("--checkpoint", "fit.ck"))
    assert sorted(os.listdir()) == ["fit.ck", "table.csv"]
    refused = ran("--checkpoint", "fit.ck", "--mean", "zero")
    assert refused.exit_code == 2
    assert "its setting mean was 'constant', and now it is 'zero'" in " ".join(refused.output.split())
    kills(None, lambda: ran("--checkpoint", "fit.ck"))
    same(gm.load("model.gm").theta_, known)
    assert sorted(os.listdir()) == ["model.gm", "table.csv"]
    refused = ran("--checkpoint", "model.gm")
    assert refused.exit_code == 2
    assert "--checkpoint" in refused.output
    same(gm.load("model.gm").theta_, known)
