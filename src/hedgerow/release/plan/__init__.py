"""A plan: everything a release is told before it sees the data, in one file that can be read and signed.

    >>> plan = Plan(formula="payroll ~ log(employees)", epsilon=5.7, data="payroll.csv")
    >>> Plan.loads(plan.text()) == plan
    True
    >>> plan.relation
    'withheld'

A plan is a frozen value. It is written as YAML (`Plan.text`), read back (`Plan.load`), and turned into the
flags of a command line and back (`hedgerow.release.plan.flags`); all three go through one description of its
keys (`hedgerow.release.plan.keys`, and `kinds` for ranges, standards and weights), from which the JSON Schema
comes as well.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from hedgerow.errors import FieldError, PlanError, SettingError, reason_of
from hedgerow.evidence.utility.analyses import Analysis
from hedgerow.privacy.columns import Column, Rules
from hedgerow.privacy.ranges import Everywhere
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.standards import ADP
from hedgerow.privacy.strict import Bounded
from hedgerow.privacy.terms import Terms
from hedgerow.release import text
from hedgerow.release.document import read
from hedgerow.release.plan.keys import (
    ALONE,
    NO_TARGET,
    PLAN,
    VERSION,
    About,
    ColumnKeys,
    Outputs,
    Read,
    write_changes,
    write_column,
)
from hedgerow.release.plan.kinds import build, put_reasons, take_reasons, write
from hedgerow.tables.files import DictionaryEntry
from hedgerow.tables.formula import shorten

_PLAIN = ("data", "missing", "dataset", "ledger", "seed", "unit", "rows_per_unit")
__all__ = ["About", "DictionaryEntry", "Outputs", "Plan", "Read"]


@dataclass(frozen=True, init=False, repr=False)
class Plan:
    """What to release, under which settings, from and to which files.

    Keywords that are not about files are those of `Settings`: Plan(formula="x ~ z", epsilon=6.0, copies=3).
    """

    settings: Settings
    data: str | None
    read: Read
    missing: str
    reasons: Mapping[str, str | None]  # place of a range: why it is public
    dataset: str | None
    ledger: str | None
    outputs: Outputs
    seed: int | None
    unit: str | None  # column that names a person or firm
    rows_per_unit: int | None
    about: About
    dictionaries: Mapping[str, DictionaryEntry]  # of several protected columns, by name; of one: outputs
    analyses: tuple[Analysis, ...]  # compared with the original, for the owner

    def __init__(
        self,
        *,
        settings: Settings | None = None,
        data: str | os.PathLike[str] | None = None,
        read: Read | None = None,
        missing: str = "refuse",
        reasons: Mapping[str, str | None] = MappingProxyType({}),
        dataset: str | None = None,
        ledger: str | os.PathLike[str] | None = None,
        outputs: Outputs | None = None,
        seed: int | None = None,
        unit: str | None = None,
        rows_per_unit: int | None = None,
        about: About | None = None,
        dictionaries: Mapping[str, DictionaryEntry] = MappingProxyType({}),
        analyses: Sequence[str | Analysis] = (),
        **asked: Any,
    ) -> None:
        if settings is None:
            write(asked.get("standard", ADP()), "a standard")  # before it is asked anything
            said = {name: value for name, value in asked.items() if value is not None}
            columns = said.get("formula")
            shared = isinstance(columns, Mapping) and any(column.shared for column in columns.values())
            settings = Settings.of(**said, unit=unit if shared else None)
        elif asked:
            settings = replace(settings, **asked)
        unit = settings.unit if unit is None else unit
        whole = unit is not None and not settings.unpriced_by_unit
        whole &= rows_per_unit != 1 or any(column.shared for column in settings.columns)
        if settings.unit != (unit if whole else None):
            settings = replace(settings, unit=unit if whole else None)
        if settings.noisy is not None:
            if rows_per_unit is None and settings.rows_per_unit > 1:
                rows_per_unit = settings.rows_per_unit
            settings = replace(settings, rows_per_unit=1 if rows_per_unit is None else rows_per_unit)
        outputs, dictionaries = _settle_dictionaries(settings, outputs or Outputs(), dictionaries)
        values: dict[str, Any] = {"dictionaries": dictionaries}
        values |= {"settings": settings, "missing": missing, "dataset": dataset, "seed": seed}
        values |= {"read": read or Read(), "outputs": outputs, "about": about or About()}
        values |= {"unit": unit, "rows_per_unit": rows_per_unit}
        values["analyses"] = tuple(Analysis(each) if isinstance(each, str) else each for each in analyses)
        for name, place in (("data", data), ("ledger", ledger)):
            values[name] = None if place is None else os.fspath(place)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "reasons", MappingProxyType({"": None, **reasons} if self.ranged else {}))
        if self.outputs.statistics and settings.noisy is None:
            raise SettingError(
                "outputs.statistics: only Strict(limits=…) releases noisy statistics. Leave it out, or use "
                "standard: {kind: strict, limits: […]}."
            )
        self.mapping()  # a plan that exists can be written

    def __repr__(self) -> str:
        asked = self.settings
        target = "no target" if asked.epsilon is None else f"ε = {asked.epsilon:g}"
        return f"Plan({asked.described!r}, {asked.standard.label}, {target}; mapping() has all of it)"

    @property
    def ranged(self) -> bool:
        """Whether the standard assumes that the public knows a range."""
        return "range" in write(self.settings.standard, "a standard")

    @property
    def by_unit(self) -> bool:
        """Whether all rows of a unit are priced together: the column `unit` is then used, not only named."""
        return self.settings.unit is not None

    @property
    def rows(self) -> int | None:
        """How many rows one person or firm has at most, as declared; None: nothing was."""
        alone = self.rows_per_unit is None and self.unit is not None and not self.by_unit
        return 1 if alone else self.rows_per_unit

    @property
    def rows_charged(self) -> int | None:
        """For how many rows ε is charged: for one, where ε is the price of all rows of a unit."""
        return 1 if self.by_unit or self.settings.noisy is not None else self.rows

    @property
    def because(self) -> str | None:
        """Why the public knows the range; None: no reason was given."""
        return self.reasons.get("")

    @classmethod
    def of(cls, given: Any) -> Self:
        """A plan from a mapping, as a file or a command line gives it."""
        keys = read(PLAN, given)
        if keys.version != VERSION:
            raise FieldError(
                f"version {keys.version} is not known; this hedgerow reads {VERSION}. Update hedgerow."
            )
        plain = keys.model_fields_set - {"version", "columns"}
        values = {name: build(getattr(keys, name)) for name in plain}
        if keys.columns is not None:
            values["formula"] = {name: _build_column(name, said) for name, said in keys.columns.items()}
            entries = {name: build(column.dictionary) for name, column in keys.columns.items()}
            values["dictionaries"] = {name: entry for name, entry in entries.items() if entry is not None}
        if values["epsilon"] == NO_TARGET:
            values["epsilon"] = None
        rules = {name: values.pop(name) for name in ("derived", "checks") if name in values}
        values |= {"rules": Rules(**rules)} if rules else {}
        written = given.get("standard")
        if isinstance(written, Mapping) and "range" in written:
            values["reasons"] = take_reasons(written["range"])
        return cls(**values)

    @classmethod
    def loads(cls, content: str | bytes, name: str = "plan") -> Self:
        """A plan from the text of a plan file."""
        given = text.load(content, name)
        try:
            return cls.of(given)
        except SettingError as error:
            raise PlanError(f"{name}: {error}") from None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """A plan from a file; paths in it are relative to the file."""
        path = Path(path)
        try:
            with path.open("rb") as file:
                content = file.read(text.LARGEST + 1)
        except OSError as error:
            raise PlanError(f"{path.name}: cannot be read ({reason_of(error)}).") from None
        plan = cls.loads(content, path.name)
        here, data, ledger = path.parent, plan.data, plan.ledger
        return replace(plan, data=data and str(here / data), ledger=ledger and str(here / ledger))

    def mapping(self) -> dict[str, Any]:
        """The plan as a file holds it; what has its default value is left out."""
        asked, standard = self.settings, write(self.settings.standard, "a standard")
        if "range" in standard:
            put_reasons(standard["range"], self.reasons)
        plain = {entry.name: getattr(asked, entry.name) for entry in fields(Terms)}
        plain |= {name: getattr(self, name) for name in _PLAIN}  # a unit may be named and not priced
        plain |= {
            "version": VERSION,
            **self._write_columns(),
            "epsilon": NO_TARGET if asked.epsilon is None else asked.epsilon,
            "derived": dict(asked.rules.derived) or None,
            "checks": list(asked.rules.checks) or None,
            "standard": standard,
            "design_weight": asked.design_weight,
            "analyses": [_write_analysis(each) for each in self.analyses] or None,
            "weights": None,
            "bound": None,
            "read": write_changes(self.read) or None,
            "outputs": write_changes(self.outputs) or None,
            "about": write_changes(self.about) or None,
        }
        if not isinstance(asked.standard, Bounded):  # which brings its own
            plain |= {"weights": write(asked.weights, "weights"), "bound": asked.bound.name}
        if not asked.bound.takes_delta:  # others have a δ of their own
            del plain["delta"]
        if asked.noisy is not None:  # which has no weights
            del plain["known"], plain["debias"]
        keys = read(PLAN, {name: value for name, value in plain.items() if value is not None})
        return keys.model_dump(exclude_unset=True)

    def _write_columns(self) -> dict[str, Any]:
        """What is protected: one column by keys of the plan, where these say all, or several by name."""
        written = {column.outcome: write_column(column) for column in self.settings.columns}
        (first, *others) = written.values()
        if not others and first.keys() <= {*ALONE}:
            return first
        for name, entry in self.dictionaries.items():
            written[name]["dictionary"] = write_changes(entry)
        return {"columns": written}

    @property
    def dictionary(self) -> Mapping[str, DictionaryEntry]:
        """What the copies' files say of each protected column, by its name."""
        columns = self.settings.columns
        if len(columns) == 1:
            return {columns[0].outcome: self.outputs.dictionary}
        return {each.outcome: self.dictionaries.get(each.outcome, DictionaryEntry()) for each in columns}

    def text(self) -> str:
        """The plan as YAML."""
        return text.dump(self.mapping())

    def public(self) -> "Plan":
        """The plan as it may be published.

        Without paths, ledger and seed, without analyses, which are the owner's, and without names that are
        none of the receiver's business: those of the dataset, a sheet and dropped columns. The certificate
        names the dropped columns that were used.
        """
        hidden = self.unit in self.outputs.drop and not self.by_unit  # a column that is used is named
        return replace(
            self,
            unit=None if hidden else self.unit,
            rows_per_unit=self.rows if hidden else self.rows_per_unit,
            data=None,
            read=replace(self.read, text=(), sheet=None),
            dataset=None,
            ledger=None,
            outputs=replace(self.outputs, drop=()),
            seed=None,
            analyses=(),
        )

    @property
    def digest(self) -> str:
        """What the ledger knows the plan by: SHA-256 of its public text."""
        return hashlib.sha256(self.public().text().encode()).hexdigest()

    @property
    def relation(self) -> str:
        """The neighbour relation, by which the ledger keeps its accounts: standard and range, in one line.

        Two releases pay from one account only if their prices bound the same comparison.
        """
        written, strict = self.mapping()["standard"], self.settings.noisy
        together = f" by {self.unit}" if self.by_unit else ""  # all rows of a unit: another comparison
        if strict is not None:
            in_range = strict.relation == "range"
            return f"replaced in {_range_line(written['range'])}" if in_range else strict.relation
        if "range" not in written or isinstance(self.settings.standard.range, Everywhere):
            # Where nothing is known the range standards compare with x_i withheld: no second account for it.
            return f"withheld{together}"
        weight = " public_weight=one" if written.get("public_weight") == "one" else ""
        return f"{written['kind']} {_range_line(written['range'])}{weight}{together}"


