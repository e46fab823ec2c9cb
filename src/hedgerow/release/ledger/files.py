"""The files of a ledger: its tables, its key, how each is put in place, and their errors in words.

Version 2 of the tables gave the digest of a certificate a column of its own. Until then it stood in the note
of a released row; such rows stay as they are, and `Entry.certificate_digest` finds it in either place.
Version 3 added the sketch of the data.
"""

import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hedgerow.errors import LedgerError, reason_of

_KEY_BYTES = 32
_VERSION = 3
_VERSION_1 = (
    """CREATE TABLE entries (
        id INTEGER PRIMARY KEY, time TEXT NOT NULL, event TEXT NOT NULL, dataset TEXT, fingerprint TEXT,
        relation TEXT, epsilon REAL, copies INTEGER, plan TEXT, release TEXT, note TEXT NOT NULL,
        previous TEXT NOT NULL, hash TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE head (
        one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL, hash TEXT NOT NULL,
        seal TEXT NOT NULL
    ) STRICT""",
    "CREATE TRIGGER entries_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TRIGGER entries_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END",
)
_VERSION_2 = ("ALTER TABLE entries ADD COLUMN certificate TEXT",)
_VERSION_3 = ("ALTER TABLE entries ADD COLUMN sketch TEXT",)
# What brings a file from each version to the newest; a new file begins at 0.
_STEPS = {0: _VERSION_1 + _VERSION_2 + _VERSION_3, 1: _VERSION_2 + _VERSION_3, 2: _VERSION_3}

_LOCKED = (
    "the ledger was locked by another process for more than {timeout:g} s. Nothing was written; find the "
    "process that holds it, and try again."
)
_DAMAGED = "not a ledger, or damaged. Restore it, its .key and its .head from a backup."
_NO_RIGHTS = "the ledger cannot be opened for writing. It needs a folder to write to."
_WORDS = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_FULL: "no room left for the ledger. Nothing was written; free some room.",
    sqlite3.SQLITE_READONLY: _NO_RIGHTS,
    sqlite3.SQLITE_CANTOPEN: _NO_RIGHTS,
    sqlite3.SQLITE_PERM: _NO_RIGHTS,
}


@contextmanager
def explaining_errors(path: Path, timeout: float) -> Iterator[None]:
    """Errors of the file and of SQLite, told as `LedgerError`."""
    try:
        yield
    except OSError as error:
        raise LedgerError(
            f"{path.name}: {reason_of(error)}. The ledger needs a folder to write to."
        ) from None
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "error")
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        why = _WORDS.get(code, f"SQLite says {name}. Nothing was written.")
        raise LedgerError(f"{path.name}: {why.format(timeout=timeout)}") from None


def read_optional(path: Path) -> str | None:
    """The text of a file, or None where there is no file."""
    try:
        return path.read_text("ascii")
    except FileNotFoundError:
        return None
    except UnicodeError:
        return ""  # no content that any check accepts


def write_whole(path: Path, content: str, *, replace: bool) -> None:
    """Puts a whole file of mode 0600 in place; unless it is to `replace` one, the first writer wins."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            draft.replace(path)
        else:
            with suppress(FileExistsError):  # which a rename would not raise
                path.hardlink_to(draft)
    finally:
        draft.unlink(missing_ok=True)


def ledger_key(path: Path, *, rows: int) -> bytes:
    """The key of the ledger at `path`; a new one if the ledger has no rows yet."""
    file = path.with_name(path.name + ".key")
    if not file.exists() and rows:
        raise LedgerError(
            f"{file.name}: the key is gone, but the ledger has {rows} rows. Without it they can be neither "
            "checked nor matched to data: restore the key from a backup."
        )
    if not file.exists():
        write_whole(file, secrets.token_hex(_KEY_BYTES) + "\n", replace=False)
    mode = file.stat().st_mode & 0o777
    if mode & 0o077:
        raise LedgerError(f"{file.name}: mode {mode:03o} lets others read the key. Run chmod 600 on it.")
    with suppress(ValueError):
        key = bytes.fromhex(read_optional(file) or "")
        if len(key) == _KEY_BYTES:
            return key
    raise LedgerError(
        f"{file.name}: not a ledger key ({2 * _KEY_BYTES} hex digits). Restore it from a backup."
    )


def execute_in_turn(connection: sqlite3.Connection, statement: str, timeout: float) -> sqlite3.Cursor:
    """Executes a statement for which the file must be free, after waiting for other processes.

    SQLite's own waiting asks ever more rarely, so that newcomers pass those who waited long; while the mode
    of the journal changes it does not wait at all. Here the longer one waits the oftener one asks, and
    sixteen processes take turns.
    """
    start = time.monotonic()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                return connection.execute(statement)
            except sqlite3.OperationalError as error:
                waited = time.monotonic() - start
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or waited > timeout:
                    raise
                time.sleep(max(0.0005, 0.02 / (1 + 50 * waited)))
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(1000 * timeout)}")


def prepare_tables(connection: sqlite3.Connection, path: Path, timeout: float) -> int:
    """Brings the file to the newest version and returns its number of rows."""

    def ask(query: str) -> int:
        return int(connection.execute(query).fetchone()[0])

    # Only the first opener changes the mode.
    if execute_in_turn(connection, "PRAGMA journal_mode", timeout).fetchone()[0] != "wal":
        execute_in_turn(connection, "PRAGMA journal_mode = WAL", timeout)
    connection.execute("PRAGMA synchronous = FULL")  # a spend survives a power cut before copies are shown
    version = ask("PRAGMA user_version")
    if version in _STEPS:
        connection.execute("BEGIN IMMEDIATE")
        version = ask("PRAGMA user_version")  # another process may have been quicker
        if version == 0 and ask("SELECT count(*) FROM sqlite_master"):
            connection.execute("ROLLBACK")
            raise LedgerError(f"{path.name}: an SQLite file, but not a ledger. Choose another file name.")
        for statement in _STEPS.get(version, ()):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    elif version != _VERSION:
        raise LedgerError(
            f"{path.name}: ledger version {version}; this hedgerow knows {_VERSION}. Update hedgerow."
        )
    return ask("SELECT count(*) FROM entries")
