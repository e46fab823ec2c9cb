"""The release folder: written aside, then there all at once.

    release/
      public/        synthetic-copy-1.csv …, index.html, certificate.json and .md, plan.yaml, perhaps
                     statistics.json
      confidential/  0700, files 0600: what was achieved, by record and in all

A draft is a hidden sibling of the folder, readable by its owner only, named after the release it belongs to:
`.release.hedgerow-<id>.partial`. Its files are on disk (fsync) before one rename makes it the release folder.
A process that dies leaves a draft or a release, never a part of one.

Formal guarantee of `Draft.withdraw`: where it returns True, the draft was not published and never will be.
Two renames cannot move one folder: a second process moves the draft out of the maker's reach, or finds it
gone and learns nothing. The maker need only see the folder that it made still in its place, since nobody else
publishes it. A power cut in the instant between rename and sync may bring a draft back, and whoever makes a
folder of a withdrawn draft's name by hand has it taken for one: nothing finds either.
"""

import glob
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self
from urllib.parse import unquote_to_bytes

from hedgerow.errors import FileError, reason_of

PUBLIC, CONFIDENTIAL = "public", "confidential"
CERTIFICATE, CERTIFICATE_TEXT, PLAN = "certificate.json", "certificate.md", "plan.yaml"
PAGE = "index.html"
STATISTICS = "statistics.json"  # where the plan asks for it
RECEIVE = ("receive.py", "receive.R")  # ditto
SIGNATURE = f"{CERTIFICATE}.sig"  # where there is one: hedgerow sign


def name_folder(folder: Path) -> str:
    """What a folder is called, also if it is named by a point."""
    return folder.absolute().name


def check_place(out: Path) -> None:
    """Refuses a place where a release cannot be put, before any time is spent on it."""
    if os.path.lexists(out):
        raise FileError(f"{out.name}: exists already. A release is never overwritten: choose another folder.")
    if not out.name or out.name in (".", ".."):
        raise FileError("The release needs a folder of its own name, for instance release.")
    if not out.parent.is_dir():
        raise FileError(f"{out.name}: the folder to put it into does not exist. Create it first.")
    if not os.access(out.parent, os.W_OK | os.X_OK):
        raise FileError(f"{out.name}: no permission to write where it should go. Choose another folder.")
    check_outside_releases(out)
    try:
        out.name.encode()  # the ledger notes it
        os.lstat(Draft(out, "0" * 16).path)
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        raise FileError(
            f"The name of the release folder ({len(out.name)} characters) is too long, or not UTF-8 text. "
            "Choose a short, plain name."
        ) from None


def check_outside_releases(place: Path) -> None:
    """Refuses a place inside a release, by whatever way it is reached: what lies there may be handed on."""
    parent = Path(os.path.realpath(place.parent))
    for folder in (parent, *parent.parents):
        certified = os.path.lexists(folder / CERTIFICATE)
        if (
            (certified and (folder == parent or os.path.lexists(folder / CERTIFICATE_TEXT)))
            or os.path.lexists(folder / PUBLIC / CERTIFICATE)
            or re.search(r"\.hedgerow-[0-9a-f]{16}\.partial$", folder.name)
        ):
            raise FileError(
                f"{place.name}: would lie inside a release ('{folder.name}'), which may be handed on as it "
                "is. Choose a folder outside it."
            )


def write_private(out: Path, content: bytes) -> None:
    """Writes a confidential file that does not exist yet: for its owner alone, and not into a release."""
    check_outside_releases(out)
    try:
        with os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
    except FileExistsError:
        raise FileError(f"{out.name}: exists already. Choose another name, or remove it first.") from None
    except OSError as error:
        raise FileError(f"{out.name}: cannot be written ({reason_of(error)}).") from None


def find_drafts(out: Path) -> list[Path]:
    """What earlier releases to this place left behind when they died."""
    return sorted(out.parent.glob(f".{glob.escape(out.name)}.hedgerow-*.partial"))


