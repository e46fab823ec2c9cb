"""Protected columns as their owner declares them, and the rules of their table. Public.

>>> Column("bonus ~ log(wage) + age", family="zero_lognormal").outcome
'bonus'

A cell of a column may hold an amount (or a class), one of several codes, or nothing. So a column has links,
each with a model of its own: which kind of cell it is, where that is not public, and then the amount, or its
share of another column. `mechanism.links` builds their designs.

>>> [link.outcome for link in link_columns([Column("bonus ~ wage", missing="synthesized", codes=(-8,))])]
['bonus: kind', 'bonus']
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

from hedgerow.errors import SettingError, format_value, is_finite
from hedgerow.models.base import Model
from hedgerow.models.families.family import Family
from hedgerow.models.prior import Prior
from hedgerow.privacy.claims.cells import FILLER, describe_cells
from hedgerow.tables.expressions import Expression, parse_expression
from hedgerow.tables.formula import quote, split
from hedgerow.tables.values import Declared

Missing = Literal["refused", "withheld", "synthesized", "public"]
Role = Literal["kind", "amount", "share"]
AMOUNT, MISSING = "amount", "missing"


@dataclass(frozen=True)
class Column:
    """How one of several protected columns is synthesized: from public columns and from those before it.

    >>> bonus = Column("bonus ~ age + log(wage)", "zero_lognormal", missing="synthesized", codes=(-8,))
    >>> bonus.kinds  # of cells that copies have
    ('amount', '-8', 'missing')

    Parameters
    ----------
    formula, family, prior, declared
        As for `Synthesizer`.
    missing
        What a missing cell is. "refused": an error, unless the standard withholds it. "withheld": a cell
        whose value is not used; copies have one. "synthesized": copies have gaps as well, by a model of
        their own. "public": everybody knows which cells are missing; copies have gaps in the same places. It
        is refused beside a rule that reads a protected column, which the gaps would tell.
    codes
        Values that stand for no amount, such as -8 for a refusal: each is a kind of its own in the copies.
    share_of
        A column, or arithmetic such as "total - rent", of which this one is a part: the share is modelled (by
        beta, say), so that no copy exceeds the whole. Where the whole is zero or less, the part equals it;
        where it is missing, so is the part.
    only_where, otherwise
        A condition over public and earlier columns, such as "status == 'employed'", and what the cell holds
        elsewhere: a number, a label of classes, or None for a missing cell. What the confidential column
        holds there is not used.
    kinds_by
        Public categories, such as "C(sector)" (or "1" for none): each of their cells has its own shares of
        kinds, in closed form, which is quick and has a price under every bound. None: a regression on the
        column's own terms, which takes minutes where there are many.
    filler
        A usual amount, known to the public: what later columns read in place of a cell that holds none. An
        indicator of each kind of cell is added to their formulas.
    shared
        With `Synthesizer(unit=…)`: all rows of a unit hold the same cell, a household's income, say. It is
        modelled once for each unit, from columns that are the unit's own, and copies have one cell for it.

    Formal guarantee: codes, rules and fillers are declared, and nothing of them is read off a protected cell.
    `assumptions` says in words what is taken as public of its cells; the certificate repeats it.
    """

    formula: str
    family: str | Model = "lognormal"
    _: KW_ONLY
    prior: Prior | None = None
    declared: Declared | None = None
    missing: Missing = "refused"
    codes: tuple[Any, ...] = ()
    share_of: str | None = None
    only_where: str | None = None
    otherwise: float | str | None = None
    kinds_by: str | None = None
    filler: float = FILLER
    shared: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.formula, str):
            raise SettingError(
                'formula must be text such as "x ~ z", or several columns by name, got '
                f"{format_value(self.formula)}. Data go to fit(data)."
            )
        if self.declared is not None and not isinstance(self.declared, Declared):
            raise SettingError(
                f"declared must be Declared(type, …), got {type(self.declared).__name__}. Use "
                'Declared("integer", range_min=0).'
            )
        if self.missing not in get_args(Missing):
            words = ", ".join(map(repr, get_args(Missing)))
            raise SettingError(f"missing must be one of {words}, got {format_value(self.missing)}.")
        given: Any = self.codes
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise SettingError(f"codes must be a list such as [-8, -9], got {format_value(given)}.")
        # A plan has -8.0 for -8, and a kind goes by its code.
        whole = (is_finite(code) and float(code).is_integer() for code in self.codes)
        codes = tuple(int(code) if each else code for code, each in zip(self.codes, whole, strict=True))
        object.__setattr__(self, "codes", codes)
        labels = [*map(str, self.codes), AMOUNT, MISSING]
        if len(set(labels)) < len(labels) or not all(
            isinstance(code, str) or is_finite(code) for code in self.codes
        ):
            raise SettingError(
                f"codes must be different numbers or words other than '{AMOUNT}' and '{MISSING}', got "
                f"{format_value(list(self.codes))}."
            )
        word = isinstance(self.otherwise, str) and self.share_of is None
        if self.otherwise is not None and (
            self.only_where is None or not (word or is_finite(self.otherwise))
        ):
            raise SettingError(
                f"otherwise must be a number, a label of classes, or None, together with only_where, got "
                f"{format_value(self.otherwise)}."
            )
        if self.kinds_by is not None and (not isinstance(self.kinds_by, str) or len(self.kinds) == 1):
            raise SettingError(
                f"kinds_by must be terms such as 'C(sector)', together with codes or missing='synthesized', "
                f"got {format_value(self.kinds_by)}."
            )
        if not is_finite(self.filler):
            raise SettingError(f"filler must be a finite number, got {format_value(self.filler)}.")
        if not isinstance(self.shared, bool):
            raise SettingError(f"shared must be True or False, got {format_value(self.shared)}.")
        if self.condition is not None and not self.condition.is_condition:
            raise SettingError(
                f'only_where must be a condition such as "hours > 0", got {format_value(self.only_where)}.'
            )
        if self.whole is not None and self.whole.is_condition:
            raise SettingError(f"share_of must be a column or arithmetic, got {format_value(self.share_of)}.")
        if self.outcome in self.reads:
            raise SettingError(f"'{self.outcome}': only_where and share_of cannot read the column itself.")

    @property
    def outcome(self) -> str:
        """The protected column."""
        return split(self.formula)[0]

    @cached_property
    def condition(self) -> Expression | None:
        """Where the column has cells of its own."""
        return None if self.only_where is None else parse_expression(self.only_where)

    @cached_property
    def whole(self) -> Expression | None:
        """What the column is a part of."""
        return None if self.share_of is None else parse_expression(self.share_of)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that its rules read."""
        rules = [rule for rule in (self.condition, self.whole) if rule is not None]
        return tuple(dict.fromkeys(name for rule in rules for name in rule.names))

    @property
    def is_plain(self) -> bool:
        """Whether its cells are amounts, or classes, and nothing else: one link that is the column itself."""
        return self.missing == "refused" and not self.codes and not self.reads

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of cells that are synthesized: one alone needs no model."""
        return (AMOUNT, *map(str, self.codes), *((MISSING,) if self.missing == "synthesized" else ()))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is taken as public of its cells, in words."""
        return tuple(describe_cells(self.outcome, vars(self)))


