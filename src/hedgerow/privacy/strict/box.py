"""Strict privacy by sampling a posterior over a public box of parameters (docs/maths.md, "Strict mode").

The prior is restricted to a box that the owner can defend without looking at the outcome. Over that box the
log likelihood of a record oscillates by a known amount o_i, which depends on x_i and public things only. With
weight α_i = min(1, ε/o_i) no record's factor moves the posterior by more than ε, whatever the other records
are: pure ε-differential privacy for x_i withheld, 2ε for x_i replaced, with no draws, no asymptotics and no
fixed weights in the argument. Of several columns each has a box, and a level by row shares ε (`BoxedChain`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.arrays import Array, PerDraw, PerRecord
from hedgerow.errors import SettingError
from hedgerow.models.base import Domain, Health, Parameters, Sample
from hedgerow.models.box import BoxSampler
from hedgerow.models.chain import Chain, zero_missing
from hedgerow.models.correctable import StandIn
from hedgerow.models.exact import Regression
from hedgerow.models.prior import Prior
from hedgerow.models.reductions import blocks, count_draws
from hedgerow.models.scored import Interval, Linear, Risk, Sensitive
from hedgerow.models.wrapped import PublicRisk, Restricted
from hedgerow.numerics.scoring import Draws, Extremes
from hedgerow.privacy.weights import Evidence, Weights
from hedgerow.randomness import Key
from hedgerow.tables.design import Design, check_sigma

OUTWARD = 1e-9  # o_i is rounded up by this much, so that rounding never lets a factor exceed ε
_ENOUGH = 1 / 16  # share of the posterior's draws in the box from which on they are the quickest way
_FARTHEST = 1e5  # prior standard deviations between prior and box at which arithmetic loses its digits
_CENTRE_DRAWS = 1000  # draws whose mean is the weighted estimate that a correction works with
_EDGE = 0.02  # the outer 2 % of a side counts as the box's edge


@dataclass(frozen=True)
class Boxed(Restricted, StandIn):
    """An exact model whose prior is restricted to a box, sampled by rejection, however far the data pull.

    It has no `chance` of its own: the box and small weights keep estimates from following chance, and taking
    that of the base model off would add noise.
    """

    base: Regression
    box: Mapping[str, tuple[float, float]]
    default_prior: bool = True

    @property
    def domain(self) -> Domain:
        """The model's domain, without refusals: an outcome that it does not describe counts as withheld."""
        return replace(self.base.domain, usable=self.base.describes)

    def check(self, design: Design) -> None:
        low, high = self._ends(design)
        model = self._centred(design)
        mean, deviation = model.prior.moments(design)
        apart = np.maximum(low[:-1] - mean, mean - high[:-1]) / (deviation * low[-1])
        if apart.max() > _FARTHEST:
            raise SettingError(
                f"Strict: the prior lies more than {_FARTHEST:g} of its standard deviations away from the "
                f"box's side of '{design.columns[int(np.argmax(apart))]}'. Leave it out: by default it "
                "is centred on the box."
            )
        model.check(design)

    def oscillation(self, design: Design) -> PerRecord:
        """o_i = sup f_i − inf f_i over the box, exactly but for a rounding outward.

        The residual ranges over an interval found at the corners of the coefficients' sides. f falls with
        |r|, and in σ it rises up to σ = |r| and falls after: the infimum is at the largest |r| and an end of
        σ, the supremum at the smallest |r| and σ = |r| clipped into its side.
        """
        low, high = self._ends(design)
        response = self.base.response(design.values)
        corners = design.matrix * low[:-1], design.matrix * high[:-1]
        corner_low, corner_high = np.minimum(*corners).sum(axis=1), np.maximum(*corners).sum(axis=1)
        ends = np.abs(response - corner_low), np.abs(response - corner_high)
        largest = np.maximum(*ends)
        crosses = (corner_low <= response) & (response <= corner_high)
        smallest = np.where(crosses, 0.0, np.minimum(*ends))
        sigma_low, sigma_high = self.box["sigma"]
        infimum = np.minimum(_kernel(largest, sigma_low), _kernel(largest, sigma_high))
        supremum = _kernel(smallest, np.clip(smallest, sigma_low, sigma_high))
        size = np.abs(infimum) + np.abs(supremum) + 1.0
        return np.asarray(supremum - infimum + OUTWARD * size, dtype=np.float64)

    def public_risk(self, design: Design) -> Risk:
        oscillation = self.oscillation(design)
        return Risk(-oscillation, np.zeros_like(oscillation))

    def sample(self, design: Design, power: PerRecord, *, draws: int, key: Key) -> Sample:
        posterior = self._centred(design).posterior(design, power)
        kept: list[tuple[Array, Array]] = []
        found = proposed = 0
        batch = max(1000, draws)
        # Draws of the whole posterior are quickest while enough of them fall into the box. How many did so
        # says nothing about where they are, so that changing over keeps the law of the draws.
        while found < draws and found >= _ENOUGH * proposed:
            some = posterior.draw(batch, key.child(proposed))
            inside = np.flatnonzero(self._inside(design, some))
            kept.append((some.beta[inside], some.sigma[inside]))
            found, proposed = found + len(inside), proposed + batch
            batch = min(2 * batch, 200_000)
        if found < draws:
            low, high = self._ends(design)
            rest = BoxSampler.of(posterior, low=low, high=high).draw(draws - found, key.child("box"))
            kept.append((rest.beta, rest.sigma))
        beta, sigma = (np.concatenate(parts)[:draws] for parts in zip(*kept, strict=True))
        health = Health(sampler="exact rejection", independent=True, effective_draws=float(draws))
        return Sample({"beta": beta, "sigma": sigma}, health)

    def free(self, design: Design, parameters: Parameters) -> Array:
        return self.base.free(design, parameters)

    def natural(self, design: Design, free: Array) -> Parameters:
        # log and exp round: a side's end must come back as itself.
        found = self.base.natural(design, free)
        return {"beta": found["beta"], "sigma": np.asarray(np.clip(found["sigma"], *self.box["sigma"]))}

    def centre(self, design: Design, power: PerRecord, *, key: Key) -> Array:
        """The mean over draws in the box; the box moves it away from the closed form."""
        drawn = self.sample(design, power, draws=_CENTRE_DRAWS, key=key).parameters
        return np.append(drawn["beta"].mean(axis=0), np.log(drawn["sigma"]).mean())

    def within(self, design: Design, free: Array) -> Array:
        """Clipped into the box."""
        ends = self._ends(design)
        ends[:, -1] = np.log(ends[:, -1])
        return np.clip(free, *ends)

    def acceptance(self, design: Design, power: PerRecord, *, key: Key) -> float:
        """The share of the posterior without a box that lies in it; confidential."""
        some = self._centred(design).posterior(design, power).draw(4000, key)
        return float(self._inside(design, some).mean())

    def edge_mass(self, parameters: Parameters, design: Design) -> float:
        """Share of draws in the outer 2 % of some side; confidential. Near 1 the box decides."""
        low, high = self._ends(design)
        place = (np.column_stack([parameters["beta"], parameters["sigma"]]) - low) / (high - low)
        return float(((place < _EDGE) | (place > 1 - _EDGE)).any(axis=1).mean())

    def _ends(self, design: Design) -> Array:
        """The lower and the upper ends of the coefficients' sides and of sigma's."""
        check_sigma(design, "Strict")
        wanted = [*design.columns, "sigma"]
        missing = [name for name in wanted if name not in self.box]
        unknown = [name for name in self.box if name not in wanted]
        if missing or unknown:
            raise SettingError(
                f"Strict: the box must name {', '.join(wanted)}; missing {', '.join(missing) or 'none'}, "
                f"unknown {', '.join(unknown) or 'none'}."
            )
        return np.array([self.box[name] for name in wanted]).T

    def _centred(self, design: Design) -> Regression:
        """The base model, its default prior moved onto the box: half a side is one standard deviation."""
        if not self.default_prior:
            return self.base
        low, high = self.box["sigma"]
        sides = {name: ((a + b) / 2, (b - a) / 2) for name, (a, b) in self.box.items() if name != "sigma"}
        prior = Prior(residual=float(np.sqrt(low * high)), residual_df=2.0, coefficients=sides)
        return replace(self.base, prior=prior)

    def _inside(self, design: Design, draws: Draws) -> PerDraw:
        low, high = self._ends(design)
        sides = np.column_stack([draws.beta, draws.sigma])
        return np.asarray(((sides >= low) & (sides <= high)).all(axis=1))


