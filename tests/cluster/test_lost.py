"""Processes that are killed: workers in the middle of a fit and of a write, the scheduler, this process."""

import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPException

import numpy as np
import psutil
import pytest
from helpers import on_disk
from helpers.clusters import PATHS, running

import hedgerow as hr
from hedgerow.cluster import workers
from hedgerow.errors import ClusterError
from hedgerow.numerics import leaves
from hedgerow.threads import Here

distributed = pytest.importorskip("distributed", reason="a cluster needs Dask: hedgerow[cluster]")
pytestmark = pytest.mark.slow


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """Leaves, a scheduler, four workers, and what they log."""
    monkeypatch.setattr(leaves, "LEAF", 64)
    (tmp_path / "table").mkdir()
    log = tmp_path / "log"
    with running(log, tmp_path / "spill") as (address, scheduler, crew), hr.connect(address) as cluster:
        yield on_disk.make(tmp_path / "table", 64 * 61 + 7), cluster, scheduler, crew, log


def bits(results):
    return [np.asarray(result).tobytes() for result in results]


def copies(table):
    return [table.kept("copy", number).tobytes() for number in range(table.count)]


def test_workers_killed_in_a_fit_and_in_a_write_change_no_byte(stage, tmp_path):
    table, cluster, _, crew, _ = stage
    everywhere = range(table.count)
    fit = bits(Here().map(on_disk.factor, table, everywhere))
    sums = bits(Here().map(on_disk.Write(3), table, everywhere))
    written = copies(table)
    for number in everywhere:
        (table.folder / f"copy-{number}.npy").unlink()

    before, after, half = (tmp_path / name for name in ("before", "after", "half"))
    assert bits(cluster.map(on_disk.Dying(on_disk.factor, 7, before), table, everywhere)) == fit
    assert bits(cluster.map(on_disk.Dying(on_disk.factor, 31, after, after=True), table, everywhere)) == fit
    assert bits(cluster.map(on_disk.Cutting(3, 20, half), table, everywhere)) == sums
    assert copies(table) == written
    assert [before.exists(), after.exists(), half.exists()] == [True, True, True]
    for process in crew:
        process.poll()
    assert sorted(process.returncode or 0 for process in crew) == [-signal.SIGKILL] * 3 + [0]


def test_a_scheduler_that_vanishes_is_one_clear_error(stage):
    table, cluster, scheduler, _, _ = stage
    begun = time.monotonic()
    answers = cluster.map(on_disk.slow, table, range(table.count))
    seen = [next(answers)]
    scheduler.kill()
    with pytest.raises(ClusterError, match=r"connection to the cluster's scheduler at .* was lost") as caught:
        seen.extend(answers)
    assert seen == list(range(len(seen)))
    assert len(seen) < table.count
    assert caught.value.__suppress_context__
    with pytest.raises(ClusterError, match="was lost"):
        list(cluster.map(on_disk.factor, table, [0]))
    assert time.monotonic() - begun < 20


def test_records_that_kill_every_worker_are_an_error(stage, monkeypatch):
    table, cluster, _, _, _ = stage
    monkeypatch.setattr(workers, "PATIENCE", 1.0)
    deadly = on_disk.Dying(on_disk.factor, 5)
    with pytest.raises(ClusterError, match=r"Several workers were lost|had no worker"):
        list(cluster.map(deadly, table, range(table.count)))


def test_logs_of_a_cluster_hold_no_value(stage):
    table, cluster, _, _, log = stage
    with pytest.raises(ClusterError, match="ZeroDivisionError"):
        list(cluster.map(on_disk.failing, table, range(table.count)))
    list(cluster.map(on_disk.Write(987654321), table, range(table.count)))
    logged = log.read_text()
    assert "Starting established connection" in logged  # it is their log
    assert str(on_disk.SECRET) not in logged
    assert "987654321" not in logged


def ports():
    """Where this process listens."""
    return [each.laddr.port for each in psutil.Process().net_connections() if each.status == "LISTEN"]


def asked(port):
    """A page of Dask's, or None where no pages are served."""
    page = HTTPConnection("127.0.0.1", port, timeout=2)
    with suppress(OSError, HTTPException):
        page.request("GET", "/info/main/workers.html")
        return page.getresponse().read()


def left(started):
    """Those of the processes that still run after a while; Python's tracker of resources ends with us."""

    def runs(pid):
        with suppress(psutil.Error):  # gone, or waiting for somebody to hear of its end
            return "resource_tracker" not in " ".join(psutil.Process(pid).cmdline())
        return False

    def running():
        return [pid for pid in started if runs(pid)]

    deadline = time.monotonic() + 30
    while running() and time.monotonic() < deadline:
        time.sleep(0.2)
    return running()


@pytest.fixture
def here(tmp_path, monkeypatch):
    pytest.importorskip("cryptography", reason="workers here need cryptography: hedgerow[cluster]")
    monkeypatch.setattr(leaves, "LEAF", 64)
    (tmp_path / "table").mkdir()
    return on_disk.make(tmp_path / "table", 64 * 20)


def test_processes_of_this_machine_are_alone_with_their_keys_and_gone_at_the_end(here, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with hr.connect(2) as cluster:
        started = {child.pid for child in psutil.Process().children(recursive=True)} - before
        said = list(cluster.map(on_disk.place, here, range(here.count)))
        assert {told[1:] for told in said} == {("1", True)}
        assert len({told[0] for told in said}) == 2
        assert bits(cluster.map(on_disk.factor, here, range(20))) == bits(
            Here().map(on_disk.factor, here, range(20))
        )
        assert cluster.address.startswith("tls://127.0.0.1:")
        pages = [page for page in map(asked, ports()) if page is not None]
        assert pages
        assert all(b"Not Found" in page for page in pages)  # those about tasks are not served to others
        with pytest.raises(OSError):
            distributed.Client(cluster.address.replace("tls", "tcp"), timeout=2, set_as_default=False)
    assert len(started) >= 2
    assert left(started) == []
    assert list(scratch.iterdir()) == []


def test_processes_of_this_machine_end_with_the_one_that_started_them(here, tmp_path):
    script = tmp_path / "started.py"
    script.write_text(
        "import sys, time, psutil, hedgerow as hr\n"
        "if __name__ == '__main__':\n"
        "    cluster = hr.connect(2)\n"
        "    print(*(child.pid for child in psutil.Process().children(recursive=True)), flush=True)\n"
        "    time.sleep(600)\n"
    )
    environment = os.environ | {"PYTHONPATH": PATHS}
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment
    ) as run:
        started = [int(pid) for pid in run.stdout.readline().split()]
        run.kill()
    assert len(started) >= 2
    assert left(started) == []


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names a processor of that kind")
def test_a_processor_that_rounds_differently_is_noticed():
    """The same machine, whose linear algebra is told that it is an older one."""
    script = "from hedgerow.cluster.probe import describe_process; print(describe_process().digits)"

    def digits(**environment):
        told = os.environ | {"PYTHONPATH": PATHS} | environment
        told = {name: value for name, value in told.items() if value}
        return subprocess.check_output([sys.executable, "-c", script], env=told, text=True)

    assert digits() == digits(OPENBLAS_NUM_THREADS="2", HEDGEROW_THREADS="2")
    assert digits(OPENBLAS_CORETYPE="Haswell") != digits(OPENBLAS_CORETYPE="Nehalem")
