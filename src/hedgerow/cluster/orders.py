"""What a worker gets, a task over some leaves, and what it sends back: small results, or why there are none.

Dask shows what it handles: on its pages, and in its logs when a task fails. So nothing of an order has a
telling repr, and it never fails by an exception, whose text Dask would log: what went wrong is sent back.
"""

import pickle
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import hedgerow
from hedgerow.arrays import Confidential
from hedgerow.errors import ClusterError, FileError, HedgerowError, HedgerowWarning, reason_of
from hedgerow.numerics import leaves as sizes
from hedgerow.threads import one_blas_thread, trim_heap

MOST = 2**20  # bytes of a leaf's result: less than one number for each of its records

_OWN = "Put a standard, weights or a range of your own into a module that all workers can import."
_ONE = Lock()  # a task may use all cores and a leaf's memory, however many threads the worker has


@dataclass(frozen=True, repr=False)
class Parcel(Confidential):
    """What leaves gave, up to the first that failed."""

    results: tuple[bytes, ...]
    notes: tuple[str, ...] = ()  # warnings on the way
    failure: tuple[type[HedgerowError], str] | None = None


@dataclass(frozen=True, repr=False)
class Order(Confidential):
    """A task for leaves that are named when it is called; the same object goes to every worker."""

    content: bytes  # task and leaves
    records: int  # in a leaf
    version: str = hedgerow.__version__

    @classmethod
    def of(cls, task: Callable[[Any, int], Any], leaves: Any) -> "Order":
        """By plain pickle: functions go by name, so that nothing around them is taken along."""
        try:
            return cls(pickle.dumps((task, leaves), protocol=5), sizes.LEAF)
        except (pickle.PicklingError, AttributeError, TypeError):
            raise ClusterError(f"A part of the task cannot be sent to workers. {_OWN}") from None

    def __call__(self, numbers: Sequence[int]) -> Parcel:
        results: list[bytes] = []
        with _ONE, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", HedgerowWarning)
            before, sizes.LEAF = sizes.LEAF, self.records  # tests have small ones
            failure = None
            try:
                self._check_version()
                task, leaves = self._unpack()
                with one_blas_thread():
                    for number in numbers:
                        results.append(_pack(task(leaves, number)))
                trim_heap()
            except Exception as error:  # any, as a result: Dask would log it, with what it quotes
                failure = _explain(error)
            finally:
                sizes.LEAF = before
        return Parcel(tuple(results), tuple(str(each.message) for each in caught), failure)

    def _unpack(self) -> tuple[Callable[[Any, int], Any], Any]:
        try:
            return pickle.loads(self.content)  # noqa: S301 - our own, from the client
        except (ImportError, AttributeError):
            raise ClusterError(f"A worker cannot load a part of the task. {_OWN}") from None

    def _check_version(self) -> None:
        if self.version != hedgerow.__version__:
            raise ClusterError(
                f"A worker has hedgerow {hedgerow.__version__}, this process {self.version}. Install the "
                "same version everywhere."
            )


def version() -> str:
    """That of this process: a scheduler handles orders, unread, and needs to know their kind."""
    return hedgerow.__version__


def _pack(result: Any) -> bytes:
    packed = pickle.dumps(result, protocol=5)
    if len(packed) > MOST:
        raise ClusterError(
            f"What a task says of a leaf has {len(packed):,} bytes, and at most {MOST:,} may leave a worker. "
            "Use fewer predictors, or run on one machine."
        )
    return packed


def _explain(error: Exception) -> tuple[type[HedgerowError], str]:
    """The kind and the message: ours hold no values; those of others may, and are left where they are."""
    if isinstance(error, HedgerowError):
        return type(error), str(error)
    if isinstance(error, OSError):
        return FileError, (
            f"A worker cannot read or write the folder of this run ({reason_of(error)}). All workers need it "
            "under the same path, with room, as the same user."
        )
    if isinstance(error, MemoryError):
        return ClusterError, "A worker has too little memory for a leaf. Start workers with more."
    return ClusterError, (
        f"A task failed on a worker ({type(error).__name__}). This is a fault of hedgerow. The same run "
        "without a cluster and with --debug shows where."
    )
