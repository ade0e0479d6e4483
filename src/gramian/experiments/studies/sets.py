"""The data sets that experiments need: from a folder, or from an address that has the same files.

A set is a NumPy file `NAME.npz` of plain arrays: X, y (or X_train, y_train, X_test, y_test) and others beside
them. Its sha256 is part of the library, so that an experiment is of the data that it says, and a damaged or
changed file is refused. Where a file is not in the folder, it is taken from an address, if there is one: a
person's own server, or a mirror. The library has no address of its own, since it cannot promise that one
stays.

    --data FOLDER      or GRAMIAN_DATA       where files are, and where fetched ones are kept
    --address URL      or GRAMIAN_DATA_URL   from where NAME.npz can be fetched
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gramian.data.atomic import atomic_write
from gramian.errors import InputError, ParameterError

FOLDER, ADDRESS = "GRAMIAN_DATA", "GRAMIAN_DATA_URL"
PATIENCE = 30.0  # seconds without a byte


@dataclass(frozen=True)
class DataSet:
    """A file by its checksum."""

    name: str
    size: int  # bytes
    sha256: str
    what: str

    @property
    def file(self) -> str:
        return f"{self.name}.npz"


SETS: Final[dict[str, DataSet]] = {
    known.name: known
    for known in (
        DataSet(
            "3dsn_first5000",
            105267,
            "2e1a101ffd50485b077973751b14d734ea9c61cc09064c0e1f319d5fa4c2277e",
            "5,000 rows of 3D Road Network (UCI): altitude by longitude and latitude",
        ),
        DataSet(
            "abalone",
            58457,
            "caa6ba14234d2723fb8a8a0d3dc188bda84f47edf337b9b8a5a8476322a00c92",
            "Abalone (UCI): rings of shells by seven measures",
        ),
        DataSet(
            "magic04",
            677041,
            "8b0d3b223cbaabc5a241521c93ccfe3579dccaecf0ef129430d11d0a12a38851",
            "MAGIC Gamma Telescope (UCI): gamma rays or hadrons, ten features",
        ),
        DataSet(
            "wine_white",
            83304,
            "8c6af3916a011a26df9b986af52c7ff8ec859c3df3ec9ca19126b0d8bf7b0f9b",
            "Wine Quality, white (UCI): quality by eleven measures",
        ),
        DataSet(
            "weather_gatton_qld",
            120143,
            "6f98c600c4042a16697c5e0115f3f648bfb0f3fc074be43fd9c47ac6345bb1ed",
            "daily temperatures at Gatton, Queensland (SILO)",
        ),
        DataSet(
            "stock_7259_2000_2019",
            71103,
            "c27fec50bb3afef943b5c0f98814716c74b3d8e17529f8b25769eadd199ef37b",
            "a stock of Tokyo, 2000 to 2019: closing price by open, high, low, volume",
        ),
        DataSet(
            "jass_trump",
            26448,
            "08e2a11017b29982f6e3c88860ed665d08e3b7fbf7e90d8095536ef50ccfa14e",
            "choices of trump in Jass, six kinds, by 36 cards and whether it was passed on",
        ),
        DataSet(
            "oil_flow",
            114548,
            "dc4167b864fd6c3c979d082ef8b06270550b62cac2c77d7591b0f6b194e52521",
            "three-phase oil flow (Bishop and James 1993): twelve measures, three kinds of flow",
        ),
        DataSet(
            "breastmnist",
            558630,
            "9080985e487f1873fac719ad123ea96625a667700dee258b1a1bd044e838be70",
            "BreastMNIST (MedMNIST): 780 ultrasound images of 28 x 28 pixels",
        ),
        DataSet(
            "ndvi_field_dtwsat",
            3631,
            "6b2da1d789e37c181d6794fa2611707547cce48fe279de2bfdfc395054511141",
            "a field in Mato Grosso (dtwSat): vegetation index at 93 dates",
        ),
    )
}


class DataFolder:
    """Where files are, and from where those can be fetched that are not there."""

    def __init__(self, folder: Path | None = None, address: str | None = None) -> None:
        named = folder or os.environ.get(FOLDER)
        self.folder = Path(named) if named else _cache()
        self.address = address or os.environ.get(ADDRESS) or None
        if self.address is not None and urllib.parse.urlsplit(self.address).scheme not in ("http", "https"):
            raise ParameterError(
                f"--address {self.address} is no address of a server. Give one that begins with https:// or"
                " http://; for files on this machine give --data FOLDER."
            )
        if folder is not None and folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file. Give --data the folder that has the files.")

    def prepare(self, names: Iterable[str], known: dict[str, DataSet] = SETS) -> dict[str, str]:
        """Looks for all files, fetches those that are missing, and checks them; gives their checksums."""
        wanted = [known[name] for name in names]
        missing = [each for each in wanted if not (self.folder / each.file).exists()]
        if missing and self.address is None:
            files = ", ".join(f"{each.file} ({each.what})" for each in missing)
            raise InputError(
                f"{self.folder} does not have {files}. Say with --data FOLDER (or {FOLDER}) where the files"
                f" are, or with --address URL (or {ADDRESS}) from which server they can be fetched."
            )
        for each in missing:
            self._fetch(each)
        for each in wanted:
            self._check(each, (self.folder / each.file).read_bytes(), str(self.folder / each.file))
        return {each.name: each.sha256 for each in wanted}

    def load(self, name: str) -> dict[str, NDArray[Any]]:
        """The arrays of a set."""
        with np.load(self.folder / f"{name}.npz", allow_pickle=False) as held:
            return {key: held[key] for key in held.files}

    def _fetch(self, wanted: DataSet) -> None:
        assert self.address is not None
        url = f"{self.address.rstrip('/')}/{wanted.file}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                content = answer.read(wanted.size + 1)  # no server fills the memory
        except (urllib.error.URLError, OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise InputError(
                f"{url} could not be fetched: {reason}. Try again, or put {wanted.file} into {self.folder}."
            ) from None
        self._check(wanted, content, url)
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.folder / wanted.file, InputError) as file:
            file.write(content)

    def _check(self, wanted: DataSet, content: bytes, where: str) -> None:
        found = hashlib.sha256(content).hexdigest()
        if len(content) != wanted.size or found != wanted.sha256:
            raise InputError(
                f"{where} is not the file that it should be: sha256 {found[:12]}... instead of"
                f" {wanted.sha256[:12]}... It is damaged, or another version. Delete it and get it again."
            )


def _cache() -> Path:
    """Where fetched files are kept by default."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gramian" / "data"
