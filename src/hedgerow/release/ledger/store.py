"""The file of the ledger: rows that are only ever added, chained and sealed under a secret key.

Each row carries the hash of the one before, and the hash is an HMAC: without the key no row can be changed,
inserted, removed or reordered without `verify` finding it. Removing rows at the end leaves a sound chain,
so the number of rows and the last hash are kept twice more, sealed as well: in the file, and in a `.head`
file beside it that is written after each commit. Not detectable from here: somebody who puts back an older
copy of the ledger together with its older `.head`, and anybody who holds the key. Keep `head()` elsewhere
and pass it to `verify` to detect the first.

A backup of the database and its key has no `.head`, as a ledger has none whose `.head` was removed to hide a
rollback. Neither can be written to until `reseal` says so in a row of its own, with a note and, where one was
kept elsewhere, after a comparison with the head.

SQLite's write-ahead log needs a local disk; do not keep a ledger on a network share.
"""

import hmac
import json
import math
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, astuple, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from hedgerow.errors import LedgerError, SettingError
from hedgerow.release.ledger import files
from hedgerow.release.ledger.schema import check_tables

_FIRST = "0" * 64


@dataclass(frozen=True)
class Entry:
    """One row of the ledger."""

    id: int
    time: str  # UTC, ISO 8601
    event: str  # budget, reserved, publishing, released, spent, void, looked, resealed, named, …
    dataset: str | None = None
    fingerprint: str | None = None
    relation: str | None = None  # neighbour relation: the account that pays
    epsilon: float | None = None  # over all copies; None: nothing is claimed, so nothing bounds it
    copies: int | None = None
    plan: str | None = None  # digest
    release: str | None = None
    certificate: str | None = None  # digest, where copies are out; rows of version 1 have it in their note
    sketch: str | None = None  # samples of the data's cells, blinded, as JSON (see `sketch`)
    place: str | None = None  # of the release folder, as a file: address
    bound: str | None = None  # what kind of ε this is; None: a row that says nothing but ε
    delta: float | None = None  # that ε comes with, over all copies
    curve: str | None = None  # Rényi divergences by order, as JSON (see `charges`)
    withheld: float | None = None  # what the release costs with an outcome withheld, if that is not ε
    look: str | None = None  # the command that showed something of the data
    who: str | None = None  # the user that gave it
    note: str = ""
    previous: str = _FIRST
    hash: str = ""

    @property
    def certificate_digest(self) -> str | None:
        """SHA-256 of the certificate that went out with the copies, wherever this row keeps it."""
        in_note = re.match(r"certificate ([0-9a-f]{64})(?:; |$)", self.note)
        return self.certificate or (in_note[1] if in_note and self.event == "released" else None)


_COLUMNS = ", ".join(field.name for field in fields(Entry))
_PLACES = ", ".join("?" for _ in fields(Entry))
_LATER = ("sketch", "place", "bound", "delta", "curve", "withheld", "look", "who")
_HEADLESS = "the .head file beside the ledger is gone (a backup without one: see hedgerow ledger reseal)."


