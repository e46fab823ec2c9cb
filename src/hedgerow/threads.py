"""How many threads linear algebra takes: one.

    with one_blas_thread():
        np.linalg.qr(rows)

Our matrices are tall and narrow, and factored thousands of times. OpenBLAS's threads wait for each other in a
loop at each of them: with two cores a factor of 5,571 × 28 takes seven times as long as on one, one of
65,536 × 100 three times. Scoring shares records out between threads of its own (`numerics.kernels_numba`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_SET = Lock()  # held by whoever set the number


@cache
def _libraries() -> Any:
    """The linear algebra libraries of the process; looking for them takes milliseconds."""
    import scipy.linalg  # noqa: F401 - SciPy brings a library of its own beside NumPy's
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within this context, or a function decorated by it, linear algebra stays on the caller's thread.

    The number is the process's: whoever asks first sets it and puts it back, and those who ask meanwhile, on
    this thread or another, leave it alone. Each putting back what it found would leave the number at one.
    """
    if not _SET.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1):
            yield
    finally:
        _SET.release()
