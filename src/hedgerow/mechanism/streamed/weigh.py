"""Steps 1 to 4 over leaves: the plain fit, risks, what is known, and weights."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, Confidential, PerRecord, RecordMask
from hedgerow.errors import SettingError
from hedgerow.mechanism.fit import DrawnRisk
from hedgerow.mechanism.links import refuse_empty
from hedgerow.mechanism.steps import FITTING, find_known
from hedgerow.mechanism.streamed.leaf import Overview, empty_table, kept_present
from hedgerow.mechanism.streamed.merged import (
    LinkSum,
    Merged,
    RefitRequests,
    fit_merged,
    merge_leaves,
    mergeable_links,
    sum_links,
)
from hedgerow.mechanism.streamed.planned import plan_streamed
from hedgerow.mechanism.streamed.ranks import settle_tails
from hedgerow.mechanism.streamed.run import Runner
from hedgerow.mechanism.streamed.support import check_pieces
from hedgerow.models.prior import is_intercept
from hedgerow.models.scored import Risk, RiskKind
from hedgerow.numerics.leaves import add_in_order
from hedgerow.privacy.ranges import Everywhere
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.weights import (
    Evidence,
    FixedWeights,
    Normalised,
    Overall,
    PlannedWeights,
    Reweighted,
    ScalarWeights,
    Weights,
    check_alpha,
    spread_of,
)
from hedgerow.progress import phase
from hedgerow.randomness import Key
from hedgerow.tables.leaves import Leaves, go_over, name_rows
from hedgerow.threads import Workers


@dataclass(frozen=True, repr=False)
class LookFirst(Confidential):
    """Check a leaf and sum it up with every record at power 1; says how many cells count as withheld."""

    overview: Overview

    def __call__(
        self, leaves: Leaves, leaf: int
    ) -> tuple[list[LinkSum], list[list[bool]], NDArray[np.int64]]:
        settings, start = self.overview.settings, self.overview.start(leaves, leaf)
        links = start.design.links
        check_pieces(settings, start.design)
        settings.model.check(start.design)
        if not all(column.is_plain for column in settings.columns):
            leaves.keep("present", leaf, start.present)
        power = start.present.astype(np.float64)
        sums = sum_links(settings.model, start.design, power, first=leaf == 0)
        flags = [[is_intercept(link, j) for j in range(len(link.columns))] for link in links]
        gone = [0 if link.withheld is None else int(link.withheld.sum()) for link in links]
        return sums, flags, np.array(gone, np.int64)


@dataclass(frozen=True, repr=False)
class FindRisk(Confidential):
    """Keep a leaf's risks; says which links have a range."""

    overview: Overview
    plain: Merged

    def __call__(self, leaves: Leaves, leaf: int) -> tuple[bool, ...]:
        start = self.overview.start(leaves, leaf)
        power = start.present.astype(np.float64)
        nowhere = Everywhere().interval(start.design.values, start.table)
        fit = self.plain.on(self.overview.settings.model, start.design, power, leaf, RefitRequests())
        leaves.keep("risk", leaf, DrawnRisk(fit, nowhere).of(risk_kind(self.overview.settings)))
        interval = self.overview.interval(start)
        if interval.lower.ndim == 1:
            return (not interval.whole,) * len(start.design.links)
        return tuple(not interval.link(place).whole for place in range(len(start.design.links)))


@dataclass(frozen=True, repr=False)
class FindKnown(Confidential):
    """Keep λ of a leaf's records."""

    overview: Overview
    plain: Merged
    key: Key

    def __call__(self, leaves: Leaves, leaf: int) -> None:
        start = self.overview.start(leaves, leaf, self.plain)
        interval = self.overview.interval(start)
        known = find_known(
            self.overview.settings, start, interval, key=self.key, rows=leaves.rows(leaf), of=leaves.records
        )
        leaves.keep("known", leaf, known)


def risk_kind(settings: Settings) -> RiskKind:
    """The kind of risk that the weights read, which is the one that is kept."""
    kind: RiskKind = getattr(settings.weights.unraised, "risk", "lipschitz")
    return kind


@phase(FITTING)
def begin_streamed(
    settings: Settings, leaves: Leaves, workers: Workers, *, key: Key
) -> tuple[Overview, Merged]:
    """Fit the plain posterior, and keep the risk of each record and what is known of it."""
    overview = Overview(settings, settle_tails(settings, leaves, workers))
    intercepts: list[list[list[bool]]] = []
    withheld = np.zeros(len(settings.links), np.int64)

    def parts() -> Iterator[list[LinkSum]]:
        for sums, flags, gone in go_over(workers, LookFirst(overview), leaves, stage="factors"):
            intercepts.append(flags)
            np.add(withheld, gone, out=withheld)
            yield sums

    sums = merge_leaves(mergeable_links(settings.model), parts())
    for link, said in zip(settings.links, sums, strict=True):
        if not said.records:
            refuse_empty(link.column, leaves.records)
    overview = replace(overview, withheld=tuple(withheld.tolist()))
    if any(flags != intercepts[0] for flags in intercepts):
        raise SettingError(
            "Leaf by leaf: a predictor that is called Intercept is 1 in some leaves alone. Rename it."
        )
    plain = fit_merged(
        settings.model, sums, leaves.records, draws=settings.draws, key=key.child("unweighted")
    )
    ranged = tuple[bool, ...]()
    for some in go_over(workers, FindRisk(overview, plain), leaves, stage="risks"):
        ranged = tuple(a or b for a, b in zip(ranged or some, some, strict=True))
    overview = replace(overview, ranged=ranged)
    if settings.standard.uses_known and any(ranged):
        task = FindKnown(overview, plain, key.child("known"))
        for _ in go_over(workers, task, leaves, stage="ranges"):
            pass
    return overview, plain


