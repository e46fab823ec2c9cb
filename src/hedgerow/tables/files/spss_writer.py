"""SPSS .sav out, through pyreadstat."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyreadstat

from hedgerow.errors import DataError, FileError
from hedgerow.tables.files.columns import check_exact, is_text, note_empty, some, uncategorised
from hedgerow.tables.files.moments import DEFAULTS, clock, clock_for, from_moments
from hedgerow.tables.files.source import Dictionary, Format

_RESERVED = frozenset(["ALL", "AND", "BY", "EQ", "GE", "GT", "LE", "LT", "NE", "NOT", "OR", "TO", "WITH"])
_TEXT_MAX = 32_767
_WRITTEN_AT = slice(92, 109)  # the header's date and time
_NO_TIME = b"01 Jan 7000:00:00"


def check_spss_names(names: list[str]) -> None:
    """Refuses column names that SPSS does not allow."""
    bad = [
        name
        for name in names
        if not re.fullmatch(r"[^\W\d_][\w.@#$]*", name)
        or len(name.encode()) > 64
        or name.endswith(".")
        or name.upper() in _RESERVED
    ]
    if bad:
        raise DataError(
            f"{len(bad)} column names are not allowed in SPSS: {some([repr(name) for name in bad])}. Use up "
            "to 64 bytes of letters, digits and _ . @ # $, a letter first, no reserved word; or choose "
            "another format."
        )
    if len({name.upper() for name in names}) < len(names):
        raise DataError(
            "some column names differ only in upper and lower case, which SPSS ignores. Rename them."
        )


def write_spss(
    table: pa.Table, path: Path, dictionary: Dictionary, codes: Mapping[str, pa.ChunkedArray]
) -> list[str]:
    """The table as a .sav file; returns what the format could not hold as it was."""
    check_spss_names(table.column_names)
    changes: list[str] = []
    cells: dict[str, Any] = {}
    formats: dict[str, str] = {}
    labels: dict[str, dict[Any, str]] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        array, named = uncategorised(name, column, changes)
        shown = dictionary.formats.get(name)
        if is_text(array.type):
            cells[name] = _words(name, array, codes.get(name), changes)
        else:
            cells[name], formats[name] = _numbers(name, array, shown, codes.get(name), changes)
        kept = {**dictionary.value_labels.get(name, {}), **named}
        usable = {
            value: label for value, label in kept.items() if isinstance(value, str) == is_text(array.type)
        }
        if len(usable) < len(kept):
            changes.append(
                f"column {name!r}: {len(kept) - len(usable)} value labels left out, not of its type."
            )
        if usable:
            labels[name] = usable
    ranges = {
        name: list(entries)
        for name, entries in dictionary.missing_ranges.items()
        if name in cells and (cells[name].dtype == object) == isinstance(_low(entries[0]), str)
    }
    present = set(cells)
    try:
        pyreadstat.write_sav(
            pd.DataFrame(cells, copy=False),
            str(path),
            column_labels={name: label for name, label in dictionary.labels.items() if name in present},
            variable_value_labels=labels,
            missing_ranges=ranges,
            variable_display_width={name: w for name, w in dictionary.widths.items() if name in present},
            variable_measure={name: m for name, m in dictionary.measures.items() if name in present},
            variable_format=formats,
        )
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError):
        # Its message can quote a value.
        raise FileError(
            "the SPSS file could not be written: no room on the disk, or a name, label or declared missing "
            "value that SPSS does not allow. Free some room, or choose another format."
        ) from None
    with path.open("r+b") as file:
        file.seek(_WRITTEN_AT.start)
        file.write(_NO_TIME)
    return changes


def _low(entry: Any) -> Any:
    return entry["lo"] if isinstance(entry, dict) else entry


def _words(name: str, array: pa.Array, codes: pa.ChunkedArray | None, changes: list[str]) -> Any:
    note_empty(name, array, changes)
    words = np.array(array.fill_null("").to_pylist(), dtype=object)
    if codes is not None:
        for row, code in enumerate(codes.to_pylist()):
            if code is not None:
                words[row] = code
    if max((len(word.encode()) for word in words), default=0) > _TEXT_MAX:
        raise DataError(f"column {name!r} has text above {_TEXT_MAX} bytes, the most SPSS holds. Shorten it.")
    return words


def _numbers(
    name: str, array: pa.Array, shown: str | None, codes: pa.ChunkedArray | None, changes: list[str]
) -> tuple[Any, str]:
    kind = array.type
    when = clock_for(Format.SPSS, kind)
    if when is not None:
        numbers = from_moments(name, array, when, changes)
        display = shown if shown and clock(Format.SPSS, shown) == when else DEFAULTS[Format.SPSS][when.kind]
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind):
        if pa.types.is_boolean(kind):
            changes.append(f"column {name!r}: false and true written as 0 and 1.")
        whole = array.cast(pa.uint64() if kind == pa.uint64() else pa.int64()).fill_null(0).to_numpy()
        check_exact(name, whole)
        numbers = np.where(array.is_null().to_numpy(zero_copy_only=False), np.nan, whole.astype(float))
        display = shown if shown and re.fullmatch(r"[FN][0-9]+(\.0)?", shown) else "F8.0"
    elif pa.types.is_floating(kind):
        numbers = array.cast(pa.float64()).fill_null(np.nan).to_numpy().copy()
        infinite = int(np.isinf(numbers).sum())
        if infinite:
            raise DataError(
                f"column {name!r} has {infinite} infinite numbers, which SPSS does not hold. Correct them."
            )
        display = shown if shown and not clock(Format.SPSS, shown) and not shown.startswith("A") else "F8.2"
    else:
        raise DataError(
            f"column {name!r} is {kind}, which SPSS does not hold. Convert it to numbers or text first."
        )
    if codes is not None:
        known = codes.to_numpy()
        numbers = np.where(np.isnan(known), numbers, known)
    return numbers, display
