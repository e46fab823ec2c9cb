"""Draws × records matrices from elsewhere, read a block of draws at a time. Confidential.

A matrix may be larger than memory: whatever holds it, only blocks of a few MiB are ever in memory.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.arrays import Array, Confidential
from hedgerow.errors import DataError, SettingError

_CELLS = 1 << 20  # 8 MiB of float64


@dataclass(frozen=True, repr=False)
class DrawMatrix(Confidential):
    """A draws × records matrix, wherever it lies; confidential."""

    label: str
    draws: int
    records: int
    read: Callable[[int], Iterator[Any]]  # how many draws to read at a time → blocks of draws, in order

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Which draws, and their values as float64; values that are not finite are refused."""
        start = 0
        for block in self.read(max(1, _CELLS // max(1, self.records))):
            values = np.asarray(block, dtype=np.float64)
            bad = int((~np.isfinite(values)).sum())
            if bad:
                raise DataError(
                    f"{self.label} has {bad} values that are not finite among draws {start + 1} to "
                    f"{start + len(values)}. Every record needs a density at every draw."
                )
            yield slice(start, start + len(values)), values
            start += len(values)


def matrix_of(given: Any, label: str, variable: str | None = None) -> DrawMatrix:
    """An array, a path to a .npy or .parquet file, or an ArviZ InferenceData or DataTree."""
    if isinstance(given, str | Path):
        path = Path(given)
        if not path.is_file():
            raise DataError(f"{label}: there is no file '{path.name}'. Give a .npy or .parquet file.")
        if path.suffix == ".npy":
            return _from_array(np.load(path, mmap_mode="r", allow_pickle=False), label)
        if path.suffix == ".parquet":
            return _from_parquet(path, label)
        raise SettingError(f"{label}: '{path.name}' must end in .npy or .parquet.")
    group = _log_likelihood_group(given)
    if group is not None:
        return _from_group(group, label, variable)
    try:
        values = np.asarray(given)
    except ValueError:
        values = np.empty(0)
    return _from_array(values, label)


def side_by_side(
    density: DrawMatrix, mass: DrawMatrix | None, marks: set[int]
) -> Iterator[tuple[int, Any, Any]]:
    """Blocks of both matrices side by side, cut after each of the marked draws."""
    others = None if mass is None else mass.blocks()
    waiting: Any = np.empty((0, density.records))
    for rows, block in density.blocks():
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


def _from_array(values: Any, label: str) -> DrawMatrix:
    """An array, or a .npy file mapped into memory."""
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
    draws, records = values.shape
    return DrawMatrix(
        label, draws, records, lambda step: (values[at : at + step] for at in range(0, draws, step))
    )


def _from_parquet(path: Path, label: str) -> DrawMatrix:
    """One row per draw and one column per record; names that start with '.' are skipped.

    R's posterior package writes such names (.chain, .iteration, .draw) beside the values. Memory is set by
    the file's row groups: write them small.
    """
    import pyarrow.parquet as pq

    columns = [name for name in pq.read_schema(path).names if not name.startswith(".")]

    def read(step: int) -> Iterator[Any]:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=step, columns=columns):
                # Null becomes NaN, which is refused with the values that are not finite.
                parts = [batch.column(k).to_numpy(zero_copy_only=False) for k in range(len(columns))]
                yield np.column_stack(parts)

    return DrawMatrix(label, int(pq.read_metadata(path).num_rows), len(columns), read)


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
    chains, per_chain = int(values.sizes["chain"]), int(values.sizes["draw"])

    def read(step: int) -> Iterator[Any]:
        for chain in range(chains):
            for start in range(0, per_chain, step):
                part = values.isel(chain=chain, draw=slice(start, start + step)).values
                yield part.reshape(len(part), -1)

    return DrawMatrix(label, chains * per_chain, int(np.prod(values.shape[2:])), read)
