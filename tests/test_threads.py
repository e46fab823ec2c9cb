"""Linear algebra stays on one thread while hedgerow computes, and is the caller's own again afterwards."""

import os
import subprocess
import sys
import textwrap

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

import hedgerow as hr
from hedgerow.models.exact import Lognormal


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
