"""A model made from another one: what the wrapper does not write itself is the other model's."""

from dataclasses import dataclass, field
from typing import Any

from hedgerow.arrays import Array, LogLik, LogMass, PerRecord
from hedgerow.models.base import Model, Parameters
from hedgerow.models.scored import Interval, Sensitive
from hedgerow.numerics.scoring import Extremes
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table
from hedgerow.tables.values import Support


@dataclass(frozen=True)
class Wrapped(Model):
    """Everything of `base` but how it is sampled.

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
    def atoms(self) -> bool:
        return self.base.atoms

    @property
    def support(self) -> Support:
        return self.base.support

    def declared(self, design: Design) -> str:
        return self.base.declared(design)

    def classes(self, table: Table, outcome: str) -> tuple[Any, ...] | None:
        return self.base.classes(table, outcome)

    def check(self, design: Design) -> None:
        self.base.check(design)

    def log_lik(self, design: Design, parameters: Parameters, records: slice) -> LogLik:
        return self.base.log_lik(design, parameters, records)

    def log_mass(self, design: Design, parameters: Parameters, interval: Interval, records: slice) -> LogMass:
        return self.base.log_mass(design, parameters, interval, records)

    def predict(self, design: Design, parameters: Parameters, uniforms: PerRecord) -> PerRecord:
        return self.base.predict(design, parameters, uniforms)

    def inverts(self, design: Design, parameters: Parameters) -> bool:
        return self.base.inverts(design, parameters)

    def free(self, design: Design, parameters: Parameters) -> Array:
        return self.base.free(design, parameters)

    def natural(self, design: Design, free: Array) -> Parameters:
        return self.base.natural(design, free)

    def chance(self, design: Design, truth: Parameters) -> Array | None:
        return self.base.chance(design, truth)

    def extremes(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> Extremes:
        return self.base.extremes(design, parameters, sensitive, interval)

    def absolute(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> PerRecord:
        return self.base.absolute(design, parameters, sensitive, interval)

    def mean_mass(self, design: Design, parameters: Parameters, interval: Interval) -> PerRecord:
        return self.base.mean_mass(design, parameters, interval)
