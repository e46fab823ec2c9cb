"""Copies from a draw: their distribution, what regression on them returns, and the limits."""

import numpy as np
import pytest
from scipy import stats

from hedgerow.mechanism.noisy.copies import predict
from hedgerow.mechanism.noisy.margin import Tilt
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.randomness import Key

LINE = np.array([1.0, 0.5, -0.3])
WAYS = ("independent", "stratified", "projected")


def recipe_of(n=1000, low=-9.0, high=11.0):
    chance = np.random.default_rng(1)
    X = np.column_stack((np.ones(n), chance.normal(size=n), chance.integers(2, size=n) * 1.0))
    return make_recipe(X, low=low, high=high, epsilon=1.0)


def regress(recipe, copy):
    line, rest, *_ = np.linalg.lstsq(recipe.matrix, copy)
    return line, float(np.sqrt(rest[0] / (recipe.records - 3)))


@pytest.mark.parametrize("sampling", WAYS)
def test_residuals_are_the_models(sampling):
    """Kolmogorov-Smirnov at 1e-4; the same key gives the same copy."""
    recipe = recipe_of()
    copies = [
        predict(recipe, LINE, 0.8, None, sampling=sampling, key=Key.from_seed(seed)) for seed in (1, 1, 2)
    ]
    assert np.array_equal(copies[0], copies[1])
    assert not np.array_equal(copies[0], copies[2])
    assert stats.kstest((copies[0] - recipe.matrix @ LINE) / 0.8, "norm").pvalue > 1e-4


def test_regression_on_a_projected_copy_returns_the_draw():
    recipe = recipe_of()
    for seed in range(3):
        copy = predict(recipe, LINE, 0.8, None, sampling="projected", key=Key.from_seed(seed))
        line, sigma = regress(recipe, copy)
        assert line == pytest.approx(LINE, abs=1e-10)
        assert sigma == pytest.approx(0.8, rel=1e-10)
    plain = predict(recipe, LINE, 0.8, None, sampling="independent", key=Key.from_seed(1))
    assert np.abs(regress(recipe, plain)[0] - LINE).max() > 1e-3


@pytest.mark.parametrize("sampling", WAYS)
def test_values_stay_within_the_limits(sampling):
    copy = predict(recipe_of(low=0.0, high=2.0), LINE, 0.8, None, sampling=sampling, key=Key.from_seed(1))
    assert copy.min() == 0.0
    assert copy.max() == 2.0


def test_a_tilted_record_has_the_tilted_density():
    """One fitted value for all: the distribution function is piecewise normal. Kolmogorov-Smirnov at 1e-4."""
    recipe = recipe_of(4000)
    edges, weights = np.array([0.0, 0.7, 2.0]), np.array([0.2, 2.0, 0.5, 3.0])
    line = np.array([1.0, 0.0, 0.0])
    tilt = Tilt(edges, weights, np.full(4, 0.25))
    copy = predict(recipe, line, 0.8, tilt, sampling="independent", key=Key.from_seed(1))
    ends = np.concatenate(([-np.inf], edges, [np.inf]))
    masses = np.diff(stats.norm.cdf(ends, 1.0, 0.8)) * weights

    def below(x):
        inside = np.clip(np.asarray(x)[:, None], ends[:-1], ends[1:])
        pieces = (stats.norm.cdf(inside, 1.0, 0.8) - stats.norm.cdf(ends[:-1], 1.0, 0.8)) * weights
        return pieces.sum(axis=1) / masses.sum()

    assert stats.kstest(copy, below).pvalue > 1e-4


def test_a_projected_tilted_copy_returns_the_line():
    recipe = recipe_of()
    tilt = Tilt(np.array([0.0, 2.0]), np.array([0.5, 1.0, 2.0]), np.full(3, 1 / 3))
    copy = predict(recipe, LINE, 0.8, tilt, sampling="projected", key=Key.from_seed(1))
    assert regress(recipe, copy)[0] == pytest.approx(LINE, abs=1e-10)


@pytest.mark.parametrize("sampling", WAYS)
def test_as_many_columns_as_records_do_no_harm(sampling):
    recipe = make_recipe(np.column_stack((np.ones(3), [0.0, 1.0, 3.0])), low=0.0, high=1.0, epsilon=1.0)
    copy = predict(recipe, np.array([0.5, 0.0]), 1e-3, None, sampling=sampling, key=Key.from_seed(1))
    assert np.isfinite(copy).all()
