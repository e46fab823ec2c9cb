"""Ranges: their ends, and what they refuse."""

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import DataError, RangeError, SettingError
from hedgerow.tables.table import Table

VALUES = np.array([1.0, 4.0, 10.0, 2.0])
TABLE = Table.of(
    pd.DataFrame(
        {"x": VALUES, "lo": [0, 3, 9, -np.inf], "hi": [2.0, 5, np.inf, 3], "big": [False, True, True, False]}
    )
)


def ends(given, values=VALUES, table=TABLE):
    interval = given.interval(values, table)
    return interval.lower, interval.upper


def test_radius():
    lower, upper = ends(hr.Radius(0.5, 2.0))
    np.testing.assert_array_equal(lower, VALUES / 2)
    np.testing.assert_array_equal(upper, VALUES * 2)


def test_radius_swaps_ends_below_zero():
    values = np.array([-4.0, 3.0])
    lower, upper = ends(hr.Radius(0.5, 2.0), values)
    np.testing.assert_array_equal(lower, [-8.0, 1.5])
    np.testing.assert_array_equal(upper, [-2.0, 6.0])


def test_radius_is_empty_at_zero():
    with pytest.raises(RangeError, match="2 of 3 values are zero"):
        ends(hr.Radius(0.5, 2.0), np.array([0.0, 1.0, 0.0]))


@pytest.mark.parametrize(("a", "b"), [(1.1, 1.8), (1.0, 2.0), (0.5, 1.0), (0.5, 0.9), (-0.1, 2), (np.nan, 2)])
def test_radius_bounds(a, b):
    with pytest.raises(SettingError, match="Radius"):
        hr.Radius(a, b)
    with pytest.raises(SettingError):
        hr.Radius("0.4", 1.8)


def test_brackets_hold_an_edge_in_the_class_above():
    lower, upper = ends(hr.Brackets([0, 2, 5, 10]))
    np.testing.assert_array_equal(lower, [0, 2, 5, 2])
    # The upper edge itself is the next class's, but for the last.
    np.testing.assert_array_equal(upper, [np.nextafter(2, 0), np.nextafter(5, 0), 10, np.nextafter(5, 0)])


def test_a_class_below_zero_ends_at_a_number_that_compiled_code_keeps():
    """XLA takes subnormal numbers for zero, and the class below zero would hold a spike at zero."""
    values = np.array([-3.0, 0.0, 1.0, -2.0])
    lower, upper = hr.Brackets([-5, 0, 5]).ends(values, TABLE)
    np.testing.assert_array_equal(lower, [-5, 0, 0, -5])
    assert upper[0] == -np.finfo(float).tiny


def test_brackets_that_miss_a_value():
    with pytest.raises(RangeError, match="1 of 4 values"):
        ends(hr.Brackets([0, 2, 5]))
    interval = hr.Brackets([0, 2, 5], outside="public").interval(VALUES, TABLE)
    np.testing.assert_array_equal(interval.inside, [True, True, False, True])
    with pytest.raises(SettingError):
        hr.Brackets([3, 2])
    with pytest.raises(SettingError):
        hr.Brackets([1])


def test_bounds_by_column_array_and_number():
    for given in (hr.Bounds("lo", "hi"), hr.Bounds(TABLE.bounds("lo"), TABLE.bounds("hi"))):
        lower, upper = ends(given)
        np.testing.assert_array_equal(lower, [0, 3, 9, -np.inf])
        np.testing.assert_array_equal(upper, [2, 5, np.inf, 3])
    lower, upper = ends(hr.Bounds(0.0, np.inf))
    assert (lower == 0).all()
    assert np.isinf(upper).all()


def test_bounds_refuse_what_is_crossed_flat_missing_or_short():
    with pytest.raises(RangeError, match="above upper in 4 of 4 rows"):
        ends(hr.Bounds(20.0, 10.0))
    with pytest.raises(RangeError, match="equals upper in 1 of 4 rows"):
        ends(hr.Bounds([0, 4, 0, 0], [5, 4, 20, 20]))
    with pytest.raises(SettingError, match="4 rows"):
        ends(hr.Bounds([0, 0], 20.0))
    with pytest.raises(SettingError, match="missing"):
        ends(hr.Bounds([0, 0, np.nan, 0], 20.0))
    with pytest.raises(DataError, match="nope"):
        ends(hr.Bounds("nope", 20.0))


def test_bounds_do_not_show_their_numbers():
    assert "3.25" not in repr(hr.Bounds(np.array([3.25, 1.0]), "hi"))


def test_tail_widens_the_largest_values_and_their_ties():
    wide = hr.Tail(top=0.25, wider=hr.Radius(0.2, 2.4), otherwise=hr.Radius(0.4, 1.8))
    lower, _ = ends(wide)
    np.testing.assert_allclose(lower, [0.4, 1.6, 2.0, 0.8])
    tied = np.array([1.0, 7.0, 7.0, 7.0])
    np.testing.assert_allclose(ends(wide, tied)[0], [0.4, 1.4, 1.4, 1.4])
    values = np.arange(1.0, 2001.0)
    table = Table.of(pd.DataFrame({"x": values}))
    for top, count in ((0.01, 20), (0.05, 100), (0.1, 200)):
        lower = hr.Tail(top, hr.Radius(0.2, 2.4), hr.Radius(0.4, 1.8)).interval(values, table).lower
        assert (lower / values < 0.3).sum() == count
    with pytest.raises(SettingError):
        hr.Tail(0.0, hr.Everywhere(), hr.Everywhere())


def test_different_ranges_by_a_boolean_column():
    lower, upper = ends(hr.Where("big", hr.Radius(0.2, 2.4), hr.Brackets([0, 3])))
    np.testing.assert_allclose(lower, [0.0, 0.8, 2.0, 0.0])
    np.testing.assert_allclose(upper, [3.0, 9.6, 24.0, 3.0])
    with pytest.raises(DataError, match="boolean"):
        ends(hr.Where("lo", hr.Everywhere(), hr.Everywhere()))


def test_where_lets_zeros_have_another_range():
    values = np.array([0.0, 4.0])
    table = Table.of(pd.DataFrame({"x": values, "positive": [False, True]}))
    lower, upper = ends(hr.Where("positive", hr.Radius(0.5, 2.0), hr.Bounds(-1.0, 1.0)), values, table)
    np.testing.assert_array_equal(lower, [-1.0, 2.0])
    np.testing.assert_array_equal(upper, [1.0, 8.0])


def test_outside_is_an_error_by_default_and_public_by_choice(small):
    data = small[["x", "z"]].copy()
    refused = hr.Bounds(0.0, float(data["x"].quantile(0.9)))
    with pytest.raises(RangeError, match="6 of 60 values lie outside"):
        hr.Synthesizer("x ~ z", standard=hr.RangeTruncated(refused), seed=1).fit(data)
    public = hr.Bounds(0.0, refused.upper, outside="public")
    for make in (hr.RangeTruncated, hr.RangeAveraged):
        synth = hr.Synthesizer("x ~ z", standard=make(public), seed=1).fit(data)
        outside = (data["x"] > refused.upper).to_numpy()
        assert (synth.power_[outside] == 1.0).all()
        assert (synth.lipschitz_[outside] == 0.0).all()
        assert (synth.lipschitz_[~outside] > 0).sum() > 40
        # Public to this standard, but withholding them would still be noticed.
        assert synth.withheld_epsilon_["lipschitz"] > synth.epsilon_
