"""Leaf by leaf gives what the table in memory gives, to the last digit: risks, weights, prices, copies."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import hypothesis
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.errors import ClusterError, DataError, RangeError, SettingError
from hedgerow.mechanism.streamed import run
from hedgerow.mechanism.streamed.copies import write_leaf
from hedgerow.mechanism.streamed.fit import StreamedFit, stream_weighted
from hedgerow.mechanism.streamed.ranks import select_ranks
from hedgerow.mechanism.streamed.view import view
from hedgerow.mechanism.streamed.weigh import risk_kind
from hedgerow.numerics import leaves as leaves_module
from hedgerow.numerics.renyi import COARSE_ORDERS
from hedgerow.privacy import weights
from hedgerow.privacy.bounds import RENYI
from hedgerow.randomness import Key
from hedgerow.synthesizer import encode
from hedgerow.tables import design
from hedgerow.tables.leaves import Held
from hedgerow.tables.table import Table
from hedgerow.threads import Here

pytestmark = pytest.mark.filterwarnings("ignore::hedgerow.errors.HedgerowWarning")
SEED = 7


@pytest.fixture(autouse=True)
def small_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaves_module, "LEAF", 64)


class Elsewhere:
    """Sends tasks away, does each twice and the last one first."""

    def map(self, task: Callable[[Any, int], Any], leaves: Any, which: Iterable[int]) -> Iterator[Any]:
        sent, numbers = pickle.dumps(task), list(which)
        for number in reversed(numbers):
            pickle.loads(sent)(leaves, number)
        made = {number: pickle.loads(sent)(leaves, number) for number in reversed(numbers)}
        return iter([made[number] for number in numbers])


def make_table(n: int = 300, seed: int = 3) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    z = random.normal(size=n)
    group = random.choice(["a", "b", "c"], n)
    x = np.exp(1.0 + 0.5 * z + 0.4 * (group == "b") + random.normal(0, 0.8, n))
    y = 2.0 + 0.3 * z + 0.5 * np.log(x) + random.normal(0, 0.5, n)
    table = pd.DataFrame({"x": x, "y": y, "z": z, "group": group})
    table["low"], table["high"] = np.where(x < 3, 0.0, 3.0), np.where(x < 3, 3.0, 1e4)
    table["flag"] = np.arange(n) >= 150  # the first two leaves have none
    table["job"] = random.choice(["none", "part", "full"], n, p=[0.2, 0.3, 0.5])
    table["sex"] = random.choice(["f", "m"], n)
    hours = np.exp(random.normal(3, 0.4, n))
    hours[random.random(n) < 0.1], hours[random.random(n) < 0.1] = np.nan, -8
    wage = np.where(table["job"] == "none", 0.0, np.exp(1 + 0.3 * z + random.normal(0, 0.5, n)))
    bonus = np.where((random.random(n) < 0.2) | (np.arange(n) < 70), np.nan, wage + random.exponential(2, n))
    return table.assign(hours=hours, wage=wage, bonus=bonus, part=wage * random.uniform(0.1, 0.9, n))


TABLE = make_table()


def stream(settings: Any, table: pd.DataFrame, workers: Any = None) -> tuple[StreamedFit, Held]:
    data = Table.of(table)
    held = Held(data, encode(data, [settings]))
    return stream_weighted(settings, held, key=Key.from_seed(SEED), workers=workers or Here()), held


def joined(held: Held, name: str) -> Any:
    return np.concatenate([held.kept(name, leaf) for leaf in range(held.count)], axis=-1)


def compare(
    formula: Any = "x ~ z + group",
    table: pd.DataFrame = TABLE,
    workers: Any = None,
    least: int = 4,
    **asked: Any,
) -> tuple[StreamedFit, Held, Any]:
    """Fit in memory and leaf by leaf, and hold one against the other."""
    synth = hr.Synthesizer(formula, seed=SEED, **{"draws": 200, **asked}).fit(table)
    fit, held = stream(synth.settings, table, workers)
    done = synth._need()
    assert held.count >= least
    risk = done.start.risk.of(risk_kind(synth.settings))
    np.testing.assert_array_equal(joined(held, "risk"), risk)
    if synth.settings.standard.weighted:
        np.testing.assert_array_equal(fit.scale * joined(held, "alpha"), done.outcome.weighted.alpha)
    if done.outcome.weighted.known.any():
        np.testing.assert_array_equal(joined(held, "known"), done.outcome.weighted.known)
    np.testing.assert_array_equal(joined(held, "power"), done.outcome.fit.power)
    gone = [link.withheld for link in done.design.links]
    assert fit.overview.withheld == tuple(0 if each is None else each.sum() for each in gone)
    for name, values in done.outcome.fit.parameters.items():
        np.testing.assert_array_equal(fit.parameters[name], values)
    pricing, bound, copies = done.outcome.pricing, synth.settings.bound, synth.settings.copies
    np.testing.assert_array_equal(joined(held, "price"), bound.by_record(pricing))
    assert (fit.scale, fit.certified) == (done.scale, done.outcome.certified)
    assert (fit.epsilon, fit.total_epsilon) == (done.epsilon, done.total_epsilon)
    assert fit.statement == done.statement
    priced = [(fit.account.own, pricing)]
    if not isinstance(synth.settings.standard, hr.ADP | hr.Unweighted):
        priced.append((fit.account.withheld, pricing.withheld))
    for charge, each in priced:
        assert charge.total == bound.total(each, copies)
        if each.neighbours is not None:
            np.testing.assert_array_equal(charge.curve, each.neighbours.curve(COARSE_ORDERS, copies))
    for number, copy in enumerate(synth.sample().tables):
        parts = [write_leaf(fit, held, leaf, number) for leaf in range(held.count)]
        pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), copy, check_exact=True)
    return fit, held, done


RADIUS = hr.Radius(0.5, 2.0)
CHAIN = {
    "x": hr.Column("x ~ z + group", family="lognormal"),
    "y": hr.Column("y ~ log(x) + z", family="normal"),
}


def test_one_column_with_a_range_gives_what_memory_gives() -> None:
    fit, _, done = compare(standard=hr.RangeTruncated(RADIUS), epsilon=3.0, copies=2, draws=100)
    assert fit.scale < 1
    prices = done.outcome.pricing.sensitivity * 2
    dearest = fit.account.dearest
    np.testing.assert_array_equal(dearest.rows, np.argsort(-prices, kind="stable"))
    np.testing.assert_array_equal(dearest.values, prices[dearest.rows])


@pytest.mark.slow
def test_a_chain_gives_what_memory_gives_though_workers_repeat_tasks() -> None:
    compare(CHAIN, draws=100, workers=Elsewhere())


STANDARDS = {
    "unweighted": {"standard": hr.Unweighted(), "epsilon": None},
    "adp": {},
    "averaged": {"standard": hr.RangeAveraged(RADIUS)},
    "truncated": {"standard": hr.RangeTruncated(RADIUS)},
}
OTHERS: dict[str, dict[str, Any]] = {
    "public weight one": {"standard": hr.RangeTruncated(RADIUS, public_weight="one"), "bound": "oscillation"},
    "simulated": {"standard": hr.RangeAveraged(RADIUS), "known": "simulated"},
    "stratified": {"sampling": "stratified"},
    "inside": {"standard": hr.RangeTruncated(hr.Bounds("low", "high"), inside=True), "epsilon": 6.0},
    "whole in some leaves": {"standard": hr.RangeTruncated(hr.Where("flag", RADIUS, hr.Everywhere()))},
    "outside": {"standard": hr.RangeTruncated(hr.Bounds(0.0, 6.0, outside="public"))},
    "brackets": {"standard": hr.RangeAveraged(hr.Brackets([0, 1, 3, 10, 1000]))},
    "tail": {"standard": hr.RangeTruncated(hr.Tail(0.1, hr.Radius(0.2, 5.0), RADIUS))},
    "asinh": {"formula": "y ~ z", "family": hr.Family("asinh", scale=1.0)},
    "planned": {"weights": weights.PlannedWeights(), "bound": "renyi", "epsilon": 1.5},
    "chain, planned": {"formula": CHAIN, "weights": weights.PlannedWeights(), "bound": "renyi"},
    "chain of classes, planned": {  # whose leverages are three
        "formula": {
            "x": hr.Column("x ~ group", family="lognormal"),
            "y": hr.Column("y ~ group + log(x)", family="normal"),
        },
        **{"weights": weights.PlannedWeights(), "bound": "renyi", "sampling": "stratified"},
    },
    "box": {"formula": CHAIN, "standard": hr.RangeTruncated(hr.Box({"x": RADIUS}))},
    "box, averaged": {
        "formula": CHAIN,
        "standard": hr.RangeAveraged(hr.Box({"x": RADIUS, "y": hr.Radius(0.2, 3.0)})),
    },
    "chain, stratified": {"formula": CHAIN, "sampling": "stratified"},
}
for _rule in (
    weights.SoftmaxWeights(),
    weights.SoftmaxWeights(risk="oscillation"),
    weights.LogisticWeights(shift=0.1),
    weights.InverseWeights(),
    weights.CapWeights(3.0),
    weights.ScalarWeights(0.5),
    weights.Reweighted(weights.LinearWeights()),
    weights.Reweighted(weights.Reweighted(weights.CapWeights(2.0)), k=0.9),
    weights.FixedWeights(np.linspace(0.1, 1, len(TABLE))),
):
    OTHERS[f"{_rule}"] = {"weights": _rule}


@pytest.mark.slow
@pytest.mark.parametrize("formula", ["x ~ z + group", CHAIN], ids=["one", "chain"])
@pytest.mark.parametrize("bound", ["lipschitz", "oscillation", "exact", "renyi"])
@pytest.mark.parametrize("name", STANDARDS)
def test_every_standard_and_bound_gives_what_memory_gives(name: str, bound: str, formula: Any) -> None:
    asked = {"epsilon": 3.0 if formula is not CHAIN else 8.0, "copies": 2, **STANDARDS[name]}
    if "standard" in asked and formula is CHAIN and name != "unweighted":
        asked["standard"] = type(asked["standard"])(hr.Box({"x": RADIUS}))
    if name == "truncated" and bound in ("exact", "renyi"):
        with pytest.raises(SettingError, match="no closed form"):
            compare(formula, bound=bound, **asked)
        return
    compare(formula, bound=bound, **asked)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_every_weight_and_range_gives_what_memory_gives(name: str) -> None:
    asked = {"epsilon": 3.0, **OTHERS[name]}
    if asked.get("formula") is CHAIN:
        asked["epsilon"] = 8.0
    compare(asked.pop("formula", "x ~ z + group"), workers=Elsewhere(), **asked)


JOB = hr.Column("job ~ group + sex", hr.Family("dirichlet", levels=["none", "part", "full"]))
CELLS: dict[str, dict[str, hr.Column]] = {  # columns that hold more than amounts
    "classes": {"job": JOB},
    "classes by classes": {
        "job": hr.Column("job ~ sex", JOB.family),
        "group": hr.Column("group ~ C(job) + sex", hr.Family("dirichlet", levels=["a", "b", "c"])),
    },
    "classes, read": {"job": JOB, "x": hr.Column("x ~ z + C(job)")},
    "gaps": {"bonus": hr.Column("bonus ~ z", missing="withheld")},
    "gaps, read": {
        "bonus": hr.Column("bonus ~ z", missing="withheld"),
        "x": hr.Column("x ~ z + log(bonus)"),
    },
    "public gaps": {
        "bonus": hr.Column("bonus ~ z", missing="public", filler=3.0),
        "x": hr.Column("x ~ z + log(bonus)"),
    },
    "gaps and codes": {
        "hours": hr.Column(
            "hours ~ z", codes=(-8,), missing="synthesized", kinds_by="C(group) + sex", filler=20.0
        ),
        "x": hr.Column("x ~ z + log(hours)"),
    },
    "rules": {
        "job": JOB,
        "wage": hr.Column("wage ~ z", only_where="job != 'none'", otherwise=0, filler=5.0),
        "x": hr.Column("x ~ z + log1p(wage)"),
    },
    "shares": {
        "job": JOB,
        "wage": hr.Column("wage ~ z", only_where="job != 'none'", otherwise=0, filler=5.0),
        "part": hr.Column("part ~ z", share_of="wage"),
    },
}


@pytest.mark.parametrize("name", ["gaps", "rules"])
def test_cells_of_all_kinds(name: str) -> None:
    compare(CELLS[name], workers=Elsewhere(), draws=100, copies=2)


@pytest.mark.slow
@pytest.mark.parametrize("bound", ["lipschitz", "oscillation", "exact", "renyi"])
@pytest.mark.parametrize("standard", [hr.Unweighted(), hr.ADP()], ids=lambda each: each.label)
@pytest.mark.parametrize("name", CELLS)
def test_cells_of_every_kind_standard_and_bound(name: str, standard: Any, bound: str) -> None:
    compare(CELLS[name], standard=standard, bound=bound, copies=2, draws=100)


@pytest.mark.slow
@pytest.mark.parametrize("standard", [hr.RangeAveraged, hr.RangeTruncated])
@pytest.mark.parametrize("name", ["classes, read", "gaps, read", "rules"])
def test_a_range_beside_cells_of_all_kinds(name: str, standard: Any) -> None:
    columns, outcome = CELLS[name], "x"
    if name == "rules":  # x reads what a rule fixes, so that a range of it has no probability
        columns, outcome = {**columns, "y": hr.Column("y ~ z", family="normal")}, "y"
    asked = {"standard": standard(hr.Box({outcome: RADIUS})), "epsilon": 60.0, "bound": "oscillation"}
    compare(columns, workers=Elsewhere(), draws=100, **asked)


def test_the_largest_values_are_those_of_all_records_that_have_one() -> None:
    """Not of a leaf's, of which some have none at all; nor do numbers that stand for missing ones count."""
    tail = hr.Tail(0.1, hr.Radius(0.2, 5.0), RADIUS)
    compare(CELLS["gaps, read"], standard=hr.RangeTruncated(hr.Box({"x": tail})), epsilon=60.0, draws=100)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule",
    [
        weights.SoftmaxWeights(),
        weights.CapWeights(3.0),
        weights.Reweighted(weights.LinearWeights()),
        weights.FixedWeights(np.linspace(0.1, 1, len(TABLE))),
    ],
    ids=str,
)
def test_weights_of_rows_without_a_value(rule: weights.Weights) -> None:
    """They have none, and no say in those of others."""
    _, held, _ = compare(CELLS["gaps"], weights=rule, draws=100, workers=Elsewhere(), sampling="stratified")
    gone = TABLE["bonus"].isna().to_numpy()
    assert gone[:64].all()
    assert not joined(held, "power")[gone].any()


