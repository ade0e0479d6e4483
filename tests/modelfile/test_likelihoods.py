"""Classifiers and other likelihoods in files: predictions, draws and the summary come back to the last bit,
labels with their type."""

from __future__ import annotations

import base64
import dataclasses
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramian as gm
from gramian.corrections import Calibration
from gramian.errors import GramianError, ModelFileError
from gramian.features.fourier import ROW_WISE
from gramian.fitting.stages import Hold
from gramian.inference import Evidence
from gramian.inference.ep import EP
from gramian.inference.mcmc.chains import Chains
from gramian.inference.mcmc.method import MCMC
from gramian.inference.mcmc.mixture import Mixture
from gramian.inference.svgp.inducing import SVGP
from gramian.likelihoods import Gamma, Heteroscedastic, Likelihood, Ordinal, Poisson, StudentT
from gramian.modelfile import load
from gramian.modelfile.file import VERSION
from gramian.modelfile.record import describe
from gramian.processes import Stacked
from gramian.processes.coupled import CoupledFeatures, CoupledPosterior
from gramian.processes.krylov import KrylovPosterior
from tests.modelfile.test_modelfile import fresh_process
from tests.modelfile.test_modelfile_hostile import forged, parts, put, refused

# One text for this process and for a fresh one.
ASK = """
import hashlib
import re
import numpy as np
from threadpoolctl import threadpool_limits

# without what is told of training rows, which not every file holds
def lasting(summary):
    return re.sub(r"\\n  quality .*?\\n\\n", "\\n\\n", summary, count=1, flags=re.DOTALL)

# the same number on both sides: another one may add in another order
@threadpool_limits.wrap(limits=1, user_api="blas")
def answers(gp):
    X = np.random.default_rng(1).uniform(0.1, 2.0, (5, 2))
    found = {}
    if hasattr(gp, "classes_"):
        found.update({
            "labels": gp.predict(X).astype(str),
            "probabilities": gp.predict_proba(X),
            "latent": np.stack(gp.predict_latent(X)),
        })
    else:
        found.update({
            target: np.stack(gp.predict(X, return_std=True, target=target)) for target in ("y", "f")
        })
    if not hasattr(gp, "estimators_"):
        found.update({
            "draws": gp.sample(X, 3, random_state=0),
            "observed": gp.sample(X, 3, target="y", random_state=0).astype(str),
        })
    digests = {
        name: hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        for name, value in found.items()
    }
    told = {"summary": lasting(gp.summary()), "evidence": str(gp.evidence_), "outcome": repr(gp.outcome_)}
    return {**digests, **told}
"""
namespace: dict[str, Any] = {}
exec(ASK, namespace)
answers = namespace["answers"]

K = gm.RBF([0.7, 0.9])
CLASSIFIER: dict[str, Any] = {"optimize": False, "random_state": 0}


class LumpyForTheModelFile(Likelihood):
    """A user's own likelihood: Gaussian noise of a fixed kind, with a parameter and a plain field."""

    width: Any = gm.positive(0.5)
    power: int = 2

    def log_prob(self, y: Any, f: Any) -> Any:
        return -((((y - f) / self.width) ** 2) ** (self.power / 2)) / 2

    @property
    def log_concave(self) -> bool:
        return True

    def conditional_moments(self, f: Any) -> Any:
        return f, self.width**2 + 0 * f

    def draw(self, rng: np.random.Generator, f: Any) -> Any:
        return f + rng.standard_normal(np.shape(f))


def table() -> np.ndarray:
    return np.random.default_rng(0).uniform(0.1, 2.0, (14, 2))


def two() -> np.ndarray:
    X = table()
    return np.where(X[:, 0] + 0.4 * np.sin(9 * X[:, 1]) > 1, "yes", "no")


def three() -> np.ndarray:
    return np.digitize(table()[:, 0] + 0.2 * np.sin(9 * table()[:, 1]), [0.7, 1.3]) + 10


