"""Noisy statistics leaf by leaf: what memory gives, exact sums, bounds over all rows, nothing else read."""

from dataclasses import replace
from fractions import Fraction

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from helpers.elsewhere import Elsewhere, Rounding

import hedgerow as hr
from hedgerow.errors import RangeError, SettingError
from hedgerow.mechanism.noisy import rounds
from hedgerow.mechanism.noisy.chain.streamed import stream_chain
from hedgerow.mechanism.noisy.estimate import estimate
from hedgerow.mechanism.noisy.leaves import groups
from hedgerow.mechanism.noisy.leaves.groups import Cells, group_fitted
from hedgerow.mechanism.noisy.leaves.rows import HeldRows, LeafRows
from hedgerow.mechanism.noisy.leaves.streamed import (
    check_statistics,
    predict_leaf,
    read_leaves,
    stream_recipe,
    stream_statistics,
    write_leaf,
)
from hedgerow.mechanism.noisy.posterior import draw_posterior
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.numerics import leaves
from hedgerow.randomness import Key
from hedgerow.synthesizer import encode
from hedgerow.tables.leaves import Held
from hedgerow.tables.table import Table
from hedgerow.threads import Here

pytestmark = pytest.mark.filterwarnings("ignore:Column")  # that are not in a formula
LIMITS = (0.01, 1e4)
CLASSES = hr.Brackets([0, 1, 3, 10, 1e9], column="class")


def table(n=300, *, zeros=False):
    rng = np.random.default_rng(1)
    z, kind = rng.normal(size=n), rng.integers(4, size=n)
    x = np.exp(1 + 0.5 * z + 0.1 * kind + 0.8 * rng.normal(size=n))
    return pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.3, 0.0, x) if zeros else x,
            "z": z,
            "kind": [f"k{one}" for one in kind],
            "class": pd.cut(x, [0, 1, 3, 10, 1e9], labels=[0, 1, 3, 10]).astype(float),
        }
    )


CASES = {
    "margin, stratified": ("x ~ z + kind", "lognormal", {"margin": hr.Margin()}, {"sampling": "stratified"}),
    "projected": (
        "x ~ z",
        "lognormal",
        {"noise": "auto"},
        {"sampling": "projected", "delta": 1e-4},
    ),
    "a spike": ("x ~ kind", "zero_lognormal", {"margin": hr.Margin()}, {"sampling": "stratified"}),
    "inside classes": (
        "x ~ z",
        "lognormal",
        {"relation": "range", "range": CLASSES, "inside": True},
        {"sampling": "stratified"},
    ),
    "replaced": ("x ~ z + kind", "lognormal", {"relation": "replaced"}, {"rows_per_unit": 2}),
}


def fit(name, monkeypatch, n=300):
    """In memory, and over leaves elsewhere."""
    monkeypatch.setattr(leaves, "LEAF", 64)
    formula, family, strict, more = CASES[name]
    told = {"epsilon": 4.0, "draws": 100, "copies": 2, "seed": 3, **more}
    synth = hr.Synthesizer(formula, family, standard=hr.Strict(limits=LIMITS, **strict), **told)
    held = synth.fit(table(n, zeros=name == "a spike"))._fitted
    there = Held(held.table, held.design)
    return synth, held, there, stream_statistics(synth.settings, there, key=held.key, workers=Elsewhere())


def assert_same_statistics(held, streamed):
    pairs = [*zip(held.released.rounds, streamed.released.rounds, strict=True)]
    for part in ("counts", "spike"):
        one, other = getattr(held.released, part), getattr(streamed.released, part)
        assert (one is None) == (other is None)
        pairs += [] if one is None else [(one, other)]
    for one, other in pairs:
        for field, value in vars(one).items():
            np.testing.assert_array_equal(value, getattr(other, field), field)


