"""What a design takes from all records: levels, knots, means, spreads, and whether its matrix has full rank.

    >>> # spooled = encode_leaves(spooled, builder, ["pay ~ region + bs(age, df=4)"])

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
from hedgerow.errors import FormulaError
from hedgerow.numerics.leaves import Columns, merge_columns, sum_leaf_powers, summarize_leaf
from hedgerow.numerics.triangular import leaf_factor, merge_factors
from hedgerow.tables.design import Learnt, check_columns, check_rank, find_spread
from hedgerow.tables.formula import Formula, parse, shorten
from hedgerow.tables.leaves import Leaves
from hedgerow.tables.spool.arguments import Argument, OverLeaves
from hedgerow.tables.spool.levels import find_rows
from hedgerow.tables.spool.store import Builder, Moments, Spooled
from hedgerow.tables.spool.transforms import State, learn
from hedgerow.tables.table import Table
from hedgerow.threads import Here, Workers, one_blas_thread


def encode_leaves(
    spooled: Spooled, builder: Builder, formulas: Sequence[str], workers: Workers | None = None
) -> Spooled:
    """The same leaves with designs; `formulas` are those of all protected columns.

    `builder(table, learnt)` makes the design of a leaf, such as `synthesizer.encode` for some settings.
    """
    workers = Here() if workers is None else workers
    blank = Table(nw.from_native(spooled.schema.empty_table(), eager_only=True))
    parsed = [parse(formula, blank) for formula in formulas]
    protected = [formula.outcome for formula in parsed]
    read = dict.fromkeys(name for each in parsed for name in each.predictors)
    spooled.require_complete([name for name in read if name not in protected])
    rows = find_rows(spooled, workers, parsed, blank, protected)
    learnt = Learnt(learn_states(spooled, workers, parsed, protected))
    told = builder(spooled.sample(rows), learnt).notes
    encoded = replace(spooled, builder=builder, learnt=learnt, told=told)
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
    """Means and spread of each link's matrix, in two passes; refuses what `tables.design.build` would."""
    numbers, found = range(leaves.count), []
    looked = list(workers.map(Look(), leaves, numbers))
    summaries = [merge_columns(parts) for parts in zip(*looked, strict=True)]
    links = leaves.design(0).links
    for link, summary in zip(links, summaries, strict=True):
        check_columns(summary, link.columns, leaves.records, rank=not link.secret)
    means = [summary.total / leaves.records for summary in summaries]
    reaches = [summary.reach(own) for summary, own in zip(summaries, means, strict=True)]
    again = list(workers.map(LookAgain(tuple(means), tuple(reaches)), leaves, numbers))
    for place, (link, summary) in enumerate(zip(links, summaries, strict=True)):
        if not link.secret:
            with one_blas_thread():
                check_rank(merge_factors([leaf[place][0] for leaf in again]), summary, link.columns)
        powers = reduce(np.add, [leaf[place][1] for leaf in again]) / leaves.records
        spread = find_spread(summary, reaches[place], powers)
        hidden = list(link.hidden)
        means[place][hidden], spread[hidden] = 0.0, 1.0
        found.append((means[place], spread))
    return tuple(found)


@dataclass(frozen=True)
class Look:
    """A task: for each link the extremes and sums of the columns of a leaf's matrix."""

    def __call__(self, leaves: Leaves, leaf: int) -> list[Columns]:
        return [summarize_leaf(link.matrix) for link in leaves.design(leaf).links]


@dataclass(frozen=True)
class LookAgain:
    """A task: for each link the factor of a leaf's matrix, and the powers of columns that spreads need."""

    means: tuple[Array, ...]
    reaches: tuple[Array, ...]

    def __call__(self, leaves: Leaves, leaf: int) -> list[tuple[Array, Array]]:
        found = []
        links = leaves.design(leaf).links
        for link, means, reach in zip(links, self.means, self.reaches, strict=True):
            rows, factor = link.records, np.empty((0, 0))
            if not link.secret:
                with one_blas_thread():
                    factor = leaf_factor(link.matrix, np.zeros(rows), np.ones(rows))
            found.append((factor, sum_leaf_powers(link.matrix, means, reach)))
        return found
