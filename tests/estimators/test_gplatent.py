"""GPLatent: a scikit-learn transformer with gaps, uncertainty, files and limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramian as gm
from gramian.errors import InputError, MemoryLimitError, ParameterError, StateError

UNITS = np.array([1.0, 5.0, 100.0, 0.1])


@parametrize_with_checks([gm.GPLatent(1, n_inducing=5, max_iter=20, random_state=0)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def curve(n=40, seed=0):
    """Four columns that are functions of one number, in units of their own."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(-1.5, 1.5, n))
    Y = np.column_stack([t, np.tanh(2 * t), t + 0.5 * t**2, np.sin(t)])
    return t, (Y + 0.03 * rng.standard_normal(Y.shape)) * UNITS


def model(n_components=1, **settings):
    return gm.GPLatent(n_components, **{"n_inducing": 8, "random_state": 0, **settings})


@pytest.fixture(scope="module")
def fitted():
    t, Y = curve()
    return t, Y, model().fit(Y)


def test_one_number_behind_all_columns_is_found(fitted):
    t, _, gp = fitted
    ranks = np.argsort(np.argsort(gp.embedding_[:, 0]))
    assert abs(np.corrcoef(ranks, np.arange(len(t)))[0, 1]) > 0.98
    assert np.all(gp.embedding_std_ > 0)
    assert gp.evidence_.kind == "lower bound"
    assert gp.get_feature_names_out().tolist() == ["gplatent0"]
    assert "1 of 1 dimensions" in gp.summary()


def test_rows_come_back(fitted):
    _, Y, gp = fitted
    places, std = gp.transform(Y, return_std=True)
    assert_allclose(places, gp.embedding_, atol=1e-3)
    assert_allclose(std, gp.embedding_std_, rtol=0.05)
    back, spread = gp.inverse_transform(places, std, return_std=True)
    assert np.sqrt(np.mean(((back - Y) / Y.std(axis=0)) ** 2)) < 0.15
    assert np.mean(np.abs(back - Y) < 3 * spread) > 0.95


def test_gaps_are_filled(fitted):
    _, Y, gp = fitted
    _, new = curve(60, seed=1)
    holes = np.where(np.random.default_rng(2).random(new.shape) < 0.3, np.nan, new)
    holes[0] = np.nan  # nothing is known: the place is anywhere
    filled, std = gp.impute(holes, return_std=True)
    absent = np.isnan(holes)
    assert_array_equal(filled[~absent], new[~absent])
    assert np.all(std[~absent] == 0)
    assert np.all(std[absent] > 0)
    away = ((filled - new) / Y.std(axis=0))[absent]
    plain = ((np.nanmean(Y, axis=0) - new) / Y.std(axis=0))[absent]
    assert np.sqrt(np.mean(away**2)) < 0.6 * np.sqrt(np.mean(plain**2))
    assert np.mean(np.abs(away) < 3 * (std / Y.std(axis=0))[absent]) > 0.9
    place, spread = gp.transform(holes[:1], return_std=True)
    assert_allclose(place, 0.0, atol=0.05)
    assert_allclose(spread, 1.0, atol=0.05)  # that of the prior


def test_a_fit_with_gaps_leaves_them_out():
    _, Y = curve()
    holes = np.where(np.random.default_rng(2).random(Y.shape) < 0.2, np.nan, Y)
    gp = model().fit(holes)
    away = ((gp.impute(holes) - Y) / Y.std(axis=0))[np.isnan(holes)]
    assert np.sqrt(np.mean(away**2)) < 0.5
    assert any("cells are missing" in note for note in gp.outcome_.notes)


def test_units_do_not_matter(fitted):
    _, Y, gp = fitted
    other = model().fit(Y * [1e3, 1e-3, 2.0, 7.0] + 5.0)
    # the searches differ in rounding, and end within their tolerance of each other
    assert_allclose(np.abs(other.embedding_), np.abs(gp.embedding_), atol=0.05)
    shift = np.sum(np.log([1e3, 1e-3, 2.0, 7.0]))
    assert_allclose(
        other.score_samples(Y * [1e3, 1e-3, 2.0, 7.0] + 5.0), gp.score_samples(Y) - shift, atol=0.2
    )


