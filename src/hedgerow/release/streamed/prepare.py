"""What takes the place of a table in memory: leaves on a disk, and some of their rows."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hedgerow.cluster.workers import Cluster
from hedgerow.errors import FileError, SettingError
from hedgerow.mechanism.links import crossed_formulas
from hedgerow.mechanism.noisy.leaves.streamed import check_statistics
from hedgerow.mechanism.streamed.support import check_streamed
from hedgerow.numerics import leaves as sizes
from hedgerow.release.folder import check_outside_releases
from hedgerow.release.ledger.parts import Parts
from hedgerow.release.plan import Plan
from hedgerow.release.prepare import Prepared, data_of, find_needed, options_of, settle
from hedgerow.release.streamed.copies import LookAtCells, WritePart, write_copy
from hedgerow.release.streamed.fit import fit_leaves
from hedgerow.release.streamed.records import write_records
from hedgerow.release.streamed.views import View, WeightedView
from hedgerow.synthesizer import Synthesizer, encode
from hedgerow.tables.design import Design, Learnt
from hedgerow.tables.files import Format, Source, Written, format_of
from hedgerow.tables.files.dictionary import tell_shortened
from hedgerow.tables.files.growing import GROWING, Cells
from hedgerow.tables.spool import Scratch, Spooled, encode_leaves, spool
from hedgerow.tables.table import Table
from hedgerow.threads import Here, Workers

COMPARED = 20_000  # rows of which the owner is told what copies keep
_SOME = (
    "read block by block. Whether public columns give the outcome away was looked for in {:,} rows, and what "
    "copies keep and how risks are spread is told of {:,}, evenly spaced; prices, and which records are the "
    "riskiest, are of all {:,}."
)
_SOME_STRICT = "read block by block. What copies keep is told of {1:,} rows, evenly spaced, of all {2:,}."


@dataclass(frozen=True, repr=False, kw_only=True)
class PreparedLeaves(Prepared):
    """A plan with its data in leaves; `table` and `source` have some rows. Confidential."""

    leaves: Spooled
    looked_at: tuple[Table, Design]  # of these rows
    cells: Cells
    scratch: Path
    workers: Workers

    @property
    def records(self) -> int:
        return self.leaves.records

    @property
    def whole(self) -> Any:
        return Parts.of(self.leaves, self.scratch)

    @property
    def public(self) -> None:
        return None

    def copy_to_write(self, copy: pa.Table) -> pa.Table:
        return copy.select(self.released)

    def fit(self, **changes: Any) -> Synthesizer:
        return fit_leaves(
            self.synthesizer(**changes), self.leaves, self.looked_at, seed=self.plan.seed,
            compared=spread_rows(self.records, COMPARED), left_out=self.withheld,
            keep=self.plan.outputs.keep, workers=self.workers,
        )  # fmt: skip

    def try_copies(self, synth: Synthesizer) -> None:
        for number in range(synth.settings.copies):
            self._part_of(synth, number).predict(self.leaves, 0)

    def write_copies(
        self, synth: Synthesizer, place: Callable[[int], Path], label: str, tell: Callable[[int], None]
    ) -> list[Written]:
        view, written = cast(View, synth._done()), []
        for number in range(1, synth.settings.copies + 1):
            tell(number)
            written.append(
                write_copy(
                    self._part_of(synth, number - 1), self.leaves, self.workers, place(number), self.like,
                    view.written, view.rows, formulas=self.plan.outputs.formulas, label=label,
                )
            )  # fmt: skip
        return written

    def write_records(self, synth: Synthesizer, place: Path) -> None:
        write_records(cast(WeightedView, synth._done()), self.leaves, place)

    def _part_of(self, synth: Synthesizer, copy: int) -> WritePart:
        view = cast(View, synth._done())
        return WritePart(
            view.predictor(copy), view.settings, copy, self.scratch, self.released, self.cells,
            tuple(self.plan.outputs.keep_levels),
        )  # fmt: skip


@contextmanager
def stream_plan(
    plan: Plan, out: Path, scratch: str | os.PathLike[str] | None = None, workers: Workers | None = None
) -> Iterator[PreparedLeaves]:
    """The plan's data, copied once into leaves in a private folder that is gone at the end of the context."""
    check_plan(plan)
    parent = out.parent if scratch is None else Path(scratch)
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise FileError(f"scratch: '{parent.name}' is no folder that can be written to. Choose another.")
    check_outside_releases(parent / "scratch")
    workers = Here() if workers is None else workers
    with _ending_by_exceptions(), Scratch(parent, out.name) as place:
        if isinstance(workers, Cluster):
            workers.check_folder(place.path)
        needed = partial(find_needed, plan) if plan.missing == "drop" else None
        spooled = spool(data_of(plan), place.path, complete=needed, **options_of(plan))
        some = spread_rows(spooled.records, sizes.LEAF)
        words = _SOME if plan.settings.noisy is None else _SOME_STRICT
        note = words.format(len(some), min(COMPARED, spooled.records), spooled.records)
        source = spooled.source(spooled.sample(some).native)
        source = replace(source, notes=(*source.notes, note))
        prepared = settle(plan, source, all_rows=False, dropped=spooled.dropped)
        settings = prepared.plan.settings
        build = Encode(settings)
        leaves = encode_leaves(
            spooled, build, [column.formula for column in settings.columns], workers,
            crossed=crossed_formulas(settings),
            also=[name for column in settings.columns for name in column.reads],
        )  # fmt: skip
        cells = _look_at_cells(prepared, leaves, workers)
        looked_at = Table.of(prepared.table), build(Table.of(source.frame), leaves.learnt)
        yield PreparedLeaves(
            **vars(prepared) | {"like": _tell_levels(prepared, spooled, cells)},
            leaves=leaves, looked_at=looked_at, cells=cells, scratch=place.path, workers=workers,
        )  # fmt: skip


