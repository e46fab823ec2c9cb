"""Draws × records matrices from elsewhere, read a block at a time.

A matrix may be larger than memory: whatever holds it, only blocks of a few MiB are ever in memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.arrays import Array
from hedgerow.errors import DataError, SettingError

_CELLS = 1 << 20  # 8 MiB of float64


class DrawMatrix(ABC):
    """A draws × records matrix; confidential."""

    label: str
    draws: int
    records: int

    @abstractmethod
    def blocks(self) -> Iterator[tuple[int, Array]]:
        """Index of the first draw and a block of draws, in order."""

    @property
    def _step(self) -> int:
        return max(1, _CELLS // max(1, self.records))

    def checked(self) -> Iterator[tuple[slice, Array]]:
        """The blocks as float64, after refusing values that are not finite."""
        for start, block in self.blocks():
            values = np.asarray(block, dtype=np.float64)
            bad = int((~np.isfinite(values)).sum())
            if bad:
                raise DataError(
                    f"{self.label} has {bad} values that are not finite among draws {start + 1} to "
                    f"{start + len(values)}. Every record needs a density at every draw."
                )
            yield slice(start, start + len(values)), values

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.draws} draws, {self.records} records, confidential)"


@dataclass(frozen=True, repr=False)
class ArrayMatrix(DrawMatrix):
    """An array, or a .npy file mapped into memory."""

    values: Any
    label: str

    @property
    def draws(self) -> int:  # type: ignore[override]  # a property for an attribute
        return int(self.values.shape[0])

    @property
    def records(self) -> int:  # type: ignore[override]  # likewise
        return int(self.values.shape[1])

    def blocks(self) -> Iterator[tuple[int, Array]]:
        for start in range(0, self.draws, self._step):
            yield start, self.values[start : start + self._step]


@dataclass(frozen=True, repr=False)
class ParquetMatrix(DrawMatrix):
    """A Parquet file with a row a draw and a column a record; names that start with '.' are skipped.

    R's posterior package writes such names (.chain, .iteration, .draw) beside the values. Memory is set by
    the file's row groups: write them small.
    """

    path: Path
    label: str

    @property
    def _columns(self) -> list[str]:
        import pyarrow.parquet as pq

        return [name for name in pq.read_schema(self.path).names if not name.startswith(".")]

    @property
    def draws(self) -> int:  # type: ignore[override]  # a property for an attribute
        import pyarrow.parquet as pq

        return int(pq.read_metadata(self.path).num_rows)

    @property
    def records(self) -> int:  # type: ignore[override]  # likewise
        return len(self._columns)

    def blocks(self) -> Iterator[tuple[int, Array]]:
        import pyarrow.parquet as pq

        columns, start = self._columns, 0
        with pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(batch_size=self._step, columns=columns):
                # Null becomes NaN, which is refused with the values that are not finite.
                parts = [batch.column(k).to_numpy(zero_copy_only=False) for k in range(len(columns))]
                yield start, np.column_stack(parts)
                start += batch.num_rows


@dataclass(frozen=True, repr=False)
class XarrayMatrix(DrawMatrix):
    """A variable of an ArviZ log_likelihood group: chain, draw and then the observations, flattened."""

    values: Any
    label: str

    @property
    def _chains(self) -> int:
        return int(self.values.sizes["chain"])

    @property
    def draws(self) -> int:  # type: ignore[override]  # a property for an attribute
        return self._chains * int(self.values.sizes["draw"])

    @property
    def records(self) -> int:  # type: ignore[override]  # likewise
        return int(np.prod(self.values.shape[2:]))

    def blocks(self) -> Iterator[tuple[int, Array]]:
        per_chain = int(self.values.sizes["draw"])
        for chain in range(self._chains):
            for start in range(0, per_chain, self._step):
                part = self.values.isel(chain=chain, draw=slice(start, start + self._step)).values
                yield chain * per_chain + start, part.reshape(len(part), -1)


def matrix_of(given: Any, label: str, variable: str | None = None) -> DrawMatrix:
    """An array, a path to a .npy or .parquet file, or an ArviZ InferenceData or DataTree."""
    if isinstance(given, DrawMatrix):
        return given
    if isinstance(given, str | Path):
        return _from_path(Path(given), label)
    group = _log_likelihood_group(given)
    if group is not None:
        return _from_group(group, label, variable)
    try:
        values = np.asarray(given)
    except ValueError:
        values = np.empty(0)
    return _checked_shape(values, label)


def side_by_side(
    density: DrawMatrix, mass: DrawMatrix | None, marks: set[int]
) -> Iterator[tuple[int, Any, Any]]:
    """Blocks of both matrices side by side, cut after each of the marked draws."""
    others = None if mass is None else mass.checked()
    waiting: Any = np.empty((0, density.records))
    for rows, block in density.checked():
        cuts = [rows.start, *sorted(mark for mark in marks if rows.start < mark < rows.stop), rows.stop]
        for start, stop in pairwise(cuts):
            piece = block[start - rows.start : stop - rows.start]
            if others is None:
                yield stop, piece, np.zeros_like(piece)
                continue
            while len(waiting) < len(piece):
                waiting = np.concatenate([waiting, next(others)[1]])
            yield stop, piece, waiting[: len(piece)]
            waiting = waiting[len(piece) :]


def _from_path(path: Path, label: str) -> DrawMatrix:
    if not path.is_file():
        raise DataError(f"{label}: there is no file '{path.name}'. Give a .npy or .parquet file.")
    if path.suffix == ".npy":
        return _checked_shape(np.load(path, mmap_mode="r", allow_pickle=False), label)
    if path.suffix == ".parquet":
        return ParquetMatrix(path, label)
    raise SettingError(f"{label}: '{path.name}' must end in .npy or .parquet.")


def _checked_shape(values: Any, label: str) -> DrawMatrix:
    if values.ndim != 2 or 0 in values.shape or values.dtype.kind not in "fiu":
        raise DataError(
            f"{label} must be numbers of shape (draws, records), got shape {values.shape} of type "
            f"{values.dtype}. Put chains one below the other first."
        )
    if isinstance(values, np.memmap) and not values.flags.c_contiguous:
        raise DataError(
            f"{label}: the file is stored record by record (Fortran order), and reading draws would go "
            "through all of it for each block. Save it as np.ascontiguousarray, a draw after another."
        )
    return ArrayMatrix(values, label)


def _log_likelihood_group(given: Any) -> Any:
    """The group of an InferenceData (attribute) or a DataTree (item), or a Dataset itself."""
    if hasattr(given, "data_vars") and "chain" in getattr(given, "sizes", {}):
        return given
    if hasattr(given, "children") or type(given).__name__ == "InferenceData":
        try:
            return given["log_likelihood"]
        except KeyError:
            raise DataError(
                "The InferenceData has no log_likelihood group. In PyMC call "
                "pm.compute_log_likelihood(idata); in PyStan use az.from_pystan(log_likelihood=...)."
            ) from None
    return None


def _from_group(group: Any, label: str, variable: str | None) -> DrawMatrix:
    names = list(group.data_vars)
    if variable is None and len(names) == 1:
        variable = names[0]
    if variable not in names:
        raise SettingError(
            f"{label}: the log_likelihood group holds {', '.join(map(str, names))}. Name one with variable=."
        )
    values = group[variable]
    if tuple(values.dims[:2]) != ("chain", "draw") or values.ndim < 3:
        raise DataError(
            f"{label}: '{variable}' has dimensions {tuple(values.dims)}; it needs chain, draw and records."
        )
    return XarrayMatrix(values, label)
