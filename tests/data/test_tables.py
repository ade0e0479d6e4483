"""Tables: what is written is what is read, ids keep their text, and every damaged file is refused with its
place and a cure."""

from __future__ import annotations

import errno
import gzip
import math
import os
import stat
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gramian.data.atomic import atomic_write
from gramian.data.tables import SUFFIXES, WRITTEN, Table, read_blocks, read_table, write_blocks, write_table
from gramian.data.tables.header import is_foot
from gramian.errors import ModelFileError, TableError

TEXT_SUFFIXES = [suffix for suffix in WRITTEN if suffix not in (".parquet", ".pq")]


def table_of(folder: Path, content: str | bytes, name: str = "data.csv") -> Table:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table(path)


def refusal(folder: Path, content: str | bytes, name: str = "data.csv") -> str:
    """The message with which a file is refused; it always names the file and ends with a sentence (the
    cure)."""
    with pytest.raises(TableError) as caught:
        table_of(folder, content, name)
    message = str(caught.value)
    assert str(folder / name) in message
    assert message.endswith((".", ")."))
    return message


# What is written is what is read

# csv text: everything but NUL and lone surrogates, which UTF-8 text cannot hold
texts = st.text(
    st.one_of(
        st.sampled_from("\",;\t\r\n '\ufeff\u2028#é"),
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
    )
)
names = st.lists(texts.map(str.strip).filter(bool), min_size=1, max_size=4, unique=True)


@st.composite
def tables(draw):
    header = draw(names)
    n = draw(st.integers(1, 5))
    column = st.one_of(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=n, max_size=n).map(np.array),
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n, max_size=n).map(
            lambda values: np.array(values, dtype=np.int64)
        ),
        st.lists(texts, min_size=n, max_size=n).map(lambda values: np.array(values, dtype=object)),
    )
    columns = {name: draw(column) for name in header}
    assume(not is_foot([str(column[-1]) for column in columns.values()], len(header)))  # which is left out
    return header, columns


@pytest.mark.parametrize("suffix", WRITTEN)
@settings(deadline=None)  # fsync and the import of pyarrow take what they take
@given(table=tables())
def test_what_is_written_is_what_is_read(tmp_path_factory, suffix, table):
    header, columns = table
    path = tmp_path_factory.getbasetemp() / f"round{suffix}"
    write_table(path, header, columns)
    back = read_table(path)
    assert back.names == tuple(header)
    for name, column in columns.items():
        if column.dtype == object:
            assert back.text(name).tolist() == column.tolist()
        else:
            assert back.text(name).tolist() == [repr(value) for value in column.tolist()]
            # bit by bit: -0.0 is not 0.0
            assert back.numbers(name).tobytes() == column.astype(np.float64).tobytes()


@pytest.mark.parametrize("suffix", TEXT_SUFFIXES)
@settings(deadline=None)
@given(table=tables())
def test_a_table_read_and_written_again_is_the_same_file(tmp_path_factory, suffix, table):
    first, second = (tmp_path_factory.getbasetemp() / f"{name}{suffix}" for name in ("first", "second"))
    write_table(first, *table)
    back = read_table(first)
    write_table(second, back.names, back.columns)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_of_every_kind_are_written(tmp_path, suffix):
    path = tmp_path / f"kinds{suffix}"
    columns = {
        "single": np.array([0.1, math.nan], dtype=np.float32),
        "count": [1, 2],
        "name": np.array(["a", "b"]),
        "maybe": np.array(["x", None], dtype=object),
        "day": np.array(["2024-02-29", "2024-03-01"], dtype="datetime64[ns]"),
    }
    write_table(path, list(columns), columns)
    back = read_table(path)
    assert back.numbers("single", missing="nan")[0] == float(np.float32(0.1))
    assert math.isnan(back.numbers("single", missing="nan")[1])
    assert back.text("count").tolist() == ["1", "2"]
    assert back.text("name").tolist() == ["a", "b"]
    assert back.text("maybe").tolist() == ["x", ""]
    assert [day[:10] for day in back.text("day")] == ["2024-02-29", "2024-03-01"]


def test_names_choose_and_order_the_columns(tmp_path):
    write_table(tmp_path / "some.csv", ["c", "a"], {"a": [1], "b": [2], "c": [3]})
    assert (tmp_path / "some.csv").read_text() == "c,a\n3,1\n"


def test_rows_beyond_one_block_are_all_written(tmp_path, monkeypatch):
    monkeypatch.setattr("gramian.data.tables.writing.BLOCK", 3)
    write_table(tmp_path / "long.csv", ["i"], {"i": np.arange(7)})
    assert (tmp_path / "long.csv").read_text() == "i\n0\n1\n2\n3\n4\n5\n6\n"


