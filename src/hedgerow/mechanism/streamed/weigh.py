"""Steps 1 to 4 over leaves: the plain fit, risks, what is known, and weights."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from hedgerow.arrays import Array, Confidential, PerRecord
from hedgerow.errors import SettingError
from hedgerow.mechanism.fit import DrawnRisk
from hedgerow.mechanism.steps import FITTING, find_known
from hedgerow.mechanism.streamed.leaf import Overview, empty_table
from hedgerow.mechanism.streamed.merged import (
    Merged,
    RefitRequests,
    fit_merged,
    leaf_factors,
    merge_leaves,
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
    """Check a leaf, and factor it with every record at power 1."""

    overview: Overview

    def __call__(self, leaves: Leaves, leaf: int) -> tuple[list[Array], float, list[list[bool]]]:
        start, model = self.overview.start(leaves, leaf), self.overview.settings.model
        check_pieces(self.overview.settings, start.design)
        model.check(start.design)
        power = np.ones(start.design.records)
        factors = leaf_factors(model, start.design, power, first=leaf == 0)
        flags = [[is_intercept(link, j) for j in range(len(link.columns))] for link in start.design.links]
        return factors, float(power.sum()), flags


@dataclass(frozen=True, repr=False)
class FindRisk(Confidential):
    """Keep a leaf's risks; says which links have a range."""

    overview: Overview
    plain: Merged

    def __call__(self, leaves: Leaves, leaf: int) -> tuple[bool, ...]:
        start = self.overview.start(leaves, leaf)
        ones = np.ones(start.design.records)
        nowhere = Everywhere().interval(start.design.values, start.table)
        fit = self.plain.on(self.overview.settings.model, start.design, ones, leaf, RefitRequests())
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

    def parts() -> Iterator[tuple[Sequence[Array], float]]:
        for factors, power, flags in go_over(workers, LookFirst(overview), leaves, stage="factors"):
            intercepts.append(flags)
            yield factors, power

    factors, power = merge_leaves(parts())
    if any(flags != intercepts[0] for flags in intercepts):
        raise SettingError(
            "Leaf by leaf: a predictor that is called Intercept is 1 in some leaves alone. Rename it."
        )
    plain = fit_merged(
        settings.model, factors, power, leaves.records, draws=settings.draws, key=key.child("unweighted")
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
    """What a leaf says of its risks: their ends and sum, and the squares about a mean once it is known."""

    mean: float | None = None

    def __call__(self, leaves: Leaves, leaf: int) -> tuple[float, float, float]:
        risk = leaves.kept("risk", leaf)
        away = risk if self.mean is None else (risk - self.mean) ** 2
        return float(risk.min()), float(risk.max()), float(away.sum())


@dataclass(frozen=True, repr=False)
class GiveWeights(Confidential):
    """Keep the weights of a leaf that a rule makes of its risks."""

    weights: Weights
    whole: Overall | None
    planned: float  # one weight for all, of rules that plan one

    def __call__(self, leaves: Leaves, leaf: int) -> None:
        kept = leaves.kept("risk", leaf)
        unread = np.full(len(kept), np.nan)  # no rule that goes by leaves reads outcomes
        risk = Risk(np.zeros(len(kept)), kept)  # both kinds of it are the one that the rule reads
        evidence = Evidence(
            risk, unread, empty_table(), refit=_no_refit, plan=lambda _: self.planned, whole=self.whole
        )
        _keep_alpha(leaves, leaf, self.weights, self.weights.alpha(evidence))


@dataclass(frozen=True, repr=False)
class KeepWeights(Confidential):
    """Keep weights that were given by record."""

    weights: FixedWeights  # of this leaf

    def __call__(self, leaves: Leaves, leaf: int) -> None:
        _keep_alpha(leaves, leaf, self.weights, np.array(self.weights.values, dtype=np.float64))


@dataclass(frozen=True, repr=False)
class RaiseWeights(Confidential):
    """Raise weights that did not decide the price of a fit with them."""

    weights: Reweighted
    largest: float

    def __call__(self, leaves: Leaves, leaf: int) -> None:
        # From what was kept of the round before, so that doing it twice does not raise them twice.
        alpha = self.weights.raised(leaves.kept("before", leaf), leaves.kept("bound", leaf), self.largest)
        _keep_alpha(leaves, leaf, self.weights, alpha)


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
            keep(RaiseWeights(Reweighted(ScalarWeights(), weights.k), largest))
        elif isinstance(weights, FixedWeights):
            _keep_given(weights, leaves, workers)
        else:
            whole = _overall(weights, leaves, workers) if isinstance(weights, Normalised) else None
            planned = np.nan
            if isinstance(weights, PlannedWeights):
                planned = plan_streamed(settings, leaves, workers, weights.refused)
            keep(GiveWeights(weights, whole, planned))

    if settings.standard.weighted:
        weigh(settings.weights)


def _keep_given(weights: FixedWeights, leaves: Leaves, workers: Workers) -> None:
    if len(weights.values) != leaves.records:
        check_alpha(weights, np.asarray(weights.values, dtype=np.float64), leaves.records)
    for leaf in range(leaves.count):  # each leaf is sent its own part
        part = FixedWeights(weights.values[leaves.rows(leaf)])
        for _ in workers.map(KeepWeights(part), leaves, [leaf]):
            pass


def _overall(weights: Normalised, leaves: Leaves, workers: Workers) -> Overall:
    if weights.reads == "nothing":
        return Overall()
    low, high, sums = zip(*go_over(workers, SumRisk(), leaves, stage="weights"), strict=True)
    if weights.reads == "ends":
        return Overall(min(low), max(high))
    mean = add_in_order(sums) / leaves.records
    _, _, squares = zip(*go_over(workers, SumRisk(mean), leaves, stage="weights"), strict=True)
    return Overall(mean=mean, spread=spread_of(add_in_order(squares), leaves.records))


def _keep_alpha(leaves: Leaves, leaf: int, weights: Weights, alpha: PerRecord) -> None:
    rows = leaves.rows(leaf)
    try:
        leaves.keep("alpha", leaf, check_alpha(weights, alpha, rows.stop - rows.start))
    except SettingError as error:
        raise name_rows(leaves, leaf, error) from None


def _no_refit(alpha: PerRecord) -> PerRecord:
    raise SettingError("A refit takes all leaves.")