@contextmanager
def _ending_by_exceptions() -> Iterator[None]:
    """Signals that end this process do so by an exception, so that what it holds on disk goes with it."""
    main = threading.current_thread() is threading.main_thread()
    named = (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP"))  # and a terminal that is closed
    taken = [each for each in named if main and each and signal.getsignal(each) is signal.SIG_DFL]

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    for each in taken:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)


@dataclass(frozen=True)
class Encode:
    """The design of a part of the table, by what was learnt of all of it."""

    settings: Any

    def __call__(self, table: Table, learnt: Learnt) -> Design:
        return encode(table, [self.settings], learnt)


def check_plan(plan: Plan) -> None:
    """Refuse what cannot be done block by block, before anything is read."""
    (check_streamed if plan.settings.noisy is None else check_statistics)(plan.settings)
    data = Path(data_of(plan))
    asked = plan.outputs.format
    kind = Format.PARQUET if data.is_dir() else plan.read.format or format_of(data)
    if Format(kind) not in GROWING:
        raise SettingError(
            f"{data.name}: a Parquet file, a folder of Parquet files or a CSV file is read block by block. "
            "Convert it, or leave --stream out."
        )
    if asked is not None and Format(asked) not in GROWING:
        raise SettingError(
            f"format: {asked} is not written block by block. Ask for parquet or csv, or leave --stream out."
        )
    if plan.unit is not None:
        raise SettingError(
            f"unit: rows of one '{plan.unit}' may lie far apart, and are not counted block by block. Leave "
            "unit out, or --stream."
        )


def spread_rows(records: int, most: int) -> NDArray[np.intp]:
    """Some rows, evenly spaced: all, if there are no more."""
    return np.linspace(0, records - 1, min(records, most)).astype(np.intp)


def _tell_levels(prepared: Prepared, spooled: Spooled, cells: Cells) -> Source:
    """What copies are written like, with a note of levels that do not occur."""
    unused = [
        name
        for name, used in cells.levels.items()
        if len(used) < len(spooled.categories[name]) and name not in prepared.plan.outputs.keep_levels
    ]
    like = prepared.like
    return replace(like, notes=(*like.notes, *tell_shortened(unused)))


def _look_at_cells(prepared: Prepared, leaves: Spooled, workers: Workers) -> Cells:
    """What public cells of all leaves have to do with how copies are written."""
    like, weight = prepared.like, _weight_of(prepared.plan)
    public = [name for name in prepared.released if name not in prepared.protected]
    spreadsheet = like.format.written_as is Format.CSV
    if not spreadsheet:  # then levels alone matter
        public = [name for name in public if name in leaves.categories]
    if not public and weight is None:
        return Cells()
    look = LookAtCells(tuple(public), prepared.plan.outputs.formulas, like.dialect, spreadsheet, weight)
    return Cells.join(workers.map(look, leaves, range(leaves.count)))


def _weight_of(plan: Plan) -> str | None:
    """The public survey weights, which must be positive in every row."""
    weight = plan.settings.design_weight
    return None if weight in plan.settings.protected else weight
