"""How heavy the tail of importance weights is: Pareto k̂ for many records at once.

The estimator is that of Zhang and Stephens with the weak prior of Pareto-smoothed importance sampling, as in
ArviZ, which the tests compare with. Above 0.7 a mean of such weights cannot be trusted.
"""

import numpy as np

from hedgerow.arrays import Array, LogLik, PerRecord

TRUSTED = 0.7
_LEAST = 5  # weights in the tail below which nothing can be said
_PRIOR_SPREAD, _PRIOR_DRAWS = 3, 10


def tail_shape(log_weights: LogLik) -> PerRecord:
    """k̂ of each column: infinite with too few draws, 0 where all weights are the same."""
    draws = len(log_weights)
    count = int(np.ceil(min(draws / 5, 3 * np.sqrt(draws))))
    if count < _LEAST:
        return np.full(log_weights.shape[1], np.inf)
    largest = np.sort(np.partition(log_weights, draws - count - 1, axis=0)[-count - 1 :], axis=0)
    shifted = np.exp(largest - largest[-1])
    excess = shifted[1:] - shifted[0]
    found = np.zeros(log_weights.shape[1])
    moves = excess[-1] > 0
    found[moves] = _fitted(np.maximum(excess[:, moves], np.finfo(np.float64).tiny))
    return found


def _fitted(excess: Array) -> PerRecord:
    """The shape of a generalised Pareto distribution for each column of ordered excesses."""
    count = len(excess)
    grid = 30 + int(np.sqrt(count))
    steps = 1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))
    rates = steps[:, None] / (_PRIOR_SPREAD * excess[int(count / 4 + 0.5) - 1]) + 1 / excess[-1]
    shapes = np.stack([np.log1p(-rate * excess).mean(axis=0) for rate in rates])
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = count * (np.log(-rates / shapes) - shapes - 1)
    fits = np.where(np.isfinite(fits), fits, -np.inf)
    weights = np.exp(fits - fits.max(axis=0))
    rate = (weights * rates).sum(axis=0) / weights.sum(axis=0)
    shape = np.log1p(-rate * excess).mean(axis=0)
    return np.asarray((count * shape + _PRIOR_DRAWS * 0.5) / (count + _PRIOR_DRAWS), dtype=np.float64)
