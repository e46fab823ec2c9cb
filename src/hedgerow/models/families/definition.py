"""What a family is: everything about it in one object, in one file, before any data.

To add a family, write a `FamilyDefinition` in a module of its kind (`positive`, `counts`, ...), or in one's
own and `register` it (docs/programs.md, "A family of your own"). Its formulas are a `Response`. A family of
continuous values has a `zero_` variant with a spike, of itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hedgerow.arrays import Array, Mask
from hedgerow.errors import DataError, SettingError, format_value, is_finite
from hedgerow.models.base import Domain
from hedgerow.models.exact import Regression
from hedgerow.models.prior import Prior
from hedgerow.models.programs.response import Response, Rounded, Truncated
from hedgerow.tables.design import Design
from hedgerow.tables.values import Support

if TYPE_CHECKING:
    from hedgerow.models.families.program import FamilyProgram

LOGS = Prior(intercept=(0.0, 20.0), slope=(0.0, 1.0))
LOGITS = Prior(intercept=(0.0, 5.0), slope=(0.0, 2.0))
SPIKE = LOGITS  # of the share of values at the spike
SPIKED = "zero_"


@dataclass(frozen=True)
class Numbers(Domain):
    """Numbers on the whole line or between declared ends, and perhaps a spike; refuses what contradicts."""

    support: Support = field(init=False)
    atoms: bool = field(init=False)
    family: str  # its name, for messages
    spiked: bool
    settings: tuple[tuple[str, Any], ...]  # what was declared, by name
    words: ClassVar[str] = "numbers"
    whole: ClassVar[bool] = False  # whole numbers or classes
    log_scale: ClassVar[bool] = False  # whether the regression is on the scale of logarithms
    least: ClassVar[float] = -np.inf  # the ends where none is declared
    most: ClassVar[float] = np.inf

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "spike"):
            value = self.setting(name)
            if value is not None and not is_finite(value):
                raise SettingError(
                    f"Family '{self.family}': {name} must be a finite number, got {format_value(value)}. "
                    "Leave it out where nothing is known."
                )
            if value is not None and name != "spike" and self.whole and value != int(value):
                raise SettingError(
                    f"Family '{self.family}': {name} must be a whole number, got {format_value(value)}."
                )
        self.check_ends(*self.ends)
        self._check_rounding()
        support = self.find_support()
        if self.rounded is not None:  # what lies inside may be rounded onto an end
            support = replace(support, above=False, below=False)
        object.__setattr__(self, "support", support)
        object.__setattr__(self, "atoms", self.whole or self.spiked or self.rounded is not None)

    def setting(self, name: str) -> Any:
        """A setting as it was declared; None for one that was not."""
        return dict(self.settings).get(name)

    @property
    def lower(self) -> float | None:
        """The declared lower end."""
        return self.setting("lower")

    @property
    def upper(self) -> float | None:
        """The declared upper end."""
        return self.setting("upper")

    @property
    def spike(self) -> float | None:
        """Where the point mass is; None: there is none."""
        return float(self.setting("spike") or 0.0) if self.spiked else None

    @property
    def rounded(self) -> float | None:
        """The step to multiples of which every value is known to be rounded; None: values are as they are."""
        step = self.setting("rounded")
        return None if step is None else float(step)

    def _check_rounding(self) -> None:
        step = self.setting("rounded")
        if step is None:
            return
        if not is_finite(step) or step <= 0:
            raise SettingError(
                f"Family '{self.family}': rounded must be a positive number, got {format_value(step)}. "
                "Give the step to which values are rounded, such as 100."
            )
        for name, value in (("lower", self.lower), ("upper", self.upper), ("spike", self.spike)):
            if value is not None and not bool(is_multiple(np.array(float(value)), float(step))):
                raise SettingError(
                    f"Family '{self.family}': {name} must be a multiple of rounded={format_setting(step)}, "
                    f"got {format_setting(value)}: values are rounded inside the ends."
                )

    @property
    def ends(self) -> tuple[float, float]:
        """Where the outcome may lie; infinite where nothing was said."""
        low, high = self.lower, self.upper
        return self.least if low is None else float(low), self.most if high is None else float(high)

    def check_ends(self, low: float, high: float) -> None:
        """Refuse ends that leave no room."""
        if not low < high:
            raise SettingError(
                f"Family '{self.family}': lower must be below upper, got {format_setting(low)} and "
                f"{format_setting(high)}. Give the lower one first."
            )

    def find_support(self) -> Support:
        """Where copies are kept."""
        return Support(*self.ends, spike=self.spike)

    def describe(self, design: Design) -> str:
        return ", ".join(f"{name} {format_setting(value)}" for name, value in self.settings)

    def fits(self, values: Array, design: Design) -> Mask:
        """Which values the family has a place for, apart from its spike."""
        low, high = self.ends
        return (values >= low) & (values <= high)

    def takes(self, design: Design) -> str:
        """What the family has a place for, in words."""
        ends = [(name, value) for name, value in self.settings if name in ("lower", "upper")]
        return ", ".join([self.words, *(f"{name} {format_setting(value)}" for name, value in ends)])

    def remedy(self) -> str:
        """What to do about values that do not fit."""
        spike = f" zero_{self.family} has a spike for values that recur, such as zero."
        return (
            "Declare other ends, lower= and upper=, if they are public, or choose another family."
            f"{'' if self.spiked else spike}"
        )

    def check_values(self, design: Design) -> None:
        """Refuse an outcome the family cannot describe; messages give counts, not values."""
        values, apart, place = design.values, "", ""
        if self.spiked:
            values = values[values != self.spike]
            apart, place = " apart from its spike", f" at {format_setting(self.spike)}"
        allowed = self.fits(values, design)
        if self.rounded is not None:
            # Something that is rounded to the value must fit, on one side of it or the other.
            for side in (-0.25, 0.25):
                allowed |= self.fits(values + side * self.rounded, design)
            apart += f", in multiples of {format_setting(self.rounded)}"
            allowed &= is_multiple(values, self.rounded)
        bad = int((~allowed).sum())
        if bad:
            raise DataError(
                f"Column '{design.outcome}' has {bad} values in {design.records} rows that the {self.family} "
                f"family does not allow; it takes {self.takes(design)}{apart}{place}. {self.remedy()}"
            )
        if not self.whole and self.rounded is None and len(values) > 1 and np.ptp(values) == 0:
            raise DataError(
                f"Column '{design.outcome}' has one value only{apart}: the {self.family} family would shrink "
                "onto it without end. Leave such a column out, or choose a family for counts or classes."
            )

    def round(self, response: Response) -> Response:
        """The response as it is recorded."""
        return response if self.rounded is None else Rounded(response, self.rounded)

    def truncate(self, response: Any) -> Response:
        """The response between the declared ends."""
        if self.lower is None and self.upper is None:
            return response
        return Truncated(response, *self.ends)

    def places(self, design: Design) -> tuple[float, ...]:
        """Where ordered classes lie on the scale of the outcome's values; empty for numbers."""
        return ()


