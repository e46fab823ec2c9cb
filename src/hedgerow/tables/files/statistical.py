"""Stata, SPSS and SAS in, through pyreadstat, with their data dictionaries.

Codes stay codes and their value labels go into the dictionary: a label need not exist for every code,
and a copy must hold the same codes. An empty text cell is how these formats say that text is missing.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyreadstat

from hedgerow.arrays import Array, Mask
from hedgerow.errors import FileError
from hedgerow.tables.files.columns import EXACT, check_flat
from hedgerow.tables.files.moments import clock_of_display, to_moments
from hedgerow.tables.files.source import Dictionary, Format, Missing, Source, freeze

_READERS = {
    Format.STATA: (pyreadstat.read_dta, {"user_missing": True}),
    Format.SPSS: (pyreadstat.read_sav, {"user_missing": True}),
    Format.SAS: (pyreadstat.read_sas7bdat, {"user_missing": True}),
    Format.XPORT: (pyreadstat.read_xport, {}),
}
_STORAGE = {"int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "float": pa.float32()}


def read_statistical(path: Path, kind: Format, *, encoding: str | None = None) -> Source:
    """A Stata, SPSS or SAS file as a `Source`."""
    reader, options = _READERS[kind]
    try:
        cells, meta = reader(
            str(path), output_format="dict", disable_datetime_conversion=True, encoding=encoding, **options
        )
    except UnicodeError:
        raise FileError(
            f"{path.name}: its text is not in the encoding it declares. Pass encoding='cp1252', "
            "'latin-1' or another."
        ) from None
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, ValueError, OverflowError, MemoryError):
        raise FileError(
            f"{path.name}: not a whole {kind.display_name} file ({path.stat().st_size} bytes). It was cut "
            "short, damaged or has another format: copy or export it again. Text in another encoding can "
            "look like this too."
        ) from None
    columns = _Columns(kind, meta)
    arrays = [columns.convert(name, list(cells[name])) for name in meta.column_names]
    table = check_flat(pa.Table.from_arrays(arrays, names=meta.column_names), path.name)
    described = (
        meta.column_names_to_labels,
        {name: freeze(labels) for name, labels in meta.variable_value_labels.items()},
        meta.original_variable_types,
        {name: measure for name, measure in meta.variable_measure.items() if measure != "unknown"},
        meta.variable_display_width,
        meta.missing_ranges,
    )
    dictionary = Dictionary(*(freeze({k: v for k, v in entries.items() if v}) for entries in described))
    return Source(table, kind, freeze(columns.missing), dictionary=dictionary, codes=freeze(columns.codes))


class _Columns:
    """Types each column and collects what was missing and how."""

    def __init__(self, kind: Format, meta: Any) -> None:
        self.kind, self.meta = kind, meta
        self.missing: dict[str, Missing] = {}
        self.codes: dict[str, pa.ChunkedArray] = {}

    def convert(self, name: str, cells: list[Any]) -> pa.ChunkedArray:
        """The column in its Arrow type, declared missing values as nulls."""
        declared = self.meta.missing_ranges.get(name, []) if self.kind is Format.SPSS else []
        if self.meta.readstat_variable_types[name] in ("string", "string_ref"):
            words = np.array([cell or "" for cell in cells], dtype=object)
            marks, marked = _in_ranges(words, declared)
            array = pa.array(words, pa.string(), mask=marked | (words == ""))
            codes = pa.array(words, pa.string(), mask=~marked)
        elif any(isinstance(cell, str) for cell in cells):
            # Stata and SAS: a letter in place of a number says why it is missing.
            letters = np.array([cell if isinstance(cell, str) else "" for cell in cells], dtype=object)
            marks = {f".{letter}": letters == letter for letter in sorted(set(letters) - {""})}
            numbers = [np.nan if cell is None or isinstance(cell, str) else cell for cell in cells]
            array = self._to_type(name, np.array(numbers, float))
            codes = pa.array(letters, pa.string(), mask=letters == "")
        else:
            values = np.array([np.nan if cell is None else cell for cell in cells], float)
            marks, marked = _in_ranges(values, declared)
            array = self._to_type(name, np.where(marked, np.nan, values))
            codes = pa.array(values, mask=~marked)
        counts = {label: int(mask.sum()) for label, mask in marks.items() if mask.any()}
        if counts:
            self.codes[name] = pa.chunked_array([codes])
        if array.null_count:
            self.missing[name] = Missing(array.null_count - sum(counts.values()), freeze(counts))
        return pa.chunked_array([array])

    def _to_type(self, name: str, numbers: Array) -> pa.Array:
        display = self.meta.original_variable_types.get(name)
        clock = clock_of_display(self.kind, display)
        moments = to_moments(numbers, clock) if clock else None
        if moments is not None:
            return moments
        kind = _STORAGE.get(self.meta.readstat_variable_types[name], pa.float64())
        gone = np.isnan(numbers)
        # SPSS and SAS keep doubles only; a format without decimals over whole numbers means integers.
        if self.kind is not Format.STATA and re.match(r"^(F|N|COMMA)?[0-9]+(\.0?)?$", display or ""):
            known = numbers[~gone]
            if np.array_equal(known, np.rint(known)) and np.abs(known).max(initial=0.0) <= EXACT:
                kind = pa.int64()
        cells = np.where(gone, 0.0, numbers) if pa.types.is_integer(kind) else numbers
        return pa.array(cells.astype(kind.to_pandas_dtype()), kind, mask=gone)


def _in_ranges(values: Any, declared: list[Any]) -> tuple[dict[str, Mask], Mask]:
    """Which cells hold a declared missing value: by the words of the declaration, and of any."""
    marks: dict[str, Mask] = {}
    marked = np.zeros(len(values), dtype=bool)
    for entry in declared:
        low, high = (entry["lo"], entry["hi"]) if isinstance(entry, dict) else (entry, entry)
        inside = np.asarray((values >= low) & (values <= high), dtype=bool) & ~marked
        marked |= inside
        marks[f"{low}" if low == high else f"{low} to {high}"] = inside
    return marks, marked
