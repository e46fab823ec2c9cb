"""What the file of a copy may say about its columns, beside their values.

    >>> import pandas as pd
    >>> from hedgerow.tables.files import read, write
    >>> _ = write(pd.DataFrame({"pay": [12, 9], "region": [1, 2]}), "pay.sav", "spss")
    >>> source = read("pay.sav")
    >>> like = source_of_copies(source, ("pay", "region"), {"pay": DictionaryEntry("Pay in euro")})
    >>> dict(like.dictionary.labels)
    {'pay': 'Pay in euro'}

A data dictionary describes the confidential table: a value label may name the firm behind a value, a declared
missing code may be one that a single record has. Of the protected column copies say what the plan declares
and nothing else; of public columns, which codes that occur mean.

Guarantee: two tables that differ in the protected column alone, its dictionary included, give the same
`Source` but for its frame and what it tells the owner, from which no copy is written.
"""

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import SettingError, list_some
from hedgerow.tables.files.buffers import drop_unused_levels
from hedgerow.tables.files.columns import join_chunks
from hedgerow.tables.files.source import Dictionary, Format, Source, freeze


@dataclass(frozen=True)
class DictionaryEntry:
    """What Stata and SPSS copies may say of the protected column, declared without looking at it."""

    label: str | None = None
    values: Mapping[Any, str] = field(default_factory=dict)  # code: what it means
    display: str | None = None  # its display format: "%12.0g", "F8.2"


def source_of_copies(
    source: Source,
    released: Collection[str],
    protected: Mapping[str, DictionaryEntry],
    *,
    keep: Collection[str] = (),
    format: Format | None = None,
) -> Source:
    """The source as copies are written like; `keep` names public columns that keep all labels and levels.

    `protected` is what the plan declares of each protected column. Its notes tell the owner what is left out.
    """
    format = format or source.format.written_as
    whole, others = source.dictionary, {*released} - {*protected}
    for outcome, entry in protected.items():
        own = whole.value_labels.get(outcome)
        told = own is not None and own.items() <= entry.values.items()
        shared = [name for name in keep if own and not told and whole.value_labels.get(name) == own]
        if shared:
            raise SettingError(
                f"keep_levels: {list_some(shared)} shares its value labels with the protected column "
                f"'{outcome}', and all of them would be published. Leave it out of keep_levels, or "
                'declare them all (--dictionary "{values: {…}}").'
            )
        shows_display = entry.display is not None and format in (Format.STATA, Format.SPSS)
        if shows_display and str(entry.display).startswith("%") != (format is Format.STATA):
            raise SettingError(
                f"display: {entry.display!r} is not a display format of {format.display_name}. Stata's begin "
                "with %, as %12.0g; SPSS has F8.2."
            )
    labels, ranges = _pick(whole.value_labels, others), _pick(whole.missing_ranges, others)
    shortened = []
    for name, column in zip(source.frame.column_names, source.frame.columns, strict=True):
        if name not in others or name in keep:
            continue
        if name in labels:
            present = _occurring(source, name)
            labels[name] = {code: text for code, text in whole.value_labels[name].items() if code in present}
        if name in ranges:
            ranges[name] = [each for each in ranges[name] if _is_used(each, source.codes.get(name))]
        if (
            labels.get(name) != whole.value_labels.get(name)
            or ranges.get(name) != whole.missing_ranges.get(name)
            or (pa.types.is_dictionary(column.type) and _has_unused_levels(join_chunks(column)))
        ):
            shortened.append(name)
    # Display formats, measures and declared codes mean something in their own format only.
    same = format is source.format
    kept = {
        "labels": _pick(whole.labels, others),
        "value_labels": labels,
        "formats": _pick(whole.formats, others) if same else {},
        "measures": _pick(whole.measures, others) if same else {},
        "widths": _pick(whole.widths, others) if same else {},
        "missing_ranges": ranges if same else {},
    }
    for outcome, entry in protected.items():
        declared = {"labels": entry.label, "value_labels": entry.values, "formats": entry.display}
        for part, value in declared.items():
            kept[part] |= {outcome: value} if value else {}
    dialect = replace(source.dialect, missing=_pick(source.dialect.missing, others))
    return replace(
        source,
        format=format,
        notes=tuple(_notes(source, protected, shortened)),
        dialect=dialect,
        dictionary=Dictionary(**{part: freeze({k: v for k, v in kept[part].items() if v}) for part in kept}),
        codes=_pick(source.codes, others) if same else {},
    )


def _pick(entries: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: entry for name, entry in entries.items() if name in names}


def _occurring(source: Source, name: str) -> set[Any]:
    """The codes in a column, declared missing ones included."""
    columns = (source.frame.column(name), source.codes.get(name))
    return {code for column in columns if column is not None for code in pc.unique(column).to_pylist()}


def _is_used(declared: Any, codes: pa.ChunkedArray | None) -> bool:
    """Whether a cell holds a declared missing value: one code, or a range of them."""
    low, high = (declared["lo"], declared["hi"]) if isinstance(declared, dict) else (declared, declared)
    present = [] if codes is None else pc.unique(codes).drop_null().to_pylist()
    return any(low <= code <= high for code in present)


def _has_unused_levels(column: pa.Array) -> bool:
    return len(drop_unused_levels(column).dictionary) < len(column.dictionary)


def _notes(source: Source, protected: Mapping[str, DictionaryEntry], shortened: list[str]) -> list[str]:
    """What the owner should know: nothing of it is published."""
    said, notes = source.dictionary, []
    left_out = [
        f"'{name}'"
        for name, entry in protected.items()
        if (said.labels.get(name) and entry.label is None)
        or (said.value_labels.get(name) and not entry.values)
        or name in said.missing_ranges
    ]
    if left_out:
        where = '--dictionary "{label: …, values: {…}}", or under outputs in a plan'
        if len(protected) > 1:
            where = "dictionary: {label: …, values: {…}} under each column of the plan"
        notes.append(
            f"what the file's dictionary says of the protected column {', '.join(left_out)} (its label, "
            f"value labels and declared missing codes) is left out. Declare what is public: {where}."
        )
    return notes + tell_shortened(shortened)


def tell_shortened(names: Sequence[str]) -> list[str]:
    """That some columns lose what no row has; nothing, where none do."""
    if not names:
        return []
    return [
        f"labels, declared missing codes and levels that do not occur in columns {list_some(names)} "
        f"are left out. If they are public, keep them: --keep-levels {shlex.quote(names[0])}, and so "
        "on for each; or keep_levels under outputs in a plan."
    ]
