"""What a fit found: prices, by-record values, utility, audit. Confidential, all of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.arrays import Mask, PerRecord
from hedgerow.errors import NotFittedError, SettingError, is_count
from hedgerow.evidence.utility import compare_copies
from hedgerow.inference.intervals import Intervals, intervals
from hedgerow.mechanism.copies import Sampling, uniforms
from hedgerow.mechanism.debias import Corrected, Public, corrected, kept_inside, public_draw, public_inputs
from hedgerow.mechanism.price import BOUNDS, SUPREMA
from hedgerow.mechanism.steps import Outcome, Recipe, Start
from hedgerow.models.base import Health, Parameters
from hedgerow.privacy.guarantee import Release
from hedgerow.privacy.standards import WITHHELD
from hedgerow.privacy.strict import Boxed
from hedgerow.randomness import Key
from hedgerow.tables.table import Table

if TYPE_CHECKING:
    from hedgerow.evidence.attack import Attack
    from hedgerow.evidence.audit import Audit
    from hedgerow.evidence.more_draws import Outlook

_HIGH_LEVERAGE = 0.9
_SOME_INFLUENCE = 0.05  # with less leverage and pull everywhere, the draws cover what withholding does


@dataclass(frozen=True, repr=False)
class Fitted:
    """A finished fit with the settings it was made under: what is released and claimed comes from here."""

    recipe: Recipe
    epsilon: float | None  # target over all copies
    copies: int
    seeded: bool
    left_out: tuple[str, ...]  # columns read but not released
    key: Key
    start: Start
    outcome: Outcome
    scale: float
    sampling: Sampling = "independent"
    debias: bool = False

    @property
    def target(self) -> float | None:
        """What calibration held one copy against; none without a target, nor for weights that carry it."""
        unscaled = self.epsilon is None or self.recipe.bound in SUPREMA
        return None if unscaled else per_copy(self.epsilon or 0.0, self.copies)

    @cached_property
    def released(self) -> tuple[Corrected, ...]:
        """The draws behind the copies, one each, corrected if the plan said so."""
        fit, key = self.outcome.fit, self.key.child("release")
        order = np.argsort(key.child("draws").stream().uniform(fit.draws))[: self.copies]
        draws = [public_draw(fit.parameters, int(draw)) for draw in order]
        if not self.debias:
            return tuple(Corrected(draw, False, 0) for draw in draws)
        correct = key.child("correct")
        return tuple(corrected(self.public(draw, correct.child(number))) for number, draw in enumerate(draws))

    def public(self, draw: Parameters, key: Key) -> Public:
        """What work on a released draw may know, in memory that holds nothing else."""
        recipe, design, table = public_inputs(self.recipe, self.start.design, self.start.table)
        return Public(draw, design, table, recipe, self.target, key)

    def intervals(self, *, level: float, tables: int) -> Intervals:
        """Where the parameters lie, from the released draws and public things alone."""
        key = self.key.child("release").child("intervals")
        return intervals(
            self.public(self.released[0].parameters, key), self.released, level=level, tables=tables
        )

    def predicted(self) -> list[PerRecord]:
        """The synthetic outcomes, copy by copy."""
        model, design = self.recipe.model, self.start.design.blank()  # predictions are public things' alone
        key = self.key.child("release").child("predict")
        found = []
        for number, draw in enumerate(self.released):
            noise = uniforms(self.sampling, model, design, draw.parameters, key=key.child(number))
            values = model.predict(design, draw.parameters, noise)
            if draw.converged:
                inside = key.child(number).child("inside")
                values, _ = kept_inside(self.public(draw.parameters, inside), draw.parameters, values, inside)
            found.append(values)
        return found

    def __repr__(self) -> str:
        return f"Fitted({self.outcome.fit!r})"


def per_copy(epsilon: float, copies: int) -> float:
    """epsilon/copies, rounded down so that the copies together never exceed epsilon."""
    target = epsilon / copies
    return target if target * copies <= epsilon else float(np.nextafter(target, 0.0))


class Results:
    """The attributes a synthesizer has after `fit`; every one is computed from the confidential data."""

    _fitted: Fitted | None

    def sample(self) -> Release:
        """The release."""
        raise NotFittedError("Not fitted yet: call fit(data) first.")

    def to_arviz(self, *, log_likelihood: bool = False) -> Any:
        """The certified fit's draws as an ArviZ InferenceData; confidential."""
        return self._need().outcome.fit.to_arviz(log_likelihood=log_likelihood)

    def utility(self) -> Any:
        """How the copies compare with the confidential outcome: tidy, and confidential."""
        return self.like(self.utility_columns())

    def utility_columns(self) -> dict[str, list[object]]:
        """The columns of `utility`."""
        design = self._need().start.design
        return compare_copies(design.values, self.copied_outcomes())

    def like(self, columns: Mapping[str, Any]) -> Any:
        """A dataframe of the kind that was fitted."""
        return self._need().start.table.like(columns)

    def audit(self, *, riskiest: int | None = None, sample: int | None = None) -> "Audit":
        """Leave-one-out privacy loss against the price of one copy (`hedgerow.evidence.audit`).

        Exact for the exact models. For others an estimate by importance weights, which cannot certify;
        weights are then recomputed only for as many records as asked for, since each takes a Markov chain.
        """
        from hedgerow.evidence.audit import audit

        fitted = self._need()
        return audit(
            fitted.recipe,
            fitted.start,
            fitted.outcome,
            epsilon=fitted.outcome.epsilon,
            scale=fitted.scale,
            key=fitted.key,
            riskiest=riskiest,
            sample=sample,
        )

    def attack(self, record: int | None = None, *, trials: int = 2000, confidence: float = 0.95) -> "Attack":
        """A membership attack on one outcome through single copies, for exact models (`evidence.attack`).

        `record` is the one of the largest oscillation by default. The table without its outcome is put
        through the whole procedure, weights included. ε is held against the target of one copy or, without a
        target and for range standards, against the price with the outcome withheld.
        """
        from hedgerow.evidence.attack import attack
        from hedgerow.evidence.audit import without

        fitted = self._need()
        recipe, outcome = fitted.recipe, fitted.outcome
        withheld = outcome.pricing.withheld
        chosen = int(np.argmax(withheld.by_record("oscillation"))) if record is None else record
        if not is_count(chosen) or not 0 <= chosen < fitted.start.design.records:
            raise SettingError(f"record must be a row between 0 and {fitted.start.design.records - 1}.")
        own = fitted.epsilon is not None and recipe.standard.neighbour == WITHHELD
        claimed = withheld.epsilon("lipschitz" if recipe.bound in SUPREMA else recipe.bound)
        if own and fitted.epsilon is not None:
            claimed = fitted.epsilon / fitted.copies
        alone = fitted.start.fit is None  # each weight depends on its own record: the others stay
        return attack(
            recipe.model,
            fitted.start.design,
            outcome.fit.power,
            chosen,
            claimed=claimed,
            key=fitted.key.child("attack"),
            trials=trials,
            confidence=confidence,
            without=None if alone else without(recipe, fitted.start, chosen, fitted.scale, fitted.key),
        )

    def outlook(self) -> "Outlook":
        """How the Lipschitz price would move with more draws (`hedgerow.evidence.more_draws`)."""
        from hedgerow.evidence.more_draws import outlook

        standard = self._need().recipe.standard
        if self._need().recipe.bound in SUPREMA:
            raise SettingError(f"{standard.label}: the price does not depend on draws. See total_epsilon_.")
        return outlook(self._need().outcome.pricing)

    @property
    def epsilon_(self) -> float:
        """Price of one copy under the chosen bound."""
        return self._need().outcome.epsilon

    @property
    def total_epsilon_(self) -> float:
        """Price of all copies under the chosen bound."""
        return self._need().copies * self.epsilon_

    @property
    def lipschitz_epsilon_(self) -> float:
        """Price of one copy under the Lipschitz bound."""
        return self._need().outcome.pricing.epsilon("lipschitz")

    @property
    def oscillation_epsilon_(self) -> float:
        """Price of one copy under the oscillation bound."""
        return self._need().outcome.pricing.epsilon("oscillation")

    @property
    def exact_epsilon_(self) -> float:
        """Price of one copy by the exact privacy loss; absent where that has no closed form."""
        fitted = self._need()
        pricing = fitted.outcome.pricing
        if not pricing.has("exact"):
            raise AttributeError(
                f"exact_epsilon_: the neighbour of {fitted.recipe.standard.label} has no closed form with "
                f"the {fitted.recipe.model.name} model. See oscillation_epsilon_ and withheld_epsilon_."
            )
        return pricing.epsilon("exact")

    @property
    def withheld_epsilon_(self) -> dict[str, float]:
        """By bound: the price of one copy when x_i is withheld altogether."""
        withheld = self._need().outcome.pricing.withheld
        return {bound: withheld.epsilon(bound) for bound in BOUNDS if withheld.has(bound)}

    @property
    def certified_epsilon_(self) -> float:
        """The number the draw-based statement holds for: at least `epsilon_`, at most the target per copy."""
        return self._need().outcome.certified

    @property
    def acceptance_(self) -> float:
        """Under `Strict`: the share of proposals that fell into the box."""
        fitted, model = self._need(), self._boxed("acceptance_")
        key = fitted.key.child("acceptance")
        return model.acceptance(fitted.start.design, fitted.outcome.fit.power, key=key)

    @property
    def edge_mass_(self) -> float:
        """Under `Strict`: the share of draws at the edge of the box. Near 1 the box decides, not the data."""
        fitted, model = self._need(), self._boxed("edge_mass_")
        return model.edge_mass(fitted.outcome.fit.parameters, fitted.start.design)

    def _boxed(self, name: str) -> Boxed:
        model = self._need().recipe.model
        if not isinstance(model, Boxed):
            raise AttributeError(f"{name}: only a fit under Strict has a box.")
        return model

    @property
    def health_(self) -> Health:
        """R-hat, effective draws and divergences of the certified fit."""
        return self._need().outcome.fit.health

    @property
    def sensitivity_(self) -> float:
        """Δ: the largest |d| over draws and records."""
        return float(self._need().outcome.pricing.sensitivity.max())

    @property
    def lipschitz_(self) -> PerRecord:
        """max_s |d[s,i]|: the by-record values of the paper's violins."""
        return self._need().outcome.pricing.sensitivity

    @property
    def prices_(self) -> dict[str, PerRecord]:
        """By record and bound, then with x_i withheld (names that start with `withheld_`)."""
        pricing = self._need().outcome.pricing
        own = {bound: pricing.by_record(bound) for bound in BOUNDS if pricing.has(bound)}
        withheld = pricing.withheld
        return own | {f"withheld_{b}": withheld.by_record(b) for b in BOUNDS if withheld.has(b)}

    @property
    def scale_(self) -> float:
        """The factor on the weights that calibration found; 1 without a target."""
        return self._need().scale

    @property
    def risk_(self) -> PerRecord:
        """By-record risk under the unweighted fit, of the kind the weights use."""
        return self._need().start.risk.of(getattr(self._need().recipe.weights, "risk", "lipschitz"))

    @property
    def alpha_(self) -> PerRecord:
        """α_i, the weights, calibration included."""
        return self._need().outcome.weighted.alpha

    @property
    def power_(self) -> PerRecord:
        """α*_i, the exponent on each record's likelihood."""
        return self._need().outcome.fit.power

    @property
    def known_(self) -> PerRecord:
        """λ_i; zero for standards that do not use it."""
        return self._need().outcome.weighted.known

    @property
    def outcome_name(self) -> str:
        """The protected column."""
        return self._need().start.design.outcome

    def copied_outcomes(self) -> list[PerRecord]:
        """The copies of the protected column as numbers, or the places of its labels."""
        design = self._need().start.design
        return [Table.of(copy).outcome(design.outcome, design.levels) for copy in self.sample().tables]

    @property
    def outcome_(self) -> PerRecord:
        """The confidential outcome itself."""
        return self._need().start.design.values

    @property
    def records_(self) -> Any:
        """By record: risk, alpha, power, known, price under the chosen bound, share of the largest price."""
        fitted = self._need()
        price = fitted.outcome.pricing.by_record(self._need().recipe.bound)
        largest = price.max()
        return self.like(
            {
                "record": np.arange(len(price)),
                "risk": self.risk_,
                "alpha": self.alpha_,
                "power": self.power_,
                "known": self.known_,
                "price": price,
                "share": price / largest if largest > 0 else np.zeros_like(price),
            }
        )

    @property
    def by_draws_(self) -> Any:
        """How each bound moved as the number of draws doubled."""
        fitted = self._need()
        steps = fitted.outcome.pricing.by_draws
        columns: dict[str, list[float]] = {"draws": [count for count, _ in steps]}
        for bound in BOUNDS:
            if fitted.outcome.pricing.has(bound):
                columns[bound] = [price.epsilon(bound) for _, price in steps]
        return self.like(columns)

    @property
    def flagged_(self) -> Any:
        """Records for which a draw-based bound cannot be trusted: they decide too much of their own fit."""
        pricing = self._need().outcome.pricing
        rows = np.flatnonzero(self._untrusted())
        columns: dict[str, Any] = {"record": rows}
        if self._need().recipe.bound in SUPREMA:
            return self.like(columns)
        if pricing.influence is None:
            columns |= {
                "pareto_k": pricing.importance.pareto_k[rows],
                "oscillation": pricing.withheld.by_record("oscillation")[rows],
            }
        else:
            columns |= {
                "leverage": pricing.influence.leverage[rows],
                "oscillation": pricing.withheld.by_record("oscillation")[rows],
                "exact": pricing.withheld.by_record("exact")[rows],
            }
        return self.like(columns)

    def _untrusted(self) -> Mask:
        pricing = self._need().outcome.pricing
        if self._need().recipe.bound in SUPREMA:  # rests on no draws
            return np.zeros(len(self.power_), dtype=np.bool_)
        if pricing.influence is None:
            return pricing.importance.untrusted
        leverage, pull = pricing.influence.leverage, pricing.influence.pull
        flagged = leverage > _HIGH_LEVERAGE
        if not (np.maximum(leverage, pull) <= _SOME_INFLUENCE).all():
            withheld = pricing.withheld
            flagged |= withheld.by_record("exact") > withheld.by_record("oscillation")
        return flagged

    def _need(self) -> Fitted:
        if self._fitted is None:
            raise NotFittedError("Not fitted yet: call fit(data) first.")
        return self._fitted
