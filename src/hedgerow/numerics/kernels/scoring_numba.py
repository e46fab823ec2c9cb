"""Scoring on the CPU: blocks of records in the inner loop, draws outside, nothing of size draws × records.

Results depend neither on the number of threads nor on how records are cut into calls: every record
passes through the same instructions (the last block is padded), fused multiply-adds are asked for
explicitly rather than left to the optimiser, and no reassociation is allowed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from hedgerow.arrays import Array
from hedgerow.numerics.kernels.coefficients import EXP, LOG, MILLS, MILLS_CENTRE
from hedgerow.numerics.kernels.compiling import inline, kernel, spread, worth_threads
from hedgerow.threads import share_out

BLOCK = 256  # records per block: the working arrays of a block stay in the first-level cache
_TILE = 4 * BLOCK  # records of a chain scored together, with
_TILE_DRAWS = 32  # so many draws: their sums over links stay in the second-level cache

_HALF_LOG_TWO_PI = 0.9189385332046727
_SQRT_TWO_PI = 2.5066282746310002
_NARROW = 0.1  # as in intervals.py
_ROUND = 6755399441055744.0  # 1.5·2⁵²: adding it rounds to an integer and leaves that in the low bits
_SMALLEST = 2.2250738585072014e-308  # normal number
_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_SQRT_HALF_BITS = np.uint64(0x3FE6A09E667F3BCD)
_ONE_BITS = np.uint64(0x3FF0000000000000)
_ROUND_BITS = np.uint64(0x4338000000000000)
_BITS_52 = np.uint64(52)
_BIAS = np.uint64(1023)


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


@intrinsic
def _wide(typingctx: Any) -> Any:
    """Ask for 512-bit registers in the function that calls this, where the processor has them.

    The compiler prefers 256 bits on most such processors; these loops gain by half. llvmlite has no name
    for the attribute, so it goes into the set of attributes as text; without that set nothing happens.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        attributes = builder.function.attributes
        if isinstance(attributes, set):
            set.add(attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), codegen


@inline
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


@inline
def _log(x):  # type: ignore[no-untyped-def]
    """log(x) for normal x > 0; 0, as which subnormal numbers count, gives −inf."""
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
    return result if x >= _SMALLEST else -np.inf


@inline
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


@inline
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


