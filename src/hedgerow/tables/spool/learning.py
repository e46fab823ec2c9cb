"""What a design takes from all records: levels, knots, means, spreads, and whether its matrix has full rank.

    >>> # spooled = encode_leaves(spooled, builder, ["pay ~ region + bs(age, df=4)"])

Formal guarantee: passes read public columns alone. Protected columns of a chain make columns of a matrix as
well; of these nothing is learnt, their means and spread are what `Design` declares of them, and the rank of a
matrix that has one is nobody's to know.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array
from hedgerow.errors import FormulaError
from hedgerow.numerics.leaves import add_in_order
from hedgerow.numerics.triangular import leaf_factor, merge_factors
from hedgerow.tables.design import Learnt, check_extremes, check_factor, spread_of, sum_powers
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
    first = leaves.design(0).links
    numbers = range(leaves.count)
    looked = list(workers.map(Look(), leaves, numbers))
    sizes, means, ends = [], [], []
    for place, link in enumerate(first):
        low = np.minimum.reduce([leaf[place][0] for leaf in looked])
        high = np.maximum.reduce([leaf[place][1] for leaf in looked])
        sums = [leaf[place][2] for leaf in looked]
        rank = not link.secret
        sizes.append(check_extremes(link.columns, leaves.records, low, high, rank=rank))
        totals = [add_in_order([float(each[column]) for each in sums]) for column in range(len(low))]
        means.append(np.array([total / leaves.records for total in totals]))
        ends.append((low, high))
    reaches = [np.maximum(high - mean, mean - low) for mean, (low, high) in zip(means, ends, strict=True)]
    again = list(workers.map(LookAgain(tuple(sizes), tuple(means), tuple(reaches)), leaves, numbers))
    found = []
    for place, link in enumerate(first):
        if not link.secret:
            with one_blas_thread():
                check_factor(link.columns, merge_factors([leaf[place][0] for leaf in again]))
        low, high = ends[place]
        spread = np.ones(len(low))
        for column in range(len(low)):
            powers = [leaf[place][1][column] for leaf in again]
            second, fourth = (add_in_order(each) / leaves.records for each in zip(*powers, strict=True))
            if column not in link.hidden:
                spread[column] = spread_of(
                    float(means[place][column]), float(low[column]), float(high[column]),
                    lambda _, moments=(second, fourth): moments,
                )  # fmt: skip
        means[place][list(link.hidden)] = 0.0
        found.append((means[place], spread))
    return tuple(found)


@dataclass(frozen=True)
class Look:
    """A task: for each link the least, the largest and the sum of each column of a leaf's matrix."""

    def __call__(self, leaves: Leaves, leaf: int) -> list[tuple[Array, Array, Array]]:
        matrices = [link.matrix for link in leaves.design(leaf).links]
        with np.errstate(invalid="ignore"):
            return [
                (m.min(axis=0), m.max(axis=0), np.array([float(column.sum()) for column in m.T]))
                for m in matrices
            ]


@dataclass(frozen=True)
class LookAgain:
    """A task: for each link the factor of a leaf's matrix, and the powers of columns that spreads need."""

    sizes: tuple[NDArray[np.float64], ...]
    means: tuple[NDArray[np.float64], ...]
    reaches: tuple[NDArray[np.float64], ...]

    def __call__(self, leaves: Leaves, leaf: int) -> list[tuple[Array, list[tuple[float, float]]]]:
        found = []
        links = leaves.design(leaf).links
        for link, size, mean, reach in zip(links, self.sizes, self.means, self.reaches, strict=True):
            rows, factor = link.records, np.empty((0, 0))
            if not link.secret:
                with one_blas_thread():
                    factor = leaf_factor(link.matrix / size, np.zeros(rows), np.ones(rows))
            powers = [
                sum_powers(column, float(m), float(r)) if r > 0 else (0.0, 0.0)
                for column, m, r in zip(link.matrix.T, mean, reach, strict=True)
            ]
            found.append((factor, powers))
        return found
