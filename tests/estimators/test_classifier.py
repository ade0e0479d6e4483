"""GPClassifier: labels, probabilities, several classes, engines, and the words it shares with GPRegressor."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramian as gm
from gramian.errors import InputError, ParameterError
from gramian.estimators.multiclass import coupled
from gramian.fitting.objective import Objective
from gramian.fitting.progress import Report
from gramian.fitting.stages import Hold, _held

FIXED = {"optimize": False, "random_state": 0}


@parametrize_with_checks([gm.GPClassifier(n_restarts=0)])
def test_scikit_learns_own_checks(estimator, check):
    # Training on 300 rows comes three times, twice with arrays that cannot be written to: a search on those
    # is in check_readonly_memmap_input, so these two do without one, which takes 9 s of CPU.
    if check.func.__name__ == "check_classifiers_train" and check.keywords.get("readonly_memmap"):
        estimator = clone(estimator).set_params(optimize=False)
    check(estimator)


@pytest.fixture(scope="module")
def two():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.logistic(size=60) > 0).astype(int)


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (70, 2))
    return X, np.array(["low", "middle", "high"])[np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.7, 0.7])]


def test_agrees_with_scikit_learn(two):
    """The same model and the same approximation: evidence, gradient, probabilities, and what is fitted."""
    X, y = two
    theirs = GaussianProcessClassifier(
        ConstantKernel(1.5) * RBF([0.7, 1.1]), optimizer=None, max_iter_predict=100
    ).fit(X, y)
    ours = gm.GPClassifier(1.5 * gm.RBF([0.7, 1.1]), inference="laplace", **FIXED).fit(X, y)
    value, gradient = theirs.log_marginal_likelihood(theirs.kernel_.theta, eval_gradient=True)
    assert_allclose(ours.evidence_.value, value, rtol=1e-7)
    assert_allclose(ours.log_evidence(ours.theta_, return_grad=True)[1], gradient, rtol=1e-4, atol=1e-5)
    new = np.random.default_rng(2).uniform(-3, 3, (20, 2))
    # theirs is a sum of five error functions
    assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=2e-4)
    fitted = gm.GPClassifier(1.5 * gm.RBF([0.7, 1.1]), inference="laplace", random_state=0).fit(X, y)
    again = GaussianProcessClassifier(ConstantKernel(1.5) * RBF([0.7, 1.1])).fit(X, y)
    assert fitted.evidence_.value >= again.log_marginal_likelihood_value_ - 1e-4


@pytest.mark.parametrize("labels", [["b", "a"], [7, -3], [True, False], [2.0, 1.0]])
def test_labels_of_any_kind(two, labels):
    X, y = two
    given = np.array(labels)[y]
    gp = gm.GPClassifier(**FIXED).fit(X, given)
    assert list(gp.classes_) == sorted(set(labels))
    predicted = gp.predict(X)
    assert predicted.dtype == given.dtype
    assert np.mean(predicted == given) > 0.75
    assert_allclose(gp.predict_proba(X).sum(axis=1), 1.0, atol=1e-12)


def test_probabilities_are_averages(two):
    """Against draws of f; and the scaled logistic function is close, not equal."""
    X, y = two
    for link, sigma in (("logit", lambda f: 1 / (1 + np.exp(-f))), ("probit", None)):
        gp = gm.GPClassifier(4.0 * gm.RBF(0.7), link=link, **FIXED).fit(X, y)
        mean, var = gp.predict_latent(X[:5])
        if sigma is None:
            from scipy.special import ndtr as sigma
        f = mean[:, None] + np.sqrt(var)[:, None] * np.random.default_rng(3).standard_normal((5, 400_000))
        # 4 standard errors of 400,000 draws
        assert_allclose(gp.predict_proba(X[:5])[:, 1], np.mean(sigma(f), axis=1), atol=3e-3)
    exact = gm.GPClassifier(4.0 * gm.RBF(0.7), **FIXED).fit(X, y).predict_proba(X)
    scaled = gm.GPClassifier(4.0 * gm.RBF(0.7), averaging="scaled", **FIXED).fit(X, y).predict_proba(X)
    assert 0 < np.max(np.abs(exact - scaled)) < 0.02


@pytest.mark.parametrize("inference", ["laplace", "ep", "vi", "map"])
def test_each_inference_learns(two, inference):
    X, y = two
    start = gm.GPClassifier(inference=inference, **FIXED).fit(X, y)
    gp = gm.GPClassifier(inference=inference, n_restarts=0, random_state=0).fit(X, y)
    assert gp.score(X, y) > 0.8
    if inference != "map":  # whose parameters are not those of the highest joint density
        assert gp.log_evidence() > start.log_evidence() - 1e-9
    assert gp.outcome_.method == "exact"
    assert inference in gp.summary()
    assert (
        gp.evidence_.kind
        == {"laplace": "approximation", "ep": "approximation", "vi": "lower bound", "map": "joint density"}[
            inference
        ]
    )


def test_binary_models_have_parameters_and_an_evidence(three):
    X, y = three
    own = gm.GPClassifier(4.0 * gm.RBF(1.0), multiclass="ovr", n_restarts=0, random_state=0).fit(X, y)
    assert own.parameters_.names[:2] == (
        "high against the rest: kernel.scale",
        "high against the rest: kernel.lengthscale",
    )
    assert len(own.parameters_.rows) == 6
    assert_allclose(own.log_evidence(), own.evidence_.value, rtol=1e-9)
    with pytest.raises(ParameterError, match="parameters of its own"):
        own.log_evidence(own.theta_)
    shared = gm.GPClassifier(
        4.0 * gm.RBF(1.0), multiclass="ovr", shared=True, n_restarts=0, random_state=0
    ).fit(X, y)
    assert shared.parameters_.names == ("kernel.scale", "kernel.lengthscale")
    assert shared.outcome_.stopped == "converged"
    assert shared.outcome_.evaluations > 1
    value, slope = shared.log_evidence(shared.theta_, return_grad=True)
    assert_allclose(value, shared.evidence_.value, rtol=1e-9)
    assert np.max(np.abs(slope)) < 0.05  # at the maximum of the sum, to the tolerance of the search


def test_a_shared_search_keeps_to_its_stages_and_says_when_it_was_stopped(three):
    X, y = three
    gp = gm.GPClassifier(4.0 * gm.RBF(1.0), multiclass="ovo", shared=True, n_restarts=0, random_state=0)
    with pytest.raises(ParameterError, match="nonsense"):
        gp.set_params(stages=[Hold("nonsense")]).fit(X, y)
    gp.set_params(stages=[Hold("kernel.scale", steps=3)], time_limit=1e-3).fit(X, y)
    assert gp.outcome_.stopped == "time limit"
    assert "The parameters are not fitted: the time limit" in gp.outcome_.notes[0]


def test_the_share_of_wrong_labels_is_learned(three, tmp_path):
    """Of 60 labels 10 are another one, of which some are the right one by chance. The lengthscale is given,
    because to find it, too, takes 200 evaluations."""
    X, y = three[0][:60], three[1][:60].copy()
    rng = np.random.default_rng(0)
    y[rng.choice(60, 10, replace=False)] = rng.choice(["low", "middle", "high"], 10)
    kernel = 2.0 * gm.RBF(gm.fixed(1.0))
    gp = gm.GPClassifier(
        kernel, multiclass=gm.RobustMax(3, epsilon=gm.param(0.01)), n_restarts=0, random_state=0
    ).fit(X, y)
    assert 0.03 < gp.parameters_["epsilon"] < 0.25
    plain = gm.GPClassifier(kernel, multiclass="robustmax", n_restarts=0, random_state=0).fit(X, y)
    assert gp.evidence_.value > plain.evidence_.value
    gp.save(tmp_path / "model.gm")
    assert_allclose(gm.load(tmp_path / "model.gm").predict_proba(X), gp.predict_proba(X), rtol=1e-12)
    with pytest.raises(ParameterError, match="y has 3 classes"):
        gm.GPClassifier(multiclass=gm.RobustMax(4)).fit(X, y)


@pytest.mark.parametrize(
    "method",
    [gm.Nystrom(20), gm.Fourier(60), gm.Sparse(20), gm.SVGP(20, steps=60, batch_size=30), gm.CG(rank=20)],
)
def test_each_engine_is_close(two, method):
    X, y = two
    exact = gm.GPClassifier(2.0 * gm.RBF(1.0), inference="auto", **FIXED).fit(X, y)
    gp = gm.GPClassifier(2.0 * gm.RBF(1.0), method=method, **FIXED).fit(X, y)
    apart = np.max(np.abs(gp.predict_proba(X) - exact.predict_proba(X)))
    assert apart < (0.25 if isinstance(method, gm.Fourier) else 0.06)
    assert gp.sample(X[:4], 3).shape == (4, 3)


@pytest.mark.parametrize("multiclass", ["softmax", "robustmax", "ovr", "ovo"])
def test_several_classes(three, multiclass):
    X, y = three
    gp = gm.GPClassifier(4.0 * gm.RBF(1.0), multiclass=multiclass, **FIXED).fit(X, y)
    assert list(gp.classes_) == ["high", "low", "middle"]
    p = gp.predict_proba(X)
    assert p.shape == (70, 3)
    assert_allclose(p.sum(axis=1), 1.0, atol=1e-9)
    assert gp.score(X, y) > 0.9
    mean, var = gp.predict_latent(X[:2])
    assert mean.shape == var.shape == (2, 3)
    assert "classes" in gp.summary()


def test_binary_models_share_parameters_on_request(three):
    X, y = three
    for multiclass in ("ovr", "ovo"):
        own = gm.GPClassifier(4.0 * gm.RBF(1.0), multiclass=multiclass, n_restarts=0, random_state=0).fit(
            X, y
        )
        shared = gm.GPClassifier(
            4.0 * gm.RBF(1.0), multiclass=multiclass, shared=True, n_restarts=0, random_state=0
        ).fit(X, y)
        assert len({str(model.kernel_) for model in shared.estimators_}) == 1
        assert len({str(model.kernel_) for model in own.estimators_}) == 3
        assert own.evidence_.value >= shared.evidence_.value - 1e-6  # more freedom
        assert (
            shared.evidence_.value
            > gm.GPClassifier(4.0 * gm.RBF(1.0), multiclass=multiclass, **FIXED).fit(X, y).evidence_.value
        )


def test_named_and_categorical_columns(three):
    import pandas as pd

    X, y = three
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "site": np.where(X[:, 1] > 0, "north", "south")})
    for multiclass in ("softmax", "ovr"):
        gp = gm.GPClassifier(multiclass=multiclass, **FIXED).fit(frame, y)
        assert gp.score(frame, y) > 0.8
        named = gm.GPClassifier(4.0 * gm.RBF(1.0).on("a"), multiclass=multiclass, **FIXED).fit(frame, y)
        assert named.predict_proba(frame).shape == (70, 3)


def test_coupling_of_pairs():
    """Pairs that come from class probabilities give these back; contradictory pairs give the minimum of the
    quadratic form."""
    p = np.array([0.2, 0.5, 0.3])
    pairs = np.array([[p[1] / (p[0] + p[1]), p[2] / (p[0] + p[2]), p[2] / (p[1] + p[2])]])
    assert_allclose(coupled(pairs, 3)[0], p, atol=1e-12)
    odd = np.array([[0.9, 0.1, 0.9]])  # 1 beats 0, 0 beats 2, 2 beats 1
    r = {(1, 0): 0.9, (0, 1): 0.1, (2, 0): 0.1, (0, 2): 0.9, (2, 1): 0.9, (1, 2): 0.1}
    found = coupled(odd, 3)[0]

    def form(q):
        return sum((r[j, i] * q[i] - r[i, j] * q[j]) ** 2 for i in range(3) for j in range(3) if i != j)

    rng = np.random.default_rng(0)
    assert all(form(found) <= form(q) + 1e-12 for q in rng.dirichlet(np.ones(3), 200))


def test_a_class_with_one_row_and_an_imbalanced_task():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 1))
    y = np.array(["common"] * 39 + ["rare"])
    gp = gm.GPClassifier(n_restarts=0).fit(X, y)
    assert np.all(np.isfinite(gp.predict_proba(X)))
    assert gp.predict_proba(X)[:39, 0].min() > 0.5
    many = np.where(np.arange(40) == 0, "alone", np.where(X[:, 0] > 0, "right", "left"))
    for multiclass in ("softmax", "ovr", "ovo"):
        assert (
            gm.GPClassifier(4.0 * gm.RBF(1.0), multiclass=multiclass, **FIXED).fit(X, many).score(X, many)
            > 0.9
        )


def test_own_kernels_for_classes(three):
    X, y = three
    kernels = [4.0 * gm.RBF(1.0), 2.0 * gm.Matern52(1.5), 3.0 * gm.RBF(0.8)]
    gp = gm.GPClassifier(kernels, inference="vi", **FIXED).fit(X, y)
    assert gp.score(X, y) > 0.9
    with pytest.raises(ParameterError, match="2 kernels were given"):
        gm.GPClassifier(kernels[:2], **FIXED).fit(X, y)


def test_left_out_rows(two):
    """EP's cavities against models that never saw the row."""
    X, y = two
    gp = gm.GPClassifier(2.0 * gm.RBF(1.0), inference="ep", link="probit", **FIXED).fit(X, y)
    loo = gp.loo()
    keep = np.arange(60) != 7
    without = gm.GPClassifier(2.0 * gm.RBF(1.0), inference="ep", link="probit", **FIXED).fit(X[keep], y[keep])
    assert_allclose(loo.probabilities[7], without.predict_proba(X[[7]])[0], atol=2e-3)
    assert_allclose(loo.log_density[7], np.log(loo.probabilities[7, y[7]]), rtol=1e-6)


