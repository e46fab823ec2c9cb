"""Several columns leaf by leaf: what memory gives, bounds that hold anywhere, nothing read but sums."""

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from helpers.elsewhere import Elsewhere, Rounding

import hedgerow as hr
from hedgerow.inference.columns import describe_columns
from hedgerow.mechanism.noisy import rounds
from hedgerow.mechanism.noisy.chain.classes import ReleasedClasses, sum_classes
from hedgerow.mechanism.noisy.chain.release import recipe_of
from hedgerow.mechanism.noisy.chain.run import hold_chain
from hedgerow.mechanism.noisy.chain.streamed import (
    LeafChain,
    _Read,
    predict_leaf,
    stream_chain,
    write_leaf,
)
from hedgerow.mechanism.noisy.leaves.rows import count_norms
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT
from hedgerow.numerics import leaves
from hedgerow.randomness import Key
from hedgerow.synthesizer import encode
from hedgerow.tables.leaves import Held
from hedgerow.tables.table import Table
from hedgerow.threads import Here

pytestmark = pytest.mark.filterwarnings("ignore:Column")  # that are not in a formula
GRADES = ["low", "mid", "high"]
GRADE = hr.Family("categorical", levels=GRADES)
LIMITS = {"wage": (10, 1e6), "hours": (-50, 120), "gain": (-1e5, 1e5), "net": (0.02, 0.98)}
TWO = {
    "wage": hr.Column("wage ~ age"),
    "hours": hr.Column("hours ~ poly(age, 6) + C(sector) + log(wage)", "normal"),
}
PLAIN = TWO | {"gain": hr.Column("gain ~ hours", hr.Family("asinh", scale=100))}
CASES = {
    "two amounts": (TWO, {}, {}),
    "amounts, margins": (PLAIN, {"margin": hr.Margin()}, {"epsilon": 40.0}),
    "replaced, stratified": (PLAIN, {"relation": "replaced"}, {"sampling": "stratified", "rows_per_unit": 2}),
    "classes": (
        {
            "grade": hr.Column("grade ~ age", GRADE),
            "part": hr.Column("part ~ bs(age, df=4) + grade", "bernoulli"),
            "hours": hr.Column("hours ~ grade + part", "normal"),
        },
        {"relation": "replaced"},
        {"sampling": "stratified"},
    ),
    "kinds, rules and shares": (
        {
            "grade": hr.Column("grade ~ age", GRADE, missing="synthesized"),
            "wage": hr.Column(
                "wage ~ age + grade", "zero_lognormal", missing="synthesized", codes=(-8,),
                only_where="grade != 'high'", otherwise=-1,
            ),
            "net": hr.Column("net ~ age + log(wage)", "beta", share_of="wage"),
        },
        {},
        {"sampling": "stratified"},
    ),
}  # fmt: skip


def people(n=200, seed=3):
    """Columns that hang together beyond age, of all kinds of cells."""
    random = np.random.default_rng(seed)
    age, own = random.integers(18, 66, n).astype(float), random.normal(size=n)
    wage = np.exp(6 + 0.02 * age + 0.4 * own)
    draw = random.uniform(size=n)
    return pd.DataFrame(
        {
            "age": age,
            "sector": random.choice(["a", "b", "c"], n),
            "grade": np.array([*GRADES, None])[np.digitize(own + random.normal(size=n), [-0.6, 0.6, 2.0])],
            "part": (own + random.normal(size=n) > 0).astype(float),
            "wage": np.select([draw < 0.06, draw < 0.1, draw < 0.2], [np.nan, -8, 0], wage),
            "hours": 38 - 3 * own + 2 * random.normal(size=n),
            "gain": 500 * random.standard_t(3, n) + 300 * own,
            "net": wage / (1 + np.exp(-0.02 * age - 0.5 * random.normal(size=n))),
        }
    )


def settle(name, data, **more):
    """Settings of a case, and the columns of the table that it is about."""
    columns, strict, asked = CASES[name]
    limits = {each: LIMITS[each] for each in columns if each in LIMITS}
    standard = hr.Strict(limits=limits, **strict)
    asked = {"epsilon": 8.0, "draws": 100, "copies": 2, "seed": 3} | asked | more
    return hr.Synthesizer(columns, standard=standard, **asked), data[["age", "sector", *columns]]


def fit(name, size, workers, monkeypatch, n=200):
    """In memory, and over leaves."""
    monkeypatch.setattr(leaves, "LEAF", size)
    synth, data = settle(name, people(n))
    with pytest.warns(hr.HedgerowWarning, match=".*"):
        held = synth.fit(data)._fitted
    there = Held(held.table, held.design)
    return synth, held, there, stream_chain(synth.settings, there, key=held.key, workers=workers)


