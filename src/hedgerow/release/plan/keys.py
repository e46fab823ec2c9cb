"""The keys of a plan file: what each may hold, what it is for, and what is built from it.

Ranges, standards and weights are in `kinds`.
"""

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import ConfigDict, Field, TypeAdapter, model_validator

from hedgerow.errors import FieldError
from hedgerow.evidence.utility.analyses import Analysis, Regression
from hedgerow.models.base import Model
from hedgerow.models.families import FAMILIES
from hedgerow.models.families.family import Family
from hedgerow.models.prior import Prior
from hedgerow.privacy.bounds import LOCAL
from hedgerow.privacy.columns import Column, Missing
from hedgerow.privacy.terms import Sampling
from hedgerow.release.certificate import MOST_ROWS
from hedgerow.release.document import (
    AnyText,
    Finite,
    Flag,
    Number,
    OneOf,
    Pair,
    Record,
    Text,
    Whole,
    describe,
    needed,
    optional,
    refusal,
)
from hedgerow.release.plan.kinds import BOUNDED, AnyStandard, AnyWeights, Keys, Part, build
from hedgerow.tables.files import MISSING_WORDS, DictionaryEntry, Format
from hedgerow.tables.files.csv.writer import FORMULAS
from hedgerow.tables.values import Declared, Kind

VERSION = 1
NO_TARGET = "no-target"


@dataclass(frozen=True)
class Read:
    """How to read the data; see `hedgerow.tables.files.read`."""

    format: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] = MISSING_WORDS
    text: tuple[str, ...] = ()
    header: bool = False
    sheet: str | None = None


@dataclass(frozen=True)
class Outputs:
    """How copies are written: format (None: the input's), columns to leave out, text like a formula.

    `keep` names columns that stay even if they give the protected one away, `dictionary` is what the copies
    say of the protected column, `keep_levels` the public columns that keep levels and labels which do not
    occur. `statistics` adds the noisy statistics that copies follow from, as statistics.json; `receive` a
    Python and an R file by which a receiver reads, checks and combines the copies.
    """

    format: str | None = None
    drop: tuple[str, ...] = ()
    formulas: str = "refuse"
    keep: tuple[str, ...] = ()
    dictionary: DictionaryEntry = field(default_factory=DictionaryEntry)
    keep_levels: tuple[str, ...] = ()
    statistics: bool = False
    receive: bool = False


@dataclass(frozen=True)
class About:
    """Who answers for a release, and what the certificate says of it in the owner's words.

    `earlier` lets it say how many releases of the same data the ledger knows; that is confidential otherwise.
    """

    purpose: str | None = None
    curator: str | None = None
    contact: str | None = None
    region: str | None = None
    retention: str | None = None
    decided_by: str | None = None
    epsilon_reason: str | None = None
    earlier: bool = False


class _Family(Part):
    kind: Annotated[str, OneOf(FAMILIES)] = needed("the name of a family.")
    scale: Finite = optional("usual size of amounts, of student and asinh", gt=0)
    lower: Finite = optional("public lower end of the support")
    upper: Finite = optional("public upper end of the support")
    spike: Finite = optional("where a zero_ family has its spike")
    components: Whole = optional("of a mixture", ge=2)
    levels: list[Number | Text] = optional("classes in order", min_length=2)
    df: Finite = optional("degrees of freedom of student and log_student", gt=1)
    concentration: Finite = optional("records of each class that dirichlet adds to each cell", gt=0)
    rounded: Finite = optional("values are known to be rounded to multiples of it: 100", gt=0)

    def build(self) -> Family:
        settings = {name: build(getattr(self, name)) for name in self.model_fields_set - {"kind"}}
        return Family(self.kind, **settings)


class _Prior(Part):
    makes = Prior
    residual: Number = optional("guess at the residual standard deviation", gt=0)
    residual_df: Number = optional("how many records that guess is worth", gt=0)
    intercept: Pair = optional("mean and standard deviation at the predictors' means")
    slope: Pair = optional("mean and standard deviation of what a predictor adds at its spread")
    coefficients: dict[str, Pair] = optional("mean and standard deviation by design column")


class _Declared(Part):
    makes = Declared
    type: Annotated[str, OneOf(get_args(Kind))] = needed("number, integer or date.")
    decimal_places: Whole = optional("copies are rounded to so many", ge=0)
    range_min: Finite | Text = optional("copies are moved up to it")
    range_max: Finite | Text = optional("copies are moved down to it")
    multiple_of: Finite = optional("copies are rounded to the nearest multiple: 100", gt=0)


class _Read(Part):
    makes = Read
    format: Annotated[str, OneOf(Format)] = optional("where the ending of the file does not say")
    encoding: Text = optional()
    delimiter: AnyText = optional(pattern="^(.)$")
    decimal: Literal[".", ","] = optional()
    missing: list[Text] = optional("words that stand for a missing value in a CSV file")
    text: list[Text] = optional("columns to keep as text")
    header: Flag = optional("the first line of a CSV file holds names, though it looks like a record")
    sheet: Text = optional("of an Excel file; the first by default")


