"""CSV files in blocks give what `files.read` gives of the whole: types, missing values, notes, refusals."""

import gc
import os
import warnings

import numpy as np
import pytest

from hedgerow.errors import HedgerowError
from hedgerow.numerics import leaves
from hedgerow.tables import files
from hedgerow.tables.files import MISSING_WORDS
from hedgerow.tables.files.csv import rows
from hedgerow.tables.spool import Scratch, spool, text


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(leaves, "LEAF", 16)
    monkeypatch.setattr(rows, "BLOCK", 300)
    monkeypatch.setattr(text, "_CHUNK", 70)


def join(columns, delimiter=",", newline="\n"):
    rows = [delimiter.join(columns), *(delimiter.join(row) for row in zip(*columns.values(), strict=True))]
    return newline.join(rows) + newline


def late(first, last, rows=100):
    """A column whose last cells are others than those before."""
    return [*[first] * (rows - 2), last, last]


ROWS = 100
COUNT = [str(n) for n in range(ROWS)]
MIXED = {
    "id": COUNT,
    "late decimal": late("3", "2.5"),
    "late code": late("12", "007"),
    "late word": ["a", *late("", "b", ROWS - 1)],
    "late gap": late("1.5", "NA"),
    "small gap": late("1", ""),
    "unsigned": late("5", str(2**64 - 1)),
    "signed": late("5", str(-(2**63))),
    "wide": late("5", "9" * 30),
    "flag": late("true", "false"),
    "nearly flag": late("true", "yes"),
    "day": late("2020-01-31", "2021-02-28"),
    "time": late("2020-01-31T10:00:00.000Z", "2020-01-31T10:00:00.125Z"),
    "nearly time": late("2020-01-31 10:00:00", "2020-01-31 10:00:00.5"),
    "empty": [""] * ROWS,
    "quoted": late('"a, ""b""\nc"', '""'),
    "coded": late("4", "-8.0"),
    "only": late("nan", "NaN"),
}
FILES = {
    "every kind of column": join(MIXED).encode(),
    "windows": ("\ufeff" + join(MIXED, newline="\r\n")).encode(),
    "index": join({"": COUNT, "pay": late("2.5", "3")}).encode(),
    "blank lines": b"\n\r\n" + join({"pay": late("2.5", "")}).encode(),
    "decimal comma": join({"pay": late("1", "2,5"), "n": COUNT}, ";").encode(),
    "grouped": join({"pay": late("1", "2,500"), "n": COUNT}, ";").encode(),
    "point and comma": join({"pay": late("1,5", "2,5"), "n": late("1", "2.5")}, ";").encode(),
    "latin": join({"name": late("Müller", "Özil"), "n": COUNT}).encode("cp1252"),
    "utf-16": join({"name": late("Müller", "Özil"), "n": COUNT}).encode("utf-16"),
    # refused
    "mixed": join({"pay": late("2.5", "x"), "n": COUNT}).encode(),
    "large": join({"pay": late("2.5", str(2**60)), "n": COUNT}).encode(),
    "large first": join({"pay": late(str(2**60), "2.5"), "n": COUNT}).encode(),
    "beyond": join({"pay": late("2.5", "1e999"), "n": COUNT}).encode(),
    "no day": join({"day": late("2020-01-31", "2020-02-31"), "n": COUNT}).encode(),
    "no name": join({"7": COUNT, "8": late("1", "2")}).encode(),
    "repeated": join({"a": late("b", "a"), "c": late("d", "e")}).encode(),
    "ragged": join(MIXED).encode() + b"1,2\n",
    "unclosed": join({"n": COUNT, "a": late("b", "c")}).encode() + b'100,"d\n',
    "not utf-8": join({"name": late("Muller", "Özil"), "n": COUNT}).encode("cp1252"),
    "nul": join({"n": COUNT, "name": [*COUNT[1:], "O\0zil"]}).encode(),
    "no rows": b"a,b\n",
    "blank": b"\n\n",
    "twice": b"a,a\n1,2\n",
}
OPTIONS = {
    "latin": {"encoding": "cp1252"},
    "utf-16": {"encoding": "utf-16"},
    "every kind of column": {"missing": [*MISSING_WORDS, "-8"]},
    "windows": {"text": ["late decimal"], "numbers": ["late word"], "dates": ["time"], "header": True},
}


def outcome(read):
    try:
        return read()
    except HedgerowError as error:
        return type(error), str(error)


@pytest.mark.parametrize("kind", FILES)
def test_blocks_give_what_the_whole_gives(tmp_path, kind):
    path, options = tmp_path / "pay.csv", OPTIONS.get(kind, {})
    path.write_bytes(FILES[kind])
    whole = outcome(lambda: files.read(path, **options))
    with Scratch(tmp_path, "release") as scratch:
        spooled = outcome(lambda: spool(path, scratch.path, **options))
        if isinstance(whole, tuple):
            assert spooled == whole
            return
        assert spooled.schema.equals(whole.frame.schema)
        found = [cells for leaf in range(spooled.count) for cells in spooled.table(leaf).native.to_pylist()]
        np.testing.assert_equal(found, whole.frame.to_pylist())
        like = spooled.source(whole.frame)
        assert (like.missing, like.notes, like.dialect) == (whole.missing, whole.notes, whole.dialect)


def test_no_file_is_left_open(tmp_path):
    """Python warns of those that are, where it is asked to."""
    path = tmp_path / "pay.csv"
    path.write_bytes(FILES["index"])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        spool(path, tmp_path)
        gc.collect()
    assert told == []


def test_a_text_that_grows_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "pay.csv"
    path.write_bytes(FILES["index"])
    original = text._read

    def grow(*args):
        yield from original(*args)
        with path.open("ab") as file:
            file.write(b"7,2.5\n")
            os.utime(path, (0, 0))

    monkeypatch.setattr(text, "_read", grow)
    assert outcome(lambda: spool(path, tmp_path))[1].startswith("pay.csv: changed while it was read")


def test_other_files_are_refused_with_a_remedy(tmp_path):
    path = tmp_path / "pay.dta"
    path.touch()
    assert "Convert it to Parquet" in outcome(lambda: spool(path, tmp_path))[1]
    assert "cannot be read" in outcome(lambda: spool(tmp_path / "gone.csv", tmp_path))[1]
