"""Files that cannot be used: one clear error each, no value quoted, nothing half-written."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pytest

from hedgerow.errors import DataError, FileError, HedgerowError, SettingError
from hedgerow.tables import files as formats
from hedgerow.tables.files import Format, Missing
from hedgerow.tables.files.csv.writer import check_csv

SECRET = "s3cr3t"


def refused(content: bytes, tmp_path: Path, **options: object) -> str:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(HedgerowError) as caught:
        formats.read(path, **options)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "t.csv" in message
    assert SECRET not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "0 bytes"),
        (b"\n\n", "is empty"),
        (b"a,b\n", "2 columns and no rows"),
        (b"a,b,a\n1,2,3\n", "1 of 3 cells of the first line repeat another (columns 3)"),
        (b"a, a \n1,2\n", "1 of 2 cells of the first line repeat another"),
        (b"a,\n1,2\n", "1 of 2 columns have no name"),
        (b"1,2.5\n3,4\n", "looks like a record"),
        (b"a,b\ns3cr3t,2\n3\n", "1 rows have between 1 and 1 cells, the header has 2"),
        (b"a,b\n1,2\n3,s3cr3t,5\n", "1 rows have between 3 and 3 cells"),
        (b'a,b\n1,"s3cr3t\n3,4\n', "never closed"),
        (b"a,b\n1,s3cr3t\0\n", "1 NUL characters"),
        ("a,b\n1,Zürich s3cr3t\n".encode("latin-1"), "is not utf-8. Pass the encoding"),
        ("a,b\n1,2\n".encode("utf-16"), "--encoding utf-16"),
        (b"a,b\n1,2\n2,3\n3,s3cr3t\n", "column 'b' mixes types: 2 of 3 cells are numbers, 1 are not"),
        (b"d\n2021-02-28\n2021-02-30\n", "not all 2 can be read"),
        (b"a\n1e400\n2\n", "1 numbers beyond 1.8e308"),
        (b"a,b\n1,9007199254740993\n1,0.5\n", "1 whole numbers of 2^53 and more"),
    ],
)
def test_bad_csv(tmp_path: Path, content: bytes, words: str) -> None:
    assert words in refused(content, tmp_path)


def test_bad_csv_settings(tmp_path: Path) -> None:
    assert "no known encoding" in refused(b"a\nx\n", tmp_path, encoding="utf-88")
    assert "no column named c" in refused(b"a\nx\n", tmp_path, text=["c"])
    assert "one character" in refused(b"a\nx\n", tmp_path, delimiter="::")
    assert "decimal sign" in refused(b"a,b\nx,1\n", tmp_path, decimal=",")
    with pytest.raises(SettingError, match="not one string"):
        formats.read(tmp_path / "t.csv", text="a")


def read_text(tmp_path: Path, content: str, **options: object) -> formats.Source:
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode())
    return formats.read(path, **options)  # type: ignore[arg-type]


def test_types_are_given_by_the_whole_file(tmp_path: Path) -> None:
    late = "n,m\n" + "1,2\n" * 200_000 + "0.5,\n"
    frame = read_text(tmp_path, late).frame
    assert frame.schema.types == [pa.float64(), pa.int64()]
    with pytest.raises(DataError, match="200001 of 200002 cells are numbers"):
        read_text(tmp_path, late + "x,1\n")
    assert read_text(tmp_path, late + "x,1\n", text=["n"]).frame["n"].to_pylist()[-2:] == ["0.5", "x"]


def test_codes_and_large_numbers_stay_what_they_are(tmp_path: Path) -> None:
    source = read_text(
        tmp_path,
        "zip,phone,big,huge,id,zero,minus\n"
        "00123,+4912,18446744073709551615,99999999999999999999999,9007199254740993,0,-1\n"
        "45678,+4913,1,1,2,0,-2\n",
    )
    row = {
        name: column[0].as_py() for name, column in zip(source.frame.column_names, source.frame, strict=True)
    }
    assert row == {
        "zip": "00123",
        "phone": "+4912",
        "big": 2**64 - 1,
        "huge": "99999999999999999999999",
        "id": 9007199254740993,
        "zero": 0,
        "minus": -1,
    }
    assert len(source.notes) == 3


def test_missing_cells_are_counted_and_words_are_missing_only_where_they_cannot_be_data(
    tmp_path: Path,
) -> None:
    source = read_text(tmp_path, 'x,country,flag,none\n1,NA,true,NA\n,,NA,\nNA,"",false,NA\n.,DE,true,\n')
    assert source.frame["x"].to_pylist() == [1, None, None, None]
    assert source.frame["country"].to_pylist() == ["NA", None, "", "DE"]
    assert source.frame["flag"].to_pylist() == [True, None, False, True]
    assert source.missing == {
        "x": Missing(1, {".": 1, "NA": 1}),
        "country": Missing(1),
        "flag": Missing(0, {"NA": 1}),
        "none": Missing(2, {"NA": 2}),
    }
    assert read_text(tmp_path, "x\n1\n-\n2\n", missing=["-"]).frame["x"].to_pylist() == [1, None, 2]
    assert read_text(tmp_path, "x\n1\n\n2\n").frame["x"].to_pylist() == [1, None, 2]


def test_line_ends_of_any_system(tmp_path: Path) -> None:
    for end in ("\n", "\r\n", "\r"):
        source = read_text(tmp_path, end.join(["a,b", "1,x", '2,"y"', "", ""]))
        assert source.frame.to_pydict() == {"a": [1, 2], "b": ["x", "y"]}, repr(end)


def test_not_a_number_is_counted_and_told(tmp_path: Path) -> None:
    table = pa.table({"x": [float("nan"), 1.0, None]})
    for kind in ("csv", "stata", "spss", "excel"):
        path = tmp_path / f"t{Format(kind).suffix}"
        assert formats.write(table, path, kind).changes == ("NaN in columns x reads as a missing value.",)
        assert formats.read(path).frame["x"].to_pylist() == [None, 1.0, None]
    formats.write(table, tmp_path / "t.parquet", "parquet")
    assert formats.read(tmp_path / "t.parquet").missing == {"x": Missing(1, {"NaN": 1})}


def test_delimiter_is_found_and_can_be_given(tmp_path: Path) -> None:
    for sign in ",;\t|":
        source = read_text(tmp_path, f'"a,b;c"{sign}d\n1{sign}2\n')
        assert source.frame.column_names == ["a,b;c", "d"], sign
        assert source.dialect.delimiter == sign
    assert read_text(tmp_path, "a:b\n1:2\n", delimiter=":").frame.num_columns == 2


FORMULAS = ["=cmd|' /C calc'!A0", "+1+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1"]


@pytest.mark.parametrize("cell", FORMULAS)
def test_formula_cells_are_refused_unless_told(tmp_path: Path, cell: str) -> None:
    table = pa.table({"note": ["fine", cell, None, "-", "-5", "+1.5"], "x": [-1.0, 2, 3, 4, 5, 6]})
    path = tmp_path / "out.csv"
    with pytest.raises(DataError, match=r"1 text cell .* 'note' \(1\).*--formulas escape") as caught:
        formats.write(table, path, "csv")
    assert cell not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match="1 text cell would"):
        formats.check(table, "csv")
    formats.check(table, "parquet")
    formats.write(table, path, "csv", formulas="allow")
    assert formats.read(path, text=["note"]).frame["note"].to_pylist() == table["note"].to_pylist()
    formats.write(table, path, "csv", formulas="escape", overwrite=True)
    back = formats.read(path, text=["note"]).frame["note"].to_pylist()
    assert back == ["fine", "'" + cell, None, "-", "-5", "+1.5"]


def test_formula_in_a_category_or_a_name_is_found(tmp_path: Path) -> None:
    table = pa.table({"=x": [1], "k": pa.array(["=1"]).dictionary_encode()})
    with pytest.raises(DataError, match=r"2 text cells .* in 2 columns"):
        formats.write(table, tmp_path / "t.csv", "csv")
    with pytest.raises(SettingError, match="refuse, escape, allow"):
        formats.write(table, tmp_path / "t.csv", "csv", formulas="yes")


@pytest.mark.parametrize("kind", ["parquet", "arrow", "stata", "spss", "excel", "sas"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.995])
def test_a_file_cut_short(tmp_path: Path, kind: str, share: float) -> None:
    whole = tmp_path / f"whole{Format(kind).suffix}"
    if kind == "sas":
        shutil.copy(Path(__file__).parent / "data" / "sample.sas7bdat", whole)
    else:
        formats.write(pa.table({"x": [float(i) for i in range(500)], "s": [SECRET] * 500}), whole, kind)
    cut = tmp_path / f"cut{whole.suffix}"
    cut.write_bytes(whole.read_bytes()[: int(whole.stat().st_size * share)])
    with pytest.raises(FileError, match=r"cut\.\w+: (not a whole|the file is empty)") as caught:
        formats.read(cut)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("kind", list(Format))
def test_files_of_another_kind(tmp_path: Path, kind: Format) -> None:
    path = tmp_path / f"t{kind.suffix}"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0" + os.urandom(200))
    with pytest.raises(FileError):
        formats.read(path)


def test_absent_files_folders_and_endings(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        formats.read(tmp_path / "t.parquet")
    for name in ("folder.csv", "folder"):
        (tmp_path / name).mkdir()
        with pytest.raises(FileError, match="is a folder"):
            formats.read(tmp_path / name)
    with pytest.raises(FileError, match=r"'\.ods' is not one of \.csv"):
        formats.read(tmp_path / "t.ods")
    with pytest.raises(SettingError, match="not one of csv"):
        formats.read(tmp_path / "t", format="ods")
    with pytest.raises(SettingError, match="read only"):
        formats.write(pa.table({"x": [1]}), tmp_path / "t.sas7bdat", "sas")


@pytest.mark.parametrize("kind", ["csv", "arrow"])
def test_a_hundred_thousand_columns_are_refused_in_seconds(tmp_path: Path, kind: str) -> None:
    path, names = tmp_path / f"t.{kind}", [f"c{place}" for place in range(100_000)]
    if kind == "csv":
        path.write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")
    else:
        cell = pa.array([1])
        schema = pa.schema([pa.field(name, cell.type) for name in names])
        with pa.ipc.new_file(path, schema) as writer:
            writer.write_batch(pa.record_batch([cell] * len(names), schema=schema))
    start = time.perf_counter()
    with pytest.raises(DataError, match="100000 columns; at most 10000"):
        formats.read(path)
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "stata", "spss", "excel"])
def test_columns_are_counted_before_their_cells_are_read(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hedgerow.tables.files import columns

    path = tmp_path / f"t{Format(kind).suffix}"
    formats.write(pa.table({f"c{place}": [1.0] for place in range(60)}), path, kind)
    assert formats.read(path).frame.num_columns == 60
    monkeypatch.setattr(columns, "MOST_COLUMNS", 59)
    with pytest.raises(DataError, match="60 columns; at most 59"):
        formats.read(path)


def test_tables_that_are_not_flat(tmp_path: Path) -> None:
    for table, words in [
        (pa.table({"x": [[1, 2]]}), r"1 column without numbers, .* x \(list"),
        (pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"]), "more than once"),
        (pa.table({"x": pa.array([], pa.int64())}), "1 columns and 0 rows"),
        ([1, 2], "got list"),
        (pd.DataFrame({"x": [1, SECRET], "y": [1, 2]}), r"1 columns mix types or hold objects \(x\)"),
    ]:
        with pytest.raises(DataError, match=words) as caught:
            formats.write(table, tmp_path / "t.parquet", "parquet")
        assert SECRET not in str(caught.value)


def test_names_and_values_that_a_format_does_not_hold(tmp_path: Path) -> None:
    for kind, name in [
        ("stata", "a b"),
        ("stata", "x" * 33),
        ("stata", "int"),
        ("spss", "_x"),
        ("spss", "with"),
    ]:
        with pytest.raises(DataError, match="names are not allowed"):
            formats.write(pa.table({name: [1]}), tmp_path / "t", kind)
        with pytest.raises(DataError, match="names are not allowed"):
            formats.check(pa.table({name: [1]}), kind)
    with pytest.raises(DataError, match="upper and lower case"):
        formats.write(pa.table({"a": [1], "A": [1]}), tmp_path / "t", "spss")
    for kind in ("stata", "spss"):
        with pytest.raises(DataError, match=r"column 'x' has 1 whole numbers above 2\^53"):
            formats.write(pa.table({"x": [2**53 + 1, 0]}), tmp_path / "t", kind)
        with pytest.raises(DataError, match=r"column 'x' has 1 .*infini"):
            formats.write(pa.table({"x": [float("inf"), 0]}), tmp_path / "t", kind)
        with pytest.raises(DataError, match="below a microsecond"):
            formats.write(pa.table({"x": pa.array([1], pa.timestamp("ns"))}), tmp_path / "t", kind)
    assert list(tmp_path.iterdir()) == []


_CHILD = """
import os, resource, signal, sys
import pyarrow as pa
from hedgerow.tables import files as formats
table = pa.table({"x": [i / 7 for i in range(20_000)]})
kind, action, path = sys.argv[1:]
if kind == "no rights" and os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
if kind == "small disk":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
try:
    formats.read(path) if action == "read" else formats.write(table, path, action)
    print("nothing")