@pytest.mark.parametrize("suffix", [".tsv", ".TSV", ".tsv.gz"])
def test_tsv_is_separated_by_tabs(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    write_table(path, ["a", "b"], {"a": [1], "b": ["x,y"]})
    raw = gzip.decompress(path.read_bytes()) if suffix.endswith("gz") else path.read_bytes()
    assert raw == b'a\tb\n1\t"x,y"\n'


def test_equal_tables_give_equal_gzip_files(tmp_path, monkeypatch):
    write_table(tmp_path / "a.csv.gz", ["a"], {"a": [1.5]})
    monkeypatch.setattr(time, "time", lambda: 2e9)
    write_table(tmp_path / "b.csv.gz", ["a"], {"a": [1.5]})
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


# Reading: what is accepted


def test_ids_keep_their_text_and_are_numbers_on_demand(tmp_path):
    table = table_of(tmp_path, "id,temp\n007, 1.50 \n008,2e3\n")
    assert (table.names, table.n_rows, table.path) == (("id", "temp"), 2, str(tmp_path / "data.csv"))
    assert table.text("id").tolist() == ["007", "008"]
    assert table.text("temp").tolist() == [" 1.50 ", "2e3"]
    assert table.numbers("id").tolist() == [7.0, 8.0]
    assert table.numbers("temp").tolist() == [1.5, 2000.0]
    assert table.numbers("temp").dtype == np.float64
    assert (table.is_numeric("id"), table.is_numeric("temp")) == (True, True)


@pytest.mark.parametrize(
    "content",
    [
        "a,b\n1,x\n2,y\n",
        "a,b\r\n1,x\r\n2,y\r\n",
        "a,b\r1,x\r2,y\r",
        "\ufeffa,b\n1,x\n2,y",
        '\ufeff"a","b"\n"1","x"\n2,y\n\n  \n\r\n',
        "\n\na,b\n1,x\n2,y\n",
        " a , b\n1,x\n2,y\n",
        "a;b\n1;x\n2;y\n",
        "a\tb\n1\tx\n2\ty\n",
    ],
)
def test_line_ends_byte_order_marks_quotes_and_separators(tmp_path, content):
    table = table_of(tmp_path, content)
    assert table.names == ("a", "b")
    assert table.numbers("a").tolist() == [1.0, 2.0]
    assert table.text("b").tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('temp,"note; more; words"', ("temp", "note; more; words")),
        ('"x, y, z";b', ("x, y, z", "b")),
        ('\ufeff"x, y\n, z"\tb', ("x, y\n, z", "b")),
        ("a,b;c", ("a", "b;c")),  # a draw: the comma
        ("alone", ("alone",)),
    ],
)
def test_the_separator_is_found_in_the_header_outside_quotes(tmp_path, header, expected):
    row = {"x, y, z": "1;2", "x, y\n, z": "1\t2", "alone": "1"}.get(expected[0], "1,2")
    assert table_of(tmp_path, f"{header}\n{row}\n").names == expected


def test_tsv_header_with_commas_is_still_separated_by_tabs(tmp_path):
    assert table_of(tmp_path, "a, b, c\td\n1\t2\n", "data.tsv").names == ("a, b, c", "d")


def test_lines_are_those_of_the_file_even_after_quoted_newlines(tmp_path):
    table = table_of(tmp_path, '\na,b\n"two\nlines",1\nx,2\n"three\r\nmore\nlines",3\ny,4\n')
    assert [table.line(row) for row in range(4)] == [3, 5, 6, 9]
    assert table.place(3) == f"{tmp_path / 'data.csv'}, line 9"


def test_empty_cells_of_a_single_column_are_rows(tmp_path):
    assert table_of(tmp_path, 'a\n1\n""\n\n').text("a").tolist() == ["1", ""]


def test_strings_and_paths_are_both_accepted(tmp_path):
    write_table(str(tmp_path / "s.csv"), ["a"], {"a": [1]})
    assert read_table(str(tmp_path / "s.csv")).numbers("a").tolist() == [1.0]


# Numbers


@pytest.mark.parametrize(
    "absent", ["", "  ", "NA", "NaN", "nan", "null", "NULL", " na ", "-nan", "N/A", "-", "?"]
)
def test_missing_cells_are_counted_and_may_become_nan(tmp_path, absent):
    table = table_of(tmp_path, f"id,t\n1,1.5\n2,{absent}\n3,{absent}\n4,2\n")
    with pytest.raises(
        TableError, match=r"line 3, column 't'.*missing.*2 of the 4 rows.*Fill or drop these rows"
    ):
        table.numbers("t")
    np.testing.assert_array_equal(table.numbers("t", missing="nan"), [1.5, math.nan, math.nan, 2.0])
    assert table.is_numeric("t")


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("abc", "'abc' is not a number"),
        ("1.2.3", "'1.2.3' is not a number"),
        ("0x10", "'0x10' is not a number"),
        ("none", "'none' is not a number"),
        ("1_000", "'1_000' is not a number because of its underscore"),
        ("1_000,5", "is not a number"),
        ("1,5", r"'1,5' is not a number because of its comma; write a decimal point \(1.5, not 1,5\)"),
        (" -1,5e3", "decimal point"),
        ("1,234.5", "thousands"),
        ("x" * 10_000, r"'x+\.\.\.x+' is not a number"),
    ],
)
def test_what_is_not_a_number_is_named_with_line_column_and_cure(tmp_path, cell, reason):
    table = table_of(tmp_path, f"id;t\n1;1.5\n2;{cell}\n3;\n4;2\n")
    for missing in ("error", "nan"):
        with pytest.raises(
            TableError, match=rf"data.csv, line 3, column 't': .*{reason}.*Correct the file"
        ) as caught:
            table.numbers("t", missing=missing)
        assert len(str(caught.value)) < 600
        assert "cells are not" not in str(caught.value)
    assert not table.is_numeric("t")
    assert table.text("t")[1] == cell


def test_all_culprits_of_a_column_are_counted(tmp_path):
    with pytest.raises(TableError, match=r"line 2.*3 of its 4 cells are not numbers"):
        table_of(tmp_path, "a\nx\n1_0\n7\n1 2\n").numbers("a")


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e400"])
def test_infinity_is_refused_by_line(tmp_path, cell):
    table = table_of(tmp_path, f"a,b\n,1\n1,1\n{cell},2\n")
    for missing in ("error", "nan"):
        with pytest.raises(TableError, match=rf"line 4, column 'a': '{cell}' is not a finite number"):
            table.numbers("a", missing=missing)
    assert table.is_numeric("a")  # so that it is met by that message, not taken for text


