"""Groups of neighbouring fitted values: the same whoever cuts the records into leaves, ties included."""

import numpy as np
import pytest

from hedgerow.numerics.sums.neighbours import Cuts, cut_evenly, cut_narrowly, split


def by_group(fitted, cuts, sizes):
    """Numbers of the records of each group, put together from leaves of these sizes."""
    groups, first = [[] for _ in range(len(cuts.values) + 1)], 0
    for size in sizes:
        order, starts = split(fitted[first : first + size], first, cuts)
        for group, rows in zip(groups, np.split(order, starts[1:]), strict=True):
            group.extend((rows + first).tolist())
        first += size
    return groups


@pytest.mark.parametrize("values", [4, 1000])
def test_leaves_agree_with_the_whole(values):
    """Few values have many ties, which the numbers of the records decide."""
    rng = np.random.default_rng(values)
    fitted = rng.integers(values, size=300).astype(float)
    order = np.argsort(fitted, kind="stable")
    for cuts in (
        cut_evenly(fitted[order], order, groups=17),
        cut_narrowly(fitted[order], order, np.ones(300), groups=40),
    ):
        whole = by_group(fitted, cuts, [300])
        assert [sorted(group) for group in by_group(fitted, cuts, [64, 64, 1, 100, 71])] == [
            sorted(group) for group in whole
        ]
        assert np.concatenate(whole).tolist() == order.tolist()


def test_even_groups_are_even():
    order = np.argsort(np.zeros(100), kind="stable")
    cuts = cut_evenly(np.zeros(100), order, groups=10)
    assert [len(group) for group in by_group(np.zeros(100), cuts, [30, 70])] == [10] * 10
    assert len(cut_evenly(np.zeros(5), np.arange(5), groups=10).values) == 4


def test_a_long_way_between_two_records_that_cut_is_cut_too():
    """A record far away that stands for the range alone: those between are not taken together."""
    fitted, counted = np.append(np.linspace(0, 1, 100), 101.0), np.append(np.ones(100), 0.0)
    cuts = cut_narrowly(fitted, np.arange(101), counted, groups=40)
    between = cuts.values[(cuts.values > 1) & (cuts.values < 101)]
    assert len(between) >= 18
    assert np.diff(between) == pytest.approx(np.full(len(between) - 1, 5.0), rel=0.05)
    assert (np.diff(cuts.values) >= 0).all()


def test_no_cut_is_one_group():
    order, starts = split(np.array([2.0, 1.0]), 0, Cuts(np.zeros(0), np.zeros(0, dtype=np.intp)))
    assert order.tolist() == [1, 0]
    assert starts.tolist() == [0]
