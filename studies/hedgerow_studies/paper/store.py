"""Finished replicates, kept as files so that a run can be stopped at any moment and resumed.

A file appears under its name only when it is complete. Its folder is named after everything its content
depends on, so that another seed or another version of the studies never meets it.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from hedgerow_studies.paper.samples import Replicate

EDITION = 3  # raise it when a replicate's content changes for the same seed


@dataclass(frozen=True)
class Store:
    """The replicates of one seed."""

    folder: Path

    @classmethod
    def under(cls, out: Path, seed: int) -> "Store":
        """The store of this seed in a results folder."""
        name = hashlib.sha256(f"edition {EDITION} seed {seed}".encode()).hexdigest()[:16]
        return cls(out / ".replicates" / name)

    def has(self, name: str) -> bool:
        """Whether the replicate is finished."""
        return self._path(name).is_file()

    def save(self, name: str, replicate: Replicate) -> None:
        """Keep a finished replicate."""
        write(self._path(name), (json.dumps(replicate) + "\n").encode())

    def load(self, name: str) -> Replicate:
        """A finished replicate; numbers come back to the last bit."""
        return cast(Replicate, json.loads(self._path(name).read_bytes()))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"


def write(path: Path, content: bytes) -> None:
    """Write a file that is either whole or absent, whenever the process ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    part.replace(path)


def sweep(out: Path) -> None:
    """Remove what killed processes left half written."""
    for part in out.rglob(".*.part"):
        part.unlink(missing_ok=True)
