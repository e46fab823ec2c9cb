"""Rényi divergence between two posteriors of an exact model, in closed form (docs/maths.md, "Rényi price").

For each record i one posterior has the record's likelihood at power u + w, its neighbour at power u. Both
are normal-inverse-gamma, of one exponential family, so that their divergence D_o is known at every order
o > 1, in both directions, over all parameters: no draws. From some order on it is infinite in one direction.

Copies from independent draws add their divergences, and D_o becomes a statement with ε and δ (Canonne,
Kamath, Steinke 2020, proposition 12): ε = copies·D_o + log((o−1)/o) − (log δ + log o)/(o−1), at any order,
and so at the best.

    >>> one = np.ones(1)
    >>> pair = Neighbours(share=one, spread=0.01 * one, squared=one, shape=50 * one, rate=50 * one)
    >>> bool(pair.epsilon(delta=1e-6) < pair.epsilon(delta=1e-6, copies=4) < 4 * pair.epsilon(delta=1e-6))
    True

Formal guarantees
-----------------
Each ε is at least the one that some order gives, up to rounding, for which 1e-8 of it is added. As o grows,
ε falls and then rises: its derivative has the sign of copies·(o−1)²D_o' + log δ + log o, and (o−1)²D_o' grows
with o because (o−1)D_o is convex. A bisection therefore finds the smallest ε on the grid of orders.
"""

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from hedgerow.arrays import Array, Confidential, Mask, PerLink, PerRecord
from hedgerow.numerics.leaves import leaves_of

ORDERS: Array = 1 + np.geomspace(0.05, 3000, 300)
COARSE_ORDERS: Array = 1 + np.geomspace(0.05, 3000, 40)  # of curves that are kept to be composed
Orders = float | Array  # one for all records, or one for each
_APART = 8
_ROUNDED_UP = 1 + 1e-8  # more than arithmetic loses, up to 10⁸ records


def conversion(orders: Array, delta: float) -> Array:
    """What is added to a divergence of each order to make an ε of it, at this δ."""
    return np.asarray(np.log1p(-1 / orders) - (np.log(delta) + np.log(orders)) / (orders - 1))


def least_epsilon(divergences: Array, orders: Array, delta: float) -> float:
    """ε at the best of a few orders."""
    return max(0.0, float((divergences + conversion(orders, delta)).min())) * _ROUNDED_UP


