"""A weighted posterior and its price, with what the owner should doubt of it."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.arrays import Array, Mask, PerLink, PerRecord, RecordMask
from hedgerow.errors import list_some
from hedgerow.evidence.attack import why_not_closed
from hedgerow.evidence.gauge import Gauge, describe_stop, measure, price_of_enough, remedies
from hedgerow.fitted.finished import DELTA_TOO_LARGE, Finished
from hedgerow.inference.bootstrap import Replay
from hedgerow.inference.bootstrap_draws import DrawsReplay
from hedgerow.inference.intervals import explain_refusal
from hedgerow.mechanism.copies import predict_copies, released_draws
from hedgerow.mechanism.debias import Corrected, public_view
from hedgerow.mechanism.steps import Outcome, Start
from hedgerow.models.base import Health, Parameters
from hedgerow.models.chain import part_of
from hedgerow.models.exact import Normal
from hedgerow.privacy.bounds import EXACT, OSCILLATION, RENYI, Bound, Statement
from hedgerow.privacy.strict import Boxed, BoxedChain
from hedgerow.privacy.weights import moves_with_everyone
from hedgerow.randomness import Key
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table

_HIGH_LEVERAGE = 0.9
_SOME_INFLUENCE = 0.05  # with less leverage and pull everywhere, the draws cover what withholding does
_AT_THE_EDGE = 0.5  # share of draws at the edge of a box from which the box decides
_DENSE = 0.1  # share of densities above 1 from which |f| is a doubtful risk
_SILENCED = 0.1  # share of the mean weight below which a kind of cells is hardly heard
_GUESSED = 0.25  # share of the sum of squares from which the guess of σ counts
_PLENTY = 20  # records' worth of information by coefficient
_HALF = 0.5  # of the coefficients


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

    def why_no_attack(self) -> str:
        return super().why_no_attack() or why_not_closed(self.settings.model)

    def describe_stop(self) -> str:
        """Why the copies are not worth releasing, and what would help; with figures."""
        key = self.key.child("gauge")
        epsilon = price_of_enough(self.settings, self.start, self.outcome, self.gauge, key=key)
        return describe_stop(self.settings, self.gauge, epsilon)

    @property
    def extreme(self) -> "Fitted":
        """The fit on the records that stand out; on all, unless this is a view of some."""
        return self

    @property
    def risk(self) -> PerRecord:
        """By-record risk under the unweighted fit, of the kind the weights use."""
        return self.start.risk.of(getattr(self.settings.weights, "risk", "lipschitz"))

    def knows(self, bound: Bound) -> bool:
        """Whether the price under a bound is that of all records."""
        return True

    def epsilon_by(self, bound: Bound, *, withheld: bool = False) -> float | None:
        """The price of one copy under a bound, or with x_i withheld altogether; None where it has none."""
        price = self.outcome.pricing.withheld if withheld else self.outcome.pricing
        return bound.epsilon(price) if bound.has(price) else None

    @property
    def left(self) -> float:
        """Σα*: how many records' worth of likelihood is in the posterior."""
        return float(self.outcome.fit.power.sum())

    @property
    def mean_alpha(self) -> float:
        """The mean weight."""
        return float(self.outcome.weighted.alpha.mean())

    @property
    def flagged(self) -> int:
        """How many records are `untrusted`."""
        return int(self.untrusted.sum())

    def withheld_total(self) -> float:
        """What all copies cost under the chosen bound with single rows withheld."""
        return self.settings.bound.total(self.outcome.pricing.by_row.withheld, self.settings.copies)

    def divergences(self, orders: Array, *, withheld: bool) -> Array | None:
        """The Rényi divergence of all copies at each order, with rows withheld or under the relation.

        The largest of all records; None where it has no closed form.
        """
        pricing = self.outcome.pricing
        price = pricing.by_row.withheld if withheld else pricing
        if not RENYI.has(price) or price.neighbours is None:
            return None
        return price.neighbours.curve(orders, self.settings.copies)

    @property
    def _guessed_residual(self) -> float:
        """Which share of the plain posterior's sum of squares is the prior's, at most; 0 where not known."""
        fit, shares = self.start.fit, [0.0]
        for place, (link, model) in enumerate(zip(self.design.links, self.settings.models, strict=True)):
            if fit is None or not isinstance(model, Normal):  # a logarithm has no units
                continue
            own = part_of(fit.parameters, place) if self.settings.several else fit.parameters
            precision = float(np.mean(own["sigma"] ** -2.0))  # (a0 + n/2)/b
            used = float(link.present_in(self.present).mean()) * self.records
            shares.append(model.prior.rate * precision / (model.prior.shape + used / 2))
        return max(shares)

    def variant(self, **changes: Any) -> "Fitted":
        """The same fit released in another way (`sampling`, `debias`); corrections are not made again."""
        other = replace(self, settings=replace(self.settings, **changes))
        if other.settings.debias == self.settings.debias:
            other.__dict__["released"] = self.released
        return other

    def predict(self) -> list[PerLink]:
        return predict_copies(self.settings, self.start, self.released, key=self.key.child("release"))

    def replay(self, tables: list[Any]) -> Replay | str:
        if reason := explain_refusal(self.settings) or self.why_no_replay():
            return reason
        view = public_view(self.settings, self.start, self.released[0].parameters, Key.from_seed(0))
        return DrawsReplay(view, self.released, copies=tuple(tables))

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
        if not (leverage.max() <= _SOME_INFLUENCE and pull.max() <= _SOME_INFLUENCE):  # NaN is not
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
        return (
            model.edge_mass(parameters, self.start.design) if isinstance(model, Boxed | BoxedChain) else 0.0
        )

    def _silenced_kinds(self) -> list[str]:
        """Columns with gaps or codes that occur and whose rows have next to no weight."""
        found, alpha = [], self.outcome.weighted.alpha
        for link, design in zip(self.settings.links, self.start.design.links, strict=True):
            there = self.outcome.weighted.present if design.present is None else design.present
            kinds = np.unique(design.values[there]) if link.role == "kind" else ()
            own = [alpha[there & (design.values == kind)].mean() for kind in kinds]
            if len(own) and min(own) < _SILENCED * alpha[there].mean():
                found.append(link.column.outcome)
        return found

    def doubts(self) -> list[str]:
        settings, weights = self.settings, self.settings.weights.unraised
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
        silenced = self._silenced_kinds() if weighted else []
        if silenced:
            doubts.append(
                f"Rows with gaps or codes of one kind in {list_some(silenced, quoted=True)} have next to no "
                "weight beside the others, so that copies will hardly show that kind (confidential). What is "
                "rare is risky to these weights: use ScalarWeights (weights: {kind: scalar, alpha: 1})."
            )
        if settings.bound == RENYI and settings.delta * self.records >= 1:
            doubts.append(DELTA_TOO_LARGE)
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
        widest = max(len(link.columns) for link in self.start.design.links)
        plenty = _PLENTY * (widest + 1)  # records' worth; no need to look closer
        if settings.target is not None and self.left < plenty and self.gauge.discards:
            doubts.append(
                "The target is met only by discarding the data: the prior decides the copies (gauge_, "
                f"confidential). {remedies(settings, self.gauge)}"
            )
        elif settings.target is not None:
            share = self.gauge.least_share if self.left < plenty else None
            if share is not None and share < _HALF:
                doubts.append(
                    "The prior decides more than half of the coefficients (gauge_, confidential): copies may "
                    f"keep the column's distribution and lose its relations. {remedies(settings, self.gauge)}"
                )
        if self.flagged:
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
