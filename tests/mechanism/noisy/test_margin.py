"""Bins of equal probability, shrunken counts, tilted records: for a right model and for wrong ones."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from hedgerow.mechanism.noisy.copies import predict
from hedgerow.mechanism.noisy.estimate import estimate
from hedgerow.mechanism.noisy.margin import bin_chances, bin_edges, fit_tilt, margin_pays
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.mechanism.noisy.released import Counts
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.randomness import Key


def released_from(noise, seed=1, epsilon=1.0, n=2000):
    chance = np.random.default_rng(seed)
    X = np.column_stack((np.ones(n), chance.normal(size=n)))
    outcome = X.sum(axis=1) + noise(chance, n)
    recipe = make_recipe(X, low=-6.0, high=9.0, epsilon=epsilon, margin_share=0.25)
    return release_statistics(recipe, outcome, np.ones(n, bool), key=Key.from_seed(seed)), outcome


def normal(chance, n):
    return chance.normal(size=n)


def skewed(chance, n):
    return (chance.gamma(1.5, size=n) - 1.5) / np.sqrt(1.5)


@pytest.mark.parametrize("n", [3, 700, 5000])
def test_bins_have_equal_probability_under_the_models_own_margin(n):
    released, _ = released_from(normal, n=n)
    found = estimate(released)
    edges = bin_edges(released.recipe, found)
    fitted = released.recipe.matrix @ found.beta
    below = stats.norm.cdf((edges - fitted[:, None]) / found.sigma).mean(axis=0)
    assert below == pytest.approx(np.arange(1, 32) / 32, abs=1e-4)  # 1000 groups of fitted values
    assert np.all(np.diff(edges) > 0)


def test_counts_that_agree_with_the_model_tilt_nothing():
    released, _ = released_from(normal)
    found, edges = estimate(released), released.counts.edges
    chances = bin_chances(released.recipe.matrix @ found.beta, found.sigma, edges)
    agree = replace(released, counts=Counts(edges, chances.sum(axis=0), scale=4.0))
    assert fit_tilt(agree, found.beta, found.sigma).weights == pytest.approx(np.ones(32), abs=1e-6)


def test_noise_alone_is_shrunk_away_more_often_than_not():
    """Ten releases of a right model: the margin moves by less than the noise of a bin, 4√2/2000."""
    moved = []
    for seed in range(10):
        released, _ = released_from(normal, seed)
        found = estimate(released)
        moved.append(np.abs(fit_tilt(released, found.beta, found.sigma).margin - 1 / 32).max())
    assert np.median(moved) < 4 * np.sqrt(2) / 2000


def test_records_have_the_margin_together():
    released, _ = released_from(skewed, epsilon=4.0, n=900)  # few enough that each is a group of its own
    found = estimate(released)
    tilt = fit_tilt(released, found.beta, found.sigma)
    tilted = bin_chances(released.recipe.matrix @ found.beta, found.sigma, tilt.edges) * tilt.weights
    shares = (tilted / tilted.sum(axis=1, keepdims=True)).mean(axis=0)
    assert shares == pytest.approx(tilt.margin, abs=1e-8)
    assert np.abs(tilt.margin - 1 / 32).max() > 0.005


def test_a_wrong_model_keeps_the_distribution():
    """Skewed errors: without a margin copies are 0.04 away, without privacy too."""
    with_margin, without = [], []
    for seed in range(5):
        released, outcome = released_from(skewed, seed)
        found = estimate(released)
        for tilt, gaps in ((fit_tilt(released, found.beta, found.sigma), with_margin), (None, without)):
            copy = predict(
                released.recipe, found.beta, found.sigma, tilt, sampling="stratified", key=Key.from_seed(seed)
            )
            gaps.append(stats.ks_2samp(copy, outcome).statistic)
    assert np.mean(without) > 0.033
    assert np.mean(with_margin) < 0.027


@pytest.mark.parametrize("counts", [-1e6, 0.0, 1e9])
def test_counts_that_noise_has_spoilt_give_a_finite_tilt(counts):
    released, _ = released_from(normal, n=300)
    spoilt = np.where(np.arange(32) % 5, released.counts.counts, counts)
    found = estimate(released)
    tilt = fit_tilt(
        replace(released, counts=replace(released.counts, counts=spoilt)), found.beta, found.sigma
    )
    assert np.isfinite(tilt.weights).all()
    assert np.all(tilt.weights > 0)


def test_when_it_pays_is_known_beforehand():
    assert margin_pays(2000, 0.25, 0.4)
    assert not margin_pays(2000, 0.25, 0.4, "replaced")
    assert not margin_pays(200, 0.25, 1.0)
    assert margin_pays(2000, 0.25, 1.2, rows_per_unit=3)
    assert not margin_pays(2000, 0.25, 1.1, rows_per_unit=3)
    assert not margin_pays(2000, 0.25, 1.2, "range", rows_per_unit=3)
