"""What a release by noisy statistics is told beforehand, and what it gives out: both public.

    Recipe (settings, X, n)  →  rounds read the outcome once each  →  Released  →  draws, copies, intervals

Everything after `Released` is post-processing: any number of copies costs the same ε.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, Matrix

Relation = Literal["withheld", "replaced", "range"]
Noise = Literal["laplace", "gaussian"]
LOADING_UNIT = 2.0**-16  # loadings are whole multiples of it


@dataclass(frozen=True, eq=False)
class Recipe:
    """Settled before any outcome is read: from the plan, the public predictors and their number alone."""

    matrix: Matrix  # X, n × p, public
    basis: Array  # p × p: Q = X · basis has Q'Q/n = I, rows made sparse by a rotation
    loadings: NDArray[np.int64]  # V, n × p: v_i q_ij in units of LOADING_UNIT
    low: float  # limits of the response (of log x for the lognormal)
    high: float
    relation: Relation
    width: float | None  # relation "range": the widest set of values, on the response's scale
    epsilon: float
    delta: float  # 0 for Laplace noise
    noise: Noise
    first_share: float  # of ε for round one
    margin_share: float  # of ε for the margin's counts; 0: none. Round two has the rest

    @property
    def records(self) -> int:
        """n, public."""
        return len(self.matrix)

    @property
    def half_width(self) -> float:
        """H: half the distance of the limits."""
        return (self.high - self.low) / 2


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


@dataclass(frozen=True, eq=False)
class Counts:
    """Noisy counts of the response in bins whose edges follow from the rounds. Released: public."""

    edges: Array  # inner edges, one fewer than counts, in the response's units
    counts: Array
    scale: float  # Laplace's b


@dataclass(frozen=True, eq=False)
class Released:
    """All that was read off the confidential outcome: public once ε is paid."""

    recipe: Recipe
    rounds: tuple[Round, ...]
    counts: Counts | None
