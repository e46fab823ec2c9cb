"""The same data has one fingerprint however it is stored; other data, or another key, has another."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import DataError
from hedgerow.release.ledger import Ledger
from hedgerow.release.ledger.fingerprint import fingerprint
from hedgerow.tables import files as formats

KEY = b"k" * 32


def of(frame: object, columns: list[str] | None = None) -> str:
    return fingerprint(frame, columns, key=KEY)


def table() -> pa.Table:
    days = pa.array([18000, None, 0, 18000], pa.int32()).cast(pa.date32())
    return pa.table(
        {
            "x": [1.5, 2.0, None, 1.5],
            "n": [1, 2, 2, None],
            "s": ["a", None, "é", "a"],
            "d": days,
            "b": [True, False, None, True],
        }
    )


@settings(max_examples=50, deadline=None)
@given(order=st.permutations(range(4)), columns=st.permutations(["x", "n", "s", "d", "b"]))
def test_order_of_rows_and_columns_does_not_matter(order: list[int], columns: list[str]) -> None:
    assert of(table().take(order).select(columns)) == of(table())


def test_names_files_and_dataframe_kinds_do_not_matter(tmp_path: Path) -> None:
    expected = of(table())
    assert of(table().rename_columns([f"column_{i}" for i in range(5)])) == expected
    assert of(table().to_pandas()) == expected
    assert of(pl.from_arrow(table())) == expected
    for kind in ("csv", "parquet", "arrow", "stata", "spss"):
        path = tmp_path / f"other{formats.Format(kind).suffix}"
        formats.write(table(), path, kind)
        assert of(formats.read(path).frame) == expected, kind


@pytest.mark.parametrize(
    "kind",
    [
        pa.int8(),
        pa.uint8(),
        pa.int16(),
        pa.int64(),
        pa.uint64(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(23, 2),
    ],
)
def test_widths_of_numbers_do_not_matter(kind: pa.DataType) -> None:
    numbers = pa.array([1, 0, 100, None])
    assert of(pa.table({"x": numbers.cast(kind)})) == of(pa.table({"x": numbers}))


def test_other_spellings_of_the_same_value() -> None:
    assert of(pa.table({"x": [0.0, 1]})) == of(pa.table({"x": [-0.0, 1]}))
    assert of(pa.table({"x": [np.nan, 1]})) == of(pa.table({"x": [None, 1]}))
    assert of(pa.table({"x": np.float32([0.1, 0.5])})) == of(
        pa.table({"x": np.float64(np.float32([0.1, 0.5]))})
    )
    assert of(pa.table({"x": ["a", "", "b  "]})) == of(pa.table({"x": ["a", None, "b"]}))
    assert of(pa.table({"x": pa.array(["a", "b"]).dictionary_encode()})) == of(pa.table({"x": ["a", "b"]}))
    moments = pa.array([0, 86_400_000_000_000], pa.int64()).cast(pa.timestamp("ns"))
    for unit in (pa.timestamp("s"), pa.timestamp("us"), pa.date32()):
        assert of(pa.table({"x": moments.cast(unit)})) == of(pa.table({"x": moments}))


def test_other_data_differ() -> None:
    base = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": ["a", "b", "c"]})
    others = [
        base.assign(x=[1.0, 2.0, 3.0000000000000004]),
        base.assign(y=["b", "a", "c"]),  # the same columns, another pairing
        base.head(2),
        pd.concat([base, base.head(1)]),
        base[["x"]],
        base.assign(x=["1", "2", "3"]),
    ]
    prints = {of(frame) for frame in [base, *others]}
    assert len(prints) == len(others) + 1
    assert of(base, ["x"]) == of(base[["x"]])


def test_large_whole_numbers_are_told_apart() -> None:
    prints = {of(pa.table({"x": pa.array([2**53 + i, 2**63 - 1 - i])})) for i in range(5)}
    assert len(prints) == 5
    assert of(pa.table({"x": pa.array([2**60])})) == of(pa.table({"x": [float(2**60)]}))
    nano = {of(pa.table({"x": pa.array([i], pa.int64()).cast(pa.timestamp("ns"))})) for i in range(3)}
    assert len(nano) == 3


@settings(max_examples=60, deadline=None)
@given(
    first=st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab")), min_size=1, max_size=4),
    second=st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab")), min_size=1, max_size=4),
)
def test_equal_if_and_only_if_the_same_rows(
    first: list[tuple[int, str]], second: list[tuple[int, str]]
) -> None:
    prints = [of(pd.DataFrame(rows, columns=["n", "s"])) for rows in (first, second)]
    assert (prints[0] == prints[1]) == (sorted(first) == sorted(second))


def test_another_key_another_fingerprint(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "a.db") as one, Ledger.open(tmp_path / "b.db") as two:
        assert one.fingerprint(table()) != two.fingerprint(table())
        assert one.fingerprint(table(), ["x"]) == one.fingerprint(table().select(["x"]))
    with Ledger.open(tmp_path / "a.db") as again, Ledger.open(tmp_path / "b.db") as two:
        assert again.fingerprint(table()) != two.fingerprint(table())


def test_a_million_rows_in_another_order() -> None:
    rng = np.random.default_rng(1)
    frame = pa.table({"x": rng.lognormal(size=1_000_000), "n": rng.integers(0, 99, 1_000_000)})
    first = of(frame)
    assert of(frame.take(pa.array(rng.permutation(1_000_000)))) == first


def test_what_cannot_be_fingerprinted() -> None:
    with pytest.raises(DataError, match="'z'"):
        of(table(), ["z"])
    with pytest.raises(DataError, match="0 rows"):
        of(table().slice(0, 0))
    with pytest.raises(DataError, match="'x' of type list"):
        of(pa.table({"x": [[1]]}))
