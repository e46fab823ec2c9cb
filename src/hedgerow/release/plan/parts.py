"""The parts of a plan that go by a name: ranges, standards, weights, priors, and how they are written."""

from collections.abc import Mapping
from typing import Any, get_args

from hedgerow.models.families import FAMILIES
from hedgerow.privacy.bounds import BY_DRAWS
from hedgerow.privacy.censored import Censored
from hedgerow.privacy.ranges import Bounds, Brackets, Everywhere, Radius, Tail, Where
from hedgerow.privacy.settings import Sampling
from hedgerow.privacy.standards import ADP, RangeAveraged, RangeTruncated, Unweighted
from hedgerow.privacy.strict import Bounded, Strict
from hedgerow.privacy.weights import (
    CapWeights,
    IdentificationWeights,
    InverseWeights,
    LinearWeights,
    LogisticWeights,
    Reweighted,
    ScalarWeights,
    SoftmaxWeights,
)
from hedgerow.release.fields import (
    Choice,
    Either,
    Flag,
    Key,
    Kind,
    Kinds,
    Later,
    Named,
    Nothing,
    Number,
    Record,
    Several,
    Text,
    Whole,
)
from hedgerow.tables.files import Format
from hedgerow.tables.files.csv_writer import FORMULAS

VERSION = 1
NO_TARGET = "no-target"

_NUMBER, _TEXT = Number(), Text()
_PAIR = Several(Number(finite=True), exactly=2)
_BECAUSE = Key(
    Either((_TEXT, Nothing())), "why the public knows this range; null: no reason was given", aside=True
)
_OUTSIDE = {
    "outside": Key(Choice(("error", "public")), "a value outside its range: refuse it, or take it as public"),
    "because": _BECAUSE,
}
_RANGE = Later("range", lambda: RANGE)
_WEIGHTS = Later("weights", lambda: WEIGHTS)
_END = Either((_NUMBER, _TEXT))


def _needed(of: Any, about: str = "") -> Key:
    return Key(of, about or "it has no default.", required=True)


RANGE: Kinds = Kinds(
    "a range",
    {
        "everywhere": Kind(Everywhere, _OUTSIDE),
        "radius": Kind(
            Radius,
            {"a": _needed(Number(), "lower factor."), "b": _needed(Number(), "upper factor.")} | _OUTSIDE,
        ),
        "brackets": Kind(Brackets, {"edges": _needed(Several(_NUMBER, least=2))} | _OUTSIDE),
        "bounds": Kind(
            Bounds,
            {"lower": _needed(_END, "a column or a number."), "upper": _needed(_END, "a column or a number.")}
            | _OUTSIDE,
        ),
        "tail": Kind(
            Tail, {"top": _needed(_NUMBER), "wider": _needed(_RANGE), "otherwise": _needed(_RANGE)} | _OUTSIDE
        ),
        "where": Kind(
            Where,
            {"column": _needed(_TEXT), "then": _needed(_RANGE), "otherwise": _needed(_RANGE)} | _OUTSIDE,
        ),
    },
)
INNER = ("wider", "then", "otherwise")  # keys of a range that hold ranges

_WITH_RANGE = {"range": _needed(_RANGE, "a range standard says what is public: radius, brackets, bounds, …")}
STANDARD = Kinds(
    "a standard",
    {
        "unweighted": Kind(Unweighted),
        "adp": Kind(ADP),
        "range-averaged": Kind(RangeAveraged, _WITH_RANGE),
        "range-truncated": Kind(
            RangeTruncated, _WITH_RANGE | {"public_weight": Key(Choice(("alpha", "one")), "docs/maths.md")}
        ),
        "strict": Kind(
            Strict,
            {
                "box": _needed(Named(_PAIR), "a lower and an upper end for every coefficient and for sigma."),
                "reason": Key(Text(blank=True), "why the box may be known without the data"),
            },
        ),
        "censored": Kind(
            Censored,
            {
                "keep": Key(Number(above=0), "share of the prior's draws whose log density a window holds"),
                "reason": Key(Text(blank=True), "why the prior may be known without the data"),
            },
        ),
    },
)

# Those that bring their own weights and bound.
BOUNDED = tuple(
    name
    for name, kind in STANDARD.kinds.items()
    if isinstance(kind.make, type) and issubclass(kind.make, Bounded)
)

_RISK = {"risk": Key(Choice(("lipschitz", "oscillation")))}
_AFFINE = {"scale": Key(_NUMBER), "shift": Key(_NUMBER)}
WEIGHTS: Kinds = Kinds(
    "weights",
    {
        "linear": Kind(LinearWeights, _AFFINE | _RISK),
        "softmax": Kind(SoftmaxWeights, _AFFINE | _RISK),
        "logistic": Kind(LogisticWeights, _AFFINE | _RISK),
        "inverse": Kind(InverseWeights, _AFFINE | _RISK),
        "cap": Kind(CapWeights, {"cap": _needed(_NUMBER)} | _RISK),
        "scalar": Kind(ScalarWeights, {"alpha": Key(_NUMBER)}, {"alpha": "value"}),
        "identification": Kind(
            IdentificationWeights,
            {"radius": _needed(_NUMBER), "known": Key(Several(_TEXT)), "pairwise": Key(Flag())} | _AFFINE,
        ),
        "reweighted": Kind(Reweighted, {"base": _needed(_WEIGHTS), "k": Key(_NUMBER)}),
    },
)

