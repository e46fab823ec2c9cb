"""The ledger under honest use, many processes, crashes, damage and tampering."""

import json
import math
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import BudgetError, LedgerError, SettingError
from hedgerow.release.ledger import Entry, Ledger
from hedgerow.release.ledger.accounts import above, below, exact

DATA, OTHER = "a" * 64, "b" * 64
ADP, RANGE = "any record replaced", "one record within its range"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger.open(path) as opened:
        yield opened


def reserve(ledger: Ledger, epsilon: float | None = 1.0, **changes: object) -> Entry:
    values: dict[str, object] = {"fingerprint": DATA, "relation": ADP, "copies": 1, "plan": "p", **changes}
    return ledger.reserve(epsilon=epsilon, **values)  # type: ignore[arg-type]


def test_files_are_the_owners_alone(path: Path, ledger: Ledger) -> None:
    reserve(ledger)
    for file in path.parent.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600, file.name
    assert {"ledger.db", "ledger.db.key", "ledger.db.head"} <= {file.name for file in path.parent.iterdir()}


def test_a_spend_beyond_the_budget_is_refused_with_what_remains(ledger: Ledger) -> None:
    ledger.set_budget(5.0, relation=ADP, fingerprint=DATA)
    reserve(ledger, 3.5, copies=3)
    with pytest.raises(BudgetError, match=r"ε 2\.0 exceeds what remains .* 1\.5 of 5\.0") as caught:
        reserve(ledger, 2.0)
    assert caught.value.remaining == 1.5
    assert len(ledger.entries()) == 2
    reserve(ledger, caught.value.remaining)
    assert ledger.balance()[0].remaining == 0.0


def test_decimal_sums_are_exact(ledger: Ledger) -> None:
    ledger.set_budget(0.3, relation=ADP, fingerprint=DATA)
    for _ in range(3):
        reserve(ledger, 0.1)  # in binary 0.1 + 0.1 + 0.1 > 0.3
    with pytest.raises(BudgetError):
        reserve(ledger, 5e-324)


@settings(max_examples=200, deadline=None)
@given(st.fractions(min_value=0, max_value=1000))
def test_rounding_is_towards_privacy(amount: Fraction) -> None:
    assert exact(below(amount)) <= amount <= exact(above(amount))
    assert exact(math.nextafter(below(amount), math.inf)) > amount


def test_nothing_spent_is_no_negative_zero() -> None:
    assert math.copysign(1.0, above(Fraction(0))) == 1.0


@settings(max_examples=50, deadline=None)
@given(
    budget=st.floats(0.01, 10),
    spends=st.lists(st.floats(1e-3, 4), max_size=20),
)
def test_the_sum_never_exceeds_the_budget(
    tmp_path_factory: pytest.TempPathFactory, budget: float, spends: list[float]
) -> None:
    with Ledger.open(tmp_path_factory.mktemp("l") / "l.db") as ledger:
        ledger.set_budget(budget, relation=ADP, fingerprint=DATA)
        total = Fraction(0)
        for epsilon in spends:
            if total + exact(epsilon) <= exact(budget):
                reserve(ledger, epsilon)
                total += exact(epsilon)
                continue
            with pytest.raises(BudgetError) as caught:
                reserve(ledger, epsilon)
            assert total + exact(caught.value.remaining) <= exact(budget)
        assert total <= exact(budget)


def test_relations_are_separate_accounts(ledger: Ledger) -> None:
    ledger.set_budget(1.0, relation=ADP, fingerprint=DATA)
    reserve(ledger, 1.0)
    reserve(ledger, 7.0, relation=RANGE)
    with pytest.raises(BudgetError):
        reserve(ledger, 0.1)
    spent = {b.relation: (b.spent, b.budget) for b in ledger.balance()}
    assert spent == {ADP: (1.0, 1.0), RANGE: (7.0, None)}


def test_a_name_groups_versions_under_one_budget(ledger: Ledger) -> None:
    ledger.set_budget(2.0, relation=ADP, dataset="payroll")
    reserve(ledger, 1.0, dataset="payroll")
    reserve(ledger, 1.0, dataset="payroll", fingerprint=OTHER)
    with pytest.raises(BudgetError, match="'payroll'"):
        reserve(ledger, 0.5, dataset="payroll", fingerprint="c" * 64)
    # Leaving the name out, or using another, is no way around it.
    with pytest.raises(BudgetError, match="'payroll'"):
        reserve(ledger, 0.5)
    with pytest.raises(LedgerError, match="already recorded as dataset 'payroll', not 'fresh'"):
        reserve(ledger, 0.5, dataset="fresh")