def _build_column(name: str, said: ColumnKeys) -> Column:
    """The column that a plan names; what is wrong with it is told with its place."""
    try:
        return said.build()
    except SettingError as error:
        raise SettingError(f"columns.{shorten(name, 60)}: {error}") from None


def _settle_dictionaries(
    settings: Settings, outputs: Outputs, given: Mapping[str, DictionaryEntry]
) -> tuple[Outputs, Mapping[str, DictionaryEntry]]:
    """One place for what files say of a column: outputs if it is the only one, else beside the column."""
    several = len(settings.columns) > 1
    if outputs.dictionary != DictionaryEntry() and (several or given):
        raise SettingError(
            "outputs.dictionary goes with one protected column. With columns, say it of each: "
            "columns: {wage: {dictionary: {label: Pay}, …}}."
        )
    if several:
        return outputs, MappingProxyType(dict(given))
    for entry in given.values():
        outputs = replace(outputs, dictionary=entry)
    return outputs, MappingProxyType({})


def _write_analysis(analysis: Analysis) -> str | dict[str, str]:
    """An analysis as a file holds it: its formula, or a mapping with its family."""
    return analysis.formula if analysis == Analysis(analysis.formula) else dict(vars(analysis))


def _range_line(written: Mapping[str, Any]) -> str:
    """A range in one line: two ranges have the same line only if they are the same."""
    if written["kind"] == "box":
        return f"box({', '.join(f'{name}: {_range_line(part)}' for name, part in written['ranges'].items())})"
    own = [value for key, value in written.items() if key not in ("kind", "outside", "because")]
    words = [_range_line(value) if isinstance(value, Mapping) else repr(value) for value in own]
    words += ["outside=public"] if written["outside"] == "public" else []
    return f"{written['kind']}({', '.join(words)})"
