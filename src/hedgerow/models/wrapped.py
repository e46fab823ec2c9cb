"""A model made from another one: what the wrapper does not write itself is the other model's."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import LogLik, LogMass, PerRecord
from hedgerow.models import reductions
from hedgerow.models.base import Domain, Inverting, Model, Parameters, Sample
from hedgerow.models.scored import Interval, Linear, Risk, Sensitive
from hedgerow.numerics.scoring import Extremes
from hedgerow.randomness import Key
from hedgerow.tables.design import Design

_LOUDEST = 512  # records


@dataclass(frozen=True)
class Wrapped(Model):
    """Everything of `base` but how it is sampled, and what a correction asks for.

    A wrapper that changes `log_lik` must change `extremes` and `absolute` too: prices are made from these.
    """

    base: Model
    name: str = field(init=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.base.name)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.base.columns

    @property
    def domain(self) -> Domain:
        return self.base.domain

    def check(self, design: Design) -> None:
        self.base.check(design)

    def log_lik(self, design: Design, parameters: Parameters, records: slice) -> LogLik:
        return self.base.log_lik(design, parameters, records)

    def log_mass(self, design: Design, parameters: Parameters, interval: Interval, records: slice) -> LogMass:
        return self.base.log_mass(design, parameters, interval, records)

    def predict(self, design: Design, parameters: Parameters, uniforms: PerRecord) -> PerRecord:
        return self.base.predict(design, parameters, uniforms)

    def inverts(self, design: Design, parameters: Parameters) -> bool:
        return not isinstance(self.base, Inverting) or self.base.inverts(design, parameters)

    def extremes(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> Extremes:
        return reductions.extremes(self.base, design, parameters, sensitive, interval)

    def absolute(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> PerRecord:
        return reductions.absolute(self.base, design, parameters, sensitive, interval)

    def mean_mass(self, design: Design, parameters: Parameters, interval: Interval) -> PerRecord:
        return reductions.mean_mass(self.base, design, parameters, interval)


class PublicRisk(ABC):
    """A model so restricted that no parameters let a record's log likelihood oscillate beyond a known amount.

    Formal guarantees
    -----------------
    `public_risk` depends on the record's own outcome and public things alone. Its oscillation is at least
    sup f_i − inf f_i over all parameters that the model allows, rounded outward.
    """

    @abstractmethod
    def public_risk(self, design: Design) -> Risk:
        """By-record risk, without a fit."""


@dataclass(frozen=True)
class Restricted(PublicRisk, Wrapped):
    """Another model, restricted so."""


@runtime_checkable
class Separable(Protocol):
    """A model that may score a record without looking at the others."""

    def part_of(self, design: Design, rows: NDArray[np.int64]) -> Design | None:
        """Some of the records, scored as within the whole table; None where that is not so."""


@dataclass(frozen=True)
class Loudest(Wrapped):
    """The records that decide a price, scored alone; the others count as silent.

    For searches, whose prices are thrown away: a price is the largest over records, and which of them are
    large hardly changes with the scale of the weights. Nothing that goes out is ever priced this way.
    """

    rows: NDArray[np.int64] = field(repr=False)
    part: Design = field(repr=False)

    def sample(self, design: Design, power: PerRecord, *, draws: int, key: Key) -> Sample:
        return self.base.sample(design, power, draws=draws, key=key)

    def extremes(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> Extremes:
        if not isinstance(sensitive, Linear):
            return super().extremes(design, parameters, sensitive, interval)
        rows = self.rows
        form = Linear(sensitive.density[rows], sensitive.mass[rows], sensitive.constant[rows])
        ends = Interval(interval.lower[rows], interval.upper[rows], interval.inside[rows])
        found = reductions.extremes(self.base, self.part, parameters, form, ends)
        low, high = np.zeros((2, design.records))
        low[rows], high[rows] = found.low, found.high
        return Extremes(low, high)

    def absolute(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> PerRecord:
        return self.extremes(design, parameters, sensitive, interval).absolute


def score_loudest(model: Model, design: Design, prices: PerRecord) -> Model:
    """The model for the records of the largest prices; itself where it scores whole tables, or small ones."""
    if not isinstance(model, Separable) or design.records <= 2 * _LOUDEST:
        return model
    rows = np.sort(np.argpartition(-prices, _LOUDEST)[:_LOUDEST])
    part = model.part_of(design, rows)
    return model if part is None else Loudest(model, rows, part)
