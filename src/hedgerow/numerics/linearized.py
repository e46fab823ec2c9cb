"""Samples with weights: quantiles, and the covariance of estimates by Taylor's linearisation.

    >>> scores = np.array([[1.0], [2.0], [4.0], [5.0]])  # weight times linearised value
    >>> float(total_covariance(scores)[0, 0])  # of the sum of four: 4/3 Σ (u − ū)²
    13.333333333333332
    >>> weighted_quantiles(np.array([1.0, 2.0, 3.0]), np.ones(3), [0.25]).tolist()
    [1.5]

A smooth function of weighted totals has, to first order, the variance of the total of its linearised values.
That of a total is the variance between the clusters of each stratum, which count as drawn with replacement:
V = Σ_h n_h/(n_h − 1) Σ_c (u_hc − ū_h)², u_hc the sum of a cluster's scores.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from hedgerow.arrays import Array, PerRecord

Scores = Float[np.ndarray, "record estimate"]
Codes = Int[np.ndarray, "record"]


def total_covariance(scores: Scores, strata: Codes | None = None, clusters: Codes | None = None) -> Array:
    """The covariance of the columns' sums; infinite where a stratum has a single cluster.

    Strata and clusters are numbers from 0 up. Without clusters each record is one of its own, and without
    strata all are in one. A number of a cluster means another one in another stratum.
    """
    away, factor = _centre(scores, strata, clusters)
    return np.asarray(away.T @ (factor * away)) if len(away) else np.full((scores.shape[1],) * 2, np.inf)


def total_variances(scores: Scores, strata: Codes | None = None, clusters: Codes | None = None) -> Array:
    """The diagonal of `total_covariance`, in time and memory that grow with the columns alone."""
    away, factor = _centre(scores, strata, clusters)
    return np.asarray((factor * away**2).sum(axis=0)) if len(away) else np.full(scores.shape[1], np.inf)


def _centre(scores: Scores, strata: Codes | None, clusters: Codes | None) -> tuple[Array, Array]:
    """Sums of clusters less their stratum's mean, and n_h/(n_h − 1); empty if a stratum has one cluster."""
    strata = np.zeros(len(scores), dtype=np.int64) if strata is None else strata
    if clusters is None:
        sums, home = scores, strata
    else:
        found, place = np.unique(np.column_stack([strata, clusters]), axis=0, return_inverse=True)
        sums, home = np.zeros((len(found), scores.shape[1])), found[:, 0]
        np.add.at(sums, place.ravel(), scores)
    counts = np.bincount(home)
    if (counts == 1).any():
        return np.empty((0, scores.shape[1])), np.empty((0, 1))
    means = np.zeros((len(counts), scores.shape[1]))
    np.add.at(means, home, sums)
    means /= np.maximum(counts, 1)[:, None]
    return sums - means[home], (counts / np.maximum(counts - 1, 1))[home][:, None]


def weighted_quantiles(values: PerRecord, weights: PerRecord, quantiles: Sequence[float]) -> Array:
    """Quantiles of type 7, as R and NumPy have them, if the weights are equal.

    The records, in order, stand at (C_i − (w_i + w_1)/2) / (W − (w_1 + w_n)/2), with C_i the sum of weights
    up to i and W that of all; between them lines are drawn.
    """
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    ends = weights[0] + weights[-1]
    if len(values) == 1 or 2 * weights.sum() <= ends:
        return np.full(len(quantiles), float(values @ weights / weights.sum()))
    places = (np.cumsum(weights) - (weights + weights[0]) / 2) / (weights.sum() - ends / 2)
    return np.asarray(np.interp(np.asarray(quantiles, dtype=np.float64), places, values))
