"""Faults: kills, full disks, closed streams, hostile files, forks, limits; tried and survived of each kind.

    python benchmarks/faults.py [--minutes 5] [--seed 0] [--only kill,disk] [--keep folder]

Each attempt is drawn from the seed, the kind and its number, and runs in processes and a folder of its own;
the folder of one that failed is kept. What "survived" means stands at each kind below, and is printed
with the table. For all of them: no process hangs, none ends by a signal that nobody sent, none prints a
traceback. The exit code is 1 if anything failed.

A disk that is full is a small tmpfs where this process may mount one, else a limit of the length of files.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gzip
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
# seconds after which a process hangs: the longest takes some ten, and more beside others
HANG = 180.0 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
RECORD = 64 * 10**6  # bytes that reading takes beside its memory limit, as SECURITY.md says
SOME = 100 * 10**6  # bytes by which the peak of a process differs from one run to the next
GRAMIAN = [sys.executable, "-m", "gramian"]
FIT = [*GRAMIAN, "fit", "data.csv", "-t", "y", "--id", "code", "-k", "rbf", "--restarts", "0", "-o", "out.gm"]
CHOOSE = [*GRAMIAN, "fit", "data.csv", "-t", "y", "--id", "code", "-o", "out.gm"]
PREDICT = [*GRAMIAN, "predict", "model.gm", "data.csv", "--out", "out.csv"]
PRINT = [*GRAMIAN, "predict", "model.gm", "data.csv"]
AHEAD = [*GRAMIAN, "forecast", "series.csv", "--horizon", "7", "--seasons", "none", "--plot", "ahead.png"]
COMPARE = [*GRAMIAN, "compare", "data.csv", "-t", "y", "-c", "a,b", "--methods", "nystrom:uniform,vfe,exact"]
COMPARE += ["--sizes", "5,10", "--repeats", "3", "-k", "RBF(1.0)", "--noise", "0.1", "-o", "runs"]
SAVE = [sys.executable, __file__, "--child", "save"]
TIMED = ("seconds", "bytes")  # columns of a comparison that differ from run to run


class Fault(Exception):
    """What was not survived."""


@dataclass(frozen=True)
class Ended:
    """How a process has ended."""

    code: int  # below zero: the signal
    out: bytes
    err: bytes
    seconds: float
    peak: int  # bytes

    def check(self, *codes: int) -> Ended:
        """The same; a fault where it ended otherwise, or told what only programmers understand."""
        for words in (b"Traceback", b"Exception ignored", b"Fatal Python error"):
            if words in self.err or words in self.out:
                raise Fault(f"{words.decode()}: {told(self.err)}")
        if self.code not in codes:
            raise Fault(f"exit code {self.code}, not {' or '.join(map(str, codes))}: {told(self.err)}")
        return self


def told(err: bytes) -> str:
    """The last lines."""
    return " | ".join(err.decode(errors="replace").strip().splitlines()[-3:])[-600:]


def run(
    command: list[str],
    place: Path,
    after: float | None = None,
    number: int = signal.SIGKILL,
    temporary: Path | None = None,
) -> Ended:
    """Runs a command in a folder; with `after`, sends a signal to it that many seconds after its start."""
    temporary = place / "tmp" if temporary is None else temporary
    temporary.mkdir(exist_ok=True)
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "TMPDIR": str(temporary),
        "JAX_PLATFORMS": "cpu",
    }
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        process = subprocess.Popen(
            command, cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        sent, peak = after is None, 0
        while True:
            peak = max(peak, peak_of(process.pid))
            pid, status = os.waitpid(process.pid, os.WNOHANG)
            now = time.monotonic() - began
            if pid:
                break
            if after is not None and not sent and now >= after:
                sent = True
                os.kill(process.pid, number)
            if now > HANG:
                os.kill(process.pid, signal.SIGKILL)
                os.waitpid(process.pid, 0)
                process.returncode = -signal.SIGKILL
                raise Fault(f"hangs: not ended after {HANG:.0f} s: {shlex.join(command)}")
            time.sleep(0.005)
        process.returncode = os.waitstatus_to_exitcode(status)
        found = []
        for file in (out, err):
            file.seek(0)
            found.append(file.read())
    # for who looks into the folder of one that failed; a full disk has no room for it
    with contextlib.suppress(OSError), (place / "said.txt").open("ab", buffering=0) as log:
        log.write(b"$ %s\n%s\n" % (shlex.join(command).encode(), found[1]))
    return Ended(process.returncode, *found, now, peak)


def peak_of(pid: int | str) -> int:
    """Bytes that a process has held at most, 0 where it has ended. Not by its usage, which begins with the
    peak of the process that started it."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    return 0


# What all attempts begin with. ------------------------------------------------------------------------------


