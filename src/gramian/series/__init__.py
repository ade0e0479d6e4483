"""Series in time: what a forecast needs besides a Gaussian process.

    times     dates or numbers as one axis, its usual step, horizons, dates that are still to come
    spectrum  which seasons a series may have: Lomb-Scargle, against what is near in frequency
    model     the kernel of a trend, seasons and what is left, with priors from the length of the series
    table     tables of series: which column is what, and tables made again
    paths     drawn functions of time, to be evaluated, maximised and crossed

`estimators/forecaster.py` chooses among them by evidence.
"""
