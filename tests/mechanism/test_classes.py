"""Draws from public classes against a grid, against exact regression and in corners; copies inside them."""

import numpy as np
import pytest
from scipy import stats

from hedgerow.errors import RangeError
from hedgerow.mechanism.classes import draw_from_classes, predict_inside
from hedgerow.numerics.normal_mass import log_interval_mass
from hedgerow.randomness import Key

LIMITS = {"low": -3.0, "high": 9.0}
EIGHT = np.array([-np.inf, 0, 1, 2, 3, 4, 5, 6, np.inf])
INF = np.inf


def simulated(records, seed, edges=EIGHT):
    random = np.random.default_rng(seed)
    z = random.normal(2, 1, records)
    y = 1 + z + random.normal(size=records)
    place = np.searchsorted(edges, y, side="right") - 1
    return np.column_stack([np.ones(records), z]), y, edges[place], edges[place + 1]


def drawn(X, lower, upper, *, draws=2000, seed=1):
    sample = draw_from_classes(X, lower, upper, **LIMITS, draws=draws, key=Key.from_seed(seed))
    return sample.parameters["beta"], sample.parameters["sigma"], sample.health


@pytest.mark.parametrize("records", [2, 5, 25])
def test_draws_follow_the_posterior_on_a_grid(records):
    """An intercept alone: the marginals of β and log σ by Kolmogorov-Smirnov at 1e-4 each, 2000 draws."""
    edges = np.array([-INF, 1.0, 2.5, 4.0, INF])
    values = np.linspace(0.5, 5.0, records)
    place = np.searchsorted(edges, values) - 1
    lower, upper = edges[place], edges[place + 1]
    beta, sigma, health = drawn(np.ones((records, 1)), lower, upper)
    b, s = np.meshgrid(np.linspace(-12, 18, 601), np.linspace(-9, 6, 601), indexing="ij")
    density = stats.norm.logpdf(b, 3, 3) + stats.norm.logpdf(s, 0, 1.5)  # H = 6
    for which, times in zip(*np.unique(place, return_counts=True), strict=True):
        low, high = edges[which], edges[which + 1]
        density += times * log_interval_mass((low - b) / np.exp(s), (high - b) / np.exp(s))
    mass = np.exp(density - density.max())
    for found, axis, grid in ((beta[:, 0], 1, b[:, 0]), (np.log(sigma), 0, s[0])):
        cumulative = np.cumsum(mass.sum(axis=axis)) / mass.sum()
        middles = (grid[1:] + grid[:-1]) / 2
        law = lambda x, c=cumulative, m=middles: np.interp(x, m, c[:-1])  # noqa: E731
        assert stats.kstest(found, law).pvalue > 1e-4
    assert health.effective_draws > 0.9 * len(sigma)


def test_narrow_classes_are_exact_regression():
    """With classes a millionth wide: means within 4 standard errors of 2000 draws, spreads within 5 %."""
    X, y, *_ = simulated(300, 2)
    beta, sigma, _ = drawn(X, y - 5e-7, y + 5e-7)
    estimate, (rss,), *_ = np.linalg.lstsq(X, y, rcond=None)
    spread = np.sqrt(rss / 298 * np.diag(np.linalg.inv(X.T @ X)))
    # The prior moves the mean by (spread / prior's spread)² of the distance: less than 0.01 spreads here.
    assert np.abs(beta.mean(axis=0) - estimate).max() < (4 / np.sqrt(2000) + 0.01) * spread.max()
    assert beta.std(axis=0) == pytest.approx(spread, rel=0.05)
    assert sigma.mean() == pytest.approx(np.sqrt(rss / 298), rel=0.005)


def test_classes_tell_nearly_as_much_as_values():
    X, y, lower, upper = simulated(2000, 3)
    beta, sigma, _ = drawn(X, lower, upper, draws=300)
    estimate = np.linalg.lstsq(X, y, rcond=None)[0]
    spread = np.sqrt(np.linalg.inv(X.T @ X)[1, 1])
    assert abs(beta[:, 1].mean() - estimate[1]) < 2 * spread
    assert beta[:, 1].std() < 1.3 * spread
    assert abs(np.log(sigma.mean())) < 0.06


def test_the_key_decides_and_draws_are_independent():
    X, _, lower, upper = simulated(60, 4)
    first, again, other = (drawn(X, lower, upper, draws=2000, seed=seed)[0][:, 1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.isin(first, other).any()
    # Between neighbours no correlation: |r| √2000 < 4 fails once in 16,000 keys.
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) * np.sqrt(2000) < 4


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ([-INF, -INF, -INF], [INF, INF, INF]),  # nothing is known
        ([0.0, -INF, -INF], [1.0, INF, 2.0]),
        ([8.0, 8.0, 8.0], [INF, INF, INF]),  # all in one class at the end
        ([1.0, 1.0, 1.0], [1.0 + 1e-9, 1.0 + 1e-9, 1.0 + 1e-9]),  # no spread at all
        ([-3e4, 0.0, 3e4], [-3e4 + 1, 1.0, INF]),  # far beyond the limits
    ],
)
@pytest.mark.parametrize("width", [1, 2, 3])
def test_corners_give_draws_and_copies(lower, upper, width):
    lower, upper = np.array(lower), np.array(upper)
    X = np.array([[1.0, 0.0, 2.0], [1.0, 1.0, 0.0], [1.0, 5.0, 1.0]])[:, :width]
    beta, sigma, _ = drawn(X, lower, upper, draws=50)
    assert np.isfinite(beta).all()
    assert (np.isfinite(sigma) & (sigma > 0)).all()
    for draw in range(50):
        copy = predict_inside(X, beta[draw], sigma[draw], lower, upper, np.array([1e-9, 0.5, 1 - 1e-9]))
        assert np.isfinite(copy).all()
        assert ((lower <= copy) & (copy <= upper)).all()


def test_copies_follow_the_law_inside_the_class_however_far_out():
    """From the centre to 30 σ: F(y | class) against log masses, at 200 shares of each class."""
    share = (np.arange(200) + 0.5) / 200
    for low, high in ((-0.5, 0.2), (-INF, 1.0), (3.0, 3.5), (29.0, 30.0), (-31.0, -30.0), (25.0, INF)):
        ends = np.full(200, low), np.full(200, high)
        copy = predict_inside(
            np.full((200, 1), 2.0), np.array([1.0]), 0.5, 2 + ends[0] / 2, 2 + ends[1] / 2, share
        )
        below = log_interval_mass(ends[0], (copy - 2) / 0.5) - log_interval_mass(*ends)
        assert np.exp(below) == pytest.approx(share, rel=1e-6)


def test_an_empty_class_is_refused():
    with pytest.raises(RangeError, match="1 of 3 classes"):
        drawn(np.ones((3, 1)), np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 3.0]))


@pytest.mark.slow
def test_intervals_cover():
    """300 tables of 200 in eight classes: 95 % intervals, within 4 standard errors (0.0126)."""
    hits = []
    for seed in range(300):
        X, _, lower, upper = simulated(200, 1000 + seed)
        beta, sigma, _ = drawn(X, lower, upper, draws=400, seed=seed)
        ends = np.quantile(np.column_stack([beta, sigma]), [0.025, 0.975], axis=0)
        hits.append((ends[0] <= 1) & (ends[1] >= 1))
    assert np.abs(np.mean(hits, axis=0) - 0.95).max() < 0.05
