"""Steps 5 and 6 over leaves: refit, price, calibrate.

The price of a table is the largest of what its leaves cost, under every bound: `Bound.certified` of a leaf is
an extreme over its records, also where centres come from a pilot fit, and a Rényi price is the largest over
records of the least ε over orders. A fit that may be released is priced and accounted for in one pass:
scoring its draws is most of the work.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, TypeVar, cast

import numpy as np

from hedgerow.arrays import Array, Confidential
from hedgerow.errors import ClusterError, SettingError
from hedgerow.mechanism.calibrate import TRIES, find_scale
from hedgerow.mechanism.price import Pricing
from hedgerow.mechanism.steps import require_price
from hedgerow.mechanism.streamed.account import Account, Top, charge, loudness
from hedgerow.mechanism.streamed.leaf import Overview
from hedgerow.mechanism.streamed.merged import (
    Batch,
    LinkSum,
    Merged,
    RefitRequests,
    Requests,
    Row,
    fit_merged,
    merge_leaves,
    mergeable_links,
    models_of,
    sum_link,
    sum_links,
)
from hedgerow.models.chain import zero_missing
from hedgerow.models.conjugate import Left
from hedgerow.models.scored import Form, Linear
from hedgerow.numerics.scoring import Extremes
from hedgerow.privacy.bounds import Statement
from hedgerow.privacy.claims.neighbours import WITHHELD
from hedgerow.randomness import Key
from hedgerow.tables.leaves import Leaves, go_over
from hedgerow.threads import Workers

Made = TypeVar("Made")
_ROUNDS = 3  # for requests of the standard's neighbours, of those with the outcome withheld, and for none


@dataclass(frozen=True, repr=False)
class PricedFit(Confidential):
    """A weighted fit of all records with its price; small."""

    merged: Merged
    pilot: Merged  # an independent fit at the same powers, for the centres of the oscillation
    scale: float
    form: Form | None  # of what is sensitive; None where that is not linear
    certified: float
    statement: Statement
    powers: tuple[float, ...]  # Σ over the records of each leaf, as they were fitted


@dataclass(frozen=True, repr=False)
class Accounted(Confidential):
    """A fit that may be released, and what it costs."""

    priced: PricedFit
    account: Account

    @property
    def certified(self) -> float:
        """What the target is compared with."""
        return self.priced.certified


@dataclass(frozen=True, repr=False)
class SumLeaf(Confidential):
    """Sum a leaf up at its powers."""

    overview: Overview
    scale: float

    def __call__(self, leaves: Leaves, leaf: int) -> tuple[list[LinkSum], float, Form | None]:
        overview, start = self.overview, self.overview.start(leaves, leaf)
        weighted = overview.weighted(leaves, leaf, start, self.scale)
        power, part = overview.power(weighted), overview.part(weighted)
        sums = sum_links(overview.settings.model, start.design, power, first=leaf == 0)
        return sums, float(power.sum()), part.form if isinstance(part, Linear) else None


@dataclass(frozen=True, repr=False)
class SumWithout(Confidential):
    """Sum a leaf up without some of its records, others for each link."""

    overview: Overview
    scale: float
    rows: dict[Batch, dict[int, list[int]]]  # of each batch, by leaf

    def __call__(self, leaves: Leaves, leaf: int) -> dict[Batch, LinkSum]:
        overview, start = self.overview, self.overview.start(leaves, leaf)
        power = overview.power(overview.weighted(leaves, leaf, start, self.scale))
        sums = {}
        for batch, rows in self.rows.items():
            place, _ = batch
            link, model = start.design.links[place], mergeable_links(overview.settings.model)[place]
            others = zero_missing(link, power).copy()
            others[rows.get(leaf, [])] = 0.0
            sums[batch] = sum_link(model, link, others, first=leaf == 0)
        return sums


@dataclass(frozen=True, repr=False)
class LeaveOut(Confidential):
    """Fit anew without each of the requested records. Their rows go no further than this task."""

    overview: Overview
    scale: float
    requests: Requests
    others: dict[Batch, LinkSum]

    def __call__(self, leaves: Leaves, leaf: int) -> dict[Batch, list[Left]]:
        overview, models = self.overview, cast(Any, models_of(self.overview.settings.model))
        rows: dict[Batch, list[tuple[Array, float, float, float]]] = {batch: [] for batch in self.requests}
        for number in sorted({row[0] for some in self.requests.values() for row in some}):
            start = overview.start(leaves, number)
            power = overview.power(overview.weighted(leaves, number, start, self.scale))
            for batch, requested in self.requests.items():
                place, _ = batch
                link, model = start.design.links[place], models[place]
                for _, row, share in (one for one in requested if one[0] == number):
                    response = model.response(link.values[row : row + 1])[0]
                    rows[batch].append((link.matrix[row].copy(), float(response), float(power[row]), share))
        fits = {}
        for batch, cells in rows.items():
            columns = [np.array(column) for column in zip(*cells, strict=True)]
            others = self.others[batch]
            fits[batch] = models[batch[0]].leave_out(*columns, base=others.said, rest=others.power)
        return fits


@dataclass(frozen=True, repr=False)
class OnLeaf(Confidential):
    """A priced fit on one leaf."""

    overview: Overview
    priced: PricedFit

    def pricing(self, leaves: Leaves, leaf: int, requests: RefitRequests) -> Pricing:
        """What the fit costs the leaf's records."""
        overview, priced = self.overview, self.priced
        start = overview.start(leaves, leaf)
        weighted = overview.weighted(leaves, leaf, start, priced.scale)
        power = overview.power(weighted)
        if not np.isclose(power.sum(), priced.powers[leaf], rtol=1e-9, atol=0.0):
            raise ClusterError(
                "The weights of some records are not those that were fitted: what was kept of them changed "
                "meanwhile, such as by a worker that was taken for lost. Run it again."
            )
        fit = priced.merged.on(overview.settings.model, start.design, power, leaf, requests)
        part = overview.part(weighted, priced.form)
        return Pricing(fit, part, weighted.interval, overview.settings.delta)

    def certified(self, pricing: Pricing) -> float:
        """What the leaf's records are certified at."""
        settings = self.overview.settings
        require_price(settings, pricing)
        return settings.bound.certified(pricing, settings.copies, lambda: self.pilot(pricing))

    def pilot(self, pricing: Pricing) -> Extremes:
        """Extremes of what is priced, over the draws of the pilot."""
        other = replace(pricing.fit, parameters=self.priced.pilot.parameters)
        return other.extremes(pricing.part, pricing.interval)