@dataclass(frozen=True)
class PositiveNumbers(Numbers):
    """Numbers above zero."""

    words: ClassVar[str] = "positive numbers"
    log_scale: ClassVar[bool] = True

    def check_ends(self, low: float, high: float) -> None:
        if self.lower is not None and self.lower < 0:
            raise SettingError(
                f"Family '{self.family}': lower must not be negative, got {format_value(self.lower)}."
            )
        if high <= 0:
            raise SettingError(
                f"Family '{self.family}' is for positive numbers: upper must be above 0, got "
                f"{format_value(self.upper)}."
            )
        super().check_ends(low, high)

    def remedy(self) -> str:
        signs = " For negative values there are family='student' and family='asinh'."
        return super().remedy() + signs

    def find_support(self) -> Support:
        low, high = self.ends
        return Support(max(low, 0.0), high, above=low <= 0, spike=self.spike)

    def fits(self, values: Array, design: Design) -> Mask:
        return super().fits(values, design) & (values > 0)


@dataclass(frozen=True, eq=False)
class FamilyDefinition:
    """Everything about a family, before any data: public.

    - `domain`: what values its outcome may take, and how declared ends restrict them;
    - `prior`: its default, on the scale of its regression, which never looks at the outcome;
    - `response`: the distribution of the outcome at the linear predictor η; further parameters are NumPyro
      sites, such as `program.positive("shape", guess)`;
    - `simulate`: an outcome that depends on z ~ Normal(2, 1), for `hedgerow.datasets.family`;
    - `options`: settings of `Family` that it takes, and `checks` of those that are not its domain's.
    """

    name: str
    _: KW_ONLY
    domain: type[Numbers]
    prior: Prior
    response: "Callable[[FamilyProgram, Any], Response]"
    simulate: Callable[[np.random.Generator, Array], Any]
    options: tuple[str, ...] = ("lower", "upper")
    checks: Mapping[str, Callable[[str, Any], None]] = field(default_factory=dict)
    own_level: bool = False  # its locations or cut points stand in for the intercept
    uniform_level: bool = False  # ... and have a uniform prior, so that none can be given
    by_class: bool = False  # a regression for each class but the first: η has a column for each
    exact: type[Regression] | None = None  # its closed form
    exact_options: tuple[str, ...] = ()  # settings that the closed form takes; with others there is none


_DEFINITIONS: dict[str, FamilyDefinition] = {}


def register(definition: FamilyDefinition) -> None:
    """Make a family known by its name, here and in `hr.Synthesizer`."""
    if definition.name in family_names():
        raise SettingError(f"There is a family '{definition.name}' already. Choose another name.")
    _DEFINITIONS[definition.name] = definition


def family_names() -> tuple[str, ...]:
    """All families, the `zero_` variants last."""
    continuous = (name for name, family in _DEFINITIONS.items() if not family.domain.whole)
    return (*_DEFINITIONS, *(f"{SPIKED}{name}" for name in continuous))


def find_definition(name: Any) -> FamilyDefinition:
    """The definition of a family, which a `zero_` variant shares."""
    if not isinstance(name, str) or name not in family_names():
        raise SettingError(f"family must be one of {', '.join(family_names())}, got {format_value(name)}.")
    return _DEFINITIONS[name if name in _DEFINITIONS else name.removeprefix(SPIKED)]


def is_multiple(values: Array, step: float) -> Mask:
    """Which values are multiples of a step, as floating-point numbers are."""
    whole = values / step
    return np.isclose(whole, np.rint(whole), rtol=1e-12, atol=1e-9)


def format_setting(value: Any) -> str:
    """A setting with all its digits."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return repr(value.item() if isinstance(value, np.generic) else value).removesuffix(".0")
