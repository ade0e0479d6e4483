"""The model file: what is saved comes back to the last bit, in a process that has only the library; what
cannot be saved is refused untouched."""

from __future__ import annotations

import enum
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF as SklearnRBF
from sklearn.gaussian_process.kernels import WhiteKernel

import gramian as gm
from gramian.errors import ModelFileError
from gramian.kernels.convert import from_sklearn
from gramian.modelfile import load, save
from gramian.modelfile.record import describe
from gramian.solvers import Cholesky
from tests.conftest import COMPILED

# One text for this process and for the fresh one: everything that a model can be asked, as a digest of its
# bytes.
ASK = """
import hashlib
import re
import numpy as np
from threadpoolctl import threadpool_limits

def points(frame):
    X = np.random.default_rng(1).uniform(0.1, 2.0, (7, 3))
    if not frame:
        return X
    import pandas as pd
    return pd.DataFrame({"temp": X[:, 0], "load": X[:, 1], "site": ["a", "b", "c", "a", "b", "c", "a"]})

# without what is told of training rows, which not every file holds
def lasting(summary):
    return re.sub(r"\\n  quality .*?\\n\\n", "\\n\\n", summary, count=1, flags=re.DOTALL)

# the same number on both sides: another one may add in another order
@threadpool_limits.wrap(limits=1, user_api="blas")
def answers(gp):
    X = points(hasattr(gp, "feature_names_in_"))
    seed = None if gp.random_state is not None else 3
    found = {
        "mean": gp.predict(X),
        "std": gp.predict(X, return_std=True),
        "cov": gp.predict(X, return_cov=True, target="f"),
        "sample": gp.sample(X, 4, random_state=seed),
        "noisy sample": gp.sample(X, 2, target="y", random_state=seed),
        "fitted": [gp.noise_, gp.theta_, float(gp.evidence_)],
    }
    kind = type(gp.posterior_).__name__
    holds_data = kind != "FeaturePosterior"
    in_function_space = kind != "KrylovPosterior" and gp.outcome_.method != "fourier"
    if holds_data:
        found.update({"loo": gp.loo(), "evidence": [gp.log_evidence()]})
    # the rest compiles a program a term, and adds nothing that the five do not show
    small = len(gp.kernel_.parameters()) <= 5
    if small and holds_data:
        found["evidence and gradient"] = gp.log_evidence(return_grad=True)
    if small and in_function_space:
        found.update({"component " + name: part for name, part in gp.components(X).items()})
        if gp.kernel_.differentiable:
            found["gradient"] = gp.predict_gradient(X)
    digests = {
        name: hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in value)).hexdigest()
        for name, value in found.items()
    }
    return {
        **digests,
        "summary": lasting(gp.summary()),
        "parameters": str(gp.parameters_),
        "outcome": repr(gp.outcome_),
        "kernel": repr(gp.kernel_),
    }
"""
namespace: dict[str, Any] = {}
exec(ASK, namespace)
answers = namespace["answers"]


class WaveForTheModelFile(gm.Kernel):
    """A user's own kernel, with a parameter, a plain field and a kernel inside."""

    inner: gm.Kernel
    damping: Any = gm.positive(0.5)
    power: int = 2

    def pair(self, x: Any, z: Any) -> Any:
        return self.inner.pair(x, z) / (1 + self.damping * ((x - z) ** 2).sum()) ** self.power


class TiltForTheModelFile(gm.Mean):
    """A user's own mean."""

    slope: Any = gm.real(0.1)

    def at(self, x: Any) -> Any:
        return self.slope * x[0]


def data(outputs: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.1, 2.0, (15, 3))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(15)
    return X, y if not outputs else np.column_stack([y * 10.0**k + X[:, 2] for k in range(outputs)])


def frame() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = data()
    return pd.DataFrame({"temp": X[:, 0], "load": X[:, 1], "site": list("abcabcabcabcabc")}), y


def fixed_parameters(kernel: gm.Kernel, **settings: Any) -> gm.GPRegressor:
    return gm.GPRegressor(kernel, optimize=False, **{"noise": 0.05, **settings})