def test_scores_tell_strange_rows(fitted):
    _, Y, gp = fitted
    strange = Y[:5] + 3 * Y.std(axis=0) * [1, -1, 1, -1]
    assert np.max(gp.score_samples(strange)) < np.min(gp.score_samples(Y[5:]))
    assert_allclose(gp.score(Y), np.mean(gp.score_samples(Y)))


def test_draws_look_like_rows(fitted):
    *_, gp = fitted
    rows, places = gp.sample(400, random_state=0, return_places=True)
    assert rows.shape == (400, 4)
    assert places.shape == (400, 1)
    assert_array_equal(rows, gp.sample(400, random_state=0))
    assert np.corrcoef(rows[:, 0], rows[:, 3])[0, 1] > 0.8  # they rise together along the curve


def test_dimensions_that_nothing_needs_are_switched_off(fitted):
    _, Y, one = fitted
    gp = model(3).fit(Y)
    assert gp.n_active_ < 3
    assert np.all(np.diff(gp.relevance_) <= 1e-12)
    assert_allclose(np.sum(gp.relevance_), 1.0)
    assert gp.evidence_.value > one.evidence_.value - 20


def test_points_instead_of_gaussians(fitted):
    t, Y, _ = fitted
    gp = model(inference="map").fit(Y)
    assert np.all(gp.embedding_std_ == 0)
    assert gp.evidence_.kind == "approximation"
    assert abs(np.corrcoef(np.argsort(np.argsort(gp.embedding_[:, 0])), np.arange(len(t)))[0, 1]) > 0.98
    assert_allclose(gp.transform(Y), gp.embedding_, atol=0.02)


def test_columns_with_noises_of_their_own():
    rng = np.random.default_rng(3)
    _, Y = curve()
    Y = Y + np.array([0, 0, 0, 0.5]) * UNITS * rng.standard_normal(Y.shape)
    gp = model(noise="columns").fit(Y)
    share = gp.likelihood_.variances() / Y.var(axis=0)
    assert np.argmax(share) == 3
    assert share[3] > 3 * share[0]
    assert_allclose(np.sqrt(gp.likelihood_.variances())[3], 0.05, rtol=0.4)  # 0.5 of a tenth


def test_known_noise_is_held():
    _, Y = curve()
    noise = (0.03 * UNITS) ** 2
    gp = model(likelihood=gm.Gaussian(gm.fixed(noise))).fit(Y)
    assert_allclose(gp.likelihood_.variances(), noise)


@pytest.mark.parametrize("settings", [{}, {"inference": "map"}, {"noise": "columns"}])
def test_a_file_gives_the_same_bits(tmp_path, settings):
    _, Y = curve(25)
    holes = Y.copy()
    holes[3, 1] = np.nan
    gp = model(max_iter=30, **settings).fit(pd.DataFrame(holes, columns=list("abcd")))
    gp.save(tmp_path / "model")
    again = gm.load(tmp_path / "model")
    frame = pd.DataFrame(holes, columns=list("abcd"))
    for ask in ("transform", "impute", "score_samples"):
        assert_array_equal(getattr(again, ask)(frame), getattr(gp, ask)(frame))
    assert_array_equal(again.sample(3, random_state=1), gp.sample(3, random_state=1))
    assert again.get_params()["noise"] == gp.noise
    assert again.summary() == gp.summary()


def test_a_file_that_was_tampered_with_is_refused(tmp_path):
    from gramian.modelfile.record import describe, restore

    document, arrays = describe(model(max_iter=5).fit(curve(12)[1]))
    restore(document, arrays)
    changes = {"Z": arrays["Z"][:, :0], "kept": arrays["kept"] + 9, "scale": -arrays["scale"]}
    for name, value in changes.items():
        with pytest.raises(StateError):
            restore(document, {**arrays, name: value})


def test_batches_of_rows_give_a_like_map():
    t, Y = curve(300)
    gp = model(batch_size=100, max_iter=200).fit(Y)
    assert gp.outcome_.stopped == "converged"
    assert any("batches" in stage for stage in gp.outcome_.stages)
    ranks = np.argsort(np.argsort(gp.embedding_[:, 0]))
    assert abs(np.corrcoef(ranks, np.arange(len(t)))[0, 1]) > 0.98


