"""What a long fit has found so far, in order, so that a fit that was stopped goes on with the same numbers.

A search is a function of the values and gradients that it is given. So nothing of a search is stored but
these: a run that begins again is told what the one before it was told, at the same points, in no time, and
goes on from there with the same bits. There are four kinds of entries, each in its place in one sequence:

    value, failure   of an expensive function at a point, known by a digest of its bits
    choice           what a clock or the memory of the machine has decided, such as how many rows a stage has
    over             the time was over at a point
    state            of a loop of many small steps (batches, chains): the last one alone is kept

A choice, or an end by time, at the end of the sequence has had no consequence yet, and is made again: that is
how a run with more time goes on. Where a point is not the one that was expected (another processor rounds
otherwise), the rest of the sequence is of no use and is let go; what was used so far is as good as before.

Searches ask for the journal as they ask for the clock, so that no signature carries it; without one, the
functions below do the work and no more. Threads of work have a part each (`within`). Where entries go is not
known here: who opens a `Journal` gives it a function that writes it (`modelfile/checkpoint.py`).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from gramian import clock
from gramian.arrays import AnyArray, Array
from gramian.clock import OutOfTime
from gramian.errors import CheckpointError, NumericalError

T = TypeVar("T")

# seconds: a journal that is younger is not written, and between two writes; writes take at most the share
LEAST_SECONDS, SHARE = 1.0, 0.05
VALUE, FAILURE, OVER, CHOICE, SEED, STATE = "value", "failure", "over", "choice", "seed", "state"
KINDS = (VALUE, FAILURE, OVER, CHOICE, SEED, STATE)
_DAMAGED = "it does not fit the work that it is said to be of"


class Warm(Protocol):
    """Where an iterative rule may begin: what it found for the last parameters."""

    start: Array | None


@dataclass
class Entry:
    """One thing that was found out."""

    kind: str
    key: str  # a digest of a point, or a name
    seconds: float = 0.0  # that it took
    told: Any = None  # plain values, as JSON has them
    arrays: dict[str, AnyArray] = field(default_factory=dict)


class Resumed(NamedTuple):
    """What a journal had when it was opened."""

    evaluations: int
    steps: int  # of loops
    seconds: float

    def __str__(self) -> str:
        counts = ((self.evaluations, "evaluation"), (self.steps, "step"))
        parts = [f"{count:,} {word}{'s' * (count != 1)}" for count, word in counts if count]
        return f"{' and '.join(parts) or 'no evaluation'}, {_shown(self.seconds)} of work"


class Journal:
    """All entries of a fit, in parts. `write(journal)` puts them where they last."""

    def __init__(
        self,
        name: str,
        write: Callable[[Journal], None],
        facts: Mapping[str, Sequence[str]] | None = None,
        parts: Mapping[str, list[Entry]] | None = None,
    ) -> None:
        self.name, self._write = name, write
        self.facts = facts  # what the fit is of: a text for people and a digest, by name
        self.parts = {name: _with_consequences(entries) for name, entries in (parts or {}).items()}
        self.resumed = None if facts is None else _counted(self.parts)
        self.known = False  # whether the fit at work is the one of the facts
        self.unfinished = False  # whether somebody, or the time, has ended a part of the work
        self.dropped = 0  # entries of another path
        self.written = False  # whether it has been
        self.lock = threading.RLock()
        self._began = self._last = clock.now()
        self._cost = 0.0  # seconds of the last write
        self._stopped = False

    def identify(self, facts: Mapping[str, Sequence[str]]) -> None:
        """Says what the fit is of; refused where the journal is of another one. Fits inside a fit are its
        own."""
        if self.known:
            return
        known, none = facts if self.facts is None else self.facts, ("none", "")
        for name in {**facts, **known}:
            (was, other), (now, digest) = known.get(name, none), facts.get(name, none)
            if digest != other:
                differs = f"was {was}, and now it is {now}" if was != now else f"had other values ({was})"
                raise CheckpointError(
                    f"The checkpoint {self.name} is of another fit: its {name} {differs}. Give the same again"
                    " to go on with it, remove the file to begin anew, or give another name."
                )
        self.facts, self.known = facts, True

    @property
    def records(self) -> bool:
        """Whether what is found from now on belongs here."""
        return self.known and not self._stopped

    def stop(self) -> None:
        """Somebody has stopped the work: what is found from now on is of a shorter one."""
        self._stopped = self.unfinished = True

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        now = clock.now()
        pause = max(LEAST_SECONDS, self._cost / SHARE)
        return now - self._began >= LEAST_SECONDS and now - self._last >= pause

    def write(self) -> None:
        """Puts it where it lasts."""
        with self.lock:
            began = clock.now()
            self._write(self)
            self._last, self.written = clock.now(), True
            self._cost = self._last - began

    @property
    def worth_keeping(self) -> bool:
        """Whether there is more than a moment's work in it."""
        lasts = sum(entry.seconds for entries in self.parts.values() for entry in entries)
        return self.known and (self.resumed is not None or lasts >= LEAST_SECONDS)


