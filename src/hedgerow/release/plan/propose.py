"""A first plan for several protected columns, from their types and from what is declared of them.

    >>> import pyarrow as pa
    >>> table = pa.table({"age": [30, 41, 52], "wage": [9.5, 8.0, 12.5], "bonus": [0.0, 1.0, 0.0]})
    >>> found = propose(table, ["wage", "bonus"], {"wage": {"range_min": 1}, "bonus": {"range_min": 0}})
    >>> found.columns["bonus"].formula, found.columns["bonus"].family
    ('bonus ~ age + log(wage)', 'zero_lognormal')

Metadata has the words of SDV 2.0, by column: `sdtype`, `range_min`, `range_max`, `range_values`,
`range_is_nullable`, `decimal_places`, `datetime_format`. It must be public: ranges that a program detected in
the data are not.

Formal guarantee: of a protected column nothing is read but its name and its type. A text file has no types:
there a type follows from the cells, so that what is proposed by it is for the owner to confirm. Public
columns are looked at, since they are released as they are.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.advice.elicit import public_design
from hedgerow.errors import (
    HedgerowError,
    SettingError,
    did_you_mean,
    format_value,
    is_count,
    is_real,
    list_some,
)
from hedgerow.models.families.family import Family
from hedgerow.privacy.columns import Column, Missing
from hedgerow.tables.chain import Units
from hedgerow.tables.formula import quote
from hedgerow.tables.predictors import spans_decades
from hedgerow.tables.table import Table
from hedgerow.tables.values import Declared, is_day

WORDS = (
    "sdtype",
    "range_min",
    "range_max",
    "range_values",
    "range_is_nullable",
    "decimal_places",
    "datetime_format",
)
_OF_SDV = ("computer_representation", "regex_format", "pii")  # without use here
_FEWEST = 20  # rows of a level; a record of a rarer one decides its own fitted value
_LOOKED_AT = 20_000  # rows by which predictors are tried
_COUNTED = 1000  # whole numbers from 0 up to here are taken as counts, beyond as amounts
_IDENTIFIER = re.compile(
    r"(?:^|[_. -])(?:[chpu]?id|serial)(?:$|[_. -]|no$|nr$)|nr\.?$|(?-i:[a-z]I[dD])$", re.IGNORECASE
)
_IDENTIFIES = "it looks like an identifier (name it in --predictors if it is an amount)"
_SCALES = {"lognormal": "log", "zero_lognormal": "log1p", "negative_binomial": "log1p"}  # of those proposed


@dataclass(frozen=True)
class Proposal:
    """Columns in their order, and what their owner should look at; public."""

    columns: dict[str, Column]
    remarks: tuple[str, ...]


def propose(
    table: pa.Table,
    protect: Sequence[str],
    metadata: Mapping[str, Mapping[str, Any]],
    predictors: Sequence[str] | None = None,
    *,
    unit: str | None = None,
    shared: Sequence[str] = (),
) -> Proposal:
    """A family and a formula for each column to protect; each reads public columns and those before it.

    `predictors` are the public columns that formulas read; None: all that are fit for it. Of the rows of one
    `unit` all hold the same cell of each `shared` column, which reads public columns of which that is true.
    """
    _check_names(table, protect, metadata, predictors, shared)
    if shared and unit is None:
        raise SettingError("--shared: rows of a unit share columns, and no unit is named. Add --unit.")
    undeclared = [
        name
        for name in protect
        if _is_text(table.schema.field(name).type) and not metadata.get(name, {}).get("range_values")
    ]
    if undeclared:
        holds = "holds" if len(undeclared) == 1 else "hold"
        said = ", ".join(f"{name}: {{range_values: [first, second]}}" for name in undeclared)
        raise SettingError(
            f"{list_some(undeclared, len(undeclared), quoted=True)} {holds} labels, whose classes must be "
            f'public and are not read from the data. Declare them: --metadata "{{{said}}}".'
        )
    families = {name: _choose(table.schema.field(name).type, metadata.get(name, {})) for name in protect}
    public = table.drop_columns([*protect])
    others = [name for name in public.column_names if name != unit]  # which only says whose row it is
    terms, left_out = _public_terms(public.select(others), predictors)
    if predictors is not None and left_out:
        raise SettingError(f"--predictors: {'; '.join(left_out)}. Leave it out.")
    own: list[str] = []  # terms that are a unit's own
    if unit is not None and shared:
        units = Units.of(Table.of(public.select([unit])), unit)
        fit = others if predictors is None else predictors
        constant = [name for name in fit if not units.differs(Table.of(public), name)]
        own, _ = _public_terms(public.select(constant), None if predictors is None else constant)
    columns: dict[str, Column] = {}
    for name, (family, declared) in families.items():
        once = name in shared
        right = " + ".join(own if once else terms) or "1"
        missing: Missing = "synthesized" if metadata.get(name, {}).get("range_is_nullable") else "refused"
        columns[name] = Column(
            f"{quote(name)} ~ {right}", family, declared=declared, missing=missing, shared=once
        )
        terms, own = [*terms, *_own_term(name, family)], [*own, *(_own_term(name, family) if once else ())]
    return Proposal(columns, tuple(_remarks(families, metadata, left_out)))


def read_metadata(given: Any) -> dict[str, dict[str, Any]]:
    """What is declared by column, from SDV's form (of one table) or from columns alone."""
    tables = given.get("tables") if isinstance(given, Mapping) else None
    if isinstance(tables, Mapping):
        if len(tables) != 1:
            raise SettingError(f"--metadata: it describes {len(tables)} tables. Give that of one.")
        given = next(iter(tables.values()))
    if isinstance(given, Mapping) and isinstance(given.get("columns"), Mapping):
        given = given["columns"]
    if not isinstance(given, Mapping) or not all(isinstance(said, Mapping) for said in given.values()):
        raise SettingError(
            '--metadata takes a file, or YAML on one line, by column: "{wage: {range_min: 0}}".'
        )
    found: dict[str, dict[str, Any]] = {}
    for name, said in given.items():
        for key in said:
            if key not in (*WORDS, *_OF_SDV):
                hint = did_you_mean(key, WORDS) or f" Known here: {', '.join(WORDS)}."
                raise SettingError(f"--metadata: {name}.{key} is not known.{hint}")
        known = {key: said[key] for key in WORDS if said.get(key) is not None}
        found[str(name)] = _read_said(str(name), known)
    return found


