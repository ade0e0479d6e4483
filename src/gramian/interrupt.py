"""Ctrl-C is answered at once: by the work, or by a sentence that says what it waits for.

Python acts on Ctrl-C between two instructions of the main thread. A long call into BLAS, LAPACK or the
compiler of JAX is one instruction, and a person who sees nothing happen presses again and again. So a thread
of its own learns of the signal from the operating system (`signal.set_wakeup_fd`). If the work goes on for
PATIENCE seconds, it says what is being waited for; if somebody presses again before the main thread has
answered, the program ends.

It is for the main thread alone, and where nobody else handles the signal: a notebook, which does, stays as it
is. The thread and its socket are made once a process.
"""

from __future__ import annotations

import atexit
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any

# seconds: before a word is said, between looks, and within which an answer is one to this press
PATIENCE, STEP, AT_ONCE = 1.5, 0.05, 0.5
EXIT_CODE, TERMINATED = 130, 143  # as of a program that Ctrl-C or SIGTERM has ended
GRACE = 5.0  # seconds for what is left to do after SIGTERM


class _Watch:
    """The thread, and what is being waited for."""

    def __init__(self) -> None:
        self.reading, self.writing = socket.socketpair()
        self.writing.setblocking(False)
        self.what: Callable[[], str] | None = None  # None: nothing is at work
        self.answered = -math.inf  # when the main thread has last answered
        self.thread = threading.Thread(target=self._run, name="gramian-interrupt", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        with self.reading:
            while received := self.reading.recv(1):
                if received[0] == signal.SIGINT:
                    self.pressed()

    def close(self) -> None:
        """Ends the thread."""
        self.what = None
        self.writing.close()
        self.thread.join()

    def pressed(self) -> None:
        """Waits for an answer, after a while aloud; ends the program where somebody presses again then."""
        began, told = time.monotonic(), False
        self.reading.settimeout(STEP)
        while self.what is not None and not (told and self._heard(began)):
            if not told and time.monotonic() - began >= PATIENCE:
                told, heard = True, self._heard(began)
                again = "stop that, too" if heard else "end the program"
                tell(f"Ctrl-C: waiting for {self.what()}. Press again to {again}.")
            try:
                again_pressed = self.reading.recv(1) == bytes([signal.SIGINT])
            except TimeoutError:
                continue
            if again_pressed and self._heard(began):
                began, told = time.monotonic(), False  # another press, of its own
            elif again_pressed and told:
                abort()
        self.reading.settimeout(None)

    def _heard(self, began: float) -> bool:
        """Whether the main thread has answered a press of that moment."""
        return self.answered >= began - AT_ONCE

    def answer(self, number: int, frame: FrameType | None) -> None:
        """What Python calls in the main thread."""
        self.answered = time.monotonic()
        signal.default_int_handler(number, frame)


@cache
def _watch() -> _Watch:
    made = _Watch()
    atexit.register(made.close)
    return made


def _is_ours(handler: Any) -> bool:
    """Whether Ctrl-C is answered by Python or by the watch: somebody else's answer stays."""
    return handler is signal.default_int_handler or getattr(handler, "__func__", None) is _Watch.answer


def tell(sentence: str) -> None:
    """To the person, whatever the main thread is at."""
    print(f"\n{sentence}", file=sys.stderr, flush=True)


def abort() -> None:
    """Ends the program on the spot, since its main thread does not listen."""
    os._exit(EXIT_CODE)


@contextmanager
def attended(what: Callable[[], str]) -> Iterator[None]:
    """Within it Ctrl-C has an answer in a moment. `what()` is what the work is at."""
    main, handler = threading.current_thread() is threading.main_thread(), signal.getsignal(signal.SIGINT)
    if not main or not _is_ours(handler):
        yield
        return
    watch = _watch()
    fd = signal.set_wakeup_fd(watch.writing.fileno(), warn_on_full_buffer=False)
    if fd not in (-1, watch.writing.fileno()):  # somebody else's
        signal.set_wakeup_fd(fd)
        yield
        return
    before, watch.what = watch.what, what
    signal.signal(signal.SIGINT, watch.answer)
    try:
        yield
    finally:
        watch.what = before
        signal.signal(signal.SIGINT, handler)
        signal.set_wakeup_fd(fd)


@contextmanager
def held_back() -> Iterator[Callable[[], bool]]:
    """Within it Ctrl-C waits, for work of a moment that must not be left half done; what it gives tells
    whether somebody has pressed. For the main thread, as `attended` is; elsewhere nothing changes."""
    main, handler = threading.current_thread() is threading.main_thread(), signal.getsignal(signal.SIGINT)
    pressed = False

    def heard(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True

    if not main or not _is_ours(handler):
        yield lambda: pressed
        return
    signal.signal(signal.SIGINT, heard)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def terminable() -> Iterator[None]:
    """Within it SIGTERM ends the program as an exception does, so that temporary files are taken away, and
    with exit code 143. Several signals at once are one, as where a whole group of processes is ended; one
    that comes GRACE seconds later ends the program on the spot.

    An answer may be lost: what is raised while an object is deleted, or while a module is let go of, Python
    prints and drops. Then the signal is sent again a moment later, and so is Ctrl-C."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    first = math.inf

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal first
        now = time.monotonic()
        if now > first + GRACE:
            os._exit(TERMINATED)
        if first == math.inf:
            first = now
            raise SystemExit(TERMINATED)

    def lost(what: sys.UnraisableHookArgs) -> None:
        nonlocal first
        kinds = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}
        number = next((kinds[kind] for kind in kinds if issubclass(what.exc_type, kind)), None)
        if number is None:
            hook(what)
            return
        first = math.inf
        again = threading.Timer(STEP, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()

    hook, sys.unraisablehook = sys.unraisablehook, lost
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        if first == math.inf:  # else the program is on its way out, and must get there
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_watch.cache_clear)  # a fork has no such thread
