"""A model made from another one: what the wrapper does not write itself is the other model's."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from hedgerow.arrays import LogLik, LogMass, PerRecord
from hedgerow.models import reductions
from hedgerow.models.base import Domain, Inverting, Model, Parameters
from hedgerow.models.scored import Interval, Risk, Sensitive
from hedgerow.numerics.scoring import Extremes
from hedgerow.tables.design import Design


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