def test_leaves_elsewhere_give_the_statistics_that_memory_gives(monkeypatch):
    """To the last digit."""
    _, held, _, streamed = fit("replaced", monkeypatch, n=150)
    assert streamed.settings == held.settings
    assert streamed.columns == held.design.columns
    assert streamed.clipped == held.clipped
    assert streamed.epsilon == held.epsilon
    assert_same_statistics(held, streamed)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_leaves_elsewhere_give_the_copies_that_memory_gives(name, monkeypatch):
    """Statistics, draws and copies to the last digit."""
    synth, held, there, streamed = fit(name, monkeypatch)
    assert streamed.settings == held.settings
    assert_same_statistics(held, streamed)
    for field, value in held.parameters.items():
        np.testing.assert_array_equal(value, streamed.parameters[field], field)
    for copy, plan in zip(held.predict(), streamed.plan_copies(), strict=True):
        values = [predict_leaf(plan, there, leaf) for leaf in range(there.count)]
        np.testing.assert_array_equal(copy, np.concatenate(values))
    written = [write_leaf(plan, there, leaf) for leaf in range(there.count)]
    pd.testing.assert_frame_equal(pd.concat(written, ignore_index=True), synth.sample().tables[-1])


def test_sums_are_exact_whatever_the_leaves(monkeypatch):
    """Against whole numbers one by one, with loadings beside which 64 bits overflow after two records."""
    rng = np.random.default_rng(2)
    n = 90
    recipe = make_recipe(rng.normal(size=(n, 2)), low=-3.0, high=9.0, epsilon=1.0)
    large = replace(recipe, rows=HeldRows(recipe.matrix, recipe.loadings * 2**24))
    y, present = rng.normal(3, 4, n), rng.random(n) > 0.1
    y[::9] = np.nan
    for this in (recipe, large):
        setup = rounds.settle(this, np.zeros(2), 2.0, Fraction(1), rounds.STEPS)
        r, known = rounds.steps_of(setup, (-3.0, 9.0), this.matrix, y, present)
        scores = [sum(int(a) * int(b) for a, b in zip(r, column, strict=True)) for column in this.loadings.T]
        squares = sum(int(a) ** 2 for a in r) + setup.scales.blank * int((~known).sum())
        at_spike = np.flatnonzero(present & np.isnan(y))
        spike = [sum(int(column[place]) for place in at_spike) for column in this.loadings.T]
        for size in (1, 7, 64, 1000):
            monkeypatch.setattr(leaves, "LEAF", size)
            reader = rounds.hold_outcomes(this.rows, y, present)
            assert rounds.sum_outcome(this, setup, reader) == (scores, squares)
            assert this is large or rounds.sum_spike(reader) == spike
    assert max(map(abs, scores)) > 2**63


class Spying(Here):
    """What tasks gave back."""

    def __init__(self):
        self.seen = []

    def map(self, task, leaves, which):
        for leaf in which:
            self.seen.append((task.task, task(leaves, leaf)))
            yield self.seen[-1][1]


def test_whole_numbers_are_all_that_is_read_off_outcomes(monkeypatch):
    """Other outcomes, the same noise: public passes give back the same, and readers nothing but sums."""
    monkeypatch.setattr(leaves, "LEAF", 64)
    public = []
    for values in (lambda x: x, lambda x: 1e2 / x):
        data = table(150)
        data["x"] = values(data["x"])
        synth = hr.Synthesizer("x ~ z", "lognormal", standard=hr.Strict(limits=LIMITS), epsilon=1.0, seed=1)
        fitted, spy = synth.fit(data)._fitted, Spying()
        stream_recipe(synth.settings, Held(fitted.table, fitted.design), spy)
        before = len(spy.seen)
        stream_statistics(
            synth.settings, Held(fitted.table, fitted.design), key=Key.from_seed(1), workers=spy
        )
        public.append([cloudpickle.dumps(found) for _, found in spy.seen[:before]])
        read = [found for task, found in spy.seen[before:] if type(task).__name__ == "_Read"]
        assert len(read) == 9  # two rounds, and how many are clipped, of three leaves
        assert all(isinstance(one, int) for found in read for one in np.hstack([*found]).tolist())
    assert public[0] == public[1]
    assert len(public[0]) >= 6


def test_the_bound_counts_every_row(monkeypatch):
    """A row that no choice is made by, in a leaf of its own, has the largest loadings."""
    monkeypatch.setattr(leaves, "LEAF", 2048)
    n = 6001
    X = np.column_stack([np.ones(n), np.random.default_rng(1).normal(size=n)])
    X[-1, 1] = 50.0
    held = Held(None, _Predictors(X))
    for noise, norm in (("laplace", np.abs), ("gaussian", np.square)):
        recipe = make_recipe(LeafRows(held, Here()), low=0.0, high=1.0, epsilon=1.0, noise=noise, delta=1e-5)
        whole = recipe.rows.capping.load(X)
        assert recipe.bound == norm(whole).sum(axis=1).max()
        assert recipe.reach == pytest.approx(np.abs(whole).sum(axis=0) * LOADING_UNIT, rel=1e-14)
        with pytest.raises(SettingError, match="read leaf by leaf"):
            _ = recipe.matrix


