"""Sharing tasks out over the workers of a Dask cluster, with the results of one process.

Each call of `map` makes orders for groups of consecutive leaves. Results come in the order of the leaves,
one for each, so that whoever adds them up adds the same numbers in the same order as one process. When a
worker is lost, Dask gives its groups to others: tasks may be done twice (`tables.leaves`), results do not
change. When the scheduler is lost, or no worker is left, there is a `ClusterError` and nothing else.
"""

import pickle
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import uuid4

from hedgerow.cluster.orders import Order, Parcel, version
from hedgerow.cluster.probe import ProcessFacts, Visit, describe_process
from hedgerow.errors import ClusterError, FileError, HedgerowError, HedgerowWarning, list_some, reason_of

if TYPE_CHECKING:
    from distributed import Client, Future

Made = TypeVar("Made")

GROUPS = 4  # for each worker: few messages, and little to do again when one is lost
LOOK = 5.0  # seconds between two looks at whether anybody is there
PATIENCE = 300.0  # seconds without a single worker, such as until a queue starts others


class Cluster:
    """The workers of a Dask cluster: what `hr.connect` gives, and `workers=` takes.

    Use it in a `with` statement, or `close` it: what was opened for it is closed, a client of yours is not.
    """

    def __init__(self, client: "Client") -> None:
        self._client = client
        self.opened = ExitStack()  # for this alone
        self._check_processes()

    def __repr__(self) -> str:
        return f"Cluster({self.address})"

    @property
    def client(self) -> "Client":
        """Dask's client."""
        return self._client

    @property
    def address(self) -> str:
        """The address of its scheduler."""
        scheduler = self._client.scheduler
        return "closed" if scheduler is None else str(scheduler.address)

    def map(self, task: Callable[[Any, int], Made], leaves: Any, which: Iterable[int]) -> Iterator[Made]:
        """`task(leaves, number)` for each number, results in the order of the numbers."""
        numbers = list(which)
        if not numbers:
            return
        order = Order.of(task, leaves)
        length = -(-len(numbers) // (GROUPS * max(1, self._count())))
        name = f"hedgerow-{getattr(task, '__name__', type(task).__name__)}-{uuid4().hex}"
        groups = [numbers[first : first + length] for first in range(0, len(numbers), length)]
        waiting = [
            self._client.submit(order, group, key=f"{name}-{group[0]}", pure=False) for group in groups
        ]
        try:
            while waiting:
                parcel = self._parcel(waiting[0])
                waiting.pop(0).release()
                for note in parcel.notes:
                    warnings.warn(note, HedgerowWarning, stacklevel=2)
                for result in parcel.results:
                    yield pickle.loads(result)  # noqa: S301 - made by our own code on a worker
                if parcel.failure is not None:
                    raise _raised(*parcel.failure)
        finally:
            self._forget(waiting)

    def spread(self, function: Callable[..., Made], items: Iterable[tuple[Any, ...]]) -> Iterator[Made]:
        """`function(*item)` for each, results as they are ready: for studies, which hold no secrets.

        What a function raises is raised here.
        """
        name = f"hedgerow-{getattr(function, '__name__', 'study')}-{uuid4().hex}"
        self._count()
        waiting = [
            self._client.submit(function, *item, key=f"{name}-{place}", pure=False)
            for place, item in enumerate(items)
        ]
        try:
            while waiting:
                future = self._patiently(lambda: self._first(waiting))
                waiting.remove(future)
                yield self._patiently(future.result)
        finally:
            self._forget(waiting)

    def check_folder(self, folder: Path) -> None:
        """Whether every worker can read and write a folder, which must be one that all share."""
        name, word = f".probe-{uuid4().hex}", uuid4().hex
        probe = folder / name
        try:
            probe.write_text(word, encoding="ascii")
            found = self._ask(Visit(str(folder.absolute()), name, word))
        except OSError as error:
            raise FileError(f"{folder.name}: cannot be written ({reason_of(error)}).") from None
        finally:
            with suppress(OSError):
                probe.unlink(missing_ok=True)
        reasons = [said for said in found.values() if said is not None]
        if reasons:
            raise ClusterError(
                f"{len(reasons)} of {len(found)} workers cannot read and write {folder} "
                f"({list_some(sorted(set(reasons)))}). Put it on a file system that all machines share, and "
                "run the workers as the user who owns it."
            )

    def close(self) -> None:
        """Close what was opened for this."""
        with suppress(Exception):  # such as of a scheduler that is gone already
            self.opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_processes(self) -> None:
        """One version everywhere, or an error; digits that differ are told."""
        own = describe_process()
        found = self._ask(describe_process)
        strangers = sum(not isinstance(said, ProcessFacts) for said in found.values())
        if strangers:
            raise ClusterError(
                f"{strangers} of {len(found)} workers cannot load this version of hedgerow. Install hedgerow "
                f"{own.version} on all of them."
            )
        versions = {said.version for said in found.values()} | {self._scheduler_version()}
        if versions != {own.version}:
            raise ClusterError(
                f"The cluster has hedgerow {list_some(sorted(versions - {own.version}))}, this process "
                f"{own.version}. Install the same version everywhere."
            )
        others = sum(said.digits != own.digits for said in found.values())
        if others:
            warnings.warn(
                f"{others} of {len(found)} workers round differently from this process, so that last digits "
                "depend on who computes what. Use processors and libraries of one kind, or set "
                "OPENBLAS_CORETYPE and NPY_DISABLE_CPU_FEATURES alike everywhere (docs/cluster.md).",
                HedgerowWarning,
                stacklevel=4,
            )

    def _scheduler_version(self) -> str:
        try:
            return str(self._client.run_on_scheduler(version))
        except Exception:  # its own, or of the way to it
            self._count()
        raise ClusterError("The scheduler cannot load hedgerow. Install it there as on the workers.")

    def _ask(self, what: Callable[[], Any]) -> dict[str, Any]:
        """What each worker answers; an exception in its place where it cannot."""
        if not self._count():
            self._wait_for_workers()
        try:
            return self._client.run(what, on_error="return")
        except Exception:  # of Dask itself, as below: workers' own come back as answers
            raise self._lost() from None

    def _count(self) -> int:
        """Workers there are now."""
        if self._client.status != "running":
            raise self._lost()
        try:
            return len(self._client.nthreads())
        except Exception:  # whatever Dask says where nobody answers
            raise self._lost() from None

    def _wait_for_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except Exception:  # TimeoutError, or whatever Dask says where nobody answers
            raise self._nobody() from None

    def _parcel(self, future: "Future[Parcel]") -> Parcel:
        try:
            return self._patiently(lambda: future.result(timeout=LOOK))
        except HedgerowError:
            raise
        except Exception as error:  # of Dask itself: its text may quote what it handled
            raise ClusterError(
                f"The cluster could not run a task ({type(error).__name__}). Its workers' logs say more."
            ) from None

    def _patiently(self, look: Callable[[], Made]) -> Made:
        """What `look` sees at last; an error where the scheduler is gone or nobody is there to do it."""
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        seen = time.monotonic()
        while True:
            try:
                return look()
            except TimeoutError:
                if self._count():
                    seen = time.monotonic()
                elif time.monotonic() - seen > PATIENCE:
                    raise self._nobody() from None
            except KilledWorker:
                raise ClusterError(
                    "Several workers were lost one after the other at the same task, most likely for want of "
                    "memory. Start workers with more memory, or fewer on each machine."
                ) from None
            except (CancelledError, CommClosedError):
                raise self._lost() from None

    def _first(self, waiting: list["Future[Made]"]) -> "Future[Made]":
        """One that is ready."""
        from distributed import wait

        with self._client.as_current():
            ready = wait(waiting, timeout=LOOK, return_when="FIRST_COMPLETED").done
        return next(each for each in waiting if each in ready)

    def _forget(self, waiting: list["Future[Made]"]) -> None:
        if waiting:
            with suppress(Exception):  # a scheduler that is gone has nothing left to cancel
                self._client.cancel(waiting, force=True)

    def _lost(self) -> ClusterError:
        return ClusterError(
            f"The connection to the cluster's scheduler at {self.address} was lost. Start the cluster again, "
            "or run without one."
        )

    def _nobody(self) -> ClusterError:
        return ClusterError(
            f"The cluster at {self.address} had no worker for {PATIENCE:.0f} seconds. Start workers, then "
            "run this again."
        )


def _raised(kind: type[HedgerowError], message: str) -> HedgerowError:
    try:
        return kind(message)
    except TypeError:  # one that takes more than a message
        return HedgerowError(message)
