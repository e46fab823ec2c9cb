"""A spool of files that are damaged, change or are not alike, of a full disk, of processes that died."""

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedgerow.errors import DataError, FileError, FormulaError, HedgerowWarning
from hedgerow.numerics import leaves
from hedgerow.tables import design as designs
from hedgerow.tables.spool import Scratch, encode_leaves, spool, store
from hedgerow.tables.spool import scratch as scratches
from hedgerow.tables.spool.scratch import remove_abandoned, write_whole

SECRET = 123456.789
FULL = Path("/dev/full")


@pytest.fixture(autouse=True)
def small_leaves(monkeypatch):
    monkeypatch.setattr(leaves, "LEAF", 16)


@pytest.fixture
def table():
    rng = np.random.default_rng(1)
    return pa.table({"pay": [SECRET, *rng.lognormal(size=49)], "age": rng.normal(size=50)})


def spools(tmp_path):
    return [path for path in tmp_path.iterdir() if "hedgerow-spool" in path.name]


def test_a_scratch_is_its_owners_alone_and_gone_at_the_end(tmp_path, table):
    pq.write_table(table, tmp_path / "pay.parquet")
    with Scratch(tmp_path, "release") as scratch:
        spooled = spool(tmp_path / "pay.parquet", scratch.path)
        spooled.keep("risk of all", 1, np.arange(3.0))
        modes = {stat.S_IMODE(path.stat().st_mode) for path in scratch.path.iterdir()}
        assert stat.S_IMODE(scratch.path.stat().st_mode) == 0o700
        assert modes == {0o600}
        assert repr(spooled) == "Spooled(confidential)"
        assert spooled.kept("risk of all", 1).tolist() == [0, 1, 2]
        spooled.forget("risk of all")
        with pytest.raises(FileError, match="scratch folder"):
            spooled.kept("risk of all", 1)
    assert not spools(tmp_path)


def test_a_file_cut_short_is_refused(tmp_path, table):
    path = tmp_path / "pay.parquet"
    pq.write_table(table, path, row_group_size=10)
    whole = path.read_bytes()
    for cut in (whole[:-9], whole[: len(whole) // 2], b"PAR1" + whole[4:200] + b"\x00" * 90 + whole[290:]):
        path.write_bytes(cut)
        with (
            pytest.raises(FileError, match="not a whole Parquet") as error,
            Scratch(tmp_path, "r") as scratch,
        ):
            spool(path, scratch.path)
        assert str(SECRET) not in str(error.value)
    assert not spools(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("append", "0.parquet: changed while it was read"),
        ("replace", "0.parquet: changed while it was read"),
        ("new file", "parts: changed while it was read"),
        ("gone", "0.parquet: no such file"),
        ("next gone", "1.parquet: no such file"),
        ("next cut", "1.parquet: not a whole Parquet file"),
    ],
)
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, table, monkeypatch, change, message):
    folder = tmp_path / "parts"
    folder.mkdir()
    for number in range(2):
        pq.write_table(table, folder / f"{number}.parquet")
    counted = []

    def meddle(part, *found, original=store._count):
        original(part, *found)
        counted.append(part.num_rows)
        if len(counted) == 2:
            path = folder / "0.parquet"
            if change == "append":
                path.write_bytes(path.read_bytes() + b"more")
            elif change == "replace":
                pq.write_table(table, tmp_path / "other.parquet")
                (tmp_path / "other.parquet").replace(path)
            elif change == "new file":
                pq.write_table(table, folder / "2.parquet")
            elif change == "next gone":  # between its footer and its records
                (folder / "1.parquet").unlink()
            elif change == "next cut":
                (folder / "1.parquet").write_bytes(path.read_bytes()[:-9])
            else:
                path.unlink()

    monkeypatch.setattr(store, "_count", meddle)
    with pytest.raises(FileError, match=message), Scratch(tmp_path, "release") as scratch:
        spool(folder, scratch.path)
    assert not spools(tmp_path)


def test_a_full_disk_is_one_clear_error(tmp_path, table, monkeypatch):
    pq.write_table(table, tmp_path / "pay.parquet")
    written = []

    def fill(part, file, original=store._write):
        original(part, file)
        written.append(part.num_rows)
        if len(written) == 3:
            raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path))

    monkeypatch.setattr(store, "_write", fill)
    with pytest.raises(FileError, match="No space left") as error, Scratch(tmp_path, "release") as scratch:
        spool(tmp_path / "pay.parquet", scratch.path)
    assert str(tmp_path) not in str(error.value)
    assert not spools(tmp_path)


@pytest.mark.skipif(not FULL.exists(), reason="a disk that is always full, the Linux way")
def test_what_is_kept_on_a_full_disk_is_the_same_error(tmp_path, table, monkeypatch):
    pq.write_table(table, tmp_path / "pay.parquet")

    def write(path, content):
        with FULL.open("wb") as file:
            content(file)

    with Scratch(tmp_path, "release") as scratch:
        spooled = spool(tmp_path / "pay.parquet", scratch.path)
        monkeypatch.setattr(store, "write_whole", write)
        with pytest.raises(FileError, match="No space left"):
            spooled.keep("risk", 0, np.arange(100_000.0))


