"""What a benchmark returns, and how it is shown."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """What was asked for. `done` names the cases of `scale` that a run which goes on has already."""

    quick: bool = False
    most: int = 1_000_000  # records
    done: frozenset[tuple[str, int]] = frozenset()

    @property
    def large(self) -> bool:
        """Whether tables of 10 million records are asked for."""
        return self.most >= 10_000_000


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
    of_peak: float | None = None  # flops per processor second over dgemm's in the same run
    epsilon: float | None = None  # the price the case came to, where contenders must agree
    epsilon_sd: float | None = None  # over seeds

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
        "of dgemm",
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
            "" if r.of_peak is None else f"{r.of_peak:.0%}",
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
