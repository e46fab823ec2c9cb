import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hedgerow.numerics import scoring
from hedgerow.numerics.hull import find_deciding, largest_rounding, rounding_bound
from hedgerow.numerics.scoring import Draws


def cloud(seed, columns=2, count=400, spread=0.03, sigma=1.0, centre=1.0):
    rng = np.random.default_rng(seed)
    beta = centre + spread * sigma * rng.normal(size=(count, columns))
    return Draws(beta, sigma * np.exp(spread * rng.normal(size=count)))


def records(seed, columns, n=300, sigma=1.0, centre=1.0, outlier=0.0):
    rng = np.random.default_rng(seed + 1)
    Z = np.column_stack([np.ones(n), rng.normal(0.0, 1.0, (n, columns - 1))])
    y = Z @ np.full(columns, centre) + sigma * rng.normal(size=n)
    y[: n // 10] += outlier * sigma
    offsets = np.array(
        [[-0.9, 0.6], [-0.01, 0.02], [-np.inf, 0.5], [1.0, 3.0], [-1e-12, 1e-12], [-np.inf, np.inf]]
    )
    chosen = sigma * offsets[rng.integers(0, len(offsets), n)].T
    return Z, y, chosen[0], chosen[1]


CLOUDS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10**6),
        "columns": st.integers(1, 3),
        "spread": st.sampled_from([1e-9, 1e-6, 1e-4, 1e-2, 0.3]),
        "sigma": st.sampled_from([1e-6, 1e-2, 1.0, 1e4]),
        "centre": st.sampled_from([0.0, 1.0, -30.0]),
        "outlier": st.sampled_from([0.0, 5.0, 40.0, 1e5]),
    }
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=CLOUDS)
def test_pruned_is_identical(case):
    outlier, columns, seed = case.pop("outlier"), case["columns"], case["seed"]
    draws = cloud(**case)
    Z, y, lower, upper = records(seed, columns, sigma=case["sigma"], centre=case["centre"], outlier=outlier)

    def scores(prune):
        return (
            scoring.density_low(Z, y, draws, prune=prune),
            scoring.density_absolute(Z, y, draws, prune=prune),
            scoring.density_absolute(Z, y, draws, shift=-y, prune=prune),
            scoring.conditional_low(Z, y, lower, upper, draws, prune=prune),
            scoring.conditional_absolute(Z, y, lower, upper, draws, prune=prune),
            scoring.conditional_absolute(Z, y, lower, upper, draws, shift=-y, prune=prune),
        )

    for pruned, full in zip(scores(True), scores(False), strict=True):
        np.testing.assert_array_equal(pruned, full)


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(
        st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(1, 4)), min_size=100, max_size=160
    ),
    seed=st.integers(0, 1000),
)
def test_draws_on_a_grid_full_of_ties(values, seed):
    grid = np.array(values, dtype=float)
    draws = Draws(grid[:, :2] / 10, grid[:, 2] / 4)
    Z, y, lower, upper = records(seed, 2, n=60)
    Z[:20, 1] = 0.0
    np.testing.assert_array_equal(
        scoring.density_low(Z, y, draws, prune=True), scoring.density_low(Z, y, draws, prune=False)
    )
    np.testing.assert_array_equal(
        scoring.conditional_low(Z, y, lower, upper, draws, prune=True),
        scoring.conditional_low(Z, y, lower, upper, draws, prune=False),
    )


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_few_draws_decide(columns):
    kept = find_deciding(*(lambda d: (d.beta, d.sigma))(cloud(0, columns=columns, count=1000)))
    assert kept is not None
    assert kept.index.size < [60, 160, 400][columns - 1]
    assert kept.margin > 1e-5


def test_clouds_that_cannot_be_pruned():
    plain = cloud(0)
    assert find_deciding(plain.beta[:50], plain.sigma[:50]) is None
    assert find_deciding(np.tile(plain.beta, 2), plain.sigma) is None  # 4 columns
    assert find_deciding(plain.beta[:, [0, 0]], plain.sigma) is None  # a flat cloud
    assert find_deciding(plain.beta, np.ones(400)) is None
    tiny = cloud(0, spread=1e-13)
    assert find_deciding(tiny.beta, tiny.sigma) is None


@given(st.integers(1, 4), st.integers(1, 60), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_rounding_of_all_records_is_at_least_that_of_each(columns, records, seed):
    rng = np.random.default_rng(seed)
    Z, y = 10 * rng.normal(size=(records, columns)), 100 * rng.normal(size=records)
    beta, sigma = 5 + rng.normal(size=(20, columns)), np.exp(rng.normal(size=20))
    assert largest_rounding(Z, y, beta, sigma) >= rounding_bound(Z, y, beta, sigma).max()
