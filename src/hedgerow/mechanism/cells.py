"""The cells of a column: taken apart into kinds and amounts, and put together again from synthetic ones.

With `links` the only place that knows that a column may take several models, or that its cells may be
missing, codes, or fixed by a rule. `take_apart` reads the cells of a table, `write_column` puts synthetic
ones together, `with_fillers` says what of a column later ones read, and is the same for both.

Formal guarantees
-----------------
Kinds, fillers and rules are declared, and nothing of them is read off a protected cell. `write_column` reads
synthetic values, public columns, the type of the confidential column and, where that was declared public,
which of its cells are missing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Confidential, Mask, PerRecord
from hedgerow.errors import DataError, FormulaError, is_real
from hedgerow.models.base import Domain
from hedgerow.models.families.classes import Classes
from hedgerow.numerics.rounding import format_count
from hedgerow.privacy.columns import Column, Link
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict import Strict
from hedgerow.tables.expressions import parse_expression
from hedgerow.tables.formula import parse, quote, shorten
from hedgerow.tables.kinds import overlay, read_kinds
from hedgerow.tables.table import Table
from hedgerow.tables.values import ANYWHERE, Declared, Grid

Usable = Callable[[PerRecord], Mask]


@dataclass(frozen=True, repr=False)
class Cells(Confidential):
    """The cells of one column, taken apart; of a copy they may leave."""

    column: Column
    kinds: NDArray[np.int64]  # 0 for an amount, then the codes, and the last for a missing cell
    amounts: PerRecord  # numbers, or the places of classes; NaN where there is none
    whole: PerRecord  # what the amounts are shares of; 1 where that is nothing
    applies: Mask  # where the column has a cell of its own
    fixed: PerRecord  # what it holds elsewhere; NaN for a missing cell
    known: Mask  # the others count as withheld
    levels: tuple[Any, ...] | None  # the labels of classes

    @property
    def present(self) -> Mask:
        """Where there is an amount that is used."""
        return self.applies & self.known & (self.kinds == 0)

    def of_link(self, link: Link) -> tuple[PerRecord, Mask]:
        """What a link models, and in which rows."""
        if link.role == "kind":
            modelled = self.kinds < len(self.column.kinds)
            return np.where(modelled, self.kinds, 0).astype(np.float64), self.applies & self.known & modelled
        shares = self.amounts if link.role == "amount" else self.amounts / self.whole
        return shares, self.present

    def is_kind(self, label: str) -> Mask:
        """Which cells are of a kind, by its label."""
        codes = [str(code) for code in self.column.codes]
        if label in codes:
            return self.applies & self.known & (self.kinds == 1 + codes.index(label))
        if label == self.column.otherwise:
            return ~self.applies
        nothing = np.isnan(self.fixed) & (not isinstance(self.column.otherwise, str))
        return np.where(self.applies, self.known & (self.kinds == len(codes) + 1), nothing)


class Ruling(NamedTuple):
    """What the rules of a column (`only_where`, `share_of`) say of each row."""

    applies: Mask  # where the column has a cell of its own
    fixed: PerRecord  # what it holds elsewhere; NaN for a missing cell
    whole: PerRecord  # what its amounts are shares of; 1 where they are shares of nothing


def apply_rules(column: Column, table: Table, codes: Mapping[str, Sequence[Any]]) -> Ruling:
    """The rules of a column, applied to a table.

    It has the columns before this one as they are, or as they were synthesized; `codes` are theirs.
    """
    applies: Mask = np.ones(table.rows, np.bool_)
    number = np.nan if column.otherwise is None or isinstance(column.otherwise, str) else column.otherwise
    fixed, whole = np.full(table.rows, float(number)), np.ones(table.rows)
    if column.condition is not None:
        applies = column.condition.holds(table, codes)
    if column.whole is not None:
        total = column.whole.numbers(table, codes)
        positive = total > 0
        fixed = np.where(applies & ~positive, total, fixed)
        applies, whole = applies & positive, np.where(positive, total, 1.0)
    return Ruling(applies, fixed, whole)


def find_own_rows(column: Column, table: Table, codes: Mapping[str, Sequence[Any]]) -> Mask:
    """Where a column may have a cell of its own, by what is public; `codes` has all protected columns."""
    rows: Mask = np.ones(table.rows, np.bool_)
    if column.reads and codes.keys().isdisjoint(column.reads):
        rows = apply_rules(column, table, codes).applies
    if column.missing == "public":
        rows = rows & (read_kinds(table, column.outcome, column.codes) <= len(column.codes))
    return rows


def take_apart(
    column: Column,
    table: Table,
    domain: Domain,
    *,
    codes: Mapping[str, Sequence[Any]],
    unknown: Mask | None = None,
    usable: Usable | None = None,
) -> Cells:
    """The cells of a column: of the confidential table, or of a copy.

    Rows where a rule or a predictor is `unknown` count as withheld, and so do amounts that are not `usable`.
    """
    name = column.outcome
    kinds = read_kinds(table, name, column.codes)
    gone = kinds == len(column.codes) + 1
    applies, fixed, whole = apply_rules(column, table, codes)
    known = np.ones(table.rows, np.bool_) if unknown is None else ~unknown
    lost = gone & applies & known
    if column.missing == "refused" and usable is None and lost.any():
        raise DataError(
            f"Column '{name}' has {format_count(int(lost.sum()), 'missing value')} in {table.rows} rows. Say "
            "what they are: missing='withheld', 'synthesized' or 'public' in its Column."
        )
    if column.missing in ("refused", "withheld"):
        known &= ~lost
    amount = applies & known & (kinds == 0)
    part = table if amount.all() else table.rows_where(amount)
    levels = domain.classes(part, name)
    amounts = np.full(table.rows, np.nan)
    if usable is None or levels is not None:
        amounts[amount] = part.outcome(name, levels)
    else:
        amounts[amount] = part.gappy_numbers(name)
        known[amount] &= usable(amounts[amount] / whole[amount])
    if column.whole is not None:
        known &= ~((amounts < 0) | (amounts > whole))  # NaN is neither
    return Cells(column, kinds, amounts, whole, applies, fixed, known, levels)


def read_parts(table: Table, links: Sequence[Link]) -> dict[str, PerRecord]:
    """For each link of shares the amounts themselves, the filler where there is none."""
    found = {}
    for link in links:
        if link.role == "share":
            name = link.column.outcome  # of objects under a standard that refuses no cell
            values, known = table.settle_cells(name).raw_cells(name)
            found[link.outcome] = np.where(known, values, link.column.filler)
    return found


def with_fillers(made: Table, cells: Cells, marks: Sequence[str]) -> Table:
    """A table in which later columns read this one: amounts, or the filler with an indicator of why."""
    column = cells.column
    there, elsewhere = cells.present, ~cells.applies & ~np.isnan(cells.fixed)
    indicators = {
        mark: cells.is_kind(mark.removeprefix(f"{column.outcome}: ")).astype(np.float64) for mark in marks
    }
    if cells.levels is None:
        amounts = np.where(elsewhere, cells.fixed, np.where(there, cells.amounts, column.filler))
        return with_numbers(made, {column.outcome: amounts, **indicators})
    numbers = all(is_real(level) for level in cells.levels)
    words = np.array(
        cells.levels if numbers else list(map(str, cells.levels)), dtype=None if numbers else object
    )
    labels = words[np.where(there, cells.amounts, 0).astype(np.int64)]
    return with_numbers(made, {column.outcome: labels, **indicators})


def fill_unused(settings: Settings, column: Column, made: Table, applies: Mask) -> Table:
    """The table that a column reads, with fillers for earlier amounts in rows where it has no cell itself.

    Its likelihood is 1 there whatever they are, and the log of an amount that a rule sets to 0 is no number.
    """
    if applies.all():
        return made
    filled = {}
    for link, domain in zip(settings.links, settings.domains, strict=True):
        name = link.column.outcome
        if link.column is column:
            break
        if link.role != "kind" and not isinstance(domain, Classes) and name in made.columns:
            filled[name] = np.where(applies, made.gappy_numbers(name), link.column.filler)
    return with_numbers(made, filled) if filled else made


def write_column(
    settings: Settings,
    column: Column,
    table: Table,
    levels: Sequence[Any] | None,
    values: Sequence[PerRecord],
) -> Any:
    """The native table with synthetic cells of one column, from what its links predict.

    `table` has the columns before it as they were synthesized, and the column itself as it was: for its type
    and, if that is public, its gaps.
    """
    name = column.outcome
    place = max(place for place, link in enumerate(settings.links) if link.column is column)
    support, written = settings.domains[place].support, settings.written_as[place]
    if column.is_plain:
        return table.with_column(name, values[-1], levels, support, written)
    codes = settings.codes
    applies, fixed, whole = apply_rules(column, table, codes)
    kinds = np.rint(values[0]).astype(np.int64) if len(values) > 1 else np.zeros(table.rows, np.int64)
    gone = kinds == len(column.codes) + 1
    if column.missing == "public":
        gone |= read_kinds(table, name, column.codes) == len(column.codes) + 1
    gaps = any(mark == f"{name}: missing" for mark in settings.marks[name])
    amounts = values[-1]
    if levels is not None:
        labels = [*levels, *(code for code in column.codes)]
        places = np.where(kinds == 0, amounts, len(levels) + kinds - 1.0)
        if isinstance(column.otherwise, str):
            labels += [] if column.otherwise in map(str, labels) else [column.otherwise]
            places = np.where(applies, places, list(map(str, labels)).index(column.otherwise))
        else:
            gone = np.where(applies, gone, True)
        native = table.with_column(name, np.where(gone, 0.0, places), labels)
        return overlay(native, name, np.full(table.rows, np.nan), gone, gaps=gaps)
    if column.whole is not None:
        cap, support = _round_down(whole, _step(table, name, written)), ANYWHERE
        amounts = np.minimum(np.where(applies, amounts * whole, 0.0), cap)
    numbers = np.array([np.nan, *(float(code) for code in column.codes), np.nan])
    over = np.where(applies, numbers[np.where(gone, 0, kinds)], fixed)
    gone = np.where(applies, gone, np.isnan(fixed))
    native = table.with_column(name, amounts, None, support, written)
    return overlay(native, name, over, gone, gaps=gaps)


def write_derived(settings: Settings, native: Any) -> Any:
    """The native copy with the columns that follow from others made anew, the last ones at its end.

    They have the types of the confidential ones, but under Strict that of what the rule makes: a type may
    follow from a single cell, such as that of whole numbers without a gap.
    """
    codes, typed = settings.codes, not isinstance(settings.standard, Strict)
    for name, how in settings.rules.derived.items():
        table = Table.of(native)
        if isinstance(how, Mapping):
            ((source, known),) = how.items()
            results = list(dict.fromkeys(known.values()))
            cells, there = table.raw_cells(source)
            exact = cells.dtype.kind == "f"
            places = {float(key) if exact else str(key): results.index(to) for key, to in known.items()}
            found = [places.get(cell, -1) for cell in cells.tolist()]
            values = np.where(there, np.array(found, dtype=np.float64), -1.0)
            gone, levels = values < 0, results
        else:
            rule = parse_expression(how)
            values, levels = rule.numbers(table, codes), [False, True]
            gone = np.isnan(values)
            if not rule.is_condition:
                levels = []
        if levels and (
            all(is_real(level) for level in levels)
            or (typed and name in table.columns and table.is_numeric(name))
        ):
            values, levels = np.array(levels, dtype=np.float64)[np.where(gone, 0, values).astype(int)], []
        values = np.where(gone, 0.0, values)
        if name not in table.columns or not typed:
            fresh: NDArray[Any] = values if not levels else np.array(levels)[values.astype(int)]
            table = with_numbers(table, {name: fresh})
        native = table.with_column(name, values, levels or None)
        native = overlay(native, name, np.full(table.rows, np.nan), gone, gaps=True)
    return native


def _step(table: Table, name: str, written: Declared | None) -> float | None:
    return Grid.of(table.frame[name].dtype).step if written is None else written.step


def _round_down(values: PerRecord, step: float | None) -> PerRecord:
    """The largest multiple of the step that is no larger: a rounded part does not exceed its whole."""
    return values if step is None else np.floor(values / step + 1e-9) * step


def read_copy(settings: Settings, table: Table) -> dict[str, Cells]:
    """The cells of the protected columns of a table, a copy say, by name."""
    codes = settings.codes
    domains = {
        link.column.outcome: domain for link, domain in zip(settings.links, settings.domains, strict=True)
    }
    return {
        column.outcome: take_apart(replace_missing(column), table, domains[column.outcome], codes=codes)
        for column in settings.columns
    }


def replace_missing(column: Column) -> Column:
    """The column with missing cells withheld where they would be refused."""
    return replace(column, missing="withheld") if column.missing == "refused" else column


def with_numbers(table: Table, columns: Mapping[str, NDArray[Any]]) -> Table:
    """The table with some columns added or replaced."""
    return table.beside(Table.of(table.like(columns)))


def check_derived(settings: Settings, table: Table) -> None:
    """Refuse formulas that read a derived column, which holds protected values, and kinds by such."""
    derived = settings.rules.names
    for column in settings.columns:
        if column.kinds_by is not None:
            terms = parse(f"{quote(column.outcome)} ~ {column.kinds_by}", table)
            hidden = [name for name in terms.predictors if name in settings.protected]
            if hidden:
                raise FormulaError(
                    f"kinds_by of '{column.outcome}' reads '{hidden[0]}', which is protected. Name public "
                    "categories, or leave it out: the kinds then follow the column's own formula."
                )
    for column in settings.columns if derived else ():
        read = [name for name in parse(column.formula, table).predictors if name in derived]
        if read:
            raise FormulaError(
                f"Formula '{shorten(column.formula)}' reads '{read[0]}', which is derived and made last. Use "
                "the columns it is derived from."
            )