except BaseException as error:
    print(f"{type(error).__name__}: {error}")
"""


def in_child(kind: str, action: str, path: Path) -> str:
    """What reading, or writing in a format, says in a process with other rights or less room."""
    # The sources are not readable to another user, so the child must have imported all it needs before.
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, kind, action, str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        check=True,
    )
    return done.stdout


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach, unlike tmp_path."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_permissions(open_folder: Path) -> None:
    path = open_folder / "t.csv"
    path.write_text("a\nb\n")
    path.chmod(0)
    assert in_child("no rights", "read", path).startswith("FileError: t.csv: no permission")
    open_folder.chmod(0o555)
    said = in_child("no rights", "csv", open_folder / "u.csv")
    assert said.startswith("FileError: u.csv: cannot be written (Permission denied)")


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "stata", "spss", "excel"])
def test_no_room_leaves_nothing_behind(tmp_path: Path, kind: str) -> None:
    said = in_child("small disk", kind, tmp_path / "t")
    assert said.startswith("FileError: "), said
    assert "t: cannot be written" in said or "SPSS file could not be written" in said
    assert list(tmp_path.iterdir()) == []


_WRITER = """
import sys
import pyarrow as pa
from hedgerow.tables import files as formats
table = pa.table({"x": [i / 7 for i in range(200_000)]})
print("ready", flush=True)
while True:
    formats.write(table, sys.argv[1], "csv", overwrite=True)
