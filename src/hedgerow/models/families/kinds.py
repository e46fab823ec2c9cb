"""What is known of each named family before any data: outcome in words, default prior, settings."""

from collections.abc import Mapping
from dataclasses import dataclass

from hedgerow.models.prior import Prior

SPIKE = Prior(intercept=(0.0, 5.0), slope=(0.0, 5.0))
_LOGS = Prior(intercept=(0.0, 20.0), slope=(0.0, 10.0))
_LOGITS = Prior(intercept=(0.0, 5.0), slope=(0.0, 5.0))
_COUNTS = Prior(intercept=(0.0, 10.0), slope=(0.0, 10.0))


@dataclass(frozen=True)
class Kind:
    """What is known of a family before any data: public."""

    values: str  # what its outcome may be, in words for errors
    prior: Prior  # its default, on the scale of its regression
    options: tuple[str, ...] = ("lower", "upper")
    own_level: bool = False  # its locations or cut points stand in for the intercept
    whole: bool = False  # whole numbers or classes
    positive: bool = False


_POSITIVE = Kind("positive numbers", _LOGS, positive=True)
KINDS: Mapping[str, Kind] = {
    "normal": Kind("numbers", Prior()),
    "lognormal": _POSITIVE,
    "gamma": _POSITIVE,
    "weibull": _POSITIVE,
    "log_student": Kind("positive numbers", _LOGS, ("lower", "upper", "df"), positive=True),
    "lognormal_mixture": Kind(
        "positive numbers", _LOGS, ("lower", "upper", "components"), own_level=True, positive=True
    ),
    "beta": Kind("numbers strictly between lower and upper", _LOGITS),
    "poisson": Kind("whole numbers from 0 up", _COUNTS, whole=True),
    "negative_binomial": Kind("whole numbers from 0 up", _COUNTS, whole=True),
    "bernoulli": Kind("0 and 1, or two levels", _LOGITS, ("levels",), whole=True),
    "ordinal": Kind("classes in order", _LOGITS, ("lower", "upper", "levels"), own_level=True, whole=True),
}
_SPIKED = tuple(name for name, kind in KINDS.items() if not kind.whole)
NAMES = (*KINDS, *(f"zero_{name}" for name in _SPIKED))
COUNTED = ("poisson", "negative_binomial")
OPTIONS = ("lower", "upper", "spike", "components", "levels", "df")
EXACT = ("normal", "lognormal")  # without further settings these have a closed form
