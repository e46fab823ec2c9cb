"""Leaves on a disk are rows of the table in memory, their designs rows of its design, to the last digit."""

import pickle
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from formulaic.transforms import TRANSFORMS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hedgerow import Column, Strict, Synthesizer
from hedgerow.numerics import leaves
from hedgerow.synthesizer import encode
from hedgerow.tables import design as designs
from hedgerow.tables import files
from hedgerow.tables.formula import parse
from hedgerow.tables.leaves import Held
from hedgerow.tables.predictors import settle_predictors
from hedgerow.tables.spool import arguments, replay, transforms
from hedgerow.tables.spool.learning import encode_leaves
from hedgerow.tables.spool.scratch import Scratch
from hedgerow.tables.spool.store import spool
from hedgerow.tables.table import Table

LEAF = 16


@pytest.fixture(autouse=True)
def small_leaves(monkeypatch):
    monkeypatch.setattr(leaves, "LEAF", LEAF)


def build(table, learnt, formula):
    return designs.build(formula, table, learnt=learnt)


def make_table(rows, seed, *, late=True):
    """Numbers, text, categories, flags, dates and missing public text; a level that only the last row has."""
    rng = np.random.default_rng(seed)
    words = rng.choice(["b", "a", "c"], rows).tolist()
    grades = pd.Categorical(rng.choice(["low", "high"], rows), categories=["mid", "low", "high"])
    table = pd.DataFrame(
        {
            "pay": rng.lognormal(size=rows),
            "hours": rng.integers(1, 60, rows),
            "age": rng.normal(40, 9, rows).astype(np.float32),
            "region": words[: rows - late] + ["z"] * late,
            "grade": grades,
            "full": rng.random(rows) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D"),
            "remark": [None if rng.random() < 0.6 else "x" for _ in range(rows)],
        }
    )
    return pa.Table.from_pandas(table)


def write(table, folder, *, cuts=(), group=1000):
    """One file, or a folder of files that are cut at some rows."""
    if not cuts:
        pq.write_table(table, folder / "pay.parquet", row_group_size=group)
        return folder / "pay.parquet"
    (folder / "parts").mkdir()
    ends = [0, *sorted(cuts), table.num_rows]
    for number, (first, last) in enumerate(pairwise(ends)):
        pq.write_table(table.slice(first, last - first), folder / f"parts/{number:03}.parquet", group)
    return folder / "parts"


def assert_same_rows(spooled, whole, formula=None):
    held = Held(whole, designs.build(formula, whole)) if formula else None
    for leaf in range(spooled.count):
        rows = spooled.rows(leaf)
        part, expected = spooled.table(leaf).native, whole.native.slice(rows.start, rows.stop - rows.start)
        assert part.schema.equals(expected.schema, check_metadata=True)
        assert part.to_pylist() == expected.to_pylist()
        if held is None:
            continue
        own, other = spooled.design(leaf), held.design(leaf)
        assert own.columns == other.columns
        for name in ("matrix", "values", "means", "spread"):
            np.testing.assert_array_equal(getattr(own, name), getattr(other, name), err_msg=name)


FORMULA = "pay ~ hours*grade + log(age + 100) + region + full + since"


def compare_leaves(folder, data):
    rows = data.draw(st.integers(30, 70))
    cuts = data.draw(st.lists(st.integers(0, rows), max_size=3))
    path = write(
        make_table(rows, data.draw(st.integers(0, 99))),
        folder,
        cuts=cuts,
        group=data.draw(st.sampled_from([1, 7, 16, 33, 1000])),
    )
    parts = sorted(path.iterdir()) if path.is_dir() else [path]
    there = [part for part in parts if pq.read_metadata(part).num_rows]
    whole = Table.of(pa.concat_tables([files.read(part).frame for part in there]))
    with Scratch(folder, "release") as scratch:
        spooled = spool(path, scratch.path)
        assert spooled.records == rows
        assert_same_rows(spooled, whole)
        encoded = encode_leaves(spooled, partial(build, formula=FORMULA), [FORMULA])
        assert_same_rows(pickle.loads(pickle.dumps(encoded)), whole, FORMULA)


ANYWHERE = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@settings(max_examples=2, **ANYWHERE)
@given(data=st.data())
def test_leaves_are_rows_of_the_table(tmp_path_factory, data):
    compare_leaves(tmp_path_factory.mktemp("spool"), data)


@pytest.mark.slow
@settings(max_examples=40, **ANYWHERE)
@given(data=st.data())
def test_leaves_of_any_blocks_are_rows_of_the_table(tmp_path_factory, data):
    compare_leaves(tmp_path_factory.mktemp("spool"), data)


def encode_by(table, learnt, asked):
    return encode(table, [asked], learnt)


CHAIN = {
    "pay": Column("pay ~ hours + region", family="lognormal"),
    "age": Column("age ~ log(pay) + bs(hours, df=4)", family="normal"),
}


