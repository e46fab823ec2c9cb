"""Whether a worker can do the work: the same version, the same digits, the same folder.

Digits can differ between machines. Linear algebra, exponentials and logarithms have variants for each kind of
processor, whose last digits are not the same. What is asked for here is a fixed computation on fixed numbers;
where its bytes agree, so do those of a table.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from uuid import uuid4

import numpy as np

import hedgerow
from hedgerow.errors import reason_of
from hedgerow.numerics.scoring import Draws, conditional_extremes, density_extremes
from hedgerow.numerics.triangular import leaf_factor
from hedgerow.threads import one_blas_thread


@dataclass(frozen=True)
class ProcessFacts:
    """What a process says of itself."""

    version: str
    digits: str


@cache
@one_blas_thread()
def describe_process() -> ProcessFacts:
    """Version, and the digest of a computation with what tasks are made of."""
    y = np.sin(np.arange(3000.0))
    Z = np.column_stack([np.ones(3000), np.cos(np.arange(3000.0)), np.exp(y), np.log(2.0 + y)])
    beta = np.column_stack([np.sin(np.arange(24.0) + shift) for shift in range(4)])
    draws = Draws(beta, np.exp(0.1 * beta[:, 0]))
    scores = density_extremes(Z, y, draws), conditional_extremes(Z, y, y - 1.0, y + 2.0, draws)
    parts = [Z, Z @ beta.T, Z.sum(axis=0), leaf_factor(Z, y, np.ones(3000))]
    parts += [part for each in scores for part in (each.low, each.high)]
    return ProcessFacts(
        hedgerow.__version__, hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
    )


@dataclass(frozen=True)
class Visit:
    """Read a file of a folder, write one and rename it; what hinders, or None."""

    folder: str
    name: str
    word: str

    def __call__(self) -> str | None:
        place = Path(self.folder)
        mine = place / f".{self.name}-{uuid4().hex}"
        try:
            if (place / self.name).read_text(encoding="ascii") != self.word:
                return "another folder of this name"
            mine.write_text(self.word, encoding="ascii")
            mine = mine.replace(mine.with_suffix(".seen"))
        except OSError as error:
            return reason_of(error)
        finally:
            mine.unlink(missing_ok=True)
        return None
