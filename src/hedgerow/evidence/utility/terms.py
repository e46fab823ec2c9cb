"""The terms by which a model tries to tell rows apart: what each column contributes, and products of two."""

import numpy as np

from hedgerow.arrays import Matrix, PerRecord
from hedgerow.evidence.utility.shapes import choose_scale
from hedgerow.evidence.utility.stack import Stack, Stacked

_FEWEST = 5  # rows of a class; rarer ones are one class together
_MOST = 30  # classes of a column
_SPIKE = 0.05  # share of zeros from which they have a term of their own


def build_terms(column: Stacked) -> Matrix:
    """Dummies of classes; or numbers, on a scale on which they show, and dummies of cells without an amount.

    Zeros that are many have a dummy as well. Centred, so that products of two say something of their own.
    """
    if column.numbers is None:
        terms = _mark_classes(column)
    else:
        there = column.places == 0
        values = np.zeros(len(there))
        if there.any():
            own = _straighten(column.numbers[there])
            # By a power of two, which moves no digit: sums and products of 1e308 have no end.
            values[there] = np.ldexp(own, -np.frexp(np.abs(own).max())[1])
            values[~there] = values[there].mean()
        marks = [column.places == place for place in range(1, len(column.labels))]
        zeros = there & (column.numbers == 0)
        others = column.numbers[there & ~zeros]
        if zeros.mean() >= _SPIKE and len(others) and np.ptp(others) > 0:  # a flag is its own dummy
            marks.append(zeros)
        shown = [mark for mark in marks if mark.any()]
        terms = np.column_stack([values, *(mark.astype(np.float64) for mark in shown)])
    return np.asarray(terms - terms.mean(axis=0))


def _mark_classes(column: Stacked) -> Matrix:
    counts = np.bincount(column.places, minlength=len(column.labels))
    often = np.argsort(-counts, kind="stable")[:_MOST]
    often = often[counts[often] >= _FEWEST]
    shown = often[1:] if counts[often].sum() == len(column.places) else often  # else the rest is the first
    return np.column_stack([np.empty((len(column.places), 0)), *(column.places == k for k in shown)])


def _straighten(values: PerRecord) -> PerRecord:
    if not values.any():
        return values
    low, high = (float(end) for end in np.quantile(values, (0.005, 0.995)))
    scale, near = choose_scale(values, low, high)
    if scale == "log":
        return np.log(values)
    return np.arcsinh(values / near) if scale == "asinh" else values


def split_terms(stack: Stack, *, pairs: bool) -> tuple[Matrix, Matrix]:
    """Terms that involve a protected column, and those of columns that are kept.

    With `pairs` also products of the terms of two columns, one of them protected.
    """
    by_name = {name: build_terms(column) for name, column in stack.columns.items()}
    own = [by_name[name] for name in stack.protected]
    shared = [by_name[name] for name in stack.columns if name in stack.kept]
    if pairs:
        products = [(one, two) for place, one in enumerate(own) for two in (*shared, *own[:place])]
        own = [*own, *((one[:, :, None] * two[:, None, :]).reshape(len(one), -1) for one, two in products)]
    empty = np.empty((sum(stack.sizes), 0))
    return np.hstack([empty, *own]), np.hstack([empty, *shared])
