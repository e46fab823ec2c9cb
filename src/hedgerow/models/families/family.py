"""The named families that have no closed form: one word, or `Family(word, ...)` with public settings.

Each is a regression of one parameter (a mean, a scale, a logit) on the design matrix, written as a NumPyro
program and sampled by NUTS. docs/families.md has a section for each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.arrays import Array
from hedgerow.errors import DataError, SettingError, is_count, is_finite
from hedgerow.models.domain import Domain
from hedgerow.models.families.kinds import COUNTED, EXACT, KINDS, NAMES, OPTIONS, SPIKE, Kind
from hedgerow.models.prior import Prior, is_intercept
from hedgerow.models.programs.sampled import Sampled
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table
from hedgerow.tables.values import ANYWHERE, Support

if TYPE_CHECKING:
    from hedgerow.models.programs.potential import Traced

_MOST_TERMS = 2000  # whole numbers a truncated count may range over: its mass is a sum of so many terms
_MOST_CLASSES = 100
_MOST_COUNTED = 10**9  # counts beyond it have log probabilities that are small differences of huge terms


@dataclass(frozen=True)
class Family(Sampled):
    """A family by name, with what is publicly known about its outcome.

    Parameters
    ----------
    name
        One of docs/families.md, for instance "gamma", "zero_lognormal" or "ordinal".
    prior
        A `Prior` on the scale of the regression; its intercept is meant at the predictors' means.
    lower, upper
        Public ends of the support. The distribution is restricted to them; for "beta" they are its ends
        (0 and 1 by default), for "ordinal" the first and last class.
    spike
        Where a `zero_` family has its point mass: 0 unless said otherwise.
    components
        How many lognormals "lognormal_mixture" has; 2 unless said otherwise.
    levels
        The classes of "ordinal" in order, or the two of "bernoulli": public, not read from the data.
    df
        Degrees of freedom of "log_student"; estimated unless given.

    Formal guarantees
    -----------------
    Priors, supports and levels never look at the outcome. An ordered category brings its classes with its
    type, which is public only if it was not made from the data: the guarantee then names them and says that
    it rests on that. Draws are those of a Markov chain, so statements about them are approximate.
    """

    name: str
    prior: Prior | None = None
    lower: float | None = field(default=None, kw_only=True)
    upper: float | None = field(default=None, kw_only=True)
    spike: float | None = field(default=None, kw_only=True)
    components: int | None = field(default=None, kw_only=True)
    levels: tuple[Any, ...] | None = field(default=None, kw_only=True)
    df: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name not in NAMES:
            raise SettingError(f"family must be one of {', '.join(NAMES)}, got {self.name!r}.")
        if self.prior is not None and not isinstance(self.prior, Prior):
            raise SettingError(f"prior must be a Prior, got {type(self.prior).__name__}.")
        if (
            self._base == "ordinal"
            and self.prior is not None
            and tuple(self.prior.intercept) != (0.0, 1000.0)
        ):
            raise SettingError(
                "Family 'ordinal' has shares of its classes in place of an intercept, all alike likely "
                "beforehand. Leave intercept= out of its prior."
            )
        allowed = (*self._kind.options, *(("spike",) if self._spiked else ()))
        given = [name for name in OPTIONS if getattr(self, name) is not None]
        wrong = [name for name in given if name not in allowed]
        if wrong:
            raise SettingError(
                f"Family '{self.name}' has no setting {', '.join(wrong)}; it takes "
                f"{', '.join(allowed) or 'none'}."
            )
        if self.name in EXACT and not given:
            raise SettingError(
                f"Family('{self.name}') is for a declared lower= or upper=. Without them it has a closed "
                f"form: say family='{self.name}'."
            )
        self._check_sampler()
        self._check_ends()
        self._check_numbers()
        if self.levels is not None:
            object.__setattr__(self, "levels", self._checked_levels())

    @property
    def domain(self) -> Domain:
        return _FamilyDomain(self.support, self.atoms, self)

    def classes(self, table: Table, outcome: str) -> tuple[Any, ...] | None:
        if "levels" not in self._kind.options:
            return None
        words = self.levels is not None and isinstance(self.levels[0], str)
        if table.is_numeric(outcome):
            if words:
                raise SettingError(
                    f"family='{self.name}': column '{outcome}' holds numbers, but levels= are words. Give "
                    "the numbers as levels, in order, or turn the column into labels."
                )
            if not table.holds(outcome, self._numeric_places()):
                raise SettingError(
                    f"family='{self.name}': the type of column '{outcome}' does not have all declared "
                    "classes. Convert it to a type that has, or declare other classes."
                )
            return None
        if self.lower is not None or self.upper is not None:
            raise SettingError(
                f"family='{self.name}': column '{outcome}' holds labels, but lower= and upper= are for whole "
                "numbers. Give levels= in order instead."
            )
        if table.is_boolean(outcome):
            if self.levels is not None:
                raise SettingError(
                    f"family='{self.name}': column '{outcome}' holds true and false. Leave levels= out."
                )
            return (False, True)
        if self.levels is not None:
            return self.levels
        # A category that was made from the data has the classes that occur in it: `declared` names them.
        levels = table.categories(outcome)
        if not levels:
            raise SettingError(
                f"family='{self.name}': column '{outcome}' holds labels. Declare them in order, for "
                f'instance Family("{self.name}", levels=["low", "high"]): classes must be public, so they '
                "are not read from the data."
            )
        least, most = self._class_counts
        if not least <= len(levels) <= most or len(set(map(str, levels))) < len(levels):
            raise SettingError(
                f"family='{self.name}' takes {_range(least, most)} different classes, but the category type "
                f"of column '{outcome}' has {len(levels)}. Give the column another type, or say levels=."
            )
        return levels

    @property
    def atoms(self) -> bool:
        return self._kind.whole or self._spiked

    @property
    def support(self) -> Support:
        if "levels" in self._kind.options:
            return ANYWHERE  # classes are drawn as they are
        low, high = self._ends
        spike = self._spike if self._spiked else None
        if self._base == "beta":
            return Support(low, high, above=True, below=True, spike=spike)
        if self._kind.positive:
            return Support(max(low, 0.0), high, above=low <= 0, spike=spike)
        return Support(low, high, spike=spike)

    def declared(self, design: Design) -> str:
        found = [f"{name} {_shown(value)}" for name, value in self.settings().items()]
        if self.levels is None and design.levels is not None and design.levels != (False, True):
            found.append(f"levels {_shown(design.levels)} (from the column's type)")
        return ", ".join(found)

    def settings(self) -> dict[str, Any]:
        """What was declared, by name: the part of a plan that goes with the family's name."""
        return {name: getattr(self, name) for name in OPTIONS if getattr(self, name) is not None}

    def check(self, design: Design) -> None:
        if self._kind.own_level and not any(is_intercept(design, j) for j in range(len(design.columns))):
            raise SettingError(
                f"The {self.name} family has a level of its own and needs a formula with an intercept. Leave "
                "out the '0 +' or '- 1'."
            )
        self._prior.moments(design if not self._kind.own_level else _centred(design))
        values = design.values
        if self._spiked:
            values = values[values != self._spike]
        bad, said = self._misfits(values, design)
        if bad:
            spike = f" apart from its spike at {_shown(self._spike)}" if self._spiked else ""
            raise DataError(
                f"Column '{design.outcome}' has {bad} values in {design.records} rows that the {self.name} "
                f"family does not allow; it takes {said}{spike}. {self._remedy()}"
            )
        huge = int((values > _MOST_COUNTED).sum()) if self._base in COUNTED else 0
        if huge:
            raise DataError(
                f"Column '{design.outcome}' has {huge} values in {design.records} rows above "
                f"{_MOST_COUNTED:,}; the {self.name} family takes counts up to that. Count in thousands or "
                "millions, or choose a family for continuous values."
            )
        if not self._kind.whole and len(values) > 1 and np.ptp(values) == 0:
            spike = " apart from its spike" if self._spiked else ""
            raise DataError(
                f"Column '{design.outcome}' has one value only{spike}: the {self.name} family would shrink "
                "onto it without end. Leave such a column out, or choose a family for counts or classes."
            )

    @property
    def _base(self) -> str:
        return self.name.removeprefix("zero_")

    @property
    def _spiked(self) -> bool:
        return self.name.startswith("zero_")

    @property
    def _spike(self) -> float:
        return 0.0 if self.spike is None else float(self.spike)

    @property
    def _kind(self) -> Kind:
        return KINDS[self._base]

    @property
    def _prior(self) -> Prior:
        return self._kind.prior if self.prior is None else self.prior

    @property
    def _ends(self) -> tuple[float, float]:
        """The declared support; infinite where nothing was said."""
        low = 0.0 if self._base in ("beta", *COUNTED) else -np.inf
        high = 1.0 if self._base == "beta" else np.inf
        return (
            low if self.lower is None else float(self.lower),
            high if self.upper is None else float(self.upper),
        )

    @property
    def _class_counts(self) -> tuple[int, int]:
        """The fewest and the most classes."""
        return 2, 2 if self._base == "bernoulli" else _MOST_CLASSES

    def _misfits(self, values: Array, design: Design) -> tuple[int, str]:
        """How many values the family has no place for, and what it takes, in words."""
        low, high = self._ends
        said = self._kind.values
        if "levels" in self._kind.options:
            places = self._places(design)
            return int((~np.isin(values, places)).sum()), f"{len(places)} declared classes"
        if self._base == "beta":
            return int(
                ((values <= low) | (values >= high)).sum()
            ), f"numbers strictly between {_shown(low)} and {_shown(high)}"
        good = (values >= low) & (values <= high)
        if self._kind.positive:
            good &= values > 0
        if self._kind.whole:
            good &= (values >= 0) & (values == np.rint(values))
        ends = {name: value for name, value in self.settings().items() if name in ("lower", "upper")}
        declared = [f"{name} {_shown(value)}" for name, value in ends.items()]
        return int((~good).sum()), ", ".join([said, *declared])

    def _remedy(self) -> str:
        if self._base in ("bernoulli", "ordinal"):
            return "Declare every class that may occur with levels=, in order."
        if self._kind.whole:
            return "Round them, or choose a family for continuous values."
        spike = "" if self._spiked else f" zero_{self.name} has a spike for values that recur, such as zero."
        return f"Declare other ends, lower= and upper=, if they are public, or choose another family.{spike}"

    def _places(self, design: Design) -> tuple[float, ...]:
        """Where the ordered classes lie on the scale of the outcome's values."""
        if design.levels is not None:
            return tuple(float(place) for place in range(len(design.levels)))
        return self._numeric_places()

    def _numeric_places(self) -> tuple[float, ...]:
        if self.levels is not None:
            return tuple(float(level) for level in self.levels)
        if self._base == "bernoulli":
            return (0.0, 1.0)
        if self.lower is None or self.upper is None:
            raise SettingError(
                f"family='{self.name}' needs its classes, in order: levels=[...], or lower= and upper= for "
                "whole numbers. They must be public, so they are not read from the data."
            )
        return tuple(float(place) for place in range(int(self.lower), int(self.upper) + 1))

    def _traced(self, design: Design) -> "Traced":
        try:
            from hedgerow.models.families.programs import RESPONSE, FamilyProgram
            from hedgerow.models.programs import inspection
        except ModuleNotFoundError as missing:
            raise SettingError(
                f"family='{self.name}' needs '{missing.name}', which is not installed. Install "
                "hedgerow[programs]."
            ) from None
        prior = self._prior
        program = FamilyProgram(
            self._base,
            prior.intercept,
            prior.residual,
            prior.residual_df,
            None if self.lower is None else float(self.lower),
            None if self.upper is None else float(self.upper),
            self._spike if self._spiked else None,
            2 if self.components is None else self.components,
            self._places(design) if "levels" in self._kind.options else (),
            None if self.df is None else float(self.df),
        )
        return inspection.read_own(program, RESPONSE, _shapes(self._arrays(design)))

    def _arrays(self, design: Design) -> dict[str, Any]:
        from hedgerow.models.families.programs import coefficient_arrays

        regressed = _centred(design) if self._kind.own_level else design
        arrays: dict[str, Any] = {"X": regressed.matrix}
        if regressed.columns:
            arrays["beta"] = coefficient_arrays(self._prior, regressed)
        if self._spiked:
            arrays |= {"W": design.matrix, "spike": coefficient_arrays(SPIKE, design)}
        return arrays

    def _values(self, design: Design) -> Array:
        return design.values

    def _check_ends(self) -> None:
        for name in ("lower", "upper", "spike"):
            value = getattr(self, name)
            if value is not None and not is_finite(value):
                raise SettingError(
                    f"Family '{self.name}': {name} must be a finite number, got {value!r}. Leave it out "
                    "where nothing is known."
                )
            if value is not None and name != "spike" and self._kind.whole and value != int(value):
                raise SettingError(f"Family '{self.name}': {name} must be a whole number, got {value!r}.")
        low, high = self._ends
        if self._kind.positive and self.lower is not None and self.lower < 0:
            raise SettingError(f"Family '{self.name}': lower must not be negative, got {self.lower!r}.")
        if self._kind.positive and high <= 0:
            raise SettingError(
                f"Family '{self.name}' is for positive numbers: upper must be above 0, got {self.upper!r}."
            )
        if not low < high:
            raise SettingError(
                f"Family '{self.name}': lower must be below upper, got {_shown(low)} and {_shown(high)}."
            )
        if self._base == "ordinal" and np.isfinite(high - low) and high - low >= _MOST_CLASSES:
            raise SettingError(
                f"Family '{self.name}': lower and upper may span at most {_MOST_CLASSES} classes, got "
                f"{high - low + 1:g}. Merge classes, or choose a family for counts."
            )
        if self._base in COUNTED:
            terms = high - low if np.isfinite(high) else low
            if low < 0:
                raise SettingError(f"Family '{self.name}': lower must be 0 or more, got {self.lower!r}.")
            if terms > _MOST_TERMS and self.upper is None:
                raise SettingError(
                    f"Family '{self.name}': lower may be at most {_MOST_TERMS} where no upper is given, got "
                    f"{low:g}. Declare upper, too, if it is public, or a smaller lower."
                )
            if terms > _MOST_TERMS:
                raise SettingError(
                    f"Family '{self.name}': lower and upper may span at most {_MOST_TERMS} whole numbers, "
                    f"got {terms:g}. Leave upper out."
                )

    def _check_numbers(self) -> None:
        if self.components is not None and (not is_count(self.components) or not 2 <= self.components <= 10):
            raise SettingError(
                f"Family '{self.name}': components must be a whole number from 2 to 10, got "
                f"{self.components!r}. One component is family='lognormal'."
            )
        if self.df is not None and not (is_finite(self.df) and self.df > 1):
            raise SettingError(f"Family '{self.name}': df must be a number above 1, got {self.df!r}.")

    def _checked_levels(self) -> tuple[Any, ...]:
        given = self.levels
        levels = tuple(given) if isinstance(given, list | tuple) else ()
        least, most = self._class_counts
        texts = all(isinstance(level, str) for level in levels)
        numbers = all(is_finite(level) for level in levels)
        if not (texts or numbers) or not least <= len(levels) <= most or len(set(levels)) < len(levels):
            raise SettingError(
                f"Family '{self.name}': levels must be {_range(least, most)} different words, or numbers, in "
                f"order, got {given!r}."
            )
        if self.lower is not None or self.upper is not None:
            raise SettingError(f"Family '{self.name}': give levels=, or lower= and upper=, not both.")
        if numbers and list(levels) != sorted(levels):
            raise SettingError(f"Family '{self.name}': numeric levels must increase, got {given!r}.")
        return levels