def numbers() -> np.ndarray:
    return np.sin(2 * table()[:, 0]) + 0.1 * np.random.default_rng(2).standard_normal(14)


def classifier(y: Any, kernel: Any = K, **settings: Any) -> gm.GPClassifier:
    return gm.GPClassifier(kernel, **{**CLASSIFIER, **settings}).fit(table(), y)


def regressor(y: Any, fit: dict[str, Any] | None = None, kernel: Any = K, **settings: Any) -> gm.GPRegressor:
    return gm.GPRegressor(kernel, **{**CLASSIFIER, **settings}).fit(table(), y, **(fit or {}))


COUNTS = np.arange(14) % 4
EACH = [K, 2.0 * K, gm.Matern52(0.8)]


def sampled(gp: Any, m: int = 14) -> Any:
    """The model as chains would have left it; running them tells nothing more about files."""
    rng = np.random.default_rng(3)
    trainable = {path: p.value for path, p in gp.fitted_.model.parameters().items() if p.trainable}
    values = {
        path: value * np.exp(0.1 * rng.standard_normal((2, 8, *value.shape)))
        for path, value in trainable.items()
    }
    numbers = [rng.standard_normal((2, 8)) for _ in range(2)]
    steps, divergent = rng.integers(1, 9, (2, 8)), np.arange(16).reshape(2, 8) == 5
    latent = rng.standard_normal((2, 8, m, len(gp.fitted_.rows.scale)))
    chains = Chains(
        values,
        latent,
        numbers[0],
        divergent,
        numbers[1],
        steps,
        rng.standard_normal((2, 8, m)),
        "nuts",
        10,
        "time limit",
        0.5,
    )
    gp.fitted_ = dataclasses.replace(
        gp.fitted_,
        inference=MCMC(chains=2, warmup=10, draws=8, seed=7, deadline=123.0),
        process=Mixture.of(gp.fitted_.model, gp.fitted_.rows, chains, most=5),
        evidence=Evidence(float("nan"), "none"),
    )
    return gp


MODELS: dict[str, Callable[[], Any]] = {
    "laplace": lambda: classifier(two(), stages=[Hold("kernel.*", steps=3)]),
    "ep": lambda: classifier(two(), inference=EP(power=1, damping=0.5), link="probit", mean="constant"),
    "vi with landmarks": lambda: classifier(two(), inference="vi", method=gm.Sparse(5), averaging="scaled"),
    "cg": lambda: classifier(two(), method=gm.CG(tol=1e-8, rank=4, probes=2)),
    "softmax": lambda: classifier(three(), hyper="ml", inference="laplace"),
    "softmax, a kernel each": lambda: classifier(
        three(), EACH, method=gm.Nystrom(5, "pivoted"), inference="laplace"
    ),
    "one against the rest": lambda: classifier(three(), multiclass="ovr"),
    "one against one": lambda: classifier(
        three(), multiclass="ovo", shared=True, method=gm.Nystrom(4, "pivoted")
    ),
    "svgp": lambda: classifier(two(), method=SVGP(5, steps=3, batch_size=7), optimize=True, n_restarts=0),
    "svgp, a kernel each": lambda: classifier(three(), tuple(EACH), method=SVGP(4, optimize_inducing=False)),
    "chains": lambda: sampled(classifier(two())),
    "chains over parameters": lambda: sampled(regressor(numbers()), 0),
    "sites of both signs": lambda: regressor(
        numbers(), likelihood=StudentT(scale=gm.param(0.3, prior=gm.Gamma(2, 1)))
    ),
    "exposure": lambda: regressor(COUNTS, {"exposure": np.linspace(1, 2, 14)}, likelihood=Poisson()),
    "trials": lambda: regressor(np.column_stack([COUNTS, COUNTS + 1]), likelihood=gm.Binomial()),
    "a name that a prior has, too": lambda: regressor(np.exp(numbers()), likelihood=Gamma(2.0)),
    "ordinal": lambda: regressor(COUNTS, likelihood=Ordinal(4)),
    "two functions": lambda: regressor(numbers(), likelihood=Heteroscedastic(), kernel=[K, gm.RBF(2.0)]),
    "gaussian by ep": lambda: regressor(numbers(), inference="ep"),
    "a likelihood of one's own": lambda: regressor(numbers(), likelihood=LumpyForTheModelFile(0.4)),
}
WITHOUT_DATA = ("vi with landmarks", "softmax, a kernel each", "svgp", "svgp, a kernel each")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder, made = tmp_path_factory.mktemp("likelihoods"), {name: make() for name, make in MODELS.items()}
    for name, gp in made.items():
        gp.save(folder / name)
    return folder, made