# What is refused. -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"n_components": 5}, r"n_components=5, but the table has 4 feature"),
        ({"n_components": 0}, "n_components=0 must be"),
        ({"inference": "ep"}, 'Use "vi"'),
        ({"noise": "none"}, '"shared"'),
        ({"scale": 3}, '"table"'),
        ({"max_iter": 0}, "max_iter=0"),
        ({"n_inducing": -1}, "n_inducing=-1"),
        ({"likelihood": gm.Bernoulli()}, "Gaussian noise alone"),
        ({"likelihood": gm.Gaussian([1.0, 2.0])}, "each of the 4 columns"),
        ({"kernel": [gm.RBF(), gm.RBF()]}, "one kernel"),
        ({"kernel": gm.RBF([1.0, 2.0, 3.0])}, "lengthscale has 3 values"),
        ({"time_limit": -1}, "time_limit"),
    ],
)
def test_impossible_settings(change, told):
    with pytest.raises(ParameterError, match=told):
        model(**{"n_components": 2, **change}).fit(curve()[1])


def test_tables_that_hold_too_little():
    _, Y = curve()
    with pytest.raises(InputError, match="1 row"):
        model().fit(Y[:1])
    empty = Y.copy()
    empty[:, 2] = np.nan
    with pytest.raises(InputError, match="x2"):
        model().fit(empty)
    with pytest.raises(InputError, match="vary"):
        model(2).fit(np.column_stack([Y[:, 0], np.ones((len(Y), 2))]))
    with pytest.raises(InputError, match="categories"):
        model().fit(pd.DataFrame({"a": Y[:, 0], "b": ["x", "y"] * 20}))
    with pytest.raises(InputError, match="inf"):
        model().fit(np.where(Y[0, 0] == Y, np.inf, Y))


def test_a_column_that_never_varies_comes_back_as_it_is():
    _, Y = curve()
    gp = model(max_iter=30).fit(np.column_stack([Y, np.full(len(Y), 7.0)]))
    assert any("the same number in all rows" in note for note in gp.outcome_.notes)
    mean, std = gp.inverse_transform(gp.embedding_, return_std=True)
    assert np.all(mean[:, 4] == 7.0)
    assert np.all(std[:, 4] == 0.0)
    assert np.all(np.isfinite(gp.score_samples(np.column_stack([Y, np.full(len(Y), 7.0)]))))


def test_two_rows_suffice():
    gp = gm.GPLatent(1, random_state=0).fit([[0.0, 1.0], [2.0, 5.0]])
    assert np.all(np.isfinite(gp.embedding_))


def test_memory_is_asked_for_before():
    with pytest.raises(MemoryLimitError, match="Latent places of 40 rows"):
        model(memory_limit="10 kB").fit(curve()[1])


def test_a_time_limit_leaves_a_model(fitted):
    _, Y, _ = fitted
    gp = model(time_limit=0.01).fit(Y)
    assert gp.outcome_.stopped == "time limit"
    assert np.all(np.isfinite(gp.transform(Y[:3])))


def test_ctrl_c_leaves_a_model(fitted, monkeypatch):
    _, Y, _ = fitted
    from gramian.latent import search

    plain, calls = search.value_and_slopes, []

    def pressed(*arguments, **words):
        calls.append(1)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return plain(*arguments, **words)

    monkeypatch.setattr(search, "value_and_slopes", pressed)
    gp = model().fit(Y)
    assert gp.outcome_.stopped == "interrupted"
    assert len(calls) == 12
    assert np.all(np.isfinite(gp.transform(Y[:3])))


def test_pictures(fitted):
    _, Y, gp = fitted
    pytest.importorskip("matplotlib")
    assert len(gp.plot().axes) == 1
    two = model(2, max_iter=20).fit(Y)
    figure = two.plot(labels=np.arange(len(Y)) % 3)
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["0", "1", "2"]
    assert len(two.plot_reconstruction(1).axes[0].lines) == 4
    with pytest.raises(ParameterError, match="dims"):
        two.plot(dims=(0, 5))
    with pytest.raises(InputError, match="labels"):
        two.plot(labels=[1, 2])
