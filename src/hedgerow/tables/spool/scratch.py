"""A private folder for confidential leaves: 0700, files 0600, gone with the work they were written for.

    >>> with Scratch(Path("."), "release") as scratch:
    ...     scratch.path.stat().st_mode & 0o777 == 0o700
    True
    >>> scratch.path.exists()
    False

A process that is killed leaves its folder behind. Whoever next asks for one of the same name in the same
place removes it: the lock that its owner held ended with the owner, and where a disk knows no locks, the
number and the start of the owner's process tell.
"""

import glob
import os
import secrets
import shutil
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Self

from hedgerow.errors import FileError, HedgerowWarning, reason_of

_OWNER = "owner"
_GRACE = 60.0  # seconds that a folder without an owner's name may be one that is just being made
_TRIES, _PAUSE = 5, 0.2  # to remove it: a shared disk keeps files for those who have them open


class Scratch:
    """A scratch folder; a context manager for the process that works in it."""

    def __init__(self, parent: Path, name: str) -> None:
        self.parent, self.name = Path(os.path.realpath(parent)), name
        self.path = self.parent / f".{name}.hedgerow-spool-{secrets.token_hex(8)}"
        self._handle: int | None = None

    def __enter__(self) -> Self:
        remove_abandoned(self.parent, self.name)
        try:
            with explaining_errors(self.path):
                self.path.mkdir(mode=0o700)
                self._handle = os.open(self.path, os.O_RDONLY)
                _lock(self._handle)
                write_whole(self.path / _OWNER, lambda file: file.write(_own_name().encode()))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        with _undisturbed():
            self._remove()
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None

    def _remove(self) -> None:
        # Under another name first: a task that a worker has not ended finds no folder to write into.
        gone = self.path.with_name(f"{self.path.name}-gone")
        with suppress(OSError):
            self.path.rename(gone)
        for _ in range(_TRIES):
            shutil.rmtree(gone, ignore_errors=True)
            shutil.rmtree(self.path, ignore_errors=True)
            if not (gone.exists() or self.path.exists()):
                break
            time.sleep(_PAUSE)
        else:
            warnings.warn(
                f"{gone.name} holds confidential records and could not be removed. Remove it by hand.",
                HedgerowWarning,
                stacklevel=3,
            )


def remove_abandoned(parent: Path, name: str) -> None:
    """Removes what processes that were killed left of this name."""
    for folder in parent.glob(f".{glob.escape(name)}.hedgerow-spool-*"):
        if _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """A file for its owner alone, under its name whole or not at all; one that is there is replaced."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            write(file)
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink()


@contextmanager
def explaining_errors(folder: Path) -> Iterator[None]:
    """Errors of the operating system in words of ours."""
    try:
        yield
    except OSError as error:
        raise FileError(
            f"{folder.name}: the scratch folder cannot be written or read ({reason_of(error)}). It takes "
            "as much room as the columns that are used, uncompressed, and up to 60 bytes more a record: free "
            "some, or choose another place (--scratch)."
        ) from None


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No signal ends this process before what is confidential is gone: people press Ctrl-C more than once."""
    here = threading.current_thread() is threading.main_thread()
    named = (getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP"))
    before = {each: signal.getsignal(each) for each in named if here and each}
    for each in before:
        signal.signal(each, signal.SIG_IGN)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _lock(handle: int) -> None:
    import fcntl

    with suppress(OSError):  # a disk that knows no locks
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_abandoned(folder: Path) -> bool:
    import fcntl

    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return _is_dead(folder, sure=False)
    else:
        return _is_dead(folder, sure=True)
    finally:
        os.close(handle)


def _is_dead(folder: Path, *, sure: bool) -> bool:
    """Whether a folder's owner is gone; `sure` if the disk knows locks and the folder has none."""
    try:
        host, number, start = (folder / _OWNER).read_text().split()
    except (OSError, ValueError):
        with suppress(OSError):
            return time.time() - folder.stat().st_mtime > _GRACE
        return False
    if host != socket.gethostname():
        return sure
    return _start_of(int(number)) != start


def _own_name() -> str:
    return f"{socket.gethostname()} {os.getpid()} {_start_of(os.getpid())}"


def _start_of(process: int) -> str:
    """When a process of this machine began, in ticks since it did itself; empty if there is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        pass
    try:  # no /proc: a process of that number has to do
        os.kill(process, 0)
    except OSError:
        return "none"
    return "running"