@dataclass(frozen=True, repr=False)
class PriceLeaf(OnLeaf):
    """What a leaf costs, and the records whose neighbours must be fitted anew before that is known."""

    def __call__(self, leaves: Leaves, leaf: int) -> tuple[float, Requests]:
        requests = RefitRequests()
        return self.certified(self.pricing(leaves, leaf, requests)), requests.rows


@dataclass(frozen=True, repr=False)
class TakeStock(OnLeaf):
    """What `PriceLeaf` does, keeping the power and price of each record, with an account of the leaf."""

    def __call__(self, leaves: Leaves, leaf: int) -> tuple[tuple[float, Account], Requests]:
        settings, requests, first = self.overview.settings, RefitRequests(), leaves.rows(leaf).start
        pricing = self.pricing(leaves, leaf, requests)
        certified, waiting = self.certified(pricing), bool(requests.rows)
        prices = settings.bound.by_record(pricing)
        leaves.keep("power", leaf, pricing.fit.power)
        leaves.keep("price", leaf, prices)
        own = withheld = charge(settings, pricing)
        if settings.standard.neighbour != WITHHELD and not waiting:
            requests.occasion = 1
            withheld = charge(settings, pricing.withheld)
        account = Account(
            own, withheld, riskiest=Top.of(leaves.kept("risk", leaf), first), dearest=Top.of(prices, first),
            loudest=Top.of(loudness(pricing), first),
        )  # fmt: skip
        return (certified, account), requests.rows


@dataclass(frozen=True, repr=False)
class KeepBound(OnLeaf):
    """Keep max |d| of a leaf's records, and its weights beside it; the largest is returned."""

    def __call__(self, leaves: Leaves, leaf: int) -> float:
        pricing = self.pricing(leaves, leaf, RefitRequests())
        bound = pricing.sensitivity
        leaves.keep("bound", leaf, bound)
        leaves.keep("before", leaf, leaves.kept("alpha", leaf))
        return float(bound.max())


