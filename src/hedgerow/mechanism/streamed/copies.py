"""Copies leaf by leaf: each leaf's part of a copy is what the copy of the whole table has in its rows."""

from typing import Any

from hedgerow.arrays import PerLink
from hedgerow.mechanism.copies import Leaf, predict_copy, public_interval, write_copy
from hedgerow.mechanism.streamed.fit import StreamedFit
from hedgerow.tables.leaves import Leaves
from hedgerow.threads import one_blas_thread


@one_blas_thread()
def predict_leaf(fit: StreamedFit, leaves: Leaves, leaf: int, copy: int) -> PerLink:
    """The synthetic outcomes of one copy in the rows of a leaf, from public things and a released draw."""
    settings, table = fit.settings, leaves.table(leaf)
    return predict_copy(
        settings, table, leaves.design(leaf).blank(), fit.released[copy], public_interval(settings, table),
        key=fit.key.child("release").child("predict").child(copy),
        leaf=Leaf(leaf, leaves.rows(leaf), leaves.records),
    )  # fmt: skip


def write_leaf(fit: StreamedFit, leaves: Leaves, leaf: int, copy: int) -> Any:
    """The rows of a leaf as a typed table with the synthetic columns of one copy; all columns are there."""
    values = predict_leaf(fit, leaves, leaf, copy)
    return write_copy(fit.settings, leaves.table(leaf), leaves.design(leaf), values)
