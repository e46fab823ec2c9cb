"""The terms of a release: what is asked for in numbers and words, with their checks. Public."""

import sys
from dataclasses import dataclass
from typing import Literal, get_args

from hedgerow.errors import SettingError, format_value, is_count, is_finite, is_real
from hedgerow.privacy.bounds import DELTA, LIPSCHITZ, Bound

Known = Literal["exact", "simulated"]
Sampling = Literal["independent", "stratified", "projected"]
_MOST_DRAWS = 10**8
_LEAST_EPSILON = sys.float_info.min  # below it, thirds of a number do not add up to it


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What is asked for in numbers and words: public, and free of anybody's objects."""

    bound: Bound = LIPSCHITZ
    epsilon: float | None = None  # target over all copies; None: no calibration, and no ε may be claimed
    delta: float = DELTA  # what the Rényi price and Gaussian noise leave open over all copies
    copies: int = 1
    draws: int = 1000
    known: Known = "exact"  # how λ is found: from distribution functions, or simulated as in the paper
    sampling: Sampling = "independent"
    debias: bool = False
    unit: str | None = None  # a public column: the rows that have the same of it are withheld together

    def __post_init__(self) -> None:
        for name, kind in (("sampling", Sampling), ("known", Known)):
            if getattr(self, name) not in get_args(kind):
                words = " or ".join(map(repr, get_args(kind)))
                raise SettingError(f"{name} must be {words}, got {format_value(getattr(self, name))}.")
        if self.unit is not None and (not isinstance(self.unit, str) or not self.unit):
            raise SettingError(
                f"unit must be the name of a column that says whose row it is, got {format_value(self.unit)}."
            )
        if not isinstance(self.debias, bool):
            raise SettingError(f"debias must be True or False, got {format_value(self.debias)}.")
        if self.epsilon is not None and not (is_finite(self.epsilon) and self.epsilon > 0):
            raise SettingError(
                f"epsilon must be a positive finite number or None, got {format_value(self.epsilon)}."
            )
        if not is_real(self.delta) or not 0 < self.delta < 1:
            raise SettingError(
                f"delta must lie between 0 and 1, got {format_value(self.delta)}; well below 1/n is usual, "
                "such as 1e-6."
            )
        if self.delta != DELTA:
            self._require_delta()
        if not is_count(self.draws) or self.draws < 100:
            raise SettingError(
                f"draws must be a whole number from 100 up, got {format_value(self.draws)}; 1000 is usual."
            )
        if self.draws > _MOST_DRAWS:
            raise SettingError(f"draws must be at most {_MOST_DRAWS}; 1000 is usual.")
        if not is_count(self.copies) or self.copies < 1:
            raise SettingError(f"copies must be a whole number from 1 up, got {format_value(self.copies)}.")
        if self.copies > self.draws:
            raise SettingError(
                f"copies must be at most draws, got {self.copies} copies of {self.draws} draws. Raise draws."
            )
        if self.epsilon is not None and self.epsilon / self.copies < _LEAST_EPSILON:
            raise SettingError(
                f"epsilon must be at least {_LEAST_EPSILON:g} for each copy, got {self.epsilon!r} over "
                f"{self.copies}: a smaller number has too few digits to be divided. Ask for more."
            )
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", float(self.epsilon))  # 6 is asked for as often as 6.0
        object.__setattr__(self, "delta", float(self.delta))

    def _require_delta(self) -> None:
        """A δ that was asked for is kept or refused: other bounds would put their own in its place."""
        if not self.bound.takes_delta:
            raise SettingError(
                f"delta belongs to bound='renyi', got {self.delta!r} with bound='{self.bound}', whose δ "
                "follows from the draws or is 0. Leave it out, or use bound='renyi' (--bound renyi)."
            )

    @property
    def target(self) -> float | None:
        """What calibration holds a fit against; None without a target, and where weights carry it."""
        if self.epsilon is None or not self.bound.local:
            return None
        return self.bound.target(self.epsilon, self.copies)
