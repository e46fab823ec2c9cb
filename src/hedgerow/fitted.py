"""What a synthesizer holds when it is done: a priced posterior, or noisy statistics. Confidential.

Two mechanisms end here. What they share is `Finished`: what may leave is made once, as `Finished.release`,
and everything else stays. `Fitted` has the weighted posterior with its price, `Noised` the statistics that
were released and the posterior given them.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.arrays import Confidential, Mask, PerLink, PerRecord, RecordMask, columns_of, join_columns
from hedgerow.errors import SettingError, is_count
from hedgerow.evidence.attack import Attack, attack_statistics
from hedgerow.evidence.audit import StatisticsAudit
from hedgerow.evidence.gauge import Gauge, describe_stop, measure, price_of_enough, remedies
from hedgerow.inference.statistics import summarize
from hedgerow.mechanism.copies import predict_copies, released_draws, uniforms
from hedgerow.mechanism.debias import Corrected
from hedgerow.mechanism.fit import to_inference_data
from hedgerow.mechanism.noisy.copies import draw_zeros
from hedgerow.mechanism.noisy.copies import predict as predict_copy
from hedgerow.mechanism.noisy.margin import fit_tilt
from hedgerow.mechanism.noisy.posterior import PosteriorDraws, draw_posterior
from hedgerow.mechanism.noisy.recipe import Counts, Released, Round, Spike
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.mechanism.noisy.run import (
    Outcomes,
    classes_within,
    clip_response,
    losses,
    margin_left_out,
    recipe_of,
    settle_noise,
)
from hedgerow.mechanism.steps import Outcome, Start
from hedgerow.models.base import Health, Parameters
from hedgerow.models.exact import Normal
from hedgerow.privacy.bounds import EXACT, OSCILLATION, RENYI, Statement
from hedgerow.privacy.guarantee import Guarantee, Release
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict import Boxed
from hedgerow.privacy.strict.limits import amounts_of, spike_of
from hedgerow.privacy.weights import Reweighted, moves_with_everyone
from hedgerow.randomness import Key
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table
from hedgerow.threads import WORTH_SHARING, share_out

_OVERRODE = "the sampler failed its health checks ({}) and the owner overrode them"
_HIGH_LEVERAGE = 0.9
_SOME_INFLUENCE = 0.05  # with less leverage and pull everywhere, the draws cover what withholding does
_AT_THE_EDGE = 0.5  # share of draws at the edge of a box from which the box decides
_DENSE = 0.1  # share of densities above 1 from which |f| is a doubtful risk
_GUESSED = 0.25  # share of the sum of squares from which the guess of σ counts
_PLENTY = 20  # records' worth of information by coefficient
_DELTA = "delta is not below 1/n, which would allow one record in n to be published. Choose one well below."
_HALF = 0.5  # of the coefficients
_CLIPPED = 0.05  # share of values at a limit from which copies miss what lies beyond


@dataclass(frozen=True, repr=False, kw_only=True)
class Finished(Confidential):
    """The settings, and what was made under them: what is released and claimed comes from here."""

    settings: Settings
    key: Key
    seeded: bool
    left_out: tuple[str, ...] = ()  # columns read but not released
    keep: tuple[str, ...] = ()  # columns released even if they give the outcome away

    @property
    @abstractmethod
    def table(self) -> Table:
        """What was fitted."""

    @property
    @abstractmethod
    def design(self) -> Design:
        """Its outcome and its predictors."""

    @property
    @abstractmethod
    def present(self) -> RecordMask:
        """Outcomes that were used."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """The price of one copy."""

    @property
    @abstractmethod
    def total_epsilon(self) -> float:
        """The price of all copies."""

    @property
    @abstractmethod
    def statement(self) -> Statement:
        """How far draws carry the claim."""

    @property
    @abstractmethod
    def parameters(self) -> Parameters:
        """The draws behind the copies and their neighbours."""

    @property
    @abstractmethod
    def health(self) -> Health:
        """Whether these draws can be trusted."""

    @property
    def failed(self) -> str:
        """Checks of draws that the owner overrode, in words."""
        return ""

    @property
    def corrected(self) -> int | None:
        """How many released draws were corrected; None where that was not asked for."""
        return None

    @abstractmethod
    def predict(self) -> list[PerLink]:
        """The synthetic columns, copy by copy, before they take the type of the confidential ones."""

    @abstractmethod
    def doubts(self) -> list[str]:
        """What the owner should be warned about: in words without figures."""

    @cached_property
    def release(self) -> Release:
        """What may leave: typed copies and their guarantee, made once."""
        design, table, links = self.design, self.table, self.design.links
        parts = list(zip(links, self.settings.domains, self.settings.written_as, strict=True))

        def make_copy(copy: PerLink) -> Any:
            typed: Any = None
            for (link, domain, written), values in zip(parts, columns_of(copy), strict=True):
                made = table if typed is None else Table.of(typed)
                typed = made.with_column(link.outcome, values, link.levels, domain.support, written)
            return table.drop(self.left_out, typed)

        tables = share_out(make_copy, self.predict(), worth=table.rows > WORTH_SHARING)
        outcomes = [link.outcome for link in links]
        declared = [
            words
            for link, domain, column in zip(links, self.settings.domains, self.settings.columns, strict=True)
            for words in (domain.describe(link), str(column.declared or ""))
        ]
        guarantee = Guarantee.of(
            self.settings,
            self.statement,
            protected=design.outcome,
            passed_through=[other for other in table.columns if other not in (*outcomes, *self.left_out)],
            declared="; ".join(filter(None, declared)),
            atoms=any(domain.atoms for domain in self.settings.domains),
            seeded=self.seeded,
            uncertified=_OVERRODE.format(self.failed) if self.failed else "",
            kept=self.keep,
            corrected=self.corrected,
        )
        return Release(tables, guarantee)

    @cached_property
    def copied_outcomes(self) -> list[PerLink]:
        """What is protected of every copy as it is released, in numbers or the places of its labels."""
        copies = [Table.of(copy) for copy in self.release.tables]
        links = self.design.links
        return [join_columns([copy.outcome(link.outcome, link.levels) for link in links]) for copy in copies]


@dataclass(frozen=True, repr=False, kw_only=True)
class Fitted(Finished):
    """A weighted posterior and its price."""

    start: Start
    outcome: Outcome
    scale: float

    @property
    def table(self) -> Table:
        return self.start.table

    @property
    def design(self) -> Design:
        return self.start.design

    @property
    def present(self) -> RecordMask:
        return self.start.present

    @property
    def epsilon(self) -> float:
        return self.outcome.epsilon

    @property
    def total_epsilon(self) -> float:
        return self.settings.bound.total(self.outcome.pricing, self.settings.copies)

    @property
    def statement(self) -> Statement:
        return self.outcome.statement

    @property
    def parameters(self) -> Parameters:
        return self.outcome.fit.parameters

    @property
    def health(self) -> Health:
        return self.outcome.fit.health

    @property
    def failed(self) -> str:
        fits = [fit for fit in (self.start.fit, self.outcome.fit) if fit is not None]
        return ", ".join(dict.fromkeys(check for fit in fits for check in fit.health.failed))

    @property
    def corrected(self) -> int | None:
        return sum(draw.converged for draw in self.released) if self.settings.debias else None

    @cached_property
    def released(self) -> tuple[Corrected, ...]:
        """The draws behind the copies, one each, corrected if the plan said so."""
        return released_draws(self.settings, self.start, self.outcome, key=self.key.child("release"))

    @cached_property
    def gauge(self) -> Gauge:
        """What the copies carry of the data."""
        return measure(self.settings, self.start, self.outcome, key=self.key.child("gauge"))

    def describe_stop(self) -> str:
        """Why the copies are not worth releasing, and what would help; with figures."""
        key = self.key.child("gauge")
        epsilon = price_of_enough(self.settings, self.start, self.outcome, self.gauge, key=key)
        return describe_stop(self.settings, self.gauge, epsilon)

    @property
    def _guessed_residual(self) -> float:
        """Which share of the plain posterior's sum of squares is the prior's; 0 where that is not known."""
        model, fit = self.settings.model, self.start.fit
        if fit is None or not isinstance(model, Normal):  # a logarithm has no units
            return 0.0
        precision = float(np.mean(fit.parameters["sigma"] ** -2.0))  # (a0 + n/2)/b
        return model.prior.rate * precision / (model.prior.shape + float(self.present.sum()) / 2)

    def variant(self, **changes: Any) -> "Fitted":
        """The same fit released in another way (`sampling`, `debias`); corrections are not made again."""
        other = replace(self, settings=replace(self.settings, **changes))
        if other.settings.debias == self.settings.debias:
            other.__dict__["released"] = self.released
        return other

    def predict(self) -> list[PerLink]:
        return predict_copies(self.settings, self.start, self.released, key=self.key.child("release"))

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
            doubts.append(_DELTA)
        if settings.bound == RENYI and (self.leverage > _HIGH_LEVERAGE).any():
            doubts.append(
                "Some records decide their own fitted value, such as the only one of a category: without it "
                "the prior alone speaks there. Their Rényi price is large or infinite, and a target leaves "
                "little of all records. Merge rare categories, or give a prior that is less vague."
            )
        if self._guessed_residual > _GUESSED:
            doubts.append(
                "The prior's guess of the residual, in the outcome's units, is far larger than what the data "
                "have, and decides much of σ. Give Prior(residual=…) as public knowledge supports it, or "
                "record the outcome in smaller units."
            )
        plenty = _PLENTY * (len(self.start.design.columns) + 1)  # records' worth; no need to look closer
        if settings.target is not None and self.outcome.fit.power.sum() < plenty and self.gauge.discards:
            doubts.append(
                "The target is met only by discarding the data: the prior decides the copies (gauge_, "
                f"confidential). {remedies(settings, self.gauge)}"
            )
        elif settings.target is not None and not settings.several:
            share = self.gauge.data_share if self.outcome.fit.power.sum() < plenty else None
            if share is not None and share < _HALF:
                doubts.append(
                    "The prior decides more than half of the coefficients (gauge_, confidential): copies may "
                    f"keep the column's distribution and lose its relations. {remedies(settings, self.gauge)}"
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


@dataclass(frozen=True, repr=False, kw_only=True)
class Noised(Finished):
    """Noisy statistics of the outcome: the only thing that was read off it, and all that copies come from.

    Formal guarantee: `released` is ε-differentially private under the standard's relation. Copies, draws,
    intervals and `statistics` are functions of it, of public things and of independent randomness.
    """

    source: Table
    encoded: Design
    released: Released

    @classmethod
    def of(cls, settings: Settings, table: Table, design: Design, *, key: Key, **more: Any) -> "Noised":
        """The mechanism: clip, sum and add noise, once."""
        recipe, outcomes = recipe_of(settings, table, design), read_outcomes(settings, design, table)
        settings = settle_noise(settings, recipe)
        released = release_statistics(recipe, *outcomes, key=key.child("statistics"))
        return cls(settings=settings, key=key, source=table, encoded=design, released=released, **more)

    @property
    def table(self) -> Table:
        return self.source

    @property
    def design(self) -> Design:
        return self.encoded

    @property
    def present(self) -> RecordMask:
        return self.outcomes[1]

    @cached_property
    def outcomes(self) -> Outcomes:
        """Responses within the limits, and which of them are there; confidential."""
        return read_outcomes(self.settings, self.design, self.table)

    @property
    def epsilon(self) -> float:
        return self.released.recipe.epsilon

    @property
    def total_epsilon(self) -> float:
        return self.epsilon

    @property
    def statement(self) -> Statement:
        # What the chain achieved is a function of released things, but the claim does not rest on it.
        return self.settings.bound.statement(self.settings.draws, self.health)

    @cached_property
    def drawn(self) -> PosteriorDraws:
        """The posterior given the released statistics."""
        return draw_posterior(self.released, draws=self.settings.draws, key=self.key.child("posterior"))

    @property
    def parameters(self) -> Parameters:
        return self.drawn.parameters

    @property
    def health(self) -> Health:
        drawn = self.drawn
        return Health("given noisy statistics", False, effective_draws=drawn.effective, chains=drawn.chains)

    @property
    def clipped(self) -> float:
        """The share of the outcomes that were moved to a limit; confidential."""
        (low, high), (response, present) = self.limits, self.outcomes
        return float(((response <= low) | (response >= high))[present].mean()) if present.any() else 0.0

    @property
    def limits(self) -> tuple[float, float]:
        """Those of the response."""
        return self.released.recipe.low, self.released.recipe.high

    def predict(self) -> list[PerLink]:
        model, key = amounts_of(self.settings.model), self.key.child("release").child("predict")
        copies, number, spike = [], self.settings.copies, spike_of(self.settings.model)
        classes, blank = classes_within(self.settings, self.table), self.design.blank()
        places = ((np.arange(number) + 0.5) * self.settings.draws / number).astype(int)  # far apart
        for copy, place in enumerate(places):
            beta, sigma = self.parameters["beta"][place], float(self.parameters["sigma"][place])
            if classes is not None and model is not None:
                draw = {"beta": beta, "sigma": np.asarray(sigma)}
                numbers = uniforms(self.settings.sampling, model, blank, draw, key=key.child(copy))
                copies.append(model.predict_inside(blank, draw, classes, numbers))
                continue
            tilt = None if self.released.counts is None else fit_tilt(self.released, beta, sigma)
            response = predict_copy(
                self.released.recipe, beta, sigma, tilt, sampling=self.settings.sampling, key=key.child(copy)
            )
            values = response if model is None else model.outcome(response)
            if spike is not None:
                chances, own = self.parameters["spike_beta"][place], key.child(copy).child("spike")
                zeros = draw_zeros(self.released.recipe, chances, sampling=self.settings.sampling, key=own)
                values = np.where(zeros, spike, values)
            copies.append(values)
        return copies

    def intervals(self, level: float) -> dict[str, Any]:
        """Quantiles of the posterior, which knows the noise, as columns: one row per parameter."""
        return summarize(self.parameters, list(self.design.columns), level)

    def to_arviz(self, *, log_likelihood: bool) -> Any:
        """The draws by chain."""
        if log_likelihood:
            raise SettingError(
                "log_likelihood=True reads every outcome again, which ε does not cover, and noisy statistics "
                "have none. Leave it out."
            )
        return to_inference_data({"posterior": self.parameters}, self.health.chains)

    def statistics(self) -> dict[str, Any]:
        """What was released, in plain numbers: sums with the scales of their noise, round by round."""
        recipe, counts, spike = self.released.recipe, self.released.counts, self.released.spike
        plain: dict[str, Any] = {"relation": recipe.relation, "epsilon": recipe.epsilon}
        plain |= {"delta": recipe.delta, "width": recipe.width, "records": recipe.records}
        plain |= {"noise": recipe.noise, "limits": list(self.limits), "columns": list(self.design.columns)}
        plain |= {"rows_per_unit": recipe.rows_per_unit, "cap": recipe.cap}
        plain |= {"basis": recipe.basis.tolist(), "rounds": [_plain(each) for each in self.released.rounds]}
        plain |= {"counts": None if counts is None else _plain(counts)}
        return plain if spike is None else plain | {"spike": _plain(spike)}

    def audit(self) -> StatisticsAudit:
        """How much of ε the records at hand use."""
        found, none = losses(self.released, *self.outcomes), np.zeros(0)
        return StatisticsAudit(self.epsilon, found, np.zeros_like(found), none.astype(int), none, none, none)

    def attack(self, record: int | None, *, trials: int, confidence: float) -> Attack:
        """Statistics of this table against those of a neighbour, which differs in one record's outcome."""
        (response, present), recipe = self.outcomes, self.released.recipe
        chosen = 0 if record is None else record
        if record is None:  # the value farthest from the others, of those that are amounts
            amounts = response[~np.isnan(response)]
            away = np.abs(response - np.median(amounts)) if amounts.size else response
            chosen = int(np.argmax(np.nan_to_num(away)))
        if not is_count(chosen) or not 0 <= chosen < len(response):
            raise SettingError(f"record must be a row between 0 and {len(response) - 1}.")
        other = self._neighbour(chosen)
        key = self.key.child("attack")
        return attack_statistics(
            recipe, (response, present), other, claimed=self.epsilon, key=key, trials=trials,
            confidence=confidence,
        )  # fmt: skip

    def _neighbour(self, record: int) -> Outcomes:
        """The table in which the record's outcome is blank, at the farther limit, or far away in its set."""
        (response, present), (low, high) = self.outcomes, self.limits
        own, other, there = response[record], response.copy(), present.copy()
        if self.released.recipe.relation == "withheld":
            there[record] = False
        else:
            width = self.released.recipe.width or high - low
            ends = max(low, own - width), min(high, own + width)
            # From the spike, a value that is far from the others.
            other[record] = high if np.isnan(own) else max(ends, key=lambda end: abs(end - own))
        return other, there

    def doubts(self) -> list[str]:
        doubts = []
        if self.clipped > _CLIPPED:
            doubts.append(
                "Many values lie beyond the limits and were moved to them (clipped_, confidential): copies "
                "will not show what lies there. Give wider limits if public knowledge supports them."
            )
        if left_out := margin_left_out(self.settings, self.design.records):
            doubts.append(left_out)
        if self.settings.bound.takes_delta and self.settings.delta * self.design.records >= 1:
            doubts.append(_DELTA)
        return doubts


def read_outcomes(settings: Settings, design: Design, table: Table) -> Outcomes:
    """The responses within the limits, and which outcomes are there."""
    present = np.ones(design.records, dtype=np.bool_) if design.present is None else design.present
    return clip_response(settings, design.values, table), present


def _plain(part: Round | Counts | Spike) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(part).items()
    }
