"""Scoring on the CPU: blocks of records in the inner loop, draws outside, nothing of size draws × records.

All compiled code lives in this one file, because numba's cache notices changes to the file of a kernel
but not to files it calls into. The thread pool is Python's own over kernels that release the lock:
numba's parallel back ends either refuse concurrent callers or do not survive a fork.

Results depend neither on the number of threads nor on how records are cut into calls: every record
passes through the same instructions (the last block is padded), fused multiply-adds are asked for
explicitly rather than left to the optimiser, and no reassociation is allowed.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from hedgerow.axes import Array
from hedgerow.numerics.coefficients import EXP, LOG, MILLS, MILLS_CENTRE

BLOCK = 256  # records per block: the working arrays of a block stay in the first-level cache
_TASK = 64 * BLOCK  # the most records a thread takes at a time

_HALF_LOG_TWO_PI = 0.9189385332046727
_SQRT_TWO_PI = 2.5066282746310002
_NARROW = 0.1  # as in intervals.py
_ROUND = 6755399441055744.0  # 1.5·2⁵²: adding it rounds to an integer and leaves that in the low bits
_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_SQRT_HALF_BITS = np.uint64(0x3FE6A09E667F3BCD)
_ONE_BITS = np.uint64(0x3FF0000000000000)
_ROUND_BITS = np.uint64(0x4338000000000000)
_BITS_52 = np.uint64(52)
_BIAS = np.uint64(1023)

_inline = njit(inline="never", error_model="numpy", nogil=True)
_kernel = njit(cache=True, error_model="numpy", nogil=True, boundscheck=False)


@intrinsic
def _fma(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c with one rounding."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


@intrinsic
def _to_bits(typingctx: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), codegen


@intrinsic
def _from_bits(typingctx: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.uint64), codegen


@_inline
def _exp_minus(x):  # type: ignore[no-untyped-def]
    """exp(−x) for x ≥ 0; beyond 700 it stays at exp(−700), which no caller can tell from 0."""
    x = -x if x < 700.0 else -700.0
    shifted = _fma(x, _LOG2_E, _ROUND)
    k = shifted - _ROUND
    x = _fma(-k, _LN2_HIGH, x)
    x = _fma(-k, _LN2_LOW, x)
    p = _fma(EXP[10], x, EXP[9])
    p = _fma(p, x, EXP[8])
    p = _fma(p, x, EXP[7])
    p = _fma(p, x, EXP[6])
    p = _fma(p, x, EXP[5])
    p = _fma(p, x, EXP[4])
    p = _fma(p, x, EXP[3])
    p = _fma(p, x, EXP[2])
    p = _fma(p, x, EXP[1])
    p = _fma(p, x, EXP[0])
    return p * _from_bits((_to_bits(shifted) + _BIAS) << _BITS_52)


@_inline
def _log(x):  # type: ignore[no-untyped-def]
    """log(x) for normal x > 0; anything at or below 0 gives −inf."""
    bits = _to_bits(x)
    power = ((bits - _SQRT_HALF_BITS) + _ONE_BITS) >> _BITS_52
    mantissa = _from_bits(bits - ((power - _BIAS) << _BITS_52))
    k = _from_bits(power + _ROUND_BITS) - (_ROUND + 1023.0)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    q = s * s
    p = _fma(LOG[7], q, LOG[6])
    p = _fma(p, q, LOG[5])
    p = _fma(p, q, LOG[4])
    p = _fma(p, q, LOG[3])
    p = _fma(p, q, LOG[2])
    p = _fma(p, q, LOG[1])
    p = _fma(p, q, LOG[0])
    result = _fma(k, _LN2_HIGH, _fma(k, _LN2_LOW, p * s))
    return result if x > 0.0 else -np.inf


@_inline
def _mills(x):  # type: ignore[no-untyped-def]
    """(1 − Φ(x))/φ(x) for x ≥ 0, infinity included."""
    t = 1.0 / (x + MILLS_CENTRE)
    u = _fma(-2.0 * MILLS_CENTRE, t, 1.0)
    p = _fma(MILLS[21], u, MILLS[20])
    p = _fma(p, u, MILLS[19])
    p = _fma(p, u, MILLS[18])
    p = _fma(p, u, MILLS[17])
    p = _fma(p, u, MILLS[16])
    p = _fma(p, u, MILLS[15])
    p = _fma(p, u, MILLS[14])
    p = _fma(p, u, MILLS[13])
    p = _fma(p, u, MILLS[12])
    p = _fma(p, u, MILLS[11])
    p = _fma(p, u, MILLS[10])
    p = _fma(p, u, MILLS[9])
    p = _fma(p, u, MILLS[8])
    p = _fma(p, u, MILLS[7])
    p = _fma(p, u, MILLS[6])
    p = _fma(p, u, MILLS[5])
    p = _fma(p, u, MILLS[4])
    p = _fma(p, u, MILLS[3])
    p = _fma(p, u, MILLS[2])
    p = _fma(p, u, MILLS[1])
    p = _fma(p, u, MILLS[0])
    return p * t


@_inline
def _series(half, middle):  # type: ignore[no-untyped-def]
    """Σ_k He_2k(middle) half^2k / (2k+1)!: what density × width is multiplied by."""
    product = half * middle
    q, v = product * product, half * half
    vv = v * v
    g1 = q - v
    g2 = (q - 5.0 * v) * g1 - 2.0 * vv
    g3 = (q - 9.0 * v) * g2 - 12.0 * vv * g1
    g4 = (q - 13.0 * v) * g3 - 30.0 * vv * g2
    g5 = (q - 17.0 * v) * g4 - 56.0 * vv * g3
    total = _fma(g5, 1.0 / 39916800.0, g4 * (1.0 / 362880.0))
    total = _fma(g3, 1.0 / 5040.0, total)
    total = _fma(g2, 1.0 / 120.0, total)
    return 1.0 + _fma(g1, 1.0 / 6.0, total)


@_inline
def _scaled_mass(a, b, half, middle, straddle):  # type: ignore[no-untyped-def]
    """√(2π)·γ over exp(−reference²/2): reference 0 if the ends straddle zero, else the end nearer to it."""
    near, far = abs(a), abs(b)
    if near > far:
        near, far = far, near
    near_exponent = 0.5 * near * near if straddle else 0.0
    far_exponent = 0.5 * far * far if straddle else 2.0 * half * abs(middle)
    near_tail = _mills(near) * _exp_minus(near_exponent)
    far_tail = _mills(far) * _exp_minus(far_exponent)
    return _SQRT_TWO_PI - (near_tail + far_tail) if straddle else near_tail - far_tail


@_inline
def _log_tiny(x):  # type: ignore[no-untyped-def]
    """log(x) for x ≥ 0, subnormal numbers included: narrow intervals may be that narrow."""
    small = x < 1e-290
    return _log(x * 1.157920892373162e77 if small else x) - (177.445678223346 if small else 0.0)


@_inline
def _load_block(Z, y, start, count, columns):  # type: ignore[no-untyped-def]
    """Transpose a block; row 0 is y. A short block is padded with copies of its last record."""
    for k in range(Z.shape[1]):
        for j in range(BLOCK):
            columns[k + 1, j] = Z[start + min(j, count - 1), k]
    for j in range(BLOCK):
        columns[0, j] = y[start + min(j, count - 1)]


@_inline
def _load_interval(lower, upper, start, count, ends, widest):  # type: ignore[no-untyped-def]
    """Rows: lower, upper, half width, middle. True if some interval may need the series for narrow ones."""
    narrow = False
    for j in range(BLOCK):
        lo, up = lower[start + min(j, count - 1)], upper[start + min(j, count - 1)]
        if lo == up:  # empty; any finite place will do
            lo, up = 0.0, 0.0
        ends[0, j], ends[1, j] = lo, up
        ends[2, j] = 0.5 * (up - lo)
        ends[3, j] = 0.5 * (lo + up) if lo > -np.inf or up < np.inf else 0.0
        narrow = narrow or not ends[2, j] >= _NARROW * widest
    return narrow


@_inline
def _residuals(columns, slope, residual):  # type: ignore[no-untyped-def]
    """(y − z'β)/σ; slope is (1/σ, −β/σ). The first product is exact for a column of ones, see `_density`."""
    for j in range(BLOCK):
        residual[j] = _fma(slope[0], columns[0, j], slope[1] * columns[1, j])
    for k in range(2, columns.shape[0]):
        c = slope[k]
        for j in range(BLOCK):
            residual[j] = _fma(c, columns[k, j], residual[j])


@_kernel
def _density(first, last, Z, y, slopes, constants, low, high):  # type: ignore[no-untyped-def]
    columns = np.empty((Z.shape[1] + 1, BLOCK))
    residual, block_low, block_high = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for start in range(first, last, BLOCK):
        count = min(BLOCK, last - start)
        _load_block(Z, y, start, count, columns)
        block_low[:], block_high[:] = np.inf, -np.inf
        for s in range(slopes.shape[0]):
            _residuals(columns, slopes[s], residual)
            constant = constants[s]
            for j in range(BLOCK):
                f = _fma(-0.5 * residual[j], residual[j], constant)
                block_low[j] = f if f < block_low[j] else block_low[j]
                block_high[j] = f if f > block_high[j] else block_high[j]
        low[start : start + count], high[start : start + count] = block_low[:count], block_high[:count]


@_kernel
def _conditional(first, last, Z, y, slopes, constants, lower, upper, widest, low, high):  # type: ignore[no-untyped-def]
    columns, ends = np.empty((Z.shape[1] + 1, BLOCK)), np.empty((4, BLOCK))
    residual, block_low, block_high = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for start in range(first, last, BLOCK):
        count = min(BLOCK, last - start)
        _load_block(Z, y, start, count, columns)
        any_narrow = _load_interval(lower, upper, start, count, ends, widest)
        block_low[:], block_high[:] = np.inf, -np.inf
        for s in range(slopes.shape[0]):
            _residuals(columns, slopes[s], residual)
            scale, constant = slopes[s, 0], constants[s] + _HALF_LOG_TWO_PI
            if any_narrow:
                for j in range(BLOCK):
                    r = residual[j]
                    to_lower, to_upper = scale * ends[0, j], scale * ends[1, j]
                    half, to_middle = scale * ends[2, j], scale * ends[3, j]
                    a, b, m = r + to_lower, r + to_upper, r + to_middle
                    straddle = a * b < 0.0
                    mass = _scaled_mass(a, b, half, m, straddle)
                    to_near = to_lower if abs(a) < abs(b) else to_upper
                    shift = -r * r if straddle else to_near * (to_near + 2.0 * r)
                    narrow = half * (abs(m) + 1.0) < _NARROW
                    mass = 2.0 * half * _series(half, m) if narrow else mass
                    shift = to_middle * (to_middle + 2.0 * r) if narrow else shift
                    value = _fma(0.5, shift, constant) - _log_tiny(mass)
                    block_low[j] = value if value < block_low[j] else block_low[j]
                    block_high[j] = value if value > block_high[j] else block_high[j]
            else:
                for j in range(BLOCK):
                    r = residual[j]
                    to_lower, to_upper = scale * ends[0, j], scale * ends[1, j]
                    a, b, m = r + to_lower, r + to_upper, r + scale * ends[3, j]
                    straddle = a * b < 0.0
                    mass = _scaled_mass(a, b, scale * ends[2, j], m, straddle)
                    to_near = to_lower if abs(a) < abs(b) else to_upper
                    shift = -r * r if straddle else to_near * (to_near + 2.0 * r)
                    value = _fma(0.5, shift, constant) - _log(mass)
                    block_low[j] = value if value < block_low[j] else block_low[j]
                    block_high[j] = value if value > block_high[j] else block_high[j]
        low[start : start + count], high[start : start + count] = block_low[:count], block_high[:count]


@_kernel
def _combined(  # type: ignore[no-untyped-def]
    first, last, Z, y, slopes, constants, lower, upper, widest, density_coef, mass_coef, low, high
):
    columns, ends = np.empty((Z.shape[1] + 1, BLOCK)), np.empty((4, BLOCK))
    residual, block_low, block_high = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    c, e = np.empty(BLOCK), np.empty(BLOCK)
    for start in range(first, last, BLOCK):
        count = min(BLOCK, last - start)
        _load_block(Z, y, start, count, columns)
        _load_interval(lower, upper, start, count, ends, widest)
        for j in range(BLOCK):
            c[j], e[j] = density_coef[start + min(j, count - 1)], mass_coef[start + min(j, count - 1)]
        block_low[:], block_high[:] = np.inf, -np.inf
        for s in range(slopes.shape[0]):
            _residuals(columns, slopes[s], residual)
            scale, constant = slopes[s, 0], constants[s]
            for j in range(BLOCK):
                r = residual[j]
                to_lower, to_upper = scale * ends[0, j], scale * ends[1, j]
                half = scale * ends[2, j]
                a, b, m = r + to_lower, r + to_upper, r + scale * ends[3, j]
                straddle = a * b < 0.0
                mass = _scaled_mass(a, b, half, m, straddle)
                near = a if abs(a) < abs(b) else b
                exponent = 0.0 if straddle else near * near
                narrow = half * (abs(m) + 1.0) < _NARROW
                mass = 2.0 * half * _series(half, m) if narrow else mass
                exponent = m * m if narrow else exponent
                log_mass = _log_tiny(mass) - _fma(0.5, exponent, _HALF_LOG_TWO_PI)
                f = _fma(-0.5 * r, r, constant)
                density_part = 0.0 if c[j] == 0.0 else c[j] * f
                mass_part = 0.0 if e[j] == 0.0 else e[j] * log_mass
                value = density_part + mass_part
                block_low[j] = value if value < block_low[j] else block_low[j]
                block_high[j] = value if value > block_high[j] else block_high[j]
        low[start : start + count], high[start : start + count] = block_low[:count], block_high[:count]


@_kernel
def _mass_sum(first, last, Z, y, slopes, lower, upper, widest, total):  # type: ignore[no-untyped-def]
    columns, ends = np.empty((Z.shape[1] + 1, BLOCK)), np.empty((4, BLOCK))
    residual, block_total = np.empty(BLOCK), np.empty(BLOCK)
    for start in range(first, last, BLOCK):
        count = min(BLOCK, last - start)
        _load_block(Z, y, start, count, columns)
        _load_interval(lower, upper, start, count, ends, widest)
        block_total[:] = 0.0
        for s in range(slopes.shape[0]):
            _residuals(columns, slopes[s], residual)
            scale = slopes[s, 0]
            for j in range(BLOCK):
                r = residual[j]
                half = scale * ends[2, j]
                a, b, m = r + scale * ends[0, j], r + scale * ends[1, j], r + scale * ends[3, j]
                straddle = a * b < 0.0
                narrow = half * (abs(m) + 1.0) < _NARROW
                near, far = abs(a), abs(b)
                first_exponent = 0.5 * m * m if narrow else 0.5 * near * near
                near_density, far_density = _exp_minus(first_exponent), _exp_minus(0.5 * far * far)
                near_tail, far_tail = _mills(near) * near_density, _mills(far) * far_density
                mass = _SQRT_TWO_PI - (near_tail + far_tail) if straddle else abs(near_tail - far_tail)
                mass = 2.0 * half * _series(half, m) * near_density if narrow else mass
                block_total[j] += mass
        total[start : start + count] = block_total[:count]


def threads() -> int:
    """HEDGEROW_THREADS, or the processors this process may use."""
    asked = os.environ.get("HEDGEROW_THREADS")
    if asked:
        return max(1, int(asked))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _spread(kernel: Callable[..., None], records: int, *arguments: Any) -> None:
    """Run a kernel over all records, in whole blocks shared out between threads."""
    workers = threads()
    step = min(_TASK, -(-records // (4 * workers * BLOCK)) * BLOCK)
    tasks = [(first, min(first + step, records)) for first in range(0, records, max(step, BLOCK))]
    if workers == 1 or len(tasks) <= 1:
        for first, last in tasks:
            kernel(first, last, *arguments)
        return
    kernel(*tasks[0], *arguments)  # compiles once, before the threads would all try
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(lambda task: kernel(*task, *arguments), tasks[1:]):
            pass


def _slopes(beta: Array, sigma: Array) -> tuple[Array, Array]:
    """(1/σ, −β/σ) and −log σ − ½ log 2π, a row a draw."""
    scale = 1.0 / sigma
    slopes = np.empty((sigma.size, beta.shape[1] + 1))
    slopes[:, 0] = scale
    np.multiply(beta, -scale[:, None], out=slopes[:, 1:])
    return slopes, -np.log(sigma) - _HALF_LOG_TWO_PI


def density_extremes(Z: Array, y: Array, beta: Array, sigma: Array) -> tuple[Array, Array]:
    low, high = np.empty(y.size), np.empty(y.size)
    _spread(_density, y.size, Z, y, *_slopes(beta, sigma), low, high)
    return low, high


def conditional_extremes(
    Z: Array, y: Array, lower: Array, upper: Array, beta: Array, sigma: Array
) -> tuple[Array, Array]:
    low, high = np.empty(y.size), np.empty(y.size)
    slopes, constants = _slopes(beta, sigma)
    _spread(_conditional, y.size, Z, y, slopes, constants, lower, upper, sigma.max(), low, high)
    return low, high


def combined_extremes(
    Z: Array,
    y: Array,
    lower: Array,
    upper: Array,
    beta: Array,
    sigma: Array,
    density_coef: Array,
    mass_coef: Array,
) -> tuple[Array, Array]:
    low, high = np.empty(y.size), np.empty(y.size)
    slopes, constants = _slopes(beta, sigma)
    interval = (lower, upper, sigma.max())
    _spread(_combined, y.size, Z, y, slopes, constants, *interval, density_coef, mass_coef, low, high)
    return low, high


def mean_mass(Z: Array, y: Array, lower: Array, upper: Array, beta: Array, sigma: Array) -> Array:
    total = np.empty(y.size)
    slopes, _ = _slopes(beta, sigma)
    _spread(_mass_sum, y.size, Z, y, slopes, lower, upper, sigma.max(), total)
    return np.clip(total / (_SQRT_TWO_PI * sigma.size), 0.0, 1.0)
