"""What plans and certificates have in common: kinds of values, and the words for one that is refused.

Documents are described by pydantic types. Reading, the JSON Schema and the text of a plan come from the same
description, so that what is accepted, written and documented cannot drift apart. `read` turns pydantic's
account of an error into ours: the place in the document, the value, the bound, the remedy.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    Strict,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError, core_schema

from hedgerow.errors import FieldError, did_you_mean, format_value

T = TypeVar("T")
NOT_BLANK = r"\S"
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def _short(value: float) -> float | int:
    """5 reads better than 5.0, and reads back as the same number."""
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


# Values are strict: "5" is no number, 1 is not true. Bounds are pydantic's own, Field(gt=0).
Number = Annotated[float, Strict(), PlainSerializer(_short)]
Finite = Annotated[float, Strict(), Field(allow_inf_nan=False), PlainSerializer(_short)]
Whole = Annotated[int, Strict()]
Flag = Annotated[bool, Strict()]
AnyText = Annotated[str, Strict()]
Text = Annotated[str, Strict(), Field(pattern=NOT_BLANK)]
Digest = Annotated[str, Strict(), Field(pattern="^[0-9a-f]{64}$")]
Pair = Annotated[list[Finite], Field(min_length=2, max_length=2)]


@dataclass(frozen=True)
class OneOf:
    """Marks text that must be one of a few words: `Annotated[str, OneOf(BOUNDS)]`."""

    words: Iterable[str]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.literal_schema([str(word) for word in self.words])


def needed(about: str = "it has no default.", **more: Any) -> Any:
    """A key that every such record has; a message about its absence says what it is for."""
    return Field(description=about, **more)


def optional(about: str | None = None, **more: Any) -> Any:
    """A key that may be left out; what is then used is decided by what is built from the record."""
    return Field(default=None, description=about, **more)


def _name_kind(given: Any) -> Any:
    if isinstance(given, str):
        return {"kind": given}
    return {"kind": None, **given} if isinstance(given, Mapping) else given


# After a union of records with a `kind`: which of them is meant, and a bare word for one with its defaults.
ByKind = (Field(discriminator="kind"), BeforeValidator(_name_kind))


class Record(BaseModel):
    """A mapping with known keys; any other key is refused, with the one that was probably meant."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            raise refusal(f"must be a mapping of keys to values, got {format_value(given)}.")
        for name in given:
            if not isinstance(name, str):
                raise refusal(f"has the key {format_value(name)}, which is no text. Put it in quotes.")
            if name not in cls.model_fields:
                hint = did_you_mean(name, cls.model_fields) or f" Known here: {', '.join(cls.model_fields)}."
                raise refusal(f"is not known.{hint}", name)
        for name, field in cls.model_fields.items():
            if field.is_required() and name not in given:
                raise refusal(f"is missing: {field.description}", name)
        return given


def refusal(why: str, key: str = "") -> PydanticCustomError:
    """An error of a record, or of one of its keys, in our own words."""
    return PydanticCustomError("refused", "{why}", {"why": why, "key": key})


def read(adapter: TypeAdapter[T], given: Any) -> T:
    """The document as Python wants it; raises `FieldError` that names the first place that is wrong."""
    _check_text(given, ())
    try:
        return adapter.validate_python(given)
    except ValidationError as error:
        details = error.errors(include_url=False)
    # A key that nobody knows explains why another is missing, and is told first.
    missing = [str(each["loc"][-1]) for each in details if each["type"] == "missing"]
    details.sort(key=lambda each: each["type"] != "unexpected_keyword_argument")
    placed = [(_place(each, given), each) for each in details]
    first = placed[0][0]
    messages = [
        f"{_join(place) or 'the document'} {_explain(each, missing)}"
        for place, each in placed
        if place[: len(first)] == first  # a value that may be this or that has an error for each
    ]
    raise FieldError(" Or: ".join(dict.fromkeys(messages)))


def _check_text(given: Any, place: tuple[int | str, ...]) -> None:
    """Refuses halves of characters, which no file can hold; pydantic lets some of them pass."""
    if isinstance(given, Mapping):
        for key, value in given.items():
            _check_text(key, place)
            _check_text(value, (*place, str(key)))
    elif isinstance(given, list | tuple):
        for number, value in enumerate(given):
            _check_text(value, (*place, number))
    elif isinstance(given, str) and not given.isascii():
        try:
            given.encode()
        except UnicodeEncodeError:
            where = _join(place) or "the document"
            raise FieldError(
                f"{where} is not UTF-8 text, got {format_value(given)}. Type or save it as UTF-8."
            ) from None