def test_a_column_of_nothing_is_not_numeric(tmp_path):
    assert not table_of(tmp_path, "a,b\n1,\n2,NA\n").is_numeric("b")


def test_an_unknown_column_is_answered_with_the_nearest(tmp_path):
    table = table_of(tmp_path, "temp,wind\n1,2\n")
    for call in (table.numbers, table.text, table.is_numeric):
        with pytest.raises(
            TableError, match=r"no column 'tmp'; did you mean 'temp'\? Its columns: temp, wind"
        ):
            call("tmp")


def test_answers_are_copies(tmp_path):
    table = table_of(tmp_path, "a\n1\n")
    table.text("a")[0] = "9"
    table.numbers("a")[0] = 9
    assert table.numbers("a")[0] == 1


# Reading: what is refused


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(TableError, match=r"nowhere\.csv: there is no such file.*Correct the path"):
        read_table(tmp_path / "nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match=r"folder\.csv is a folder"):
        read_table(tmp_path / "folder.csv")


def test_an_unreadable_file_is_a_table_error(tmp_path, monkeypatch):
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    assert "cannot be read: Permission denied" in refusal(tmp_path, "a\n1\n")


def test_an_unknown_suffix_lists_the_accepted_ones(tmp_path):
    message = refusal(tmp_path, "a\n1\n", "data.json")
    assert all(suffix in message for suffix in SUFFIXES)
    with pytest.raises(TableError, match=r"\.csv\.gz"):
        write_table(tmp_path / "out.json", ["a"], {"a": [1]})


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff", "  \n"])
def test_an_empty_file(tmp_path, content):
    assert "is empty" in refusal(tmp_path, content)
    assert "is empty" in refusal(tmp_path, gzip.compress(content.encode()), "data.csv.gz")


@pytest.mark.parametrize("content", ["a,b", "a,b\n", "a,b\n\n \n"])
def test_a_header_without_rows(tmp_path, content):
    assert "header (a, b) but no rows" in refusal(tmp_path, content)


def test_header_names_must_be_there_and_differ(tmp_path):
    assert "a, c is the name of more than one column" in refusal(tmp_path, "a,b, a,c,c\n1,2,3,4,5\n")
    assert "the first line has numbers (1, 1, 2), not names" in refusal(tmp_path, "1,1,2\n3,4,5\n")


def test_many_names_are_listed_in_part(tmp_path):
    message = refusal(tmp_path, ",".join(f"x{i}" for i in range(500)))
    assert "x11, ... (500 in all)" in message
    assert "x12" not in message


@pytest.mark.parametrize(
    ("row", "fields", "cure"),
    [
        ("1", "1 field", "Add"),
        ("1,2", "2 fields", "Add"),
        ("1,2,3,4", "4 fields", "double quotes"),
        ("1,2,3,", "4 fields", "double quotes"),
    ],
)
def test_a_ragged_line_is_named_with_its_fields(tmp_path, row, fields, cure):
    message = refusal(tmp_path, f'a,b,c\n1,"2\n",3\n{row}\n1,2,3\n')
    assert f"line 4: {fields}, but the header has 3" in message
    assert cure in message


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_line_between_rows_is_passed_over_with_a_note(tmp_path, blank):
    table = table_of(tmp_path, f"a,b\n1,2\n{blank}\n\n3,4\n\n")
    assert table.numbers("a").tolist() == [1.0, 3.0]
    assert [table.line(row) for row in range(2)] == [2, 5]
    assert table.notes == ("2 empty lines passed over",)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('a,b\n1,2\n1,"open\n3,4\n', "line 3: a double quote is opened but not closed"),
        ('a,"b\n1,2\n', "line 1: a double quote is opened but not closed"),
        ('a,b\n"open' + "x" * 200_000, "line 2, column 1 ('a'): a double quote is opened and not closed"),
        ('a,b\n1,"two"three\n', "line 2: text follows a closing double quote"),
    ],
)
def test_faulty_quotes(tmp_path, content, expected):
    assert expected in refusal(tmp_path, content)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_text_in_other_encodings_is_read_with_a_note(tmp_path, encoding):
    marks = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
    raw = marks.get(encoding, b"") + "näme,t\r\nRenée,1\r\nÅsa,2\r\n".encode(encoding)
    table = table_of(tmp_path, raw)
    assert table.names == ("näme", "t")
    assert table.text("näme").tolist() == ["Renée", "Åsa"]
    notes = {"utf-8-sig": (), "latin-1": ("text in Windows-1252, where it is no UTF-8",)}
    notes["cp1252"] = notes["latin-1"]
    assert table.notes == notes.get(encoding, ("text in UTF-16",))


@pytest.mark.parametrize(
    ("encoding", "named", "name", "words"),
    [
        ("cp932", "Shift JIS", "日付", ["2022年5月1日", "2022年5月2日"]),
        ("cp1251", "Windows-1251", "Город", ["Москва", "Казань"]),
        ("gb18030", "GB 18030", "城市", ["北京市中心", "上海浦东新区"]),
        ("euc-kr", "EUC-KR", "도시", ["서울특별시", "부산광역시"]),
    ],
)
def test_text_of_other_scripts_is_read_with_a_note(tmp_path, encoding, named, name, words):
    raw = f"{name},t\n" + "".join(f"{word},{k}\n" for k, word in enumerate(words))
    table = table_of(tmp_path, raw.encode(encoding))
    assert table.names == (name, "t")
    assert table.text(name).tolist() == words
    assert table.notes == (f"text in {named}",)


def test_an_encoding_that_cannot_be_told_is_refused(tmp_path):
    raw = "πόλη,t\nΑθήνα,1\nΠάτρα,2\n".encode("cp1253")
    assert "neither UTF-8 nor Western, with bytes such as" in refusal(tmp_path, raw)


