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
from functools import cached_property
from typing import Literal

import numpy as np

from hedgerow.arrays import PerRecord
from hedgerow.errors import SettingError
from hedgerow.mechanism.fit import Fit
from hedgerow.mechanism.importance import Importance, importance_of
from hedgerow.models.base import Influence
from hedgerow.models.scored import Interval, Linear, Sensitive
from hedgerow.models.wrapped import Restricted
from hedgerow.numerics.scoring import Extremes
from hedgerow.privacy.sensitive import withheld_part

Bound = Literal["lipschitz", "oscillation", "exact", "strict", "censored"]
BOUNDS: tuple[Bound, ...] = ("lipschitz", "oscillation", "exact")
SUPREMA: tuple[Bound, ...] = ("strict", "censored")  # over all parameters; each comes with its standard
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
    """What one fit costs, scored when asked for; confidential.

    The Lipschitz price needs less than the others, so each is computed when it is first read.
    """

    fit: Fit
    part: Sensitive
    interval: Interval

    @cached_property
    def sensitivity(self) -> PerRecord:
        """max_s |d|, by record."""
        return self.fit.absolute(self.part, self.interval)

    @cached_property
    def own(self) -> Price:
        """The price under the standard's own neighbour."""
        return self.by_draws[-1][1]

    @cached_property
    def by_draws(self) -> tuple[tuple[int, Price], ...]:
        """The own price after an eighth, a quarter, half and all of the draws."""
        steps: list[tuple[int, Price]] = []
        for draws in _doublings(self.fit.draws):
            found = self.fit.part(draws).extremes(self.part, self.interval)
            here = Price(found.low, found.high, self._own_constant)
            steps.append((draws.stop, here if not steps else steps[-1][1].join(here)))
        return tuple(steps)

    @cached_property
    def withheld(self) -> Price:
        """The price when x_i is withheld altogether."""
        power = self.fit.power
        found = self.fit.extremes(withheld_part(power), self.interval)
        influence = self.influence
        return Price(found.low, found.high, influence.loss_constant(power) if influence else None)

    @cached_property
    def influence(self) -> Influence | None:
        """What each record does to the fit, for exact models."""
        return None if self.fit.influence is None else self.fit.influence()

    @cached_property
    def importance(self) -> Importance:
        """The fit without each record's outcome, estimated by importance weights."""
        return importance_of(self.fit)

    def has(self, bound: Bound) -> bool:
        """Whether this bound can be computed for the standard's own neighbour."""
        if bound in SUPREMA:
            return isinstance(self.fit.model, Restricted) and self.fit.model.bound == bound
        return bound != "exact" or (self._has_closed_form and self.influence is not None)

    def epsilon(self, bound: Bound) -> float:
        """The price under one bound: the largest over records."""
        return float(self.by_record(bound).max())

    def by_record(self, bound: Bound) -> PerRecord:
        """The price of each record under one bound."""
        if bound in SUPREMA:
            model = self.fit.model
            if not isinstance(model, Restricted) or model.bound != bound:
                raise SettingError(f"This fit has no {bound} price; that comes with the standard.")
            return self.fit.power * model.public_risk(self.fit.design).oscillation
        return 2 * self.sensitivity if bound == "lipschitz" else self.own.by_record(bound)

    @property
    def _has_closed_form(self) -> bool:
        # The neighbour is a record's likelihood taken away in part; where γ(θ) enters there is none.
        return isinstance(self.part, Linear) and not self.part.mass.any()

    @cached_property
    def _own_constant(self) -> PerRecord | None:
        if not isinstance(self.part, Linear) or not self.has("exact") or self.influence is None:
            return None
        return self.influence.loss_constant(self.part.density) + self.part.constant

    def __repr__(self) -> str:
        return f"Pricing({self.fit.design.records} records, confidential)"


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
    if bound in SUPREMA:
        return Statement(bound, fit.draws, 0.0, 1.0, fit.health.independent)
    error = (1 - CONFIDENCE) / tries
    effective = min(float(fit.draws), fit.health.stated_draws)
    delta = float(-np.expm1(np.log(error) / effective))
    return Statement(bound, int(effective), delta, CONFIDENCE, fit.health.independent)


def extremes_of_log_lik(fit: Fit, interval: Interval) -> Extremes:
    """Smallest and largest f over the draws, for each record."""
    return fit.extremes(withheld_part(np.ones(fit.design.records)), interval)


def _distance(low: PerRecord, high: PerRecord, centre: PerRecord) -> PerRecord:
    return np.maximum(np.abs(low - centre), np.abs(high - centre))


def _doublings(draws: int) -> Iterator[slice]:
    start = 0
    for stop in (draws // 8, draws // 4, draws // 2, draws):
        if stop > start:
            yield slice(start, stop)
            start = stop