@pytest.mark.slow
def test_a_planned_weight_beside_gaps() -> None:
    asked = {"weights": weights.PlannedWeights(), "bound": "renyi", "draws": 100}
    compare(CELLS["gaps"], epsilon=40.0, **asked)
    compare(CELLS["gaps, read"], epsilon=60.0, **asked)


@pytest.mark.slow
@given(
    size=st.integers(40, 200),
    seed=st.integers(0, 10**6),
    n=st.integers(150, 400),
    name=st.sampled_from(list(CELLS)),
)
@hypothesis.settings(max_examples=12)
def test_cells_of_any_table_whatever_the_leaves(size: int, seed: int, n: int, name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaves_module, "LEAF", size)
        compare(CELLS[name], make_table(n, seed), least=1, draws=100)


def test_a_column_without_an_amount_is_refused_as_in_memory() -> None:
    table = TABLE.assign(bonus=np.nan)
    settings = hr.Synthesizer(CELLS["gaps"]).settings
    with pytest.raises(DataError, match="no amount or class in any of 300 rows"):
        encode(Table.of(table), [settings])
    design_of_some = encode(Table.of(TABLE), [settings])
    empty = replace(design_of_some, present=np.zeros(300, np.bool_))
    with pytest.raises(DataError, match="no amount or class in any of 300 rows"):
        stream_weighted(settings, Held(Table.of(table), empty), key=Key.from_seed(1), workers=Here())