def test_a_name_takes_over_what_its_data_spent_unnamed(ledger: Ledger) -> None:
    reserve(ledger, 1.0)
    ledger.set_budget(1.2, relation=ADP, dataset="payroll")
    with pytest.raises(BudgetError) as caught:
        reserve(ledger, 0.5, dataset="payroll")
    assert caught.value.remaining == 0.2
    reserve(ledger, 0.2, dataset="payroll")
    (balance,) = ledger.balance()
    assert (balance.dataset, balance.spent, balance.releases) == ("payroll", 1.2, 2)


def test_the_last_budget_counts_and_may_be_below_what_is_spent(ledger: Ledger) -> None:
    ledger.set_budget(1.0, relation=ADP, dataset="d")
    reserve(ledger, 1.0, dataset="d")
    ledger.set_budget(3.0, relation=ADP, dataset="d")
    reserve(ledger, 1.0, dataset="d")
    ledger.set_budget(1.5, relation=ADP, dataset="d")
    (balance,) = ledger.balance(dataset="d")
    assert (balance.budget, balance.spent, balance.remaining) == (1.5, 2.0, 0.0)


def test_a_release_without_a_claim_bounds_nothing(ledger: Ledger) -> None:
    reserve(ledger, None)
    assert math.isinf(ledger.balance()[0].spent)
    assert ledger.export()["accounts"][0]["spent"] is None
    ledger.set_budget(100.0, relation=ADP, fingerprint=DATA)
    with pytest.raises(BudgetError) as caught:
        reserve(ledger, 0.1)
    assert caught.value.remaining == 0.0
    ledger.set_budget(1.0, relation=RANGE, fingerprint=DATA)
    with pytest.raises(BudgetError, match="claims no ε"):
        reserve(ledger, None, relation=RANGE)


def test_states_are_new_rows(ledger: Ledger) -> None:
    ledger.set_budget(3.0, relation=ADP, fingerprint=DATA)
    out, lost, gone = (reserve(ledger).release or "" for _ in range(3))
    assert [e.release for e in ledger.pending()] == [out, lost, gone]
    ledger.confirm(out)
    ledger.settle(lost, "spent")
    with pytest.raises(SettingError, match="void needs a note"):
        ledger.settle(gone, "void")
    ledger.settle(gone, "void", note="J. Doe: the folder was never renamed")
    assert ledger.pending() == []
    assert [e.event for e in ledger.entries()] == ["budget", *["reserved"] * 3, "released", "spent", "void"]
    assert ledger.balance()[0].remaining == 1.0
    for action in (lambda: ledger.confirm(gone), lambda: ledger.settle(out, "void", note="x")):
        with pytest.raises(LedgerError, match="closed already, as"):
            action()
    with pytest.raises(LedgerError, match="not in the ledger"):
        ledger.confirm("unheard")
    with pytest.raises(LedgerError, match="in the ledger already"):
        reserve(ledger, release=out)
    assert ledger.verify() == ()
    assert json.loads(json.dumps(ledger.export()))["head"]["count"] == 7


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.0}, {"epsilon": -1.0}, {"epsilon": math.nan}, {"epsilon": math.inf}, {"copies": 0},
        {"relation": ""}, {"relation": " x"}, {"fingerprint": "payroll"}, {"dataset": ""}, {"dataset": DATA},
    ],
)  # fmt: skip
def test_bad_settings(ledger: Ledger, change: dict[str, object]) -> None:
    with pytest.raises(SettingError):
        reserve(ledger, **{"epsilon": 1.0, **change})  # type: ignore[arg-type]
    assert ledger.entries() == []


