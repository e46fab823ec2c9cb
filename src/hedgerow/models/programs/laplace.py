"""A program's weighted posterior by its normal approximation, for simulated tables only.

A correction (`mechanism.debias`) puts dozens of simulated tables through the recipe, and NUTS on each would
take minutes. There the posterior stands replaced by the normal distribution at its mode, on the unconstrained
scale, with the curvature of the log density. Nothing that is certified or released is ever drawn from it.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import minimize

from hedgerow.arrays import Array, PerRecord
from hedgerow.errors import DataError
from hedgerow.models.base import Health, Parameters, Sample
from hedgerow.models.correctable import Differentiable, StandIn
from hedgerow.models.programs.potential import Potential
from hedgerow.models.wrapped import Wrapped
from hedgerow.randomness import Key
from hedgerow.tables.design import Design

_NEWTON = 4  # steps after the search: the mode must move smoothly with the table


@dataclass(frozen=True)
class Laplace(Wrapped, StandIn):
    """A program whose posterior is taken to be normal about its mode; `near` is where to look for it."""

    base: Differentiable
    near: Array = field(repr=False)  # a draw of the posterior

    def check(self, design: Design) -> None:
        """Nothing: the outcome was simulated from the program."""

    def sample(self, design: Design, power: PerRecord, *, draws: int, key: Key) -> Sample:
        potential = self.base.potential(design, power)
        mode, factor = self._mode(potential)
        noise = key.stream().normal((draws, len(mode)))
        positions = mode + solve_triangular(factor, noise.T).T
        health = Health(sampler="normal approximation", independent=True, effective_draws=float(draws))
        return Sample(potential.constrain(positions), health)

    def free(self, design: Design, parameters: Parameters) -> Array:
        return self.base.free(design, parameters)

    def natural(self, design: Design, free: Array) -> Parameters:
        return self.base.natural(design, free)

    def centre(self, design: Design, power: PerRecord, *, key: Key) -> Array:
        """The weighted mode on the unconstrained scale."""
        return self._mode(self.base.potential(design, power))[0]

    def _mode(self, potential: Potential) -> tuple[Array, Array]:
        """The mode, and the upper triangular R with R'R the curvature there."""

        def energy(position: Array) -> tuple[float, Array]:
            value, slope = potential.value_and_grad(position)
            return (-value, -slope) if np.isfinite(value) else (np.inf, np.zeros_like(slope))

        mode = np.asarray(minimize(energy, self.near, jac=True, method="L-BFGS-B").x, dtype=np.float64)
        try:
            for _ in range(_NEWTON):
                curvature: Any = -potential.hessian(mode)
                factor = cholesky(curvature)
                slope = potential.value_and_grad(mode)[1]
                mode = mode + solve_triangular(factor, solve_triangular(factor, slope, trans="T"))
        except (LinAlgError, ValueError):
            raise DataError("A simulated table has no mode with a curvature there.") from None
        return mode, np.asarray(factor, dtype=np.float64)