def test_western_quotes_are_no_japanese(tmp_path):
    raw = "name,t\nl’été – “ici”,1\nd’où… Œuvre,2\n".encode("cp1252")
    assert table_of(tmp_path, raw).text("name").tolist() == ["l’été – “ici”", "d’où… Œuvre"]


def test_names_in_two_lines_are_put_together(tmp_path):
    body = "".join(f"r{k},{k}.5,{k},2{k},3{k}\n" for k in range(6))
    table = table_of(tmp_path, "Region,2021,,2022,\n,Male,Female,Male,Female\n" + body)
    assert table.names == ("Region", "2021 Male", "2021 Female", "2022 Male", "2022 Female")
    assert table.notes == ("two lines of column names put together ('Region')",)
    # as pandas writes columns of two levels, with its index
    levels = ",flat,flat,money\n,area,rooms,price\n" + "".join(f"{k},{k}.5,{k},9{k}\n" for k in range(6))
    assert table_of(tmp_path, levels).names == ("area", "rooms", "price")
    # a row of words below names of which one is there twice is a row, and the names are refused
    twice = "a,b,b\nx,y,z\n" + "u,v,w\n" * 5
    assert "b is the name of more than one column" in refusal(tmp_path, twice)


@pytest.mark.parametrize("name", ["d.txt", "d.dat", "d.data"])
def test_quoted_cells_between_blanks(tmp_path, name):
    """As R writes a table: the names without one for those of the rows."""
    body = "".join(f'"{k}" {k}.5 "Old Town" {2 * k}\n' for k in range(1, 21))
    table = table_of(tmp_path, '"area" "kind" "y"\n' + body, name=name)
    assert table.names == ("area", "kind", "y")
    assert table.text("kind")[0] == "Old Town"


@pytest.mark.parametrize("kind", ["feather", "arrow", "stream"])
def test_files_of_arrow(tmp_path, kind):
    pa = pytest.importorskip("pyarrow")
    table = pa.table(
        {"n": [1, None, 3], "k": [2**60, 5, 6], "w": pa.array(["a", "b", "a"]).dictionary_encode()}
    )
    path = tmp_path / ("d.feather" if kind == "feather" else "d.arrow")
    with pa.OSFile(str(path), "wb") as sink:
        writer = (pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file)(sink, table.schema)
        writer.write_table(table, max_chunksize=2)
        writer.close()
    read = read_table(path)
    assert read.numbers("n", missing="nan").tolist()[::2] == [1, 3]
    assert read.text("k").tolist() == [str(2**60), "5", "6"]
    assert read.text("w").tolist() == ["a", "b", "a"]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(TableError, match="cannot be read as Arrow's or Feather"):
        read_table(path)


@pytest.mark.parametrize(
    ("content", "told"), [("<html><table>", "a web page"), ("a\tb\n1\t2\n", "text under the name")]
)
def test_what_portals_call_a_workbook(tmp_path, content, told):
    (tmp_path / "d.xls").write_text(content)
    with pytest.raises(TableError, match=told):
        read_table(tmp_path / "d.xls")


def test_a_cut_off_file_of_utf_16(tmp_path):
    assert "is cut off or damaged" in refusal(tmp_path, "a,b\n1,2\n".encode("utf-16")[:-1])


def test_a_nul_byte(tmp_path):
    assert "line 2, position 3 (byte 6 of the file, from 0): a NUL byte" in refusal(tmp_path, "a,b\n1,\0\n")


@pytest.mark.parametrize(
    ("raw", "cure"),
    [
        (gzip.compress(b"a\n1\n", mtime=0), "ends in .gz"),
        (b"PK\x03\x04rest", "ends in .xlsx or .ods"),
        (b"PAR1rest", "ends in .parquet"),
        (b"\xd0\xcf\x11\xe0rest", "ends in .xls"),
    ],
)
def test_other_formats_under_the_name_of_csv(tmp_path, raw, cure):
    assert cure in refusal(tmp_path, raw)


def test_faulty_gzip(tmp_path):
    good = gzip.compress(b"a,b\n" + b"1,2\n" * 1000, mtime=0)
    for length in (2, 5, 12, len(good) - 8, len(good) - 1):
        assert "is cut off" in refusal(tmp_path, good[:length], "data.csv.gz")
    assert "is not a gzip file" in refusal(tmp_path, "a,b\n1,2\n", "data.csv.gz")
    for position in (12, len(good) - 6):  # in the data; in the checksum
        bad = bytearray(good)
        bad[position] ^= 0xFF
        assert "is damaged" in refusal(tmp_path, bytes(bad), "data.csv.gz")


# Parquet


