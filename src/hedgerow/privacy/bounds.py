"""Bounds on the privacy loss: what a record costs, and what may be said of it (the words: `privacy.claims`).

With d the sensitive part of a standard (docs/maths.md, "The price"), for each record i over the draws s of
one fit:

- `LIPSCHITZ`: 2 max_s |d|, the paper's ε;
- `OSCILLATION`: max_s d − min_s d, never larger;
- `EXACT`: max_s |d − c|, the privacy loss itself, where c has a closed form;
- `RENYI`: ε at a given δ by Rényi divergence, over all parameters and without draws, in closed form;
- `STRICT` and `CENSORED`: the supremum over all parameters, which comes with its standard;
- `STATISTICS` and `GAUSSIAN`: the price of noisy statistics, which is no record's: it is set beforehand.

The price is the largest over records. A maximum over draws is not a supremum over parameters: for these
models that supremum is infinite, and none of the first three is differential privacy. Nor is the fourth: it
speaks of the table at hand, with its weights held fixed.

    >>> bound_named("oscillation").name
    'oscillation'

To add a bound, subclass `Bound`, say how it prices a record, list it in `LOCAL`, and write its sentence in
`privacy.claims` and what it never covers in `privacy.claims.caveats`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from hedgerow.arrays import PerRecord
from hedgerow.errors import SettingError, format_value
from hedgerow.models.base import Health
from hedgerow.numerics.renyi import Neighbours
from hedgerow.numerics.scoring import Extremes
from hedgerow.privacy.claims.caveats import ALWAYS, write_caveat

CONFIDENCE = 0.95
DELTA = 1e-6  # of the Rényi price over all copies, unless said otherwise


class Priced(Protocol):
    """What a fit offers to be priced, by record; confidential."""

    @property
    def sensitivity(self) -> PerRecord:
        """max_s |d|."""

    @property
    def extremes(self) -> Extremes:
        """The smallest and the largest d over the draws."""

    @property
    def constant(self) -> PerRecord | None:
        """c_i of the exact loss, where it has a closed form."""

    @property
    def neighbours(self) -> Neighbours | None:
        """The posterior beside that of each record's neighbour, where both have a closed form."""

    @property
    def delta(self) -> float:
        """The δ of the Rényi price."""

    @property
    def supremum(self) -> PerRecord | None:
        """The loss over all parameters, where the model bounds it."""


@dataclass(frozen=True)
class Statement:
    """How far draws carry: δ is the share of the posterior they leave open, at this confidence.

    A bound that rests on no draws has δ = 0 and confidence 1.
    """

    draws: int
    delta: float
    confidence: float
    independent: bool


@dataclass(frozen=True)
class Shares:
    """ε and δ, each for one copy and for all together; None for one where copies do not simply add up."""

    epsilon: tuple[float | None, float]
    delta: tuple[float | None, float] | None


class Bound(ABC):
    """How the privacy loss about a record is bounded. Stateless: one object per bound."""

    name: ClassVar[str]
    brief: ClassVar[str]  # what an ε under this bound says, in one line
    local: ClassVar[bool] = True  # of the table at hand, met by scaling its weights; False: of every table
    over_draws: ClassVar[bool] = True  # False: over all parameters, with nothing left to chance
    priced_for: ClassVar[str] = "per copy"  # what a target is compared with
    growth: ClassVar[float] = 1.0  # a price grows about like this power of the weights' scale
    sharper: ClassVar[bool] = True  # weights that move with every record were seen to exceed it
    takes_delta: ClassVar[bool] = False  # δ is asked for, beside ε, over all copies
    proven: ClassVar[str]  # what of the claim is mathematics
    estimated: ClassVar[str]  # what of it rests on draws

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What a claim under this bound never covers."""
        return tuple(map(write_caveat, ALWAYS[self.name]))

    def has(self, priced: Priced) -> bool:
        """Whether this fit can be priced under this bound."""
        return True

    @abstractmethod
    def by_record(self, priced: Priced) -> PerRecord:
        """The price of one copy, for each record."""

    def epsilon(self, priced: Priced) -> float:
        """The price of one copy: the largest over records."""
        return float(self.by_record(priced).max())

    def total(self, priced: Priced, copies: int) -> float:
        """The price of all copies together."""
        return copies * self.epsilon(priced)

    def certified(self, priced: Priced, copies: int, pilot: Callable[[], Extremes]) -> float:
        """The number that `target` is compared with, and which the statement holds for; at least `epsilon`.

        `pilot` gives the extremes of d over draws of an independent fit at the same powers.
        """
        return self.epsilon(priced)

    def centre(self, priced: Priced, pilot: Callable[[], Extremes]) -> PerRecord:
        """k_i in max_i |d_i − k_i|, the one number per draw that a statement over draws rests on."""
        return np.zeros_like(priced.sensitivity)

    def target(self, epsilon: float, copies: int) -> float:
        """What `certified` may be at most for copies that cost ε together: the share of one of them."""
        return per_copy(epsilon, copies)

    def shares(self, epsilon: float, copies: int, *, stated: float, asked: float) -> Shares:
        """ε and δ of a claim, in numbers, from the δ that draws support and the one that was asked for."""
        return Shares((epsilon / copies, epsilon), (stated, copies * stated) if self.over_draws else None)

    def statement(self, draws: int, health: Health, *, tries: int = 1) -> Statement:
        """What S independent draws support: δ = 1 − error^{1/S} with an error of 0.05/tries.

        `tries` is the number of certifications the plan allows, fixed in advance: each may err with
        probability 0.05/tries, so that all together err with at most 0.05 and δ says nothing about the data.
        For a Markov chain S is the ESS that the health gate demands of every fit and of the maxima that are
        priced, not the one measured: that is at least as large, but δ is published and must not depend on the
        confidential data.
        """
        error = (1 - CONFIDENCE) / tries
        effective = min(float(draws), health.stated_draws)
        delta = float(-np.expm1(np.log(error) / effective))
        return Statement(int(effective), delta, CONFIDENCE, health.stated_independent)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(self.name)


class _OverDraws(Bound):
    """Bounds that speak of the posterior's draws on both sides of a set of parameters."""

    estimated = "How much of the fitted posterior the set holds, with the stated confidence."


