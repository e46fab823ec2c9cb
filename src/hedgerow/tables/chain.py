"""Several protected columns of one table: a design for each, in the order in which they are synthesized.

A later column may read earlier ones. These are protected as well, so that nothing of the encoding may be
learnt from them, and what they make of a matrix is confidential: in synthesis the synthetic value stands in
its place.

Formal guarantee: `blank` holds public things alone. Of a link that reads protected columns it has no matrix;
`Design.encode` makes one of synthetic values.

Of several rows that are one household's, or one firm's, some columns hold one value for all of them: `Units`
says which rows these are, and lends all of them the first one's cell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, Mask, join_columns
from hedgerow.errors import DataError, FormulaError
from hedgerow.tables.design import Design
from hedgerow.tables.formula import LEARNING, Formula, quote, shorten
from hedgerow.tables.table import Table


@dataclass(frozen=True, eq=False)
class Units:
    """Whose row it is, by a public column: rows that have the same of it are one unit's. Public.

    Which row of a unit comes first follows from the order of the table, which neighbours share.
    """

    name: str  # of the column
    numbers: NDArray[np.int64]  # each record's unit
    first: NDArray[np.intp]  # each unit's first row

    @classmethod
    def of(cls, table: Table, name: str) -> "Units":
        """The units that a column names; each row must have one."""
        numbers, _ = table.codes(name)
        return cls(name, numbers, np.unique(numbers, return_index=True)[1])

    @property
    def leads(self) -> Mask:
        """The first row of each unit."""
        found = np.zeros(len(self.numbers), np.bool_)
        found[self.first] = True
        return found

    def spread(self, values: Array) -> Array:
        """One value of each unit, in all its rows."""
        return np.asarray(values[self.numbers])

    def share(self, table: Table, names: Sequence[str]) -> Table:
        """The table with the first row's cell of these columns in all rows of a unit."""
        if not names:
            return table
        return table.beside(table.select(names).take(self.first[self.numbers]))

    def differs(self, table: Table, name: str) -> bool:
        """Whether a column holds more than one value, or a value and a gap, in the rows of some unit."""
        _, cells = np.unique(table.cells(name), return_inverse=True)  # NaN is one value
        return bool((cells != cells[self.first][self.numbers]).any())

    def check_predictor(self, table: Table, outcome: str, name: str) -> None:
        """Refuse a public predictor of a shared column that is not the unit's own."""
        if self.differs(table, name):
            raise DataError(
                f"'{outcome}' is shared by the rows of one '{self.name}', and its predictor '{name}' is not "
                f"the same in all of them. Leave '{name}' out of its formula, or add a column that has one "
                "value for the unit, such as its mean."
            )


@dataclass(frozen=True, eq=False, repr=False)
class ChainDesign(Design):
    """The designs of all protected columns; its own matrix is empty."""

    parts: tuple[Design, ...] = ()
    table: Table | None = None  # the public predictors, which protected ones may be multiplied with

    @classmethod
    def of(cls, parts: Sequence[Design], table: Table | None = None) -> "ChainDesign":
        """A chain of designs of one table."""
        public = dict.fromkeys(name for part in parts for name in part.predictors if name not in part.secret)
        present = None
        if any(part.present is not None for part in parts):
            present = np.any(
                [np.ones(part.records, np.bool_) if part.present is None else part.present for part in parts],
                axis=0,
            )
        return cls(
            outcome=", ".join(part.outcome for part in parts),
            values=join_columns([part.values for part in parts]),
            matrix=np.empty((parts[0].records, 0)),
            columns=tuple(f"{part.outcome}: {name}" for part in parts for name in part.columns),
            predictors=tuple(dict.fromkeys(name for part in parts for name in part.predictors)),
            spec=None,
            present=present,
            notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
            parts=tuple(parts),
            table=None if table is None or not public else table.select(list(public)),
        )

    @property
    def links(self) -> tuple[Design, ...]:
        return self.parts

    def take(self, rows: NDArray[np.intp]) -> "ChainDesign":
        """The designs of some rows."""
        table = None if self.table is None else self.table.take(rows)
        return ChainDesign.of([part.take(rows) for part in self.parts], table)

    def blank(self) -> "ChainDesign":
        return ChainDesign.of([_blank(part) for part in self.parts], self.table)


def _blank(link: Design) -> Design:
    if not link.secret:
        return link.blank()
    hollow = replace(link, values=np.full(link.records, np.nan), matrix=np.empty((0, len(link.columns))))
    return replace(
        hollow.blank(), spec=link.spec, secret=link.secret, classes=link.classes, declared=link.declared
    )


def check_links(
    formulas: Sequence[Formula], table: Table, levels: Mapping[str, tuple[Any, ...]] = MappingProxyType({})
) -> None:
    """Refuse predictors that are synthesized later, and an encoding that learns from protected values.

    `levels` has the declared classes of protected columns, by which they may be encoded.
    """
    outcomes = [formula.outcome for formula in formulas]
    for place, formula in enumerate(formulas):
        for name in formula.predictors:
            if name in outcomes[place:]:
                raise FormulaError(
                    f"Formula '{shorten(formula.text)}' reads '{name}', which is synthesized later. Put "
                    f"'{name}' before '{formula.outcome}', or leave it out of that formula."
                )
            numeric = table.is_numeric(name) or table.is_temporal(name)
            if name in levels and formula.as_classes(name, numeric=numeric):
                continue
            if name in outcomes and (formula.learns_from(name) or not numeric):
                remedy = "Use numbers as they are, or log, sqrt and arithmetic"
                if name in levels:
                    remedy = f"Its classes are declared: write C({quote(name)}), without anything else"
                elif not numeric:
                    remedy = 'Give it a family with declared levels, such as Family("categorical", levels=…)'
                raise FormulaError(
                    f"Formula '{shorten(formula.text)}': {', '.join(LEARNING)} and levels of labels learn "
                    f"from all values of a column, and '{name}' is protected. {remedy}."
                )