def test_draws(two):
    X, y = two
    gp = gm.GPClassifier(2.0 * gm.RBF(1.0), **FIXED).fit(X, np.array(["no", "yes"])[y])
    f, labels = gp.sample(X[:3], 4000), gp.sample(X[:3], 4000, target="y")
    mean, var = gp.predict_latent(X[:3])
    assert_allclose(f.mean(axis=1), mean, atol=5 * np.sqrt(var.max() / 4000))
    assert_allclose(
        np.mean(labels == "yes", axis=1), gp.predict_proba(X[:3])[:, 1], atol=5 * 0.5 / np.sqrt(4000)
    )
    assert np.array_equal(f, gp.sample(X[:3], 4000))


def test_bad_input_has_a_cure(two):
    X, y = two
    for settings, word in (
        ({"inference": "magic"}, "laplace"),
        ({"link": "cloglog"}, "probit"),
        ({"multiclass": "all"}, "softmax"),
        ({"averaging": "none"}, "exact"),
        ({"averaging": "scaled", "link": "probit"}, "closed anyway"),
        ({"hyper": "cv"}, "mcmc"),
        ({"method": "svgp", "inference": "ep"}, "variational"),
        ({"method": "cg", "inference": "ep"}, "laplace"),
        ({"stages": [gm.Hold("kernel.color")]}, "kernel.color"),
        ({"kernel": [gm.RBF(1.0), gm.RBF(2.0)]}, "three classes"),
    ):
        with pytest.raises(ParameterError, match=word):
            gm.GPClassifier(**settings).fit(X, y)
    for inference, word in (("magic", "laplace"), ("mcmc", "chains"), (gm.MCMC(), "chains")):
        with pytest.raises(ParameterError, match=word):
            gm.GPClassifier(inference=inference).plan(X, y)
    with pytest.raises(ParameterError, match="sample_weight is not supported"):
        gm.GPClassifier().fit(X, y, sample_weight=np.ones(60))
    for labels, word in (
        (np.zeros(60), "only one class"),
        (np.linspace(0, 1, 60), "GPRegressor"),
        (np.array([*([1, "a"] * 30)], dtype=object), "several kinds"),
        (np.array([np.nan, *y[1:]]), "row 0"),
        (y[:-1], "inconsistent numbers"),
    ):
        with pytest.raises(InputError, match=word):
            gm.GPClassifier(missing="error").fit(X, labels)


