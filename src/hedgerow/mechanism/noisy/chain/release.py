"""Columns in turn, each read once per round: what is released of a table whose rows are protected as a whole.

    released = release_chain(HeldChain.of(tasks, matrices, values), key=Key.from_seed(None))

Formal guarantees
-----------------
All that is released is ε-differentially private for one row's protected values together (all rows of a unit),
ε being the sum over the tasks, under their relation: "withheld", all of them are blank in one of two tables;
"replaced", they are any others. What a column's sums are told (line, window, weights, noise, how entries of
earlier columns are made) follows from earlier output and public things; what a record adds to them follows
from that and from its own values, and is bounded by what the price counts with. Nothing else is read.

It does not matter where the records are (`chain.rows`): bounds of loadings are the largest over all rows,
sums are exact whole numbers however leaves are cut, and noise is added once to the sum of all.
"""

from dataclasses import dataclass
from functools import partial

from hedgerow.mechanism.noisy.chain.classes import ReleasedClasses, expect_amounts, read_classes, read_kinds
from hedgerow.mechanism.noisy.chain.handed import Handed, HandedAmounts, HandedClasses, reach_beside
from hedgerow.mechanism.noisy.chain.rows import OpenChain
from hedgerow.mechanism.noisy.chain.tasks import Task
from hedgerow.mechanism.noisy.recipe import Reading, Recipe
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.mechanism.noisy.released import Released
from hedgerow.mechanism.noisy.rounds import run_rounds
from hedgerow.randomness import Key
from hedgerow.threads import one_blas_thread


@dataclass(frozen=True, eq=False)
class ReleasedColumn:
    """What was read off one column, and what later ones may read of it. Public once ε is paid."""

    task: Task
    released: Released | ReleasedClasses
    kinds: ReleasedClasses | None  # of amounts that not every cell has
    handed: Handed

    @property
    def recipe(self) -> Recipe:
        """What its rounds were told."""
        return self.released.recipe


@one_blas_thread()
def release_chain(chain: OpenChain, *, key: Key) -> tuple[ReleasedColumn, ...]:
    """Read every column in turn."""
    done: list[ReleasedColumn] = []
    for place in range(len(chain.tasks)):
        done.append(_release_column(chain, key.child(place)))
        if place + 1 < len(chain.tasks):
            chain = chain.after(done[-1].handed)
    return tuple(done)


def _release_column(chain: OpenChain, key: Key) -> ReleasedColumn:
    """Read the next column."""
    task, recipe, kinds = chain.task, recipe_of(chain), None
    if task.classes:
        classes = read_classes(recipe, task.classes, chain.reader(recipe), key=key)
        return finish_column(task, classes, None)
    if task.kinds:
        reader = chain.reader(recipe, kinds=True)
        kinds = read_kinds(recipe, len(task.kinds), reader, key=key.child("kinds"))
        recipe = recipe.with_presence(expect_amounts(kinds))
    return finish_column(task, run_rounds(recipe, chain.reader(recipe), key=key), kinds)


def finish_column(
    task: Task, released: Released | ReleasedClasses, kinds: ReleasedClasses | None
) -> ReleasedColumn:
    """What a column hands on, from what was released of it."""
    if isinstance(released, ReleasedClasses):
        return ReleasedColumn(task, released, None, HandedClasses.of(task, released))
    return ReleasedColumn(task, released, kinds, HandedAmounts.of(task, released, kinds))


def recipe_of(chain: OpenChain) -> Recipe:
    """What the next column's rounds are told: public."""
    task, reading = chain.task, None
    if task.reads:
        reading = Reading(chain.rows_beside(), partial(reach_beside, chain.read, jointly=task.jointly))
    return make_recipe(
        chain.rows(),
        low=task.low,
        high=task.high,
        epsilon=task.epsilon,
        relation=task.relation,
        margin_share=task.margin_share,
        rows_per_unit=task.rows_per_unit,
        spiked=bool(task.kinds),
        reading=reading,
    )
