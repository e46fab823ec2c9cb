"""Discrete noise: its distribution enumerated choice by choice, and drawn."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from hedgerow.numerics.sums import discrete
from hedgerow.numerics.sums.discrete import discrete_gaussian, discrete_laplace
from hedgerow.randomness import Key


class UnknownChoiceError(Exception):
    """A choice that the script does not hold yet, with the chances of its outcomes."""


class Script:
    """Chance replaced by a list of choices; `weights` holds the probability of each choice made."""

    def __init__(self, choices):
        self.choices, self.place, self.probability = choices, 0, 1

    def choose(self, chances):
        if self.place == len(self.choices):
            raise UnknownChoiceError(chances)
        choice = self.choices[self.place]
        self.place += 1
        self.probability *= chances[choice]
        return choice

    def below(self, bound):
        return self.choose([Fraction(1, bound)] * bound)


def enumerate_outcomes(sampler, least):
    """The probability of every outcome over all scripts, leaving out those less likely than `least`."""
    found, lost, waiting = {}, 0, [([], 1)]
    while waiting:
        choices, probability = waiting.pop()
        if probability < least:
            lost += probability
            continue
        script = Script(choices)
        try:
            outcome = sampler(script)
        except UnknownChoiceError as unknown:
            chances = unknown.args[0]
            waiting += [([*choices, k], probability * chance) for k, chance in enumerate(chances) if chance]
        else:
            found[outcome] = found.get(outcome, 0) + script.probability
    return found, lost


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)])
def test_a_chance_of_exp_is_exact_on_every_sequence_of_choices(exponent):
    found, lost = enumerate_outcomes(lambda s: discrete._bernoulli_exp(s, exponent), Fraction(1, 60_000))
    exact = math.exp(-exponent)
    assert lost < 0.002
    assert found.get(True, 0) <= exact + 1e-12
    assert found.get(False, 0) <= 1 - exact + 1e-12
    assert sum(found.values()) + lost == 1


def test_a_large_exponent_is_a_product_of_chances(monkeypatch):
    asked = []
    inner = discrete._bernoulli_exp

    def spy(source, exponent):
        asked.append(exponent)
        return True if exponent <= 1 else inner(source, exponent)

    monkeypatch.setattr(discrete, "_bernoulli_exp", spy)
    inner(Script([0, 1, 0, 0]), Fraction(7, 2))
    assert asked == [1, 1, 1]  # the rest, 1/2, is settled by choices below


def oracle(monkeypatch):
    """Chances of exp(−x), proven above, taken as one choice."""

    def chance(source, exponent):
        success = math.exp(-exponent)
        return source.choose([1 - success, success]) == 1

    monkeypatch.setattr(discrete, "_bernoulli_exp", chance)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(4, 3), Fraction(7)])
def test_laplace_has_its_distribution_on_every_sequence_of_choices(monkeypatch, scale):
    oracle(monkeypatch)
    check(lambda s: discrete._try_laplace(s, scale), lambda k: math.exp(-abs(k) / scale))


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1), Fraction(5, 3), Fraction(30)])
def test_gaussian_has_its_distribution_on_every_sequence_of_choices(monkeypatch, variance):
    oracle(monkeypatch)

    def laplace(source, scale):
        weights = np.exp(-np.abs(np.arange(-300, 301)) / float(scale))
        return source.choose(list(weights / weights.sum())) - 300

    monkeypatch.setattr(discrete, "discrete_laplace", laplace)
    check(lambda s: discrete._try_gaussian(s, variance), lambda k: math.exp(-k * k / (2 * variance)))


def check(attempt, weight):
    """Attempts are repeated until one succeeds, so that only the proportions of their outcomes count."""
    found, lost = enumerate_outcomes(attempt, 1e-13)
    total = sum(weight(k) for k in range(-400, 401))
    kept = float(sum(p for k, p in found.items() if k is not None))
    assert float(lost) < 1e-9
    for k in range(-6, 7):
        assert float(found.get(k, 0)) / kept == pytest.approx(weight(k) / total, abs=1e-9)


@pytest.mark.parametrize("bound", [1, 2, 5, 8, 200, 300])
def test_below_is_uniform_over_all_bytes(monkeypatch, bound):
    size = -(-(bound - 1).bit_length() // 8)
    hits = dict.fromkeys(range(bound), 0)
    for pattern in product(range(256), repeat=size):
        stream, tries = Key.from_seed(1).stream(), iter([bytes(pattern)])
        monkeypatch.setattr(stream, "_bytes", lambda _, tries=tries: next(tries))
        try:
            hits[stream.below(bound)] += 1
        except StopIteration:  # rejected: it asked for bytes again
            continue
    assert len(set(hits.values())) == 1
    assert hits[0] > 0


@pytest.mark.parametrize(
    ("sampler", "scale", "weight"),
    [
        (discrete_laplace, Fraction(5, 2), lambda k, s: np.exp(-np.abs(k) / s)),
        (discrete_laplace, Fraction(1001, 7), lambda k, s: np.exp(-np.abs(k) / s)),
        (discrete_gaussian, Fraction(7, 2), lambda k, s: np.exp(-(k**2) / (2 * s))),
        (discrete_gaussian, Fraction(10**6, 3), lambda k, s: np.exp(-(k**2) / (2 * s))),
    ],
)
def test_draws_have_the_distribution(sampler, scale, weight):
    """χ² over 40 cells of 2500 draws; false alarm 1e-5 each."""
    stream = Key.from_seed(3).stream()
    draws = np.array([sampler(stream, scale) for _ in range(2500)])
    k = np.arange(-6000, 6001)
    pmf = weight(k.astype(float), float(scale))
    cells = np.minimum((np.cumsum(pmf) / pmf.sum() * 40).astype(int), 39)
    expected = np.bincount(cells, weights=pmf / pmf.sum(), minlength=40) * len(draws)
    seen = np.bincount(cells[draws - k[0]], minlength=40)
    used = expected > 5
    tested = stats.chisquare(seen[used], expected[used] * seen[used].sum() / expected[used].sum())
    assert tested.pvalue > 1e-5
