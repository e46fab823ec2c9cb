"""Array types whose axes have names; the tests check them at run time."""

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


class Confidential:
    """A record of confidential values: its repr shows none. For dataclasses with repr=False."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(confidential)"
