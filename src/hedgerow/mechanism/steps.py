"""The mechanism, step by step (docs/maths.md, "The mechanism").

1. fit unweighted; 2. risks (`begin`); 3. weights; 4. what is known, λ (`weigh`); 5. refit with each record's
likelihood raised to its power; 6. price from those new draws (`run`). Synthesis then uses draws of that very
fit.

There is one such procedure. A mask says which outcomes are there: all of them for a release, all but one when
an audit or an attack asks what that one changed, and simulated ones when a correction replays it.
"""

from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import numpy as np

from hedgerow.arrays import Confidential, PerRecord, RecordMask
from hedgerow.errors import RangeError, SettingError
from hedgerow.mechanism.fit import DrawnRisk, Fit, fit
from hedgerow.mechanism.planned import planned_weight
from hedgerow.mechanism.price import Pricing, UnitPricing, largest_by_draw
from hedgerow.models.base import Model
from hedgerow.models.scored import Interval, Risk, Sensitive
from hedgerow.models.wrapped import PublicRisk
from hedgerow.numerics.leaves import apply
from hedgerow.numerics.scoring import Extremes
from hedgerow.privacy.bounds import Bound, Statement, distance
from hedgerow.privacy.ranges import Everywhere, Range
from hedgerow.privacy.sensitive import sensitive_part
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.weights import Evidence, compute_alpha
from hedgerow.progress import phase
from hedgerow.randomness import Key
from hedgerow.tables.chain import Units
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table

FITTING = "fitting"


@dataclass(frozen=True, repr=False)
class Start(Confidential):
    """The unweighted fit and its risks, shared by all standards; confidential."""

    table: Table
    design: Design
    fit: Fit | None  # none where the risk is public and needs no fit
    risk: Risk
    present: RecordMask  # outcomes that are used; the others count as missing


@dataclass(frozen=True, repr=False)
class Weighted(Confidential):
    """Weights and beliefs, before the second fit; confidential."""

    alpha: PerRecord
    known: PerRecord
    interval: Interval
    present: RecordMask

    def scaled(self, scale: float) -> "Weighted":
        """These weights, each multiplied by the scale."""
        return replace(self, alpha=apply(lambda alpha: scale * alpha, self.alpha))


@dataclass(frozen=True, repr=False)
class Outcome(Confidential):
    """The second fit with its price: the one that is released; confidential."""

    weighted: Weighted
    fit: Fit
    pricing: Pricing
    statement: Statement
    bound: Bound
    certified: float  # what the target is compared with, and the statement holds for; at least epsilon

    @cached_property
    def epsilon(self) -> float:
        """The price of one copy under the chosen bound, when first asked for: no search does."""
        return self.bound.epsilon(self.pricing)


@phase(FITTING)
def begin(
    model: Model, table: Table, design: Design, *, draws: int, key: Key, present: RecordMask | None = None
) -> Start:
    """Fit the plain posterior and read off how loudly each record speaks: steps 1 and 2.

    Outcomes that are not `present` are left out as if missing. A model whose risk is public needs no fit.
    """
    model.check(design)
    rows = np.ones(design.records, dtype=np.bool_) if present is None else present
    rows = rows if design.present is None else rows & design.present
    if isinstance(model, PublicRisk):
        return Start(table, design, None, model.public_risk(design), rows)
    unweighted = fit(model, design, rows.astype(np.float64), draws=draws, key=key.child("unweighted"))
    nowhere = Everywhere().interval(design.values, table)
    return Start(table, design, unweighted, DrawnRisk(unweighted, nowhere), rows)


def weigh(settings: Settings, start: Start, *, key: Key) -> Weighted:
    """Weights from risks, and the share of each record that is deemed public: steps 3 and 4.

    An outcome that is not there takes no part: it has no weight, no range and no say in the others' weights.
    """
    if not settings.bound.local and start.fit is not None:
        raise SettingError(
            f"{settings.standard.label}: its weights rest on the risk that its restricted model makes "
            "public, and these risks come from the draws of a fit. Begin with the settings' own model."
        )
    rows, values, table = start.present, start.design.values, start.table
    interval = find_interval(settings.standard.range, start)
    table = table if rows.all() else table.rows_where(rows)
    plain = Weighted(rows.astype(np.float64), np.zeros(len(rows)), interval, rows)
    weighted = replace(plain, known=find_known(settings, start, interval, key=key.child("known")))
    if not settings.standard.weighted:
        return weighted
    refits = iter(range(1000))

    def everybody(alpha: PerRecord) -> Weighted:
        if rows.all():
            return replace(weighted, alpha=apply(np.copy, alpha))
        whole = np.zeros(len(rows))
        whole[rows] = alpha
        return replace(weighted, alpha=whole)

    def refit(alpha: PerRecord) -> PerRecord:
        second, part = _refit(settings, start, everybody(alpha), key.child("reweight").child(next(refits)))
        return second.absolute(part, interval)[rows]

    risk = start.risk
    if not rows.all():
        risk, values = Risk(risk.low[rows], risk.high[rows]), values[rows]
    evidence = Evidence(
        risk, values, table, refit, partial(planned_weight, settings, start.design, table=start.table),
        among=None if rows.all() else rows,
    )  # fmt: skip
    return everybody(compute_alpha(settings.weights.of_rows(rows), evidence))


