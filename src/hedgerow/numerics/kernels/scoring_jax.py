"""Scoring with JAX, for GPUs: chunks of draws against chunks of records, fused and reduced by XLA.

The same formulas as `scoring_numba`, in 64 bits. Records travel to the device a chunk at a time, the next one
while the last is scored; how many make a chunk follows from the memory there, and the number of compiled
shapes does not grow with the table. Arrays that nobody may write to, such as a design's predictors and
responses, stay on the device as long as they live, if there is room: both fits and every step of a
calibration then send their draws alone. This file must not import numba: a machine with a GPU may have none.
"""

import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hedgerow.arrays import Array
from hedgerow.numerics.kernels.coefficients import MILLS, MILLS_CENTRE
from hedgerow.numerics.normal_mass import NARROW

_RECORDS = 1 << 20  # records on the device at a time where nothing is known of its memory
_MOST_RECORDS, _FEWEST_RECORDS = 1 << 20, 1 << 16  # where it is; more of them leave its cache
_WORK = (
    16  # numbers for each record beside its predictors: outcome, range, coefficients, what is made of them
)
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
    r = slopes[:, 0, None] * records["y"]
    if columns.shape[0] > _UNROLLED:
        return r + jnp.matmul(slopes[:, 1:], columns, precision="highest")
    for k in range(columns.shape[0]):
        r = r + slopes[:, k + 1, None] * columns[k]
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


def _prepare(records: dict[str, Any]) -> dict[str, Any]:
    """Records as `_interval` takes them: an empty range has any place, and half widths, middles are known."""
    if "lower" not in records:
        return records
    empty = records["lower"] == records["upper"]
    lower, upper = (jnp.where(empty, 0.0, records[end]) for end in ("lower", "upper"))
    middle = 0.5 * (lower + upper)
    middle = jnp.where(jnp.isnan(middle), 0.0, middle)
    return {**records, "lower": lower, "upper": upper, "half": 0.5 * (upper - lower), "middle": middle}


@partial(jax.jit, static_argnums=0)
def _absolute(values: Callable[..., Any], records: dict[str, Any], draws: Any) -> Any:
    low, high = _extremes(values, records, draws)
    largest = jnp.maximum(jnp.abs(low + records["shift"]), jnp.abs(high + records["shift"]))
    return jnp.where(low <= high, largest, jnp.nan)  # missing inputs leave no value to compare


@partial(jax.jit, static_argnums=0)
def _extremes(values: Callable[..., Any], records: Any, draws: Any) -> Any:
    several = isinstance(records, list)
    records = [_prepare(one) for one in records] if several else _prepare(records)

    def step(k: Any, extremes: Any) -> Any:
        block = values(records, jax.tree.map(lambda array: array[k], draws))
        return jnp.minimum(extremes[0], block.min(axis=0)), jnp.maximum(extremes[1], block.max(axis=0))

    start = jnp.full(jax.tree.leaves(records)[0].shape[-1], jnp.inf)
    return jax.lax.fori_loop(0, jax.tree.leaves(draws)[0].shape[0], step, (start, -start))


@jax.jit
def _mass_sum(records: dict[str, Any], draws: dict[str, Any]) -> Any:
    records = _prepare(records)

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


# In memory of the device's own: a processor that serves as one would keep the host's array alive. A matrix
# is turned, since kernels read it column by column.
_OWN = {1: jax.jit(jnp.copy), 2: jax.jit(jnp.transpose)}
_HELD: dict[int, tuple[Any, int, list[Any]]] = {}  # arrays on the device, by the host's


@cache
def _memory() -> int | None:
    """Bytes that the device lends us, if it says so."""
    stats = jax.devices()[0].memory_stats() or {}
    return stats.get("bytes_limit")


def _cut(width: int) -> int:
    """Records of a chunk: a power of two, of which the device holds several at once."""
    memory = _memory()
    if memory is None:
        return _RECORDS
    room = memory // (8 * 8 * (width + _WORK))
    return max(_FEWEST_RECORDS, min(_MOST_RECORDS, 1 << (room.bit_length() - 1)))