FAMILY = Either(
    (
        Choice(tuple(FAMILIES)),
        Record(
            {
                "kind": _needed(Choice(tuple(FAMILIES)), "the name of a family."),
                "lower": Key(Number(finite=True), "public lower end of the support"),
                "upper": Key(Number(finite=True), "public upper end of the support"),
                "spike": Key(Number(finite=True), "where a zero_ family has its spike"),
                "components": Key(Whole(least=2), "of a mixture"),
                "levels": Key(Several(Either((_NUMBER, _TEXT)), least=2), "classes in order"),
                "df": Key(Number(above=1, finite=True), "degrees of freedom of log_student"),
            }
        ),
    )
)
PRIOR = Record(
    {
        "residual": Key(Number(above=0), "guess at the residual standard deviation"),
        "residual_df": Key(Number(above=0), "how many records that guess is worth"),
        "intercept": Key(_PAIR, "mean and standard deviation"),
        "slope": Key(_PAIR, "mean and standard deviation of what a predictor adds at its farthest"),
        "coefficients": Key(Named(_PAIR), "mean and standard deviation by design column"),
    }
)
READ = Record(
    {
        "format": Key(Choice(tuple(Format)), "where the ending of the file does not say"),
        "encoding": Key(_TEXT),
        "delimiter": Key(Text(".")),
        "decimal": Key(Choice((".", ","))),
        "missing": Key(Several(Text()), "words that stand for a missing value in a CSV file"),
        "text": Key(Several(_TEXT), "columns to keep as text"),
    }
)
OUTPUTS = Record(
    {
        "format": Key(Choice(tuple(kind for kind in Format if kind.writable)), "the input's by default"),
        "drop": Key(Several(_TEXT), "columns that stay out of the copies"),
        "formulas": Key(Choice(FORMULAS), "text that a spreadsheet would run"),
    }
)

PLAN = Record(
    {
        "version": _needed(Whole(least=1), f"version of the plan's language; write {VERSION}."),
        "data": Key(_TEXT, "the confidential file, relative to the plan"),
        "read": Key(READ, "how to read it"),
        "missing": Key(
            Choice(("refuse", "drop")),
            "rows without a value in a column of the formula; dropping them "
            "assumes that which they are is public",
        ),
        "formula": _needed(_TEXT, 'the protected column and its predictors: "payroll ~ employees".'),
        "family": Key(FAMILY, "distribution of the protected column: a word, or one with what is public"),
        "prior": Key(PRIOR, "chosen without looking at the protected column"),
        "standard": Key(Later("standard", lambda: STANDARD), "what the release is compared with"),
        "weights": Key(_WEIGHTS, "from risk to weight"),
        "bound": Key(Choice(tuple(bound.name for bound in BY_DRAWS)), "how the privacy loss is bounded"),
        "epsilon": _needed(
            Either((Number(above=0, finite=True), Choice((NO_TARGET,)))),
            f"the target over all copies, or {NO_TARGET} for a release that claims none.",
        ),
        "copies": Key(Whole(least=1), "number of synthetic tables"),
        "draws": Key(Whole(least=100), "posterior draws kept"),
        "known": Key(Choice(("exact", "simulated")), "how λ is found"),
        "debias": Key(
            Flag(),
            "correct each released draw for the bias of the weights, from public things alone; it assumes "
            "the model, and is decided here, before looking (docs/bias.md)",
        ),
        "sampling": Key(
            Choice(get_args(Sampling)),
            "stratified makes smoother copies; rules that combine copies assume independent",
        ),
        "dataset": Key(_TEXT, "name under which versions of one dataset share a budget"),
        "ledger": Key(_TEXT, "the ledger file, relative to the plan"),
        "outputs": Key(OUTPUTS, "the files of the copies"),
        "seed": Key(Whole(), "discouraged: for experiments only, as confidential as the data"),
    }
)


def take_reasons(given: Any, path: str = "") -> dict[str, str | None]:
    """The reasons in a written range, by the place of the range they belong to."""
    if not isinstance(given, Mapping):
        return {}
    found = {path: given["because"]} if "because" in given else {}
    for name in INNER:
        found |= take_reasons(given.get(name), f"{path}.{name}".lstrip("."))
    return found


def put_reasons(written: dict[str, Any], reasons: Mapping[str, str | None], path: str = "") -> None:
    """Puts reasons back where `take_reasons` found them."""
    for name in INNER:
        if name in written:
            put_reasons(written[name], reasons, f"{path}.{name}".lstrip("."))
    if path in reasons:
        written["because"] = reasons[path]


def schema() -> dict[str, Any]:
    """The JSON Schema of a plan."""
    standard = STANDARD.schema()
    for option in standard["anyOf"]:
        if "range" in option.get("properties", {}):
            option["properties"]["range"] = {
                "allOf": [{"$ref": "#/$defs/range"}, {"type": "object", "required": ["because"]}]
            }
    body = PLAN.schema()
    body["properties"]["version"] = {"const": VERSION}
    bounded = {"type": "object", "properties": {"kind": {"enum": [*BOUNDED]}}, "required": ["kind"]}
    body |= {
        "if": {
            "properties": {"standard": {"anyOf": [{"enum": [*BOUNDED]}, bounded]}},
            "required": ["standard"],
        },
        "then": {"properties": {"weights": False, "bound": False}},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hedgerow plan",
        **body,
        "$defs": {"range": RANGE.schema(), "standard": standard, "weights": WEIGHTS.schema()},
    }
