"""`import gramian` and a command that computes nothing load next to nothing; names come when they are asked
for."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import gramian

HEAVY = {"jax", "jaxlib", "matplotlib", "numpy", "pandas", "rich", "safetensors", "scipy", "sklearn"}
MODULES = 100  # beside those of a bare interpreter; JAX, SciPy and scikit-learn are 1,800


def loaded(program: str) -> set[str]:
    """The modules that a program loads in a fresh interpreter, beside those that are there anyway."""
    after = "print(json.dumps([*set(sys.modules) - before]))"
    whole = f"import sys, json\nbefore = set(sys.modules)\n{program}\n{after}"
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def command(*arguments: str) -> str:
    """A program that runs a command as the shell would."""
    return (
        f"sys.argv = {['gramian', *arguments]!r}\nfrom gramian.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass"
    )


def test_import_loads_next_to_nothing():
    found = loaded("import gramian")
    assert not HEAVY & found
    assert {name for name in found if name.startswith("gramian")} == {"gramian", "gramian.version"}
    assert len(found) < MODULES


@pytest.mark.parametrize(
    "arguments", [("--version",), ("--help",), ("fit",), ("nonsense",), ("fit", "--wrong")]
)
def test_commands_that_compute_nothing_load_no_numbers(arguments):
    """What typer takes is its own: 130 modules for a version, 250 where it checks arguments."""
    found = loaded(command(*arguments))
    assert not HEAVY & found
    assert len(found) < 4 * MODULES


def test_a_parameter_or_a_name_of_an_error_does_not_bring_everything():
    assert not HEAVY & loaded("import gramian\ngramian.GramianError")
    assert "matplotlib" not in loaded("import gramian\ngramian.GPRegressor")


def test_names_are_told_to_readers_and_to_the_interpreter_alike():
    """Type checkers take `import A as A` of a stub for public, and nothing else."""
    tree = ast.parse(Path(gramian.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    aliases = [alias for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert all(alias.name == alias.asname for alias in aliases)
    assert sorted(alias.name for alias in aliases) == gramian.__all__


def test_every_name_is_there():
    for name in gramian.__all__:
        assert getattr(gramian, name) is not None
    assert set(gramian.__all__) <= set(dir(gramian))
    assert gramian.kernels.RBF is gramian.RBF
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = gramian.nonsense
    with pytest.raises(ImportError):
        from gramian import nonsense  # noqa: F401


@pytest.mark.parametrize(
    "first",
    [
        "import gramian.landmarks.base",
        "gramian.GPRegressor",
        "from gramian import landmarks",
        "from gramian.landmarks.rules import RULES",
    ],
)
def test_landmarks_is_the_function_whatever_was_imported_first(first):
    """A package has the same name, and importing it binds the name to it, as a rule."""
    loaded(
        f"import gramian\n{first}\nassert callable(gramian.landmarks)\nfrom gramian import landmarks\n"
        "assert callable(landmarks)\nimport gramian.landmarks.pivoted\nassert callable(gramian.landmarks)"
    )
