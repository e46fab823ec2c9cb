"""The tables of a ledger file, and how a file comes to have them.

Version 2 gave the digest of a certificate a column of its own. Until then it stood in the note of a released
row; such rows stay as they are, and `Entry.certificate_digest` finds it in either place.
"""

import sqlite3
import time
from pathlib import Path

from hedgerow.errors import LedgerError

_VERSION = 2
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
# What brings a file from each version to the newest; a new file begins at 0.
_STEPS = {0: _VERSION_1 + _VERSION_2, 1: _VERSION_2}


def prepare(connection: sqlite3.Connection, path: Path, timeout: float) -> int:
    """Brings the file into shape and returns its number of rows."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            # Only the first opener changes the mode; SQLite does not wait by itself while doing so.
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    connection.execute("PRAGMA synchronous = FULL")  # a spend survives a power cut before copies are shown
    version = _version(connection)
    if version in _STEPS:
        connection.execute("BEGIN IMMEDIATE")
        version = _version(connection)  # another process may have been quicker
        if version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
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
    return int(connection.execute("SELECT count(*) FROM entries").fetchone()[0])


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