@dataclass(frozen=True)
class Link:
    """One model of a chain: of the kind of a column's cells, of its amounts, or of its shares of another."""

    column: Column
    role: Role

    @property
    def outcome(self) -> str:
        """What is modelled: the column itself, or a name that no column has."""
        name = self.column.outcome
        return name if self.role == "amount" else f"{name}: {self.role}"

    @property
    def named(self) -> str:
        """What is modelled, in a message."""
        name = f"'{self.column.outcome}'"
        return {"amount": name, "kind": f"gaps and codes of {name}", "share": f"shares of {name}"}[self.role]

    @property
    def family(self) -> str | Model:
        """The family of this link's model: the column's own, or one for kinds of cells."""
        if self.role != "kind":
            return self.column.family
        kinds = self.column.kinds
        if self.column.kinds_by is not None:
            return Family("dirichlet", levels=kinds)
        return Family("bernoulli" if len(kinds) == 2 else "categorical", levels=kinds)

    @property
    def prior(self) -> Prior | None:
        """The column's prior, which is for amounts; kinds of cells have none."""
        return None if self.role == "kind" else self.column.prior

    def formula(self, marks: Sequence[str] = ()) -> str:
        """The column's formula, of this link's outcome, with terms of the kinds of what it reads."""
        if self.role == "kind" and self.column.kinds_by is not None:
            return f"{quote(self.outcome)} ~ {self.column.kinds_by}"
        if self.role == "amount" and not marks:
            return self.column.formula
        right = split(self.column.formula)[1]
        return f"{quote(self.outcome)} ~ {' + '.join([right, *marks])}"


def link_columns(columns: Sequence[Column]) -> tuple[Link, ...]:
    """The links of some columns, in order: the kind of a cell before its amount or share."""
    links = []
    for column in columns:
        if len(column.kinds) > 1:
            links.append(Link(column, "kind"))
        links.append(Link(column, "amount" if column.share_of is None else "share"))
    return tuple(links)


def marks_of(columns: Sequence[Column]) -> dict[str, tuple[str, ...]]:
    """For each column the kinds that its cells may have beside amounts, as names of indicators."""
    marks: dict[str, tuple[str, ...]] = {}
    for column in columns:
        gaps = column.missing in ("synthesized", "public")
        gaps |= column.only_where is not None and column.otherwise is None
        gaps |= column.whole is not None and any(marks.get(name) for name in column.whole.names)
        apart = [column.otherwise] if isinstance(column.otherwise, str) else []
        labels = dict.fromkeys([*map(str, column.codes), *apart, *([MISSING] if gaps else [])])
        marks[column.outcome] = tuple(f"{column.outcome}: {label}" for label in labels)
    return marks