def test_public_passes_over_a_single_leaf_stay_here():
    """Groups are then cut by all of its records, which is more than a worker may send."""
    spy = Spying()
    X = np.column_stack([np.ones(3000), np.random.default_rng(1).normal(size=3000)])
    rows = LeafRows(Held(None, _Predictors(X)), spy)
    recipe = make_recipe(rows, low=0.0, high=1.0, epsilon=1.0)
    ((fitted, shares),) = group_fitted(recipe, [np.array([0.0, 1.0])])
    assert len(fitted) == 1000
    assert shares.sum() == pytest.approx(1.0)
    assert spy.seen == []


class _Predictors:
    """As much of a design as public passes read."""

    def __init__(self, matrix):
        self.matrix, self.records, self.links = matrix, len(matrix), ()

    def take(self, rows):
        return _Predictors(self.matrix[rows])


def test_the_widest_set_of_all_leaves_is_the_price(monkeypatch):
    monkeypatch.setattr(leaves, "LEAF", 64)
    data = table(150).assign(low=1.0, high=2.0)
    data.loc[149, "high"] = 50.0
    known = hr.Strict(limits=LIMITS, relation="range", range=hr.Bounds("low", "high"))
    synth = hr.Synthesizer("x ~ z", "lognormal", standard=known, epsilon=1.0, seed=1)
    fitted = synth.fit(data)._fitted
    recipe = stream_recipe(synth.settings, Held(fitted.table, fitted.design), Elsewhere())
    assert recipe.width == fitted.released.recipe.width == pytest.approx(np.log(50))


def test_classes_that_no_copy_fits_in_are_refused_where_they_are(monkeypatch):
    monkeypatch.setattr(leaves, "LEAF", 64)
    inside = {"relation": "range", "range": hr.Bounds("low", "high"), "inside": True}
    data = table(150).assign(low=1.0, high=1e9)
    synth = hr.Synthesizer("x ~ z", "lognormal", standard=hr.Strict(limits=LIMITS, **inside), epsilon=1.0)
    fitted = synth.fit(data)._fitted
    data.loc[149, "low"] = 1e8
    there = Held(Table.of(data), fitted.design)
    with pytest.raises(RangeError, match=r"rows 129 to 150.*1 of 22 public classes have no width"):
        stream_recipe(synth.settings, there, Here())


def released_by(n=400, margin=0.25, spiked=False):
    rng = np.random.default_rng(5)
    X = np.column_stack([np.ones(n), rng.standard_t(3, size=n), rng.integers(3, size=n)])
    y = X @ [1.0, 0.5, 0.2] + rng.normal(size=n)
    if spiked:
        y[rng.random(n) < 0.3] = np.nan
    recipe = make_recipe(X, low=-9.0, high=11.0, epsilon=4.0, margin_share=margin, spiked=spiked)
    return rounds.release_statistics(recipe, y, np.ones(n, dtype=bool), key=Key.from_seed(1))


@pytest.mark.parametrize("spiked", [False, True])
@pytest.mark.parametrize("some", [30, 16_384])
def test_groups_hold_every_record_once(monkeypatch, spiked, some):
    """Shares, means and moments about means are those of all records, wherever groups were cut."""
    released = released_by(spiked=spiked)
    recipe, line = released.recipe, estimate(released).beta
    whole = Cells.of(recipe, line)
    monkeypatch.setattr(leaves, "LEAF", 64)
    monkeypatch.setattr(groups, "_SOME", some)
    Q, V = recipe.matrix @ recipe.basis, recipe.loadings * LOADING_UNIT
    chance = np.ones(len(Q)) if recipe.presence is None else recipe.presence.chance(recipe.matrix)
    cells = Cells.of(recipe, line)
    assert cells.share.sum() == pytest.approx(chance.mean())
    assert cells.slope.sum(axis=0) == pytest.approx((V.T * chance) @ Q / len(Q))
    assert cells.square.sum(axis=0) == pytest.approx((V.T * chance) @ V / len(Q))
    if not spiked:
        middle = Q - Q.mean(axis=0)
        moved = cells.centre - Q.mean(axis=0)
        about = cells.scatter.sum(axis=0) + (moved.T * cells.share) @ moved
        assert about == pytest.approx(middle.T @ middle / len(Q), abs=1e-12)
    if some > len(Q):  # cut by all records: the cells of one leaf
        for field, value in vars(whole).items():
            pairs = [(value, getattr(cells, field))] if field != "mixed" else []
            for one, other in [*pairs, *zip(whole.mixed or (), cells.mixed or (), strict=True)]:
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-13)
    ((fitted, share), _) = group_fitted(recipe, [line, 2 * line])
    assert share.sum() == pytest.approx(1)
    if not spiked:
        assert share @ fitted == pytest.approx((recipe.matrix @ line).mean())


