"""Reading within the memory limit: the peak of a process above what it had before it read stays below
memory_limit + FLOOR, whatever the file; what cannot be held is refused, with the file and the line."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import gramian
from gramian.data import deciding, spool
from gramian.data.cells import text_cells
from gramian.data.deciding import Seen
from gramian.data.numerals import shape_of
from gramian.data.sources import open_source
from gramian.data.spool import FLOOR, Room
from gramian.data.tables import read_blocks, read_table
from gramian.errors import InputError, MemoryLimitError, TableError

LIMIT = 60 * 10**6
PEAK = """
import resource, sys
import pyarrow.csv, pyarrow.parquet
from gramian.data.sources import open_source
from gramian.errors import GramianError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    told = open_source(sys.argv[1], "y", memory_limit=int(sys.argv[2])).X.shape
except GramianError as error:
    told = type(error).__name__, str(error)
print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
print(*told)
"""


def peak_of(path, limit=LIMIT) -> tuple[int, str]:
    """The bytes that a fresh process takes to read a file, and the shape of its rows, or the error."""
    source = str(Path(gramian.__file__).parents[1])
    command = [sys.executable, "-c", PEAK, str(path), str(limit)]
    found = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": source}, timeout=300
    )
    assert found.returncode == 0, found.stderr
    taken, told = found.stdout.split("\n", 1)
    return int(taken), told.strip()


def numbers(rows: int = 250_000) -> str:
    values = np.random.default_rng(0).standard_normal((1000, 4))
    lines = "".join(",".join(f"{v:.15g}" for v in row) + "\n" for row in values)
    return "a,b,c,y\n" + lines * (rows // 1000)


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux alone")
class TestPeaks:
    def test_of_numbers(self, tmp_path):
        pytest.importorskip("pyarrow")
        (tmp_path / "quick.csv").write_text(numbers())
        (tmp_path / "quoted.csv").write_text(numbers() + '"1",2,3,4\n')
        for name, rows in (("quick", 250_000), ("quoted", 250_001)):
            taken, told = peak_of(tmp_path / f"{name}.csv")
            assert told == f"{rows} 3"
            assert taken < LIMIT + FLOOR

    def test_of_words_and_dates(self, tmp_path):
        pytest.importorskip("pyarrow")
        days = np.datetime64("2001-01-01") + np.arange(1000)
        lines = "".join(f'{day},town {k % 700},"$1,{k:03d}.50",{k}\n' for k, day in enumerate(days))
        (tmp_path / "d.csv").write_text("when,where,price,y\n" + 80 * lines)
        taken, told = peak_of(tmp_path / "d.csv")
        assert told == "80000 3"
        assert taken < LIMIT + FLOOR

    def test_of_packed_text_that_does_not_end_its_line(self, tmp_path):
        pytest.importorskip("pyarrow")
        with gzip.open(tmp_path / "d.csv.gz", "wb") as file:
            file.write(b"a,b,y\n")
            for _ in range(100):
                file.write(b"1,22,333," * 100_000)  # 90 MB
        taken, told = peak_of(tmp_path / "d.csv.gz")
        assert "d.csv.gz, line 2: the line does not end within 2 MB" in told
        assert told.startswith("MemoryLimitError")
        assert taken < LIMIT + FLOOR

    def test_of_long_cells(self, tmp_path):
        pytest.importorskip("pyarrow")
        lines = "".join(f"{k}\N{GRINNING FACE}{'x' * 20_000},{k}\n" for k in range(5000))  # 100 MB
        (tmp_path / "d.csv").write_text("text,y\n" + lines)
        taken, told = peak_of(tmp_path / "d.csv")
        assert "d.csv, line " in told
        assert "the different texts so far" in told
        assert taken < LIMIT + FLOOR


def test_a_line_without_end_is_refused_without_a_limit_too(tmp_path):
    (tmp_path / "d.csv").write_text("a,y\n" + "1,2," * (spool.LINE // 2))
    with pytest.raises(TableError, match=r"d\.csv, line 2: the line does not end within 16\.8 MB"):
        list(read_blocks(tmp_path / "d.csv"))


def test_a_row_whose_quoted_lines_do_not_end_is_refused(tmp_path):
    (tmp_path / "d.csv").write_text("a,y\n" + '"1\n",' * 2**20)
    with pytest.raises(MemoryLimitError, match=r"d\.csv, line 2: the line does not end within 2 MB"):
        list(read_blocks(tmp_path / "d.csv", room=Room(LIMIT)))


def test_blocks_are_as_large_as_the_limit_allows(tmp_path):
    (tmp_path / "d.csv").write_text("a,b,y\n" + "1,2,3\n" * 100_000)
    small, large = Room(FLOOR), Room(10**9)
    assert max(len(block) for block in read_blocks(tmp_path / "d.csv", room=small)) == small.cells // 3
    assert max(len(block) for block in read_blocks(tmp_path / "d.csv", room=large)) == 65_536
    (tmp_path / "d.csv").write_text("a,y\n" + ("x" * 100_000 + ",1\n") * 200)
    longest = max(len(block) for block in read_blocks(tmp_path / "d.csv", room=small))
    assert 1 < longest <= small.text / 100_000 + 20  # the parser reads a chunk ahead
    tables = list(read_blocks(tmp_path / "d.csv", room=small))
    assert [table.first for table in tables] == np.cumsum([0, *map(len, tables)])[:-1].tolist()


def test_a_stream_is_read_as_a_file_and_refused_where_there_is_no_room(tmp_path, monkeypatch):
    def feed(path, times):
        try:
            with open(path, "wb") as pipe:
                pipe.write(b"a,b,y\n")
                for _ in range(times):
                    pipe.write(b"1,2,3\n" * 10_000)
        except BrokenPipeError:
            pass  # the reader has left

    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)

    def read(times):
        feeding = threading.Thread(target=feed, args=(pipe, times))
        feeding.start()
        try:
            return open_source(pipe, "y")
        finally:
            feeding.join(60)

    assert read(3).X.shape == (30_000, 2)
    free = iter([10**9] * 2 + [spool.LEFT_FREE] * 100)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=next(free)))
    with pytest.raises(InputError, match=r"pipe\.csv, line \d+: The folder for temporary files.*nearly full"):
        read(10**6)


def test_where_the_folder_is_in_memory_a_file_is_refused_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(spool, "is_in_memory", lambda folder: True)
    (tmp_path / "d.csv").write_text('a,b,y\n"1",2,3\n' + "1,2,3\n" * 300_000)
    with pytest.raises(MemoryLimitError, match=r"d\.csv, line \d+: Reading the data.*is a tmpfs"):
        open_source(tmp_path / "d.csv", "y", memory_limit=10**6)


def test_shapes_of_texts_are_few(monkeypatch):
    """Those of words are one, and of others so many are told apart; a long text is not searched for a
    number, which takes the square of its length."""
    assert shape_of("word") == shape_of("x" * 200_000 + "1") == ""
    monkeypatch.setattr(deciding, "MOST_SHAPES", 5)
    seen = Seen()
    seen.add(text_cells([f"{'a' * k}-1" for k in range(1, 40)]))
    assert len(seen.shapes) == 6
    assert seen.shapes.total() == 39


def bomb(path, chunks: int, lie: bool = False):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("[Content_Types].xml", "<Types/>")
        with book.open("xl/worksheets/sheet1.xml", "w") as file:
            for _ in range(chunks):
                file.write(b"<c/>" * 250_000)
    if lie:  # of sizes, where the directory has them
        raw = bytearray(path.read_bytes())
        at = raw.rindex(b"PK\1\2")
        raw[at + 24 : at + 28] = (1000).to_bytes(4, "little")
        path.write_bytes(raw)


@pytest.mark.parametrize("lie", [False, True])
def test_a_workbook_that_is_too_large_unpacked_is_refused(tmp_path, lie):
    pytest.importorskip("python_calamine")
    bomb(tmp_path / "d.xlsx", 30, lie)
    assert (tmp_path / "d.xlsx").stat().st_size < 10**6
    with pytest.raises(MemoryLimitError, match=r"d\.xlsx: a workbook of 7\.\d+ MB or more.*as CSV"):
        open_source(tmp_path / "d.xlsx", "y", memory_limit=LIMIT)


def test_a_sheet_with_one_cell_far_away_is_refused(tmp_path):
    pytest.importorskip("python_calamine")
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["a", "y"])
    book.active.append([1, 2])
    book.save(tmp_path / "near.xlsx")
    assert read_table(tmp_path / "near.xlsx").numbers("y").tolist() == [2.0]
    book.active.cell(1_048_576, 16_384, 3)
    book.save(tmp_path / "far.xlsx")
    with pytest.raises(MemoryLimitError, match=r"far\.xlsx: a sheet of 17,179,869,184 cells"):
        read_table(tmp_path / "far.xlsx")


def sheet(path, rows, empty=0):
    """An OpenDocument file with a header and one row of two cells that is repeated, then empty ones."""
    cell = '<table:table-cell office:value-type="{}"{}><text:p>{}</text:p></table:table-cell>'
    header = "".join(cell.format("string", "", name) for name in ("a", "y"))
    number = cell.format("float", ' office:value="1.5" table:number-columns-repeated="2"', "1.5")
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    last = f'<table:table-row table:number-rows-repeated="{empty}"><table:table-cell/></table:table-row>'
    body = (
        f"<table:table-row>{header}</table:table-row>"
        f'<table:table-row table:number-rows-repeated="{rows}">{number}</table:table-row>'
        + (last if empty else "")
    )
    content = (
        f"<office:document-content {names}><office:body><office:spreadsheet>"
        f'<table:table table:name="S">{body}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        book.writestr("content.xml", content)
        book.writestr("META-INF/manifest.xml", "<manifest/>")


def test_a_row_that_stands_for_a_million_counts_as_a_million(tmp_path):
    pytest.importorskip("python_calamine")
    sheet(tmp_path / "d.ods", 1_000_000)
    assert (tmp_path / "d.ods").stat().st_size < 2000
    with pytest.raises(MemoryLimitError, match=r"d\.ods: a sheet of 2,000,002 cells"):
        open_source(tmp_path / "d.ods", "y", memory_limit=LIMIT)


def test_empty_rows_up_to_the_end_of_a_sheet_take_nothing(tmp_path):
    pytest.importorskip("python_calamine")
    sheet(tmp_path / "d.ods", 3, empty=1_048_000)
    assert open_source(tmp_path / "d.ods", "y", memory_limit=LIMIT).Y.ravel().tolist() == [1.5] * 3


def test_long_texts_of_parquet_are_read_in_short_blocks(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = [f"{k:05d}" + "x" * 10_000 for k in range(2000)]
    pq.write_table(
        pa.table({"t": texts, "y": np.arange(2000.0)}), tmp_path / "d.parquet", use_dictionary=False
    )
    room = Room(LIMIT)
    assert max(map(len, read_blocks(tmp_path / "d.parquet", room=room))) <= room.text / 10_000


def test_equal_texts_of_parquet_are_there_once(tmp_path):
    """270 MB of cells, two of them different, beside empty ones."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1] * 300), ["a" * 300_000, "b" * 300_000])
    pq.write_table(pa.table({"t": texts.cast(pa.string()), "y": np.arange(1200.0)}), tmp_path / "d.parquet")
    cells = [cell for block in read_blocks(tmp_path / "d.parquet") for cell in block.columns["t"]]
    assert [cell[:1] for cell in cells] == ["a", "b", "", "b"] * 300
    taken, told = peak_of(tmp_path / "d.parquet")
    assert told == "1200 2"
    assert taken < LIMIT + FLOOR


