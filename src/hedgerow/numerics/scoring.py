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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from hedgerow.arrays import Array, PerRecord
from hedgerow.errors import DataError, RangeError, SettingError
from hedgerow.numerics.hull import (
    Deciding,
    Index,
    find_deciding,
    largest_rounding,
    reach_of_draws,
    rounding_bound,
)
from hedgerow.threads import share_out

BACKENDS = ("numba", "jax")
_HALF_LOG_TWO_PI = 0.9189385332046727
_PART = 65_536  # records between whose extremes and their use nothing leaves the cache
# Record-draws from which finding the hull of the draws (tens of milliseconds) pays for itself.
_WORTH_PRUNING = {"density_extremes": 500_000_000, "conditional_extremes": 20_000_000}


@dataclass(frozen=True, eq=False, repr=False)
class Draws:
    """Posterior draws of coefficients and scale; `draws[0:125]` is a view of some of them."""

    beta: Array
    sigma: Array
    records: int = 0  # that they score in all, a leaf at a time; 0: those that are given

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
        return find_deciding(self.beta, self.sigma)


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

    def shifted(self, shift: PerRecord) -> "Extremes":
        """The extremes after something is added to every value of a record."""
        return Extremes(self.low + shift, self.high + shift)

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


def _records(draws: Draws, Z: Array, y: Array, *ends: Array | float) -> tuple[Array, ...]:
    """Z, y and the ends of intervals, checked, as the kernels take them."""
    Z = np.ascontiguousarray(Z, dtype=np.float64)
    y = np.ascontiguousarray(y, dtype=np.float64)
    if Z.ndim != 2 or y.ndim != 1 or Z.shape != (y.size, draws.beta.shape[1]):
        raise SettingError(
            f"Z must have one row per record and one column per coefficient: got Z {Z.shape}, y {y.shape}, "
            f"beta {draws.beta.shape}."
        )
    interval = [_per_record(end, y) for end in ends]
    if interval and not np.all(interval[0] <= interval[1]):
        raise RangeError(
            "Every interval needs lower <= upper, neither of them missing. Swap or fill the ends."
        )
    return Z, y, *interval


def _per_record(values: Array | float, y: Array) -> Array:
    if isinstance(values, np.ndarray) and values.shape == y.shape and values.flags.c_contiguous:
        return np.asarray(values, dtype=np.float64)  # the very array, which a device may know
    return np.ascontiguousarray(np.broadcast_to(np.asarray(values, dtype=np.float64), y.shape))


def _run(kernel: str, records: tuple[Array, ...], draws: Draws, *coefficients: Array) -> Any:
    return _kernel(kernel)(*records, draws.beta, draws.sigma, *coefficients)


def _kernel(name: str) -> Any:
    return getattr(importlib.import_module(f"hedgerow.numerics.kernels.scoring_{backend()}"), name)


def _extremes(kernel: str, records: tuple[Array, ...], draws: Draws, *coefficients: Array) -> Extremes:
    return _checked(*_run(kernel, records, draws, *coefficients))


def _checked(low: PerRecord, high: PerRecord) -> Extremes:
    _require_numbers(np.all(low <= high))  # missing or infinite inputs leave no value to compare
    return Extremes(low, high)


def _require_numbers(given: Any) -> None:
    if not given:
        raise DataError(
            "Outcome and predictors must be finite numbers. Drop or fill the records that are not."
        )


def _deciding(kernel: str, records: tuple[Array, ...], draws: Draws, prune: bool | None) -> Deciding | None:
    """The draws to scan, or None for all; `prune` None goes by size."""
    if prune is None:  # a GPU is done sooner than a hull is found
        many = max(records[1].size, draws.records) * len(draws)
        prune = many >= _WORTH_PRUNING[kernel] and backend() != "jax"
    return draws.deciding if prune else None


def _low(kernel: str, records: tuple[Array, ...], draws: Draws, kept: Deciding | None) -> PerRecord:
    """The minimum over the kept draws, or over all for records too flat for the certificate of `hull.py`."""
    if kept is None:
        return _extremes(kernel, records, draws).low
    return _in_parts(lambda *part: _low_of(kernel, part, draws, kept), records)


