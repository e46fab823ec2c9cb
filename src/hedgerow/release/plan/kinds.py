"""The parts of a plan that come in kinds: ranges, standards and weights.

    >>> CapWeights = WEIGHTS["cap"]
    >>> CapWeights(kind="cap", cap=2).build()
    CapWeights(cap=2.0, risk='lipschitz')
    >>> write(weights.ScalarWeights(0.5), "weights")
    {'kind': 'scalar', 'alpha': 0.5}

Each is a record that names its `kind`; a bare word stands for the thing with its defaults. `Part.build` makes
the Python object of a record, `write` the record of an object. A new kind is one more row of its table: its
keys are the attributes of its class.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from types import GenericAlias
from typing import Annotated, Any, ClassVar, Literal, Self, Union

from pydantic import AfterValidator, BeforeValidator, Field, create_model, model_validator

from hedgerow.errors import FieldError, did_you_mean, format_value
from hedgerow.privacy import ranges, weights
from hedgerow.privacy.censored import Censored
from hedgerow.privacy.standards import ADP, RangeAveraged, RangeTruncated, Unweighted
from hedgerow.privacy.strict import Bounded, Margin, Strict
from hedgerow.privacy.strict.limits import Noise, Relation
from hedgerow.release.document import (
    AnyText,
    ByKind,
    Finite,
    Flag,
    Number,
    Pair,
    Record,
    Text,
    needed,
    optional,
    refusal,
)

_INNER = ("wider", "then", "otherwise")  # keys of a range that hold ranges

Keys = dict[str, Any]  # key: its type and its Field


class Part(Record):
    """A record from which an object is made: the class `makes`, with the keys that were given."""

    makes: ClassVar[Any]

    def build(self) -> Any:
        """The object; what was left out has the default of its class."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return self.makes(**{k: build(v) for k, v in given.items() if k not in ("kind", "because")})


class Named(Part):
    """A part that is one of several kinds."""

    kind: str

    @model_validator(mode="after")
    def _check_reason(self) -> Self:
        known = getattr(self, "range", None)
        if known is not None and "because" not in known.model_fields_set:
            raise refusal(
                "is missing: why does the public know this range? Give the reason for the certificate, or "
                "null to have it say that none was given.",
                "range.because",
            )
        return self


Kinds = dict[str, type[Named]]


def build(value: Any) -> Any:
    """What a value of a record is in Python: objects for records, tuples for lists."""
    if isinstance(value, Part):
        return value.build()
    if isinstance(value, dict):
        return {name: build(item) for name, item in value.items()}
    return tuple(build(item) for item in value) if isinstance(value, list) else value


_BY_COLUMN = GenericAlias(dict, (str, "AnyRange"))
# The type of a key by that of the attribute it stands for. Words (Literal) stand for themselves.
_TYPES: dict[Any, Any] = {
    float: Number, str: Text, bool: Flag, Sequence[float]: list[Number], Sequence[str]: list[Text],
    ranges.Range: "AnyRange", weights.Weights: "AnyWeights",
    Mapping[str, ranges.Range]: _BY_COLUMN,
}  # fmt: skip


def _kinds(classes: Iterable[Any], described: Mapping[str, Keys], **also: Any) -> tuple[Kinds, Any]:
    """The record of each kind, and the type of a value that is one of them.

    A kind is named after its class: RangeTruncated is range-truncated, CapWeights is cap. Its keys are the
    parameters of the class, a few of them `described` where they need more words or another type, and those
    that all kinds have `also`.
    """
    kinds: Kinds = {}
    for makes in classes:
        name = re.sub("(?<=[a-z])(?=[A-Z])", "-", makes.__name__.removesuffix("Weights")).lower()
        keys: Keys = {"kind": (Literal[name], needed())}
        for key, given in signature(makes).parameters.items():
            usual = _TYPES.get(given.annotation, given.annotation)
            keys[key] = (usual, needed() if given.default is given.empty else optional())
        keys |= described.get(name, {}) | also
        kinds[name] = create_model(name, __base__=Named, __module__=__name__, **keys)
        kinds[name].makes = makes
    return kinds, Annotated[Union[tuple(kinds.values())], *ByKind]  # noqa: UP007 - made at run time


def _check_end(end: float | str) -> float | str:
    if end != end:  # no file can hold it
        raise refusal("must be a number or the name of a column, got nan.")
    return end


_END = (Annotated[Number | Text, AfterValidator(_check_end)], needed("a column or a number."))
_OUTSIDE = "a value outside its range: refuse it, or take it as public"
_BECAUSE = "why the public knows this range; null: no reason was given"
RANGES, AnyRange = _kinds(
    (
        ranges.Everywhere,
        ranges.Radius,
        ranges.Brackets,
        ranges.Bounds,
        ranges.Tail,
        ranges.Where,
        ranges.Box,
    ),
    described={
        "radius": {"a": (Number, needed("lower factor.")), "b": (Number, needed("upper factor."))},
        "brackets": {
            "edges": (list[Number], needed(min_length=2)),
            "column": (Text, optional("public column with each record's class, as its lower edge")),
        },
        "bounds": {"lower": _END, "upper": _END},
        "box": {"ranges": (_BY_COLUMN, needed("a range for some protected columns, by name."))},
    },
    outside=(Literal["error", "public"], optional(_OUTSIDE)),
    because=(Text | None, optional(_BECAUSE)),
)

_RANGE = needed(
    "a range standard says what is public: radius, brackets, bounds, …",
    json_schema_extra={"type": "object", "required": ["because"]},
)
_BOX = "a lower and an upper end for every coefficient and for sigma; of several columns by their names"
_Days = Annotated[list[Text], Field(min_length=2, max_length=2)]
_LIMITS = "smallest and largest value of the protected column that matter, chosen without looking at it"


