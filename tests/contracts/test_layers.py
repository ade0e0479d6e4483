"""Imports point one way: params <- kernels <- gram <- approx <- solvers <- likelihoods, means <- inference <-
fitting <- estimators <- the rest."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

import gramian

ROOT = Path(gramian.__file__).parent
LAYERS = (
    ("errors", "version"),
    ("linalg", "params"),
    ("kernels",),
    ("gram",),
    ("features", "landmarks"),
    ("solvers",),
    ("likelihoods", "means"),
    ("processes",),
    ("engines",),
    ("inference",),
    ("fitting",),
    ("choose", "certify", "data"),
    ("report",),
    ("estimators",),
    ("experiments", "modelfile", "plots", "cli", "_conformance", "testing", "__init__", "__main__"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
# Arrows that point to the right, each inside a function, so that it is followed only when somebody calls it.
EXCEPTIONS = {
    (
        "kernels/face.py",
        "gram",
    ): "kernel(X) gives an array, and arrays of kernel values are made by the tiles alone",
    ("estimators/base.py", "modelfile"): "gp.save(path) is a method, because people look for it there",
    ("estimators/classifier.py", "plots"): "gp.plot() is a method, because people look for it there",
    ("estimators/regressor.py", "plots"): "gp.plot() is a method, because people look for it there",
}
LATE = {
    ("estimators/base.py", "modelfile"),
    ("estimators/classifier.py", "plots"),
    ("estimators/regressor.py", "plots"),
}  # face.py as a whole is imported late, by kernels/base.py


class Arrow(NamedTuple):
    file: str
    layer: str
    target: str
    late: bool  # inside a function


def arrows() -> list[Arrow]:
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).parts
        tree = ast.parse(path.read_text(encoding="utf-8"))
        late = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.Lambda))
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: imports are written in full"
                names = (
                    [f"gramian.{alias.name}" for alias in node.names]
                    if node.module == "gramian"
                    else [str(node.module)]
                )
            targets = {
                name.split(".")[1] if "." in name else "__init__"
                for name in names
                if name.split(".")[0] == "gramian"
            }
            found += [
                Arrow("/".join(parts), parts[0].removesuffix(".py"), target, id(node) in late)
                for target in targets
            ]
    return found


def test_every_module_has_a_layer():
    modules = {
        path.name.removesuffix(".py")
        for path in ROOT.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert modules <= set(LEVEL), f"say in which layer these are: {modules - set(LEVEL)}"


def test_arrows_point_left():
    wrong = [a for a in arrows() if LEVEL[a.target] > LEVEL[a.layer] and (a.file, a.target) not in EXCEPTIONS]
    assert not wrong, "\n".join(f"{a.file} imports {a.target}, which lies to its right" for a in wrong)


def test_likelihoods_and_means_do_not_know_each_other():
    assert not [a for a in arrows() if {a.layer, a.target} == {"likelihoods", "means"}]


def test_exceptions_are_still_needed_and_late():
    found = {(a.file, a.target): a.late for a in arrows()}
    for arrow, reason in EXCEPTIONS.items():
        assert arrow in found, f"{arrow} is no longer there ({reason}): strike it from the list"
    for arrow in LATE:
        assert found[arrow]
    assert all(
        a.late
        for a in arrows()
        if a.file == "kernels/base.py" and a.target == "kernels" and a.file != "kernels/base.py"
    )
    base = ast.parse((ROOT / "kernels" / "base.py").read_text(encoding="utf-8"))
    outside = [
        node
        for node in base.body
        if isinstance(node, ast.ImportFrom) and node.module == "gramian.kernels.face"
    ]
    assert not outside


def test_the_reading_of_imports_sees_something():
    assert len(arrows()) > 100
    assert Arrow("engines/krylov.py", "engines", "solvers", False) in arrows()
