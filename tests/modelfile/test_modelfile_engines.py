"""Models of the approximate engines in files: predictions to the last bit, without the data where predictions
need none of them."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

import gramian as gm
from gramian.data.gaps import POOL
from gramian.errors import GramianError, ModelFileError
from gramian.features.fourier import FourierBasis, FourierMap
from gramian.modelfile import load
from gramian.modelfile.record import describe
from gramian.processes import Posterior
from gramian.processes.krylov import KrylovPosterior
from tests.modelfile.test_modelfile import ASK, answers, data, fixed_parameters, frame, fresh_process

WAVES = (
    gm.RationalQuadratic(0.7, 1.3).on(0)
    + gm.Periodic(0.9, 1.1).on(1)
    + gm.Cosine(1.4).on(2) * gm.Matern32([0.5, 0.6]).on(0, 1)
)
MIXTURE = gm.SpectralMixture(
    [0.5, 0.6], [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]
)
NOISE = np.linspace(0.01, 0.1, 15)


def with_method(
    method: Any, kernel: gm.Kernel | None = None, outputs: int = 0, noise_var: Any = None, **settings: Any
) -> gm.GPRegressor:
    gp = fixed_parameters(kernel or gm.RBF([0.7, 0.8, 0.9]), method=method, random_state=0, **settings)
    return gp.fit(*data(outputs), noise_var=noise_var)


MODELS: dict[str, Callable[[], gm.GPRegressor]] = {
    "nystrom": lambda: with_method(gm.Nystrom(5, "pivoted")),
    "nystrom of a table": (
        lambda: gm.GPRegressor(method="nystrom", optimize=False, random_state=0).fit(*frame())
    ),
    "learned inducing points": (
        lambda: gm.GPRegressor(
            gm.RBF([0.7, 0.8, 0.9]),
            method=gm.Sparse(4, inducing="kmeans", optimize_inducing=True),
            n_restarts=0,
            random_state=1,
        ).fit(*data())
    ),
    "inducing points as given": lambda: with_method(
        gm.Sparse(inducing=data()[0][:4].tolist(), objective="dtc"), gm.RBF(0.6) + gm.Linear()
    ),
    "fitc, two outputs, two roots": lambda: with_method(gm.Sparse(6, "fitc"), None, 2, NOISE, mean="linear"),
    "fourier": lambda: with_method(gm.Fourier(20)),
    "fourier, shared noise": lambda: with_method(gm.Fourier(20, "sorf"), None, 2, noise=None),
    "fourier with phases": lambda: with_method(gm.Fourier(31, "rff-phase"), WAVES),
    "fourier of a mixture": lambda: with_method(gm.Fourier(24, "qmc"), MIXTURE),
    "neighbours": lambda: with_method(gm.Neighbours(5)),
    "neighbours, two noises": lambda: with_method(gm.Neighbours(4, "random"), None, 2, NOISE),
    "cg": lambda: with_method(gm.CG(tol=1e-8, rank=4, probes=np.int64(4))),
    "minres, two noises": lambda: with_method(gm.MINRES(preconditioner="jacobi", probes=4), None, 2, NOISE),
}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, gm.GPRegressor]]:
    folder, made = tmp_path_factory.mktemp("engines"), {name: make() for name, make in MODELS.items()}
    for k, gp in enumerate(made.values()):
        gp.save(folder / f"{k}.gm")
    return folder, made


def test_answers_in_a_fresh_process_are_the_same_to_the_last_bit(fitted: Any) -> None:
    folder, made = fitted
    code = (
        ASK
        + "import json\nfrom gramian.modelfile import load\nprint(json.dumps([answers(load(f'{k}.gm')) for k"
        " in range(COUNT)]))"
    )
    found = json.loads(fresh_process(code.replace("COUNT", str(len(made))), folder).splitlines()[-1])
    for (name, gp), got in zip(made.items(), found, strict=True):
        assert got == answers(gp), name


def test_a_loaded_model_has_what_the_fitted_one_has_and_saves_the_same_bytes(
    fitted: Any, tmp_path: Path
) -> None:
    folder, made = fitted
    for k, (name, gp) in enumerate(made.items()):
        loaded = load(folder / f"{k}.gm")
        assert vars(loaded).keys() == vars(gp).keys(), name
        assert type(loaded.posterior_) is type(gp.posterior_), name
        assert type(loaded.fitted_.inference) is type(gp.fitted_.inference), name
        assert loaded.method == gp.method, name
        loaded.save(tmp_path / "again.gm")
        assert (tmp_path / "again.gm").read_bytes() == (folder / f"{k}.gm").read_bytes(), name
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(loaded)).theta_, gp.theta_)


def test_a_feature_model_leaves_the_data_behind_and_says_so(fitted: Any) -> None:
    folder, made = fitted
    for k, (name, gp) in enumerate(made.items()):
        loaded = load(folder / f"{k}.gm")
        arrays = describe(gp)[1]
        assert ("X" in arrays) == ("Y" in arrays) == (gp.outcome_.method in ("cg", "minres", "neighbours")), (
            name
        )
        if "X" in arrays:
            continue
        for ask in (
            loaded.loo,
            loaded.log_evidence,
            lambda m=loaded: m.log_evidence(return_grad=True),
            lambda m=loaded: m.certificate(),
        ):
            with pytest.raises(GramianError, match="loaded from a file that holds no data"):
                ask()
        assert gp.loo().mean.shape[0] == 15  # which the fitted model still can do


def test_a_loaded_feature_model_can_be_fitted_again(fitted: Any) -> None:
    folder, made = fitted
    X, y = data()
    loaded = load(folder / f"{list(made).index('nystrom')}.gm")
    np.testing.assert_array_equal(loaded.fit(X, y).predict(X), made["nystrom"].predict(X))
    assert loaded.loo().mean.shape == (15,)


def test_a_certificate_that_was_computed_is_kept(tmp_path: Path) -> None:
    gp = with_method(gm.Nystrom(5))
    certificate = gp.certificate()
    gp.save(tmp_path / "m.gm")
    assert load(tmp_path / "m.gm").certificate_ == certificate


def test_the_size_of_a_feature_model_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    sizes = []
    for n in (2_000, 20_000):
        X = np.random.default_rng(0).normal(size=(n, 2))
        fixed_parameters(gm.RBF(0.7), method=gm.Nystrom(50, "uniform"), random_state=0).fit(X, X[:, 0]).save(
            tmp_path / "m.gm"
        )
        sizes.append((tmp_path / "m.gm").stat().st_size)
    assert sizes[1] < sizes[0] + 100  # numbers of more digits
    # two triangles, landmarks, weights, rows that missing cells are taken from; the document
    assert sizes[1] < 8 * (2 * 50 * 51 / 2 + 50 * 3 + 2 * POOL) + 6000


def test_the_root_of_the_landmarks_is_in_the_file(fitted: Any) -> None:
    """So that another machine, which rounds it otherwise, predicts the same from landmarks that nearly repeat
    each other."""
    folder, made = fitted
    k = list(made).index("nystrom")
    with safe_open(folder / f"{k}.gm", framework="np") as file:
        L = made["nystrom"].posterior_.features.L
        np.testing.assert_array_equal(file.get_tensor("root.landmarks"), L.T[np.triu_indices(len(L))])
    assert "L" in vars(load(folder / f"{k}.gm").posterior_.features)


def test_frequencies_and_amplitudes_are_in_the_file(fitted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, made = fitted
    k = list(made).index("fourier")
    at = FourierBasis.at

    def otherwise(basis: FourierBasis, kernel: gm.Kernel) -> FourierMap:
        found = at(basis, kernel)
        return dataclasses.replace(found, W=found.W * (1 + 1e-6))  # as a later version might compute them

    monkeypatch.setattr(FourierBasis, "at", otherwise)
    np.testing.assert_array_equal(
        load(folder / f"{k}.gm").predict(data()[0]), made["fourier"].predict(data()[0])
    )


# Krylov solvers. --------------------------------------------------------------------------------------------


def test_a_preconditioner_is_made_when_first_needed(fitted: Any) -> None:
    folder, made = fitted
    loaded = load(folder / f"{list(made).index('cg')}.gm")
    (system,) = loaded.posterior_.systems
    loaded.predict(data()[0])
    assert "factor" not in vars(system)
    loaded.predict(data()[0], return_std=True)
    assert "factor" in vars(system)
    theirs = made["cg"].posterior_.systems[0].factor.preconditioner
    np.testing.assert_array_equal(system.factor.preconditioner.U, theirs.U)


def test_a_second_attempt_comes_back_as_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    gp = fixed_parameters(
        gm.RBF(0.7), noise=1e-4, method=gm.CG(tol=1e-6, rank=20, max_iter=20, probes=2), random_state=0
    ).fit(X, np.sin(X[:, 0]))
    assert isinstance(gp.posterior_, KrylovPosterior)
    assert gp.posterior_.systems[0].solver != gp.fitted_.inference.engine.solver
    gp.save(tmp_path / "m.gm")
    loaded = load(tmp_path / "m.gm")
    assert loaded.posterior_.systems[0].solver == gp.posterior_.systems[0].solver
    for mine, theirs in zip(
        loaded.predict(X[:9], return_std=True), gp.predict(X[:9], return_std=True), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


def test_a_solver_that_gave_way_to_cholesky_comes_back(tmp_path: Path) -> None:
    X, y = data()
    gp = fixed_parameters(
        gm.RBF(5.0), noise=1e-9, method=gm.CG(tol=1e-12, max_iter=1, preconditioner="none"), random_state=0
    ).fit(X, y)
    assert isinstance(gp.posterior_, Posterior)
    gp.save(tmp_path / "m.gm")
    loaded = load(tmp_path / "m.gm")
    assert loaded.outcome_ == gp.outcome_
    for mine, theirs in zip(loaded.predict(X, return_std=True), gp.predict(X, return_std=True), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert loaded.log_evidence() == gp.log_evidence()


# What cannot be saved. --------------------------------------------------------------------------------------


def test_a_method_that_holds_arrays_is_no_setting_for_a_file(tmp_path: Path) -> None:
    prepared = with_method(gm.Nystrom(5)).fitted_.inference
    with pytest.raises(ModelFileError, match=r"method\.engine\.basis\.Z is array"):
        with_method(prepared).save(tmp_path / "m.gm")
    assert os.listdir(tmp_path) == []
