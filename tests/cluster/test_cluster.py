"""A cluster gives what one process gives; nothing confidential is shown, and no rows are sent."""

import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import on_disk
from helpers.clusters import Inline

import hedgerow as hr
from hedgerow.cluster import connect as connecting
from hedgerow.cluster import orders, probe, workers
from hedgerow.errors import ClusterError, DataError, FileError, HedgerowWarning, SettingError
from hedgerow.numerics import leaves
from hedgerow.tables.leaves import Held
from hedgerow.threads import Here

distributed = pytest.importorskip("distributed", reason="a cluster needs Dask: hedgerow[cluster]")


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setattr(leaves, "LEAF", 64)
    return on_disk.make(tmp_path, 64 * 9 + 5)


def bits(results):
    return [np.asarray(result).tobytes() for result in results]


def both(task, table, cluster):
    numbers = range(table.count)
    return list(Here().map(task, table, numbers)), list(cluster.map(task, table, numbers))


def test_results_are_those_of_one_process_in_the_order_of_leaves(table):
    client = Inline()
    cluster = workers.Cluster(client)
    for task in (on_disk.factor, on_disk.Extremes(-2.0), on_disk.Write(3)):
        here, there = both(task, table, cluster)
        assert bits(here) == bits(there)
    assert list(cluster.map(on_disk.Extremes(1.0), table, [7, 3, 5])) == [
        on_disk.Extremes(1.0)(table, number) for number in (7, 3, 5)
    ]
    assert list(cluster.map(on_disk.factor, table, [])) == []
    keys = [key for key, _, _ in client.sent]
    assert len(set(keys)) == len(keys) > 8  # none is ever taken for another's result
    assert leaves.LEAF == 64


def test_a_table_in_memory_is_not_sent():
    held = Held(None, None)
    with pytest.raises(ClusterError, match=r"stays in its process\. Make the release with --stream\."):
        list(workers.Cluster(Inline()).map(on_disk.factor, held, [0]))


def test_what_has_a_number_for_each_record_does_not_leave_a_worker(tmp_path):
    table = on_disk.OnDisk(tmp_path, leaves.LEAF)
    table.keep("y", 0, np.random.default_rng(1).normal(size=leaves.LEAF))
    with pytest.raises(ClusterError, match=r"at most 1,048,576 may leave a worker"):
        list(workers.Cluster(Inline()).map(on_disk.whole_leaf, table, [0]))


def test_failures_come_back_in_order_and_without_values(table):
    client = Inline()
    cluster = workers.Cluster(client)
    seen = []
    with pytest.raises(ClusterError, match=r"failed on a worker \(ZeroDivisionError\)") as caught:
        seen.extend(cluster.map(on_disk.failing, table, range(table.count)))
    assert seen == [0]
    assert client.cancelled > 0
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert not any(str(on_disk.SECRET).encode() in answer for _, _, answer in client.sent)
    with pytest.raises(DataError, match=r"^Column 'pay' has no values\.$"):
        list(cluster.map(on_disk.refusing, table, range(table.count)))
    with pytest.raises(FileError, match="cannot read or write the folder of this run"):
        list(cluster.map(on_disk.absent, table, [0]))


def test_notes_of_tasks_are_heard_here(table):
    with pytest.warns(HedgerowWarning, match="A note of a task"):
        assert list(workers.Cluster(Inline()).map(on_disk.noting, table, [0, 1])) == [0, 1]


def test_parts_of_ones_own_must_be_importable(table, monkeypatch):
    cluster = workers.Cluster(Inline())
    with pytest.raises(ClusterError, match=r"cannot be sent to workers\. Put a standard, weights or a range"):
        list(cluster.map(lambda leaves, leaf: leaf, table, [0]))
    order = orders.Order.of(on_disk.slow, table)
    monkeypatch.delattr(on_disk, "slow")  # as on a worker without it
    assert order([0]).failure == (ClusterError, f"A worker cannot load a part of the task. {orders._OWN}")


