"""One number for a confidential table, the same however the table is stored.

A fingerprint says whether two tables hold the same data, so that a budget follows the data and not the
file. It is equal for another order of rows or columns, other column names, another file format, and other
types for the same values: whole numbers as integers or floats, float32 that holds the same numbers, true as
1, text as categories, a day as its midnight, empty text as missing text.

It is HMAC-SHA-256 under the ledger's secret key. Without the key it cannot be told from a random number,
and nobody can test a guess of the data against it; with the key a guess of the whole table can be tested,
which is why the key is as confidential as the data.
"""

import hashlib
import hmac
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import DataError
from hedgerow.progress import report
from hedgerow.release.ledger.parts import (
    Blocks,
    Parts,
    Words,
    full_scratch,
    read_columns,
    sort_rows,
    write_words,
)
from hedgerow.tables.files.columns import EXACT, is_text, join_chunks

MISSING = np.uint64(0x7FF8_0000_0000_0001)  # a NaN, and NaN is never a value
_DAY = 86_400_000_000
_REAL = (pa.types.is_null, pa.types.is_boolean, pa.types.is_floating, pa.types.is_decimal)


def fingerprint(frame: Any, columns: Sequence[str] | None = None, *, key: bytes) -> str:
    """64 hex digits for the rows of the given columns (all, if none are given).

    `frame` is a dataframe, or the parts of a table that is larger than memory: the same digits.
    """
    table = Parts.of(frame)
    names = list(columns) if columns is not None else table.names
    absent = sorted(set(names) - set(table.names))
    if absent or not names:
        raise DataError(
            f"columns {absent or 'none'} cannot be fingerprinted. Choose from {table.names[:20]}."
        )
    if table.records == 0:
        raise DataError("a table of 0 rows cannot be fingerprinted. At least one row is needed.")

    def cells() -> Iterator[Words]:
        for number in range(table.count):
            part = table.part(number)
            words = [
                cell_words(name, part.column(name), lambda texts: _hash_all(texts, key)) for name in names
            ]
            if table.scratch is not None:
                report("blocks fingerprinted", number + 1, table.count)
            yield np.column_stack(words)

    if table.scratch is None:
        held = list(cells())
        return _fingerprint(lambda places: (block[:, places] for block in held), names, table, key)
    with tempfile.TemporaryDirectory(dir=table.scratch) as folder:
        place = Path(folder) / "words"
        write_words(place, cells())
        sizes = [table.size(number) for number in range(table.count)]
        try:
            return _fingerprint(partial(read_columns, place, sizes, len(names)), names, table, key)
        except OSError as error:
            raise full_scratch(error) from None


def _fingerprint(
    read: Callable[[Sequence[int]], Iterator[Words]], names: list[str], table: Parts, key: bytes
) -> str:
    """The fingerprint of a table of which `read` gives some columns, block by block."""

    def digest(mac: hmac.HMAC, blocks: Blocks, keys: Sequence[int]) -> hmac.HMAC:
        for block in sort_rows(blocks, table.records, keys, table.scratch):
            mac.update(np.ascontiguousarray(block, dtype="<u8").data)
        return mac

    # Columns are ordered by what they hold, not by name: renaming one must not open a new account. Only
    # columns with the very same values in another order need their names to tell them apart.
    order = [0]
    if len(names) > 1:
        inner = [
            digest(hmac.new(key, None, "sha256"), partial(read, [place]), [0]).digest()
            for place in range(len(names))
        ]
        order = sorted(range(len(names)), key=lambda i: (inner[i], names[i]))
    mac = hmac.new(key, f"hedgerow fingerprint 1 {table.records} {len(names)} ".encode(), "sha256")
    return digest(mac, partial(read, order), range(len(names))[::-1]).hexdigest()


def cell_words(name: str, column: pa.ChunkedArray, hash_texts: Callable[[Any], Words]) -> Words:
    """Each cell as 64 bits: equal values, equal bits. Text is hashed, so a collision has odds of 2⁻⁶⁴."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    gone = pc.is_null(column, nan_is_null=True).to_numpy()
    words: Words
    if is_text(kind):
        # SPSS pads text with blanks and knows no empty text: neither may make a difference.
        trimmed = pc.utf8_rtrim(column.cast(pa.large_string()), " ").fill_null("")
        gone = gone | pc.equal(trimmed, "").to_numpy()
        coded = join_chunks(trimmed).dictionary_encode()
        words = hash_texts(coded.dictionary)[coded.indices.to_numpy()]
    elif pa.types.is_integer(kind):
        words = _whole(column.fill_null(0).to_numpy(), hash_texts)
    elif any(of(kind) for of in _REAL):
        numbers = column.cast(pa.float64()).fill_null(0.0).to_numpy()
        words = (numbers + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
    elif pa.types.is_date(kind):
        days = column.cast(pa.date32(), safe=False).cast(pa.int32()).fill_null(0).to_numpy()
        words = (days * np.int64(_DAY)).view(np.uint64)
    elif pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        words = _ticks(column).view(np.uint64)
    else:
        raise DataError(
            f"column {name!r} of type {kind} cannot be fingerprinted. Convert it to numbers or text."
        )
    return np.where(gone, MISSING, words)


def _whole(exact: Any, hash_texts: Callable[[Any], Words]) -> Words:
    words: Words = exact.astype(np.float64).view(np.uint64)
    # Beyond 2^53 neighbours share a float; those that are no float get bits of their own.
    large = np.flatnonzero((exact > EXACT) | (exact < -EXACT)) if exact.dtype.itemsize == 8 else ()
    between = [i for i in large if int(exact[i]) != int(float(exact[i]))]
    if between:
        words[between] = hash_texts(pa.array([str(int(exact[i])) for i in between]))
    return words


def _ticks(column: pa.ChunkedArray) -> Any:
    """Microseconds, whatever the unit; what lies below stays in the top bits, where no year reaches."""
    kind = column.type
    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[kind.unit]
    ticks = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    raw = ticks.cast(pa.int64()).fill_null(0).to_numpy()
    if per_second <= 1_000_000:
        return raw * (1_000_000 // per_second)
    micro, below = np.divmod(raw, 1_000)
    return micro ^ (below << np.int64(53))


def _hash_all(texts: pa.Array, key: bytes) -> Words:
    digests = (hashlib.blake2b(text.encode(), key=key[:64], digest_size=8) for text in texts.to_pylist())
    return np.array([int.from_bytes(each.digest(), "little") for each in digests], dtype=np.uint64)
