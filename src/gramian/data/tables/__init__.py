"""Tables in files: text with separators (plain or gzip), Parquet and workbooks, whole or in blocks of rows.

A text file is kept as the text of its cells; a column becomes numbers only when asked. So an id such as 007
is written back as it came, and a cell that is not a number is reported by file, line and column. A column
converts in one NumPy call; the culprit is looked for only after that call has failed. Cost: O(cells) time,
about 60 bytes a cell of what is held: the file, or a block of as many cells as the memory limit allows.
"""

from __future__ import annotations

from gramian.data.tables.reading import read_blocks, read_table
from gramian.data.tables.shared import SUFFIXES, WRITTEN, closest, repeated
from gramian.data.tables.table import NotNumbersError, Table, is_missing, is_number
from gramian.data.tables.textbytes import kind_of_bytes
from gramian.data.tables.writing import check_written, write_blocks, write_table

__all__ = [
    "SUFFIXES",
    "WRITTEN",
    "NotNumbersError",
    "Table",
    "check_written",
    "closest",
    "is_missing",
    "is_number",
    "kind_of_bytes",
    "read_blocks",
    "read_table",
    "repeated",
    "write_blocks",
    "write_table",
]