def models() -> dict[str, gm.GPRegressor]:
    X, y = data()
    priors = gm.RBF(
        gm.param([0.5, 0.6, 0.7], prior=gm.LogNormal((0.0, 0.1, 0.2), 1.0), bounds=(1e-3, np.inf))
    )
    priors += gm.param(0.3, prior=gm.Gamma(2, 1)) * gm.RationalQuadratic(
        gm.param(1.0, prior=gm.InverseGamma(2, 1)), gm.fixed(0.8)
    )
    priors += gm.Constant(gm.param(0.5, prior=gm.HalfNormal(2))) + gm.Linear(
        gm.param(0.5, prior=gm.Uniform(0, 2), bounds=(0.1, 1.5))
    )
    algebra = (
        0.7 * gm.RBF(0.8).on(0) * gm.Matern32([1.0, 2.0]).on(1, -1)
        + gm.Matern52(1.5) ** 3
        + gm.exp(0.1 * gm.Matern32(1.0))
    )
    algebra += gm.poly(gm.Linear(0.1), [0.0, 0.5, 0.1]) + 0.25
    other = (
        gm.ArcCosine(2, 0.2)
        + gm.NeuralNetwork(0.3, gm.fixed(0.0))
        + gm.Polynomial(3, [0.1, 0.2, 0.3], gm.fixed(0.0))
    )
    rough = (
        gm.Brownian()
        + gm.Matern12(0.7)
        + gm.Periodic(0.9, [1.1, 1.2, 1.3])
        + gm.Cosine(1.4)
        + gm.Categorical([0.2, 0.3, 0.4])
    )
    other += gm.SpectralMixture([0.5, 0.6], [0.1, 0.2], [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    matrix = gm.Linear(np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.1], [0.0, 0.1, 0.5]]))
    by_name = gm.RBF(0.5).on("temp", "load") * gm.Categorical().on("site") + (0.2 * gm.Linear()).on("load")
    return {
        "default": gm.GPRegressor(random_state=0, n_restarts=1).fit(X, y),
        "default on a table": gm.GPRegressor(optimize=False, random_state=0).fit(*frame()),
        "columns by name": fixed_parameters(by_name).fit(*frame()),
        "algebra": fixed_parameters(algebra).fit(X, y),
        "priors and bounds": (
            gm.GPRegressor(priors, n_restarts=0, noise=gm.param(0.1, prior=gm.LogNormal(-2, 1))).fit(X, y)
        ),
        "networks": fixed_parameters(other).fit(X, y),
        "rough": fixed_parameters(rough).fit(X, y),
        "matrix and linear mean": gm.GPRegressor(matrix + gm.RBF(1.0), mean="linear", n_restarts=0).fit(X, y),
        "two outputs": fixed_parameters(gm.RBF(0.7), mean="linear", noise=None).fit(*data(2)),
        "two outputs, two roots": (
            fixed_parameters(gm.RBF(0.7)).fit(*data(2), noise_var=np.linspace(0.01, 0.1, 15))
        ),
        "two outputs, two noises": fixed_parameters(gm.RBF(0.7), noise=[0.05, 2.0]).fit(*data(2)),
        "two outputs, two noises held": (
            gm.GPRegressor(gm.RBF(0.7), noise=gm.fixed([0.05, 2.0]), n_restarts=0).fit(*data(2))
        ),
        "outputs without number": fixed_parameters(gm.RBF(0.7), noise=None).fit(
            X, y[:, None] ** range(1, 23)
        ),
        "one output of shape (n, 1)": fixed_parameters(gm.RBF(0.7)).fit(*data(1)),
        "no noise": (
            fixed_parameters(gm.RBF(0.3), noise=gm.fixed(0), mean="zero", normalize_y=False).fit(X, y)
        ),
        "nothing to fit": (
            fixed_parameters(gm.RBF(gm.fixed(0.3)), noise=gm.fixed(0.1), mean=gm.ZeroMean()).fit(X, y)
        ),
        "from scikit-learn": (
            fixed_parameters(from_sklearn(SklearnRBF(0.7) + WhiteKernel(0.1)), noise=None).fit(X, y)
        ),
        "one row": fixed_parameters(gm.RBF(0.7)).fit(X[:1], y[:1]),
        "every setting": (
            gm.GPRegressor(
                gm.RBF(0.7),
                mean=gm.LinearMean(0.5, [0.1, 0.2, 0.3]),
                noise=gm.param(0.1, bounds=(0.01, 1.0)),
                method=gm.Exact(Cholesky(ladder=(0.0, 1e-9))),
                optimize=np.bool_(True),
                n_restarts=np.int64(1),
                normalize_y=False,
                random_state=np.random.RandomState(5),
                memory_limit="1GB",
                time_limit=np.inf,
                verbose=False,
            ).fit(X, y)
        ),
    }


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, gm.GPRegressor]]:
    folder = tmp_path_factory.mktemp("models")
    made = models()
    for k, gp in enumerate(made.values()):
        gp.save(folder / f"{k}.gm")
    return folder, made


