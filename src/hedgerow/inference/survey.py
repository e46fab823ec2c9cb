"""Surveys: weighted means, totals and shares by cell, with linearised standard errors.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"pay": [1.0, 3.0, 5.0, 7.0], "w": [2.0, 2.0, 1.0, 1.0], "region": list("nnss")})
    >>> found = estimate_totals(table, "pay", weight="w", by=["region"])
    >>> found["estimate"].tolist()
    [8.0, 12.0]
    >>> list(terms_of(found))
    ['region=n', 'region=s']

Of one table; `terms_of` is what `hr.combine` takes of each copy. The weights may be public or protected: a
copy has its own then. Of copies this is post-processing; of a confidential table the estimates are
confidential.

Cells are domains of one sample: how many records fall into one is random too. Clusters count as drawn with
replacement within their strata (`numerics.linearized`). For calibrated weights, replicates and finite
populations there are `svy` and R's survey (docs/survey.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from hedgerow.arrays import Confidential, Mask, PerRecord
from hedgerow.errors import DataError, SettingError, format_value
from hedgerow.inference.bootstrap import check_level
from hedgerow.numerics.linearized import total_variances
from hedgerow.tables.table import Table

_MOST_CELLS = 10_000
_FIGURES = ("records", "estimate", "std_error", "df", "lower", "upper")


def estimate_means(
    table: Any,
    column: str,
    *,
    weight: str | None = None,
    by: Sequence[str] = (),
    strata: str | None = None,
    clusters: str | None = None,
    level: float = 0.95,
) -> Any:
    """The weighted mean of a column in each cell, Σ w y / Σ w.

    `weight` names the survey weights (None: all alike), `by` the columns whose values make the cells,
    `strata` and `clusters` the columns of the design; `level` is the interval's. A record without a value
    counts in no cell. One row per cell: its values, records, estimate, std_error, df, lower, upper.
    """
    sample = _Sample.read(table, weight, by, strata, clusters, level)
    return sample.table.like(sample.estimate(sample.table.gappy_numbers(column), mean=True))


def estimate_totals(
    table: Any,
    column: str | None = None,
    *,
    weight: str | None = None,
    by: Sequence[str] = (),
    strata: str | None = None,
    clusters: str | None = None,
    level: float = 0.95,
) -> Any:
    """The weighted total of a column in each cell, Σ w y; without a column the weighted count, Σ w.

    Arguments and result as of `estimate_means`.
    """
    sample = _Sample.read(table, weight, by, strata, clusters, level)
    ones = np.ones(sample.table.rows)
    values = ones if column is None else sample.table.gappy_numbers(column)
    return sample.table.like(sample.estimate(values, mean=False))


def estimate_shares(
    table: Any,
    column: str,
    *,
    weight: str | None = None,
    by: Sequence[str] = (),
    strata: str | None = None,
    clusters: str | None = None,
    level: float = 0.95,
) -> Any:
    """The weighted share of each class of a column in each cell: one row per class and cell.

    Arguments and result as of `estimate_means`, with the class in the column's own name.
    """
    sample = _Sample.read(table, weight, by, strata, clusters, level)
    words, known = _words(sample.table, column)
    found: dict[str, list[Any]] = {column: []}
    for label in np.unique(words[known]).tolist():
        part = sample.estimate(np.where(known, (words == label) * 1.0, np.nan), mean=True)
        found[column].extend([label] * len(part["estimate"]))
        for name, cells in part.items():
            found.setdefault(name, []).extend(cells)
    return sample.table.like(found)


def terms_of(estimates: Any) -> dict[str, tuple[float, float]]:
    """Estimate and variance of each cell by its name, "region=north, sex=f": what `hr.combine` takes."""
    found: dict[str, tuple[float, float]] = {}
    for row in Table.of(estimates).frame.iter_rows(named=True):
        name = ", ".join(f"{key}={value}" for key, value in row.items() if key not in _FIGURES)
        found[name or "all"] = (float(row["estimate"]), float(row["std_error"]) ** 2)
    return found


@dataclass(frozen=True, repr=False)
class _Sample(Confidential):
    """A table's weights and design, and the cell of each record."""

    table: Table
    weights: PerRecord
    cells: NDArray[np.int64]
    labels: Mapping[str, Sequence[Any]]  # by column, its value in each cell
    strata: NDArray[np.int64] | None
    clusters: NDArray[np.int64] | None
    level: float

    @classmethod
    def read(
        cls,
        data: Any,
        weight: str | None,
        by: Sequence[str],
        strata: str | None,
        clusters: str | None,
        level: float,
    ) -> "_Sample":
        """Refuse weights that are not positive, cells without end, and strata of one cluster."""
        table = Table.of(data)
        if isinstance(by, str):
            raise SettingError(f"by must be a list of columns, got {format_value(by)}. Write by=[{by!r}].")
        check_level(level)
        table.require_complete([*by, *(name for name in (weight, strata, clusters) if name is not None)])
        weights = np.ones(table.rows) if weight is None else table.numbers(weight)
        if not (weights > 0).all():
            raise DataError(
                f"Survey weights '{weight}' must be positive in every row. Drop rows that count for nobody."
            )
        cells = table.labels(list(by)) if by else np.zeros(table.rows, dtype=np.int64)
        places = np.unique(cells, return_index=True)[1]
        if len(places) > _MOST_CELLS:
            raise SettingError(
                f"by: {len(places)} cells of {table.rows} rows; at most {_MOST_CELLS} are made. Name columns "
                "with fewer values."
            )
        first = table.take(places).frame
        labels = {name: first[name].to_list() for name in by}
        home, groups = (None if name is None else table.codes(name)[0] for name in (strata, clusters))
        sample = cls(table, weights, cells, labels, home, groups, float(level))
        lonely = sample.count_lonely()
        if lonely:
            what = "cluster" if groups is not None else "record"
            raise DataError(
                f"{lonely} of the strata in '{strata}' have one {what} alone, which shows no variance. Merge "
                "them with others."
            )
        return sample

    def design(self, inside: Mask | None = None) -> tuple[int, int]:
        """How many clusters, and how many strata, have records inside."""
        rows = slice(None) if inside is None else inside
        home = np.zeros(self.table.rows, dtype=np.int64) if self.strata is None else self.strata
        groups = np.arange(self.table.rows) if self.clusters is None else self.clusters
        pairs = np.unique(np.column_stack([home, groups])[rows], axis=0)
        return len(pairs), len(np.unique(pairs[:, 0]))

    def count_lonely(self) -> int:
        """How many strata have a single cluster; 0 without strata."""
        if self.strata is None:
            return 0
        groups = np.arange(self.table.rows) if self.clusters is None else self.clusters
        homes = np.unique(np.column_stack([self.strata, groups]), axis=0)[:, 0]
        return int((np.unique(homes, return_counts=True)[1] == 1).sum())

    def estimate(self, values: PerRecord, *, mean: bool) -> dict[str, list[Any]]:
        """Means or totals by cell; a cell without a value has no estimate."""
        count = int(self.cells.max()) + 1
        found: dict[str, list[Any]] = {name: list(labels) for name, labels in self.labels.items()}
        figures: dict[str, list[Any]] = {name: [] for name in _FIGURES}
        there = np.isfinite(values)
        for cell in range(count):
            inside = there & (self.cells == cell)
            if not inside.any():
                row: list[Any] = [0, *[np.nan] * 5]
            else:
                w, y = np.where(inside, self.weights, 0.0), np.where(inside, values, 0.0)
                size = float(w.sum()) if mean else 1.0
                estimate = float(w @ y) / size
                scores = w * (y - estimate) / size if mean else w * y
                error = float(np.sqrt(total_variances(scores[:, None], self.strata, self.clusters)[0]))
                groups, homes = self.design(inside)
                df = max(groups - homes, 1)
                reach = float(stdtrit(df, (1 + self.level) / 2)) * error
                row = [int(inside.sum()), estimate, error, df, estimate - reach, estimate + reach]
            for name, figure in zip(_FIGURES, row, strict=True):
                figures[name].append(figure)
        return found | figures


def _words(table: Table, name: str) -> tuple[NDArray[np.str_], Mask]:
    """A column's cells as text, and which are there; whole numbers without decimals."""
    cells, known = table.raw_cells(name)
    if cells.dtype.kind == "f":
        cells = np.array([f"{cell:.15g}" for cell in cells])
    return cells.astype(str), known
