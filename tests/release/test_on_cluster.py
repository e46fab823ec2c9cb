"""A release made by workers is that of one process; who is lost on the way, and what is sent."""

import pickle
import struct
import warnings
from dataclasses import replace
from itertools import pairwise
from uuid import uuid4

import numpy as np
import pandas as pd
import pytest
from helpers.clusters import Inline, running
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.cluster.workers import Cluster
from hedgerow.errors import ClusterError
from hedgerow.mechanism.streamed.run import Runner
from hedgerow.numerics import leaves
from hedgerow.release.ledger import Ledger
from hedgerow.release.plan import Outputs
from hedgerow.release.streamed.copies import WRITING

ROWS, LEAF = 300, 64
STANDARDS = {
    "range": {"standard": hr.RangeTruncated(hr.Radius(0.4, 1.8)), "epsilon": None},
    "renyi": {
        **{"standard": hr.ADP(), "bound": "renyi", "epsilon": None},
        **{"weights": hr.ScalarWeights(0.9), "prior": hr.Prior(slope=(0.0, 1000.0))},
    },
    "recommended chain": {
        **{"preset": "recommended", "epsilon": 40.0},
        "formula": {"x": hr.Column("x ~ z"), "pay": hr.Column("pay ~ z + log(x)", "lognormal")},
    },
    "cells": {
        **{"weights": hr.ScalarWeights(0.9), "epsilon": None, "bound": "renyi"},
        "formula": {
            "place": hr.Column("place ~ 1", hr.Family("dirichlet", levels=["north", "south", "islan"])),
            "x": hr.Column("x ~ z", only_where="place != 'south'", otherwise=-1, filler=2.0),
            "pay": hr.Column("pay ~ z + C(place)", codes=(-8,), kinds_by="1"),
        },
    },
    "strict": {"standard": hr.Strict(limits=(0.001, 1000.0)), "epsilon": 2.0},
    "strict chain": {
        "standard": hr.Strict(limits={"x": (0.001, 1000.0), "pay": (0.001, 1000.0)}),
        "epsilon": 8.0,
        "formula": {"x": hr.Column("x ~ z + place"), "pay": hr.Column("pay ~ z + log(x)", "lognormal")},
    },
}


@pytest.fixture(scope="module")
def frame():
    """Levels of a category, one of which a single record has: it decides nearly all of its own fit."""
    place = np.random.default_rng(5).choice(["north", "south"], ROWS)
    place[ROWS // 2] = "island"
    table = hr.datasets.lognormal(n=ROWS, seed=3).assign(place=pd.Categorical(place))
    return table.assign(pay=hr.datasets.lognormal(n=ROWS, seed=4)["x"] * table["x"] ** 0.3)


@pytest.fixture
def make(frame, tmp_path, monkeypatch):
    """Makes a release block by block, as CSV, whose bytes do not name it."""
    monkeypatch.setattr(leaves, "LEAF", LEAF)
    frame.to_parquet(tmp_path / "table.parquet", index=False)

    def release(name, workers=None, stream=True, **changes):
        asked = {"formula": "x ~ z + place", "draws": 100, "seed": 3, "copies": 2, "dataset": "pay"}
        asked |= {"data": tmp_path / "table.parquet", "ledger": tmp_path / "ledger.sqlite"}
        asked |= {"outputs": Outputs(format="csv", drop=() if "formula" in changes else ("pay",))} | changes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hr.HedgerowWarning)
            return hr.make_release(
                hr.Plan(**asked), tmp_path / name, anyway=True, stream=stream, workers=workers
            )

    return release


def parts(made):
    """The bytes of the copies, and of what is kept of each record."""
    copies = [file.read_bytes() for file in sorted((made.folder / "public").glob("synthetic-copy-*"))]
    assert len(copies) == 2
    records = made.folder / "confidential" / "records.parquet"
    return copies, records.read_bytes() if records.exists() else None


