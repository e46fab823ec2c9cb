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

from hedgerow.arrays import Array, Matrix
from hedgerow.mechanism.noisy.chain.classes import ReleasedClasses, expect_amounts, read_classes, read_kinds
from hedgerow.mechanism.noisy.chain.handed import Handed, HandedAmounts, HandedClasses, lay_beside, stand_in
from hedgerow.mechanism.noisy.chain.tasks import Task, Values
from hedgerow.mechanism.noisy.recipe import Beside, Recipe, Released, make_recipe
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.randomness import Key


@dataclass(frozen=True, eq=False)
class ReleasedColumn:
    """Of one column: what was read off it, and what later ones may read. Public once ε is paid."""

    task: Task
    released: Released | ReleasedClasses
    kinds: ReleasedClasses | None  # of amounts that not every cell has
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
    for place, (task, column) in enumerate(zip(tasks, values, strict=True)):
        recipe, this, kinds = recipe_of(task, done), key.child(place), None
        own = task.pick(np.hstack([entries[j] for j in task.reads])) if task.reads else None
        if task.classes:
            released: Released | ReleasedClasses = read_classes(
                recipe, task.classes, column.numbers, column.present, entries=own, key=this
            )
        else:
            if task.kinds and column.kinds is not None:
                count, here = len(task.kinds), this.child("kinds")
                kinds = read_kinds(recipe, count, column.kinds, column.present, entries=own, key=here)
                recipe = recipe.expecting(expect_amounts(kinds))
            released = release_statistics(recipe, column.numbers, column.present, entries=own, key=this)
        done.append(finish_column(task, released, kinds, done))
        matrix = task.matrix if own is None else np.hstack([task.matrix, own])
        entries.append(task.spread(done[-1].handed.entries(matrix, column)))
    return tuple(done)


def finish_column(
    task: Task,
    released: Released | ReleasedClasses,
    kinds: ReleasedClasses | None,
    before: Sequence[ReleasedColumn],
) -> ReleasedColumn:
    """What a column hands on, from what was released of it."""
    handed: Handed = (
        HandedClasses.of(task, released)
        if isinstance(released, ReleasedClasses)
        else HandedAmounts.of(task, released, kinds)
    )
    matrix = join_entries(task, [one.standins for one in before])
    return ReleasedColumn(task, released, kinds, handed, task.spread(stand_in(len(before), handed, matrix)))


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
        spiked=bool(task.kinds),
        beside=beside_of(task, before),
    )


def beside_of(task: Task, before: Sequence[ReleasedColumn]) -> Beside | None:
    """Stand-ins of the entries that a column reads."""
    if not task.reads:
        return None
    read = [before[j] for j in task.reads]
    standins, handed = [task.pick(one.standins) for one in read], [one.handed for one in read]
    return lay_beside(task.matrix, standins, handed, jointly=task.jointly)


def join_entries(task: Task, entries: Sequence[Array]) -> Matrix:
    """Public predictors of a column's rows, and beside them the entries that it reads."""
    return np.hstack([task.matrix, *(task.pick(entries[j]) for j in task.reads)])
