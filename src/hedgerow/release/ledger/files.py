"""The files around a ledger: its key, how they are put in place, and their errors in words."""

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hedgerow.errors import LedgerError

_KEY_BYTES = 32


def sidecar_path(path: Path, ending: str) -> Path:
    """The file that goes with the ledger."""
    return path.with_name(path.name + ending)


def read_optional(path: Path) -> str | None:
    """The text of a file, or None where there is no file."""
    try:
        return path.read_text("ascii")
    except FileNotFoundError:
        return None
    except UnicodeError:
        return ""  # no content that any check accepts


def write_whole(path: Path, content: str, *, replace: bool) -> bool:
    """Puts a whole file of mode 0600 in place; False if another was there first and is not to be replaced."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            draft.replace(path)
            return True
        try:
            path.hardlink_to(draft)  # unlike a rename it fails where a file is: the first writer wins
        except FileExistsError:
            return False
        return True
    finally:
        draft.unlink(missing_ok=True)


def ledger_key(path: Path, *, rows: int) -> bytes:
    """The key of the ledger at `path`; a new one if the ledger has no rows yet."""
    file = sidecar_path(path, ".key")
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
    try:
        key = bytes.fromhex(read_optional(file) or "")
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise LedgerError(
            f"{file.name}: not a ledger key ({2 * _KEY_BYTES} hex digits). Restore it from a backup."
        )
    return key


@contextmanager
def explaining_errors(path: Path, timeout: float) -> Iterator[None]:
    """Errors of the file and of SQLite, told as `LedgerError`."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise LedgerError(f"{path.name}: {_explain(error, timeout)}") from None


def _explain(error: OSError | sqlite3.Error, timeout: float) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return (
            f"the ledger was locked by another process for more than {timeout:g} s. Nothing was written; "
            "find the process that holds it, and try again."
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return "not a ledger, or damaged. Restore it, its .key and its .head from a backup."
    if code == sqlite3.SQLITE_FULL:
        return "no room left for the ledger. Nothing was written; free some room."
    if isinstance(error, OSError):
        return f"{os.strerror(error.errno or 5)}. The ledger needs a folder to write to."
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return "the ledger cannot be opened for writing. It needs a folder to write to."
    return f"SQLite says {getattr(error, 'sqlite_errorname', 'error')}. Nothing was written."
