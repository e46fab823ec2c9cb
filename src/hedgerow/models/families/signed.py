"""Signed amounts such as profits or wealth: Student-t errors, or normal errors of asinh(x / scale).

Both are written in units of a public `scale`, the size of usual amounts. For student the default prior is
about a few of them; for asinh it is where amounts turn from counting as they are to counting by logarithm.

>>> import hedgerow as hr
>>> hr.Family("student", scale=1000).domain.ends
(-inf, inf)
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from hedgerow.errors import SettingError, format_value, is_finite
from hedgerow.models.exact import Asinh
from hedgerow.models.families.definition import LOGS, FamilyDefinition, Numbers
from hedgerow.models.families.normal import NormalResponse
from hedgerow.models.lazy import dist, jnp, lax, masses, numpyro, special
from hedgerow.models.prior import Prior
from hedgerow.models.programs.response import Continuous, standardise
from hedgerow.tables.design import LARGEST

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(64)
_FAR = 9.0  # standard deviations beyond which a normal kernel adds nothing to a mass that includes the middle


@dataclass(frozen=True)
class SignedAmounts(Numbers):
    """Numbers on either side of zero, whose usual size is public."""

    words: ClassVar[str] = "numbers of either sign"

    def __post_init__(self) -> None:
        scale = self.setting("scale")
        if scale is None:
            raise SettingError(
                f"Family '{self.family}' needs a public scale, the size of usual amounts in the column's own "
                f'units: Family("{self.family}", scale=1000), or --family "{{kind: {self.family}, scale: '
                '1000}". It must be known without the data, for instance from an earlier year.'
            )
        if not (is_finite(scale) and 1 / LARGEST <= scale <= LARGEST):
            raise SettingError(
                f"Family '{self.family}': scale must be a positive number, at most {LARGEST:g}, got "
                f"{format_value(scale)}. Give the size of usual amounts, such as 1000."
            )
        super().__post_init__()


class InUnits(Continuous):
    """`scale` times another distribution on the whole line."""

    def __init__(self, base: Continuous, scale: float) -> None:
        self.base, self.scale = base, scale
        super().__init__(jnp.zeros(base.batch_shape))

    def log_prob(self, value: Any) -> Any:
        return self.base.log_prob(value / self.scale) - jnp.log(self.scale)

    def log_mass(self, lower: Any, upper: Any) -> Any:
        return self.base.log_mass(lower / self.scale, upper / self.scale)

    def cdf(self, value: Any) -> Any:
        return self.base.cdf(value / self.scale)

    def place(self, t: Any) -> Any:
        return self.scale * self.base.place(t)


class StudentResponse(Continuous):
    """Student-t errors about a median."""

    def __init__(self, mean: Any, sigma: Any, df: Any) -> None:
        self.mean_, self.sigma, self.df = mean, sigma, df
        super().__init__(mean, sigma, df)

    def log_prob(self, value: Any) -> Any:
        t = (value - self.mean_) / self.sigma
        return self._log_constant() - jnp.log(self.sigma) - (self.df + 1) / 2 * jnp.log1p(t**2 / self.df)

    def log_mass(self, lower: Any, upper: Any) -> Any:
        low, high = (self._normalised(standardise(end, self.mean_, self.sigma)) for end in (lower, upper))
        # On the scale u the density is a normal kernel times a slowly growing factor, in both tails.
        mirror = low + high > 0
        near, far = jnp.where(mirror, low, -high), jnp.where(mirror, high, -low)  # |near| ≤ far
        start = jnp.maximum(near, -_FAR)
        stop = jnp.minimum(far, jnp.maximum(start, 0.0) + jnp.minimum(_FAR, 40.0 / jnp.maximum(start, 1e-3)))
        half, middle = 0.5 * (stop - start), 0.5 * (stop + start)

        peak = jnp.maximum(start, 0.0) ** 2 / 2  # the kernel is largest where u is nearest to zero

        def add(total: Any, node: Any) -> tuple[Any, None]:
            place, weight = node
            squared = (middle + half * place) ** 2
            return total + weight * jnp.exp(peak - squared / 2 + _log_factor(squared / self.df)), None

        nodes = jnp.asarray(_NODES), jnp.asarray(_NODE_WEIGHTS)
        total, _ = lax.scan(add, jnp.zeros(jnp.shape(half)), nodes, unroll=8)
        wide = half > 0
        total, half = jnp.where(wide, total, 1.0), jnp.where(wide, half, 1.0)
        found = jnp.log(total) + jnp.log(half) - peak + self._log_constant()
        return jnp.where(wide, jnp.minimum(found, 0.0), -jnp.inf)

    def cdf(self, value: Any) -> Any:
        t = (value - self.mean_) / self.sigma
        squared = t**2 / self.df
        tail = 0.5 * masses.lower_beta(self.df / 2, 0.5, 1 / (1 + squared), squared / (1 + squared))
        return jnp.where(t < 0, tail, 1 - tail)

    def _log_constant(self) -> Any:
        ratio = special.gammaln((self.df + 1) / 2) - special.gammaln(self.df / 2)
        return ratio - 0.5 * jnp.log(self.df * jnp.pi)

    def _normalised(self, t: Any) -> Any:
        """u with u² = df · log(1 + t²/df) and the sign of t; smooth through zero."""
        finite = jnp.isfinite(t)
        t = jnp.where(finite, t, jnp.where(t > 0, 1e150, -1e150))
        squared = t**2 / self.df
        small = squared < 1e-6
        ratio = jnp.where(
            small, 1 - squared / 2 + squared**2 / 3, jnp.log1p(squared) / jnp.where(small, 1.0, squared)
        )
        return t * jnp.sqrt(ratio)


def _log_factor(v: Any) -> Any:
    """½ log(v / (1 − e^{−v})): what the normal kernel misses of Student's density on the scale u."""
    small = v < 1e-4
    inner = jnp.where(small, 1.0, v)
    return 0.5 * jnp.where(small, v / 2, jnp.log(inner) - jnp.log(-jnp.expm1(-inner)))


