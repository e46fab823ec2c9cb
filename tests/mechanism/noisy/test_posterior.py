"""Draws given noisy statistics: the moments they rest on, the exact posterior without noise, coverage."""

from dataclasses import replace

import numpy as np
import pytest

from hedgerow.mechanism.noisy.posterior import _Statistics, draw_posterior
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.randomness import Key


def simulated(n, p, seed, *, epsilon=1.0, limits=(-3.0, 9.0), sigma=1.0, **settings):
    """A released table of the model, with the outcome that nobody else may see."""
    chance = np.random.default_rng(seed)
    X = np.column_stack((np.ones(n), chance.normal(size=(n, p - 1))))
    outcome = X.sum(axis=1) / np.sqrt(p / 2) + sigma * chance.normal(size=n)
    recipe = make_recipe(X, low=limits[0], high=limits[1], epsilon=epsilon, **settings)
    return release_statistics(recipe, outcome, np.ones(n, bool), key=Key.from_seed(seed)), outcome


def theta_of(draws):
    return np.column_stack((draws.parameters["beta"], np.log(draws.parameters["sigma"])))


@pytest.mark.parametrize(
    ("limits", "p", "off"), [((-3.0, 9.0), 2, 0.01), ((-0.5, 3.0), 2, 0.01), ((-3.0, 9.0), 3, 0.1)]
)
def test_statistics_have_the_means_and_covariances_that_are_said_of_them(limits, p, off):
    """4000 tables at one θ, off the rounds' lines; five standard errors, about 250 comparisons: 2e-4.

    Within a cell the means follow the offset and the covariances do not: with one predictor cells leave
    nothing to follow, with two what is left is off by up to a tenth of a correlation.
    """
    released, _ = simulated(150, p, 1, limits=limits)
    recipe, chance = released.recipe, np.random.default_rng(2)
    line, sigma = released.rounds[1].line + (0.2, 0.1, -0.15)[:p], 0.9
    outcome = np.clip(recipe.matrix @ line + sigma * chance.normal(size=(4000, 150)), *limits)
    found = []
    for one in released.rounds:
        r = np.clip(outcome - recipe.matrix @ one.line, -one.window, one.window)
        found += [r @ recipe.loadings * LOADING_UNIT, (r**2).sum(axis=1, keepdims=True)]
    unit = np.tile([recipe.half_width] * p + [recipe.half_width**2], 2) * recipe.records
    found = np.hstack(found) / unit
    model = _Statistics(released)
    theta = np.append(np.linalg.solve(recipe.basis, line), 0.0) / recipe.half_width
    theta[-1] = np.log(sigma / recipe.half_width)
    expected = model.describe(theta[None])
    means, spread, slopes = expected.means, expected.spread, expected.slopes
    assert np.all(np.abs(found.mean(axis=0) - means[0]) < 5 * found.std(axis=0) / np.sqrt(4000))
    centred = found - found.mean(axis=0)
    products = centred[:, :, None] * centred[:, None, :]
    error, size = products.std(axis=0) / np.sqrt(4000), np.outer(found.std(axis=0), found.std(axis=0))
    assert np.all(np.abs(products.mean(axis=0) - spread[0]) < 5 * error + off * size)
    step = np.eye(p + 1)[:p] * 1e-5
    ahead, back = model.describe(theta + step).means, model.describe(theta - step).means
    # What a cell's own straight line and parabola add is not differentiated: proposals need no more.
    assert np.allclose(((ahead - back) / 2e-5).T, slopes[0], atol=0.05 * np.abs(slopes[0]).max())


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_with_next_to_no_noise_it_is_the_exact_posterior(noise):
    delta = 1e-6 if noise == "gaussian" else 0.0
    wide = (-12.0, 12.0)  # nothing is clipped in round one
    released, outcome = simulated(400, 3, 3, epsilon=1e5, limits=wide, noise=noise, delta=delta)
    X = released.recipe.matrix
    line, rest, *_ = np.linalg.lstsq(X, outcome)
    sigma = float(np.sqrt(rest[0] / 397))
    errors = np.array([*sigma * np.sqrt(np.diag(np.linalg.inv(X.T @ X))), 1 / np.sqrt(2 * 397)])
    draws = draw_posterior(released, draws=1000, key=Key.from_seed(4))
    theta = theta_of(draws)
    # 300 effective draws: five standard errors of a mean, and 20 % of a standard deviation.
    assert draws.effective > 300
    assert np.all(np.abs(theta.mean(axis=0) - (*line, np.log(sigma))) < 0.3 * errors)
    assert theta.std(axis=0) == pytest.approx(errors, rel=0.2)


