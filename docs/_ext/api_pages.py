"""The page of all public names, from the stub that declares them: a new name needs no line here.

Names stand under the package that they are from; those of a package without a heading come last.
"""

from __future__ import annotations

from pathlib import Path

import gramian

# heading, a sentence, and the packages whose names stand there, in this order
GROUPS = (
    ("Models for tables", "What most people need: ``fit``, ``predict``, ``summary``, ``save``.",
     ("estimators", "deep", "fitting", "sequential", "modelfile")),
    ("A process on paper", ":doc:`Prior, data, posterior </processes>`, with nothing chosen for you.",
     ("gp",)),
    ("Before and after a fit", "Plans, comparisons, distributions, data that stay on disk.",
     ("choose", "experiments", "predictive", "data", "report", "plots", "errors")),
    ("Kernels", ":doc:`What functions to expect </kernels>`.", ("kernels",)),
    ("Means and warps", "Trends, and targets that are not Gaussian as they come.", ("means", "warps")),
    ("Likelihoods", ":doc:`How y arises from f </classification>`.", ("likelihoods",)),
    ("Engines", ":doc:`How the linear algebra is paid for </methods/index>`: ``method=``.",
     ("engines", "solvers", "landmarks")),
    ("Inference", ":doc:`How what is not Gaussian is approximated </methods/index>`: ``inference=``.",
     ("inference",)),
    ("Parameters and priors", ":doc:`Values, limits, priors, held or free </parameters>`.", ("params",)),
)  # fmt: skip
LAST = """
Errors
------

Every error that the library raises on purpose is a ``GramianError``, which is a ``ValueError``;
:doc:`troubleshooting </help/troubleshooting>` has them by their messages.

.. automodule:: gramian.errors
   :members:
   :exclude-members: GramianError

Checks for what you write
-------------------------

They need no test framework, and say what is wrong, and where.

.. automodule:: gramian.testing
   :members:

Scorers
-------

For ``cross_val_score`` and ``GridSearchCV``: whole predictive distributions, judged.

.. automodule:: gramian.scorers
   :members:

Acquisitions
------------

What makes a point of :doc:`a design </sequential>` promising. For Optuna:
``gramian.optuna.GPSampler``.

.. automodule:: gramian.acquisition
   :members:
"""


def heading(text: str, mark: str) -> str:
    return f"{text}\n{mark * len(text)}\n"


def summary(names: list[str]) -> str:
    lines = "\n".join(f"   {name}" for name in names)
    options = "   :toctree: generated\n   :nosignatures:"
    return f".. currentmodule:: gramian\n\n.. autosummary::\n{options}\n\n{lines}\n"


def page() -> str:
    homes = {name: home.split(".")[1] for name, home in gramian._HOME.items() if not name.startswith("__")}
    known = {package for *_, packages in GROUPS for package in packages}
    others = ("Others", "What belongs nowhere else.", tuple(sorted({*homes.values()} - known)))
    parts = [
        heading("API", "="),
        "Every public name, from its docstring. ``import gramian as gm`` has them all; they are imported\n"
        "when first asked for.\n",
    ]
    for title, sentence, packages in (*GROUPS, others):
        names = [name for package in packages for name, home in homes.items() if home == package]
        if names:
            parts += [heading(title, "-"), f"{sentence}\n", summary(names)]
    return "\n".join(parts) + LAST


def write(folder: Path) -> None:
    """The page, where it is not there as it should be: Sphinx reads again what is newer."""
    path, text = folder / "index.rst", page()
    folder.mkdir(exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