@pytest.fixture(scope="module")
def expected(fitted: tuple[Path, dict[str, gm.GPRegressor]]) -> dict[str, dict[str, str]]:
    return {name: answers(gp) for name, gp in fitted[1].items()}


@pytest.fixture
def small() -> gm.GPRegressor:
    X, y = data()
    return fixed_parameters(gm.RBF(0.7)).fit(X, y)


def fresh_process(code: str, folder: Path, *arguments: str) -> str:
    """Runs code in a Python that knows the library and nothing of the tests, except for the programs
    that they have compiled, which it reads and does not add to."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(gm.__file__).parents[1]),
        "JAX_COMPILATION_CACHE_DIR": str(COMPILED),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "1e9",
    }
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# What is saved comes back. ----------------------------------------------------------------------------------


def test_answers_in_a_fresh_process_are_the_same_to_the_last_bit(fitted: Any, expected: Any) -> None:
    folder, made = fitted
    code = (
        ASK
        + "import json\nfrom gramian.modelfile import load\nprint(json.dumps([answers(load(f'{k}.gm')) for k"
        " in range(COUNT)]))"
    )
    found = json.loads(fresh_process(code.replace("COUNT", str(len(made))), folder).splitlines()[-1])
    for (name, wanted), got in zip(expected.items(), found, strict=True):
        assert got == wanted, name


def test_everything_an_estimator_has_comes_back(fitted: Any) -> None:
    folder, made = fitted
    for k, (name, gp) in enumerate(made.items()):
        loaded = load(folder / f"{k}.gm")
        assert vars(loaded).keys() == vars(gp).keys(), name
        mine, theirs = describe(loaded)[1], describe(gp)[1]
        assert mine.keys() == theirs.keys()
        for array, a in mine.items():
            assert (a.dtype, a.shape, a.tobytes()) == (
                theirs[array].dtype,
                theirs[array].shape,
                theirs[array].tobytes(),
            ), (name, array)
        assert all(root.flags.f_contiguous for root in loaded.posterior_.roots)
        assert loaded.n_features_in_ == gp.n_features_in_


def test_settings_come_back(fitted: Any) -> None:
    folder, made = fitted
    names = list(made)
    before, after = (
        made["every setting"].get_params(),
        load(folder / f"{names.index('every setting')}.gm").get_params(),
    )
    assert before.keys() == after.keys()
    for name in (
        "kernel",
        "method",
        "optimize",
        "n_restarts",
        "normalize_y",
        "memory_limit",
        "time_limit",
        "verbose",
    ):
        assert after[name] == before[name], name
    assert repr(after["noise"]) == repr(before["noise"])
    assert isinstance(after["mean"], gm.LinearMean)
    assert {path: repr(p) for path, p in after["mean"].parameters().items()} == {
        path: repr(p) for path, p in before["mean"].parameters().items()
    }
    converted = load(folder / f"{names.index('from scikit-learn')}.gm").kernel
    assert converted.kernel == made["from scikit-learn"].kernel.kernel
    assert repr(converted.noise) == repr(made["from scikit-learn"].kernel.noise)


def test_a_random_state_goes_on_where_it_was(tmp_path: Path) -> None:
    X, y = data()
    state = np.random.RandomState(5)
    state.standard_normal(3)  # leaves a second normal number waiting
    gp = fixed_parameters(gm.RBF(0.7), random_state=state).fit(X, y)
    gp.save(tmp_path / "m.gm")
    loaded = load(tmp_path / "m.gm")
    assert loaded.random_state.standard_normal() == state.standard_normal()
    np.testing.assert_array_equal(loaded.sample(X), gp.sample(X))


@pytest.mark.parametrize("shared", [np.random, np.random.mtrand._rand])
def test_the_shared_random_state_is_none(shared: Any, tmp_path: Path) -> None:
    X, y = data()
    fixed_parameters(gm.RBF(0.7), random_state=shared).fit(X, y).save(tmp_path / "m.gm")
    assert load(tmp_path / "m.gm").random_state is None


def test_priors_bounds_and_supports_come_back(fitted: Any) -> None:
    folder, made = fitted
    for k, (name, gp) in enumerate(made.items()):
        before, after = gp.fitted_.model.parameters(), load(folder / f"{k}.gm").fitted_.model.parameters()
        assert list(before) == list(after)
        for path, p in before.items():
            q = after[path]
            assert (p.support, p.prior, p.bounds, p.trainable) == (
                q.support,
                q.prior,
                q.bounds,
                q.trainable,
            ), (name, path)
            assert p.value.tobytes() == q.value.tobytes()
            assert not q.value.flags.writeable


def test_a_loaded_model_is_an_estimator_like_any_other(small: gm.GPRegressor, tmp_path: Path) -> None:
    X, y = data()
    small.save(tmp_path / "m.gm")
    loaded = load(tmp_path / "m.gm")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(loaded)).predict(X), small.predict(X))
    np.testing.assert_array_equal(clone(loaded).fit(X, y).predict(X), small.predict(X))
    np.testing.assert_array_equal(
        loaded.fit(X[:9], y[:9]).predict(X), clone(small).fit(X[:9], y[:9]).predict(X)
    )


def test_a_table_keeps_its_names_and_categories(fitted: Any) -> None:
    folder, made = fitted
    loaded = load(folder / f"{list(made).index('columns by name')}.gm")
    assert list(loaded.feature_names_in_) == ["temp", "load", "site"]
    X, _ = frame()
    with pytest.warns(UserWarning, match=r"site \(15\)"):
        loaded.predict(X.assign(site="d"))
    with pytest.raises(ValueError, match="load"):
        loaded.predict(X.drop(columns="load"))


def test_names_of_any_kind_come_back(tmp_path: Path) -> None:
    X, y = data()
    odd = pd.DataFrame({0: X[:, 0], 1: X[:, 1], 2: pd.Series(["ä", "\udfff", "日"] * 5, dtype=object)})
    odd.columns = pd.Index(["temperatur °C", "\ud800", '"}, \\n\n\x00'], dtype=object)
    gp = gm.GPRegressor(optimize=False).fit(odd, y)
    gp.save(tmp_path / "m.gm")
    loaded = load(tmp_path / "m.gm")
    assert loaded.fitted_.columns == gp.fitted_.columns
    np.testing.assert_array_equal(loaded.predict(odd), gp.predict(odd))
    numbered = pd.DataFrame(X, columns=[3, 1, 2])  # names that scikit-learn does not keep
    gp = fixed_parameters(gm.RBF(0.7)).fit(numbered, y)
    gp.save(tmp_path / "n.gm")
    assert not hasattr(load(tmp_path / "n.gm"), "feature_names_in_")
    assert load(tmp_path / "n.gm").fitted_.columns == gp.fitted_.columns


def test_a_value_that_ended_on_the_edge_of_its_range_comes_back(tmp_path: Path) -> None:
    X, y = data()
    gp = fixed_parameters(gm.Categorical(0.5) + gm.RBF(0.7)).fit(X, y)
    similarity = next(path for path in gp.fitted_.model.parameters() if path.endswith("similarity"))
    model = gp.fitted_.model.with_values({similarity: 1.0})  # as when fitting rounds up to it
    process = gp.fitted_.inference.infer(model, gp.fitted_.rows).posterior
    gp.fitted_ = replace(gp.fitted_, model=model, kernel=model.kernel, process=process)
    gp.save(tmp_path / "m.gm")
    np.testing.assert_array_equal(load(tmp_path / "m.gm").predict(X), gp.predict(X))


def test_a_posterior_that_keeps_the_factor_itself_comes_back(small: gm.GPRegressor, tmp_path: Path) -> None:
    X, _ = data()
    whole = small.posterior_
    L = np.asfortranarray(np.linalg.inv(whole.roots[0]))
    L[np.triu_indices(len(L), 1)] = np.nan  # what stands above the diagonal is nothing to anybody
    small.fitted_ = replace(small.fitted_, process=replace(whole, roots=(L,), inverted=False))
    small.save(tmp_path / "m.gm")
    loaded = load(tmp_path / "m.gm")
    assert not loaded.posterior_.inverted
    np.testing.assert_array_equal(loaded.predict(X, return_std=True)[1], small.predict(X, return_std=True)[1])
    # A triangular inverse of 15 rows is right to some 15 eps cond(L), and cond(L) is below 100 with noise at
    # a twentieth of the variance.
    np.testing.assert_allclose(
        loaded.predict(X, return_std=True)[1], np.sqrt(whole.var(X)[:, 0] + small.noise_), rtol=1e-10
    )


# The file. --------------------------------------------------------------------------------------------------


def test_the_file_is_safetensors_with_half_of_each_root(tmp_path: Path) -> None:
    n = 400
    X = np.random.default_rng(0).normal(size=(n, 2))
    gp = fixed_parameters(gm.RBF(0.7)).fit(X, X[:, 0])
    gp.save(tmp_path / "m.gm")
    with safe_open(tmp_path / "m.gm", framework="np") as file:
        assert file.metadata()["format"] == "gramian model"
        np.testing.assert_array_equal(file.get_tensor("X"), X)
        packed = file.get_tensor("root.0")
    # column by column of the lower triangle
    np.testing.assert_array_equal(packed, gp.posterior_.roots[0].T[np.triu_indices(n)])
    # the header of so small a model has some 3,000 bytes
    assert (tmp_path / "m.gm").stat().st_size < 8 * (n * (n + 1) / 2 + 5 * n) + 4000


def test_saving_and_loading_take_little_beyond_the_model(tmp_path: Path) -> None:
    n = 3000
    X = np.random.default_rng(0).normal(size=(n, 2))
    gp = fixed_parameters(gm.RBF(0.7)).fit(X, X[:, 0])
    tracemalloc.start()
    try:
        gp.save(tmp_path / "m.gm")
        saving = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        loaded = load(tmp_path / "m.gm")
        loading = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert np.array_equal(loaded.posterior_.roots[0], gp.posterior_.roots[0])
    assert saving < 2e6  # one column at a time
    assert loading < 8 * n * n + 3 * 8 * 2**20  # the root, and parts of 2^20 numbers on their way


def test_the_same_model_gives_the_same_bytes(small: gm.GPRegressor, tmp_path: Path) -> None:
    for name in ("a.gm", "b.anything"):
        small.save(tmp_path / name)
    load(tmp_path / "b.anything").save(tmp_path / "c")
    assert len({(tmp_path / name).read_bytes() for name in ("a.gm", "b.anything", "c")}) == 1


def test_a_failure_half_way_leaves_the_old_file(
    small: gm.GPRegressor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.save(tmp_path / "m.gm")
    before = (tmp_path / "m.gm").read_bytes()
    X, y = data()
    other = fixed_parameters(gm.RBF(0.1)).fit(X, y)

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("gramian.data.atomic.os.fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            other.save(tmp_path / "m.gm")
    assert (tmp_path / "m.gm").read_bytes() == before
    assert os.listdir(tmp_path) == ["m.gm"]


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files there")
def test_a_disk_that_takes_no_more_leaves_the_old_file(small: gm.GPRegressor, tmp_path: Path) -> None:
    small.save(tmp_path / "m.gm")
    before = (tmp_path / "m.gm").read_bytes()
    code = """