@pytest.mark.slow
@given(
    size=st.integers(40, 200),
    seed=st.integers(0, 10**6),
    n=st.integers(100, 400),
    name=st.sampled_from(list(STANDARDS)),
    bound=st.sampled_from(["lipschitz", "oscillation"]),
)
@hypothesis.settings(max_examples=12)
def test_leaves_of_any_size_give_what_memory_gives(
    size: int, seed: int, n: int, name: str, bound: str
) -> None:
    table = make_table(n, seed)
    before = leaves_module.LEAF
    try:
        leaves_module.LEAF = size
        asked = {"epsilon": 4.0, **STANDARDS[name]}
        compare("x ~ z + group", table, bound=bound, least=1, draws=100, **asked)
    finally:
        leaves_module.LEAF = before


def lonely_table() -> pd.DataFrame:
    """Two records that decide all of a coefficient, in different leaves."""
    table = TABLE.copy()
    table.loc[[5, 200], "group"] = ["d", "e"]
    return table


def test_records_that_decide_their_own_fit_are_fitted_without() -> None:
    """Their neighbours have no closed form in digits: the other leaves are asked for a fit without them."""
    fit, _, _ = compare(
        table=lonely_table(), prior=hr.Prior(slope=(0.0, 1000.0)), weights=weights.ScalarWeights(0.5),
        bound="renyi", copies=2, workers=Elsewhere(),
    )  # fmt: skip
    assert {row[:2] for row in fit.priced.merged.left[0]} == {(0, 5), (3, 8)}