def test_a_loaded_model_answers_the_same_to_the_last_bit(fitted: Any) -> None:
    folder, made = fitted
    for name, gp in made.items():
        assert answers(load(folder / name)) == answers(gp), name


def test_answers_in_a_fresh_process_are_the_same_and_an_unknown_likelihood_is_named(fitted: Any) -> None:
    folder, made = fitted
    some = ["svgp", "one against the rest", "sites of both signs"]
    code = f"""{ASK}
import json
from gramian.errors import ModelFileError
from gramian.modelfile import load
print(json.dumps([answers(load(name)) for name in {some}]))
try:
    load("a likelihood of one's own")
except ModelFileError as error:
    print(error)
"""
    *_, found, error = fresh_process(code, folder).splitlines()
    assert json.loads(found) == [answers(made[name]) for name in some]
    assert (
        "'LumpyForTheModelFile', which is not known here. Import the module that defines it"
        " (tests.modelfile.test_likelihoods) first" in error
    )


def test_everything_comes_back_and_saves_the_same_bytes(fitted: Any, tmp_path: Path) -> None:
    folder, made = fitted
    for name, gp in made.items():
        loaded = load(folder / name)
        assert type(loaded) is type(gp), name
        assert vars(loaded).keys() == vars(gp).keys(), name
        assert repr(loaded.get_params()) == repr(gp.get_params()), name
        if not hasattr(gp, "estimators_"):
            assert type(loaded.posterior_) is type(gp.posterior_), name
            assert (loaded.fitted_.model.kernel, loaded.fitted_.model.others) == (
                gp.fitted_.model.kernel,
                gp.fitted_.model.others,
            ), name
        loaded.save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (folder / name).read_bytes(), name
    kinds = {type(gp.posterior_) for gp in made.values() if hasattr(gp, "posterior_")}
    # all that are new are among them
    assert kinds > {Stacked, CoupledPosterior, CoupledFeatures, KrylovPosterior, Mixture}


def test_data_stay_behind_where_predictions_need_none(fitted: Any) -> None:
    folder, made = fitted
    for name, gp in made.items():
        arrays = describe(gp)[1]
        assert any(array.endswith(("X", "Y")) for array in arrays) == (
            name not in (*WITHOUT_DATA, "one against one")
        ), name
    for name in WITHOUT_DATA:
        loaded = load(folder / name)
        assert "classes: " in loaded.summary()
        with pytest.raises(GramianError, match="loaded from a file that holds no data"):
            loaded.log_evidence()


