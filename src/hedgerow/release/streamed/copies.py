"""Copies leaf by leaf: a worker makes a leaf's part of a copy, and the parts become one file, in order.

Formal guarantee: a part holds what is released of its rows and nothing else; whoever puts parts together sees
no confidential value. The file has the bytes that a copy of the table in memory has.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from hedgerow.arrays import PerLink
from hedgerow.errors import DataError
from hedgerow.mechanism.copies import count_broken, count_moved
from hedgerow.mechanism.copies import write_copy as write_typed
from hedgerow.privacy.settings import Settings
from hedgerow.progress import WRITING, report
from hedgerow.tables.files import Source, Written, grow
from hedgerow.tables.files.columns import join_chunks, to_arrow
from hedgerow.tables.files.growing import Cells, Seen, look_at
from hedgerow.tables.files.source import Dialect
from hedgerow.tables.leaves import Leaves
from hedgerow.tables.spool.scratch import explaining_errors, write_whole
from hedgerow.tables.table import Table
from hedgerow.threads import Workers

Predict = Callable[[Leaves, int], PerLink]  # the synthetic outcomes of one copy in the rows of a leaf


@dataclass
class WrittenCopies:
    """What is known of copies once they are written: their values in some rows, and counts over all."""

    tables: list[pa.Table] = field(default_factory=list)
    moved: Counter[str] = field(default_factory=Counter)  # values that declared limits moved, by column
    broken: list[dict[str, Any]] = field(default_factory=list)  # rows that break each check, by copy


@dataclass(frozen=True)
class LookAtCells:
    """What the public cells of a leaf have to do with how files are written."""

    names: tuple[str, ...]
    formulas: str
    dialect: Dialect
    spreadsheet: bool  # the file is one that a spreadsheet opens
    weight: str | None  # survey weights

    def __call__(self, leaves: Leaves, leaf: int) -> Seen:
        table = leaves.table(leaf)
        if self.weight is not None and not (table.numbers(self.weight) > 0).all():
            raise DataError(
                f"design_weight: '{self.weight}' must hold positive numbers in every row. Drop rows that "
                "count for nobody."
            )
        cells = to_arrow(table.native).select(list(self.names))
        return look_at(cells, self.formulas if self.spreadsheet else "allow", self.dialect)


@dataclass(frozen=True)
class WritePart:
    """Write a leaf's part of one copy into a file of its own; counts values that moved, and rows by check."""

    predict: Predict
    settings: Settings
    copy: int
    folder: Path
    released: tuple[str, ...]
    cells: Cells
    kept: tuple[str, ...]  # public categories that keep all levels

    def __call__(self, leaves: Leaves, leaf: int) -> tuple[Counter[str], list[int]]:
        values, table, design = self.predict(leaves, leaf), leaves.table(leaf), leaves.design(leaf)
        typed = to_arrow(write_typed(self.settings, table, design, values))
        # Of one leaf a category has other levels than of all: the public columns come as they were.
        public = to_arrow(table.native)
        hidden = self.settings.protected
        whole = pa.table({name: (typed if name in hidden else public).column(name) for name in self.released})
        part = self.cells.keep_levels(whole, self.kept)
        with explaining_errors(self.folder):
            write_whole(self.place(leaf), lambda file: _write(part, file))
        return count_moved(self.settings, values), count_broken(self.settings, Table.of(part))

    def place(self, leaf: int) -> Path:
        """Where the part is until it is in the file."""
        return self.folder / f"copy-{self.copy}-{leaf}.arrow"

    def take(self, leaf: int) -> pa.Table:
        """The part, whose file is then gone."""
        with explaining_errors(self.folder):
            with pa.OSFile(str(self.place(leaf))) as file:
                part = pyarrow.ipc.open_file(file).read_all()
            self.place(leaf).unlink()
        return part


def write_copy(
    task: WritePart,
    leaves: Leaves,
    workers: Workers,
    path: Path,
    like: Source,
    written: WrittenCopies,
    rows: NDArray[np.intp],
    *,
    formulas: str,
    label: str,
) -> Written:
    """Writes one copy; `written` gets its values in some rows, and the counts."""
    some: list[pa.Table] = []
    counts = [0] * len(task.settings.rules.conditions)
    with grow(path, like, task.cells, formulas=formulas, label=label) as file:
        for leaf, (moved, broken) in enumerate(workers.map(task, leaves, range(leaves.count))):
            part, here = task.take(leaf), leaves.rows(leaf)
            file.append(part)
            first, last = np.searchsorted(rows, [here.start, here.stop])
            some.append(part.take(pa.array(rows[first:last] - here.start)))
            written.moved.update(moved)
            counts = [a + b for a, b in zip(counts, broken, strict=True)]
            report(WRITING, leaf + 1, leaves.count)
    written.tables.append(_join(some))
    written.broken += [
        {"check": check.text, "copy": task.copy + 1, "broken": count}
        for check, count in zip(task.settings.rules.conditions, counts, strict=True)
    ]
    return file.written


def _join(parts: list[pa.Table]) -> pa.Table:
    whole = pa.concat_tables(parts)
    return pa.table({name: join_chunks(whole.column(name)) for name in whole.column_names}, whole.schema)


def _write(part: pa.Table, file: Any) -> None:
    with pyarrow.ipc.new_file(file, part.schema) as writer:
        writer.write_table(part)
