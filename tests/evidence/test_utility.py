"""Utility against definitions written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import hedgerow as hr
from hedgerow.evidence.utility import compare_copies, ecdf_distance, statistics

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


def test_bad_columns_are_refused():
    with pytest.raises(hr.HedgerowError):
        ecdf_distance(np.array([]), np.array([1.0]))
    with pytest.raises(hr.HedgerowError):
        statistics(np.array([1.0, np.nan]))