def _read_said(name: str, said: dict[str, Any]) -> dict[str, Any]:
    """What is said of one column, checked, and dates as copies write them."""
    for key in ("range_min", "range_max"):
        if key in said and not is_real(said[key]):
            said[key] = _read_day(f"{name}.{key}", said[key], said.get("datetime_format"))
    places, levels = said.get("decimal_places", 0), said.get("range_values", [])
    if not is_count(places):
        raise SettingError(
            f"--metadata: {name}.decimal_places must be a whole number, got {format_value(places)}."
        )
    if not isinstance(levels, list) or not (
        all(map(is_real, levels)) or all(isinstance(level, str) for level in levels)
    ):
        raise SettingError(
            f"--metadata: {name}.range_values must be a list of words or of numbers, such as [low, high], "
            f"got {format_value(levels)}. Put words that look like numbers in quotes."
        )
    if not isinstance(said.get("range_is_nullable", False), bool):
        raise SettingError(
            f"--metadata: {name}.range_is_nullable must be true or false, got "
            f"{format_value(said['range_is_nullable'])}."
        )
    return said


def _read_day(place: str, given: Any, spelled: Any) -> str:
    """A date as `Declared` takes it, from one in the column's `datetime_format` where that is said."""
    if isinstance(given, str) and isinstance(spelled, str):
        try:
            return datetime.strptime(given, spelled).date().isoformat()
        except ValueError:
            pass
    if is_day(str(given)):
        return str(given)
    also = "" if spelled is None else f", or as datetime_format {spelled} spells it"
    raise SettingError(
        f"--metadata: {place} must be a number, or a date such as 2015-01-31{also}, got "
        f"{format_value(given)}."
    )


