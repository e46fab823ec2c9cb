"""Threads: linear algebra takes one, and the rest as many as there are cores.

    with one_blas_thread():
        np.linalg.qr(rows)
    firsts, seconds = share_out(np.sort, columns)

Our matrices are tall and narrow, and factored thousands of times; OpenBLAS's threads spend most of that time
waiting for each other. With two threads, factoring 5,571 × 28 takes seven times as long as with one, and
65,536 × 100 three times. Scoring shares records out among threads of its own (`numerics.kernels`). What is
done to each column, copy or block of a large table is shared out here.
"""

import copyreg
import ctypes
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from threading import Lock
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, runtime_checkable

from hedgerow.errors import SettingError

_TRIMMED = 8  # leaves after which free memory is given back
WORTH_SHARING = 100_000  # rows below which starting threads may cost more than it saves

Item = TypeVar("Item")
Made = TypeVar("Made")
_SET = Lock()  # held by whoever set the number
_SHARING = ContextVar("sharing", default=False)  # whether this is one of several threads of `share_out`


@cache
def _libraries() -> Any:
    """The linear algebra libraries of the process; looking for them takes milliseconds."""
    import scipy.linalg  # noqa: F401 - SciPy brings a library of its own beside NumPy's
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within this context, or a function decorated by it, linear algebra stays on the caller's thread.

    The number of threads belongs to the process: the first to ask sets it and puts it back, and whoever asks
    meanwhile, on this thread or another, leaves it alone. If each put back what it found, it would stay one.
    """
    if not _SET.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1):
            yield
    finally:
        _SET.release()


def threads() -> int:
    """How many threads to use: HEDGEROW_THREADS, or the processors of this process; 1 within `share_out`."""
    if _SHARING.get():
        return 1
    asked = os.environ.get("HEDGEROW_THREADS")
    if asked:
        if not asked.isdecimal() or int(asked) == 0:
            raise SettingError(
                f"HEDGEROW_THREADS={asked!r} must be a whole number from 1 up. Unset it or use one."
            )
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _freeze(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


# Settings are sent with tasks and hold read-only mappings, which Python cannot pickle by itself.
copyreg.pickle(MappingProxyType, lambda frozen: (_freeze, (dict(frozen),)))


@runtime_checkable
class Workers(Protocol):
    """Whoever runs tasks over leaves of records (`tables.leaves`): this process, or others."""

    def map(self, task: Callable[[Any, int], Made], leaves: Any, which: Iterable[int]) -> Iterator[Made]:
        """`task(leaves, number)` for each number, results in the order of the numbers."""


class Here:
    """Workers that are this process: one leaf after the other, each of which may use all cores."""

    def map(self, task: Callable[[Any, int], Made], leaves: Any, which: Iterable[int]) -> Iterator[Made]:
        for done, number in enumerate(which, 1):
            made = task(leaves, number)
            if done % _TRIMMED == 0:
                trim_heap()
            yield made


def trim_heap() -> None:
    """Give free memory back to the system; not after every leaf, since asking for it again takes time.

    glibc keeps arrays of up to 32 MB in heaps once a large one was freed, and leaf after leaf these are cut
    into pieces: with 4,000,000 records a chain of twelve columns peaked at 1.55 GB instead of 1.09 GB.
    """
    trim = _heap_trimmer()
    if trim is not None:
        trim(0)


@cache
def _heap_trimmer() -> Callable[[int], object] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # another C library, or Windows
        return None


def share_out(make: Callable[[Item], Made], items: Iterable[Item], *, worth: bool = True) -> list[Made]:
    """What `make` makes of each item, in the order of the items, on as many threads as there are cores.

    For work that releases the interpreter's lock: NumPy on long arrays, Arrow, hashes. All threads are done
    when this returns or raises; of several errors the first in the order of the items is raised. A
    `share_out` within `make` stays on its thread.
    """
    items = list(items)
    workers = min(threads(), len(items)) if worth else 1
    if workers <= 1:
        return [make(item) for item in items]
    made: dict[int, Made] = {}
    failed: dict[int, Exception] = {}
    left = deque(enumerate(items))

    def work() -> None:
        _SHARING.set(True)
        while left:
            try:
                place, item = left.popleft()
            except IndexError:  # another took the last one
                return
            try:
                made[place] = make(item)
            except Exception as error:  # raised below: all items before it are with somebody already
                failed[place] = error
                left.clear()

    # In a context of its own each: NumPy keeps there how it treats overflow.
    pool = _pool(threads(), os.getpid())
    helpers = [pool.submit(copy_context().run, work) for _ in range(workers - 1)]
    try:
        copy_context().run(work)
    finally:
        left.clear()
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()  # raises what is not an Exception, such as KeyboardInterrupt
    if failed:
        raise failed[min(failed)]
    return [made[place] for place in range(len(items))]


@cache
def _pool(size: int, process: int) -> ThreadPoolExecutor:
    """Threads that stay, since starting one takes a millisecond; a fork, which ends them, gets its own."""
    return ThreadPoolExecutor(size)