@pytest.mark.slow
@pytest.mark.parametrize("limits", [None, {"pay": (0.1, 20.0), "age": (15.0, 90.0)}])
def test_leaves_have_the_designs_of_several_protected_columns(tmp_path, limits):
    strict = {} if limits is None else {"standard": Strict(limits=limits), "epsilon": 5.0}
    asked = Synthesizer(CHAIN, **strict).settings
    path = write(make_table(70, 4, late=False), tmp_path, group=9)
    whole = Table.of(files.read(path).frame)
    held = Held(whole, encode(whole, [asked]))
    with Scratch(tmp_path, "release") as scratch:
        formulas = [column.formula for column in asked.columns]
        spooled = encode_leaves(spool(path, scratch.path), partial(encode_by, asked=asked), formulas)
        for leaf in range(spooled.count):
            own, other = spooled.design(leaf), held.design(leaf)
            np.testing.assert_array_equal(own.values, other.values)
            for link, like in zip(own.links, other.links, strict=True):
                assert (link.outcome, link.hidden, link.columns) == (like.outcome, like.hidden, like.columns)
                for name in ("matrix", "means", "spread"):
                    np.testing.assert_array_equal(getattr(link, name), getattr(like, name), err_msg=name)
        table, design = spooled.take([69, 2, 33])
        assert table.native.to_pylist() == whole.native.take([69, 2, 33]).to_pylist()
        np.testing.assert_array_equal(design.values, held.encoded.values[[69, 2, 33]])


def spool_and_encode(path, folder, formula):
    return encode_leaves(spool(path, folder), partial(build, formula=formula), [formula])


TRANSFORMED = (
    "pay ~ bs(age, df=5) + scale(hours)*region",
    "pay ~ 0 + cc(hours, df=5)",
    "pay ~ cr(`the age`, df=4, constraints='center') + poly(hours, 3)",
    "pay ~ standardize(log(age)) + poly(center(hours), 2) + bs(since, df=4)",
    "pay ~ bs(hours, df=5, lower_bound=5, upper_bound=50, extrapolation='clip') + C(full)",
    "pay ~ scale(center(age) + hours) + bs(age, knots=[35, 45])",
)


def run_transforms(tmp_path, monkeypatch, formulas):
    # Many ranges in a small table, as in one of many leaves.
    monkeypatch.setattr(arguments, "_EVERY", 3)
    monkeypatch.setattr(arguments, "_RANGE", 12)
    for number, formula in enumerate(formulas):
        table = make_table(70, number, late=False)
        if "`" in formula:
            table = table.append_column("the age", table.column("age"))
            formula = formula.replace("'center'", "[[1, 2, 3, 4, 5]]")  # no quotes beside backticks
        place = tmp_path / str(number)
        place.mkdir()
        path = write(table, place, group=23)
        whole = Table.of(files.read(path).frame)
        with Scratch(place, "release") as scratch:
            encoded = spool_and_encode(path, scratch.path, formula)
            assert_same_rows(encoded, whole, formula)
            assert not [*scratch.path.glob("*sorted*")]


def test_a_transform_learns_of_leaves_what_it_learns_of_the_table(tmp_path, monkeypatch):
    run_transforms(tmp_path, monkeypatch, TRANSFORMED[:1])


@pytest.mark.slow
def test_all_transforms_learn_of_leaves_what_they_learn_of_the_table(tmp_path, monkeypatch):
    run_transforms(tmp_path, monkeypatch, TRANSFORMED)


@pytest.mark.parametrize("kind", ["float64", "float32", "int64"])
def test_quantiles_are_those_of_numpy(kind):
    rng = np.random.default_rng(3)
    values = np.sort((rng.normal(size=101) * 40).astype(kind))
    shares = np.linspace(0, 1, 37)
    ranks = 100 * shares
    low = np.floor(ranks).astype(int)
    between = leaves.interpolate(values[low], values[np.minimum(low + 1, 100)], ranks - low)
    np.testing.assert_array_equal(between, np.quantile(values, shares))


@pytest.mark.parametrize("name", ["center", "scale", "standardize", "poly", "cr"])
def test_transforms_of_one_leaf_are_formulaics(name, monkeypatch):
    monkeypatch.setattr(leaves, "LEAF", 1 << 17)
    values = np.random.default_rng(5).normal(size=900)
    settings = {"poly": {"degree": 3}, "cr": {"df": 4, "constraints": "center"}}.get(name, {})
    own, formulaics = transforms.by_leaves()[name](values, **settings), TRANSFORMS[name](values, **settings)
    for one, other in zip(own, formulaics, strict=True):
        np.testing.assert_array_equal(*((own[one], formulaics[other]) if name == "cr" else (one, other)))


@pytest.mark.parametrize(
    ("formula", "quick"),
    [
        ("pay ~ 1", True),
        ("pay ~ 0 + region:hours:age + region", True),
        ("pay ~ region*hours*age + log(age + 100):region + since", True),
        ("pay ~ grade*region + grade:hours", True),  # by way of pandas, for the order of the levels
        ("pay ~ C(hours) + region", False),
        ("pay ~ full + bs(age, df=4)", False),
    ],
)
def test_replay_makes_what_formulaic_makes(tmp_path, formula, quick):
    table = Table.of(files.read(write(make_table(60, 3, late=False), tmp_path)).frame)
    settled, _ = settle_predictors(table, parse(formula, table).predictors or ["hours"])
    matrix, _, spec = designs.encode_terms(parse(formula, table), settled, {})
    again = replay.encode(spec, settled.native, designs.functions())
    assert (again is not None) == quick
    if quick:
        np.testing.assert_array_equal(again, matrix)
