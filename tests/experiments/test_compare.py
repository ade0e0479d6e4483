"""A comparison reports what the engines give, run by run the same whatever else runs, and goes on where it
was interrupted."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pandas as pd
import pytest

import gramian as gm
from gramian import clock
from gramian.errors import InputError, ParameterError
from gramian.experiments import compare as module
from gramian.experiments.compare import compare
from gramian.experiments.store import Store, from_csv, to_csv

KERNEL, NOISE, N = 1.3 * gm.Matern52(0.9), 0.02, 90
TIMED = {
    "probabilities_seconds",
    "construction_seconds",
    "fit_seconds",
    "total_seconds",
    "predict_seconds",
    "measured_bytes",
}


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.uniform(-2, 2, (N, 2))
    return X, 3 + np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(N)


def settled(X, y, **settings):
    """A quick comparison at given parameters."""
    return compare(X, y, **{"kernel": KERNEL, "noise": NOISE, "sizes": (10,), "repeats": 1, **settings})


def untimed(runs) -> list[dict[str, object]]:
    """The runs without what depends on the machine's mood; NaN as None, which equals itself."""
    rows = [
        {name: value for name, value in dataclasses.asdict(run).items() if name not in TIMED} for run in runs
    ]
    return [
        {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in row.items()
        }
        for row in rows
    ]


# What is reported


@pytest.fixture(scope="module")
def all_families(data):
    methods = [
        "nystrom:uniform",
        "nystrom:leverage",
        "fourier:rff",
        "vfe",
        "fitc",
        "dtc",
        "cg",
        "cg:none",
        "minres",
        "exact",
    ]
    return compare(*data, kernel=KERNEL, noise=NOISE, methods=methods, sizes=(15, N), repeats=1, tol=1e-9)


def test_exact_is_the_estimators_own_answer(data, all_families):
    X, y = data
    run = next(run for run in all_families.runs if run.method == "exact")
    assert (run.n_train, run.n_test) == (72, 18)
    train, test = _split(X, y)
    gp = gm.GPRegressor(KERNEL, noise=gm.fixed(NOISE), optimize=False).fit(X[train], y[train])
    mean, std = gp.predict(X[test], return_std=True)
    z = (y[test] - mean) / std
    assert run.mse == pytest.approx(np.mean((y[test] - mean) ** 2), rel=1e-10)
    assert run.rmse == pytest.approx(run.mse**0.5, rel=1e-12)
    assert run.nlpd == pytest.approx(np.mean(0.5 * z**2 + 0.5 * np.log(2 * np.pi * std**2)), rel=1e-10)
    assert run.coverage95 == np.mean(np.abs(z) <= 1.959963984540054)
    assert run.log_evidence == pytest.approx(gp.log_evidence(), rel=1e-10)


def _split(X, y):
    setup = module.Setup(X, y, KERNEL, NOISE, module.Settings(0.2, 0, False, True, None, 1, 1, 1, 1e-6, 1))
    train, test = setup.split(0)
    assert len(np.union1d(train, test)) == len(X) == len(train) + len(test)
    return train, test


@pytest.mark.parametrize(
    "method", ["nystrom:uniform", "nystrom:leverage", "vfe:rpcholesky", "fitc:rpcholesky", "dtc:rpcholesky"]
)
def test_all_rows_as_landmarks_are_the_exact_model(all_families, method):
    exact = next(run for run in all_families.runs if run.method == "exact")
    few, full = (run for run in all_families.runs if run.method == method)
    # K_zz carries a jitter of 1e-12, against noise of 1e-2 in these units: ten digits would be luck, six are
    # not.
    assert full.frobenius < 1e-9 < few.frobenius
    assert full.infinity < 1e-9 < few.infinity
    assert (full.mse, full.nlpd) == pytest.approx((exact.mse, exact.nlpd), rel=1e-6)
    assert full.features == 72


@pytest.mark.parametrize("method", ["cg:rpcholesky", "cg:none", "minres:rpcholesky"])
def test_krylov_solvers_reach_the_exact_answer_and_tell_their_steps(all_families, method):
    exact = next(run for run in all_families.runs if run.method == "exact")
    for run in (run for run in all_families.runs if run.method == method):
        assert run.residual <= 1e-9
        assert run.iterations >= 1
        assert (run.mse, run.nlpd, run.coverage95) == pytest.approx(
            (exact.mse, exact.nlpd, exact.coverage95), rel=1e-6
        )
        assert math.isnan(run.frobenius)  # K itself: nothing to compare


