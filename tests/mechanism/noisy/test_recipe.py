"""What is settled beforehand: whitening, rotation, caps, windows, budgets."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.numerics.sums.varimax import rotate_sparse

LIMITS = {"low": -3.0, "high": 9.0}


def design(n, p, seed=1):
    """Intercept, z, a factor of 4 (p = 6) or 10 levels (p = 15) and normal columns."""
    rng = np.random.default_rng(seed)
    z = rng.normal(2, 1, n)
    levels = {2: 1, 6: 4, 15: 10}[p]
    dummies = rng.integers(0, levels, n)[:, None] == np.arange(1, levels)
    return np.column_stack([np.ones(n), z, dummies, rng.normal(size=(n, p - 1 - levels))])


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("p", [2, 6, 15])
def test_loadings_are_capped_whitened_predictors(p, noise):
    recipe = make_recipe(design(500, p), **LIMITS, epsilon=1.0, noise=noise, delta=1e-6)
    Q = recipe.matrix @ recipe.basis
    assert pytest.approx(np.eye(p), abs=1e-9) == Q.T @ Q / 500
    V = recipe.loadings
    norms = np.abs(V).sum(axis=1) if noise == "laplace" else (V**2).sum(axis=1)
    assert recipe.bound == norms.max()
    weights = (V * LOADING_UNIT * Q).sum(axis=1) / (Q**2).sum(axis=1)
    assert pytest.approx(weights[:, None] * Q, abs=1e-4) == V * LOADING_UNIT
    assert weights.max() <= 1 + 1e-4
    assert recipe.weighted_gram == pytest.approx(Q.T @ (weights[:, None] * Q) / 500, abs=1e-3)
    assert recipe.weighted_squares == pytest.approx(Q.T @ (weights[:, None] ** 2 * Q) / 500, abs=1e-3)
    assert np.linalg.norm(recipe.constant) == pytest.approx(1)


def test_the_rotation_finds_the_cells_of_a_factor():
    """Rows of whitened dummies have one entry each after it, √(n/n_cell)."""
    rng = np.random.default_rng(1)
    cells = rng.integers(0, 8, 4000)
    X = np.column_stack([np.ones(4000), cells[:, None] == np.arange(1, 8)])
    recipe = make_recipe(X, **LIMITS, epsilon=1.0)
    Q = np.abs(X @ recipe.basis)
    assert np.sort(Q, axis=1)[:, -2].max() < 0.05
    assert np.median(Q.sum(axis=1)) == pytest.approx(np.sqrt(8), rel=0.1)
    rotation = rotate_sparse(rng.normal(size=(50, 4)))
    assert rotation.T @ rotation == pytest.approx(np.eye(4), abs=1e-12)


def test_windows_widen_with_the_budget():
    """k of the maths, n = 2000: p = 2 at ε = 0.2, 0.5, 1, 2, and p = 15."""

    def windows(p):
        X = design(2000, p)
        return [make_recipe(X, **LIMITS, epsilon=e).window_factor for e in (0.2, 0.5, 1.0, 2.0)]

    assert windows(2) == [1.8, 2.0, 3.25, 3.5]
    assert windows(15) == pytest.approx([1.8, 1.8, 1.8, 2.5], abs=0.26)


def test_auto_prefers_gaussian_noise_for_many_dense_predictors():
    rng = np.random.default_rng(1)
    dense = np.column_stack([np.ones(400), rng.normal(size=(400, 24))])
    settings = {**LIMITS, "epsilon": 1.0, "noise": "auto", "delta": 1e-6}
    chosen = make_recipe(dense, **settings)
    assert (chosen.noise, chosen.delta) == ("gaussian", 1e-6)
    few = make_recipe(design(2000, 2), **settings)
    assert (few.noise, few.delta) == ("laplace", 0.0)
    assert make_recipe(dense, **(settings | {"delta": 0.0})).noise == "laplace"


def test_the_first_round_takes_less_in_a_range():
    X = design(200, 2)
    narrow = make_recipe(X, **LIMITS, epsilon=1.0, relation="range", width=1.5)
    wide = make_recipe(X, **LIMITS, epsilon=1.0, relation="range", width=11.0)
    assert (narrow.first_share, narrow.split) == (0.1, 2.0)
    assert (wide.first_share, wide.split) == (0.3, 1.3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"low": 9.0, "high": -3.0}, "limits"),
        ({"low": 0.0, "high": np.inf}, "limits"),
        ({"low": 1e15, "high": 1e15 + 0.25}, "too close"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"relation": "range"}, "width"),
        ({"width": 1.0}, "width"),
        ({"relation": "range", "width": 0.0}, "width"),
        ({"noise": "gaussian"}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"margin_share": 1.0}, "margin_share"),
        ({"rows_per_unit": 0}, "rows_per_unit"),
        ({"matrix": np.full((3, 1), np.inf)}, "predictors"),
        ({"matrix": np.ones((0, 1))}, "predictors"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    given = {"matrix": np.ones((3, 1)), **LIMITS, "epsilon": 1.0} | settings
    with pytest.raises(hr.HedgerowError, match=message):
        make_recipe(**given)


def test_epsilon_too_small_for_gaussian_noise():
    X = np.column_stack([np.ones(50), np.linspace(-1, 1, 50)])
    settings = {"low": 0.0, "high": 1.0, "epsilon": 0.001, "delta": 1e-6}
    with pytest.raises(hr.HedgerowError, match="too small for Gaussian noise"):
        make_recipe(X, noise="gaussian", **settings)
    assert make_recipe(X, noise="auto", **settings).noise == "laplace"


def test_a_table_with_a_period_is_seen_whole():
    """The rules look at some rows; every k-th of 20,000 would show one level of a factor that repeats."""
    n = 20_000
    X = np.column_stack([np.ones(n), *(np.arange(n) % 4 == level for level in (1, 2, 3))]).astype(float)
    shuffled = X[np.random.default_rng(1).permutation(n)]
    one, two = (make_recipe(each, low=-3.0, high=9.0, epsilon=1.0) for each in (X, shuffled))
    assert one.window_factor == two.window_factor
    assert one.bound == pytest.approx(two.bound, rel=0.05)
