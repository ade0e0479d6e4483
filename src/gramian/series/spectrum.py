"""Which seasons a series may have, from its spectrum.

The spectrum is that of Lomb and Scargle, for times that need not be regular, of the series without a cubic
trend, divided by its own background. Of noise, white or red, such a ratio is exponential with mean 1, so that
exp(-ratio) is the odds of a chance peak.

    calendar   day, week and year are looked at where they are, with their first harmonics, against what is
               near in frequency
    others     the highest peaks of what is left after those, against a power law through the whole spectrum

These are suggestions: a model with the season must have more evidence than one without
(`estimators/forecaster.py`), where a rough component is what a season competes with.

Sources: Lomb 1976; Scargle 1982; VanderPlas 2018.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramian.arrays import Array

CALENDAR = {"day": 1.0, "week": 7.0, "year": 365.2425}  # in days
MOST_ROWS = 2000  # that a spectrum is of
MOST_FREQUENCIES = 5000
HARMONICS = 3  # of a season of the calendar that are looked at
NEAR = 4.0  # ratio of a peak to what is near, from which on a season of the calendar is worth a fit
SURE = 5.0  # the same of any other, beyond the logarithm of how many peaks there were to choose from
MOST_OF_IT = 0.4  # of the variance of what is left, which a wave that explains as much may be clear by
FEWEST_CYCLES = {True: 1.9, False: 3.0}  # in the series: of the calendar (two years less a step), of others
LEAST_STEPS = 2.5  # of a season


@dataclass(frozen=True)
class Season:
    """Something that comes back after a period, in days or in the units of numbers."""

    name: str
    period: float
    known: bool = True  # by the calendar, or given; else the period is fitted, too


def suggested(t: Array, y: Array, step: float, dated: bool, rng: np.random.Generator) -> list[Season]:
    """Seasons that a series may have, the clearest first."""
    span = float(t[-1] - t[0])
    if len(t) < 8 or span <= 0 or np.ptp(y) == 0:
        return []
    if len(t) > MOST_ROWS:
        at = np.sort(rng.choice(len(t), MOST_ROWS, replace=False))
        t, y = t[at], y[at]
    t = t - t[0]
    trend = np.vander(t / span, min(4, len(t) // 3))
    rest = _left(y, trend)
    found: list[tuple[float, Season]] = []
    for name, period in CALENDAR.items() if dated else ():
        if span + step >= FEWEST_CYCLES[True] * period and step * LEAST_STEPS <= period:
            clear = _near(t, rest, span, step, period)
            if clear > NEAR:
                found.append((clear, Season(name, period)))
    waves = [_waves(t, 1 / season.period, step) for _, season in found]
    rest = _left(y, np.hstack([trend, *waves]))
    for _ in range(1 if found else 2):
        if len(t) <= trend.shape[1] + sum(wave.shape[1] for wave in waves) + 8:
            break
        peak = _highest(t, rest, span, step, [1 / season.period for _, season in found])
        if peak is None:
            break
        clear, frequency = peak
        period = _whole(1 / frequency, step, span)
        season = Season(_named(period, dated), period, known=False)
        found.append((clear, season))
        waves.append(_waves(t, frequency, step))
        rest = _left(y, np.hstack([trend, *waves]))
    return [season for _, season in sorted(found, key=lambda pair: -pair[0])]


def _left(y: Array, basis: Array) -> Array:
    """What a least-squares fit of the basis leaves."""
    return y - basis @ np.linalg.lstsq(basis, y, rcond=None)[0]


def _waves(t: Array, frequency: float, step: float) -> Array:
    """A season as waves, up to what the step can tell: (n, 2 harmonics)."""
    most = max(1, min(2 * HARMONICS, int(0.5 / (frequency * step))))
    phase = 2 * np.pi * frequency * t[:, None] * np.arange(1, most + 1)
    return np.hstack([np.cos(phase), np.sin(phase)])


def _power(t: Array, rest: Array, frequencies: Array) -> Array:
    """What a wave of each frequency explains by least squares, halved: Lomb and Scargle's power. By blocks:
    SciPy's function takes several times as long."""
    found = []
    for block in np.array_split(frequencies, max(1, len(frequencies) * len(t) // 1_000_000)):
        phase = 2 * np.pi * block[:, None] * t
        cosine, sine = np.cos(phase), np.sin(phase)
        a, b = cosine @ rest, sine @ rest
        aa, ab = np.sum(cosine**2, axis=1), np.sum(cosine * sine, axis=1)
        bb = len(t) - aa
        found.append((bb * a**2 - 2 * ab * a * b + aa * b**2) / np.maximum(aa * bb - ab**2, 1e-9 * len(t)))
    return 0.5 * np.concatenate(found)


def _near(t: Array, rest: Array, span: float, step: float, period: float) -> float:
    """The highest ratio of a harmonic to what is near it in frequency."""
    clear = 0.0
    for k in range(1, HARMONICS + 1):
        centre = k / period
        if centre * step > 0.5:
            break
        beside = np.arange(1.5, 9.0, 0.5) / span
        around = np.concatenate([centre - beside, centre + beside])
        around = around[(around > 0.7 / span) & (np.abs(around * period - np.round(around * period)) > 0.1)]
        if len(around) < 4:
            around = (centre + beside)[:4]
        at = _power(t, rest, np.array([centre]))[0]
        clear = max(clear, float(at * np.log(2) / max(np.median(_power(t, rest, around)), 1e-300)))
    return clear


def _highest(
    t: Array, rest: Array, span: float, step: float, known: list[float]
) -> tuple[float, float] | None:
    """The clearest peak of a spectrum: its ratio to a power law through all of it, and its frequency; None
    where none is clear. What is near a known frequency or its multiples is that season, as it changes."""
    low, high = FEWEST_CYCLES[False] / span, 1 / (LEAST_STEPS * step)
    count = int(min((high - low) * span * 4, MOST_FREQUENCIES))
    if count < 8:
        return None
    frequencies: Array = low + np.arange(float(count)) * (0.25 / span)
    for frequency in known:
        away = np.abs(frequencies - frequency * np.maximum(np.round(frequencies / frequency), 1))
        frequencies = frequencies[away > max(0.25 * frequency, 3 / span)]
    if len(frequencies) < 8:
        return None
    count = len(frequencies)
    power = np.maximum(_power(t, rest, frequencies), 1e-300)
    # medians of a dozen parts in the logarithm of frequency: peaks are few in each
    ends = np.searchsorted(frequencies, np.geomspace(frequencies[0], frequencies[-1], 13)[1:-1])
    parts = [part for part in np.split(np.arange(count), ends) if len(part) >= 4]
    if len(parts) < 2:
        return None
    x = np.array([np.mean(np.log(frequencies[part])) for part in parts])
    level = np.array([np.log(np.median(power[part]) / np.log(2)) for part in parts])
    slope, height = np.polyfit(x, level, 1)
    ratio = power / np.exp(np.minimum(slope, 0.0) * np.log(frequencies) + height)
    best = int(np.argmax(ratio))
    independent = max(count / 4, 1.0)
    if ratio[best] < SURE + np.log(independent):
        # what a short series has of a pure wave spreads over its whole spectrum, background included
        best = int(np.argmax(power))
        if 2 * power[best] < MOST_OF_IT * np.sum(rest**2):
            return None
    # a shape that is no wave may have a harmonic higher than itself
    for parts_of in (4, 3, 2):
        lower = frequencies[best] / parts_of
        near = np.flatnonzero(np.abs(frequencies - lower) < 0.5 / span)
        if lower >= low and len(near) and np.max(ratio[near]) > SURE + np.log(independent):
            best = int(near[np.argmax(ratio[near])])
            break
    fine = (frequencies[best] + np.linspace(-0.25, 0.25, 41) / span).astype(np.float64)
    return float(ratio[best]), float(fine[np.argmax(_power(t, rest, fine))])


def _whole(period: float, step: float, span: float) -> float:
    """A whole number of steps, where the peak is as near to one as a peak can tell: people count in these."""
    whole = step * round(period / step)
    return whole if abs(period - whole) < 0.1 * period**2 / span else period


def _named(period: float, dated: bool) -> str:
    if not dated:
        return f"every {period:.3g}"
    for unit, days in (("years", CALENDAR["year"]), ("days", 1.0), ("hours", 1 / 24)):
        if period >= 2 * days:
            return f"{period / days:.3g} {unit}"
    return f"{period * 1440:.3g} minutes"