@pytest.mark.slow
def test_records_that_decide_their_own_fit_are_fitted_without_under_either_neighbour() -> None:
    """What is withheld is a little more than what is sensitive: each takes fits of its own."""
    fit, _, _ = compare(
        table=lonely_table(), prior=hr.Prior(slope=(0.0, 1000.0)), workers=Elsewhere(), bound="exact",
        standard=hr.RangeAveraged(hr.Radius(1e-4, 1e4)), weights=weights.ScalarWeights(0.5),
    )  # fmt: skip
    assert len({row[:2] for row in fit.priced.merged.left[0]}) == 2
    assert len(fit.priced.merged.left[0]) == 4


@pytest.mark.slow
def test_a_view_of_some_rows_is_what_they_are_in_memory() -> None:
    fit, held, done = compare(
        table=lonely_table(), prior=hr.Prior(slope=(0.0, 1000.0)), standard=hr.RangeAveraged(RADIUS),
        bound="exact",
    )  # fmt: skip
    rows = [299, 5, 64, 200, 17]
    start, outcome = view(fit, held, Here(), rows)
    ordered = sorted(rows)
    pd.testing.assert_frame_equal(start.table.native, lonely_table().loc[ordered].reset_index(drop=True))
    for end in ("low", "high"):
        risk = getattr(done.start.risk, end)[ordered]
        np.testing.assert_allclose(getattr(start.risk, end), risk, rtol=1e-13)
    prices = outcome.bound.by_record(done.outcome.pricing)[ordered]
    np.testing.assert_allclose(outcome.bound.by_record(outcome.pricing), prices, rtol=1e-9)
    np.testing.assert_allclose(
        RENYI.by_record(outcome.pricing.withheld),
        RENYI.by_record(done.outcome.pricing.withheld)[ordered],
        rtol=1e-6,
    )
    assert outcome.epsilon == done.epsilon
    np.testing.assert_array_equal(outcome.weighted.alpha, done.outcome.weighted.alpha[ordered])


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"family": hr.Family("student", scale=1.0)}, "student family is sampled"),
        ({"formula": {"x": hr.Column("x ~ z", codes=(-8,))}}, "gaps and codes of 'x' .* kinds_by"),
        ({"weights": lambda risk: np.ones_like(risk)}, "function of the risks of all"),
        ({"weights": weights.IdentificationWeights(0.1)}, "compare each value"),
        ({"debias": True, "epsilon": 3.0}, "corrections"),
        ({"unit": "group", "bound": "oscillation", "weights": weights.ScalarWeights(1)}, "unit"),
        ({"standard": hr.RangeTruncated(hr.Bounds(np.zeros(300), np.ones(300)))}, "two columns"),
        ({"standard": hr.Strict(limits=(1, 10)), "epsilon": 1.0}, "mechanism of its own"),
    ],
)
def test_what_needs_all_records_is_refused_before_any_is_read(asked: dict[str, Any], message: str) -> None:
    settings = hr.Synthesizer(asked.pop("formula", "x ~ z"), **asked).settings
    with pytest.raises(SettingError, match=message):
        stream_weighted(settings, object.__new__(Held), key=Key.from_seed(1), workers=Here())  # has no record