def _place(error: Any, given: Any) -> tuple[int | str, ...]:
    """The keys that lead to an error, without the names of alternatives that pydantic puts between them."""
    place: list[int | str] = []
    inside = False  # of the alternative that the mapping at hand chose by its kind
    for step in error["loc"]:
        if isinstance(given, Mapping) and not inside and step == given.get("kind"):
            inside = True
        elif (isinstance(given, Mapping) and step in given) or (
            isinstance(given, list | tuple) and isinstance(step, int)
        ):
            given, inside = given[step], False
            place.append(step)
    if error["type"] == "missing":
        place.append(error["loc"][-1])
    elif error["type"] == "union_tag_invalid":
        place.append("kind")
    elif error["type"] == "refused" and error["ctx"]["key"]:
        place.append(error["ctx"]["key"])
    return tuple(place)


def _join(place: Iterable[int | str]) -> str:
    """The place in one short line, whatever somebody called a key."""
    steps = ("." + (step if step.isprintable() and len(step) <= 60 else format_value(step))
             if isinstance(step, str) else f"[{step}]" for step in place)  # fmt: skip
    return "".join(steps).removeprefix(".")


_MAPPING = "must be a mapping of keys to values, got {got}."
_WORDS = {
    "refused": "{why}",
    "missing": "is missing.",
    "float_type": "must be a number, got {got}.",
    "finite_number": "must be finite, got {got}.",
    "int_type": "must be a whole number, got {got}.",
    "greater_than": "must be above {gt:g}, got {got}.",
    "greater_than_equal": "must be at least {ge:g}, got {got}.",
    "bool_type": "must be true or false, got {got}.",
    "string_type": "must be text, got {got}. Put it in quotes.",
    "string_pattern_mismatch": "does not have the form {pattern}, got {got}.",
    "list_type": "must be a list, got {got}. Write [first, second].",
    "tuple_type": "must be a list, got {got}. Write [first, second].",
    "too_short": "must have at least {min_length} entries, got {actual_length}.",
    "too_long": "must have at most {max_length} entries, got {actual_length}.",
    "dict_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "dataclass_type": _MAPPING,
}


def _explain(error: Any, missing: list[str]) -> str:
    """What is wrong with a value, to follow the name of its place."""
    kind, value, ctx = error["type"], error["input"], error.get("ctx", {})
    if kind == "unexpected_keyword_argument":
        return f"is not known.{did_you_mean(error['loc'][-1], missing)}"
    if kind in ("literal_error", "union_tag_invalid"):
        word = value if kind == "literal_error" else value["kind"]
        words = re.findall("'([^']*)'", ctx.get("expected") or ctx["expected_tags"])
        hint = did_you_mean(word, words)
        return f"must be one of {', '.join(words)}, got {format_value(word)}.{hint}"
    if kind == "float_type" and isinstance(value, int) and not isinstance(value, bool):
        return "is too large for a number. Use .inf for no bound."
    if kind == "string_pattern_mismatch" and ctx["pattern"] == NOT_BLANK:
        return "is blank. Give some text, or leave it out."
    return _WORDS.get(kind, "{msg}, got {got}.").format(got=format_value(value), msg=error["msg"], **ctx)


def describe(adapter: TypeAdapter[Any], title: str) -> dict[str, Any]:
    """The JSON Schema of a document."""
    schema = adapter.json_schema()
    return {"$schema": DRAFT, **_plain_schema(schema, schema.get("$defs", {})), "title": title}


def _plain_schema(node: Any, named: Mapping[str, Any]) -> Any:
    """A schema without pydantic's titles and defaults, and with a bare word for what needs only its kind."""
    if isinstance(node, list):
        return [_plain_schema(each, named) for each in node]
    if not isinstance(node, dict):
        return node
    plain = {
        key: _plain_schema(value, named)
        for key, value in node.items()
        if key != "discriminator" and not (key == "title" and isinstance(value, str)) and key != "default"
    }
    if "discriminator" in node:
        kinds = {
            kind: named[ref.rpartition("/")[2]] for kind, ref in node["discriminator"]["mapping"].items()
        }
        bare = [kind for kind, shape in kinds.items() if shape["required"] == ["kind"]]
        plain["anyOf"] = [{"enum": bare}, *plain.pop("oneOf")]
    return plain
