"""Two rounds and counts: prices against brute force through the very code, exact sums, hostile values."""

import inspect
import sys
import types
import warnings
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from hedgerow.errors import SettingError
from hedgerow.mechanism.noisy import rounds
from hedgerow.mechanism.noisy.estimate import estimate
from hedgerow.mechanism.noisy.leaves.rows import HeldRows
from hedgerow.mechanism.noisy.prices import Scales, Sums
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.mechanism.noisy.run import withheld_epsilon
from hedgerow.numerics import leaves
from hedgerow.randomness import Key

RELATIONS = {"withheld": None, "replaced": None, "range": 1.5}
LOW, HIGH = -2.0, 4.0
BLANK = np.nan


def held(recipe, response, present):
    return rounds.hold_outcomes(recipe.rows, response, present)


def tiny(relation, noise="laplace", epsilon=1.0):
    X = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 3.0]])
    return make_recipe(
        X,
        low=LOW,
        high=HIGH,
        epsilon=epsilon,
        relation=relation,
        width=RELATIONS[relation],
        noise=noise,
        delta=0.0 if noise == "laplace" else 1e-5,
    )


def are_neighbours(relation, one, other):
    if relation == "withheld":
        return np.isnan(one) != np.isnan(other)
    if relation == "replaced":
        return not (one == other or (np.isnan(one) and np.isnan(other)))
    return 0 < abs(one - other) <= RELATIONS["range"]


VALUES = (-np.inf, -3.0, -2.0, -1.25, -0.5, 0.1, 0.25, 1.0, 2.5, 4.0, np.inf, BLANK)


def tables(relation):
    """All pairs of tables of three records that differ in one outcome; the others are one of three values."""
    pairs = [(a, b) for a, b in product(VALUES, VALUES) if are_neighbours(relation, a, b)]
    for place, (a, b), others in product(range(3), pairs, [(0.1, BLANK), (-np.inf, 4.0)]):
        one, other = (np.insert(np.array(others), place, value) for value in (a, b))
        yield one, other


def largest_ratios(recipe, setup, pairs, records=3):
    """For each pair of tables the largest log ratio of output probabilities, or half the squared shift.

    log P(o − T)/P(o − T') is Σ(|o − T'| − |o − T|)/b: largest, |T − T'|/b, at every o on T's far side.
    """
    present, scales = np.ones(records, dtype=bool), setup.scales
    unique = {y.tobytes(): y for pair in pairs for y in pair}
    sums = {name: rounds.sum_outcome(recipe, setup, held(recipe, y, present)) for name, y in unique.items()}
    found = []
    for one, other in pairs:
        (scores, squares), (scores_2, squares_2) = sums[one.tobytes()], sums[other.tobytes()]
        moved = [abs(a - b) for a, b in zip(scores, scores_2, strict=True)], abs(squares - squares_2)
        if recipe.noise == "laplace":
            found.append(sum(moved[0]) / scales.scores + moved[1] / scales.squares)
        else:
            squared = sum(s**2 for s in moved[0]) / scales.scores**2 + moved[1] ** 2 / scales.squares**2
            found.append(squared / 2)
    return found