def test_errors_say_which_rows_they_are_of() -> None:
    table = TABLE.copy()
    table.loc[70, "x"] = 0.0
    with pytest.raises(DataError, match=r"In rows 65 to 128: .* 1 zero in 64 rows"):
        stream(hr.Synthesizer("x ~ z").settings, table)
    with pytest.raises(RangeError, match=r"In rows 1 to 64: Bounds: \d+ of 64 values lie outside"):
        stream(hr.Synthesizer("x ~ z", standard=hr.RangeTruncated(hr.Bounds(0.0, 3.0))).settings, TABLE)


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=40), st.data())
@hypothesis.settings(max_examples=20)
def test_ranks_are_found_exactly(values: list[float], data: Any) -> None:
    ranks = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=3))
    table = Table.of(pd.DataFrame({"x": np.ones(len(values))}))
    held = Held(table, design.build("x ~ 1", table))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaves_module, "LEAF", 7)
        ends = []
        for leaf in range(held.count):
            part = np.sort(np.array(values)[held.rows(leaf)])
            held.keep("sorted", leaf, part)
            ends.append((float(part[0]), float(part[-1])))
        found = select_ranks(held, Here(), ranks, ends)
    np.testing.assert_array_equal(found, np.sort(values)[ranks])


class Late(Here):
    """A worker that was taken for lost writes what it had to write, when others have gone on."""

    def map(self, task: Callable[[Any, int], Any], leaves: Any, which: Iterable[int]) -> Iterator[Any]:
        if isinstance(task.task, run.OnLeaf):  # type: ignore[attr-defined]
            leaves.keep("alpha", 1, 0.9 * leaves.kept("alpha", 1))
        return super().map(task, leaves, which)


def test_weights_that_changed_after_they_were_fitted_are_not_priced() -> None:
    settings = hr.Synthesizer("x ~ z", draws=100, weights=weights.CapWeights(2.0)).settings
    with pytest.raises(ClusterError, match="not those that were fitted"):
        stream(settings, TABLE, Late())
