"""Records on a disk, leaf by leaf: `spool` copies what is used or released of a file, `Spooled` reads it.

Whatever happens to the file afterwards does not matter. A leaf is one Arrow file of its columns, categories
as codes of levels that are found over all records; what tasks keep for each record lies beside it. Design
matrices are made of a leaf whenever they are asked for, and never stored.

Guarantee: `table(j)` is rows of the table that `tables.files.read` gives of the same file, and `design(j)`
rows of the design of that table: the same types, levels, knots and digits. Nothing of either is learnt from a
protected column but its type.
"""

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from io import BytesIO
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
from numpy.typing import NDArray

from hedgerow.arrays import Array
from hedgerow.errors import DataError, FileError, SettingError, reason_of
from hedgerow.numerics import leaves
from hedgerow.progress import READING, report
from hedgerow.tables.design import Design, Learnt, Moments
from hedgerow.tables.files.columnar import count_missing
from hedgerow.tables.files.source import Dialect, Format, Missing, Source, as_format, format_of, freeze
from hedgerow.tables.leaves import Leaves
from hedgerow.tables.spool.parquet import Parquet
from hedgerow.tables.spool.scratch import explaining_errors, write_whole
from hedgerow.tables.spool.text import Text
from hedgerow.tables.table import Table

_CODES = pa.int32()  # of categories, as they are stored: files may have levels of their own each
Builder = Callable[[Table, Learnt], Design]  # a leaf's design, by what was learnt of all; picklable