def test_rows_cannot_be_changed_by_sql(path: Path, ledger: Ledger) -> None:
    reserve(ledger)
    with sqlite3.connect(path) as raw:
        for statement in ("UPDATE entries SET epsilon = 0.1", "DELETE FROM entries"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                raw.execute(statement)
    raw.close()


TAMPERINGS = {
    "changed": "UPDATE entries SET epsilon = 0.5 WHERE id = 2",
    "time": "UPDATE entries SET time = '2001-01-01T00:00:00.000000Z' WHERE id = 3",
    "removed": "DELETE FROM entries WHERE id = 2",
    "removed and renumbered": "DELETE FROM entries WHERE id = 2; UPDATE entries SET id = id - 1 WHERE id > 2",
    "first": "DELETE FROM entries WHERE id = 1; UPDATE entries SET id = id - 1",
    "swapped": "UPDATE entries SET id = -1 WHERE id = 2; UPDATE entries SET id = 2 WHERE id = 3; "
    "UPDATE entries SET id = 3 WHERE id = -1",
    "cut off": "DELETE FROM entries WHERE id = 4",
    "emptied": "DELETE FROM entries",
    "inserted": "CREATE TEMP TABLE t AS SELECT * FROM entries WHERE id = 4; UPDATE t SET id = 5; "
    "INSERT INTO entries SELECT * FROM t",
}


def tamper(path: Path, statements: str) -> None:
    """Changes rows as somebody would who knows the tables: the triggers in the way are put back."""
    raw = sqlite3.connect(path)
    triggers = raw.execute("SELECT sql || ';' FROM sqlite_master WHERE type = 'trigger'").fetchall()
    raw.executescript(f"DROP TRIGGER entries_update; DROP TRIGGER entries_delete; {statements};")
    raw.executescript("".join(sql for (sql,) in triggers))
    raw.close()


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_found_and_stops_spending(path: Path, name: str) -> None:
    with Ledger.open(path) as ledger:
        for _ in range(4):
            reserve(ledger)
        assert ledger.verify() == ()
    tamper(path, TAMPERINGS[name])
    with Ledger.open(path) as ledger:
        assert ledger.verify() != ()
        with pytest.raises(LedgerError, match="does not verify"):
            reserve(ledger)


def test_a_cut_tail_is_found_even_with_an_older_head_inside(path: Path, tmp_path: Path) -> None:
    with Ledger.open(path) as ledger:
        reserve(ledger)
    older = tmp_path / "older.db"
    shutil.copy(path, older)
    with Ledger.open(path) as ledger:
        reserve(ledger)
    shutil.copy(older, path)  # a sound ledger of yesterday
    with pytest.raises(LedgerError, match=r"1 rows, but 2 were recorded"):
        Ledger.open(path)


def test_a_forged_head_is_found(path: Path) -> None:
    with Ledger.open(path) as ledger:
        reserve(ledger)
        reserve(ledger)
        first = ledger.entries()[0]
    tamper(path, f"DELETE FROM entries WHERE id = 2; UPDATE head SET count = 1, hash = '{first.hash}'")
    with pytest.raises(LedgerError, match="head was changed"):
        Ledger.open(path)


def test_a_head_that_lags_behind_is_sound_and_a_missing_one_is_told(path: Path, ledger: Ledger) -> None:
    head = path.with_name("ledger.db.head")
    reserve(ledger)
    before = head.read_text()
    reserve(ledger)
    head.write_text(before)  # killed between commit and writing the head
    assert ledger.verify() == ()
    reserve(ledger)
    assert head.read_text().startswith("3 ")
    head.unlink()
    (problem,) = ledger.verify()
    assert "the .head file beside the ledger is gone" in problem
    assert "ledger reseal" in problem
    with pytest.raises(LedgerError, match="head file beside the ledger is gone"):
        reserve(ledger)


def test_keys(path: Path) -> None:
    with Ledger.open(path) as ledger:
        reserve(ledger)
    key = path.with_name("ledger.db.key")
    right = key.read_text()
    key.unlink()
    with pytest.raises(LedgerError, match="the key is gone, but the ledger has 1 rows"):
        Ledger.open(path)
    assert not key.exists()
    key.write_text("0" * 64)
    key.chmod(0o600)
    with pytest.raises(LedgerError, match="not this ledger's key"):
        Ledger.open(path)
    key.write_text("short")
    with pytest.raises(LedgerError, match="not a ledger key"):
        Ledger.open(path)
    key.write_text(right)
    key.chmod(0o644)
    with pytest.raises(LedgerError, match=r"mode 644 .*chmod 600"):
        Ledger.open(path)
    key.chmod(0o600)
    Ledger.open(path).close()


def test_damaged_and_foreign_files(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"not a ledger at all, but long enough to be looked at" * 100)
    with pytest.raises(LedgerError, match="not a ledger, or damaged"):
        Ledger.open(path)
    foreign = tmp_path / "foreign.db"
    raw = sqlite3.connect(foreign)
    raw.execute("CREATE TABLE t (x)")
    raw.commit()
    raw.close()
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger.open(foreign)
    with pytest.raises(LedgerError, match="folder of the ledger does not exist"):
        Ledger.open(tmp_path / "no" / "l.db")
    with pytest.raises(LedgerError):
        Ledger.open(tmp_path)


def test_damage_in_the_middle(path: Path) -> None:
    with Ledger.open(path) as ledger:
        for _ in range(60):
            reserve(ledger, note="x" * 500)
    content = bytearray(path.read_bytes())
    content[8192:20000] = os.urandom(20000 - 8192)
    path.write_bytes(content)
    with pytest.raises(LedgerError):
        reserve(Ledger.open(path))


def test_a_ledger_that_is_gone_is_not_begun_anew(path: Path) -> None:
    with Ledger.open(path) as ledger:
        reserve(ledger)
    path.unlink()
    with pytest.raises(LedgerError, match="the ledger is gone"):
        Ledger.open(path)


def test_a_locked_ledger(path: Path) -> None:
    with Ledger.open(path, timeout=0.5) as ledger:
        reserve(ledger)
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerError, match=r"locked by another process for more than 0\.5 s"):
            reserve(ledger)
        holder.execute("ROLLBACK")
        holder.close()
        reserve(ledger)
        assert ledger.verify() == ()