@dataclass(frozen=True)
class _FamilyDomain(Domain):
    """What a family's settings say of its outcome."""

    family: Family | None = None

    def classes(self, table: Table, outcome: str) -> tuple[Any, ...] | None:
        return self.family.classes(table, outcome) if self.family else None

    def describe(self, design: Design) -> str:
        return self.family.declared(design) if self.family else ""


def _shown(value: Any) -> str:
    """A setting with all its digits."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return repr(value.item() if isinstance(value, np.generic) else value).removesuffix(".0")


def _range(least: int, most: int) -> str:
    return "two" if least == most else f"{least} to {most}"


def _centred(design: Design) -> Design:
    """The predictors about their means, without an intercept: for models with a level of their own."""
    kept = [j for j in range(len(design.columns)) if not is_intercept(design, j)]
    matrix = design.matrix[:, kept]
    return replace(
        design, matrix=matrix - matrix.mean(axis=0), columns=tuple(design.columns[j] for j in kept)
    )


def _shapes(arrays: Mapping[str, Any]) -> tuple[Any, ...]:
    """Names and shapes of the arguments; a tuple of arrays has a tuple of shapes."""
    return tuple(
        (name, tuple(one.shape for one in value) if isinstance(value, tuple) else value.shape)
        for name, value in arrays.items()
    )
