"""The varimax rotation: of all rotations of whitened columns one whose rows are sparse."""

import numpy as np

from hedgerow.arrays import Array

_SWEEPS = 30
_ENOUGH = 1e-5  # relative gain of a sweep at which to stop


def rotate_sparse(columns: Array) -> Array:
    """An orthogonal p × p matrix O such that the entries of `columns` · O are mostly small or large.

    It maximises the variance of the squared entries (Kaiser 1958), by singular values; dummies of a factor,
    once whitened, come back as its cells. Whatever the columns are the result is a rotation.
    """
    width = columns.shape[1]
    rotation, before = np.eye(width), 0.0
    for _ in range(_SWEEPS):
        rotated = columns @ rotation
        slope = columns.T @ (rotated**3 - rotated * np.mean(rotated**2, axis=0))
        if not np.all(np.isfinite(slope)):
            break
        left, sizes, right = np.linalg.svd(slope)
        rotation, gained = left @ right, float(sizes.sum())
        if gained <= before * (1 + _ENOUGH):
            break
        before = gained
    return np.asarray(rotation, dtype=np.float64)