_DISPLAY = r"^(%[-0-9.,a-zA-Z]{1,12}|[A-Za-z]{1,10}[0-9]{1,3}(\.[0-9]{1,2})?)$"


class _Entry(Part):
    makes = DictionaryEntry
    label: Text = optional("what the column is")
    values: dict[Whole | Finite | Text, Text] = optional("codes and what they mean: {1: low, 2: high}")
    display: AnyText = optional("display format: %12.0g in Stata, F8.2 in SPSS", pattern=_DISPLAY)


_AnyFamily = Annotated[str, OneOf(FAMILIES)] | _Family


class ColumnKeys(Part):
    """What a plan says of one protected column. A key is a field of `Column`: to add one, add it in both.

    `dictionary` is about files, and kept by the plan.
    """

    makes = Column
    formula: Text = needed('the column and its predictors: "bonus ~ log(wage) + age".')
    family: _AnyFamily = optional("distribution of the column: a word, or one with what is public")
    prior: _Prior = optional("chosen without looking at the column")
    declared: _Declared = optional("type, decimals and limits in the copies, chosen without looking")
    missing: Annotated[str, OneOf(get_args(Missing))] = optional(
        "a missing cell: refused; withheld, and copies are complete; synthesized; or public"
    )
    codes: list[Number | Text] = optional("values that stand for no amount: [-8, -9]")
    share_of: Text = optional('a column, or arithmetic, that this one is a part of: "total - rent"')
    only_where: Text = optional("a condition over public and earlier columns: \"status == 'employed'\"")
    otherwise: Number | Text = optional("what the cell holds elsewhere; missing, if left out")
    kinds_by: Text = optional("public categories by whose cells gaps and codes have shares: C(sector), or 1")
    filler: Finite = optional("a usual amount, which stands for cells without one in later formulas")
    shared: Flag = optional("with unit: all rows of a unit hold the same cell, which is modelled once")
    dictionary: _Entry = optional("what the copies say of the column, in Stata and SPSS")

    def build(self) -> Column:
        given = {name: build(getattr(self, name)) for name in self.model_fields_set - {"dictionary"}}
        return Column(**given)


_Cell = Whole | Finite | Text
ALONE = ("formula", "family", "prior", "declared")  # keys of a plan that protects one column


class _Outputs(Part):
    makes = Outputs
    format: Annotated[str, OneOf(kind for kind in Format if kind.writable)] = optional(
        "the input's by default"
    )
    drop: list[Text] = optional("columns that stay out of the copies")
    formulas: Annotated[str, OneOf(FORMULAS)] = optional("text that a spreadsheet would run")
    keep: list[Text] = optional("columns to release even if they give the protected one away")
    dictionary: _Entry = optional("what the copies say of the protected column, in Stata and SPSS")
    keep_levels: list[Text] = optional("public columns that keep levels and labels which do not occur")
    statistics: Flag = optional("with limits, publish the noisy statistics themselves as statistics.json")
    receive: Flag = optional("add receive.py and receive.R, for receivers to read, check and combine copies")


class _Analysis(Part):
    makes = Analysis
    formula: Text = needed('a regression: "log(wage) ~ age + C(sector)".')
    family: Annotated[str, OneOf(get_args(Regression))] = optional("gaussian is least squares, the default")


class _About(Part):
    makes = About
    purpose: Text = optional("what the copies are for")
    curator: Text = optional("who publishes them")
    contact: Text = optional("whom to ask")
    region: Text = optional("what region the data describe")
    retention: Text = optional("for how long the confidential files are kept")
    decided_by: Text = optional("who decided on ε")
    epsilon_reason: Text = optional("why this ε")
    earlier: Flag = optional("say how many releases of this data the ledger knows")


_OWN: Keys = {"enum": [*BOUNDED]}
_BRINGS_OWN: list[Any] = [_OWN, {"type": "object", "properties": {"kind": _OWN}, "required": ["kind"]}]


