"""The conjugate prior of the exact models, in natural units, proper, and blind to the outcome.

What is left out follows a rule that reads the public predictors alone (docs/families.md, "Priors"). It was
chosen by measurement: slopes as vague as their units once were let a target be met by weights near zero, so
that copies showed the prior.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from hedgerow.arrays import Array, Matrix
from hedgerow.errors import SettingError, format_value, is_finite
from hedgerow.tables.design import Design

Pair = tuple[float, float]
_VAGUE = {"intercept": 1000.0, "slope": 100.0}  # residuals, where neither a prior nor its family says more


@dataclass(frozen=True)
class Prior:
    """β | σ² ~ N(m0, σ² V0), σ² ~ IG(a0, b0), stated the way a person would.

    Everything is in the units of the model's outcome (log x for the lognormal), chosen without looking
    at the confidential outcome. Predictors are public, so their spread may be used.

    - `residual`: a guess at the residual standard deviation σ;
    - `residual_df`: how many records that guess is worth;
    - `intercept`: mean and standard deviation of the regression at the predictors' means;
    - `slope`: mean and standard deviation of what a predictor adds to the outcome where it has its spread
      (`Design.spread`), for every coefficient not named below;
    - `coefficients`: mean and standard deviation by design column, for instance {"z": (1.0, 0.5)}.

    Standard deviations of coefficients hold at σ = `residual` and grow with σ. What is None is the family's
    own. A coefficient named "Intercept" is the intercept at zero. Families that are sampled read the same
    words on the scale of their own regression, a log mean or a logit (docs/families.md, "Priors").
    """

    residual: float = 1.0
    residual_df: float = 1.0
    intercept: Pair | None = None
    slope: Pair | None = None
    coefficients: Mapping[str, Pair] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (("residual", self.residual), ("residual_df", self.residual_df)):
            if not is_finite(value) or value <= 0:
                raise SettingError(f"Prior: {name} must be positive and finite, got {format_value(value)}.")
        if not isinstance(self.coefficients, Mapping):
            raise SettingError(
                "Prior: coefficients must be a mapping from design columns to pairs, for instance "
                f'{{"z": (0.0, 1.0)}}, got {type(self.coefficients).__name__}.'
            )
        own = {name: pair for name in _VAGUE if (pair := getattr(self, name)) is not None}
        for name, pair in {**own, **self.coefficients}.items():
            two = isinstance(pair, tuple | list) and len(pair) == 2 and all(is_finite(one) for one in pair)
            if not two or pair[1] <= 0:
                raise SettingError(
                    f"Prior: {name} must be a pair (mean, standard deviation) of finite numbers, the "
                    f"second positive, got {format_value(pair)}."
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

    def over(self, default: "Prior", unit: float = 1.0) -> "Prior":
        """The prior, with what it leaves out as `default` has it, in units of `unit`."""
        level, slope = (
            pair if pair is None else (pair[0] * unit, pair[1] * unit)
            for pair in (default.intercept, default.slope)
        )
        return replace(self, intercept=self.intercept or level, slope=self.slope or slope)

    def pair(self, name: str) -> Pair:
        """The mean and standard deviation of "intercept" or "slope"; vague where nothing is said."""
        said: Pair | None = getattr(self, name)
        return (0.0, _VAGUE[name] * self.residual) if said is None else said

    def moments(self, design: Design) -> tuple[Array, Array]:
        """m0 and the square roots of the diagonal of V0, of the `contrasts` of a design."""
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
                mean[j], deviation[j] = self.pair("intercept")
            else:
                mean[j], deviation[j] = (part / design.spread[j] for part in self.pair("slope"))
        return mean, deviation / self.residual

    def contrasts(self, design: Design) -> Matrix:
        """The combinations of coefficients that the prior speaks of: themselves, and the level at the means.

        Far from the predictors' means the intercept is nothing an owner could know about. Determinant one.
        """
        contrasts = np.eye(len(design.columns))
        for j in range(len(design.columns)):
            if is_intercept(design, j) and design.columns[j] not in self.coefficients:
                contrasts[j] = design.means
        return contrasts

    def describe(self) -> str:
        """The numbers in words."""
        pairs = {"level": self.pair("intercept"), "slopes at each column's spread": self.pair("slope")}
        parts = [f"{name} normal({a:g}, {b:g})" for name, (a, b) in {**pairs, **self.coefficients}.items()]
        return ", ".join(
            [
                *parts,
                f"residual {self.residual:g} worth {self.residual_df:g} record"
                + "s" * (self.residual_df != 1),
            ]
        )


DEFAULT = Prior(intercept=(0.0, 1000.0), slope=(0.0, 1.0))  # of the exact models, in units of the residual


def is_intercept(design: Design, column: int) -> bool:
    """Whether a design column is the intercept; a predictor may have its name."""
    if design.columns[column] != "Intercept":
        return False
    return bool(design.summary.low[column] == 1 == design.summary.high[column])
