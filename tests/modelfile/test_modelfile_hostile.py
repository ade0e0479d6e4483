"""Files that are damaged, foreign or made up: each is refused with an error that says why; none runs code or
takes memory it does not fill."""

from __future__ import annotations

import base64
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
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import gramian as gm
from gramian.errors import MemoryLimitError, ModelFileError
from gramian.modelfile import document as documents
from gramian.modelfile import fields, load, record
from gramian.modelfile import file as modelfile
from gramian.modelfile.record import describe
from gramian.solvers import Cholesky

Document = dict[str, Any]
Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with all that can go wrong: names, categories, known noise, two outputs with a root each, a
    mean with units, priors and bounds."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"temp": rng.normal(size=9), "load": rng.normal(size=9), "site": list("abcabcabc")})
    Y = np.column_stack([np.sin(X["temp"]), 100 * np.cos(X["load"])])
    lengthscale = gm.param([0.5, 0.7], prior=gm.LogNormal((0.0, 0.1), 1.0), bounds=(0.1, np.inf))
    kernel = (
        1.5 * gm.RBF(lengthscale).on("temp", "load") * gm.Categorical().on("site")
        + gm.Polynomial(2).on("load") ** 2
    )
    gp = gm.GPRegressor(
        kernel, mean="linear", noise=0.1, optimize=False, random_state=np.random.RandomState(0)
    )
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
    """A file with a right checksum, as somebody would make it who knows how; written by the safetensors
    library."""
    text = document if isinstance(document, str) else json.dumps(document)
    digest = hashlib.sha256(f"{metadata['version']}\n{metadata['library']}\n{text}\n".encode())
    for name in sorted(arrays):
        whole = " of whole numbers" if arrays[name].dtype == np.int64 else ""
        digest.update(f"{name} {list(arrays[name].shape)}{whole}\n".encode() + arrays[name].tobytes())
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


# Damage. ----------------------------------------------------------------------------------------------------


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


# Other files. -----------------------------------------------------------------------------------------------