def fill(ledger: Ledger) -> None:
    for _ in range(100):
        reserve(ledger, note="x" * 300)


def test_no_room(path: Path) -> None:
    with Ledger.open(path) as ledger:
        reserve(ledger)
        pages = ledger._connection.execute("PRAGMA page_count").fetchone()[0]
        ledger._connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(LedgerError, match="no room left"):
            fill(ledger)
        count = len(ledger.entries())
        assert ledger.verify() == ()
        ledger._connection.execute("PRAGMA max_page_count = 1000000")
        reserve(ledger)
        assert len(ledger.entries()) == count + 1
        assert ledger.verify() == ()


def test_a_folder_without_rights() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        with Ledger.open(folder / "l.db") as ledger:
            reserve(ledger)
        folder.chmod(0o555)
        code = (
            "import os, sys\n"
            "from hedgerow.release.ledger import Ledger\n"
            "from hedgerow.errors import LedgerError\n"
            "if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"
            "for name in ('l.db', 'new.db'):\n"
            "    try: Ledger.open(sys.argv[1] + '/' + name); print('opened')\n"
            "    except LedgerError as error: print(error)\n"
        )
        said = subprocess.run(
            [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, env=child_env()
        )
        lines = said.stdout.splitlines()
        assert len(lines) == 2, said.stderr
        assert all("needs a folder to write to" in line for line in lines[1:]), lines
        if os.geteuid() == 0:  # the ledger itself belongs to somebody else
            assert "needs a folder to write to" in lines[0]
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def child_env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}


def _release(arguments: tuple[Path, int]) -> list[str]:
    path, worker = arguments
    done = []
    for index in range(8):
        with Ledger.open(path, timeout=60) as ledger:  # as long as a busy machine may take over 16 of them
            try:
                entry = reserve(ledger, 0.1, note=f"{worker}/{index}")
            except BudgetError:
                continue
            ledger.confirm(entry.release or "")
            done.append(entry.release or "")
    return done


