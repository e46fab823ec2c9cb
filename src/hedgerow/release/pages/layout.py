"""How the copies of a release are laid out, which anybody who has one can see."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from hedgerow.tables.files import Source

_TYPES = (
    (pa.types.is_boolean, "true or false"),
    (pa.types.is_integer, "whole number"),
    (pa.types.is_floating, "number"),
    (pa.types.is_decimal, "number"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "date and time"),
    (pa.types.is_time, "time of day"),
    (pa.types.is_duration, "duration"),
    (pa.types.is_dictionary, "category"),
    (pa.types.is_string, "text"),
    (pa.types.is_large_string, "text"),
)


@dataclass(frozen=True)
class Layout:
    """How the copies are laid out, which anybody who has one can see."""

    types: Mapping[str, str]  # of each column in words, in the order of the file
    delimiter: str = ","  # of a CSV file, as are the others
    decimal: str = "."
    encoding: str = "utf-8"

    @classmethod
    def of(cls, schema: pa.Schema, like: Source) -> Self:
        """Of copies that have this schema and are written like a source."""
        types = {field.name: describe_type(field.type) for field in schema}
        return cls(types, like.dialect.delimiter, like.dialect.decimal, like.dialect.encoding)


def describe_type(kind: pa.DataType) -> str:
    """A type in words."""
    return next((words for is_such, words in _TYPES if is_such(kind)), str(kind))