class Ground:
    """A table, two models, and what the commands make of them where nothing goes wrong."""

    def __init__(self, folder: Path, writes: bool) -> None:
        """`writes`: whether commands that write are attacked, so that their results must be known."""
        import gramian as gm

        self.folder, self.load = folder, gm.load
        rng, n = np.random.default_rng(7), 60
        a, b = np.round(rng.uniform(0, 6, n), 3), np.round(rng.normal(size=n), 3)
        y = np.round(np.sin(a) + 0.5 * b + 0.1 * rng.normal(size=n), 3)
        sites = ("north", "south", "west")
        lines = [f"{k:03d},{a[k]},{sites[k % 3]},{b[k]},{y[k]}\n" for k in range(n)]
        (folder / "data.csv").write_text("code,a,site,b,y\n" + "".join(lines))
        days = (f"2024-01-{k + 1:02d},{a[k]}\n" for k in range(31))
        (folder / "series.csv").write_text("date,y\n" + "".join(days))
        self.seconds, self.peak = {}, 0
        place = self.place("undisturbed")
        run(FIT, place).check(0)  # programs are compiled once
        shutil.copy(place / "out.gm", folder / "model.gm")
        shutil.copy(place / "out.gm", place / "model.gm")
        ended = run(FIT, place).check(0)
        self.peak = ended.peak
        if not writes:
            return
        for name, job in JOBS.items():
            ended = run(job.command, place).check(0)
            self.seconds[name], self.peak = ended.seconds, max(self.peak, ended.peak)
        self.theta = {name: self.load(place / name).theta_ for name in ("out.gm", "saved.gm")}
        self.chosen = self.load(place / "chosen.gm").theta_
        self.table, self.runs = (place / "out.csv").read_bytes(), numbers(place / "runs" / "runs.csv")

    def place(self, name: str) -> Path:
        """A new folder with the table and the model in it."""
        place = self.folder / name
        place.mkdir()
        for file in ("data.csv", "series.csv", "model.gm"):
            if (self.folder / file).exists():
                shutil.copy(self.folder / file, place / file)
        return place


