"""The strict studies run, and their parts say what they are said to."""

import numpy as np
import pandas as pd
import pytest

from hedgerow_studies.noisy import classes, coverage, ranges, runs, tables, zeros


@pytest.mark.slow
def test_errors_fall_with_epsilon_and_the_range_relation_needs_least_noise(tmp_path):
    """60 records, three tables: the noise of the first round's scores is ordered, whatever was drawn."""
    rows = pd.DataFrame([row for seed in range(3) for row in ranges.measured(60, seed)])
    assert len(rows) == 3 * len(ranges.RELATIONS) * len(ranges.EPSILONS)
    lines = list(ranges.tables(rows))
    assert sum(line.startswith("| 60 |") for line in lines) == 2 * len(ranges.RELATIONS)
    ranges.draw(rows, tmp_path / "figure.png")
    matrix, response = runs.simulated(200, 1)
    scales = {}
    for name, settings in ranges.RELATIONS.items():
        recipe = ranges.make_recipe(matrix, low=runs.LOW, high=runs.HIGH, epsilon=1.0, **settings)
        run = runs.release(recipe, response, ranges.Key.from_seed(1))
        scales[name] = run.released.rounds[1].score_scale
    assert scales["in range (0.4, 1.8)"] < scales["withheld"] < scales["replaced"]


@pytest.mark.parametrize("count", [3, 8])
def test_information_adds_up(count):
    """All values tell more than classes with noisy sums, and these more than classes; more so with more ε."""
    alone, both, whole = classes.spreads(100, count, 1.0, 0)
    assert (whole <= both).all()
    assert (both <= alone * (1 + 1e-9)).all()
    assert (classes.spreads(100, count, 5.7, 0)[1] <= both).all()


def test_zeros_are_simulated_and_measured():
    """A table has its share of zeros, more of them where z is small, and a copy of itself no errors."""
    matrix, response = zeros.simulated(20_000, 6, 0.4, 1)
    zero, high = np.isnan(response), matrix[:, 1] > 2
    assert 0.35 < zero.mean() < 0.5
    assert zero[high].mean() < zero[~high].mean() - 0.1
    assert zeros._errors(matrix, response, np.where(zero, zeros._ZERO, response)) == pytest.approx(0)
    (*_, row) = zeros.rows(((100, 2, 0.3, 5.0),), seeds=1)
    assert row.startswith("| 100 | 2 | about 30 % | 5 | 0.")


def test_classes_hold_their_values():
    response = np.random.default_rng(1).normal(3, np.sqrt(2), 4000)
    lower, upper = classes.classified(response, 8)
    assert ((lower <= response) & (response <= upper)).all()
    shares = np.unique(lower, return_counts=True)[1] / 4000
    assert shares == pytest.approx(1 / 8, abs=0.03)  # 0.03: six standard errors


def test_differences_are_none_for_the_table_itself():
    matrix, response = runs.simulated(100, 2)
    assert runs.differences(matrix, response, response) == pytest.approx(0)
    assert runs.differences(matrix, response, response + 0.5)[1] == pytest.approx(0.5)


def test_the_shipped_tables_fit_their_formulas_and_limits():
    for name, real in tables.TABLES.items():
        data = real.load()
        outcome = data[real.formula.split(" ~ ")[0]]
        assert len(data) > 500, name
        assert (outcome > 0).all(), name
        assert not data.isna().any().any(), name
        assert real.limits[1] / real.limits[0] >= 1e4 * (1 - 1e-9), name


def test_coverage_counts_what_lies_inside(monkeypatch):
    """One small table with a wide cell, and the table of two such rows."""
    monkeypatch.setattr(coverage, "CELLS", ((60, 6, 20.0),))
    row = coverage.measured(60, 6, 20.0, 0, 1)
    assert len(row["inside"]) == len(row["rank"]) == 7
    assert all(0 <= rank <= 1 for rank in row["rank"])
    one, other = row | {"inside": [True] * 7}, row | {"inside": [False] * 7}
    assert "| 60, 6, 20 | 2 | 0.50 | 0.50 | 0.50 | 0.50 |" in list(coverage.table([one, other]))[-1]