@dataclass(frozen=True)
class BoxedChain(PublicRisk, Chain):
    """Several columns, each with a box of its own: a row oscillates by the sum o_i = Σ_j o_ij of its columns.

    A row of power α_i may move the posterior by α_i o_i. One power for all its columns would starve a row for
    one wild cell. Instead there is a level c_i with Σ_j min(o_ij, c_i) = α_i o_i, and column j has the power
    min(1, c_i/o_ij): a function of the row and public things, never below that of an equal split.
    """

    def oscillations(self, design: Design) -> Array:
        """o_ij, a row a record; 0 for a value that is missing, which moves nothing."""
        columns = [
            zero_missing(link, model.oscillation(link))
            if isinstance(model, Boxed)
            else np.zeros(link.records)
            for model, link, _ in self.links(design)
        ]
        return np.column_stack(columns)

    def public_risk(self, design: Design) -> Risk:
        total = self.oscillations(design).sum(axis=1)
        return Risk(-total, np.zeros_like(total))

    def by_link(self, design: Design, power: PerRecord) -> list[PerRecord]:
        return list(share_by_level(self.oscillations(design), power).T)

    def extremes(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> Extremes:
        """Extremes of Σ_j α_ij f_ij, where a form without mass gives the rows their power."""
        if not isinstance(sensitive, Linear) or sensitive.uses_mass:
            raise SettingError("Strict: a box of parameters takes no range.")
        powers = self.by_link(design, sensitive.density)
        low, high = np.empty(design.records), np.empty(design.records)
        for records in blocks(design.records, count_draws(parameters)):
            total = sum(
                zero_missing(link, power)[records] * model.log_lik(link, own, records)
                for (model, link, own), power in zip(self.links(design, parameters), powers, strict=True)
            )
            low[records], high[records] = np.min(total, axis=0), np.max(total, axis=0)
        return Extremes(low, high).shifted(sensitive.constant)

    def mean_mass(self, design: Design, parameters: Parameters, interval: Interval) -> PerRecord:
        return np.ones(design.records)

    def edge_mass(self, parameters: Parameters, design: Design) -> float:
        """The largest of its columns'; confidential."""
        links = self.links(design, parameters)
        return max(model.edge_mass(own, link) for model, link, own in links if isinstance(model, Boxed))

    def acceptance(self, design: Design, power: PerRecord, *, key: Key) -> float:
        """The share of the posterior without boxes that lies in all of them; confidential."""
        return float(
            np.prod(
                [
                    model.acceptance(link, zero_missing(link, own), key=key.child(place))
                    for place, ((model, link, _), own) in enumerate(
                        zip(self.links(design), self.by_link(design, power), strict=True)
                    )
                    if isinstance(model, Boxed)
                ]
            )
        )


def share_by_level(oscillations: Array, power: PerRecord) -> Array:
    """Powers α_ij = min(1, c_i/o_ij) with Σ_j α_ij o_ij = power_i Σ_j o_ij, rounded down."""
    ordered = np.sort(oscillations, axis=1)
    below = np.cumsum(ordered, axis=1) - ordered  # of those that come before
    left = ordered.shape[1] - np.arange(ordered.shape[1])
    levels = (power[:, None] * ordered.sum(axis=1)[:, None] - below) / left
    fits = levels <= ordered  # the first that does is the level; none where the whole row may speak
    level = np.where(fits.any(axis=1), np.where(fits, levels, -np.inf).max(axis=1), np.inf)
    with np.errstate(all="ignore"):
        shared = level[:, None] * (1 - 1e-12) / oscillations
    return np.where(oscillations > 0, np.clip(shared, 0.0, 1.0), 1.0)


@dataclass(frozen=True)
class StrictWeights(Weights):
    """α_i = min(1, ε/o_i): each weight depends on its own record and public things alone."""

    epsilon: float

    def alpha(self, evidence: Evidence) -> PerRecord:
        # A last-digit step down, so that α_i · o_i does not round above ε.
        return np.minimum(1.0, self.epsilon * (1 - 1e-15) / evidence.risk.oscillation)


def _kernel(residual: Array, sigma: Array | float) -> Array:
    """log N(r; 0, σ²) without its constant."""
    return np.asarray(-np.log(sigma) - residual**2 / (2 * np.square(sigma)), dtype=np.float64)
