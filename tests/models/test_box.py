"""Draws in a box follow the restricted posterior exactly, near its mode and far out, and always come."""

import numpy as np
import pytest
from scipy import stats

from hedgerow.models.box import BoxSampler
from hedgerow.models.conjugate import Posterior
from hedgerow.numerics.normal_mass import log_interval_mass
from hedgerow.randomness import Key

FALSE_ALARM = 1e-4  # of each test, over all its coordinates


def posterior(width, records=300, seed=0):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(records, width)) + random.normal(size=(records, 1))  # correlated at a half
    factor = np.linalg.qr(rows, mode="r")
    factor *= np.sign(np.diag(factor))[:, None]
    return Posterior(factor, random.normal(size=width), records / 2, records / 2)


def box(given, away, seed=0, sigma=(0.8, 1.3)):
    """Sides of 1 to 5 posterior standard deviations, `away` of them from the mean on either hand."""
    random = np.random.default_rng([seed, 1])
    spread = np.linalg.norm(np.linalg.inv(given.factor), axis=1) * np.sqrt(given.rate / given.shape)
    width, hand = random.uniform(1, 5, len(spread)), random.choice([-1, 1], len(spread))
    middle = given.mean + hand * (away + width / 2) * spread if away else given.mean
    return {
        "low": np.append(middle - width / 2 * spread, sigma[0]),
        "high": np.append(middle + width / 2 * spread, sigma[1]),
    }


def conditional_shares(given, low, high, beta, sigma):
    """Each parameter's distribution function given all the others: uniform if the draws are right."""
    precision = given.factor.T @ given.factor
    shares = []
    for j in range(len(given.mean)):
        centred = beta - given.mean
        pull = centred @ precision[j] - centred[:, j] * precision[j, j]
        centre, spread = given.mean[j] - pull / precision[j, j], sigma / np.sqrt(precision[j, j])
        ends = [(end - centre) / spread for end in (low[j], beta[:, j], high[j])]
        shares.append(np.exp(log_interval_mass(ends[0], ends[1]) - log_interval_mass(ends[0], ends[2])))
    # 1/σ given β has a density of known form: summed over a grid, which is fine at the ends.
    squares = np.sum(((beta - given.mean) @ given.factor.T) ** 2, axis=1)[:, None]
    fine = np.geomspace(1e-9, 1, 1500)
    place = np.unique(np.concatenate([[0.0], fine, 1 - fine, np.linspace(0, 1, 1500)]))
    grid = 1 / high[-1] + (1 / low[-1] - 1 / high[-1]) * place
    power = 2 * given.shape - 1 + len(given.mean)
    below = np.empty(len(sigma))
    for k in range(len(sigma)):
        log_density = power * np.log(grid) - (given.rate + squares[k] / 2) * grid**2
        density = np.exp(log_density - log_density.max())
        total = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) * np.diff(grid))])
        below[k] = np.interp(1 / sigma[k], grid, total / total[-1])
    return [*shares, below]


@pytest.mark.parametrize("width", [1, 3])
def test_draws_agree_with_plain_rejection(width):
    given = posterior(width, records=20)
    ends = box(given, away=0)
    plain = given.draw(60_000, Key.from_seed(1))
    points = np.column_stack([plain.beta, plain.sigma])
    points = points[((points >= ends["low"]) & (points <= ends["high"])).all(axis=1)]
    assert len(points) > 5000
    drawn = BoxSampler.of(given, **ends).draw(5000, Key.from_seed(2))
    for one, other in zip(points.T, [*drawn.beta.T, drawn.sigma], strict=True):
        assert stats.ks_2samp(one, other).pvalue > FALSE_ALARM / (width + 1)


@pytest.mark.parametrize("width", [1, 2, 5, 25])
@pytest.mark.parametrize("away", [1, 10, 30, 100])
def test_draws_far_from_the_mode_follow_every_conditional(width, away):
    """Kolmogorov–Smirnov of each parameter given the others, and at least three in ten proposals kept."""
    given = posterior(width, seed=width)
    ends = box(given, away, seed=away)
    sampler = BoxSampler.of(given, **ends)
    drawn = sampler.draw(400, Key.from_seed(3))
    sides = np.column_stack([drawn.beta, drawn.sigma])
    assert ((sides >= ends["low"]) & (sides <= ends["high"])).all()
    for share in conditional_shares(given, **ends, beta=drawn.beta, sigma=drawn.sigma):
        assert stats.kstest(share, "uniform").pvalue > FALSE_ALARM / (width + 1)
    assert len(sampler.propose(2000, Key.from_seed(4))[1]) > 600