class Strand:
    """The sequence of one thread of work, and how far it has been read."""

    def __init__(self, journal: Journal, name: str) -> None:
        self.journal, self.name, self.at = journal, name, 0
        self.entries = journal.parts.setdefault(name, [])
        self.seconds = 0.0  # of loops

    def following(self, kinds: Sequence[str], key: str) -> Entry | None:
        """The next entry, where it is of this kind and key. Choices that nobody asks for are passed over (a
        run without a time limit makes none); from where something else does not fit, entries are let go."""
        if not self.journal.known or self.at >= len(self.entries):
            return None
        decides, at = CHOICE in kinds or SEED in kinds, self.at
        while not decides and at < len(self.entries) - 1 and self.entries[at].kind == CHOICE:
            at += 1
        entry = self.entries[at]
        if entry.kind in kinds and entry.key == key:
            self.at = at + 1
            return entry
        if not decides:
            with self.journal.lock:
                self.journal.dropped += len(self.entries) - self.at
                del self.entries[self.at :]
        return None

    def add(self, entry: Entry, last: bool = False) -> None:
        """Puts an entry where the work is. `last`: before it, no evaluation needs where it began any more."""
        journal = self.journal
        if not journal.records:
            return
        with journal.lock:
            if last:
                for before in reversed(self.entries):
                    if before.kind in (VALUE, FAILURE):
                        before.arrays = {k: a for k, a in before.arrays.items() if not k.startswith("start")}
                        break
            self.entries.insert(self.at, entry)
            self.at += 1
            if entry.kind in (VALUE, FAILURE) and journal.due:
                journal.write()


_part: ContextVar[Strand | None] = ContextVar("journal", default=None)


# What work asks. --------------------------------------------------------------------------------------------


@contextmanager
def kept_in(journal: Journal) -> Iterator[None]:
    """Within it, what is found goes into the journal."""
    token = _part.set(Strand(journal, ""))
    try:
        yield
    finally:
        _part.reset(token)


def here() -> Strand | None:
    """The sequence of this thread of work; None without a journal."""
    return _part.get()


@contextmanager
def within(part: Strand | None, name: str) -> Iterator[None]:
    """Within it, what this thread finds is a sequence of its own, beside another thread's."""
    if part is None:
        yield
        return
    with part.journal.lock:
        own = Strand(part.journal, f"{part.name}{name}")
    token = _part.set(own)
    try:
        yield
    finally:
        _part.reset(token)


def identify(facts: Callable[[], Mapping[str, Sequence[str]]]) -> None:
    """Says what the fit is of, where there is a journal."""
    part = _part.get()
    if part is not None and not part.journal.known:
        part.journal.identify(facts())


def resumed() -> str:
    """What a fit goes on from, as a sentence for people; nothing where it has begun anew."""
    part = _part.get()
    if part is None or part.journal.resumed is None:
        return ""
    told = f"resumed {part.journal.name}: {part.journal.resumed}"
    lost = part.journal.dropped  # as on another processor, which rounds otherwise
    return (
        f"{told}; from some point on its numbers did not fit ({lost:,}), and were found anew"
        if lost
        else told
    )


