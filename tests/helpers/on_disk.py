"""Leaves in a folder of NumPy files, and tasks over them that a worker can import."""

import os
import signal
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hedgerow.errors import DataError, HedgerowWarning
from hedgerow.numerics.triangular import leaf_factor
from hedgerow.tables.leaves import Leaves

SECRET = 123456.789


@dataclass(frozen=True, eq=False, repr=False)
class OnDisk(Leaves):
    folder: Path
    records: int

    def table(self, leaf):
        raise NotImplementedError

    def design(self, leaf):
        raise NotImplementedError

    def keep(self, name, leaf, values):
        part = self.folder / f".{name}-{leaf}-{os.getpid()}.npy"
        np.save(part, values)
        part.replace(self.folder / f"{name}-{leaf}.npy")

    def kept(self, name, leaf):
        return np.load(self.folder / f"{name}-{leaf}.npy")


def make(folder, records):
    """A line with noise, leaf by leaf."""
    made = OnDisk(folder, records)
    for leaf in range(made.count):
        rows = made.rows(leaf)
        random = np.random.default_rng([7, leaf])
        z = random.normal(size=(rows.stop - rows.start, 3))
        made.keep("z", leaf, z)
        made.keep("y", leaf, z @ [1.0, 2.0, 3.0] + random.normal(size=len(z)))
    return made


def factor(leaves, leaf):
    y = leaves.kept("y", leaf)
    return leaf_factor(leaves.kept("z", leaf), y, np.ones(len(y)))


@dataclass(frozen=True)
class Extremes:
    scale: float

    def __call__(self, leaves, leaf):
        scaled = self.scale * leaves.kept("y", leaf)
        return scaled.min(), scaled.max()


@dataclass(frozen=True)
class Write:
    """Draws of each record, kept; how many a worker has done is told on the way."""

    seed: int

    def __call__(self, leaves, leaf):
        y = leaves.kept("y", leaf)
        drawn = y + np.random.default_rng([self.seed, leaf]).normal(size=len(y))
        leaves.keep("copy", leaf, drawn)
        return float(drawn.sum())


@dataclass(frozen=True)
class Dying:
    """Another task, whose process is killed by a signal at one leaf, before its work or after it.

    Once, which the mark remembers; without a mark each time.
    """

    task: object
    leaf: int
    mark: Path | None = None
    after: bool = False

    def __call__(self, leaves, leaf):
        result = self.task(leaves, leaf) if self.after else None
        if leaf == self.leaf and not (self.mark and self.mark.exists()):
            if self.mark:
                self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return result if self.after else self.task(leaves, leaf)


@dataclass(frozen=True)
class Cutting:
    """Write, and die in the middle of it: half a file is there under its passing name."""

    seed: int
    leaf: int
    mark: Path

    def __call__(self, leaves, leaf):
        if leaf == self.leaf and not self.mark.exists():
            self.mark.touch()
            with (leaves.folder / f".copy-{leaf}-{os.getpid()}.npy").open("wb") as half:
                half.write(b"\x93NUMPY half")
                half.flush()
                os.kill(os.getpid(), signal.SIGKILL)
        return Write(self.seed)(leaves, leaf)


def whole_leaf(leaves, leaf):
    return leaves.kept("y", leaf)


def failing(leaves, leaf):
    if leaf == 1:
        value = SECRET
        raise ZeroDivisionError(f"the value is {value}")
    return leaf


def refusing(leaves, leaf):
    if leaf == 2:
        raise DataError("Column 'pay' has no values.")
    return leaf


def absent(leaves, leaf):
    return leaves.kept("nothing", leaf)


def noting(leaves, leaf):
    warnings.warn("A note of a task.", HedgerowWarning, stacklevel=1)
    return leaf


def slow(leaves, leaf):
    time.sleep(0.5)
    return leaf


def place(leaves, leaf):
    """Which process this is, with how many threads, and whether Ctrl-C is for others."""
    return os.getpid(), os.environ.get("HEDGEROW_THREADS"), signal.getsignal(signal.SIGINT) is signal.SIG_IGN
