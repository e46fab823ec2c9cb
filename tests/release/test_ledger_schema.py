"""The ledger's file: definitions that somebody added, and backups that lack a head."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from hedgerow.errors import BudgetError, LedgerError, SettingError
from hedgerow.release.ledger import Entry, Ledger, format_head
from hedgerow.release.ledger.schema import STEPS, VERSION

DATA = "a" * 64
OLD = Path(__file__).parent / "ledger_version_1.sql"
NO_ROWS = """
    CREATE TRIGGER a BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END;
    CREATE TRIGGER b BEFORE INSERT ON head BEGIN SELECT RAISE(IGNORE); END;
"""
WRITABLE = "PRAGMA writable_schema = ON; "
ADDED = {
    "triggers that drop rows": NO_ROWS,
    "a trigger on the head": "CREATE TRIGGER a AFTER INSERT ON head BEGIN SELECT 1; END",
    "a view": "CREATE VIEW v AS SELECT 1",
    "a table": "CREATE TABLE t (x)",
    "an index": "CREATE INDEX i ON entries (release)",
    "statistics": "ANALYZE",
    "a column": "ALTER TABLE entries ADD COLUMN x TEXT",
    "a column with another default": WRITABLE
    + "UPDATE sqlite_master SET sql = replace(sql, 'epsilon REAL', 'epsilon REAL DEFAULT 0')",
    "one trigger less": "DROP TRIGGER entries_delete",
    "a trigger that lets updates pass": "DROP TRIGGER entries_update; CREATE TRIGGER entries_update "
    "BEFORE UPDATE ON entries WHEN 0 BEGIN SELECT RAISE(ABORT, 'append-only'); END",
}  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger.open(path) as opened:
        yield opened


def reserve(ledger: Ledger, epsilon: float = 1.0) -> Entry:
    return ledger.reserve(fingerprint=DATA, relation="r", epsilon=epsilon, copies=1, plan="p")


def execute(path: Path, statements: str) -> None:
    raw = sqlite3.connect(path)
    raw.executescript(statements)
    raw.close()


def definitions(path: Path) -> list[tuple[str, ...]]:
    raw = sqlite3.connect(path)
    found = raw.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()
    raw.close()
    return found


@pytest.mark.parametrize("added", ADDED)
def test_a_file_with_other_definitions_is_neither_opened_nor_written_to(
    path: Path, ledger: Ledger, added: str
) -> None:
    ledger.set_budget(1.0, relation="r", fingerprint=DATA)
    before = len(ledger.entries())
    execute(path, ADDED[added])
    for action in (lambda: Ledger.open(path), lambda: reserve(ledger), ledger.verify):
        with pytest.raises(LedgerError, match=r"not those of a ledger: .* was added, changed or removed"):
            action()
    raw = sqlite3.connect(path)
    assert raw.execute("SELECT count(*) FROM entries").fetchone() == (before,)
    raw.close()


def test_a_row_that_is_not_kept_as_written_is_no_record(
    path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should a definition get past the check, what it does to a row is seen before anything relies on it."""
    reserve(ledger)
    monkeypatch.setattr("hedgerow.release.ledger.store.check_tables", lambda *_: None)
    for trigger in (
        NO_ROWS,
        "CREATE TRIGGER a AFTER INSERT ON head BEGIN UPDATE head SET count = 9; END",
        "DROP TRIGGER entries_update; CREATE TRIGGER a AFTER INSERT ON entries "
        "BEGIN UPDATE entries SET epsilon = 0.1 WHERE id = NEW.id; END",
    ):
        execute(path, trigger)
        with pytest.raises(LedgerError, match=r"did not keep a row|head was changed"):
            reserve(ledger)
        execute(path, "DROP TRIGGER a; DROP TRIGGER IF EXISTS b")
        assert len(ledger.entries()) == 1


@pytest.mark.parametrize("version", range(1, VERSION))
def test_every_version_becomes_the_same_file(path: Path, tmp_path: Path, version: int) -> None:
    def write_old() -> None:
        content = OLD.read_text()
        execute(path, content)
        for step in range(2, version + 1):
            execute(path, ";".join(STEPS[step]) + f"; PRAGMA user_version = {step}")
        line = next(line for line in content.splitlines() if line.startswith("-- beside it:"))
        for ending, text in zip((".key", ".head"), line.split("|")[1:], strict=True):
            path.with_name(path.name + ending).write_text(text + "\n")
            path.with_name(path.name + ending).chmod(0o600)

    write_old()
    with Ledger.open(path) as ledger:
        assert ledger.verify() == ()
        assert len(ledger.entries()) == 6
    Ledger.open(tmp_path / "new.db").close()
    assert definitions(path) == definitions(tmp_path / "new.db")
    path.unlink()
    write_old()
    execute(path, NO_ROWS)
    with pytest.raises(LedgerError, match="not those of a ledger"):
        Ledger.open(path)
    assert "withheld" not in definitions(path)[2][3]


@pytest.fixture
def backup(path: Path, tmp_path: Path) -> Path:
    """Database and key of a ledger of two rows, which has a third by now."""
    folder = tmp_path / "backup"
    folder.mkdir()
    with Ledger.open(path) as ledger:
        ledger.set_budget(2.0, relation="r", fingerprint=DATA)
        reserve(ledger)
    for ending in ("", ".key"):
        shutil.copy(f"{path}{ending}", folder)
    with Ledger.open(path) as ledger:
        reserve(ledger)
    return folder / path.name


