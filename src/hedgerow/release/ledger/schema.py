"""The tables of a ledger, and the check that its file holds nothing else.

A trigger, a view or a changed table could make SQLite drop or alter rows as they are written, and nobody
would need the key for that. So the definitions in the file are compared with those that our own statements
produce, when it is opened and again inside each transaction, before anything in it is relied on.

Version 2 gave the digest of a certificate a column of its own. Until then it stood in the note of a released
row; such rows stay as they are, and `Entry.certificate_digest` finds it in either place. Version 3 added what
an entry's data resembles (`sketch`) and where its release is put (`place`). Version 4 added what a price says
(`bound`, `delta`, `curve`), what the release costs with the outcome withheld (`withheld`), and who looked at
data by which command (`look`, `who`).
"""

import sqlite3
import sys
from collections import Counter
from contextlib import closing
from functools import cache
from pathlib import Path

from hedgerow.errors import LedgerError

# What brings a file to each version from the one before. A new file goes all the way, so that its definitions
# have the same text as those of a file that was written long ago.
STEPS = {
    1: (
        """CREATE TABLE entries (
        id INTEGER PRIMARY KEY, time TEXT NOT NULL, event TEXT NOT NULL, dataset TEXT, fingerprint TEXT,
        relation TEXT, epsilon REAL, copies INTEGER, plan TEXT, release TEXT, note TEXT NOT NULL,
        previous TEXT NOT NULL, hash TEXT NOT NULL
    ) STRICT""",
        """CREATE TABLE head (
        one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL, hash TEXT NOT NULL,
        seal TEXT NOT NULL
    ) STRICT""",
        "CREATE TRIGGER entries_update BEFORE UPDATE ON entries "
        "BEGIN SELECT RAISE(ABORT, 'append-only'); END",
        "CREATE TRIGGER entries_delete BEFORE DELETE ON entries "
        "BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    ),
    2: ("ALTER TABLE entries ADD COLUMN certificate TEXT",),
    3: (
        "ALTER TABLE entries ADD COLUMN sketch TEXT",
        "ALTER TABLE entries ADD COLUMN place TEXT",
    ),
    4: tuple(
        f"ALTER TABLE entries ADD COLUMN {column}"
        for column in ("bound TEXT", "delta REAL", "curve TEXT", "withheld REAL", "look TEXT", "who TEXT")
    ),
}
VERSION = max(STEPS)


def harden(connection: sqlite3.Connection) -> None:
    """Turns off what a definition in the file could run: for definitions that appear after the check."""
    connection.execute("PRAGMA trusted_schema = OFF")
    if sys.version_info >= (3, 12):  # our own triggers stop others; hedgerow never updates or deletes a row
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)


def upgrade(connection: sqlite3.Connection, version: int, to: int = VERSION) -> None:
    """Brings tables of a version (0: none) to a later one, inside a transaction."""
    for step in range(version + 1, to + 1):
        for statement in STEPS[step]:
            connection.execute(statement)


def check_tables(connection: sqlite3.Connection, path: Path, version: int = VERSION) -> None:
    """Raises unless the file defines exactly what a ledger of that version does."""
    there, known = Counter(_definitions(connection)), _known_definitions(version)
    if there != known:
        kind, name = min((there - known) or (known - there), key=repr)[:2]
        raise LedgerError(
            f"{path.name}: its tables are not those of a ledger: {kind} {name!r:.80} was added, changed or "
            "removed. Nothing was written; restore a sound copy, and find out who changed this one."
        )


def _definitions(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()


@cache
def _known_definitions(version: int) -> Counter[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as reference:
        upgrade(reference, 0, version)
        return Counter(_definitions(reference))
