"""Utility against definitions written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special, stats

import hedgerow as hr
from hedgerow.evidence.utility import (
    bin_shapes,
    compare_copies,
    compare_kinds,
    ecdf_distance,
    measure_propensity,
    statistics,
    tabulate,
)

columns = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=20).map(np.array)


@given(columns, columns)
def test_ecdf_by_its_definition(one, two):
    points = np.concatenate([one, two])
    gap = np.array([(one <= p).mean() - (two <= p).mean() for p in points])
    found = ecdf_distance(one, two)
    assert found.maximum == pytest.approx(np.abs(gap).max(), abs=1e-14)
    assert found.mean_absolute == pytest.approx(np.abs(gap).mean(), abs=1e-14)
    assert found.mean_squared == pytest.approx((gap**2).mean(), abs=1e-14)
    assert found.maximum == pytest.approx(stats.ks_2samp(one, two).statistic, abs=1e-12)


def test_statistics_and_pooling():
    original = np.array([1.0, 2.0, 3.0, 4.0])
    assert statistics(original)["q90"] == pytest.approx(3.7)  # type 7
    assert statistics(original, [0.995])["q99.5"] == pytest.approx(3.985)
    tidy = compare_copies(original, [original, original + 1])
    rows = list(zip(tidy["copy"], tidy["statistic"], tidy["original"], tidy["synthetic"], strict=True))
    assert ("1", "mean", 2.5, 2.5) in rows
    assert ("2", "mean", 2.5, 3.5) in rows
    assert ("pooled", "mean", 2.5, 3.0) in rows
    assert ("1", "ecdf_max", 0.0, 0.0) in rows
    assert ("lowest", "mean", 2.5, 2.5) in rows
    assert ("highest", "mean", 2.5, 3.5) in rows
    assert list(dict.fromkeys(tidy["copy"])) == ["1", "2", "pooled", "lowest", "highest"]
    assert set(compare_copies(original, [original])["copy"]) == {"1", "pooled"}


def test_kinds_of_a_copy_in_which_a_rule_leaves_no_cell_are_no_numbers():
    """And nobody is warned of an empty mean."""
    found = compare_kinds(
        np.array([0.0, 1.0, 0.0, 0.0]), [np.zeros(0), np.array([1.0])], ("amount", "missing")
    )
    assert found["original"][:2] == [0.75, 0.25]
    assert np.isnan(found["synthetic"][:2]).all()
    assert found["synthetic"][2:4] == [0.0, 1.0]


def test_bad_columns_are_refused():
    with pytest.raises(hr.HedgerowError):
        ecdf_distance(np.array([]), np.array([1.0]))
    with pytest.raises(hr.HedgerowError):
        statistics(np.array([1.0, np.nan]))


def test_a_table_for_people_has_the_mean_over_copies_and_their_range():
    original = np.arange(1.0, 12.0)
    rows = tabulate({"copies": compare_copies(original, [original + 1, original + 3])})
    assert [row[""] for row in rows] == ["original", "copies", "  lowest", "  highest"]
    assert [row["median"] for row in rows] == [6.0, 8.0, 7.0, 9.0]
    assert [row["Q90"] for row in rows] == pytest.approx([10.0, 12.0, 11.0, 13.0])
    assert [row["mean"] for row in rows] == [6.0, 8.0, 7.0, 9.0]
    assert [row["ECDF max"] for row in rows] == [None, *(pytest.approx(n / 11) for n in (2, 1, 3))]
    two = {name: compare_copies(original, [original]) for name in ("adp", "strict")}
    assert [row[""] for row in tabulate(two)] == ["original", "adp", "strict"]


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=200).map(np.array), columns)
def test_shapes_count_every_value_once_in_bins_that_rise(original, copy):
    shapes = bin_shapes(original, {"copies": [copy, copy]})
    lower, upper = shapes["lower"], shapes["upper"]
    assert (lower < upper).all()
    assert (lower[1:] == upper[:-1]).all()
    assert shapes["original"].sum() == pytest.approx(1)
    assert shapes["copies"].sum() == pytest.approx(1)


def test_bins_follow_the_kind_of_values():
    random = np.random.default_rng(1)
    few = bin_shapes(np.array([0.0, 1.0, 1.0, 4.0]), {"copies": [np.array([1.0, 2.0])]})
    assert few["lower"].tolist() == [0, 1, 2, 4]
    assert few["original"].tolist() == [0.25, 0.5, 0, 0.25]
    ages = np.floor(random.uniform(16, 91, 2000))
    width = np.diff(bin_shapes(ages, {"copies": [ages]})["lower"])
    assert set(width) == {2.0}  # whole numbers, as many in each bin
    skewed = np.exp(random.normal(10, 1.5, 2000))
    ratio = np.diff(np.log(bin_shapes(skewed, {"copies": [skewed]})["lower"]))
    assert ratio == pytest.approx(ratio[0])
    signed = np.where(random.uniform(size=2000) < 0.3, -skewed, skewed)
    lower = bin_shapes(signed, {"copies": [signed]})["lower"]
    assert (lower < 0).any()
    assert np.diff(lower).max() > 100 * np.diff(lower).min()


@pytest.mark.parametrize(
    ("rows", "kept"),
    [(200, 3), pytest.param(200, 0, marks=pytest.mark.slow), pytest.param(100, 0, marks=pytest.mark.slow)],
)
def test_propensity_has_its_null_expectation(rows, kept):
    """Copies by the right model, its parameters estimated: pMSE over its expectation is near χ²(k − 1)/(k −
    1).

    Of another sample as a copy it is 1/(1 − c) times that. A mean of 150 has a standard error of 0.052
    times that factor; at 4.5 of them a false alarm has probability 7e-6.
    """
    random = np.random.default_rng(11)
    n, terms, tables = 200, 5, 150
    slopes = random.normal(size=(kept, terms))
    plug_in, another = [], []
    for _ in range(tables):
        z = random.normal(size=(n, kept))
        x, second = (z @ slopes + random.normal(size=(n, terms)) for _ in range(2))
        design = np.column_stack([np.ones(n), z])
        line, *_ = np.linalg.lstsq(design, x, rcond=None)
        noise = random.normal(size=(rows, terms)) @ np.linalg.cholesky(np.cov((x - design @ line).T)).T
        public = z if kept else None
        plug_in.append(measure_propensity(x, (design @ line)[:rows] + noise, kept=public).ratio)
        another.append(measure_propensity(x, second[:rows], kept=public).ratio)
    error = 4.5 * np.sqrt(2 / terms / tables)
    real = n / (n + rows)  # 1 − c
    assert np.mean(plug_in) == pytest.approx(1.0, abs=error)
    assert np.mean(another) == pytest.approx(1 / real, abs=error / real)


def test_propensity_by_a_regression_written_elsewhere_and_where_rows_can_be_told_apart():
    random = np.random.default_rng(12)
    x, y = random.normal(size=(300, 3)), random.normal(0.4, 1.3, size=(200, 3))
    x[:, 2], y[:, 2] = x[:, 0] + x[:, 1], y[:, 0] + y[:, 1]  # says nothing new
    copied = np.repeat([0.0, 1.0], [300, 200])
    terms = np.column_stack([np.ones(500), np.vstack([x, y])[:, :2]])

    def deviance(line):
        return np.mean(np.logaddexp(0, terms @ line) - copied * (terms @ line))

    fitted = special.expit(terms @ optimize.minimize(deviance, np.zeros(3), tol=1e-10).x)
    found = measure_propensity(x, y)
    assert found.mean_squared == pytest.approx(np.mean((fitted - 0.4) ** 2), rel=1e-4)
    assert found.expected == pytest.approx(2 * 0.6**2 * 0.4 / 500)
    real, made = fitted[:300], fitted[300:]
    assert found.specks == pytest.approx(stats.ks_2samp(real, made).statistic, abs=0.02)
    assert found.auc == pytest.approx(stats.mannwhitneyu(made, real).statistic / 300 / 200, abs=1e-3)
    right = ((made > 0.4).mean() + (real <= 0.4).mean()) / 2
    assert found.over_half == pytest.approx(100 * right - 50, abs=1.0)
    apart = measure_propensity(x, y + 50)
    assert apart.mean_squared == pytest.approx(0.24, abs=1e-3)  # c(1 − c), the most there is


def test_of_paired_rows_what_is_expected_is_the_mean_over_all_swaps():
    """To first order pMSE is (T − c)′P(T − c)/N; over all 2⁶ swaps its mean is twice what is expected.

    The part of xz that follows from z is in no pair's difference: counted whole, it would double that.
    """
    random = np.random.default_rng(14)
    z = random.normal(size=(6, 1)) + 1
    first = np.column_stack([z**2 + 0.1 * random.normal(size=(6, 1)), random.normal(size=6)])
    apart = random.normal(size=(6, 2)) * [0.2, 1.0]
    second = first + apart - apart.mean(axis=0)
    terms = np.column_stack([np.ones(12), np.vstack([z, z]), np.vstack([first, second])])
    projection = terms @ np.linalg.pinv(terms)
    means = []
    for bits in range(2**6):
        swapped = np.array([bits >> k & 1 for k in range(6)]) - 0.5
        labels = np.concatenate([-swapped, swapped])
        means.append(labels @ projection @ labels / 12)
    found = measure_propensity(first, second, kept=z)
    assert found.expected == pytest.approx(np.mean(means) / 2)
    assert found.expected < 0.8 * 2 / 8 / 12  # of two free terms counted whole


def test_kept_columns_have_the_rows_of_both():
    with pytest.raises(hr.HedgerowError, match="same rows"):
        measure_propensity(np.zeros((4, 1)), np.zeros((3, 1)), kept=np.zeros((4, 1)))
