"""Files that are damaged, foreign or made up: each is refused with an error that says why; none runs code or takes memory it does not fill."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import os
import pickle
import stat
import struct
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import gramian as gm
from gramian.errors import MemoryLimitError, ModelFileError
from gramian.modelfile import document as documents
from gramian.modelfile import file as modelfile
from gramian.modelfile import load
from gramian.modelfile.record import describe

Document = dict[str, Any]
Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with all that can go wrong: names, categories, known noise, two outputs with a root each, a mean with units, priors and bounds."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"temp": rng.normal(size=9), "load": rng.normal(size=9), "site": list("abcabcabc")})
    Y = np.column_stack([np.sin(X["temp"]), 100 * np.cos(X["load"])])
    lengthscale = gm.param([0.5, 0.7], prior=gm.LogNormal((0.0, 0.1), 1.0), bounds=(0.1, np.inf))
    kernel = 1.5 * gm.RBF(lengthscale).on("temp", "load") * gm.Categorical().on("site") + gm.Polynomial(2).on("load") ** 2
    gp = gm.GPRegressor(kernel, mean="linear", noise=0.1, optimize=False, random_state=np.random.RandomState(0))
    path = tmp_path_factory.mktemp("model") / "m.gm"
    gp.fit(X, Y, noise_var=np.full(9, 0.1)).save(path)
    return path


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smallest model."""
    path = tmp_path_factory.mktemp("plain") / "m.gm"
    gm.GPRegressor(gm.RBF(0.5), noise=0.1, optimize=False).fit([[0.0], [1.0]], [0.0, 1.0]).save(path)
    return path


def parts(path: Path) -> tuple[dict[str, str], Document, Arrays]:
    with safe_open(path, framework="np") as file:
        metadata = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict
    return metadata, json.loads(metadata["document"]), arrays


def forged(path: Path, metadata: dict[str, str], document: Document | str, arrays: Arrays) -> Path:
    """A file with a right checksum, as somebody would make it who knows how; written by the safetensors library."""
    text = document if isinstance(document, str) else json.dumps(document)
    digest = hashlib.sha256(f"{metadata['version']}\n{metadata['library']}\n{text}\n".encode())
    for name in sorted(arrays):
        digest.update(f"{name} {list(arrays[name].shape)}\n".encode() + arrays[name].tobytes())
    save_file(arrays, path, {**metadata, "document": text, "sha256": digest.hexdigest()})
    return path


