"""What a row's values change in the sums of several columns, over pairs of rows: never more than charged."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from hedgerow.mechanism.noisy.chain.classes import ReleasedClasses
from hedgerow.mechanism.noisy.chain.release import release_chain
from hedgerow.mechanism.noisy.chain.rows import HeldChain
from hedgerow.mechanism.noisy.chain.tasks import Task, Values, split_epsilon
from hedgerow.mechanism.noisy.prices import Scales, Sums, noise_for_spike
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


KINDS = (
    {},
    {"classes": 2},
    {"kinds": ("at 0", "-8", "missing")},
    {"classes": 4},
    {"kinds": ("fixed by its rule",), "elsewhere": True},
    {},
)


def make_tasks(relation):
    parts = split_epsilon(2.0, [1.0, 2.0, 1.0, 1.0, 1.0, 1.0])
    return [
        Task(f"x{k}", "", ("1", "z"), tuple(range(k)), parts[k], relation, low=-2.0, high=2.0, **kind)
        for k, kind in enumerate(KINDS)
    ]


def cells_of(task):
    if task.classes:
        return (*map(float, range(task.classes)), None)
    return (-1e9, -1.7, 0.4, 1e9, *task.kinds, None)


def values_of(task, cells):
    """Cells as rounds read them; None is blank."""
    present = np.array([cell is not None for cell in cells])
    numbers = np.array([cell if isinstance(cell, float) else np.nan for cell in cells])
    kinds = [task.kinds.index(cell) if cell in task.kinds else len(task.kinds) for cell in cells]
    return Values(numbers, present, np.array(kinds) if task.kinds else None)


def sums_of(columns, row, place):
    """All sums of a table of one row at a place, each over the scale of its noise; a row of None is blank."""
    found, entries = [], []
    for column, cell in zip(columns, row, strict=True):
        task, recipe = column.task, column.recipe
        values = values_of(task, [cell] * recipe.records)
        public = recipe.matrix[:, :2]
        matrix = np.hstack([public, *(entries[j] for j in task.reads)])
        true = recipe.with_entries(matrix[:, 2:])
        loading = true.loadings[place] * LOADING_UNIT
        if isinstance(column.released, ReleasedClasses):
            for number, one in enumerate(column.released.sums):
                sign = float(cell == number) if task.classes > 2 else {None: 0, 0.0: -1, 1.0: 1}.get(cell, 0)
                found += list(loading * sign / one.scale)
        else:
            for kind, one in zip(task.kinds, column.kinds.sums if task.kinds else (), strict=True):
                found += list(loading * (cell == kind) / one.scale)
            blank = bool(np.isnan(values.numbers[place]))
            for one in column.released.rounds:
                about = centres(true.matrix, one.line, true.middle)[place]
                y = 0.0 if blank else np.clip(cell, task.low, task.high) - about
                r = np.clip(y, -one.window, one.window)
                found += list(loading * r / one.score_scale)
                found.append((one.blank if blank else r**2) / one.square_scale)
        entries.append(column.handed.entries(matrix, values))
    return np.array(found)


def release_any(tasks, rng, n):
    """Of a table of any cells."""
    values, matrix = [], np.column_stack([np.ones(n), np.linspace(-1, 1, n)])
    for task in tasks:
        cells = [cell for cell in cells_of(task) if cell is not None]
        values.append(values_of(task, [cells[i] for i in rng.integers(len(cells), size=n)]))
    chain = HeldChain.of(tasks, [matrix] * len(tasks), values)
    return release_chain(chain, key=Key.from_seed(5)), chain


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_row_changes_the_sums_of_a_chain_by_more_than_epsilon(relation):
    """Amounts, classes and kinds, each reading all before it: a row of any cells, some of them missing."""
    tasks, rng = make_tasks(relation), np.random.default_rng(1)
    columns, _ = release_any(tasks, rng, 12)
    rows = list(product(*(cells_of(task) for task in tasks)))
    rows = [rows[i] for i in rng.choice(len(rows), 25, replace=False)] + [(None,) * len(tasks)]
    sums = np.array([sums_of(columns, row, 0) for row in rows])
    against = sums[-1:] if relation == "withheld" else sums
    worst = float(np.abs(sums[:, None] - against[None]).sum(axis=2).max())
    assert worst <= 2.0 * (1 + 1e-6)
    assert worst > 0.6  # and the bound is not idle


def test_what_a_record_hands_on_follows_from_its_own_cells():
    """And not from a mean over others, say: one record would move the loadings of all."""
    columns, chain = release_any(make_tasks("withheld"), np.random.default_rng(3), 12)
    for place, column in enumerate(columns):
        matrix, values = chain.whole.join(place, column.task, chain.entries), chain.values[place]
        rows = [slice(row, row + 1) for row in range(12)]
        alone = [column.handed.entries(matrix[row], values.take(row)) for row in rows]
        np.testing.assert_allclose(
            column.handed.entries(matrix, values), np.vstack(alone), rtol=1e-9, atol=1e-9
        )
        chain = chain.after(column.handed)


@pytest.mark.parametrize("relation", RELATIONS)
def test_kinds_and_rounds_cost_the_target_over_all_pairs_of_states(relation):
    """In whole numbers: (kind or residual, entry) against any other, or against a blank."""
    rng, used = np.random.default_rng(6), []
    for _ in range(6):
        steps, public, reach, kinds = (int(rng.integers(1, top)) for top in (4, 5, 4, 4))
        target = Fraction(int(rng.integers(1, 30)), 10)
        sums = Sums("laplace", public + reach, steps, relation, 2 * steps, spiked=True)
        scales = sums.noise_for(target, split=Fraction(13, 10))
        scale = noise_for_spike("laplace", public + reach, target / (1 if relation == "withheld" else 2))
        over = [scale] * (2 * kinds) + [scales.scores] * 2 + [scales.squares]
        states = [None]
        for u in range(-reach, reach + 1):
            states += [(r, None, u) for r in range(-steps, steps + 1)]
            states += [(None, kind, u) for kind in range(kinds)]
        worst = Fraction(0)
        for one, other in product(states, states):
            if relation == "withheld" and (one is None) == (other is None):
                continue
            pairs = zip(*(state_sums(each, public, kinds, scales.blank) for each in (one, other)), over,
                        strict=True)  # fmt: skip
            worst = max(worst, sum(Fraction(abs(a - b)) / scale for a, b, scale in pairs))
        assert worst <= target
        used.append(worst / target)
    assert max(used) > Fraction(99, 100)


def state_sums(state, public, kinds, blank):
    """What a record adds to the sums of kinds, to scores and to squares; None is a blank."""
    of_kinds, rounds = [0] * (2 * kinds), (0, 0, blank)
    if state is not None:
        r, kind, u = state
        if kind is None:
            rounds = (public * r, u * r, r * r)
        else:
            of_kinds[2 * kind : 2 * kind + 2] = [public, u]
    return [*of_kinds, *rounds]


def test_indicators_of_one_record_are_bounded_together():
    """However many classes or kinds a column has, a record is in one; what exceeds that is cut off."""
    rng = np.random.default_rng(2)
    columns, chain = release_any(make_tasks("withheld"), rng, 40)
    last = columns[-1].recipe
    assert last.beside.reach.sum() == 11 * 1.5
    assert last.beside.together == 1.5 + 1.5 + 3 + 3 + 3  # column by column
    for wild in (rng.normal(size=(40, last.entries)) * 100, np.full((40, last.entries), np.nan)):
        assert np.abs(last.with_entries(wild).loadings).sum(axis=1).max() <= last.bound
    for column in columns[:-1]:
        chain = chain.after(column.handed)
    true = last.with_entries(np.hstack(chain.entries)).loadings[:, -last.entries :]
    assert np.any(true != 0, axis=1).all()  # what records really have is not
    most = last.capping.most_of(last.matrix)  # the smallest weight counts with the least
    assert np.abs(true).sum(axis=1).max() > 0.5 * most.min()


def test_parts_of_epsilon_never_add_up_to_more():
    rng = np.random.default_rng(2)
    for _ in range(40):
        epsilon, shares = float(rng.exponential()), rng.exponential(size=int(rng.integers(1, 40))).tolist()
        parts = split_epsilon(epsilon, shares)
        assert sum(map(Fraction, parts)) <= Fraction(epsilon)
        assert sum(parts) == pytest.approx(epsilon, rel=1e-12)
