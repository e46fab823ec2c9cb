"""Leave-one-out privacy loss: what withholding one outcome does to the posterior (docs/maths.md, "Audit").

With weights fixed the loss is known in closed form for every record. With weights recomputed the whole
procedure is run again without the record's outcome, and the loss is the log ratio of the two posterior
densities, both exact. An audit bounds the loss from below: it looks at the data at hand, at some records and
at finitely many draws. A loss above the stated price is a finding, and is reported as one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.axes import PerDraw, PerRecord
from hedgerow.errors import SettingError
from hedgerow.fit import fit
from hedgerow.keys import Key
from hedgerow.mechanism import Outcome, Recipe, Start
from hedgerow.models.base import blocks
from hedgerow.models.regression import Posterior, Regression
from hedgerow.numerics.scoring import Draws
from hedgerow.price import extremes_of_log_lik
from hedgerow.ranges import Everywhere
from hedgerow.risk import risk_from
from hedgerow.weights import Evidence, checked_alpha


@dataclass(frozen=True, repr=False)
class Audit:
    """Losses about records, x_i withheld; confidential.

    `fixed` holds max_s |L_i| for every record with weights fixed and `delta` the matching δ_i(ε). `chosen`
    names the records for which weights were recomputed, `recomputed` and `recomputed_delta` their losses.
    """

    epsilon: float  # the price of one copy that losses are held against
    fixed: PerRecord
    delta: PerRecord
    chosen: NDArray[np.int64]
    recomputed: PerRecord
    recomputed_delta: PerRecord

    @property
    def largest_fixed(self) -> float:
        """The largest loss found with weights fixed."""
        return float(self.fixed.max())

    @property
    def largest_recomputed(self) -> float:
        """The largest loss found with weights recomputed."""
        return float(self.recomputed.max())

    @property
    def breaches(self) -> NDArray[np.int64]:
        """Records whose loss exceeded the stated price, with weights fixed or recomputed."""
        fixed = np.flatnonzero(self.fixed > self.epsilon)
        return np.union1d(fixed, self.chosen[self.recomputed > self.epsilon])

    def columns(self) -> dict[str, Any]:
        """Tidy columns, a row a record: losses and δ; NaN where weights were not recomputed."""
        again, again_delta = np.full(len(self.fixed), np.nan), np.full(len(self.fixed), np.nan)
        again[self.chosen], again_delta[self.chosen] = self.recomputed, self.recomputed_delta
        return {
            "record": np.arange(len(self.fixed)),
            "loss_fixed": self.fixed,
            "delta_fixed": self.delta,
            "loss_recomputed": again,
            "delta_recomputed": again_delta,
            "breach": (self.fixed > self.epsilon) | (again > self.epsilon),
        }

    def __str__(self) -> str:
        found = len(self.breaches)
        lines = [
            "hedgerow audit (confidential)",
            "",
            f"  stated price of one copy:           {self.epsilon:.3f}",
            f"  largest loss, weights fixed:        {self.largest_fixed:.3f}  ({len(self.fixed)} records)",
            f"  largest loss, weights recomputed:   {self.largest_recomputed:.3f}  "
            f"({len(self.chosen)} records)",
            "",
            f"Finding: the loss about {found} records exceeds the stated price."
            if found
            else "No loss above the stated price was found.",
            "An audit bounds the loss from below: other records, draws or data may show a larger one.",
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Audit({len(self.fixed)} records, {len(self.chosen)} with weights recomputed, confidential)"


def audit(
    recipe: Recipe,
    start: Start,
    outcome: Outcome,
    *,
    epsilon: float,
    scale: float,
    key: Key,
    riskiest: int = 20,
    sample: int = 10,
) -> Audit:
    """Audit a fit of an exact model. `key` is the one the procedure ran with: common random numbers."""
    model = recipe.model
    if not isinstance(model, Regression):
        raise SettingError(
            f"An exact audit needs a model with a closed form (normal or lognormal), not {model.name}."
        )
    if riskiest < 0 or sample < 0:
        raise SettingError(f"riskiest and sample must be counts, got {riskiest} and {sample}.")
    fixed, delta = _fixed(outcome, epsilon)
    chosen = _choose(start, outcome, riskiest, sample, key.child("audit"))
    losses, deltas = [], []
    draws = Draws(outcome.fit.parameters["beta"], outcome.fit.parameters["sigma"])
    posterior = model.posterior(start.design, outcome.fit.power)
    for record in chosen:
        other = _without(recipe, model, start, int(record), scale, key)
        here = posterior.log_density(draws) - other.log_density(draws)
        fresh = other.draw(len(draws), key.child("audit").child(int(record)))
        there = posterior.log_density(fresh) - other.log_density(fresh)
        losses.append(float(np.abs(here).max()))
        deltas.append(max(_excess(here, epsilon), _excess(-there, epsilon)))
    return Audit(epsilon, fixed, delta, chosen, np.array(losses), np.array(deltas))


def _fixed(outcome: Outcome, epsilon: float) -> tuple[PerRecord, PerRecord]:
    """max |L| and δ(ε) with weights fixed; draws from the other posterior by importance weights."""
    withheld = outcome.pricing.withheld
    constant = withheld.constant
    if constant is None:
        raise SettingError("The fit has no closed form without a record.")
    delta = np.empty(len(constant))
    for records in blocks(len(constant), outcome.fit.draws):
        loss = outcome.fit.power[records] * outcome.fit.log_lik(records) - constant[records]
        with np.errstate(over="ignore"):
            forward = np.maximum(-np.expm1(epsilon - loss), 0.0).mean(axis=0)
            backward = np.maximum(np.exp(-loss) - np.exp(epsilon), 0.0).mean(axis=0)
        delta[records] = np.clip(np.maximum(forward, backward), 0.0, 1.0)
    return withheld.by_record("exact"), delta


def _excess(loss: PerDraw, epsilon: float) -> float:
    """E (1 − e^{ε − L})₊."""
    with np.errstate(over="ignore"):
        return float(np.maximum(-np.expm1(epsilon - loss), 0.0).mean())


def _choose(start: Start, outcome: Outcome, riskiest: int, sample: int, key: Key) -> NDArray[np.int64]:
    """The records with the largest risk, the largest fixed loss, and a random sample of the rest."""
    records = start.design.records
    by_risk = np.argsort(-start.risk.lipschitz, kind="stable")[: (riskiest + 1) // 2]
    by_loss = np.argsort(-outcome.pricing.withheld.by_record("exact"), kind="stable")[: riskiest // 2]
    order = np.argsort(key.child("sample").stream().uniform(records))[:sample]
    return np.unique(np.concatenate([by_risk, by_loss, order])).astype(np.int64)


def _without(
    recipe: Recipe, model: Regression, start: Start, record: int, scale: float, key: Key
) -> Posterior:
    """The posterior of the whole procedure without one outcome, at the same scale of the weights."""
    design = start.design
    present = np.arange(design.records) != record
    ones = present.astype(np.float64)
    unweighted = fit(model, design, ones, draws=recipe.draws, key=key.child("unweighted"))
    nowhere = Everywhere().interval(design.values, start.table)
    whole = risk_from(extremes_of_log_lik(unweighted, nowhere))
    rest = start.table.rows_where(present)
    values = design.values[present]
    interval = recipe.standard.range.interval(values, rest)
    known = np.zeros(len(values))
    if recipe.standard.uses_known and not interval.whole:
        everyone = recipe.standard.range.interval(design.values, start.table)
        known = np.clip(1 - unweighted.mean_mass(everyone), 0, 1)[present]
    alpha = np.ones(len(values))
    if recipe.standard.weighted:
        evidence = Evidence(_part(whole, present), values, rest, _refuse)
        alpha = scale * checked_alpha(recipe.weights, evidence)
    power = np.zeros(design.records)
    power[present] = np.where(interval.inside, recipe.standard.power(alpha, known), 1.0)
    return model.posterior(design, power)


def _part(risk: Any, present: Any) -> Any:
    return type(risk)(risk.low[present], risk.high[present])


def _refuse(_: PerRecord) -> PerRecord:
    raise SettingError("Re-weighted weights cannot be recomputed record by record; audit the base weights.")


def summary(audits: Sequence[Audit]) -> dict[str, float]:
    """Over several audits: how many exceed the stated price, and by how much at worst."""
    ratios = np.array([one.largest_recomputed / one.epsilon for one in audits])
    return {"audits": len(ratios), "exceed": int((ratios > 1).sum()), "worst": float(ratios.max())}
