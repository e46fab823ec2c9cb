"""Round trips of each format, value by value, and bytes that depend on the table alone."""

import datetime as dt
import decimal
import time
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pyreadstat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import DataError, FileError
from hedgerow.tables import files as formats
from hedgerow.tables.files import Format, Missing

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


def plain_table() -> pa.Table:
    return pa.table(
        {
            "small": pa.array([1, None, -3], pa.int8()),
            "whole": pa.array([2**53 + 1, None, -5], pa.int64()),
            "real": pa.array([0.1, None, -2.5e-300]),
            "word": pa.array(["a,b", "", None]),
            "day": pa.array([dt.date(2024, 2, 29), None, dt.date(1890, 1, 1)]),
            "moment": pa.array(
                [dt.datetime(2024, 2, 29, 1, 2, 3, 4), None, dt.datetime(1890, 1, 1)], pa.timestamp("us")
            ),
            "flag": pa.array([True, None, False]),
            "kind": pa.array(["x", None, "y"]).dictionary_encode(),
        }
    )


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columnar_formats_keep_every_value_and_type(tmp_path: Path, kind: str) -> None:
    table = plain_table().append_column(
        "price", pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("2.00")])
    )
    table = table.append_column("zoned", table["moment"].cast(pa.timestamp("us", "Europe/Zurich")))
    path = tmp_path / f"t.{kind}"
    formats.write(table, path, kind)
    source = formats.read(path)
    assert source.frame.schema == table.schema
    assert source.frame.equals(table)
    assert source.missing["real"] == Missing(1)
    again = formats.write(source.frame, tmp_path / f"again.{kind}", source)
    assert (tmp_path / f"again.{kind}").read_bytes() == path.read_bytes()
    assert again.changes == ()


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "stata", "spss", "excel"])
def test_views_of_strings_are_text(tmp_path: Path, kind: str) -> None:
    table = pa.table({"s": pa.array(["a longer word than fits", None, "b"], pa.string_view())})
    formats.write(table, tmp_path / "t", kind)
    assert formats.read(tmp_path / "t", format=kind).frame["s"].to_pylist() == table["s"].to_pylist()


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.none() | WORDS,
            st.none() | st.floats(allow_nan=False),
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.booleans(),
            st.none() | st.times(),
            st.none() | st.decimals(-1000, 1000, places=2),
        ),
        min_size=1,
        max_size=20,
    ),
    start=st.integers(0, 5),
    kind=st.sampled_from(["parquet", "arrow"]),
)
def test_columnar_round_trip_of_any_values_and_slices(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[object, ...]], start: int, kind: str
) -> None:
    kinds = [pa.large_string(), pa.float64(), pa.int64(), pa.bool_(), pa.time64("us"), pa.decimal128(9, 2)]
    columns = [pa.array(values, k) for values, k in zip(zip(*rows, strict=True), kinds, strict=True)]
    table = pa.table(dict(zip("abcdef", columns, strict=True)))
    table = table.append_column("k", table["a"].cast(pa.string()).combine_chunks().dictionary_encode())
    cut = table.slice(min(start, len(rows) - 1))
    path = tmp_path_factory.mktemp("columnar") / f"t.{kind}"
    formats.write(cut, path, kind)
    back = formats.read(path).frame
    assert back.schema == table.schema
    assert back.to_pydict() == cut.to_pydict()


def test_csv_keeps_values_and_types(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    table = plain_table().drop_columns(["kind", "small"])
    formats.write(table, path, "csv")
    source = formats.read(path)
    assert source.frame.schema.types == table.schema.types
    assert source.frame.to_pydict() == table.to_pydict()
    formats.write(source.frame, tmp_path / "again.csv", source)
    assert (tmp_path / "again.csv").read_bytes() == path.read_bytes()


def test_csv_comes_back_in_its_own_dialect(tmp_path: Path) -> None:
    text = (
        "\ufeffname;amount;code;when;ok;n;zone\r\n"
        '"Müller; Söhne";1,5;00123;2020-01-31 10:00:00;TRUE;12345678901234567;2020-01-31T10:00:00.125Z\r\n'
        "x;NA;4567;2020-01-31 10:00:01;FALSE;5;2020-01-31T10:00:00.000Z\r\n"
    )
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode("utf-8"))
    source = formats.read(path, decimal=",")
    assert source.frame["amount"].to_pylist() == [1.5, None]
    assert source.missing == {"amount": Missing(0, {"NA": 1})}
    assert source.frame["code"].to_pylist() == ["00123", "4567"]
    assert any("'code'" in note for note in source.notes)
    assert source.frame["n"].type == pa.int64()
    assert source.frame["ok"].to_pylist() == [True, False]
    assert source.frame["zone"].type == pa.timestamp("ms", "UTC")
    formats.write(source.frame, tmp_path / "again.csv", source)
    assert (tmp_path / "again.csv").read_bytes().decode("utf-8") == text


