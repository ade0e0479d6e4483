"""The model file: a fitted estimator in one file without code, with the same predictions to the last bit.

document      objects as JSON and back; which classes a file may name
fields        what the fields of the library's classes may hold
settings      an estimator's settings
observations  the rows, or what is told of them, and the labels of a classifier
record        what a fitted estimator consists of, and the checks of what was read
migrations    documents of older versions
layout        a document and arrays in one file, with a checksum
file          a model file: `save` and `load`
checkpoint    what a fit has found so far, in the same layout

What a posterior consists of it says itself (`Process.state`), and builds itself from that again: a new kind
of process, engine, rule, solver or basis needs no line here.
"""

from gramian.modelfile.file import load, save

__all__ = ["load", "save"]