@inline
def _rows(count):  # type: ignore[no-untyped-def]
    """Working rows of a block, starting at a cache line: wide loads across two lines take twice the time."""
    raw = np.empty(count * BLOCK + 8)
    skip = 7 - (raw.ctypes.data // 8 + 7) % 8
    return raw[skip : skip + count * BLOCK].reshape((count, BLOCK))


@inline
def _load_block(Z, y, start, count, columns):  # type: ignore[no-untyped-def]
    """Transpose a block; row 0 is y. A short block is padded with copies of its last record."""
    for k in range(Z.shape[1]):
        for j in range(BLOCK):
            columns[k + 1, j] = Z[start + min(j, count - 1), k]
    for j in range(BLOCK):
        columns[0, j] = y[start + min(j, count - 1)]


@inline
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


@inline
def _residuals(columns, slope, residual):  # type: ignore[no-untyped-def]
    """(y − z'β)/σ; slope is (1/σ, −β/σ). The first product is exact for a column of ones, see `_density`."""
    _wide()
    for j in range(BLOCK):
        residual[j] = _fma(slope[0], columns[0, j], slope[1] * columns[1, j])
    for k in range(2, columns.shape[0]):
        c = slope[k]
        for j in range(BLOCK):
            residual[j] = _fma(c, columns[k, j], residual[j])


@inline
def _tails(residual, ends, scale, relative, distance, exponent):  # type: ignore[no-untyped-def]
    """The tail beyond each end, in `distance`: √(2π)·Q, or Q over the density of the end nearer to zero.

    The second, `relative`, is for intervals on one side of zero, where Q itself may underflow. Stages with
    few constants each, because one long loop runs out of registers and of independent work.
    """
    _wide()
    for j in range(BLOCK):
        r = residual[j]
        a, b = _fma(scale, ends[0, j], r), _fma(scale, ends[1, j], r)
        near, far = abs(a), abs(b)
        smaller = near if near < far else far
        larger = far if near < far else near
        own = a * b < 0.0 or not relative
        apart = 2.0 * scale * ends[2, j] * abs(_fma(scale, ends[3, j], r))
        distance[j], distance[BLOCK + j] = smaller, larger
        exponent[j] = 0.5 * smaller * smaller if own else 0.0
        exponent[BLOCK + j] = 0.5 * larger * larger if own else apart
    for j in range(2 * BLOCK):
        exponent[j] = _exp_minus(exponent[j])
    for j in range(2 * BLOCK):
        distance[j] = _mills(distance[j]) * exponent[j]


@inline
def _widen(low, high, j, value):  # type: ignore[no-untyped-def]
    low[j] = value if value < low[j] else low[j]
    high[j] = value if value > high[j] else high[j]


@kernel
def _density(first, last, Z, y, slopes, constants, low, high):  # type: ignore[no-untyped-def]
    """Two draws and four columns at a time; slopes has rows and columns to match."""
    _wide()
    columns = _rows(slopes.shape[1])
    columns[:] = 0.0
    rows = _rows(4)
    residual, other, block_low, block_high = rows[0], rows[1], rows[2], rows[3]
    for start in range(first, last, BLOCK):
        count = min(BLOCK, last - start)
        _load_block(Z, y, start, count, columns)
        block_low[:], block_high[:] = np.inf, -np.inf
        for s in range(0, slopes.shape[0], 2):
            a, b = slopes[s], slopes[s + 1]
            a0, a1, a2, a3, a4 = a[0], a[1], a[2], a[3], a[4]
            b0, b1, b2, b3, b4 = b[0], b[1], b[2], b[3], b[4]
            for j in range(BLOCK):
                outcome, z1, z2, z3, z4 = (
                    columns[0, j],
                    columns[1, j],
                    columns[2, j],
                    columns[3, j],
                    columns[4, j],
                )
                r = _fma(a2, z2, _fma(a0, outcome, a1 * z1))
                q = _fma(b2, z2, _fma(b0, outcome, b1 * z1))
                residual[j] = _fma(a4, z4, _fma(a3, z3, r))
                other[j] = _fma(b4, z4, _fma(b3, z3, q))
            for k in range(5, slopes.shape[1], 4):
                a1, a2, a3, a4 = a[k], a[k + 1], a[k + 2], a[k + 3]
                b1, b2, b3, b4 = b[k], b[k + 1], b[k + 2], b[k + 3]
                for j in range(BLOCK):
                    z1, z2, z3, z4 = columns[k, j], columns[k + 1, j], columns[k + 2, j], columns[k + 3, j]
                    residual[j] = _fma(a4, z4, _fma(a3, z3, _fma(a2, z2, _fma(a1, z1, residual[j]))))
                    other[j] = _fma(b4, z4, _fma(b3, z3, _fma(b2, z2, _fma(b1, z1, other[j]))))
            constant, other_constant = constants[s], constants[s + 1]
            for j in range(BLOCK):
                f = _fma(-0.5 * residual[j], residual[j], constant)
                g = _fma(-0.5 * other[j], other[j], other_constant)
                least, most = (f, g) if f < g else (g, f)
                block_low[j] = least if least < block_low[j] else block_low[j]
                block_high[j] = most if most > block_high[j] else block_high[j]
        low[start : start + count], high[start : start + count] = block_low[:count], block_high[:count]


@kernel
def _density_one_slope(first, last, Z, y, slopes, constants, low, high):  # type: ignore[no-untyped-def]
    """`_density` for an intercept and at most one more column, to the bit: four draws at a time.

    slopes has the columns 1/σ, −β_0/σ, −β_1/σ, and a multiple of four rows.
    """
    _wide()
    extra = Z.shape[1] - 1
    rows = _rows(4)
    x, outcome, block_low, block_high = rows[0], rows[1], rows[2], rows[3]
    x[:] = 0.0
    for start in range(first, last, BLOCK):
        count = min(BLOCK, last - start)
        for j in range(BLOCK):
            outcome[j] = y[start + min(j, count - 1)]
        if extra:
            for j in range(BLOCK):
                x[j] = Z[start + min(j, count - 1), 1]
        block_low[:], block_high[:] = np.inf, -np.inf
        for s in range(0, slopes.shape[0], 4):
            a0, b0, c0, k0 = slopes[s, 0], slopes[s, 1], slopes[s, 2], constants[s]
            a1, b1, c1, k1 = slopes[s + 1, 0], slopes[s + 1, 1], slopes[s + 1, 2], constants[s + 1]
            a2, b2, c2, k2 = slopes[s + 2, 0], slopes[s + 2, 1], slopes[s + 2, 2], constants[s + 2]
            a3, b3, c3, k3 = slopes[s + 3, 0], slopes[s + 3, 1], slopes[s + 3, 2], constants[s + 3]
            for j in range(BLOCK):
                r0 = _fma(c0, x[j], _fma(a0, outcome[j], b0))
                r1 = _fma(c1, x[j], _fma(a1, outcome[j], b1))
                r2 = _fma(c2, x[j], _fma(a2, outcome[j], b2))
                r3 = _fma(c3, x[j], _fma(a3, outcome[j], b3))
                f0, f1 = _fma(-0.5 * r0, r0, k0), _fma(-0.5 * r1, r1, k1)
                f2, f3 = _fma(-0.5 * r2, r2, k2), _fma(-0.5 * r3, r3, k3)
                least, most = block_low[j], block_high[j]
                least, most = f0 if f0 < least else least, f0 if f0 > most else most
                least, most = f1 if f1 < least else least, f1 if f1 > most else most
                least, most = f2 if f2 < least else least, f2 if f2 > most else most
                least, most = f3 if f3 < least else least, f3 if f3 > most else most
                block_low[j], block_high[j] = least, most
        low[start : start + count], high[start : start + count] = block_low[:count], block_high[:count]


@kernel
def _add_link(columns, kept, slopes, constants, total):  # type: ignore[no-untyped-def]
    """Add one link's f to the sums of a chain, where the record has a value of it.

    columns is blocks × (outcome, then predictors) × records, total blocks × draws × records; slopes has an
    even number of rows, and columns to match, of which there is a multiple of four beside the outcome.
    """
    _wide()
    rows = _rows(2)
    residual, other = rows[0], rows[1]
    for place in range(columns.shape[0]):
        block, keep, sums = columns[place], kept[place], total[place]
        for s in range(0, slopes.shape[0], 2):
            a, b = slopes[s], slopes[s + 1]
            a0, a1, a2, a3, a4 = a[0], a[1], a[2], a[3], a[4]
            b0, b1, b2, b3, b4 = b[0], b[1], b[2], b[3], b[4]
            for j in range(BLOCK):
                outcome, z1, z2, z3, z4 = block[0, j], block[1, j], block[2, j], block[3, j], block[4, j]
                r = _fma(a2, z2, _fma(a0, outcome, a1 * z1))
                q = _fma(b2, z2, _fma(b0, outcome, b1 * z1))
                residual[j] = _fma(a4, z4, _fma(a3, z3, r))
                other[j] = _fma(b4, z4, _fma(b3, z3, q))
            for k in range(5, slopes.shape[1], 4):
                a1, a2, a3, a4 = a[k], a[k + 1], a[k + 2], a[k + 3]
                b1, b2, b3, b4 = b[k], b[k + 1], b[k + 2], b[k + 3]
                for j in range(BLOCK):
                    z1, z2, z3, z4 = block[k, j], block[k + 1, j], block[k + 2, j], block[k + 3, j]
                    residual[j] = _fma(a4, z4, _fma(a3, z3, _fma(a2, z2, _fma(a1, z1, residual[j]))))
                    other[j] = _fma(b4, z4, _fma(b3, z3, _fma(b2, z2, _fma(b1, z1, other[j]))))
            constant, other_constant = constants[s], constants[s + 1]
            for j in range(BLOCK):
                f = _fma(-0.5 * residual[j], residual[j], constant)
                g = _fma(-0.5 * other[j], other[j], other_constant)
                sums[s, j] = _fma(keep[j], f, sums[s, j])
                sums[s + 1, j] = _fma(keep[j], g, sums[s + 1, j])


@kernel
def _widen_all(total, low, high):  # type: ignore[no-untyped-def]
    """The extremes over a tile's draws as well."""
    _wide()
    for place in range(total.shape[0]):
        for s in range(total.shape[1]):
            for j in range(BLOCK):
                _widen(low[place], high[place], j, total[place, s, j])


@kernel
def _conditional(first, last, Z, y, slopes, constants, lower, upper, widest, low, high):  # type: ignore[no-untyped-def]
    _wide()
    columns, ends = _rows(Z.shape[1] + 1), _rows(4)
    rows = _rows(3)
    residual, block_low, block_high = rows[0], rows[1], rows[2]
    tails, work = _rows(2).reshape(2 * BLOCK), _rows(2).reshape(2 * BLOCK)
    for start in range(first, last, BLOCK):
        count = min(BLOCK, last - start)
        _load_block(Z, y, start, count, columns)
        any_narrow = _load_interval(lower, upper, start, count, ends, widest)
        block_low[:], block_high[:] = np.inf, -np.inf
        for s in range(slopes.shape[0]):
            _residuals(columns, slopes[s], residual)
            scale, constant = slopes[s, 0], constants[s] + _HALF_LOG_TWO_PI
            _tails(residual, ends, scale, True, tails, work)
            # f − log γ is −log of ∫ exp(−(r/σ)t − t²/2σ²) dt over the offsets t, in which the squares of r
            # and of the nearer end meet as a difference: taking it exactly keeps outliers accurate.
            for j in range(BLOCK):
                r = residual[j]
                to_lower, to_upper = scale * ends[0, j], scale * ends[1, j]
                a, b = _fma(scale, ends[0, j], r), _fma(scale, ends[1, j], r)
                straddle = a * b < 0.0
                to_near = to_lower if abs(a) < abs(b) else to_upper
                work[j] = -r * r if straddle else to_near * _fma(2.0, r, to_near)
                tails[j] = (
                    _SQRT_TWO_PI - (tails[j] + tails[BLOCK + j]) if straddle else tails[j] - tails[BLOCK + j]
                )
            if any_narrow:
                for j in range(BLOCK):
                    r, half, to_middle = residual[j], scale * ends[2, j], scale * ends[3, j]
                    m = _fma(scale, ends[3, j], r)
                    narrow = half * (abs(m) + 1.0) < _NARROW
                    mass = 2.0 * half * _series(half, m) if narrow else tails[j]
                    shift = to_middle * _fma(2.0, r, to_middle) if narrow else work[j]
                    _widen(block_low, block_high, j, _fma(0.5, shift, constant) - _log(mass))
            else:
                for j in range(BLOCK):
                    _widen(block_low, block_high, j, _fma(0.5, work[j], constant) - _log(tails[j]))
        low[start : start + count], high[start : start + count] = block_low[:count], block_high[:count]


@kernel
def _combined(  # type: ignore[no-untyped-def]
    first, last, Z, y, slopes, constants, lower, upper, widest, density_coef, mass_coef, low, high
):
    _wide()
    columns, ends = _rows(Z.shape[1] + 1), _rows(4)
    rows = _rows(3)
    residual, block_low, block_high = rows[0], rows[1], rows[2]
    tails, work = _rows(2).reshape(2 * BLOCK), _rows(2).reshape(2 * BLOCK)
    coefficients = _rows(2)
    c, e = coefficients[0], coefficients[1]
    for start in range(first, last, BLOCK):
        count = min(BLOCK, last - start)
        _load_block(Z, y, start, count, columns)
        any_narrow = _load_interval(lower, upper, start, count, ends, widest)
        for j in range(BLOCK):
            c[j], e[j] = density_coef[start + min(j, count - 1)], mass_coef[start + min(j, count - 1)]
        block_low[:], block_high[:] = np.inf, -np.inf
        for s in range(slopes.shape[0]):
            _residuals(columns, slopes[s], residual)
            scale, constant = slopes[s, 0], constants[s]
            _tails(residual, ends, scale, True, tails, work)
            for j in range(BLOCK):
                r = residual[j]
                a, b = _fma(scale, ends[0, j], r), _fma(scale, ends[1, j], r)
                straddle = a * b < 0.0
                near = a if abs(a) < abs(b) else b
                work[j] = 0.0 if straddle else near * near
                tails[j] = (
                    _SQRT_TWO_PI - (tails[j] + tails[BLOCK + j]) if straddle else tails[j] - tails[BLOCK + j]
                )
            if any_narrow:
                for j in range(BLOCK):
                    half, m = scale * ends[2, j], _fma(scale, ends[3, j], residual[j])
                    narrow = half * (abs(m) + 1.0) < _NARROW
                    work[j] = m * m if narrow else work[j]
                    tails[j] = 2.0 * half * _series(half, m) if narrow else tails[j]
            for j in range(BLOCK):
                work[BLOCK + j] = _log(tails[j]) - _fma(0.5, work[j], _HALF_LOG_TWO_PI)
            for j in range(BLOCK):
                f = _fma(-0.5 * residual[j], residual[j], constant)
                density_part = 0.0 if c[j] == 0.0 else c[j] * f
                mass_part = 0.0 if e[j] == 0.0 else e[j] * work[BLOCK + j]
                _widen(block_low, block_high, j, density_part + mass_part)
        low[start : start + count], high[start : start + count] = block_low[:count], block_high[:count]


@kernel
def _mass_sum(first, last, Z, y, slopes, lower, upper, widest, total):  # type: ignore[no-untyped-def]
    _wide()
    columns, ends = _rows(Z.shape[1] + 1), _rows(4)
    rows = _rows(2)
    residual, block_total = rows[0], rows[1]
    tails, work = _rows(2).reshape(2 * BLOCK), _rows(2).reshape(2 * BLOCK)
    for start in range(first, last, BLOCK):
        count = min(BLOCK, last - start)
        _load_block(Z, y, start, count, columns)
        any_narrow = _load_interval(lower, upper, start, count, ends, widest)
        block_total[:] = 0.0
        for s in range(slopes.shape[0]):
            _residuals(columns, slopes[s], residual)
            scale = slopes[s, 0]
            _tails(residual, ends, scale, False, tails, work)
            for j in range(BLOCK):
                a, b = _fma(scale, ends[0, j], residual[j]), _fma(scale, ends[1, j], residual[j])
                straddle = a * b < 0.0
                tails[j] = (
                    _SQRT_TWO_PI - (tails[j] + tails[BLOCK + j]) if straddle else tails[j] - tails[BLOCK + j]
                )
            if any_narrow:
                for j in range(BLOCK):
                    half, m = scale * ends[2, j], _fma(scale, ends[3, j], residual[j])
                    narrow = half * (abs(m) + 1.0) < _NARROW
                    tails[j] = 2.0 * half * _series(half, m) * _exp_minus(0.5 * m * m) if narrow else tails[j]
            for j in range(BLOCK):
                block_total[j] += tails[j]
        total[start : start + count] = block_total[:count]


def _slopes(beta: Array, sigma: Array, *, together: int = 1, columns: int = 0) -> tuple[Array, Array]:
    """(1/σ, −β/σ) and −log σ − ½ log 2π, a row a draw; so many draws at a time, and columns at least.

    Repeated draws, which fill the last rows, change no extreme, and columns of zeros no residual.
    """
    draws, width = beta.shape
    rows = -(-draws // together) * together
    scale = 1.0 / sigma
    slopes, constants = np.zeros((rows, max(width, columns) + 1)), np.empty(rows)
    slopes[:draws, 0] = scale
    np.multiply(beta, -scale[:, None], out=slopes[:draws, 1 : width + 1])
    constants[:draws] = -np.log(sigma) - _HALF_LOG_TWO_PI
    slopes[draws:], constants[draws:] = slopes[draws - 1], constants[draws - 1]
    return slopes, constants


def density_extremes(Z: Array, y: Array, beta: Array, sigma: Array) -> tuple[Array, Array]:
    low, high = np.empty(y.size), np.empty(y.size)
    one_slope = Z.shape[1] <= 2 and bool(np.all(Z[:, 0] == 1.0))
    scan, together, columns = (
        (_density_one_slope, 4, 2) if one_slope else (_density, 2, -(-Z.shape[1] // 4) * 4)
    )
    slopes, constants = _slopes(beta, sigma, together=together, columns=columns)
    spread(scan, (Z, y, slopes, constants), (low, high), block=BLOCK, work=y.size * sigma.size)
    return low, high


def conditional_extremes(
    Z: Array, y: Array, lower: Array, upper: Array, beta: Array, sigma: Array
) -> tuple[Array, Array]:
    low, high = np.empty(y.size), np.empty(y.size)
    slopes, constants = _slopes(beta, sigma)
    spread(
        _conditional,
        (Z, y, slopes, constants, lower, upper, sigma.max()),
        (low, high),
        block=BLOCK,
        work=y.size * sigma.size,
    )
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
    inputs = (Z, y, slopes, constants, lower, upper, sigma.max(), density_coef, mass_coef)
    spread(_combined, inputs, (low, high), block=BLOCK, work=y.size * sigma.size)
    return low, high


def mean_mass(Z: Array, y: Array, lower: Array, upper: Array, beta: Array, sigma: Array) -> Array:
    total = np.empty(y.size)
    slopes, _ = _slopes(beta, sigma)
    spread(
        _mass_sum, (Z, y, slopes, lower, upper, sigma.max()), (total,), block=BLOCK, work=y.size * sigma.size
    )
    return np.clip(total / (_SQRT_TWO_PI * sigma.size), 0.0, 1.0)


def links_extremes(links: Sequence[tuple[Array, Array, Array, Array, Array]]) -> tuple[Array, Array]:
    """Extremes over paired draws of the sum of f over links, each given as Z, y, kept, beta, sigma."""
    scored = [
        _slopes(beta, sigma, together=2, columns=-(-beta.shape[1] // 4) * 4) for _, _, _, beta, sigma in links
    ]
    records, draws = links[0][1].size, len(scored[0][1])
    low, high = np.empty(records), np.empty(records)

    def score(first: int) -> None:
        count = min(_TILE, records - first)
        blocks = -(-count // BLOCK)
        rows = np.minimum(np.arange(first, first + blocks * BLOCK), first + count - 1)
        loaded = [
            (_load_tile(Z, y, rows, len(slopes[0])), kept[rows].reshape(blocks, BLOCK))
            for (Z, y, kept, _, _), (slopes, _) in zip(links, scored, strict=True)
        ]
        least, most = np.full((2, blocks, BLOCK), np.inf)
        most *= -1.0
        for start in range(0, draws, _TILE_DRAWS):
            some = slice(start, min(start + _TILE_DRAWS, draws))
            total = np.zeros((blocks, some.stop - start, BLOCK))
            for (columns, kept), (slopes, constants) in zip(loaded, scored, strict=True):
                _add_link(columns, kept, slopes[some], constants[some], total)
            _widen_all(total, least, most)
        low[first : first + count] = least.reshape(-1)[:count]
        high[first : first + count] = most.reshape(-1)[:count]

    firsts = list(range(0, records, _TILE))
    score(0)  # compiles once, before the threads would all try
    share_out(score, firsts[1:], worth=worth_threads(records * draws * len(links)))
    return low, high


def _load_tile(Z: Array, y: Array, rows: Any, width: int) -> Array:
    """Blocks of outcome and predictors, padded with zeros to a width."""
    columns = np.zeros((width, len(rows)))
    columns[0], columns[1 : 1 + Z.shape[1]] = y[rows], Z[rows].T
    return np.ascontiguousarray(np.moveaxis(columns.reshape(width, -1, BLOCK), 1, 0))


def compile_all() -> None:
    """Compile every kernel, or load it from numba's cache: at set-up, so that no first fit waits for it."""
    ones, draws = np.ones(2 * BLOCK), np.ones(4)
    interval = (-ones, ones)
    for width in (1, 3):  # one slope has a kernel of its own
        density_extremes(np.ones((ones.size, width)), ones, np.ones((4, width)), draws)
    one = np.ones((ones.size, 1)), ones, *interval, np.ones((4, 1)), draws
    conditional_extremes(*one)
    combined_extremes(*one, ones, ones)
    mean_mass(*one)
    links_extremes([(np.ones((ones.size, 1)), ones, ones, np.ones((4, 1)), draws)])
