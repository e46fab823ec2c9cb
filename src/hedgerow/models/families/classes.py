"""Classes: two of them (bernoulli), more in order (ordinal) or in none (categorical)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from hedgerow.arrays import Array, Mask
from hedgerow.errors import SettingError, format_value, is_finite
from hedgerow.models.families.definition import LOGITS, FamilyDefinition, Numbers
from hedgerow.models.lazy import dist, jax, jnp, masses, numpyro
from hedgerow.models.programs.response import Response
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table
from hedgerow.tables.values import ANYWHERE, Support

_MOST_CLASSES = 100


@dataclass(frozen=True)
class Classes(Numbers):
    """Declared classes in order, drawn as they are: labels, or numbers of the table."""

    whole: ClassVar[bool] = True
    most_classes: ClassVar[int] = _MOST_CLASSES

    def check_ends(self, low: float, high: float) -> None:
        super().check_ends(low, high)
        if np.isfinite(high - low) and high - low >= self.most_classes:
            raise SettingError(
                f"Family '{self.family}': lower and upper may span at most {self.most_classes} classes, got "
                f"{high - low + 1:g}. Merge classes, or choose a family for counts."
            )

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.setting("levels")
        if given is None:
            return
        levels = tuple(given) if isinstance(given, list | tuple) else ()
        texts = all(isinstance(level, str) for level in levels)
        numbers = all(is_finite(level) for level in levels)
        wrong_count = not 2 <= len(levels) <= self.most_classes
        if not (texts or numbers) or wrong_count or len(set(levels)) < len(levels):
            raise SettingError(
                f"Family '{self.family}': levels must be {self._class_counts} different words, or numbers, "
                f"in order, got {format_value(given)}."
            )
        if self.lower is not None or self.upper is not None:
            raise SettingError(f"Family '{self.family}': give levels=, or lower= and upper=, not both.")
        if numbers and list(levels) != sorted(levels):
            raise SettingError(
                f"Family '{self.family}': numeric levels must increase, got {format_value(given)}."
            )

    @property
    def _class_counts(self) -> str:
        return "two" if self.most_classes == 2 else f"2 to {self.most_classes}"

    def find_support(self) -> Support:
        return ANYWHERE

    def classes(self, table: Table, outcome: str) -> tuple[Any, ...] | None:
        declared = self.setting("levels")
        words = declared is not None and isinstance(declared[0], str)
        if table.is_numeric(outcome):
            if words:
                raise SettingError(
                    f"family='{self.family}': column '{outcome}' holds numbers, but levels= are words. Give "
                    "the numbers as levels, in order, or turn the column into labels."
                )
            if not table.holds(outcome, self._numeric_places):
                raise SettingError(
                    f"family='{self.family}': the type of column '{outcome}' does not have all declared "
                    "classes. Convert it to a type that has, or declare other classes."
                )
            return None
        if self.lower is not None or self.upper is not None:
            raise SettingError(
                f"family='{self.family}': column '{outcome}' holds labels, but lower= and upper= are for "
                "whole numbers. Give levels= in order instead."
            )
        if table.is_boolean(outcome):
            if declared is not None:
                raise SettingError(
                    f"family='{self.family}': column '{outcome}' holds true and false. Leave levels= out."
                )
            return (False, True)
        if declared is not None:
            return declared
        # A category that was made from the data has the classes that occur in it: `describe` names them.
        levels = table.categories(outcome)
        if not levels:
            raise SettingError(
                f"family='{self.family}': column '{outcome}' holds labels. Declare them in order, for "
                f'instance Family("{self.family}", levels=["low", "high"]): classes must be public, so they '
                "are not read from the data."
            )
        if not 2 <= len(levels) <= self.most_classes or len(set(map(str, levels))) < len(levels):
            raise SettingError(
                f"family='{self.family}' takes {self._class_counts} different classes, but the category type "
                f"of column '{outcome}' has {len(levels)}. Give the column another type, or say levels=."
            )
        return levels

    def levels(self, table: Table, outcome: str) -> tuple[Any, ...] | None:
        return self.classes(table, outcome) or self._numeric_places

    def describe(self, design: Design) -> str:
        declared = super().describe(design)
        if self.setting("levels") is not None or design.levels is None or design.levels == (False, True):
            return declared
        read = f"levels {', '.join(map(str, design.levels))} (from the column's type)"
        return f"{declared}, {read}" if declared else read

    def fits(self, values: Array, design: Design) -> Mask:
        return np.isin(values, self.places(design))

    def takes(self, design: Design) -> str:
        return f"{len(self.places(design))} declared classes"

    def remedy(self) -> str:
        return "Declare every class that may occur with levels=, in order."

    def truncate(self, response: Any) -> Response:
        return response

    def places(self, design: Design) -> tuple[float, ...]:
        if design.levels is not None:
            return tuple(float(place) for place in range(len(design.levels)))
        return self._numeric_places

    @property
    def _numeric_places(self) -> tuple[float, ...]:
        levels = self.setting("levels")
        if levels is not None:
            return tuple(float(level) for level in levels)
        if self.lower is None or self.upper is None:
            raise SettingError(
                f"family='{self.family}' needs its classes, in order: levels=[...], or lower= and upper= for "
                f'whole numbers (--family "{{kind: {self.family}, lower: 1, upper: 5}}"). They must be '
                "public, so they are not read from the data."
            )
        return tuple(float(place) for place in range(int(self.lower), int(self.upper) + 1))


@dataclass(frozen=True)
class TwoClasses(Classes):
    """Two classes: 0 and 1 unless declared."""

    most_classes: ClassVar[int] = 2

    @property
    def _numeric_places(self) -> tuple[float, ...]:
        return (0.0, 1.0) if self.setting("levels") is None else super()._numeric_places


class Ordered(Response):
    """Classes in order: P(class ≤ j) = expit(cut_j − `shift`), for the classes at `places`."""

    discrete = True

    def __init__(self, shift: Any, cuts: Any, places: Any) -> None:
        self.shift, self.cuts, self.places = shift, cuts, jnp.asarray(places)
        super().__init__(shift)

    def log_prob(self, value: Any) -> Any:
        """As `_between`, whose last term is one number for each class, whatever the record."""
        at = self.places == jnp.expand_dims(value, -1)
        gaps = jnp.pad(masses.log1mexp(jnp.diff(self.cuts)), 1)
        by_class = jnp.stack([jnp.pad(self.cuts, (1, 0)), jnp.pad(self.cuts, (0, 1)), gaps], axis=-1)
        low, high, gap = jnp.moveaxis(at.astype(by_class.dtype) @ by_class, -1, 0)
        starts, ends = ~at[..., 0], ~at[..., -1]
        found = (
            jnp.where(ends, masses.log_sigmoid(high - self.shift), 0.0)
            + jnp.where(starts, masses.log_sigmoid(self.shift - low), 0.0)
            + gap
        )
        return jnp.where(at.any(axis=-1), found, -jnp.inf)

    def log_mass(self, lower: Any, upper: Any) -> Any:
        first = jnp.searchsorted(self.places, lower)
        last = jnp.searchsorted(self.places, upper, side="right") - 1
        return jnp.where(last >= first, self._between(first, jnp.maximum(first, last)), -jnp.inf)

    def quantile(self, uniforms: Any) -> Any:
        below = jax.nn.sigmoid(self.cuts - jnp.expand_dims(self.shift, -1))
        return self.places[jnp.sum(uniforms[..., None] > below, axis=-1)]

    def _between(self, first: Any, last: Any) -> Any:
        """log(expit(a) − expit(b)) = log expit(a) + log expit(−b) + log(1 − exp(b − a)), digits kept."""
        low, high = self._cut(first - 1) - self.shift, self._cut(last) - self.shift
        starts, ends = first > 0, last < len(self.places) - 1
        both = starts & ends
        gap = masses.log1mexp(jnp.where(both, high - low, 1.0))
        return (
            jnp.where(ends, masses.log_sigmoid(high), 0.0)
            + jnp.where(starts, masses.log_sigmoid(-low), 0.0)
            + jnp.where(both, gap, 0.0)
        )

    def _cut(self, place: Any) -> Any:
        """The cut point above a class, as a product: the gradient of indexing is slow to compute."""
        return jax.nn.one_hot(place, len(self.places) - 1, dtype=self.cuts.dtype) @ self.cuts


def _ordinal(program: Any, eta: Any) -> Ordered:
    # Shares of the classes at the predictors' means, all shares alike likely; the cut points follow.
    share = numpyro.sample("share", dist.Dirichlet(jnp.ones(len(program.places))))
    below = jnp.cumsum(share)[:-1]
    above = jnp.cumsum(share[::-1])[::-1][1:]  # 1 − below, digits kept
    return Ordered(eta, jnp.log(below) - jnp.log(above), np.array(program.places))


class Unordered(Response):
    """Classes without an order: P(class j) ∝ exp(logit_j), the first logit being 0."""

    discrete = True

    def __init__(self, logits: Any, places: Any) -> None:
        first = jnp.zeros((*jnp.shape(logits)[:-1], 1))
        self.log_shares = jax.nn.log_softmax(jnp.concatenate([first, logits], axis=-1))
        self.places = jnp.asarray(places)
        super().__init__(logits[..., 0])

    def log_prob(self, value: Any) -> Any:
        place = jnp.searchsorted(self.places, value)
        known = jnp.take(self.places, place, mode="clip") == value
        chosen = jax.nn.one_hot(place, len(self.places), dtype=self.log_shares.dtype)
        return jnp.where(known, (chosen * self.log_shares).sum(axis=-1), -jnp.inf)

    def log_mass(self, lower: Any, upper: Any) -> Any:
        inside = (self.places >= jnp.expand_dims(lower, -1)) & (self.places <= jnp.expand_dims(upper, -1))
        return jax.scipy.special.logsumexp(self.log_shares, axis=-1, where=inside)

    def quantile(self, uniforms: Any) -> Any:
        below = jnp.cumsum(jnp.exp(self.log_shares), axis=-1)[..., :-1]
        return self.places[jnp.sum(jnp.expand_dims(uniforms, -1) > below, axis=-1)]


FAMILIES = (
    FamilyDefinition(
        "bernoulli",
        domain=TwoClasses,
        prior=LOGITS,
        options=("levels",),
        response=lambda program, eta: Ordered(eta, jnp.zeros(1), np.array(program.places)),
        simulate=lambda random, z: random.uniform(size=len(z)) < expit(z - 2.5),
    ),
    FamilyDefinition(
        "ordinal",
        domain=Classes,
        prior=LOGITS,
        options=("lower", "upper", "levels"),
        own_level=True,
        uniform_level=True,
        response=_ordinal,
        simulate=lambda random, z: 1 + np.digitize(z - 2 + random.logistic(size=len(z)), [-1.0, 0.5, 2.0]),
    ),
    FamilyDefinition(
        "categorical",
        domain=Classes,
        prior=LOGITS,
        options=("lower", "upper", "levels"),
        by_class=True,
        response=lambda program, eta: Unordered(eta, np.array(program.places)),
        simulate=lambda random, z: (
            1 + np.argmax(np.outer(z - 2, [0.0, 1.0, -0.5]) + random.gumbel(size=(len(z), 3)), axis=1)
        ),
    ),
)
