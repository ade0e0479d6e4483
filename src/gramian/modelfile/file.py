"""A model file: `save` and `load`.

The layout, with its checksum, is that of `layout`; its document holds settings, kernel, mean, columns and
outcome (see `document`), and the arrays are the rows where predictions need them, those of the posterior
(`Process.state`), and theta. They are float64 (those of whole numbers int64), so predictions from the file
are those from memory to the last bit. Documents of older versions are brought up to date by `migrations`.
Reading never runs code: see `document` on classes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gramian.errors import GramianError, MemoryLimitError, ModelFileError, StateError
from gramian.linalg import memory
from gramian.linalg.state import Arrays
from gramian.modelfile.document import canonical, parse
from gramian.modelfile.layout import Kind, parts, read, write
from gramian.modelfile.migrations import MIGRATIONS
from gramian.modelfile.record import CHANGES, describe, restore
from gramian.modelfile.settings import ESTIMATORS, Saved

FORMAT: Final = "gramian model"
VERSION = 8
_INVALID = "cannot be loaded: it holds a model that is not valid"


def save(gp: Saved, path: str | os.PathLike[str]) -> None:
    """Writes a fitted estimator to `path`, whole or not at all; `load` gives it back to the last bit.

    Refused, before anything is written: kernels that hold Python functions (`warp`, `map_inputs`), subclasses
    of the estimators, and settings that are no plain values. A kernel, mean or likelihood of a class of your
    own is stored by the name of its class, which must be imported when the file is loaded. A `random_state`
    that is a RandomState is stored with its present state, so that it continues as it would have here.
    """
    if type(gp) not in ESTIMATORS.values():
        rule = f"A model file holds a {' or a '.join(ESTIMATORS)}, not a {type(gp).__name__}"
        raise ModelFileError(f"{rule}. Use pickle for other estimators.")
    check_is_fitted(gp, "fitted_")
    try:
        description, arrays = describe(gp)
        again = restore(description, arrays)  # what cannot be read back is not written
        if again.kernel_ != gp.kernel_:
            raise ModelFileError(f"its kernel does not come back as it was. {CHANGES}")
        if not _finite(arrays):
            raise ModelFileError("its predictions are not finite. The summary may tell the cause.")
    except GramianError as error:
        raise ModelFileError(f"This model cannot be saved: {error}") from None
    except Exception as cause:  # from a class of the user's
        told = f"it could not be read back ({type(cause).__name__}: {cause})"
        raise ModelFileError(f"This model cannot be saved: {told}.") from cause
    write(path, _kind(), canonical(description), arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """The estimator that `save` wrote. Runs no code from the file; a file that is damaged, foreign or made up
    is refused with a ModelFileError."""
    try:
        with memory.translated(f"To load {path}", "Free some, or load it on a larger machine."):
            return restore(*_document(*read(path, _kind())))
    except MemoryLimitError:
        raise
    except StateError as error:
        raise ModelFileError(f"{path} cannot be loaded: {error}") from None
    except RecursionError:
        raise ModelFileError(f"{path} cannot be loaded: its document is nested too deeply.") from None
    except GramianError as error:  # a constructor that refuses its values
        raise ModelFileError(f"{path} {_INVALID}. {error}") from None
    except Exception as cause:  # whatever else a made-up file sets off is the file's fault
        raise ModelFileError(f"{path} {_INVALID} ({type(cause).__name__}: {cause}).") from cause


def _kind() -> Kind:
    by, again = "save, or by gramian fit", "Save the model again, or copy the file again."
    return Kind(FORMAT, VERSION, "model file", "a gramian model", "This model", by, again)


def _finite(arrays: Arrays) -> bool:
    """Whether all numbers are, but for nan in Y: not observed."""
    each = ((name, part) for name, array in arrays.items() for part in parts(name, array))
    return all(
        np.all(np.isfinite(part) | (name.split(".")[-1] == "Y" and np.isnan(part))) for name, part in each
    )


def _document(metadata: Mapping[str, str], arrays: Arrays) -> tuple[Any, Arrays]:
    """The document, before anything is built from it."""
    if not _finite(arrays):
        raise ModelFileError("its arrays hold numbers that are not finite.")
    document = parse(metadata["document"])
    for version in range(int(metadata["version"]), VERSION):
        document, arrays = MIGRATIONS[version](document, arrays)
    return document, arrays
