"""Some records with the fit of all: what the owner is shown of a table that nobody holds. Confidential.

Whatever `Results` and the report compute of a fit in memory they compute of a view: its table, design, risks
and weights are those of its rows, its draws and their posterior those of the whole. What is an extreme or a
count over all records was found by leaves, and is asked of the fit.
"""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, PerRecord
from hedgerow.errors import SettingError
from hedgerow.evidence.gauge import Gauge, describe_stop, measure
from hedgerow.fitted import Fitted, NoisedChain, NoisedColumn
from hedgerow.fitted.finished import Finished
from hedgerow.mechanism.noisy.chain import streamed as chained
from hedgerow.mechanism.noisy.chain.draws import ChainCopying
from hedgerow.mechanism.noisy.chain.streamed import StreamedChain
from hedgerow.mechanism.noisy.copies import Copying
from hedgerow.mechanism.noisy.leaves import streamed as noisy
from hedgerow.mechanism.noisy.posterior import PosteriorDraws
from hedgerow.mechanism.streamed.copies import predict_leaf
from hedgerow.mechanism.streamed.fit import StreamedFit
from hedgerow.numerics.leaves import add_in_order
from hedgerow.numerics.renyi import COARSE_ORDERS
from hedgerow.privacy.bounds import Bound
from hedgerow.privacy.guarantee import Release
from hedgerow.release.streamed.copies import Predict, WrittenCopies

_NO_REPLAY = (
    "intervals: the copies were written block by block and are not in memory. Read them back: hr.combine, or "
    "hedgerow.receive."
)
_LOUD = 0.05  # leverage or pull from which a record is looked at more closely
_DEAREST, _RISKIEST = 200, 50


@dataclass(frozen=True, repr=False, kw_only=True)
class View(Finished):
    """Some rows of a fitted table; what copies have in them is there once they were written."""

    every: int  # records there are
    rows: NDArray[np.intp]
    written: WrittenCopies = field(default_factory=WrittenCopies)

    @property
    def records(self) -> int:
        return self.every

    @property
    def numbers(self) -> NDArray[np.intp]:
        return self.rows

    @cached_property
    def release(self) -> Release:
        rows = self.written.broken
        checks = self.table.like({name: [row[name] for row in rows] for name in rows[0]}) if rows else None
        return Release(list(self.written.tables), self.guarantee, checks, _NO_REPLAY)

    @cached_property
    def moved(self) -> dict[str, int]:
        return {name: count for name, count in self.written.moved.items() if count}

    @abstractmethod
    def predictor(self, copy: int) -> Predict:
        """How a copy is predicted, leaf by leaf; picklable and small."""


@dataclass(frozen=True, repr=False, kw_only=True)
class WeightedView(View, Fitted):
    """A streamed fit with weights, seen on some of its records as `fitted.Fitted` is on all."""

    whole: StreamedFit
    mean: float  # of the weights
    standing_out: "WeightedView | None" = None

    def predictor(self, copy: int) -> Predict:
        return partial(predict_leaf, self.whole, copy=copy)

    @property
    def extreme(self) -> Fitted:
        return self.standing_out or self

    @property
    def epsilon(self) -> float:
        return self.whole.epsilon

    @property
    def total_epsilon(self) -> float:
        return self.whole.total_epsilon

    def epsilon_by(self, bound: Bound, *, withheld: bool = False) -> float | None:
        account = self.whole.account
        return (account.withheld if withheld else account.own).epsilon if self.knows(bound) else None

    def knows(self, bound: Bound) -> bool:
        return bound == self.settings.bound  # under others the dearest records need not be those at hand

    def withheld_total(self) -> float:
        return self.whole.account.withheld.total

    def divergences(self, orders: Array, *, withheld: bool) -> Array | None:
        if orders is not COARSE_ORDERS:
            raise SettingError("Block by block, divergences are known at COARSE_ORDERS alone.")
        account = self.whole.account
        return (account.withheld if withheld else account.own).curve

    @property
    def left(self) -> float:
        return add_in_order(self.whole.priced.powers)

    @property
    def mean_alpha(self) -> float:
        return self.mean

    @property
    def flagged(self) -> int:
        return int(self.extreme.untrusted.sum())

    @property
    def leverage(self) -> PerRecord:
        fit = self.extreme.start.fit
        return np.zeros(1) if fit is None or fit.influence is None else fit.influence().leverage

    @cached_property
    def gauge(self) -> Gauge:
        times = self.every / len(self.rows)
        power = times * self.outcome.fit.power  # so that a few rows tell as much as all
        outcome = replace(self.outcome, fit=replace(self.outcome.fit, power=power))
        worth = self.whole.priced.merged.worth
        return measure(self.settings, self.start, outcome, key=self.key.child("gauge"), worth=worth)

    def describe_stop(self) -> str:
        return describe_stop(self.settings, self.gauge, None)


@dataclass(frozen=True, repr=False, kw_only=True)
class NoisedView(View, NoisedColumn):
    """Streamed noisy statistics of one column, seen on some of the records."""

    whole: noisy.StreamedStatistics

    def predictor(self, copy: int) -> Predict:
        return partial(noisy.predict_leaf, self.plans[copy])

    @cached_property
    def plans(self) -> list[Copying]:
        """How each copy is made."""
        return self.whole.plan_copies()

    @property
    def drawn(self) -> PosteriorDraws:
        return self.whole.drawn

    @property
    def clipped_shares(self) -> dict[str, float]:
        return {self.settings.column.outcome: self.whole.clipped}


@dataclass(frozen=True, repr=False, kw_only=True)
class NoisedChainView(View, NoisedChain):
    """Streamed noisy statistics of several columns, seen on some of the records."""

    whole: StreamedChain

    def predictor(self, copy: int) -> Predict:
        return partial(chained.predict_leaf, self.settings, self.plans[copy])

    @cached_property
    def plans(self) -> list[ChainCopying]:
        """How each copy is made."""
        return self.whole.plan_copies()

    @property
    def drawn(self) -> tuple[PosteriorDraws, ...]:
        return self.whole.drawn

    @property
    def clipped_amounts(self) -> tuple[tuple[int, int], ...]:
        return self.whole.clipped


def rows_standing_out(fit: StreamedFit) -> NDArray[np.intp]:
    """The dearest and riskiest records, and those that decide much of their own fit."""
    account = fit.account
    loud = account.loudest.rows[account.loudest.values > _LOUD]
    return np.unique(
        np.concatenate([account.dearest.rows[:_DEAREST], account.riskiest.rows[:_RISKIEST], loud])
    )
