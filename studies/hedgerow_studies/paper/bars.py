"""One bar per study on a terminal; silence anywhere else."""

from types import TracebackType
from typing import Any, TextIO


class Bars:
    """Progress bars, drawn by rich where it is installed and someone is watching."""

    def __init__(self, stream: TextIO) -> None:
        self._bars: dict[str, Any] = {}
        self._progress: Any = None
        if not stream.isatty():
            return
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        except ImportError:
            return
        self._progress = Progress(
            TextColumn("{task.description:12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(file=stream),
        )

    def report(self, study: str, finished: int, total: int) -> None:
        """Move a study's bar; the first report makes it."""
        if self._progress is None:
            return
        if study not in self._bars:
            self._bars[study] = self._progress.add_task(study, total=total)
        self._progress.update(self._bars[study], completed=finished)

    def __enter__(self) -> "Bars":
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
