"""Columns in turn, each read once per round: what is released of a table whose rows are protected as a whole.

    released = release_chain(tasks, values, key=Key.from_seed(None))

Formal guarantees
-----------------
All that is released is ε-differentially private for one row's protected values together (all rows of a unit),
ε being the sum over the tasks, under their relation: "withheld", all of them are blank in one of two tables;
"replaced", they are any others. What a column's sums are told (line, window, weights, noise, how entries of
earlier columns are made) follows from earlier output and public things; what a record adds to them follows
from that and from its own values, and is bounded by what the price counts with. Nothing else is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.arrays import Array, Matrix, PerRecord, RecordMask
from hedgerow.mechanism.noisy.chain.classes import ReleasedClasses, read_classes
from hedgerow.mechanism.noisy.chain.handed import Handed, HandedAmounts, HandedClasses, lay_beside, stand_in
from hedgerow.mechanism.noisy.chain.tasks import Task
from hedgerow.mechanism.noisy.recipe import Beside, Recipe, Released, make_recipe
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.randomness import Key

Values = tuple[PerRecord, RecordMask]  # responses (NaN at a spike, places of classes), and which are there


@dataclass(frozen=True, eq=False)
class ReleasedColumn:
    """Of one column: what was read off it, and what later ones may read. Public once ε is paid."""

    task: Task
    released: Released | ReleasedClasses
    handed: Handed
    standins: Array  # its entries in a simulated table (n, m)

    @property
    def recipe(self) -> Recipe:
        """What its rounds were told."""
        return self.released.recipe


def release_chain(tasks: Sequence[Task], values: Sequence[Values], *, key: Key) -> tuple[ReleasedColumn, ...]:
    """Read every column in turn."""
    done: list[ReleasedColumn] = []
    entries: list[Array] = []  # confidential
    for place, (task, (column, present)) in enumerate(zip(tasks, values, strict=True)):
        recipe = recipe_of(task, done)
        read = [entries[j] for j in task.reads]
        own = np.hstack(read) if read else None
        if task.classes:
            released: Released | ReleasedClasses = read_classes(
                recipe, task.classes, column, present, entries=own, key=key.child(place)
            )
        else:
            released = release_statistics(recipe, column, present, entries=own, key=key.child(place))
        done.append(finish_column(task, released, done))
        matrix = task.matrix if own is None else np.hstack([task.matrix, own])
        entries.append(done[-1].handed.entries(matrix, column, present))
    return tuple(done)


def finish_column(
    task: Task, released: Released | ReleasedClasses, before: Sequence[ReleasedColumn]
) -> ReleasedColumn:
    """What a column hands on, from what was released of it."""
    handed: Handed = (
        HandedClasses.of(task.outcome, released)
        if isinstance(released, ReleasedClasses)
        else HandedAmounts.of(task.outcome, released)
    )
    matrix = join_entries(task, [one.standins for one in before])
    return ReleasedColumn(task, released, handed, stand_in(len(before), handed, matrix))


def recipe_of(task: Task, before: Sequence[ReleasedColumn]) -> Recipe:
    """What a column's rounds are told: public."""
    return make_recipe(
        task.matrix,
        low=task.low,
        high=task.high,
        epsilon=task.epsilon,
        relation=task.relation,
        margin_share=task.margin_share,
        rows_per_unit=task.rows_per_unit,
        spiked=task.spiked,
        beside=beside_of(task, before),
    )


def beside_of(task: Task, before: Sequence[ReleasedColumn]) -> Beside | None:
    """Stand-ins of the entries that a column reads."""
    if not task.reads:
        return None
    read = [before[j] for j in task.reads]
    bounded = tuple(flag for one in read for flag in one.handed.bounded)
    return lay_beside(task.matrix, np.hstack([one.standins for one in read]), bounded)


def join_entries(task: Task, entries: Sequence[Array]) -> Matrix:
    """Public predictors, and beside them the entries that the column reads."""
    return np.hstack([task.matrix, *(entries[j] for j in task.reads)])
