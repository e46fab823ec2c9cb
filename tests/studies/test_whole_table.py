"""The study of a whole table: its bins, its measures against other definitions, and what its page says."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import contingency

from hedgerow_studies.whole_table import data, measures, table

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def claims():
    return data.load()


def test_the_claims_are_a_mixed_table_with_gaps(claims):
    assert claims.shape == (7130, 12)
    assert claims.notna().all(axis=None)
    unknown = {name: int((claims[name] == data.UNKNOWN).sum()) for name in ("married", "industry")}
    assert unknown == {"married": 286, "industry": 24}
    assert (claims["medical"] == 0).sum() > 200
    assert all(set(claims[name]) <= set(labels) for name, labels in data.LABELS.items())


def test_bins_are_public_and_come_back(claims):
    bins = data.encode(claims)
    sizes = pd.Series(data.sizes())
    assert (bins.min() >= 0).all()
    assert (bins.max() < sizes[bins.columns]).all()
    again = data.encode(data.decode(bins, seed=1))
    assert (again != bins).sum().sum() <= 5  # amounts rounded to cents may cross an edge
    assert list(data.decode(bins, seed=1).columns) == list(claims.columns)


def test_a_table_is_as_near_to_itself_as_can_be(claims):
    some = claims.iloc[::20]
    assert max(measures.compare_margins(some, some).values()) == 0
    assert max(measures.compare_pairs(some, some).values()) == 0
    assert measures.compare_rows(some, some, kept=True, pairs=False) == pytest.approx(0, abs=1e-12)


def test_associations_by_other_definitions(claims):
    claims = claims.iloc[::20]
    found = measures.associations(claims)
    assert len(found) == 12 * 11 // 2 - 6  # all pairs but those of public columns
    counts = pd.crosstab(claims["injury"], claims["hospital"])
    assert found["injury, hospital"] == pytest.approx(contingency.association(counts, method="cramer"))
    dummies = pd.get_dummies(claims["industry"]).to_numpy(dtype=float)
    values = np.log(claims["wage"].to_numpy())
    line, *_ = np.linalg.lstsq(dummies, values, rcond=None)
    assert found["industry, wage"] == pytest.approx(np.corrcoef(values, dummies @ line)[0, 1])


def test_margins_of_a_moved_column_are_the_share_that_moved(claims):
    moved = claims.assign(hospital=1 - claims["hospital"], weeks=182.0)
    found = measures.compare_margins(claims, moved)
    assert found["hospital"] == pytest.approx(abs(1 - 2 * claims["hospital"].mean()))
    assert found["weeks"] == pytest.approx((claims["weeks"] < 182).mean())
    assert found["wage"] == 0


@pytest.mark.slow
def test_regressions_of_a_table_overlap_with_themselves(claims):
    found = measures.compare_regressions(claims, claims)
    assert all(found[name] == pytest.approx(1) for name in found if name.startswith("overlap"))
    assert found["effect"] == pytest.approx(0.170, abs=5e-4)


def test_the_page_prints_the_rows_that_are_kept():
    page = (ROOT / "docs" / "tutorials" / "whole-table.md").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in (ROOT / table.ROWS).read_text(encoding="utf-8").splitlines()]
    for line in table.write_table(pd.DataFrame(rows)):
        assert line in page
