"""What compiled loops share: how they are compiled, and how records are shared out between threads.

Numba's cache notices changes to the file of a kernel, but not to files it calls into: whatever is compiled
into a kernel stands in its own file, and here is nothing that is compiled.

The threads are Python's own (`threads.share_out`) over kernels that release the lock: numba's parallel back
ends either refuse concurrent callers or do not survive a fork.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from hedgerow.arrays import Array
from hedgerow.threads import share_out, threads

_TASK = 64  # the most blocks a thread takes at a time
_WORTH_THREADS = 500_000  # record-draws below which waking threads costs more than it saves

inline = njit(forceinline=True, error_model="numpy", nogil=True)
kernel = njit(cache=True, error_model="numpy", nogil=True, boundscheck=False)


def _fixed(array: Array) -> Array:
    """A read-only view: one signature per kernel, whatever the caller's arrays allow."""
    view = array.view()
    view.flags.writeable = False
    return view


def spread(
    kernel: Callable[..., None], inputs: tuple[Any, ...], outputs: tuple[Array, ...], *, block: int, work: int
) -> None:
    """Run a kernel over all records, in whole blocks shared out between threads.

    `work` is about how many record-draws of a density would take as long.
    """
    arguments = *(_fixed(x) if isinstance(x, np.ndarray) else float(x) for x in inputs), *outputs
    records = len(inputs[1])
    parts = 4 * (threads() if worth_threads(work) else 1)
    step = min(_TASK * block, max(1, -(-records // (parts * block))) * block)
    tasks = [(first, min(first + step, records)) for first in range(0, records, step)]
    kernel(0, 0, *arguments)  # compiles once, before the threads would all try
    share_out(lambda task: kernel(*task, *arguments), tasks, worth=worth_threads(work))


def worth_threads(work: int) -> bool:
    """Whether so many record-draws are worth waking other threads for."""
    return work > _WORTH_THREADS