def test_a_preconditioner_of_full_rank_needs_fewer_steps_than_none(all_families):
    steps = {(run.method, run.size): run.iterations for run in all_families.runs}
    assert steps["cg:rpcholesky", N] < steps["cg:rpcholesky", 15] < steps["cg:none", 0]


def test_fitc_keeps_the_diagonal_and_dtc_does_not(data):
    # With the same landmarks, the same Q: FITC's matrix is nearer to K by exactly the diagonal of K - Q.
    runs = {run.method: run for run in settled(*data, methods=["fitc:pivoted", "dtc:pivoted"]).runs}
    assert runs["fitc:pivoted"].frobenius < runs["dtc:pivoted"].frobenius


def test_a_solve_that_misses_its_tolerance_says_so(data):
    (run,) = settled(*data, methods=["cg:none"], max_iter=2).runs
    assert run.residual > 1e-6
    assert "times the tolerance" in run.note
    assert run.note in settled(*data, methods=["cg:none"], max_iter=2).table()


def test_what_a_method_cannot_do_is_a_note_and_the_rest_goes_on(data):
    result = compare(
        *data,
        kernel=gm.Linear(),
        noise=NOISE,
        methods=["fourier:rff", "nystrom:uniform"],
        sizes=(10,),
        repeats=1,
    )
    failed, fine = result.runs
    assert "Linear" in failed.note
    assert math.isnan(failed.mse)
    assert fine.mse > 0
    assert failed.note in str(result)


def test_a_memory_limit_leaves_out_what_needs_more(data):
    small, exact = settled(*data, methods=["nystrom:uniform", "exact"], memory_limit="300kB").runs
    assert small.note == ""
    assert "memory_limit='300kB'" in exact.note


def test_large_matrices_are_compared_on_a_part_and_the_table_says_so(data):
    result = settled(*data, methods=["nystrom:uniform"], gram_rows=30)
    assert result.runs[0].gram_rows == 30
    assert "a random part of 30 of the 72 training rows" in result.table()
    assert "all training rows" in settled(*data, methods=["nystrom:uniform"]).table()


def test_variances_of_krylov_solvers_may_be_of_a_part(data):
    result = settled(*data, methods=["cg", "exact"], variance_rows=5)
    cg, exact = result.runs
    assert (cg.variance_rows, exact.variance_rows) == (5, 18)
    assert cg.mse == pytest.approx(exact.mse, rel=1e-4)
    assert "of 5 test rows" in result.table()


def test_without_y_kernel_matrices_are_compared_on_all_rows(data):
    X, _ = data
    result = compare(X, kernel=KERNEL, methods=["nystrom:uniform", "fourier:orf"], sizes=(10, N), repeats=2)
    assert {run.n_train for run in result.runs} == {N}
    assert all(math.isnan(run.mse) and run.frobenius > 0 for run in result.runs)
    assert "MSE" not in result.table()


# Parameters


def test_parameters_are_fitted_once_on_a_part_and_held(data):
    X, y = data
    result = compare(X, y, methods=["exact"], repeats=2, fit_rows=60)
    rows = np.sort(np.random.default_rng([3, 0]).choice(N, 60, replace=False))
    gp = gm.GPRegressor("matern52", random_state=0).fit(X[rows], y[rows])
    # Both maximise the same evidence, from other restarts: the optimum is flat, hence the tolerance.
    assert result.noise == pytest.approx(gp.noise_, rel=0.02)
    np.testing.assert_allclose(
        [p.value for p in result.kernel.parameters().values()][1],
        list(gp.kernel_.parameters().values())[1].value,
        rtol=0.05,
    )


def test_a_given_kernel_stays_and_its_noise_is_fitted(data):
    result = compare(*data, kernel=KERNEL, methods=["exact"], repeats=1)
    assert result.kernel == KERNEL
    assert result.noise == pytest.approx(0.01, rel=0.5)  # of the data: 0.1 squared, from 90 rows


def test_a_kernel_of_scikit_learn_brings_its_noise(data):
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    result = compare(
        *data, kernel=gm.from_sklearn(RBF(0.5) + WhiteKernel(0.07)), methods=["exact"], repeats=1
    )
    assert float(next(iter(result.kernel.parameters().values())).value) == 0.5
    assert result.noise == 0.07


def test_standardizing_is_a_change_of_units(data):
    X, y = data
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    one = settled(1000 + 50 * X, y, methods=["nystrom:pivoted"], standardize=True)
    other = settled(scaled, y, methods=["nystrom:pivoted"])
    assert one.runs[0].mse == pytest.approx(other.runs[0].mse, rel=1e-8)


