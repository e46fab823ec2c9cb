"""Rényi divergence where several records are withheld together (docs/maths.md, "Units").

For each unit one posterior has the likelihoods of all its records at power u + w, its neighbour at power u.
Both are normal-inverse-gamma. In coordinates in which the neighbour's precision is the identity the records
of a unit add along orthogonal directions, of size μ_j and with squared residuals t_j, so that with s times
what they add the log normaliser is, up to a term linear in s,

    B(s) = ln Γ(a + sw/2) − ln Γ(a) − (a + sw/2) ln(1 + s Σ t_j/(1 + sμ_j)/(2b)) − ½ Σ ln(1 + sμ_j),

and (o − 1) D_o = B(o) − o B(1) with the unit against without it, B(1 − o) + (o − 1) B(1) in reverse, infinite
where 1 − o is no multiple that leaves a posterior. One record is the case of a single direction.

    >>> from hedgerow.numerics.renyi import Neighbours
    >>> one = np.ones(1)
    >>> alone = BlockNeighbours(one, one[None] * 0.01, one[None], 50 * one, 50 * one, np.zeros(1, np.int64))
    >>> pair = Neighbours(share=one, spread=0.01 * one, squared=one, shape=50 * one, rate=50 * one)
    >>> bool(np.isclose(alone.epsilon(delta=1e-6), pair.epsilon(delta=1e-6), rtol=1e-6))
    True

Formal guarantee: as in `renyi`, for neighbours that lack all records of one unit.
"""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, PerRecord
from hedgerow.numerics.dirichlet import ByOrder, log_gamma_step
from hedgerow.numerics.renyi import Orders

Codes = NDArray[np.int64]


class OfUnits(ByOrder):
    """Pairs of posteriors by unit, told by record: those of a unit have the same."""

    share: PerRecord  # w of the record's unit
    unit: Codes  # of each record

    @abstractmethod
    def by_unit(self, forward: Array, backward: Array) -> tuple[Array, Array]:
        """D_o in both directions, by unit, each at its own orders."""

    def _divergences(self, forward: Orders, backward: Orders) -> tuple[PerRecord, PerRecord]:
        orders = np.full((2, int(self.unit.max(initial=-1)) + 1), 2.0)
        orders[0, self.unit], orders[1, self.unit] = forward, backward  # the same for all records of a unit
        ahead, back = self.by_unit(*orders)
        return ahead[self.unit], back[self.unit]

    def _count(self) -> int:
        return len(self.unit)


class BlockNeighbours(OfUnits):
    """For each unit its neighbour's posterior, and what the unit's records add to it."""

    added: Array  # w, by unit
    sizes: Array  # μ, by unit and direction
    squared: Array  # t, likewise
    shape: Array  # a of the neighbour, by unit
    rate: Array  # b

    def __init__(
        self, added: Array, sizes: Array, squared: Array, shape: Array, rate: Array, unit: Codes
    ) -> None:
        names = ("added", "sizes", "squared", "shape", "rate", "unit", "share")
        for name, value in zip(names, (added, sizes, squared, shape, rate, unit, added[unit]), strict=True):
            object.__setattr__(self, name, value)

    def by_unit(self, forward: Array, backward: Array) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            single = self._normaliser(np.ones(len(self.added)))
            ahead = (self._normaliser(forward) - forward * single) / (forward - 1)
            back = self._normaliser(1 - backward) / (backward - 1) + single
        ahead, back = (np.where(np.isnan(each), np.inf, np.maximum(each, 0.0)) for each in (ahead, back))
        nothing = self.added == 0
        return np.where(nothing, 0.0, ahead), np.where(nothing, 0.0, back)

    def _normaliser(self, times: Array) -> Array:
        """B(s), s by unit; infinite where it is no posterior's."""
        grown = times[:, None] * self.sizes
        left = 1 + grown
        inside = times * (self.squared / left).sum(axis=1) / (2 * self.rate)
        half = times * self.added / 2
        found = (
            log_gamma_step(self.shape, half)
            - (self.shape + half) * np.log1p(inside)
            - np.log1p(grown).sum(axis=1) / 2
        )
        exists = (left > 0).all(axis=1) & (inside > -1) & (self.shape + half > 0)
        return np.where(exists, found, np.inf)

    def loss_constant(self) -> Array:
        """ln of the ratio of both normalisers, by unit, without the constants of the density."""
        with np.errstate(all="ignore"):
            return self._normaliser(np.ones(len(self.added))) - self.added / 2 * np.log(self.rate)

    def of(self, records: Any) -> "BlockNeighbours":
        kept, unit = np.unique(self.unit[np.atleast_1d(records)], return_inverse=True)
        return BlockNeighbours(
            self.added[kept], self.sizes[kept], self.squared[kept], self.shape[kept], self.rate[kept], unit
        )


class CellBlockNeighbours(OfUnits):
    """Neighbours that lack a unit, for Dirichlet posteriors: its records may be of several classes and cells.

    Each term is a class of a cell, with the sign +1, or all classes of a cell, with −1, at `base` in the
    neighbour, to which the unit adds `added`.
    """

    sign: Array
    base: Array
    added: Array
    owner: Codes  # the unit of each term

    def __init__(
        self, sign: Array, base: Array, added: Array, owner: Codes, unit: Codes, share: PerRecord
    ) -> None:
        values = {"sign": sign, "base": base, "added": added, "owner": owner, "unit": unit, "share": share}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def by_unit(self, forward: Array, backward: Array) -> tuple[Array, Array]:
        ahead_order, more = forward[self.owner], backward[self.owner] - 1
        with np.errstate(all="ignore"):
            single = log_gamma_step(self.base, self.added)
            ahead = log_gamma_step(self.base, ahead_order * self.added) - ahead_order * single
            ahead = ahead / (ahead_order - 1)
            back = log_gamma_step(self.base, -more * self.added) / more + single
            back = np.where(self.base > more * self.added, back, np.nan)
        return self._sum(ahead), self._sum(back)

    def loss_constant(self) -> Array:
        """ln of the ratio of both normalisers, by unit."""
        return self._sum(log_gamma_step(self.base, self.added), least=-np.inf)

    def _sum(self, terms: Array, least: float = 0.0) -> Array:
        found = np.bincount(self.owner, self.sign * terms, minlength=int(self.unit.max(initial=-1)) + 1)
        return np.where(np.isnan(found), np.inf, np.maximum(found, least))

    def of(self, records: Any) -> "CellBlockNeighbours":
        rows = np.atleast_1d(records)
        kept, unit = np.unique(self.unit[rows], return_inverse=True)
        terms = np.isin(self.owner, kept)
        owner = np.searchsorted(kept, self.owner[terms])
        parts = (self.sign[terms], self.base[terms], self.added[terms])
        return CellBlockNeighbours(*parts, owner, unit, self.share[rows])


def find_directions(rows: Array, residual: Array) -> tuple[Array, Array]:
    """Squared singular values of some units' rows, and squared residuals along them, the rest last."""
    left, values, _ = np.linalg.svd(rows, full_matrices=False)
    along = np.einsum("urk,ur->uk", left, residual) ** 2
    rest = np.maximum((residual**2).sum(axis=1) - along.sum(axis=1), 0.0)
    return np.append(values**2, np.zeros((len(rows), 1)), axis=1), np.append(along, rest[:, None], axis=1)
