"""A finished fit (`Fitted`), and the attributes a synthesizer has because of it (`Results`). Confidential.

What may leave is made here once, as `Fitted.release`; everything else stays.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.arrays import Confidential, Mask, PerRecord
from hedgerow.errors import NotFittedError, SettingError, is_count
from hedgerow.evidence.attack import Attack, attack
from hedgerow.evidence.audit import Audit, audit
from hedgerow.evidence.more_draws import Outlook, outlook
from hedgerow.evidence.utility import compare_copies
from hedgerow.evidence.without import KEYS, claimed_epsilon, keys_and_powers, powers_without
from hedgerow.inference.intervals import TABLES, intervals
from hedgerow.inference.intervals import check as check_intervals
from hedgerow.mechanism.copies import predict_copies, released_draws
from hedgerow.mechanism.debias import Corrected, public_view
from hedgerow.mechanism.steps import Outcome, Start
from hedgerow.models.base import Health
from hedgerow.privacy.bounds import BY_DRAWS, EXACT, LIPSCHITZ, LOCAL, OSCILLATION, RENYI, prices
from hedgerow.privacy.guarantee import Guarantee, Release
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict import Boxed
from hedgerow.privacy.weights import Reweighted, moves_with_everyone
from hedgerow.randomness import Key
from hedgerow.tables.table import Table

_OVERRODE = "the sampler failed its health checks ({}) and the owner overrode them"
_HIGH_LEVERAGE = 0.9
_SOME_INFLUENCE = 0.05  # with less leverage and pull everywhere, the draws cover what withholding does
_AT_THE_EDGE = 0.5  # share of draws at the edge of a box from which the box decides
_DENSE = 0.1  # share of densities above 1 from which |f| is a doubtful risk


@dataclass(frozen=True, repr=False)
class Fitted(Confidential):
    """A finished fit with the settings it was made under: what is released and claimed comes from here."""

    settings: Settings
    start: Start
    outcome: Outcome
    scale: float
    key: Key
    seeded: bool
    left_out: tuple[str, ...]  # columns read but not released
    keep: tuple[str, ...] = ()  # columns released even if they give the outcome away

    @cached_property
    def released(self) -> tuple[Corrected, ...]:
        """The draws behind the copies, one each, corrected if the plan said so."""
        return released_draws(self.settings, self.start, self.outcome, key=self.key.child("release"))

    def variant(self, **changes: Any) -> "Fitted":
        """The same fit released in another way (`sampling`, `debias`); corrections are not made again."""
        other = replace(self, settings=replace(self.settings, **changes))
        if other.settings.debias == self.settings.debias:
            other.__dict__["released"] = self.released
        return other

    def predict(self) -> list[PerRecord]:
        """The synthetic outcomes, copy by copy, before they take the type of the confidential column."""
        return predict_copies(self.settings, self.start, self.released, key=self.key.child("release"))

    @cached_property
    def release(self) -> Release:
        """What may leave: typed copies and their guarantee, made once."""
        design, table = self.start.design, self.start.table
        name, domain = design.outcome, self.settings.model.domain
        tables = [
            table.drop(
                self.left_out,
                table.with_column(name, values, design.levels, domain.support, self.settings.written_as),
            )
            for values in self.predict()
        ]
        fits = [fit for fit in (self.start.fit, self.outcome.fit) if fit is not None]
        failed = ", ".join(dict.fromkeys(check for fit in fits for check in fit.health.failed))
        guarantee = Guarantee.of(
            self.settings,
            self.outcome.statement,
            protected=name,
            passed_through=[other for other in table.columns if other not in (name, *self.left_out)],
            declared="; ".join(filter(None, [domain.describe(design), str(self.settings.declared or "")])),
            atoms=domain.atoms,
            seeded=self.seeded,
            uncertified=_OVERRODE.format(failed) if failed else "",
            kept=self.keep,
            corrected=sum(draw.converged for draw in self.released) if self.settings.debias else None,
        )
        return Release(tables, guarantee)

    @cached_property
    def copied_outcomes(self) -> list[PerRecord]:
        """The protected column of every copy as it is released, in numbers or the places of its labels."""
        design = self.start.design
        return [Table.of(copy).outcome(design.outcome, design.levels) for copy in self.release.tables]

    @property
    def untrusted(self) -> Mask:
        """Records that decide so much of their own fit that draws cannot bound the loss about them."""
        pricing = self.outcome.pricing
        if not self.settings.bound.over_draws:
            return np.zeros(self.start.design.records, dtype=np.bool_)
        if pricing.influence is None:
            return pricing.importance.untrusted
        leverage, pull = pricing.influence.leverage, pricing.influence.pull
        flagged = leverage > _HIGH_LEVERAGE
        if not (np.maximum(leverage, pull) <= _SOME_INFLUENCE).all():
            flagged |= EXACT.by_record(pricing.withheld) > OSCILLATION.by_record(pricing.withheld)
        return flagged

    @property
    def leverage(self) -> PerRecord:
        """How much of its own fitted value each record decides in the plain posterior; 0 where not known."""
        fit = self.start.fit
        if fit is None or fit.influence is None:
            return np.zeros(self.start.design.records)
        return fit.influence().leverage

    @property
    def edge_mass(self) -> float:
        """The share of draws at the edge of a box of parameters; 0 without a box."""
        model, parameters = self.settings.model, self.outcome.fit.parameters
        return model.edge_mass(parameters, self.start.design) if isinstance(model, Boxed) else 0.0

    def doubts(self) -> list[str]:
        """What the owner should be warned about: in words without figures."""
        settings, weights = self.settings, self.settings.weights
        while isinstance(weights, Reweighted):
            weights = weights.base
        weighted = settings.standard.weighted
        doubts = []
        if weighted and settings.bound.sharper and moves_with_everyone(weights):
            doubts.append(
                f"{type(weights).__name__} with bound='{settings.bound}': these weights move with every "
                "record, and recomputed without one record the loss was seen above this bound. Use "
                "CapWeights(cap, risk='oscillation') or ScalarWeights, and an audit, or the Lipschitz bound."
            )
        by_density = weighted and getattr(weights, "risk", "") == "lipschitz"
        if by_density and self.start.risk.share_above_one > _DENSE:
            doubts.append(
                f"More than {_DENSE:.0%} of the records have a density above 1, so that risk='lipschitz' "
                "takes ordinary records for risky ones. Record the outcome in smaller units, or use "
                "risk='oscillation', which does not depend on units."
            )
        if settings.bound == RENYI and settings.delta * self.start.design.records >= 1:
            doubts.append(
                "delta is not below 1/n, which would allow one record in n to be published. Choose one well "
                "below."
            )
        if settings.bound == RENYI and (self.leverage > _HIGH_LEVERAGE).any():
            doubts.append(
                "Some records decide their own fitted value, such as the only one of a category: without it "
                "the prior alone speaks there. Their Rényi price is large or infinite, and a target leaves "
                "little of all records. Merge rare categories, or give a prior that is less vague."
            )
        left = self.outcome.fit.power.sum() if settings.bound == RENYI and settings.target else np.inf
        if left < len(self.start.design.columns):
            doubts.append(
                "The target left all records together less weight than there are coefficients: the prior "
                "decides the copies, not the data. Raise ε, make fewer copies, or shorten the formula."
            )
        if self.untrusted.any():
            doubts.append(
                "Some records decide so much of their own fit that draws cannot bound the loss about them: "
                "the true loss may exceed the Lipschitz and oscillation prices. They are listed in flagged_ "
                "(confidential). Merge rare categories, or use bound='exact' where there is one."
            )
        if self.edge_mass > _AT_THE_EDGE:
            doubts.append(
                "Most of the posterior lies at the edge of the box (edge_mass_, confidential): the box, not "
                "the data, decides the copies. Leave the prior out, raise ε, or give a box that public "
                "knowledge supports better."
            )
        return doubts


class Results:
    """The attributes a synthesizer has after `fit`; every one is computed from the confidential data."""

    settings: Settings
    _fitted: Fitted | None

    def sample(self) -> Release:
        """The release: the same copies each time, from draws of the fit that was priced."""
        return self._need().release

    def to_arviz(self, *, log_likelihood: bool = False) -> Any:
        """The certified fit's draws as an ArviZ InferenceData; confidential."""
        return self._need().outcome.fit.to_arviz(log_likelihood=log_likelihood)

    def utility(self) -> Any:
        """How the copies compare with the confidential outcome: tidy, and confidential."""
        return self.like(self.utility_columns())

    def intervals(self, *, level: float = 0.95, tables: int = TABLES) -> Any:
        """Interval estimates of the coefficients and σ: one row per parameter, in a table of the fitted kind.

        A parametric bootstrap through the same procedure, with `tables` simulated tables, for corrected draws
        of the normal and lognormal models (docs/bias.md, "Intervals"). `corrected` is False where a draw went
        out uncorrected. The same each time; approximate, and only as good as the model.

        Formal guarantees
        -----------------
        A function of released draws and public things: post-processing, covered by the ε of `sample`,
        provided that giving it out was decided on before looking.
        """
        check_intervals(self.settings.model, debias=self.settings.debias, level=level, tables=tables)
        done = self._need()
        key = done.key.child("release").child("intervals")
        view = public_view(done.settings, done.start, done.released[0].parameters, key)
        found = intervals(view, done.released, level=level, tables=tables)
        columns = {"parameter": list(found.parameters), "estimate": found.estimate, "lower": found.lower}
        flags = [found.corrected] * len(found.parameters)
        return self.like({**columns, "upper": found.upper, "corrected": flags})

    def utility_columns(self) -> dict[str, list[object]]:
        """The columns of `utility`."""
        fitted = self._need()
        values, present = fitted.start.design.values, fitted.start.present
        return compare_copies(values[present] if present.any() else values, fitted.copied_outcomes)

    def like(self, columns: Mapping[str, Any]) -> Any:
        """A dataframe of the kind that was fitted."""
        return self._need().start.table.like(columns)

    def audit(
        self, *, riskiest: int | None = None, sample: int | None = None, keys: int | None = None
    ) -> Audit:
        """Leave-one-out privacy loss against the ε that is claimed (`evidence.audit`).

        Exact for the exact models, but for the random numbers of a calibration over draws, which `keys` sets
        of them stand for. For others an estimate by importance weights, which cannot certify; weights are
        then recomputed only for as many records as asked for, since each takes Markov chains.
        """
        done = self._need()
        limits = {"riskiest": riskiest, "sample": sample, "keys": keys}
        return audit(done.settings, done.start, done.outcome, key=done.key, **limits)

    def attack(self, record: int | None = None, *, trials: int = 2000, confidence: float = 0.95) -> Attack:
        """A membership attack on one outcome through single copies, for exact models (`evidence.attack`).

        Copies are made as the release's: corrected, stratified where the settings say so. `record` is the one
        of the largest oscillation by default. The table without its outcome is put through the whole
        procedure, calibration included. ε is held against the target of one copy (under the Rényi bound that
        of all) or, without a target and for range standards, against the price with the outcome withheld.
        """
        done = self._need()
        settings, power = done.settings, done.outcome.fit.power
        by_record = OSCILLATION.by_record(done.outcome.pricing.withheld)
        chosen = int(np.argmax(by_record)) if record is None else record
        if not is_count(chosen) or not 0 <= chosen < done.start.design.records:
            raise SettingError(f"record must be a row between 0 and {done.start.design.records - 1}.")
        if done.start.fit is None:  # each weight depends on its own record: the others stay
            powers, without = [power], [np.where(np.arange(len(power)) == chosen, 0.0, power)]
        else:
            keys, powers = keys_and_powers(settings, done.start, power, key=done.key, keys=KEYS)
            without = [powers_without(settings, done.start, chosen, key=key) for key in keys]
        return attack(
            settings,
            done.start,
            powers=powers,
            without=without,
            claimed=claimed_epsilon(settings, done.outcome),
            delta=settings.delta if settings.bound == RENYI else done.outcome.statement.delta,
            key=done.key.child("attack"),
            trials=trials,
            confidence=confidence,
        )

    def outlook(self) -> Outlook:
        """How the Lipschitz price would move with more draws (`evidence.more_draws`)."""
        settings = self._need().settings
        if not settings.bound.over_draws:
            raise SettingError(
                f"{settings.standard.label}: the price does not depend on draws. See total_epsilon_."
            )
        return outlook(self._need().outcome.pricing)

    @property
    def epsilon_(self) -> float:
        """Price of one copy under the chosen bound."""
        return self._need().outcome.epsilon

    @property
    def total_epsilon_(self) -> float:
        """Price of all copies under the chosen bound."""
        fitted = self._need()
        return fitted.settings.bound.total(fitted.outcome.pricing, fitted.settings.copies)

    @property
    def lipschitz_epsilon_(self) -> float:
        """Price of one copy under the Lipschitz bound."""
        return LIPSCHITZ.epsilon(self._need().outcome.pricing)

    @property
    def oscillation_epsilon_(self) -> float:
        """Price of one copy under the oscillation bound."""
        return OSCILLATION.epsilon(self._need().outcome.pricing)

    @property
    def exact_epsilon_(self) -> float:
        """Price of one copy by the exact privacy loss; absent where that has no closed form."""
        settings, pricing = self._need().settings, self._need().outcome.pricing
        if not EXACT.has(pricing):
            raise AttributeError(
                f"exact_epsilon_: the neighbour of {settings.standard.label} has no closed form with the "
                f"{settings.model.name} model. See oscillation_epsilon_ and withheld_epsilon_."
            )
        return EXACT.epsilon(pricing)

    @property
    def renyi_epsilon_(self) -> float | None:
        """Price of one copy by Rényi divergence, at the settings' δ; None where that has no closed form."""
        pricing = self._need().outcome.pricing
        return RENYI.epsilon(pricing) if RENYI.has(pricing) else None

    @property
    def withheld_epsilon_(self) -> dict[str, float]:
        """By bound: the price of one copy when x_i is withheld altogether."""
        return prices(self._need().outcome.pricing.withheld)

    @property
    def certified_epsilon_(self) -> float:
        """The number the statement holds for: at least `epsilon_`, at most the target.

        Of one copy; under the Rényi bound of all copies together.
        """
        return self._need().outcome.certified

    @property
    def acceptance_(self) -> float:
        """Under `Strict`: the share of the posterior without a box that lies in it."""
        fitted, model = self._need(), self._boxed("acceptance_")
        power, key = fitted.outcome.fit.power, fitted.key.child("acceptance")
        return model.acceptance(fitted.start.design, power, key=key)

    @property
    def edge_mass_(self) -> float:
        """Under `Strict`: the share of draws at the edge of the box. Near 1 the box decides, not the data."""
        self._boxed("edge_mass_")
        return self._need().edge_mass

    def _boxed(self, name: str) -> Boxed:
        model = self._need().settings.model
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
        own, withheld = self._need().outcome.pricing, self._need().outcome.pricing.withheld
        named = {bound.name: bound.by_record(own) for bound in LOCAL if bound.has(own)}
        return named | {f"withheld_{b}": b.by_record(withheld) for b in LOCAL if b.has(withheld)}

    @property
    def scale_(self) -> float:
        """The factor on the weights that calibration found; 1 without a target."""
        return self._need().scale

    @property
    def risk_(self) -> PerRecord:
        """By-record risk under the unweighted fit, of the kind the weights use."""
        return self._need().start.risk.of(getattr(self._need().settings.weights, "risk", "lipschitz"))

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
        return self._need().copied_outcomes

    @property
    def outcome_(self) -> PerRecord:
        """The confidential outcome itself."""
        return self._need().start.design.values

    @property
    def records_(self) -> Any:
        """By record: risk, alpha, power, known, price under the chosen bound, share of the largest price."""
        fitted = self._need()
        price = fitted.settings.bound.by_record(fitted.outcome.pricing)
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
        steps = self._need().outcome.pricing.by_draws
        bounds = [bound for bound in BY_DRAWS if bound.has(steps[-1][1])]
        moved = {bound.name: [bound.epsilon(price) for _, price in steps] for bound in bounds}
        return self.like({"draws": [count for count, _ in steps], **moved})

    @property
    def flagged_(self) -> Any:
        """Records for which a draw-based bound cannot be trusted: they decide too much of their own fit."""
        fitted = self._need()
        pricing, rows = fitted.outcome.pricing, np.flatnonzero(fitted.untrusted)
        columns: dict[str, Any] = {"record": rows}
        if not fitted.settings.bound.over_draws:
            return self.like(columns)
        oscillation = OSCILLATION.by_record(pricing.withheld)[rows]
        if pricing.influence is None:
            columns |= {"pareto_k": pricing.importance.pareto_k[rows], "oscillation": oscillation}
        else:
            columns |= {"leverage": pricing.influence.leverage[rows], "oscillation": oscillation}
            columns["exact"] = EXACT.by_record(pricing.withheld)[rows]
        return self.like(columns)

    def _need(self) -> Fitted:
        if self._fitted is None:
            raise NotFittedError("Not fitted yet: call fit(data) first.")
        return self._fitted
