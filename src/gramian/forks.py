"""A forked process: what it may still do, and what is refused there.

A fork has one thread, whatever its parent had. Threads of the library are made anew where they are needed
(linalg/threads.py, interrupt.py), those of XLA cannot be: a process whose parent has started them (JAX calls
that its backends; tracing and importing start none) waits for ever once it runs a program. So `compiled`
stands for `jax.jit` in the library. In such a process it does the same in NumPy, where somebody wrote that
down, and else says at once why not, and what to do.

A fork before the first program of JAX is a process like any other.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from gramian.errors import ForkError

_parent_has = False  # whether the parent of a fork that is being made has threads of XLA
_lost = _forked = False


def lost() -> bool:
    """Whether this process is a fork that cannot run programs of JAX."""
    return _lost


def forked() -> bool:
    """Whether this process is a fork of one in which the library was at work."""
    return _forked


def check() -> None:
    """Refuses what needs JAX where it would wait for ever."""
    if _lost:
        raise ForkError(
            "This process is a fork of one that had used JAX, whose threads a fork does not have: what was"
            " asked for needs them, and would wait for ever. Start processes afresh:"
            ' multiprocessing.get_context("spawn"), or joblib with its default backend loky; in a server,'
            " load and fit models after the fork. Predictions of the common kernels work here."
        )


def compiled(
    static: tuple[int, ...] = (), instead: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`jax.jit` with these static arguments. `instead`: the same in NumPy for a fork without JAX, or None as
    its answer where it cannot."""

    def decorated(program: Callable[..., Any]) -> Callable[..., Any]:
        import jax

        jitted = jax.jit(program, static_argnums=static)

        @wraps(program)
        def call(*arguments: Any) -> Any:
            if not _lost:
                return jitted(*arguments)
            answer = None if instead is None else instead(*arguments)
            if answer is None:
                check()
            return answer

        return call

    return decorated


def _before() -> None:
    """In the parent, since JAX asks itself under a lock, which the child might find closed for ever."""
    global _parent_has
    bridge = sys.modules.get("jax._src.xla_bridge")
    _parent_has = bridge is not None and bool(bridge.backends_are_initialized())


def _in_child() -> None:
    global _lost, _forked
    if _parent_has and not _lost:
        _keep_clients()
    _forked, _lost = True, _lost or _parent_has


def _keep_clients() -> None:
    """Has the clients of XLA outlive the process: the last one to let go of a client waits for its threads,
    which ends a fork that ends by itself (as workers of gunicorn do, other than multiprocessing's) with
    SIGSEGV."""
    clients = getattr(sys.modules["jax._src.xla_bridge"], "_backends", {})
    keep = getattr(getattr(ctypes, "pythonapi", None), "Py_IncRef", None)  # which other Pythons have not
    if keep is not None:
        for client in list(clients.values()):
            keep(ctypes.py_object(client))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_child=_in_child)
