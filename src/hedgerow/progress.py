"""Who is told how far a long computation has come.

    with hr.watch(lambda stage, done, total: print(stage, done, total)):
        synth.fit(table)

Without `watch`, a bar is drawn on the terminal where there is one, and nothing anywhere else. What is
reported are counts of draws and blocks, fixed by the settings.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec

Callback = Callable[[str, int, int], None]

_CALLBACK: ContextVar[Callback | None] = ContextVar("hedgerow_progress")


@contextmanager
def watch(callback: Callback | None) -> Iterator[None]:
    """Within this context, call callback(stage, done, total); None keeps silent."""
    token = _CALLBACK.set(callback)
    try:
        yield
    finally:
        _CALLBACK.reset(token)


@contextmanager
def shown() -> Iterator[None]:
    """Within this context, draw bars on the terminal, unless a caller already watches or there is none."""
    if _CALLBACK.get(None) is not None or not sys.stderr.isatty() or find_spec("rich") is None:
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, TaskID

    with Progress(console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def draw(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        with watch(draw):
            yield


def report(stage: str, done: int, total: int) -> None:
    """Tell whoever watches."""
    callback = _CALLBACK.get(None)
    if callback is not None:
        callback(stage, done, total)
