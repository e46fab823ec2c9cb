"""Replicates spread over processes: each on one thread, each kept as soon as it is finished."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hedgerow.errors import SettingError
from hedgerow.studies.samples import Found
from hedgerow.studies.store import Store

# One thread a process: the processes are the parallelism, and more threads than cores only get in the way.
_SINGLE = dict.fromkeys(("HEDGEROW_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

Report = Callable[[str, int, int], None]  # study, finished, of how many


@dataclass(frozen=True)
class Task:
    """A replicate to compute; the name is that of its file."""

    study: str
    name: str
    function: Callable[..., Found]
    arguments: tuple[Any, ...]
    cost: float = 1.0  # relative: the longest start first


def run(tasks: Sequence[Task], store: Store, *, jobs: int, report: Report) -> None:
    """Compute what the store does not hold yet."""
    total: dict[str, int] = {}
    done: dict[str, int] = {}
    pending = []
    for task in tasks:
        total[task.study] = total.get(task.study, 0) + 1
        finished = store.has(task.name)
        done[task.study] = done.get(task.study, 0) + finished
        if not finished:
            pending.append(task)
    for study, count in total.items():
        report(study, done[study], count)
    pending.sort(key=lambda task: -task.cost)
    for task in each([(task, store) for task in pending], _compute, jobs=jobs):
        done[task.study] += 1
        report(task.study, done[task.study], total[task.study])


def each(items: Sequence[tuple[Any, ...]], function: Callable[..., Any], *, jobs: int) -> Iterator[Any]:
    """Apply a function to argument tuples on several processes; results come as they are ready."""
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


def processors(jobs: int | None) -> int:
    """The number of processes asked for, or as many as there are cores for this process."""
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise SettingError(f"jobs must be a whole number from 1 up or None, got {jobs!r}.")
    return jobs


def _compute(task: Task, store: Store) -> Task:
    store.save(task.name, task.function(*task.arguments))
    return task


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