def test_what_needs_data_works_where_they_are_kept(fitted: Any) -> None:
    folder, made = fitted
    for name in ("laplace", "exposure"):
        for mine, theirs in zip(load(folder / name).loo(), made[name].loo(), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_draws_are_thinned_and_their_diagnostics_kept(fitted: Any) -> None:
    folder, made = fitted
    mine, theirs = load(folder / "chains").posterior_, made["chains"].posterior_
    np.testing.assert_array_equal(mine.latent, theirs.latent)
    assert mine.chains.rhat == theirs.chains.rhat
    assert mine.chains.divergences == 1
    assert mine.chains.notes == theirs.chains.notes
    for path, draws in theirs.chains.values.items():
        np.testing.assert_array_equal(mine.chains.values[path], draws)
    assert describe(made["chains"])[1]["latent"].shape == (5, 14, 1)  # of 16 draws


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes", "völlig"]),
        np.array(["a", "b"], dtype="U9"),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([-3, 2**40]),
        np.array([1, 200], dtype=np.uint8),
        np.array([1.0, 2.0], dtype=np.float32),
        np.array([1, 2], dtype=object),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_keep_their_type(labels: np.ndarray, tmp_path: Path) -> None:
    gp = gm.GPClassifier(K, method=gm.Nystrom(3, "pivoted"), multiclass="ovr", **CLASSIFIER).fit(
        table()[:9], labels[np.arange(9) % len(labels)]
    )
    gp.save(tmp_path / "m.gm")
    found = load(tmp_path / "m.gm").predict(table())
    assert found.dtype == gp.classes_.dtype == labels.dtype
    assert list(map(type, found.tolist())) == list(map(type, gp.predict(table()).tolist()))
    np.testing.assert_array_equal(found, gp.predict(table()))


def test_labels_that_a_file_cannot_hold_are_refused(tmp_path: Path) -> None:
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")
    with pytest.raises(ModelFileError, match="datetime64"):
        classifier(days[np.arange(14) % 2]).save(tmp_path / "m.gm")
    assert not list(tmp_path.iterdir())


# Made-up files. ---------------------------------------------------------------------------------------------


def array(name: str, value: Any) -> Callable[[Any, Any], None]:
    return lambda _, arrays: arrays.__setitem__(name, value)


def without(name: str) -> Callable[[Any, Any], None]:
    return lambda _, arrays: arrays.__delitem__(name)


def models(change: Callable[[list[Any]], None]) -> Callable[[Any, Any], None]:
    return lambda document, _: change(document["fitted"]["models"])


def conjugate(document: Any, _: Any) -> None:
    document["fitted"]["method"]["fields"]["inference"] = {"class": "Conjugate", "fields": {}}


POSTERIOR = ("fitted", "posterior")
HOSTILE: list[tuple[str, Callable[[Any, Any], None], str]] = [
    ("laplace", put("estimator", "os.system"), "this version knows GPRegressor and GPClassifier"),
    ("laplace", put("estimator", "GPRegressor"), "settings has"),
    ("laplace", put("settings", "link", "cauchit"), "link='cauchit' is not known"),
    ("laplace", put("settings", "inference", "magic"), "inference='magic' is not known"),
    ("laplace", put("settings", "stages", {"list": [{"names": [], "steps": 1}]}), "Hold needs names"),
    ("laplace", put("settings", "stages", {"list": [{"names": ["noise"], "steps": 0.5}]}), "steps is 0.5"),
    ("laplace", put("fitted", "classes", {"type": "<U3", "values": ["yes", "no"]}), "not in order"),
    ("laplace", put("fitted", "classes", {"type": "<U2", "values": ["no", "yes"]}), "not of their type"),
    (
        "laplace",
        put("fitted", "classes", {"type": "<U999999999", "values": ["no", "yes"]}),
        "the longest has 3 letters",
    ),
    ("laplace", put("fitted", "classes", {"type": "|V8", "values": ["no", "yes"]}), "of a type that says so"),
    ("laplace", put("fitted", "classes", {"type": "<U3", "values": ["a", "b", "c"]}), "it has 3 classes"),
    ("laplace", put("fitted", "classes", None), "classes is None"),
    ("laplace", put("fitted", "noise", True), "is not one for Gaussian noise"),
    ("laplace", put("fitted", "single", True), "or noise"),
    ("laplace", put("fitted", "likelihood", "class", "Bernoulli"), "does not have"),
    ("laplace", put("fitted", "likelihood", "class", "likelihoods.Poisson"), "which is not known"),
    ("laplace", put("fitted", "likelihood", "fields", "link", "cauchit"), "cauchit"),
    ("laplace", put("fitted", "method", "fields", "inference", "fields", "tol", "small"), "tol is 'small'"),
    ("laplace", put("fitted", "method", "fields", "inference", None), "inference is None"),
    ("laplace", put("fitted", "method", "fields", "engine", None), "engine is None"),
    ("laplace", put("fitted", "data", {"rows": 9}), "something stands for them"),
    ("laplace", array("Y", np.full((14, 1), 2.0)), "not valid"),
    ("laplace", array("Y", np.ones((14, 2))), "'Y' has the shape (14, 2)"),
    ("exposure", array("Y", np.ones((14, 1))), "'Y' has the shape (14, 1)"),
    ("laplace", put(*POSTERIOR, {"kind": "coupled"}), "which the method Laplace on Exact does not give"),
    ("cg", without("noise.0"), "no array 'noise.0'"),
    ("cg", array("noise.0", np.full(14, -1.0)), "not negative"),
    ("softmax", without("root.shared"), "no array 'root.shared'"),
    ("softmax", without("root.2"), "no array 'root.2'"),
    ("softmax", put("fitted", "likelihood", "fields", "classes", 10**9), "functions, but there are 3 scales"),
    ("softmax", put("fitted", "likelihood", "fields", "classes", 4), "functions, but there are 3 scales"),
    ("softmax, a kernel each", put("fitted", "others", []), "'theta' has the shape"),
    ("softmax, a kernel each", array("root.shared", np.ones(10)), "but must have (15, 15)"),
    ("softmax, a kernel each", put("fitted", "data", "counts", [1, 1, 1]), "14 in all"),
    ("softmax, a kernel each", put("fitted", "data", "counts", None), "counts is None"),
    ("svgp", array("method.Z[0]", np.zeros((5, 3))), "landmarks have the shape (5, 3)"),
    ("svgp", put("fitted", "method", "fields", "q", [1]), "q is (1,)"),
    ("svgp, a kernel each", put("fitted", "method", "fields", "Z", []), "0 sets of inducing points"),
    ("svgp, a kernel each", put(*POSTERIOR, "outputs", [0, 1, 1]), "each for one of them"),
    ("svgp, a kernel each", put(*POSTERIOR, "parts", []), "0 parts for 3 functions"),
    ("svgp, a kernel each", put(*POSTERIOR, {"kind": "features", "root_of": [0, 1, 2]}), "are stacked"),
    ("one against the rest", models(lambda found: found.pop()), "2 binary models do not make 3 classes"),
    ("one against the rest", models(lambda found: found.__setitem__(0, {})), "no entry 'estimator'"),
    (
        "one against the rest",
        put("settings", "multiclass", "softmax"),
        "3 binary models do not make 3 classes",
    ),
    ("one against the rest", array("model0.alpha", np.zeros((3, 1))), "'alpha' has the shape (3, 1)"),
    ("one against the rest", array("model7.alpha", np.zeros((3, 1))), "which does not belong there"),
    ("chains", put(*POSTERIOR, "latent", [5, 13, 1]), "draws of 14 variables"),
    ("chains", put(*POSTERIOR, "latent", [10**9, 14, 1]), "but there are 2 chains of 8"),
    ("chains", put(*POSTERIOR, "latent", [5, 0, 1]), "integrated out"),
    ("chains", put(*POSTERIOR, "rhat", [1.0]), "rhat has 1 entries"),
    ("chains", put(*POSTERIOR, "sampler", "luck"), "by 'luck'"),
    (
        "chains",
        array("values.kernel.lengthscale", -np.ones((5, 2))),
        "a draw of kernel.lengthscale must be positive",
    ),
    ("chains", without("chains.kernel.lengthscale"), "no array 'chains.kernel.lengthscale'"),
    ("chains", array("chain_divergent", np.full((2, 8), 2)), "zeros and ones"),
    ("chains", put("fitted", "method", "fields", "draws", 0), "draws=0"),
    ("two functions", put("fitted", "others", [{"class": "RBF", "fields": {}}]), "no entry"),
    ("two functions", put("fitted", "others", []), "'theta' has the shape"),
    ("svgp", put("fitted", "noise", True), "must be Gaussian"),
    ("exposure", put("fitted", "method", {"class": "Exact", "fields": {}}), "no entry"),
    ("exposure", conjugate, "(Cholesky) is not one for any other likelihood"),
    ("ordinal", put("fitted", "likelihood", "fields", "classes", 3), "not valid"),
    ("gaussian by ep", put("fitted", "noise", True), "is not one for Gaussian noise"),
]


@pytest.mark.parametrize(
    "case", range(len(HOSTILE)), ids=[f"{name}: {message}" for name, _, message in HOSTILE]
)
def test_made_up_files_are_refused(case: int, fitted: Any, tmp_path: Path) -> None:
    name, change, message = HOSTILE[case]
    metadata, document, arrays = parts(fitted[0] / name)
    change(document, arrays)
    refused(forged(tmp_path / "m.gm", metadata, document, arrays), message)


# A file of version 2, as it was written: learned inducing points, known noise, a note of a parameter; 9 rows,
# which it does not hold.
VERSION_2 = zlib.decompress(base64.b85decode(
    'c-rMxU5FJ`952YQl6<MR9)=6$L*sDf^Uer0rf5BsmJx*RayxhC%-wNk=3LG>cRyN|KIjV)Uo(n6ASlqMK7@j}8Ez&CR%DS%RAy2t5@iq+_CIIt-MzbaucpyMcwctUIseb!|8pK(euer?'
    'Rcf`I2pnU9YqiR%sY*gwjzwivrNMBX;zG-5OtOkz86%9Rw15{2PFY%Km`%b78K!~YCZ<s<Cxv948mdGzYvlzW0+DdQf;1>gi9Bx^)`uzu&Pfc11ZSLd&gyZfGJ%FFa5G^JRU{=J%?M^i'
    'mv$Pil2i!AEkzS1(j=7{;G$?{84!@MG$utvIwTq9Qua_~-R!-RLbAAH;AmRJiXx-qglTo!l4q%1;3CE>t`Wv40}^B)xE{k<OG;l^H3HXlOvknZ%MBdAIxP(xC9ELXLhbjr@;=3auw3~)'
    'k8;zR^?j5XDH>vgM>y-a)x;1W0s_jTvYF3e&}6AHxO3zqxJkO`^H#G-nOJDxy_BaS9a{*Ga!D|p7PzjI3)UiC5R~zj;ULSiZ5w%><$IPnJPkj6p74!DpG$K&vc()82-`gnT2{E${|XV?'
    'wE|SF`iAfO$nygQ$n^BE;>^-flBFY*#tZe`iCdgQ(e?RS(3D@m%Ppp1Ij&O;s;+BWrtf(US&4kzl($CDwL5%iU~Hhp2GYQnga?$3<60IN;8jf<*`5=WShR{%l*Xg-A}7-Q`I^_#LKdR9'
    'hb#h3w-*1C1h^wf(xSg#WHgf1j||&)EaV4X0I-68$dRHt8EG1(=^+z&j*U#mLzeSTaIzd!4V<9r2SL>dT+c3RNdhBA`ZMNkI=%@PqkR_EF;9741Sh#*G+$G`E#TN({=tmlNkv^MG?XL*'
    'URCPKUaWerG+o&hLC<Go0CV?I62^o_EUlBW)7l#J+*Xtp4XsJjLU3K16)qLwx@rXgPEz7e>sv`wCST7jZ!&`80ouEdC4jUgBAWLNh4rb}*nL?536X(;gr}-WnXYX8DWuozRUqTNRgR;%'
    '*)SWYIU@@yy3?)faYo*0YDP~JTcsr!W)GR9MXZStqRF8Qms-lTB*Q|ZOye?p8Y4o(83p9Z4yvt~FjpAmxCDneEtGc5wFbadRtzT*EsMdd8ourNw(V7Ygpeg4X*Q-jxL{bI3>#fn$OMkS'
    'r~+)sv_NBYoUhU>Q|m!Z2MY@j-5{~9K{M3Kv;$lg@|jjJkTEcjWE?K_Goidt2ik0Q(rK1lMqAc8<$!Qm@4W*)Ay~8+DeV|7=y*}<_SQ}@c7ru_-e8r&{zbgXnqZWQ8ckH`tMCCBGOy$t'
    'hak*$36;PsZKUN+rQV4UKr+wP%V+06hJV>_8K&XRTP!-WQ&oc+m`Y+!a>^!aS(>X++c9kMadJO+$NL*$w<jo?QK_aZprY3EVh?Q6v?)OO!=#sbc77B!D93JDBYkeyfp+SuBYco#l6!Iv'
    'gRaE68wQIy&1)b@eF;cGKtdL}4Nam>dG}jkdKx}lAViky!Dma|va1AD&7fYdM+hUB#Kd)?$V7?f*`DwD1UhFuw!DP+D8{(%m?W?h9FvIDy$CA09RBh<Di)JX_@}bob4nfZBr~w0zO`tQ'
    'K>c!=$T}plUKuB{Pw>I4w!R3nuiKX7mVE@i!Ui&X{j9d7`)HOo1Nd^xM)^g_@DZ$+%6#a50uSbO`gws-hy6%0&)+o82Z6PS91rQRgZ0QMmyW?=77+phbjxyjgp|9(#R;(-9o9FfMXfq>'
    '<d2m{ehJa=y0c$CeWv~4(j_NNzAuapeSPTBtCy~xI`{UDXRq2BUU#4M(H9%X+E3l|(wooS{6_oW=56k&)@R}JZ+2~O^1b0vEx+>g`cK2#?s_D7>6PEZWqVG2+`92>xcA)$Hte4HHN180'
    'O#E8@ZCJg1^=r$1*x&ws*X}28Sb99%acwyB`La{tK79J%_1Ij!`}OA^J8<&5aN?Oq9zC&l=?7mQc;b2c(24fT*SO;G@OWF>c<kI}<6PUg<qLP;{+afBdv4u+c;}Ddi!W>%`T5Mza9i!K'
    'cMj}7(thic!)v#?d)hZV^wq=L-#-&R@aIpj{<h>;_&3}Bn*0'
))  # fmt: skip


def test_a_file_of_version_2_loads(tmp_path: Path) -> None:
    (tmp_path / "m.gm").write_bytes(VERSION_2)
    gp = load(tmp_path / "m.gm")
    mean, std = gp.predict([[0.1, 0.2], [-1.0, 0.5]], return_std=True)
    # As version 2 gave them; another machine may round otherwise.
    np.testing.assert_allclose(mean, [0.2476324639822225, -0.23919705590334595], rtol=1e-12)
    np.testing.assert_allclose(std, [0.2706663480275167, 0.3980014583424436], rtol=1e-12)
    assert isinstance(gp, gm.GPRegressor)
    assert (gp.likelihood, gp.inference, gp.hyper, gp.stages) == (None, None, "map", None)
    assert "on 9 rows, 2 columns" in gp.summary()
    assert "noise_var, row by row" in gp.summary()
    assert "f is flat or straight along column 'x1'" in gp.summary()
    gp.save(tmp_path / "n.gm")
    assert parts(tmp_path / "n.gm")[0]["version"] == str(VERSION)
    np.testing.assert_array_equal(
        load(tmp_path / "n.gm").predict([[0.1, 0.2], [-1.0, 0.5]], return_std=True)[1], std
    )


def test_a_file_of_version_2_is_checked_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "m.gm").write_bytes(VERSION_2)
    for change, message in (
        (put("fitted", "posterior", "rows", 0), "of 0 rows"),
        (put("fitted", "likelihood", "class", "Bernoulli"), "does not have"),
        (put("fitted", "others", []), "not known in its version"),
        (put("settings", "likelihood", "Poisson"), "not known in its version"),
    ):
        metadata, document, arrays = parts(tmp_path / "m.gm")
        change(document, arrays)
        refused(forged(tmp_path / "n.gm", metadata, document, arrays), message)