def _send(array: Array, cut: int) -> Iterator[Any]:
    """An array's chunks on the device, the last one padded to a power of two, to compile few shapes.

    Those of one that cannot be written to stay there, up to half of the memory.
    """
    held = _HELD.get(id(array))
    if held is not None and held[0]() is array and held[1] == cut:
        yield from held[2]
        return
    room = (_memory() or 0) // 2 - sum(chunk.nbytes for _, _, chunks in _HELD.values() for chunk in chunks)
    keep = not array.flags.writeable and (_memory() is None or array.nbytes <= room)
    sent: list[Any] = []
    for first in range(0, len(array), cut):
        part = array[first : first + cut]
        missing = min(cut, max(256, 1 << (len(part) - 1).bit_length())) - len(part)
        if missing:
            part = np.concatenate([part, np.repeat(part[-1:], missing, axis=0)])
        chunk = _OWN[array.ndim](jax.device_put(part))
        if keep:
            sent.append(chunk)
        yield chunk
    if keep:
        place = id(array)
        _HELD[place] = weakref.ref(array, lambda _: _HELD.pop(place, None)), cut, sent


def _chunks(cut: int, Z: Array, y: Array, **per_record: Array) -> Iterator[dict[str, Any]]:
    """Records a chunk at a time."""
    arrays = {"columns": Z, "y": y, **per_record}
    for parts in zip(*(_send(array, cut) for array in arrays.values()), strict=True):
        yield dict(zip(arrays, parts, strict=True))


def _score(
    reduce: Callable[..., Any], chunks: Iterator[Any], draws: Any, records: int, cut: int
) -> list[Array]:
    """What `reduce` makes of each chunk, joined: one is fetched while the next is sent and scored."""
    results: list[Array] = []
    before: tuple[int, tuple[Any, ...]] | None = None

    def fetch(first: int, parts: tuple[Any, ...]) -> None:
        results.extend(np.empty(records) for _ in range(len(parts) - len(results)))
        for result, part in zip(results, parts, strict=True):
            result[first : first + cut] = np.asarray(part)[: records - first]

    for place, chunk in enumerate(chunks):
        parts = reduce(chunk, draws)
        parts = parts if isinstance(parts, tuple) else (parts,)
        for part in parts:
            part.copy_to_host_async()
        if before is not None:
            fetch(*before)
        before = place * cut, parts
    if before is not None:
        fetch(*before)
    return results


def _scan(
    reduce: Callable[..., Any], beta: Array, sigma: Array, Z: Array, y: Array, **per_record: Array
) -> list[Array]:
    cut = _cut(Z.shape[1])
    with _x64(True):
        return _score(reduce, _chunks(cut, Z, y, **per_record), _draws(beta, sigma), y.size, cut)


def density_extremes(Z: Array, y: Array, beta: Array, sigma: Array) -> Any:
    return _scan(partial(_extremes, _density_values), beta, sigma, Z, y)


def density_absolute(Z: Array, y: Array, shift: Array, beta: Array, sigma: Array) -> Array:
    """max |f + shift|, reduced on the device: one number for each record comes back."""
    return _scan(partial(_absolute, _density_values), beta, sigma, Z, y, shift=shift)[0]


def links_extremes(links: Sequence[tuple[Array, Array, Array, Array, Array]]) -> Any:
    records, cut = links[0][1].size, min(_cut(Z.shape[1]) for Z, *_ in links)
    with _x64(True):
        draws = [_draws(beta, sigma) for _, _, _, beta, sigma in links]
        chunks = zip(*(_chunks(cut, Z, y, kept=kept) for Z, y, kept, _, _ in links), strict=True)
        return _score(partial(_extremes, _links_values), map(list, chunks), draws, records, cut)


def conditional_extremes(Z: Array, y: Array, lower: Array, upper: Array, beta: Array, sigma: Array) -> Any:
    return _scan(partial(_extremes, _conditional_values), beta, sigma, Z, y, lower=lower, upper=upper)


def conditional_absolute(
    Z: Array, y: Array, lower: Array, upper: Array, shift: Array, beta: Array, sigma: Array
) -> Array:
    """max |f − log γ + shift|, likewise."""
    ends = {"lower": lower, "upper": upper, "shift": shift}
    return _scan(partial(_absolute, _conditional_values), beta, sigma, Z, y, **ends)[0]


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
    parts = {"lower": lower, "upper": upper, "density_coef": density_coef, "mass_coef": mass_coef}
    return _scan(partial(_extremes, _combined_values), beta, sigma, Z, y, **parts)


def mean_mass(Z: Array, y: Array, lower: Array, upper: Array, beta: Array, sigma: Array) -> Array:
    (total,) = _scan(_mass_sum, beta, sigma, Z, y, lower=lower, upper=upper)
    return np.clip(total / (_SQRT_TWO_PI * sigma.size), 0.0, 1.0)
