"""The bytes of a text file on their way to the parser: unpacked, decoded, and refused where they are no text.

Text is UTF-8, or UTF-16, which a byte order mark tells, or every other byte that is 0. Bytes that are no
UTF-8 are Windows-1252, which Western spreadsheets write and which has all of Latin-1, unless most of them
stand in runs of three and more, as in no Western language: then they are Shift JIS, Windows-1251, GB 18030 or
EUC-KR, whichever gives plain letters of its language, or the text is refused. The table has a note of it.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from typing import Any

from gramian.data.spool import LINE, Room
from gramian.errors import GramianError, MemoryLimitError, TableError
from gramian.linalg.memory import show_bytes

CHUNK = 2**20  # bytes read at once
HEAD = 2**18  # bytes of the beginning, which tell the separator and the names
HEAD_LINES = 4  # that it has at least, where lines are long: names, perhaps units, and rows to tell them by

WEB = "This is a web page, perhaps one that asks to log in: download the table itself."
FOREIGN = {  # how files of other formats begin, when their name says CSV
    b"\x1f\x8b": "This is gzip data: rename the file so that it ends in .gz.",
    b"PK\x03\x04": "This is a spreadsheet or zip file: rename it so that it ends in .xlsx or .ods.",
    b"PAR1": "This is a Parquet file: rename it so that it ends in .parquet.",
    b"ARROW1": "This is a file of Arrow's: rename it so that it ends in .arrow.",
    b"\xd0\xcf\x11\xe0": "This is an old Excel file: rename it so that it ends in .xls.",
    b"%PDF": "This is a PDF: export the table itself as CSV.",
    b"<!doctype": WEB,
    b"<html": WEB,
}
MARKLESS = 4096  # bytes that tell whether a text without a mark is UTF-16
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class CheckedBytes(io.RawIOBase):
    """The bytes of a text file as UTF-8, unpacked; a NUL byte is told with its line.

    The parser says where its rows begin, so that a line that does not end is refused while it comes."""

    def __init__(self, path: str, file: io.BufferedReader, packed: bool, room: Room) -> None:
        self._path, self._room = path, room
        self.passed = 0  # bytes that were given to the parser, which reads up to a chunk ahead
        self._row_line, self._row_start = 1, 0
        self._is_gzip = file.peek(2)[:2] == b"\x1f\x8b"
        self._file = gzip.GzipFile(fileobj=file) if packed else file
        raw = self._read(HEAD)
        _check_head(path, raw, len(raw) < HEAD)
        self.is_all = len(raw) < HEAD  # whether the head is all there is
        while not self.is_all and raw.count(b"\n") < HEAD_LINES and len(raw) <= room.line:
            more = self._read(CHUNK)
            raw, self.is_all = raw + more, not more
        wide = wide_text(raw)
        other = None if wide else other_text(path, raw)
        wide, named = (wide, "UTF-16") if other is None else other
        self._decoder = codecs.getincrementaldecoder(wide or "utf-8")("strict" if wide else "surrogateescape")
        self.notes: list[str] = [f"text in {named}"] if wide else []
        # bytes and lines so far; whether the last one was a \r
        self._before, self._line, self._column, self._returned = 0, 1, 0, False
        self._ended = False
        self.head = self._text(raw)
        self._rest = memoryview(self.head)  # parts of which are no copies: the parser asks for 8 kB at a time

    def readable(self) -> bool:
        return True

    def begins(self, line: int) -> None:
        """A row of the table begins in that line."""
        self._row_line, self._row_start = line, self.passed

    def readinto(self, buffer: Any) -> int:
        if self.passed - self._row_start > self._room.line + CHUNK:
            raise unending(self._path, self._row_line, self._room)
        while not self._rest and not self._ended:
            raw = self._read(CHUNK)
            self._ended = not raw
            self._rest = memoryview(self._text(raw))
        chunk, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(chunk)] = chunk
        self.passed += len(chunk)
        return len(chunk)

    def _read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except EOFError as cause:
            wrong = "is cut off: its gzip data end early. Copy or download it again."
            raise TableError(f"{self._path} {wrong}") from cause
        except (gzip.BadGzipFile, zlib.error) as cause:
            wrong = f"is damaged: its gzip data do not decompress ({cause}). Copy or download it again."
            if not self._is_gzip:
                named = "is not a gzip file, though its name ends in .gz"
                wrong = f"{named}. Rename it without .gz, or compress it."
            raise TableError(f"{self._path} {wrong}") from cause

    def _text(self, chunk: bytes) -> bytes:
        """The chunk as UTF-8, after what was left of the one before."""
        try:
            text = self._decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as cause:
            raise TableError(f"{self._path} is cut off or damaged: {cause.reason}. Copy it again.") from cause
        try:
            plain = text.encode()
        except UnicodeEncodeError:
            note = "text in Windows-1252, where it is no UTF-8"
            self.notes += [note] * (note not in self.notes)
            plain = "".join(_western(c) if "\udc80" <= c <= "\udcff" else c for c in text).encode()
        if b"\0" in plain:
            where = self._place(plain, plain.index(b"\0"))
            cure = "The file is damaged or is not text; export it anew as UTF-8 CSV."
            raise TableError(f"{self._path}, {where}: a NUL byte, which no text has. {cure}")
        self._line, self._column = self._after(plain)
        self._before, self._returned = self._before + len(plain), plain.endswith(b"\r")
        return plain

    def _after(self, part: bytes) -> tuple[int, int]:
        """The line, and the bytes of it that have passed, after `part`. Lines end with \\n, \\r or \\r\\n."""
        ends = part.count(b"\n") + part.count(b"\r") - part.count(b"\r\n")
        ends -= self._returned and part.startswith(b"\n")
        last = max(part.rfind(b"\n"), part.rfind(b"\r"))
        return self._line + ends, self._column + len(part) if last < 0 else len(part) - last - 1

    def _place(self, chunk: bytes, position: int) -> str:
        line, column = self._after(chunk[:position])
        return f"line {line}, position {column + 1} (byte {self._before + position} of the file, from 0)"


def wide_text(head: bytes) -> str | None:
    """The name of the encoding of a text whose signs have two bytes each; None where they have not. Without
    a mark, most signs have one byte that is 0, on the same side, and no other."""
    if head.startswith(UTF16):
        return "utf-16"
    even, odd = head[0:MARKLESS:2], head[1:MARKLESS:2]
    for high, low, name in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if 2 * high.count(0) > len(high) and not low.count(0):
            return name
    return None


# codecs, how they are called, and the plain letters of their languages
_OTHERS = (
    ("cp932", "Shift JIS", re.compile("[\u3001-\u30ff\u4e00-\u9fff\uff01-\uff5e\uffe5]")),
    ("cp1251", "Windows-1251", re.compile("[\u0410-\u044f\u0401\u0451\u2116«»°]")),
    ("cp949", "EUC-KR", re.compile("[\uac00-\ud7a3\u3001-\u3011]")),
    ("gb18030", "GB 18030", re.compile("[\u4e00-\u9fff\u3001-\u3011\uff01-\uff5e\uffe5]")),
)
_RUN = re.compile(rb"[\x80-\xff]{3,}")
MOSTLY = 0.9  # of the letters that are no ASCII


def other_text(path: str, head: bytes) -> tuple[str, str] | None:
    """The codec of a text that is neither UTF-8 nor Western, and its name; None where it is one of these."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
        return None
    except UnicodeDecodeError:
        pass
    high = sum(1 for byte in head if byte >= 0x80)
    if 2 * sum(map(len, _RUN.findall(head))) < high and not _is_japanese(head):
        return None
    best = (MOSTLY, "", "")
    for codec, named, letters in _OTHERS:
        try:
            text = codecs.getincrementaldecoder(codec)().decode(head)
        except UnicodeDecodeError:
            continue
        signs = [c for c in text if not c.isascii()]
        share = sum(1 for c in signs if letters.match(c)) / max(len(signs), 1)
        # capitals after small letters, which words have not: bytes of two-byte letters read as Cyrillic
        share -= 2 * len(re.findall("[а-я][А-Я]", text)) / max(len(signs), 1)
        if codec == "gb18030":  # of rare letters are other texts that happen to be pairs of bytes
            share = min(share, sum(map(_is_frequent, signs)) / max(len(signs), 1))
        best = max(best, (share, codec, named), key=lambda one: one[0])
    if not best[1]:
        raise TableError(
            f"{path} is text in an encoding that is neither UTF-8 nor Western, with bytes such as"
            f" {_RUN.findall(head)[0][:6].hex(' ')}. Save it as UTF-8: in a spreadsheet, as CSV UTF-8."
        )
    return best[1], best[2]