def test_a_backup_is_taken_up_by_resealing_it(backup: Path) -> None:
    with Ledger.open(backup) as ledger:
        kept = format_head(ledger.head())
        with pytest.raises(LedgerError, match="ledger reseal"):
            reserve(ledger)
        with pytest.raises(SettingError, match="note"):
            ledger.reseal(note=" ")
        entry = ledger.reseal(note="A. Smith: the disk broke", kept=kept)
        assert (entry.event, entry.note) == (
            "resealed",
            "A. Smith: the disk broke (row 2 compared with the head kept elsewhere)",
        )
        assert ledger.verify(kept=kept) == ()
        reserve(ledger)
        with pytest.raises(BudgetError):
            reserve(ledger)
        with pytest.raises(LedgerError, match="Nothing needs resealing"):
            ledger.reseal(note="again")
    with Ledger.open(backup) as ledger:
        assert ledger.verify(kept=kept) == ()
        assert [entry.event for entry in ledger.entries()][-2:] == ["resealed", "reserved"]


def test_a_rollback_is_not_resealed(path: Path, backup: Path) -> None:
    with Ledger.open(path) as ledger:
        kept = format_head(ledger.head())
        assert ledger.verify(kept=kept) == ()
    with Ledger.open(backup) as ledger:
        with pytest.raises(LedgerError, match=r"3 rows were recorded elsewhere.*older copy"):
            ledger.reseal(note="x", kept=kept)
        assert len(ledger.entries()) == 2
        assert not backup.with_name("ledger.db.head").exists()
        ledger.reseal(note="x")  # without a head to compare with nobody can tell
        assert ledger.entries()[-1].note == "x (no head compared)"
        reserve(ledger)
        (problem,) = ledger.verify(kept=kept)  # as many rows, and others
        assert "row 3 is missing here or another" in problem
    shutil.copy(f"{path}.head", f"{backup}.head")
    with (
        pytest.raises(LedgerError, match=r"3 rows were recorded beside the ledger"),
        Ledger.open(backup) as ledger,
    ):
        ledger.reseal(note="x")


def test_an_older_copy_with_its_own_head_is_found_by_the_head_kept_elsewhere(
    path: Path, tmp_path: Path
) -> None:
    with Ledger.open(path) as ledger:
        reserve(ledger)
    older = shutil.copytree(path.parent, tmp_path / "older")
    with Ledger.open(path) as ledger:
        reserve(ledger)
        kept = format_head(ledger.head())
    with Ledger.open(older / path.name) as ledger:
        assert ledger.verify() == ()
        assert len(ledger.verify(kept=kept)) == 1
        for text in ("", "2", "2:abc", f"x:{'0' * 64}", f"-1:{'0' * 64}"):
            with pytest.raises(SettingError, match="COUNT:HASH"):
                ledger.verify(kept=text)


def test_a_changed_backup_is_not_resealed(backup: Path) -> None:
    raw = sqlite3.connect(backup)
    (trigger,) = raw.execute("SELECT sql FROM sqlite_master WHERE name = 'entries_update'").fetchone()
    raw.executescript(f"DROP TRIGGER entries_update; UPDATE entries SET epsilon = 9 WHERE id = 1; {trigger}")
    raw.close()
    with Ledger.open(backup) as ledger, pytest.raises(LedgerError, match="row 1 was changed"):
        ledger.reseal(note="x")


def test_the_commands(hedgerow, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    hedgerow("ledger", "budget", 2, "--dataset", "d", "--relation", "r")
    kept = hedgerow("ledger", "head").out.strip()
    assert kept.startswith("1:")
    assert hedgerow("ledger", "verify", "--head", kept).code == 0
    path.with_name("ledger.sqlite.head").unlink()
    assert "ledger reseal" in hedgerow("ledger", "budget", 3, "--dataset", "d", "--relation", "r").text
    assert hedgerow("ledger", "head").code == 3
    assert hedgerow("ledger", "reseal").code == 2
    done = hedgerow("ledger", "reseal", "--note", "A. Smith: restored", "--head", "2" + kept[1:])
    assert (done.code, "missing here" in done.text) == (3, True)
    assert hedgerow("ledger", "reseal", "--note", "A. Smith: restored", "--head", kept).code == 0
    assert hedgerow("ledger", "verify", "--head", kept).code == 0
    assert hedgerow("ledger", "verify", "--head", "9" + kept[1:]).code == 3
    assert hedgerow("ledger", "verify", "--head", "9").code == 2
    assert hedgerow("ledger", "list").code == 0


@pytest.mark.parametrize("change", ["entries SET hash = 'é'", "entries SET epsilon = 9e999"])
def test_a_value_that_no_row_can_have_is_a_row_that_was_changed(
    path: Path, ledger: Ledger, change: str
) -> None:
    reserve(ledger)
    (guard,) = (step for step in STEPS[1] if "BEFORE UPDATE" in step)
    execute(path, f"DROP TRIGGER entries_update; UPDATE {change}; {guard}")
    assert "row 1 was changed." in ledger.verify()
    with pytest.raises(LedgerError, match="does not verify"):
        reserve(ledger)


def test_a_head_with_another_seal_is_told(path: Path, ledger: Ledger) -> None:
    reserve(ledger)
    execute(path, "UPDATE head SET seal = 'é'")
    with pytest.raises(LedgerError, match="its head was changed"):
        ledger.verify()