import resource, signal, sys
from gramian.modelfile import load
from gramian.errors import ModelFileError
gp = load("m.gm")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    gp.save("m.gm")
except ModelFileError as error:
    print(error)
"""
    assert "cannot be written" in fresh_process(code, tmp_path)
    assert (tmp_path / "m.gm").read_bytes() == before
    assert os.listdir(tmp_path) == ["m.gm"]


@pytest.mark.parametrize("place", [".", "missing/m.gm"])
def test_a_place_that_takes_no_file_is_named(small: gm.GPRegressor, tmp_path: Path, place: str) -> None:
    with pytest.raises(ModelFileError, match="folder"):
        small.save(tmp_path / place)
    assert os.listdir(tmp_path) == []


# A user's own classes. --------------------------------------------------------------------------------------


def own_model() -> gm.GPRegressor:
    X, y = data()
    return fixed_parameters(
        WaveForTheModelFile(gm.RBF(0.7), 0.3, 3) + gm.Linear(), mean=TiltForTheModelFile(0.2)
    ).fit(X, y)


def test_a_class_of_the_users_own_is_known_by_its_name(tmp_path: Path) -> None:
    gp = own_model()
    gp.save(tmp_path / "m.gm")
    assert answers(load(tmp_path / "m.gm")) == answers(gp)


def test_an_unknown_class_is_named_with_its_module(tmp_path: Path) -> None:
    own_model().save(tmp_path / "m.gm")
    code = """