class Trap:
    """What a pickle runs when it is opened."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (os.environ["TRAP"],)


def header(text: bytes, data: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(text) if length is None else length) + text + data


# what says of a file that it is a model
OURS = {"format": "gramian model", "version": "6", "library": "1", "document": "{}", "sha256": ""}


def claimed(size: int = 64, **arrays: Any) -> bytes:
    """A file with this header, and `size` bytes after it."""
    return header(json.dumps({"__metadata__": OURS, **arrays}).encode(), bytes(size))


def one(shape: Any, offsets: Any, dtype: Any = "F64") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


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
    "header that lies": (claimed(X=one([2**40], [0, 2**43])), "has not the bytes"),
    "header beyond all numbers": (claimed(X=one([2**32, 2**32], [0, 64])), "has not the bytes"),
    "negative header": (claimed(X=one([-8], [0, 64])), "damaged"),
    "two negative lengths": (claimed(X=one([-8, -1], [0, 64])), "damaged"),
    "rows without end and without columns": (claimed(0, X=one([2**59, 0], [0, 0])), "has not the bytes"),
    "columns without end and without rows": (claimed(X=one([0, 2**60], [0, 0])), "has not the bytes"),
    "dimensions without end": (claimed(X=one([1] * 10**5, [0, 8])), "has not the bytes"),
    "lengths beyond 64 bits": (
        header(b'{"X":{"dtype":"F64","shape":[1' + b"0" * 5000 + b'],"data_offsets":[0,64]}}', bytes(64)),
        "beyond 64 bits",
    ),
    "a length that is none": (claimed(X=one([True], [0, 8])), "damaged"),
    "a length by half": (claimed(X=one([8.0], [0, 64])), "damaged"),
    "another length than bytes": (claimed(X=one([7], [0, 64])), "but the bytes [0, 64]"),
    "bytes from behind": (claimed(X=one([8], [64, 0])), "but the bytes [64, 0]"),
    "bytes before the first": (claimed(X=one([8], [-64, 0])), "but the bytes [-64, 0]"),
    "bytes twice": (claimed(X=one([8], [0, 64]), Y=one([8], [0, 64])), "must begin at 64"),
    "bytes that overlap": (claimed(X=one([5], [0, 40]), Y=one([5], [24, 64])), "must begin at 40"),
    "bytes that nobody has": (claimed(X=one([4], [0, 32])), "take 32 bytes, but 64 are there"),
    "bytes between arrays": (claimed(X=one([3], [0, 24]), Y=one([4], [32, 64])), "must begin at 24"),
    "bytes beyond the last": (
        claimed(56, X=one([4], [0, 32]), Y=one([4], [32, 64])),
        "take 64 bytes, but 56",
    ),
    "an array twice": (header(b'{"X":1,"X":2}'), "twice"),
    "an array that is none": (claimed(X=3), "damaged"),
    "an array with more": (claimed(X={**one([8], [0, 64]), "code": "x"}), "'code', which is not known"),
    "an array of bytes": (claimed(X=one([64], [0, 64], "U8")), "of type U8"),
    "an array of nothing": (claimed(X=one([64], [0, 64], None)), "of type None"),
    "a triangle of whole numbers": (claimed(**{"root.0": one([8], [0, 64], "I64")}), "of type I64"),
    "a triangle that is none": (claimed(**{"root.0": one([8], [0, 64])}), "no triangle"),
    "arrays without end": (
        claimed(0, **{f"a{k}": one([0], [0, 0]) for k in range(100_001)}),
        "100,001 arrays, but may have 100,000",
    ),
    "metadata that are none": (header(b'{"__metadata__":[1]}'), "damaged"),
    "metadata of numbers": (header(b'{"__metadata__":{"format":1}}'), "damaged"),
    "metadata that are half a character": (
        header(b'{"__metadata__":{"format":"gramian model","document":"\\ud800"}}'),
        "surrogates not allowed",
    ),
    "a name that is half a character": (claimed(**{"X\ud800": one([8], [0, 64])}), "surrogates not allowed"),
    "a header of other letters": (header(b'{"\xff":1}'), "damaged"),
    "another safetensors file": (
        header(
            b'{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4)
        ),
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
    assert peak < 1e6 + 40 * len(content)


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


@pytest.mark.skipif(
    sys.platform == "win32" or (hasattr(os, "geteuid") and os.geteuid() == 0), reason="all files can be read"
)
def test_a_file_that_may_not_be_read_is_refused(plain: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.gm"
    path.write_bytes(plain.read_bytes())
    path.chmod(stat.S_IWUSR)
    refused(path, "Permission denied")


def test_a_model_beyond_memory_is_refused_before_it_is_read(plain: Path, tmp_path: Path) -> None:
    """A file full of holes: 640 GB by its length, a few kB on disk."""
    n = 400_000
    metadata, _, _ = parts(plain)
    shapes = {
        "X": [n, 1],
        "Y": [n, 1],
        "scale": [1],
        "alpha": [n, 1],
        "theta": [3],
        "root.0": [n * (n + 1) // 2],
    }
    layout, at = {"__metadata__": metadata}, 0
    for name, shape in shapes.items():
        stop = at + 8 * int(np.prod(shape, dtype=object))
        layout[name] = {"dtype": "F64", "shape": shape, "data_offsets": [at, stop]}  # type: ignore[assignment]
        at = stop
    with open(tmp_path / "m.gm", "wb") as file:
        file.write(header(json.dumps(layout).encode()))
        file.truncate(file.tell() + at)
    with pytest.raises(MemoryLimitError, match="This model needs"):
        load(tmp_path / "m.gm")


# Versions. --------------------------------------------------------------------------------------------------


def test_a_newer_format_asks_for_an_upgrade(model: Path, tmp_path: Path) -> None:
    metadata, document, arrays = parts(model)
    newer = {**metadata, "version": str(modelfile.VERSION + 1), "library": "9.8.7"}
    refused(
        forged(tmp_path / "m.gm", newer, {"anything": "else"}, arrays),
        f"format {modelfile.VERSION + 1}",
        "9.8.7",
        "pip install --upgrade gramian",
    )
    newer["version"] = "999999999"
    refused(forged(tmp_path / "m.gm", newer, document, {"other": np.zeros(3, np.float32)}), "Upgrade")


@pytest.mark.parametrize("version", ["", "0", "-1", "1.0", "one", "²", "1" * 5000])
def test_a_nonsense_version_is_refused(version: str, model: Path, tmp_path: Path) -> None:
    metadata, document, arrays = parts(model)
    refused(forged(tmp_path / "m.gm", {**metadata, "version": version}, document, arrays), "format version")


# A file of version 1, as it was written: exact inference with two outputs, known noise and a method of its
# own; 6 rows.
VERSION_1 = zlib.decompress(base64.b85decode(
    'c-rk(eQXrR6;DzW)D%QjwN0BQU^ZVxT24E=dwaViWNeZ;O+!d(3sJBy$NFy0-g-Z-yL$&VcG8ICpJJjARE3}rA-)=kmIgvmf~Aa0n>dwBXdOsuoJRNqHwhsLszrec=$pAae;rUD|D;kz'
    'w%7CK{odEidvB(E+BJNv5E2Q8gl5VN%|t?&vqDIFzGH^M9HHJf9m{mf94|#|K@@Vt4=m4x6$CTes`E|131(6RMI@l4ykyoPE`zS96_TEvb=;s9M8d=jNxkP=gw1Q>Vy)ns4oSfzZQ21T'
    '%=u!iuw1GYfU+Fb3XC&ow2A4vMc!5*rL8dJXb??uR*JYuQcz@@0TWXz{Ah&E0mM!fY-zOI6z3qz&1A@zgV1zSrk_d>-}ii2lp+$4bEchTa%UqYqHEEZE-MKB=twnMnHi15cZoewadp-y'
    '(HRoo;ognsOqw=xW1@i<6#KAS!Z;e@8YzBJd#dJDmLP57)`txN)1N0~OxSD!X6C1LUe@KjZq~K|oAE6km%=n?Ff*jMlR-9<@%(V2+DE*=3a#A4`18PpzG=B;9akRuSyGI3-jzr+-pU6P'
    '{-rb#6-*SziJNb^a8OHPoilyNqU4v+3yFIX=d8BXNNlUY^HLKP+;3)s09+{X%=N6`f4Eh{GDnqS8j7K)gj7|DlG&0W%Cf5Idc@G>s3IXFD#x$R`30W4fYh5;dC*Ya^{i`!qX7YeLzuU7'
    'F0i`~kqg8j2}RE*d6AM5mBtPv0!`ADF+(;C=Fyn!<qq0j=8K&XS(Gmksfu(OJSeRMUXo#%<;>E!IPzb7O!~2PT}6t94AqcPOp}o+8sMxdBO?}zs)`;{6%IBOq)1Usl7UBxMHLZoVVAQV'
    'TyOC=k0_SlFA$Zhj>&Akb4b&474}rs;m1&zY2$WNiR$AbB}Kq-4QYlF(;yVGB8yr?i@|Z1H60Q`(W93UjLX+uD3o3{OnOd97p%0xhl?u{yd+E;WRAzrAnSJ)1a}<a=d90;_Ctt%gEz5v'
    'x?VWi)qP?Hp36DRpsXIUGM_C0NqYI+LJ>vLB{)Jlg6z<tF0f_K&T&1p!o3ZiO@hXzvLDW`c%<Uq2WJ%<v>z6&3PLZFA$dDMdzqIBEe9$QP<SYO&kGY?ns0`P_~uw{J&*Iq4Fc{W^;Z6N'
    '!rKf9L*Th&1OBS7f7RFj5Bqwdm$3#v;)X*U&u>cDkT&6{Q6uR+{vJJ&>0_NA$=Gqc#pEqLmu4!(*?E;m><UmUTyDZABk5hRq<FD_4$WuqAhE4xl4u%rH=p#)WXu!7hfBQYBtTfm$O?;-'
    '<&cSPg57l<7taW-t?+Vz?U17yyjx_|K&f<6O~njTN}F}*Btq#rogk>@I^19MWKz=zffs-bleDfQlr$xo$cmIsrp=hpDhfYikEm4Glp!FnQd9Ht*{num9a`W|Eiavhq7(2MWoU80ExtmW'
    'p^3<l8ImW{#nBhQ0#KACoq>6*6L6R>p}tfAfJF!y6JXkz2J;GS2dJn-x$$8Gygn}uM^Y&okfN$^G^_RS_`JC9s1&ZUmMlplaCBvGfQm7VHQq89TQYNRcyDtDE_~^VZ|}IjuXzx!f1Zuk'
    '@Q?eN8HK_k<G}m7*cirXK0YmchiKKS)1Nx_(_xxt8z{)xg71Fj@oNu1*HOgLm%fKL7&i~#{OkR5yzj>Ls{O$c%9p#Qls`EAjnm5xeOg$*wfxoZS6c3dL7LYytD|$ruco~BTtCg**MmEr'
    ')YS(D2Qa<szDY-R-Bez*`*Ob(=a0wksNRha|E_P}>)&{V9;|*=Ik5IkJYe<rSl7OQ7oDVA=JvlyUkQi%+_pZt=-@WFy5|5MT)w3LufKnu&Z=sh8@Xi@F7sEmF1ve}iaW!>x7T&j*WdcQ'
    ';_H*n;`!_7C%68q2Y+UqIX5pdM6bEZ@tuW#Xy4g*T}S&V@6h^1Ls*}&c;lL%9HLY2dEmAAZ||qwxrH-l?%9WL?>+E?r|0dYw{2ZFG`;01sx3Y<b?fdS{B+|$%?ayI`1*~`ht(}Tv}wje'
    'ljk^F>6sTFow0g&GydeplV{6Xj^ewrH8->mufk{h*RLd>b<;n-ySM-J>Z5ekZ??bt@@;*1>b9ZgZ%*mPy_<e<a@x06(!q~ABew{Hc=ErMmg|TAMuUx=AHURb0{^;U`|eX+AK~0R-KU=*'
    'eRNXWw%m2bKj>fXSe2-_uNSv1y>rRAUp|H<ZNdAG9v#BRf1B9b+kFh5KD=_n$>c%2@R_PLOE>+K{(X4n-XmXoi+=Fp`Du@%cc{^}>r~t3kMP=Ko!gIh?V?MUJuzEq{eX7GSHE-S=9@Yy'
    '-;X>w)G~<AuT{SL*yLV}Gk@N`qr4sOnS5?Z{gMyynm10|eysaHbnf(*_jK%=QT|^G^mHo'
))  # fmt: skip


def test_a_file_of_version_1_loads(tmp_path: Path) -> None:
    (tmp_path / "m.gm").write_bytes(VERSION_1)
    gp = load(tmp_path / "m.gm")
    mean, std = gp.predict([[0.1, 0.2]], return_std=True)
    # As version 1 printed them, to its eight digits.
    np.testing.assert_allclose(mean, [[0.10041089, 1.95963006]], rtol=1e-7)
    np.testing.assert_allclose(std, [[0.48512363, 0.60908086]], rtol=1e-7)
    np.testing.assert_allclose(gp.loo().mean[0], [0.05688539, -1.0312299], rtol=1e-7)
    assert gp.log_evidence() == pytest.approx(float(gp.evidence_), rel=1e-12)
    assert gp.method == gm.Exact(Cholesky(ladder=(0.0, 1e-9)))
    assert "noise_var, row by row" in gp.summary()
    gp.save(tmp_path / "n.gm")
    assert parts(tmp_path / "n.gm")[0]["version"] == str(modelfile.VERSION)
    np.testing.assert_array_equal(load(tmp_path / "n.gm").predict([[0.1, 0.2]], return_std=True)[1], std)


def test_a_file_of_version_1_is_checked_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "m.gm").write_bytes(VERSION_1)
    metadata, document, arrays = parts(tmp_path / "m.gm")
    for place in places(document):
        changed = copy.deepcopy(document)
        put(*place, {"float": "nan"})(changed, arrays)
        forged(tmp_path / "n.gm", metadata, changed, arrays)
        # no number, as when it was not computed; a hint for people
        if place not in (("fitted", "evidence", "fields", "value"), ("origins",)):
            with pytest.raises(ModelFileError):
                load(tmp_path / "n.gm")


def test_an_older_format_is_brought_up_to_date(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata, document, arrays = parts(model)
    document["table"] = document.pop("columns")  # as if this version had called it so
    path = forged(tmp_path / "m.gm", metadata, document, arrays)
    refused(path, "no entry 'columns'")
    expected, now = describe(load(model))[0], modelfile.VERSION
    monkeypatch.setattr(modelfile, "VERSION", now + 1)
    monkeypatch.setattr(
        modelfile,
        "MIGRATIONS",
        {now: lambda old, arrays: ({("columns" if k == "table" else k): v for k, v in old.items()}, arrays)},
    )
    assert describe(load(path))[0] == expected


@pytest.mark.parametrize("missing", ["format", "version", "library", "document", "sha256"])
def test_a_missing_entry_of_the_header_is_refused(missing: str, model: Path, tmp_path: Path) -> None:
    metadata, _, arrays = parts(model)
    save_file(arrays, tmp_path / "m.gm", {name: value for name, value in metadata.items() if name != missing})
    refused(tmp_path / "m.gm")


# Documents with a right checksum. ---------------------------------------------------------------------------

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
    described = {
        "shape": lengths,
        "values": some,
        "support": {"class": "Positive", "fields": {}},
        "prior": None,
        "bounds": None,
        "trainable": True,
    }
    return {"parameter": {**described, **more}}


def rbf(**more: Any) -> Document:
    return {"class": "RBF", "fields": {"lengthscale": parameter([0.5], [], **more)}}


def words(*levels: Any) -> Document:
    return {"class": "Categories", "fields": {"levels": list(levels)}}


DATES = {"start": "2024-01-01T00:00:00", "unit": "days", "order": "dmy"}


def exact(**more: Any) -> Document:
    described: Document = documents.encode(gm.Exact(), "method")
    return {**described, "fields": {**described["fields"], **more}}


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
STACKED = {"kind": "stacked", "outputs": [], "parts": []}
KEY = [1] * 624
HOSTILE: dict[str, tuple[Callable[[Document, Arrays], None], str]] = {
    # Classes.
    "a function of a module": (kernel({"class": "os.system", "fields": {"command": "true"}}), "'os.system'"),
    "names of targets that are not there": (put("columns", "targets", ["a", "b", "c"]), "3 names of targets"),
    "a function of a module as a user's class": (
        kernel({"custom": "os.system", "fields": {}}),
        "'os.system', which is not known here",
    ),
    "a name with underscores": (kernel({"class": "__import__", "fields": {}}), "'__import__'"),
    "a class of Python": (kernel({"custom": "object", "fields": {}}), "'object'"),
    "a class of the library that is no part of a model": (
        kernel({"class": "GPRegressor", "fields": {}}),
        "'GPRegressor'",
    ),
    "an abstract class": (kernel({"class": "Kernel", "fields": {}}), "'Kernel'"),
    "a class name that is none": (kernel({"class": ["RBF"], "fields": {}}), "kernel_.class is ['RBF']"),
    "a function of the library": (kernel({"class": "exp", "fields": {}}), "'exp'"),
    "a kernel of a later library": (kernel({"class": "Quantum", "fields": {}}), "Upgrade"),
    "a warp": (
        kernel({"class": "Warped", "fields": {"kernel": rbf(), "function": "os.system"}}),
        "function is 'os.system'",
    ),
    "a map of inputs": (
        kernel({"class": "MapInputs", "fields": {"kernel": rbf(), "function": None}}),
        "function is None",
    ),
    "a mean for a kernel": (kernel({"class": "ZeroMean", "fields": {}}), "kernel_ is a ZeroMean"),
    "a mean in a kernel": (
        kernel({"class": "Exp", "fields": {"kernel": {"class": "ZeroMean", "fields": {}}}}),
        "kernel_.kernel is",
    ),
    "a number for a kernel": (kernel(3), "kernel_ is a int"),
    "no kernel": (kernel(None), "kernel_ is a NoneType"),
    "a number in a kernel": (kernel({"class": "Exp", "fields": {"kernel": 3}}), "kernel_.kernel is 3"),
    "a prior for a kernel": (
        kernel({"class": "Normal", "fields": {"mu": 0.0, "sigma": 1.0}}),
        "kernel_ is a Normal",
    ),
    "kernels without end": (kernel(chain(65)), "levels deep"),
    "kernels beyond Python's stack": (kernel(chain(150)), "deep"),
    "more kernels than anybody fits": (
        kernel({"class": "Sum", "fields": {"terms": [constant()] * 1000}}),
        "kernel_ is made of 1,001 kernels",
    ),
    "a sum of one": (kernel({"class": "Sum", "fields": {"terms": [rbf()]}}), "two kernels or more"),
    "a sum of a sum": (
        put(
            "settings",
            "kernel",
            {
                "class": "Sum",
                "fields": {
                    "terms": [constant(), {"class": "Sum", "fields": {"terms": [constant(), constant()]}}]
                },
            },
        ),
        "do not come back as they were stored",
    ),
    "a sum of numbers": (kernel({"class": "Sum", "fields": {"terms": [1, 2]}}), "terms is (1, 2)"),
    "a power of a half": (
        kernel({"class": "Power", "fields": {"base": rbf(), "exponent": 0.5}}),
        "exponent is 0.5",
    ),
    "a power of true": (
        kernel({"class": "Power", "fields": {"base": rbf(), "exponent": True}}),
        "exponent is True",
    ),
    "a negative power": (
        kernel({"class": "Power", "fields": {"base": rbf(), "exponent": -2}}),
        "whole number from 1",
    ),
    "a column that is not there": (
        kernel({"class": "On", "fields": {"kernel": rbf(), "columns": ["salt"]}}),
        "no column 'salt'",
    ),
    "a column beyond the last": (
        kernel({"class": "On", "fields": {"kernel": rbf(), "columns": [7]}}),
        "no column 7",
    ),
    "a column that is true": (
        kernel({"class": "On", "fields": {"kernel": rbf(), "columns": [True]}}),
        "columns is (True,)",
    ),
    "numbers on categories": (kernel(rbf()), "holds categories"),
    "a missing field": (kernel({"class": "RBF", "fields": {}}), "no entry 'lengthscale'"),
    "a field too many": (
        kernel({"class": "RBF", "fields": {"lengthscale": 1.0, "__class__": "x"}}),
        "'__class__', which is not known",
    ),
    "an object too many": (kernel({**rbf(), "extra": 1}), "'extra', which is not known"),
    "an object that is none": (kernel({"function": "os.system"}), "neither a parameter nor an object"),
    # Parameters.
    "a field that is no parameter": (
        kernel({"class": "RBF", "fields": {"lengthscale": 1.0}}),
        "lengthscale is 1.0",
    ),
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
    "more bounds than entries": (kernel(rbf(bounds=[[0.1, 0.2, 0.3], 2.0])), "do not belong"),
    "bounds of entries of text": (kernel(rbf(bounds=[["a"], 1.0])), "bounds is 'a'"),
    "three bounds": (kernel(rbf(bounds=[0.1, 1.0, 2.0])), "3 entries"),
    "bounds of text": (kernel(rbf(bounds=["a", "b"])), "bounds is 'a'"),
    "trainable by half": (kernel(rbf(trainable=0)), "trainable is 0"),
    "a prior that is none": (kernel(rbf(prior={"class": "Real", "fields": {}})), "has the prior"),
    "a prior that is text": (kernel(rbf(prior="LogNormal")), "has the prior 'LogNormal'"),
    "a prior of nonsense": (
        kernel(rbf(prior={"class": "LogNormal", "fields": {"mu": 0.0, "sigma": -1.0}})),
        "sigma is -1.0",
    ),
    "a prior of text": (
        kernel(rbf(prior={"class": "LogNormal", "fields": {"mu": "0", "sigma": 1.0}})),
        "mu is '0'",
    ),
    "a prior of other shape": (
        kernel(rbf(prior={"class": "LogNormal", "fields": {"mu": [0.0, 1.0], "sigma": 1.0}})),
        "another number of entries",
    ),
    "a support that is none": (
        kernel(rbf(support={"class": "LogNormal", "fields": {"mu": 0.0, "sigma": 1.0}})),
        "has the support",
    ),
    "another support": (kernel(rbf(support={"class": "Real", "fields": {}})), "has the support Real()"),
    "no support": (kernel(rbf(support=None)), "has the support None"),
    "a support in units": (
        kernel(rbf(support={"class": "Affine", "fields": {"loc": 0.0, "scale": 1.0}})),
        "has the support Affine",
    ),
    "units of zero": (
        put("fitted", "mean", "fields", "value", "parameter", "support", "fields", "scale", [0.0, 0.0]),
        "units that are not finite and positive",
    ),
    "units of another shape": (
        put("fitted", "mean", "fields", "value", "parameter", "support", "fields", "loc", [0.0]),
        "its units have (1,)",
    ),
    "units of text": (
        put("fitted", "mean", "fields", "value", "parameter", "support", "fields", "loc", "os"),
        "loc is 'os'",
    ),
    "a special float": (
        put("fitted", "evidence", "fields", "value", {"float": "__import__('os')"}),
        "only inf, -inf and nan",
    ),
    "a special float of a list": (
        put("fitted", "evidence", "fields", "value", {"float": []}),
        "only inf, -inf and nan",
    ),
    # The other parts of the fit.
    "a mean of another number of outputs": (
        put(
            "fitted",
            "mean",
            {
                "class": "ConstantMean",
                "fields": {"value": parameter([0.0] * 5, [5], support={"class": "Real", "fields": {}})},
            },
        ),
        "its mean gives an array of shape (2, 5)",
    ),
    "a mean of other columns": (put("fitted", "mean", "fields", "centre", [0.0] * 5), "not valid"),
    "a mean of text": (put("fitted", "mean", "fields", "centre", ["os"]), "centre is ('os',)"),
    "a likelihood that is none": (put("fitted", "likelihood", rbf()), "likelihood is a RBF"),
    "a negative noise": (
        put("fitted", "likelihood", "fields", "noise", "parameter", "values", [-1.0]),
        "outside its bounds",
    ),
    "units of noise for other outputs": (
        put("fitted", "likelihood", "fields", "unit", [1.0, 1.0, 1.0]),
        "in 1 or 2 positive units",
    ),
    "negative units of noise": (
        put("fitted", "likelihood", "fields", "unit", [-1.0]),
        "in 1 or 2 positive units",
    ),
    "an evidence of no kind": (put("fitted", "evidence", "fields", "kind", "divine"), "kind is 'divine'"),
    "an evidence of text": (put("fitted", "evidence", "fields", "value", "1"), "value is '1'"),
    "an outcome of text": (put("fitted", "outcome", "fields", "seconds", "soon"), "seconds is 'soon'"),
    "an outcome with half an iteration": (
        put("fitted", "outcome", "fields", "iterations", 0.5),
        "iterations is 0.5",
    ),
    "a negative number of iterations": (
        put("fitted", "outcome", "fields", "iterations", -1),
        "negative or without end",
    ),
    "a time without end": (
        put("fitted", "outcome", "fields", "seconds", {"float": "nan"}),
        "negative or without end",
    ),
    "a negative error": (
        put("fitted", "evidence", "fields", "standard_error", -1.0),
        "negative or without end",
    ),
    "negative units": (
        put("fitted", "mean", "fields", "value", "parameter", "support", "fields", "scale", [1.0, -1.0]),
        "finite and positive",
    ),
    "notes that are none": (put("fitted", "outcome", "fields", "notes", [1]), "notes is (1,)"),
    "an outcome that is none": (put("fitted", "outcome", None), "outcome_ is a NoneType"),
    "one output of two": (put("fitted", "single", True), "single output, but has 2"),
    "a flag that is none": (put("fitted", "single", 1), "single is 1"),
    "too few outputs": (put("fitted", "posterior", "root_of", [0]), "root_of is [0]"),
    "a root that is not there": (put("fitted", "posterior", "root_of", [0, 2]), "root_of is [0, 2]"),
    "a root from behind": (put("fitted", "posterior", "root_of", [0, -1]), "root_of is [0, -1]"),
    "a root that nobody uses": (put("fitted", "posterior", "root_of", [0, 0]), "root_of is [0, 0]"),
    "a root by name": (put("fitted", "posterior", "root_of", ["root.0", "root.1"]), "root_of[0]"),
    "no fit": (put("fitted", None), "fitted is None"),
    "a posterior of no kind": (put("fitted", "posterior", "kind", "divine"), "of the kind 'divine'"),
    "a posterior of another kind": (
        put("fitted", "posterior", {"kind": "krylov", "stronger": [False, False], "system_of": [0, 1]}),
        "which the method Conjugate on Exact does not give",
    ),
    "a posterior without data": (
        put("fitted", "posterior", {"kind": "coupled features"}),
        "which the method Conjugate on Exact does not give",
    ),
    "a posterior of features that are not there": (
        put("fitted", "posterior", {"kind": "features", "root_of": [0, 1]}),
        "no array 'root.landmarks'",
    ),
    "a posterior in parts of parts": (
        put("fitted", "posterior", {"kind": "stacked", "outputs": [0, 1], "parts": [STACKED, STACKED]}),
        "0 parts for 1 functions",
    ),
    "a part for two outputs": (
        put("fitted", "posterior", {"kind": "stacked", "outputs": [0, 0], "parts": [STACKED, STACKED]}),
        "2 parts for 2 functions, each for one of them",
    ),
    "rows of another width": (array("Z", np.zeros((9, 2))), "'Z' has the shape (9, 2)"),
    "an output that was never observed": (array("Y", np.full((9, 2), np.nan)), "Y must be finite, but for"),
    "a Y without end": (with_entry("Y", (0, 0), np.inf), "not finite"),
    "rows that are not finite": (array("Z", np.full((9, 3), np.nan)), "not finite"),
    "a posterior that is a number": (
        put("fitted", "posterior", "root_of", {"float": "nan"}),
        "root_of is nan",
    ),
    "a root that is inverted by half": (put("fitted", "posterior", "inverted", 0.5), "inverted is 0.5"),
    "a posterior that is none": (put("fitted", "posterior", None), "posterior is None"),
    "a method that is no inference": (put("fitted", "method", rbf()), "method is a RBF"),
    "a method that is a recipe": (
        put("fitted", "method", {"class": "Nystrom", "fields": {"rank": 5, "sampling": "uniform"}}),
        "method is a Nystrom, but must be a Scheme",
    ),
    "an array that is not there": (
        put("fitted", "method", {"array": "method"}),
        "there is no array 'method'",
    ),
    "an array in the settings": (put("settings", "method", {"array": "X"}), "there is no array 'method'"),
    "a certificate that is none": (put("fitted", "certificate", "sealed"), "certificate_ is a str"),
    # Columns.
    "a name too few": (put("columns", "names", ["temp", "load"]), "must be of its columns, each once"),
    "a name twice": (put("columns", "names", ["temp", "temp", "site"]), "3 columns, but 2 different names"),
    "a name that is a number": (put("columns", "names", ["temp", 1, "site"]), "columns.names[1] is 1"),
    "names that are none": (put("columns", "named", False), "have no names, and yet"),
    "a category too few": (
        put("columns", "readings", [[2, words("a", "b")]]),
        "codes that stand for no category",
    ),
    "a category twice": (
        put("columns", "readings", [[2, words("a", "b", "b")]]),
        "a category is there twice",
    ),
    "a category that is a number": (
        put("columns", "readings", [[2, words("a", "b", 3)]]),
        "columns.readings[2].levels is",
    ),
    "categories of a column that is not there": (
        put("columns", "readings", [[3, words("a", "b", "c")]]),
        "must be of its columns, each once",
    ),
    "categories twice": (put("columns", "readings", [[2, words("a", "b", "c")]] * 2), "each once"),
    "categories of numbers": (
        put("columns", "readings", [[0, words("a")], [2, words("a", "b", "c")]]),
        "codes that stand for no category",
    ),
    "a reading that is none": (put("columns", "readings", [[2, rbf()]]), "must be a Reading"),
    "dates in a unit that is none": (
        put("columns", "readings", [[2, {"class": "Dates", "fields": DATES | {"unit": "weeks"}}]]),
        "a unit of time is one of",
    ),
    "dates from a start that is none": (
        put("columns", "readings", [[2, {"class": "Dates", "fields": DATES | {"start": "soon"}}]]),
        "soon",
    ),
    "gaps of a column that is not there": (put("columns", "gaps", [7]), "must be of its columns"),
    "categories that are none": (put("columns", "readings", "abc"), "columns.readings is 'abc'"),
    # Settings.
    "a setting too many": (put("settings", "hook", "os.system"), "'hook', which is not known"),
    "settings that are none": (put("settings", []), "settings is []"),
    "a method that is none": (put("settings", "method", "magic"), "'magic' is not known"),
    "a method that is a kernel": (put("settings", "method", rbf()), "method is a RBF"),
    "a method with nonsense": (put("settings", "method", exact(solver="LU")), "solver is 'LU'"),
    "a mean that is none": (put("settings", "mean", "mode"), "'mode' is not known"),
    "a mean that is a kernel": (put("settings", "mean", rbf()), "mean is a RBF"),
    "noise below zero": (put("settings", "noise", -1.0), "noise=-1.0 must be a variance"),
    "noise of text": (put("settings", "noise", "some"), "noise='some' must be a variance"),
    "noise of four by four": (
        put("settings", "noise", parameter([0.1] * 4, [2, 2], support=None)),
        "noise must be one variance",
    ),
    "noises of text": (put("settings", "noise", [0.1, "some"]), "must be a variance"),
    "noises within noises": (put("settings", "noise", [0.1, [0.1]]), "must be a variance"),
    "fitted noise of three": (
        put(
            "fitted",
            "likelihood",
            "fields",
            "noise",
            parameter([0.1] * 3, [3], support={"class": "NonNegative", "fields": {}}),
        ),
        "noise must be one variance or 2",
    ),
    "memory of text": (put("settings", "memory_limit", "much"), "memory_limit='much'"),
    "time below zero": (put("settings", "time_limit", -1.0), "time_limit=-1.0"),
    "time of text": (put("settings", "time_limit", "long"), "'long'"),
    "restarts of halves": (put("settings", "n_restarts", 0.5), "n_restarts=0.5"),
    "a flag of text": (put("settings", "normalize_y", "no"), "normalize_y is 'no'"),
    "a flag that is a list": (put("settings", "optimize", []), "optimize is a tuple"),
    "a kernel setting that is none": (put("settings", "kernel", 3), "kernel is a int"),
    "a kernel setting of no kernel's text": (put("settings", "kernel", "__import__('os')"), "nothing called"),
    "a converted kernel by half": (put("settings", "kernel", {"converted": [rbf()]}), "a kernel and a noise"),
    "a converted kernel that is none": (put("settings", "kernel", {"converted": [1, 2]}), "kernel is a int"),
    "a converted noise that is none": (
        put("settings", "kernel", {"converted": [rbf(), 2]}),
        "kernel.noise is a int",
    ),
    "a seed of text": (put("settings", "random_state", "seed"), "'seed'"),
    "a seed below zero": (put("settings", "random_state", -1), "not valid"),
    "a state beyond its key": (
        put("settings", "random_state", MT, [KEY, 10**9, 0, 0.0]),
        "no state of the Mersenne twister",
    ),
    "a state below its key": (
        put("settings", "random_state", MT, [KEY, -1, 0, 0.0]),
        "no state of the Mersenne twister",
    ),
    "a state that is short": (
        put("settings", "random_state", MT, [KEY[:9], 0, 0, 0.0]),
        "no state of the Mersenne twister",
    ),
    "a state of large numbers": (
        put("settings", "random_state", MT, [[2**32] * 624, 0, 0, 0.0]),
        "no state of the Mersenne twister",
    ),
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
    "a root too many": (array("root.2", np.ones(45)), "3 roots"),
    "roots with a gap": (
        lambda _, arrays: arrays.update({"root.2": arrays.pop("root.1")}),
        "no array 'root.1'",
    ),
    "a root by another name": (array("root.x", np.zeros(45)), "'root.x' of shape"),
    "an array too many": (array("code", np.zeros(3)), "'code' of shape (3,), which does not belong"),
    "a root that is short": (array("root.0", np.ones(44)), "'root.0' has the shape (44,)"),
    "a root that is square": (array("root.0", np.eye(9)), "'root.0' has the shape (9, 9)"),
    "a root of zeros": (array("root.0", np.zeros(45)), "diagonal that is not positive"),
    "a root of float32": (array("root.0", np.ones(45, np.float32)), "F32"),
    "a root of integers": (array("root.0", np.ones(45, np.int64)), "I64"),
    "a root that is not finite": (with_entry("root.1", (7,), np.nan), "not finite"),
    "a root of other rows": (array("root.0", np.ones(36)), "'root.0' has the shape (8, 8)"),
    "a root without rows": (array("root.0", np.zeros(0)), "'root.0' has the shape (0, 0)"),
    "an X of whole numbers": (array("X", np.ones((9, 3), np.int64)), "'X' is of type int64"),
    "an X that is not finite": (with_entry("X", (0, 0), np.inf), "not finite"),
    "an X in one dimension": (array("X", np.zeros(9)), "'X' has the shape (9,)"),
    "an X in three dimensions": (array("X", np.zeros((9, 3, 1))), "'X' has the shape (9, 3, 1)"),
    "no rows at all": (
        lambda _, arrays: arrays.update(
            {name: value[:0] for name, value in arrays.items() if len(value) in (9, 45)}
        ),
        "a row at least",
    ),
    "an X without rows": (array("X", np.zeros((0, 3))), "'noise_var' has the shape (9,), but must have (0)"),
    "an X without columns": (array("X", np.zeros((9, 0))), "'X' has the shape (9, 0)"),
    "an X with another column": (array("X", np.zeros((9, 4))), "'X' has the shape (9, 4)"),
    "a Y of other rows": (array("Y", np.zeros((8, 2))), "'Y' has the shape (8, 2)"),
    "a Y without outputs": (array("Y", np.zeros((9, 0))), "'Y' has the shape (9, 0)"),
    "an alpha of other outputs": (array("alpha", np.zeros((9, 3))), "'alpha' has the shape (9, 3)"),
    "a scale of zero": (with_entry("scale", (0,), 0.0), "scales must be positive"),
    "a negative scale": (with_entry("scale", (1,), -1.0), "scales must be positive"),
    "a negative noise variance": (
        with_entry("noise_var", (1,), -1.0),
        "noise variances that are not negative",
    ),
    "noise variances of other rows": (array("noise_var", np.ones(8)), "'noise_var' has the shape (8,)"),
    "a theta of another length": (array("theta", np.zeros(99)), "'theta' has the shape (99,)"),
    "a theta of two dimensions": (array("theta", np.zeros((3, 3))), "'theta' has the shape (3, 3)"),
    "a code of half": (with_entry("X", (0, 2), 0.5), "codes that stand for no category"),
    "a negative code": (with_entry("X", (0, 2), -1.0), "codes that stand for no category"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_made_up_files_are_refused(case: str, model: Path, tmp_path: Path) -> None:
    metadata, document, arrays = parts(model)
    change, message = HOSTILE[case]
    change(document, arrays)
    refused(forged(tmp_path / "m.gm", metadata, document, arrays), message)


def test_many_kernels_of_one_kind_are_traced_once(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata, document, arrays = parts(plain)
    terms = [{"class": "RBF", "fields": {"lengthscale": parameter([0.5 + k / 100], [])}} for k in range(300)]
    document["fitted"]["kernel"] = {"class": "Sum", "fields": {"terms": terms}}
    arrays["theta"] = np.zeros(len(arrays["theta"]) + 299)
    traced, looked, trace, look = [], [], record.jax.eval_shape, documents._classes
    monkeypatch.setattr(record.jax, "eval_shape", lambda *a: (traced.append(a), trace(*a))[1])
    monkeypatch.setattr(documents, "_classes", lambda: (looked.append(1), look())[1])
    gp = load(forged(tmp_path / "m.gm", metadata, document, arrays))
    assert len(traced) == 2  # an RBF, the mean
    assert len(looked) <= 3  # whatever the number of objects
    assert np.isfinite(gp.predict([[0.5]])).all()


def test_kernels_of_many_columns_are_traced_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(5, 40))
    pairs = [gm.RBF(1.0).on(j, (j + 7) % 40) * gm.Linear(1.0).on(j) for j in range(40)]
    gp = gm.GPRegressor(sum(pairs[1:], pairs[0]), noise=0.1, optimize=False).fit(X, X[:, 0])
    gp.save(tmp_path / "m.gm")
    traced, trace = [], record.jax.eval_shape
    monkeypatch.setattr(record.jax, "eval_shape", lambda *a: (traced.append(a), trace(*a))[1])
    again = load(tmp_path / "m.gm")
    assert len(traced) == 2  # a product, the mean
    assert np.array_equal(again.predict(X), gp.predict(X))


def test_parts_of_too_many_kinds_are_refused(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata, document, arrays = parts(plain)
    powers = [{"class": "Power", "fields": {"base": rbf(), "exponent": k + 2}} for k in range(9)]
    document["fitted"]["kernel"] = {"class": "Sum", "fields": {"terms": powers}}
    arrays["theta"] = np.zeros(len(arrays["theta"]) + 8)
    path = forged(tmp_path / "m.gm", metadata, document, arrays)
    load(path)
    monkeypatch.setattr(record, "MAX_STRUCTURES", 8)
    refused(path, "more than 8 parts of different kinds")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document; of a long list its first three."""
    items = (
        value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    )
    for key, part in items:
        yield (*path, key)
        yield from places(part, (*path, key))