def numbers(path: Path) -> list[list[str]]:
    """The runs of a comparison, in their order, without what differs from run to run."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    kept = [k for k, name in enumerate(rows[0]) if not name.endswith(TIMED)]
    return [[row[k] for k in kept] for row in rows]


@dataclass(frozen=True)
class Job:
    """A command that writes, and how to see that what is there is whole. `whole(ground, place, ended)` says
    what is wrong with what there is, "" where nothing is; `ended`: whether all of it must be there."""

    command: list[str]
    whole: Callable[[Ground, Path, bool], str]


def model_at(name: str) -> Callable[[Ground, Path, bool], str]:
    def whole(ground: Ground, place: Path, ended: bool) -> str:
        path = place / name
        if not path.exists():
            return f"there is no {name}" if ended else ""
        if path.read_bytes() == b"before" and not ended:
            return ""
        try:
            theta = ground.load(path).theta_
        except Exception as error:  # whatever it is, the file is not whole
            return f"{name} does not load: {error}"
        known = ground.chosen if name == "chosen.gm" else ground.theta.get(name, ground.theta["out.gm"])
        return "" if np.array_equal(theta, known) else f"{name} has other parameters"

    return whole


def whole_saved(ground: Ground, place: Path, ended: bool) -> str:
    """Of the file that is written again and again: one of its two models."""
    path = place / "saved.gm"
    if not path.exists():
        return "there is no saved.gm" if ended else ""
    try:
        theta = ground.load(path).theta_
    except Exception as error:  # whatever it is, the file is not whole
        return f"saved.gm does not load: {error}"
    both = (ground.theta["out.gm"], ground.theta["saved.gm"])
    return "" if any(np.array_equal(theta, one) for one in both) else "saved.gm has other parameters"


def whole_table(ground: Ground, place: Path, ended: bool) -> str:
    path = place / "out.csv"
    if not path.exists():
        return "there is no out.csv" if ended else ""
    found = path.read_bytes()
    return "" if found == ground.table or (found == b"before" and not ended) else "out.csv is not whole"


def whole_runs(ground: Ground, place: Path, ended: bool) -> str:
    if not ended:
        return ""  # judged by whether the same command does the rest
    try:
        found = numbers(place / "runs" / "runs.csv")
    except (OSError, IndexError) as error:
        return f"runs.csv: {error}"
    return "" if sorted(found) == sorted(ground.runs) else "runs.csv has other numbers"


def nothing_to_see(ground: Ground, place: Path, ended: bool) -> str:
    return ""


JOBS = {
    "fit": Job(FIT, model_at("out.gm")),
    "fit by default": Job([*CHOOSE[:-1], "chosen.gm"], model_at("chosen.gm")),
    "predict": Job(PREDICT, whole_table),
    "predict to stdout": Job(PRINT, nothing_to_see),
    "forecast to stdout": Job(AHEAD, nothing_to_see),
    "compare": Job(COMPARE, whole_runs),
    "save again": Job(SAVE, whole_saved),
}
TEMPORARY = (".gramian-", "gramian-", "tmp")  # how names of temporary files and folders begin


def left_behind(place: Path, temporary: Path | None = None) -> list[str]:
    """Temporary files in a folder and in the folder for them."""
    temporary = place / "tmp" if temporary is None else temporary
    beside = [str(path.relative_to(place)) for path in place.rglob(".gramian-*")]
    return beside + (os.listdir(temporary) if temporary.exists() else [])


def before(place: Path, rng: np.random.Generator) -> None:
    """In half of the attempts there are files of these names already."""
    if rng.random() < 0.5:
        (place / "out.gm").write_bytes(b"before")
        (place / "out.csv").write_bytes(b"before")


def the_rest(ground: Ground, job: Job, place: Path) -> None:
    """The same command once more does all, and leaves nothing but its results."""
    run(job.command, place).check(0)
    if wrong := job.whole(ground, place, True):
        raise Fault(f"once more: {wrong}")
    if left := left_behind(place):
        raise Fault(f"once more: it leaves {', '.join(left)}")


# The kinds. -------------------------------------------------------------------------------------------------


def kill(ground: Ground, place: Path, rng: np.random.Generator) -> tuple[str, int]:
    name = list(JOBS)[rng.integers(len(JOBS))]
    job, after = JOBS[name], float(rng.uniform(0.2, 1.0)) * ground.seconds[name]
    before(place, rng)
    run(job.command, place, after).check(-signal.SIGKILL, 0)
    if wrong := job.whole(ground, place, False):
        raise Fault(f"{name}, after {after:.2f} s: {wrong}")
    the_rest(ground, job, place)
    return f"{name} after {after:.2f} s", 1


def ends(ground: Ground, place: Path, rng: np.random.Generator, number: int, codes: tuple[int, ...]) -> str:
    name = list(JOBS)[rng.integers(len(JOBS) - 1)]  # all but the loop, which is no command
    job, after = JOBS[name], float(rng.uniform(0.2, 1.0)) * ground.seconds[name]
    before(place, rng)
    ended = run(job.command, place, after, number)
    # while Python starts nothing has begun, and while it ends all is done
    idle = not ended.err or not job.whole(ground, place, True)
    ended.check(*codes, *([-number] if idle else []))
    # who presses Ctrl-C has the best so far
    kept = number == signal.SIGINT and ended.code == 0 and name.startswith("fit")
    if kept:
        model = place / job.command[-1]
        ground.load(model).predict_table([[1.0, "north", 0.5]])
    elif wrong := job.whole(ground, place, ended.code == 0):
        raise Fault(f"{name}, after {after:.2f} s: {wrong}")
    if left := left_behind(place):
        raise Fault(f"{name}, after {after:.2f} s: it leaves {', '.join(left)}")
    the_rest(ground, job, place)
    return f"{name} after {after:.2f} s"


def terminate(ground: Ground, place: Path, rng: np.random.Generator) -> tuple[str, int]:
    return ends(ground, place, rng, signal.SIGTERM, (0, 143)), 1


def press(ground: Ground, place: Path, rng: np.random.Generator) -> tuple[str, int]:
    return ends(ground, place, rng, signal.SIGINT, (0, 130)), 1


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[bool]:
    """A folder that has room for so many bytes; False where none can be mounted."""
    folder.mkdir()
    try:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
        mounted = subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def disk(ground: Ground, place: Path, rng: np.random.Generator) -> tuple[str, int]:
    names = ["fit", "predict", "predict to stdout", "compare"]
    name = names[rng.integers(len(names))]
    job, size = JOBS[name], int(4096 * 2 ** rng.uniform(0, 6))
    with small_disk(place / "disk", size) as mounted:
        small = place / "disk"
        for file in ("data.csv", "model.gm"):
            (small / file).symlink_to(place / file)
        if rng.random() < 0.5:
            with contextlib.suppress(OSError):
                (small / "out.gm").write_bytes(b"before")
                (small / "out.csv").write_bytes(b"before")
        limit = f"ulimit -f {max(size // 1024, 1)}; " if not mounted else ""
        elsewhere = place / "tmp"
        temporary = small / "tmp" if mounted and name == "predict to stdout" else elsewhere
        ended = run(["bash", "-c", f"{limit}exec {shlex.join(job.command)}"], small, temporary=temporary)
        ended.check(0, 2)
        if ended.code and not any(word in ended.err for word in (b"full", b"longer than", b"No space")):
            raise Fault(f"{name}, {size} bytes: {told(ended.err)}")
        if wrong := job.whole(ground, small, ended.code == 0):
            raise Fault(f"{name}, {size} bytes: {wrong}")
        if left := left_behind(small, temporary):
            raise Fault(f"{name}, {size} bytes: it leaves {', '.join(left)}")
        if mounted:
            subprocess.run(["mount", "-o", "remount,size=64m", str(small)], check=True)
        the_rest(ground, job, small)
    return f"{name} with room for {size:,} bytes", 1


ENDS = ["> /dev/null", ">&-", "| true", "| head -1", "> /dev/full"]
ERRORS = ["", "2>&-", "2> /dev/full"]
COMMANDS = {
    "help": [*GRAMIAN, "--help"],
    "version": [*GRAMIAN, "--version"],
    "show": [*GRAMIAN, "show", "model.gm"],
    "score": [*GRAMIAN, "score", "model.gm", "data.csv"],
    "plan": [*GRAMIAN, "plan", "data.csv", "-t", "y", "--id", "code"],
    "update": [*GRAMIAN, "update", "model.gm", "data.csv", "-o", "more.gm"],
    "report": [*GRAMIAN, "report", "model.gm", "-o", "page.html"],
    "models": [*GRAMIAN, "models", "data.csv", "-t", "y", "--id", "code"],
    "reduce": [*GRAMIAN, "reduce", "data.csv", "-c", "a,b,y", "-q", "1", "-o", "places.csv"],
    "forecast": [*GRAMIAN, "forecast", "series.csv", "--horizon", "7", "-o", "ahead.csv"],
    "experiments": [*GRAMIAN, "experiment", "--list"],
    "wrong": [*GRAMIAN, "show", "data.csv"],
    **{name: job.command for name, job in JOBS.items()},
}


def streams(ground: Ground, place: Path, rng: np.random.Generator) -> tuple[str, int]:
    names = list(COMMANDS)
    name = names[rng.integers(len(names))]
    end, error, closed = (each[rng.integers(len(each))] for each in (ENDS, ERRORS, ["", "<&-"]))
    line = f"{shlex.join(COMMANDS[name])} {closed} {error} {end}; echo ${{PIPESTATUS[0]}} > code"
    ended = run(["bash", "-c", line], place).check(0)
    code, what = int((place / "code").read_text()), f"{name} {closed} {error} {end}"
    allowed = (2,) if name == "wrong" else (0, 2) if "full" in end else (0, 1) if "|" in end else (0,)
    if code not in allowed:
        raise Fault(f"{what}: exit code {code}: {told(ended.err)}")
    if name in JOBS and (wrong := JOBS[name].whole(ground, place, True)):
        raise Fault(f"{what}: {wrong}")
    if left := left_behind(place):
        raise Fault(f"{what}: it leaves {', '.join(left)}")
    return what, 1


def models(ground: Ground, place: Path, rng: np.random.Generator) -> tuple[str, int]:
    count, seed = 60, int(rng.integers(2**31))
    command = [sys.executable, __file__, "--child", "mutants", "--number", f"{count}", "--seed", f"{seed}"]
    run([*command, "--keep", str(ground.folder)], place).check(0)
    return f"{count} mutants of seed {seed}", count


def layouts(ground: Ground, place: Path, rng: np.random.Generator) -> tuple[str, int]:
    """Files that say of themselves what is not so."""
    content = (place / "model.gm").read_bytes()
    kind, path = rng.integers(5), place / "bad.gm"
    length = int.from_bytes(content[:8], "little")
    if kind == 0:  # damage
        at = rng.integers(len(content), size=int(rng.integers(1, 20)))
        damaged = bytearray(content)
        for k in at:
            damaged[k] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        what = f"bits at {at[:3].tolist()} turned"
    elif kind == 1:
        cut = int(rng.integers(len(content)))
        path.write_bytes(content[:cut])
        what = f"cut off at {cut}"
    elif kind == 2:  # shapes
        head = json.loads(content[8 : 8 + length])
        name = sorted(set(head) - {"__metadata__"})[0]
        shape = [[2**59, 0], [2**62, 4], [0] * 60, [-1], [1] * 5000][rng.integers(5)]
        head[name]["shape"] = shape
        text = json.dumps(head).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
        what = f"a shape of {str(shape)[:30]}"
    elif kind == 3:  # holes
        size = int(2 ** rng.uniform(20, 36))
        path.write_bytes(content[: int(rng.integers(9))])
        os.truncate(path, size)
        what = f"a file of {size:,} bytes that are holes"
    else:
        claimed = int(2 ** rng.uniform(0, 63))
        path.write_bytes(claimed.to_bytes(8, "little") + content[8:])
        what = f"a head of {claimed:,} bytes"
    ended = run([*GRAMIAN, "show", "bad.gm"], place)
    if not (ended.code == 0 and path.read_bytes() == content):
        ended.check(2)
    if ended.peak > ground.peak + SOME + 300 * (os.stat(path).st_blocks * 512):
        raise Fault(f"{what}: {ended.peak / 1e6:.0f} MB at its peak")
    path.unlink()
    return what, 1


# Tables.


def many_columns(place: Path, rng: np.random.Generator) -> None:
    count = 100_000
    with (place / "bad.csv").open("w") as file:
        file.write(",".join(f"c{k}" for k in range(count)) + ",y\n")
        for k in range(3):
            file.write("1," * count + f"{k}\n")


def long_line(place: Path, rng: np.random.Generator) -> None:
    with (place / "bad.csv").open("wb") as file:
        file.write(b"a,y\n" if rng.random() < 0.5 else b"")
        for _ in range(40):
            file.write(bytes([rng.choice(list(b'1x",'))]) * 10**6)


def long_cells(place: Path, rng: np.random.Generator) -> None:
    with (place / "bad.csv").open("w") as file:
        file.write("text,y\n")
        for k in range(500):
            file.write(f"{k}{'x' * int(rng.integers(200_000))},{k}\n")


def packed(place: Path, rng: np.random.Generator) -> None:
    ends_lines = rng.random() < 0.5
    line = b"1.25,2.5,3.75,4.5\n" if ends_lines else b"1.25,2.5,3.75,4.5,"
    with gzip.open(place / "bad.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"a,b,c,y\n")
        for _ in range(150):
            file.write(line * 60_000)  # 160 MB


def endless(place: Path, rng: np.random.Generator) -> None:
    os.mkfifo(place / "bad.csv")
    line = b"1,2,3\n" if rng.random() < 0.7 else b"1,2,3,"

    def feed() -> None:
        with contextlib.suppress(OSError), open(place / "bad.csv", "wb") as pipe:
            pipe.write(b"a,b,y\n")
            while True:
                pipe.write(line * 10_000)

    threading.Thread(target=feed, daemon=True).start()


def escapes(place: Path, rng: np.random.Generator) -> None:
    parts = ["\x1b[2J", "\x1b]0;x\x07", "\x9b31m", "\u202e", "\r", "\x08", "\x00", "ok"]
    names = ["".join(rng.choice(parts, 3)) + str(k) for k in range(4)]
    with (place / "bad.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "y"])
        for k in range(20):
            writer.writerow([*(rng.choice(parts) for _ in range(3)), rng.normal(), k])


def noise(place: Path, rng: np.random.Generator) -> None:
    """Bytes at random, or a table in which some are."""
    if rng.random() < 0.4:
        (place / "bad.csv").write_bytes(rng.bytes(int(2 ** rng.uniform(0, 20))))
        return
    content = bytearray((place / "data.csv").read_bytes())
    for _ in range(int(rng.integers(1, 30))):
        content[int(rng.integers(len(content)))] = int(rng.integers(256))
    (place / "bad.csv").write_bytes(content)


def extremes(place: Path, rng: np.random.Generator) -> None:
    values = ["1e308", "-1e308", "1e-320", "nan", "inf", "0", "1" * 400, "1e160", "", "-", "0x10", "1e9999"]
    with (place / "bad.csv").open("w") as file:
        file.write("a,b,c,y\n")
        for _ in range(int(rng.integers(1, 40))):
            file.write(",".join(rng.choice(values) for _ in range(3)) + f",{rng.choice(values)}\n")


def far_cell(place: Path, rng: np.random.Generator) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["a", "y"])
    for k in range(12):
        book.active.append([k, k * k])
    book.active.cell(int(2 ** rng.uniform(4, 20)), int(2 ** rng.uniform(2, 14)), 3)
    book.save(place / "bad.xlsx")


def parquet(place: Path, rng: np.random.Generator) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    long = ["x" * int(rng.integers(1, 3 * 10**6)) + str(k) for k in range(30)]
    rows = {"t": [long[k % 30] for k in range(300)], "y": np.arange(300.0)}
    pq.write_table(pa.table(rows), place / "bad.parquet", use_dictionary=bool(rng.random() < 0.5))
    if rng.random() < 0.3:
        content = bytearray((place / "bad.parquet").read_bytes())
        for _ in range(3):
            content[-int(rng.integers(1, 2000))] ^= 1 << int(rng.integers(8))
        (place / "bad.parquet").write_bytes(content)


TABLES = (many_columns, long_line, long_cells, packed, endless, escapes, noise, extremes, far_cell, parquet)
CONTROLS = {*range(32), 127} - {9, 10}


def tables(ground: Ground, place: Path, rng: np.random.Generator) -> tuple[str, int]:
    limit = 100 * 10**6
    make = TABLES[rng.integers(len(TABLES))]
    with small_disk(place / "small", 300 * 10**6) as mounted:
        if make is endless and not mounted:
            return "an endless pipe, which needs a disk that may be filled", 0
        make(place, rng)
        name = next(path.name for path in place.iterdir() if path.name.startswith("bad"))
        command = ["fit", "plan", "predict"][rng.integers(3)]
        limits = ["--memory-limit", f"{limit}"]
        command = {
            "fit": [*GRAMIAN, "fit", name, "-t", "y", "-o", "out.gm", "--time-limit", "10", *limits],
            "plan": [*GRAMIAN, "plan", name, "-t", "y", *limits],
            "predict": [*GRAMIAN, "predict", "model.gm", name, "--out", "out.csv"],
        }["fit" if make in (packed, endless, parquet) else command]  # predict has the limit of its model
        # a disk for the pipe without end: in memory, and so within the limit
        ended = run(command, place, temporary=place / "small").check(0, 2)
        what = f"{make.__name__}, {command[3]}"
        if wrong := CONTROLS & set(ended.out + ended.err):
            raise Fault(f"{what}: control characters {sorted(wrong)} are printed")
        # what is spooled to a disk in memory is not the process's own; a fit may take as much again
        if command[3] == "fit" and ended.peak > ground.peak + limit + RECORD + SOME:
            raise Fault(f"{what}: {ended.peak / 1e6:.0f} MB at its peak: {told(ended.err)}")
        if left := left_behind(place, place / "small"):
            raise Fault(f"{what}: it leaves {', '.join(left)}")
    return what, 1


def forks(ground: Ground, place: Path, rng: np.random.Generator) -> tuple[str, int]:
    seed = int(rng.integers(2**31))
    ended = run([sys.executable, __file__, "--child", "fork", "--seed", f"{seed}"], place).check(0)
    return ended.out.decode().strip(), 1


def address_space(ground: Ground, place: Path, rng: np.random.Generator) -> tuple[str, int]:
    seed = int(rng.integers(2**31))
    ended = run([sys.executable, __file__, "--child", "space", "--seed", f"{seed}"], place).check(0)
    return ended.out.decode().strip(), 1


def memory(ground: Ground, place: Path, rng: np.random.Generator) -> tuple[str, int]:
    seed = int(rng.integers(2**31))
    ended = run([sys.executable, __file__, "--child", "memory", "--seed", f"{seed}"], place).check(0)
    return ended.out.decode().strip(), 1


def seconds(ground: Ground, place: Path, rng: np.random.Generator) -> tuple[str, int]:
    seed = int(rng.integers(2**31))
    ended = run([sys.executable, __file__, "--child", "time", "--seed", f"{seed}"], place).check(0)
    return ended.out.decode().strip(), 1


def resume(ground: Ground, place: Path, rng: np.random.Generator) -> tuple[str, int]:
    """A fit with a checkpoint, killed at random moments, again and again until one comes through."""
    case = int(rng.integers(len(RESUMED)))
    command = [sys.executable, __file__, "--child", "resume", "--number", f"{case}"]
    known = ground.folder / f"undisturbed-{case}.json"
    if not known.exists():
        ended = run([*command, "--keep", "nothing"], place).check(0)
        known.write_text(json.dumps([ended.out.decode().split()[0], ended.seconds]))
    digest, whole = json.loads(known.read_text())
    kills = 0
    for _ in range(20):
        after = None if kills == 3 else float(rng.uniform(0.3, 1.0)) * whole
        ended = run(command, place, after).check(0, -signal.SIGKILL)
        kills += ended.code != 0
        if ended.code == 0:
            break
    found, _, told_of = ended.out.decode().strip().partition(" ")
    what = f"{RESUMED[case]}, {kills} kills: {told_of or 'nothing to resume'}"
    if found != digest:
        raise Fault(f"{what}: other numbers")
    if (place / "fit.ck").exists() or left_behind(place):
        raise Fault(f"{what}: it leaves a file")
    return what, kills


KINDS: dict[str, tuple[Callable[[Ground, Path, np.random.Generator], tuple[str, int]], str]] = {
    "kill": (kill, "a file is as before or whole; once more, the same numbers, and temporary files are gone"),
    "term": (terminate, "exit code 143; files as before or whole; nothing temporary; once more, the same"),
    "ctrl-c": (press, "exit code 130, or a model of the best so far that predicts; else as for term"),
    "disk": (disk, "exit code 2 and a word of the disk; files as before or whole; with room, the same"),
    "streams": (streams, "what is written to files is whole; no word but of a full output"),
    "models": (models, "refused, or loads and predicts; in time and memory of its bytes"),
    "layouts": (layouts, "refused with exit code 2, without the memory that the file says it needs"),
    "tables": (tables, "exit code 0 or 2; no control characters; memory within the limit; nothing temporary"),
    "forks": (forks, "the numbers of the parent, or an error of the library"),
    "space": (address_space, "under a limit of the system a model, or a MemoryLimitError"),
    "memory": (memory, "a peak within the memory limit and a quarter, or a MemoryLimitError"),
    "resume": (resume, "a fit with a checkpoint that is killed, again and again, ends with the same bits"),
    "time": (seconds, "a fifth beyond the time limit at most, or two seconds"),
}
WRITE = {"kill", "term", "ctrl-c", "disk", "streams"}  # those that look at what the jobs write


# Children: what runs in a process of its own. ---------------------------------------------------------------


def child_save(given: argparse.Namespace) -> None:
    """Writes two models to one file, in turns."""
    import gramian as gm

    gp = gm.load("model.gm")
    table = np.linspace(0, 1, 12).reshape(4, 3)
    other = gm.GPRegressor(gm.RBF(0.7), noise=0.1, optimize=False).fit(table, table[:, 0])
    for _ in range(60):
        gp.save("saved.gm")
        other.save("saved.gm")


def child_mutants(given: argparse.Namespace) -> None:
    """Model files with changes at random."""
    from tests.modelfile import mutants

    files = Path(given.keep, "mutants")
    if not files.exists():
        made = Path(tempfile.mkdtemp(dir=given.keep))
        mutants.models(made)
        made.rename(files)
    found = mutants.check(sorted(files.glob("*.gm")), Path.cwd(), given.number, given.seed)
    print(dict(found))


def drawn_fit(rng: np.random.Generator, few: bool) -> tuple[Any, Any, Any, str]:
    """An estimator and data at random, and what they are."""
    import gramian as gm

    cases: list[tuple[str, int, Callable[[], Any]]] = [
        ("by default", 4000, lambda: gm.GPRegressor()),
        ("exact", 5000, lambda: gm.GPRegressor("matern52", method="exact")),
        ("vfe", 30_000, lambda: gm.GPRegressor("rbf", method="vfe")),
        ("nystrom", 30_000, lambda: gm.GPRegressor("matern32", method="nystrom")),
        ("fourier", 30_000, lambda: gm.GPRegressor("rbf", method="fourier")),
        ("cg", 4000, lambda: gm.GPRegressor("rbf", method="cg")),
        ("labels", 1500, lambda: gm.GPClassifier()),
        ("ep", 1500, lambda: gm.GPClassifier("rbf", inference="ep")),
        ("three labels", 700, lambda: gm.GPClassifier("rbf")),
        ("ovr", 700, lambda: gm.GPClassifier("rbf", multiclass="ovr")),
        ("poisson", 1500, lambda: gm.GPRegressor("rbf", likelihood="poisson")),
        ("minres", 4000, lambda: gm.GPRegressor("rbf", method="minres")),
        ("fitc", 30_000, lambda: gm.GPRegressor("rbf", method="fitc")),
        ("neighbours", 30_000, lambda: gm.GPRegressor("matern32", method="neighbours")),
        ("states", 100_000, lambda: gm.GPRegressor("matern32", method="statespace")),
        ("svgp", 20_000, lambda: gm.GPRegressor("rbf", method="svgp")),
        ("coupled", 1000, lambda: gm.GPRegressor("rbf", outputs="coupled")),
        ("chained", 1000, lambda: gm.GPRegressor("rbf", outputs="chained")),
        ("layers", 3000, lambda: gm.DeepGPRegressor(steps=50 if few else None)),
        ("layers of labels", 2000, lambda: gm.DeepGPClassifier(steps=50 if few else None)),
        ("places", 800, lambda: gm.GPLatent(1, max_iter=30 if few else 1000)),
        ("forecast", 2000, lambda: gm.GPForecaster()),
    ]
    name, most, made = cases[rng.integers(len(cases))]
    n = int(rng.integers(20, 60 if few else most))
    X = rng.uniform(-3, 3, (n, 1 if name == "states" else int(rng.integers(1, 5))))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, -1] + 0.1 * rng.standard_normal(n)
    y = f
    if name in ("labels", "ep", "layers of labels"):
        y = np.where(f > 0, "yes", "no")
    elif name in ("coupled", "chained"):
        y = np.column_stack([f, np.cos(f)])
    elif name == "places":
        X, y = np.column_stack([X, f, np.cos(f)]), None
    elif name == "forecast":
        X = np.datetime64("2020-01-01") + np.arange(n)
        y = np.sin(np.arange(n) * 2 * np.pi / 7) + 0.1 * rng.standard_normal(n)
    elif name in ("three labels", "ovr"):
        y = np.digitize(f, [-0.5, 0.5])
    elif name == "poisson":
        y = rng.poisson(np.exp(f))
    gp = made()
    further = {"n_restarts": 0} if "n_restarts" in gp.get_params() else {}
    shape = f"{n:,}" if X.ndim == 1 else f"{n:,} x {X.shape[1]}"
    return gp.set_params(random_state=0, **further), X, y, f"{name}, {shape}"


def asked(gp: Any, X: Any) -> Any:
    """What a fit answers to the question that it is there for."""
    if hasattr(gp, "forecast"):
        return np.asarray(gp.forecast(5)["mean"])
    return gp.transform(X) if hasattr(gp, "embedding_") else gp.predict(X)


def child_fork(given: argparse.Namespace) -> None:
    """Fits, forks, and asks in the child."""
    import gramian as gm

    warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)  # as JAX says
    rng = np.random.default_rng(given.seed)
    gp, X, y, what = drawn_fit(rng, few=True)
    gp.fit(X, y)
    known = asked(gp, X)
    again = rng.random() < 0.3
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = asked(gp.fit(X, y) if again else gp, X)
            good = np.array_equal(answer, known) or np.allclose(answer, known, rtol=1e-6, atol=1e-9)
            said = "the same numbers" if good else "OTHER NUMBERS"
        except gm.GramianError as error:
            said = f"refused: {type(error).__name__}"
        except BaseException:
            said = traceback.format_exc()
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    began = time.monotonic()
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if time.monotonic() - began > HANG / 3:
            os.kill(pid, signal.SIGKILL)
            sys.exit(f"{what}: the child hangs")
        time.sleep(0.01)
    said = os.read(reading, 10_000).decode()
    print(f"{what}, {'fitted' if again else 'predicted'} in a fork: {said}")
    if said.startswith(("OTHER", "Traceback")):
        sys.exit(said)


def child_space(given: argparse.Namespace) -> None:
    """Fits under a limit on the address space."""
    from gramian.errors import MemoryLimitError

    rng = np.random.default_rng(given.seed)
    gp, X, y, what = drawn_fit(rng, few=False)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    room = int(2 ** rng.uniform(26, 31))
    resource.setrlimit(resource.RLIMIT_AS, (now + room, now + room))
    gp.set_params(time_limit=15)
    what = f"{what} with {room / 1e6:.0f} MB of addresses"
    try:
        asked(gp.fit(X, y), X[:10])
        print(f"{what}: fitted")
    except MemoryLimitError:
        print(f"{what}: refused")


def child_memory(given: argparse.Namespace) -> None:
    """Fits under a memory limit, which is one of arrays: the first fit, which imports and compiles (one by
    default with inducing points grew by 205 MB that stayed), is not what is measured."""
    from gramian.errors import MemoryLimitError

    rng = np.random.default_rng(given.seed)
    gp, X, y, what = drawn_fit(rng, few=False)
    limit = int(2 ** rng.uniform(22, 29))
    gp.set_params(time_limit=15, memory_limit=limit)
    what = f"{what} within {limit / 1e6:.0f} MB"
    try:
        gp.fit(X, y)  # imports, and compiles
        base = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
        gp.fit(X, y)
    except MemoryLimitError:
        print(f"{what}: refused")
        return
    taken = peak_of("self") - base
    print(f"{what}: took {taken / 1e6:.0f} MB")
    if taken > 1.25 * limit + SOME:
        sys.exit(f"{what}: took {taken / 1e6:.0f} MB")


def child_time(given: argparse.Namespace) -> None:
    """Fits under a time limit."""
    rng = np.random.default_rng(given.seed)
    gp, X, y, what = drawn_fit(rng, few=False)
    limit = float(np.round(rng.uniform(1, 6), 1))
    gp.set_params(time_limit=limit)
    began = time.monotonic()
    gp.fit(X, y)
    taken = time.monotonic() - began
    # beside others who are at work all takes longer, what was foreseen and what was not
    busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    what = f"{what}, {limit} s asked, {taken:.1f} s taken (load {busy:.1f})"
    print(what)
    if taken > busy * max(1.2 * limit, limit + 2):
        sys.exit(what)


RESUMED = ("search", "path", "ep", "batches", "layers", "chains", "chains of classes", "places")


def child_resume(given: argparse.Namespace) -> None:
    """Fits with a checkpoint, and prints a digest of the predictions and what it went on from."""
    import hashlib

    import gramian as gm

    rng, name = np.random.default_rng(11), RESUMED[given.number]
    n = {"batches": 4000, "layers": 400, "places": 150, "ep": 300}.get(name, 120 if "chains" in name else 600)
    X = rng.normal(size=(n, 4))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2
    y = f + 0.1 * rng.normal(size=n)
    chains = gm.MCMC(2, warmup=100, draws=150, rounds=1)
    cases: dict[str, Callable[[], Any]] = {
        "search": lambda: gm.GPRegressor("matern52", n_restarts=3),
        "path": lambda: gm.GPRegressor(),
        "ep": lambda: gm.GPClassifier("rbf", inference="ep"),
        "batches": lambda: gm.GPRegressor(
            "rbf", likelihood="poisson", method=gm.SVGP(60, batch_size=256, steps=1000)
        ),
        "layers": lambda: gm.DeepGPRegressor(n_inducing=30, steps=400, batch_size=128),
        "chains": lambda: gm.GPRegressor("rbf", hyper="mcmc", inference=chains),
        "chains of classes": lambda: gm.GPClassifier("rbf", inference=chains),
        "places": lambda: gm.GPLatent(2, n_inducing=15, max_iter=150),
    }
    gp = cases[name]().set_params(random_state=0, checkpoint=None if given.keep else "fit.ck", verbose=False)
    if name in ("ep", "chains of classes"):
        y = f > np.median(f)
    elif name == "batches":
        y = rng.poisson(np.exp(0.5 * f))
    gp.fit(X, y)
    answer = gp.embedding_ if name == "places" else gp.predict_table(X)
    parts = [answer] if name == "places" else list(answer.values())
    digest = hashlib.sha256(b"".join(np.asarray(part).tobytes() for part in parts)).hexdigest()
    resumed = [line for line in gp.outcome_.stages if line.startswith("resumed")]
    print(digest, *resumed)


CHILDREN = {
    "resume": child_resume,
    "save": child_save,
    "mutants": child_mutants,
    "fork": child_fork,
    "space": child_space,
    "memory": child_memory,
    "time": child_time,
}


# The table. -------------------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="after which no attempt begins")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help=f"some of {', '.join(KINDS)}, with commas between")
    parser.add_argument("--keep", help="where folders of attempts that failed stay; by default a new one")
    parser.add_argument("--verbose", action="store_true", help="a line for each attempt")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        CHILDREN[given.child](given)
        return 0
    chosen = [name for name in given.only.split(",") if name] or list(KINDS)
    if unknown := [name for name in chosen if name not in KINDS]:
        parser.error(f"there is no kind {unknown[0]!r}; there are {', '.join(KINDS)}")
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    if given.keep:
        Path(given.keep).mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="gramian-faults-", dir=given.keep))
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; folders are in {folder}", flush=True)
    tried, failed = dict.fromkeys(chosen, 0), {name: [] for name in chosen}
    ground, number = Ground(folder, not WRITE.isdisjoint(chosen)), 0
    end = time.monotonic() + 60 * given.minutes
    while time.monotonic() < end:
        for name in chosen:
            if time.monotonic() >= end:
                break
            rng = np.random.default_rng([given.seed, list(KINDS).index(name), number])
            place = ground.place(f"{name}-{number}")
            try:
                what, count = KINDS[name][0](ground, place, rng)
                tried[name] += count
                shutil.rmtree(place)
            except Fault as fault:
                what = f"FAILED: {fault}"
                tried[name] += 1
                failed[name].append(f"{place.name}: {fault}")
                print(f"{place.name}: {fault}", flush=True)
            if given.verbose:
                print(f"  {name} {number}: {what}", flush=True)
        number += 1
    print(f"\n{'kind':<10}{'tried':>8}{'survived':>10}  what survived means")
    for name in chosen:
        print(f"{name:<10}{tried[name]:>8}{tried[name] - len(failed[name]):>10}  {KINDS[name][1]}")
    lines = [line for name in chosen for line in failed[name]]
    print(f"\nseed {given.seed}, {sum(tried.values()):,} attempts, {len(lines)} failed")
    print("".join(f"  {line}\n" for line in lines), end="")
    if not lines:
        shutil.rmtree(folder)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
