"""The named families as NumPyro programs: priors on the scale of the regression, one response per record.

Coefficients are sampled in coordinates in which the design matrix has unit spread, so that predictors in any
units start and move alike; what comes out are coefficients of the matrix as it is.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist
from numpyro.distributions import biject_to, constraints
from numpyro.distributions.transforms import LowerCholeskyAffine, PowerTransform
from scipy.linalg import solve_triangular

from hedgerow.arrays import Array, Matrix
from hedgerow.models.families import counts
from hedgerow.models.families import distributions as shapes
from hedgerow.models.prior import Prior
from hedgerow.tables.design import Design

RESPONSE = "outcome"  # the observed site; "y" is the argument
_STEEP = 1e8  # condition of a cross-product, whatever the units, beyond which its inverse has too few digits


@dataclass(frozen=True)
class FamilyProgram:
    """A program for one family and its public settings; equal settings share compiled code."""

    family: str  # without zero_
    level: tuple[float, float]  # prior mean and deviation at the predictors' means
    residual: float
    residual_df: float
    lower: float | None
    upper: float | None
    spike: float | None
    components: int
    places: tuple[float, ...]  # of ordered classes
    df: float | None

    def __call__(self, X: Any, beta: Any = None, W: Any = None, spike: Any = None, y: Any = None) -> None:
        eta = jnp.zeros(X.shape[0])
        if beta is not None:
            eta = X @ numpyro.sample("beta", Coefficients(*beta))
        response = self._bounded(_RESPONSES[self.family](self, eta))
        if spike is not None and self.spike is not None:
            share = W @ numpyro.sample("spike_beta", Coefficients(*spike))
            response = shapes.Spiked(response, share, self.spike)
        numpyro.sample(RESPONSE, response, obs=y)

    def positive(self, name: str, guess: float) -> Any:
        """A positive parameter: lognormal about the guess, as vague as the guess is worth few records."""
        return numpyro.sample(name, dist.LogNormal(jnp.log(guess), 2 / self.residual_df**0.5))

    def _bounded(self, response: Any) -> Any:
        if self.family in ("beta", "ordinal") or (self.lower is None and self.upper is None):
            return response
        if isinstance(response, counts.Counted):
            last = None if self.upper is None else int(self.upper)
            return counts.Between(response, int(self.lower or 0), last)
        low = -jnp.inf if self.lower is None else self.lower
        return shapes.Truncated(response, low, jnp.inf if self.upper is None else self.upper)


def _normal(program: FamilyProgram, eta: Any) -> Any:
    return shapes.Normal(eta, program.positive("sigma", program.residual))


def _lognormal(program: FamilyProgram, eta: Any) -> Any:
    return shapes.Lognormal(eta, program.positive("sigma", program.residual))


def _gamma(program: FamilyProgram, eta: Any) -> Any:
    return shapes.Gamma(eta, program.positive("shape", program.residual**-2))


def _weibull(program: FamilyProgram, eta: Any) -> Any:
    return shapes.Weibull(eta, program.positive("shape", 1 / program.residual))


def _log_student(program: FamilyProgram, eta: Any) -> Any:
    df = program.df
    if df is None:
        # Above 1, so that the tails stay lighter than Cauchy's.
        df = 1 + numpyro.sample("df_above_one", dist.Gamma(2.0, 0.1))
    return shapes.LogStudent(eta, program.positive("sigma", program.residual), df)


def _mixture(program: FamilyProgram, eta: Any) -> Any:
    size = program.components
    first = numpyro.sample("location", dist.Normal(*program.level))
    # Gaps that stay away from zero keep the components, and so the chains, in one order.
    gaps = numpyro.sample("gaps", dist.LogNormal(jnp.zeros(size - 1), 1.0).to_event(1))
    places = first + jnp.concatenate([jnp.zeros(1), jnp.cumsum(gaps)])
    # The likelihood of a component on a few equal values has no bound as its spread goes to zero. The prior
    # of its variance, an inverse gamma with the rate of the exact models', falls faster than that rises.
    half = program.residual_df / 2
    variance = dist.InverseGamma(jnp.full(size, 1 + half), half * program.residual**2)
    sigma = numpyro.sample("sigma", dist.TransformedDistribution(variance, PowerTransform(0.5)))
    share = numpyro.sample("share", dist.Dirichlet(jnp.full(size, 2.0)))
    return shapes.Lognormal(eta[:, None] + places, sigma, jnp.log(share))


def _beta(program: FamilyProgram, eta: Any) -> Any:
    ends = program.lower or 0.0, 1.0 if program.upper is None else program.upper
    return shapes.Beta(eta, program.positive("precision", 4 * program.residual**-2), *ends)


def _poisson(program: FamilyProgram, eta: Any) -> Any:
    return counts.Poisson(eta)


def _negative_binomial(program: FamilyProgram, eta: Any) -> Any:
    return counts.NegativeBinomial(eta, program.positive("size", program.residual**-2))


def _bernoulli(program: FamilyProgram, eta: Any) -> Any:
    return counts.Ordered(eta, jnp.zeros(1), np.array(program.places))


def _ordinal(program: FamilyProgram, eta: Any) -> Any:
    # Shares of the classes at the predictors' means, all shares alike likely; the cut points follow.
    share = numpyro.sample("share", dist.Dirichlet(jnp.ones(len(program.places))))
    below = jnp.cumsum(share)[:-1]
    above = jnp.cumsum(share[::-1])[::-1][1:]  # 1 − below, digits kept
    return counts.Ordered(eta, jnp.log(below) - jnp.log(above), np.array(program.places))


_RESPONSES = {
    "normal": _normal,
    "lognormal": _lognormal,
    "gamma": _gamma,
    "weibull": _weibull,
    "log_student": _log_student,
    "lognormal_mixture": _mixture,
    "beta": _beta,
    "poisson": _poisson,
    "negative_binomial": _negative_binomial,
    "bernoulli": _bernoulli,
    "ordinal": _ordinal,
}


def coefficient_arrays(prior: Prior, design: Design) -> tuple[Array, Array, Matrix, Array, Matrix]:
    """Mean and deviation of the contrasts a prior speaks of, the contrasts, and the sampler's coordinates.

    The intercept is meant at the predictors' means: far from them it is nothing an owner could know about.
    """
    mean, deviation = prior.moments(design)
    deviation = deviation * prior.residual
    contrasts = np.eye(len(mean))
    if "Intercept" in design.columns and "Intercept" not in prior.coefficients:
        place = design.columns.index("Intercept")
        if (design.matrix[:, place] == 1).all():  # a predictor of that name is none
            contrasts[place] = design.matrix.mean(axis=0)
    scaled = contrasts / deviation[:, None]
    precision = design.matrix.T @ design.matrix / design.records + scaled.T @ scaled
    centre = np.linalg.solve(contrasts, mean).astype(np.float64)
    unit = precision / np.sqrt(np.outer(precision.diagonal(), precision.diagonal()))
    if np.linalg.cond(unit) < _STEEP:
        return mean, deviation, contrasts, centre, np.linalg.cholesky(np.linalg.inv(precision))
    return mean, deviation, contrasts, centre, _root(design.matrix, deviation, contrasts)


def _root(matrix: Matrix, deviation: Array, contrasts: Matrix) -> Matrix:
    """The lower root of (X'X/n + C'D⁻²C)⁻¹, for predictors so far from zero that X'X holds their means alone.

    X C⁻¹ has the predictors about their means, so its triangle keeps their spread; X'X is never formed. Its
    columns are taken from the last to the first, which makes the triangle's inverse the lower root itself.
    """
    shift = contrasts - np.eye(len(deviation))  # squared it is zero, so that C⁻¹ = 2·1 − C
    about = matrix - matrix @ shift
    stacked = np.vstack([about / len(matrix) ** 0.5, np.diag(1 / deviation)])
    spread = np.linalg.qr(stacked).R @ contrasts
    triangle = np.linalg.qr(spread[:, ::-1]).R[::-1, ::-1]
    triangle = triangle * np.sign(triangle.diagonal())[:, None]
    return solve_triangular(triangle, np.eye(len(deviation)), lower=True)


class _Affine(constraints.Constraint):  # type: ignore[misc]  # NumPyro is untyped
    """The whole space, walked in other coordinates."""

    event_dim = 1

    def __init__(self, centre: Any, root: Any) -> None:
        self.centre, self.root = centre, root

    def __call__(self, value: Any) -> Any:
        return jnp.ones(jnp.shape(value)[:-1], dtype=bool)


@biject_to.register(_Affine)  # type: ignore[untyped-decorator]  # NumPyro is untyped
def _affine(space: _Affine) -> Any:
    return LowerCholeskyAffine(space.centre, space.root)


class Coefficients(dist.Distribution):  # type: ignore[misc]  # NumPyro is untyped
    """Coefficients whose contrasts are independent normals."""

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012 - NumPyro reads it from the class

    def __init__(self, mean: Any, deviation: Any, contrasts: Any, centre: Any, root: Any) -> None:
        self.prior = dist.Normal(mean, deviation)
        self.contrasts, self.centre, self.root = contrasts, centre, root
        super().__init__(event_shape=jnp.shape(mean))

    @constraints.dependent_property(is_discrete=False, event_dim=1)  # type: ignore[untyped-decorator]
    def support(self) -> Any:
        return _Affine(self.centre, self.root)

    def log_prob(self, value: Any) -> Any:
        return self.prior.log_prob(self.contrasts @ value).sum()  # the contrasts have determinant one

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        steps = jax.random.normal(key, (*sample_shape, *self.event_shape))
        return self.centre + jnp.linalg.solve(self.contrasts, (self.prior.scale * steps).T).T