import gramian as gm
from gramian.modelfile import load
def message():
    try:
        load("m.gm")
    except gm.errors.ModelFileError as error:
        return str(error)
first = message()
class TiltForTheModelFile(gm.Mean):
    slope: gm.Parameter = gm.real(0.1)
    def at(self, x):
        return self.slope * x[0]
second = message()
class WaveForTheModelFile(gm.Kernel):
    inner: gm.Kernel
    damping: gm.Parameter = gm.positive(0.5)
    power: int = 2
    def pair(self, x, z):
        return self.inner.pair(x, z) / (1 + self.damping * ((x - z) ** 2).sum()) ** self.power
print(first, second, load("m.gm").predict([[1.0, 1.0, 1.0]]).tobytes().hex(), sep="\\n")
"""
    first, second, hexadecimal = fresh_process("import gramian.errors\n" + code, tmp_path).splitlines()[-3:]
    assert "ForTheModelFile" in first
    assert f"Import the module that defines it ({__name__})" in first
    assert "'WaveForTheModelFile'" in second
    assert hexadecimal == own_model().predict([[1.0, 1.0, 1.0]]).tobytes().hex()


def test_two_classes_of_one_name_are_refused(tmp_path: Path) -> None:
    def make(shift: float) -> type[gm.Kernel]:
        class TwinForTheModelFile(gm.Kernel):
            def pair(self, x: Any, z: Any) -> Any:
                return shift + x @ z

        return TwinForTheModelFile

    X, y = data()
    gp = fixed_parameters(make(1.0)()).fit(X, y)
    gp.save(tmp_path / "m.gm")
    make(2.0)
    with pytest.raises(ModelFileError, match="several classes named TwinForTheModelFile"):
        load(tmp_path / "m.gm")
    with pytest.raises(ModelFileError, match="several classes named TwinForTheModelFile"):
        gp.save(tmp_path / "n.gm")
    assert os.listdir(tmp_path) == ["m.gm"]


def test_a_class_may_be_defined_again_and_then_its_models_fitted_again(tmp_path: Path) -> None:
    cell = "class AgainForTheModelFile(gm.Kernel):\n    def pair(self, x, z):\n        return 1 + x @ z"
    X, y = data()
    notebook = {"gm": gm, "__name__": "notebook"}
    exec(cell, notebook)
    before = fixed_parameters(notebook["AgainForTheModelFile"]()).fit(X, y)
    exec(cell, notebook)
    with pytest.raises(ModelFileError, match="AgainForTheModelFile was defined again"):
        before.save(tmp_path / "m.gm")
    fixed_parameters(notebook["AgainForTheModelFile"]()).fit(X, y).save(tmp_path / "m.gm")
    assert type(load(tmp_path / "m.gm").kernel_) is notebook["AgainForTheModelFile"]


def test_a_users_class_with_a_name_of_the_library_is_not_taken_for_it(tmp_path: Path) -> None:
    X, y = data()
    own = type("Cosine", (gm.RBF,), {"__module__": "notebook"})
    for k, kernel in enumerate((own(0.7), gm.Cosine(0.7))):
        fixed_parameters(kernel).fit(X, y).save(tmp_path / f"{k}.gm")
        assert type(load(tmp_path / f"{k}.gm").kernel_) is type(kernel)
    code = (
        "from gramian.modelfile import load\nload('1.gm')\ntry:\n    load('0.gm')\nexcept ValueError as"
        " error:\n    print(error)"
    )
    assert "'Cosine', which is not known here" in fresh_process(code, tmp_path)


# What cannot be saved. --------------------------------------------------------------------------------------


def fading(x: Any) -> Any:
    return x[0]


class Shade(enum.IntEnum):
    LIGHT = 1


class ShadedForTheModelFile(gm.RBF):
    shade: Any = Shade.LIGHT


class HalvedForTheModelFile(gm.RBF):
    times: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "times", self.times + 1)


class LoosePriorForTheModelFile(gm.params.Prior):
    def log_density(self, v: np.ndarray) -> np.ndarray:
        return -v

    def slope(self, v: np.ndarray) -> np.ndarray:
        return -np.ones_like(v)


@dataclass(frozen=True)
class FirmPriorForTheModelFile(LoosePriorForTheModelFile):
    rate: float = 1.0


def nested(levels: int) -> gm.Kernel:
    kernel: gm.Kernel = gm.RBF(0.7)
    for _ in range(levels):
        kernel = gm.fixed(1.0) * kernel
    return kernel


REFUSED = {
    "a function": (lambda: fixed_parameters(gm.warp(gm.RBF(0.7), fading)), "the Python function fading"),
    "a lambda": (
        lambda: fixed_parameters(gm.RBF(1.0) + gm.map_inputs(gm.RBF(0.7), lambda x: x * 2)),
        "the Python function <lambda>",
    ),
    "an enumeration": (
        lambda: fixed_parameters(ShadedForTheModelFile(0.7)),
        "shade is <Shade.LIGHT: 1>, of type Shade",
    ),
    "fields that change": (
        lambda: fixed_parameters(HalvedForTheModelFile(0.7)),
        "do not come back as they were",
    ),
    "fields that are not declared": (
        lambda: fixed_parameters(gm.RBF(gm.param(0.7, prior=LoosePriorForTheModelFile()))),
        "LoosePriorForTheModelFile has no declared fields. Make it a dataclass",
    ),
    "too deep": (lambda: fixed_parameters(nested(70)), "nested more than 64 levels"),
    "another generator": (
        lambda: fixed_parameters(gm.RBF(0.7), random_state=np.random.RandomState(np.random.PCG64(0))),
        "PCG64",
    ),
    "a setting that is no flag": (lambda: fixed_parameters(gm.RBF(0.7), verbose="yes"), "verbose is 'yes'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_file_cannot_hold_is_refused_before_writing(case: str, tmp_path: Path) -> None:
    make, message = REFUSED[case]
    gp = make().fit(*data())
    (tmp_path / "m.gm").write_bytes(b"before")
    with pytest.raises(ModelFileError, match="This model cannot be saved") as caught:
        gp.save(tmp_path / "m.gm")
    assert message in str(caught.value)
    assert (tmp_path / "m.gm").read_bytes() == b"before"


def test_a_setting_that_a_file_cannot_hold_is_refused(small: gm.GPRegressor, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="random_state is Generator"):
        small.set_params(random_state=np.random.default_rng(0)).save(tmp_path / "m.gm")
    assert os.listdir(tmp_path) == []


def test_a_prior_of_the_users_own_is_saved_when_it_is_a_dataclass(tmp_path: Path) -> None:
    gp = fixed_parameters(gm.RBF(gm.param(0.7, prior=FirmPriorForTheModelFile(2.0)))).fit(*data())
    gp.save(tmp_path / "m.gm")
    assert load(tmp_path / "m.gm").kernel_ == gp.kernel_


def test_deep_kernels_are_saved_up_to_the_limit(tmp_path: Path) -> None:
    gp = fixed_parameters(nested(60)).fit(*data())
    gp.save(tmp_path / "m.gm")
    assert load(tmp_path / "m.gm").kernel_ == gp.kernel_


def test_a_model_that_is_not_finite_is_refused(small: gm.GPRegressor, tmp_path: Path) -> None:
    small.posterior_.alpha[3] = np.nan
    with pytest.raises(ModelFileError, match="not finite"):
        small.save(tmp_path / "m.gm")
    assert os.listdir(tmp_path) == []


def test_only_a_fitted_regressor_is_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        gm.GPRegressor().save(tmp_path / "m.gm")
    with pytest.raises(NotFittedError):
        save(gm.GPRegressor(), tmp_path / "m.gm")

    class Mine(gm.GPRegressor):
        pass

    with pytest.raises(ModelFileError, match="not a Mine"):
        Mine(gm.RBF(0.7), noise=0.1, optimize=False).fit(*data()).save(tmp_path / "m.gm")
    with pytest.raises(ModelFileError, match="not a dict"):
        save({}, tmp_path / "m.gm")  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == []
