"""By-record extremes over posterior draws of normal log densities and interval masses, streamed.

Record i has y_i (the outcome on the model scale), a row z_i of Z and an interval
[y_i + lower_i, y_i + upper_i], given as offsets from y_i because a narrow interval far from zero would
lose its width otherwise. Draw s is (β_s, σ_s). With μ = z_i'β_s:

- f[s,i] = log N(y_i; μ, σ_s²), without Jacobian;
- γ[s,i] = Φ((y_i + upper_i − μ)/σ_s) − Φ((y_i + lower_i − μ)/σ_s).

Nothing of size draws × records is ever held. The same functions run on the CPU (numba) and on a GPU
(JAX); HEDGEROW_BACKEND=numba|jax decides, and without it a GPU is used if JAX has one.
"""

import importlib
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from hedgerow.arrays import Array, PerRecord
from hedgerow.errors import DataError, RangeError, SettingError
from hedgerow.numerics.hull import Deciding, Index, deciding, rounding_bound

BACKENDS = ("numba", "jax")
_HALF_LOG_TWO_PI = 0.9189385332046727


# Record-draws from which finding the hull of the draws (tens of milliseconds) pays for itself.
_WORTH_PRUNING_DENSITY = 500_000_000
_WORTH_PRUNING_CONDITIONAL = 20_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Draws:
    """Posterior draws of coefficients and scale; `draws[0:125]` is a view of some of them."""

    beta: Array
    sigma: Array

    def __post_init__(self) -> None:
        beta = np.ascontiguousarray(self.beta, dtype=np.float64)
        sigma = np.ascontiguousarray(self.sigma, dtype=np.float64)
        if beta.ndim != 2 or beta.shape[1] == 0 or sigma.shape != beta.shape[:1] or sigma.size == 0:
            raise SettingError(
                f"Draws need beta of shape (draws, columns) and sigma of shape (draws,), none of them 0; "
                f"got {beta.shape} and {sigma.shape}."
            )
        if not (np.all(np.isfinite(beta)) and np.all(np.isfinite(sigma)) and np.all(sigma > 0.0)):
            raise SettingError("Draws must be finite with sigma above 0. Check that the fit converged.")
        object.__setattr__(self, "beta", beta)
        object.__setattr__(self, "sigma", sigma)

    def __len__(self) -> int:
        return int(self.sigma.size)

    def __repr__(self) -> str:
        return f"Draws({len(self)} draws, confidential)"

    def __getitem__(self, some: slice | Index) -> "Draws":
        return Draws(self.beta[some], self.sigma[some])

    @cached_property
    def deciding(self) -> Deciding | None:
        """The draws that can decide a minimum, found once."""
        return deciding(self.beta, self.sigma)


@dataclass(frozen=True, eq=False)
class Extremes:
    """The smallest and the largest value over draws, for each record."""

    low: PerRecord
    high: PerRecord

    @property
    def oscillation(self) -> PerRecord:
        """Largest minus smallest."""
        return np.asarray(self.high - self.low, dtype=np.float64)

    @property
    def absolute(self) -> PerRecord:
        """The largest absolute value."""
        return np.asarray(np.maximum(np.abs(self.low), np.abs(self.high)), dtype=np.float64)

    def __repr__(self) -> str:
        return f"Extremes({self.low.size} records, confidential)"

    def merge(self, other: "Extremes") -> "Extremes":
        """The extremes over both sets of draws."""
        return Extremes(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


@cache
def _default_backend() -> str:
    """JAX only if one of its GPU plug-ins is installed and sees a device; JAX is not imported to find out."""
    plugins = ("jax_cuda12_plugin", "jax_cuda13_plugin", "jax_rocm60_plugin", "jax_rocm7_plugin")
    if importlib.util.find_spec("jax") and any(importlib.util.find_spec(name) for name in plugins):
        import jax

        if any(device.platform in ("gpu", "cuda", "rocm") for device in jax.devices()):
            return "jax"
    return "numba"


def backend() -> str:
    """The name of the back end that scoring uses now."""
    asked = os.environ.get("HEDGEROW_BACKEND", "")
    if asked and asked not in BACKENDS:
        raise SettingError(
            f"HEDGEROW_BACKEND={asked!r} is not one of {', '.join(BACKENDS)}. Unset it or use one."
        )
    return asked or _default_backend()


def _kernels() -> Any:
    return importlib.import_module(f"hedgerow.numerics.kernels_{backend()}")


def _records(Z: Array, y: Array, draws: Draws) -> tuple[Array, Array]:
    Z = np.ascontiguousarray(Z, dtype=np.float64)
    y = np.ascontiguousarray(y, dtype=np.float64)
    if Z.ndim != 2 or y.ndim != 1 or Z.shape != (y.size, draws.beta.shape[1]):
        raise SettingError(
            f"Z must have one row per record and one column per coefficient: got Z {Z.shape}, y {y.shape}, "
            f"beta {draws.beta.shape}."
        )
    return Z, y


def _per_record(values: Array | float, y: Array) -> Array:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(values, dtype=np.float64), y.shape))


def _interval(lower: Array | float, upper: Array | float, y: Array) -> tuple[Array, Array]:
    lower, upper = _per_record(lower, y), _per_record(upper, y)
    if not np.all(lower <= upper):
        raise RangeError(
            "Every interval needs lower <= upper, neither of them missing. Swap or fill the ends."
        )
    return lower, upper


def _checked(low: Array, high: Array) -> Extremes:
    """Missing or infinite inputs leave no value to compare, on either back end."""
    if not np.all(low <= high):
        raise DataError(
            "Outcome and predictors must be finite numbers. Drop or fill the records that are not."
        )
    return Extremes(low, high)


def _kept(draws: Draws, prune: bool) -> Deciding | None:
    return draws.deciding if prune else None


def _certified(
    extremes: Extremes,
    kept: Deciding,
    Z: Array,
    y: Array,
    draws: Draws,
    in_full: Callable[[Index], PerRecord],
) -> PerRecord:
    """The minimum over the kept draws, or over all for records too flat for the certificate of `hull.py`."""
    slack = 2.0 * rounding_bound(Z, y, draws.beta, draws.sigma)
    slack += 64.0 * np.finfo(np.float64).eps * np.abs(extremes.low)
    with np.errstate(invalid="ignore"):
        sure = np.isfinite(extremes.high) & (kept.margin * extremes.oscillation > slack)
    flat = np.flatnonzero(~sure)
    low = extremes.low
    if flat.size:
        low[flat] = in_full(flat)
    return low


def density_extremes(Z: Array, y: Array, draws: Draws) -> Extremes:
    """Extremes of f over all draws."""
    Z, y = _records(Z, y, draws)
    return _checked(*_kernels().density_extremes(Z, y, draws.beta, draws.sigma))


def density_low(Z: Array, y: Array, draws: Draws, *, prune: bool | None = None) -> PerRecord:
    """min_s f. `prune` scans only draws that can decide it, with the same result; None goes by size."""
    Z, y = _records(Z, y, draws)
    kept = _kept(draws, y.size * len(draws) >= _WORTH_PRUNING_DENSITY if prune is None else prune)
    if kept is None:
        return density_extremes(Z, y, draws).low
    extremes = density_extremes(Z, y, draws[kept.index])
    return _certified(extremes, kept, Z, y, draws, lambda some: density_extremes(Z[some], y[some], draws).low)


def density_absolute(
    Z: Array, y: Array, draws: Draws, *, shift: Array | float = 0.0, prune: bool | None = None
) -> PerRecord:
    """max_s |f + shift_i|; the shift is the Jacobian (−y_i for a lognormal outcome).

    f never exceeds its constant at the smallest σ. Where that bound is closer to zero than the minimum,
    the minimum decides and may be pruned; the other records are scanned in full. Same result either way.
    """
    Z, y = _records(Z, y, draws)
    shift = np.broadcast_to(np.asarray(shift, dtype=np.float64), y.shape)
    if _kept(draws, y.size * len(draws) >= _WORTH_PRUNING_DENSITY if prune is None else prune) is None:
        extremes = density_extremes(Z, y, draws)
        return Extremes(extremes.low + shift, extremes.high + shift).absolute
    result = np.abs(density_low(Z, y, draws, prune=True) + shift)
    most = np.max(-np.log(draws.sigma) - _HALF_LOG_TWO_PI) + shift
    # If the bound is negative all values are, and the lowest has the largest absolute value.
    open_ones = np.flatnonzero(~((most <= 0.0) | (most <= result)))
    if open_ones.size:
        extremes = density_extremes(Z[open_ones], y[open_ones], draws)
        result[open_ones] = Extremes(
            extremes.low + shift[open_ones], extremes.high + shift[open_ones]
        ).absolute
    return np.asarray(result, dtype=np.float64)


def conditional_extremes(
    Z: Array, y: Array, lower: Array | float, upper: Array | float, draws: Draws
) -> Extremes:
    """Extremes of f − log γ, the log density given that the outcome lies in its interval."""
    Z, y = _records(Z, y, draws)
    lower, upper = _interval(lower, upper, y)
    return _checked(*_kernels().conditional_extremes(Z, y, lower, upper, draws.beta, draws.sigma))


def conditional_low(
    Z: Array,
    y: Array,
    lower: Array | float,
    upper: Array | float,
    draws: Draws,
    *,
    prune: bool | None = None,
) -> PerRecord:
    """min_s (f − log γ). `prune` as in `density_low`."""
    Z, y = _records(Z, y, draws)
    lower, upper = _interval(lower, upper, y)
    kept = _kept(draws, y.size * len(draws) >= _WORTH_PRUNING_CONDITIONAL if prune is None else prune)
    if kept is None:
        return conditional_extremes(Z, y, lower, upper, draws).low

    def in_full(some: Index) -> PerRecord:
        return conditional_extremes(Z[some], y[some], lower[some], upper[some], draws).low

    return _certified(conditional_extremes(Z, y, lower, upper, draws[kept.index]), kept, Z, y, draws, in_full)


def conditional_absolute(
    Z: Array,
    y: Array,
    lower: Array | float,
    upper: Array | float,
    draws: Draws,
    *,
    shift: Array | float = 0.0,
    prune: bool | None = None,
) -> PerRecord:
    """max_s |f − log γ + shift_i|, as `density_absolute`: the bound on the maximum is Jensen's."""
    Z, y = _records(Z, y, draws)
    lower, upper = _interval(lower, upper, y)
    shift = _per_record(shift, y)
    kept = _kept(draws, y.size * len(draws) >= _WORTH_PRUNING_CONDITIONAL if prune is None else prune)
    if kept is None:
        extremes = conditional_extremes(Z, y, lower, upper, draws)
        return Extremes(extremes.low + shift, extremes.high + shift).absolute
    result = np.abs(conditional_low(Z, y, lower, upper, draws, prune=True) + shift)
    most = _conditional_most(Z, y, lower, upper, draws[kept.index], draws) + shift
    open_ones = np.flatnonzero(~((most <= 0.0) | (most <= result)))
    if open_ones.size:
        some = Z[open_ones], y[open_ones], lower[open_ones], upper[open_ones]
        extremes = conditional_extremes(*some, draws)
        result[open_ones] = Extremes(
            extremes.low + shift[open_ones], extremes.high + shift[open_ones]
        ).absolute
    return np.asarray(result, dtype=np.float64)


def _conditional_most(
    Z: Array, y: Array, lower: Array, upper: Array, vertices: Draws, draws: Draws
) -> PerRecord:
    """An upper bound on f − log γ over all draws.

    f − log γ = −log ∫ exp(−((y − μ)t + t²/2)/σ²) dt over the interval's offsets t. By Jensen, over any part
    of it of width w with mean m and mean square q of t, this is at most −log w + ((y − μ)m + q/2)/σ²: linear
    in (β/σ², 1/σ²), so that the vertices of the draws decide its maximum.
    """
    reach = float(np.median(draws.sigma))  # cut infinite intervals to a part near y
    low = np.clip(lower, np.minimum(-reach, upper - reach), None)
    high = np.clip(upper, None, np.maximum(reach, lower + reach))
    width = high - low
    with np.errstate(divide="ignore"):
        start = np.where(width > 0, -np.log(width), np.inf)
    middle = 0.5 * (low + high)
    square = middle**2 + width**2 / 12.0
    precision = vertices.sigma**-2.0
    natural = vertices.beta * precision[:, None]
    most = np.empty(y.size)
    for first in range(0, y.size, 4096):
        block = slice(first, first + 4096)
        slope = middle[block] * y[block] + 0.5 * square[block]
        values = np.outer(precision, slope) - (natural @ Z[block].T) * middle[block]
        size = np.abs(values).max(axis=0) + np.abs(slope) * precision.max() + np.abs(start[block])
        most[block] = values.max(axis=0) + start[block] + 1e-10 * size
    return np.where(np.isfinite(most), most, np.inf)


def combined_extremes(
    Z: Array,
    y: Array,
    lower: Array | float,
    upper: Array | float,
    draws: Draws,
    density_coef: Array | float,
    mass_coef: Array | float,
) -> Extremes:
    """Extremes of density_coef_i · f + mass_coef_i · log γ; a coefficient of 0 drops its term."""
    Z, y = _records(Z, y, draws)
    lower, upper = _interval(lower, upper, y)
    coefficients = _per_record(density_coef, y), _per_record(mass_coef, y)
    return _checked(*_kernels().combined_extremes(Z, y, lower, upper, draws.beta, draws.sigma, *coefficients))


def mean_mass(Z: Array, y: Array, lower: Array | float, upper: Array | float, draws: Draws) -> PerRecord:
    """The mean of γ over draws, in [0, 1]."""
    Z, y = _records(Z, y, draws)
    lower, upper = _interval(lower, upper, y)
    return np.asarray(_kernels().mean_mass(Z, y, lower, upper, draws.beta, draws.sigma), dtype=np.float64)