def assert_same_statistics(held, streamed):
    """As they are published, to the last digit."""
    nothing = [()] * len(streamed.released)
    assert held.statistics() == describe_columns(streamed.released, held.epsilon, held.records, nothing)
    assert tuple(held.clipped_amounts) == streamed.clipped


def test_leaves_elsewhere_give_the_statistics_that_memory_gives(monkeypatch):
    _, held, _, streamed = fit("two amounts", 64, Elsewhere(), monkeypatch, n=100)
    assert_same_statistics(held, streamed)
    assert 0 < held.clipped < 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*lay beyond declared limits")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("size", "workers"), [(64, Elsewhere()), (23, Here()), (1000, Elsewhere())])
def test_leaves_give_the_copies_that_memory_gives(name, size, workers, monkeypatch):
    """Statistics, draws and copies to the last digit, from tasks and plans that are bytes on the way."""
    synth, held, there, streamed = fit(name, size, workers, monkeypatch)
    assert_same_statistics(held, streamed)
    for one, other in zip(held.drawn, streamed.drawn, strict=True):
        for field, value in one.parameters.items():
            np.testing.assert_array_equal(value, other.parameters[field], field)
    plans = cloudpickle.loads(cloudpickle.dumps(streamed.plan_copies()))
    for copy, plan in zip(held.predict(), plans, strict=True):
        values = [predict_leaf(synth.settings, plan, there, leaf) for leaf in range(there.count)]
        np.testing.assert_array_equal(copy, np.concatenate(values))
    written = [write_leaf(synth.settings, plans[-1], there, leaf) for leaf in range(there.count)]
    pd.testing.assert_frame_equal(pd.concat(written, ignore_index=True), synth.sample().tables[-1])


def released_of(name, monkeypatch, n=120, size=50, **more):
    """A chain over leaves with what was released of it."""
    monkeypatch.setattr(leaves, "LEAF", size)
    synth, data = settle(name, people(n), **more)
    table = Table.of(data)
    there = Held(table, encode(table, [synth.settings]))
    return synth.settings, there, stream_chain(synth.settings, there, key=Key.from_seed(1), workers=Here())


def chain_at(settings, there, released, place):
    """As far as that column, on a table that need not be the one it was released of."""
    tasks, handed = (tuple(getattr(one, name) for one in released) for name in ("task", "handed"))
    return LeafChain(settings, tasks, there, Here(), handed[:place])


def sum_all(settings, there, released):
    """Exact sums of a table given what was released of another, each over the scale of its noise."""
    found = []
    for place, column in enumerate(released):
        chain, recipe = chain_at(settings, there, released, place), column.recipe
        classes = column.released if isinstance(column.released, ReleasedClasses) else column.kinds
        if classes is not None:
            kinds = isinstance(column.handed.names, tuple) and not column.task.classes
            count = len(classes.sums) + classes.signed
            sums = sum_classes(range(count), chain.reader(recipe, kinds=kinds))
            if classes.signed:
                sums = [[b - a for a, b in zip(*sums, strict=True)]]
            for totals, one in zip(sums, classes.sums, strict=True):
                found += [total * LOADING_UNIT / one.scale for total in totals]
        if column.task.classes:
            continue
        first, second, _ = recipe.budget()
        setups = (
            rounds.first_setup(recipe, first),
            rounds.second_setup(recipe, column.released.rounds[0], second),
        )
        for setup in setups:
            scores, squares = rounds.sum_outcome(recipe, setup, chain.reader(recipe))
            found += [total / float(setup.scales.scores) for total in scores]
            found.append(squares / float(setup.scales.squares))
    return np.array(found)


WILD = {
    "grade": ["low", "high", "none of them", None], "part": [0.0, 1.0, 7.0], "net": [1e300, 0.0, 100.0],
    "wage": [0.0, 1e300, -8.0, 300.0, 1e-9], "hours": [-1e300, 1e300, 38.0], "gain": [np.inf, -np.inf, 0.0],
}  # fmt: skip


def with_row(data, row, cells):
    """The table with other cells in one row."""
    other = data.astype({each: object for each in ("grade",) if each in data})
    for name, cell in cells.items():
        other.loc[row, name] = cell
    return other


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_no_row_changes_sums_over_leaves_by_more_than_epsilon(name, monkeypatch):
    """Of all columns together, at both ends of a leaf: a row of wild values against others, or a blank one.

    Where "withheld" is protected two of them may be 2ε apart. Where gaps are kinds no table has a blank row.
    """
    settings, there, streamed = released_of(name, monkeypatch)
    replaced, plain = settings.standard.relation == "replaced", all(one.is_plain for one in settings.columns)
    random, data, worst = np.random.default_rng(4), there.whole.native, [0.0, 0.0]
    for row in (49, 50):
        wild = [
            {each: random.choice(np.array(WILD[each], dtype=object)) for each in CASES[name][0]}
            for _ in range(5)
        ]
        tables = [with_row(data, row, cells) for cells in [*wild, dict.fromkeys(CASES[name][0])]]
        held = [Held(Table.of(one), encode(Table.of(one), [settings])) for one in tables]
        *sums, blank = np.array([sum_all(settings, one, streamed.released) for one in held])
        apart = [np.abs(one - other).sum() for one in sums for other in sums]
        worst = [max(worst[0], *apart), max(worst[1], *(np.abs(one - blank).sum() for one in sums))]
    any_two, most = worst[0] * settings.rows_per_unit, settings.epsilon * (1 + 1e-6)
    assert 0.1 * most < any_two <= most * (1 if replaced else 2)
    assert not plain or worst[1] * settings.rows_per_unit <= most


