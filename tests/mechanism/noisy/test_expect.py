"""Errors said beforehand: those of least squares without privacy, more with it, less with more ε."""

import numpy as np
import pytest

from hedgerow.mechanism.noisy import expect
from hedgerow.mechanism.noisy.estimate import estimate
from hedgerow.mechanism.noisy.expect import expected_errors
from hedgerow.mechanism.noisy.recipe import Recipe
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.randomness import Key


def matrix(n):
    return np.column_stack((np.ones(n), np.random.default_rng(1).normal(size=n)))


def test_without_privacy_they_are_those_of_least_squares():
    """30 stand-ins: rms of 60 coordinates within 40 %, of 30 log σ within 60 %; large ε comes close."""
    found = expected_errors(make_recipe(matrix(500), low=-3.0, high=9.0, epsilon=200.0))
    assert found.sigma == 1.5
    assert found.simulations == 30
    assert found.plain_line == pytest.approx(1.5 * np.sqrt(2 / 500), rel=0.4)
    assert found.plain_log_sigma == pytest.approx(1 / np.sqrt(1000), rel=0.6)
    assert found.line == pytest.approx(found.plain_line, rel=0.1)
    assert found.ecdf == pytest.approx(found.plain_ecdf, rel=0.25)


@pytest.mark.slow
def test_less_epsilon_and_wider_limits_cost():
    X = matrix(300)
    little, much = (
        expected_errors(make_recipe(X, low=-3.0, high=9.0, epsilon=epsilon)) for epsilon in (0.1, 2.0)
    )
    assert little.line > 2 * much.line
    assert little.log_sigma > 2 * much.log_sigma
    wide = expected_errors(make_recipe(X, low=-30.0, high=90.0, epsilon=0.5), sigma=1.5)
    assert wide.line > 1.5 * expected_errors(make_recipe(X, low=-3.0, high=9.0, epsilon=0.5), sigma=1.5).line
    assert little == expected_errors(make_recipe(X, low=-3.0, high=9.0, epsilon=0.1))


@pytest.mark.slow
def test_they_are_the_errors_that_come():
    """20 releases of other tables, a line and limits that are not centred: within a factor of 1.6."""
    X, chance = matrix(400), np.random.default_rng(5)
    recipe, errors = make_recipe(X, low=-4.0, high=8.0, epsilon=0.5), []
    for seed in range(20):
        outcome = X.sum(axis=1) + chance.normal(size=400)
        found = estimate(release_statistics(recipe, outcome, np.ones(400, bool), key=Key.from_seed(seed)))
        errors.append(((X @ (found.beta - 1)) ** 2).mean())
    said = expected_errors(make_recipe(X, low=-4.0, high=8.0, epsilon=0.5), sigma=1.0).line
    assert 1 / 1.6 < np.sqrt(np.mean(errors)) / said < 1.6


@pytest.mark.slow
def test_a_margin_is_part_of_it():
    found = expected_errors(make_recipe(matrix(1000), low=-3.0, high=9.0, epsilon=2.0, margin_share=0.25))
    assert 0 < found.ecdf < 2 * found.plain_ecdf


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_some_rows_of_a_long_table_stand_for_all(noise):
    """The noise beside the sampling error is that of all rows, to 2 %; the chosen rows are whitened."""
    told = {"low": -3.0, "high": 9.0, "noise": noise, "delta": 1e-6 if noise == "gaussian" else 0.0}
    recipe = make_recipe(matrix(20_000), epsilon=0.4, margin_share=0.25, **told)
    some = recipe.choose_some(2000)
    Q = some.matrix @ some.basis
    assert np.allclose(Q.T @ Q / len(Q), np.eye(2))
    for these, those in zip(budget_noise(recipe), budget_noise(some), strict=True):
        assert these / np.sqrt(recipe.records) == pytest.approx(those / np.sqrt(some.records), rel=0.02)
    assert recipe.choose_some(15_000) is recipe


def budget_noise(recipe):
    """Scales of noise that the budget of the rounds and counts asks for, up to what n does not change."""
    first, second, counts = (float(part) for part in recipe.budget())
    bound = recipe.bound if recipe.noise == "laplace" else np.sqrt(recipe.bound)
    power = 1 if recipe.noise == "laplace" else 0.5
    return bound / first**power, bound / second**power, 1 / counts


def test_rows_that_would_be_missed_are_not_left_out():
    X = matrix(20_000)
    X = np.column_stack((X, np.arange(len(X)) < 3))  # the only three of their kind
    recipe = make_recipe(X, low=-3.0, high=9.0, epsilon=0.4)
    assert recipe.choose_some(2000) is recipe


@pytest.mark.slow
def test_errors_of_a_long_table_are_those_of_all_its_rows(monkeypatch):
    """30 stand-ins of 90,000 rows in full against as many of 40,000: rms of 90 coordinates within 25 %."""
    recipe = make_recipe(
        np.column_stack((matrix(90_000), np.arange(90_000) % 7)), low=-3.0, high=9.0, epsilon=0.3
    )
    some = expected_errors(recipe)
    assert recipe.choose_some(expect._ROWS).records <= 40_000
    monkeypatch.setattr(Recipe, "choose_some", lambda self, rows: self)
    monkeypatch.setattr(expect, "_ENTRIES", 10**9)
    whole = expected_errors(recipe, key=Key.from_seed(3))
    for name in ("line", "plain_line", "ecdf", "plain_ecdf"):
        assert getattr(some, name) == pytest.approx(getattr(whole, name), rel=0.25), name
    for name in ("log_sigma", "plain_log_sigma"):  # 30 numbers each: within 50 %
        assert getattr(some, name) == pytest.approx(getattr(whole, name), rel=0.5), name
