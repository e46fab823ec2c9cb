"""What is scored: a record's interval, the form d whose extremes over draws are prices, and by-record risk.

A model scores d[s,i] = density_i · log_lik[s,i] + mass_i · log_mass[s,i] + constant_i over draws s, where
`log_mass` is the log probability of the record's interval (docs/maths.md, "Risks and weights"). Which
coefficients a standard has is said in `privacy`; a model only needs the form.

Everything here holds confidential values, and no repr shows one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import LogLik, LogMass, PerLink, PerRecord, RecordMask
from hedgerow.errors import SettingError, format_value
from hedgerow.numerics.scoring import Extremes

RiskKind = Literal["lipschitz", "oscillation"]


@dataclass(frozen=True, repr=False)
class Interval:
    """The ends of every record's range, confidential, and whether the record lies in it.

    Of several protected columns the ends have a column for each link, and a record lies in all of its ranges.
    Of a leaf of records `ranged` says which links have a range in some record of the whole table.
    """

    lower: PerLink
    upper: PerLink
    inside: RecordMask
    ranged: tuple[bool, ...] | None = None  # None: read off these records

    @classmethod
    def join(cls, links: Sequence["Interval"], ranged: tuple[bool, ...] | None = None) -> "Interval":
        """The ranges of a chain, from those of its links; without columns where nothing is known."""
        inside = np.all([link.inside for link in links], axis=0)
        some = ranged or [not link.whole for link in links]
        if len(links) == 1 or not any(some):
            return cls(links[0].lower, links[0].upper, inside, ranged)
        lower, upper = ([getattr(link, end) for link in links] for end in ("lower", "upper"))
        return cls(np.column_stack(lower), np.column_stack(upper), inside, ranged)

    def link(self, place: int) -> "Interval":
        """The ranges of one link."""
        ranged = None if self.ranged is None else self.ranged[place : place + 1]
        return Interval(self.lower[:, place], self.upper[:, place], self.inside, ranged)

    def take(self, rows: NDArray[np.intp]) -> "Interval":
        """The ranges of some records."""
        return Interval(self.lower[rows], self.upper[rows], self.inside[rows], self.ranged)

    @cached_property
    def whole(self) -> bool:
        """True when nothing is known about any record."""
        if self.ranged is not None:
            return not any(self.ranged)
        lower, upper = (end[:1] if end.strides == (0,) else end for end in (self.lower, self.upper))
        return bool(np.isneginf(lower).all() and np.isposinf(upper).all())

    def __getitem__(self, records: slice) -> "Interval":
        return Interval(self.lower[records], self.upper[records], self.inside[records], self.ranged)

    def __repr__(self) -> str:
        return f"Interval({len(self.lower)} records, confidential)"


def has_any(values: PerRecord) -> bool:
    """Whether any is not zero; where all are one number, that one is looked at."""
    return bool((values[:1] if values.strides == (0,) else values).any())


@dataclass(frozen=True)
class Form:
    """What coefficients have in common over all records, by which a kernel is chosen."""

    uses_mass: bool  # some record's d depends on `log_mass`
    conditional: bool  # d is a multiple of log_lik − log_mass
    reversed: bool  # some multiple of log_lik is negative
    shifted: bool  # some constant is not zero

    def join(self, other: "Form") -> "Form":
        """The form of the records of both."""
        return Form(
            self.uses_mass or other.uses_mass,
            self.conditional and other.conditional,
            self.reversed or other.reversed,
            self.shifted or other.shifted,
        )


@dataclass(frozen=True, repr=False)
class Linear:
    """d = density · log_lik + mass · log_mass + constant, coefficients by record."""

    density: PerRecord
    mass: PerRecord
    constant: PerRecord
    whole: Form | None = None  # of a leaf of records: the form of the whole table

    @cached_property
    def form(self) -> Form:
        """What these coefficients have in common."""
        density, mass = self.density, self.mass
        if self.whole is not None:
            return self.whole
        uses_mass = has_any(mass)
        return Form(
            uses_mass,
            conditional=np.array_equal(mass, -density) if uses_mass else not has_any(density),
            reversed=bool(density.size and density.min() < 0),
            shifted=has_any(self.constant),
        )

    @property
    def uses_mass(self) -> bool:
        """Whether any record's d depends on `log_mass`."""
        return self.form.uses_mass

    def __call__(self, records: slice, log_lik: LogLik, log_mass: LogMass) -> LogLik:
        mass = self.mass[records]
        part = self.density[records] * log_lik + self.constant[records]
        if not mass.any():
            return part
        return part + np.where(mass == 0, 0.0, mass * log_mass)

    def __repr__(self) -> str:
        return f"Linear({len(self.density)} records, confidential)"


@dataclass(frozen=True, repr=False)
class Opaque:
    """d given only as a function of a block of records: what no fused kernel can take apart."""

    evaluate: Callable[[slice, LogLik, LogMass], LogLik]
    uses_mass: ClassVar[bool] = True  # nothing says that it does not

    def __call__(self, records: slice, log_lik: LogLik, log_mass: LogMass) -> LogLik:
        return self.evaluate(records, log_lik, log_mass)


Sensitive = Linear | Opaque


@dataclass(frozen=True, eq=False, repr=False)
class Risk(Extremes):
    """How loudly each record speaks: the extremes of its log likelihood over the unweighted draws."""

    @classmethod
    def from_extremes(cls, extremes: Extremes) -> "Risk":
        """The risk that these extremes of f amount to."""
        return cls(extremes.low, extremes.high)

    @property
    def lipschitz(self) -> PerRecord:
        """max_s |f[s,i]|: depends on the units of the outcome, as `oscillation` does not."""
        return self.absolute

    def of(self, kind: RiskKind) -> PerRecord:
        """The risk of that kind."""
        return self.lipschitz if kind == "lipschitz" else self.oscillation

    @property
    def share_above_one(self) -> float:
        """Share of records whose density exceeds 1 at some draw, for which |f| makes the mode look risky."""
        return float((self.high > 0).mean())

    def __repr__(self) -> str:
        return f"Risk({self.low.size} records, confidential)"


def check_risk_kind(kind: str) -> None:
    """Refuse anything but the two kinds of risk."""
    if kind not in ("lipschitz", "oscillation"):
        raise SettingError(f"risk must be 'lipschitz' or 'oscillation', got {format_value(kind)}.")