def test_csv_in_another_encoding_comes_back_in_it(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("ort,n\nZürich,1\n".encode("cp1252"))
    source = formats.read(path, encoding="cp1252")
    assert source.frame["ort"].to_pylist() == ["Zürich"]
    formats.write(source.frame, tmp_path / "again.csv", source)
    assert (tmp_path / "again.csv").read_bytes() == path.read_bytes()
    wider = source.frame.set_column(0, "ort", pa.array(["東京"]))
    with pytest.raises(DataError, match="columns ort hold characters that cp1252 does not have"):
        formats.write(wider, tmp_path / "wider.csv", source)
    assert not (tmp_path / "wider.csv").exists()
    formats.write(wider, tmp_path / "wider.csv", source, encoding="utf-8")


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.none() | WORDS,
            st.none() | st.floats(allow_nan=False, allow_infinity=False),
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.booleans(),
            st.none() | st.dates(dt.date(1, 1, 1)),
            st.none() | st.datetimes(dt.datetime(1000, 1, 1)),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_csv_round_trip_of_any_values(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[object, ...]]
) -> None:
    kinds = [pa.string(), pa.float64(), pa.int64(), pa.bool_(), pa.date32(), pa.timestamp("us")]
    columns = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    table = pa.table(dict(zip("abcdef", columns, strict=True)))
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    formats.write(table, path, "csv", formulas="allow")
    back = formats.read(path, text=["a"]).frame
    for name in table.column_names:
        # A column without any value has no type in a CSV file.
        expected = (
            table[name] if table[name].null_count < len(rows) else pa.chunked_array([pa.nulls(len(rows))])
        )
        if name == "a":
            expected = table[name]
        assert back[name].to_pylist() == expected.to_pylist(), name


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.none()
            | st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=9),
            st.none() | st.floats(-1e300, 1e300),
            st.none() | st.integers(-127, 100),
            st.none() | st.integers(-(2**53), 2**53),
            st.none() | st.dates(dt.date(1700, 1, 1)),
            st.none()
            | st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)).map(
                lambda d: d.replace(microsecond=0)
            ),
        ),
        min_size=1,
        max_size=12,
    ),
    kind=st.sampled_from(["stata", "spss"]),
)
def test_statistical_round_trip_of_any_values(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[object, ...]], kind: str
) -> None:
    kinds = [pa.string(), pa.float64(), pa.int8(), pa.int64(), pa.date32(), pa.timestamp("us")]
    columns = [pa.array(values, k) for values, k in zip(zip(*rows, strict=True), kinds, strict=True)]
    table = pa.table(dict(zip("abcdef", columns, strict=True)))
    if kind == "spss":
        # SPSS pads text with blanks: blanks at the end are not kept by the format itself.
        table = table.set_column(
            0,
            "a",
            pa.array([w if w is None else w.rstrip() or None for w in table["a"].to_pylist()], pa.string()),
        )
    path = tmp_path_factory.mktemp("stat") / f"t{Format(kind).suffix}"
    formats.write(table, path, kind)
    source = formats.read(path)
    assert source.frame.to_pydict() == table.to_pydict()
    again = path.with_name("again" + path.suffix)
    formats.write(source.frame, again, source)
    assert again.read_bytes() == path.read_bytes()


