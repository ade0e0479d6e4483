"""What is private stays in its room: packages that read fitted models read no attribute that begins with an
underscore of anything but themselves. Their classes have names of their own."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import gramian

ROOT = Path(gramian.__file__).parent
READERS = ("modelfile", "report", "plots", "experiments", "explore", "cli")


def trees(*packages: str) -> dict[Path, ast.Module]:
    return {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for package in packages
        for path in sorted((ROOT / package).rglob("*.py"))
    }


def test_readers_of_fitted_models_read_nothing_private():
    private = [
        f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}"
        for path, tree in trees(*READERS).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and isinstance(node.value, ast.Name)
        and node.value.id not in ("self", "cls")
    ]
    assert not private, "\n".join(private)


def test_a_class_name_means_one_class():
    names = Counter(
        node.name for tree in trees(".").values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )
    # a prior and a likelihood, both of which people know by that name
    assert [name for name, count in names.items() if count > 1] == ["Gamma"]