def test_a_folder_left_by_a_killed_process_is_removed_by_the_next(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from hedgerow.tables.spool.scratch import Scratch\n"
        "with Scratch(Path(sys.argv[1]), 'release') as s: print('in', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "in\n"
        (busy,) = spools(tmp_path)
        with Scratch(tmp_path, "release") as scratch:
            assert {busy, scratch.path} == {*spools(tmp_path)}  # the other one is at work
        other.kill()
        other.wait()
        assert spools(tmp_path) == [busy]
        remove_abandoned(tmp_path, "another")
        assert spools(tmp_path) == [busy]
        with Scratch(tmp_path, "release") as scratch:
            assert spools(tmp_path) == [scratch.path]
    finally:
        other.kill()
        other.wait()


def test_a_folder_without_an_owner_yet_is_left_alone(tmp_path):
    fresh = tmp_path / ".release.hedgerow-spool-0011"
    fresh.mkdir()
    remove_abandoned(tmp_path, "release")
    assert fresh.exists()
    os.utime(fresh, (0, 0))
    remove_abandoned(tmp_path, "release")
    assert not fresh.exists()


def test_files_that_are_not_alike_are_refused(tmp_path, table):
    folder = tmp_path / "parts"
    folder.mkdir()
    with pytest.raises(FileError, match="without Parquet files"):
        spool(folder, tmp_path)
    pq.write_table(table, folder / "a.parquet")
    (folder / "_SUCCESS").touch()
    other = folder / "b.parquet"
    for odd, message in (
        (table.rename_columns(["pay", "years"]), "differ in 'age', 'years'"),
        (table.select(["age", "pay"]), "come in another order"),
        (table.set_column(1, "age", table["age"].cast(pa.float32())), "columns 'age' have other types"),
    ):
        pq.write_table(odd, other)
        with pytest.raises(DataError, match=message):
            spool(folder, tmp_path)
    other.unlink()
    (folder / "notes.txt").touch()
    with pytest.raises(FileError, match=r"'notes\.txt' in this folder are no Parquet files"):
        spool(folder, tmp_path)


def coded(words, levels, *, ordered=False):
    codes = pa.array([levels.index(word) for word in words], pa.int8())
    return pa.DictionaryArray.from_arrays(codes, pa.array(levels), ordered=ordered)


def test_files_with_categories_of_their_own_are_one_table(tmp_path):
    """More of them together than the codes of one file could tell apart."""
    folder, words = tmp_path / "parts", [f"{place:03}" for place in range(300)]
    folder.mkdir()
    for first in range(0, 300, 100):
        part = words[first : first + 100]
        pq.write_table(pa.table({"place": coded(part, part[::-1])}), folder / f"{first:03}.parquet")
    with Scratch(tmp_path, "release") as scratch:
        spooled = spool(folder, scratch.path)
        found = [spooled.table(leaf).native.column("place") for leaf in range(spooled.count)]
        assert [word for column in found for word in column.to_pylist()] == words
        assert {column.type for column in found} == {spooled.schema.field("place").type}


def test_categories_in_different_orders_have_no_order(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    for name, levels in (
        ("a", ["low", "high"]),
        ("b", ["low", "high", "huge"]),
        ("c", ["low", "middle", "high"]),
    ):
        column = coded(["high", "low"], levels, ordered=True)
        pq.write_table(pa.table({"grade": column}), folder / f"{name}.parquet")
    with (
        Scratch(tmp_path, "release") as scratch,
        pytest.raises(DataError, match=r"'grade' has ordered categories, and parts .* different orders"),
    ):
        spool(folder, scratch.path)
    (folder / "c.parquet").unlink()
    with Scratch(tmp_path, "release") as scratch:
        spooled = spool(folder, scratch.path)
        assert spooled.categories["grade"].to_pylist() == ["low", "high", "huge"]


def test_tables_without_rows_or_with_nested_columns_are_refused(tmp_path, table):
    path = tmp_path / "pay.parquet"
    pq.write_table(table.slice(0, 0), path)
    with pytest.raises(DataError, match="2 columns and 0 rows"):
        spool(path, tmp_path)
    pq.write_table(table.append_column("tags", pa.array([[1]] * 50)), path)
    with pytest.raises(DataError, match=r"tags \(list"):
        spool(path, tmp_path, columns=["pay"])
    pq.write_table(table, path)
    with pytest.raises(DataError, match="No column named 'wage'"):
        spool(path, tmp_path, columns=["wage"])


def build(table, learnt, formula):
    return designs.build(formula, table, learnt=learnt)


def encode(folder, scratch, formula):
    spooled = spool(folder / "pay.parquet", scratch.path)
    return encode_leaves(spooled, partial(build, formula=formula), [formula])


@pytest.mark.parametrize(
    ("column", "formula", "error", "message"),
    [
        ([1.0] * 40 + [np.nan] * 10, "pay ~ z", DataError, "'z' has 10 missing values in 50 rows"),
        ([1.0] * 40 + [-np.inf] * 10, "pay ~ z", DataError, "'z' has 10 infinite values in 50 rows"),
        ([1.0] * 50, "pay ~ z", DataError, "'z' is constant over all 50 rows"),
        ([*range(50)], "pay ~ z + I(2*z)", DataError, "collinear"),
        ([*range(50)], "pay ~ log(z)", DataError, r"log\(z\) are not finite"),
        ([*range(50)], "pay ~ bs(log(z), df=4)", DataError, "values that are not finite"),
        ([3] * 50, "pay ~ 0 + cr(z, df=5)", FormulaError, "enough different values"),
        ([*range(50)], "pay ~ bs(z, df=5, upper_bound=9)", FormulaError, "inside their bounds"),
        ([*range(50)], "pay ~ scale(poly(z, 2))", FormulaError, "one column of numbers"),
        ([*range(50)], "pay ~ bs(z, wiggle=5)", FormulaError, "does not take these settings"),
    ],
)
def test_what_takes_all_records_at_once_is_refused(tmp_path, table, column, formula, error, message):
    pq.write_table(table.append_column("z", pa.array(column)), tmp_path / "pay.parquet")
    with Scratch(tmp_path, "release") as scratch, pytest.raises(error, match=message) as said:
        encode(tmp_path, scratch, formula)
    assert str(SECRET) not in str(said.value)


def test_too_many_levels_are_refused_without_collecting_them(tmp_path, monkeypatch, table):
    monkeypatch.setattr("hedgerow.tables.spool.levels.MOST_LEVELS", 20)
    pq.write_table(table, tmp_path / "pay.parquet")
    formula = "pay ~ C(age)"
    with Scratch(tmp_path, "release") as scratch, pytest.raises(FormulaError, match="more than 20 values"):
        encode(tmp_path, scratch, formula)


def test_blocks_without_values_and_of_one_record_are_read(tmp_path):
    """A block without values, a level that only the last record has, one record."""
    rows = 48
    region = pa.array([None] * 16 + ["b"] * 31 + ["a"])
    table = pa.table({"pay": np.arange(rows) + 1.0, "region": region, "coded": region.dictionary_encode()})
    path = tmp_path / "pay.parquet"
    pq.write_table(table, path, row_group_size=16)
    with Scratch(tmp_path, "release") as scratch:
        spooled = spool(path, scratch.path)
        assert spooled.missing["region"].total == spooled.missing["coded"].total == 16
        for leaf in range(3):
            assert spooled.table(leaf).native.to_pylist() == table.slice(16 * leaf, 16).to_pylist()
        assert spooled.sample([47, 3, 20]).native.to_pylist() == table.take([47, 3, 20]).to_pylist()
    pq.write_table(table.slice(20, 1), path)
    with Scratch(tmp_path, "release") as scratch:
        spooled = spool(path, scratch.path, columns=["pay"])
        assert (spooled.count, spooled.table(0).native.to_pylist()) == (1, [{"pay": 21.0}])


def test_a_task_that_goes_on_leaves_nothing_behind(tmp_path, monkeypatch):
    """A worker that nobody could stop writes while the folder is removed."""

    def remove(folder, **_):
        listed = [*folder.iterdir()] if folder.exists() else []
        with suppress(OSError):
            write_whole(scratch.path / "price", lambda file: file.write(b"confidential"))
        for file in listed:
            file.unlink()
        with suppress(OSError):
            folder.rmdir()

    with Scratch(tmp_path, "release") as scratch:
        monkeypatch.setattr(shutil, "rmtree", remove)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda each: each.name)
def test_whoever_stops_it_twice_leaves_nothing_behind(tmp_path, monkeypatch, number):
    """The second signal comes while confidential records are being removed."""
    remove = shutil.rmtree

    def disturbed(folder, **told):
        signal.raise_signal(number)
        remove(folder, **told)

    def work():
        with Scratch(tmp_path, "release") as scratch:
            (scratch.path / "price").write_bytes(b"confidential")
            monkeypatch.setattr(shutil, "rmtree", disturbed)
            raise KeyboardInterrupt("first")

    before = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt, match="first"):
            work()
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_begun_is_not_left(tmp_path, monkeypatch):
    def fill(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(scratches, "write_whole", fill)
    with pytest.raises(FileError, match="No space left"), Scratch(tmp_path, "release"):
        pytest.fail("there is room")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_removed_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(scratches, "_PAUSE", 0.0)
    told = pytest.warns(HedgerowWarning, match=r"holds confidential records and could not be removed")
    with told, Scratch(tmp_path, "release") as scratch:
        monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    assert [path.name for path in tmp_path.iterdir()] == [f"{scratch.path.name}-gone"]
