"""Outcomes at a spike: the joint price against brute force, the logistic regression, and hostile tables."""

import itertools
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit

from hedgerow.errors import SettingError
from hedgerow.mechanism.noisy import rounds
from hedgerow.mechanism.noisy.copies import draw_zeros
from hedgerow.mechanism.noisy.estimate import estimate
from hedgerow.mechanism.noisy.expect import expected_errors
from hedgerow.mechanism.noisy.margin import fit_tilt
from hedgerow.mechanism.noisy.posterior import draw_posterior
from hedgerow.mechanism.noisy.prices import noise_for_spike, price_spike
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.mechanism.noisy.run import log_ratio, losses
from hedgerow.mechanism.noisy.spike import draw_spike, expect_presence
from hedgerow.randomness import Key

LOW, HIGH = -2.0, 4.0
ZERO, BLANK = "zero", "blank"
VALUES = (-np.inf, -1.25, 0.1, 1.0, 2.5, np.inf, ZERO, BLANK)


def held(recipe, response, present):
    return rounds.hold_outcomes(recipe.rows, response, present)


def tiny(relation, noise="laplace", **more):
    X = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 3.0]])
    delta = 0.0 if noise == "laplace" else 1e-5
    told = {"low": LOW, "high": HIGH, "epsilon": 1.0, "relation": relation, "noise": noise, "delta": delta}
    return make_recipe(X, **told, spiked=True, **more)


def table(values):
    response = np.array([np.nan if isinstance(value, str) else value for value in values], dtype=float)
    return response, np.array([value != BLANK for value in values])


def neighbours(relation):
    """All pairs of tables of three records that differ in one outcome."""
    pairs = [
        (a, b) for a, b in itertools.combinations(VALUES, 2) if relation == "replaced" or BLANK in (a, b)
    ]
    for place, pair, others in itertools.product(range(3), pairs, [(0.1, ZERO), (BLANK, 4.0)]):
        yield tuple((*others[:place], value, *others[place:]) for value in pair)


def cost(moved, scale, noise):
    parts = [abs(a - b) / scale for a, b in moved]
    return sum(parts) if noise == "laplace" else sum(part**2 for part in parts) / 2


def worst_joint(recipe, *, steps=1 << 12):
    """The dearest pair in the spike's sum and both rounds together, over outputs of sum and round one.

    Rounds are set up by what the sum and the round before gave out, so that every way these may come out is a
    mechanism of its own: log ratios of the parts add up (adaptive composition).
    """
    pairs, noise = list(neighbours(recipe.relation)), recipe.noise
    of_spike = noise_for_spike(noise, recipe.bound, recipe.spike_budget())
    assert price_spike(noise, recipe.bound, of_spike) <= recipe.spike_budget()
    tables = {one for pair in pairs for one in pair}
    sums = {one: rounds.sum_spike(held(recipe, *table(one))) for one in tables}
    by_spike = [cost(zip(sums[a], sums[b], strict=True), of_spike, noise) for a, b in pairs]
    budget, found, of_rounds = recipe.budget(), Fraction(0), Fraction(0)
    for zeros in (-2, 0, 3):
        scale = float(of_spike) / 2**16
        spike = rounds.Spike(np.array([0.5, zeros * scale]), scale)
        told = recipe.with_presence(expect_presence(recipe, spike))
        first = rounds.first_setup(told, budget[0], steps)
        outputs = itertools.product((-3, 0, 3), (-2, 1), (-3, 1)) if zeros else [(0, 0, 0)]
        setups = [first]
        for push in outputs:
            noisy = [round(p * first.scales.scores) for p in push[:2]]
            squares = 3 * steps**2 // 2 + round(push[2] * first.scales.squares)
            setups.append(rounds.second_setup(told, rounds.describe(first, noisy, squares), budget[1], steps))
        costs = []
        for setup in setups:
            sums = {one: rounds.sum_outcome(told, setup, held(told, *table(one))) for one in tables}
            costs.append(
                [
                    cost(zip(sums[a][0], sums[b][0], strict=True), setup.scales.scores, noise)
                    + cost([(sums[a][1], sums[b][1])], setup.scales.squares, noise)
                    for a, b in pairs
                ]
            )
        in_one, *in_two = costs
        for second in in_two:
            both = [a + b for a, b in zip(in_one, second, strict=True)]
            of_rounds = max(of_rounds, *both)
            found = max(found, *(a + b for a, b in zip(by_spike, both, strict=True)))
    return max(by_spike), of_rounds, found