def wide(path: Path) -> tuple[gm.GPRegressor, np.ndarray]:
    """A model of so many columns that structured features are made by transforms."""
    X = np.random.default_rng(0).standard_normal((12, ROW_WISE))
    gp = gm.GPRegressor(gm.Matern32(30.0), method=gm.Fourier(8, "sorf"), optimize=False, random_state=0).fit(
        X, X[:, 0]
    )
    gp.save(path)
    return gp, X


def test_signs_of_structured_features_are_in_the_file(tmp_path: Path) -> None:
    gp, X = wide(tmp_path / "m.gm")
    np.testing.assert_array_equal(
        load(tmp_path / "m.gm").predict(X, return_std=True), gp.predict(X, return_std=True)
    )
    metadata, document, arrays = parts(tmp_path / "m.gm")
    (name,) = (name for name in arrays if name.endswith("signs"))
    for wrong in (2 * arrays[name], arrays[name][:, :2], np.concatenate([arrays[name], arrays[name]])):
        refused(
            forged(tmp_path / "n.gm", metadata, document, {**arrays, name: np.ascontiguousarray(wrong)}),
            "signs of the shape",
        )


@pytest.mark.parametrize("shares", [(), (0.1,)])
def test_a_file_of_version_7_has_one_wider_part(tmp_path: Path, shares: tuple[float, ...]) -> None:
    X = np.linspace(0, 1, 12)[:, None]
    gp = gm.GPRegressor(gm.RBF(0.3), optimize=False).fit(X, np.sin(5 * X[:, 0]))
    gp.fitted_ = dataclasses.replace(gp.fitted_, calibration=Calibration(1.2, shares, (4.0,) * len(shares)))
    gp.save(tmp_path / "m.gm")
    metadata, document, arrays = parts(tmp_path / "m.gm")
    fields = document["fitted"]["calibration"]["fields"]
    del fields["shares"], fields["wider"]
    fields |= {"share": shares[0] if shares else 0.0, "width": 4.0 if shares else 1.0}
    del document["settings"]["outputs"]
    old = load(forged(tmp_path / "n.gm", {**metadata, "version": "7"}, document, arrays))
    assert old.fitted_.calibration == gp.fitted_.calibration
    np.testing.assert_array_equal(old.predict(X, interval=0.9), gp.predict(X, interval=0.9))


