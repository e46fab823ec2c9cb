"""A named family as a NumPyro program: priors on the scale of the regression, one response per record.

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
from numpyro.distributions.transforms import LowerCholeskyAffine
from scipy.linalg import solve_triangular

from hedgerow.arrays import Array, Matrix
from hedgerow.models.families.definition import FamilyDefinition, Numbers
from hedgerow.models.prior import Prior
from hedgerow.models.programs.compiled import Described
from hedgerow.models.programs.potential import ResponseSite
from hedgerow.models.programs.response import Spiked
from hedgerow.tables.design import Design

RESPONSE = "outcome"  # the observed site; "y" is the argument
_STEEP = 1e8  # condition of a cross-product, whatever the units, beyond which its inverse has too few digits


@dataclass(frozen=True)
class FamilyProgram(Described):
    """A program for one family and its public settings; equal settings share compiled code."""

    definition: FamilyDefinition
    domain: Numbers
    places: tuple[float, ...]  # of ordered classes
    level: tuple[float, float]  # prior mean and deviation at the predictors' means
    residual: float
    residual_df: float

    @property
    def description(self) -> str | None:
        """None for a family of a user's own, whose functions may hold anything."""
        parts = self.definition.response, type(self.domain)
        if any(part.__module__.partition(".")[0] != "hedgerow" for part in parts):
            return None
        return repr(
            (self.definition.name, self.domain, self.places, self.level, self.residual, self.residual_df)
        )

    def __call__(self, X: Any, beta: Any = None, W: Any = None, spike: Any = None, y: Any = None) -> None:
        eta = jnp.zeros(X.shape[0])
        if self.definition.by_class:
            names = (f"beta_{place}" for place in range(1, len(self.places)))
            eta = jnp.stack([X @ numpyro.sample(name, Coefficients(*beta)) for name in names], axis=-1)
        elif beta is not None:
            eta = X @ numpyro.sample("beta", Coefficients(*beta))
        response = self.domain.truncate(self.definition.response(self, eta))
        if spike is not None and self.domain.spike is not None:
            share = W @ numpyro.sample("spike_beta", Coefficients(*spike))
            response = Spiked(response, share, self.domain.spike)
        numpyro.sample(RESPONSE, ResponseSite(self.domain.round(response)), obs=y)

    def positive(self, name: str, guess: float) -> Any:
        """A positive parameter: lognormal about the guess, as vague as the guess is worth few records."""
        return numpyro.sample(name, dist.LogNormal(jnp.log(guess), 2 / self.residual_df**0.5))


def coefficient_arrays(prior: Prior, design: Design) -> tuple[Array, Array, Matrix, Array, Matrix]:
    """Mean and deviation of the contrasts a prior speaks of, the contrasts, and the sampler's coordinates."""
    mean, deviation = prior.moments(design)
    deviation = deviation * prior.residual
    contrasts = prior.contrasts(design)
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

    @constraints.dependent_property(is_discrete=False, event_dim=1)  # type: ignore[untyped-decorator]  # too
    def support(self) -> Any:
        return _Affine(self.centre, self.root)

    def log_prob(self, value: Any) -> Any:
        return self.prior.log_prob(self.contrasts @ value).sum()  # the contrasts have determinant one

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        steps = jax.random.normal(key, (*sample_shape, *self.event_shape))
        return self.centre + jnp.linalg.solve(self.contrasts, (self.prior.scale * steps).T).T
