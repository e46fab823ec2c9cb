"""Excel: what its owner typed comes in, what goes out reads back, runs nothing and is the same each time."""

import datetime as dt
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest

from hedgerow.errors import DataError, FileError, HedgerowError, SettingError
from hedgerow.release.verify.files import count_records, read_columns
from hedgerow.tables import files as formats

SECRET = "s3cr3t"
TABLE = pa.table(
    {
        "pay": pa.array([12.5, None, 1e300, 0.1]),
        "hours": pa.array([40, -8, None, 7]),
        "who & what": pa.array(["a<b", "", None, "#N/A"]),
        "new": pa.array([True, False, None, True]),
        "day": pa.array([dt.date(2020, 1, 31), None, dt.date(1999, 12, 31), dt.date(1900, 3, 1)]),
        "at": pa.array([dt.datetime(2020, 1, 31, 10, 0, 0, 250000), None, None, dt.datetime(2021, 1, 1)]),
        "clock": pa.array([dt.time(23, 59, 58), None, dt.time(0, 0), dt.time(12)]),
        "class": pa.array(["x", "y", None, "x"]).dictionary_encode(),
    }
)


def _sheet(path, rows, sheets=("Sheet1",)):
    book = openpyxl.Workbook()
    book.active.title = sheets[0]
    for row in rows:
        book.active.append(row)
    for name in sheets[1:]:
        book.create_sheet(name).append(["other"])
        book[name].append([1])
    book.save(path)
    return path


def test_a_table_comes_back_as_it_was(tmp_path):
    path = tmp_path / "t.xlsx"
    written = formats.write(TABLE, path, "excel")
    back = formats.read(path)
    expected = TABLE.set_column(7, "class", TABLE["class"].cast(pa.string()))
    words = pa.array(["a<b", None, None, None])  # an empty text and an error are missing
    expected = expected.set_column(2, "who & what", words)
    assert back.frame.to_pydict() == expected.to_pydict()
    assert back.frame.schema.types[1:7] == [
        *(pa.int64(), pa.string(), pa.bool_(), pa.date32(), pa.timestamp("us"), pa.time64("us"))
    ]
    assert written.changes == ()
    other = pd.read_excel(path)
    assert other["pay"].tolist()[2:] == [1e300, 0.1]
    assert other["day"].tolist()[0] == pd.Timestamp("2020-01-31")
    with path.open("rb") as file:
        assert count_records(file, "excel") == 4
        assert read_columns(file, "excel", TABLE.column_names, {}) == TABLE.column_names