class Draft:
    """A release folder in the making; a context manager for the process that makes it.

    From `begin` on that process holds a lock on the folder, which ends with it however it ends.
    """

    def __init__(self, out: Path, release: str) -> None:
        # Free of links and of the working folder, so that another process finds the same place by it.
        self.out = Path(os.path.realpath(out.parent)) / out.name
        self.release = release
        self.path = self.out.with_name(f".{out.name}.hedgerow-{release}.partial")
        self._aside = self.out.with_name(f".{out.name}.hedgerow-{release}.void.partial")
        self._handle: int | None = None

    @classmethod
    def at(cls, place: str, release: str) -> Self:
        """The draft of a release whose `place` is known."""
        return cls(Path(os.fsdecode(unquote_to_bytes(place.removeprefix("file://")))), release)

    @property
    def place(self) -> str:
        """Where the release folder will be, in plain characters: a path may be any bytes."""
        return self.out.as_uri()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def begin(self) -> None:
        """Makes the empty draft, and holds it."""
        with _explaining_errors(self.out):
            self.path.mkdir(mode=0o700)
            self._handle = os.open(self.path, os.O_RDONLY)
            import fcntl  # only where releases are made: receivers may verify on systems without it

            with suppress(OSError):  # a disk that knows no locks: others then cannot tell that we are at it
                fcntl.flock(self._handle, fcntl.LOCK_EX)
            (self.path / PUBLIC).mkdir()
            (self.path / CONFIDENTIAL).mkdir(mode=0o700)

    def write(self, part: str, name: str, content: str) -> bytes:
        """Writes a text file to disk; returns its bytes."""
        raw = content.encode()
        with _explaining_errors(self.out), (self.path / part / name).open("xb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        return raw

    def seal(self) -> None:
        """Brings all of it to disk, ready to be published."""
        with _explaining_errors(self.out):
            for file in (self.path / CONFIDENTIAL).iterdir():
                file.chmod(0o600)
            for folder in (self.path / PUBLIC, self.path / CONFIDENTIAL, self.path):
                _sync(folder)

    def publish(self) -> None:
        """Makes the draft the release folder, by one rename."""
        with _explaining_errors(self.out):
            if os.path.lexists(self.out):
                raise FileError(
                    f"{self.out.name}: appeared while the release was made. Choose another folder."
                )
            # Rename would replace an empty folder that appears now, and refuses anything else.
            self.path.rename(self.out)
            _sync(self.out.parent)
            # Its mode follows the umask, as that of public/ did; only now: no draft is open to others.
            self.out.chmod((self.out / PUBLIC).stat().st_mode & 0o777)

    def is_under_way(self) -> bool:
        """Whether another process that still runs, or is stopped, is making this release."""
        return any(_is_locked(place) for place in (self.path, self.out))

    def is_visible(self) -> bool:
        """Whether the release folder is this release, however it came there."""
        certificate = self.out / PUBLIC / CERTIFICATE
        try:
            return certificate.is_file() and json.loads(certificate.read_bytes())["release"] == self.release
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return False

    def withdraw(self) -> bool:
        """Takes the draft back for good; False where that cannot be, perhaps because it was published."""
        with suppress(OSError):
            if self._handle is not None:
                return os.path.samestat(os.fstat(self._handle), self.path.stat())
            self.path.rename(self._aside)
            _sync(self.out.parent)
        return self._aside.is_dir()  # now, or by somebody who died before the ledger was told

    def remove(self) -> None:
        """Deletes a draft that was withdrawn."""
        for place in (self.path, self._aside):
            try:
                if place.exists():
                    shutil.rmtree(place)
            except OSError as error:
                raise FileError(
                    f"{place.name}: cannot be removed ({reason_of(error)}). It holds copies and confidential "
                    "files that nobody may see: mend that, and settle its entry as void."
                ) from None


def _is_locked(folder: Path) -> bool:
    import fcntl

    try:
        # A pipe in its place would be waited for, and the ledger is locked meanwhile.
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _explaining_errors(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileError(
            f"{out.name}: cannot be written ({reason_of(error)}). Free some room, or choose a folder that "
            "can be written to."
        ) from None