def labelled(kind: str, path: Path) -> None:
    """A file with everything these formats have, written by pyreadstat rather than by us."""
    frame = pd.DataFrame(
        {
            "region": pd.Series([1, 2, 3, 1], dtype="int32"),
            "income": pd.Series([10.5, "a", 30.0, "b"] if kind == "stata" else [10.5, -99.0, 30.0, -98.0]),
            "name": ["Aé", "", "00123", "b"],
            "born": [21000.0, 21001.0, np.nan, 0.0]
            if kind == "stata"
            else [86400.0 * 160000, np.nan, 0.0, 86400.0],
        }
    )
    common = {
        "column_labels": {"region": "Region of work", "income": "Income"},
        "variable_value_labels": {"region": {1: "North", 2: "South"}},
        "file_label": "from the folder of Jane",
    }
    if kind == "stata":
        common["variable_value_labels"]["income"] = {"a": "refused"}  # type: ignore[index]
        pyreadstat.write_dta(
            frame,
            str(path),
            missing_user_values={"income": ["a", "b"]},
            variable_format={"born": "%tdD_m_Y"},
            **common,
        )
    else:
        pyreadstat.write_sav(
            frame,
            str(path),
            missing_ranges={"income": [{"lo": -99, "hi": -98}], "name": ["b"]},
            variable_format={"born": "EDATE10", "region": "F5.0"},
            variable_measure={"region": "nominal"},
            variable_display_width={"income": 12},
            note="made on a Tuesday",
            **common,
        )


