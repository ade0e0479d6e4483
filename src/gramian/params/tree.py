"""Immutable objects made of parameters: kernels, means and likelihoods.

A subclass declares fields, as a frozen dataclass does; a field declared with `positive(...)`, `real(...)` and
so on is a parameter, a field that holds another Tree (or a tuple of them) is a branch, and anything else is
part of the object's structure and must be hashable.

`bare()` gives the same object with plain arrays in place of Parameters. It is what JAX sees: a pytree whose
leaves are the values and whose structure is the compilation key, so that neither a value nor a prior ever
causes a recompilation.

A tree never changes, so what is known of it is found once: its paths and branches (which trees that differ in
values alone share) and its bare form are kept beside the fields, and left out of copies and pickles.
"""

from __future__ import annotations

import dataclasses
from abc import ABC
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self, dataclass_transform

import jax
from numpy.typing import ArrayLike

from gramian.arrays import Array, is_whole
from gramian.errors import ParameterError
from gramian.params.parameter import Parameter, as_parameter


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
class Tree(ABC):  # subclasses declare what is abstract
    """Parent of everything that has parameters. Subclasses become frozen dataclasses and JAX pytrees by being
    defined."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    _own: ClassVar[tuple[str, ...]] = ()  # fields that are parameters
    _rest: ClassVar[tuple[str, ...]] = ()  # branches and structure

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
        fields = dataclasses.fields(cls)
        cls._own = tuple(f.name for f in fields if "support" in f.metadata)
        cls._rest = tuple(f.name for f in fields if "support" not in f.metadata)
        jax.tree_util.register_pytree_node(cls, _flatten, lambda aux, leaves: _unflatten(cls, aux, leaves))

    def __post_init__(self) -> None:
        for name in self._own:
            support = self.__dataclass_fields__[name].metadata["support"]
            parameter = as_parameter(getattr(self, name), support, f"{type(self).__name__}: {name}")
            object.__setattr__(self, name, parameter)

    def label(self, field: str) -> str:
        """The name of a branch in parameter paths; an empty one leaves the branch out of the path."""
        return field

    def branches(self) -> Iterator[tuple[str, Tree]]:
        """Each child with its name in paths."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tree):
                yield self.label(field.name), value
            elif isinstance(value, tuple):
                children = (child for child in value if isinstance(child, Tree))
                yield from ((child.label("") or type(child).__name__.lower(), child) for child in children)

    @property
    def paths(self) -> tuple[str, ...]:
        """The names of all parameters, in a fixed order: own ones first, then each branch's."""
        known: tuple[str, ...] | None = self.__dict__.get(_PATHS)
        if known is None:
            known = self.__dict__[_PATHS] = _paths(self)
        return known

    def parameters(self) -> dict[str, Parameter]:
        """All parameters by path, in the order of `paths`."""
        return dict(zip(self.paths, leaves(self), strict=True))

    def with_values(self, values: Mapping[str, ArrayLike]) -> Self:
        """The same tree with new values at the given paths; the others stay."""
        old = self.parameters()
        unknown = set(values) - set(old)
        if unknown:
            raise KeyError(f"no parameter named {sorted(unknown)}; there are {list(old)}")
        return self.with_parameters(
            [p.with_value(values[path]) if path in values else p for path, p in old.items()]
        )

    def with_parameters(self, parameters: list[Parameter]) -> Self:
        """The same tree with all its parameters replaced, in the order of `parameters()`."""
        rest = iter(parameters)
        new = _rebuild(self, lambda _: next(rest))
        assert next(rest, None) is None
        return new

    def moved(self, values: Iterable[Array]) -> Self:
        """The same tree with these values, all of them, in the order of `paths`. They are not checked: this
        is for a search, which checks its vector once."""
        rest = iter(values)
        return _rebuild(self, lambda parameter: parameter.moved(next(rest)))

    def bare(self) -> Self:
        """The same tree with float64 arrays in place of Parameters, for JAX; of a bare tree, itself."""
        known: Self | None = self.__dict__.get(_BARE)
        if known is None:
            if self.__dict__.get(_IS_BARE):
                return self
            known = self.__dict__[_BARE] = _rebuild(self, _value, bare=True)
        return known

    def bare_at(self, values: Iterable[Array]) -> Self:
        """`moved(values).bare()`, at once."""
        rest = iter(values)
        return _rebuild(self, lambda _: next(rest), bare=True)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _KEPT}


