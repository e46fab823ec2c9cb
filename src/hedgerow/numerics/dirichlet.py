"""Rényi divergence of Dirichlet posteriors, and of chains that mix closed forms (docs/maths.md, "Cells").

One posterior of a cell's shares has a record's class at b + w, its neighbour at b; all classes of the cell
add up to B + w and B. Both are Dirichlet, of one exponential family, so that with
g(t) = ln Γ(b + t) − ln Γ(b) − ln Γ(B + t) + ln Γ(B)

    (o − 1) D_o = g(ow) − o g(w) with the record against without it, g(−(o − 1)w) + (o − 1) g(w) in reverse,

the latter infinite from o = 1 + b/w on.

    >>> one = np.ones(1)
    >>> alone, among = (DirichletNeighbours(one, b * one, 100 * one) for b in (1.0, 40.0))
    >>> bool(alone.epsilon(delta=1e-6) > 5 * among.epsilon(delta=1e-6))
    True

Formal guarantee: as in `renyi`, whose search over orders is used.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln

from hedgerow.arrays import Array, PerRecord
from hedgerow.numerics.renyi import ORDERS, Neighbours, Orders, conversion

_FAR = 20.0  # from where on Stirling's series has all digits
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def log_gamma_step(start: Array, step: Array) -> Array:
    """ln Γ(start + step) − ln Γ(start), digits kept where both are large; infinite where one is no gamma."""
    end = start + step
    near = np.minimum(start, end) < _FAR
    with np.errstate(all="ignore"):
        low, high = np.maximum(start, _FAR), np.maximum(end, _FAR)
        far = (start - 0.5) * np.log1p(step / start) + step * (np.log(high) - 1)
        far += _stirling(high) - _stirling(low)
        found = np.where(near, gammaln(end) - gammaln(start), far)
    return np.where((start > 0) & (end > 0), found, np.inf)


def _stirling(x: Array) -> Array:
    inverse = 1 / x
    square, found = inverse**2, np.zeros_like(x)
    for term in reversed(_STIRLING):
        found = found * square + term
    return found * inverse


class ByOrder(Neighbours, ABC):
    """Pairs of posteriors that are known by their divergences at an order, for all records at once."""

    def _least(self, delta: float, copies: int) -> tuple[Array, Array, Array]:
        """By bisection, all records and both directions at once: ε falls and then rises."""
        added, last = conversion(ORDERS, delta), len(ORDERS) - 1

        def price(places: Any) -> Array:
            return copies * np.stack(self._divergences(*ORDERS[places])) + added[places]

        low, high = np.zeros((2, self._count()), np.int64), np.full((2, self._count()), last)
        while (low < high).any():
            middle = (low + high) // 2
            falls = (low < high) & (price(middle) > price(np.minimum(middle + 1, last)))
            low, high = np.where(falls, middle + 1, low), np.where(falls, high, middle)
        forward, backward = low.astype(float)
        return np.maximum(price(low).max(axis=0), 0.0), forward, backward

    @abstractmethod
    def _count(self) -> int:
        """How many records there are."""


class DirichletNeighbours(ByOrder):
    """For each record its neighbour's posterior of its cell: its own class, all classes, and what it adds."""

    def __init__(self, share: PerRecord, own: PerRecord, whole: PerRecord) -> None:
        for name, value in (("share", share), ("own", own), ("whole", whole)):
            object.__setattr__(self, name, value)

    own: PerRecord  # b
    whole: PerRecord  # B

    def _divergences(self, forward: Orders, backward: Orders) -> tuple[PerRecord, PerRecord]:
        w, b, whole = self.share, self.own, self.whole

        def step(t: Array) -> Array:
            return log_gamma_step(b, t) - log_gamma_step(whole, t)

        with np.errstate(invalid="ignore"):
            single = step(w)
            ahead = (step(forward * w) - forward * single) / (forward - 1)
            more = backward - 1
            back = np.where(b > more * w, step(-more * w) / more + single, np.inf)
        valid = (w >= 0) & (b > 0)
        ahead, back = (np.where(valid, np.maximum(each, 0.0), np.inf) for each in (ahead, back))
        return ahead, back

    def _least(self, delta: float, copies: int) -> tuple[Array, Array, Array]:
        """Computed once for each different row: there are few, where weights follow class and cell."""
        rows = np.column_stack([self.share, self.own, self.whole])
        kinds, place = np.unique(rows, axis=0, return_inverse=True)
        epsilon, forward, backward = ByOrder._least(DirichletNeighbours(*kinds.T), delta, copies)
        return epsilon[place.ravel()], forward[place.ravel()], backward[place.ravel()]

    def of(self, records: Any) -> "DirichletNeighbours":
        rows = np.atleast_1d(records)
        return DirichletNeighbours(self.share[rows], self.own[rows], self.whole[rows])

    def _count(self) -> int:
        return len(self.share)


class SummedNeighbours(ByOrder):
    """Neighbours of a chain whose links have different closed forms: divergences add, order by order."""

    def __init__(self, parts: Sequence[Neighbours]) -> None:
        object.__setattr__(self, "parts", tuple(parts))

    parts: tuple[Neighbours, ...]

    def _divergences(self, forward: Orders, backward: Orders) -> tuple[PerRecord, PerRecord]:
        found = [part._divergences(forward, backward) for part in self.parts]
        return sum(ahead for ahead, _ in found), sum(back for _, back in found)  # type: ignore[return-value]  # arrays

    def of(self, records: Any) -> "SummedNeighbours":
        return SummedNeighbours([part.of(records) for part in self.parts])

    def _count(self) -> int:
        return len(self.parts[0].share)


def join_neighbours(links: Sequence[Neighbours]) -> Neighbours:
    """Neighbours of a chain from those of its links; links of one kind share a kernel."""
    plain = [link for link in links if type(link) is Neighbours]
    if len(plain) == len(links):
        return Neighbours.join(links)
    others = [link for link in links if type(link) is not Neighbours]
    return SummedNeighbours([*([Neighbours.join(plain)] if plain else []), *others])