@pytest.mark.parametrize("kind", ["stata", "spss"])
def test_dictionary_and_declared_missing_values_survive(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"in{Format(kind).suffix}"
    labelled(kind, path)
    source = formats.read(path)
    # No model may take a declared missing value for a number.
    assert source.frame["income"].to_pylist() == [10.5, None, 30.0, None]
    marked = {".a": 1, ".b": 1} if kind == "stata" else {"-99.0 to -98.0": 2}
    assert source.missing["income"] == Missing(0, marked)
    assert pa.types.is_integer(source.frame["region"].type)
    assert pa.types.is_date(source.frame["born"].type)
    assert source.dictionary.value_labels["region"] == {1: "North", 2: "South"}

    out = tmp_path / f"out{Format(kind).suffix}"
    # A file by pandas has one way to say that a number is missing; what is lost is said.
    lost = ("columns income: missing values .a to .z written as `.`.",) if kind == "stata" else ()
    assert formats.write(source.frame, out, source).changes == lost
    reader = pyreadstat.read_dta if kind == "stata" else pyreadstat.read_sav
    before, was = reader(str(path), user_missing=True, disable_datetime_conversion=True)
    after, now = reader(str(out), user_missing=True, disable_datetime_conversion=True)
    if kind == "stata":
        before["income"] = before["income"].replace({"a": None, "b": None})
        assert now.missing_user_values == {}
    assert before.astype(object).where(before.notna(), None).values.tolist() == (
        after.astype(object).where(after.notna(), None).values.tolist()
    )
    for part in ("column_names_to_labels", "variable_value_labels", "missing_ranges"):
        assert getattr(now, part) == getattr(was, part), part
    assert now.original_variable_types["born"] == was.original_variable_types["born"]
    assert now.variable_measure == was.variable_measure
    assert now.file_label in (None, "")
    assert now.notes == []
    assert b"Jane" not in out.read_bytes()
    assert b"Tuesday" not in out.read_bytes()

    # A column that came back changed has no claim to the old codes.
    new = source.frame.set_column(1, "income", pa.array([1.0, None, 2.0, 3.0]))
    assert formats.write(new, tmp_path / f"new{out.suffix}", source).changes == ()
    assert formats.read(tmp_path / f"new{out.suffix}").frame["income"].to_pylist() == [1.0, None, 2.0, 3.0]
    assert "income" not in formats.read(tmp_path / f"new{out.suffix}").codes


def test_stata_storage_types_are_kept_and_other_readers_agree(tmp_path: Path) -> None:
    table = pa.table(
        {
            "b": pa.array([100, None, -127], pa.int8()),
            "i": pa.array([32740, None, -32767], pa.int16()),
            "l": pa.array([2147483620, None, -2147483647], pa.int32()),
            "f": pa.array([1.5, None, 0.1], pa.float32()),
            "d": pa.array([0.1, None, 8e307], pa.float64()),
            "s": ["é", "xyz", "a"],
            "wide": ["x" * 3000, "", "é" * 1500],
            "e": pa.array([101, None, 1], pa.int8()),  # 101 is `.` in a byte: needs an int
            "class": pa.array([2147483621, None, 1], pa.int32()),  # `.` in a long: needs a double
            "µ": pa.array([2**32 - 1, None, 1], pa.uint32()),
            "low": pa.array([-3e38, None, 1], pa.float32()),  # below the least float of Stata's
            "bytes": ["é" * 1500, "b", "c"],  # short in characters, long in bytes
        }
    )
    path = tmp_path / "t.dta"
    formats.write(table, path, "stata")
    back = formats.read(path).frame
    assert back.schema.types == [
        pa.int8(), pa.int16(), pa.int32(), pa.float32(), pa.float64(), pa.string(), pa.string(), pa.int16(),
        pa.float64(), pa.float64(), pa.float64(), pa.string(),
    ]  # fmt: skip
    assert back.drop_columns("wide").to_pydict() == table.drop_columns("wide").to_pydict()
    assert back["wide"].to_pylist() == ["x" * 3000, None, "é" * 1500]
    theirs = pd.read_stata(path)
    assert theirs["d"].tolist()[2] == 8e307
    assert theirs["wide"].tolist() == ["x" * 3000, "", "é" * 1500]
    assert theirs["e"].tolist()[0] == 101
    assert theirs["class"].tolist()[0] == 2147483621
    assert theirs["bytes"].tolist() == ["é" * 1500, "b", "c"]


def test_stata_shows_columns_as_before_and_keeps_microseconds(tmp_path: Path) -> None:
    frame = pd.DataFrame({"month": [720.0, 721.0], "pay": [1.5, 2.25], "class": [1.0, 2.0]})
    shown = {"month": "%tm", "pay": "%9.2f"}
    labels = {"class": {1: "low", 2: "high"}}
    pyreadstat.write_dta(
        frame, str(tmp_path / "in.dta"), variable_format=shown, variable_value_labels=labels,
        column_labels={"class": "Class of " + "é" * 71, "pay": "Pay"},
    )  # fmt: skip
    source = formats.read(tmp_path / "in.dta")
    long = {**source.dictionary.labels, "pay": "x" * 100}
    wordy = replace(source, dictionary=replace(source.dictionary, labels=long))
    seen = pa.array([dt.datetime(2024, 2, 29, 1, 2, 3, 4567), None], pa.timestamp("us"))
    written = formats.write(source.frame.append_column("seen", seen), tmp_path / "out.dta", wordy)
    assert written.changes == ("1 variable labels cut to 80 characters.",)
    back = formats.read(tmp_path / "out.dta")
    assert back.frame["seen"].to_pylist() == seen.to_pylist()
    assert back.dictionary.formats["month"] == "%tm"
    assert back.dictionary.formats["pay"] == "%9.2f"
    assert back.dictionary.formats["seen"] == "%tc"
    assert back.dictionary.value_labels == labels
    assert back.dictionary.labels == {"class": "Class of " + "é" * 71, "pay": "x" * 80}


def test_categories_become_labelled_codes_in_stata_and_spss(tmp_path: Path) -> None:
    table = pa.table({"kind": pa.array(["x", None, "y"]).dictionary_encode(), "ok": [True, False, None]})
    for kind in ("stata", "spss"):
        path = tmp_path / f"t{Format(kind).suffix}"
        written = formats.write(table, path, kind)
        assert len(written.changes) == 2
        source = formats.read(path)
        assert source.frame["kind"].to_pylist() == [1, None, 2]
        assert source.dictionary.value_labels["kind"] == {1: "x", 2: "y"}
        assert source.frame["ok"].to_pylist() == [1, 0, None]


def test_labels_that_a_format_cannot_hold_are_said(tmp_path: Path) -> None:
    labelled("spss", tmp_path / "in.sav")
    source = formats.read(tmp_path / "in.sav")
    written = formats.write(source.frame, tmp_path / "out.csv", source, format="csv")
    assert written.changes == ("csv has no place for the labels of columns income, region.",)
    stata = formats.write(source.frame, tmp_path / "out.dta", source, format="stata")
    assert stata.format is Format.STATA
    back = formats.read(tmp_path / "out.dta")
    assert back.frame.to_pydict() == source.frame.to_pydict()
    assert back.dictionary.labels == source.dictionary.labels
    assert back.dictionary.value_labels == source.dictionary.value_labels


def test_sas_is_read_and_written_as_parquet(tmp_path: Path) -> None:
    # The sample was written with ReadStat's own sas7bdat writer, which pyreadstat does not offer.
    source = formats.read(Path(__file__).parent / "data" / "sample.sas7bdat")
    assert source.frame.to_pydict() == {
        "id": [1, 2, 3],
        "code": ["00123", None, "é9"],
        "paid": [1.5, None, -2.25],
        "born": [dt.date(1960, 1, 1), dt.date(1959, 12, 31), None],
        "seen": [dt.datetime(1960, 1, 1), dt.datetime(1960, 1, 2, 0, 0, 0, 500_000), None],
    }
    assert source.dictionary.labels["id"] == "Identifier"
    written = formats.write(source.frame, tmp_path / "copy.parquet", source)
    assert written.format is Format.PARQUET
    assert "labels of columns code, id" in written.changes[0]
    assert formats.read(tmp_path / "copy.parquet").frame.equals(source.frame)


def test_sas_transport_is_read(tmp_path: Path) -> None:
    frame = pd.DataFrame({"N": [1.5, np.nan], "S": ["a", ""], "D": [0.0, 366.0]})
    pyreadstat.write_xport(frame, str(tmp_path / "t.xpt"), variable_format={"D": "DATE9"})
    source = formats.read(tmp_path / "t.xpt")
    assert source.frame.to_pydict() == {
        "N": [1.5, None],
        "S": ["a", None],
        "D": [dt.date(1960, 1, 1), dt.date(1961, 1, 1)],
    }


def test_numbers_that_are_no_whole_dates_stay_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"half": [0.5, 1.0], "far": [1.0, 1e9]})
    pyreadstat.write_dta(frame, str(tmp_path / "t.dta"), variable_format={"half": "%td", "far": "%td"})
    assert formats.read(tmp_path / "t.dta").frame.to_pydict() == {"half": [0.5, 1.0], "far": [1.0, 1e9]}


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "stata", "spss", "excel"])
def test_same_table_same_bytes_whatever_its_chunks_kind_and_time(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = pa.array(["x", "y", "zz", None] * 10)
    table = pa.table({"a": pa.array(range(40), pa.int64()), "b": words, "c": pa.array([0.5, None] * 20)})
    pieces = pa.concat_tables([table.slice(0, 7), table.slice(7, 20), table.slice(27)])
    digests = set()
    for index, frame in enumerate([table, pieces, pl.from_arrow(table), table.slice(0)]):
        if isinstance(frame, pl.DataFrame) and kind in ("parquet", "arrow"):
            continue  # polars keeps text as large_string, a type of its own in these formats
        path = tmp_path / f"{index}.{kind}"
        digests.add(formats.write(frame, path, kind).sha256)
        if kind in ("stata", "spss", "excel") and index == 0:
            time.sleep(1.1)  # their headers count seconds or minutes
    assert len(digests) == 1


def test_pandas_index_and_metadata_do_not_leave(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": pd.array([1, None], "Int64")}, index=["jane", "john"])
    frame.attrs["owner"] = "jane"
    for kind in ("parquet", "arrow", "csv", "stata", "spss", "excel"):
        path = tmp_path / f"t.{kind}"
        formats.write(frame, path, kind)
        assert b"jane" not in path.read_bytes()
    assert pq.read_schema(tmp_path / "t.parquet").metadata is None
    assert formats.read(tmp_path / "t.parquet").frame["x"].to_pylist() == [1, None]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_what_lies_outside_a_slice_does_not_leave(tmp_path: Path, kind: str) -> None:
    secret = 7_777_777_777
    whole = pa.table(
        {"n": [secret, 1, 2, secret], "x": [1.5, 2.5, 3.5, 4.5], "t": ["hush", "a", "b", "hush"]}
    )
    part, alone = whole.slice(1, 2), pa.table({"n": [1, 2], "x": [2.5, 3.5], "t": ["a", "b"]})
    written = formats.write(part, tmp_path / "part", kind)
    assert written.sha256 == formats.write(alone, tmp_path / "alone", kind).sha256
    for hidden in (secret.to_bytes(8, "little"), np.float64(4.5).tobytes(), b"hush"):
        assert hidden not in (tmp_path / "part").read_bytes()


def test_what_lies_under_a_null_does_not_leave(tmp_path: Path) -> None:
    secret = pa.array(np.array([7_777_777_777, 1, 2], dtype=np.int64))
    hidden = pa.Array.from_buffers(secret.type, 3, [pa.py_buffer(bytes([0b110])), secret.buffers()[1]])
    word = pa.array(["confidential", "b", "c"])
    masked = pa.Array.from_buffers(word.type, 3, [pa.py_buffer(bytes([0b110])), *word.buffers()[1:]])
    table = pa.table({"x": hidden, "s": masked, "t": word}).slice(0, 3)
    assert table["x"].to_pylist() == [None, 1, 2]
    naive = pa.BufferOutputStream()
    with pa.ipc.new_file(naive, table.schema) as writer:
        writer.write_table(table)
    assert (7_777_777_777).to_bytes(8, "little") in naive.getvalue().to_pybytes()  # why this test is here
    for kind in ("arrow", "parquet"):
        path = tmp_path / f"t.{kind}"
        formats.write(table.drop_columns("t"), path, kind)
        assert (7_777_777_777).to_bytes(8, "little") not in path.read_bytes()
        assert b"confidential" not in path.read_bytes()
        formats.write(table.slice(1), tmp_path / f"cut.{kind}", kind)
        assert b"confidential" not in (tmp_path / f"cut.{kind}").read_bytes()
        assert formats.read(path).frame["x"].to_pylist() == [None, 1, 2]


@pytest.mark.parametrize(
    ("kind", "width"),
    [
        pytest.param("csv", 10_000, marks=pytest.mark.slow),
        ("parquet", 10_000),
        ("arrow", 10_000),
        pytest.param("stata", 2_100, marks=pytest.mark.slow),
        ("spss", 2_000),
    ],
)
def test_wide_tables(tmp_path: Path, kind: str, width: int) -> None:
    table = pa.table({f"column_{i}": pa.array([i, None], pa.int16()) for i in range(width)})
    path = tmp_path / f"t{Format(kind).suffix}"
    formats.write(table, path, kind)
    source = formats.read(path)
    assert source.frame.to_pydict() == table.to_pydict()
    assert len(source.missing) == width


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_million_rows(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"x": rng.lognormal(size=1_000_000), "z": rng.integers(0, 1000, 1_000_000)})
    path = tmp_path / f"t.{kind}"
    formats.write(table, path, kind)
    back = formats.read(path).frame
    assert back.equals(table)


def test_source_shows_no_value() -> None:
    source = formats.Source(pa.table({"x": [123456.5]}), Format.CSV)
    assert "123456" not in repr(source)
    assert "confidential" in repr(source)


def test_writing_puts_a_whole_file_or_none(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    table = pa.table({"x": [1]})
    formats.write(table, path, "csv")
    with pytest.raises(FileError, match="exists"):
        formats.write(table, path, "csv")
    with pytest.raises(FileError, match="folder"):
        formats.write(table, tmp_path / "no" / "t.csv", "csv")
    formats.write(pa.table({"x": [2]}), path, "csv", overwrite=True)
    assert path.read_text() == "x\n2\n"
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize(
    ("content", "pay", "note"),
    [
        ("pay;who\n1,5;a\n-2,25;b\n", [1.5, -2.25], "decimal comma, as in column 'pay'"),
        ("pay;who\n1,500;a\nNA;b\n,5;c\n", [1.5, None, 0.5], "decimal comma, as in column 'pay'"),
        (
            "pay;who\n1,500;a\n12,250;b\n",
            ["1,500", "12,250"],
            "kept as text: its commas may be",
        ),
        ("pay;z\n1,5;2.5\n2,25;7.1\n", ["1,5", "2,25"], None),  # a point elsewhere: no decimal comma
        ("pay;z\n1;2\n3;4\n", [1, 3], None),
    ],
)
def test_a_decimal_comma_is_found_where_no_other_reading_is_left(tmp_path, content, pay, note):
    path = tmp_path / "pay.csv"
    path.write_text(content)
    source = formats.read(path)
    assert source.frame["pay"].to_pylist() == pay
    assert (note is None and source.notes == ()) or note in source.notes[0]
    plain = formats.read(path, decimal=".")
    assert (plain.dialect.decimal, plain.notes) == (".", ())


def test_a_protected_column_that_may_decide_nothing_does_not_decide_the_decimal_sign(tmp_path):
    path = tmp_path / "pay.csv"
    path.write_text("pay;who\n1,5;a\n2,25;b\n")
    assert formats.read(path, numbers=["pay"]).dialect.decimal == "."


@pytest.mark.parametrize("cell", ["17", "", "NA", "pay", "other"])
def test_nor_how_gaps_are_spelled_nor_whether_there_is_a_header(tmp_path, cell):
    """Of two files that differ in one protected cell copies would look different, or one would be refused."""
    path = tmp_path / "pay.csv"
    path.write_text(f"pay,other\n{cell},other\nNA,a\n3,b\n")
    source = formats.read(path, numbers=["pay"])
    assert dict(source.dialect.missing) == {}
    assert source.frame["pay"].type == "double"


def test_flags_are_numbers_where_no_cell_decides_the_type(tmp_path):
    """As in pandas; words for them would all be missing."""
    path = tmp_path / "flags.csv"
    path.write_text("ill,z\nTrue,1\nfalse,1\nFALSE,1\n1,1\nyes,1\n,1\n")
    assert formats.read(path, numbers=["ill"]).frame["ill"].to_pylist() == [1.0, 0.0, 0.0, 1.0, None, None]


def test_nor_does_a_number_beyond_doubles_end_a_run(tmp_path):
    """One cell would: in Excel whole numbers have any size."""
    (tmp_path / "pay.csv").write_text(f"pay,z\n{10**400},1\n-{10**400},2\n3,3\n")
    book = openpyxl.Workbook()
    for row in (["pay", "z"], [7, 1], [-7, 2], [3, 3]):
        book.active.append(row)
    book.save(tmp_path / "small.xlsx")
    with ZipFile(tmp_path / "small.xlsx") as small, ZipFile(tmp_path / "pay.xlsx", "w") as large:
        for name in small.namelist():
            large.writestr(name, small.read(name).replace(b"7</v>", b"%d</v>" % 10**400))
    for name in ("pay.csv", "pay.xlsx"):
        pay = formats.read(tmp_path / name, numbers=["pay"]).frame["pay"]
        assert pay.to_pylist() == [np.inf, -np.inf, 3.0]


def test_a_number_among_the_missing_words_counts_however_it_is_written(tmp_path):
    path = tmp_path / "pay.csv"
    path.write_text("pay,hours,code\n-8,-8,-8\n-8.0,40,x\n2.5,-8,y\n")
    source = formats.read(path, missing=["-8"])
    assert source.frame["pay"].to_pylist() == [None, None, 2.5]
    assert source.frame["hours"].to_pylist() == [None, 40, None]
    assert source.frame["code"].to_pylist() == ["-8", "x", "y"]  # text keeps its words
    assert source.missing["pay"].marked == {"-8": 1, "-8.0": 1}


def test_an_index_without_a_name_is_left_out_and_said(tmp_path):
    frame = pd.DataFrame({"pay": [1.5, 2.5], "who": ["a", "b"]}, index=[7, 3])
    frame.to_csv(tmp_path / "pay.csv")
    frame.to_parquet(tmp_path / "pay.parquet")
    for name in ("pay.csv", "pay.parquet"):
        source = formats.read(tmp_path / name)
        assert source.frame.column_names == ["pay", "who"]
        assert source.frame["pay"].to_pylist() == [1.5, 2.5]
        assert "an index without a name" in source.notes[0]
    frame.rename_axis("firm").to_parquet(tmp_path / "named.parquet")
    assert formats.read(tmp_path / "named.parquet").frame["firm"].to_pylist() == [7, 3]


def test_a_column_of_declared_dates_takes_any_other_cell_as_missing(tmp_path):
    path = tmp_path / "days.csv"
    cells = ["2020-02-29", "2020-02-31", "2021-03-04 23:59:01", "-9", "soon", "", "0000-01-01"]
    path.write_text("\n".join(["day,z", *(f"{cell},1" for cell in cells), ""]))
    days = formats.read(path, dates=["day"]).frame["day"]
    assert str(days.type) == "date32[day]"
    assert [str(day) for day in days.to_pylist()] == ["2020-02-29", "None", "2021-03-04", *["None"] * 4]
