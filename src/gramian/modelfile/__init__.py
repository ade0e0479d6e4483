"""The model file: a fitted estimator in one file without code, which gives the same predictions to the last
bit.

document    objects as JSON and back; which classes a file may name
fields      what the fields of the library's classes may hold
arrays      the arrays beside the document
settings    an estimator's settings
labels      the classes of a classifier
features    feature maps
draws       Markov chains
posteriors  what each kind of posterior consists of
record      what a fitted estimator consists of, and the checks of what was read
migrations  documents of older versions
file        the layout, the checksum, the arrays; `save` and `load`
"""

from gramian.modelfile.file import load, save

__all__ = ["load", "save"]
