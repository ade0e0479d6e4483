"""Reading imports: which module of a package imports which, when, and whether the arrows point the right
way."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

When = Literal["top", "late", "typing"]


class Arrow(NamedTuple):
    source: str  # a module, without the package's name: "engines.dense"; "" for the package itself
    target: str
    when: When  # on import; inside a function; for type checkers alone

    def __str__(self) -> str:
        return f"{self.source or 'the package'} imports {self.target or 'the package'} ({self.when})"


def modules(root: Path) -> dict[str, Path]:
    """Every module below the root by its name; a package by that of its directory."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def arrows(root: Path) -> list[Arrow]:
    """All imports between modules of the package. `from package.a import b` is an import of package.a.b where
    that is a module, else of package.a."""
    known = modules(root)
    found = []
    for source, path in known.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node, when in _imports(tree.body, "top"):
            found += [Arrow(source, target, when) for target in _targets(node, root.name, known, path)]
    return sorted(set(found))


def _imports(body: Sequence[ast.AST], when: When) -> Iterator[tuple[ast.Import | ast.ImportFrom, When]]:
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, when
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from _imports(list(ast.iter_child_nodes(node)), "late")
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _imports(node.body, "typing" if when == "top" else when)
            yield from _imports(node.orelse, when)
        else:
            yield from _imports(list(ast.iter_child_nodes(node)), when)


def _targets(
    node: ast.Import | ast.ImportFrom, package: str, known: Mapping[str, Path], path: Path
) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"{path}: imports are written in full"
        names = [(f"{node.module}.{alias.name}", str(node.module)) for alias in node.names]
    else:
        names = [(alias.name, alias.name) for alias in node.names]
    for full, module in names:
        if full.split(".")[0] == package:
            inside = full.removeprefix(package).removeprefix(".")
            yield inside if inside in known else module.removeprefix(package).removeprefix(".")


def wrong_arrows(
    found: Sequence[Arrow], layers: Sequence[Sequence[str]], late: Mapping[tuple[str, str], str]
) -> list[str]:
    """Arrows to a layer further right, and modules without a layer."""
    level = {name: k for k, names in enumerate(layers) for name in names}
    faults = []
    for arrow in found:
        own, other = (name.split(".")[0] for name in (arrow.source, arrow.target))
        if own not in level or other not in level:
            faults.append(f"{arrow}: say in which layer {own if own not in level else other!r} is")
        elif level[other] > level[own] and not (
            arrow.when == "late" and (arrow.source, arrow.target) in late
        ):
            faults.append(f"{arrow}, which lies to its right")
    return faults


def cycles(found: Sequence[Arrow]) -> list[str]:
    """Modules that import each other on import, directly or by way of others."""
    graph: dict[str, list[str]] = {}
    for arrow in found:
        if arrow.when == "top" and arrow.source != arrow.target:
            graph.setdefault(arrow.source, []).append(arrow.target)
    state: dict[str, int] = {}
    faults: list[str] = []

    def visit(module: str, path: list[str]) -> None:
        state[module] = 1
        for target in graph.get(module, ()):
            if state.get(target) == 1:
                ring = [*path[path.index(target) :], target]
                faults.append("a cycle: " + " -> ".join(name or "the package" for name in ring))
            elif target not in state:
                visit(target, [*path, target])
        state[module] = 2

    for module in sorted(graph):
        if module not in state:
            visit(module, [module])
    return faults


def wrong_rooms(found: Sequence[Arrow], rooms: Mapping[str, Sequence[str]]) -> list[str]:
    """Of a package with rooms (sub-packages that stand beside each other): rooms that import each other, and
    modules of the package itself that import a room."""
    faults = []
    for package, names in rooms.items():

        def room(module: str, package: str = package, names: Sequence[str] = names) -> str | None:
            parts = module.split(".")
            return parts[1] if parts[0] == package and len(parts) > 1 and parts[1] in names else None

        for arrow in found:
            own, other = room(arrow.source), room(arrow.target)
            if other is not None and own != other and arrow.source.split(".")[0] == package:
                faults.append(f"{arrow}: {'another room' if own else 'a room, from the package itself'}")
    return faults


def late_without_reason(found: Sequence[Arrow], late: Mapping[tuple[str, str], str]) -> list[str]:
    """Imports inside functions without a reason, and reasons that nobody needs any more. A reason may
    be for all late imports of a module: its target is "*"."""
    there = {(arrow.source, arrow.target) for arrow in found if arrow.when == "late"}
    faults = [
        f"{source} imports {target} inside a function: say why"
        for source, target in sorted(there)
        if (source, target) not in late and (source, "*") not in late
    ]
    for source, target in late:
        used = any(a == source and target in ("*", b) for a, b in there)
        if not used:
            faults.append(f"{source} no longer imports {target} late: strike it from the list")
    return faults
