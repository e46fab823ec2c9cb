"""The file formats, and what a file was when it was read: its table, and all that a copy like it needs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from hedgerow.errors import FileError, SettingError

MISSING_WORDS = ("NA", "N/A", "NaN", "nan", "NULL", "null", "None", ".")
LEFT_INDEX = "an index without a name, as pandas and R write it, is left out. Name the column to keep it."


class Format(StrEnum):
    """A kind of file. SAS is read only: the tools that write it do not write what SAS itself writes."""

    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"
    STATA = "stata"
    SPSS = "spss"
    EXCEL = "excel"
    SAS = "sas"
    XPORT = "xport"

    @property
    def writable(self) -> bool:
        """Whether hedgerow writes this kind."""
        return self not in (Format.SAS, Format.XPORT)

    @property
    def written_as(self) -> "Format":
        """The kind of a copy: the input's own; Parquet for SAS, since it keeps dates and doubles."""
        return self if self.writable else Format.PARQUET

    @property
    def display_name(self) -> str:
        """The name that people know it by."""
        names = {"parquet": "Parquet", "arrow": "Arrow", "stata": "Stata", "excel": "Excel"}
        names["xport"] = "SAS transport"
        return names.get(self.value, self.value.upper())

    @property
    def suffix(self) -> str:
        """The usual ending of a file of this kind."""
        return _ENDINGS[self][0]


_ENDINGS = {
    Format.CSV: (".csv", ".tsv", ".txt"),
    Format.PARQUET: (".parquet", ".pq"),
    Format.ARROW: (".arrow", ".feather", ".ipc"),
    Format.STATA: (".dta",),
    Format.SPSS: (".sav", ".zsav"),
    Format.EXCEL: (".xlsx",),
    Format.SAS: (".sas7bdat",),
    Format.XPORT: (".xpt",),
}


def format_of(path: Path) -> Format:
    """The kind of a file by its ending."""
    kinds = {ending: kind for kind, endings in _ENDINGS.items() for ending in endings}
    if path.suffix.lower() not in kinds:
        raise FileError(
            f"{path.name}: the ending {path.suffix or '(none)'!r} is not one of {', '.join(kinds)}. "
            "Rename the file, or say which format it has."
        )
    return kinds[path.suffix.lower()]


def as_format(value: "Format | str") -> Format:
    """A format by its name."""
    if value not in list(Format):
        raise SettingError(f"format {value!r} is not one of {', '.join(Format)}.")
    return Format(value)


def freeze(mapping: Mapping[Any, Any] = MappingProxyType({})) -> Mapping[Any, Any]:
    """A copy that cannot be changed."""
    return MappingProxyType(dict(mapping))


@dataclass(frozen=True)
class Reading:
    """What a caller says of the cells of a CSV or an Excel file."""

    missing: Collection[str] = MISSING_WORDS  # words that stand for a missing value
    text: Collection[str] = ()  # columns to keep as text
    header: bool = False  # the first line holds names, though it looks like a record
    numbers: Collection[str] = ()  # columns of doubles, where any other cell is missing
    dates: Collection[str] = ()  # columns of days, likewise

    @property
    def settled(self) -> set[str]:
        """Columns whose cells decide nothing."""
        return {*self.text, *self.numbers, *self.dates}

    @property
    def words(self) -> pa.Array:
        """The words that stand for a missing value, the empty one among them."""
        return pa.array(sorted({"", *self.missing}), pa.string())


@dataclass(frozen=True)
class Missing:
    """How many cells of a column hold no value, and how the file said so."""

    empty: int = 0  # empty cell, null, Stata's `.`, SPSS's system-missing
    marked: Mapping[str, int] = field(default_factory=freeze)  # "NA", ".a", a declared code: its count

    @property
    def total(self) -> int:
        """All cells without a value."""
        return self.empty + sum(self.marked.values())


@dataclass(frozen=True)
class Stamp:
    """How a CSV column spells its times: `2020-01-31T10:00:00.000Z` is Stamp("T", 3, "Z")."""

    between: str
    digits: int
    zone: str

    @property
    def unit(self) -> str:
        """Arrow's word for so many digits of a second."""
        return {0: "s", 3: "ms", 6: "us", 9: "ns"}[self.digits]


@dataclass(frozen=True)
class Dialect:
    """How a CSV file spells things, so that a copy can spell them the same way."""

    encoding: str = "utf-8"
    bom: bool = False
    delimiter: str = ","
    decimal: str = "."
    newline: str = "\n"
    missing: Mapping[str, str] = field(default_factory=freeze)  # column: the text of its empty cells
    booleans: Mapping[str, tuple[str, str]] = field(default_factory=freeze)  # column: (false, true)
    stamps: Mapping[str, Stamp] = field(default_factory=freeze)


@dataclass(frozen=True)
class Dictionary:
    """The data dictionary of a Stata, SPSS or SAS file. File labels and notes are left out on purpose:
    they are free text about the confidential file, and a copy is another file.
    """

    labels: Mapping[str, str] = field(default_factory=freeze)  # column: what it is
    value_labels: Mapping[str, Mapping[Any, str]] = field(default_factory=freeze)
    formats: Mapping[str, str] = field(default_factory=freeze)
    measures: Mapping[str, str] = field(default_factory=freeze)  # SPSS: nominal, ordinal, scale
    widths: Mapping[str, int] = field(default_factory=freeze)  # SPSS: display width
    missing_ranges: Mapping[str, list[Any]] = field(default_factory=freeze)  # SPSS: declared codes


@dataclass(frozen=True, repr=False)
class Source:
    """A table as it was read, and everything a copy in the same format needs.

    A declared missing value (SPSS -99, Stata .a) is a null in `frame`, so that no model takes it for a
    number; `codes` remembers which one it was. Into a column of an SPSS file that returns unchanged `write`
    puts it back; Stata's letters become `.`, and `Written.changes` says so.
    """

    frame: pa.Table
    format: Format
    missing: Mapping[str, Missing] = field(default_factory=freeze)  # columns with missing cells only
    notes: tuple[str, ...] = ()  # what reading decided that the reader should know
    dialect: Dialect = field(default_factory=Dialect)
    dictionary: Dictionary = field(default_factory=Dictionary)
    codes: Mapping[str, pa.ChunkedArray] = field(default_factory=freeze)

    def __repr__(self) -> str:
        return (
            f"Source(confidential: {self.frame.num_columns} columns × {self.frame.num_rows} rows, "
            f"{self.format.value}, {sum(m.total for m in self.missing.values())} missing cells)"
        )


@dataclass(frozen=True)
class Written:
    """A file that was written: its digest, and what the format could not hold as it was."""

    path: Path
    format: Format
    sha256: str
    size: int
    changes: tuple[str, ...] = ()
