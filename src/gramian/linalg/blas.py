"""BLAS and LAPACK on blocks of one array, in place: the routines inside SciPy, called with an address and a
leading dimension, where its wrappers would copy the block first.

The addresses come from the capsules that `scipy.linalg.cython_blas` and `cython_lapack` export for compiled
code. A call lets go of the GIL, and one library does all the work, so that no two pools of threads wait for
each other (NumPy brings a second OpenBLAS).

An integer is passed as the address of 64 bits: a library that reads 32 finds the same value in the half that
is stored first. (Where the upper half comes first, libraries with 32 bits are taken for granted.)
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas, cython_lapack

from gramian.arrays import Array
from gramian.errors import NumericalError

_Integer: Final = ctypes.c_int64 if sys.byteorder == "little" else ctypes.c_int


def _routine(module: Any, name: str) -> Callable[..., None]:
    """The routine behind a capsule, whose name is its signature in C."""
    signature_of, address_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    signature_of.restype, signature_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = module.__pyx_capi__[name]
    signature: Any = signature_of(capsule)
    address: Any = address_of(capsule, signature)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (signature.count(b",") + 1))(address)


# by the bytes of a number
_gemm: Final = {8: _routine(cython_blas, "dgemm"), 4: _routine(cython_blas, "sgemm")}
_syrk: Final = {8: _routine(cython_blas, "dsyrk"), 4: _routine(cython_blas, "ssyrk")}
_trmm: Final = {8: _routine(cython_blas, "dtrmm"), 4: _routine(cython_blas, "strmm")}
_dtrsm: Final = _routine(cython_blas, "dtrsm")
_dtrmv: Final = _routine(cython_blas, "dtrmv")
_dpotrf: Final = _routine(cython_lapack, "dpotrf")
_dtrtri: Final = _routine(cython_lapack, "dtrtri")
_dsygst: Final = _routine(cython_lapack, "dsygst")
_dlauum: Final = _routine(cython_lapack, "dlauum")


@dataclass(frozen=True, slots=True)
class BlasBlock:
    """Rows and columns of a Fortran-ordered array, as BLAS sees them, which somebody else keeps alive."""

    address: int
    rows: int
    columns: int
    stride: int  # numbers from one column to the next
    size: int = 8  # bytes of a number

    def __getitem__(self, at: tuple[slice, slice]) -> BlasBlock:
        top, bottom, _ = at[0].indices(self.rows)
        left, right, _ = at[1].indices(self.columns)
        address = self.address + self.size * (top + left * self.stride)
        return BlasBlock(address, max(bottom - top, 0), max(right - left, 0), self.stride, self.size)


def block_of(array: Array | NDArray[np.float32], *, only_read: bool = False) -> BlasBlock:
    """The whole of an array (n, k), Fortran-ordered, or the first rows of such an array. Products take
    numbers of 32 bits, too; LAPACK and division do not."""
    rows, columns = array.shape
    assert array.dtype in (np.float64, np.float32)
    assert only_read or array.flags.writeable
    stride = max(rows, 1)
    if not array.flags.f_contiguous:
        stride, rest = divmod(array.strides[1], array.itemsize)
        assert array.strides[0] == array.itemsize
        assert stride >= rows
        assert rest == 0
    return BlasBlock(array.ctypes.data, rows, columns, stride, array.itemsize)


def gemm(
    alpha: float,
    A: BlasBlock,
    B: BlasBlock,
    C: BlasBlock,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    beta: float = 1.0,
) -> None:
    """C <- beta C + alpha A B, with A or B transposed where said; with beta = 0 C may hold anything."""
    inner = A.rows if transpose_a else A.columns
    assert inner == (B.columns if transpose_b else B.rows)
    assert (C.rows, C.columns) == (A.columns if transpose_a else A.rows, B.rows if transpose_b else B.columns)
    if C.rows and C.columns and (inner or beta != 1):
        routine, number = _gemm[_size(A, B, C)], _number(C.size)
        head = _t(transpose_a), _t(transpose_b), _int(C.rows), _int(C.columns), _int(inner)
        routine(*head, number(alpha), *_at(A), *_at(B), number(beta), *_at(C))


def syrk(alpha: float, A: BlasBlock, C: BlasBlock, *, transpose: bool = False) -> None:
    """C <- C + alpha A A' (alpha A' A if transposed), in the lower triangle of C."""
    inner = A.rows if transpose else A.columns
    assert C.rows == C.columns == (A.columns if transpose else A.rows)
    if C.rows and inner:
        routine, number = _syrk[_size(A, C)], _number(C.size)
        routine(b"L", _t(transpose), _int(C.rows), _int(inner), number(alpha), *_at(A), number(1.0), *_at(C))


def multiply_triangle(L: BlasBlock, B: BlasBlock, *, right: bool = False, transpose: bool = False) -> None:
    """B <- L B, or B L from the right, with L' for L where said: the lower triangle of L."""
    if B.columns == 1 and B.size == 8 and not right:  # at half the time of dtrmm
        assert L.rows == L.columns == B.rows
        _dtrmv(b"L", _t(transpose), b"N", _int(L.rows), *_at(L), ctypes.c_void_p(B.address), _int(1))
        return
    _with_triangle(_trmm[_size(L, B)], 1.0, L, B, right, transpose)


