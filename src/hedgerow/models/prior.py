"""The conjugate prior of the exact models, in natural units, proper, and blind to the outcome."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from hedgerow.arrays import Array
from hedgerow.errors import SettingError, is_finite
from hedgerow.tables.design import Design


@dataclass(frozen=True)
class Prior:
    """β | σ² ~ N(m0, σ² V0), σ² ~ IG(a0, b0), stated the way a person would.

    Everything is in the units of the model's outcome (log x for the lognormal), chosen without looking
    at the confidential outcome. Predictors are public, so their spread may be used.

    - `residual`: a guess at the residual standard deviation σ;
    - `residual_df`: how many records that guess is worth;
    - `intercept`: mean and standard deviation of the intercept;
    - `slope`: mean and standard deviation of what a predictor adds to the outcome where it is farthest
      from its own mean, for every coefficient not named below;
    - `coefficients`: mean and standard deviation by design column, for instance {"z": (1.0, 0.5)}.

    Standard deviations of coefficients hold at σ = `residual` and grow with σ.

    Families that are sampled read the same words on the scale of their own regression, a log mean or a logit;
    `intercept` is then meant at the predictors' means (docs/families.md, "Priors").
    """

    residual: float = 1.0
    residual_df: float = 1.0
    intercept: tuple[float, float] = (0.0, 1000.0)
    slope: tuple[float, float] = (0.0, 100.0)
    coefficients: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (("residual", self.residual), ("residual_df", self.residual_df)):
            if not is_finite(value) or value <= 0:
                raise SettingError(f"Prior: {name} must be positive and finite, got {value!r}.")
        if not isinstance(self.coefficients, Mapping):
            raise SettingError(
                "Prior: coefficients must be a mapping from design columns to pairs, for instance "
                f'{{"z": (0.0, 1.0)}}, got {type(self.coefficients).__name__}.'
            )
        named = {"intercept": self.intercept, "slope": self.slope, **self.coefficients}
        for name, pair in named.items():
            two = isinstance(pair, tuple | list) and len(pair) == 2 and all(is_finite(one) for one in pair)
            if not two or pair[1] <= 0:
                raise SettingError(
                    f"Prior: {name} must be a pair (mean, standard deviation) of finite numbers, the "
                    f"second positive, got {pair!r}."
                )
        object.__setattr__(self, "coefficients", MappingProxyType(dict(self.coefficients)))

    @property
    def shape(self) -> float:
        """a0."""
        return self.residual_df / 2

    @property
    def rate(self) -> float:
        """b0."""
        return self.residual_df * self.residual**2 / 2

    def moments(self, design: Design) -> tuple[Array, Array]:
        """m0 and the square roots of the diagonal of V0, by design column."""
        unknown = [name for name in self.coefficients if name not in design.columns]
        if unknown:
            raise SettingError(
                f"Prior: no design column named {', '.join(unknown)}; the formula gives "
                f"{', '.join(design.columns)}."
            )
        mean, deviation = np.empty(len(design.columns)), np.empty(len(design.columns))
        for j, name in enumerate(design.columns):
            if name in self.coefficients:
                mean[j], deviation[j] = self.coefficients[name]
            elif is_intercept(design, j):
                mean[j], deviation[j] = self.intercept
            else:
                mean[j], deviation[j] = self.slope[0] / design.reach[j], self.slope[1] / design.reach[j]
        return mean, deviation / self.residual


def is_intercept(design: Design, column: int) -> bool:
    """Whether a design column is the intercept; a predictor may have its name."""
    return design.columns[column] == "Intercept" and bool((design.matrix[:, column] == 1).all())