@dataclass(frozen=True, eq=False, repr=False)
class Neighbours(Confidential):
    """For each record its neighbour's posterior, where the record speaks, and the power that it adds.

    Of a chain of models each array has a column for each link: their posteriors are independent, so that
    divergences add, order by order.
    """

    share: PerLink  # w, the power by which the two posteriors differ
    spread: PerLink  # h = z'Λ⁻¹z in the neighbour
    squared: PerLink  # r², the squared residual from the neighbour's mean
    shape: PerLink  # a of the neighbour
    rate: PerLink  # b of the neighbour

    @classmethod
    def join(cls, links: Sequence["Neighbours"]) -> "Neighbours":
        """Neighbours of a chain from those of its links."""
        return cls(
            *(np.column_stack(part) for part in zip(*(link._columns() for link in links), strict=True))
        )

    def divergences(self, order: float) -> tuple[PerRecord, PerRecord]:
        """D_o of the posterior with the record from its neighbour, and in reverse; by record."""
        return self._divergences(order, order)

    def by_record(self, *, delta: float, copies: int = 1) -> PerRecord:
        """ε of so many copies at a total of δ, by record: the larger of both directions."""
        return self._least(delta, copies)[0] * _ROUNDED_UP

    def curve(self, orders: Array, copies: int) -> Array:
        """copies·D_o at each of rising orders, the larger of both directions and the largest of all records.

        At every eighth order all records are computed. Between two of those the chord of (o−1)D_o, which is
        convex, bounds each record from above, and only those that can decide are computed.
        """
        return np.asarray(np.max([part._curve(orders, copies) for part in self._leaves()], axis=0))

    def _curve(self, orders: Array, copies: int) -> Array:
        largest, left = np.empty(len(orders)), 0
        below = self._larger(orders[0])
        largest[0] = below.max()
        for right in [*range(_APART, len(orders) - 1, _APART), len(orders) - 1]:
            above = self._larger(orders[right])
            largest[right] = above.max()
            ends = (orders[left] - 1) * below, (orders[right] - 1) * above
            for place in range(left + 1, right):
                way = (orders[place] - orders[left]) / (orders[right] - orders[left])
                chord = ((1 - way) * ends[0] + way * ends[1]) / (orders[place] - 1)
                best = self.of(np.argmax(chord))._larger(orders[place])[0]
                rivals = self.of(np.flatnonzero(chord > best))
                largest[place] = rivals._larger(orders[place]).max(initial=best)
            left, below = right, above
        return copies * _ROUNDED_UP * largest

    def epsilon(self, *, delta: float, copies: int = 1) -> float:
        """The largest of `by_record`, without computing most of them.

        Any order bounds a record's ε from above. At the best orders of one costly record nearly all others
        stay below its ε, and cannot decide.
        """
        return float(np.max([part._epsilon(delta, copies) for part in self._leaves()]))

    def _epsilon(self, delta: float, copies: int) -> float:
        middle = ORDERS[len(ORDERS) // 2]
        leader = np.argmax(np.maximum(*self._divergences(middle, middle)))
        best, *places = (float(found[0]) for found in self.of(leader)._least(delta, copies))
        if np.isfinite(best):
            orders = [float(ORDERS[int(place)]) for place in places]
            added = conversion(np.array(orders), delta)
            forward, backward = self._divergences(*orders)
            above = np.maximum(copies * forward + added[0], copies * backward + added[1]) > best
            rivals = np.flatnonzero(above)
            best = float(self.of(rivals)._least(delta, copies)[0].max(initial=best))
        return best * _ROUNDED_UP

    def perhaps_above(self, epsilon: float, *, delta: float, copies: int = 1) -> Mask:
        """Records that may be priced above ε; the others are not, which a pair of orders shows.

        The orders are those of a record whose price is just below ε, found by halving among records in the
        order of their divergence.
        """
        middle = ORDERS[len(ORDERS) // 2]
        order = np.argsort(np.maximum(*self._divergences(middle, middle)), kind="stable")
        low, high = 0, len(order) - 1
        while low < high:
            half = (low + high) // 2
            if self.of(order[half])._least(delta, copies)[0][0] <= epsilon:
                low = half + 1
            else:
                high = half
        _, *places = (found[0] for found in self.of(order[max(low - 1, 0)])._least(delta, copies))
        orders = [float(ORDERS[int(place)]) for place in places]
        added = conversion(np.array(orders), delta)
        forward, backward = self._divergences(*orders)
        priced = np.maximum(copies * forward + added[0], copies * backward + added[1])
        return np.asarray(~(priced * _ROUNDED_UP <= epsilon))

    def _least(self, delta: float, copies: int) -> tuple[Array, Array, Array]:
        """The least ε over the orders, by record, and the place of its order in either direction."""
        found: tuple[Array, Array, Array] = _kernels().least_epsilon(
            *self._columns(), ORDERS, conversion(ORDERS, delta), copies
        )
        return found

    def _divergences(self, forward: Orders, backward: Orders) -> tuple[PerRecord, PerRecord]:
        orders = np.empty((2, len(self.share)))
        orders[0], orders[1] = forward, backward
        found: tuple[Array, Array] = _kernels().divergences(*self._columns(), orders)
        return found

    def _larger(self, order: float) -> PerRecord:
        return np.maximum(*self.divergences(float(order)))

    def _leaves(self) -> Iterator["Neighbours"]:
        """Neighbours leaf by leaf: an extreme of all records is an extreme over leaves."""
        leaves = leaves_of(self._count())
        if len(leaves) <= 1:
            yield self
        else:
            yield from (self.of(np.arange(rows.start, rows.stop)) for rows in leaves)

    def _count(self) -> int:
        """How many records there are."""
        return len(self.share)

    def of(self, records: Any) -> "Neighbours":
        """The neighbours of some records."""
        return Neighbours(*(column[np.atleast_1d(records)] for column in self._columns()))

    def _columns(self) -> list[Array]:
        """Every array, a row a record and a column a link."""
        columns = (getattr(self, entry.name) for entry in fields(self))
        return [column if column.ndim == 2 else column[:, None] for column in columns]


def _kernels() -> Any:
    return importlib.import_module("hedgerow.numerics.kernels.renyi")  # slow to import
