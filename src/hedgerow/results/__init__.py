"""The attributes a synthesizer has after `fit`, because of what it holds then (`fitted`). Confidential.

Prices, weights, audits and attacks are here, what copies keep of the table in `utility`.
"""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow.arrays import PerLink, PerRecord
from hedgerow.errors import HedgerowWarning, SettingError, format_value, is_count
from hedgerow.evidence.attack import REFITTING, Attack, attack, expected_attack
from hedgerow.evidence.audit import Audit, audit
from hedgerow.evidence.gauge import Gauge
from hedgerow.evidence.more_draws import Outlook, outlook
from hedgerow.evidence.without import KEYS, claimed_epsilon, is_claimed, keys_and_powers, powers_without
from hedgerow.fitted import Fitted, Noised
from hedgerow.inference.bootstrap import TABLES, Estimator, conclude_from
from hedgerow.inference.intervals import check_intervals, intervals
from hedgerow.mechanism.debias import public_view
from hedgerow.mechanism.price import UnitPricing, price_columns, shares_of_largest
from hedgerow.models.base import Health
from hedgerow.privacy.bounds import BY_DRAWS, EXACT, LIPSCHITZ, LOCAL, OSCILLATION, RENYI
from hedgerow.privacy.guarantee import Release
from hedgerow.privacy.strict import Boxed, BoxedChain
from hedgerow.progress import job, phase
from hedgerow.results.utility import Utility

_UNBOUNDED = 1e100  # in place of a price without end, so that shares of it are numbers


class NoWeightsError(SettingError, AttributeError):
    """Asked of noisy statistics what only a weighted posterior has."""


