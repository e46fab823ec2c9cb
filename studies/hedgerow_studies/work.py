"""What every study needs: many fits at once, each process on one thread, and advice kept quiet."""

import multiprocessing
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias

from hedgerow.cluster.connect import connect
from hedgerow.cluster.workers import Cluster
from hedgerow.errors import HedgerowWarning, SettingError

Jobs: TypeAlias = int | Cluster  # processes of this machine, or the workers of a cluster

# One thread per process: the processes are the parallelism, and more threads than cores only get in the way.
_SINGLE = dict.fromkeys(("HEDGEROW_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def each(items: Sequence[tuple[Any, ...]], function: Callable[..., Any], *, jobs: Jobs) -> Iterator[Any]:
    """Apply a function to argument tuples on several processes; results come as they are ready."""
    if isinstance(jobs, Cluster):
        yield from jobs.spread(function, items)
        return
    if jobs == 1 or len(items) <= 1:
        yield from (function(*item) for item in items)
        return
    context = multiprocessing.get_context("spawn")
    workers = min(jobs, len(items))
    with (
        _environment(_SINGLE),
        ProcessPoolExecutor(workers, mp_context=context, initializer=_follow) as pool,
    ):
        waiting = [pool.submit(function, *item) for item in items]
        try:
            for future in as_completed(waiting):
                yield future.result()
        finally:
            for future in waiting:
                future.cancel()


def silence_advice() -> AbstractContextManager[object]:
    """Advice to a data owner about leverage or weights is part of what the studies measure."""
    return warnings.catch_warnings(action="ignore", category=HedgerowWarning)


def jobs_of(text: str) -> Jobs:
    """What `--jobs` says: a number of processes, or the address of a Dask scheduler."""
    return int(text) if text.isdecimal() else connect(text)


def processors(jobs: Jobs | None) -> Jobs:
    """What was asked for, or as many processes as there are cores for this one."""
    if isinstance(jobs, Cluster):
        return jobs
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise SettingError(f"jobs must be a whole number from 1 up or None, got {jobs!r}.")
    return jobs


def _follow() -> None:
    """End with the process that started this one, even if it was killed and could not say so."""
    parent = multiprocessing.parent_process()
    if parent is not None:

        def wait() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=wait, daemon=True).start()


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for the processes started meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