def replaying() -> bool:
    """Whether what comes next is known already."""
    part = _part.get()
    return part is not None and part.journal.known and part.at < len(part.entries)


def stop() -> None:
    """Somebody has stopped the work."""
    part = _part.get()
    if part is not None:
        part.journal.stop()


def leave() -> None:
    """The work was not finished, for want of time: the journal stays."""
    part = _part.get()
    if part is not None:
        part.journal.unfinished = True


def evaluated(
    point: Array, work: Callable[[], tuple[float, Array]], warm: Sequence[Warm] = (), slopes: bool = True
) -> tuple[float, Array, float]:
    """Value and gradient of an expensive function at a point, and the seconds they took: `work()`, or what it
    gave before. `warm`: what it begins with the next time; `slopes`: whether there is a gradient."""
    part = _part.get()
    began = clock.now()
    if part is None:
        value, gradient = work()
        return value, gradient, clock.now() - began
    key = hashlib.blake2b(point.tobytes(), digest_size=8).hexdigest()
    entry = part.following((VALUE, FAILURE, OVER), key)
    if entry is not None:
        return _again(entry, point.size if slopes else 0, warm)
    try:
        value, gradient = work()
    except OutOfTime:
        part.add(Entry(OVER, key))
        raise
    except NumericalError as error:
        seconds = clock.now() - began
        part.add(Entry(FAILURE, key, seconds, str(error), _starts(warm)), last=True)
        raise
    seconds = clock.now() - began
    part.add(Entry(VALUE, key, seconds, None, {"": np.append(value, gradient), **_starts(warm)}), last=True)
    return value, gradient, seconds


def _again(entry: Entry, slopes: int, warm: Sequence[Warm]) -> tuple[float, Array, float]:
    for k, one in enumerate(warm):
        if f"start{k}" in entry.arrays:
            one.start = np.array(entry.arrays[f"start{k}"], order="K")
    if entry.kind == OVER:
        raise OutOfTime
    if entry.kind == FAILURE:
        raise NumericalError(str(entry.told))
    numbers = entry.arrays.get("", np.zeros(0))
    if numbers.shape != (1 + slopes,):
        raise CheckpointError(damaged(f"{numbers.size} numbers for {slopes} parameters"))
    return float(numbers[0]), np.array(numbers[1:], dtype=np.float64), entry.seconds


def _starts(warm: Sequence[Warm]) -> dict[str, AnyArray]:
    return {
        f"start{k}": np.array(one.start, order="K") for k, one in enumerate(warm) if one.start is not None
    }


def chosen(name: str, kind: type[T], make: Callable[[], T], lasts: bool = False) -> T:
    """What a clock or the machine decides: `make()`, a plain value of that kind, or what was decided before.
    `lasts`: even where it has had no consequence yet, as a seed."""
    part = _part.get()
    if part is None:
        return make()
    what = SEED if lasts else CHOICE
    entry = part.following((what,), name)
    if entry is None:
        made = make()
        part.add(Entry(what, name, told=made))
        return made
    if type(entry.told) is not kind:
        raise CheckpointError(damaged(f"{name} is {str(entry.told)[:40]!r}"))
    return entry.told


# Loops of many steps. ---------------------------------------------------------------------------------------


