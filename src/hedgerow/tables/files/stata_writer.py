"""Stata .dta out, format 118: Stata 14 and later, up to 32,767 columns.

Written here rather than by pyreadstat or pandas because neither keeps all of it: pyreadstat stores every
integer as long and every float as double and puts the time of writing into the header, pandas has no
letters for missing values. The layout is Stata's own description (`help dta`).
"""

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from hedgerow.arrays import Mask
from hedgerow.errors import DataError
from hedgerow.tables.files.columns import check_exact, is_text, note_empty, some, uncategorised
from hedgerow.tables.files.moments import DEFAULTS, clock, clock_for, from_moments
from hedgerow.tables.files.source import Dictionary, Format

_RESERVED = frozenset(
    ("_all", "_b", "_coef", "_cons", "_n", "_N", "_pi", "_pred", "_rc", "_skip")
) | frozenset(("byte", "double", "float", "if", "in", "int", "long", "strL", "using", "with"))
_COLUMNS_MAX = 32_767
_STR_MAX, _STRL = 2045, 32768
_LONG_MISSING = 2_147_483_621


@dataclass(frozen=True)
class _Storage:
    code: int
    dtype: str
    low: float
    high: float
    missing: int  # as an integer of the same width: `.`
    step: int  # from `.` to `.a`, and so on
    display: str


_BYTE = _Storage(65530, "<i1", -127, 100, 101, 1, "%8.0g")
_INT = _Storage(65529, "<i2", -32767, 32740, 32741, 1, "%8.0g")
_LONG = _Storage(65528, "<i4", -2147483647, 2147483620, _LONG_MISSING, 1, "%12.0g")
_FLOAT = _Storage(65527, "<f4", -1.70141173e38, 1.70141173e38, 0x7F000000, 0x800, "%9.0g")
_DOUBLE = _Storage(65526, "<f8", -8.9884656e307, 8.9884656e307, 0x7FE0000000000000, 1 << 40, "%10.0g")
_WIDEN = {8: (_BYTE, _INT, _LONG), 16: (_INT, _LONG), 32: (_LONG,), 64: (_LONG,)}


def check_stata_names(names: list[str]) -> None:
    """Refuses column names that Stata does not allow."""
    if len(names) > _COLUMNS_MAX:
        raise DataError(
            f"{len(names)} columns; a .dta file of format 118 holds {_COLUMNS_MAX}. Write Parquet or CSV."
        )
    bad = [
        name
        for name in names
        if not re.fullmatch(r"[^\W\d]\w{0,31}", name) or name in _RESERVED or re.fullmatch(r"str\d+", name)
    ]
    if bad:
        raise DataError(
            f"{len(bad)} column names are not allowed in Stata: {some([repr(name) for name in bad])}. Use up "
            "to 32 letters, digits and underscores, a letter first, no reserved word; or choose another "
            "format."
        )


@dataclass(frozen=True)
class _Column:
    code: int
    display: str
    cells: Any  # a numpy array, one item a row
    long: Mapping[int, bytes]  # row from 1: text kept outside the table


def write_stata(
    table: pa.Table, file: BinaryIO, dictionary: Dictionary, codes: Mapping[str, pa.ChunkedArray]
) -> list[str]:
    """The table as a .dta file; returns what the format could not hold as it was."""
    check_stata_names(table.column_names)
    changes: list[str] = []
    columns: list[_Column] = []
    labels: dict[str, Mapping[Any, str]] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        array, named = uncategorised(name, column, changes)
        labels[name] = {**dictionary.value_labels.get(name, {}), **named}
        columns.append(
            _column(name, array, dictionary.formats.get(name), codes.get(name), len(columns) + 1, changes)
        )
    _assemble(file, table.column_names, columns, dictionary.labels, labels, table.num_rows, changes)
    return changes