class Store:
    """An open ledger file and its key: what every ledger can say of its rows."""

    def __init__(self, path: Path, connection: sqlite3.Connection, key: bytes, timeout: float) -> None:
        self._path = path
        self._connection = connection
        self.timeout = timeout  # seconds; who has much to lose raises it
        self._data_key = hmac.digest(key, b"hedgerow ledger data", "sha256")
        self._chain = hmac.digest(key, b"hedgerow ledger chain", "sha256")
        self._head_path = path.with_name(path.name + ".head")

    @classmethod
    def open(cls, path: str | Path, *, timeout: float = 5.0) -> Self:
        """Opens the ledger file, or begins one; waits up to `timeout` seconds for other processes."""
        if not 0 < timeout < math.inf:
            raise SettingError(f"timeout must be a number of seconds above 0, got {timeout}. Use 5.")
        path = Path(path)
        with files.explaining_errors(path, timeout), ExitStack() as undo:
            # Before the rows, which can only be newer.
            head = files.read_optional(path.with_name(path.name + ".head"))
            if not path.parent.is_dir():
                raise LedgerError(f"{path.name}: the folder of the ledger does not exist. Create it first.")
            if not path.exists() and not (head or "0 ").startswith("0 "):
                raise LedgerError(
                    f"{path.name}: the ledger is gone, but its .head file is here. Restore the ledger; begin "
                    "a new one under another name only if nothing of this one was ever released."
                )
            # The file is made before SQLite opens it, so that its log files take over the same mode.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            connection = sqlite3.connect(path, timeout=timeout, isolation_level=None)
            undo.callback(connection.close)
            rows = files.prepare_tables(connection, path, timeout)
            store = cls(path, connection, files.ledger_key(path, rows=rows), timeout)
            count, last = store.head()
            if head is None and count == 0:
                # It exists before the first row does, so that rows without it are always a sign of trouble.
                store._write_head(0, last)
            recorded = 0 if head is None else store._parse_head(head)[0]
            if recorded > count:
                raise LedgerError(
                    f"{path.name}: {count} rows, but {recorded} were recorded. Rows are missing, or an older "
                    "copy was put back. Restore the newest copy."
                )
            undo.pop_all()
        return store

    def _explaining_errors(self) -> AbstractContextManager[None]:
        return files.explaining_errors(self._path, self.timeout)

    @contextmanager
    def _transaction(self, *, resealing: bool = False) -> Iterator[list[Entry]]:
        """All rows, found sound, under a lock of our own; what is added is kept or lost as one."""
        with self._explaining_errors():
            files.execute_in_turn(self._connection, "BEGIN IMMEDIATE", self.timeout)
            try:
                check_tables(self._connection, self._path)
                rows = self.entries()
                wrong = self._problems(rows, files.read_optional(self._head_path), headless=resealing)
                if wrong:
                    raise LedgerError(
                        f"{self._path.name}: the ledger does not verify: {wrong[0]} Nothing was spent. "
                        "Restore a sound copy before going on."
                    )
                known = len(rows)
                yield rows
                self._check_added(rows, known)
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise
        with suppress(OSError):  # the spend is recorded; a head that lags behind is sound
            count, last = self.head()
            before = files.read_optional(self._head_path)
            if count and (before is None or self._parse_head(before)[0] < count):
                self._write_head(count, last)

    def _add(self, rows: list[Entry], event: str, **values: Any) -> Entry:
        """Adds a row inside a transaction."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        unsealed = Entry(len(rows) + 1, now, event, previous=rows[-1].hash if rows else _FIRST, **values)
        entry = replace(unsealed, hash=self._hash(unsealed))
        self._connection.execute(f"INSERT INTO entries ({_COLUMNS}) VALUES ({_PLACES})", astuple(entry))  # noqa: S608 - constants
        self._connection.execute(
            "INSERT OR REPLACE INTO head VALUES (1, ?, ?, ?)",
            (entry.id, entry.hash, self._seal(entry.id, entry.hash)),
        )
        rows.append(entry)
        return entry

    def _check_added(self, rows: list[Entry], known: int) -> None:
        """Raises unless the rows added in this transaction are in the file exactly as they were given."""
        if self.entries(after=known) != rows[known:] or self.head() != _head_of(rows):
            raise LedgerError(
                f"{self._path.name}: SQLite did not keep a row as it was written, so nothing was recorded. "
                "Restore a sound copy before going on."
            )

    def entries(self, *, after: int = 0) -> list[Entry]:
        """Every row, or every row after the given one, oldest first."""
        query = f"SELECT {_COLUMNS} FROM entries WHERE id > ? OR ? = 0 ORDER BY id"  # noqa: S608 - constants
        with self._explaining_errors():
            return [Entry(*row) for row in self._connection.execute(query, (after, after))]

    def verify(self, *, kept: str | None = None) -> tuple[str, ...]:
        """What is wrong with the ledger: rows changed, missing, reordered or cut off; () if sound.

        `kept` is a head that was kept elsewhere, as `format_head` writes it: an older copy that was put back
        has fewer rows or others.
        """
        count, last = parse_head(kept) if kept is not None else (0, _FIRST)
        with self._explaining_errors():
            head = files.read_optional(self._head_path)  # before the rows, which can only be newer
            self._connection.execute("BEGIN")
            try:
                check_tables(self._connection, self._path)
                rows = self.entries()
                return self._problems(rows, head) + _compare_head(rows, count, last, "elsewhere")
            finally:
                self._connection.execute("COMMIT")

    def reseal(self, *, note: str, kept: str | None = None) -> Entry:
        """Writes the `.head` file of a ledger that was restored without it, and a row that says so.

        Everything else must be sound, and no head that is at hand may know more rows: neither the one `kept`
        elsewhere nor a `.head` file that is still there. What was recorded after the backup was made is lost:
        without a head kept elsewhere nobody can tell whether there was anything.
        """
        if not note.strip():
            raise SettingError(
                "a ledger is resealed with a note that says who does it, and why. Pass --note (note=)."
            )
        count, last = parse_head(kept) if kept is not None else (0, _FIRST)
        with self._transaction(resealing=True) as rows:
            if self._head_path.exists():
                raise LedgerError(
                    f"{self._path.name}: the ledger is sound and has its .head file. Nothing needs resealing."
                )
            if wrong := _compare_head(rows, count, last, "elsewhere"):
                raise LedgerError(
                    f"{self._path.name}: {wrong[0]} This is an older copy, not the newest: restore that one."
                )
            compared = f"row {count} compared with the head kept elsewhere" if kept else "no head compared"
            entry = self._add(rows, "resealed", note=f"{note} ({compared})")
        if not self._head_path.exists():
            raise LedgerError(f"{self._head_path.name}: cannot be written. Free some room, and reseal again.")
        return entry

    def _problems(self, rows: list[Entry], head: str | None, *, headless: bool = False) -> tuple[str, ...]:
        """What is wrong with the rows; nothing if they are all there, in order and unchanged."""
        wrong, last = [], _FIRST
        for number, entry in enumerate(rows, start=1):
            if entry.id != number:
                wrong += [f"row {number} is missing or out of place: the row there is numbered {entry.id}."]
                break
            if entry.previous != last:
                before = f"row {number} does not follow row {number - 1}"
                wrong += [f"{before}: rows were changed, removed or reordered."]
            if not self._is_intact(entry):
                wrong += [f"row {number} was changed."]
            last = entry.hash
        count, seen = self.head()
        if (count, seen) != (len(rows), last):
            wrong += [f"the ledger ends at row {len(rows)}, its sealed head says row {count}."]
        if head is not None:
            # Behind is a crash between commit and writing it; ahead or elsewhere is another history.
            return (*wrong, *_compare_head(rows, *self._parse_head(head), "beside the ledger"))
        return (*wrong, _HEADLESS) if rows and not headless else tuple(wrong)

    def head(self) -> tuple[int, str]:
        """Number of rows and last hash; kept elsewhere, it shows when an older copy was put back."""
        with self._explaining_errors():
            head = self._connection.execute("SELECT count, hash, seal FROM head").fetchone()
        if head is None:
            return 0, _FIRST
        if not _is_same(self._seal(head[0], head[1]), head[2]):
            raise LedgerError(
                f"{self._path.name}: the key beside it is not this ledger's key, or its head was changed. "
                "Restore both."
            )
        return head[0], head[1]

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._path.name!r})"

    def _parse_head(self, content: str) -> tuple[int, str]:
        with suppress(ValueError):
            count, last, seal = content.split()
            if hmac.compare_digest(self._seal(int(count), last), seal):
                return int(count), last
        raise LedgerError(f"{self._path.name}.head was changed or belongs to another ledger. Restore it.")

    def _write_head(self, count: int, last: str) -> None:
        content = f"{count} {last} {self._seal(count, last)}\n"
        files.write_whole(self._head_path, content, replace=count > 0)

    def _hash(self, entry: Entry) -> str:
        values = asdict(entry)
        del values["hash"]
        if entry.certificate is None:
            # As in version 1, whose rows stay valid. Lists of 12 and of 13 values never have the same text,
            # so that a digest added to a row or taken from one changes its hash all the same.
            del values["certificate"]
        # Likewise for what came later: a value that is there ends the list as a pair with its name, and no
        # other item is a list.
        later = [[name, value] for name in _LATER if (value := values.pop(name)) is not None]
        content = json.dumps([*values.values(), *later], ensure_ascii=True, allow_nan=False)
        return hmac.digest(self._chain, content.encode(), "sha256").hex()

    def _is_intact(self, entry: Entry) -> bool:
        """Whether a row is as it was sealed; one with values that no row can have is not."""
        try:
            return _is_same(self._hash(entry), entry.hash)
        except (TypeError, ValueError):  # no text, an infinite ε
            return False

    def _seal(self, count: int, last: str) -> str:
        return hmac.digest(self._chain, f"head {count} {last}".encode(), "sha256").hex()


def format_head(head: tuple[int, str]) -> str:
    """What to keep elsewhere: the number of rows and the last hash."""
    return f"{head[0]}:{head[1]}"


def parse_head(text: str) -> tuple[int, str]:
    """A head that was kept elsewhere."""
    if not re.fullmatch("[0-9]{1,12}:[0-9a-f]{64}", text):
        raise SettingError(f"head {text!r:.90} is not COUNT:HASH, as hedgerow ledger head prints it.")
    count, _, last = text.partition(":")
    return int(count), last


def _is_same(ours: str, theirs: object) -> bool:
    """Whether what the file holds, which may be anything, is the hash that we compute."""
    return isinstance(theirs, str) and hmac.compare_digest(ours.encode(), theirs.encode())


def _head_of(rows: list[Entry]) -> tuple[int, str]:
    return (len(rows), rows[-1].hash) if rows else (0, _FIRST)


def _compare_head(rows: list[Entry], count: int, last: str, where: str) -> tuple[str, ...]:
    if count > len(rows) or _head_of(rows[:count])[1] != last:
        return (f"{count} rows were recorded {where}, and row {count} is missing here or another.",)
    return ()
