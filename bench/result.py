"""What a benchmark returns, and how it is shown."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    quick: bool = False
    large: bool = False


@dataclass(frozen=True)
class Result:
    """One timed case. `work` counts what `unit` names; a rate is work per second of the best run."""

    case: str
    records: int
    draws: int
    seconds: float  # the best of `runs`: other processes can only add time
    median: float
    core_seconds: float  # processor time over all threads, the least of the runs: steadier on a busy machine
    runs: int
    work: float
    unit: str
    peak_mb: float  # resident memory of the process that ran the case, at its highest
    added_mb: float  # above what its data and libraries took before the first full run
    ratio: float | None = None  # rate over that of a plain version in the same run: NumPy, or Arrow alone

    @property
    def rate(self) -> float:
        return self.work / self.seconds

    @property
    def rate_per_core(self) -> float:
        return self.work / self.core_seconds


def table(results: Sequence[Result]) -> str:
    """A table in plain text."""
    head = (
        "case",
        "records",
        "draws",
        "best s",
        "median s",
        "core s",
        "rate",
        "per core",
        "unit",
        "x plain",
        "peak MB",
        "added MB",
    )
    rows = [
        (
            r.case,
            f"{r.records:,}",
            f"{r.draws:,}" if r.draws else "",
            f"{r.seconds:.3f}",
            f"{r.median:.3f}",
            f"{r.core_seconds:.3f}",
            f"{r.rate:.3g}",
            f"{r.rate_per_core:.3g}",
            r.unit,
            "" if r.ratio is None else f"{r.ratio:.{1 if r.ratio >= 1 else 2}f}",
            f"{r.peak_mb:.0f}",
            f"{r.added_mb:.0f}",
        )
        for r in results
    ]
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    left = {0, head.index("unit")}
    lines = []
    for row in [head, *rows]:
        cells = (
            c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
