"""Random bytes in small tables: each file is read, or refused with an error that names it."""

from __future__ import annotations

import random

import pytest

from gramian.data.sources import open_source
from gramian.errors import GramianError

TABLES = [
    b"a,b,y\n1,2,3\n4,5,6\n7,8,9.5\n",
    b"name;when;y\nred;2024-01-02;1,5\nblue;2024-02-03;2,5\nred;2023-12-31;3\n",
    b'"x 1","x, 2",y\r\n"1","2 %",3\r\n"4","",6\r\n',
    b"t\tu\ty\n1e5\tyes\t2\n2e5\tno\t3\n",
    b",a,y\n0,1.5,$3\n1,2.5,$4\n2,3,$5\n",
    "größe,ort,y\n1,Köln,2\n2,Zürich,3\n".encode(),
    "größe,ort,y\n1,Köln,2\n2,Zürich,3\n".encode("utf-16"),
    b"a,y\n01:30,1\n1 days 02:30:00,2\n",
    b"x,y\n[m],[kg]\n1,2\n2,3\n3,4\n5,6\n",
    b"x,y\n1,2\n",
    b"x,y\n",
]
PIECES = [b'"', b'""', b",", b";", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\xef\xbb\xbf", b"\xff\xfe"]
PIECES += [b"\xed\xa0\x80", b"\x80", b"\xe2\x80\xae", b"\x1b[31m", b"\xc2\xa05\xe2\x82\xac", b"'", b" " * 300]
PIECES += [b"1e400", b"-1e308", b"1.7e308", b"9" * 5000, b"9" * 400 + b" days 01:00", b"nan", b"inf", b"-"]
PIECES += [b"1_0", b"99999-99-99", b"0001-01-01", b"9999-12-31T23:59:59-23:59", b"0001-01-01T00:00+23:00"]
PIECES += [b"NA", b"Q1", b"1 days", b"99:99", b"%", b"(1)", b"a," * 50, b"\n" * 2000, b"x" * 140_000]


def mutant(rng: random.Random) -> bytes:
    table = bytearray(rng.choice(TABLES))
    for _ in range(rng.choice([1, 1, 2, 3, 6])):
        at, kind = rng.randrange(len(table) + 1), rng.random()
        if kind < 0.6:
            table[at:at] = rng.choice(PIECES)
        elif kind < 0.75:
            del table[at : at + rng.randrange(1, 8)]
        elif kind < 0.85:
            table[at : at + 1] = bytes([rng.randrange(256)])
        elif kind < 0.9:
            table = table[:at]
        else:
            table[at:at] = table[rng.randrange(len(table) + 1) :][: rng.randrange(1, 30)]
    return bytes(table)


def read(path, content: bytes) -> bool:
    """Whether a table is read. Whatever else than a GramianError it raises, warnings included, is a fault."""
    path.write_bytes(content)
    try:
        open_source(path, "y")
    except GramianError:
        return False
    return True


def test_each_mutant_is_read_or_refused(tmp_path):
    rng = random.Random(20240229)
    names = [tmp_path / f"d.{suffix}" for suffix in ("csv", "csv", "tsv", "txt")]
    found = [read(rng.choice(names), mutant(rng)) for _ in range(500)]
    assert 50 < sum(found) < 450  # or else the test tells little


@pytest.mark.parametrize(
    ("content", "is_read"),
    [
        (b",a,y\n" + b"".join(b"9" * 5000 + b",1,%d\n" % k for k in range(3)), False),  # no index
        (b"t,y\n1 days,1\n" + b"9" * 5000 + b" days 01:00,2\n", False),  # no span of time
        (b"t,y\n" + b"9" * 400 + b" days 01:00,2\n1 days,3\n2 days,4\n", False),
        (b"t,y\n0001-01-01T00:00+23:00,1\n2024-01-01,2\n", True),  # in UTC the year 0
        (b"t,y\n0001-01-01 00:00 AM +23:00,1\n2024-01-01,2\n", True),
        (b"a,y\n1e308,1\n1e308,2\n-1e308,3\n", True),  # whose sum is none
        (b"a;y\n" + b"\n" * 100_000 + b"1;2\n", True),  # in a blink: a pattern took the square of the lines
        (b"a,b,y\n" + b"x " * 30_000 + b"1 ,2,3\n" + b"z,2,4\n", True),  # and the cube of the letters
    ],
)
def test_numbers_beyond_measure(tmp_path, content, is_read):
    assert read(tmp_path / "d.csv", content) == is_read


def test_a_long_cell_is_told_as_one(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("a,b,y\n1,2,3\n1," + "x" * 200_000 + ",3\n")
    with pytest.raises(GramianError, match=r"line 3, column 2 \('b'\): a cell of 200,000 characters"):
        open_source(path, "y")
    path.write_text('a,b,y\n1,2,3\n1,"' + "x" * 300_000 + "\n")
    with pytest.raises(GramianError, match=r"line 3, column 2 \('b'\): a double quote is opened and not"):
        open_source(path, "y")