@pytest.mark.parametrize("noise", ["laplace", pytest.param("gaussian", marks=pytest.mark.slow)])
@pytest.mark.parametrize("relation", ["withheld", pytest.param("replaced", marks=pytest.mark.slow)])
def test_no_pair_of_neighbours_costs_more_than_stated(relation, noise):
    """Withheld: the larger of both, and each has the whole price. Replaced: an amount may become a zero."""
    recipe = tiny(relation, noise)
    price = sum(recipe.budget())
    by_spike, of_rounds, together = worst_joint(recipe)
    assert together <= price
    assert together >= Fraction(85, 100) * price
    assert by_spike >= Fraction(95, 100) * recipe.spike_budget()
    assert of_rounds >= Fraction(85, 100) * price
    assert recipe.spike_budget() == (price if relation == "withheld" else price / 2)


def test_a_spike_beside_rounds_that_do_not_know_of_it_is_found_out(monkeypatch):
    """With the whole price for the spike's sum an amount that becomes a zero costs half as much again."""
    recipe = tiny("replaced")
    monkeypatch.setattr(type(recipe), "spike_budget", lambda self: sum(self.budget()))
    assert worst_joint(recipe)[2] > Fraction(14, 10)


def test_replaced_leaves_room_for_the_spike_to_the_last_step():
    """What a blank adds is a whole number: withholding could cost a little more than half of replacing."""
    for steps in (3, 7, 12):
        plain, room = (
            rounds.first_setup(replace(tiny("replaced"), spiked=spiked), Fraction(1), steps)
            for spiked in (False, True)
        )
        assert room.sums._withheld(room.scales) <= Fraction(1, 2)
        assert room.scales.scores >= plain.scales.scores
    assert plain.sums._withheld(plain.scales) > Fraction(1, 2)


def test_several_rows_and_counts_share_the_price():
    whole, shared = tiny("withheld", margin_share=0.25), tiny("withheld", margin_share=0.25, rows_per_unit=3)
    assert whole.spike_budget() == 3 * shared.spike_budget() == 1
    gaussian = tiny("replaced", "gaussian", margin_share=0.25)
    assert gaussian.spike_budget() == sum(gaussian.budget()[:2]) / 2


def test_sets_are_refused():
    with pytest.raises(SettingError, match="whether a value is an amount would be left open"):
        make_recipe(np.ones((3, 1)), low=0.0, high=1.0, epsilon=1.0, relation="range", width=0.5, spiked=True)