def check_single_changes(model: Path, path: Path) -> int:
    """Each place replaced by a value drawn from all types, or taken out: the file is refused, or loads as
    just what it says."""
    metadata, document, arrays = parts(model)
    rng = np.random.default_rng(0)
    wrong = [
        None,
        True,
        -1,
        10**15,
        -0.5,
        "os.system",
        [],
        {},
        [[]],
        {"float": "nan"},
        rbf(),
        parameter([0.5], []),
        {"array": "X"},
    ]
    kept = 0
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
        assert documents.canonical({**describe(gp)[0], "origins": None}) == documents.canonical(
            {**changed, "origins": None}
        ), place
    return kept


def test_no_single_change_of_a_document_gives_another_error(model: Path, tmp_path: Path) -> None:
    # numbers and sentences that may just as well be others
    assert check_single_changes(model, tmp_path / "m.gm") < 20


def test_checks_know_the_type_of_every_field_of_the_library() -> None:
    for cls in documents._classes():
        if documents._is_ours(cls):
            hints = get_type_hints(cls)
            for field in dataclasses.fields(cls):  # type: ignore[arg-type]
                if "support" not in field.metadata:
                    assert not fields.fits(object(), hints[field.name]), (cls, field.name)


# The other engines. -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 2))
    Y = np.column_stack([np.sin(X[:, 0]), 100 * np.cos(X[:, 1])])
    kernel = gm.RBF(0.5) + gm.Periodic(0.9, 1.1).on(1)
    methods = {
        "landmarks": gm.Sparse(3, optimize_inducing=True),
        "fourier": gm.Fourier(11, "rff-phase"),
        "krylov": gm.CG(tol=1e-8, rank=4, probes=2),
    }
    folder = tmp_path_factory.mktemp("engines")
    for name, method in methods.items():
        gp = gm.GPRegressor(kernel, noise=0.1, optimize=False, random_state=0, method=method)
        gp.fit(X, Y, noise_var=np.full(9, 0.1)).save(folder / name)
    return {name: folder / name for name in methods}


