"""Files that change while they are read, and files that are not there for the most part."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import gramian as gm
from gramian.errors import ModelFileError
from gramian.modelfile import layout, load

# loads a file that is cut off when its first array is about to be read
CUT = """
import os, sys
from gramian.errors import ModelFileError
from gramian.modelfile import layout, load

path, left = sys.argv[1], int(sys.argv[2])
before = layout.memory.check_memory

def check_memory(needed, limit, what, cure):
    before(needed, limit, what, cure)
    if what == "This model":
        os.truncate(path, left)

layout.memory.check_memory = check_memory
try:
    load(path)
except ModelFileError as error:
    print(error)
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Of 200 rows: 160 kB, so that a part of it lies beyond the buffer of the file."""
    X = np.random.default_rng(0).normal(size=(200, 1))
    gm.GPRegressor(gm.RBF(0.5), noise=0.1, optimize=False).fit(X, X[:, 0]).save(tmp_path / "m.gm")
    return tmp_path / "m.gm"


@pytest.mark.parametrize("share", [0.0, 0.2, 0.9])
def test_a_file_that_is_cut_off_while_it_is_loaded_is_refused(share: float, model: Path) -> None:
    left = int(share * model.stat().st_size)
    run = subprocess.run(
        [sys.executable, "-c", CUT, model, str(left)], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr  # a map of the file would end it by a signal, SIGBUS
    assert "changed while it was read" in run.stdout


def test_a_file_that_is_written_to_while_it_is_loaded_is_refused(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(file: object, size: int) -> None:
        content = bytearray(model.read_bytes())
        content[-100_000:] = bytes(100_000)
        model.write_bytes(content)
        os.utime(model, (1, 1))  # whatever the clock's tick

    monkeypatch.setattr(layout, "_check_holes", write)
    with pytest.raises(ModelFileError, match="changed while it was read"):
        load(model)


def sparse(path: Path, model: Path, numbers: int) -> Path:
    """The model with an array of so many zeros more, as a hole in the file, and a right checksum."""
    content = model.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    metadata = header["__metadata__"]
    stop = len(data)
    header["zeros"] = {"dtype": "F64", "shape": [numbers], "data_offsets": [stop, stop + 8 * numbers]}
    digest = hashlib.sha256()
    for name in ("version", "library", "document"):
        digest.update(f"{metadata[name]}\n".encode())
    for name in sorted(set(header) - {"__metadata__"}):
        start, end = header[name]["data_offsets"]
        digest.update(f"{name} {header[name]['shape']}\n".encode())
        if name == "zeros":
            for _ in range(start, end, 2**23):
                digest.update(bytes(2**23))
        else:
            digest.update(data[start:end])
    metadata["sha256"] = digest.hexdigest()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)
        file.truncate(file.tell() + 8 * numbers)
    return path


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="this system does not tell holes")
def test_a_file_that_is_a_hole_takes_no_memory(model: Path, tmp_path: Path) -> None:
    path = sparse(tmp_path / "n.gm", model, 2**25)  # 256 MB, of which 160 kB are there
    if path.stat().st_blocks * 512 > 2**27:
        pytest.skip("a file system without holes")
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=r"269 MB long, of which .* are there: the rest are holes"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


def test_a_file_that_is_looked_through_for_holes_loads_as_any_other(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = load(model).predict([[0.1], [0.7]], return_std=True)
    monkeypatch.setattr(layout, "_HOLES", 0)
    np.testing.assert_array_equal(load(model).predict([[0.1], [0.7]], return_std=True), expected)


def test_small_holes_are_zeros(model: Path, tmp_path: Path) -> None:
    """As `cp --sparse` makes them of zeros that were written."""
    with pytest.raises(ModelFileError, match="'zeros' of shape"):
        load(sparse(tmp_path / "n.gm", model, 2**20))