class Lipschitz(_OverDraws):
    """2 max_s |d|: the paper's ε."""

    name = "lipschitz"
    brief = "draw-based and local, 2Δ, weights held fixed"
    proven = "If |d| ≤ ε/2 on a set, the two posteriors restricted to it differ by at most e^ε."
    sharper = False

    def by_record(self, priced: Priced) -> PerRecord:
        return 2 * priced.sensitivity

    def epsilon(self, priced: Priced) -> float:
        return 2 * float(priced.sensitivity.max())  # the same number without one for each record


class Oscillation(_OverDraws):
    """max_s d − min_s d: never above the Lipschitz price, and free of the outcome's units."""

    name = "oscillation"
    brief = "draw-based and local, oscillation, weights held fixed"
    proven = "If |d − k| ≤ ε/2 on a set, for centres k fixed beforehand, the same follows as for lipschitz."

    def by_record(self, priced: Priced) -> PerRecord:
        return priced.extremes.oscillation

    def certified(self, priced: Priced, copies: int, pilot: Callable[[], Extremes]) -> float:
        # max − min is two numbers per draw; about centres fixed beforehand it is one, and can be certified.
        return float(2 * distance(priced.extremes, self.centre(priced, pilot)).max())

    def centre(self, priced: Priced, pilot: Callable[[], Extremes]) -> PerRecord:
        seen = pilot()
        return (seen.low + seen.high) / 2


class Exact(Bound):
    """max_s |d − c|: the privacy loss itself, for neighbours in closed form."""

    name = "exact"
    brief = "draw-based and local, exact loss, weights held fixed"
    proven = "The log ratio of the two posterior densities is known in closed form at every parameter."
    estimated = "How often a draw exceeds ε, with the stated confidence."

    def has(self, priced: Priced) -> bool:
        return priced.constant is not None

    def by_record(self, priced: Priced) -> PerRecord:
        if priced.constant is None:
            raise SettingError("This neighbour has no closed form, so there is no exact price.")
        return distance(priced.extremes, priced.constant)


class Renyi(Bound):
    """ε at a given δ, over all parameters and in both directions, by Rényi divergence in closed form.

    Formal guarantee: with weights, their scale, the shares taken as public and the ranges held fixed, the
    copies together satisfy P(S) ≤ e^ε P'(S) + δ and P'(S) ≤ e^ε P(S) + δ for every event S, between the table
    at hand and the one in which any one record is its neighbour.
    """

    name = "renyi"
    brief = "local, ε at a given δ over all parameters, weights held fixed"
    over_draws = False
    takes_delta = True
    priced_for = "over all copies"
    growth = 0.5
    proven = (
        "The Rényi divergence between the two posteriors is known in closed form at every order, in both "
        "directions and over all parameters; independent draws add theirs, and an order makes ε and δ of it."
    )
    estimated = "Nothing."

    def has(self, priced: Priced) -> bool:
        return priced.neighbours is not None

    def by_record(self, priced: Priced) -> PerRecord:
        return self.neighbours(priced).by_record(delta=priced.delta)

    def epsilon(self, priced: Priced) -> float:
        return self.total(priced, 1)

    def total(self, priced: Priced, copies: int) -> float:
        return self.neighbours(priced).epsilon(delta=priced.delta, copies=copies)

    def certified(self, priced: Priced, copies: int, pilot: Callable[[], Extremes]) -> float:
        return self.total(priced, copies)

    def target(self, epsilon: float, copies: int) -> float:
        """All of it: copies cost less together than one by one, so that they are priced together."""
        return epsilon

    def statement(self, draws: int, health: Health, *, tries: int = 1) -> Statement:
        return Statement(draws, 0.0, 1.0, health.stated_independent)

    def shares(self, epsilon: float, copies: int, *, stated: float, asked: float) -> Shares:
        one = copies == 1
        return Shares((epsilon if one else None, epsilon), (asked if one else None, asked))

    def neighbours(self, priced: Priced) -> Neighbours:
        """The pairs of posteriors that are priced."""
        if priced.neighbours is None:
            raise SettingError("This neighbour has no closed form, so there is no Rényi price.")
        return priced.neighbours


