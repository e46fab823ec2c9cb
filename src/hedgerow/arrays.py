"""Array types whose axes have names; the tests check them at run time."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Float

Array: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Mask: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

PerRecord: TypeAlias = Float[np.ndarray, "record"]
PerDraw: TypeAlias = Float[np.ndarray, "draw"]
PerLink: TypeAlias = Float[
    np.ndarray, "record *link"
]  # a column for each model of a chain, none for one model
Matrix: TypeAlias = Float[np.ndarray, "record column"]
Coefficients: TypeAlias = Float[np.ndarray, "draw column"]
LogLik: TypeAlias = Float[np.ndarray, "draw record"]  # f[s,i]: never weighted
LogMass: TypeAlias = Float[np.ndarray, "draw record"]  # log γ[s,i]
RecordMask: TypeAlias = Bool[np.ndarray, "record"]


def columns_of(values: PerLink) -> list[PerRecord]:
    """The column of each link; of one model the values themselves."""
    return [values] if values.ndim == 1 else list(values.T)


def join_columns(columns: Sequence[PerRecord]) -> PerLink:
    """Columns side by side: the reverse of `columns_of`."""
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


class Confidential:
    """A record of confidential values: its repr shows none. For dataclasses with repr=False."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(confidential)"