def test_a_file_of_version_3_has_no_signs(tmp_path: Path) -> None:
    gp, X = wide(tmp_path / "m.gm")
    metadata, document, arrays = parts(tmp_path / "m.gm")
    # as version 3 wrote it: targets had no names and no warps, columns no spread, predictions no calibration,
    # fits no choice, the engine was the method, and a basis had no signs
    del document["columns"]["targets"], document["fitted"]["warp"], document["settings"]["warp"]
    del document["fitted"]["data"]["spread"], document["fitted"]["calibration"]
    del document["fitted"]["outcome"]["fields"]["choice"]
    text = json.dumps(document["fitted"]["method"]["fields"]["engine"]).replace("method.engine.", "method.")
    engine = json.loads(text)
    fields = engine["fields"]
    del fields["basis"]["fields"]["signs"], fields["outside"]
    fields |= {"objective": "dtc", "label": fields.pop("method"), "described": fields.pop("described_as")}
    document["fitted"]["method"] = engine
    del document["settings"]["missing"], document["settings"]["outputs"], arrays["donors"]
    given = document["columns"]
    document["columns"] = {key: given[key] for key in ("names", "named", "sklearn")} | {"categories": []}
    arrays = {
        name.replace("method.engine.", "method."): values
        for name, values in arrays.items()
        if not name.endswith("signs")
    }
    old = load(forged(tmp_path / "n.gm", {**metadata, "version": "3"}, document, arrays))
    np.testing.assert_allclose(old.predict(X), gp.predict(X), rtol=1e-9, atol=1e-12)