def test_frames_with_categories_are_taken(data):
    X, y = data
    frame = pd.DataFrame({"a": X[:, 0], "site": np.where(X[:, 1] > 0, "n", "s")})
    kernel = gm.RBF(1.0).on("a") * gm.Categorical().on("site")
    (run,) = compare(
        frame, y, kernel=kernel, noise=0.1, methods=["nystrom"], sizes=(20,), repeats=1, standardize=True
    ).runs
    assert run.note == ""
    assert run.mse > 0


def test_max_rows_takes_a_part(data):
    (run,) = settled(*data, methods=["exact"], max_rows=40).runs
    assert run.n_train + run.n_test == 40


# Random numbers


def test_a_run_gives_the_same_numbers_whatever_else_is_compared(data):
    together = settled(*data, methods=["fourier:rff", "nystrom:uniform"], sizes=(10, 20), repeats=2)
    alone = settled(*data, methods=["nystrom:uniform"], sizes=(20,), repeats=2)
    mine = [run for run in together.runs if run.method == "nystrom:uniform" and run.size == 20]
    assert untimed(mine) == untimed(alone.runs)


def test_repeats_and_seeds_have_splits_and_draws_of_their_own(data):
    first = settled(*data, methods=["nystrom:uniform", "exact"], repeats=3)
    other = settled(*data, methods=["nystrom:uniform", "exact"], repeats=3, random_state=1)
    assert len({run.mse for run in (*first.runs, *other.runs)}) == 12
    assert len({run.frobenius for run in (*first.runs, *other.runs) if run.method != "exact"}) == 6


# On disk


def test_an_interrupted_comparison_goes_on_and_gives_the_same(data, tmp_path, monkeypatch):
    settings = {"methods": ["nystrom:uniform", "fourier:orf", "exact"], "sizes": (10, 20), "repeats": 2}
    whole = settled(*data, **settings)
    real, done = module.measure, []

    def interrupted(setup, task):
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(task)
        return real(setup, task)

    monkeypatch.setattr(module, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        settled(*data, **settings, out=tmp_path / "kept")
    kept = Store(tmp_path / "kept").read()
    assert untimed(kept) == untimed(whole.runs[:4])
    with (tmp_path / "kept" / "runs.csv").open("a") as file:
        file.write("0,fourier:orf,2")  # what a power cut may leave
    rest = []
    monkeypatch.setattr(module, "measure", lambda setup, trial: rest.append(trial) or real(setup, trial))
    with pytest.warns(UserWarning, match="the last line was not whole"):
        again = settled(*data, **settings, out=tmp_path / "kept")
    assert len(rest) == len(whole.runs) - 4
    assert untimed(again.runs) == untimed(whole.runs)
    # not run again: even the times are those of then
    assert [run.fit_seconds for run in again.runs[:4]] == [run.fit_seconds for run in kept]
    assert len((tmp_path / "kept" / "runs.csv").read_text().splitlines()) == 1 + len(whole.runs)


def test_a_time_limit_leaves_runs_out_and_names_them(data, tmp_path, monkeypatch):
    """The clock stands still but for what the runs take: 10 s each, the fifth of which passes the limit."""
    settings = {"methods": ["nystrom:uniform", "exact"], "sizes": (10, 20), "repeats": 2}
    whole, now, real = settled(*data, **settings), [1e6], module.measure

    def slow(setup, trial):
        now[0] += 10
        return real(setup, trial)

    with monkeypatch.context() as patched:
        patched.setattr(module, "measure", slow)
        patched.setattr(clock, "now", lambda: now[0])
        brief = settled(*data, **settings, time_limit=45, out=tmp_path)
        assert now[0] == 1e6 + 40  # the last ones are not begun: those before have told how long they take
        assert untimed(brief.runs) == untimed(whole.runs[:4])
        assert brief.left_out == ("nystrom:uniform 20 (1 of 2)", "exact (1 of 2)")
        assert "time was over: nystrom:uniform 20 (1 of 2), exact (1 of 2)." in str(brief)
        with pytest.raises(ParameterError, match=r"time_limit=5 was over before the first run.*max_rows"):
            settled(*data, **settings, time_limit=5)
    rest = settled(*data, **settings, out=tmp_path)
    assert untimed(rest.runs) == untimed(whole.runs)
    assert rest.left_out == ()


def test_the_time_of_a_comparison_is_shared_with_the_search_of_its_kernel(data, monkeypatch):
    """And ends work that is nothing before it is whole."""
    ends, fit = [], module.fit

    def told(*given):
        ends.append(clock.end() - clock.now())
        return fit(*given)

    def endless(*_):
        while True:
            clock.check()

    monkeypatch.setattr(module, "fit", told)
    result = compare(*data, methods=["exact"], repeats=1, time_limit=1000)
    assert len(result.runs) == 1
    assert 0 < ends[0] <= 500
    monkeypatch.setattr(module, "measure", endless)
    with pytest.raises(ParameterError, match="over before the first run"):
        settled(*data, methods=["exact"], time_limit=0.5)


def test_fitted_parameters_are_kept_with_the_runs(data, tmp_path, monkeypatch):
    first = compare(*data, methods=["exact"], repeats=1, out=tmp_path)
    monkeypatch.setattr(module, "_settle", lambda *_: pytest.fail("fitted again"))
    second = compare(*data, methods=["exact"], repeats=1, out=tmp_path)
    assert (second.kernel, second.noise) == (first.kernel, first.noise)
    assert untimed(second.runs) == untimed(first.runs)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"random_state": 1}, "random_state"),
        ({"noise": 0.03}, "noise"),
        ({"kernel": gm.RBF(1.0)}, "kernel"),
        ({"test_size": 0.5}, "test_size"),
    ],
)
def test_a_changed_setting_is_refused_by_name(data, tmp_path, change, name):
    settled(*data, methods=["exact"], out=tmp_path)
    before = (tmp_path / "runs.csv").read_bytes()
    with pytest.raises(InputError, match=f"begun with {name}=.* another folder"):
        settled(*data, methods=["exact"], out=tmp_path, **change)
    assert (tmp_path / "runs.csv").read_bytes() == before


