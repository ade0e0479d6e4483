"""Ctrl-C has an answer: that of the work, or a sentence."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

import pytest

from gramian import interrupt
from gramian.interrupt import attended, held_back

LONG = 60.0  # seconds after which a test that waits for a thread gives up


@pytest.fixture
def watch(monkeypatch):
    """A thread of its own, at once impatient, with what it says and does written down."""
    # as in a program of its own, whatever other tests have left
    handler, fd = signal.signal(signal.SIGINT, signal.default_int_handler), signal.set_wakeup_fd(-1)
    made = interrupt._Watch()
    made.said, made.spoken, made.aborted = [], threading.Event(), threading.Event()

    def tell(sentence):
        made.said.append(sentence)
        made.spoken.set()

    def abort():
        made.what = None
        made.aborted.set()

    monkeypatch.setattr(interrupt, "PATIENCE", 0.0)
    monkeypatch.setattr(interrupt, "tell", tell)
    monkeypatch.setattr(interrupt, "abort", abort)
    monkeypatch.setattr(interrupt, "_watch", lambda: made)
    yield made
    made.close()
    signal.signal(signal.SIGINT, handler)
    with contextlib.suppress(OSError, ValueError):  # it may be closed by now
        signal.set_wakeup_fd(fd)


def press(watch):
    watch.writing.send(bytes([signal.SIGINT]))


def test_who_is_not_heard_is_told_what_is_waited_for(watch):
    watch.what = lambda: "the factorisation of 20,000 rows"
    press(watch)
    assert watch.spoken.wait(LONG)
    assert watch.said == [
        "Ctrl-C: waiting for the factorisation of 20,000 rows. Press again to end the program."
    ]
    assert not watch.aborted.is_set()
    press(watch)
    assert watch.aborted.wait(LONG)


def test_work_that_goes_on_after_it_has_heard(watch, monkeypatch):
    monkeypatch.setattr(watch, "answered", float("inf"))
    watch.what = lambda: "the inference on 20,000 rows"
    press(watch)
    assert watch.spoken.wait(LONG)
    assert watch.said == ["Ctrl-C: waiting for the inference on 20,000 rows. Press again to stop that, too."]


def test_the_work_is_interrupted_and_all_is_as_before(watch):
    before, found = signal.getsignal(signal.SIGINT), []

    def work():
        with attended(lambda: "a test"), attended(lambda: "its inner part"):
            found.append(watch.what())
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(LONG)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert found == ["its inner part"]
    assert watch.what is None
    assert watch.answered > 0
    assert signal.getsignal(signal.SIGINT) is before
    assert signal.set_wakeup_fd(-1) == -1


def test_what_others_handle_stays_theirs(watch):
    def theirs(number, frame):
        pass

    before = signal.signal(signal.SIGINT, theirs)
    try:
        with attended(lambda: "a test"):
            assert watch.what is None
            assert signal.getsignal(signal.SIGINT) is theirs
    finally:
        signal.signal(signal.SIGINT, before)
    found = []

    def beside():
        with attended(lambda: "a test"):
            found.append(watch.what)

    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    assert found == [None]


# deletes an object that sends a signal to its process, and waits
LOST = """
import os, signal, sys, time
from gramian.interrupt import terminable

class Last:
    def __del__(self):
        os.kill(os.getpid(), signal.{number})
        for _ in range(1000):
            pass

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored
with terminable():
    Last()
    time.sleep({seconds})
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without a signal")
@pytest.mark.parametrize(("number", "code"), [("SIGTERM", interrupt.TERMINATED), ("SIGINT", -signal.SIGINT)])
def test_a_signal_whose_answer_is_lost_is_sent_again(number, code):
    program = LOST.format(number=number, seconds=LONG)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=2 * LONG)
    assert done.returncode == code
    assert "Exception ignored" not in done.stderr


def test_held_back_waits_in_the_main_thread_alone(watch):
    with held_back() as pressed:
        assert not pressed()
        os.kill(os.getpid(), signal.SIGINT)
        assert pressed()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    found = []

    def beside():
        with held_back() as pressed:
            found.append(pressed())

    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    assert found == [False]