@dataclass(frozen=True)
class Rules:
    """What holds in every row of a table: columns that follow from others, and checks that are counted.

    >>> Rules(derived={"hourly": "wage / hours"}, checks=["bonus <= wage"]).names
    ('hourly',)

    Parameters
    ----------
    derived
        For each column arithmetic over others, or {column: {value: result, …}} for fixed combinations. Copies
        have it recomputed; the confidential column itself is read by nobody and not released.
    checks
        Conditions that are counted in the copies (`Release.checks`). No row is left out or drawn again.
    """

    derived: Mapping[str, str | Mapping[str, Mapping[Any, Any]]] = field(default_factory=dict)
    checks: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.derived, Mapping):
            raise SettingError(f"derived must be a mapping of columns, got {type(self.derived).__name__}.")
        if isinstance(self.checks, str) or not isinstance(self.checks, Sequence):
            raise SettingError(
                f'checks must be a list such as ["bonus <= wage"], got {format_value(self.checks)}.'
            )
        object.__setattr__(self, "derived", dict(self.derived))
        object.__setattr__(self, "checks", tuple(self.checks))
        for name, how in self.derived.items():
            if isinstance(how, Mapping) and not (
                len(how) == 1 and all(isinstance(known, Mapping) and known for known in how.values())
            ):
                raise SettingError(
                    f"derived '{name}': a lookup is {{column: {{value: result, …}}}}, of one column."
                )
            if name in self.reads_of(name):
                raise SettingError(f"derived '{name}' cannot be read by itself.")
        for check in self.conditions:
            if not check.is_condition:
                raise SettingError(f"checks must be conditions, got '{check.text}'.")

    @property
    def names(self) -> tuple[str, ...]:
        """The derived columns, in the order in which they are made."""
        return tuple(self.derived)

    @property
    def conditions(self) -> tuple[Expression, ...]:
        """The checks, parsed."""
        return tuple(parse_expression(check) for check in self.checks)

    def reads_of(self, name: str) -> tuple[str, ...]:
        """The columns that a derived one follows from."""
        how = self.derived[name]
        return tuple(how) if isinstance(how, Mapping) else parse_expression(how).names

    def check_columns(self, columns: Sequence[Column]) -> None:
        """Refuse rules that read what is made later or told by public gaps, and modelled derived columns."""
        outcomes = [column.outcome for column in columns]
        for place, column in enumerate(columns):
            made_last = [name for name in column.reads if name in self.derived]
            if made_last:
                raise SettingError(
                    f"'{column.outcome}': its rule reads '{made_last[0]}', which is derived and made last. "
                    "Use the columns it is derived from."
                )
            late = [name for name in column.reads if name in outcomes[place:]]
            if late:
                raise SettingError(
                    f"'{column.outcome}': its rule reads '{late[0]}', which is made later. Put it before."
                )
            told = [name for name in column.reads if name in outcomes]
            if told and column.missing == "public":
                raise SettingError(
                    f"'{column.outcome}': missing='public' would publish where its rule holds, and the rule "
                    f"reads '{told[0]}', which is protected. Say missing='synthesized' or 'withheld', or let "
                    "the rule read public columns."
                )
        made: list[str] = []
        for name in self.names:
            if name in outcomes:
                raise SettingError(f"'{name}' is derived and protected by a model. Choose one.")
            late = [other for other in self.reads_of(name) if other in self.derived and other not in made]
            if late:
                raise SettingError(
                    f"derived '{name}' reads '{late[0]}', which is derived later. Put it before."
                )
            made.append(name)


def read_columns(formula: Any, **own: Any) -> tuple[Column, ...]:
    """The columns that a formula, or a mapping from names to columns, stands for, in its order.

    `own` holds what was said of a single column (family, prior, declared).
    """
    if not isinstance(formula, Mapping):
        return (Column(formula, **own),)
    told = [name for name, value in own.items() if value is not None]
    if told:
        raise SettingError(f"{', '.join(told)}: with several columns each has its own. Say it in hr.Column.")
    if not formula:
        raise SettingError('No column is named. Give {"wage": hr.Column("wage ~ age"), …}.')
    for name, column in formula.items():
        if not isinstance(column, Column):
            raise SettingError(f"'{name}': give hr.Column(formula, family=…), got {format_value(column)}.")
        if column.outcome != name:
            raise SettingError(
                f"'{name}': its formula protects '{column.outcome}'. Name the column that the formula has "
                "on its left-hand side."
            )
    return tuple(formula.values())
