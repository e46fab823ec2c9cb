"""Noisy statistics of what is protected, and everything that follows from them: of one column."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.arrays import Array, PerLink, RecordMask
from hedgerow.errors import SettingError, is_count, list_some
from hedgerow.evidence.attack import Attack, attack_statistics
from hedgerow.evidence.audit import StatisticsAudit
from hedgerow.fitted.finished import DELTA_TOO_LARGE, Finished
from hedgerow.inference.bootstrap import Replay
from hedgerow.inference.bootstrap_noisy import NoisyReplay
from hedgerow.inference.statistics import summarize
from hedgerow.mechanism.fit import to_inference_data
from hedgerow.mechanism.noisy.copies import draw_places, plan_copies, predict_all
from hedgerow.mechanism.noisy.posterior import PosteriorDraws, draw_posterior
from hedgerow.mechanism.noisy.released import Released, describe_part
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.mechanism.noisy.run import (
    Outcomes,
    classes_within,
    divergences,
    losses,
    margin_left_out,
    read_outcomes,
    recipe_of,
    settle_noise,
    withheld_epsilon,
)
from hedgerow.models.base import Health, Parameters
from hedgerow.privacy.bounds import Statement
from hedgerow.privacy.settings import Settings
from hedgerow.randomness import Key
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table

_CLIPPED = 0.05  # share of values at a limit from which copies miss what lies beyond


@dataclass(frozen=True, repr=False, kw_only=True)
class Noised(Finished):
    """Noisy statistics of what is protected: the only thing that was read, and all that copies come from.

    Formal guarantee: what was released is ε-differentially private under the standard's relation, or
    (ε, δ)-differentially private with Gaussian noise. Copies, draws, intervals and `statistics` are functions
    of it, of public things and of independent randomness.
    """

    source: Table
    encoded: Design

    @property
    def table(self) -> Table:
        return self.source

    @property
    def design(self) -> Design:
        return self.encoded

    @property
    def total_epsilon(self) -> float:
        return self.epsilon

    @property
    def statement(self) -> Statement:
        # What the chain achieved is a function of released things, but the claim does not rest on it.
        return self.settings.bound.statement(self.settings.draws, self.health)

    @property
    @abstractmethod
    def clipped_shares(self) -> dict[str, float]:
        """The share of each column's amounts that were moved to a limit; confidential."""

    @property
    def clipped(self) -> float:
        """The largest of these shares; confidential."""
        return max(self.clipped_shares.values(), default=0.0)

    @abstractmethod
    def intervals(self, level: float) -> dict[str, Any]:
        """Quantiles of the posterior, which knows the noise, as columns: one row per parameter."""

    @abstractmethod
    def statistics(self) -> dict[str, Any]:
        """What was released, in plain numbers: sums with the scales of their noise, round by round."""

    @abstractmethod
    def audit(self) -> StatisticsAudit:
        """How much of ε the records at hand use."""

    @abstractmethod
    def attack(self, record: int | None, *, trials: int, confidence: float) -> Attack:
        """Statistics of this table against those of a neighbour, which differs in one record's outcome."""

    @abstractmethod
    def withheld_epsilon(self) -> float:
        """At most this is ε for one row withheld, known beforehand."""

    @abstractmethod
    def divergences(self, orders: Array, *, withheld: bool) -> Array:
        """At most this is the Rényi divergence at each order, for one row withheld or under the relation."""

    @property
    def places(self) -> list[int]:
        """The draws that copies come from, far apart."""
        return draw_places(self.settings)

    def to_arviz(self, *, log_likelihood: bool) -> Any:
        """The draws by chain."""
        if log_likelihood:
            raise SettingError(
                "log_likelihood=True reads every outcome again, which ε does not cover, and noisy statistics "
                "have none. Leave it out."
            )
        return to_inference_data({"posterior": self.parameters}, self.health.chains)

    def doubts(self) -> list[str]:
        doubts = []
        far = [name for name, share in self.clipped_shares.items() if share > _CLIPPED]
        if far:
            doubts.append(
                f"Many values of {list_some(far, quoted=True)} lie beyond the limits and were moved to them "
                "(clipped_, confidential): copies will not show what lies there. Give wider limits if public "
                "knowledge supports them."
            )
        if self.settings.bound.takes_delta and self.settings.delta * self.records >= 1:
            doubts.append(DELTA_TOO_LARGE)
        return doubts


