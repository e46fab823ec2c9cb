"""What the command shows: facts and tables on standard output, notes, progress and errors on standard error.

Names of columns, files and datasets may hold anything. Whatever is shown passes `_line` or `json_text`, where
control characters are written out, and nothing is interpreted as markup. Nothing here shows a value of the
data; figures computed from it are labelled confidential by the commands that show them.
"""

import io
import json
import math
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from hedgerow.errors import CONTROLS, show_controls
from hedgerow.numerics.rounding import format_figure
from hedgerow.progress import console_of_bars, shown, watch

CONFIDENTIAL = "Computed from the data: confidential, not for publication."
_UTILITY = f"What copies keep. {CONFIDENTIAL}"


@dataclass(frozen=True)
class Screen:
    """Where a command writes to, and how much."""

    quiet: bool = False
    as_json: bool = False
    noted: set[str] = field(default_factory=set)  # a note is shown once, however often it comes up

    def say(self, *lines: str) -> None:
        """Prints lines for people; none with --quiet or --json."""
        for line in () if self.quiet or self.as_json else lines:
            _out().print(_line(line), soft_wrap=True)

    def facts(self, rows: Collection[tuple[str, object]]) -> None:
        """Names and values, below each other."""
        width = max(len(name) for name, _ in rows) + 2
        for name, value in rows:
            self.say(f"{name + ':':{width}}{value}")

    def table(self, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Rows of figures under their names."""
        if self.quiet or self.as_json or not rows:
            return
        self.say(title)  # above it, where it is not broken to the table's width
        table = Table(header_style="")
        for name in rows[0]:
            is_text = isinstance(rows[0][name], str)
            table.add_column(_line(name), justify="left" if is_text else "right", overflow="fold")  # not cut
        for row in rows:
            table.add_row(*(_line(format_figure(value)) for value in row.values()))
        _out().print(table)

    @property
    def private(self) -> bool:
        """Whether what is confidential may be shown unasked: to a person at a terminal, not to a log."""
        return not self.quiet and not self.as_json and _out().is_terminal

    def utility(self, rows: Sequence[Mapping[str, Any]], shapes: Mapping[str, Any]) -> None:
        """What copies keep: figures and, on a terminal, a sketch."""
        self.table(_UTILITY, rows)
        out = _out()
        if not shapes or not self.private:
            return
        from hedgerow.report.sketch import BLOCKS, draw_shapes

        try:
            BLOCKS.encode(out.encoding)
            blocks = True
        except (LookupError, UnicodeError):
            blocks = False
        for line in draw_shapes(shapes, width=out.width, blocks=blocks):
            out.print(_line(line), soft_wrap=True)

    def result(self, value: Mapping[str, Any]) -> None:
        """Prints the result for machines, with --json alone."""
        if self.as_json:
            sys.stdout.write(json_text(value))

    def note(self, text: str) -> None:
        """Something to know before relying on a result."""
        if not self.quiet and text not in self.noted:
            self.noted.add(text)
            _err().print(_line(f"note: {text}", style="yellow"), soft_wrap=not sys.stderr.isatty())

    @contextmanager
    def progress(self, steps: int) -> Iterator[Callable[[str], None]]:
        """Bars on a terminal, elsewhere a line a minute: steps, fits done of those expected, time left."""
        with watch(None) if self.quiet or self.as_json else nullcontext(), shown(steps) as tell:
            yield tell


def show_error(title: str, message: str) -> None:
    """Prints an error as one readable block."""
    with suppress(OSError):  # nowhere left to say it
        console = _err()
        if console.is_terminal:
            console.print(Panel(_line(message), title=title, title_align="left", border_style="red"))
        else:
            sys.stderr.write(f"{title}: {show_controls(message)}\n")


def show_stopped(stopped: BaseException, how: str) -> None:
    """What stands after a signal ended a command: as the notes of it say, or what always holds."""
    let_python_end()
    notes = getattr(stopped, "__notes__", ["Nothing is visible that was not complete."])
    show_error("stopped", " ".join([how, *notes]))


def let_python_end() -> None:
    """From here on an interrupt stops nothing any more: it would only end this with a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def json_text(value: Any) -> str:
    """JSON that reads back the same and steers no terminal it is shown on; null where there is no number."""
    text = json.dumps(_without_nan(value), indent=1, ensure_ascii=False, default=str)
    # JSON escapes the ASCII controls alone; its own line breaks stay.
    return CONTROLS.sub(lambda each: each[0] if each[0] == "\n" else f"\\u{ord(each[0]):04x}", text) + "\n"


def _without_nan(value: Any) -> Any:
    """The same with None for what is not a number, which is no JSON."""
    if isinstance(value, Mapping):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def open_streams() -> None:
    """Makes standard output and error usable, whatever the caller handed over.

    What was closed becomes a sink: else the next file that is opened, a copy or the ledger, would take its
    number and with it whatever a library prints there. What a terminal cannot spell is shown escaped.
    """
    with suppress(OSError):  # no file can be opened at all, which the command will find out and say
        while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(spare)
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - stays open
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            with suppress(OSError):  # a file that somebody turned into a pipe meanwhile
                stream.reconfigure(errors="backslashreplace")


def _line(text: str, *, style: str = "") -> Text:
    return Text(show_controls(text), style=style)


class _Console(Console):
    """Prints what is said, and nothing of it as markup, to whoever still reads."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, highlight=False, **settings)

    def on_broken_pipe(self) -> None:
        # As in `| head -1`: what a command does is done, and what is left of its words goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2 if self.stderr else 1)


def _out() -> Console:
    # Only a terminal has a width: what goes into a file or a pipe is not cut.
    return _Console(width=None if sys.stdout.isatty() else 1000)


def _err() -> Console:
    return console_of_bars() or _Console(stderr=True)
