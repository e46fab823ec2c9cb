"""The door: a table leaf by leaf, weighted, priced and calibrated, and what is known of it afterwards.

    fit = stream_weighted(settings, leaves, key=key, workers=Here())
    fit.certified, fit.scale

Formal guarantee: the fit is the one that `Synthesizer.fit` makes of the same table in memory, with the same
key: the same draws, scale, prices and statement, so that the same may be said of it.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, Confidential, PerRecord
from hedgerow.mechanism.calibrate import CALIBRATING, expected_fits
from hedgerow.mechanism.copies import choose_draws
from hedgerow.mechanism.price import Price, Pricing
from hedgerow.mechanism.streamed.leaf import Overview
from hedgerow.mechanism.streamed.merged import Asking, Merged
from hedgerow.mechanism.streamed.planned import plan_streamed
from hedgerow.mechanism.streamed.run import OnLeaf, PricedFit, Requests, Runner
from hedgerow.mechanism.streamed.support import check_streamed
from hedgerow.mechanism.streamed.weigh import begin_streamed, weigh_streamed
from hedgerow.models.base import Health, Parameters
from hedgerow.numerics.renyi import COARSE_ORDERS
from hedgerow.privacy.bounds import Statement
from hedgerow.privacy.claims.neighbours import WITHHELD
from hedgerow.privacy.settings import Settings
from hedgerow.progress import job, phase
from hedgerow.randomness import Key
from hedgerow.tables.leaves import Leaves
from hedgerow.threads import Workers, one_blas_thread

TOP = 1000  # records that are singled out


@dataclass(frozen=True, repr=False)
class Charge(Confidential):
    """What a neighbour costs, over all records."""

    epsilon: float  # of one copy, under the chosen bound
    total: float  # of all copies
    curve: Array | None  # copies·D_o at COARSE_ORDERS, where Rényi divergences are known

    def join(self, other: "Charge") -> "Charge":
        """That of the records of both."""
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
        """Those of a leaf that begins with this record."""
        rows = np.argsort(-values, kind="stable")[:TOP]
        return cls(rows + first, values[rows])

    def join(self, other: "Top") -> "Top":
        """Those of the records of both."""
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
        """That of the records of both."""
        return Account(
            self.own.join(other.own), self.withheld.join(other.withheld),
            self.riskiest.join(other.riskiest), self.dearest.join(other.dearest),
            self.loudest.join(other.loudest),
        )  # fmt: skip


@dataclass(frozen=True, repr=False)
class StreamedFit(Confidential):
    """The fit that is released; nothing in it grows with the number of records."""

    overview: Overview
    key: Key
    records: int
    plain: Merged  # the unweighted posterior
    priced: PricedFit
    account: Account

    @property
    def settings(self) -> Settings:
        """What was asked for."""
        return self.overview.settings

    @property
    def scale(self) -> float:
        """What the weights were multiplied with to meet the target."""
        return self.priced.scale

    @property
    def certified(self) -> float:
        """What the target is compared with."""
        return self.priced.certified

    @property
    def epsilon(self) -> float:
        """The price of one copy under the chosen bound."""
        return self.account.own.epsilon

    @property
    def total_epsilon(self) -> float:
        """The price of all copies."""
        return self.account.own.total

    @property
    def statement(self) -> Statement:
        """How far draws carry the claim."""
        return self.priced.statement

    @property
    def parameters(self) -> Parameters:
        """The draws of the fit."""
        return self.priced.merged.parameters

    @property
    def health(self) -> Health:
        """Whether these draws can be trusted."""
        return self.priced.merged.health

    @property
    def released(self) -> list[Parameters]:
        """The draws behind the copies, one each."""
        return choose_draws(self.settings, self.parameters, key=self.key.child("release"))


@dataclass(frozen=True, repr=False)
class TakeStock(OnLeaf):
    """Keep the power and the price of each record of a leaf, and say what the leaf costs."""

    def __call__(self, leaves: Leaves, leaf: int) -> tuple[Account, Requests]:
        settings, asked, first = self.overview.settings, Asking(), leaves.rows(leaf).start
        pricing = self.pricing(leaves, leaf, asked)
        prices = settings.bound.by_record(pricing)
        leaves.keep("power", leaf, pricing.fit.power)
        leaves.keep("price", leaf, prices)
        own = withheld = _charge(settings, pricing)
        if settings.standard.neighbour != WITHHELD:
            asked.occasion = 1
            withheld = _charge(settings, pricing.withheld)
        account = Account(
            own, withheld, riskiest=Top.of(leaves.kept("risk", leaf), first), dearest=Top.of(prices, first),
            loudest=Top.of(_loudness(pricing), first),
        )  # fmt: skip
        return account, asked.rows


def _loudness(pricing: Pricing) -> PerRecord:
    """How much each record decides of its own fit."""
    influence = pricing.influence
    if influence is None:
        return np.zeros(pricing.fit.design.records)
    return np.maximum(influence.leverage, influence.pull)


def _charge(settings: Settings, priced: Pricing | Price) -> Charge:
    bound, copies, neighbours = settings.bound, settings.copies, priced.neighbours
    curve = None if neighbours is None else neighbours.curve(COARSE_ORDERS, copies)
    return Charge(bound.epsilon(priced), bound.total(priced, copies), curve)


@one_blas_thread()
def stream_weighted(settings: Settings, leaves: Leaves, *, key: Key, workers: Workers) -> StreamedFit:
    """Fit, weigh, refit, calibrate and price a table that is read leaf by leaf."""
    check_streamed(settings)
    with job(expected_fits(settings)):
        overview, plain = begin_streamed(settings, leaves, workers, key=key)
        runner = Runner(overview, leaves, workers)

        def refit(number: int) -> float:
            return runner.bound(key.child("reweight").child(number))

        def plan(refused: float) -> float:
            return plan_streamed(settings, leaves, workers, refused)

        with phase(CALIBRATING):
            weigh_streamed(settings, leaves, workers, refit=refit, plan=plan)
            priced = runner.finish(key)
            priced, account = take_stock(runner, priced)
    return StreamedFit(overview, key, leaves.records, plain, priced, account)


def take_stock(runner: Runner, priced: PricedFit) -> tuple[PricedFit, Account]:
    """What the released fit costs, with records that were fitted without."""
    task = TakeStock(runner.overview, priced)
    found = list(runner.go(task, "prices"))
    accounts, asked = [account for account, _ in found], [rows for _, rows in found]
    if any(asked):
        priced = runner.answer(priced, asked)
        again = [leaf for leaf, rows in enumerate(asked) if rows]
        task = TakeStock(runner.overview, priced)
        for leaf, (account, _) in zip(again, runner.go(task, "prices", again), strict=True):
            accounts[leaf] = account
    return priced, reduce(Account.join, accounts)
