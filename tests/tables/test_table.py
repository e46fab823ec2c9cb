"""Writing a column back: the type stays, labels stay themselves, numbers stay in the model's support."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow.errors import DataError, SettingError
from hedgerow.tables.table import Table
from hedgerow.tables.values import Declared, Support


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("classes", [[1, 2, 3], [0.5, 1.0, 10.0], list(pd.interval_range(0, 3))])
def test_a_category_of_anything_but_words_comes_back(classes, ordered):
    """By way of text none of the classes was found again, and every cell was missing."""
    kind = pd.CategoricalDtype(classes, ordered=ordered)
    frame = pd.DataFrame({"self": pd.Series([classes[0]] * 4, dtype=kind), "z": 1.0}, index=[3, 1, 2, 0])
    table = Table.of(frame)
    places = np.array([0.0, 1.0, 2.0, 0.0])
    copy = table.with_column("self", places, classes)
    assert copy["self"].tolist() == [classes[0], classes[1], classes[2], classes[0]]
    assert copy["self"].dtype == kind
    assert list(copy.index) == [3, 1, 2, 0]
    assert list(copy.columns) == ["self", "z"]
    np.testing.assert_array_equal(Table.of(copy).outcome("self", classes), places)
    if ordered:
        assert list(table.categories("self")) == classes


def test_levels_spelt_as_words_keep_a_category_of_numbers():
    kind = pd.CategoricalDtype([1, 2, 3], ordered=True)
    frame = pd.DataFrame({"x": pd.Series([1, 2], dtype=kind)})
    assert Table.of(frame).with_column("x", np.array([2.0, 0.0]), ("1", "2", "3"))["x"].dtype == kind


def test_a_polars_enum_stays_one():
    frame = pl.DataFrame({"x": pl.Series(["1", "2"], dtype=pl.Enum(["1", "2"]))})
    copy = Table.of(frame).with_column("x", np.array([2.0, 0.0]), ("1", "2", "3"))
    assert copy["x"].to_list() == ["3", "1"]
    assert copy["x"].dtype == pl.Enum(["1", "2", "3"])


POSITIVE = Support(0.0, above=True)
OPEN = Support(0.0, 100.0, above=True, below=True)
ROUNDED = {
    "whole, ends": (pl.Int16, Support(0.6, 3.6), [0.61, 1.4, 3.55], [1, 1, 3]),
    "whole, positive": (pl.Int64, POSITIVE, [0.2, 1.7, 1e30], [1, 2, 9223372036854774784]),
    "whole, open": (pl.UInt8, OPEN, [0.1, 50.2, 99.9], [1, 50, 99]),
    "whole, spike": (pl.Int8, Support(spike=0.0), [-0.2, 0.0, 0.3], [-1, 0, 1]),
    "whole, spike at its end": (pl.Int8, Support(0.0, above=True, spike=0.0), [0.2, 0.0, 7.0], [1, 0, 7]),
    "whole, spike at the top": (pl.Int8, Support(upper=5.0, spike=5.0), [4.8, 5.0, 2.0], [4, 5, 2]),
    "hundredths": (pl.Decimal(6, 2), POSITIVE, [0.001, 3.14159, 1e9], [0.01, 3.14, 9999.99]),
    "hundredths, ends": (pl.Decimal(6, 2), Support(0.07, 0.295), [0.071, 0.294, 0.2], [0.07, 0.29, 0.2]),
}


@pytest.mark.parametrize(("kind", "support", "values", "expected"), ROUNDED.values(), ids=ROUNDED)
def test_rounding_into_a_coarse_type_stays_in_the_support(kind, support, values, expected):
    frame = pl.DataFrame({"x": pl.Series([1] * 3, dtype=pl.Int8).cast(kind)})
    copy = Table.of(frame).with_column("x", np.array(values), None, support)
    assert copy["x"].dtype == kind
    assert [float(value) for value in copy["x"]] == [float(value) for value in expected]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rounding_to_floating_point_stays_inside_open_ends_and_off_the_spike(kind):
    frame = pd.DataFrame({"x": np.array([0.5] * 4, dtype=kind)})
    support = Support(0.0, 1.0, above=True, below=True, spike=0.1)
    values = np.array([0.0, 1 - 1e-17, 0.1, np.nextafter(0.1, 1.0)])
    copy = Table.of(frame).with_column("x", values, None, support)["x"]
    assert copy.dtype == kind
    assert ((copy > 0) & (copy < 1)).all()
    assert (copy == kind(0.1)).tolist() == [False, False, True, False]
    np.testing.assert_allclose(copy, values, rtol=1e-6, atol=1e-37)


def test_a_type_without_a_value_in_the_support_is_refused():
    frame = pd.DataFrame({"x": [0, 0]})
    for support, words in (
        (Support(0.0, 1.0, above=True, below=True), "no value above 0.0 and below 1.0"),
        (Support(0.0, 1.0, above=True, below=True, spike=0.0), "Convert the column"),
        (Support(spike=0.5), "spike at 0.5 is no value of the outcome's column"),
    ):
        with pytest.raises(SettingError, match=words):
            Table.of(frame).with_column("x", np.array([0.4, 0.6]), None, support)


def test_numbers_in_32_bits_are_what_they_are_written_as():
    written = [0.1, 0.7, 1e-7, 123456.7, 3.0, -2.5e30]
    frame = pd.DataFrame({"x": np.array(written, dtype=np.float32)})
    np.testing.assert_array_equal(Table.of(frame).numbers("x"), written)
    copy = Table.of(frame).with_column("x", np.array(written))
    pd.testing.assert_frame_equal(copy, frame)


@pytest.mark.parametrize("name", ["column_names", "columns", "schema", "index", "replace_schema_metadata"])
def test_a_column_called_like_an_attribute_is_a_column(name):
    """The cells of a column `column_names` were taken for names, and the message listed them."""
    frame = pd.DataFrame({name: ["s3cr3t", "s3cr3t"], "x": [1.0, 2.0]})
    table = Table.of(frame)
    assert table.columns == [name, "x"]
    assert list(table.with_column("x", np.array([3.0, 4.0]))["x"]) == [3.0, 4.0]


def test_repeated_names_are_refused():
    frame = pd.DataFrame([[1.0, 2.0]], columns=["x", "x"])
    with pytest.raises(DataError, match="unique; 'x' occur more than once"):
        Table.of(frame)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_declared_type_is_written_whatever_the_column_was(kind):
    frame = pd.DataFrame({"x": [1, 2, 3], "z": [0.1, 0.2, 0.3]})
    native = {"pandas": frame, "polars": pl.DataFrame(frame.to_dict("list")), "arrow": pa.table(dict(frame))}
    values = np.array([-1.0, 2.71828, 1e300])
    for declared, expected in (
        (Declared("number"), [-1.0, 2.71828, 1e300]),
        (Declared("number", decimal_places=2, range_max=9), [-1.0, 2.72, 9.0]),
        (Declared("integer", range_min=0, range_max=1e6), [0, 3, 1_000_000]),
        (Declared("integer", multiple_of=100, range_min=-50, range_max=1250), [0, 0, 1200]),
        (Declared("number", multiple_of=0.05, range_max=9), [-1.0, 2.7, 9.0]),
    ):
        copy = Table.of(Table.of(native[kind]).with_column("x", values, declared=declared))
        assert copy.frame["x"].to_list() == expected
        assert copy.frame["x"].dtype == declared.dtype


def test_a_declaration_keeps_to_the_models_support():
    positive = Support(0.0, above=True)
    assert Declared("integer").nearest(np.array([-4.0, 0.2]), positive).tolist() == [1.0, 1.0]
    assert Declared("number", decimal_places=1).nearest(np.array([0.01]), positive).tolist() == [0.1]
    assert Declared("number", range_min=-5).nearest(np.array([-1.0]), positive)[0] > 0
    with pytest.raises(SettingError, match="no value above 0"):
        hr.Synthesizer("x ~ z", declared=Declared("number", range_max=0))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"type": "text"}, "'number', 'integer' or 'date'"),
        ({"type": "integer", "decimal_places": 2}, "for type 'number', got 2 for 'integer'"),
        ({"type": "number", "decimal_places": 16}, "from 0 to 15"),
        ({"type": "number", "range_min": np.inf}, "must be finite"),
        ({"type": "number", "range_min": 2, "range_max": 1}, "must be below range_max, got 2 and 1"),
        ({"type": "integer", "range_min": 0.2, "range_max": 0.8}, "no value"),
        ({"type": "integer", "multiple_of": 0.5}, "a whole one for type 'integer'"),
        ({"type": "number", "multiple_of": -5}, "must be a positive number.*got -5"),
        ({"type": "number", "multiple_of": 5, "decimal_places": 2}, "not together with decimal_places"),
        ({"type": "integer", "multiple_of": 100, "range_min": 1, "range_max": 99}, "no value"),
    ],
)
def test_bad_declarations(given, message):
    with pytest.raises(SettingError, match=message):
        Declared(**given)


@pytest.mark.parametrize(
    "declared",
    [
        Declared("number", decimal_places=0),
        Declared("number", multiple_of=5),
        Declared("number", decimal_places=1, range_max=0),
        Declared("number", multiple_of=1, range_min=-0.3),
    ],
)
def test_no_copy_holds_a_negative_zero(declared):
    values = declared.nearest(np.array([-0.04, -0.0, 0.04]))
    assert (values == 0).any()
    assert not np.signbit(values[values == 0]).any()


def test_an_index_with_missing_labels_is_read():
    for labels in (pd.array([0, None, 2], dtype="Int64"), pd.array([True, None, False], dtype="boolean")):
        frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=pd.Index(labels))
        assert len(Table.of(frame).index_levels()) == 1
    assert Table.of(pd.DataFrame({"x": [1.0, 2.0]}, index=[0, 1])).index_levels() == []


def test_text_where_numbers_are_needed_says_how_a_csv_file_may_spell_them():
    with pytest.raises(DataError, match="--decimal , or --missing-word"):
        Table.of(pd.DataFrame({"pay": ["1,5", "2,5"]})).numbers("pay")


def test_a_column_without_any_value_says_so_and_no_name_is_told_twice():
    table = Table.of(pa.table({"x": pa.nulls(3), "z": [1.0, 2.0, 3.0]}))
    with pytest.raises(
        DataError, match=r"'x' must hold numbers, and has no value in any of 3 rows\. Leave it"
    ):
        table.numbers("x")
    with pytest.raises(DataError, match=r"No column named 'firm'\. The table"):
        table.require(["firm", "firm"])