@pytest.mark.parametrize("dictionary", [True, False])
def test_pages_of_parquet_that_are_too_large_unpacked_are_refused(tmp_path, dictionary):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = [f"{k:02d}" + "x" * 10**6 for k in range(60)]  # in one page, of a few kilobytes in the file
    table = pa.table({"t": texts, "y": np.arange(60.0)})
    pq.write_table(table, tmp_path / "d.parquet", use_dictionary=dictionary)
    taken, told = peak_of(tmp_path / "d.parquet")
    assert "one page of each column at a time, would take 180 MB" in told
    assert taken < LIMIT + FLOOR


@pytest.mark.parametrize(
    ("start", "endless", "words"),
    [
        (b"a,b,y\n", b"1,2,3\n", r"line \d+: one number of each of these [\d,]+ rows would take 64\.\d MB"),
        (b"a,b,y\n", b"1,2,3,", r"line 2: the line does not end within 2"),
        (b"", b"a,", r"line 1: the line does not end within 2"),
        (b'a,y\n"', b"x\n", "one number of each"),
    ],
    ids=["rows", "line", "header", "quote"],
)
def test_a_stream_without_end_is_refused_before_the_disk_is_full(tmp_path, start, endless, words):
    pipe, sent = tmp_path / "pipe.csv", []

    def feed():
        try:
            with open(pipe, "wb", buffering=0) as file:
                file.write(start)
                while True:
                    sent.append(file.write(endless * (2**18 // len(endless))))
        except BrokenPipeError:
            pass  # the reader has left

    os.mkfifo(pipe)
    feeding = threading.Thread(target=feed)
    feeding.start()
    with pytest.raises(MemoryLimitError, match=words):
        open_source(pipe, "y", memory_limit=4 * 10**6)
    feeding.join(60)
    assert sum(sent) < 100e6


def test_a_whole_table_counts_against_the_limit(tmp_path, monkeypatch):
    """Of what is read as a whole: series, and tables that predictions are compared with."""
    monkeypatch.setattr(spool, "FLOOR", 10**6)
    limit = 10**6
    days = np.arange(12_000) + np.datetime64("1990-01-01")
    (tmp_path / "d.csv").write_text("date,y\n" + "".join(f"{day},{k % 7}.5\n" for k, day in enumerate(days)))
    assert len(read_table(tmp_path / "d.csv")) == 12_000
    told = r"d\.csv, line \d{4}: to hold all cells up to here would take 1.* \(memory_limit=1000000\)"
    with pytest.raises(MemoryLimitError, match=told):
        read_table(tmp_path / "d.csv", limit)
    with pytest.raises(MemoryLimitError, match="to hold all cells up to here"):
        gramian.GPForecaster(memory_limit=limit).fit(tmp_path / "d.csv")
    gp = gramian.GPRegressor("rbf", optimize=False, memory_limit=limit).fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(MemoryLimitError, match="to hold all cells up to here"):
        gp.evaluate(tmp_path / "d.csv", "y")
