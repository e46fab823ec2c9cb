"""Any dataframe in (pandas, polars, Arrow), the same kind out.

    >>> import polars as pl
    >>> table = Table.of(pl.DataFrame({"pay": [9, 11], "region": ["north", "south"]}))
    >>> table
    Table(2 rows, 2 columns, confidential)
    >>> table.with_column("pay", np.array([9.6, 11.2]))["pay"].to_list()
    [10, 11]

The only module that knows dataframes. Checks name columns and counts, never values.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_pandas_like_dataframe, is_pyarrow_table
from numpy.typing import NDArray

from hedgerow.arrays import Array, Mask, PerRecord
from hedgerow.errors import DataError, did_you_mean, is_real, list_some
from hedgerow.numerics.rounding import format_count
from hedgerow.tables.detach import detach
from hedgerow.tables.values import ANYWHERE, Declared, Grid, Support

DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True, repr=False)
class Table:
    """A confidential table: read by column, written back with one column replaced."""

    frame: nw.DataFrame[Any]

    @classmethod
    def of(cls, data: object) -> "Table":
        """Wrap a pandas, polars or Arrow table."""
        # Arrow's `columns` are cells, and so is `column_names` of a pandas table with a column of that name.
        # A lazy frame is refused below, without making it resolve its schema.
        is_lazy = hasattr(data, "collect_schema") and hasattr(data, "collect")
        attribute = "column_names" if is_pyarrow_table(data) else "columns"
        names = [] if is_lazy else getattr(data, attribute, [])
        names = [] if callable(names) else list(names)
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise DataError(
                f"Column names must be unique; {list_some(repeated, 12, quoted=True)} occur more than once. "
                "Rename them."
            )
        unnamed = sum(not isinstance(name, str) for name in names)
        if unnamed:
            raise DataError(
                f"Column names must be text; {unnamed} of {len(names)} are not. "
                "Rename them, for instance with data.columns = data.columns.astype(str)."
            )
        try:
            table = cls(nw.from_native(cast(Any, data), eager_only=True))
        except TypeError:
            raise DataError(
                f"data must be a pandas or polars DataFrame or an Arrow Table, got {type(data).__name__}. "
                "Collect a lazy frame first; turn a mapping into a DataFrame."
            ) from None
        if table.rows == 0:
            raise DataError("The table has no rows. Give at least one row per coefficient.")
        return table

    @property
    def rows(self) -> int:
        """Number of records."""
        return len(self.frame)

    @property
    def columns(self) -> list[str]:
        """Column names in input order."""
        return list(self.frame.columns)

    @property
    def native(self) -> Any:
        """The dataframe as it came in."""
        return self.frame.to_native()

    def require(self, names: Sequence[str]) -> None:
        """Refuse names that are not columns."""
        known = set(self.columns)
        unknown = [name for name in dict.fromkeys(names) if name not in known]
        if unknown:
            raise DataError(
                f"No column named {list_some(unknown, 12, quoted=True)}.{did_you_mean(unknown[0], known)} "
                f"The table has {list_some(self.columns, 12, quoted=True)}."
            )

    def require_complete(self, names: Sequence[str]) -> None:
        """Refuse missing or infinite values in the named columns."""
        self.require(names)
        for name in names:
            series = self.frame[name]
            floats = series.cast(nw.Float64).to_numpy() if series.dtype.is_float() else ()
            values = np.asarray(floats, dtype=np.float64)
            if len(values) and np.isfinite(values).all() and not series.null_count():
                continue
            missing = int(np.isnan(values).sum()) or int(series.null_count())
            infinite = int(np.isinf(values).sum())
            if missing or infinite:
                raise DataError(self.explain_gaps(name, self.rows, missing, infinite))

    @staticmethod
    def explain_gaps(name: str, rows: int, missing: int, infinite: int) -> str:
        """The message about a column with missing or infinite values where none may be."""
        if missing:
            return (
                f"Column '{name}' has {format_count(missing, 'missing value')} in {rows} rows; none is "
                "allowed. Drop those rows if it is public knowledge which they are, or fill them in first."
            )
        return (
            f"Column '{name}' has {infinite} infinite values in {rows} rows; none is allowed. Drop or "
            "correct them."
        )

    def _require_numeric(self, name: str, use: str = "") -> None:
        self.require([name])
        dtype = self.frame[name].dtype
        if _is_date(dtype):
            return
        if dtype == nw.Unknown and self.frame[name].null_count() == self.rows:
            raise DataError(
                f"Column '{name}' must hold numbers{use}, and has no value in any of {self.rows} rows. "
                f"Leave it out: --drop {name} (left_out= in Python)."
            )
        if not dtype.is_numeric() or dtype in (nw.Int128, nw.UInt128):
            spelled = " If a CSV file spells numbers another way: --decimal , or --missing-word WORD."
            classes = "" if use else " Classes have families of their own: bernoulli, ordinal, categorical."
            raise DataError(
                f"Column '{name}' must hold numbers{use}, but its type is {dtype}. Convert it to a numeric "
                f"type.{classes}{spelled * (dtype == nw.String)}"
            )

    def numbers(self, name: str) -> PerRecord:
        """A numeric column without missing or infinite values, as float64; dates as days since 1970-01-01."""
        self._require_numeric(name)
        self.require_complete([name])
        return self._floats(name)

    def gappy_numbers(self, name: str) -> PerRecord:
        """A numeric column as float64, a missing value as NaN."""
        self._require_numeric(name)
        return self._floats(name)

    def numbers_or_flags(self, name: str) -> PerRecord:
        """One of `number_columns` as float64: flags as 1 and 0, a missing value as NaN."""
        values, known = self.raw_cells(name)
        return np.where(known, values, np.nan)

    def raw_cells(self, name: str) -> tuple[NDArray[Any], Mask]:
        """A column's cells as numbers, flags as 1 and 0, or as text; and which of them are not missing."""
        self.require([name])
        series = self.frame[name]
        known = ~np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
        if series.dtype.is_numeric():
            values: NDArray[Any] = self._floats(name)
            return values, known & ~np.isnan(values)
        if series.dtype == nw.Boolean:
            return series.fill_null(value=False).to_numpy().astype(np.float64), known
        return self.words(name), known

    def outcome(self, name: str, levels: Sequence[Any] | None) -> PerRecord:
        """A protected column as numbers: its own, or the places of its labels among the levels, from 0 up."""
        if levels is None:
            return self.numbers(name)
        self.require_complete([name])
        places = self.places(name, levels)
        missed = int((places < 0).sum())
        if missed:
            raise DataError(
                f"Column '{name}' has {missed} values in {self.rows} rows that are none of the "
                f"{len(levels)} declared levels. Declare every level that may occur, in order."
            )
        return places

    def places(self, name: str, levels: Sequence[Any]) -> PerRecord:
        """The place of each cell among the levels, from 0 up; −1 for one that is missing or none of them."""
        series = self.frame[name]
        if series.dtype.is_numeric() or series.dtype == nw.Boolean:
            values, found = self._floats(name), np.full(self.rows, -1.0)
            for place, level in enumerate(levels):
                found[values == float(level)] = place
            return found
        order = {str(level): float(place) for place, level in enumerate(levels)}
        gone = np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
        found = np.array([order.get(word, -1.0) for word in self.words(name).tolist()])
        return np.where(gone, -1.0, found)

    def categories(self, name: str) -> tuple[Any, ...]:
        """The levels of an ordered category, in order, as its type has them; empty for other columns."""
        dtype = self.frame[name].dtype
        return tuple(dtype.categories) if isinstance(dtype, nw.Enum) else ()

    def holds(self, name: str, numbers: Sequence[float]) -> bool:
        """Whether a numeric column's type has all of some numbers."""
        self.numbers(name)  # refuses what is no number
        grid = Grid.of(self.frame[name].dtype)
        digits = 1e-6 if grid.step is None else 1e-12
        return bool(np.allclose(grid.nearest(np.array(numbers)), numbers, rtol=digits, atol=0))

    def is_boolean(self, name: str) -> bool:
        """Whether a column holds true and false."""
        self.require([name])
        return bool(self.frame[name].dtype == nw.Boolean)

    def bounds(self, name: str) -> PerRecord:
        """A numeric column in which ±inf may stand for "no bound"."""
        self._require_numeric(name, " to serve as a bound")
        values = self._floats(name)
        missing = int(np.isnan(values).sum())
        if missing:
            raise DataError(
                f"Column '{name}' has {missing} missing bounds in {self.rows} rows. "
                "Fill them in; use -inf or inf where nothing is known."
            )
        return values

    def flags(self, name: str) -> Mask:
        """A boolean column."""
        self.require([name])
        series, missing = self.frame[name], int(self.frame[name].null_count())
        if series.dtype != nw.Boolean or missing:
            raise DataError(
                f"Column '{name}' must be boolean without missing values, but its type is {series.dtype} "
                f"with {missing} missing. Convert it to true and false."
            )
        return series.to_numpy().astype(np.bool_)

    def labels(self, names: Sequence[str]) -> NDArray[np.int64]:
        """For each record the number of its pattern over the named columns."""
        self.require(names)
        codes = np.zeros(self.rows, dtype=np.int64)
        for name in names:
            _, inner = np.unique(self.words(name), return_inverse=True)
            _, codes = np.unique(codes * (int(inner.max()) + 1) + inner, return_inverse=True)
        return codes

    def codes(self, name: str) -> tuple[NDArray[np.int64], int]:
        """A column as numbers from 0 up, its levels in sorted order, and how many levels there are."""
        self.require_complete([name])
        series = self.frame[name]
        # Numbers sort as numbers: as text, level 10 would come before level 2.
        values = series.to_numpy() if series.dtype.is_numeric() else self.words(name)
        levels, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.int64), len(levels)

    def levels(self, name: str) -> int:
        """How many levels a column has: values that occur."""
        self.require([name])
        return int(self.frame[name].n_unique())

    def is_numeric(self, name: str) -> bool:
        """Whether a column holds numbers."""
        self.require([name])
        return bool(self.frame[name].dtype.is_numeric())

    def is_temporal(self, name: str) -> bool:
        """Whether a column holds dates, times of a date or durations."""
        self.require([name])
        return isinstance(self.frame[name].dtype, nw.Date | nw.Datetime | nw.Duration)

    def number_columns(self) -> list[str]:
        """The columns of numbers or flags."""
        return [name for name, kind in self.frame.schema.items() if kind.is_numeric() or kind == nw.Boolean]

    def select(self, names: Sequence[str]) -> "Table":
        """The named columns alone."""
        return Table(self.frame.select(*names))

    def beside(self, other: "Table") -> "Table":
        """The columns of both, row by row."""
        return Table(self.frame.with_columns(*(other.frame[name] for name in other.columns)))

    def rename(self, names: Mapping[str, str]) -> "Table":
        """The table with some columns under other names."""
        return Table(self.frame.rename(dict(names))) if names else self

    def cells(self, name: str) -> PerRecord | NDArray[np.str_]:
        """A column as an onlooker reads it: numbers (dates and flags too; NaN where missing), or text."""
        series = self.frame[name]
        dtype = series.dtype
        if dtype == nw.Boolean or (dtype.is_numeric() and dtype not in (nw.Int128, nw.UInt128)):
            return self._floats(name)
        if isinstance(dtype, nw.Date | nw.Datetime | nw.Duration):
            times = series.dt.total_microseconds() if dtype == nw.Duration else series.dt.timestamp("us")
            gone = np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
            return np.where(gone, np.nan, times.fill_null(0).to_numpy().astype(np.float64))
        gaps = series.is_null().to_list()
        return np.array(
            ["" if gap else str(cell) for gap, cell in zip(gaps, series.to_list(), strict=True)],
            dtype=np.str_,
        )

    def index_levels(self) -> "list[PerRecord | NDArray[np.str_]]":
        """The index of a pandas table, which copies have too, as `cells`; none where it only counts rows."""
        index = getattr(self.native, "index", None) if is_pandas_like_dataframe(self.native) else None
        if index is None:
            return []
        # A comparison with a missing label has no answer.
        if index.nlevels == 1 and not index.hasnans and np.array_equal(index, np.arange(self.rows)):
            return []
        levels = {str(level): index.get_level_values(level) for level in range(index.nlevels)}
        table = Table(nw.from_native(type(self.native)(levels), eager_only=True))
        return [table.cells(name) for name in levels]

    def copy_columns(self, names: Sequence[str]) -> "Table":
        """A table of the named columns alone, in memory of its own, with a column of row numbers before them.

        What is no number and no flag becomes text, and so does a column with missing values: patterns stay.
        """
        self.require(names)
        columns: dict[str, Any] = {"": np.arange(self.rows)}
        for name in names:
            series = self.frame[name]
            plain = series.dtype.is_numeric() or series.dtype == nw.Boolean
            complete = not series.null_count()
            columns[name] = np.array(series.to_numpy()) if plain and complete else self.words(name)
        return Table(nw.from_dict(columns, backend=self.frame.implementation))

    def rows_where(self, keep: Mask) -> "Table":
        """The rows where keep is true."""
        return Table(self.frame.filter(keep.tolist()))

    def head(self, rows: int) -> "Table":
        """The first rows."""
        return Table(self.frame.head(rows))

    def take(self, rows: NDArray[np.intp]) -> "Table":
        """These rows in this order, some perhaps more than once, numbered anew."""
        return Table(nw.maybe_reset_index(self.frame[rows.tolist(), :]))

    def with_column(
        self,
        name: str,
        values: PerRecord,
        levels: Sequence[Any] | None = None,
        support: Support = ANYWHERE,
        declared: Declared | None = None,
    ) -> Any:
        """The native table with one column replaced, in its declared type or its own; levels go by place.

        Numbers become the nearest value that the type has and the support holds; a date is whole days since
        1970-01-01. A category gets the levels as its classes: those of the table may be the ones that happen
        to occur in it.
        """
        dtype = self.frame[name].dtype
        # Pandas has several types for one narwhals type (Int64 and int64): the very one is kept.
        own: Any = self.native.dtypes[name] if self.frame.implementation.is_pandas_like() else None
        if levels is None:
            if declared is not None:
                dtype, own = declared.dtype, None
                cells: NDArray[Any] = declared.nearest(values, support)
            else:
                cells = support.within(values, Grid.of(dtype))
            if dtype.is_integer():
                cells = cells.astype(str(dtype).lower())
            elif _is_date(dtype):
                cells = cells.astype(np.int64).astype("datetime64[D]").astype("datetime64[ms]")
                if declared is not None and self.frame.implementation.is_pandas_like():
                    dtype, own = nw.Datetime("s"), None  # pandas has no dates
        elif hasattr(own, "categories"):
            native = self.native.copy()
            # The levels themselves: a cast by way of text would lose numbers.
            if [str(level) for level in own.categories] != [str(level) for level in levels]:
                own = type(own)(list(levels), ordered=own.ordered)
            native[name] = own.construct_array_type().from_codes(values.astype(np.int64), dtype=own)
            return detach(native, name)
        elif dtype == nw.Categorical and is_pyarrow_table(self.native):
            return detach(_with_category(self.native, name, values, levels), name)
        else:
            words = np.asarray(levels, dtype=None if dtype == nw.Boolean else object)
            cells = words[values.astype(np.int64)]
            if isinstance(dtype, nw.Enum):
                dtype = nw.Enum([str(level) for level in levels])  # the public classes, not those of the data
        fresh = nw.new_series(name, cells, backend=self.frame.implementation)
        native = self.frame.with_columns(fresh.cast(dtype)).to_native()
        if own is not None and native.dtypes[name] != own:
            native = native.astype({name: own})
        return detach(native, name)

    def settle_cells(self, name: str) -> "Table":
        """The table with a pandas column of flags, objects or complex numbers as doubles, whatever its cells.

        One cell that is missing, or of another type, makes a column of objects of flags and of whole numbers:
        of objects nobody can tell, without looking, which of the two they would be. Flags count as 1 and 0,
        what is no number as missing.
        """
        own: Any = self.native.dtypes[name] if self.frame.implementation.is_pandas_like() else None
        if not isinstance(own, np.dtype) or own.kind not in "Obc":
            return self
        cells = [_as_double(cell) for cell in self.native[name].tolist()]
        native = self.native.copy()
        native[name] = type(native[name])(cells, index=native.index, dtype="float64")
        return Table.of(native)

    def settle_words(self, name: str) -> "Table":
        """The table with a pandas column of objects as text, in the type that pandas gives to text alone.

        What cannot be written as text is missing.
        """
        own: Any = self.native.dtypes[name] if self.frame.implementation.is_pandas_like() else None
        kind = type(self.native[name]) if own == np.dtype(np.object_) else None
        if kind is None:
            return self
        cells = [_as_word(cell) for cell in self.native[name].tolist()]
        native = self.native.copy()
        native[name] = kind(cells, index=native.index, dtype=kind([""]).dtype)
        return Table.of(native)

    def drop(self, names: Sequence[str], native: Any) -> Any:
        """A native table of this kind without some columns."""
        left = nw.from_native(native, eager_only=True).drop(*names).to_native() if names else native
        # pandas has columns of one type in one array, of which those dropped would still be a part.
        return left.copy() if names and is_pandas_like_dataframe(left) else left

    def like(self, columns: Mapping[str, Any]) -> Any:
        """A new dataframe of the same kind."""
        return nw.from_dict(dict(columns), backend=self.frame.implementation).to_native()

    def words(self, name: str) -> NDArray[np.str_]:
        """A column as text."""
        return self.frame[name].cast(nw.String).to_numpy().astype(str)

    def _floats(self, name: str) -> Array:
        """Numbers as they are written: 0.1 in 32 bits is 0.1, as a declared spike, end or edge says it."""
        series = self.frame[name]
        if _is_date(series.dtype):
            return np.asarray(self.cells(name), dtype=np.float64) / DAY
        if series.dtype.is_integer():
            # Arrow refuses to cast whole numbers beyond 2^53, and its message quotes the value.
            gone = np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
            whole = series.fill_null(0).to_numpy() if gone.any() else series.to_numpy()
            return np.where(gone, np.nan, whole.astype(np.float64))
        values = np.ascontiguousarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
        short = series.dtype == nw.Float32
        return values.astype(np.float32).astype(str).astype(np.float64) if short else values

    def __repr__(self) -> str:
        return f"Table({self.rows} rows, {len(self.columns)} columns, confidential)"