def test_stages_hold_parameters(two):
    """In its stage a parameter stays to the last bit while the others move; afterwards all move."""
    X, y = two
    free = gm.GPClassifier(2.0 * gm.RBF(5.0), n_restarts=0).fit(X, y)
    held = gm.GPClassifier(2.0 * gm.RBF(5.0), n_restarts=0, stages=[gm.Hold("*", steps=3)]).fit(X, y)
    # a stage in which nothing may move changes nothing
    assert_allclose(held.evidence_.value, free.evidence_.value, rtol=1e-9)
    model, data, method = (
        free.fitted_.model.with_values({"kernel.scale": 2.0, "kernel.lengthscale": 5.0}),
        free.fitted_.rows,
        free.fitted_.inference,
    )
    objective = Objective(model, data, method)
    (hold,) = Hold.read([gm.Hold("kernel.length*", steps=4)], model)
    found = objective.space.values(_held(objective, [hold], Report()))
    assert_allclose(found["kernel.lengthscale"], 5.0, rtol=1e-14)  # but for the way to its logarithm and back
    assert found["kernel.scale"] != 2.0


class TestScalesOfSoftmaxByLaplace:
    """Its evidence grows with the scale of separable classes without end, to where probabilities are all
    alike."""

    @staticmethod
    def fitted(kernel):
        X = np.linspace(0, 1, 30)[:, None]
        return gm.GPClassifier(kernel, inference="laplace", n_restarts=0).fit(
            X, np.repeat(["a", "b", "c"], 10)
        )

    def test_held_unless_bounded(self):
        gp = self.fitted(1.0 * gm.RBF(0.3))
        scale = gp.parameters_.rows[0]
        assert scale.value == pytest.approx(30.0)
        assert "upper bound" in scale.note
        wide = self.fitted(gm.param(1.0, bounds=(1e-3, 1e3)) * gm.RBF(0.3))
        assert wide.parameters_["kernel.scale"] > 100  # what the evidence would have
        assert wide.evidence_.value > gp.evidence_.value

    def test_a_larger_start_stays_and_two_classes_are_free(self):
        assert self.fitted(gm.fixed(500.0) * gm.RBF(0.3)).parameters_["kernel.scale"] == 500.0
        X = np.linspace(0, 1, 30)[:, None]
        two = gm.GPClassifier(1.0 * gm.RBF(0.3), inference="laplace", n_restarts=0).fit(
            X, np.repeat([0, 1], 15)
        )
        assert "upper bound" not in two.parameters_.rows[0].note