def test_what_dask_handles_shows_nothing(table):
    order = orders.Order.of(on_disk.Write(987654321), table)
    assert repr(order) == "Order(confidential)"
    assert repr(order([0])) == "Parcel(confidential)"


def test_workers_are_asked_for_version_and_digits(table):
    own = probe.describe_process()
    with pytest.raises(ClusterError, match=r"The cluster has hedgerow 0\.0\.9, this process"):
        workers.Cluster(Inline({"a": own, "b": probe.ProcessFacts("0.0.9", own.digits)}))
    with pytest.raises(ClusterError, match="1 of 2 workers cannot load this version"):
        workers.Cluster(Inline({"a": own, "b": ModuleNotFoundError("hedgerow.cluster")}))
    with pytest.raises(ClusterError, match=r"The cluster has hedgerow 0\.0\.9"):
        workers.Cluster(Inline(scheduled="0.0.9"))
    with pytest.raises(ClusterError, match="The scheduler cannot load hedgerow"):
        workers.Cluster(Inline(scheduled=ModuleNotFoundError("hedgerow")))
    with pytest.warns(HedgerowWarning, match="1 of 2 workers round differently"):
        workers.Cluster(Inline({"a": own, "b": probe.ProcessFacts(own.version, "0")}))
    late = orders.Order(pickle.dumps((on_disk.factor, table)), 64, "0.0.9")  # one that came later
    assert late([0]).failure[0] is ClusterError


def test_a_folder_must_be_the_same_for_all(tmp_path):
    cluster = workers.Cluster(Inline())
    cluster.check_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "probe").write_text("word")
    assert probe.Visit(str(tmp_path), "probe", "word")() is None
    assert probe.Visit(str(tmp_path), "probe", "another")() == "another folder of this name"
    assert probe.Visit(str(tmp_path / "no"), "probe", "word")() == "No such file or directory"


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, None, "scheduler", "host:8786"])
def test_connect_says_what_it_takes(wrong):
    with pytest.raises(SettingError, match=r"tls://host:8786"):
        hr.connect(wrong)


def test_a_scheduler_that_is_not_there_is_an_error_of_ours():
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "0.3s"}),
        pytest.raises(ClusterError, match=r"No scheduler answers at tcp://127\.0\.0\.1:9"),
    ):
        hr.connect("tcp://127.0.0.1:9")
    with pytest.raises(ClusterError, match=r"needs keys\. Tell Dask"):
        hr.connect("tls://127.0.0.1:9")


def test_a_client_of_dask_runs_the_same_and_stays_open(table):
    here = {"n_workers": 2, "threads_per_worker": 2, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**here) as local, distributed.Client(local, set_as_default=False) as client:
        with hr.connect(client) as cluster:
            cluster.check_folder(table.folder)
            for task in (on_disk.factor, on_disk.Write(3)):
                alone, shared = both(task, table, cluster)
                assert bits(alone) == bits(shared)
            with pytest.raises(DataError, match="has no values"):
                list(cluster.map(on_disk.refusing, table, range(table.count)))
        assert client.status == "running"


@pytest.mark.parametrize(
    ("address", "heard"),
    [
        ("tcp://10.0.0.7:8786", True),
        ("tcp://127.example.org:8786", True),  # which begins like an address of this machine
        ("tcp://localhost.example.org:8786", True),
        ("ucx://10.0.0.7:8786", True),
        ("tls://10.0.0.7:8786", False),
        ("tcp://127.0.0.1:8786", False),
        ("tcp://[::1]:8786", False),
        ("inproc://10.0.0.7/1/1", False),
    ],
)
def test_whoever_may_listen_is_warned_of(address, heard):
    client = SimpleNamespace(scheduler=SimpleNamespace(address=address))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        connecting._warn_of_listeners(client)
    assert [each.category for each in told] == [HedgerowWarning] * heard
