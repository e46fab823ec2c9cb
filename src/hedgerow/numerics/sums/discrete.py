"""Noise on whole numbers with exactly the stated distribution: integer arithmetic on random bits, no floats.

After Canonne, Kamath and Steinke (2020), "The Discrete Gaussian for Differential Privacy", algorithms 1 to 3.

    >>> from hedgerow.randomness import Key
    >>> stream = Key.from_seed(1).stream()
    >>> isinstance(discrete_laplace(stream, Fraction(7, 2)), int)
    True

Formal guarantees
-----------------
With a source of independent fair bits, P(k) is proportional to exp(−|k|/scale) for `discrete_laplace` and to
exp(−k²/(2·variance)) for `discrete_gaussian`, for every whole number k: nothing is rounded, truncated or
approximated. Floating-point noise has no such property (Mironov 2012). The time a draw takes depends on it.
"""

from fractions import Fraction
from math import isqrt
from typing import Protocol, runtime_checkable


@runtime_checkable
class Source(Protocol):
    """Where chance comes from: `randomness.Stream`."""

    def below(self, bound: int) -> int:
        """One of 0 … bound − 1, each with the same probability."""
        ...


def discrete_laplace(source: Source, scale: Fraction) -> int:
    """A whole number k with probability proportional to exp(−|k|/scale)."""
    while True:
        k = _try_laplace(source, scale)
        if k is not None:
            return k


def discrete_gaussian(source: Source, variance: Fraction) -> int:
    """A whole number k with probability proportional to exp(−k²/(2·variance))."""
    while True:
        k = _try_gaussian(source, variance)
        if k is not None:
            return k


def _try_laplace(source: Source, scale: Fraction) -> int | None:
    """k with a probability in proportion to Laplace's, or nothing."""
    top, bottom = scale.numerator, scale.denominator
    rest = source.below(top)
    if not _bernoulli_exp(source, Fraction(rest, top)):
        return None
    whole = 0
    while _bernoulli_exp(source, Fraction(1)):
        whole += 1
    size = (rest + top * whole) // bottom
    if source.below(2) == 0:
        return size
    return -size if size else None  # zero would otherwise count twice


def _try_gaussian(source: Source, variance: Fraction) -> int | None:
    """k by Laplace's distribution, kept with a probability that makes a Gaussian of it, or nothing."""
    scale = isqrt(variance.numerator // variance.denominator) + 1  # ⌊√variance⌋ + 1
    k = discrete_laplace(source, Fraction(scale))
    kept = _bernoulli_exp(source, (abs(k) - variance / scale) ** 2 / (2 * variance))
    return k if kept else None


def _bernoulli_exp(source: Source, exponent: Fraction) -> bool:
    """True with probability exp(−exponent), exponent ≥ 0.

    For an exponent up to 1: the first k = 1, 2, … at which a chance of exponent/k fails is odd with that
    probability, 1 − e + e²/2! − …
    """
    while exponent > 1:
        if not _bernoulli_exp(source, Fraction(1)):
            return False
        exponent -= 1
    k = 1
    while source.below(exponent.denominator * k) < exponent.numerator:
        k += 1
    return k % 2 == 1
