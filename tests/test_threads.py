"""Linear algebra stays on one thread while hedgerow computes, and is the caller's own again afterwards."""

import os
import platform
import subprocess
import sys
import textwrap
import warnings
from threading import Barrier

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

import hedgerow as hr
from hedgerow.models.exact import Lognormal
from hedgerow.release.ledger.sketch import sketch
from hedgerow.threads import Here, share_out, threads


def blas_threads() -> set[int]:
    return {
        library["num_threads"] for library in ThreadpoolController().info() if library["user_api"] == "blas"
    }


@pytest.fixture
def two_threads():
    """What a caller on two cores has; the tests' own environment asks for one."""
    with threadpool_limits(2, user_api="blas"):
        yield


def test_the_limit_ends_where_it_began_also_with_threads():
    script = """
        from concurrent.futures import ThreadPoolExecutor
        from threading import Event
        from hedgerow.threads import _libraries, one_blas_thread

        def number():
            return {library["num_threads"] for library in _libraries().info()}

        assert number() == {2}
        with one_blas_thread():
            with one_blas_thread():
                assert number() == {1}
            assert number() == {1}
        assert number() == {2}

        # One begins before the other and ends before it.
        entered, left = Event(), Event()

        def first():
            with one_blas_thread():
                entered.wait(30)
            left.set()

        def second():
            with one_blas_thread():
                entered.set()
                left.wait(30)

        with ThreadPoolExecutor(2) as pool:
            [job.result() for job in [pool.submit(first), pool.submit(second)]]
        assert number() == {2}
    """
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=environment, check=True, timeout=60)


def test_fits_corrections_and_copies_start_no_threads_of_linear_algebra(two_threads, small, monkeypatch):
    seen = {}

    def spy_on(name):
        method = getattr(Lognormal, name)

        def spy(self, *args, **given):
            seen.setdefault(name, set()).update(blas_threads())
            return method(self, *args, **given)

        monkeypatch.setattr(Lognormal, name, spy)

    for name in ("sample", "centre", "chance", "predict"):
        spy_on(name)
    synth = hr.Synthesizer("x ~ z + group", epsilon=6.0, debias=True, draws=100, seed=1).fit(small)
    synth.sample()

    assert seen == {"sample": {1}, "centre": {1}, "chance": {1}, "predict": {1}}
    assert blas_threads() == {2}


def test_what_is_shared_out_comes_back_in_order_with_the_callers_settings_and_the_first_error(monkeypatch):
    monkeypatch.setenv("HEDGEROW_THREADS", "3")
    began = Barrier(3, timeout=30)

    def divide(item: int) -> tuple[int, float]:
        if item < 3:
            began.wait()  # all three at once, or never
        return item, float(np.float64(1) / np.float64(0))

    with np.errstate(divide="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert share_out(divide, range(7)) == [(item, np.inf) for item in range(7)]

    done = []

    def fail(item: int) -> None:
        if item in (1, 3):
            raise ValueError(item)
        done.append(item)

    for _ in range(20):
        done.clear()
        with pytest.raises(ValueError, match="1"):
            share_out(fail, range(6))
        assert 0 in done
        seen = list(done)
        assert share_out(abs, range(3)) == [0, 1, 2]
        assert done == seen  # nothing goes on behind the caller's back


@pytest.mark.slow
def test_a_large_table_has_the_same_release_on_one_thread_and_on_three(monkeypatch, tmp_path):
    random, n = np.random.default_rng(4), 140_000
    frame = pd.DataFrame({f"z{k}": random.normal(size=n) for k in range(3)})
    frame["wage"] = np.exp(5 + 0.3 * frame["z0"] + random.normal(size=n))
    frame["kind"], frame["near"] = random.integers(0, 7, n), np.round(1.003 * frame["wage"])
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    plan = hr.Plan(
        formula="wage ~ z0 + z1 + z2", epsilon=1.0, copies=2, draws=100, seed=3, data=tmp_path / "t.parquet",
        standard=hr.Strict(limits=(1, 1e5)), ledger=tmp_path / "ledger.sqlite",
    )  # fmt: skip
    sketches, digests, warned = set(), set(), set()
    for number in ("1", "3"):
        monkeypatch.setenv("HEDGEROW_THREADS", number)
        sketches.add(sketch(frame, "wage", key=b"k" * 32))
        with pytest.warns(hr.HedgerowWarning) as told:
            made = hr.make_release(plan, tmp_path / number)
        warned.add(tuple(str(each.message) for each in told))
        tables = (pq.read_table(made.folder / f"public/synthetic-copy-{copy}.parquet") for copy in (1, 2))
        digests.add(tuple(table["wage"].to_numpy().tobytes() for table in tables))
    assert len(sketches) == len(digests) == len(warned) == 1
    assert any("'near'" in message for message in warned.pop())


def test_what_is_shared_out_is_not_shared_out_again(monkeypatch):
    monkeypatch.setenv("HEDGEROW_THREADS", "3")
    assert share_out(lambda _: threads(), range(4)) == [1] * 4
    assert threads() == 3
    assert share_out(lambda _: threads(), range(1)) == [3]  # one item has all threads to itself


def test_after_some_leaves_free_memory_goes_back_to_the_system(monkeypatch):
    trimmed: list[int] = []
    monkeypatch.setattr("hedgerow.threads.trim_heap", lambda: trimmed.append(1))
    assert [*Here().map(lambda leaves, leaf: leaves[leaf], "abcdefgh" * 2, range(16))] == [*"abcdefgh" * 2]
    assert len(trimmed) == 2


_FREED = """
import numpy as np
import psutil
from hedgerow.threads import trim_heap

held = lambda: psutil.Process().memory_info().rss >> 20
np.ones(3_900_000)  # 31 MB: what is smaller comes from the heap from now on
arrays, between = [], []
for _ in range(200):
    arrays.append(np.ones(131_072))
    between.append(np.ones(10_000))  # too large for holes further down
del arrays
before = held()
trim_heap()
print(before - held())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc_trim is glibc's")
def test_what_lies_free_between_other_things_goes_back_too():
    done = subprocess.run([sys.executable, "-c", _FREED], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 100  # MB, of 200