def _check_names(
    table: pa.Table,
    protect: Sequence[str],
    metadata: Mapping[str, Mapping[str, Any]],
    predictors: Sequence[str] | None,
    shared: Sequence[str],
) -> None:
    if not protect:
        raise SettingError("--protect names no column. Give their names with commas: --protect wage,bonus.")
    twice = [name for name in protect if protect.count(name) > 1]
    if twice:
        raise SettingError(f"--protect names '{twice[0]}' twice. Name each column once.")
    for flag, names in (("protect", protect), ("metadata", metadata), ("predictors", predictors or ())):
        for name in names:
            if name not in table.column_names:
                hint = did_you_mean(name, table.column_names)
                whole = [each for each in table.column_names if "," in each and each.startswith(f"{name},")]
                hint = f" Write `{whole[0]}`, in backticks: its name has a comma." if whole else hint
                raise SettingError(
                    f"--{flag}: the table has no column '{name}'.{hint or ' Names count letter by letter.'}"
                )
    for name in shared:
        if name not in protect:
            raise SettingError(f"--shared: '{name}' is not protected. Name it in --protect as well.")
    both = [name for name in predictors or () if name in protect]
    if both:
        raise SettingError(
            f"--predictors: '{both[0]}' is protected. Name public columns; later columns read earlier ones."
        )


def _is_text(kind: pa.DataType) -> bool:
    """Whether a column holds labels that its type does not name."""
    numbers = pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal
    known = *numbers, pa.types.is_boolean, pa.types.is_temporal, pa.types.is_dictionary
    return not any(holds(kind) for holds in known)


def _choose(kind: pa.DataType, said: Mapping[str, Any]) -> tuple[str | Family, Declared | None]:
    """A family for a column, and what copies keep to, from its type and what was declared of it."""
    word, levels = said.get("sdtype"), said.get("range_values")
    if pa.types.is_boolean(kind):
        return "bernoulli", None
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if levels:
        ordered = word == "ordinal" or (number and word != "categorical")
        family = "bernoulli" if len(levels) == 2 else "ordinal" if ordered else "categorical"
        return Family(family, levels=tuple(sorted(levels) if number else levels)), None
    if pa.types.is_dictionary(kind):  # whose classes are those of its type
        return "ordinal" if word == "ordinal" else "categorical", None
    low, high = (said.get(key) for key in ("range_min", "range_max")) if number else (None, None)
    whole = pa.types.is_integer(kind) or said.get("decimal_places") == 0
    if word in ("ordinal", "categorical") and whole and low is not None and high is not None:
        return Family(word, lower=low, upper=high), None
    if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
        return "normal", Declared("date", range_min=said.get("range_min"), range_max=said.get("range_max"))
    ends = {"range_min": low, "range_max": high}
    places = None if whole else said.get("decimal_places")
    declared = Declared("integer" if whole else "number", decimal_places=places, **ends) if number else None
    if declared == Declared("number"):
        declared = None
    if low is None or low < 0:
        return "normal", declared
    if low > 0:
        return "lognormal", declared
    if high is not None and whole and high <= _COUNTED:
        return "negative_binomial", declared
    return "zero_beta" if high is not None and high <= 1 else "zero_lognormal", declared


def _own_term(name: str, family: str | Family) -> list[str]:
    """How later columns read a protected one: by its family, which says where its values lie."""
    if isinstance(family, Family) or family == "bernoulli":  # whose classes are declared, or two by type
        return [f"C({quote(name)})"]
    if family in ("categorical", "ordinal"):
        return []
    return [f"{_SCALES[family]}({quote(name)})" if family in _SCALES else quote(name)]


