"""What a release by noisy statistics gives out: the sums with their noise. Public once ε is paid."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from hedgerow.arrays import Array, Matrix, PerRecord
from hedgerow.mechanism.noisy.recipe import Recipe


@dataclass(frozen=True, eq=False)
class Spike:
    """The noisy sum over outcomes at the spike, in loadings. Released: public."""

    scores: Array  # T₀ = Σ v_i q_i + noise (p,)
    scale: float  # of the noise
    row_price: float = 0.0  # ε, or ρ with Gaussian noise, that it costs one row; rounded up

    def remaining(self, matrix: Matrix) -> Array | float:
        """The chance that records with these predictors may still be here."""
        return 1.0

    def spread_of_entries(self, chance: PerRecord) -> PerRecord | float:
        """Mean square of what a record adds beside an entry that is random, entry apart."""
        return chance


@dataclass(frozen=True, eq=False)
class Round:
    """The statistics of one round with their noise, in the response's units. Released: public."""

    line: Array  # b₀: coefficients of the line about which residuals were clipped (p,)
    window: float  # w
    blank: float  # κ: what a blank adds to the sum of squares
    scores: Array  # T₁ = Σ v_i q_i r_i + noise (p,)
    squares: float  # T₂ = Σ r_i² + noise
    score_scale: float  # of the noise: Laplace's b, or a Gaussian's standard deviation
    square_scale: float
    row_price: float = 0.0  # ε that the round costs one row, or ρ with Gaussian noise; rounded up


@dataclass(frozen=True, eq=False)
class Counts:
    """Noisy counts of the response in bins whose edges follow from the rounds. Released: public."""

    edges: Array  # inner edges, one fewer than counts, in the response's units
    counts: Array
    scale: float  # Laplace's b


@dataclass(frozen=True, eq=False)
class Released:
    """All that was read off the confidential outcome, and the recipe by which: public once ε is paid.

    Draws, copies and intervals are functions of it, of public things and of independent randomness.
    """

    recipe: Recipe
    rounds: tuple[Round, ...]
    counts: Counts | None
    spike: Spike | None = None


Statistics = TypeVar("Statistics", Spike, Round, Counts)


def describe_part(part: Spike | Round | Counts) -> dict[str, Any]:
    """One of these in plain numbers, which JSON holds."""
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(part).items()
    }


def read_part(kind: type[Statistics], plain: Mapping[str, Any]) -> Statistics:
    """One of these from its plain numbers."""
    entries: dict[str, Any] = {
        name: np.array(value, dtype=np.float64) if isinstance(value, list) else value
        for name, value in plain.items()
    }
    return kind(**entries)
