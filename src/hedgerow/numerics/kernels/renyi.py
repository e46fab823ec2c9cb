"""Rényi divergences between a record's two posteriors, compiled; `numerics.renyi` says what they are for."""

import math

import numpy as np

from hedgerow.arrays import Array
from hedgerow.numerics.kernels import compiling
from hedgerow.numerics.kernels.compiling import inline, kernel

_BLOCK = 256  # records
_WORK = 50  # record-draws of a density that take as long as a divergence, about
_HALF_LOG_TWO_PI = 0.9189385332046727


@inline
def _gamma_rest(a):  # type: ignore[no-untyped-def]
    """lnΓ(a) less Stirling's (a − ½) log a − a + ½ log 2π."""
    if a > 20.0:
        q = 1.0 / (a * a)
        return (1.0 / 12.0 - q * (1.0 / 360.0 - q * (1.0 / 1260.0))) / a
    return math.lgamma(a) - (a - 0.5) * math.log(a) + a - _HALF_LOG_TWO_PI


@inline
def _log_normaliser(t, h, r2, a, b, rest):  # type: ignore[no-untyped-def]
    """log Z(t)/Z(0) when a record enters at power t, less terms linear in t; infinite where there is none.

    Nothing of order n is subtracted: written out plainly this loses 33 % of a divergence at n = 10⁸.
    """
    half = 0.5 * t
    grown = 1.0 + t * h
    if not (h >= 0.0 and a > 0.0 and b > 0.0 and grown > 0.0 and a + half > 0.0):
        return np.inf
    u = t * r2 / (2.0 * b * grown)
    if not u > -1.0:
        return np.inf
    stirling = (a + half - 0.5) * math.log1p(half / a) - half + _gamma_rest(a + half) - rest
    return stirling - 0.5 * math.log1p(t * h) - (a + half) * math.log1p(u)


@inline
def _divergence(o, reverse, w, h, r2, a, b, rest, single):  # type: ignore[no-untyped-def]
    """D_o of the posterior with the record from the one without it, or in reverse; `single` is F(w)."""
    if reverse:
        found = _log_normaliser(-(o - 1.0) * w, h, r2, a, b, rest) / (o - 1.0) + single
    else:
        found = (_log_normaliser(o * w, h, r2, a, b, rest) - o * single) / (o - 1.0)
    return found if found > -0.5 else np.inf  # what is no number, or far below 0, is not known


@inline
def _divergence_of_links(o, reverse, i, w, h, r2, a, b, rests, singles):  # type: ignore[no-untyped-def]
    """D_o between a record's two posteriors: the sum over the links of a chain, which are independent."""
    total = 0.0
    for j in range(w.shape[1]):
        if w[i, j] != 0.0:
            total += _divergence(
                o, reverse, w[i, j], h[i, j], r2[i, j], a[i, j], b[i, j], rests[j], singles[j]
            )
    return total


@kernel
def _least(first, last, w, h, orders, r2, a, b, conversion, copies, epsilon, place, reverse_place):  # type: ignore[no-untyped-def]
    """The least ε over the orders and its places, by bisection: copies·D_o + conversion falls, then rises."""
    rests, singles = np.empty(w.shape[1]), np.empty(w.shape[1])
    for i in range(first, last):
        epsilon[i] = 0.0
        place[i] = reverse_place[i] = 0.0
        if not w[i].any():
            continue
        for j in range(w.shape[1]):
            rests[j] = _gamma_rest(a[i, j])
            singles[j] = _log_normaliser(w[i, j], h[i, j], r2[i, j], a[i, j], b[i, j], rests[j])
        for reverse in range(2):
            low, high = 0, orders.size - 1
            while low < high:
                k = (low + high) // 2
                here = _divergence_of_links(orders[k], reverse, i, w, h, r2, a, b, rests, singles)
                there = _divergence_of_links(orders[k + 1], reverse, i, w, h, r2, a, b, rests, singles)
                if copies * here + conversion[k] > copies * there + conversion[k + 1]:
                    low = k + 1
                else:
                    high = k
            least = _divergence_of_links(orders[low], reverse, i, w, h, r2, a, b, rests, singles)
            least = copies * least + conversion[low]
            epsilon[i] = max(epsilon[i], least)
            if reverse:
                reverse_place[i] = low
            else:
                place[i] = low


@kernel
def _at(first, last, w, h, orders, r2, a, b, forward, backward):  # type: ignore[no-untyped-def]
    """D_o at each record's two orders, one for each direction."""
    for i in range(first, last):
        forward[i] = backward[i] = 0.0
        for j in range(w.shape[1]):
            if w[i, j] == 0.0:
                continue
            rest = _gamma_rest(a[i, j])
            single = _log_normaliser(w[i, j], h[i, j], r2[i, j], a[i, j], b[i, j], rest)
            forward[i] += _divergence(
                orders[0, i], 0, w[i, j], h[i, j], r2[i, j], a[i, j], b[i, j], rest, single
            )
            backward[i] += _divergence(
                orders[1, i], 1, w[i, j], h[i, j], r2[i, j], a[i, j], b[i, j], rest, single
            )


def divergences(
    share: Array, spread: Array, squared: Array, shape: Array, rate: Array, orders: Array
) -> tuple[Array, Array]:
    """D_o with the record and in reverse; `orders` has a row for each direction, a column for each record."""
    forward, backward = np.empty(len(share)), np.empty(len(share))
    inputs = (share, spread, orders, squared, shape, rate)
    compiling.spread(_at, inputs, (forward, backward), block=_BLOCK, work=2 * _WORK * share.size)
    return forward, backward


def least_epsilon(
    share: Array,
    spread: Array,
    squared: Array,
    shape: Array,
    rate: Array,
    orders: Array,
    conversion: Array,
    copies: int,
) -> tuple[Array, Array, Array]:
    epsilon, place, reverse = np.empty((3, len(share)))
    inputs = (share, spread, orders, squared, shape, rate, conversion, copies)
    work = 4 * _WORK * len(orders).bit_length() * share.size
    compiling.spread(_least, inputs, (epsilon, place, reverse), block=_BLOCK, work=work)
    return epsilon, place, reverse


def compile_all() -> None:
    """Compile both kernels, or load them from numba's cache."""
    links, orders = (np.ones((2, 1)),) * 5, np.array([2.0, 3.0])
    divergences(*links, np.full((2, 2), 2.0))
    least_epsilon(*links, orders, orders, 1)