FIELDS = ("fitted", "method", "fields", "engine", "fields")
BASIS = (*FIELDS, "basis", "fields")


def draws(change: Callable[[Any], None]) -> Callable[[Document, Arrays], None]:
    def changed(document: Document, _: Arrays) -> None:
        engine = document["fitted"]["method"]["fields"]["engine"]
        change(engine["fields"]["basis"]["fields"]["draws"])

    return changed


HOSTILE_ENGINES: dict[tuple[str, str], tuple[Callable[[Document, Arrays], None], str]] = {
    ("landmarks", "no landmarks"): (
        array("method.engine.basis.Z", None),
        "there is no array 'method.engine.basis.Z'",
    ),
    ("landmarks", "landmarks of other columns"): (
        array("method.engine.basis.Z", np.zeros((3, 5))),
        "landmarks have the shape (3, 5)",
    ),
    ("landmarks", "landmarks in one dimension"): (
        array("method.engine.basis.Z", np.zeros(6)),
        "landmarks have the shape (6,)",
    ),
    ("landmarks", "landmarks of none"): (
        array("method.engine.basis.Z", np.zeros((0, 2))),
        "landmarks have the shape (0, 2)",
    ),
    ("landmarks", "landmarks of whole numbers"): (
        array("method.engine.basis.Z", np.zeros((3, 2), np.int64)),
        "Z is array",
    ),
    ("landmarks", "another landmark"): (
        array("method.engine.basis.Z", np.zeros((4, 2))),
        "'root.landmarks' has the shape (3, 3)",
    ),
    ("landmarks", "landmarks by another name"): (
        put(*BASIS, "Z", {"array": "weights"}),
        "there is no array 'method.engine.basis.Z'",
    ),
    ("landmarks", "landmarks that are not finite"): (
        with_entry("method.engine.basis.Z", (0, 0), np.nan),
        "not finite",
    ),
    ("landmarks", "no root of landmarks"): (array("root.landmarks", None), "no array 'root.landmarks'"),
    ("landmarks", "a root of landmarks that is singular"): (
        array("root.landmarks", np.zeros(6)),
        "diagonal that is not positive",
    ),
    ("landmarks", "learned by half"): (put(*BASIS, "learned", 0.5), "learned is 0.5"),
    ("landmarks", "units of landmarks"): (
        array("method.engine.centre", np.zeros(3)),
        "units of the shapes (3,)",
    ),
    ("landmarks", "units of zero"): (array("method.engine.spread", np.zeros(2)), "units of the shapes"),
    ("landmarks", "another objective"): (put(*FIELDS, "outside", "elbo"), "outside is 'elbo'"),
    ("landmarks", "a basis that is none"): (put(*FIELDS, "basis", rbf()), "basis is"),
    ("landmarks", "weights of other outputs"): (
        array("weights", np.zeros((3, 3))),
        "'weights' has the shape (3, 3)",
    ),
    ("landmarks", "weights that are not finite"): (with_entry("weights", (0, 0), np.inf), "not finite"),
    ("landmarks", "a root of other weights"): (array("root.0", np.ones(10)), "'root.0' has the shape (4, 4)"),
    ("landmarks", "a root too few"): (array("root.1", None), "root_of is [0, 1]"),
    ("landmarks", "no scale"): (array("scale", None), "no array 'scale'"),
    ("landmarks", "a scale of zero"): (array("scale", np.zeros(2)), "scales must be positive"),
    ("landmarks", "scales of none"): (array("scale", np.zeros(0)), "scales must be positive"),
    ("landmarks", "data all the same"): (
        array("X", np.zeros((9, 2))),
        "'X' of shape (9, 2), which does not belong",
    ),
    ("landmarks", "no rows"): (put("fitted", "data", "rows", 0), "of 0 rows"),
    ("landmarks", "rows by half"): (put("fitted", "data", "rows", 8.5), "rows is 8.5"),
    ("landmarks", "notes that are none"): (put("fitted", "data", "notes", {"noise": 3}), "notes.noise is 3"),
    ("landmarks", "a setting with nonsense"): (
        put("settings", "method", "fields", "inducing", [[0.0], [0.0, 1.0]]),
        "not valid",
    ),
    ("landmarks", "a setting of an unknown rule"): (
        put("settings", "method", "fields", "inducing", "luck"),
        "'luck' is not known",
    ),
    ("fourier", "no frequencies"): (array("frequencies", None), "no array 'frequencies'"),
    ("fourier", "frequencies of other columns"): (
        array("frequencies", np.zeros((3, 9))),
        "'frequencies' has the shape (3, 9)",
    ),
    ("fourier", "amplitudes of others"): (
        array("amplitudes", np.zeros(99)),
        "'amplitudes' has the shape (99,)",
    ),
    ("fourier", "counts without end"): (put(*BASIS, "counts", [10**15, 1]), "take each of their frequencies"),
    ("fourier", "counts below zero"): (put(*BASIS, "counts", [-1, 8]), "take each of their frequencies"),
    ("fourier", "counts of none"): (put(*BASIS, "counts", []), "take each of their frequencies"),
    ("fourier", "a frequency beyond the last"): (
        with_entry("method.engine.basis.take", (-1,), 10**15),
        "take each of their frequencies",
    ),
    ("fourier", "a frequency from behind"): (
        with_entry("method.engine.basis.take", (0,), -1),
        "take each of their frequencies",
    ),
    ("fourier", "frequencies by halves"): (array("method.engine.basis.take", np.zeros(9)), "take is array"),
    ("fourier", "gains of others"): (array("method.engine.basis.gain", np.zeros(3)), "impossible shapes"),
    ("fourier", "phases of others"): (
        array("method.engine.basis.shift", np.zeros((1, 3))),
        "impossible shapes",
    ),
    ("fourier", "a centre elsewhere"): (
        array("method.engine.basis.centre", np.zeros(3)),
        "impossible shapes",
    ),
    ("fourier", "columns without end"): (put(*BASIS, "d", 10**15), "impossible shapes"),
    ("fourier", "a kind that is none"): (put(*BASIS, "kind", "magic"), "impossible shapes"),
    ("fourier", "no draws"): (draws(lambda found: found.clear()), "draws of other shapes"),
    ("fourier", "a draw of another part"): (
        draws(lambda found: found[0].append([])),
        "draws of other shapes",
    ),
    ("fourier", "a draw in columns"): (
        array("method.engine.basis.draws[0][0][0]", np.zeros((1, 1))),
        "draws of other shapes",
    ),
    ("fourier", "a draw that is a number"): (draws(lambda found: found[0].__setitem__(0, 3.0)), "draws is"),
    ("fourier", "a kernel without waves"): (
        kernel({"class": "Exp", "fields": {"kernel": rbf()}}),
        "cannot be loaded",
    ),
    ("krylov", "a pivot beyond the last row"): (
        with_entry("method.engine.solver.pivots", (0,), 9),
        "pivots must be rows",
    ),
    ("krylov", "a pivot from behind"): (
        with_entry("method.engine.solver.pivots", (0,), -1),
        "pivots must be rows",
    ),
    ("krylov", "a pivot twice"): (
        array("method.engine.solver.pivots", np.zeros(4, np.int64)),
        "pivots must be rows",
    ),
    ("krylov", "pivots of none"): (
        array("method.engine.solver.pivots", np.zeros(0, np.int64)),
        "pivots must be rows",
    ),
    ("krylov", "pivots by halves"): (array("method.engine.solver.pivots", np.zeros(4)), "pivots is array"),
    ("krylov", "no pivots"): (
        array("method.engine.solver.pivots", None),
        "there is no array 'method.engine.solver.pivots'",
    ),
    ("krylov", "a solver that is none"): (put(*FIELDS, "solver", rbf()), "solver is"),
    ("krylov", "a tolerance of none"): (put(*FIELDS, "solver", "fields", "tol", 0.0), "tol=0.0"),
    ("krylov", "a preconditioner that is none"): (
        put(*FIELDS, "solver", "fields", "preconditioner", "magic"),
        "preconditioner is 'magic'",
    ),
    ("krylov", "a seed below zero"): (put(*FIELDS, "solver", "fields", "seed", -1), "seed=-1 must be"),
    ("krylov", "float32 by half"): (put(*FIELDS, "solver", "fields", "float32", 0.5), "float32 is 0.5"),
    ("krylov", "attempts of others"): (
        put("fitted", "posterior", "stronger", [False]),
        "stronger has 1 entries",
    ),
    ("krylov", "a system that nobody uses"): (
        put("fitted", "posterior", "system_of", [0, 0]),
        "each must be used",
    ),
    ("krylov", "a system beyond the last"): (
        put("fitted", "posterior", "system_of", [0, 9]),
        "each must be used",
    ),
    ("krylov", "no noise"): (array("noise.1", None), "no array 'noise.1'"),
    ("krylov", "noise of other rows"): (array("noise.1", np.ones(8)), "'noise.1' has the shape (8,)"),
    ("krylov", "choices without rows of their own"): (
        array("solver0.pivots", np.zeros(2, np.int64)),
        "'solver0.pivots' of shape (2,), which does not belong",
    ),
    ("krylov", "attempts by half"): (put("fitted", "posterior", "stronger", [0, 1]), "stronger[0] is 0"),
    ("krylov", "no alpha"): (array("alpha", None), "no array 'alpha'"),
    ("krylov", "a root"): (array("root.0", np.ones(45)), "'root.0' of shape (9, 9), which does not belong"),
    ("krylov", "no data"): (array("X", None), "no array 'X'"),
}


