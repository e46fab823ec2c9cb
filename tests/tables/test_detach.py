"""A copy in Python carries its rows, names and types: nothing of the table it was made from."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow.tables.table import Table

SECRET = b"SECRET"
ROWS = 40


def confidential() -> pd.DataFrame:
    """Forty rows to release, and two more that lie outside the slice."""
    rng = np.random.default_rng(5)
    levels = pd.Index(["north", "south", "SECRET island"], name="SECRET levels")
    return pd.DataFrame(
        {
            "x": np.exp(rng.normal(size=ROWS + 2)),
            "z": rng.normal(size=ROWS + 2),
            "name": [f"firm {row}" for row in range(ROWS)] + ["SECRET Acme Ltd", "SECRET Sons"],
            "region": pd.Categorical(["north", "south"] * (ROWS // 2) + ["SECRET island"] * 2, levels),
        }
    )


def arrow_of(frame: pd.DataFrame) -> pa.Table:
    fields = {"note": "SECRET field"}
    table = pa.Table.from_pandas(frame.rename_axis("SECRET index"), preserve_index=True)
    return table.cast(
        pa.schema([field.with_metadata(fields) for field in table.schema], table.schema.metadata)
    )


@pytest.mark.filterwarnings("ignore::hedgerow.HedgerowWarning")
@pytest.mark.parametrize(
    "table",
    [
        confidential().iloc[:ROWS],
        confidential().iloc[:ROWS].convert_dtypes(dtype_backend="pyarrow"),
        confidential().set_index(pd.CategoricalIndex(confidential()["region"])).iloc[:ROWS],
        pl.from_pandas(confidential())[:ROWS],
        pl.from_pandas(confidential())
        .with_columns(pl.col("region").cast(pl.Enum(["SECRET island", "north", "south"])))
        .head(ROWS),
        arrow_of(confidential()).slice(0, ROWS).drop_columns(["SECRET index"]),
    ],
    ids=["pandas", "pandas-arrow", "pandas-index", "polars", "polars-enum", "arrow"],
)
def test_a_pickled_copy_holds_its_rows_alone(table):
    if isinstance(table, pd.DataFrame):
        table.attrs = {"source": "SECRET register"}
        table = table.rename_axis(columns="SECRET axis")
    copy = hr.Synthesizer("x ~ z", epsilon=30.0, draws=200, seed=1).fit(table).sample().tables[0]
    assert SECRET not in pickle.dumps(copy)
    assert type(copy) is type(table)
    if isinstance(copy, pl.DataFrame):
        assert SECRET not in pickle.dumps(copy.to_arrow())


def test_pandas_metadata_of_an_arrow_table_does_not_leave():
    frame = confidential()
    frame.attrs = {"source": "SECRET register"}
    table = pa.Table.from_pandas(frame)
    assert Table.of(table).with_column("x", np.ones(len(frame))).schema.metadata is None


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", pd.ArrowDtype(pa.int64())])
def test_values_under_a_mask_do_not_leave(dtype):
    hidden = pd.array([1, 1, 1], dtype=dtype)
    hidden[1] = pd.NA
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "z": hidden})
    copy = Table.of(frame).with_column("x", np.ones(3))
    pd.testing.assert_series_equal(copy["z"], frame["z"])
    if hasattr(copy["z"].array, "_data"):
        assert not copy["z"].array._data[1]


def test_values_under_a_null_of_an_arrow_table_do_not_leave():
    hidden = pa.Array.from_buffers(
        pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(b"\0" * 8 + b"SECRET42")]
    )
    assert hidden.to_pylist() == [0, None]
    copy = Table.of(pa.table({"x": [1.0, 2.0], "z": hidden})).with_column("x", np.ones(2))
    assert SECRET not in pickle.dumps(copy)
    assert copy["z"].to_pylist() == [0, None]


@pytest.mark.parametrize(
    "kind",
    [pa.string_view(), pa.binary(), pa.list_(pa.string()), pa.dictionary(pa.int8(), pa.string())],
    ids=str,
)
def test_any_arrow_type_is_cut_from_the_rows_outside_a_slice(kind):
    cells = [["a"], ["SECRET, and some more of it"]] if pa.types.is_list(kind) else ["a", "SECRET, and more"]
    table = pa.table({"x": [1.0, 2.0], "z": pa.array(cells, kind)}).slice(0, 1)
    copy = Table.of(table).with_column("x", np.ones(1))
    assert SECRET not in pickle.dumps(copy)
    assert copy.schema.field("z").type == kind
    assert copy["z"].to_pylist() == table["z"].to_pylist()


def test_levels_that_do_not_occur_are_dropped_in_their_order():
    levels = ["low", "never", "middle", "high"]
    words = ["high", None, "low", "middle"]
    frame = pd.DataFrame({"x": np.ones(4), "z": pd.Categorical(words, levels, ordered=True)})
    for table in (frame, pa.Table.from_pandas(frame)):
        copy = Table.of(table).with_column("x", np.ones(4))
        kept = pa.array(copy["z"]) if isinstance(copy, pd.DataFrame) else copy["z"].combine_chunks()
        assert kept.dictionary.to_pylist() == ["low", "middle", "high"]
        assert kept.to_pylist() == words
        assert kept.type.ordered


def test_a_protected_arrow_category_has_the_declared_levels_and_its_own_type():
    """Neither the confidential levels nor those that happen to be synthesized."""
    kind = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), ["low", "SECRET"], ordered=True)
    copy = Table.of(pa.table({"x": column})).with_column("x", np.zeros(2), ["low", "middle", "high"])["x"]
    assert copy.type == kind
    assert copy.combine_chunks().dictionary.to_pylist() == ["low", "middle", "high"]
    assert copy.to_pylist() == ["low", "low"]


WORDS = pa.array(["north", "south", "SECRET island"])
NOTED = pa.struct([pa.field("word", pa.string(), metadata={"note": "SECRET"})])
NESTED = {
    "null over a value": pa.StructArray.from_arrays([WORDS], ["word"], mask=pa.array([False, False, True])),
    "levels in a list": pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), WORDS.dictionary_encode()
    ),
    "levels in a record": pa.StructArray.from_arrays([WORDS.dictionary_encode()], ["word"]),
    "notes in a record": pa.array([{"word": "north"}, None, {"word": "south"}], NOTED),
    "bytes": WORDS.cast(pa.binary()),
    "views of bytes": WORDS.cast(pa.binary_view()),
}


@pytest.mark.parametrize("name", NESTED)
def test_what_lies_inside_a_nested_value_stays(name):
    rows = slice(1, 3) if "null" in name else slice(0, 2)
    table = pa.table({"x": [1.0, 2.0, 3.0], "more": NESTED[name]})[rows]
    copy = Table.of(table).with_column("x", np.array([4.0, 5.0]))
    assert SECRET not in pickle.dumps(copy)
    assert copy["more"].to_pylist() == table["more"].to_pylist()


def test_levels_inside_a_polars_list_stay():
    frame = pl.DataFrame({"x": [1.0, 2.0], "more": ["north", "south"], "when": [[1], [2, 3]]})
    levels = pl.col("more").cast(pl.Enum(["north", "south", "SECRET island"]))
    frame = frame.with_columns(
        more=pl.concat_list(levels), record=pl.struct(levels), time=pl.duration(days="x")
    )
    copy = Table.of(frame).with_column("x", np.array([4.0, 5.0]))
    assert SECRET not in pickle.dumps(copy)
    assert copy.drop("x").rows() == frame.drop("x").rows()
    assert copy.schema["when"] == frame.schema["when"]
