"""What goes leaf by leaf: exact models, with every standard, weight and bound that is made for them.

The rest is refused here, before a record is read: never something else in its place.
"""

from hedgerow.errors import SettingError
from hedgerow.models.base import Mergeable
from hedgerow.models.chain import Chain
from hedgerow.privacy.ranges import Bounds, Range
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict import Bounded
from hedgerow.privacy.weights import (
    CallableWeights,
    CapWeights,
    FixedWeights,
    IdentificationWeights,
    Normalised,
    PlannedWeights,
    ScalarWeights,
)
from hedgerow.tables.design import Design

_IN_MEMORY = "Give a table that fits into memory, without --stream"


def check_streamed(settings: Settings) -> None:
    """Refuse settings that need all records at once."""
    reason = _reason(settings) or _of_weights(settings) or _of_range(settings.standard.range)
    if reason:
        raise SettingError(f"Leaf by leaf: {reason}")


def check_pieces(settings: Settings, design: Design) -> None:
    """Refuse ranges whose probability is simulated: its ends hold for all records at once."""
    model = settings.model
    if isinstance(model, Chain) and model.simulates(design, settings.standard.range.restricts):
        raise SettingError(
            "Leaf by leaf: the probability of these ranges together is simulated, for all records at once. "
            f"{_IN_MEMORY}, or leave out the ranges of columns that others read."
        )


def _reason(settings: Settings) -> str:
    if isinstance(settings.standard, Bounded):
        return (
            f"{settings.standard.label} has a mechanism of its own. Use Strict(limits=…), ADP() or a range "
            "standard."
        )
    pairs = zip(settings.links, settings.models, strict=True)
    other = [(link, model.name) for link, model in pairs if not isinstance(model, Mergeable)]
    if other and other[0][0].role == "kind":
        return (
            f"{other[0][0].named} follow the column's own formula, by a model that is sampled with all "
            f"records at once. {_IN_MEMORY}, or say which public categories they follow: kinds_by, such as "
            "C(region)."
        )
    if other:
        return (
            f"the {other[0][1]} family is sampled with all records at once. {_IN_MEMORY}, or use the normal, "
            "lognormal, asinh or dirichlet family."
        )
    if settings.unit is not None:
        return f"the rows of a unit may lie in several leaves. {_IN_MEMORY}, or leave unit out."
    if settings.debias:
        return f"corrections (debias) simulate whole tables. {_IN_MEMORY}, or say debias=False."
    return ""


def _of_weights(settings: Settings) -> str:
    weights = settings.weights.unraised
    if not settings.standard.weighted:
        return ""
    name = type(weights).__name__
    if isinstance(weights, CallableWeights):
        return (
            "a function of the risks of all records cannot be cut into leaves. Use weights of ours, such as "
            "CapWeights(cap), or one number per record."
        )
    if isinstance(weights, IdentificationWeights):
        return f"{name} compare each value with all others. {_IN_MEMORY}, or use CapWeights(cap)."
    known = Normalised | CapWeights | ScalarWeights | FixedWeights | PlannedWeights
    if not isinstance(weights, known):
        return f"{name} is no rule of ours, and may read all records. Use CapWeights(cap) or another of ours."
    return ""


def _of_range(public_range: Range) -> str:
    if isinstance(public_range, Bounds) and not public_range.ends_public:
        return "Bounds by record are read from columns. Put them into two columns and name these."
    return next((reason for _, part in public_range.parts().values() if (reason := _of_range(part))), "")