def _column(
    name: str,
    array: pa.Array,
    display: str | None,
    letters: pa.ChunkedArray | None,
    position: int,
    changes: list[str],
) -> _Column:
    gone = array.is_null().to_numpy(zero_copy_only=False)
    kind = array.type
    if is_text(kind):
        return _text(name, array, position, changes)
    when = clock_for(Format.STATA, kind)
    if when is not None:
        numbers = from_moments(name, array, when, changes)
        display = (
            display if display and clock(Format.STATA, display) == when else DEFAULTS[Format.STATA][when.kind]
        )
        storage = _LONG if when.kind == "date" else _DOUBLE
    else:
        numbers, storage = _numbers(name, array, gone, changes)
        # A format of dates or text on a column that is none any more would mislead.
        if not display or clock(Format.STATA, display) or re.match(r"%-?[0-9]*s$", display):
            display = storage.display
    return _Column(storage.code, display, _filled(name, numbers, storage, gone, letters), {})


def _numbers(name: str, array: pa.Array, gone: Mask, changes: list[str]) -> tuple[Any, _Storage]:
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(array)), _BYTE
    if pa.types.is_boolean(kind):
        changes.append(f"column {name!r}: false and true written as 0 and 1.")
        return array.fill_null(False).to_numpy(zero_copy_only=False).astype(float), _BYTE
    if pa.types.is_integer(kind):
        whole = array.fill_null(0).to_numpy()
        low, high = int(whole.min(initial=0)), int(whole.max(initial=0))
        for storage in _WIDEN[kind.bit_width]:
            if storage.low <= low and high <= storage.high:
                return whole, storage
        check_exact(name, whole)
        return whole.astype(float), _DOUBLE
    if pa.types.is_floating(kind):
        known = array.fill_null(0.0).to_numpy().astype(float)
        # The nearest wider store when a float is beyond the largest that Stata takes for a number.
        fits = kind.bit_width <= 32 and np.abs(known[np.isfinite(known)]).max(initial=0.0) <= _FLOAT.high
        return known, _FLOAT if fits else _DOUBLE
    raise DataError(
        f"column {name!r} is {kind}, which Stata and SPSS do not hold. Convert it to numbers or text first."
    )


def _filled(name: str, numbers: Any, storage: _Storage, gone: Mask, letters: pa.ChunkedArray | None) -> Any:
    missing = gone | np.isnan(numbers) if numbers.dtype.kind == "f" else gone
    known = numbers[~missing]
    beyond = int(((known < storage.low) | (known > storage.high)).sum())
    if beyond:
        raise DataError(
            f"column {name!r} has {beyond} numbers beyond ±{storage.high:g}, infinity included, which Stata "
            "does not hold. Correct them, or choose another format."
        )
    cells = np.where(missing, 0, numbers).astype(storage.dtype)
    steps = np.zeros(len(cells), dtype=np.int64)
    if letters is not None:
        for row, letter in enumerate(letters.to_pylist()):
            if letter is not None:
                steps[row] = ord(letter) - ord("a") + 1
    raw = cells.view(storage.dtype.replace("f", "i"))
    raw[missing] = (storage.missing + steps * storage.step)[missing]
    return cells


def _text(name: str, array: pa.Array, position: int, changes: list[str]) -> _Column:
    words = [word.encode() for word in array.fill_null("").to_pylist()]
    if any(b"\0" in word for word in words):
        raise DataError(
            f"column {name!r} holds NUL characters, which Stata ends a text at. Remove them first."
        )
    note_empty(name, array, changes)
    width = max(1, max(map(len, words), default=1))
    if width <= _STR_MAX:
        return _Column(width, f"%-{min(width, 244)}s", np.array(words, dtype=f"S{width}"), {})
    long = {row: word for row, word in enumerate(words, start=1) if word}
    pointers = np.zeros(len(words), dtype="<u8")
    rows = np.fromiter(long, dtype=np.uint64, count=len(long))
    # Two bytes of column and six of row say where the text is.
    pointers[rows.astype(np.int64) - 1] = (rows << np.uint64(16)) | np.uint64(position)
    return _Column(_STRL, "%-9s", pointers, long)


