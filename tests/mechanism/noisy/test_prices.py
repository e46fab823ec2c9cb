"""Prices of rounds against all pairs of neighbours, and the noise a price asks for."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from hedgerow.mechanism.noisy.prices import (
    Scales,
    Sums,
    find_epsilon,
    find_rho,
    noise_for_counts,
    price_counts,
    rounded_up,
)

RELATIONS = ("withheld", "replaced", "range")


def brute_force(sums, scales):
    """The largest shift over all pairs of values, blanks (None) among them where the relation has them."""
    values = range(-sums.steps, sums.steps + 1)
    pairs = [(r, None) for r in values]
    if sums.relation != "withheld":
        moved = [(r, s) for r, s in product(values, values) if abs(r - s) <= sums.reach]
        pairs = moved if sums.relation == "range" else [*moved, *pairs]
    return max(shift(sums, scales, r, s) for r, s in pairs)


def shift(sums, scales, r, s):
    scores = abs(r - (s or 0))
    squares = abs(r * r - (scales.blank if s is None else s * s))
    if sums.noise == "laplace":
        return scores * sums.bound / scales.scores + squares / scales.squares
    return (scores**2 * sums.bound / scales.scores**2 + squares**2 / scales.squares**2) / 2


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_price_is_the_largest_over_all_neighbours(noise, relation):
    rng = np.random.default_rng(1)
    for _ in range(80):
        steps = int(rng.integers(1, 10))
        reach = int(rng.integers(1, 2 * steps + 1)) if relation == "range" else 2 * steps
        sums = Sums(noise, int(rng.integers(1, 40)), steps, relation, reach)
        scores, squares = (Fraction(int(rng.integers(1, 2000)), int(rng.integers(1, 9))) for _ in range(2))
        for blank in (int(rng.integers(0, steps**2 + 1)), sums._best_blank(scores, squares)):
            scales = Scales(scores, squares, blank)
            assert sums.price(scales) == brute_force(sums, scales)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("target", [Fraction(1, 100), Fraction(0.3), Fraction(20)])
def test_noise_for_a_price_has_that_price(noise, relation, target):
    for steps, reach in ((1, 2), (7, 5), (1 << 20, 1 << 18)):
        sums = Sums(noise, 3 * 2**16 + 1, steps, relation, reach)
        price = sums.price(sums.noise_for(target, split=Fraction(13, 10)))
        assert price <= target
        assert price > target * Fraction(9999 if steps > 7 else 9000, 10000)
        assert Fraction(rounded_up(price)) >= price


def test_the_formula_of_the_maths():
    """b₁ = Cw(1 + x/2)²/(2xε), b₂ = w²(1 + x/2)²/(2ε); replaced costs twice as much."""
    C, W, x, epsilon = 5 * 2**16, 1 << 20, 1.3, 0.7
    scales = Sums("laplace", C, W, "withheld", 2 * W).noise_for(Fraction(epsilon), split=Fraction(x))
    assert float(scales.scores) == pytest.approx(C * W * (1 + x / 2) ** 2 / (2 * x * epsilon), rel=1e-9)
    assert float(scales.squares) == pytest.approx(W**2 * (1 + x / 2) ** 2 / (2 * epsilon), rel=1e-9)
    replaced = Sums("laplace", C, W, "replaced", 2 * W)
    assert float(replaced.price(scales)) == pytest.approx(2 * epsilon, rel=1e-9)


def test_a_range_lowers_the_noise():
    W = 1 << 10
    noise = [
        Sums("laplace", 9, W, "range", reach).noise_for(Fraction(1), split=Fraction(2)).scores
        for reach in (W // 8, W // 2, 2 * W)
    ]
    assert noise[0] < 0.3 * noise[2]
    assert noise[0] < noise[1] < noise[2]


def test_counts():
    """Moving one value lowers one count and raises another; a blank is in no bin."""
    assert price_counts("withheld", Fraction(4)) == Fraction(1, 4)
    assert price_counts("replaced", Fraction(4)) == price_counts("range", Fraction(4)) == Fraction(1, 2)
    for relation in RELATIONS:
        assert price_counts(relation, noise_for_counts(relation, Fraction(0.3))) == Fraction(0.3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_rho_is_the_largest_that_converts(epsilon, delta):
    rho = float(find_rho(epsilon, delta))
    assert find_epsilon(rho, delta) <= epsilon < find_epsilon(rho * 1.00001, delta)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("noise", ["right", "halved"])
def test_gaussian_noise_has_its_epsilon_and_delta(relation, noise):
    """δ of the worst pair, summed over all outputs of a tiny round: below the stated one, above if halved."""
    epsilon, delta = 1.0, 1e-3
    sums = Sums("gaussian", 9, 3, relation, 2 if relation == "range" else 6)
    scales = sums.noise_for(find_rho(epsilon, delta), split=Fraction(8, 10))
    factor = 1 if noise == "right" else 2
    values = [*range(-3, 4), *([] if relation == "range" else [None])]
    worst = 0.0
    for r, s in product(values, values):
        if relation == "withheld" and (r is None) == (s is None):
            continue
        if relation == "range" and abs(r - s) > 2:
            continue
        to = 3 * abs((r or 0) - (s or 0)), abs(square(r, scales) - square(s, scales))
        parts = [
            gaussian_pair(distance, float(scale) / factor)
            for distance, scale in zip(to, (scales.scores, scales.squares), strict=True)
        ]
        p, q = (np.multiply.outer(parts[0][k], parts[1][k]) for k in (0, 1))
        worst = max(worst, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
    assert (worst <= delta) == (noise == "right")


def square(r, scales):
    return scales.blank if r is None else r * r


def gaussian_pair(distance, deviation):
    """The probabilities of whole numbers under discrete Gaussians about 0 and about `distance`."""
    k = np.arange(-math.ceil(8 * deviation), math.ceil(8 * deviation) + distance + 1)
    p, q = (np.exp(-((k - at) ** 2) / (2 * deviation**2)) for at in (0, distance))
    whole = np.exp(-(np.arange(-2000, 2001) ** 2) / (2 * deviation**2)).sum()
    return p / whole, q / whole