def test_changed_data_are_refused_and_more_methods_are_not(data, tmp_path):
    X, y = data
    settled(X, y, methods=["exact"], out=tmp_path)
    with pytest.raises(InputError, match="sha256"):
        settled(X, y + 1e-9, methods=["exact"], out=tmp_path)
    more = settled(X, y, methods=["exact", "nystrom:uniform"], repeats=2, out=tmp_path)
    assert len(more.runs) == len(Store(tmp_path).read()) == 4


def test_folders_that_are_something_else_are_refused(data, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        settled(*data, methods=["exact"], out=tmp_path / "file")
    (tmp_path / "settings.json").write_text("[]")
    with pytest.raises(InputError, match="not the settings of a comparison"):
        settled(*data, methods=["exact"], out=tmp_path)
    (tmp_path / "settings.json").unlink()
    (tmp_path / "runs.csv").write_text("a,b\n")
    with pytest.raises(InputError, match=r"no settings\.json"):
        settled(*data, methods=["exact"], out=tmp_path)


def test_the_tidy_table_is_read_back_as_it_was(all_families, tmp_path):
    all_families.to_csv(tmp_path / "runs.csv")
    text = (tmp_path / "runs.csv").read_text()
    assert to_csv(from_csv(text, "runs.csv")) == text
    frame = pd.read_csv(tmp_path / "runs.csv")
    assert list(frame["method"]) == [run.method for run in all_families.runs]
    pd.testing.assert_frame_equal(
        frame[["size", "mse"]], pd.DataFrame(all_families.columns())[["size", "mse"]]
    )
    with pytest.raises(InputError, match="line 2: this is not a run"):
        from_csv(text.splitlines()[0] + "\n1,2,3\n", "runs.csv")


def test_settings_are_readable(data, tmp_path):
    settled(*data, methods=["exact"], out=tmp_path)
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert settings["fitted"] == {"kernel": repr(KERNEL), "noise": NOISE}
    assert settings["data"]["rows"] == N


# What is refused


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sizes": ()}, "sizes is empty"),
        ({"sizes": (10, 0)}, "sizes has 0"),
        ({"repeats": 0}, "repeats=0"),
        ({"test_size": 1.0}, "test_size=1.0"),
        ({"random_state": None}, "random_state=None"),
        ({"noise": -1.0}, "noise=-1.0"),
        ({"kernel": 3.0}, "kernel must be"),
        ({"gram_rows": 0}, "gram_rows=0"),
        ({"tol": 2.0}, "tol=2.0"),
        ({"memory_limit": "much"}, "memory_limit='much'"),
    ],
)
def test_impossible_settings_are_refused(data, settings, message):
    with pytest.raises(ParameterError, match=message):
        settled(*data, methods=["exact"], **settings)


def test_without_y_there_is_a_kernel_and_no_method_that_solves(data):
    X, y = data
    with pytest.raises(ParameterError, match="nothing to fit a kernel to"):
        compare(X)
    with pytest.raises(ParameterError, match="'exact' works with K itself"):
        compare(X, kernel=KERNEL, methods=["nystrom", "exact"])
    with pytest.raises(InputError, match="one target at a time"):
        compare(X, np.column_stack([y, y]))
