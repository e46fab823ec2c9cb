"""What a column is to a formula: labelled codes are categories, dates are days, levels are those that occur.

    >>> import pandas as pd
    >>> when = pd.to_datetime(["1970-01-02", "1970-01-11"])
    >>> table, notes = settle_predictors(Table.of(pd.DataFrame({"when": when})), ["when"])
    >>> table.native["when"].tolist()
    [1.0, 10.0]

Predictors are public, and so is what is decided here: by the types of columns, by the data dictionary of a
file and by what the formula says. Copies keep codes, dates and types as they are.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import DataError
from hedgerow.tables.detach import detach
from hedgerow.tables.files.source import Source
from hedgerow.tables.formula import BARE, parse, quote, split
from hedgerow.tables.table import DAY, Table

_WIDE = 50  # times as large at the 99 % quantile as at the 1 %
_SCALE = "scale"  # SPSS: the dictionary itself says that codes are numbers


def spell_categories(formula: str, source: Source, protected: Collection[str] = ()) -> tuple[str, list[str]]:
    """The formula with C(…) around columns of labelled codes, and what the owner should know of it.

    A column counts if every code that occurs has a value label, SPSS does not measure it on a scale, and the
    formula names it without a transform: I(age) says that its codes are numbers. One that is `protected`
    stays as it is: which codes occur in it is nobody's to know.
    """
    frame, outcome = source.frame, split(formula)[0]
    if outcome not in frame.column_names:  # of the public predictors alone
        frame = frame.append_column(outcome, pa.nulls(frame.num_rows))
    parsed = parse(formula, Table.of(frame))
    bare = [name for name in parsed.predictors if parsed.uses[name] == {BARE} and name not in protected]
    coded = {name: count for name in bare if (count := _count_labelled(source, name))}
    notes = [
        f"the {count} codes of '{name}' have value labels and enter the formula as categories, "
        f"C({quote(name)}). If they are numbers, write I({quote(name)})."
        for name, count in coded.items()
    ]
    return parsed.with_categories(coded) if coded else formula, notes


def _count_labelled(source: Source, name: str) -> int:
    """How many codes a column has, if all of them have labels; else 0."""
    labels = source.dictionary.value_labels.get(name)
    column = source.frame.column(name)
    number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if not labels or not number or source.dictionary.measures.get(name) == _SCALE:
        return 0
    codes = pc.unique(column).drop_null().to_pylist()
    return len(codes) if all(code in labels for code in codes) else 0


def settle_predictors(
    table: Table,
    names: Sequence[str],
    classes: Collection[str] = (),
    levels: Mapping[str, tuple[Any, ...]] = MappingProxyType({}),
    *,
    tell: bool = True,
) -> tuple[Table, list[str]]:
    """The named columns as a design takes them, and what the owner should know of it, unless nobody asks.

    Dates, times of a date and durations become days, counted from 1970-01-01, unless they are `classes`.
    Columns with declared `levels` become categories of these, whether they occur or not; a cell that is none
    of them is missing. The owner is told nothing of those.
    """
    if not names:  # of x ~ 1 any column says how many rows there are
        return table.select(table.columns[:1]), []
    frame = nw.from_native(detach(table.select(names).native, ""), eager_only=True)
    # Pandas keeps what others do not: the first level is the reference, and levels that no row has stay.
    if levels or any(_has_order(frame, name) for name in names):
        native = frame.to_pandas()
        for name, known in levels.items():
            codes = table.places(name, known).astype(np.int64)
            kind: Any = pd.CategoricalDtype(list(known))
            native[name] = pd.Categorical.from_codes(codes, dtype=kind)
        frame = nw.from_native(native, eager_only=True)
    settled, notes = Table(frame), []
    for name in (name for name in names if name not in levels):
        if name not in classes and isinstance(settled.frame[name].dtype, nw.Unknown):
            cells = settled.frame[name].to_native()
            kind = getattr(cells, "dtype", None) or cells.type
            raise DataError(
                f"Column '{name}' has the type {kind}, which is neither numbers, text nor dates. Convert it "
                f"to one of these, or write C({quote(name)}), which makes each of its values a category."
            )
        days = None if name in classes else _count_days(settled, name)
        category = days is None and (name in classes or not settled.is_numeric(name))
        if tell and category and settled.levels(name) == 1:
            notes.append(f"Column '{name}' has one value in all rows: it adds nothing to the formula.")
        if days is not None:
            fresh = nw.new_series(name, days, nw.Float64, backend=frame.implementation)
            settled = Table(settled.frame.with_columns(fresh))
            notes.append(
                f"Column '{name}' enters the formula as days, a date as days since 1970-01-01. "
                f"C({quote(name)}) makes each of its values a category."
            )
    return settled, notes


def hint_at_logs(formula: str, table: Table, protected: Collection[str] = ()) -> list[str]:
    """Which positive public predictors span decades and enter a log-scale family as they are."""
    parsed, hints = parse(formula, table), []
    for name in parsed.predictors:
        if name in protected or parsed.uses[name] != {BARE}:
            continue
        if spans_decades(table, name):
            low, high = table.numbers(name).min(), table.numbers(name).max()
            hints.append(
                f"'{name}' spans {np.log10(high / low):.0f} decades and enters a family on the log scale as "
                f"it is: try log({quote(name)})."
            )
    return hints


def spans_decades(table: Table, name: str) -> bool:
    """Whether a column holds positive numbers, some of them many times as large as others."""
    if not table.is_numeric(name):
        return False
    values = table.numbers(name)
    if not (values > 0).all():
        return False
    first, last = np.quantile(values, (0.01, 0.99))
    return bool(last >= _WIDE * first)


def _has_order(frame: "nw.DataFrame[Any]", name: str) -> bool:
    """Whether a column lists its levels in an order that its library's frames do not keep in a design."""
    kind = frame[name].dtype
    arrow = frame.implementation.is_pyarrow() and isinstance(kind, nw.Categorical)
    return arrow or (frame.implementation.is_polars() and isinstance(kind, nw.Enum))


def _count_days(table: Table, name: str) -> "np.ndarray[tuple[int], np.dtype[np.float64]] | None":
    """A column of dates or durations as days; None for any other."""
    series = table.frame[name]
    if series.dtype == nw.Object and pd.api.types.infer_dtype(series.to_native()) in ("date", "datetime"):
        cells = pd.to_datetime(series.to_native()).to_frame(name)
        return _count_days(Table.of(cells), name)
    if not isinstance(series.dtype, nw.Date | nw.Datetime | nw.Duration):
        return None
    return np.asarray(table.cells(name), dtype=np.float64) / DAY