@pytest.mark.slow
def test_some_records_cut_groups_as_well_as_all(monkeypatch):
    """Means and spreads of the posterior, groups cut by 200 of 3000 records, to a tenth of a spread."""
    released = released_by(3000)
    drawn = [draw_posterior(released, draws=4000, key=Key.from_seed(2)).parameters]
    monkeypatch.setattr(leaves, "LEAF", 512)
    monkeypatch.setattr(groups, "_SOME", 200)
    drawn.append(draw_posterior(released, draws=4000, key=Key.from_seed(2)).parameters)
    for name in drawn[0]:
        one, other = (each[name] for each in drawn)
        assert (np.abs(one.mean(axis=0) - other.mean(axis=0)) < 0.1 * one.std(axis=0)).all()
        assert one.std(axis=0) == pytest.approx(other.std(axis=0), rel=0.1)


class Unread(Held):
    """Whose records nobody asks for."""

    def design(self, leaf):
        raise AssertionError

    table = records = property(design)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"standard": hr.ADP()}, "ADP makes no noisy statistics. Use Strict"),
        (
            {"formula": {"x": hr.Column("x ~ z", missing="public"), "z": hr.Column("z ~ 1", "normal")},
             "standard": hr.Strict(limits={"x": LIMITS, "z": (-9, 9)})},
            "'x' has gaps that are public, .*with all records at hand",
        ),
        (
            {"formula": {"x": hr.Column("x ~ z", only_where="kind == 'k1'", otherwise=0)},
             "standard": hr.Strict(limits={"x": LIMITS})},
            "'x' has rules over public columns, .*with all records at hand",
        ),
    ],
)  # fmt: skip
def test_what_needs_all_records_is_refused_before_any_is_read(told, message):
    told = {"formula": "x ~ z", "epsilon": 1.0} | told
    synth = hr.Synthesizer(told.pop("formula"), **told)
    with pytest.raises(SettingError, match=message):
        check_statistics(synth.settings)
    stream = stream_chain if synth.settings.by_name else stream_statistics
    with pytest.raises(SettingError, match=message):
        stream(synth.settings, Unread(None, None), key=Key.from_seed(1), workers=Here())


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_no_loading_exceeds_what_the_noise_was_made_for_wherever_it_is_made(noise, monkeypatch):
    """Whoever reads outcomes makes loadings anew; a record beyond the bound would have more than ε."""
    monkeypatch.setattr(leaves, "LEAF", 64)
    standard = hr.Strict(limits=LIMITS, noise=noise)
    more = {"delta": 1e-4} if noise == "gaussian" else {}
    synth = hr.Synthesizer("x ~ poly(z, 9)", family="lognormal", standard=standard, epsilon=1.0, **more)
    data = Table.of(table())
    design = encode(data, [synth.settings])
    recipe = stream_recipe(synth.settings, Held(data, design), Here())
    for held, beyond in ((Held(data, design), 0), (Rounding(data, design), 1)):
        free = list(LeafRows(held, Here(), recipe.rows.capping).each(find_norms(noise)))
        assert (max(free) > recipe.bound) == bool(beyond)
        read = read_leaves(synth.settings, held, Here(), recipe)
        assert max(read(lambda part, *_: find_norms(noise)(part))) <= recipe.bound


def find_norms(noise):
    power = 1 if noise == "laplace" else 2
    return lambda part: int((np.abs(part.loadings) ** power).sum(axis=1).max())