def run(settings: Settings, start: Start, weighted: Weighted, *, key: Key, tries: int = 1) -> Outcome:
    """Refit with the powers and price the fresh draws: steps 5 and 6.

    Where the price is to be certified, in one of several `tries`, a Markov chain must have as many effective
    draws of the very maxima that are priced as its statement says.
    """
    second, part = _refit(settings, start, weighted, key)
    pricing, bound = _priced(settings, start, weighted, second, part), settings.bound
    require_price(settings, pricing)

    @cache
    def pilot() -> Extremes:
        other = _refit(settings, start, weighted, key.child("pilot"))[0]
        if isinstance(pricing, UnitPricing):
            return pricing.extremes_of(other, part)
        return other.extremes(part, weighted.interval)

    certified = bound.certified(pricing, settings.copies, pilot)
    if tries > 1 and bound.over_draws and second.health.in_doubt:
        from hedgerow.models.programs.gate import examine_maxima

        centre = bound.centre(pricing, pilot)
        if isinstance(pricing, UnitPricing):
            maxima = pricing.largest_by_draw(centre)
        else:
            largest = distance(pricing.extremes, centre)
            maxima = largest_by_draw(second, part, weighted.interval, centre, largest)
        second = replace(second, health=examine_maxima(second.health, maxima))
    stated = bound.statement(second.draws, second.health, tries=tries)
    return Outcome(weighted, second, pricing, stated, bound, certified)


def require_price(settings: Settings, pricing: Pricing) -> None:
    """Refuse a bound under which the fit has no price."""
    bound = settings.bound
    if not bound.has(pricing):
        raise SettingError(
            f"bound='{bound}' has no closed form for {type(settings.standard).__name__} with the "
            f"{pricing.fit.model.name} model. Use bound='oscillation', and read withheld_epsilon_ beside it: "
            f"for the normal and lognormal models withheld_epsilon_['{bound}'] is that price with x_i "
            "withheld."
        )


def _priced(settings: Settings, start: Start, weighted: Weighted, fit: Fit, part: Sensitive) -> Pricing:
    """The price of each record, or of its unit where the settings name one."""
    parts = fit, part, weighted.interval, settings.delta
    if settings.unit is None:
        return Pricing(*parts)
    return UnitPricing(*parts, Units.of(start.table, settings.unit).numbers)


def power_of(settings: Settings, weighted: Weighted) -> PerRecord:
    """α*_i, the exponent on each record's likelihood: 1 where it is taken as public, 0 where missing."""
    inside, power = weighted.interval.inside, settings.standard.power(weighted.alpha, weighted.known)
    if not (inside.all() and weighted.present.all()):
        power = np.where(inside, power, 1.0) * weighted.present
    if not (power.min() >= 0 and power.max() < np.inf):  # which NaN is not
        raise SettingError(
            f"{type(settings.standard).__name__}.power gave values that are negative or not finite; "
            "powers must be numbers from 0 up."
        )
    return power


def _refit(settings: Settings, start: Start, weighted: Weighted, key: Key) -> tuple[Fit, Sensitive]:
    power = power_of(settings, weighted)
    part = sensitive_part(settings.standard, weighted.alpha, weighted.known, weighted.interval)
    return fit(settings.model, start.design, power, draws=settings.draws, key=key), part


def find_known(
    settings: Settings, start: Start, interval: Interval, *, key: Key, rows: slice | None = None, of: int = 0
) -> PerRecord:
    """λ_i, the probability that a fresh value falls outside record i's range.

    Of a leaf `rows` says which records of all these are, and `of` how many there are.
    """
    records = start.design.records
    if not settings.standard.uses_known or interval.whole:
        return np.zeros(records)
    if start.fit is None:
        raise SettingError(
            f"{settings.standard.label} needs an unweighted fit, which this model does not have."
        )
    if settings.known == "exact":
        return np.clip(1 - start.fit.mean_mass(interval), 0, 1)
    outside = np.zeros(records)
    stream = key.stream()
    for draw in range(start.fit.draws):
        numbers = stream.uniform(records) if rows is None else stream.part(rows, of)
        fresh = start.fit.predict(draw, numbers)
        outside += (fresh < interval.lower) | (fresh > interval.upper)
    return outside / start.fit.draws


def find_interval(public_range: Range, start: Start, ranged: tuple[bool, ...] | None = None) -> Interval:
    """The range of each record, link by link; of a value that is not there nothing is known.

    Of a leaf `ranged` says which links have a range in some record of all.
    """
    links, table, found = start.design.links, start.table, []
    for link in links:
        own, rows = public_range.of(link.outcome), link.present_in(start.present)
        try:
            if rows.all():
                part = own.interval(link.values, table)
            else:
                part = _spread(own.of_rows(rows).interval(link.values[rows], table.rows_where(rows)), rows)
        except RangeError as error:
            raise RangeError(f"'{link.outcome}': {error}") if len(links) > 1 else error from None
        found.append(replace(part, inside=part.inside | (start.present & ~rows)))
    return Interval.join(found, ranged)


def _spread(part: Interval, rows: RecordMask) -> Interval:
    """The ranges of some rows among all: a missing outcome has none, and costs nothing."""
    whole = Interval(np.full(len(rows), -np.inf), np.full(len(rows), np.inf), np.zeros(len(rows), np.bool_))
    whole.lower[rows], whole.upper[rows], whole.inside[rows] = part.lower, part.upper, part.inside
    return whole
