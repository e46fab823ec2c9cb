"""Line and σ from noisy sums."""

import numpy as np
import pytest
from scipy.stats import truncnorm

from hedgerow.mechanism.noisy.estimate import estimate, start, truncated_mean
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.numerics.sums.clipped import clipped_moments
from hedgerow.randomness import Key


def simulate(seed, n=2000):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.normal(2, 1, n), rng.integers(0, 2, n)])
    return X, X @ np.array([1.0, 1.0, -0.5]) + rng.normal(size=n)


def fit(X, y, seed, **settings):
    recipe = make_recipe(X, low=-3.0, high=9.0, **settings)
    return estimate(release_statistics(recipe, y, np.ones(len(y), dtype=bool), key=Key.from_seed(seed)))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_without_noise_it_is_the_regression(noise):
    X, y = simulate(1)
    found = fit(X, y, 1, epsilon=1e5, noise=noise, delta=1e-6)
    beta, rss = np.linalg.lstsq(X, y, rcond=None)[:2]
    inverse = np.linalg.inv(X.T @ X)
    assert found.beta == pytest.approx(beta, abs=0.3 * np.sqrt(inverse.diagonal().min()))
    assert found.sigma == pytest.approx(np.sqrt(rss[0] / len(y)), rel=0.005)
    assert np.sqrt(found.covariance.diagonal()) == pytest.approx(np.sqrt(inverse.diagonal()), rel=0.05)
    assert found.sigma_error == pytest.approx(1 / np.sqrt(2 * len(y)), rel=0.1)


def test_sigma_is_not_low_with_many_predictors():
    """25 samples, n = 100, p = 15, hardly any noise: σ is that of the regression with n − p in place of n.

    The mean of 25 has a standard error of 0.015; false alarm 1e-4 on either side.
    """
    found = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = np.column_stack([np.ones(100), rng.normal(size=(100, 14))])
        found.append(fit(X, X[:, 1] + 3 + rng.normal(size=100), seed, epsilon=1e5).sigma)
    assert np.mean(found) == pytest.approx(1.0, abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 0.5},
        pytest.param({"epsilon": 0.5, "relation": "range", "width": 1.5}, marks=pytest.mark.slow),
        pytest.param({"epsilon": 1.0, "noise": "gaussian", "delta": 1e-6}, marks=pytest.mark.slow),
        pytest.param({"epsilon": 1.0}, marks=pytest.mark.slow),
        pytest.param({"epsilon": 0.6, "relation": "replaced"}, marks=pytest.mark.slow),
    ],
)
def test_errors_are_of_the_size_it_states(settings):
    """40 samples: mean squared standardised errors of 3 coefficients and σ, each about 1 (sd about 0.2)."""
    scaled, of_sigma, bias = [], [], []
    for seed in range(40):
        X, y = simulate(seed)
        found = fit(X, y, seed, **settings)
        error = found.beta - np.array([1.0, 1.0, -0.5])
        scaled.append(error @ np.linalg.solve(found.covariance, error) / 3)
        of_sigma.append(((found.sigma - 1) / found.sigma_error) ** 2)
        bias.append(error / np.sqrt(found.covariance.diagonal()))
    assert 0.5 < np.mean(scaled) < 1.8
    assert 0.3 < np.mean(of_sigma) < 2.5
    assert np.abs(np.mean(bias, axis=0)).max() < 5 / np.sqrt(40)


def test_the_prior_is_the_limits_alone():
    X, _ = simulate(1, n=300)
    recipe = make_recipe(X, low=-3.0, high=9.0, epsilon=1.0)
    state = start(recipe)
    assert X @ (recipe.basis @ state.line) == pytest.approx(np.full(300, 3.0))
    assert np.trace(state.covariance) == pytest.approx(6**2 / 4 + 6**2 / 9)
    assert recipe.constant @ state.covariance @ recipe.constant == pytest.approx(6**2 / 4)


def test_noise_alone_ends_within_the_limits():
    """Where noise rules the line stays near the middle and σ is neither 0 nor at a ceiling."""
    for seed in range(20):
        X, y = simulate(seed, n=50)
        found = fit(X, y, seed, epsilon=0.01)
        assert np.abs(X @ found.beta - 3).max() < 30
        assert 0.3 < found.sigma < 6


def test_moments_of_clipped_normals():
    e = np.random.default_rng(1).normal(size=2_000_000)
    for window in (0.7, 1.8, 3.5):
        r = np.clip(e, -window, window)
        moments = clipped_moments(window)
        assert float(moments.second) == pytest.approx(np.mean(r**2), rel=0.005)
        assert float(moments.fourth) == pytest.approx(np.mean(r**4), rel=0.01)
        shifted = np.clip(e + 0.05, -window, window)
        assert float(moments.slope) == pytest.approx(np.mean(shifted - r) / 0.05, rel=0.01)
        spread = np.clip(e * 1.01, -window, window)
        assert float(moments.curvature) == pytest.approx(np.mean(spread**2 - r**2) / (1.01**2 - 1), rel=0.03)


@pytest.mark.parametrize("mean", [-1e6, -40.0, -3.0, -1.0, 0.0, 0.4, 1.0, 2.0, 5.0, 90.0, 1e6])
@pytest.mark.parametrize("error", [0.0, 0.1, 1.0, 30.0, 1e9])
def test_means_of_truncated_normals(mean, error):
    found = truncated_mean(mean, error, 2.0)
    assert 0 <= found <= 2
    if error == 0:
        assert found == pytest.approx(min(max(mean, 0.0), 2.0), abs=1e-8)
    if abs(mean - 1) < 35 * error < 1e6:
        law = truncnorm(-mean / error, (2 - mean) / error, mean, error)
        assert found == pytest.approx(law.mean(), rel=1e-3, abs=1e-6)
    assert found == pytest.approx(2 - truncated_mean(2 - mean, error, 2.0), abs=1e-9)


def test_columns_that_add_nothing_change_nothing():
    """A constant beside the intercept, a level that never occurs: σ and line are as without them."""
    X, y = simulate(2)
    empty = np.column_stack([X[:, :1], np.zeros(len(X)), X, np.full(len(X), 4.0), X[:, 1:2]])
    plain, more = (fit(each, y, 1, epsilon=1e4) for each in (X, empty))
    assert more.sigma == pytest.approx(plain.sigma, rel=1e-3)
    assert empty @ more.beta == pytest.approx(X @ plain.beta, abs=0.02)
    errors = [np.trace(Z @ found.covariance @ Z.T) / len(Z) for Z, found in ((X, plain), (empty, more))]
    assert errors[1] == pytest.approx(errors[0], rel=0.05)
