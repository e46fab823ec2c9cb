"""The mechanism, step by step, for weights held fixed (docs/maths.md, "The mechanism").

1. fit unweighted; 2. risks; 3. weights; 4. what is known (λ); 5. refit with each record's likelihood
raised to its power; 6. price from those new draws. Synthesis then uses draws of that very fit.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from hedgerow.arrays import PerRecord
from hedgerow.errors import SettingError
from hedgerow.mechanism.fit import Fit, fit
from hedgerow.mechanism.price import SUPREMA, Bound, Pricing, Statement, extremes_of_log_lik, statement
from hedgerow.models.base import Model
from hedgerow.models.scored import Interval, Risk, Sensitive
from hedgerow.models.wrapped import Restricted
from hedgerow.privacy.ranges import Everywhere
from hedgerow.privacy.sensitive import sensitive_part
from hedgerow.privacy.standards import Standard
from hedgerow.privacy.weights import Evidence, Weights, checked_alpha
from hedgerow.randomness import Key
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table

Known = Literal["exact", "simulated"]


@dataclass(frozen=True)
class Recipe:
    """Everything the procedure is told before it sees the outcome; public."""

    model: Model
    standard: Standard
    weights: Weights
    bound: Bound
    draws: int
    known: Known


@dataclass(frozen=True, repr=False)
class Start:
    """The unweighted fit and its risks, shared by all standards; confidential."""

    table: Table
    design: Design
    fit: Fit | None  # none where the risk is public and needs no fit
    risk: Risk

    def __repr__(self) -> str:
        return f"Start({self.design.records} records, confidential)"


@dataclass(frozen=True, repr=False)
class Weighted:
    """Weights and beliefs, before the second fit; confidential."""

    alpha: PerRecord
    known: PerRecord
    interval: Interval

    def scaled(self, scale: float) -> "Weighted":
        """The same with every weight multiplied by scale."""
        return Weighted(scale * self.alpha, self.known, self.interval)

    def __repr__(self) -> str:
        return f"Weighted({len(self.alpha)} records, confidential)"


@dataclass(frozen=True, repr=False)
class Outcome:
    """The second fit with its price: the one that is released; confidential."""

    weighted: Weighted
    fit: Fit
    pricing: Pricing
    statement: Statement
    epsilon: float  # of one copy under the recipe's bound
    certified: float  # the number the draw-based statement holds for; at least epsilon

    def __repr__(self) -> str:
        return f"Outcome({self.fit!r})"


def begin(model: Model, table: Table, design: Design, *, draws: int, key: Key) -> Start:
    """Steps 1 and 2."""
    model.check(design)
    if isinstance(model, Restricted):
        return Start(table, design, None, model.public_risk(design))
    unweighted = fit(model, design, np.ones(design.records), draws=draws, key=key.child("unweighted"))
    nowhere = Everywhere().interval(design.values, table)
    return Start(table, design, unweighted, Risk.from_extremes(extremes_of_log_lik(unweighted, nowhere)))


def weigh(recipe: Recipe, start: Start, *, key: Key) -> Weighted:
    """Steps 3 and 4."""
    if recipe.bound in SUPREMA and start.fit is not None:
        raise SettingError(
            f"{recipe.standard.label}: its weights rest on the risk that its restricted model makes public, "
            "and these risks come from the draws of a fit. Begin with the recipe's own model."
        )
    interval = recipe.standard.range.interval(start.design.values, start.table)
    known = _known(recipe, start, interval, key.child("known"))
    records = start.design.records
    if not recipe.standard.weighted:
        return Weighted(np.ones(records), known, interval)
    refits = iter(range(1000))

    def refit(alpha: PerRecord) -> PerRecord:
        trial = key.child("reweight").child(next(refits))
        second, part = _refit(recipe, start, Weighted(alpha, known, interval), trial)
        return second.absolute(part, interval)

    evidence = Evidence(start.risk, start.design.values, start.table, refit)
    return Weighted(checked_alpha(recipe.weights, evidence), known, interval)


def run(recipe: Recipe, start: Start, weighted: Weighted, *, key: Key, tries: int = 1) -> Outcome:
    """Steps 5 and 6, from fresh draws."""
    second, part = _refit(recipe, start, weighted, key)
    pricing = Pricing(second, part, weighted.interval)
    if not pricing.has(recipe.bound):
        raise SettingError(
            f"bound='exact' has no closed form for {type(recipe.standard).__name__} with the "
            f"{second.model.name} model. Use bound='oscillation', and read withheld_epsilon_ beside it: for "
            "the normal and lognormal models withheld_epsilon_['exact'] is the exact price with x_i withheld."
        )
    epsilon = certified = pricing.epsilon(recipe.bound)
    if recipe.bound == "oscillation":
        # max − min is two numbers per draw; about centres fixed beforehand it is one, and can be certified.
        pilot, _ = _refit(recipe, start, weighted, key.child("pilot"))
        seen = pilot.extremes(part, weighted.interval)
        certified = pricing.own.centred((seen.low + seen.high) / 2)
    stated = statement(recipe.bound, second, tries=tries)
    return Outcome(weighted, second, pricing, stated, epsilon, certified)


def trial_price(recipe: Recipe, start: Start, weighted: Weighted, *, key: Key) -> float:
    """The number a target would be held against, for a fit that is thrown away."""
    if recipe.bound != "lipschitz":
        return run(recipe, start, weighted, key=key).certified
    trial, part = _refit(recipe, start, weighted, key)
    return float(2 * trial.absolute(part, weighted.interval).max())


def power_of(recipe: Recipe, weighted: Weighted) -> PerRecord:
    """α*_i, the exponent on each record's likelihood; 1 for records that are taken as public."""
    inside = weighted.interval.inside
    power = np.where(inside, recipe.standard.power(weighted.alpha, weighted.known), 1.0)
    if not (np.isfinite(power) & (power >= 0)).all():
        raise SettingError(
            f"{type(recipe.standard).__name__}.power gave values that are negative or not finite; "
            "powers must be numbers from 0 up."
        )
    return power


def _refit(recipe: Recipe, start: Start, weighted: Weighted, key: Key) -> tuple[Fit, Sensitive]:
    power = power_of(recipe, weighted)
    part = sensitive_part(recipe.standard, weighted.alpha, weighted.known, weighted.interval)
    return fit(recipe.model, start.design, power, draws=recipe.draws, key=key), part


def _known(recipe: Recipe, start: Start, interval: Interval, key: Key) -> PerRecord:
    """λ_i, the probability that a fresh value falls outside record i's range."""
    records = start.design.records
    if not recipe.standard.uses_known or interval.whole:
        return np.zeros(records)
    if start.fit is None:
        raise SettingError(
            f"{recipe.standard.label} needs an unweighted fit, which this model does not have."
        )
    if recipe.known == "exact":
        return np.clip(1 - start.fit.mean_mass(interval), 0, 1)
    outside = np.zeros(records)
    stream = key.stream()
    for draw in range(start.fit.draws):
        fresh = start.fit.predict(draw, stream.uniform(records))
        outside += (fresh < interval.lower) | (fresh > interval.upper)
    return outside / start.fit.draws
