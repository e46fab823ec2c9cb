"""How far a long computation has come, and who is told.

    with hr.watch(lambda stage, done, total: print(stage, done, total)):
        synth.fit(table)

Without `watch`, bars are drawn on standard error where it is a terminal; elsewhere a line is written there
once a minute. A job counts its fits: a calibration and a correction take many, and how many is a guess that
gets better on the way. Blocks and draws within one fit are counted as well where it takes long. How many fits
a job took depends on the data: what is shown is for whoever holds them.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import Any

Callback = Callable[[str, int, int], None]

FITS = "fits"  # the stage under which fits of the whole job are reported
READING, WRITING = "blocks read", "blocks written"  # of a table that is read and written block by block

_CALLBACK: ContextVar[Callback | None] = ContextVar("hedgerow_progress")
_JOB: ContextVar["_Job"] = ContextVar("hedgerow_job")
_BARS: ContextVar[Any] = ContextVar("hedgerow_bars", default=None)  # the console that bars are drawn on
_EVERY = 60.0  # seconds between two lines where there is no terminal


@contextmanager
def watch(callback: Callback | None) -> Iterator[None]:
    """Within this context, call callback(stage, done, total); None keeps silent."""
    token = _CALLBACK.set(callback)
    try:
        yield
    finally:
        _CALLBACK.reset(token)


def report(stage: str, done: int, total: int) -> None:
    """Tells whoever watches how far a stage is."""
    callback = _CALLBACK.get(None)
    if callback is not None:
        callback(stage, done, total)


@contextmanager
def shown(steps: int | None = None) -> Iterator[Callable[[str], None]]:
    """Within this context, bars or lines, unless a caller already watches or wants silence.

    What it yields takes the name of each of so many `steps` as it begins.
    """
    watched = object()
    if _CALLBACK.get(watched) is not watched:
        yield lambda step: None
        return
    display = _Bars(steps) if sys.stderr.isatty() else _Lines()
    with display.open(), watch(display.update):
        yield display.begin_step


def console_of_bars() -> Any:
    """Where bars are drawn at present: what is printed through it stands above them. None: nowhere."""
    return _BARS.get()


class _Job:
    """Fits of a whole job, done and expected, by phase."""

    def __init__(self, expected: Mapping[str, int]) -> None:
        self.expected = dict(expected)
        self.done: Counter[str] = Counter()
        self.phase: str | None = None

    def report(self) -> None:
        expected = sum(max(0, fits - self.done[phase]) for phase, fits in self.expected.items())
        done = sum(self.done.values())
        report(FITS, done, done + expected)


@contextmanager
def job(expected: Mapping[str, int]) -> Iterator[None]:
    """A computation whose phases are expected to take so many fits each; within another job, a part of it."""
    if _JOB.get(None) is not None:
        yield
        return
    token = _JOB.set(_Job(expected))
    try:
        with shown():
            yield
    finally:
        _JOB.reset(token)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Fits within this context count towards that phase of the job, or towards a phase around it."""
    current = _JOB.get(None)
    if current is None or current.phase is not None:
        yield
        return
    current.phase = name
    try:
        yield
    finally:
        current.phase = None
        current.expected.pop(name, None)  # whatever was expected: it is over


def foresee(share: float) -> None:
    """Expect of the rest of the phase what it took so far, when this share of it is done."""
    current = _JOB.get(None)
    if current is not None and current.phase is not None:
        current.expected[current.phase] = round(current.done[current.phase] / share)


def count_fit() -> None:
    """One more fit is done."""
    current = _JOB.get(None)
    if current is not None:
        current.done[current.phase or ""] += 1
        current.report()


class _Bars:
    """A row for the step, one for the fits, one for each stage of a fit."""

    def __init__(self, steps: int | None) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.text import Text

        class TimeLeft(TimeRemainingColumn):
            def render(self, task: Any) -> Text:
                return Text() if task.id == steps_row else super().render(task)  # steps differ in length

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn())
        times = (MofNCompleteColumn(), TimeElapsedColumn(), TimeLeft())
        self._console = Console(stderr=True, markup=False, highlight=False)
        self._bars = Progress(*columns, *times, console=self._console, transient=True)
        self._rows: dict[str, Any] = {}
        steps_row = self._step = None if steps is None else self._bars.add_task("starting", total=steps)

    @contextmanager
    def open(self) -> Iterator[None]:
        token = _BARS.set(self._console)
        try:
            with self._bars:
                yield
        finally:
            _BARS.reset(token)

    def begin_step(self, step: str) -> None:
        while self._rows:  # stages of the last step are over
            self._bars.remove_task(self._rows.popitem()[1])
        if self._step is not None:
            self._bars.update(self._step, description=step, advance=1)

    def update(self, stage: str, done: int, total: int) -> None:
        if stage not in self._rows:
            self._rows[stage] = self._bars.add_task(stage, total=total)
        self._bars.update(self._rows[stage], completed=done, total=total)


class _Lines:
    """One line a minute: the step, fits done of those expected, how far the present fit is, the time left."""

    def __init__(self) -> None:
        self._begun = self._told = time.monotonic()
        self._step = ""
        self._counts: dict[str, tuple[int, int]] = {}

    def open(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def begin_step(self, step: str) -> None:
        self._step, self._counts = step, {}
        self._begun = time.monotonic()

    def update(self, stage: str, done: int, total: int) -> None:
        if stage == FITS:
            self._counts.clear()  # a new fit: the stages of the last one are over
        self._counts[stage] = done, total
        now = time.monotonic()
        if now - self._told < _EVERY:
            return
        self._told = now
        parts = [self._step] if self._step else []
        parts += [
            f"{number} of about {of} fits" if name == FITS else f"{name} {number} of {of}"
            for name, (number, of) in self._counts.items()
        ]
        whole = [self._counts[name] for name in (FITS, READING, WRITING) if name in self._counts]
        done, of = whole[0] if whole else (0, 0)
        if 0 < done < of:
            parts.append(f"about {format_duration((now - self._begun) * (of - done) / done)} left")
        with suppress(OSError):  # nobody is listening, which stops no job
            sys.stderr.write(f"hedgerow: {', '.join(parts)}\n")
            sys.stderr.flush()


def format_duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