class PlanKeys(Record):
    """A plan file. Its keys are written in this order."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"standard": {"anyOf": _BRINGS_OWN}}, "required": ["standard"]},
            "then": {"properties": {"weights": False, "bound": False}},
            "oneOf": [
                {"required": ["formula"], "properties": {"columns": False}},
                {"required": ["columns"], "properties": dict.fromkeys(ALONE, False)},
            ],
        }
    )
    version: Whole = needed(
        f"version of the plan's language; write {VERSION}.", ge=1, json_schema_extra={"const": VERSION}
    )
    data: Text = optional("the confidential file, relative to the plan")
    read: _Read = optional("how to read it")
    missing: Literal["refuse", "drop"] = optional(
        "rows without a value in a column of the formula; dropping them assumes that which they are is public"
    )
    formula: Text = optional('the protected column and its predictors: "payroll ~ log(employees)".')
    family: _AnyFamily = optional("distribution of the protected column: a word, or one with what is public")
    prior: _Prior = optional("chosen without looking at the protected column")
    declared: _Declared = optional(
        "type, decimals and limits of the protected column in the copies, chosen without looking at it"
    )
    columns: Annotated[dict[Text, ColumnKeys], Field(min_length=1)] = optional(
        "several protected columns by name, in the order in which they are synthesized, each with its own "
        "formula, family, prior and declared; a formula may read those above it"
    )
    derived: dict[Text, Text | dict[Text, dict[_Cell, _Cell]]] = optional(
        "columns that follow from others and are made anew in the copies, by arithmetic or a lookup: "
        "{hourly: wage / hours, region: {district: {7: north}}}"
    )
    checks: list[Text] = optional('conditions that are counted in the copies: ["bonus <= wage"]')
    standard: AnyStandard = optional("what the release is compared with")
    weights: AnyWeights = optional("from risk to weight")
    bound: Annotated[str, OneOf(tuple(bound.name for bound in LOCAL))] = optional(
        "how the privacy loss is bounded"
    )
    epsilon: Annotated[Finite, Field(gt=0)] | Literal["no-target"] = needed(
        f"the target over all copies, or {NO_TARGET} for a release that claims none."
    )
    delta: Annotated[Finite, Field(gt=0)] = optional(
        "what bound: renyi, or noise: gaussian or auto, leaves open over all copies (1e-6)"
    )
    copies: Whole = optional("number of synthetic tables", ge=1)
    draws: Whole = optional("posterior draws kept", ge=100)
    known: Literal["exact", "simulated"] = optional("how λ is found")
    debias: Flag = optional(
        "correct each released draw for the bias of the weights, from public things alone; it assumes "
        "the model, and is decided here, before looking (docs/bias.md)"
    )
    sampling: Annotated[str, OneOf(get_args(Sampling))] = optional(
        "stratified makes smoother copies, combined by the rule that the certificate names; with limits "
        "also projected: regression on a copy returns its draw"
    )
    design_weight: Text = optional(
        "column of survey weights, public or protected, by which what was lost is measured"
    )
    analyses: list[Text | _Analysis] = optional(
        "regressions that users will run, compared with the original in the confidential files"
    )
    dataset: Text = optional("name under which versions of one dataset share a budget")
    ledger: Text = optional("the ledger file, relative to the plan")
    outputs: _Outputs = optional("the files of the copies")
    unit: Text = optional("column that names whose row it is, a household, say: its rows are priced together")
    rows_per_unit: Whole = optional(
        "how many rows one of them has at most; 1 if only unit is given and rows are priced one by one",
        ge=1,
        le=MOST_ROWS,
    )
    about: _About = optional("who answers for the release and why; published")
    seed: Whole = optional("discouraged: for experiments only, as confidential as the data", ge=0)

    @model_validator(mode="after")
    def _check_protected(self) -> Self:
        alone = [name for name in ALONE if name in self.model_fields_set]
        if "columns" not in self.model_fields_set:
            if "formula" not in alone:
                raise refusal(f"is missing: {PlanKeys.model_fields['formula'].description}", "formula")
        elif alone:
            raise refusal(
                f"and columns exclude each other: with columns each has its own {alone[0]}. Move it into "
                "one of the columns, or leave columns out.",
                alone[0],
            )
        return self


PLAN: TypeAdapter[PlanKeys] = TypeAdapter(PlanKeys)


def write_column(column: Column) -> dict[str, Any]:
    """A protected column as a file holds it; what has its default value is left out."""
    changed = {
        entry.name: item
        for entry in fields(column)
        if (item := getattr(column, entry.name)) != entry.default or entry.name == "family"
    }
    return {name: _write_part(item) for name, item in changed.items()}


def _write_part(value: Any) -> Any:
    if isinstance(value, Model):
        return _write_family(value)
    if isinstance(value, Prior):
        return write_changes(value)
    if not is_dataclass(value):
        return value
    return {name: item for name, item in vars(value).items() if item is not None}


def _write_family(value: Model) -> Any:
    """A family as a file holds it: its name, or a mapping with what was declared."""
    if not isinstance(value, Family) or value != Family(value.name, **value.settings()):
        raise FieldError(
            "family: a plan holds a family's name and public settings; give its prior as the plan's own, and "
            "leave the sampler's settings as they are."
        )
    return {"kind": value.name, **value.settings()} if value.settings() else value.name


def write_changes(value: Any) -> dict[str, Any]:
    """The attributes of a prior, of `Read` or of `Outputs` that differ from their defaults."""
    default = vars(type(value)())
    changed = {name: item for name, item in vars(value).items() if item != default[name]}
    return {name: write_changes(item) if is_dataclass(item) else item for name, item in changed.items()}


def schema() -> dict[str, Any]:
    """The JSON Schema of a plan."""
    return describe(PLAN, "hedgerow plan")