@pytest.mark.parametrize(
    ("noise", "epsilon"),
    [
        ("gaussian", 0.3),
        pytest.param("gaussian", 3.0, marks=pytest.mark.slow),
        pytest.param("laplace", 0.3, marks=pytest.mark.slow),
        pytest.param("laplace", 3.0, marks=pytest.mark.slow),
    ],
)
def test_it_is_the_posterior_by_brute_force(noise, epsilon):
    """One column: means and deviations of line and log σ on a grid; for Laplace noise over draws of τ too.

    σ is half hidden at ε = 0.3, with a long tail towards 0 that a walk gets lost in.
    """
    delta = 1e-6 if noise == "gaussian" else 0.0
    released, _ = simulated(300, 1, 5, epsilon=epsilon, noise=noise, delta=delta)
    model, chance = _Statistics(released), np.random.default_rng(6)
    draws = draw_posterior(released, draws=2000, key=Key.from_seed(7))
    found = np.column_stack((draws.parameters["beta"][:, 0], np.log(draws.parameters["sigma"])))
    found -= (0.0, np.log(released.recipe.half_width))
    found[:, 0] /= released.recipe.basis[0, 0] * released.recipe.half_width
    near, far = found.mean(axis=0), 7 * found.std(axis=0)
    line = np.linspace(near[0] - far[0], near[0] + far[0], 101)
    log_sigma = np.linspace(max(near[1] - far[1], np.log(1e-6)), near[1] + far[1], 121)
    theta = np.stack(np.meshgrid(line, log_sigma), axis=-1).reshape(-1, 2)
    expected, scale = model.describe(theta), model.scale
    residual, density = model.observed - expected.means, 0.0
    rounds = 1 if noise == "gaussian" else 400
    for tau in np.ones((1, 4)) if rounds == 1 else 2 * chance.exponential(size=(rounds, 4)):
        total = expected.spread + np.diag(tau * scale**2)
        inside = (residual * np.linalg.solve(total, residual[:, :, None])[:, :, 0]).sum(axis=1)
        density = density + np.exp(-0.5 * inside) / np.sqrt(np.linalg.det(total / np.outer(scale, scale)))
    weight = density * np.exp(model.log_prior(theta))
    mean = weight @ theta / weight.sum()
    deviation = np.sqrt(weight @ (theta - mean) ** 2 / weight.sum())
    # 600 effective draws: five standard errors of a mean and of a deviation (with a long tail).
    assert draws.effective > 600
    assert np.all(np.abs(found.mean(axis=0) - mean) < 0.2 * deviation)
    assert found.std(axis=0) == pytest.approx(deviation, rel=0.2)


@pytest.mark.slow
def test_coefficients_that_noise_hides_do_not_hold_sigma_fast():
    """25 columns, 900 records: the squares know σ² and the line's error together, not apart."""
    released, _ = simulated(900, 25, 1, epsilon=1.0)
    draws = draw_posterior(released, draws=1000, key=Key.from_seed(2))
    assert draws.effective > 300
    assert min(draws.acceptance) > 0.2