@pytest.mark.slow
@pytest.mark.parametrize("standard", STANDARDS)
def test_no_record_is_sent_over_connections(standard, make, frame, monkeypatch):
    """Not even the one that decides nearly all of its own fit, and is fitted without.

    Of a column that another reads, the least and the largest value of each leaf are told (docs/cluster.md).
    """
    client = Inline()
    asked = []
    answer = Runner.answer
    monkeypatch.setattr(Runner, "answer", lambda self, *told: asked.append(told) or answer(self, *told))
    made = make("shared", Cluster(client), **STANDARDS[standard])
    sent = [message for _, order, answer in client.sent for message in (order.content, answer)]
    assert len(sent) > 20
    assert bool(asked) == (standard == "renyi")
    outcomes = frame[["x", "pay"]].to_numpy().T.ravel()
    forms = [struct.pack("<d", value) for value in (*outcomes, *np.log(outcomes))]
    assert forms[7] in pickle.dumps(outcomes)  # so it would look
    extremes = set()
    if standard == "recommended chain":
        for rows in leaves.leaves_of(ROWS):
            part = frame["x"].to_numpy()[rows]
            extremes |= {rows.start + int(part.argmin()), rows.start + int(part.argmax())}
    found = [place % ROWS for place, form in enumerate(forms) if any(form in one for one in sent)]
    assert set(found) <= extremes
    assert parts(made) == parts(make("alone", **STANDARDS[standard]))


FIT, WRITE = "prices", WRITING  # stages that are reported


@pytest.fixture
def stage(tmp_path):
    pytest.importorskip("distributed", reason="a cluster needs Dask: hedgerow[cluster]")
    with running(tmp_path / "log", tmp_path / "spill") as (address, scheduler, crew):
        yield address, scheduler, crew


def claims(made):
    """All of the certificate but what names the release."""
    return replace(made.certificate, release="", copies=(), page=""), made.charged


@pytest.mark.slow
@given(
    leaf=st.integers(40, 320),
    cuts=st.sets(st.integers(1, ROWS - 1), max_size=4),
    group=st.integers(1, 120),
    standard=st.sampled_from(list(STANDARDS)),
)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_blocks_and_whoever_reads_them(
    leaf, cuts, group, standard, stage, make, frame, tmp_path, monkeypatch
):
    """In memory, by one process and by four workers, from files of any sizes: the same to the byte."""
    monkeypatch.setattr(leaves, "LEAF", leaf)
    folder, name = tmp_path / f"parts-{uuid4().hex}", uuid4().hex
    folder.mkdir()
    ends = [0, *sorted(cuts), ROWS]
    for number, (first, last) in enumerate(pairwise(ends)):
        part = frame.iloc[first:last]
        part.to_parquet(folder / f"{number}.parquet", index=False, row_group_size=group)
    held = make(f"held-{name}", stream=False, **STANDARDS[standard])
    alone = make(f"alone-{name}", data=folder, **STANDARDS[standard])
    with hr.connect(stage[0]) as cluster:
        shared = make(f"shared-{name}", cluster, data=folder, **STANDARDS[standard])
    assert parts(alone) == parts(shared)
    assert parts(alone)[0] == parts(held)[0]
    assert claims(alone) == claims(shared) == claims(held)
    if parts(alone)[1] is not None:
        found = [pd.read_parquet(made.folder / "confidential" / "records.parquet") for made in (alone, held)]
        pd.testing.assert_frame_equal(*found, check_exact=True)


@pytest.mark.slow
def test_workers_killed_in_the_fit_and_in_the_write_change_no_byte(stage, make, tmp_path):
    address, _, crew = stage
    alone = parts(make("alone", **STANDARDS["range"]))
    doomed = {FIT: crew[0], WRITE: crew[1]}

    def kill(stage, done, total):
        if done == 1 and stage in doomed:
            doomed.pop(stage).kill()

    with hr.connect(address) as cluster, hr.watch(kill):
        made = make("shared", cluster, **STANDARDS["range"])
    assert doomed == {}
    assert parts(made) == alone
    assert hr.verify_release(made.folder).problems == ()
    assert [place.name for place in tmp_path.iterdir() if place.name.startswith(".")] == []


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "events"), [(FIT, []), (WRITE, ["reserved", "void"])])
def test_a_scheduler_that_vanishes_leaves_no_release_and_no_spend(phase, events, stage, make, tmp_path):
    address, scheduler, _ = stage

    def kill(stage, done, total):
        if stage == phase:
            scheduler.kill()

    with (
        hr.connect(address) as cluster,
        hr.watch(kill),
        pytest.raises(ClusterError, match=r"scheduler at .* was lost") as raised,
    ):
        make("shared", cluster, **STANDARDS["range"])
    assert "Nothing was written or spent." in raised.value.__notes__
    assert not (tmp_path / "shared").exists()
    assert [place.name for place in tmp_path.iterdir() if place.name.startswith(".")] == []
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        assert [entry.event for entry in ledger.entries()] == events
