"""The bytes of a text file on their way to the parser: unpacked, and refused where they are no UTF-8 text."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from typing import Any

from gramian.errors import TableError

CHUNK = 2**20  # bytes read at once

FOREIGN = {  # how files of other formats begin, when their name says CSV
    b"\x1f\x8b": "This is gzip data: rename the file so that it ends in .gz.",
    b"PK\x03\x04": "This is a spreadsheet or zip file: export the sheet as CSV.",
    b"PAR1": "This is a Parquet file: rename it so that it ends in .parquet.",
    b"\xff\xfe": "This is UTF-16 text: save it as UTF-8.",
    b"\xfe\xff": "This is UTF-16 text: save it as UTF-8.",
}


class CheckedBytes(io.RawIOBase):
    """The bytes of a text file, unpacked; what is not UTF-8 text is told with its line and byte."""

    def __init__(self, path: str, file: io.BufferedReader, packed: bool) -> None:
        self._path = path
        self._is_gzip = file.peek(2)[:2] == b"\x1f\x8b"
        self._file = gzip.GzipFile(fileobj=file) if packed else file
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        # bytes and lines so far; whether the last one was a \r
        self._before, self._line, self._column, self._returned = 0, 1, 0, False
        self.head = self._rest = self._read(CHUNK)
        _check_head(path, self.head, len(self.head) < CHUNK)
        self._check(self.head)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._rest:
            chunk, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        else:
            chunk = self._read(len(buffer))
            self._check(chunk)
        buffer[: len(chunk)] = chunk
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

    def _check(self, chunk: bytes) -> None:
        pending = len(self._decoder.getstate()[0])  # of a character that began in the chunk before
        try:
            self._decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as cause:
            raise TableError(
                f"{self._path}, {self._place(chunk, cause.start - pending)}: the byte"
                f" 0x{cause.object[cause.start]:02x} is not UTF-8 text. Save the file as UTF-8 (spreadsheets:"
                " 'CSV UTF-8'; terminal: iconv -f WINDOWS-1252 -t UTF-8)."
            ) from cause
        if b"\0" in chunk:
            where = self._place(chunk, chunk.index(b"\0"))
            cure = "The file is damaged or is not text; export it anew as UTF-8 CSV."
            raise TableError(f"{self._path}, {where}: a NUL byte, which no text has. {cure}")
        self._line, self._column = self._after(chunk)
        self._before, self._returned = self._before + len(chunk), chunk.endswith(b"\r")

    def _after(self, part: bytes) -> tuple[int, int]:
        """The line, and the bytes of it that have passed, after `part`. Lines end with \\n, \\r or \\r\\n."""
        ends = part.count(b"\n") + part.count(b"\r") - part.count(b"\r\n")
        ends -= self._returned and part.startswith(b"\n")
        last = max(part.rfind(b"\n"), part.rfind(b"\r"))
        return self._line + ends, self._column + len(part) if last < 0 else len(part) - last - 1

    def _place(self, chunk: bytes, position: int) -> str:
        line, column = self._after(chunk[: max(position, 0)])
        byte = f"byte {self._before + position} of the file, from 0"
        return f"line {line}, position {column + min(position, 0) + 1} ({byte})"


def _check_head(path: str, head: bytes, is_all: bool) -> None:
    if is_all and not head.strip(b"\xef\xbb\xbf \t\r\n"):
        raise TableError(f"{path} is empty. A table begins with a line of column names.")
    for signature, cure in FOREIGN.items():
        if head.startswith(signature):
            raise TableError(f"{path} is not CSV text: it begins with the bytes {signature.hex(' ')}. {cure}")
