"""What a fit costs: the scores that bounds are read off, computed when asked for. Confidential.

Which number a bound makes of them, and what may be said of it, is the bound's own affair (`privacy.bounds`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from hedgerow.arrays import Array, Confidential, LogMass, PerDraw, PerRecord
from hedgerow.errors import RangeError
from hedgerow.mechanism.fit import Fit
from hedgerow.mechanism.importance import Importance, importance_of
from hedgerow.models.base import Influence
from hedgerow.models.chain import Chain, ChainInfluence, UnitInfluence, name_parts, part_of, zero_missing
from hedgerow.models.reductions import block_rows, mass_ends
from hedgerow.models.scored import Interval, Linear, Sensitive
from hedgerow.models.wrapped import PublicRisk
from hedgerow.numerics.renyi import Neighbours
from hedgerow.numerics.scoring import Extremes
from hedgerow.privacy.bounds import DELTA
from hedgerow.privacy.sensitive import withheld_part
from hedgerow.tables.chain import ChainDesign


@dataclass(frozen=True, repr=False)
class Price(Confidential):
    """Extremes of d over draws, by record, and the constant of the exact loss; fulfils `bounds.Priced`."""

    extremes: Extremes
    constant: PerRecord | None = None  # c_i, where the neighbour has a closed form
    neighbours: Neighbours | None = None  # likewise
    delta: float = DELTA  # of the Rényi price

    @property
    def sensitivity(self) -> PerRecord:
        """max_s |d|, by record."""
        return self.extremes.absolute

    @property
    def supremum(self) -> PerRecord | None:
        """None: draws say nothing about parameters beyond them."""
        return None

    def join(self, other: "Price") -> "Price":
        """The price over the draws of both."""
        return replace(self, extremes=self.extremes.merge(other.extremes))


@dataclass(frozen=True, repr=False)
class Pricing(Confidential):
    """What one fit costs under its standard's own neighbour (fulfils `bounds.Priced`), and with x_i withheld.

    Bounds need different scores, and the Lipschitz one the fewest, so each is computed when first read.
    """

    fit: Fit
    part: Sensitive
    interval: Interval
    delta: float = DELTA  # of the Rényi price

    @cached_property
    def sensitivity(self) -> PerRecord:
        """max_s |d|, by record."""
        return self.fit.absolute(self.part, self.interval)

    @property
    def extremes(self) -> Extremes:
        """The smallest and the largest d over the draws."""
        return self.by_draws[-1][1].extremes

    @cached_property
    def constant(self) -> PerRecord | None:
        """c_i of the exact loss, where a record's likelihood is taken away in part and γ(θ) plays no role."""
        if self._closed is None:
            return None
        influence, part = self._closed
        return influence.loss_constant(part.density) + part.constant

    @cached_property
    def neighbours(self) -> Neighbours | None:
        """The posterior beside each record's neighbour, under the same conditions."""
        if self._closed is None:
            return None
        influence, part = self._closed
        return influence.neighbours(part.density)

    @property
    def _closed(self) -> tuple[Influence, Linear] | None:
        """What the records do and which part of it is sensitive, where the neighbour has a closed form."""
        if not isinstance(self.part, Linear) or self.part.uses_mass or self.influence is None:
            return None
        return self.influence, self.part

    @cached_property
    def supremum(self) -> PerRecord | None:
        """The power times the oscillation over all parameters, where the model makes that public."""
        model = self.fit.model
        if not isinstance(model, PublicRisk):
            return None
        return self.fit.power * model.public_risk(self.fit.design).oscillation

    @cached_property
    def by_draws(self) -> tuple[tuple[int, Price], ...]:
        """The own price after an eighth, a quarter, half and all of the draws."""
        steps: list[tuple[int, Price]] = []
        stops = (self.fit.draws // share for share in (8, 4, 2, 1))
        for start, stop in pairwise(dict.fromkeys((0, *stops))):
            here = Price(self.fit.part(slice(start, stop)).extremes(self.part, self.interval), self.constant)
            steps.append((stop, here if not steps else steps[-1][1].join(here)))
        return tuple(steps)

    @cached_property
    def withheld(self) -> Price:
        """The price when x_i is withheld altogether."""
        power, influence = self.fit.power, self.influence
        extremes = self.fit.extremes(withheld_part(power), self.interval)
        if influence is None:
            return Price(extremes)
        return Price(extremes, influence.loss_constant(power), influence.neighbours(power), self.delta)

    @property
    def by_row(self) -> "Pricing":
        """The prices where single records are withheld."""
        return self

    @cached_property
    def influence(self) -> Influence | None:
        """What each record does to the fit, for exact models."""
        return None if self.fit.influence is None else self.fit.influence()

    @cached_property
    def importance(self) -> Importance:
        """The fit without each record's outcome, estimated by importance weights."""
        return importance_of(self.fit)


def price_columns(
    fit: Fit, columns: Sequence[str], delta: float = DELTA, unit: Any = None
) -> dict[str, Pricing]:
    """What each protected column would cost alone: at the same powers, with its value withheld.

    `columns` names the column of each link: kinds and amounts of one are priced together. Of all rows of a
    `unit` together, where their numbers are given.
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(columns):
        places.setdefault(name, []).append(place)
    return {name: _price_links(fit, each, delta, unit) for name, each in places.items()}


def _price_links(fit: Fit, places: Sequence[int], delta: float, unit: Any) -> Pricing:
    chain, records = fit.model, fit.design.records
    if isinstance(chain, Chain) and len(places) < len(chain.models):
        links = [fit.design.links[place] for place in places]
        own = [part_of(fit.parameters, place) for place in places]
        several = len(places) > 1
        design = ChainDesign.of(links) if several else links[0]
        made = fit.influence

        def influence() -> Influence:
            joint = None if made is None else made()
            parts = tuple(joint.links[place] for place in places) if isinstance(joint, ChainInfluence) else ()
            return ChainInfluence(parts, design) if several else parts[0]

        fit = replace(
            fit,
            model=Chain(tuple(chain.models[place] for place in places))
            if several
            else chain.models[places[0]],
            design=design,
            power=fit.power if several else zero_missing(links[0], fit.power),
            parameters=name_parts(own) if several else own[0],
            influence=None if made is None else influence,
        )
    everywhere = Interval(np.full(records, -np.inf), np.full(records, np.inf), np.ones(records, np.bool_))
    told = fit, withheld_part(fit.power), everywhere, delta
    return Pricing(*told) if unit is None else UnitPricing(*told, unit)


def shares_of_largest(price: PerRecord, largest: float) -> PerRecord:
    """Each price as a share of the table's largest: 0 where all are, NaN for one without end."""
    with np.errstate(invalid="ignore"):
        return price / largest if largest > 0 else np.zeros_like(price)


def largest_by_draw(
    fit: Fit, part: Sensitive, interval: Interval, centre: PerRecord, largest: PerRecord
) -> PerDraw:
    """max_i |d_i − centre_i| for every draw; `largest` is the same for every record, over the draws."""
    maxima = np.zeros(fit.draws)
    if fit.influence is None:  # the model scores whole tables: a few draws at a time
        step = block_rows(fit.design.records, fit.draws)
        for start in range(0, fit.draws, step):
            some = fit.part(slice(start, start + step))
            log_lik = some.log_lik()
            log_mass = some.log_mass(interval) if part.uses_mass else np.zeros_like(log_lik)
            scored = np.abs(part(slice(None), log_lik, log_mass) - centre)
            maxima[start : start + step] = scored.max(axis=1)
        return maxima
    for row in np.argsort(-largest, kind="stable"):
        one = slice(int(row), int(row) + 1)
        log_lik = fit.log_lik(one)
        uses_mass = not isinstance(part, Linear) or bool(part.mass[row])
        log_mass = fit.log_mass(interval, one) if uses_mass else np.zeros_like(log_lik)
        np.maximum(maxima, np.abs(part(one, log_lik, log_mass)[:, 0] - centre[row]), out=maxima)
        if largest[row] <= maxima.min():
            break  # every draw already has a record above all that remain
    return maxima


@dataclass(frozen=True, repr=False)
class UnitPricing(Pricing):
    """Prices where all records of a unit are withheld together: each record has the price of its unit.

    d of a unit is the sum over its records, at each draw, before any maximum is taken; exact losses and Rényi
    divergences are those of the posterior without all of them (`models.chain.UnitInfluence`).
    """

    unit: Any = None  # the number of each record's unit

    @cached_property
    def by_row(self) -> Pricing:
        return Pricing(self.fit, self.part, self.interval, self.delta)

    @cached_property
    def sensitivity(self) -> PerRecord:
        return self.extremes.absolute

    @cached_property
    def by_draws(self) -> tuple[tuple[int, Price], ...]:
        steps: list[tuple[int, Price]] = []
        stops = (self.fit.draws // share for share in (8, 4, 2, 1))
        for start, stop in pairwise(dict.fromkeys((0, *stops))):
            here = Price(self.extremes_of(self.fit.part(slice(start, stop)), self.part), self.constant)
            steps.append((stop, here if not steps else steps[-1][1].join(here)))
        return tuple(steps)

    @cached_property
    def constant(self) -> PerRecord | None:
        if self._closed is None:
            return None
        influence, part = self._closed
        return influence.loss_constant(part.density) + np.bincount(self.unit, part.constant)[self.unit]

    @cached_property
    def withheld(self) -> Price:
        power, influence = self.fit.power, self.influence
        extremes = self.extremes_of(self.fit, withheld_part(power))
        if influence is None:
            return Price(extremes)
        return Price(extremes, influence.loss_constant(power), influence.neighbours(power), self.delta)

    @cached_property
    def influence(self) -> Influence | None:
        alone, fit = super().influence, self.fit
        return None if alone is None else UnitInfluence(fit.model, fit.design, fit.power, self.unit, alone)

    def extremes_of(self, fit: Fit, part: Sensitive) -> Extremes:
        """The smallest and the largest d of each record's unit over some draws."""
        found = [ends for block in self._sums(fit, part) for ends in block]  # the price takes the worse end
        low = np.min([sums.min(axis=0) for sums in found], axis=0)
        high = np.max([sums.max(axis=0) for sums in found], axis=0)
        return Extremes(low[self.unit], high[self.unit])

    def largest_by_draw(self, centre: PerRecord) -> PerDraw:
        """max over units of |d − centre|, for every draw."""
        middle = np.zeros(int(self.unit.max()) + 1)
        middle[self.unit] = centre
        blocks = [
            np.max([np.abs(sums - middle).max(axis=1) for sums in ends], axis=0)
            for ends in self._sums(self.fit, self.part)
        ]
        return np.concatenate(blocks)

    def _sums(self, fit: Fit, part: Sensitive) -> Iterator[list[Array]]:
        """d by unit, for a few draws at a time; where log γ is an estimate, its least and its largest value.

        Ends of a sum are the sums of ends, which hold for all records together.
        """
        order = np.argsort(self.unit, kind="stable")
        many = np.bincount(self.unit)
        starts = np.cumsum(many) - many
        step = block_rows(fit.design.records, fit.draws)
        for start in range(0, fit.draws, step):
            some = fit.part(slice(start, start + step))
            log_lik = some.log_lik()
            ends: tuple[LogMass, ...] = (log_lik,)  # stands in: a form without mass does not read it
            if part.uses_mass:
                ends = mass_ends(some.model, some.design, some.parameters, self.interval, slice(None))
            scored = [part(slice(None), log_lik, log_mass)[:, order] for log_mass in ends]
            if len(scored) > 1:
                scored = [np.min(scored, axis=0), np.max(scored, axis=0)]
            sums = [np.add.reduceat(each, starts, axis=1) for each in scored]
            if not all(np.isfinite(each).all() for each in sums):
                raise RangeError(
                    "Some units have no finite price: a range of theirs is so narrow that its probability is "
                    "zero in floating point. Widen it."
                )
            yield sums