class Supremum(Bound):
    """The largest loss over all parameters: each factor of the posterior is bounded by ε beforehand."""

    local = False
    over_draws = False
    sharper = False

    def has(self, priced: Priced) -> bool:
        return priced.supremum is not None

    def by_record(self, priced: Priced) -> PerRecord:
        if priced.supremum is None:
            raise SettingError(f"This fit has no {self.name} price; that comes with the standard.")
        return priced.supremum

    def statement(self, draws: int, health: Health, *, tries: int = 1) -> Statement:
        return Statement(draws, 0.0, 1.0, health.stated_independent)


class StrictSupremum(Supremum):
    """Over a declared box of parameters, with exact draws."""

    name = "strict"
    brief = "ε-differential privacy over a public box"
    proven = "Every record's factor oscillates by at most ε over the whole box, whatever the data."
    estimated = "Nothing."


class CensoredSupremum(Supremum):
    """Over censored log densities, with the draws of a Markov chain."""

    name = "censored"
    brief = "ε-differential privacy up to sampler error"
    proven = (
        "Every record's factor oscillates by at most ε over all parameters, whatever the data: the posterior "
        "that the sampler aims at has the property. Not that the sampler hits it."
    )
    estimated = "Whether the chain has reached its posterior: by its health checks, which can miss a region."


class NoisyStatistics(Bound):
    """The noise of statistics that are released once: ε is set before a value is read, copies cost nothing.

    Formal guarantee: whatever is computed from the released statistics, any number of copies included, is
    ε-differentially private under the standard's relation, for every table with the same predictors.
    """

    name = "statistics"
    brief = "ε-differential privacy by noisy statistics, for any number of copies"
    local = False
    over_draws = False
    sharper = False
    priced_for = "over all copies"
    proven = (
        "One outcome moves the released sums by a known amount at most, whatever the data, in whole numbers; "
        "noise of a matching scale makes ε of it, and what is computed from noisy sums costs nothing more."
    )
    estimated = "Nothing."

    def has(self, priced: Priced) -> bool:
        return False

    def by_record(self, priced: Priced) -> PerRecord:
        raise SettingError("Noisy statistics have one price for all records and copies: see total_epsilon_.")

    def target(self, epsilon: float, copies: int) -> float:
        return epsilon

    def statement(self, draws: int, health: Health, *, tries: int = 1) -> Statement:
        return Statement(draws, 0.0, 1.0, health.independent)

    def shares(self, epsilon: float, copies: int, *, stated: float, asked: float) -> Shares:
        one = copies == 1
        delta = (asked if one else None, asked) if self.takes_delta else None
        return Shares((epsilon if one else None, epsilon), delta)


class GaussianStatistics(NoisyStatistics):
    """Noisy statistics with Gaussian noise, whose ε comes with a δ."""

    name = "gaussian"
    brief = "(ε, δ)-differential privacy by noisy statistics, for any number of copies"
    takes_delta = True


LIPSCHITZ, OSCILLATION, EXACT, RENYI = Lipschitz(), Oscillation(), Exact(), Renyi()
STRICT, CENSORED = StrictSupremum(), CensoredSupremum()
STATISTICS, GAUSSIAN = NoisyStatistics(), GaussianStatistics()
BY_DRAWS: tuple[Bound, ...] = (LIPSCHITZ, OSCILLATION, EXACT)
LOCAL: tuple[Bound, ...] = (*BY_DRAWS, RENYI)  # those a caller may choose
BOUNDS: tuple[Bound, ...] = (*LOCAL, STRICT, CENSORED, STATISTICS, GAUSSIAN)


def bound_named(given: "str | Bound") -> Bound:
    """The bound that a setting names; those over all parameters come with their standard instead."""
    for bound in LOCAL:
        if given == bound.name or given == bound:
            return bound
    raise SettingError(
        f"bound must be one of {', '.join(bound.name for bound in LOCAL)}, got {format_value(given)}."
    )


def prices(priced: Priced) -> dict[str, float]:
    """ε of one copy under every local bound that this fit has, by the bound's name."""
    return {bound.name: bound.epsilon(priced) for bound in LOCAL if bound.has(priced)}


def per_copy(epsilon: float, copies: int) -> float:
    """epsilon/copies, rounded down so that the copies together never exceed epsilon."""
    target = epsilon / copies
    return target if target * copies <= epsilon else float(np.nextafter(target, 0.0))


def distance(extremes: Extremes, centre: PerRecord) -> PerRecord:
    """max_s |d − centre|, by record."""
    return np.maximum(np.abs(extremes.low - centre), np.abs(extremes.high - centre))
