"""The price of one draw: three bounds on the privacy loss, and what may be said of them.

With d the sensitive part (docs/maths.md, "The price"), for each record i over the draws s of one fit:

- lipschitz: 2 max_s |d|, the paper's ε;
- oscillation: max_s d − min_s d, never larger;
- exact: max_s |d − c|, the privacy loss itself, where c has a closed form.

The price is the largest over records. A maximum over draws is not a supremum over parameters: for these
models that supremum is infinite, and none of the three is differential privacy.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hedgerow.axes import PerRecord
from hedgerow.errors import SettingError
from hedgerow.fit import Fit
from hedgerow.numerics.scoring import Extremes
from hedgerow.ranges import Interval
from hedgerow.sensitive import Linear, Sensitive, withheld_part

Bound = Literal["lipschitz", "oscillation", "exact"]
BOUNDS: tuple[Bound, ...] = ("lipschitz", "oscillation", "exact")
CONFIDENCE = 0.95


@dataclass(frozen=True, repr=False)
class Price:
    """Extremes of d over the draws, by record; confidential."""

    low: PerRecord
    high: PerRecord
    constant: PerRecord | None  # c_i of the exact loss, where it has a closed form

    def has(self, bound: Bound) -> bool:
        """Whether this bound can be computed."""
        return bound != "exact" or self.constant is not None

    def by_record(self, bound: Bound) -> PerRecord:
        """The price of each record under one bound."""
        if bound == "lipschitz":
            return 2 * self.sensitivity
        if bound == "oscillation":
            return self.high - self.low
        if self.constant is None:
            raise SettingError("This neighbour has no closed form, so there is no exact price.")
        return _distance(self.low, self.high, self.constant)

    @property
    def sensitivity(self) -> PerRecord:
        """max_s |d|, by record."""
        return _distance(self.low, self.high, np.zeros_like(self.low))

    def epsilon(self, bound: Bound) -> float:
        """The price: the largest over records."""
        return float(self.by_record(bound).max())

    def centred(self, centre: PerRecord) -> float:
        """2 max_{s,i} |d − centre_i|: never below the oscillation, and one number per draw."""
        return float(2 * _distance(self.low, self.high, centre).max())

    def join(self, other: "Price") -> "Price":
        """The price over the draws of both."""
        return Price(np.minimum(self.low, other.low), np.maximum(self.high, other.high), self.constant)

    def __repr__(self) -> str:
        return f"Price({len(self.low)} records, confidential)"


@dataclass(frozen=True, repr=False)
class Pricing:
    """What one fit costs: under the standard's own neighbour, and with x_i withheld; confidential."""

    own: Price
    withheld: Price
    by_draws: tuple[tuple[int, Price], ...]  # the own price after an eighth, a quarter, half, all draws

    def __repr__(self) -> str:
        return f"Pricing({len(self.own.low)} records, confidential)"


@dataclass(frozen=True)
class Statement:
    """How far the draws carry: δ is the share of the posterior they leave open, at this confidence.

    `tries` is the number of certifications the plan allows, fixed in advance: each may err with probability
    0.05/tries, so that all together err with at most 0.05 and δ says nothing about the data.
    """

    bound: Bound
    draws: int
    delta: float
    confidence: float
    independent: bool


def statement(bound: Bound, fit: Fit, *, tries: int = 1) -> Statement:
    """The draw-based statement for a fit: with S independent draws δ = 1 − error^{1/S}.

    For a Markov chain S is the tail ESS that the health gate demands of every fit, not the one measured:
    that is at least as large, but δ is published and must not depend on the confidential data.
    """
    error = (1 - CONFIDENCE) / tries
    effective = min(float(fit.draws), fit.health.stated_draws)
    delta = float(-np.expm1(np.log(error) / effective))
    return Statement(bound, int(effective), delta, CONFIDENCE, fit.health.independent)


def price(fit: Fit, part: Sensitive, interval: Interval) -> Pricing:
    """Score every draw of the fit once and price both neighbours."""
    own_constant = _own_constant(fit, part)
    withheld = withheld_part(fit.power)
    withheld_constant = fit.model.loss_constant(fit.design, fit.power, fit.power)
    running: tuple[Price, Price] | None = None
    by_draws = []
    for draws in _doublings(fit.draws):
        extremes = _extremes(fit.part(draws), part, withheld, interval)
        own = Price(extremes[0].low, extremes[0].high, own_constant)
        apart = Price(extremes[1].low, extremes[1].high, withheld_constant)
        running = (own, apart) if running is None else (running[0].join(own), running[1].join(apart))
        by_draws.append((draws.stop, running[0]))
    if running is None:
        raise SettingError("A fit without draws has no price.")
    return Pricing(running[0], running[1], tuple(by_draws))


def extremes_of_log_lik(fit: Fit, interval: Interval) -> Extremes:
    """Smallest and largest f over the draws, for each record."""
    return fit.extremes(withheld_part(np.ones(fit.design.records)), interval)


def _extremes(fit: Fit, own: Sensitive, withheld: Linear, interval: Interval) -> tuple[Extremes, Extremes]:
    raw = extremes_of_log_lik(fit, interval)
    apart = _scaled(raw, withheld)
    if isinstance(own, Linear) and not own.mass.any() and (own.density >= 0).all():
        return _scaled(raw, own), apart
    return fit.extremes(own, interval), apart


def _scaled(raw: Extremes, part: Linear) -> Extremes:
    return Extremes(part.density * raw.low + part.constant, part.density * raw.high + part.constant)


def _own_constant(fit: Fit, part: Sensitive) -> PerRecord | None:
    """c_i where the neighbour is a record's likelihood taken away in part; none where γ(θ) enters."""
    if not isinstance(part, Linear) or part.mass.any():
        return None
    constant = fit.model.loss_constant(fit.design, fit.power, part.density)
    return None if constant is None else constant + part.constant


def _distance(low: PerRecord, high: PerRecord, centre: PerRecord) -> PerRecord:
    return np.maximum(np.abs(low - centre), np.abs(high - centre))


def _doublings(draws: int) -> Iterator[slice]:
    start = 0
    for stop in (draws // 8, draws // 4, draws // 2, draws):
        if stop > start:
            yield slice(start, stop)
            start = stop
