"""What errors to expect, before any outcome is read: which ε to ask for.

Stand-ins for the outcome, normal about the middle of the limits, go through the very mechanism; their errors
stand beside those of the same model without privacy on the same stand-ins. The predictors, n, the limits and
settings are all that enters, so that asking costs nothing and may be repeated for many ε.

In a long table some rows stand for all: with m of n rows and √(n/m) times the ε, noise is as large beside the
sampling error as it will be, and both, with all that follows from them, are √(n/m) times what they will be.
Where noise is nearly all of the error this says up to a tenth too much: round two's window is wider.

    expected = expected_errors(make_recipe(X, low=0.0, high=12.0, epsilon=1.0))
    expected.line / expected.plain_line  # how much more error the line has than without privacy
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import ks_2samp

from hedgerow.arrays import Array, PerRecord, RecordMask
from hedgerow.mechanism.noisy.copies import predict
from hedgerow.mechanism.noisy.estimate import estimate, start
from hedgerow.mechanism.noisy.margin import fit_tilt
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT, Recipe
from hedgerow.mechanism.noisy.released import Spike
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.mechanism.noisy.spike import draw_chances
from hedgerow.privacy.terms import Sampling
from hedgerow.randomness import Key
from hedgerow.threads import share_out

_ROWS = 40_000  # that stand for all of a table which has more than twice as many
_MOST, _FEWEST = 30, 2  # stand-ins
_ENTRIES = 10_000_000  # of X that are read in all
_ZEROS = 0.3  # share of stand-ins at a spike, where there is one


@dataclass(frozen=True)
class Expected:
    """Root mean squared errors over stand-ins, and the mean ECDF maximum of one copy. Public.

    `plain` is the model without privacy, a posterior draw of it for the copy. The noise's share of a squared
    error is what lies between the two.
    """

    line: float  # of the fitted values, in the response's units
    plain_line: float
    log_sigma: float
    plain_log_sigma: float
    ecdf: float  # largest distance of the copy's distribution function from the stand-in's
    plain_ecdf: float
    sigma: float  # of the stand-ins
    simulations: int
    zeros: float = np.nan  # of the chances of the spike, if there is one
    plain_zeros: float = np.nan


def expected_errors(
    recipe: Recipe, *, sigma: float | None = None, sampling: Sampling = "independent", key: Key | None = None
) -> Expected:
    """Errors to expect of a recipe. `sigma` of the stand-ins is H/4 unless a guess is given.

    Limits that are wide beside σ cost: a guess from earlier years or another table, not from this one, makes
    the answer sharper. Without a key the answer is the same each time.
    """
    sigma = recipe.half_width / 4 if sigma is None else float(sigma)
    root = Key.from_seed(0) if key is None else key
    records, recipe = recipe.records, recipe.choose_some(_ROWS)
    simulations = int(np.clip(_ENTRIES // recipe.matrix.size, _FEWEST, _MOST))
    keys = [root.child(each) for each in range(simulations)]
    errors = np.array(
        share_out(lambda one: _simulate(recipe, sigma, sampling, one), keys, worth=recipe.records > _ROWS / 4)
    )
    errors *= np.sqrt(recipe.records / records)
    line, plain_line, log_sigma, plain_log_sigma = np.sqrt((errors[:, :4] ** 2).mean(axis=0)).tolist()
    ecdf, plain_ecdf = errors[:, 4:6].mean(axis=0).tolist()
    zeros = np.sqrt((errors[:, 6:] ** 2).mean(axis=0)).tolist()  # none without a spike
    six = line, plain_line, log_sigma, plain_log_sigma, ecdf, plain_ecdf
    return Expected(*six, sigma, simulations, *zeros)


def _simulate(recipe: Recipe, sigma: float, sampling: Sampling, key: Key) -> tuple[float, ...]:
    """Errors on one stand-in: line, σ and ECDF, each with and without privacy; with a spike, of chances."""
    records, columns = recipe.matrix.shape
    truth = recipe.basis @ start(recipe).line
    chance = key.child("stand-in").stream()
    outcome = recipe.matrix @ truth + sigma * chance.normal(records)
    if recipe.spiked:
        outcome[key.child("zeros").stream().uniform(records) < _ZEROS] = np.nan
    released = release_statistics(recipe, outcome, np.ones(records, dtype=bool), key=key.child("noise"))
    found = estimate(released)
    # A copy comes from a draw: of the estimates' normal errors here, which the posterior's are close to.
    drawn = found.beta + _root(found.covariance) @ chance.normal(columns)
    spread = found.sigma * float(np.exp(found.sigma_error / found.sigma * chance.normal(1)[0]))
    tilt = None if released.counts is None else fit_tilt(released, drawn, spread)
    copy = predict(recipe, drawn, spread, tilt, sampling=sampling, key=key.child("copy"))

    there = ~np.isnan(outcome)
    rows, basis = (recipe.matrix, recipe.basis) if there.all() else _amounts_alone(recipe, there)
    plain = basis @ (basis.T @ (rows.T @ outcome[there])) / len(rows)
    free = max(len(rows) - columns, 1)
    scale = float(np.sqrt(((outcome[there] - rows @ plain) ** 2).sum() / free))
    plain_spread = scale * float(np.sqrt(free / (2 * chance.gamma(free / 2, 1)[0])))
    plain_drawn = plain + basis @ chance.normal(columns) * plain_spread / np.sqrt(len(rows))
    plain_copy = predict(recipe, plain_drawn, plain_spread, None, sampling=sampling, key=key.child("plain"))

    def away(line: Array) -> float:
        return float(np.sqrt(((recipe.matrix @ (line - truth)) ** 2).mean()))

    zeros: tuple[float, ...] = ()
    if released.spike is not None:  # without privacy: the same sum, and next to no noise
        exact = np.asarray(np.isnan(outcome) @ recipe.loadings * LOADING_UNIT, dtype=np.float64)
        plain_spike = Spike(exact, 1e-6 * released.spike.scale)
        for spike, values in ((released.spike, copy), (plain_spike, plain_copy)):
            chances, drawn_chances = draw_chances(recipe, spike, key.child("spike"))
            values[key.child("at spike").stream().uniform(records) < drawn_chances] = recipe.low - 1
            zeros += (float(np.sqrt(((chances - _ZEROS) ** 2).mean())),)
        outcome = np.where(there, outcome, recipe.low - 1)
    return (
        away(found.beta),
        away(plain),
        float(np.log(found.sigma / sigma)),
        float(np.log(max(scale, 1e-300) / sigma)),
        _gap(outcome, copy),
        _gap(outcome, plain_copy),
        *zeros,
    )


def _amounts_alone(recipe: Recipe, there: RecordMask) -> tuple[Array, Array]:
    """The rows of X that have an amount, and a basis in which theirs is whitened."""
    seen = recipe.matrix[there] @ recipe.basis
    return recipe.matrix[there], recipe.basis @ _root(np.linalg.pinv(seen.T @ seen / max(len(seen), 1)))


def _root(covariance: Array) -> Array:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)), dtype=np.float64)


def _gap(one: PerRecord, other: PerRecord) -> float:
    return float(ks_2samp(one, other, method="asymp").statistic)