@pytest.mark.parametrize("shape", [0.1, 0.5, 3.0])
def test_draws_of_a_vague_scale_over_a_wide_side(shape):
    """Below a shape of a half t^(2a−1) is not log-concave."""
    given = Posterior(np.eye(1), np.zeros(1), shape, shape)
    ends = {"low": np.array([0.5, 0.02]), "high": np.array([2.0, 40.0])}
    sampler = BoxSampler.of(given, **ends)
    drawn = sampler.draw(1000, Key.from_seed(5))
    shares = conditional_shares(given, **ends, beta=drawn.beta, sigma=drawn.sigma)
    for share in shares:
        assert stats.kstest(share, "uniform").pvalue > FALSE_ALARM / 2
    assert len(sampler.propose(2000, Key.from_seed(6))[1]) > 600


@pytest.mark.parametrize("away", [0, 3, 30])
def test_a_nodes_bound_holds_everywhere_in_the_box(away):
    """At 5000 random parameters of the box, for the tilt of every node: no tolerance."""
    given = posterior(4, seed=9)
    ends = box(given, away, seed=2)
    sampler = BoxSampler.of(given, **ends)
    target, random = sampler.target, np.random.default_rng(3)
    beta = random.uniform(ends["low"][:-1], ends["high"][:-1], (5000, 4))
    t = 1 / random.uniform(ends["low"][-1], ends["high"][-1], 5000)
    x = np.linalg.solve(target.triangle, ((beta - given.mean) * t[:, None])[:, target.order].T).T
    assert sampler.nodes
    for node in sampler.nodes:
        moved = x @ target.mixing.T + node.tilt
        masses = log_interval_mass(t[:, None] * target.lower - moved, t[:, None] * target.upper - moved)
        ratio = (masses - node.tilt * x + node.tilt**2 / 2).sum(axis=1)
        ratio += target.exponent * np.log(t) - target.rate * t**2
        bound = node.own + node.rest + node.slope * (t - node.place)
        assert (ratio <= bound).all()


def random_setting(random):
    """A posterior and a box: any size and distance, collinear columns, sides of unequal length."""
    width, records = int(random.choice([1, 2, 3, 5, 8, 25])), int(10 ** random.uniform(1.5, 4))
    rows = random.normal(size=(200, width)) * np.sqrt(records / 200)
    rows[:, 1:] = rows[:, :1] + rows[:, 1:] * 10 ** random.uniform(-3, 1)
    rows = np.vstack([rows, np.diag(np.linalg.norm(rows, axis=0) * 10 ** random.uniform(-4, 0, width))])
    factor = np.linalg.qr(rows, mode="r")
    factor *= np.sign(np.diag(factor))[:, None]
    shape, scale = float(random.choice([0.05, 0.5, 1.0, records / 2])), 10 ** random.uniform(-3, 3)
    given = Posterior(factor, random.normal(size=width), shape, shape * scale**2)
    spread = np.linalg.norm(np.linalg.inv(factor), axis=1) * scale
    side, away = 10 ** random.uniform(-1, 1.5, width), random.choice([0, 1, 10, 100])
    moved = np.where(random.random(width) < 0.5, (away + side / 2) * random.choice([-1, 1], width), 0.0)
    sigma = scale * 10 ** (random.uniform(-1, 1) + np.array([-0.5, 0.5]) * random.uniform(0.01, 2))
    middle = given.mean + moved * spread
    low, high = middle - side / 2 * spread, middle + side / 2 * spread
    return given, np.append(low, sigma[0]), np.append(high, sigma[1])


@pytest.mark.slow
def test_random_settings_are_sampled_quickly():
    """Of 200 settings that the weights of Strict could lead to, nearly all keep more than half."""
    random, shares = np.random.default_rng(12), []
    while len(shares) < 200:
        given, low, high = random_setting(random)
        corners = random.choice([0, 1], (400, len(low) - 1)) * (high - low)[:-1] + low[:-1] - given.mean
        energy = np.sum((corners @ given.factor.T) ** 2, axis=1) / (2 * low[-1] * high[-1])
        if np.ptp(energy) > 1e6:
            continue  # the log posterior over the box oscillates by no more than n ε, and the prior
        sampler = BoxSampler.of(given, low=low, high=high)
        shares.append(len(sampler.propose(2000, Key.from_seed(len(shares)))[1]) / 2000)
    assert np.quantile(shares, 0.05) > 0.5
    assert min(shares) > 0.02