@pytest.mark.slow
def test_noise_widens_it_as_it_should():
    """Errors over posterior standard deviations in 8 releases, where noise is twice the sampling error."""
    scaled = []
    for seed in range(8):
        released, _ = simulated(500, 2, 10 + seed, epsilon=0.4)
        theta = theta_of(draw_posterior(released, draws=96, key=Key.from_seed(seed)))
        scaled.append((theta.mean(axis=0) - (1, 1, 0)) / theta.std(axis=0))
    # 24 squares, about independent, have mean 1 ± 0.29; ignoring the noise gives 4 and more.
    assert 0.25 < np.mean(np.square(scaled)) < 2.5


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon"), [(2000, 1.0), (2000, 0.5), (200, 1.0)])
def test_coverage(n, epsilon):
    """95 % intervals in 300 releases: standard error 0.013, so 0.90 to 0.99; ranks uniform in their mean."""
    inside, ranks = [], []
    for seed in range(300):
        released, _ = simulated(n, 2, 1000 + seed, epsilon=epsilon)
        theta = theta_of(draw_posterior(released, draws=480, key=Key.from_seed(seed)))
        ends = np.quantile(theta, [0.025, 0.975], axis=0)
        inside.append((ends[0] < (1, 1, 0)) & (ends[1] > (1, 1, 0)))
        ranks.append((theta < (1, 1, 0)).mean(axis=0))
    assert np.all(np.abs(np.mean(inside, axis=0) - 0.945) < 0.045), np.mean(inside, axis=0)
    assert np.all(np.abs(np.mean(ranks, axis=0) - 0.5) < 5 * 0.289 / np.sqrt(300)), np.mean(ranks, axis=0)


@pytest.mark.slow
def test_many_columns_with_rare_ones():
    """54 columns, most of them levels of factors: errors over posterior standard deviations."""
    chance = np.random.default_rng(9)
    levels = [np.eye(18)[chance.choice(18, size=8000, p=np.arange(1, 19) / 171)][:, 1:] for _ in range(3)]
    X = np.column_stack((np.ones(8000), chance.normal(size=(8000, 2)), *levels))
    recipe = make_recipe(X, low=-3.0, high=9.0, epsilon=2.0)
    outcome = 1 + X[:, 1] + chance.normal(size=8000)
    released = release_statistics(recipe, outcome, np.ones(8000, bool), key=Key.from_seed(1))
    draws = draw_posterior(released, draws=192, key=Key.from_seed(1))
    fitted = X[:400] @ (draws.parameters["beta"] - np.eye(54)[0] - np.eye(54)[1]).T
    assert draws.effective > 55
    # 54 coordinates about independent: 1 ± 0.2, with shrinkage towards the prior below it.
    assert 0.2 < np.mean((fitted.mean(axis=1) / fitted.std(axis=1)) ** 2) < 2


def test_a_key_settles_the_draws_and_chains_come_in_turn():
    released, _ = simulated(200, 2, 5)
    one, same, other = (draw_posterior(released, draws=40, key=Key.from_seed(k)) for k in (1, 1, 2))
    assert np.array_equal(theta_of(one), theta_of(same))
    assert not np.array_equal(theta_of(one), theta_of(other))
    assert len({*one.parameters["sigma"][:32]}) == 32


@pytest.mark.parametrize(("n", "p"), [(3, 2), (5, 4), (60, 15), (2, 1)])
def test_few_records_and_many_columns_give_finite_draws(n, p):
    released, _ = simulated(n, p, 6)
    draws = draw_posterior(released, draws=32, key=Key.from_seed(1))
    assert np.isfinite(theta_of(draws)).all()
    assert draws.parameters["beta"].shape == (32, p)


@pytest.mark.slow
@pytest.mark.parametrize(("scores", "squares"), [(0.0, -1e9), (1e9, 0.0), (-1e200, 1e200)])
@pytest.mark.parametrize("place", [0, 1])
def test_statistics_that_noise_has_spoilt_give_finite_draws(scores, squares, place):
    released, _ = simulated(50, 2, 7)
    rounds = list(released.rounds)
    rounds[place] = replace(rounds[place], scores=rounds[place].scores + scores, squares=squares)
    spoilt = replace(released, rounds=tuple(rounds))
    assert np.isfinite(theta_of(draw_posterior(spoilt, draws=32, key=Key.from_seed(1)))).all()


def test_columns_that_say_nothing_do_no_harm():
    chance = np.random.default_rng(8)
    X = np.column_stack((np.ones(100), np.full(100, 3.0), chance.normal(size=100), np.zeros(100)))
    recipe = make_recipe(X, low=-3.0, high=9.0, epsilon=1.0)
    released = release_statistics(recipe, 1 + X[:, 2], np.ones(100, bool), key=Key.from_seed(1))
    draws = draw_posterior(released, draws=32, key=Key.from_seed(1))
    assert np.isfinite(X @ draws.parameters["beta"].T).all()