def _fixed(words: list[str], size: int, limit: int, what: str, changes: list[str]) -> bytes:
    """Texts in fields of `size` bytes that end in NUL, cut to `limit` characters."""
    cut = sum(len(word) > limit for word in words)
    if cut:
        changes.append(f"{cut} {what} cut to {limit} characters.")
    return b"".join(word[:limit].encode().ljust(size, b"\0") for word in words)


def _label_set(name: str, labels: Mapping[Any, str], changes: list[str]) -> bytes:
    codes: dict[int, bytes] = {}
    for value, label in labels.items():
        if isinstance(value, str) and re.fullmatch("[a-z]", value):
            codes[_LONG_MISSING + ord(value) - ord("a") + 1] = label.encode()
        elif not isinstance(value, str) and value == int(value) and abs(value) < _LONG_MISSING:
            codes[int(value)] = label.encode()
        else:
            changes.append(f"column {name!r}: a value label left out, since Stata labels whole numbers only.")
    texts = [label + b"\0" for _, label in sorted(codes.items())]
    starts = np.cumsum([0, *map(len, texts)])[:-1].astype("<i4")
    values = np.array(sorted(codes), dtype="<i4")
    body = (
        struct.pack("<ii", len(codes), sum(map(len, texts)))
        + starts.tobytes()
        + values.tobytes()
        + b"".join(texts)
    )
    head = struct.pack("<i", len(body)) + name.encode().ljust(129, b"\0") + b"\0\0\0"
    return b"<lbl>" + head + body + b"</lbl>" if codes else b""


def _assemble(
    file: BinaryIO,
    names: list[str],
    columns: list[_Column],
    labels: Mapping[str, str],
    value_labels: Mapping[str, Mapping[Any, str]],
    rows: int,
    changes: list[str],
) -> None:
    sets = {
        name: _label_set(name, value_labels[name], changes) if column.code > _STRL else b""
        for name, column in zip(names, columns, strict=True)
    }
    record = np.dtype(
        {"names": [f"c{i}" for i in range(len(columns))], "formats": [c.cells.dtype for c in columns]}
    )
    table = np.empty(rows, dtype=record)
    for field, column in zip(record.names or (), columns, strict=True):
        table[field] = column.cells
    references = b"".join(
        b"GSO" + struct.pack("<IQBI", position, row, 130, len(word) + 1) + word + b"\0"
        for position, column in enumerate(columns, start=1)
        for row, word in column.long.items()
    )
    # No label and no time in the header: the same table must give the same bytes.
    header = (
        b"<release>118</release><byteorder>LSF</byteorder>"
        + b"<K>" + struct.pack("<H", len(names)) + b"</K><N>" + struct.pack("<Q", rows) + b"</N>"
        + b"<label>\0\0</label><timestamp>\0</timestamp>"
    )  # fmt: skip
    kinds = np.array([column.code for column in columns], dtype="<u2").tobytes()
    displays = [column.display for column in columns]
    about = [labels.get(name, "") for name in names]
    sections = {
        "variable_types": kinds,
        "varnames": _fixed(names, 129, 32, "names", changes),
        "sortlist": bytes(2 * (len(names) + 1)),
        "formats": _fixed(displays, 57, 56, "formats", changes),
        "value_label_names": _fixed(
            [name if sets[name] else "" for name in names], 129, 32, "names", changes
        ),
        "variable_labels": _fixed(about, 321, 80, "variable labels", changes),
        "characteristics": b"",
        "data": table.tobytes(),
        "strls": references,
        "value_labels": b"".join(sets.values()),
    }
    start = b"<stata_dta><header>" + header + b"</header>"
    map_size = len("<map></map>") + 14 * 8
    offsets = [0, len(start), len(start) + map_size]
    for tag, body in sections.items():
        offsets.append(offsets[-1] + len(body) + 2 * len(tag) + len("<></>"))
    offsets.append(offsets[-1] + len("</stata_dta>"))
    file.write(start + b"<map>" + np.array(offsets, dtype="<u8").tobytes() + b"</map>")
    for tag, body in sections.items():
        file.write(f"<{tag}>".encode() + body + f"</{tag}>".encode())
    file.write(b"</stata_dta>")