class AsinhResponse(Continuous):
    """Normal errors of asinh x."""

    def __init__(self, mean: Any, sigma: Any) -> None:
        self.of_asinh = NormalResponse(mean, sigma)
        super().__init__(mean, sigma)

    def log_prob(self, value: Any) -> Any:
        return self.of_asinh.log_prob(jnp.arcsinh(value)) - jnp.log(jnp.hypot(1.0, value))

    def log_mass(self, lower: Any, upper: Any) -> Any:
        return self.of_asinh.log_mass(jnp.arcsinh(lower), jnp.arcsinh(upper))

    def cdf(self, value: Any) -> Any:
        return self.of_asinh.cdf(jnp.arcsinh(value))

    def place(self, t: Any) -> Any:
        return jnp.sinh(t)


def student_df(program: Any) -> Any:
    """Degrees of freedom, declared or estimated; above 1, so that tails stay lighter than Cauchy's."""
    df = program.domain.setting("df")
    return 1 + numpyro.sample("df_above_one", dist.Gamma(2.0, 0.1)) if df is None else float(df)


def check_df(name: str, df: Any) -> None:
    """Refuse tails as heavy as Cauchy's, or no number."""
    if not (is_finite(df) and df > 1):
        raise SettingError(f"Family '{name}': df must be a number above 1, got {format_value(df)}.")


def _student(program: Any, eta: Any) -> InUnits:
    df = student_df(program)
    response = StudentResponse(eta, program.positive("sigma", program.residual), df)
    return InUnits(response, float(program.domain.setting("scale")))


def _asinh(program: Any, eta: Any) -> InUnits:
    response = AsinhResponse(eta, program.positive("sigma", program.residual))
    return InUnits(response, float(program.domain.setting("scale")))


FAMILIES = (
    FamilyDefinition(
        "student",
        domain=SignedAmounts,
        prior=Prior(intercept=(0.0, 10.0), slope=(0.0, 2.0)),
        options=("scale", "lower", "upper", "df"),
        checks={"df": check_df},
        response=_student,
        simulate=lambda random, z: -1 + 0.8 * z + 0.5 * random.standard_t(3, len(z)),
    ),
    FamilyDefinition(
        "asinh",
        domain=SignedAmounts,
        prior=replace(LOGS, intercept=(0.0, 5.0)),
        options=("scale", "lower", "upper"),
        exact=Asinh,
        exact_options=("scale",),
        response=_asinh,
        simulate=lambda random, z: np.sinh(-1 + 0.8 * z + random.normal(size=len(z))),
    ),
)