def test_parquet_columns_become_numbers_or_text(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    large = 2**64 - 1
    data = {
        "float": pa.array([0.1, None, 2.0]),
        "half": pa.array([0.1, None, 2.0], pa.float32()),
        "int": pa.array([2**62 + 1, 2, 3]),
        "int_gap": pa.array([2**62 + 1, None, 3]),
        "unsigned": pa.array([large, 2, 3], pa.uint64()),
        "text": pa.array(["007", None, "é"]),
        "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
        "flag": pa.array([True, False, None]),
        "nothing": pa.array([None, None, None]),
    }
    pq.write_table(pa.table(data), tmp_path / "data.pq")
    table = read_table(tmp_path / "data.pq")
    assert table.names == tuple(data)
    assert table.n_rows == 3
    assert table.text("float").tolist() == ["0.1", "", "2.0"]
    assert table.numbers("half", missing="nan")[0] == float(np.float32(0.1))
    assert table.text("int").tolist() == [str(2**62 + 1), "2", "3"]
    assert table.text("int_gap").tolist() == [str(2**62 + 1), "", "3"]
    assert table.numbers("int_gap", missing="nan")[2] == 3
    assert table.text("unsigned").tolist() == [str(large), "2", "3"]
    assert table.text("text").tolist() == ["007", "", "é"]
    assert table.text("kind").tolist() == ["a", "b", "a"]
    assert table.text("flag").tolist() == ["true", "false", ""]
    assert [table.is_numeric(name) for name in data] == [
        True,
        True,
        True,
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    with pytest.raises(
        TableError, match=r"data\.pq, row 2, column 'float': the value is missing. 1 of the 3 rows"
    ):
        table.numbers("float")


def test_parquet_infinity_and_text_are_named_by_row(tmp_path):
    write_table(tmp_path / "data.parquet", ["a", "b"], {"a": [1.0, math.inf], "b": ["1", "x"]})
    table = read_table(tmp_path / "data.parquet")
    with pytest.raises(TableError, match=r"row 2, column 'a': 'inf' is not a finite number"):
        table.numbers("a")
    with pytest.raises(TableError, match=r"row 2, column 'b': 'x' is not a number"):
        table.numbers("b")


def test_parquet_that_cannot_be_a_table(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"a": [[1, 2]]}), path)
    with pytest.raises(TableError, match=r"column 'a': its type, list<.*neither number nor text"):
        read_table(path)
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), path)
    with pytest.raises(TableError, match="no rows"):
        read_table(path)
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), path)
    with pytest.raises(TableError, match="more than one column"):
        read_table(path)
    pq.write_table(pa.table({}), path)
    with pytest.raises(TableError, match="one column at least"):
        read_table(path)


def test_parquet_in_a_folder_named_like_a_partition_gains_no_column(tmp_path):
    (tmp_path / "year=2024").mkdir()
    write_table(tmp_path / "year=2024" / "data.parquet", ["a"], {"a": [1]})
    assert read_table(tmp_path / "year=2024" / "data.parquet").names == ("a",)


