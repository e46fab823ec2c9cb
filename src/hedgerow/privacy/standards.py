"""The privacy standards: which exponent the mechanism uses, and which part of it is sensitive.

A standard is a pair (docs/maths.md, "Standards"):

- `power(alpha, known)`: the exponent α*_i on record i's likelihood;
- `sensitive(alpha, known, log_lik, log_mass)`: d_i(θ), the log of the part the public must not learn.

Pricing, calibration, audit and plots know nothing more. To add a standard, subclass `Standard`, write
these two methods with ordinary arithmetic, and say in `neighbour` what the release is compared with.
The last axis of `log_lik` and `log_mass` is the record; `alpha` and `known` broadcast against it.
Standards that are linear in `log_lik` and `log_mass` are recognised and scored by the fused kernels.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from hedgerow.arrays import PerRecord
from hedgerow.errors import SettingError, format_value
from hedgerow.privacy.claims.neighbours import NEIGHBOURS
from hedgerow.privacy.ranges import Everywhere, Range


class Standard(ABC):
    """Which exponent to use, and what of it is sensitive."""

    label: ClassVar[str]
    neighbour: ClassVar[str]  # the database the release is compared with, in words
    weighted: ClassVar[bool] = True  # False: the weights are ignored and α = 1
    uses_known: ClassVar[bool] = False  # True: λ_i is computed from the unweighted fit
    range: Range = Everywhere()
    inside: bool = False  # True: copies are drawn inside the range, which is public

    def assumption(self) -> str:
        """What is assumed public, in words for the guarantee; empty for nothing."""
        return "" if isinstance(self.range, Everywhere) else self.range.describe()

    @abstractmethod
    def power(self, alpha: PerRecord, known: PerRecord) -> PerRecord:
        """α*_i, the exponent on each record's likelihood."""

    @abstractmethod
    def sensitive(self, alpha: PerRecord, known: PerRecord, log_lik: Any, log_mass: Any) -> Any:
        """d[s,i], the log of the sensitive part of each record's pseudo likelihood."""


@dataclass(frozen=True)
class Unweighted(Standard):
    """The plain posterior, α = 1. Prices what synthesis without any weighting would cost."""

    label: ClassVar[str] = "Unweighted"
    neighbour: ClassVar[str] = NEIGHBOURS[label]
    weighted: ClassVar[bool] = False

    def power(self, alpha: PerRecord, known: PerRecord) -> PerRecord:
        return np.ones_like(alpha)

    def sensitive(self, alpha: PerRecord, known: PerRecord, log_lik: Any, log_mass: Any) -> Any:
        return log_lik


@dataclass(frozen=True)
class ADP(Standard):
    """Asymptotic differential privacy: α* = α, d = α f. The paper's "Weighted", or (-Inf, Inf).

    Formal guarantee: none that holds for every parameter. See docs/maths.md, "The price".
    """

    label: ClassVar[str] = "ADP"
    neighbour: ClassVar[str] = NEIGHBOURS[label]

    def power(self, alpha: PerRecord, known: PerRecord) -> PerRecord:
        return alpha

    def sensitive(self, alpha: PerRecord, known: PerRecord, log_lik: Any, log_mass: Any) -> Any:
        return alpha * log_lik


@dataclass(frozen=True)
class RangeAveraged(Standard):
    """Range-averaged: α* = λ + (1−λ)α, d = (1−λ) α f.

    The neighbour still uses the exact x_i at power λ_i, so this ε does not bound what is learned about
    x_i. Read it only beside the price with x_i withheld.
    """

    range: Range = field(default_factory=Everywhere)
    label: ClassVar[str] = "RangeAveraged"
    neighbour: ClassVar[str] = NEIGHBOURS[label]
    uses_known: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_range(self.range, "RangeAveraged")

    def power(self, alpha: PerRecord, known: PerRecord) -> PerRecord:
        return known + (1 - known) * alpha

    def sensitive(self, alpha: PerRecord, known: PerRecord, log_lik: Any, log_mass: Any) -> Any:
        return (1 - known) * alpha * log_lik


@dataclass(frozen=True)
class RangeTruncated(Standard):
    """Range-truncated: α* = α; the release is compared with one in which only x_i ∈ R_i is known.

    `public_weight="alpha"` compares at the same weight, d = α (f − log γ); `"one"` is the formula the
    paper prints, d = α f − log γ, which charges −log γ even for a record the mechanism ignores.
    docs/maths.md, "Two truncated forms", shows why the first is the default.

    `inside=True` draws each copy inside the record's range. The table it is compared with has the same range,
    hence the same copies given the parameters, and ε stays what it was; but the copies show the ranges, which
    must be public: `Brackets` with a column, or `Bounds` from columns or numbers.
    """

    range: Range = field(default_factory=Everywhere)
    public_weight: Literal["alpha", "one"] = "alpha"
    inside: bool = False
    label: ClassVar[str] = "RangeTruncated"
    neighbour: ClassVar[str] = NEIGHBOURS[label]

    def __post_init__(self) -> None:
        _check_range(self.range, "RangeTruncated")
        if self.public_weight not in ("alpha", "one"):
            raise SettingError(
                f"public_weight must be 'alpha' or 'one', got {format_value(self.public_weight)}."
            )
        if not isinstance(self.inside, bool):
            raise SettingError(f"inside must be True or False, got {format_value(self.inside)}.")
        if self.inside:
            require_public(self.range)
        if self.public_weight == "one":  # another neighbour, so another claim
            object.__setattr__(self, "label", "RangeTruncated, public weight one")
            object.__setattr__(self, "neighbour", NEIGHBOURS[self.label])

    def power(self, alpha: PerRecord, known: PerRecord) -> PerRecord:
        return alpha

    def sensitive(self, alpha: PerRecord, known: PerRecord, log_lik: Any, log_mass: Any) -> Any:
        if self.public_weight == "alpha":
            return alpha * (log_lik - log_mass)
        return alpha * log_lik - log_mass


def require_public(public_range: Range) -> None:
    """Refuse to draw copies inside ranges that not everybody knows: the copies would show them."""
    if not public_range.ends_public or isinstance(public_range, Everywhere):
        raise SettingError(
            f"inside=True: copies would show each record's range, and {type(public_range).__name__} as given "
            "is not public. Use Brackets(edges, column=…) with a public column that holds each record's "
            "class, or Bounds from public columns or numbers."
        )
    if public_range.outside == "public":
        raise SettingError(
            "inside=True: no copy can be drawn inside the range of a record that lies outside it. Say "
            "outside='error', or leave inside out."
        )


def _check_range(given: object, where: str) -> None:
    if not isinstance(given, Range):
        raise SettingError(
            f"{where}: range must be a Radius, Brackets, Bounds, Tail, Where, Box or Everywhere, "
            f"got {type(given).__name__}. For instance {where}(Radius(0.4, 1.8))."
        )