def refused(path: Path, *messages: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    for message in messages:
        assert message in str(caught.value)


def test_a_file_forged_without_a_change_loads(model: Path, tmp_path: Path) -> None:
    assert describe(load(forged(tmp_path / "m.gm", *parts(model))))[0] == describe(load(model))[0]


# Damage. --------------------------------------------------------------------------------------------------------------------------------------------


def test_each_altered_byte_is_noticed(plain: Path, tmp_path: Path) -> None:
    content, path = plain.read_bytes(), tmp_path / "m.gm"
    for k in range(len(content)):
        path.write_bytes(content[:k] + bytes([content[k] ^ 1]) + content[k + 1 :])
        with pytest.raises(ModelFileError):
            load(path)


def test_each_cut_and_each_addition_is_noticed(plain: Path, tmp_path: Path) -> None:
    content, path = plain.read_bytes(), tmp_path / "m.gm"
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(ModelFileError):
            load(path)
    path.write_bytes(content + b"\0")
    refused(path, "damaged")


def test_damage_is_called_damage(model: Path, tmp_path: Path) -> None:
    content, path = model.read_bytes(), tmp_path / "m.gm"
    path.write_bytes(content[:-9] + bytes([content[-9] ^ 64]) + content[-8:])
    refused(path, "checksum does not match", "copy the file again")
    path.write_bytes(content.replace(b"Categorical", b"CategoricaI", 1))
    refused(path, "checksum does not match")
    path.write_bytes(content[:2000])
    refused(path, "cut off")


# Other files. ---------------------------------------------------------------------------------------------------------------------------------------


class Trap:
    """What a pickle runs when it is opened."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (os.environ["TRAP"],)


def header(text: bytes, data: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(text) if length is None else length) + text + data


FOREIGN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "text": (b"a,b\n1,2\n" * 40, "not a model file"),
    "short": (b"x", "not a model file"),
    "zeros": (bytes(100), "not a model file"),
    "json": (json.dumps({"format": "gramian model", "version": 1}).encode(), "not a model file"),
    "zip": (b"PK\x03\x04" + bytes(100), "not a model file"),
    "huge header": (header(b"{}", length=2**63), "damaged or no model file"),
    "large header": (header(b'{"a"', length=99_000_000), "cut off"),
    "no header": (header(b"", length=0), "not a model file"),
    "no array": (header(b"{}"), "not one with a gramian model"),
    "nested header": (header(b'{"a":' * 100_000), "damaged, or no model file"),
    "open header": (header(b'{"__metadata__":{"format":"gramian model"'), "damaged, or no model file"),
    "header that lies": (header(b'{"X":{"dtype":"F64","shape":[1099511627776],"data_offsets":[0,8796093022208]}}', bytes(64)), "damaged"),
    "header beyond all numbers": (header(b'{"X":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,64]}}', bytes(64)), "damaged"),
    "negative header": (header(b'{"X":{"dtype":"F64","shape":[-8],"data_offsets":[0,64]}}', bytes(64)), "damaged"),
    "another safetensors file": (
        header(b'{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4)),
        "not one with a gramian",
    ),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_other_files_are_refused_without_taking_memory(case: str, tmp_path: Path) -> None:
    content, message = FOREIGN[case]
    path = tmp_path / "m.gm"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        refused(path, message)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1e6 + 3 * len(content)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_not_opened(protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAP", str(tmp_path / "trapped"))
    (tmp_path / "m.gm").write_bytes(pickle.dumps([Trap(), "x" * 100], protocol))
    refused(tmp_path / "m.gm", "pickle" if protocol >= 2 else "not a model file")
    assert os.listdir(tmp_path) == ["m.gm"]


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "folder")
    refused(tmp_path / "missing.gm", "no such file")
    refused(tmp_path / "no" / "folder.gm", "no such file")
    (tmp_path / "file").write_bytes(b"")
    refused(tmp_path / "file" / "m.gm", "Not a directory")
    for nonsense in (3, None, 1.5):
        with pytest.raises(ModelFileError, match="cannot be loaded"):
            load(nonsense)  # type: ignore[arg-type]
    with pytest.raises(ModelFileError, match="null"):
        load("a\0b")


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes in folders there")
def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "pipe")
    refused(Path("/dev/null"), "device")


@pytest.mark.skipif(sys.platform == "win32" or (hasattr(os, "geteuid") and os.geteuid() == 0), reason="all files can be read")
def test_a_file_that_may_not_be_read_is_refused(plain: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.gm"
    path.write_bytes(plain.read_bytes())
    path.chmod(stat.S_IWUSR)
    refused(path, "Permission denied")


def test_a_model_beyond_memory_is_refused_before_it_is_read(plain: Path, tmp_path: Path) -> None:
    """A file full of holes: 640 GB by its length, a few kB on disk."""
    n = 400_000
    metadata, _, _ = parts(plain)
    shapes = {"X": [n, 1], "Y": [n, 1], "scale": [1], "alpha": [n, 1], "theta": [3], "root.0": [n * (n + 1) // 2]}
    layout, at = {"__metadata__": metadata}, 0
    for name, shape in shapes.items():
        stop = at + 8 * int(np.prod(shape, dtype=object))
        layout[name] = {"dtype": "F64", "shape": shape, "data_offsets": [at, stop]}  # type: ignore[assignment]
        at = stop
    with open(tmp_path / "m.gm", "wb") as file:
        file.write(header(json.dumps(layout).encode()))
        file.truncate(file.tell() + at)
    with pytest.raises(MemoryLimitError, match="400,000 rows needs"):
        load(tmp_path / "m.gm")


# Versions. ------------------------------------------------------------------------------------------------------------------------------------------


def test_a_newer_format_asks_for_an_upgrade(model: Path, tmp_path: Path) -> None:
    metadata, document, arrays = parts(model)
    newer = {**metadata, "version": str(modelfile.VERSION + 1), "library": "9.8.7"}
    refused(forged(tmp_path / "m.gm", newer, {"anything": "else"}, arrays), "format 2", "9.8.7", "pip install --upgrade gramian")
    newer["version"] = "999999999"
    refused(forged(tmp_path / "m.gm", newer, document, {"other": np.zeros(3, np.float32)}), "Upgrade")


@pytest.mark.parametrize("version", ["", "0", "-1", "1.0", "one", "²", "1" * 5000])
def test_a_nonsense_version_is_refused(version: str, model: Path, tmp_path: Path) -> None:
    metadata, document, arrays = parts(model)
    refused(forged(tmp_path / "m.gm", {**metadata, "version": version}, document, arrays), "format version")


def test_an_older_format_is_brought_up_to_date(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata, document, arrays = parts(model)
    document["table"] = document.pop("columns")  # as if version 1 had called it so
    path = forged(tmp_path / "m.gm", metadata, document, arrays)
    refused(path, "no entry 'columns'")
    expected = describe(load(model))[0]
    monkeypatch.setattr(modelfile, "VERSION", 2)
    monkeypatch.setattr(modelfile, "MIGRATIONS", {1: lambda old: {**{k: v for k, v in old.items() if k != "table"}, "columns": old["table"]}})
    assert describe(load(path))[0] == expected


@pytest.mark.parametrize("missing", ["format", "version", "library", "document", "sha256"])
def test_a_missing_entry_of_the_header_is_refused(missing: str, model: Path, tmp_path: Path) -> None:
    metadata, _, arrays = parts(model)
    save_file(arrays, tmp_path / "m.gm", {name: value for name, value in metadata.items() if name != missing})
    refused(tmp_path / "m.gm")


# Documents with a right checksum. -------------------------------------------------------------------------------------------------------------------

BOMBS = {
    "deep lists": ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
    "deep objects": ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deeply"),
    "no JSON": ("{", "not JSON"),
    "nothing": ("", "not JSON"),
    "a list": ("[]", "its document is []"),
    "a number": ("3", "its document is 3"),
    "NaN": ('{"a":NaN}', "NaN"),
    "Infinity": ('{"a":-Infinity}', "-Infinity"),
    "a number beyond floats": ('{"a":1e999}', "beyond float64"),
    "a number without end": ('{"a":' + "9" * 100_000 + "}", "beyond 64 bits"),
    "an entry twice": ('{"a":1,"a":2}', "twice"),
}


@pytest.mark.parametrize("case", BOMBS)
def test_documents_that_are_none(case: str, plain: Path, tmp_path: Path) -> None:
    text, message = BOMBS[case]
    metadata, _, arrays = parts(plain)
    refused(forged(tmp_path / "m.gm", metadata, text, arrays), message)


def put(*path: Any) -> Callable[[Document, Arrays], None]:
    """A change of one place of the document: keys, then the new value."""

    def change(document: Document, _: Arrays) -> None:
        place: Any = document
        for key in path[:-2]:
            place = place[key]
        place[path[-2]] = path[-1]

    return change


def array(name: str, value: Any) -> Callable[[Document, Arrays], None]:
    def change(_: Document, arrays: Arrays) -> None:
        arrays.pop(name, None)
        if value is not None:
            arrays[name] = np.ascontiguousarray(value(arrays) if callable(value) else value)

    return change


def with_entry(name: str, at: tuple[int, ...], value: float) -> Callable[[Document, Arrays], None]:
    def change(_: Document, arrays: Arrays) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name][at] = value

    return change


def parameter(some: list[Any], lengths: list[Any], **more: Any) -> Document:
    described = {"shape": lengths, "values": some, "support": {"class": "Positive", "fields": {}}, "prior": None, "bounds": None, "trainable": True}
    return {"parameter": {**described, **more}}


def rbf(**more: Any) -> Document:
    return {"class": "RBF", "fields": {"lengthscale": parameter([0.5], [], **more)}}


def constant() -> Document:
    return {"class": "Constant", "fields": {"variance": parameter([0.5], [])}}


def kernel(value: Any) -> Callable[[Document, Arrays], None]:
    return put("fitted", "kernel", value)


def chain(levels: int) -> Document:
    found = rbf()
    for _ in range(levels):
        found = {"class": "Exp", "fields": {"kernel": found}}
    return found


MT = "mt19937"
KEY = [1] * 624
HOSTILE: dict[str, tuple[Callable[[Document, Arrays], None], str]] = {
    # Classes.
    "a function of a module": (kernel({"class": "os.system", "fields": {"command": "true"}}), "'os.system'"),
    "a function of a module as a user's class": (kernel({"custom": "os.system", "fields": {}}), "'os.system', which is not known here"),
    "a name with underscores": (kernel({"class": "__import__", "fields": {}}), "'__import__'"),
    "a class of Python": (kernel({"custom": "object", "fields": {}}), "'object'"),
    "a class of the library that is no part of a model": (kernel({"class": "GPRegressor", "fields": {}}), "'GPRegressor'"),
    "an abstract class": (kernel({"class": "Kernel", "fields": {}}), "'Kernel'"),
    "a class name that is none": (kernel({"class": ["RBF"], "fields": {}}), "kernel_.class is ['RBF']"),
    "a function of the library": (kernel({"class": "exp", "fields": {}}), "'exp'"),
    "a kernel of a later library": (kernel({"class": "Quantum", "fields": {}}), "Upgrade"),
    "a warp": (kernel({"class": "Warped", "fields": {"kernel": rbf(), "function": "os.system"}}), "function is 'os.system'"),
    "a map of inputs": (kernel({"class": "MapInputs", "fields": {"kernel": rbf(), "function": None}}), "function is None"),
    "a mean for a kernel": (kernel({"class": "ZeroMean", "fields": {}}), "kernel_ is a ZeroMean"),
    "a mean in a kernel": (kernel({"class": "Exp", "fields": {"kernel": {"class": "ZeroMean", "fields": {}}}}), "kernel_.kernel is"),
    "a number for a kernel": (kernel(3), "kernel_ is a int"),
    "no kernel": (kernel(None), "kernel_ is a NoneType"),
    "a number in a kernel": (kernel({"class": "Exp", "fields": {"kernel": 3}}), "kernel_.kernel is 3"),
    "a prior for a kernel": (kernel({"class": "Normal", "fields": {"mu": 0.0, "sigma": 1.0}}), "kernel_ is a Normal"),
    "kernels without end": (kernel(chain(65)), "levels deep"),
    "kernels beyond Python's stack": (kernel(chain(150)), "deep"),
    "a sum of one": (kernel({"class": "Sum", "fields": {"terms": [rbf()]}}), "two kernels or more"),
    "a sum of a sum": (
        put(
            "settings", "kernel", {"class": "Sum", "fields": {"terms": [constant(), {"class": "Sum", "fields": {"terms": [constant(), constant()]}}]}}
        ),
        "do not come back as they were stored",
    ),
    "a sum of numbers": (kernel({"class": "Sum", "fields": {"terms": [1, 2]}}), "terms is (1, 2)"),
    "a power of a half": (kernel({"class": "Power", "fields": {"base": rbf(), "exponent": 0.5}}), "exponent is 0.5"),
    "a power of true": (kernel({"class": "Power", "fields": {"base": rbf(), "exponent": True}}), "exponent is True"),
    "a negative power": (kernel({"class": "Power", "fields": {"base": rbf(), "exponent": -2}}), "whole number from 1"),
    "a column that is not there": (kernel({"class": "On", "fields": {"kernel": rbf(), "columns": ["salt"]}}), "no column 'salt'"),
    "a column beyond the last": (kernel({"class": "On", "fields": {"kernel": rbf(), "columns": [7]}}), "no column 7"),
    "a column that is true": (kernel({"class": "On", "fields": {"kernel": rbf(), "columns": [True]}}), "columns is (True,)"),
    "numbers on categories": (kernel(rbf()), "holds categories"),
    "a missing field": (kernel({"class": "RBF", "fields": {}}), "no entry 'lengthscale'"),
    "a field too many": (kernel({"class": "RBF", "fields": {"lengthscale": 1.0, "__class__": "x"}}), "'__class__', which is not known"),
    "an object too many": (kernel({**rbf(), "extra": 1}), "'extra', which is not known"),
    "an object that is none": (kernel({"function": "os.system"}), "neither a parameter nor an object"),
    # Parameters.
    "a field that is no parameter": (kernel({"class": "RBF", "fields": {"lengthscale": 1.0}}), "lengthscale is 1.0"),
    "a negative lengthscale": (kernel(rbf(values=[-1.0])), "must be positive"),
    "a lengthscale of text": (kernel(rbf(values=["1.0"])), "values[0] is '1.0'"),
    "a lengthscale of nothing": (kernel(rbf(values=[])), "0 values, but the shape []"),
    "a lengthscale of infinity": (kernel(rbf(values=[{"float": "inf"}])), "values[0] is {'float': 'inf'}"),
    "a shape of lies": (kernel(rbf(shape=[10**12])), "1 values, but the shape"),
    "a negative shape": (kernel(rbf(shape=[-1])), "but the shape [-1]"),
    "two negative lengths": (kernel(rbf(shape=[-1, -1])), "but the shape [-1, -1]"),
    "a shape of floats": (kernel(rbf(shape=[1.0])), "shape[0] is 1.0"),
    "a shape of many dimensions": (kernel(rbf(shape=[1] * 70)), "but the shape"),
    "bounds that exclude the value": (kernel(rbf(bounds=[1.0, 2.0])), "outside its bounds"),
    "bounds the wrong way round": (kernel(rbf(bounds=[1.0, 0.1])), "are empty"),
    "three bounds": (kernel(rbf(bounds=[0.1, 1.0, 2.0])), "3 entries"),
    "bounds of text": (kernel(rbf(bounds=["a", "b"])), "bounds is 'a'"),
    "trainable by half": (kernel(rbf(trainable=0)), "trainable is 0"),
    "a prior that is none": (kernel(rbf(prior={"class": "Real", "fields": {}})), "has the prior"),
    "a prior that is text": (kernel(rbf(prior="LogNormal")), "has the prior 'LogNormal'"),
    "a prior of nonsense": (kernel(rbf(prior={"class": "LogNormal", "fields": {"mu": 0.0, "sigma": -1.0}})), "sigma is -1.0"),
    "a prior of text": (kernel(rbf(prior={"class": "LogNormal", "fields": {"mu": "0", "sigma": 1.0}})), "mu is '0'"),
    "a prior of other shape": (kernel(rbf(prior={"class": "LogNormal", "fields": {"mu": [0.0, 1.0], "sigma": 1.0}})), "another number of entries"),
    "a support that is none": (kernel(rbf(support={"class": "LogNormal", "fields": {"mu": 0.0, "sigma": 1.0}})), "has the support"),
    "another support": (kernel(rbf(support={"class": "Real", "fields": {}})), "has the support Real()"),
    "no support": (kernel(rbf(support=None)), "has the support None"),
    "a support in units": (kernel(rbf(support={"class": "Affine", "fields": {"loc": 0.0, "scale": 1.0}})), "has the support Affine"),
    "units of zero": (
        put("fitted", "mean", "fields", "value", "parameter", "support", "fields", "scale", [0.0, 0.0]),
        "units that are not finite and positive",
    ),
    "units of another shape": (put("fitted", "mean", "fields", "value", "parameter", "support", "fields", "loc", [0.0]), "its units have (1,)"),
    "units of text": (put("fitted", "mean", "fields", "value", "parameter", "support", "fields", "loc", "os"), "loc is 'os'"),
    "a special float": (put("fitted", "evidence", "fields", "value", {"float": "__import__('os')"}), "only inf, -inf and nan"),
    "a special float of a list": (put("fitted", "evidence", "fields", "value", {"float": []}), "only inf, -inf and nan"),
    # The other parts of the fit.
    "a mean of another number of outputs": (
        put("fitted", "mean", {"class": "ConstantMean", "fields": {"value": parameter([0.0] * 5, [5], support={"class": "Real", "fields": {}})}}),
        "its mean gives an array of shape (2, 5)",
    ),
    "a mean of other columns": (put("fitted", "mean", "fields", "centre", [0.0] * 5), "not valid"),
    "a mean of text": (put("fitted", "mean", "fields", "centre", ["os"]), "centre is ('os',)"),
    "a likelihood that is none": (put("fitted", "likelihood", rbf()), "likelihood is a RBF"),
    "a negative noise": (put("fitted", "likelihood", "fields", "noise", "parameter", "values", [-1.0]), "outside its bounds"),
    "units of noise for other outputs": (put("fitted", "likelihood", "fields", "unit", [1.0, 1.0, 1.0]), "in 1 or 2 positive units"),
    "negative units of noise": (put("fitted", "likelihood", "fields", "unit", [-1.0]), "in 1 or 2 positive units"),
    "an evidence of no kind": (put("fitted", "evidence", "fields", "kind", "divine"), "kind is 'divine'"),
    "an evidence of text": (put("fitted", "evidence", "fields", "value", "1"), "value is '1'"),
    "an outcome of text": (put("fitted", "outcome", "fields", "seconds", "soon"), "seconds is 'soon'"),
    "an outcome with half an iteration": (put("fitted", "outcome", "fields", "iterations", 0.5), "iterations is 0.5"),
    "a negative number of iterations": (put("fitted", "outcome", "fields", "iterations", -1), "negative or without end"),
    "a time without end": (put("fitted", "outcome", "fields", "seconds", {"float": "nan"}), "negative or without end"),
    "a negative error": (put("fitted", "evidence", "fields", "standard_error", -1.0), "negative or without end"),
    "negative units": (put("fitted", "mean", "fields", "value", "parameter", "support", "fields", "scale", [1.0, -1.0]), "finite and positive"),
    "notes that are none": (put("fitted", "outcome", "fields", "notes", [1]), "notes is (1,)"),
    "an outcome that is none": (put("fitted", "outcome", None), "outcome_ is a NoneType"),
    "one output of two": (put("fitted", "single", True), "single output, but has 2"),
    "a flag that is none": (put("fitted", "single", 1), "single is 1"),
    "too few outputs": (put("fitted", "root_of", [0]), "root_of is [0]"),
    "a root that is not there": (put("fitted", "root_of", [0, 2]), "root_of is [0, 2]"),
    "a root from behind": (put("fitted", "root_of", [0, -1]), "root_of is [0, -1]"),
    "a root that nobody uses": (put("fitted", "root_of", [0, 0]), "root_of is [0, 0]"),
    "a root by name": (put("fitted", "root_of", ["root.0", "root.1"]), "root_of[0]"),
    "no fit": (put("fitted", None), "fitted is None"),
    # Columns.
    "a name too few": (put("columns", "names", ["temp", "load"]), "3 columns of data, but 2 names"),
    "a name twice": (put("columns", "names", ["temp", "temp", "site"]), "2 of them different"),
    "a name that is a number": (put("columns", "names", ["temp", 1, "site"]), "columns.names[1] is 1"),
    "names that are none": (put("columns", "named", False), "have no names, and yet"),
    "a category too few": (put("columns", "categories", [[2, ["a", "b"]]]), "codes that stand for no category"),
    "a category twice": (put("columns", "categories", [[2, ["a", "b", "b"]]]), "a category twice"),
    "a category that is a number": (put("columns", "categories", [[2, ["a", "b", 3]]]), "columns.categories[2][2] is 3"),
    "categories of a column that is not there": (put("columns", "categories", [[3, ["a", "b", "c"]]]), "pairs of a column"),
    "categories twice": (put("columns", "categories", [[2, ["a", "b", "c"]]] * 2), "each once"),
    "categories of numbers": (put("columns", "categories", [[0, ["a"]], [2, ["a", "b", "c"]]]), "codes that stand for no category"),
    "categories that are none": (put("columns", "categories", "abc"), "columns.categories is 'abc'"),
    # Settings.
    "a setting too many": (put("settings", "hook", "os.system"), "'hook', which is not known"),
    "settings that are none": (put("settings", []), "settings is []"),
    "a method that is none": (put("settings", "method", "magic"), "'magic' is not known"),
    "a method that is a kernel": (put("settings", "method", rbf()), "method is a RBF"),
    "a method with nonsense": (put("settings", "method", {"class": "Exact", "fields": {"solver": "LU"}}), "solver is 'LU'"),
    "a mean that is none": (put("settings", "mean", "mode"), "'mode' is not known"),
    "a mean that is a kernel": (put("settings", "mean", rbf()), "mean is a RBF"),
    "noise below zero": (put("settings", "noise", -1.0), "noise must be a variance"),
    "noise of text": (put("settings", "noise", "some"), "noise must be a variance"),
    "noise of two": (put("settings", "noise", parameter([0.1, 0.1], [2], support=None)), "noise must be one variance"),
    "memory of text": (put("settings", "memory_limit", "much"), "memory_limit='much'"),
    "time below zero": (put("settings", "time_limit", -1.0), "time_limit=-1.0"),
    "time of text": (put("settings", "time_limit", "long"), "'long'"),
    "restarts of halves": (put("settings", "n_restarts", 0.5), "n_restarts=0.5"),
    "a flag of text": (put("settings", "normalize_y", "no"), "normalize_y is 'no'"),
    "a flag that is a list": (put("settings", "optimize", []), "optimize is a tuple"),
    "a kernel setting that is none": (put("settings", "kernel", "RBF"), "kernel is a str"),
    "a converted kernel by half": (put("settings", "kernel", {"converted": [rbf()]}), "a kernel and a noise"),
    "a converted kernel that is none": (put("settings", "kernel", {"converted": [1, 2]}), "kernel is a int"),
    "a converted noise that is none": (put("settings", "kernel", {"converted": [rbf(), 2]}), "kernel.noise is a int"),
    "a seed of text": (put("settings", "random_state", "seed"), "'seed'"),
    "a seed below zero": (put("settings", "random_state", -1), "not valid"),
    "a state beyond its key": (put("settings", "random_state", MT, [KEY, 10**9, 0, 0.0]), "no state of the Mersenne twister"),
    "a state below its key": (put("settings", "random_state", MT, [KEY, -1, 0, 0.0]), "no state of the Mersenne twister"),
    "a state that is short": (put("settings", "random_state", MT, [KEY[:9], 0, 0, 0.0]), "no state of the Mersenne twister"),
    "a state of large numbers": (put("settings", "random_state", MT, [[2**32] * 624, 0, 0, 0.0]), "no state of the Mersenne twister"),
    "a state of text": (put("settings", "random_state", MT, "state"), "random_state is 'state'"),
    "a state of three parts": (put("settings", "random_state", MT, [KEY, 0, 0]), "3 parts"),
    "another generator": (put("settings", "random_state", {"pcg64": []}), "no entry 'mt19937'"),
    "origins that are none": (put("origins", []), "origins is []"),
    "origins of numbers": (put("origins", {"a": 1}), "origins.a is 1"),
    # Arrays.
    "no X": (array("X", None), "no array 'X'"),
    "no alpha": (array("alpha", None), "no array 'alpha'"),
    "no theta": (array("theta", None), "no array 'theta'"),
    "no root": (array("root.0", None), "no array 'root.0'"),
    "a root too few": (array("root.1", None), "root_of is [0, 1]"),
    "a root too many": (array("root.2", np.zeros(45)), "3 roots"),
    "roots with a gap": (lambda _, arrays: arrays.update({"root.2": arrays.pop("root.1")}), "no array 'root.1'"),
    "a root by another name": (array("root.x", np.zeros(45)), "no array 'root.2'"),
    "an array too many": (array("code", np.zeros(3)), "'code' of shape (3,), which does not belong"),
    "a root that is short": (array("root.0", np.ones(44)), "'root.0' has the shape (44,)"),
    "a root that is square": (array("root.0", np.eye(9)), "'root.0' has the shape (9, 9)"),
    "a root of zeros": (array("root.0", np.zeros(45)), "diagonal that is not positive"),
    "a root of float32": (array("root.0", np.ones(45, np.float32)), "F32"),
    "a root of integers": (array("root.0", np.ones(45, np.int64)), "I64"),
    "a root that is not finite": (with_entry("root.1", (7,), np.nan), "not finite"),
    "an X that is not finite": (with_entry("X", (0, 0), np.inf), "not finite"),
    "an X in one dimension": (array("X", np.zeros(9)), "impossible shapes"),
    "an X in three dimensions": (array("X", np.zeros((9, 3, 1))), "'X' has the shape (9, 3, 1)"),
    "an X without rows": (array("X", np.zeros((0, 3))), "impossible shapes"),
    "an X without columns": (array("X", np.zeros((9, 0))), "impossible shapes"),
    "an X with another column": (array("X", np.zeros((9, 4))), "4 columns of data, but 3 names"),
    "a Y of other rows": (array("Y", np.zeros((8, 2))), "'Y' has the shape (8, 2)"),
    "a Y without outputs": (array("Y", np.zeros((9, 0))), "impossible shapes"),
    "an alpha of other outputs": (array("alpha", np.zeros((9, 3))), "'alpha' has the shape (9, 3)"),
    "a scale of zero": (with_entry("scale", (0,), 0.0), "scales must be positive"),
    "a negative scale": (with_entry("scale", (1,), -1.0), "scales must be positive"),
    "a negative noise variance": (with_entry("noise_var", (1,), -1.0), "noise variances not negative"),
    "noise variances of other rows": (array("noise_var", np.ones(8)), "'noise_var' has the shape (8,)"),
    "a theta of another length": (array("theta", np.zeros(99)), "theta has the shape (99,)"),
    "a theta of two dimensions": (array("theta", np.zeros((3, 3))), "'theta' of shape (3, 3)"),
    "a code of half": (with_entry("X", (0, 2), 0.5), "codes that stand for no category"),
    "a negative code": (with_entry("X", (0, 2), -1.0), "codes that stand for no category"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_made_up_files_are_refused(case: str, model: Path, tmp_path: Path) -> None:
    metadata, document, arrays = parts(model)
    change, message = HOSTILE[case]
    change(document, arrays)
    refused(forged(tmp_path / "m.gm", metadata, document, arrays), message)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document; of a long list its first three."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, part in items:
        yield (*path, key)
        yield from places(part, (*path, key))


def test_no_single_change_of_a_document_gives_another_error(model: Path, tmp_path: Path) -> None:
    """Each place replaced by a value drawn from all types, or taken out: the file is refused, or loads as just what it says."""
    metadata, document, arrays = parts(model)
    rng = np.random.default_rng(0)
    wrong = [None, True, -1, 10**15, -0.5, "os.system", [], {}, [[]], {"float": "nan"}, rbf(), parameter([0.5], [])]
    path, kept = tmp_path / "m.gm", 0
    for place in places(document):
        changed = copy.deepcopy(document)
        holder: Any = changed
        for key in place[:-1]:
            holder = holder[key]
        k = int(rng.integers(len(wrong) + 1))
        if k == len(wrong):
            del holder[place[-1]]
        else:
            holder[place[-1]] = wrong[k]
        forged(path, metadata, changed, arrays)
        try:
            gp = load(path)
        except ModelFileError:
            continue
        kept += 1
        assert documents.canonical({**describe(gp)[0], "origins": None}) == documents.canonical({**changed, "origins": None}), place
    assert kept < 20  # numbers and sentences that may just as well be others


def test_checks_know_the_type_of_every_field_of_the_library() -> None:
    for cls in documents._classes():
        if documents._is_ours(cls):
            for field in dataclasses.fields(cls):  # type: ignore[arg-type]
                assert "support" in field.metadata or field.name == "kind" or str(field.type) in documents.FIELD_CHECKS, (cls, field.name)
