"""Gaussian processes: easy as scikit-learn, close to LAPACK's speed, honest about what was computed.

import gramian as gm

gp = gm.GPRegressor().fit(X, y)
mean, std = gp.predict(X_new, return_std=True)
print(gp.summary())

Names are imported when they are first asked for, so that `import gramian` takes no longer than it must:
JAX and SciPy come with the first kernel or estimator.
"""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from sys import modules
from types import ModuleType
from typing import Any

from gramian.version import __version__ as __version__

# Where each name is from: the imports of the stub, which type checkers read.
_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_HOME = {
    alias.name: node.module
    for node in _STUB.body
    if isinstance(node, ast.ImportFrom) and node.module is not None and node.module != "gramian"
    for alias in node.names
}
__all__ = sorted([*_HOME, "likelihoods"])


def __getattr__(name: str) -> Any:
    """The name, from its home; or a module of the package."""
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif not name.startswith("_") and find_spec(f"gramian.{name}") is not None:
        value = import_module(f"gramian.{name}")
    else:
        raise AttributeError(f"module 'gramian' has no attribute {name!r}")
    globals()[name] = value  # not asked again
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


class _Package(ModuleType):
    """`gramian.landmarks` is a function, though a package has the same name: whoever imports the package must
    not bind the name to it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


modules[__name__].__class__ = _Package
