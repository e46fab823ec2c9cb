"""What a design takes from all records: levels, knots, means, spreads, and whether its matrix has full rank.

Formal guarantee: passes read public columns alone. Protected columns of a chain make columns of a matrix as
well; of these nothing is learnt, their means and spread are what `Design` declares of them, and the rank of a
matrix that has one is nobody's to know.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import narwhals as nw
import numpy as np

from hedgerow.arrays import Array
from hedgerow.errors import DataError, FormulaError
from hedgerow.numerics.leaves import Columns, merge_columns, sum_leaf_powers, summarize_leaf
from hedgerow.numerics.triangular import leaf_factor, merge_factors
from hedgerow.tables.design import Learnt, Moments, check_columns, check_rank, find_spread
from hedgerow.tables.formula import Formula, parse, shorten
from hedgerow.tables.leaves import Leaves, go_over
from hedgerow.tables.spool.arguments import Argument, OverLeaves
from hedgerow.tables.spool.levels import find_rows
from hedgerow.tables.spool.store import Builder, Spooled
from hedgerow.tables.spool.transforms import State, learn
from hedgerow.tables.table import Table
from hedgerow.threads import Here, Workers, one_blas_thread

_STAGE = "predictors looked at"


def encode_leaves(
    spooled: Spooled,
    builder: Builder,
    formulas: Sequence[str],
    workers: Workers | None = None,
    *,
    crossed: Sequence[str] = (),
    also: Sequence[str] = (),
) -> Spooled:
    """The leaves with their designs; `formulas` are those of all protected columns.

    `builder(table, learnt)` makes the design of a leaf, such as `synthesizer.encode` for some settings.
    Formulas that are `crossed` make cells of all their public predictors together. Rules read columns `also`.
    """
    workers = Here() if workers is None else workers
    blank = Table(nw.from_native(spooled.schema.empty_table(), eager_only=True))
    parsed, cells = ([parse(formula, blank) for formula in texts] for texts in (formulas, crossed))
    protected = list(dict.fromkeys(formula.outcome for formula in [*parsed, *cells]))
    read = dict.fromkeys([*(name for each in [*parsed, *cells] for name in each.predictors), *also])
    spooled.require_complete([name for name in read if name not in protected])
    rows = find_rows(spooled, workers, parsed, blank, protected, cells)
    learnt = Learnt(learn_states(spooled, workers, parsed, protected))
    try:
        notes = builder(spooled.sample(rows), learnt).notes
    except DataError as error:
        raise DataError(f"In {len(rows):,} rows from all over the table: {error}") from None
    encoded = replace(spooled, builder=builder, learnt=learnt, design_notes=notes)
    return replace(encoded, moments=measure(encoded, workers))


def learn_states(
    spooled: Spooled, workers: Workers, formulas: Sequence[Formula], protected: Sequence[str]
) -> dict[str, State]:
    """What the transforms of formulas learn of public columns, by how the formula reads."""
    states: dict[str, State] = {}
    for formula in formulas:
        for text, call in formula.learning_calls().items():
            said = formula.restore_name(text, "`")
            argument = Argument.of(formula, call, states)
            if said in states or set(argument.names) & {*protected}:  # of which nothing may be learnt
                continue
            try:
                settings = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
                settings[""] = tuple(ast.literal_eval(value) for value in call.args[1:])
            except ValueError:
                raise FormulaError(
                    f"'{shorten(said)}' in a formula: for a table that comes in parts its settings must be "
                    "written out as numbers."
                ) from None
            values = OverLeaves(spooled, workers, argument)
            states[said] = learn(ast.unparse(call.func), values, settings)
    return states


def measure(leaves: Leaves, workers: Workers) -> tuple[Moments, ...]:
    """What each link's design knows of all rows, in two passes; refuses what `tables.design.build` does."""
    summarized = zip(*go_over(workers, SummarizeMatrix(), leaves, stage=_STAGE), strict=True)
    summaries = [merge_columns(parts) for parts in summarized]
    first = leaves.design(0).links
    for link, summary in zip(first, summaries, strict=True):
        check_columns(summary, link.columns, leaves.records, rank=not link.secret)
    centres = [summary.total / leaves.records for summary in summaries]
    reaches = [summary.reach(centre) for summary, centre in zip(summaries, centres, strict=True)]
    task = FactorMatrix(tuple(centres), tuple(reaches))
    factored = zip(*go_over(workers, task, leaves, stage=_STAGE), strict=True)
    moments = []
    for link, summary, centre, reach, parts in zip(first, summaries, centres, reaches, factored, strict=True):
        if not link.secret:
            with one_blas_thread():
                check_rank(merge_factors(factor for factor, _ in parts), summary, link.columns)
        powers = np.asarray(reduce(np.add, (sums for _, sums in parts)))
        spread, hidden = find_spread(summary, reach, powers / leaves.records), [*link.hidden]
        spread[hidden], centre[hidden] = 1.0, 0.0
        moments.append(Moments(summary, centre, spread))
    return tuple(moments)


@dataclass(frozen=True)
class SummarizeMatrix:
    """Extremes and sums of the columns of each link's matrix in a leaf."""

    def __call__(self, leaves: Leaves, leaf: int) -> list[Columns]:
        return [summarize_leaf(link.matrix) for link in leaves.design(leaf).links]


@dataclass(frozen=True)
class FactorMatrix:
    """For each link the factor of a leaf's matrix, and the powers of columns that spreads need."""

    centres: tuple[Array, ...]
    reaches: tuple[Array, ...]

    def __call__(self, leaves: Leaves, leaf: int) -> list[tuple[Array, Array]]:
        parts: list[tuple[Array, Array]] = []
        links = leaves.design(leaf).links
        for link, centre, reach in zip(links, self.centres, self.reaches, strict=True):
            factor: Array = np.empty((0, 0))
            if not link.secret:
                rows = link.records
                with one_blas_thread():
                    factor = leaf_factor(link.matrix, np.zeros(rows), np.ones(rows))
            parts.append((factor, sum_leaf_powers(link.matrix, centre, reach)))
        return parts
