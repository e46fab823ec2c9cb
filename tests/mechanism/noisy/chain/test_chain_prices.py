"""What a row's values change in the sums of several columns, over pairs of rows: never more than charged."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from hedgerow.mechanism.noisy.chain.classes import ReleasedClasses
from hedgerow.mechanism.noisy.chain.release import join_entries, release_chain
from hedgerow.mechanism.noisy.chain.tasks import Task, split_epsilon
from hedgerow.mechanism.noisy.prices import Scales, Sums
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT
from hedgerow.mechanism.noisy.rounds import centres
from hedgerow.randomness import Key

RELATIONS = ("withheld", "replaced")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_price_of_a_round_with_entries_is_the_largest_over_all_rows(noise, relation):
    """Residual and entry both change: (V r, u r) against (V r', u' r'), or against a blank."""
    rng = np.random.default_rng(3)
    for _ in range(5 if relation == "replaced" else 20):
        steps, public, reach = (int(rng.integers(1, top)) for top in (4, 6, 4))
        size = public + reach if noise == "laplace" else public**2 + reach**2
        sums = Sums(noise, size, steps, relation, 2 * steps)
        scores, squares = (Fraction(int(rng.integers(1, 200)), int(rng.integers(1, 5))) for _ in range(2))
        scales = Scales(scores, squares, int(rng.integers(0, steps**2 + 1)))
        rows = [*product(range(-steps, steps + 1), range(-reach, reach + 1)), None]
        worst = Fraction(0)
        for one, other in product(rows, rows):
            if relation == "withheld" and (one is None) == (other is None):
                continue
            first, second = (added(row, public, scales.blank) for row in (one, other))
            shifts = [abs(a - b) for a, b in zip(first, second, strict=True)]
            if noise == "laplace":
                loss = (shifts[0] + shifts[1]) / scores + shifts[2] / squares
            else:
                loss = ((shifts[0] ** 2 + shifts[1] ** 2) / scores**2 + shifts[2] ** 2 / squares**2) / 2
            worst = max(worst, loss)
        assert sums.price(scales) == worst


def added(row, public, blank):
    if row is None:
        return Fraction(0), Fraction(0), Fraction(blank)
    r, u = row
    return Fraction(public * r), Fraction(u * r), Fraction(r * r)


KINDS = ({}, {"classes": 2}, {"spiked": True}, {"classes": 3}, {})
CELLS = {
    "amounts": (-1e9, -1.7, 0.0, 0.4, 1e9, None),
    "spiked": (-1.7, 1e9, np.nan, None),
    "classes": (0.0, 1.0, 2.0, None),
}


def make_tasks(relation, n=12):
    matrix = np.column_stack([np.ones(n), np.linspace(-1, 1, n)])
    parts = split_epsilon(2.0, [1.0, 2.0, 1.0, 1.0, 1.0])
    return [
        Task(f"x{k}", "", matrix, ("1", "z"), tuple(range(k)), parts[k], relation, low=-2.0, high=2.0, **kind)
        for k, kind in enumerate(KINDS)
    ]


def cells_of(task):
    return CELLS["classes" if task.classes else "spiked" if task.spiked else "amounts"]


def sums_of(columns, row, place):
    """All sums of a table of one row at a place, each over the scale of its noise; a row of None is blank."""
    found, entries = [], []
    for column, cell in zip(columns, row, strict=True):
        task, recipe = column.task, column.recipe
        values = np.full(recipe.records, 0.0 if cell is None else cell)
        present = np.full(recipe.records, cell is not None)
        own = np.hstack([entries[j] for j in task.reads]) if task.reads else np.zeros((recipe.records, 0))
        true = recipe.with_entries(own)
        loading = true.loadings[place] * LOADING_UNIT
        if isinstance(column.released, ReleasedClasses):
            for number, one in enumerate(column.released.sums):
                sign = float(cell == number) if task.classes > 2 else {None: 0, 0.0: -1, 1.0: 1}.get(cell, 0)
                found += list(loading * sign / one.scale)
        else:
            if column.released.spike is not None:
                at_spike = cell is not None and np.isnan(cell)
                found += list(loading * at_spike / column.released.spike.scale)
            blank = cell is None or np.isnan(cell)
            for one in column.released.rounds:
                r = (
                    0.0
                    if blank
                    else np.clip(cell, task.low, task.high) - centres(true, one.line, slice(None))[place]
                )
                r = np.clip(r, -one.window, one.window)
                found += list(loading * r / one.score_scale)
                found.append((one.blank if blank else r**2) / one.square_scale)
        entries.append(column.handed.entries(join_entries(task, entries), values, present))
    return np.array(found)


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_row_changes_the_sums_of_a_chain_by_more_than_epsilon(relation):
    """Amounts, classes and a spike, each reading all before it: a row of any cells, some of them missing."""
    tasks, rng = make_tasks(relation), np.random.default_rng(1)
    values = [(rng.choice([c for c in cells_of(t) if c is not None], 12), np.ones(12, bool)) for t in tasks]
    columns = release_chain(tasks, values, key=Key.from_seed(5))
    rows = list(product(*(cells_of(task) for task in tasks)))
    rows = [rows[i] for i in rng.choice(len(rows), 25, replace=False)] + [(None,) * len(tasks)]
    worst = 0.0
    for place in (0,):
        sums = np.array([sums_of(columns, row, place) for row in rows])
        against = sums[-1:] if relation == "withheld" else sums
        losses = np.abs(sums[:, None] - against[None]).sum(axis=2)
        worst = max(worst, float(losses.max()))
    assert worst <= 2.0 * (1 + 1e-6)
    assert worst > 0.6  # and the bound is not idle


def test_parts_of_epsilon_never_add_up_to_more():
    rng = np.random.default_rng(2)
    for _ in range(40):
        epsilon, shares = float(rng.exponential()), rng.exponential(size=int(rng.integers(1, 40))).tolist()
        parts = split_epsilon(epsilon, shares)
        assert sum(map(Fraction, parts)) <= Fraction(epsilon)
        assert sum(parts) == pytest.approx(epsilon, rel=1e-12)
