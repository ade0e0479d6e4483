"""Parquet files that are damaged are refused: no process ends, nothing is allocated that only they speak of,
and what the footer says of sizes is what pyarrow says of them in files that are whole."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gramian
from gramian.data.pieces import in_pieces
from gramian.data.sources import open_source
from gramian.data.tables import read_table
from gramian.data.tables.footer import groups_of
from gramian.errors import GramianError, MemoryLimitError, TableError
from gramian.linalg.executor import Threads

pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

KINDS = {
    "as it is": {},
    "without dictionaries": {"use_dictionary": False},
    "row groups": {"row_group_size": 13, "compression": "zstd", "write_page_index": True},
    "small pages": {"data_page_size": 100, "use_dictionary": False, "write_batch_size": 8},
    "first version": {"version": "1.0", "compression": "gzip", "store_decimal_as_integer": True},
    "second pages": {"data_page_version": "2.0", "write_page_checksum": True},
}


def content(**how) -> bytes:
    n = 60
    table = pa.table(
        {
            "name": [f"w{k % 7}" for k in range(n)],
            "count": pa.array([None if k % 9 == 0 else k for k in range(n)], pa.int64()),
            "x": np.random.default_rng(0).normal(size=n),
            "y": np.arange(n, dtype=float),
        }
    )
    out = io.BytesIO()
    pq.write_table(table, out, **how)
    return out.getvalue()


@pytest.mark.parametrize("how", KINDS.values(), ids=KINDS)
def test_sizes_are_those_that_pyarrow_tells(tmp_path, how):
    path = tmp_path / "d.parquet"
    path.write_bytes(content(**how))
    metadata, groups = pq.read_metadata(path), groups_of(os.fspath(path))
    assert len(groups) == metadata.num_row_groups
    for k, group in enumerate(groups):
        known = metadata.row_group(k)
        assert (group.rows, group.size) == (known.num_rows, known.total_byte_size)
        for j, column in enumerate(group.columns):
            other = known.column(j)
            assert (column.path, column.values) == (other.path_in_schema, other.num_values)
            assert column.is_text == (other.physical_type == "BYTE_ARRAY")
            assert (column.listed > 0) == other.has_dictionary_page
            heads = other.total_uncompressed_size - column.listed - column.rest  # of pages count there, too
            assert 0 < heads < 80 * (2 + column.rest // 60)
            assert 0 < column.largest <= column.rest


EACH = """
import sys, warnings
from pathlib import Path
from gramian.data.pieces import in_pieces
from gramian.data.sources import open_source
from gramian.errors import GramianError
warnings.simplefilter("error")
path, count = Path(sys.argv[1]), 0
raw = path.read_bytes()
for at in range(len(raw)):
    for change in (2, 128):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ change]) + raw[at + 1:])
        try:
            open_source(path, "y", memory_limit="200MB")
        except GramianError:
            count += 1
print(count)
"""


def test_no_byte_ends_the_process(tmp_path):
    """pyarrow 26 ends it where numbers of definition or repetition levels are wrong, if one asks it for the
    columns of a row group. Other bytes make numbers of texts that are not there, and texts that are none."""
    path = tmp_path / "d.parquet"
    rows = {"t": ["a", "b", None] * 4, "y": np.arange(12.0)}
    pq.write_table(pa.table(rows), path, store_schema=False, compression="none")
    source = {"PYTHONPATH": str(Path(gramian.__file__).parents[1])}
    told = subprocess.run(
        [sys.executable, "-c", EACH, str(path)],
        capture_output=True,
        text=True,
        env=os.environ | source,
        timeout=300,
    )
    assert told.returncode == 0, told.stderr[-2000:]
    assert int(told.stdout) > 300


def test_damaged_tables_in_pieces_are_refused(tmp_path):
    path, refused = tmp_path / "d.parquet", 0
    pq.write_table(pa.table({"a": np.arange(10.0), "y": np.arange(10.0)}), path, compression="none")
    raw = path.read_bytes()
    for at in range(0, len(raw), 9):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 128]) + raw[at + 1 :])
        try:
            in_pieces(path, "y", Threads(), "fill")
        except GramianError as error:
            refused += "cannot be read as Parquet" in str(error)
    assert refused > 5


def varint(value: int) -> bytes:
    return bytes([*(value >> shift & 127 | 128 for shift in (0, 7, 14, 21)), value >> 28])


@pytest.mark.parametrize(
    ("which", "words"),
    [
        (0, r"one page of each column at a time, would take 6\.\d+ GB"),  # unpacked
        (1, "a page ends beyond the end of the file"),  # packed
    ],
)
def test_pages_that_say_to_be_large_are_refused_before_there_is_room_for_them(tmp_path, which, words):
    """Room for two gigabytes was made, and filled with zeros."""
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"y": np.arange(10.0)}), path, use_dictionary=False, compression="none")
    raw = path.read_bytes()
    # the head of a page: field 1, its type, which is 0; fields 2 and 3, its sizes, of two bytes each
    assert (raw[4:7], raw[9]) == (b"\x15\x00\x15", 0x15)
    sizes = [raw[7:9], raw[10:12]]
    sizes[which] = varint(2 * (2**31 - 1))
    # as long as before, so that what the footer says holds
    end = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    path.write_bytes(raw[:7] + sizes[0] + b"\x15" + sizes[1] + raw[12 : end - 3] + raw[end:])
    with pytest.raises((TableError, MemoryLimitError), match=words):
        open_source(path, "y", memory_limit="500MB")


def test_a_dictionary_with_more_entries_than_bytes_is_refused(tmp_path):
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"y": [1.0, 2.0] * 30}), path, compression="none")
    raw = path.read_bytes()
    at = raw.index(b"\x4c\x15\x04")  # a struct four fields on, whose first field is two entries
    path.write_bytes(raw[: at + 2] + b"\x7e" + raw[at + 3 :])
    with pytest.raises(TableError, match="a dictionary has more entries than bytes"):
        read_table(path)