def simulated(records, seed, *, columns=2, share=0.25):
    """Amounts about 1 + z, and zeros less often where z is large; β and γ."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1, (records, columns - 1))
    X = np.column_stack([np.ones(records), z])
    beta, gamma = np.ones(columns), np.r_[np.log(share / (1 - share)), -0.7, np.full(columns - 2, 0.3)]
    y = X @ beta + rng.normal(size=records)
    y[rng.uniform(size=records) < expit(X @ gamma)] = np.nan
    return X, y, beta, gamma


def release(X, y, seed, **told):
    recipe = make_recipe(X, low=-6.0, high=8.0, **{"epsilon": 1.0} | told, spiked=True)
    return rounds.release_statistics(recipe, y, np.ones(len(y), dtype=bool), key=Key.from_seed(seed))


@pytest.fixture(scope="module")
def released():
    X, y, beta, gamma = simulated(2000, 1)
    return release(X, y, 2), y, beta, gamma


@pytest.mark.slow
def test_draws_hold_the_truth_and_copies_the_share(released):
    found, y, beta, gamma = released
    drawn = draw_posterior(found, draws=500, key=Key.from_seed(3)).parameters
    spike = draw_spike(found.recipe, found.spike, draws=500, key=Key.from_seed(4))
    for draws, truth in ((drawn["beta"], beta), (drawn["sigma"][:, None], [1.0]), (spike, gamma)):
        away = np.abs(draws.mean(axis=0) - truth) / draws.std(axis=0)
        assert away.max() < 4.5
        assert draws.std(axis=0).max() < 0.1
    X = found.recipe.matrix
    for sampling in ("independent", "stratified"):
        zeros = draw_zeros(found.recipe, spike.mean(axis=0), sampling=sampling, key=Key.from_seed(5))
        for group in (X[:, 1] < -0.5, X[:, 1] > 0.5, np.ones(len(X), bool)):
            error = 4.5 * np.sqrt(0.25 * 2 / group.sum())
            assert abs(zeros[group].mean() - np.isnan(y)[group].mean()) < error


@pytest.mark.slow
def test_without_noise_it_is_logistic_and_least_squares_regression():
    """ε of a thousand: estimates are those of the amounts alone and of the indicator, but for caps."""
    X, y, *_ = simulated(3000, 6)
    found = release(X, y, 7, epsilon=1000.0)
    there = ~np.isnan(y)
    plain = np.linalg.lstsq(X[there], y[there], rcond=None)[0]
    assert estimate(found).beta == pytest.approx(plain, abs=0.02)
    assert estimate(found).sigma == pytest.approx(np.std(y[there] - X[there] @ plain), rel=0.02)
    gamma = np.zeros(2)
    for _ in range(20):
        p = expit(X @ gamma)
        gamma = gamma + np.linalg.solve((X.T * p * (1 - p)) @ X, X.T @ (~there - p))
    spike = draw_spike(found.recipe, found.spike, draws=500, key=Key.from_seed(8))
    assert spike.mean(axis=0) == pytest.approx(gamma, abs=0.04)
    bread = np.linalg.inv((X.T * p * (1 - p)) @ X)
    assert spike.std(axis=0) == pytest.approx(np.sqrt(np.diag(bread)), rel=0.2)


@pytest.mark.slow
def test_a_long_table_is_drawn_from_some_rows(released):
    """Rows five thousand apart from the whole: the same posterior as from all of them."""
    X, y, _, gamma = simulated(20_000, 9)
    found = release(X, y, 10)
    spike = draw_spike(found.recipe, found.spike, draws=400, key=Key.from_seed(11))
    assert np.abs((spike.mean(axis=0) - gamma) / spike.std(axis=0)).max() < 4.5
    assert spike.std(axis=0) == pytest.approx([0.017, 0.018], rel=0.3)


def hostile():
    n = np.arange(40)
    yield "all zeros", np.full(40, np.nan), n >= 0
    yield "all blank", np.full(40, np.nan), n < 0
    yield "no zeros", n / 10, n >= 0
    yield "infinite", np.where(n % 2, np.inf, np.nan), n % 5 > 0
    yield "separated", np.where(n < 20, np.nan, 1e300), n >= 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, *_ in hostile()])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_hostile_tables_never_raise_nor_warn(name, noise):
    y, present = next(rest for first, *rest in hostile() if first == name)
    matrices = [np.column_stack([np.ones(40), np.arange(40.0)]), np.ones((40, 1)), np.zeros((40, 2))]
    for X, epsilon, relation in zip(
        matrices, (50.0, 0.5, 0.01), ("withheld", "replaced", "withheld"), strict=True
    ):
        told = {"low": -3.0, "high": 9.0, "epsilon": epsilon, "relation": relation, "margin_share": 0.25}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            recipe = make_recipe(X, **told, noise=noise, delta=1e-3, spiked=True)
            found = rounds.release_statistics(recipe, y, present, key=Key.from_seed(1))
            fitted = estimate(found)
            tilt = fit_tilt(found, fitted.beta, fitted.sigma)
            spike = draw_spike(found.recipe, found.spike, draws=20, key=Key.from_seed(2))
        for numbers in (found.spike.scores, fitted.beta, fitted.covariance, tilt.weights, spike):
            assert np.isfinite(numbers).all()
        assert 0 < fitted.sigma < 12
        chance = found.recipe.presence.chance(X)
        assert ((chance >= 0) & (chance <= 1)).all()
    if name == "all zeros":
        drawn = draw_posterior(found, draws=40, key=Key.from_seed(3)).parameters
        assert all(np.isfinite(each).all() for each in drawn.values())


@pytest.mark.parametrize("relation", ["withheld", "replaced"])
def test_losses_at_hand_reach_epsilon_and_never_exceed_it(relation):
    X, y, *_ = simulated(400, 12)
    y[:60] = np.linspace(-9, 11, 60)
    found = release(X, y, 13, relation=relation, epsilon=2.0, margin_share=0.3)
    by_record = losses(found, y, np.ones(400, dtype=bool))
    assert np.isfinite(by_record).all()
    assert 1.8 < by_record.max() <= 2.0 + 1e-9
    assert by_record[np.isnan(y)].max() > 1.5


@pytest.mark.slow
def test_the_best_test_knows_of_zeros():
    """With a zero in the table or without it: log ratios stay within ε, and see something."""
    X, y, *_ = simulated(60, 14)
    other, present = y.copy(), np.ones(60, dtype=bool)
    place = int(np.flatnonzero(np.isnan(y))[0])
    gone = present.copy()
    gone[place] = False
    ratios = []
    for seed in range(20):
        ratios.append(log_ratio(release(X, y, seed, epsilon=3.0), (y, present), (other, gone)))
    assert np.abs(ratios).max() <= 3.0 + 1e-9
    assert np.mean(ratios) > 0.2


@pytest.mark.slow
def test_errors_to_expect_have_those_of_the_chances():
    X, *_ = simulated(1000, 15)
    little, much = (
        expected_errors(make_recipe(X, low=-6.0, high=8.0, epsilon=epsilon, spiked=True))
        for epsilon in (0.1, 20.0)
    )
    assert little.zeros > 1.3 * little.plain_zeros
    assert much.zeros == pytest.approx(much.plain_zeros, rel=0.1)
    assert much.plain_zeros == pytest.approx(np.sqrt(2 * 0.21 / 1000), rel=0.4)
    assert much.line == pytest.approx(much.plain_line, rel=0.15)
    assert much.plain_line == pytest.approx(1.75 * np.sqrt(2 / 700), rel=0.4)
    assert much.ecdf == pytest.approx(much.plain_ecdf, rel=0.3)