def _in_parts(score: Callable[..., PerRecord], records: tuple[Array, ...]) -> PerRecord:
    """`score` of the records, some at a time on all cores; what it gives a record depends on no other."""
    result = np.empty(records[1].size)

    def fill(first: int) -> None:
        rows = slice(first, first + _PART)
        result[rows] = score(*(part[rows] for part in records))

    share_out(fill, range(0, result.size, _PART))
    return result


def _low_of(kernel: str, records: tuple[Array, ...], draws: Draws, kept: Deciding) -> PerRecord:
    extremes = _extremes(kernel, records, draws[kept.index])

    def doubtful(rows: slice | Index, rounding: PerRecord | float) -> Index:
        low, high = extremes.low[rows], extremes.high[rows]
        slack = 64.0 * np.finfo(np.float64).eps * np.abs(low) + 2.0 * rounding
        with np.errstate(invalid="ignore"):
            return np.flatnonzero(~(np.isfinite(high) & (kept.margin * (high - low) > slack)))

    # What rounding can do to any record is seldom too much for one, and quicker to find than for each.
    Z, y, theta = *records[:2], (draws.beta, draws.sigma)
    flat = doubtful(slice(None), largest_rounding(Z, y, *theta))
    if flat.size:
        flat = flat[doubtful(flat, rounding_bound(Z[flat], y[flat], *theta))]
    if flat.size:
        extremes.low[flat] = _extremes(kernel, tuple(part[flat] for part in records), draws).low
    return extremes.low


def _absolute(
    kernel: str, records: tuple[Array, ...], draws: Draws, shift: Array | float, prune: bool | None
) -> PerRecord:
    """Where a bound on the maximum is closer to zero than the minimum, the minimum decides and may be pruned;
    the other records are scanned in full. Same result either way.
    """
    shift, kept = _per_record(shift, records[1]), _deciding(kernel, records, draws, prune)
    if kept is None and backend() == "jax":
        found = _run(kernel.replace("extremes", "absolute"), (*records, shift), draws)
        _require_numbers(not found.size or not np.isnan(found.max()))
        return np.asarray(found, dtype=np.float64)
    if kept is None:
        return _extremes(kernel, records, draws).shifted(shift).absolute
    return _in_parts(lambda *part: _absolute_of(kernel, part[:-1], part[-1], draws, kept), (*records, shift))


def _absolute_of(
    kernel: str, records: tuple[Array, ...], shift: PerRecord, draws: Draws, kept: Deciding
) -> PerRecord:
    result = np.abs(_low_of(kernel, records, draws, kept) + shift)

    def undecided(most: PerRecord, rows: slice | Index) -> Index:
        # If a bound is negative all values are, and the lowest has the largest absolute value.
        most = most + shift[rows]
        return np.flatnonzero(~((most <= 0.0) | (most <= result[rows])))

    if kernel == "density_extremes":  # f never exceeds its constant at the smallest σ
        constant = np.max(-np.log(draws.sigma) - _HALF_LOG_TWO_PI)
        rest = undecided(np.broadcast_to(constant, shift.shape), slice(None))
    else:
        rest = undecided(_roughly_most(records, draws), slice(None))
        if rest.size:
            some = tuple(part[rest] for part in records)
            rest = rest[undecided(_conditional_most(some, draws[kept.index], draws), rest)]
    if rest.size:
        extremes = _extremes(kernel, tuple(part[rest] for part in records), draws)
        result[rest] = extremes.shifted(shift[rest]).absolute
    return np.asarray(result, dtype=np.float64)


def density_extremes(Z: Array, y: Array, draws: Draws) -> Extremes:
    """Extremes of f over all draws."""
    return _extremes("density_extremes", _records(draws, Z, y), draws)


def links_extremes(links: Sequence[tuple[Array, Array, Draws, Array | float]]) -> Extremes:
    """Extremes over paired draws of the sum of f over the links of a chain: Z, y, draws, and what is kept.

    The last is 0 for a record without a value of that link, else 1.
    """
    checked = [
        (*_records(draws, Z, y), _per_record(kept, y), draws.beta, draws.sigma) for Z, y, draws, kept in links
    ]
    return _checked(*_kernel("links_extremes")(checked))