@pytest.mark.slow
def test_sixteen_processes_against_one_budget(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.set_budget(10.0, relation=ADP, fingerprint=DATA)
    with ProcessPoolExecutor(16, mp_context=multiprocessing.get_context("spawn")) as pool:
        results = list(pool.map(_release, [(path, worker) for worker in range(16)]))
    done = [release for releases in results for release in releases]
    assert len(done) == len(set(done)) == 100  # of 128 tries of 0.1 each, the budget covers exactly 100
    with Ledger.open(path) as ledger:
        assert ledger.verify() == ()
        assert ledger.pending() == []
        assert {e.release for e in ledger.entries() if e.event == "released"} == set(done)
        (balance,) = ledger.balance()
        assert (balance.spent, balance.remaining) == (10.0, 0.0)


def _begin(path: Path) -> str:
    with Ledger.open(path) as ledger:
        return reserve(ledger).release or ""


def test_processes_that_begin_a_ledger_together(tmp_path: Path) -> None:
    """Nobody may make a second key or lose the first rows."""
    paths = [tmp_path / f"{i}.db" for i in range(6) for _ in range(4)]
    with ProcessPoolExecutor(8, mp_context=multiprocessing.get_context("spawn")) as pool:
        made = list(pool.map(_begin, paths))
    assert len(set(made)) == 24
    for i in range(6):
        with Ledger.open(tmp_path / f"{i}.db") as ledger:
            assert len(ledger.entries()) == 4
            assert ledger.verify() == ()


_LOOP = """
import sys
from hedgerow.release.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
print("ready", flush=True)
while True:
    release = ledger.reserve(
        fingerprint="a" * 64, relation="r", epsilon=0.25, copies=1, plan="p").release
    print("reserved", release, flush=True)
    ledger.confirm(release)
    print("released", release, flush=True)
"""


def test_killed_at_any_moment(path: Path) -> None:
    """What was told as recorded is recorded, the chain is sound, and what hangs can be settled."""
    rng = random.Random(4)
    told: list[tuple[str, str]] = []
    for _ in range(16):
        child = subprocess.Popen(
            [sys.executable, "-c", _LOOP, str(path)], stdout=subprocess.PIPE, text=True, env=child_env()
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        seen = [child.stdout.readline() for _ in range(rng.randrange(6))]
        time.sleep(rng.uniform(0, 0.02))
        child.send_signal(signal.SIGKILL)
        lines = [line.split() for line in ("".join(seen) + child.stdout.read()).split("\n")[:-1]]
        told += [(event, release) for event, release in lines]
        child.wait()
        child.stdout.close()
        with Ledger.open(path) as ledger:
            assert ledger.verify() == ()
            entries = {(e.event, e.release) for e in ledger.entries()}
            assert set(told) <= entries
            for entry in ledger.pending():
                ledger.settle(entry.release or "", "spent")
            assert ledger.pending() == []
    assert {event for event, _ in told} == {"reserved", "released"}


def count_calls(action: Callable[[], object]) -> int:
    """How many functions Python calls: work done, whatever else the machine is doing."""
    calls = [0]

    def count(frame: object, event: str, argument: object) -> None:
        calls[0] += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls[0]


@pytest.mark.slow
def test_a_long_ledger_stays_quick(ledger: Ledger) -> None:
    """Ten times the entries take at most about ten times the work of reserving."""
    work = []
    for first, last in ((0, 500), (500, 5000)):
        with ledger._transaction() as rows:
            for index in range(first, last):
                ledger._add(rows, "reserved", fingerprint=DATA, relation=ADP, epsilon=0.1, release=str(index))
        work.append(count_calls(lambda: ledger.check(fingerprint=DATA, relation=ADP, epsilon=0.1)))
    assert work[1] < 12 * work[0]
    assert ledger.balance()[0].spent == 500.0


RECORDED = "c" * 64


@pytest.fixture
def old_ledger(path: Path) -> Path:
    """A ledger as hedgerow wrote it when digests stood in notes: version 1, six rows."""
    content = (Path(__file__).parent / "ledger_version_1.sql").read_text()
    _, key, head = next(line for line in content.splitlines() if line.startswith("-- beside it:")).split("|")
    connection = sqlite3.connect(path)
    connection.executescript(content)
    connection.close()
    for ending, text in ((".key", key), (".head", head)):
        file = path.with_name(path.name + ending)
        file.write_text(text.strip() + "\n")
        file.chmod(0o600)
    return path


def test_a_ledger_written_before_is_opened_verified_and_continued(old_ledger: Path) -> None:
    with Ledger.open(old_ledger) as ledger:
        assert ledger.verify() == ()
        before = ledger.entries()
        assert len(before) == 6
        assert {entry.certificate for entry in before} == {None}
        released = [entry.certificate_digest for entry in before if entry.event == "released"]
        assert released == [RECORDED, RECORDED]
        ledger.confirm("3" * 16, certificate="e" * 64, note="certificate " + RECORDED)
        assert ledger.entries()[-1].certificate_digest == "e" * 64
    with Ledger.open(old_ledger) as ledger:
        assert ledger.verify() == ()
        assert ledger.entries()[:6] == before
        assert ledger.balance()[0].remaining == 4.0


def test_the_chain_covers_every_column_that_came_later(old_ledger: Path) -> None:
    with Ledger.open(old_ledger) as ledger:
        ledger.confirm("3" * 16, certificate="e" * 64)
        with ledger._transaction() as rows:
            ledger._add(rows, "reserved", sketch="[1]", place="release")
    changes = [("certificate", 7, None), ("certificate", 7, "d" * 64), ("certificate", 3, RECORDED)]
    changes += [("sketch", 8, None), ("sketch", 8, "[2]"), ("sketch", 3, "[1]"), ("place", 8, "[1]")]
    changes += [("sketch = place, place", 8, "[1]"), ("place = NULL, certificate", 8, "release")]
    for column, row, value in changes:
        changed = shutil.copytree(old_ledger.parent, old_ledger.parent.parent / f"{column} {row} {value}")
        shown = "NULL" if value is None else f"'{value}'"
        tamper(changed / old_ledger.name, f"UPDATE entries SET {column} = {shown} WHERE id = {row}")
        with Ledger.open(changed / old_ledger.name) as ledger:
            assert f"row {row} was changed." in ledger.verify(), (column, row, value)


def test_a_digest_is_a_digest(ledger: Ledger) -> None:
    release = reserve(ledger).release
    with pytest.raises(SettingError, match="64 hex digits"):
        ledger.confirm(str(release), certificate="settled by hand")
    assert len(ledger.pending()) == 1
