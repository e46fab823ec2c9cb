"""The files of a ledger: its database, its key, how each is put in place, and their errors in words."""

import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hedgerow.errors import LedgerError, reason_of
from hedgerow.release.ledger.schema import VERSION, check_tables, harden, upgrade

_KEY_BYTES = 32
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
    sqlite3.SQLITE_IOERR: "the ledger's files cannot be read or written. Nothing was written; see whether "
    "the disk is full, file sizes are limited (ulimit -f) or the folder is on a network.",
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
    except UnicodeEncodeError:
        raise LedgerError(
            "A name or a note for the ledger is not UTF-8 text. Nothing was written; type it as UTF-8."
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

    harden(connection)
    # Only the first opener changes the mode.
    if execute_in_turn(connection, "PRAGMA journal_mode", timeout).fetchone()[0] != "wal":
        execute_in_turn(connection, "PRAGMA journal_mode = WAL", timeout)
    connection.execute("PRAGMA synchronous = FULL")  # a spend survives a power cut before copies are shown
    if 0 <= ask("PRAGMA user_version") < VERSION:
        connection.execute("BEGIN IMMEDIATE")
        version = ask("PRAGMA user_version")  # another process may have been quicker
        if version == 0 and ask("SELECT count(*) FROM sqlite_master"):
            raise LedgerError(f"{path.name}: an SQLite file, but not a ledger. Choose another file name.")
        if 0 < version < VERSION:
            check_tables(connection, path, version)
        if version < VERSION:
            upgrade(connection, version)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    if (version := ask("PRAGMA user_version")) != VERSION:
        raise LedgerError(
            f"{path.name}: ledger version {version}; this hedgerow knows {VERSION}. Update hedgerow."
        )
    check_tables(connection, path)
    return ask("SELECT count(*) FROM entries")