def test_sums_are_exact_whatever_the_leaves(monkeypatch):
    """Against whole numbers one by one, of entries and residuals as memory has them."""
    settings, there, streamed = released_of("two amounts", monkeypatch, n=90)
    released, data = streamed.released, there.whole
    memory = hold_chain(settings, data, there.encoded, values=True)
    for column in released[:-1]:
        memory = memory.after(column.handed)
    recipe = released[1].recipe
    setup = rounds.first_setup(recipe, recipe.budget()[0])
    values, limits = memory.values[-1], (recipe.low, recipe.high)
    held = recipe_of(memory).with_entries(memory.entries[0])
    r, known = rounds.steps_of(setup, limits, held.matrix, values.numbers, values.present)
    scores = [sum(int(a) * int(b) for a, b in zip(r, column, strict=True)) for column in held.loadings.T]
    squares = sum(int(a) ** 2 for a in r) + setup.scales.blank * int((~known).sum())
    for size in (7, 30, 1000):
        monkeypatch.setattr(leaves, "LEAF", size)
        reader = chain_at(settings, there, released, 1).reader(recipe)
        assert rounds.sum_outcome(recipe, setup, reader) == (scores, squares)


def test_no_loading_exceeds_what_the_noise_was_made_for_wherever_it_is_made(monkeypatch):
    """On a machine that rounds otherwise, whatever values are: entries and public predictors together."""
    settings, there, streamed = released_of("two amounts", monkeypatch, epsilon=1e4)
    released, place = streamed.released, 1
    recipe, wild = released[place].recipe, there.whole.native.copy()
    wild["wage"] = np.resize([0.0, np.inf, 1e300, 300.0, np.nan], len(wild))
    for kind, data in ((Held, there.whole.native), (Rounding, there.whole.native), (Rounding, wild)):
        other = kind(Table.of(data), encode(Table.of(data), [settings]))
        chain = chain_at(settings, other, released, place)
        rows = chain.rows_beside().load(recipe.rows.capping)
        free = [count_norms(part[0], part[1], 1).max() for part in rows.each(look)]
        assert (max(free) > recipe.bound) == (kind is Rounding)
        sizes = chain.reader(recipe)(lambda part, *_: np.abs(part.loadings).sum(axis=1))
        assert np.concatenate(sizes).max() <= recipe.bound
        assert (np.concatenate(sizes) == 0).any() == (kind is Rounding)


def look(part):
    """Loadings of public predictors, and the most that entries may add."""
    return part.loadings[:, : -part.most.shape[1]] if part.most is not None else part.loadings, part.most


class Spying(Here):
    """What tasks gave back."""

    def __init__(self):
        self.seen = []

    def map(self, task, leaves, which):
        for leaf in which:
            self.seen.append((task.task, task(leaves, leaf)))
            yield self.seen[-1][1]


def test_whole_numbers_are_all_that_is_read_off_values(monkeypatch):
    """Readers give sums and no more; public passes give the same beside other values, released the same."""
    settings, there, streamed = released_of("two amounts", monkeypatch)
    spy = Spying()
    stream_chain(settings, there, key=Key.from_seed(1), workers=spy)
    read = [found for task, found in spy.seen if isinstance(task, _Read)]
    assert len(read) == 2 * 2 * there.count  # two rounds of two columns
    assert all(isinstance(one, int) for found in read for one in np.hstack([*found]).tolist())
    public = []
    for data in (there.whole.native, there.whole.native.assign(wage=1.0, hours=np.nan)):
        spy, other = Spying(), Held(Table.of(data), encode(Table.of(data), [settings]))
        chain = LeafChain(settings, tuple(one.task for one in streamed.released), other, spy)
        for column in streamed.released:
            assert recipe_of(chain).bound == column.recipe.bound
            chain = chain.after(column.handed) if chain.place < 1 else chain
        public.append([cloudpickle.dumps(found) for _, found in spy.seen])
    assert public[0] == public[1]
    assert len(public[0]) == there.count * (3 + 5)  # two passes more where a column is read