def _is_frequent(c: str) -> bool:
    """Whether a letter is in the first level of GB 2312, or a sign."""
    return c.encode("gb2312", "replace")[0] in range(0xA1, 0xD8)


def _is_japanese(head: bytes) -> bool:
    """Whether a text is Shift JIS, whose letters may end in a byte of ASCII: it has some of the most frequent
    ones, which no Western text spells."""
    try:
        text = codecs.getincrementaldecoder("cp932")().decode(head)
    except UnicodeDecodeError:
        return False
    return len(set(text) & set("月日円時分数名のはをにがとでたしるーンスト")) > 1


def _western(escaped: str) -> str:
    byte = bytes([ord(escaped) - 0xDC00])
    try:
        return byte.decode("cp1252")
    except UnicodeDecodeError:  # five bytes that it leaves open
        return byte.decode("latin-1")


def _check_head(path: str, head: bytes, is_all: bool) -> None:
    if is_all and not head.strip(b"\xef\xbb\xbf\xff\xfe \t\r\n\0"):
        raise TableError(f"{path} is empty. A table begins with a line of column names.")
    for signature, cure in FOREIGN.items():
        if head.startswith(signature) or head[:20].lstrip().lower().startswith(signature):
            plain = signature.isascii() and signature.decode().isprintable()
            begins = repr(signature.decode()) if plain else f"the bytes {signature.hex(' ')}"
            raise TableError(f"{path} is not CSV text: it begins with {begins}. {cure}")


def unending(path: str, line: int, room: Room) -> GramianError:
    """What to say of a line that is longer than one may be."""
    what = f"{path}, line {line}: the line does not end within {show_bytes(room.line)}"
    if room.line < LINE:
        return MemoryLimitError(
            f"{what}, the most that is read of one, as {room.told}. Raise memory_limit, or write a line"
            " a row."
        )
    return TableError(f"{what}, the most that is read of one. A table has one line a row: write it so.")


def kind_of_bytes(head: bytes) -> str:
    """The suffix of a table that begins with these bytes."""
    known = {
        b"PAR1": ".parquet",
        b"ARROW1": ".arrow",
        b"PK\x03\x04": ".xlsx",
        b"\x1f\x8b": ".csv.gz",
        b"\xd0\xcf\x11\xe0": ".xls",
    }
    return next((suffix for start, suffix in known.items() if head.startswith(start)), ".csv")