@dataclass(frozen=True, repr=False)
class SumRisk(Confidential):
    """What a leaf says of its risks: their ends, how many there are and their sum.

    Or that of their squares about a mean, once it is known.
    """

    settings: Settings
    mean: float | None = None

    def __call__(self, leaves: Leaves, leaf: int) -> tuple[float, float, int, float]:
        risk = leaves.kept("risk", leaf)[kept_present(self.settings, leaves, leaf)]
        away = risk if self.mean is None else (risk - self.mean) ** 2
        ends = risk.min(initial=np.inf), risk.max(initial=-np.inf)
        return float(ends[0]), float(ends[1]), len(risk), float(away.sum())


@dataclass(frozen=True, repr=False)
class GiveWeights(Confidential):
    """Keep the weights of a leaf that a rule makes of its risks."""

    settings: Settings
    weights: Weights
    whole: Overall | None
    planned: float  # one weight for all, of rules that plan one

    def __call__(self, leaves: Leaves, leaf: int) -> None:
        present = kept_present(self.settings, leaves, leaf)
        kept = leaves.kept("risk", leaf)[present]
        unread = np.full(len(kept), np.nan)  # no rule that goes by leaves reads outcomes
        risk = Risk(np.zeros(len(kept)), kept)  # both kinds of it are the one that the rule reads
        evidence = Evidence(
            risk, unread, empty_table(1), refit=_no_refit, plan=lambda _: self.planned, whole=self.whole
        )
        _keep_alpha(leaves, leaf, self.weights, self.weights.alpha(evidence), present)


@dataclass(frozen=True, repr=False)
class KeepWeights(Confidential):
    """Keep weights that were given by record."""

    settings: Settings
    weights: FixedWeights  # of this leaf

    def __call__(self, leaves: Leaves, leaf: int) -> None:
        present = kept_present(self.settings, leaves, leaf)
        alpha = np.array(self.weights.values[present], dtype=np.float64)
        _keep_alpha(leaves, leaf, self.weights, alpha, present)


@dataclass(frozen=True, repr=False)
class RaiseWeights(Confidential):
    """Raise weights that did not decide the price of a fit with them."""

    settings: Settings
    weights: Reweighted
    largest: float

    def __call__(self, leaves: Leaves, leaf: int) -> None:
        present = kept_present(self.settings, leaves, leaf)
        # From what was kept of the round before, so that doing it twice does not raise them twice.
        alpha, bound = (leaves.kept(name, leaf)[present] for name in ("before", "bound"))
        _keep_alpha(leaves, leaf, self.weights, self.weights.raised(alpha, bound, self.largest), present)


def weigh_streamed(runner: Runner, *, key: Key) -> None:
    """Keep the weight of each record, where the standard has weights; some rules ask for refits."""
    settings, leaves, workers = runner.overview.settings, runner.leaves, runner.workers
    refits = count()

    def keep(task: Callable[[Leaves, int], None]) -> None:
        for _ in go_over(workers, task, leaves, stage="weights"):
            pass

    def weigh(weights: Weights) -> None:
        if isinstance(weights, Reweighted):
            weigh(weights.base)
            largest = runner.keep_bound(key.child("reweight").child(next(refits)))
            keep(RaiseWeights(settings, Reweighted(ScalarWeights(), weights.k), largest))
        elif isinstance(weights, FixedWeights):
            _keep_given(settings, weights, leaves, workers)
        else:
            whole, planned = None, np.nan
            if isinstance(weights, Normalised):
                whole = _overall(settings, weights, leaves, workers)
            if isinstance(weights, PlannedWeights):
                planned = plan_streamed(settings, leaves, workers, weights.refused)
            keep(GiveWeights(settings, weights, whole, planned))

    if settings.standard.weighted:
        weigh(settings.weights)


def _keep_given(settings: Settings, weights: FixedWeights, leaves: Leaves, workers: Workers) -> None:
    if len(weights.values) != leaves.records:
        check_alpha(weights, np.asarray(weights.values, dtype=np.float64), leaves.records)
    for leaf in range(leaves.count):  # each leaf is sent its own part
        part = FixedWeights(weights.values[leaves.rows(leaf)])
        for _ in workers.map(KeepWeights(settings, part), leaves, [leaf]):
            pass


def _overall(settings: Settings, weights: Normalised, leaves: Leaves, workers: Workers) -> Overall:
    if weights.reads == "nothing":
        return Overall()
    look = SumRisk(settings)
    low, high, counts, sums = zip(*go_over(workers, look, leaves, stage="weights"), strict=True)
    if weights.reads == "ends":
        return Overall(min(low), max(high))
    mean = add_in_order(sums) / sum(counts)
    *_, squares = zip(*go_over(workers, replace(look, mean=mean), leaves, stage="weights"), strict=True)
    return Overall(mean=mean, spread=spread_of(add_in_order(squares), sum(counts)))


def _keep_alpha(leaves: Leaves, leaf: int, weights: Weights, alpha: Array, present: RecordMask) -> None:
    """Keep the weights of the records that have a value; the others have none."""
    every = np.zeros(len(present))
    try:
        every[present] = check_alpha(weights, alpha, int(present.sum()))
    except SettingError as error:
        raise name_rows(leaves, leaf, error) from None
    leaves.keep("alpha", leaf, every)


def _no_refit(alpha: PerRecord) -> PerRecord:
    raise SettingError("A refit takes all leaves.")
