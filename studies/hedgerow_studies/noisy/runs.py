"""One release by noisy statistics, and how far its copy is from the table: what the strict studies share."""

from dataclasses import dataclass

import numpy as np

from hedgerow import datasets
from hedgerow.arrays import Array, Matrix, PerRecord
from hedgerow.evidence.utility import ecdf_distance
from hedgerow.mechanism.noisy.copies import predict
from hedgerow.mechanism.noisy.estimate import Estimate, estimate
from hedgerow.mechanism.noisy.margin import fit_tilt, margin_pays
from hedgerow.mechanism.noisy.posterior import draw_posterior
from hedgerow.mechanism.noisy.recipe import Recipe
from hedgerow.mechanism.noisy.released import Released
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.privacy.terms import Sampling
from hedgerow.randomness import Key

LOW, HIGH = -3.0, 9.0  # limits of log x in the simulation: some four standard deviations about its mean
MARGIN_SHARE = 0.25
MEASURES = ("ECDF maximum", "log Q90", "slope", "σ")


def simulated(records: int, seed: int) -> tuple[Matrix, PerRecord]:
    """The paper's simulation: predictors with an intercept, and log x, which is 1 + z + a standard normal."""
    data = datasets.lognormal(records, seed=seed)
    return np.column_stack([np.ones(records), data["z"]]), np.log(data["x"].to_numpy(dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Run:
    """What was released about one table, and the plugged-in estimate of it."""

    released: Released
    found: Estimate

    @property
    def recipe(self) -> Recipe:
        """What it was told."""
        return self.released.recipe

    def plugged_copy(self, key: Key) -> PerRecord:
        """One stratified copy from the estimate."""
        return predict(self.recipe, self.found.beta, self.found.sigma, None, sampling="stratified", key=key)

    def drawn_copy(self, key: Key, sampling: Sampling = "stratified") -> PerRecord:
        """One copy from a draw of the posterior given the noisy statistics: what a release has."""
        draws = draw_posterior(self.released, draws=100, key=key.child("posterior")).parameters
        beta, sigma = draws["beta"][0], float(draws["sigma"][0])
        tilt = None if self.released.counts is None else fit_tilt(self.released, beta, sigma)
        return predict(self.recipe, beta, sigma, tilt, sampling=sampling, key=key.child("copy"))


def release(recipe: Recipe, response: PerRecord, key: Key) -> Run:
    """Both rounds over a table without blanks."""
    released = release_statistics(recipe, response, np.ones(len(response), dtype=np.bool_), key=key)
    return Run(released, estimate(released))


def margin_share(records: int, epsilon: float, share: float = MARGIN_SHARE) -> float:
    """The share of ε for the margin: none where it would not pay."""
    return share if margin_pays(records, share, epsilon) else 0.0


def line(matrix: Matrix, response: PerRecord) -> tuple[Array, float]:
    """Least squares: coefficients and residual standard deviation."""
    beta = np.linalg.lstsq(matrix, response, rcond=None)[0]
    away = response - matrix @ beta
    return beta, float(np.sqrt(away @ away / max(len(away) - matrix.shape[1], 1)))


def differences(matrix: Matrix, response: PerRecord, copy: PerRecord) -> Array:
    """`MEASURES` of a copy against its table, on the log scale; the slope is that of the second column."""
    (beta, sigma), (new_beta, new_sigma) = line(matrix, response), line(matrix, copy)
    return np.array(
        [
            ecdf_distance(response, copy).maximum,
            abs(float(np.quantile(copy, 0.9) - np.quantile(response, 0.9))),
            abs(float(new_beta[1] - beta[1])),
            abs(new_sigma - sigma),
        ]
    )


def figures(errors: Array) -> str:
    """Means over tables, as the pages have them."""
    return ", ".join(f"{mean:.3f}" for mean in np.mean(errors, axis=0))
