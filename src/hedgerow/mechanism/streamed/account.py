"""What a fit costs over all records, and which of them stand out: merged from what leaves say."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, Confidential, PerRecord
from hedgerow.mechanism.price import Price, Pricing
from hedgerow.numerics.renyi import COARSE_ORDERS
from hedgerow.privacy.settings import Settings

TOP = 1000  # records that are singled out


@dataclass(frozen=True, repr=False)
class Charge(Confidential):
    """What a neighbour costs, over all records."""

    epsilon: float  # of one copy, under the chosen bound
    total: float  # of all copies
    curve: Array | None  # copies·D_o at COARSE_ORDERS, where Rényi divergences are known

    def join(self, other: "Charge") -> "Charge":
        """The charge for the records of both."""
        pairs = (self.epsilon, other.epsilon), (self.total, other.total)
        epsilon, total = (float(np.maximum(*pair)) for pair in pairs)
        curve = None
        if self.curve is not None and other.curve is not None:
            curve = np.maximum(self.curve, other.curve)
        return Charge(epsilon, total, curve)


@dataclass(frozen=True, repr=False)
class Top(Confidential):
    """Records of the largest values of something: their places in the table, the largest first."""

    rows: NDArray[np.int64]
    values: Array

    @classmethod
    def of(cls, values: Array, first: int) -> "Top":
        """The largest values of a leaf whose first record has this number."""
        rows = np.argsort(-values, kind="stable")[:TOP]
        return cls(rows + first, values[rows])

    def join(self, other: "Top") -> "Top":
        """The largest values of both."""
        values = np.concatenate([self.values, other.values])
        order = np.argsort(-values, kind="stable")[:TOP]
        return Top(np.concatenate([self.rows, other.rows])[order], values[order])


@dataclass(frozen=True, repr=False)
class Account(Confidential):
    """What the released fit costs, and which records stand out."""

    own: Charge  # under the standard's neighbour
    withheld: Charge  # with the outcome withheld altogether
    riskiest: Top
    dearest: Top
    loudest: Top  # by leverage or pull, whichever is larger

    def join(self, other: "Account") -> "Account":
        """The account of the records of both."""
        return Account(
            self.own.join(other.own), self.withheld.join(other.withheld),
            self.riskiest.join(other.riskiest), self.dearest.join(other.dearest),
            self.loudest.join(other.loudest),
        )  # fmt: skip


def loudness(pricing: Pricing) -> PerRecord:
    """How much each record decides of its own fit."""
    influence = pricing.influence
    if influence is None:
        return np.zeros(pricing.fit.design.records)
    return np.maximum(influence.leverage, influence.pull)


def charge(settings: Settings, priced: Pricing | Price) -> Charge:
    """What a fit costs the records of a leaf."""
    bound, copies, neighbours = settings.bound, settings.copies, priced.neighbours
    curve = None if neighbours is None else neighbours.curve(COARSE_ORDERS, copies)
    return Charge(bound.epsilon(priced), bound.total(priced, copies), curve)
