"""The mode of a weighted posterior, and its normal approximation there, which is for simulated tables only.

A correction (`mechanism.debias`) puts dozens of simulated tables through the recipe, and NUTS on each would
take minutes. There the posterior stands replaced by the normal distribution at its mode, on the unconstrained
scale, with the curvature of the log density. Nothing that is certified or released is ever drawn from it.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from hedgerow.arrays import Array, PerRecord
from hedgerow.errors import DataError
from hedgerow.models.base import Health, Parameters, Sample
from hedgerow.models.correctable import Differentiable, StandIn
from hedgerow.models.programs.potential import Potential
from hedgerow.models.wrapped import Separable, Wrapped
from hedgerow.randomness import Key
from hedgerow.tables.design import Design

_STEPS = 60  # of a search for a mode, at most
_HALVINGS = 30  # of one such step
_CLOSE = 1e-8  # squared distance from the mode, in standard deviations, at which one more step is enough


def find_mode(potential: Potential, start: Array) -> tuple[Array, Array] | None:
    """The mode uphill of `start`, and the upper triangular R with R'R the curvature there; None: none found.

    Newton's method. Where the log density is not concave its curvature counts as if it were, and a step that
    leads too little uphill is halved.
    """
    place, (value, slope) = start, potential.value_and_grad(start)
    for _ in range(_STEPS):
        curvature = potential.hessian(place)
        if not (np.isfinite(curvature).all() and np.isfinite(slope).all()):
            return None
        sizes, axes = np.linalg.eigh(-curvature)
        sizes = np.maximum(np.abs(sizes), 1e-9 * np.abs(sizes).max())
        step = axes @ ((axes.T @ slope) / sizes)
        gain = float(slope @ step)
        if gain < _CLOSE:
            mode = np.asarray(place + step, dtype=np.float64)
            there: Any = -potential.hessian(mode)
            try:
                return mode, np.asarray(cholesky(there), dtype=np.float64)
            except (LinAlgError, ValueError):
                return None
        for _ in range(_HALVINGS):
            found, turned = potential.value_and_grad(place + step)
            if np.isfinite(found) and found >= value + 1e-4 * gain:
                break
            step, gain = step / 2, gain / 2
        else:
            return None
        place, value, slope = place + step, found, turned
    return None


@dataclass(frozen=True)
class Laplace(Wrapped, StandIn):
    """A program whose posterior is taken to be normal about its mode; `near` is where to look for it."""

    tables: ClassVar[int] = 6
    doubted_tables: ClassVar[int] = StandIn.tables
    base: Differentiable
    near: Array = field(repr=False)  # a draw of the posterior
    factor: Array | None = field(default=None, repr=False)  # R'R: the curvature there, of a typical table

    @classmethod
    def about(cls, base: Differentiable, design: Design, near: Parameters) -> "Laplace":
        """The stand-in for tables simulated near such a draw."""
        place = base.free(design, near)
        uniforms = Key.from_seed(0).child("typical").stream().uniform(design.records)
        typical = design.replace_values(base.predict(design, near, uniforms))
        curvature: Any = -base.potential(typical, np.ones(design.records)).hessian(place)
        try:
            return cls(base, place, np.asarray(cholesky(curvature), dtype=np.float64))
        except (LinAlgError, ValueError):
            return cls(base, place)

    def check(self, design: Design) -> None:
        """Nothing: the outcome was simulated from the program."""

    def sample(self, design: Design, power: PerRecord, *, draws: int, key: Key) -> Sample:
        potential = self.base.potential(design, power)
        mode, factor = self._mode(potential)
        noise = key.stream().normal((draws, len(mode)))
        positions = mode + solve_triangular(factor, noise.T).T
        health = Health(sampler="normal approximation", independent=True, effective_draws=float(draws))
        return Sample(potential.constrain(positions), health)

    def part_of(self, design: Design, rows: NDArray[np.int64]) -> Design | None:
        return self.base.part_of(design, rows) if isinstance(self.base, Separable) else None

    def free(self, design: Design, parameters: Parameters) -> Array:
        return self.base.free(design, parameters)

    def natural(self, design: Design, free: Array) -> Parameters:
        return self.base.natural(design, free)

    def centre(self, design: Design, power: PerRecord, *, key: Key) -> Array:
        """The weighted mode on the unconstrained scale."""
        return self._mode(self.base.potential(design, power))[0]

    def chance(self, design: Design, truth: Parameters) -> Array | None:
        """One step by the slope of the log likelihood at the truth, which has mean zero there.

        The curvature that scales it belongs to another table: a function of this one would leave a mean.
        """
        if self.factor is None:
            return None
        place, ones = self.base.free(design, truth), np.ones(design.records)
        slopes = (self.base.potential(design, power).value_and_grad(place)[1] for power in (ones, 0 * ones))
        slope: Any = np.subtract(*slopes)  # the prior's part taken off
        step = solve_triangular(self.factor, solve_triangular(self.factor, slope, trans=1))
        return np.asarray(step, dtype=np.float64)

    def _mode(self, potential: Potential) -> tuple[Array, Array]:
        mode = find_mode(potential, self.near)
        if mode is None:
            raise DataError("A simulated table has no mode with a curvature there.")
        return mode
