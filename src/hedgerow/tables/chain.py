"""Several protected columns of one table: a design for each, in the order in which they are synthesized.

A later column may read earlier ones. These are protected as well, so that nothing of the encoding may be
learnt from them, and what they make of a matrix is confidential: in synthesis the synthetic value stands in
its place.

Formal guarantee: `blank` holds public things alone. Of a link that reads protected columns it has no matrix;
`Design.encode` makes one of synthetic values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import join_columns
from hedgerow.errors import FormulaError
from hedgerow.tables.design import Design
from hedgerow.tables.formula import LEARNING, Formula, quote, shorten
from hedgerow.tables.table import Table


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
        """The same of some rows."""
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
