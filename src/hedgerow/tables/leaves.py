"""A table leaf by leaf (`numerics.leaves`): what a procedure that never holds all of it works on.

A procedure over leaves is made of tasks: functions of this object, the number of a leaf and a few small
things about all records. They return what is small (a factor, a sum, an extreme) and keep what has one number
for each record with the leaf, under a name. Tasks are repeated when a worker is lost: doing one twice leaves
what doing it once does.

Formal guarantee: confidential values of a leaf are where its tasks run and where `keep` puts them, and
nowhere else.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

import numpy as np

from hedgerow.arrays import Array, Confidential
from hedgerow.errors import ClusterError, DataError, HedgerowError, RangeError
from hedgerow.numerics import leaves
from hedgerow.progress import report
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table
from hedgerow.threads import Workers, one_blas_thread

Made = TypeVar("Made")


class Leaves(ABC, Confidential):
    """The records of one table, leaf by leaf. Small and picklable unless it holds the table itself."""

    records: int

    @property
    def count(self) -> int:
        """Number of leaves."""
        return -(-self.records // leaves.LEAF)

    def rows(self, leaf: int) -> slice:
        """Which records of the table these are."""
        return slice(leaf * leaves.LEAF, min((leaf + 1) * leaves.LEAF, self.records))

    @abstractmethod
    def table(self, leaf: int) -> Table:
        """The columns that are used or released."""

    @abstractmethod
    def design(self, leaf: int) -> Design:
        """Outcome and predictors, encoded as the whole table's; `means` and `spread` are those of all."""

    @abstractmethod
    def keep(self, name: str, leaf: int, values: Array) -> None:
        """Keep an array with the leaf, whole or not at all; one of the same name is replaced."""

    @abstractmethod
    def kept(self, name: str, leaf: int) -> Array:
        """What was kept under a name."""


@dataclass(frozen=True, eq=False, repr=False)
class Held(Leaves):
    """A table that is in memory, with its design."""

    whole: Table
    encoded: Design
    arrays: dict[tuple[str, int], Array] = field(default_factory=dict)

    @property
    def records(self) -> int:  # type: ignore[override]  # derived, where others have a field
        return self.encoded.records

    def table(self, leaf: int) -> Table:
        return self.whole.take(self._places(leaf))

    def design(self, leaf: int) -> Design:
        part = self.encoded.take(self._places(leaf))
        for own, link in zip(part.links, self.encoded.links, strict=True):
            own.keep_moments(link.moments)
        return part

    def keep(self, name: str, leaf: int, values: Array) -> None:
        self.arrays[name, leaf] = values

    def kept(self, name: str, leaf: int) -> Array:
        return self.arrays[name, leaf]

    def __reduce__(self) -> NoReturn:
        raise ClusterError("A table in memory stays in its process. Make the release with --stream.")

    def _places(self, leaf: int) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
        rows = self.rows(leaf)
        return np.arange(rows.start, rows.stop, dtype=np.intp)


@dataclass(frozen=True)
class OnOneThread:
    """A task whose linear algebra stays on one thread: how sums are cut between threads moves last digits."""

    task: Callable[[Leaves, int], Any]

    @one_blas_thread()
    def __call__(self, leaves: Leaves, leaf: int) -> Any:
        try:
            return self.task(leaves, leaf)
        except (DataError, RangeError) as error:
            raise name_rows(leaves, leaf, error) from None


def go_over(
    workers: Workers,
    task: Callable[[Leaves, int], Made],
    leaves: Leaves,
    which: Iterable[int] | None = None,
    *,
    stage: str,
) -> Iterator[Made]:
    """What a task makes of each leaf, in their order; whoever watches is told how far it is."""
    numbers = list(range(leaves.count) if which is None else which)
    for done, made in enumerate(workers.map(OnOneThread(task), leaves, numbers), 1):
        report(stage, done, len(numbers))
        yield made


def name_rows(leaves: Leaves, leaf: int, error: HedgerowError) -> HedgerowError:
    """The error with the rows that its figures are of."""
    if leaves.count == 1:
        return error
    rows = leaves.rows(leaf)
    return type(error)(f"In rows {rows.start + 1:,} to {rows.stop:,}: {error}")