_KEPT = _PATHS, _BRANCHES, _BARE, _IS_BARE = "_paths", "_branches", "_bare", "_is_bare"


def _paths(tree: Tree) -> tuple[str, ...]:
    nested: dict[str, int] = {}
    paths = list(tree._own)
    for name, child in tree.branches():
        nested[name] = nested.get(name, 0) + 1
        stem = f"{name}_{nested[name]}" if name and nested[name] > 1 else name
        paths += [f"{stem}.{path}" if stem else path for path in child.paths]
    unique: dict[str, None] = {}
    for path in paths:
        name, k = path, 1
        while name in unique:
            k += 1
            name = f"{path}_{k}"
        unique[name] = None
    return tuple(unique)


def _rebuild(tree: Any, leaf: Callable[[Any], Any], *, bare: bool = False) -> Any:
    """A copy with `leaf` applied to each Parameter; own ones before the branches', as in `paths`."""
    new = object.__new__(type(tree))
    old, fields = tree.__dict__, new.__dict__  # past the guard of a frozen object, which is still being made
    if _PATHS in old:
        fields[_PATHS] = old[_PATHS]
    if bare:
        fields[_IS_BARE] = True
    branches = fields[_BRANCHES] = _branch_fields(tree)
    for name in tree._own:
        fields[name] = leaf(old[name])
    for name in tree._rest:
        value = old[name]
        if name in branches:
            value = (
                tuple(_rebuild(v, leaf, bare=bare) if isinstance(v, Tree) else v for v in value)
                if isinstance(value, tuple)
                else _rebuild(value, leaf, bare=bare)
            )
        fields[name] = value
    return new


def _value(leaf: Any) -> Any:
    return leaf.value if isinstance(leaf, Parameter) else leaf  # of a branch that is bare already


def _branch_fields(tree: Any) -> tuple[str, ...]:
    """The fields that hold a Tree, or a tuple of them."""
    known: tuple[str, ...] | None = tree.__dict__.get(_BRANCHES)
    if known is None:
        known = tuple(name for name in tree._rest if _is_branch(tree.__dict__[name]))
        tree.__dict__[_BRANCHES] = known
    return known


def _is_branch(value: Any) -> bool:
    return isinstance(value, Tree) or (isinstance(value, tuple) and any(isinstance(v, Tree) for v in value))


def _flatten(tree: Any) -> tuple[list[Any], tuple[Any, ...]]:
    children, aux = [], []
    for field in dataclasses.fields(tree):
        value = getattr(tree, field.name)
        if "support" in field.metadata or _is_branch(value):
            children.append(value)
            aux.append((field.name, True, None))
        else:
            aux.append((field.name, False, value))
    return children, tuple(aux)


def _unflatten(cls: type, aux: tuple[Any, ...], children: Any) -> Any:
    new: Any = object.__new__(cls)
    rest = iter(children)
    for name, is_child, value in aux:
        object.__setattr__(new, name, next(rest) if is_child else value)
    return new


def leaves(tree: Tree) -> list[Any]:
    """The parameters of a tree, or the arrays of a bare one, in the order of `paths`."""
    fields = tree.__dict__
    found = [fields[name] for name in tree._own]
    for name in _branch_fields(tree):
        value = fields[name]
        for child in value if isinstance(value, tuple) else (value,):
            found += leaves(child) if isinstance(child, Tree) else []
    return found


def whole_number(value: object, owner: str, low: int, high: int | None = None) -> int:
    """`value`, a field of structure, as an int within [low, high], or an error that names its owner."""
    number: Any = value
    if not is_whole(value, low) or (high is not None and number > high):
        expected = f"a whole number from {low} {f'to {high}' if high is not None else 'on'}"
        raise ParameterError(f"{owner} must be {expected}, but is {value!r}.")
    return int(number)