def solve_triangle(
    L: BlasBlock, B: BlasBlock, *, right: bool = False, transpose: bool = False, alpha: float = 1.0
) -> None:
    """B <- alpha L^-1 B, or alpha B L^-1 from the right, with L' for L where said: its lower triangle."""
    assert _size(L, B) == 8
    _with_triangle(_dtrsm, alpha, L, B, right, transpose)


def _with_triangle(
    routine: Callable[..., None], alpha: float, L: BlasBlock, B: BlasBlock, right: bool, transpose: bool
) -> None:
    assert L.rows == L.columns == (B.columns if right else B.rows)
    if B.rows and B.columns:
        flags = b"R" if right else b"L", b"L", _t(transpose), b"N"
        routine(*flags, _int(B.rows), _int(B.columns), _number(B.size)(alpha), *_at(L), *_at(B))


def check_info(info: int, routine: str) -> None:
    """Refuses what LAPACK calls a failure: 0 is none, k > 0 the row at which it gave up, -k a wrong argument.
    Not an assertion, which `python -O` leaves out: the array would pass for the result."""
    if info:
        where = f"at row {info - 1}" if info > 0 else f"for its argument {-info}"
        raise NumericalError(
            f"LAPACK's {routine} fails {where}: the matrix is singular there, or not finite. Rescale the"
            " columns, or let noise be learned or larger."
        )


def potrf(A: BlasBlock) -> int:
    """L with L L' = A, in A's lower triangle; 0, or one more than the row whose pivot is not positive."""
    return _lapack(_dpotrf, A, b"L")


def invert_triangle(L: BlasBlock) -> None:
    """L^-1 in L's lower triangle."""
    check_info(_lapack(_dtrtri, L, b"L", b"N"), "dtrtri")


def square_triangle(W: BlasBlock) -> None:
    """W' W in W's lower triangle, of which W is the lower triangle."""
    check_info(_lapack(_dlauum, W, b"L"), "dlauum")


def square_between(L: BlasBlock, A: BlasBlock) -> None:
    """A <- L' A L in the lower triangle of a symmetric A, with that of L."""
    assert L.rows == L.columns == A.rows == A.columns
    assert _size(L, A) == 8
    info = _Integer(0)
    _dsygst(_int(2), b"L", _int(A.rows), *_at(A), *_at(L), ctypes.byref(info))
    check_info(info.value, "dsygst")


def _lapack(routine: Callable[..., None], A: BlasBlock, *flags: bytes) -> int:
    assert A.rows == A.columns
    assert A.size == 8
    info = _Integer(0)
    routine(*flags, _int(A.rows), *_at(A), ctypes.byref(info))
    return info.value


def _at(block: BlasBlock) -> tuple[int, Any]:
    return block.address, _int(block.stride)


def _t(transpose: bool) -> bytes:
    return b"T" if transpose else b"N"


def _int(value: int) -> Any:
    return ctypes.byref(_Integer(value))


def _size(*blocks: BlasBlock) -> int:
    """Of a number in all of them."""
    assert len({block.size for block in blocks}) == 1
    return blocks[0].size


def _number(size: int) -> Callable[[float], Any]:
    kind = ctypes.c_double if size == 8 else ctypes.c_float
    return lambda value: ctypes.byref(kind(value))
