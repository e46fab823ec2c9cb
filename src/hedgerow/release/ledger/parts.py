"""A table part by part, and its rows in order, for what is known of a table by all of its rows.

    >>> parts = Parts.of(pa.table({"x": [2, 1]}))
    >>> parts.records, parts.count, parts.part(0).column_names
    (2, 1, ['x'])

Parts are leaves (`numerics.leaves`): of a table in memory slices of it, of one on disk what is read of it, so
that both are known by the same numbers. Rows that are more than memory should hold are put in order by way of
files: each takes the rows between two words, and they are put in order one after the other.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hedgerow.errors import FileError, reason_of
from hedgerow.numerics import leaves
from hedgerow.tables.files.columns import to_arrow
from hedgerow.tables.leaves import Leaves

Words = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]
Blocks = Callable[[], Iterator[Words]]

HELD = 1 << 23  # words that are put in order at once: 64 MiB, and their places
_READ = 1 << 20  # words of a file that are read at once
_FEWEST = 1 << 12  # rows that are, of however many columns
_SAMPLED = 1 << 14  # rows by which a table is cut
_MOST_FILES = 128
_LAST = np.uint64(2**64 - 1)  # such as a time of −1: there is no word after it


@dataclass(frozen=True, repr=False)
class Parts:
    """A confidential table, of which `part` gives one leaf after the other as Arrow has it."""

    names: list[str]
    records: int
    part: Callable[[int], pa.Table]
    scratch: Path | None = None  # where words may be put that memory should not hold; None: it holds them

    @classmethod
    def of(cls, table: Any, scratch: Path | None = None) -> "Parts":
        """From parts that are at hand, from leaves, or from a dataframe of any kind."""
        if isinstance(table, Parts):
            return table
        if isinstance(table, Leaves):
            whole = table
            return cls(
                whole.table(0).columns,
                whole.records,
                lambda leaf: to_arrow(whole.table(leaf).native),
                scratch,
            )
        frame = to_arrow(table)
        return cls(
            frame.column_names, frame.num_rows, lambda leaf: frame.slice(leaf * leaves.LEAF, leaves.LEAF)
        )

    @property
    def count(self) -> int:
        """How many there are."""
        return len(leaves.leaves_of(self.records))

    def size(self, number: int) -> int:
        """How many rows a part has."""
        rows = leaves.leaves_of(self.records)[number]
        return rows.stop - rows.start


def sort_rows(blocks: Blocks, rows: int, keys: Sequence[int], scratch: Path | None) -> Iterator[Words]:
    """The rows of some blocks (rows × columns) in order, by the columns `keys`, the foremost first.

    Together they are what putting all of them in order at once gives. `blocks` may be gone through twice.
    """
    width = next(blocks()).shape[1]
    if scratch is None or rows * width <= HELD or not keys:
        if not keys:  # they are all the same
            yield from blocks()
            return
        whole = np.concatenate(list(blocks()))
        yield whole[_order(whole, keys)]
        return
    step = -(-rows // _SAMPLED)
    # Copies: a view of a few words would keep its whole block.
    words = np.sort(np.concatenate([block[::step, keys[0]].copy() for block in blocks()]))
    number = min(_MOST_FILES, -(-2 * rows * width // HELD))
    places = np.arange(1, number) * len(words) // number
    # A word that recurs may fill files by itself: it gets one of its own, in order already by this column.
    recurring = words[places][words[places] == words[places - 1]]
    cuts = np.union1d(words[places], recurring[recurring < _LAST] + np.uint64(1))
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        sizes = _deal_out(blocks, keys[0], cuts, Path(folder))
        for bucket, size in enumerate(sizes):
            if size:
                ends_at = cuts[bucket] - np.uint64(1) if bucket < len(cuts) else _LAST
                same = int(bucket > 0 and ends_at == cuts[bucket - 1])
                part = Path(folder) / str(bucket)
                yield from sort_rows(partial(read_words, part, width), size, keys[same:], Path(folder))
                part.unlink()


def _deal_out(blocks: Blocks, key: int, cuts: Words, folder: Path) -> list[int]:
    """Puts each row into the file of the bucket it belongs to; returns how many each has."""
    sizes = [0] * (len(cuts) + 1)
    with ExitStack() as stack:
        files = [stack.enter_context((folder / str(bucket)).open("wb")) for bucket in range(len(sizes))]
        for block in blocks():
            where = np.searchsorted(cuts, block[:, key], side="right")
            sorted_by = np.argsort(where, kind="stable")
            ends = np.searchsorted(where[sorted_by], np.arange(len(sizes) + 1))
            for bucket in np.flatnonzero(np.diff(ends)):
                rows = block[sorted_by[ends[bucket] : ends[bucket + 1]]]
                files[bucket].write(rows.tobytes())
                sizes[bucket] += len(rows)
    return sizes


def read_words(path: Path, width: int) -> Iterator[Words]:
    """The rows of a file of words, some at a time."""
    with path.open("rb") as file:
        while len(block := np.fromfile(file, np.uint64, max(1, _READ // width) * width)):
            yield block.reshape(-1, width)


def read_columns(path: Path, parts: Sequence[int], width: int, places: Sequence[int]) -> Iterator[Words]:
    """Some columns of the parts of a file that `write_words` wrote, of so many rows each, some at a time."""
    step = max(_FEWEST, _READ // len(places))
    with path.open("rb") as file:
        begun = 0
        for rows in parts:
            for first in range(0, rows, step):
                block = np.empty((min(step, rows - first), len(places)), np.uint64)
                for own, column in zip(block.T, places, strict=True):
                    file.seek(8 * (begun + rows * column + first))
                    own[:] = np.fromfile(file, np.uint64, len(own))
                yield block
            begun += rows * width


def write_words(path: Path, blocks: Iterator[Words]) -> None:
    """A file of words for its owner alone, block by block and in each one column after the other.

    What keeps it from being written is said without its path.
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            for block in blocks:
                file.write(block.T.tobytes())
    except OSError as error:
        raise full_scratch(error) from None


def full_scratch(error: OSError) -> FileError:
    """What is said where the scratch folder takes no more."""
    return FileError(
        f"The scratch folder cannot be written to ({reason_of(error)}). Free some room, or name another one: "
        "--scratch FOLDER (scratch=)."
    )


def _order(rows: Words, keys: Sequence[int]) -> Any:
    """The places of rows in order; the other columns are looked at where the first does not decide."""
    first = rows[:, keys[0]]
    order = np.argsort(first)
    if len(keys) == 1:
        return order
    ranked = first[order]
    same = np.zeros(len(order) + 1, dtype=np.bool_)
    same[1:-1] = ranked[1:] == ranked[:-1]
    tied = same[1:] | same[:-1]
    among = order[tied]
    order[tied] = among[np.lexsort(rows[among].T[list(keys)[::-1]])]
    return order
