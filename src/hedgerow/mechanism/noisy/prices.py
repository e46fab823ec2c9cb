"""What a round of noisy sums costs, exactly, and the noise that a price asks for.

docs/maths.md, "Strict by noisy statistics". Whole numbers and fractions only: a price is a bound.

A record with clipped residual r, a whole number of −W … W, adds V_i·r to the scores and r² to the squares; a
blank adds 0 and κ. Rows of V have norms up to `bound`: Σ|V_ij| for Laplace noise, ΣV_ij² for Gaussian noise.

    >>> sums = Sums("laplace", bound=10, steps=8, relation="withheld", reach=16)
    >>> noise = sums.noise_for(Fraction(1, 2), split=Fraction(13, 10))
    >>> bool(Fraction(49, 100) < sums.price(noise) <= Fraction(1, 2))
    True

Formal guarantees
-----------------
`Sums.price` is the largest log ratio of output probabilities over all pairs of neighbouring tables (Laplace
noise: ε), or half the largest squared shift in units of the noise (Gaussian noise: ρ of zero-concentrated
differential privacy, which the discrete Gaussian has as the continuous one does: Canonne, Kamath, Steinke
2020). It is attained where some row of V attains `bound`. Neighbours: "withheld", one outcome is a value in
one table and blank in the other; "replaced", one outcome is any other value or blank; "range", one outcome
moves by at most `reach` steps.

Where outcomes may lie at a spike, one that does adds V_i to the spike's sum (`price_spike`), and to scores
and squares what a blank adds; an amount adds nothing to the spike's sum. Withholding either moves its own
sums alone, so that the price of all is the larger of the two. An amount that is replaced by the spike moves
both: its price is that of the spike's sum and of withholding the amount. `Sums.price` leaves half of a target
for the spike's sum where `spiked` says so: it is then at least twice the price of withholding. Several
spikes, kinds of cells without an amount, cost no more than one: an outcome is at one of them.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Literal

import numpy as np

from hedgerow.numerics.renyi import ORDERS, least_epsilon
from hedgerow.privacy.strict.limits import Relation

Noise = Literal["laplace", "gaussian"]  # what "auto" has become
_GRAIN = 1 << 16  # scales of noise are whole multiples of 1/_GRAIN


@dataclass(frozen=True)
class Scales:
    """The noise of a round in whole steps: Laplace's scale or a Gaussian's standard deviation, and κ."""

    scores: Fraction
    squares: Fraction
    blank: int  # κ


@dataclass(frozen=True)
class Sums:
    """The sums of a round, as far as their price goes: all public."""

    noise: Noise
    bound: int
    steps: int  # W
    relation: Relation
    reach: int  # the farthest that one outcome moves, in steps; 2W unless the relation is "range"
    spiked: bool = False  # whether an outcome may move to a spike, and half of the price is kept for its sum

    def price(self, scales: Scales) -> Fraction:
        """ε (Laplace) or ρ (Gaussian) of one outcome, exactly."""
        if self.relation == "withheld":
            return self._withheld(scales)
        farthest = 2 * self.steps if self.relation == "replaced" else min(self.reach, 2 * self.steps)
        moved = self._moved(scales, farthest)
        beside = 2 if self.spiked else 1
        return max(moved, beside * self._withheld(scales)) if self.relation == "replaced" else moved

    def noise_for(self, target: Fraction, *, split: Fraction) -> Scales:
        """The least noise, in steps of 1/65536, with a price of at most `target`.

        `split` is x = (W/b₂)⁻¹·(C/b₁): how scores and squares share the price, at most 2.
        """
        root = self.bound if self.noise == "laplace" else math.isqrt(self.bound - 1) + 1
        scores, squares = Fraction(root * self.steps), split * self.steps**2
        unit = Scales(scores, squares, self._best_blank(scores, squares))
        price = self.price(unit)  # falls as 1/factor, or 1/factor²
        factor = price / target if self.noise == "laplace" else _root_above(price / target)
        return Scales(_up(scores * factor), _up(squares * factor), unit.blank)

    def _withheld(self, scales: Scales) -> Fraction:
        """Over |r| = 0 … W: the largest shift beside a blank."""
        W, blank = self.steps, scales.blank
        if self.noise == "gaussian":  # convex in r²
            return max(self._shift(r, r * r - blank, scales) for r in (0, W))
        inside = math.isqrt(blank)  # up to here r² ≤ κ and the price is concave, from here on it rises
        best = self.bound * scales.squares / (2 * scales.scores)
        return max(
            self._shift(r, r * r - blank, scales) for r in (*_about(best, min(inside, W)), min(inside, W), W)
        )

    def _moved(self, scales: Scales, farthest: int) -> Fraction:
        """Over distances d up to `farthest`: squares move by d(2W − d) at most, from W to W − d."""
        W = self.steps
        if self.noise == "laplace":  # concave in d
            best = [W + self.bound * scales.squares / (2 * scales.scores)]
        else:  # rises to (3W − √(W² − 2A²/B²))/2, falls, rises again
            inner = W * W - 2 * self.bound * scales.squares**2 / scales.scores**2
            root = math.isqrt(max(math.floor(inner), 0))
            best = [Fraction(3 * W - root - part, 2) for part in (0, 1)] if inner > 0 else []
        places = {farthest}.union(*(_about(place, farthest) for place in best))
        return max(self._shift(d, d * (2 * W - d), scales) for d in places)

    def _shift(self, scores: int, squares: int, scales: Scales) -> Fraction:
        """The price of moving r by `scores` and r² by `squares`."""
        if self.noise == "laplace":
            return scores * self.bound / scales.scores + abs(squares) / scales.squares
        return (scores**2 * self.bound / scales.scores**2 + squares**2 / scales.squares**2) / 2

    def _best_blank(self, scores: Fraction, squares: Fraction) -> int:
        """κ that makes the two dearest values cost the same, rounded; any κ is priced as it is."""
        W = self.steps
        if self.noise == "laplace":
            slope = self.bound * squares / scores  # A/B
            best = W * W if slope >= 2 * W else (W * slope + W * W - slope**2 / 4) / 2
        else:
            best = (W * W + self.bound * squares**2 / scores**2) / 2
        return min(round(best), W * W)


def price_spike(noise: Noise, bound: int, scale: Fraction) -> Fraction:
    """ε or ρ of a sum of V_i over outcomes at a spike, for one that is there in one of two tables."""
    return bound / scale if noise == "laplace" else bound / (2 * scale**2)


def noise_for_spike(noise: Noise, bound: int, target: Fraction) -> Fraction:
    """The least scale, in steps of 1/65536, at which that sum costs at most `target`."""
    price = price_spike(noise, bound, Fraction(1))
    return _up(price / target if noise == "laplace" else _root_above(price / target))


def price_counts(relation: Relation, scale: Fraction) -> Fraction:
    """ε of a table of counts in disjoint bins with Laplace noise: a blank is in none.

    An outcome that moves lowers one count and raises another, and a public range of any width may hold an
    edge of two bins: 2/scale for "range" as for "replaced".
    """
    return (1 if relation == "withheld" else 2) / scale


def noise_for_counts(relation: Relation, target: Fraction) -> Fraction:
    """The scale at which a table of counts costs `target`."""
    return price_counts(relation, Fraction(1)) / target


@cache
def find_rho(epsilon: float, delta: float) -> Fraction:
    """A ρ for which ρ-zCDP implies (ε, δ)-differential privacy: within 1e-6 of the largest, never above."""
    low, high = 0.0, epsilon
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if find_epsilon(middle, delta) <= epsilon else (low, middle)
    return Fraction(low)


def find_epsilon(rho: float, delta: float) -> float:
    """ε of ρ-zCDP at δ, rounded up (Canonne, Kamath, Steinke 2020, proposition 12)."""
    return least_epsilon(np.asarray(rho * ORDERS), ORDERS, delta)


def rounded_up(price: Fraction) -> float:
    """The least float64 that is not below the price."""
    nearest = float(price)
    return nearest if Fraction(nearest) >= price else math.nextafter(nearest, math.inf)


def _about(place: Fraction, last: int) -> Iterable[int]:
    """Whole numbers on either side of a place, within 0 … last."""
    return {min(max(k, 0), last) for k in (math.floor(place), math.floor(place) + 1)}


def _up(scale: Fraction) -> Fraction:
    return Fraction(math.ceil(scale * _GRAIN), _GRAIN)


def _root_above(square: Fraction) -> Fraction:
    """A fraction that is not below the square root, and above it by less than a part in 10⁹."""
    return Fraction(math.isqrt(math.ceil(square * 10**40)) + 1, 10**20)