"""


def test_a_killed_writer_leaves_the_whole_file_or_none(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    source = str(Path(__file__).parents[2] / "src")
    for pause in (0.01, 0.1, 0.25):
        child = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(path)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": source},
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(pause)
        child.kill()
        child.wait()
        child.stdout.close()
        if path.exists():
            assert formats.read(path).frame.num_rows == 200_000


def test_pandas_frames_with_categories_and_nullable_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "k": pd.Categorical(["b", "a", None], categories=["b", "a"], ordered=True),
            "n": pd.array([1, None, 3], "Int16"),
            "o": pd.array([True, None, False], "boolean"),
            "t": pd.to_datetime(["2020-01-01", None, "2021-06-01 12:00"], format="ISO8601"),
        }
    )
    formats.write(frame, tmp_path / "t.parquet", "parquet")
    back = formats.read(tmp_path / "t.parquet").frame
    assert back["k"].type.ordered
    assert back["k"].combine_chunks().dictionary.to_pylist() == ["b", "a"]
    assert back["n"].type == pa.int16()
    assert back["n"].to_pylist() == [1, None, 3]
    assert back["o"].to_pylist() == [True, None, False]
    formats.write(frame, tmp_path / "t.csv", "csv")
    assert formats.read(tmp_path / "t.csv").frame["t"].to_pylist() == back["t"].to_pylist()


@pytest.mark.parametrize(
    "lines",
    [
        ["SECRET Ltd,93639,north", "Sons,500,south", "Daughters,700,west"],
        ["SECRET Ltd;936,39;north", "Sons;5,5;south"],
        ["SECRET Ltd,2020-01-31", "Sons,2021-02-28"],
        ["SECRET Ltd,2020-01-31T10:00:00", "Sons,2021-02-28T10:00:00"],
        ["SECRET Ltd,north", "Sons,south", "Daughters,north"],
        ["SECRET,SECRET,1", "a,b,2"],
        ["SECRET Ltd,,1", "a,b,2"],
        ["SECRET Ltd,5", "Sons,"],
        ["SECRET Ltd,NA", "Sons,5"],
    ],
)
def test_a_first_line_that_is_a_record_is_refused_and_not_printed(tmp_path, lines):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError) as refusal:
        formats.read(path, decimal="," if ";" in lines[0] else ".")
    told = str(refusal.value)
    assert not any(cell in told for cell in ("SECRET", "936", "2020-01", "north"))


def test_names_that_look_like_a_record_are_names_if_the_caller_says_so(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("region,2019,2020\nnorth,1,2\nsouth,3,4\n")
    assert "--header" in refused(path.read_bytes(), tmp_path)
    assert formats.read(path, header=True).frame.column_names == ["region", "2019", "2020"]


@pytest.mark.parametrize("head", ["region,pay", "region,p2019", "r1,1st"])
def test_ordinary_names_are_names(tmp_path, head):
    path = tmp_path / "t.csv"
    path.write_text(f"{head}\nnorth,1\nsouth,3\n")
    assert formats.read(path).frame.column_names == head.split(",")


@pytest.mark.parametrize(
    "content",
    [
        b"male,wage\nmale,3\nfemale,4\nmale,5\n",
        b"id,no,other\n1,yes,other\n2,no,a\n3,no,b\n",
    ],
)
def test_a_word_that_comes_again_is_a_name_where_another_stands_over_numbers(content, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    assert formats.read(path).frame.num_rows == 3


@pytest.mark.parametrize("cell", ["+43 1 234 56", "-2 %", "+3.5 %", "--", "-1/2", "- (3)"])
def test_a_cell_without_letters_runs_nothing(cell, tmp_path):
    table = pa.table({"cell": [cell, "x"]})
    check_csv(table, "refuse")
    with pytest.raises(DataError, match="--formulas escape"):
        check_csv(pa.table({"cell": [cell + "+A1", cell + "|cmd"]}), "refuse")
