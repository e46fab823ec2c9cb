"""Records in leaves: fixed blocks of consecutive records, over which every sum runs in a fixed order.

    >>> [(rows.start, rows.stop) for rows in leaves_of(300_000)]
    [(0, 131072), (131072, 262144), (262144, 300000)]

What is computed of a leaf depends on its records and on a few numbers about all; what is said of all is a
merge, a sum or an extreme of what leaves say, taken in their order. So results are the same whether a table
is held in memory, read leaf by leaf from a disk or spread over a cluster, to the last digit.
"""

from collections.abc import Sequence

import numpy as np

from hedgerow.arrays import Array

LEAF = 131_072  # records: as many as one block of a random stream has numbers (`randomness`)


def leaves_of(records: int) -> list[slice]:
    """The rows of each leaf."""
    return [slice(first, min(first + LEAF, records)) for first in range(0, records, LEAF)]


def sum_leaves(values: Array) -> float:
    """Σ over all records: the sums of the leaves, one after the other."""
    return add_in_order([float(values[rows].sum()) for rows in leaves_of(len(values))])


def add_in_order(sums: Sequence[float]) -> float:
    """The sum of what each leaf summed to, from the first to the last."""
    total = 0.0
    for one in sums:
        total += one
    return float(np.float64(total))