def test_the_same_table_gives_the_same_bytes_with_its_label_and_without_a_time(tmp_path, monkeypatch):
    label = "Synthetic, not real records"
    first = formats.write(TABLE, tmp_path / "a.xlsx", "excel", label=label)

    class Later(dt.datetime):
        @classmethod
        def now(cls, tz=None):
            return dt.datetime(2031, 2, 3, tzinfo=tz)

    monkeypatch.setattr("openpyxl.writer.excel.datetime.datetime", Later)
    monkeypatch.setattr("time.time", lambda: 2e9)
    again = formats.write(TABLE, tmp_path / "b.xlsx", "excel", label=label)
    assert first.sha256 == again.sha256
    properties = openpyxl.load_workbook(tmp_path / "b.xlsx").properties
    assert (properties.description, properties.creator) == (label, "hedgerow")
    with zipfile.ZipFile(tmp_path / "b.xlsx") as file:
        assert {entry.date_time for entry in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert b"2031" not in file.read("docProps/core.xml")


def test_text_that_would_run_is_refused_escaped_or_written_as_text(tmp_path):
    table = pa.table({"pay": [1.0], "who": ["=1+1"]})
    with pytest.raises(DataError, match="would run as formulas"):
        formats.write(table, tmp_path / "t.xlsx", "excel")
    with pytest.raises(DataError, match="would run as formulas"):
        formats.check(table, "excel")
    for choice, text in (("allow", "=1+1"), ("escape", "'=1+1")):
        formats.write(table, tmp_path / f"{choice}.xlsx", "excel", formulas=choice)
        cell = openpyxl.load_workbook(tmp_path / f"{choice}.xlsx").active["B2"]
        assert (cell.data_type, cell.value) == ("s", text)


def test_cells_are_what_excel_says_they_are(tmp_path):
    rows = [
        [None, "pay", "post code", "left", "share", "day"],
        [0, 12, "01010", "NA", "NA", dt.datetime(2020, 1, 1)],
        [None] * 6,  # a blank row
        [1, 13.5, "01020", "x", 0.5, dt.datetime(2020, 1, 2, 6)],
        [2, -8, "01030", "y", "#DIV/0!", None],
    ]
    source = formats.read(_sheet(tmp_path / "t.xlsx", rows, ("data", "notes")), missing=["NA", "-8"])
    assert source.frame.to_pydict() == {
        "pay": [12.0, 13.5, None],
        "post code": ["01010", "01020", "01030"],
        "left": ["NA", "x", "y"],
        "share": [None, 0.5, None],
        "day": [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2, 6), None],
    }
    assert source.missing["share"].marked == {"NA": 1, "#DIV/0!": 1}
    assert [note.split(",")[0] for note in source.notes] == [
        "sheet 'data' is read",
        "an index without a name",
    ]
    assert formats.read(tmp_path / "t.xlsx", text=["pay"], missing=["NA"]).frame["pay"].to_pylist()[0] == "12"
    assert formats.read(tmp_path / "t.xlsx", sheet="notes").frame.to_pydict() == {"other": [1]}
    assert formats.read(tmp_path / "t.xlsx", numbers=["share"]).frame["share"].to_pylist() == [
        None,
        0.5,
        None,
    ]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "sheet is empty"),
        ([["pay", "z"]], "2 columns and no rows"),
        ([["pay", "pay"], [1, 2]], "repeat another"),
        ([["Table 1", None], ["pay", "z"], [1, 2]], "1 of 2 columns have no name"),
        ([[12.5, SECRET], [13.5, "x"]], "looks like a record"),
        ([["pay", "z"], [1, 2], [SECRET, 3]], "column 'pay' mixes types: 1 numbers, 1 texts"),
        ([["pay", "z"], ["=1+1", 2]], "1 cells hold formulas without a result"),
    ],
)
def test_sheets_that_are_no_tables_are_refused_without_a_value(tmp_path, rows, words):
    with pytest.raises(HedgerowError, match=words) as caught:
        formats.read(_sheet(tmp_path / "t.xlsx", rows))
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_column_that_may_refuse_nothing_takes_any_cell_as_missing(tmp_path):
    path = _sheet(tmp_path / "t.xlsx", [["pay", "z"], ["=1+1", 2], ["?", 3], [5, 4], [True, 5]])
    assert formats.read(path, numbers=["pay"]).frame["pay"].to_pylist() == [None, None, 5.0, 1.0]


def test_files_that_are_no_workbooks_and_sheets_that_are_not_there(tmp_path):
    path = _sheet(tmp_path / "t.xlsx", [["pay"], [1]])
    with pytest.raises(DataError, match="no sheet 'x'"):
        formats.read(path, sheet="x")
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(FileError, match="not a whole Excel file"):
        formats.read(path)
    with pytest.raises(SettingError, match="no Excel file and has no sheets"):
        formats.read(tmp_path / "t.csv", sheet="x")


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([10**15]), "more than 15 digits"),
        (pa.array([np.inf]), "infinite numbers"),
        (pa.array(["x" * 32_768]), "text of 32768 characters; Excel holds 32767"),
        (pa.array(["a\x07b"]), "control characters"),
        (pa.array([dt.date(1899, 1, 1)]), "dates before 1900-03-01"),
        (pa.array([dt.timedelta(1)]), "hold durations"),
    ],
)
def test_what_excel_cannot_hold_is_refused(tmp_path, column, words):
    with pytest.raises(DataError, match=words):
        formats.write(pa.table({"pay": column}), tmp_path / "t.xlsx", "excel")
    assert list(tmp_path.iterdir()) == []


def test_what_changes_on_the_way_is_said(tmp_path):
    moment = pd.Timestamp("2020-01-01 10:00:00.123456", tz="Europe/Vienna")
    table = pa.table({"at": pa.array([moment]), "pay": [np.nan]})
    changes = formats.write(table, tmp_path / "t.xlsx", "excel").changes
    assert changes == (
        "column 'at': times written in UTC, without their zone.",
        "column 'at': times written to the millisecond.",
        "NaN in columns pay reads as a missing value.",
    )


def test_without_the_library_it_says_what_to_install(tmp_path, monkeypatch):
    path = _sheet(tmp_path / "t.xlsx", [["pay"], [1]])
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(FileError, match=r"pip install 'hedgerow\[excel\]'"):
        formats.read(path)


def test_a_column_of_declared_dates_takes_any_other_cell_as_missing(tmp_path):
    path = _sheet(
        tmp_path / "t.xlsx", [["day", "z"], [dt.datetime(2020, 1, 2, 6), 2], ["?", 3], [5, 4], ["=1+1", 5]]
    )
    days = formats.read(path, dates=["day"]).frame["day"].to_pylist()
    assert days == [dt.date(2020, 1, 2), None, None, None]