class _Margin(Part):
    makes = Margin
    share: Finite = optional("of ε, for counts that keep the distribution", gt=0, lt=1)


_KEEP = "share of the prior's draws whose log density a window holds"
STANDARDS, AnyStandard = _kinds(
    (Unweighted, ADP, RangeAveraged, RangeTruncated, Strict, Censored),
    described={
        "range-averaged": {"range": (AnyRange, _RANGE)},
        "range-truncated": {
            "range": (AnyRange, _RANGE),
            "inside": (Flag, optional("draw copies inside their ranges, which must be public")),
        },
        "strict": {
            "inside": (Flag, optional("with relation: range, draw copies inside their public sets")),
            "box": (dict[str, Pair | dict[str, Pair]], optional(_BOX)),
            "reason": (AnyText, optional("why limits or box may be known without the data")),
            "limits": (
                Pair | _Days | dict[str, Pair | _Days],
                optional(f"{_LIMITS}, or two dates; of several columns by their names"),
            ),
            "shares": (dict[str, Finite], optional("how ε is divided among columns; evenly without it")),
            "relation": (
                Relation,
                optional("what ε compares: one outcome withheld, replaced, or in its range"),
            ),
            "range": (
                AnyRange,
                optional("with relation: range, the sets that an outcome is replaced within"),
            ),
            "margin": (
                _Margin,
                optional("noisy counts, for copies that keep the distribution of the column"),
            ),
            "noise": (Noise, optional("laplace: pure ε; gaussian: ε at delta; auto: the better one")),
        },
        "censored": {
            "keep": (Number, optional(_KEEP, gt=0)),
            "reason": (AnyText, optional("why the prior may be known without the data")),
        },
    },
)
# Those that bring their own weights and bound.
BOUNDED = tuple(name for name, model in STANDARDS.items() if issubclass(model.makes, Bounded))

WEIGHTS, AnyWeights = _kinds(
    (
        weights.LinearWeights,
        weights.SoftmaxWeights,
        weights.LogisticWeights,
        weights.InverseWeights,
        weights.CapWeights,
        weights.ScalarWeights,
        weights.PlannedWeights,
        weights.IdentificationWeights,
        weights.Reweighted,
    ),
    described={},
)


def _check_weights(given: Any) -> Any:
    """Somebody who knows surveys takes the word for a column of theirs."""
    if isinstance(given, str) and given not in WEIGHTS:
        hint = did_you_mean(given, WEIGHTS) or f" {weights.NOT_OF_A_SURVEY}"
        raise refusal(f"must be one of {', '.join(WEIGHTS)}, got {format_value(given)}.{hint}")
    return given


AnyWeights = Annotated[AnyWeights, BeforeValidator(_check_weights)]
for _model in (*RANGES.values(), *STANDARDS.values(), *WEIGHTS.values()):
    _model.model_rebuild()  # now that AnyRange and AnyWeights are there


def write(value: Any, what: str) -> dict[str, Any]:
    """The record of "a range", "a standard" or "weights"; only those that a plan knows can be written."""
    kinds = {"a range": RANGES, "a standard": STANDARDS, "weights": WEIGHTS}[what]
    kind = next((name for name, model in kinds.items() if model.makes is type(value)), None)
    if kind is None:
        known = ", ".join(kinds)
        raise FieldError(f"{type(value).__name__} cannot be written in a plan; {what} may be {known}.")
    written: dict[str, Any] = {"kind": kind}
    keys = kinds[kind].model_fields.keys() - {"kind", "because"}
    if isinstance(value, Strict):
        keys &= (
            {"limits", "shares", "relation", "margin", "noise", "inside", "reason"}
            if value.by_statistics
            else {"box", "reason"}
        )
        keys |= {"range"} if value.relation == "range" else set()
    for key in keys:
        item = value.value if isinstance(value, weights.ScalarWeights) else getattr(value, key)
        if item is None or (key == "inside" and not item):  # plans and accounts from before stay the same
            continue
        if isinstance(item, ranges.Range):
            item = write(item, "a range")
        elif isinstance(value, ranges.Box) and key == "ranges":
            item = {name: write(part, "a range") for name, part in value.ranges.items()}
        elif isinstance(item, weights.Weights):
            item = write(item, "weights")
        elif isinstance(value, Strict) and value.by_column and key == "box":
            item = {name: dict(part) for name, part in (value.box or {}).items()}
        elif isinstance(item, Margin):
            item = {"share": item.share}
        written[key] = dict(item) if isinstance(item, Mapping) else item
    return written


def take_reasons(given: Any, path: str = "") -> dict[str, str | None]:
    """The reasons in a written range, by the place of the range they belong to."""
    reasons = {path: given["because"]} if isinstance(given, Mapping) and "because" in given else {}
    for name, part in _inner(given):
        reasons |= take_reasons(part, f"{path}.{name}".lstrip("."))
    return reasons


def _inner(given: Any) -> list[tuple[str, Any]]:
    """The ranges inside a written one, by their places."""
    if not isinstance(given, Mapping):
        return []
    found = [(name, given[name]) for name in _INNER if name in given]
    columns = given.get("ranges")
    columns = columns if isinstance(columns, Mapping) else {}
    return [*found, *((f"ranges.{name}", part) for name, part in columns.items())]


def put_reasons(written: dict[str, Any], reasons: Mapping[str, str | None], path: str = "") -> None:
    """Puts reasons back where `take_reasons` found them."""
    for name, part in _inner(written):
        put_reasons(part, reasons, f"{path}.{name}".lstrip("."))
    if path in reasons:
        written["because"] = reasons[path]