def test_damaged_parquet(tmp_path):
    path = tmp_path / "data.parquet"
    write_table(path, ["a"], {"a": np.arange(1000.0)})
    good = path.read_bytes()
    middle = bytearray(good)
    middle[-60:-20] = b"\xff" * 40  # in the footer
    for raw in (b"", b"a,b\n1,2\n", good[:-4], good[: len(good) // 2], bytes(middle)):
        assert "cannot be read as Parquet" in refusal(tmp_path, raw, "data.parquet")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    write_table(tmp_path / "data.parquet", ["a"], {"a": [1]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TableError, match=r'pip install "gramian\[parquet\]"'):
        read_table(tmp_path / "data.parquet")
    with pytest.raises(TableError, match=r'pip install "gramian\[parquet\]"'):
        write_table(tmp_path / "new.parquet", ["a"], {"a": [1]})
    assert os.listdir(tmp_path) == ["data.parquet"]


# In blocks


def together(blocks: list[Table]) -> dict[str, list[object]]:
    return {
        name: [cell for block in blocks for cell in block.columns[name].tolist()] for name in blocks[0].names
    }


@pytest.mark.parametrize("suffix", WRITTEN)
def test_blocks_together_are_the_table(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    columns = {
        "a": np.arange(10) / 3,
        "b": np.array([f"t{i}, {i}\n" for i in range(10)], dtype=object),
        "i": np.arange(10),
    }
    write_table(path, list(columns), columns)
    blocks, whole = list(read_blocks(path, 4)), read_table(path)
    assert [block.n_rows for block in blocks] == [4, 4, 2]
    assert [block.first for block in blocks] == [0, 4, 8]
    assert together(blocks) == {name: whole.columns[name].tolist() for name in whole.names}
    assert [block.place(row) for block in blocks for row in range(block.n_rows)] == [
        whole.place(row) for row in range(10)
    ]
    # a quoted cell has two lines
    assert [block.line(0) for block in blocks] == ([1, 5, 9] if whole.lines is None else [2, 10, 18])


@pytest.mark.parametrize("rows", [1, 5, 10, 11])
def test_no_block_is_empty(tmp_path, rows):
    write_table(tmp_path / "a.csv", ["i"], {"i": np.arange(10)})
    assert [block.n_rows for block in read_blocks(tmp_path / "a.csv", rows)] == {
        1: [1] * 10,
        5: [5, 5],
        10: [10],
        11: [10],
    }[rows]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_wide_tables_have_shorter_blocks(tmp_path, monkeypatch, suffix):
    write_table(tmp_path / f"wide{suffix}", ["a", "b", "c"], {name: np.arange(10) for name in "abc"})
    monkeypatch.setattr("gramian.data.spool.CELLS", 12)
    assert [block.n_rows for block in read_blocks(tmp_path / f"wide{suffix}")] == [4, 4, 2]


def test_faults_are_met_with_their_block_and_line(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('a,b\n1,"x\ny"\n2,z\n3,z\n4,z\n5,z,z\n')
    blocks = read_blocks(path, 2)
    assert next(blocks).numbers("a").tolist() == [1, 2]
    with pytest.raises(TableError, match=r"line 7: 3 fields, but the header has 2"):
        list(blocks)
    path.write_text("a\n" + "1\n" * 5 + "x\ny\n" + "1\n")
    *_, third, last = read_blocks(path, 2)
    with pytest.raises(TableError, match=r"line 7, column 'a': 'x' is not a number. Correct"):
        third.numbers("a")
    with pytest.raises(TableError, match=r"line 8, column 'a': 'y' is not a number"):
        last.numbers("a")
    path.write_text("a\n" + "1\n" * 4 + "x\nNA\ny\nNA\n1\n")
    second = list(read_blocks(path, 4))[1]
    with pytest.raises(
        TableError,
        match=r"line 6, column 'a': 'x' is not a number. 2 of its cells in the rows 5 to 8 are not numbers",
    ):
        second.numbers("a")
    path.write_text("a\n" + "1\n" * 4 + '1\n""\n1\n""\n1\n')
    second = list(read_blocks(path, 4))[1]
    with pytest.raises(
        TableError, match=r"line 7, column 'a': the value is missing. 2 of the rows 5 to 8 have no value"
    ):
        second.numbers("a")


def test_blank_lines_are_passed_over_across_blocks(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n\n5,6\n")
    blocks = list(read_blocks(tmp_path / "a.csv", 2))
    assert [(block.n_rows, block.notes) for block in blocks] == [(2, ()), (1, ("1 empty line passed over",))]


def test_the_first_block_is_there_before_the_rest_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("gramian.data.tables.textbytes.CHUNK", 64)
    monkeypatch.setattr("gramian.data.tables.reading.CHUNK", 64)
    path = tmp_path / "a.csv"
    monkeypatch.setattr("gramian.data.tables.textbytes.HEAD", 4096)
    path.write_bytes(b"a\n" + b"12345678\n" * 20_000 + b"\0\n")
    blocks = read_blocks(path, 10)
    assert next(blocks).n_rows == 10
    with pytest.raises(TableError, match=r"line 20002, position 1 \(byte 180002 of the file"):
        list(blocks)


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_place_of_a_nul_byte_does_not_depend_on_chunks(tmp_path, monkeypatch, chunk, end):
    """Line ends and characters of several bytes are cut in two by the chunks."""
    monkeypatch.setattr("gramian.data.tables.textbytes.CHUNK", chunk)
    monkeypatch.setattr("gramian.data.tables.reading.CHUNK", chunk)
    monkeypatch.setattr("gramian.data.tables.textbytes.HEAD", 8)
    before = f"nämé,t{end}€,1{end}ab€".encode()
    message = refusal(tmp_path, before + f"\0,2{end}".encode())
    assert f"line 3, position 6 (byte {len(before)} of the file, from 0)" in message


@pytest.mark.parametrize("chunk", [1, 2, 7])
def test_chunks_do_not_change_what_is_read(tmp_path, monkeypatch, chunk):
    content = '\ufeff"a b";é\r\n"1\r\n€";2\r\n3;4\r\n'
    expected = table_of(tmp_path, content)
    monkeypatch.setattr("gramian.data.tables.reading.CHUNK", chunk)
    found = table_of(tmp_path, content)
    assert together([found]) == together([expected]) == {"a b": ["1\r\n€", "3"], "é": ["2", "4"]}


def test_a_type_of_parquet_holds_for_all_blocks(tmp_path):
    """Integers with a gap are text, in the blocks before the gap too."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(
        pa.table({"i": [1, 2, 3, None], "j": [1, 2, 3, 4], " k": [5, 6, 7, None]}), tmp_path / "a.parquet"
    )
    blocks = list(read_blocks(tmp_path / "a.parquet", 2))
    assert together(blocks) == {"i": ["1", "2", "3", ""], "j": [1, 2, 3, 4], "k": ["5", "6", "7", ""]}
    with pytest.raises(
        TableError, match=r"a\.parquet, row 4, column 'i': the value is missing. 1 of the rows 3 to 4"
    ):
        blocks[1].numbers("i")


def test_blocks_of_no_rows_cannot_be_read(tmp_path):
    write_table(tmp_path / "a.csv", ["i"], {"i": [1]})
    with pytest.raises(TableError, match="blocks of 0 rows"):
        read_blocks(tmp_path / "a.csv", 0)


@pytest.mark.parametrize("suffix", TEXT_SUFFIXES)
def test_text_written_in_blocks_is_the_same_file(tmp_path, suffix):
    columns = {"a": np.arange(10) / 3, "b": np.array([f"t{i}, {i}" for i in range(10)], dtype=object)}
    write_table(tmp_path / f"whole{suffix}", ["b", "a"], columns)
    write_blocks(
        tmp_path / f"parts{suffix}",
        ["b", "a"],
        ({name: c[i : i + 3] for name, c in columns.items()} for i in range(0, 10, 3)),
    )
    assert (tmp_path / f"parts{suffix}").read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()


def test_parquet_written_in_blocks_reads_back(tmp_path):
    path = tmp_path / "a.parquet"
    columns = {
        "a": np.arange(10) / 3,
        "b": np.array([f"t{i}" for i in range(10)], dtype=object),
        "i": np.arange(10),
    }
    write_blocks(
        path, list(columns), ({name: c[i : i + 3] for name, c in columns.items()} for i in range(0, 10, 3))
    )
    assert together([read_table(path)]) == {name: c.tolist() for name, c in columns.items()}
    path.write_bytes(b"old")
    with pytest.raises(
        TableError, match=r"column 'a' is of type double, in the blocks before int64. Give it one type"
    ):
        write_blocks(path, ["a"], [{"a": [1]}, {"a": [1.5]}])
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("exception", [RuntimeError("half-way"), KeyboardInterrupt()])
def test_an_exception_among_blocks_leaves_the_old_file_and_no_other(tmp_path, suffix, exception):
    def blocks():
        yield {"a": [1.0]}
        raise exception

    path = tmp_path / f"out{suffix}"
    path.write_bytes(b"old")
    with pytest.raises(type(exception)) as caught:
        write_blocks(path, ["a"], blocks())
    assert caught.value is exception
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_no_blocks_and_faulty_blocks_cannot_be_written(tmp_path, suffix):
    for blocks, expected in (
        ([], "there are no blocks"),
        ([{"a": [1]}, {"b": [1]}], "no column is given for a. Given: b"),
    ):
        with pytest.raises(TableError, match=expected):
            write_blocks(tmp_path / f"out{suffix}", ["a"], blocks)
    assert os.listdir(tmp_path) == []


# Writing: what is refused, and what is left behind


@pytest.mark.parametrize(
    ("header", "columns", "expected"),
    [
        (["a", "b"], {"a": [1, 2], "b": [1]}, r"of one length.*'a': \(2,\), 'b': \(1,\)"),
        (["a"], {"a": [[1, 2]]}, "one-dimensional"),
        (["a"], {"a": 1.0}, "one-dimensional"),
        (["a", "z"], {"a": [1]}, "no column is given for z. Given: a"),
        (["a", "a"], {"a": [1]}, "more than one column"),
        ([" "], {" ": [1]}, "has no name"),
        ([], {}, "one column at least"),
        (["a"], {"a": [1j]}, "complex128, which a table cannot hold"),
        (["a"], {"a": ["\ud800"]}, "cannot be written as UTF-8"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz", ".parquet"])
def test_faulty_columns_leave_the_old_file(tmp_path, suffix, header, columns, expected):
    path = tmp_path / f"out{suffix}"
    path.write_bytes(b"old")
    with pytest.raises(TableError, match=expected) as caught:
        write_table(path, header, columns)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]


def test_a_nul_character_is_not_written_as_text(tmp_path):
    with pytest.raises(TableError, match=r"out\.csv: a cell has a NUL"):
        write_table(tmp_path / "out.csv", ["a"], {"a": ["x\0y"]})
    assert os.listdir(tmp_path) == []


class Explosive:
    """A cell that raises when its text is asked for."""

    def __init__(self, exception: BaseException) -> None:
        self.exception = exception

    def __str__(self) -> str:
        raise self.exception


@pytest.mark.parametrize(
    "exception", [RuntimeError("half-way"), KeyboardInterrupt(), OSError(errno.EIO, "input/output error")]
)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_an_exception_half_way_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, suffix, exception):
    # the first block is on its way when the second fails
    monkeypatch.setattr("gramian.data.tables.writing.BLOCK", 2)
    path = tmp_path / f"out{suffix}"
    path.write_bytes(b"old")
    column = np.array(["a", "b", "c", Explosive(exception)], dtype=object)
    with pytest.raises(type(exception)) as caught:
        write_table(path, ["a"], {"a": column})
    assert caught.value is exception
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]


def test_the_old_file_stands_until_the_block_ends(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
        assert len(os.listdir(tmp_path)) == 2
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["model"]


def test_bytes_are_on_disk_before_the_name_changes(tmp_path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, os.replace

    def synced(fd: int) -> None:
        folder = stat.S_ISDIR(os.fstat(fd).st_mode)
        steps.append(("fsync", "the folder" if folder else os.fstat(fd).st_size))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(
        os, "replace", lambda a, b: (steps.append(("replace", Path(a).parent)), replace(a, b))
    )
    with atomic_write(tmp_path / "file") as file:
        file.write(b"12345")
    renamed = [("fsync", 5), ("replace", Path(os.path.realpath(tmp_path)))]
    assert steps == renamed + [("fsync", "the folder")] * (os.name != "nt")


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failing_last_step_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, failing):
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "file"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, failing, full)
    with pytest.raises(ModelFileError, match="the disk is full"), atomic_write(path, ModelFileError) as file:
        file.write(b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_permissions_follow_the_umask_or_the_old_file(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_table(tmp_path / "new.csv", ["a"], {"a": [1]})
        (tmp_path / "old.csv").touch()
        (tmp_path / "old.csv").chmod(0o640)
        write_table(tmp_path / "old.csv", ["a"], {"a": [1]})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.csv").stat().st_mode) == 0o666 & ~umask
    assert stat.S_IMODE((tmp_path / "old.csv").stat().st_mode) == 0o640


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need rights on Windows")
def test_a_symbolic_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "data.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real" / "data.csv")
    write_table(tmp_path / "link.csv", ["a"], {"a": [1]})
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real" / "data.csv").read_text() == "a\n1\n"


def test_a_name_of_the_greatest_length_can_be_written(tmp_path):
    path = tmp_path / ("x" * 251 + ".csv")
    write_table(path, ["a"], {"a": [1]})
    assert path.read_text() == "a\n1\n"


def test_targets_that_cannot_be_replaced(tmp_path):
    with pytest.raises(TableError, match=r"there is no folder .*Create it first"):
        write_table(tmp_path / "absent" / "out.csv", ["a"], {"a": [1]})
    (tmp_path / "file").touch()
    with pytest.raises(TableError, match="there is no folder"):
        write_table(tmp_path / "file" / "out.csv", ["a"], {"a": [1]})
    (tmp_path / "dir.csv").mkdir()
    with pytest.raises(TableError, match="is a folder"):
        write_table(tmp_path / "dir.csv", ["a"], {"a": [1]})
    with (
        pytest.raises(ModelFileError, match="is a device or a pipe"),
        atomic_write(os.devnull, ModelFileError),
    ):
        pass
    assert sorted(os.listdir(tmp_path)) == ["dir.csv", "file"]


def test_an_unwritable_folder_is_a_table_error(tmp_path, monkeypatch):
    # by hand, since a superuser may write to any folder
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(
        TableError, match=r"out\.csv cannot be written: Permission denied .*choose another folder"
    ):
        write_table(tmp_path / "out.csv", ["a"], {"a": [1]})


def test_a_read_only_file_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "out.csv"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *arguments: False)  # likewise
    with pytest.raises(TableError, match="is read-only"):
        write_table(path, ["a"], {"a": [1]})
    assert path.read_text() == "old"


# Budget


def test_a_large_column_is_read_in_one_pass(tmp_path):
    # about 0.8 s on a slow machine; cell-by-cell handling of errors and missing values would take several
    # times the budget
    n = 200_000
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=n) for name in "abcde"}
    write_table(tmp_path / "large.csv", list(columns), columns)
    start = time.process_time()
    table = read_table(tmp_path / "large.csv")
    values = [table.numbers(name) for name in table.names]
    elapsed = time.process_time() - start
    assert all((value == column).all() for value, column in zip(values, columns.values(), strict=True))
    assert elapsed < 5


UNITS = "weight;length;place;y\n{line}\n1,5;2;north;3\n2,5;3;south;4\n1;4;north;5\n"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("kg;m;;°C", "weight in kg, length in m, y in °C"),
        ("[kg];[m/s];-;(%)", "weight in kg, length in m/s, y in %"),
        ("kg;;;kg m-3", "weight in kg, y in kg m-3"),
    ],
)
def test_a_line_of_units_is_left_out_and_told(tmp_path, line, told):
    path = tmp_path / "units.csv"
    path.write_text(UNITS.format(line=line), encoding="utf-8")
    table = read_table(path)
    assert table.n_rows == 3
    assert table.notes == (f"a line of units below the column names left out ({told})",)
    assert table.line(0) == 3  # as an editor counts


@pytest.mark.parametrize(
    "line",
    [
        "unknown;2;west;3",  # a number beside it: a row with a wrong cell
        "kg;m;west;°C",  # a word where words belong: a row of its own
        ";;west;missing",  # one word is no line of units
    ],
)
def test_a_row_with_wrong_cells_is_no_line_of_units(tmp_path, line):
    path = tmp_path / "rows.csv"
    path.write_text(UNITS.format(line=line), encoding="utf-8")
    assert read_table(path).n_rows == 4


ROWS = [(k, k * 7 % 5, k / 4) for k in range(9)]
LINES = "".join(f"{a},{b},{c}\n" for a, b, c in ROWS)
SHAPES = {
    "a sum below the rows": (f"a,b,y\n{LINES}Total,18,9\n", "1 line below the rows left out ('Total')"),
    "a source below the rows": (f"a,b,y\n{LINES}\nSource: the bank\n", "left out ('Source: the bank')"),
    "both, filled up": (f"a,b,y\n{LINES}Sum:,,9\nall of it measured,,\n", "2 lines below the rows left out"),
    "comments": (f"a,b,y\n# the first half\n{LINES}# the end\n", "2 lines with # in front passed over"),
    "a separator at the end": (
        "a,b,y\n" + LINES.replace("\n", ",\n"),
        "1 empty column without a name left out",
    ),
    "names of rows, as R has them": (
        "a,b,y\n" + "".join(f"row {k},{line}\n" for k, line in enumerate(LINES.split())),
        "the first column, which names the rows, left out",
    ),
    "an index in another order": (
        ",a,b,y\n" + "".join(f"{k * 5 % 9},{line}\n" for k, line in enumerate(LINES.split())),
        "the first column, which counts the rows, left out",
    ),
    "a line of dashes": (f"a,b,y\n---,:--:,---\n{LINES}", "a line of dashes below the column names left out"),
    "markdown": (
        "".join(f"|{line}|\n" for line in ["a|b|y", "---|---|---", *LINES.replace(",", "|").split()]),
        "2 empty columns without a name left out",
    ),
    "two lines of names": (f"site,site,\na,b,y\n{LINES}", "1 line above the column names left out"),
    "blanks": ("a   b   y\n" + LINES.replace(",", "   "), None),
    "blanks in front": (
        "  a b  y\n" + "".join(f"  {line}\n" for line in LINES.replace(",", "  ").split("\n")),
        None,
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_what_stands_around_a_table_is_left_out_and_told(tmp_path, shape):
    content, told = SHAPES[shape]
    table = table_of(tmp_path, content, "data.txt")
    assert table.names == ("a", "b", "y")
    np.testing.assert_array_equal(np.column_stack([table.numbers(name) for name in table.names]), ROWS)
    assert told is None or any(told in note for note in table.notes), table.notes


def test_a_column_without_a_name_is_called_by_its_place(tmp_path):
    days = "".join(f"2024-01-0{a + 1},{c}\n" for a, _, c in ROWS)
    table = table_of(tmp_path, f",y\n{days}")
    assert table.names == ("column 1", "y")
    assert table.notes == ("a column without a name is called 'column 1', by its place",)


@pytest.mark.parametrize(
    "content",
    [
        f"a,b,y\nTotal,1,2\n{LINES}",  # it is the first row
        f"a,b,y\n{LINES}unit 7,1,2\n",  # a row like the others
        f"a,b,y\n{LINES}north,,\n",  # a row with gaps
        "a,b,y\n" + LINES.replace("\n", " kg\n"),
    ],
)
def test_rows_like_the_others_stay(tmp_path, content):
    assert table_of(tmp_path, content).n_rows == content.count("\n") - 1


def test_a_row_that_is_cut_off_is_no_line_below_the_rows(tmp_path):
    assert "line 11: 2 fields, but the header has 3" in refusal(tmp_path, f"a,b,y\n{LINES}9,3\n")
    assert "line 2: 1 field" in refusal(tmp_path, f"a,b,y\nSource: the bank\n{LINES}")


def test_numbers_in_the_place_of_names(tmp_path):
    table = table_of(tmp_path, "1,2,3.5\n4,5,6\n")
    with pytest.raises(
        TableError, match=r"no column 'y': the first line has numbers \(1, 2, 3.5\), not names"
    ):
        table.text("y")
