"""Imports point one way, sub-packages included: linalg, params <- kernels <- gram <- ... <- estimators <- the
rest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gramian
from tests.contracts.layers import (
    Arrow,
    arrows,
    cycles,
    late_without_reason,
    modules,
    wrong_arrows,
    wrong_rooms,
)

ROOT = Path(gramian.__file__).parent
LAYERS = (
    ("errors", "version", "arrays", "words", "clock", "interrupt", "forks", "journal"),
    ("linalg", "params", "predictive", "acquisition"),
    ("warps", "widths"),
    ("corrections",),
    ("kernels",),
    ("gram",),
    ("features", "landmarks"),
    ("solvers",),
    ("likelihoods", "means"),
    ("processes",),
    ("engines",),
    ("inference",),
    ("deep",),
    ("fitting",),
    ("choose", "certify", "data", "latent"),
    ("report", "gp", "series"),
    ("estimators",),
    ("experiments", "explore", "modelfile", "plots", "scorers", "sequential"),
    ("cli", "_conformance", "testing", "optuna"),
    ("", "__main__"),
)
# Sub-packages that stand beside each other: each is a method of its own, and the package does not know them.
ROOMS = {"inference": ("softmax", "svgp", "mcmc")}
# Imports inside functions, each with its reason.
BOTH = "what operators on kernels give is defined in terms of kernels"
LATE = {
    ("kernels.base", "kernels.algebra"): BOTH,
    ("kernels.base", "kernels.inputs"): BOTH,
    ("kernels.base", "kernels.face"): "kernel(X) gives an array, and arrays are made by the tiles alone",
    ("kernels.base", "plots.kernels"): "kernel.plot() is a method, because people look for it there",
    ("estimators.base", "modelfile"): "gp.save(path) is a method, because people look for it there",
    ("estimators.resuming", "modelfile.checkpoint"): "a checkpoint has the layout of model files",
    ("estimators.base", "plots.relevance"): "a picture is a method, because people look for it there",
    ("estimators.base", "plots.scores"): "a picture is a method, because people look for it there",
    ("estimators.base", "plots.search"): "a picture is a method, because people look for it there",
    ("estimators.base", "plots.points"): "a picture is a method, because people look for it there",
    ("estimators.deep", "plots.layers"): "a picture is a method, because people look for it there",
    ("estimators.forecaster", "modelfile"): "gp.save(path) is a method, because people look for it there",
    ("estimators.forecaster", "plots.forecast"): "gp.plot() is a method, because people look for it there",
    ("estimators.gplatent", "modelfile"): "gp.save(path) is a method, because people look for it there",
    ("estimators.gplatent", "plots.latent"): "gp.plot() is a method, because people look for it there",
    ("estimators.classifier", "plots.classes"): "gp.plot() is a method, because people look for it there",
    ("estimators.regressor", "plots.predictions"): "gp.plot() is a method, because people look for it there",
    ("experiments.compare", "plots.comparison"): "comparison.plot() is a method, and matplotlib is optional",
    ("plots.common", "plots.dateaxis"): "its classes are matplotlib's, which is optional",
    ("report.summary", "plots.health"): "a summary is a page with pictures to who asks for one",
    ("report.summary", "report.html"): "a page is made of summaries",
    ("plots.health", "plots.dateaxis"): "its classes are matplotlib's, which is optional",
    ("fitting.stages", "fitting.stochastic"): "a search by batches gives what a search in stages gives",
    ("fitting.stages", "fitting.layers"): "a search of layers begins with one in stages",
    ("linalg.executor", "linalg.cluster"): "Dask's is one of the executors, taken where a client is given",
    ("cli.explore", "*"): "a missing extra is told before the packages that need it are imported",
    **{
        (f"cli.commands.{family}", "*"): "`gramian --help` answers before JAX is imported"
        for family in ("answers", "choosing", "fitting", "forecast", "reduce", "teaching")
    },
}
# The one module that looks from kernels to the tiles. Nothing imports it but kernels.base, late.
FACE = Arrow("kernels.face", "gram.tiles", "top")


def test_arrows_point_left():
    faults = wrong_arrows([arrow for arrow in arrows(ROOT) if arrow != FACE], LAYERS, LATE)
    assert not faults, "\n".join(faults)


def test_the_face_of_kernels_is_imported_late():
    found = arrows(ROOT)
    assert FACE in found
    assert {(a.source, a.when) for a in found if a.target == "kernels.face"} == {("kernels.base", "late")}


def test_no_cycles():
    faults = cycles(arrows(ROOT))
    assert not faults, "\n".join(faults)


def test_rooms_do_not_know_each_other():
    faults = wrong_rooms(arrows(ROOT), ROOMS)
    assert not faults, "\n".join(faults)


def test_late_imports_have_reasons():
    faults = late_without_reason(arrows(ROOT), LATE)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("pair", [{"likelihoods", "means"}, {"linalg", "params"}], ids=sorted)
def test_neighbours_that_do_not_know_each_other(pair):
    assert not [a for a in arrows(ROOT) if {a.source.split(".")[0], a.target.split(".")[0]} == pair]


def test_every_sub_package_of_inference_is_a_room():
    inside = {name.split(".")[1] for name in modules(ROOT) if name.startswith("inference.")}
    packages = {name for name in inside if (ROOT / "inference" / name / "__init__.py").exists()}
    assert packages == set(ROOMS["inference"])


def test_the_reading_of_imports_sees_something():
    found = arrows(ROOT)
    assert len(found) > 500
    assert Arrow("engines.krylov", "engines.dense", "top") in found
    assert Arrow("inference.mcmc.method", "inference.base", "top") in found
    assert Arrow("kernels.base", "kernels.algebra", "late") in found
    assert Arrow("kernels.base", "kernels.algebra", "typing") in found


# The reader itself, on a made-up tree. ----------------------------------------------------------------------

HOUSE = {
    "__init__": "",
    "low/__init__": "",
    "low/a": "import numpy",
    "low/b": "from house.low.a import x",
    "middle/__init__": "from house.middle.base import y",
    "middle/base": "from house.low import b",
    "middle/east/__init__": "",
    "middle/east/e": "from house.middle.base import y",
    "middle/west/__init__": "",
    "middle/west/w": "import house.middle.base",
    "high": "from house import middle\ndef f():\n    from house.low.a import x",
}
HOUSE_LAYERS = (("low",), ("middle",), ("high", ""))
HOUSE_LATE = {("high", "low.a"): "a reason"}


def faults_of(tmp_path, **changes):
    root = tmp_path / "house"
    for name, text in {**HOUSE, **{k.replace("_", "/"): v for k, v in changes.items()}}.items():
        path = root / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = arrows(root)
    return [
        *wrong_arrows(found, HOUSE_LAYERS, HOUSE_LATE),
        *cycles(found),
        *wrong_rooms(found, {"middle": ("east", "west")}),
        *late_without_reason(found, HOUSE_LATE),
    ]


def test_a_house_in_order(tmp_path):
    assert faults_of(tmp_path) == []


@pytest.mark.parametrize(
    ("file", "text", "fault"),
    [
        ("low_a", "from house.middle.base import y", "lies to its right"),
        ("low_a", "import house.high", "lies to its right"),
        ("low_a", "from house import high", "lies to its right"),
        ("low_a", "try:\n    import house.high\nexcept ImportError:\n    pass", "lies to its right"),
        ("low_a", "class C:\n    import house.high", "lies to its right"),
        ("low_a", "def f():\n    import house.high", "lies to its right"),
        ("low_a", "def f():\n    import house.high", "say why"),
        ("low_a", "async def f():\n    from house.low import b", "say why"),
        ("low_a", "from house.low.b import z", "a cycle: low"),
        ("low_a", "import house.new", "say in which layer|lies to its right"),
        ("middle_base", "from house.middle import y", "a cycle"),
        ("middle_base", "from house.middle.east import e", "from the package itself"),
        ("middle_base", "def f():\n    from house.middle.east.e import z", "from the package itself"),
        ("middle_east_e", "from house.middle.west import w", "another room"),
        ("middle_east_e", "from house.middle.west.w import z", "another room"),
        ("high", "from house import middle", "strike it from the list"),
        ("new", "import house.low.a", "say in which layer 'new' is"),
    ],
)
def test_a_fault_is_seen(tmp_path, file, text, fault):
    assert any(re.search(fault, found) for found in faults_of(tmp_path, **{file: text}))


def test_types_alone_make_no_cycle(tmp_path):
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.low.b import z"
    assert faults_of(tmp_path, low_a=text) == []