class Results(Utility):
    """The attributes a synthesizer has after `fit`; every one is computed from the confidential data."""

    def sample(self) -> Release:
        """The release: the same copies each time, from draws of the fit that was priced."""
        for note in self._done().tell_moved():
            warnings.warn(note, HedgerowWarning, stacklevel=2)
        return self._done().release

    def to_arviz(self, *, log_likelihood: bool = False) -> Any:
        """The certified fit's draws as an ArviZ InferenceData; confidential.

        Under `Strict(limits=…)` draws given the released statistics: they are covered by ε, and may leave.
        """
        if isinstance(noised := self._fitted, Noised):
            return noised.to_arviz(log_likelihood=log_likelihood)
        return self._need().outcome.fit.to_arviz(log_likelihood=log_likelihood)

    def intervals(
        self, estimator: Estimator | None = None, *, level: float = 0.95, tables: int = TABLES
    ) -> Any:
        """Interval estimates of the coefficients and σ: one row per parameter, in a table of the fitted kind.

        With an `estimator`, a function of a table that returns a number, an array or a mapping of numbers,
        those of what it returns: as `hr.intervals(synth.sample(), estimator)`.

        Under `Strict(limits=…)` quantiles of the posterior given the released statistics, which knows their
        noise. Else a parametric bootstrap through the same procedure, with `tables` simulated tables, for
        corrected draws of the normal and lognormal models (docs/bias.md, "Intervals"). `corrected` is False
        where a draw went out uncorrected. The same each time; approximate, and only as good as the model.

        Formal guarantees
        -----------------
        A function of released draws and public things: post-processing, covered by the ε of `sample`,
        provided that giving it out was decided on before looking.
        """
        if estimator is not None:
            return conclude_from(self._done().release.replay, estimator, level=level, tables=tables)
        if isinstance(noised := self._fitted, Noised):
            return self.like(noised.intervals(level))
        check_intervals(self.settings, level=level, tables=tables)
        done = self._need()
        key = done.key.child("release").child("intervals")
        view = public_view(done.settings, done.start, done.released[0].parameters, key)
        found = intervals(view, done.released, level=level, tables=tables)
        columns = {"parameter": list(found.parameters), "estimate": found.estimate, "lower": found.lower}
        flags = [found.corrected] * len(found.parameters)
        return self.like({**columns, "upper": found.upper, "corrected": flags})

    def audit(
        self, *, riskiest: int | None = None, sample: int | None = None, keys: int | None = None
    ) -> Audit:
        """Leave-one-out privacy loss against the ε that is claimed (`evidence.audit`).

        Exact for the exact models, but for the random numbers of a calibration over draws, which `keys` sets
        of them stand for. For others an estimate by importance weights, which cannot certify; weights are
        then recomputed only for as many records as asked for, since each takes Markov chains.
        """
        if reason := self._done().why_no_audit():
            raise SettingError(reason)
        if isinstance(noised := self._fitted, Noised):
            return noised.audit()
        done = self._need()
        limits = {"riskiest": riskiest, "sample": sample, "keys": keys}
        return audit(done.settings, done.start, done.outcome, key=done.key, **limits)

    def attack(self, record: int | None = None, *, trials: int = 2000, confidence: float = 0.95) -> Attack:
        """A membership attack on one row through single copies, for exact models (`evidence.attack`).

        Copies are made as the release's: corrected, stratified where the settings say so. `record` is the one
        of the largest oscillation by default. The table without its outcome is put through the whole
        procedure, calibration included. ε is held against the target of one copy (under the Rényi bound that
        of all) or, without a target and for range standards, against the price with the outcome withheld.
        """
        if reason := self._done().why_no_attack():
            raise SettingError(reason)
        if isinstance(noised := self._fitted, Noised):
            return noised.attack(record, trials=trials, confidence=confidence)
        done = self._need()
        settings, power = done.settings, done.outcome.fit.power
        by_record = OSCILLATION.by_record(done.outcome.pricing.withheld)
        chosen = int(np.argmax(by_record)) if record is None else record
        if not is_count(chosen) or not 0 <= chosen < done.start.design.records:
            raise SettingError(f"record must be a row between 0 and {done.start.design.records - 1}.")
        with job(expected_attack(settings)):
            if done.start.fit is None:  # each weight depends on its own record: the others stay
                powers, without = [power], [np.where(np.arange(len(power)) == chosen, 0.0, power)]
            else:
                with phase(REFITTING):
                    keys, powers = keys_and_powers(settings, done.start, power, key=done.key, keys=KEYS)
                    without = [powers_without(settings, done.start, chosen, key=key) for key in keys]
            found = attack(
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
            return replace(found, of_claim=is_claimed(settings))

    def outlook(self) -> Outlook:
        """How the Lipschitz price would move with more draws (`evidence.more_draws`)."""
        settings = self._need().settings
        if not settings.bound.over_draws:
            raise SettingError(
                f"{settings.standard.label}: the price does not depend on draws. See total_epsilon_."
            )
        return outlook(self._need().extreme.outcome.pricing)

    @property
    def epsilon_(self) -> float:
        """Price of one copy under the chosen bound; of all copies for noisy statistics."""
        return self._done().epsilon

    @property
    def total_epsilon_(self) -> float:
        """Price of all copies under the chosen bound."""
        return self._done().total_epsilon

    @property
    def lipschitz_epsilon_(self) -> float:
        """Price of one copy under the Lipschitz bound."""
        return float(self._need().epsilon_by(LIPSCHITZ) or 0.0)

    @property
    def oscillation_epsilon_(self) -> float:
        """Price of one copy under the oscillation bound."""
        return float(self._need().epsilon_by(OSCILLATION) or 0.0)

    @property
    def exact_epsilon_(self) -> float:
        """Price of one copy by the exact privacy loss; absent where that has no closed form."""
        settings, found = self._need().settings, self._need().epsilon_by(EXACT)
        if found is None:
            raise AttributeError(
                f"exact_epsilon_: the neighbour of {settings.standard.label} has no closed form with the "
                f"{settings.model.name} model. See oscillation_epsilon_ and withheld_epsilon_."
            )
        return found

    @property
    def renyi_epsilon_(self) -> float | None:
        """Price of one copy by Rényi divergence, at the settings' δ; None where that has no closed form."""
        return self._need().epsilon_by(RENYI)

    @property
    def withheld_epsilon_(self) -> dict[str, float]:
        """By bound: the price of one copy when x_i is withheld altogether."""
        priced = {bound.name: self._need().epsilon_by(bound, withheld=True) for bound in LOCAL}
        return {name: epsilon for name, epsilon in priced.items() if epsilon is not None}

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

    def _boxed(self, name: str) -> Boxed | BoxedChain:
        model = self._need().settings.model
        if not isinstance(model, Boxed | BoxedChain):
            raise AttributeError(f"{name}: only a fit under Strict has a box.")
        return model

    @property
    def health_(self) -> Health:
        """R-hat, effective draws and divergences of the certified fit."""
        return self._done().health

    @property
    def sensitivity_(self) -> float:
        """Δ: the largest |d| over draws and records."""
        return float(self._need().extreme.outcome.pricing.sensitivity.max())

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

    def price_by_column(self, *, riskiest: int = 10) -> Any:
        """One row per protected column: what it would cost alone, its share of rows' prices; confidential.

        `alone` is the price of all copies of that column under the chosen bound at the same weights, x_i
        withheld. `share` is its part of what all columns of the `riskiest` rows would cost alone.
        """
        done = self._need().extreme
        if not is_count(riskiest) or riskiest < 1:
            raise SettingError(
                f"riskiest must be a count from 1 up, got {format_value(riskiest)}; 10 is usual."
            )
        bound = done.settings.bound if done.settings.bound.local else LIPSCHITZ
        pricing = done.outcome.pricing
        unit = pricing.unit if isinstance(pricing, UnitPricing) else None
        columns = [link.column.outcome for link in done.settings.links]
        priced = price_columns(done.outcome.fit, columns, done.settings.delta, unit)
        rows = np.argsort(-bound.by_record(done.outcome.pricing), kind="stable")[:riskiest]
        parts = np.minimum([bound.by_record(each)[rows] for each in priced.values()], _UNBOUNDED)
        total = parts.sum(axis=0)
        share = np.divide(parts, total, out=np.zeros_like(parts), where=total > 0).mean(axis=1)
        alone = [bound.total(each, done.settings.copies) for each in priced.values()]
        return self.like({"column": list(priced), "alone": alone, "share": share})

    @property
    def scale_(self) -> float:
        """The factor on the weights that calibration found; 1 without a target."""
        return self._need().scale

    @property
    def risk_(self) -> PerRecord:
        """By-record risk under the unweighted fit, of the kind the weights use."""
        return self._need().risk

    @property
    def gauge_(self) -> Gauge:
        """How many records' worth of information the copies carry, and how far they are from the data."""
        return self._need().gauge

    def describe_stop(self) -> str:
        """Why the copies are not worth releasing, and what would help, with figures: confidential."""
        return self._need().describe_stop()

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
    def outcome_(self) -> PerLink:
        """The confidential outcome itself."""
        return self._done().design.values

    @property
    def records_(self) -> Any:
        """By record: risk, alpha, power, known, price under the chosen bound, share of the largest price."""
        fitted = self._need()
        price = fitted.settings.bound.by_record(fitted.outcome.pricing)
        return self.like(
            {
                "record": fitted.numbers,
                "risk": self.risk_,
                "alpha": self.alpha_,
                "power": self.power_,
                "known": self.known_,
                "price": price,
                "share": shares_of_largest(price, price.max()),
            }
        )

    @property
    def by_draws_(self) -> Any:
        """How each bound moved as the number of draws doubled."""
        fitted = self._need()
        steps = fitted.extreme.outcome.pricing.by_draws
        bounds = [bound for bound in BY_DRAWS if bound.has(steps[-1][1]) and fitted.knows(bound)]
        moved = {bound.name: [bound.epsilon(price) for _, price in steps] for bound in bounds}
        return self.like({"draws": [count for count, _ in steps], **moved})

    @property
    def flagged_(self) -> Any:
        """Records for which a draw-based bound cannot be trusted: they decide too much of their own fit."""
        fitted = self._need().extreme
        pricing, rows = fitted.outcome.pricing, np.flatnonzero(fitted.untrusted)
        columns: dict[str, Any] = {"record": fitted.numbers[rows]}
        if not fitted.settings.bound.over_draws:
            return self.like(columns)
        oscillation = OSCILLATION.by_record(pricing.withheld)[rows]
        if pricing.influence is None:
            columns |= {"pareto_k": pricing.importance.pareto_k[rows], "oscillation": oscillation}
        else:
            columns |= {"leverage": pricing.influence.leverage[rows], "oscillation": oscillation}
            columns["exact"] = EXACT.by_record(pricing.withheld)[rows]
        return self.like(columns)

    @property
    def statistics_(self) -> dict[str, Any]:
        """Under `Strict(limits=…)`: the noisy statistics with their scales, covered by ε: they may leave."""
        return self._noised("statistics_").statistics()

    @property
    def clipped_(self) -> float:
        """Under `Strict(limits=…)`: the share of the outcomes that were moved to a limit; confidential."""
        return self._noised("clipped_").clipped

    def _need(self) -> Fitted:
        """The weighted posterior."""
        done = self._done()
        if not isinstance(done, Fitted):
            raise NoWeightsError(
                "Strict(limits=…) has neither weights nor risks nor prices by record: its ε is set "
                "beforehand and holds for every table. See total_epsilon_, statistics_ and clipped_."
            )
        return done

    def _noised(self, name: str) -> Noised:
        done = self._done()
        if not isinstance(done, Noised):
            raise AttributeError(f"{name}: only a fit under Strict(limits=…) has noisy statistics.")
        return done