class Place:
    """Where a loop of many small steps keeps its state. Without a journal it keeps nothing."""

    def __init__(self, name: str) -> None:
        self._part = _part.get()
        self._entry = None if self._part is None else self._part.following((STATE,), name)
        self.found = self._entry is not None
        self._name, self._since, self._before = name, clock.now(), 0.0
        self.ended = ""  # why the loop has ended; "" where it is to go on, as after a time limit
        if self._entry is not None and self._part is not None:
            self._before = self._entry.seconds
            told = self.value("ended", str)
            last = self._part.at == len(self._part.entries)
            self.ended = "" if last and told == "time limit" else told

    def value(self, name: str, kind: type[T]) -> T:
        """A plain value of the state."""
        told = self._entry.told if self._entry is not None else None
        value = told.get(name) if isinstance(told, dict) else None
        if type(value) is not kind:
            raise CheckpointError(damaged(f"{name} is {str(value)[:40]!r}"))
        return value

    def array(self, name: str, like: AnyArray | None = None) -> AnyArray:
        """An array of the state, in the shape and of the kind of another."""
        found = {} if self._entry is None else self._entry.arrays
        array = found.get(name)
        if array is None or (like is not None and (array.shape != like.shape or array.dtype != like.dtype)):
            raise CheckpointError(damaged(f"{name} is {'not there' if array is None else array.shape}"))
        return np.array(array, order="K")

    def keep(self, make: Callable[[], LoopState]) -> None:
        """After a step: the state, if it is time to write."""
        part = self._part
        if part is not None and part.journal.records and part.journal.due:
            self._put(make(), "")
            part.journal.write()

    def end(self, why: str, make: Callable[[], LoopState]) -> None:
        """At the end of the loop: its last state, and why it has ended."""
        part = self._part
        if part is not None and part.journal.records and not self.ended:
            self._put(make(), why)
            if part.journal.due:
                part.journal.write()

    def _put(self, state: LoopState, why: str) -> None:
        part = self._part
        assert part is not None
        with part.journal.lock:
            if self._entry is None:
                self._entry = Entry(STATE, self._name)
                part.entries.append(self._entry)
                part.at = len(part.entries)
            self._entry.seconds = self._before + clock.now() - self._since
            self._entry.told = {**state.told, "ended": why, "steps": state.steps}
            self._entry.arrays = state.arrays


class LoopState(NamedTuple):
    """Of a loop: how many steps it has done, plain values, and arrays, which nobody changes any more."""

    steps: int
    told: dict[str, Any]
    arrays: dict[str, AnyArray]


def dice(rng: np.random.Generator) -> dict[str, Any]:
    """The state of a generator as plain values."""
    state = rng.bit_generator.state
    own = {name: f"{number:x}" for name, number in state["state"].items()}
    return {**own, "more": int(state["has_uint32"]), "next": int(state["uinteger"])}


def cast(rng: np.random.Generator, told: Any) -> None:
    """Sets a generator to a state."""
    try:
        state = rng.bit_generator.state
        own = {name: int(told[name], 16) for name in state["state"]}
        rng.bit_generator.state = {
            **state,
            "state": own,
            "has_uint32": int(told["more"]),
            "uinteger": int(told["next"]),
        }
    except (KeyError, TypeError, ValueError, OverflowError) as cause:
        raise CheckpointError(damaged("the random numbers")) from cause


def damaged(what: str) -> str:
    """What is said of entries that cannot be."""
    part = _part.get()
    name = "The checkpoint" if part is None else f"The checkpoint {part.journal.name}"
    return f"{name} cannot be used: {_DAMAGED} ({what}). Remove the file to begin anew."


def _with_consequences(entries: list[Entry]) -> list[Entry]:
    """Without what was decided at the end, and has led to nothing yet."""
    count = len(entries)
    while count and entries[count - 1].kind in (CHOICE, OVER):
        count -= 1
    return entries[:count]


def _counted(parts: Mapping[str, list[Entry]]) -> Resumed:
    entries = [entry for own in parts.values() for entry in own]
    evaluations = sum(entry.kind in (VALUE, FAILURE) for entry in entries)
    told = [entry.told for entry in entries if entry.kind == STATE and isinstance(entry.told, dict)]
    steps = sum(state["steps"] for state in told if type(state.get("steps")) is int)
    return Resumed(evaluations, steps, float(sum(entry.seconds for entry in entries)))


def _shown(seconds: float) -> str:
    """192 -> "3 min 12 s"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s" if seconds < 10 else f"{rest} s"