def density_low(Z: Array, y: Array, draws: Draws, *, prune: bool | None = None) -> PerRecord:
    """min_s f. `prune` scans only draws that can decide it, with the same result; None goes by size."""
    records = _records(draws, Z, y)
    kept = _deciding("density_extremes", records, draws, prune)
    return _low("density_extremes", records, draws, kept)


def density_absolute(
    Z: Array, y: Array, draws: Draws, *, shift: Array | float = 0.0, prune: bool | None = None
) -> PerRecord:
    """max_s |f + shift_i|; the shift is the Jacobian (−y_i for a lognormal outcome)."""
    return _absolute("density_extremes", _records(draws, Z, y), draws, shift, prune)


def conditional_extremes(
    Z: Array, y: Array, lower: Array | float, upper: Array | float, draws: Draws
) -> Extremes:
    """Extremes of f − log γ, the log density given that the outcome lies in its interval."""
    return _extremes("conditional_extremes", _records(draws, Z, y, lower, upper), draws)


def conditional_low(
    Z: Array, y: Array, lower: Array | float, upper: Array | float, draws: Draws, *, prune: bool | None = None
) -> PerRecord:
    """min_s (f − log γ). `prune` as in `density_low`."""
    records = _records(draws, Z, y, lower, upper)
    kept = _deciding("conditional_extremes", records, draws, prune)
    return _low("conditional_extremes", records, draws, kept)


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
    return _absolute("conditional_extremes", _records(draws, Z, y, lower, upper), draws, shift, prune)


def _conditional_most(records: tuple[Array, ...], vertices: Draws, draws: Draws) -> PerRecord:
    """An upper bound on f − log γ over all draws.

    f − log γ = −log ∫ exp(−((y − μ)t + t²/2)/σ²) dt over the interval's offsets t. By Jensen, over any part
    of it of width w with mean m and mean square q of t, this is at most −log w + ((y − μ)m + q/2)/σ²: linear
    in (β/σ², 1/σ²), so that the vertices of the draws decide its maximum.
    """
    Z, y, lower, upper = records
    start, middle, square = _near_part(lower, upper, draws)
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


def _roughly_most(records: tuple[Array, ...], draws: Draws) -> PerRecord:
    """Another such bound, quicker and not as close: the largest |y − μ| and the smallest σ at once."""
    Z, y, lower, upper = records
    start, middle, square = _near_part(lower, upper, draws)
    centre, deviation, smallest = reach_of_draws(draws.beta, draws.sigma)
    residual = np.abs(y - Z @ centre) + np.abs(Z) @ deviation
    most = (np.abs(middle) * residual + 0.5 * square) / smallest**2
    size = most + np.abs(start) + np.abs(middle) * (np.abs(y) + np.abs(Z) @ np.abs(centre)) / smallest**2
    most += start + 1e-10 * size
    return np.where(np.isfinite(most), most, np.inf)


def _near_part(lower: Array, upper: Array, draws: Draws) -> tuple[PerRecord, PerRecord, PerRecord]:
    """−log w, m and q of the interval, of which an infinite one is cut to a part near y."""
    reach = float(np.median(draws.sigma))
    low = np.clip(lower, np.minimum(-reach, upper - reach), None)
    high = np.clip(upper, None, np.maximum(reach, lower + reach))
    width = high - low
    with np.errstate(divide="ignore"):
        start = np.where(width > 0, -np.log(width), np.inf)
    middle = 0.5 * (low + high)
    return start, middle, middle**2 + width**2 / 12.0


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
    records = _records(draws, Z, y, lower, upper)
    coefficients = (_per_record(one, records[1]) for one in (density_coef, mass_coef))
    return _extremes("combined_extremes", records, draws, *coefficients)


def mean_mass(Z: Array, y: Array, lower: Array | float, upper: Array | float, draws: Draws) -> PerRecord:
    """The mean of γ over draws, in [0, 1]."""
    return np.asarray(_run("mean_mass", _records(draws, Z, y, lower, upper), draws), dtype=np.float64)