@dataclass(frozen=True, eq=False, repr=False)
class Spooled(Leaves):
    """A table whose leaves lie on a disk. Small and picklable: it holds levels, not records."""

    folder: Path
    records: int
    size: int  # of a leaf, when they were written
    schema: pa.Schema
    categories: Mapping[str, pa.Array]  # the levels of dictionary columns, as they came
    format: Format
    missing: Mapping[str, Missing] = field(
        default_factory=dict
    )  # of the file: columns with missing cells only
    dropped: int = 0  # rows of the file that are not here, since they lack a value in a column that needs one
    gaps: Mapping[str, int] | None = None  # missing cells that are left, where rows were dropped
    infinite: Mapping[str, int] = field(default_factory=dict)  # how many infinite cells, where there are
    notes: tuple[str, ...] = ()
    dialect: Dialect | None = field(default_factory=Dialect)
    builder: Builder | None = None
    learnt: Learnt = field(default_factory=Learnt)
    moments: tuple[Moments, ...] = ()  # of each link
    design_notes: tuple[str, ...] = ()  # what was decided of predictors that the owner should know

    @property
    def count(self) -> int:
        return -(-self.records // self.size)

    def rows(self, leaf: int) -> slice:
        return slice(leaf * self.size, min((leaf + 1) * self.size, self.records))

    def table(self, leaf: int, names: Sequence[str] | None = None) -> Table:
        """The columns of a leaf, or the named ones alone."""
        return Table.of(self._read(leaf, self.schema.names if names is None else names))

    def design(self, leaf: int) -> Design:
        return self._encode(self.table(leaf))

    def _encode(self, table: Table) -> Design:
        if self.builder is None:
            raise SettingError("The leaves have no design yet. Use encode_leaves first.")
        design = self.builder(table, self.learnt)
        for link, moments in zip(design.links, self.moments, strict=False):
            link.keep_moments(moments)
        return design

    def keep(self, name: str, leaf: int, values: Array) -> None:
        with explaining_errors(self.folder):
            write_whole(self._place(name, leaf), partial(_save, values))

    def kept(self, name: str, leaf: int) -> Array:
        with explaining_errors(self.folder):
            return np.asarray(np.load(self._place(name, leaf), allow_pickle=False))

    def kept_part(self, name: str, leaf: int, rows: slice) -> Array:
        """Some rows of what was kept, without reading the others."""
        with explaining_errors(self.folder):
            return np.array(np.load(self._place(name, leaf), mmap_mode="r", allow_pickle=False)[rows])

    def forget(self, name: str) -> None:
        """Deletes what was kept under a name."""
        for leaf in range(self.count):
            self._place(name, leaf).unlink(missing_ok=True)

    def sample(self, rows: Sequence[int] | NDArray[np.intp], names: Sequence[str] | None = None) -> Table:
        """Some records of the table, by their numbers, in that order."""
        wanted = np.asarray(rows, dtype=np.int64)
        names = self.schema.names if names is None else names
        leaf_of, parts, order = wanted // self.size, [], []
        for leaf in np.unique(leaf_of).tolist():
            places = np.flatnonzero(leaf_of == leaf)
            parts.append(self._read(leaf, names).take(pa.array(wanted[places] - leaf * self.size)))
            order.append(places)
        found = pa.concat_tables(parts).combine_chunks()
        return Table.of(found.take(pa.array(np.argsort(np.concatenate(order)))))

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> tuple[Table, Design]:
        """Some records and their design, by their numbers, in that order."""
        table = self.sample(rows)
        return table, self._encode(table)

    def source(self, frame: pa.Table) -> Source:
        """Some records as `files.read` would have given them, with all that is known of the file."""
        return Source(frame, self.format, freeze(self.missing), self.notes, self.dialect or Dialect())

    def require_complete(self, names: Collection[str]) -> None:
        """Refuse missing or infinite values in the named columns, counted over all records."""
        for name in names:
            gone = self.missing.get(name, Missing()).total if self.gaps is None else self.gaps.get(name, 0)
            if gone or self.infinite.get(name):
                raise DataError(Table.explain_gaps(name, self.records, gone, self.infinite.get(name, 0)))

    def __getstate__(self) -> dict[str, Any]:
        """What tasks need: a worker is told nothing else of the file."""
        unknown: dict[str, Any] = {
            "missing": {},
            "gaps": None,
            "infinite": {},
            "notes": (),
            "design_notes": (),
            "dialect": None,
        }
        return {**vars(self), **unknown}

    def remove(self) -> None:
        """Deletes the leaves and all that was kept with them."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _read(self, leaf: int, names: Sequence[str]) -> pa.Table:
        with explaining_errors(self.folder), pa.OSFile(str(self._place("leaf", leaf, ".arrow"))) as file:
            places = [self.schema.get_field_index(name) for name in names]
            options = pyarrow.ipc.IpcReadOptions(included_fields=places)
            stored = pyarrow.ipc.open_file(file, options=options).read_all()
        columns = [self._restore(name, stored.column(name)) for name in names]
        return pa.Table.from_arrays(columns, schema=pa.schema([self.schema.field(name) for name in names]))

    def _restore(self, name: str, stored: pa.ChunkedArray) -> Any:
        if name not in self.categories:
            return stored
        kind = self.schema.field(name).type
        codes, levels = stored.combine_chunks().cast(kind.index_type), self.categories[name]
        return pa.DictionaryArray.from_arrays(codes, levels, ordered=kind.ordered)

    def _place(self, name: str, leaf: int, ending: str = ".npy") -> Path:
        return self.folder / f"{quote(name, safe=' ')}-{leaf:08d}{ending}"


def spool(
    path: str | os.PathLike[str],
    folder: Path,
    *,
    columns: Collection[str] | None = None,
    complete: Callable[[Table], Sequence[str]] | None = None,
    **read: Any,
) -> Spooled:
    """Copies records of a file, or of a folder of Parquet files, into leaves under a scratch folder.

    `columns` names what is used or released; None takes all. Rows without a value in one of the columns that
    `complete` makes of a table of no rows are dropped. `read` are options of `files.read`.
    """
    path = Path(path)
    source = _open(path, **read)
    wanted = set(source.schema.names if columns is None else columns)
    Table(_empty(source.schema)).require(sorted(wanted))
    names = [name for name in source.schema.names if name in wanted]
    schema = pa.schema([source.schema.field(name) for name in names])
    kinds = {f.name: f.type for f in schema}
    levels = {name: _Levels(name, kind) for name, kind in kinds.items() if pa.types.is_dictionary(kind)}
    stored = pa.schema([_stored_field(f) for f in schema])
    missing: dict[str, Missing] = {}
    left: dict[str, Missing] = {}
    infinite: dict[str, int] = {}
    known: dict[str, Any] = {name: getattr(source, name) for name in ("format", "notes", "dialect")}
    result = Spooled(folder, source.records, leaves.LEAF, schema, {}, **known)
    needed = [] if complete is None else [*complete(Table(_empty(source.schema)))]
    kept = 0

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in source.batches(names, leaves.LEAF):
            if not needed:
                yield batch
                continue
            _count_missing(pa.Table.from_batches([batch]), missing)
            for name, column in levels.items():  # those of rows that are dropped are there as well
                column.code(pa.chunked_array([batch.column(name)]))
            gaps = [pc.is_null(batch.column(name), nan_is_null=True) for name in needed]
            yield batch.filter(pc.invert(reduce(pc.or_, gaps)))

    for leaf, table in enumerate(_reblock(batches(), leaves.LEAF)):
        kept += table.num_rows
        _count(table, left if needed else missing, infinite)
        cells = [levels[n].code(c) if n in levels else c for n, c in zip(names, table.columns, strict=True)]
        ready = pa.Table.from_arrays(cells, schema=stored).combine_chunks()
        with explaining_errors(folder):
            write_whole(result._place("leaf", leaf, ".arrow"), partial(_write, ready))
        report(READING, leaf + 1, result.count)
    if not kept and needed:
        raise DataError(
            f"All {source.records} rows lack a value in a column of the formula. Nothing is left to fit."
        )
    found = {name: column.dictionary for name, column in levels.items()}
    schema = pa.schema([f.with_type(levels[f.name].type) if f.name in levels else f for f in schema])
    if source.missing is not None:
        missing = {name: count for name, count in source.missing.items() if name in names}
    return replace(
        result, schema=schema, categories=found, records=kept, missing=missing, infinite=infinite,
        dropped=source.records - kept,
        gaps={name: gone.total for name, gone in left.items()} if needed else None,
    )  # fmt: skip


def _open(
    path: Path, *, format: Format | str | None = None, sheet: str | None = None, **read: Any
) -> Parquet | Text:
    if sheet is not None:
        raise SettingError(
            f"sheet: {path.name} is not read as an Excel file. Leave --sheet out, or --stream."
        )
    if path.is_dir():
        return Parquet.at(path)
    kind = as_format(format) if format is not None else format_of(path)
    if kind is Format.PARQUET:
        return Parquet.at(path)
    if kind is not Format.CSV:
        raise SettingError(
            f"{path.name}: only Parquet and CSV files are read in parts. Convert it to Parquet, or "
            "read it whole."
        )
    try:
        if path.stat().st_size == 0:
            raise FileError(f"{path.name}: the file is empty (0 bytes). Copy or export it again.")
        return Text.at(path, **read)
    except OSError as error:
        raise FileError(
            f"{path.name}: cannot be read ({reason_of(error)}). Check the name and mode."
        ) from None


def _empty(schema: pa.Schema) -> Any:
    import narwhals as nw

    return nw.from_native(schema.empty_table(), eager_only=True)


def _reblock(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """The records of batches in tables of one size; the last may be shorter."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        while batch.num_rows:
            part = batch.slice(0, size - rows)
            batch = batch.slice(part.num_rows)
            waiting.append(part)
            rows += part.num_rows
            if rows == size:
                yield pa.Table.from_batches(waiting)
                waiting, rows = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _stored_field(column: pa.Field) -> pa.Field:
    kind = _CODES if pa.types.is_dictionary(column.type) else column.type
    return pa.field(column.name, kind, column.nullable)


def _save(values: Array, file: IO[bytes]) -> None:
    content = BytesIO()  # NumPy would write to the file by itself, and not say why that failed
    np.save(content, values, allow_pickle=False)
    file.write(content.getbuffer())


def _write(table: pa.Table, file: Any) -> None:
    with pyarrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _count(table: pa.Table, missing: dict[str, Missing], infinite: dict[str, int]) -> None:
    _count_missing(table, missing)
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_floating(column.type):
            count = pc.sum(pc.is_inf(column)).as_py() or 0
            if count:
                infinite[name] = infinite.get(name, 0) + count


def _count_missing(table: pa.Table, missing: dict[str, Missing]) -> None:
    for name, here in count_missing(table).items():
        before = missing.get(name, Missing())
        marked = dict(before.marked)
        for word, count in here.marked.items():
            marked[word] = marked.get(word, 0) + count
        missing[name] = Missing(before.empty + here.empty, freeze(marked))


class _Levels:
    """The levels of one column so far, in the order in which they came: codes given out stay as they are."""

    def __init__(self, name: str, kind: pa.DictionaryType) -> None:
        self.name, self.kind, self.places, self.words = name, kind, dict[Any, int](), list[Any]()
        self.last: tuple[pa.Array, NDArray[np.int64]] | None = None  # a dictionary, and its levels' codes

    def code(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        return pa.chunked_array([self._code(chunk) for chunk in column.chunks], _CODES)

    def _code(self, chunk: pa.DictionaryArray) -> pa.Array:
        if self.last is None or not chunk.dictionary.equals(self.last[0]):
            words = chunk.dictionary.to_pylist()
            if self.kind.ordered and any(a != b for a, b in zip(words, self.words, strict=False)):
                raise DataError(
                    f"Column '{self.name}' has ordered categories, and parts of the file have them in "
                    "different orders. Write all parts with the same categories in the same order."
                )
            self.last = chunk.dictionary, np.array([self._place(word) for word in words])
        gone = chunk.indices.is_null().to_numpy(zero_copy_only=False)
        codes = chunk.indices.fill_null(0).to_numpy()
        places = np.zeros(len(codes), np.int64) if gone.all() else self.last[1][codes]
        return pa.array(np.where(gone, 0, places), _CODES, mask=gone)

    def _place(self, word: Any) -> int:
        if word not in self.places:
            self.places[word] = len(self.words)
            self.words.append(word)
        return self.places[word]

    @property
    def dictionary(self) -> pa.Array:
        return pa.array(self.words, self.kind.value_type)

    @property
    def type(self) -> pa.DictionaryType:
        """The type that came, with wider codes where there are too many words for its own."""
        own = self.kind.index_type
        fits = len(self.words) <= 2 ** (own.bit_width - pa.types.is_signed_integer(own))
        return self.kind if fits else pa.dictionary(_CODES, self.kind.value_type, self.kind.ordered)