def worst(recipe, *, steps=1 << 12):
    """The dearest pair of tables in round one, and in both rounds over outputs of round one."""
    budget = recipe.budget()
    first = rounds.first_setup(recipe, budget[0], steps)
    pairs = list(tables(recipe.relation))
    in_one = largest_ratios(recipe, first, pairs)
    in_both = Fraction(0)
    b = first.scales
    for push in product((-3, 0, 3), (-2, 1), (-3, 0, 1)):  # outputs of round one, far and near, in scales
        noisy = [round(p * b.scores) for p in push[:2]]
        after = rounds.describe(first, noisy, 3 * steps**2 // 2 + round(push[2] * b.squares))
        second = rounds.second_setup(recipe, after, budget[1], steps)
        in_two = largest_ratios(recipe, second, pairs)
        in_both = max(in_both, *(one + two for one, two in zip(in_one, in_two, strict=True)))
    return first, max(in_one), in_both


@pytest.mark.parametrize("noise", ["laplace", pytest.param("gaussian", marks=pytest.mark.slow)])
@pytest.mark.parametrize("relation", RELATIONS)
def test_no_pair_of_neighbours_costs_more_than_stated(relation, noise):
    recipe = tiny(relation, noise)
    budget = recipe.budget()
    first, in_one, in_both = worst(recipe)
    assert in_one <= first.sums.price(first.scales) <= budget[0]
    assert in_one >= Fraction(95, 100) * first.sums.price(first.scales)
    assert in_both <= budget[0] + budget[1]
    assert in_both >= Fraction(85, 100) * (budget[0] + budget[1])
    if noise == "laplace":
        assert sum(budget) == Fraction(recipe.epsilon)


def test_no_pair_costs_more_with_leaves_of_two_records(monkeypatch):
    """Sums of leaves are added before there is noise: the price is that of the table."""
    monkeypatch.setattr(leaves, "LEAF", 2)
    recipe = tiny("withheld")
    first = rounds.first_setup(recipe, recipe.budget()[0], 1 << 12)
    in_one = max(largest_ratios(recipe, first, list(tables("withheld"))))
    price = first.sums.price(first.scales)
    assert Fraction(95, 100) * price <= in_one <= price <= recipe.budget()[0]


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
def test_no_pair_costs_more_in_two_rounds_with_a_leaf_for_each_record(relation, monkeypatch):
    monkeypatch.setattr(leaves, "LEAF", 1)
    recipe = tiny(relation)
    assert Fraction(85, 100) * sum(recipe.budget()) <= worst(recipe)[2] <= sum(recipe.budget())


@pytest.mark.parametrize(
    "relation",
    [pytest.param(name, marks=() if name == "replaced" else pytest.mark.slow) for name in RELATIONS],
)
def test_half_the_noise_is_found_out(relation, monkeypatch):
    honest = Sums.noise_for

    def halved(self, target, *, split):
        scales = honest(self, target, split=split)
        return Scales(scales.scores / 2, scales.squares / 2, scales.blank)

    monkeypatch.setattr(Sums, "noise_for", halved)
    assert worst(tiny(relation))[2] > 1


@pytest.mark.parametrize("relation", RELATIONS)
def test_output_distributions_of_a_tiny_round_enumerated(relation):
    """The probability of every output of a round of six steps, for pairs of tables: log ratios reach ε."""
    X = np.array([[1.0], [1.0], [2.0]])
    recipe = make_recipe(X, low=LOW, high=HIGH, epsilon=1.0, relation=relation, width=RELATIONS[relation])
    setup = rounds.first_setup(recipe, Fraction(1), 6)
    recipe = replace(recipe, rows=HeldRows(X, X.astype(np.int64)))  # in whole loadings there are few outputs
    reach = 2 * setup.sums.steps if relation != "range" else int(RELATIONS[relation] / setup.step) + 1
    sums = Sums("laplace", recipe.bound, setup.sums.steps, relation, reach)
    setup = rounds.Setup(setup.line, setup.step, sums, sums.noise_for(Fraction(2), split=Fraction(3, 2)))
    found, present = 0.0, np.ones(3, dtype=bool)
    for pair in list(tables(relation))[::2]:  # the other records are one pair of values instead of two
        logs = [
            log_probabilities(*rounds.sum_outcome(recipe, setup, held(recipe, y, present)), setup.scales)
            for y in pair
        ]
        assert [np.exp(each).sum() for each in logs] == pytest.approx([1, 1], abs=2e-3)
        found = max(found, float(np.abs(logs[0] - logs[1]).max()))
    price = float(sums.price(setup.scales))
    assert 0.95 * price <= found <= price + 1e-9
    assert 1.9 < price <= 2


def log_probabilities(scores, squares, scales):
    """Of every output in a box, scores by squares."""
    by_axis = []
    for total, scale in zip((*scores, squares), (float(scales.scores), float(scales.squares)), strict=True):
        grid = np.arange(-round(8 * scale) - 30, round(8 * scale) + 120)
        normal = np.log((1 - np.exp(-1 / scale)) / (1 + np.exp(-1 / scale)))
        by_axis.append(normal - np.abs(grid - total) / scale)
    return np.add.outer(*by_axis)


def test_a_public_set_spans_no_more_steps_than_priced():
    """Values within a set of width d, of any floating-point kind, are at most `reach` steps apart."""
    rng = np.random.default_rng(2)
    recipe = make_recipe(
        np.column_stack([np.ones(2000), rng.normal(size=2000)]),
        low=-3.0,
        high=9.0,
        epsilon=1.0,
        relation="range",
        width=float(np.log(1.8 / 0.4)),
    )
    setup = rounds.settle(recipe, np.array([0.3, 0.77]), 2.0, Fraction(1), rounds.STEPS)
    x = np.exp(rng.uniform(-3, 7.4, 2000))
    one, other = np.log(x), np.log(x * 1.8 / 0.4)
    here, there = (
        rounds.steps_of(setup, (-3.0, 9.0), recipe.matrix, y, np.ones(2000, dtype=bool))[0]
        for y in (one, other)
    )
    assert np.abs(here - there).max() <= setup.sums.reach
    assert np.abs(here - there).max() >= setup.sums.reach - 3


def test_sums_are_exact_beyond_64_bits():
    rng = np.random.default_rng(1)
    n = 400
    recipe = make_recipe(rng.normal(size=(n, 3)), low=-3.0, high=9.0, epsilon=1.0)
    recipe = replace(recipe, rows=HeldRows(recipe.matrix, recipe.loadings * 2**24))
    y = rng.normal(3, 4, n)
    y[:5] = np.nan
    present = rng.random(n) > 0.1
    setup = rounds.settle(recipe, np.zeros(3), 2.0, Fraction(1), rounds.STEPS)
    scores, squares = rounds.sum_outcome(recipe, setup, held(recipe, y, present))
    r, known = rounds.steps_of(setup, (-3.0, 9.0), recipe.matrix, y, present)
    exact = [sum(int(a) * int(b) for a, b in zip(r, column, strict=True)) for column in recipe.loadings.T]
    assert scores == exact
    assert max(map(abs, exact)) > 2**63
    blanks = int((~known).sum())
    assert squares == sum(int(a) ** 2 for a in r) + setup.scales.blank * blanks
    assert blanks > 20
    assert not r[~known].any()


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_noise_of_a_round_is_the_one_it_states(noise):
    """Kolmogorov–Smirnov on 1000 values, false alarm 1e-5 each."""
    recipe = tiny("withheld", noise)
    setup = rounds.first_setup(recipe, recipe.budget()[0])
    y, present = np.array([0.5, -1.0, 3.0]), np.ones(3, dtype=bool)
    scores, squares = rounds.sum_outcome(recipe, setup, held(recipe, y, present))
    seen = [rounds.read_round(recipe, setup, held(recipe, y, present), Key.from_seed(k)) for k in range(500)]
    unit = setup.step * LOADING_UNIT
    noises = np.array([each.scores - np.array(scores) * unit for each in seen]) / seen[0].score_scale
    rest = np.array([each.squares for each in seen]) - squares * setup.step**2
    law = "laplace" if noise == "laplace" else "norm"
    assert stats.kstest(noises.ravel(), law).pvalue > 1e-5
    assert stats.kstest(rest / seen[0].square_scale, law).pvalue > 1e-5
    assert abs(np.corrcoef(noises.T)[0, 1]) < 0.2


def hostile_tables():
    rng = np.random.default_rng(3)
    plain = np.column_stack([np.ones(40), rng.normal(size=40)])
    yield "huge predictors", np.column_stack([np.ones(40), 1e300 * rng.normal(size=40)])
    yield "tiny predictors", np.column_stack([np.ones(40), 1e-300 * rng.normal(size=40)])
    yield "one giant", np.column_stack([np.ones(40), np.r_[1e308, np.zeros(39)]])
    yield "constant columns", np.column_stack([plain, np.full(40, 7.0), np.zeros(40)])
    yield "zeros", np.zeros((5, 2))
    yield "three records", plain[:3]
    yield "p = n − 1", rng.normal(size=(6, 5))
    yield "more columns than records", rng.normal(size=(4, 6))
    yield "one record", np.ones((1, 1))
    yield "no intercept", rng.normal(5, 1, (30, 2))


HOSTILE = dict(hostile_tables())
OUTCOMES = {
    "ordinary": lambda n: np.linspace(-1, 3, n),
    "all blank": lambda n: np.full(n, np.nan),
    "infinite": lambda n: np.where(np.arange(n) % 2, np.inf, -np.inf),
    "beyond the limits": lambda n: np.full(n, 1e308),
    "constant": lambda n: np.full(n, 0.1),
}


@pytest.mark.parametrize("noise", ["laplace", pytest.param("gaussian", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_tables_never_raise_nor_warn(name, noise):
    X = HOSTILE[name]
    for outcome, relation in product(OUTCOMES.values(), ("withheld", "range")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            recipe = make_recipe(
                X,
                low=-3.0,
                high=9.0,
                epsilon=0.5,
                relation=relation,
                width=1.0 if relation == "range" else None,
                noise=noise,
                delta=1e-6,
            )
            y, present = outcome(len(X)), np.arange(len(X)) % 5 != 0
            released = rounds.release_statistics(recipe, y, present, key=Key.from_seed(1))
            found = estimate(released)
        for each in released.rounds:
            assert np.all(np.isfinite(each.scores))
            assert np.isfinite(each.squares)
            assert 0 < each.window <= 12
            assert each.row_price > 0
        assert np.all(np.isfinite(found.beta))
        assert np.all(np.isfinite(found.covariance))
        assert 0 < found.sigma < 12
        assert 0 <= found.sigma_error < 12
        assert [each.line.shape for each in released.rounds] == [(X.shape[1],)] * 2


@pytest.mark.parametrize(("low", "high"), [(-1e70, 1e70), (0.0, 1e-69), (1e6, 1e6 + 1e-3), (-2.0, 5e60)])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_limits_of_any_size(low, high, noise):
    X = np.column_stack([np.ones(60), np.linspace(-1, 1, 60)])
    y = low + (high - low) * (0.5 + 0.1 * np.sin(np.arange(60.0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recipe = make_recipe(X, low=low, high=high, epsilon=50.0, noise=noise, delta=1e-6)
        found = estimate(rounds.release_statistics(recipe, y, np.ones(60, dtype=bool), key=Key.from_seed(1)))
    scale = high - low
    assert (found.beta[0] - low) / scale == pytest.approx(0.5, abs=0.1)
    assert 0.03 < found.sigma / scale < 0.2
    assert np.all(np.isfinite(found.covariance))


def test_the_second_round_follows_from_the_first_alone(monkeypatch):
    """Other outcomes, the same output of round one: the same line, window and noise of round two."""
    rng = np.random.default_rng(4)
    X = np.column_stack([np.ones(40), rng.normal(size=40)])
    recipe = make_recipe(X, low=LOW, high=HIGH, epsilon=60.0)
    first = rounds.first_setup(recipe, recipe.budget()[0])
    present = np.ones(40, dtype=bool)
    y = X @ [1.0, 0.3] + 0.3 * rng.normal(size=40)
    out = rounds.read_round(recipe, first, held(recipe, y, present), Key.from_seed(1))
    honest, seen = rounds.read_round, []

    def pretend(recipe, setup, *rest):
        seen.append(setup)
        return out if len(seen) % 2 else honest(recipe, setup, *rest)

    monkeypatch.setattr(rounds, "read_round", pretend)
    for outcome in (y, np.full(40, np.nan), 1e300 * y):
        rounds.release_statistics(recipe, outcome, present, key=Key.from_seed(2))
    seconds = seen[1::2]
    assert seconds[0].sums.steps * seconds[0].step < out.window  # it is another window than round one's
    for setup in seconds[1:]:
        assert (setup.scales, setup.step, setup.sums) == (
            seconds[0].scales,
            seconds[0].step,
            seconds[0].sums,
        )
        assert np.array_equal(setup.line, seconds[0].line)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_no_pair_costs_more_in_a_second_window_of_its_own(relation, noise):
    """40 records and much ε: round two's window is narrower than round one's, and clips."""
    rng = np.random.default_rng(5)
    X = np.column_stack([np.ones(40), rng.normal(size=40), rng.integers(0, 2, 40)])
    recipe = make_recipe(
        X,
        low=LOW,
        high=HIGH,
        epsilon=60.0,
        relation=relation,
        width=RELATIONS[relation],
        noise=noise,
        delta=0.0 if noise == "laplace" else 1e-5,
    )
    budget, present = recipe.budget(), np.ones(40, dtype=bool)
    first = rounds.first_setup(recipe, budget[0])
    y = X @ [1.0, 0.5, 0.2] + 0.4 * rng.normal(size=40)
    out = rounds.read_round(recipe, first, held(recipe, y, present), Key.from_seed(3))
    second = rounds.second_setup(recipe, out, budget[1])
    assert second.sums.steps * second.step < 0.8 * out.window
    dearest = int(np.argmax(np.abs(recipe.loadings).sum(axis=1)))
    c = rounds.centres(recipe.matrix[[dearest]], second.line, recipe.middle)[0]
    w = second.sums.steps * second.step
    places = [c - w, c, c + w, c + w / 3, c - w + 1.5, LOW, HIGH, np.inf, BLANK]
    pairs = []
    for a, b in product(places, places):
        if are_neighbours(relation, a, b):
            one, other = y.copy(), y.copy()
            one[dearest], other[dearest] = a, b
            pairs.append((one, other))
    both = [
        sum(each)
        for each in zip(
            *(largest_ratios(recipe, setup, pairs, records=40) for setup in (first, second)), strict=True
        )
    ]
    assert max(both) <= budget[0] + budget[1]
    assert max(both) > (budget[0] + budget[1]) / 2


def test_an_outcome_or_mask_of_another_kind_is_taken_for_what_it_means():
    release = inspect.unwrap(rounds.release_statistics)  # without the axis checks that tests run under
    recipe, y = tiny("withheld"), np.array([0.5, -1.0, 3.0])
    one, two = (
        release(recipe, y, mask, key=Key.from_seed(1))
        for mask in (np.array([True, False, True]), np.array([1, 0, 1]))
    )
    assert np.array_equal(one.rounds[1].scores, two.rounds[1].scores)
    assert one.rounds[1].squares == two.rounds[1].squares
    with pytest.raises(SettingError, match="one entry for each of 3 records"):
        release(recipe, np.zeros(1), np.ones(3, dtype=bool), key=Key.from_seed(1))


def test_predictors_without_a_finite_basis_are_refused_before_an_outcome_is_read():
    """Loadings that are no numbers would be summed as huge ones, and priced as small ones."""
    X = np.eye(80) * 1e-4 + np.diag(np.ones(79), 1)
    X[0, 0] = 1
    with pytest.raises(SettingError, match="collinear"):
        make_recipe(X, low=0.0, high=1.0, epsilon=1.0)


@pytest.mark.parametrize("relation", RELATIONS)
def test_counts_of_a_margin(relation, monkeypatch):
    edges = np.array([0.0, 1.0, 2.0])
    module = types.ModuleType("margin")
    module.bin_edges = lambda recipe, found: edges
    monkeypatch.setitem(sys.modules, "hedgerow.mechanism.noisy.margin", module)
    n = 3000
    recipe = make_recipe(
        np.ones((n, 1)),
        low=LOW,
        high=HIGH,
        epsilon=2.0,
        relation=relation,
        width=RELATIONS[relation],
        margin_share=0.25,
    )
    assert sum(recipe.budget()) == 2
    y = np.tile([-np.inf, 0.5, 1.5, 1.5, 9.0, np.nan], 500)
    released = rounds.release_statistics(recipe, y, np.arange(n) >= 6, key=Key.from_seed(2))
    assert released.counts.scale == (2.0 if relation == "withheld" else 4.0)
    assert np.array_equal(released.counts.edges, edges)
    # Laplace noise beyond 15 scales: 3e-7 each.
    assert np.abs(released.counts.counts - np.array([499, 499, 998, 499])).max() < 15 * released.counts.scale
    assert np.all(released.counts.counts == np.rint(released.counts.counts))
    plain = rounds.release_statistics(
        tiny("withheld"), np.zeros(3), np.ones(3, dtype=bool), key=Key.from_seed(2)
    )
    assert plain.counts is None


def test_a_seed_repeats_and_another_does_not():
    recipe, y, present = tiny("withheld"), np.zeros(3), np.ones(3, dtype=bool)
    one, two, three = (rounds.release_statistics(recipe, y, present, key=Key.from_seed(k)) for k in (1, 1, 2))
    assert np.array_equal(one.rounds[1].scores, two.rounds[1].scores)
    assert not np.array_equal(one.rounds[0].scores, three.rounds[0].scores)


def test_several_rows_of_a_person_share_the_price():
    X = np.column_stack([np.ones(50), np.arange(50.0)])
    one, three = (make_recipe(X, low=0.0, high=1.0, epsilon=1.0, rows_per_unit=k) for k in (1, 3))
    assert 3 * sum(three.budget()) == sum(one.budget()) == 1
    one, three = (
        make_recipe(X, low=0.0, high=1.0, epsilon=1.0, noise="gaussian", delta=1e-6, rows_per_unit=k)
        for k in (1, 3)
    )
    assert 9 * sum(three.budget()) == sum(one.budget())


@pytest.mark.parametrize("width", [1.0, 6.0, 12.0, 13.0])
@pytest.mark.parametrize("first", [0.0, 1.0], ids=["no intercept", "intercept"])
def test_a_set_known_tells_what_a_blank_costs(first, width):
    """Without an intercept round one's window is wider than H, and "withheld" costs more than by H."""
    X = np.column_stack([np.full(60, first), np.linspace(-1, 1, 60)])
    recipe = make_recipe(X, low=-3.0, high=9.0, epsilon=1.0, relation="range", width=width, margin_share=0.3)
    released = rounds.release_statistics(recipe, np.full(60, 9.0), np.ones(60, bool), key=Key.from_seed(3))
    budgets = recipe.budget()
    setups = (
        rounds.first_setup(recipe, budgets[0]),
        rounds.second_setup(recipe, released.rounds[0], budgets[1]),
    )
    blank = (replace(setup.sums, relation="withheld").price(setup.scales) for setup in setups)
    charged = withheld_epsilon(recipe)
    assert sum(blank) + budgets[2] / 2 <= charged <= max(recipe.epsilon / 2, 1.5 * 12 / width) * 1.001