@dataclass(frozen=True, repr=False)
class Runner(Confidential):
    """Refits and prices one table."""

    overview: Overview
    leaves: Leaves
    workers: Workers

    def refit(self, scale: float, key: Key) -> PricedFit:
        """The weighted posterior, not yet priced."""
        settings, forms, powers = self.overview.settings, list[Form | None](), list[float]()

        def parts() -> Iterator[list[LinkSum]]:
            for sums, power, form in self.go(SumLeaf(self.overview, scale), "factors"):
                forms.append(form)
                powers.append(power)
                yield sums

        sums = merge_leaves(mergeable_links(settings.model), parts())
        merged = fit_merged(settings.model, sums, self.leaves.records, draws=settings.draws, key=key)
        pilot = merged.redrawn(settings.model, draws=settings.draws, key=key.child("pilot"))
        form = forms[0]
        for other in forms[1:]:
            form = None if form is None or other is None else form.join(other)
        stated = settings.bound.statement(settings.draws, merged.health)
        return PricedFit(merged, pilot, scale, form, np.nan, stated, tuple(powers))

    def price(self, scale: float, key: Key) -> float:
        """What fresh draws with the powers at a scale cost."""
        _, prices = self.ask(PriceLeaf, self.refit(scale, key))
        return float(np.max(prices))

    def certify(self, scale: float, key: Key, *, tries: int = 1) -> Accounted:
        """Refit with the powers at a scale, price the fresh draws, and take stock of all records."""
        settings, priced = self.overview.settings, self.refit(scale, key)
        stated = settings.bound.statement(settings.draws, priced.merged.health, tries=tries)
        priced, found = self.ask(TakeStock, priced)
        prices, accounts = zip(*found, strict=True)
        priced = replace(priced, certified=float(np.max(prices)), statement=stated)
        return Accounted(priced, reduce(Account.join, accounts))

    def ask(
        self,
        task: Callable[[Overview, PricedFit], Callable[[Leaves, int], tuple[Made, Requests]]],
        priced: PricedFit,
    ) -> tuple[PricedFit, list[Made]]:
        """What a task makes of each leaf, once the neighbours that it requests were fitted anew."""
        results: dict[int, Made] = {}
        waiting = list(range(self.leaves.count))
        for _ in range(_ROUNDS):
            requests: dict[int, Requests] = {}
            answers = self.go(task(self.overview, priced), "prices", waiting)
            for leaf, (result, rows) in zip(waiting, answers, strict=True):
                results[leaf] = result
                if rows:
                    requests[leaf] = rows
            if not requests:
                return priced, [results[leaf] for leaf in sorted(results)]
            priced, waiting = self.answer(priced, list(requests.values())), list(requests)
        raise SettingError(
            f"{self.overview.settings.standard.label}: what is sensitive of some records is no number, so "
            "that they have no price. Check the standard's sensitive part."
        )

    def answer(self, priced: PricedFit, by_leaf: Sequence[Requests]) -> PricedFit:
        """The fit with the neighbours that were requested, fitted anew."""
        requests: Requests = {}
        for of_leaf in by_leaf:  # in this order, as `LeaveOut` goes through them
            for batch, rows in of_leaf.items():
                requests.setdefault(batch, []).extend(rows)
        without: dict[Batch, dict[int, list[int]]] = {batch: {} for batch in requests}
        for batch, rows in requests.items():
            for leaf, row, _ in rows:
                without[batch].setdefault(leaf, []).append(row)
        parts: dict[Batch, list[list[LinkSum]]] = {batch: [] for batch in requests}
        for sums in self.go(SumWithout(self.overview, priced.scale, without), "factors"):
            for batch, said in sums.items():
                parts[batch].append([said])
        models, before = mergeable_links(self.overview.settings.model), priced.merged.left
        others = {batch: merge_leaves([models[batch[0]]], some)[0] for batch, some in parts.items()}
        first = min(leaf for rows in requests.values() for leaf, _, _ in rows)
        (fits,) = self.go(LeaveOut(self.overview, priced.scale, requests, others), "factors", [first])
        left: list[dict[Row, Left]] = [dict(known) for known in before or [{}] * len(models)]
        for batch, rows in requests.items():
            left[batch[0]] |= dict(zip(rows, fits[batch], strict=True))
        return replace(priced, merged=replace(priced.merged, left=tuple(left)))

    def keep_bound(self, key: Key) -> float:
        """Keep D_i after a fit with the weights as they are (`Reweighted`); returns the largest."""
        return float(np.max(list(self.go(KeepBound(self.overview, self.refit(1.0, key)), "weights"))))

    def finish(self, key: Key) -> Accounted:
        """The priced fit that is released: scaled to the target, if there is one."""
        settings = self.overview.settings
        if settings.target is None:
            return self.certify(1.0, key.child("certify").child(1))
        certify = partial(self.certify, tries=TRIES)
        return find_scale(settings, self.price, certify, target=settings.target, key=key)[1]

    def go(
        self, task: Callable[[Leaves, int], Made], stage: str, which: Iterable[int] | None = None
    ) -> Iterator[Made]:
        """What a task makes of each leaf."""
        return go_over(self.workers, task, self.leaves, which, stage=stage)