def _is_date(dtype: Any) -> bool:
    """Whether a type is one of dates or times without a zone, which count as days."""
    return isinstance(dtype, nw.Date) or (isinstance(dtype, nw.Datetime) and dtype.time_zone is None)


def _as_double(cell: object) -> float:
    """A number or flag; NaN for whatever else."""
    if isinstance(cell, complex) and cell.imag == 0:  # as one complex cell makes all of its column
        return cell.real
    if not (is_real(cell) or isinstance(cell, bool | np.bool_)):
        return np.nan
    try:
        return float(cell)  # type: ignore[arg-type]
    except OverflowError:  # a whole number beyond doubles
        return np.copysign(np.inf, 1 if cell > 0 else -1)  # type: ignore[operator]


def _as_word(cell: object) -> str | None:
    """Text that can be encoded; nothing for a cell that has none, or is not even equal to itself."""
    try:
        if cell is None or cell != cell:  # as NaN, and what cannot be compared raises
            return None
        word = cell.decode() if isinstance(cell, bytes) else str(cell)
        word.encode()
    except Exception:
        return None
    return word


def _with_category(native: Any, name: str, values: PerRecord, levels: Sequence[Any]) -> Any:
    """An Arrow table with a category replaced: all declared levels, whether they occur or not."""
    import pyarrow as pa

    place = native.column_names.index(name)
    kind = native.schema.field(place).type
    words = pa.array([str(level) for level in levels]).cast(kind.value_type)
    codes = pa.array(values.astype(np.int64)).cast(kind.index_type)
    column = pa.DictionaryArray.from_arrays(codes, words, ordered=kind.ordered)
    return native.set_column(place, pa.field(name, kind), column)
