"""The model file: a fitted estimator in one file without code, which gives the same predictions to the last bit.

document    objects as JSON and back; which classes a file may name
posteriors  what each kind of posterior consists of
record      what a fitted regressor consists of, and the checks of what was read
file        the layout, the checksum, the arrays; `save` and `load`
"""

from gramian.modelfile.file import load, save

__all__ = ["load", "save"]