@pytest.mark.parametrize("case", HOSTILE_ENGINES, ids=", ".join)
def test_made_up_files_of_other_engines_are_refused(
    case: tuple[str, str], engines: dict[str, Path], tmp_path: Path
) -> None:
    metadata, document, arrays = parts(engines[case[0]])
    change, message = HOSTILE_ENGINES[case]
    change(document, arrays)
    refused(forged(tmp_path / "m.gm", metadata, document, arrays), message)


@pytest.mark.parametrize("engine", ["landmarks", "fourier", "krylov"])
def test_no_single_change_of_another_engine_gives_another_error(
    engine: str, engines: dict[str, Path], tmp_path: Path
) -> None:
    assert (
        describe(load(forged(tmp_path / "m.gm", *parts(engines[engine]))))[0]
        == describe(load(engines[engine]))[0]
    )
    # numbers and sentences that may just as well be others
    assert check_single_changes(engines[engine], tmp_path / "m.gm") < 25


@pytest.mark.parametrize("engine", ["landmarks", "fourier", "krylov"])
def test_damage_to_another_engine_is_noticed(engine: str, engines: dict[str, Path], tmp_path: Path) -> None:
    content, path = engines[engine].read_bytes(), tmp_path / "m.gm"
    for k in range(0, len(content), 37):
        for damaged in (content[:k] + bytes([content[k] ^ 1]) + content[k + 1 :], content[:k]):
            path.write_bytes(damaged)
            with pytest.raises(ModelFileError):
                load(path)