@dataclass(frozen=True, repr=False, kw_only=True)
class NoisedColumn(Noised):
    """Noisy statistics of one protected column."""

    released: Released

    @classmethod
    def of(cls, settings: Settings, table: Table, design: Design, *, key: Key, **more: Any) -> "NoisedColumn":
        """The mechanism: clip, sum and add noise, once."""
        recipe, outcomes = recipe_of(settings, table, design), read_outcomes(settings, design, table)
        settings = settle_noise(settings, recipe)
        released = release_statistics(recipe, *outcomes, key=key.child("statistics"))
        return cls(settings=settings, key=key, source=table, encoded=design, released=released, **more)

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
    def counted(self) -> bool:
        return self.released.counts is not None

    @cached_property
    def drawn(self) -> PosteriorDraws:
        """The posterior given the released statistics."""
        return draw_posterior(self.released, draws=self.settings.draws, key=self.key.child("posterior"))

    @property
    def parameters(self) -> Parameters:
        return self.drawn.parameters

    @property
    def health(self) -> Health:
        return self.drawn.health

    @property
    def clipped_shares(self) -> dict[str, float]:
        (low, high), (response, present) = self.limits, self.outcomes
        there = response[present]
        moved = float(((there <= low) | (there >= high)).mean()) if len(there) else 0.0
        return {self.settings.column.outcome: moved}

    @property
    def limits(self) -> tuple[float, float]:
        """The limits of the response."""
        return self.released.recipe.low, self.released.recipe.high

    def predict(self) -> list[PerLink]:
        blank, classes = self.design.blank(), classes_within(self.settings, self.table)
        plans = plan_copies(self.settings, self.released, self.parameters, key=self.key.child("release"))
        return [predict_all(copying, blank, classes) for copying in plans]

    def replay(self, tables: list[Any]) -> Replay | str:
        if reason := self.why_no_replay():
            return reason
        return NoisyReplay(self.settings, self.design.blank(), self.released, copies=tuple(tables))

    def intervals(self, level: float) -> dict[str, Any]:
        """Quantiles of the posterior, which knows the noise, as columns: one row per parameter."""
        return summarize(self.parameters, list(self.design.columns), level)

    def statistics(self) -> dict[str, Any]:
        """What was released, in plain numbers: sums with the scales of their noise, round by round."""
        recipe, counts, spike = self.released.recipe, self.released.counts, self.released.spike
        plain: dict[str, Any] = {"relation": recipe.relation, "epsilon": recipe.epsilon}
        plain |= {"delta": recipe.delta, "width": recipe.width, "records": recipe.records}
        plain |= {"noise": recipe.noise, "limits": list(self.limits), "columns": list(self.design.columns)}
        plain |= {"rows_per_unit": recipe.rows_per_unit, "cap": recipe.cap}
        plain |= {"basis": recipe.basis.tolist(), "rounds": list(map(describe_part, self.released.rounds))}
        plain |= {"counts": None if counts is None else describe_part(counts)}
        return plain if spike is None else plain | {"spike": describe_part(spike)}

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

    def withheld_epsilon(self) -> float:
        return withheld_epsilon(self.released.recipe)

    def divergences(self, orders: Array, *, withheld: bool) -> Array:
        return divergences(self.released.recipe, orders, withheld=withheld)

    def doubts(self) -> list[str]:
        left_out = margin_left_out(self.settings, self.records)
        return [*super().doubts(), *filter(None, [left_out])]
