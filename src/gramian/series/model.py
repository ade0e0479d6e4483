"""The kernel of a series: a trend, seasons, what is left, and known regressors.

    trend        Linear + s IntegratedBrownian: a line whose slope wanders, and goes on with its latest slope
                 (a smoothing spline, Wahba 1978; the smooth trend of structural models, Harvey 1989)
    each season  s Periodic(l, period) * Matern32(l2): a shape that changes slowly
    crossed      s Periodic(short) * Periodic(long) * Matern32: a short season whose shape follows a long one,
                 as the hours of a day do through the year
    short-term   s Matern32(l), some steps long
    regressors   Linear, and where the data ask for it s Matern52; text as categories

in units of the variance of y. Parameters have priors from the length and the step of the series: what a
series of n rows says about its trend beyond its end is one number or two, and a free one takes the level of
the last months for a trend.

Trends, by forecasts from several dates within the training parts of known series (root mean square error,
and what 95 % intervals held): Linear + Matern52 of a lengthscale about that of the series, which turns back
to the line, and this one, with WANDER at FIRST (and a prior of 1.5 instead of 2) and as it is:

    CO2, five years ahead, four dates             1.288 (0.81)    0.925 (0.95)    0.934 (0.94)
    passengers, three years ahead, three dates    23.1 (0.99)     22.8 (0.99)     18.9 (0.99)
    passengers, two years ahead, five dates       15.8 (0.99)     15.9 (0.99)     13.8 (0.99)
    Melbourne, a year ahead, three dates          2.846 (0.95)    2.877 (0.95)    2.859 (0.95)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gramian.kernels import (
    Categorical,
    IntegratedBrownian,
    Kernel,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    Product,
    Scaled,
    Sum,
)
from gramian.params import LogNormal, Parameter, fixed, param
from gramian.series.spectrum import Season

TIME = "time"  # the column of times
TREND, SHORT, REGRESSORS = "trend", "short-term", "regressors"  # names of components
LINE, BENT = "line", "regressors that bend"  # titles of summands, which are part of these
FIRST = 0.1  # of the variance of y: where parts begin, and where their priors are
WANDER = 0.01  # the same of what a slope that wanders adds from the middle of the series to its ends


@dataclass(frozen=True)
class Structure:
    """What a series is made of."""

    seasons: tuple[Season, ...] = ()
    crossed: tuple[tuple[Season, Season], ...] = ()  # a short one through a long one
    numeric: tuple[str, ...] = ()  # regressors
    words: tuple[str, ...] = ()  # those of text
    smooth: bool = False  # whether regressors bend

    def with_season(self, season: Season) -> Structure:
        return replace(self, seasons=(*self.seasons, season))

    def with_crossed(self, short: Season, long: Season) -> Structure:
        return replace(self, crossed=(*self.crossed, (short, long)))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the parts, as components have them."""
        return tuple(dict.fromkeys(self.titles.values()))

    @property
    def titles(self) -> dict[str, str]:
        """Which part each summand of the kernel belongs to, by its title."""
        seasons = (season.name for season in self.seasons)
        crossed = (crossing(*pair) for pair in self.crossed)
        found = {LINE: TREND, TREND: TREND} | {name: name for name in (*seasons, *crossed)}
        found |= {BENT: REGRESSORS} if self.smooth else {}
        found |= {f"{name} (regressor)": REGRESSORS for name in (*self.numeric, *self.words)}
        return found | {SHORT: SHORT}

    def kernel(self, span: float, step: float) -> Sum:
        """For a series of a length and a usual step, whose variance is 1."""
        half = max(span, step) / 2
        wander = WANDER / (half**3 / 3)  # times are counted from the middle of the series
        parts: dict[str, Kernel] = {
            LINE: Linear(_about(0.1 * FIRST / half**2, FIRST / half**2, 1.0)),
            TREND: Scaled(IntegratedBrownian(), _about(wander, wander, 2.0)),
        }
        parts |= {season.name: _season(span, season) for season in self.seasons}
        parts |= {crossing(*pair): _season(span, *pair) for pair in self.crossed}
        parts[SHORT] = Scaled(Matern32(_about(5 * step, 10 * step, 1.0)), _about(0.05, 0.05, 1.5))
        if self.numeric or self.words:
            parts = {title: part.on(TIME) for title, part in parts.items()}
        # regressors of numbers have mean 0 and variance 1
        if self.smooth:
            lengths = np.full(len(self.numeric), math.sqrt(len(self.numeric)))
            prior = LogNormal(float(np.log(lengths[0])), 1.0)
            parts[BENT] = _scaled(Matern52(param(lengths, prior=prior))).on(*self.numeric)
        for name in self.numeric:
            parts[f"{name} (regressor)"] = Linear(_about(FIRST, FIRST, 1.5)).on(name)
        for name in self.words:
            parts[f"{name} (regressor)"] = _scaled(Categorical(0.5)).on(name)
        return Sum(tuple(parts[title].named(title) for title in self.titles))


def crossing(short: Season, long: Season) -> str:
    return f"{short.name} by {long.name}"


def _scaled(kernel: Kernel) -> Kernel:
    return Scaled(kernel, _about(FIRST, FIRST, 1.5))


def _about(value: float, median: float, sd: float) -> Parameter:
    return param(value, prior=LogNormal(math.log(median), sd))


def _season(span: float, *seasons: Season) -> Kernel:
    """The shape of one season, or of one through another, that changes slowly: by its own length, at least
    five times, with the longest period."""
    factors: list[Kernel] = []
    for season in seasons:
        # a peak of a spectrum is known to a share of 1 / cycles or better
        sd = 0.25 * season.period / max(span, season.period)
        period = fixed(season.period) if season.known else _about(season.period, season.period, sd)
        factors.append(Periodic(_about(1.0, 1.0, 0.7), period))
    known = all(season.known for season in seasons)
    longest = max(season.period for season in seasons)
    slow = 3 * max(span, 5 * longest) if known else 3 * longest
    changing = Matern32(_about(slow, slow, 0.5 if known else 1.0))
    return _scaled(Product((*factors, changing)))
