"""Scoring with JAX, for GPUs: chunks of draws against chunks of records, fused and reduced by XLA.

The same formulas as `scoring_numba`, in 64 bits. Records travel to the device a chunk at a time, so that
neither memory there nor the number of compiled shapes grows with the table. This file must not import
numba: a machine with a GPU may not have it.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hedgerow.arrays import Array
from hedgerow.numerics.kernels.coefficients import MILLS, MILLS_CENTRE
from hedgerow.numerics.normal_mass import NARROW

_RECORDS = 1 << 20  # records on the device at a time
_DRAWS = 16  # draws evaluated before a reduction
_UNROLLED = 12  # columns up to which the products are fused rather than handed to a matrix product

# The context moved out of `experimental` in a later version of JAX.
_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64

_HALF_LOG_TWO_PI = 0.9189385332046727
_SQRT_TWO_PI = 2.5066282746310002


def _mills(x: Any) -> Any:
    """(1 − Φ(x))/φ(x) for x ≥ 0."""
    t = 1.0 / (x + MILLS_CENTRE)
    u = 1.0 - 2.0 * MILLS_CENTRE * t
    p = jnp.full_like(u, MILLS[-1])
    for coefficient in MILLS[-2::-1]:
        p = p * u + coefficient
    return p * t


def _series(half: Any, middle: Any) -> Any:
    """What density × width is multiplied by, see `normal_mass`."""
    q, v = (half * middle) ** 2, half * half
    vv = v * v
    g1 = q - v
    g2 = (q - 5.0 * v) * g1 - 2.0 * vv
    g3 = (q - 9.0 * v) * g2 - 12.0 * vv * g1
    g4 = (q - 13.0 * v) * g3 - 30.0 * vv * g2
    g5 = (q - 17.0 * v) * g4 - 56.0 * vv * g3
    return 1.0 + (g1 / 6.0 + (g2 / 120.0 + (g3 / 5040.0 + (g4 / 362880.0 + g5 / 39916800.0))))


def _residual(records: dict[str, Any], draw: dict[str, Any]) -> Any:
    """(y − z'β)/σ, one row per draw."""
    slopes, columns = draw["slopes"], records["columns"]
    if columns.shape[0] > _UNROLLED:
        return jnp.matmul(slopes, columns, precision="highest")
    r = slopes[:, 0, None] * columns[0]
    for k in range(1, columns.shape[0]):
        r = r + slopes[:, k, None] * columns[k]
    return r


def _interval(r: Any, records: dict[str, Any], draw: dict[str, Any]) -> tuple[Any, Any, Any]:
    """√(2π)·γ·exp(reference²/2), reference², and reference² − r², the last without cancellation."""
    scale = draw["slopes"][:, 0, None]
    to_lower, to_upper = scale * records["lower"], scale * records["upper"]
    half, to_middle = scale * records["half"], scale * records["middle"]
    a, b, m = r + to_lower, r + to_upper, r + to_middle
    straddle = a * b < 0.0
    narrow = half * (jnp.abs(m) + 1.0) < NARROW
    near, far = jnp.minimum(jnp.abs(a), jnp.abs(b)), jnp.maximum(jnp.abs(a), jnp.abs(b))
    near_tail = _mills(near) * jnp.exp(jnp.where(straddle, -0.5 * near * near, 0.0))
    far_tail = _mills(far) * jnp.exp(jnp.where(straddle, -0.5 * far * far, -2.0 * half * jnp.abs(m)))
    mass = jnp.where(straddle, _SQRT_TWO_PI - (near_tail + far_tail), near_tail - far_tail)
    to_near = jnp.where(jnp.abs(a) < jnp.abs(b), to_lower, to_upper)
    gap = jnp.where(straddle, -r * r, to_near * (to_near + 2.0 * r))
    square = jnp.where(straddle, 0.0, near * near)
    mass = jnp.where(narrow, 2.0 * half * _series(half, m), mass)
    gap = jnp.where(narrow, to_middle * (to_middle + 2.0 * r), gap)
    return mass, jnp.where(narrow, m * m, square), gap


def _density_values(records: dict[str, Any], draw: dict[str, Any]) -> Any:
    r = _residual(records, draw)
    return draw["constants"][:, None] - 0.5 * r * r


def _links_values(records: list[dict[str, Any]], draw: list[dict[str, Any]]) -> Any:
    return sum(one["kept"] * _density_values(one, own) for one, own in zip(records, draw, strict=True))


def _conditional_values(records: dict[str, Any], draw: dict[str, Any]) -> Any:
    mass, _, gap = _interval(_residual(records, draw), records, draw)
    return draw["constants"][:, None] + _HALF_LOG_TWO_PI + 0.5 * gap - jnp.log(mass)


def _combined_values(records: dict[str, Any], draw: dict[str, Any]) -> Any:
    r = _residual(records, draw)
    mass, square, _ = _interval(r, records, draw)
    f = draw["constants"][:, None] - 0.5 * r * r
    log_mass = jnp.log(mass) - 0.5 * square - _HALF_LOG_TWO_PI
    c, e = records["density_coef"], records["mass_coef"]
    return jnp.where(c == 0.0, 0.0, c * f) + jnp.where(e == 0.0, 0.0, e * log_mass)


def _mass_values(records: dict[str, Any], draw: dict[str, Any]) -> Any:
    mass, square, _ = _interval(_residual(records, draw), records, draw)
    return mass * jnp.exp(-0.5 * square) * draw["weight"][:, None]


@partial(jax.jit, static_argnums=0)
def _extremes(values: Callable[..., Any], records: Any, draws: Any) -> Any:
    def step(k: Any, extremes: Any) -> Any:
        block = values(records, jax.tree.map(lambda array: array[k], draws))
        return jnp.minimum(extremes[0], block.min(axis=0)), jnp.maximum(extremes[1], block.max(axis=0))

    start = jnp.full(jax.tree.leaves(records)[0].shape[-1], jnp.inf)
    return jax.lax.fori_loop(0, jax.tree.leaves(draws)[0].shape[0], step, (start, -start))


@jax.jit
def _mass_sum(records: dict[str, Any], draws: dict[str, Any]) -> Any:
    def step(k: Any, total: Any) -> Any:
        some = {name: array[k] for name, array in draws.items()}
        return total + _mass_values(records, some).sum(axis=0)

    return jax.lax.fori_loop(0, draws["constants"].shape[0], step, jnp.zeros_like(records["columns"][0]))


def _draws(beta: Array, sigma: Array) -> dict[str, Any]:
    """Draws in chunks: (1/σ, −β/σ), −log σ − ½ log 2π, and weight 0 for copies that fill the last chunk."""
    scale = 1.0 / sigma
    padding = -sigma.size % _DRAWS
    slopes = np.column_stack([scale, -beta * scale[:, None]])
    constants = -np.log(sigma) - _HALF_LOG_TWO_PI
    weight = np.concatenate([np.ones(sigma.size), np.zeros(padding)])
    return {
        "slopes": jnp.asarray(
            np.pad(slopes, ((0, padding), (0, 0)), mode="edge").reshape(-1, _DRAWS, slopes.shape[1])
        ),
        "constants": jnp.asarray(np.pad(constants, (0, padding), mode="edge").reshape(-1, _DRAWS)),
        "weight": jnp.asarray(weight.reshape(-1, _DRAWS)),
    }


def _chunks(Z: Array, y: Array, **per_record: Array) -> Iterator[tuple[slice, dict[str, Any]]]:
    """Records a chunk at a time; short chunks are padded to a power of two, to compile few shapes."""
    for first in range(0, y.size, _RECORDS):
        part = slice(first, min(first + _RECORDS, y.size))
        count = part.stop - first
        padding = min(_RECORDS, max(256, 1 << (count - 1).bit_length())) - count
        columns = np.empty((Z.shape[1] + 1, count + padding))
        columns[0, :count], columns[1:, :count] = y[part], Z[part].T
        columns[:, count:] = columns[:, count - 1 : count]
        records = {"columns": columns}
        for name, values in per_record.items():
            records[name] = np.pad(values[part], (0, padding), mode="edge")
        if "lower" in records:
            lower, upper = records["lower"], records["upper"]
            empty = lower == upper  # any finite place will do
            lower, upper = np.where(empty, 0.0, lower), np.where(empty, 0.0, upper)
            with np.errstate(invalid="ignore"):
                middle = 0.5 * (lower + upper)
            middle = np.where(np.isnan(middle), 0.0, middle)
            records.update(lower=lower, upper=upper, half=0.5 * (upper - lower), middle=middle)
        yield part, {name: jnp.asarray(values) for name, values in records.items()}


def _scan(
    values: Callable[..., Any], beta: Array, sigma: Array, Z: Array, y: Array, **per_record: Array
) -> Any:
    low, high = np.empty(y.size), np.empty(y.size)
    with _x64(True):
        draws = _draws(beta, sigma)
        for part, records in _chunks(Z, y, **per_record):
            block_low, block_high = _extremes(values, records, draws)
            count = part.stop - part.start
            low[part], high[part] = np.asarray(block_low)[:count], np.asarray(block_high)[:count]
    return low, high


def density_extremes(Z: Array, y: Array, beta: Array, sigma: Array) -> Any:
    return _scan(_density_values, beta, sigma, Z, y)


def links_extremes(links: Sequence[tuple[Array, Array, Array, Array, Array]]) -> Any:
    records = links[0][1].size
    low, high = np.empty(records), np.empty(records)
    with _x64(True):
        draws = [_draws(beta, sigma) for _, _, _, beta, sigma in links]
        for chunks in zip(*(_chunks(Z, y, kept=kept) for Z, y, kept, _, _ in links), strict=True):
            part = chunks[0][0]
            ends = _extremes(_links_values, [chunk for _, chunk in chunks], draws)
            low[part], high[part] = (np.asarray(end)[: part.stop - part.start] for end in ends)
    return low, high


def conditional_extremes(Z: Array, y: Array, lower: Array, upper: Array, beta: Array, sigma: Array) -> Any:
    return _scan(_conditional_values, beta, sigma, Z, y, lower=lower, upper=upper)


def combined_extremes(
    Z: Array,
    y: Array,
    lower: Array,
    upper: Array,
    beta: Array,
    sigma: Array,
    density_coef: Array,
    mass_coef: Array,
) -> Any:
    coefficients = {"density_coef": density_coef, "mass_coef": mass_coef}
    return _scan(_combined_values, beta, sigma, Z, y, lower=lower, upper=upper, **coefficients)


def mean_mass(Z: Array, y: Array, lower: Array, upper: Array, beta: Array, sigma: Array) -> Array:
    total = np.empty(y.size)
    with _x64(True):
        draws = _draws(beta, sigma)
        for part, records in _chunks(Z, y, lower=lower, upper=upper):
            total[part] = np.asarray(_mass_sum(records, draws))[: part.stop - part.start]
    return np.clip(total / (_SQRT_TWO_PI * sigma.size), 0.0, 1.0)
