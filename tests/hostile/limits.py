"""A limit on how long something may take."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class TooLongError(BaseException):
    """It hangs. Not an `Exception`, so that nothing catches it on the way."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises `TooLongError` in what works for longer, or waits for six times as long.

    Work is counted in processor time, which other processes on the machine do not add to.
    """

    def stop(*_: object) -> None:
        raise TooLongError(f"more than {seconds:g} s")

    timers = {
        signal.SIGPROF: (signal.ITIMER_PROF, seconds),
        signal.SIGALRM: (signal.ITIMER_REAL, 6 * seconds),
    }
    before = {name: signal.signal(name, stop) for name in timers}
    for timer, limit in timers.values():
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for timer, _ in timers.values():
            signal.setitimer(timer, 0)
        for name, handler in before.items():
            signal.signal(name, handler)