def _public_terms(public: pa.Table, asked: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """The terms of public columns that a design takes, and why it does not take the others.

    A column that looks like an identifier is read where it was asked for by name.
    """
    terms: list[str] = []
    left_out: list[str] = []
    some = public.slice(0, _LOOKED_AT)
    outcome = "outcome_"
    while outcome in public.column_names:
        outcome += "_"
    for name in public.column_names if asked is None else asked:
        column = public.column(name)
        why = _unfit(column) or (_IDENTIFIES if asked is None and _identifies(name, column) else "")
        term = quote(name)
        if not why and spans_decades(Table.of(some.select([name])), name):
            term = f"log({quote(name)})"
        if not why:
            try:
                public_design(f"{outcome} ~ {' + '.join([*terms, term])}", some)
            except HedgerowError:
                why = "it repeats what the columns before it say, or is no number, text or date"
        if why:
            left_out.append(f"'{name}': {why}")
        else:
            terms.append(term)
    return terms, left_out


def _identifies(name: str, column: pa.ChunkedArray) -> bool:
    """Whether whole numbers are named like an identifier, or all rows have different ones."""
    different = len(column) >= _FEWEST and len(pc.unique(column)) == len(column)
    return pa.types.is_integer(column.type) and (different or bool(_IDENTIFIER.search(name)))


def _unfit(column: pa.ChunkedArray) -> str:
    """Why a public column is no predictor, in words; empty if it may be one."""
    if column.null_count:
        return "it has missing values"
    counts = pc.value_counts(column).field("counts")
    if len(counts) < 2:
        return "it has one value in all rows"
    number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if not (number or pa.types.is_temporal(column.type) or pa.types.is_decimal(column.type)):
        rarest = pc.min(counts).as_py()
        return (
            f"one of its {len(counts)} levels has {rarest} of {len(column)} rows" if rarest < _FEWEST else ""
        )
    if pa.types.is_integer(column.type) and len(counts) == len(column):
        ends = pc.min_max(column).as_py()
        return "it counts the rows" if ends["max"] - ends["min"] + 1 == len(column) else ""
    return ""


def _remarks(
    families: Mapping[str, tuple[str | Family, Declared | None]],
    metadata: Mapping[str, Mapping[str, Any]],
    left_out: Sequence[str],
) -> list[str]:
    remarks = [
        "Proposed from types and metadata alone. In a text file a type follows from the cells, protected "
        "ones too: what is declared by it (whole numbers, dates, two classes) is published, and must be "
        "public knowledge. Choose each family from what the column is (docs/families.md): amounts above 0 "
        "lognormal, with zeros zero_lognormal, counts negative_binomial, either sign and far out {kind: "
        "asinh, scale: usual size}, classes {kind: "
        "categorical, levels: [a, b, c]}. A formula reads public columns and protected ones above it. Codes "
        "that are numbers go into C(…); leave out what explains little: every term has its price. Gaps, "
        "codes and rules are said of a column: missing: synthesized, codes: [-8], only_where: …, kinds_by: "
        "C(sector), filler: a usual amount where later columns read one with gaps (docs/tables.md)."
    ]
    vague = [
        name
        for name, (family, _) in families.items()
        if family == "normal" and "range_min" not in metadata.get(name, {})
    ]
    if vague:
        remarks.append(
            f"Nothing says what {list_some(vague, quoted=True)} can be, so normal is proposed, with values "
            "below 0. Say what is public: --metadata '{NAME: {range_min: 0}}' of amounts and counts, "
            "{range_values: [1, 2, 3], sdtype: categorical} of codes for classes, range_is_nullable: true "
            "where there may be gaps; or change the family in the plan."
        )
    kept = [
        name
        for name, (_, declared) in families.items()
        if declared is not None and any(end not in (None, 0) for end in declared.ends)
    ]
    if kept:
        remarks.append(
            f"What copies draw beyond the limits of {list_some(kept, quoted=True)} is moved to them. Where "
            "that would be many, write the limits into the family, {kind: lognormal, lower: 1, upper: 80}, "
            "which then has no closed form; not under strict."
        )
    if left_out:
        remarks.append(f"Public columns that no formula reads: {'; '.join(left_out)}.")
    return remarks
