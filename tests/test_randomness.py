"""Streams: uniform, normal and gamma, and as unpredictable as their root."""

import numpy as np
import pytest
from scipy import stats

import hedgerow as hr
from hedgerow.randomness import Key


def test_distributions():
    """Kolmogorov–Smirnov on 100,000 values each, false alarm 1e-4 each."""
    stream = Key.from_seed(7).stream()
    assert stats.kstest(stream.uniform(100_000), "uniform").pvalue > 1e-4
    assert stats.kstest(stream.normal(100_000), "norm").pvalue > 1e-4
    for shape in (0.5, 30.0, 1e5):
        assert stats.kstest(stream.gamma(shape, 100_000), stats.gamma(shape).cdf).pvalue > 1e-4


def test_neither_end_of_the_unit_interval_occurs():
    top = (np.float64(2**52 - 1) + 0.5) * 2.0**-52
    assert top < 1.0
    assert 0.5 * 2.0**-52 > 0.0


def test_a_stream_goes_on_and_does_not_repeat():
    stream = Key.from_seed(7).stream()
    one, two = stream.uniform(300_000), stream.uniform(300_000)
    assert len(np.unique(np.concatenate([one, two]))) == 600_000
    assert stream.normal((3, 2)).shape == (3, 2)


def test_entropy_differs_and_is_not_shown():
    one, two = Key.from_seed(None), Key.from_seed(None)
    assert one != two
    assert str(one._root) not in repr(one)
    assert "x" not in repr(one)
    assert "confidential" in repr(one.stream())


def test_names_cannot_collide():
    root = Key.from_seed(1)
    assert root.child("1") != root.child(1) != root.child("#1")
    assert root.child("a").child("b") != root.child("a/b")
    assert 0 <= root.integer() < 2**63


def test_seeds():
    assert Key.from_seed(np.int64(3)) == Key.from_seed(3)
    for bad in (-1, 2.5, "1", True):
        with pytest.raises(hr.HedgerowError, match="seed"):
            Key.from_seed(bad)


@pytest.mark.parametrize("ends", [(0, 5), (131_070, 131_075), (131_072, 262_144), (262_140, 262_150)])
def test_a_part_of_a_stream_is_what_the_whole_has_there(ends):
    rows = slice(*ends)
    whole, part = (Key.from_seed(3).child("x").stream() for _ in range(2))
    numbers = whole.uniform(262_150)
    np.testing.assert_array_equal(part.part(rows, 262_150), numbers[rows])
    np.testing.assert_array_equal(part.uniform(4), whole.uniform(4))  # and goes on as after the whole
