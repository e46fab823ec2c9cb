"""The fields of a written document: how each is read, refused, written and described.

Plans and certificates are read by tables of these fields, and their JSON Schemas come from the same tables,
so that what is accepted, what is written and what is documented cannot drift apart.
"""

import difflib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hedgerow.errors import FieldError

Json = dict[str, Any]


class Field(ABC):
    """One value of a document."""

    @abstractmethod
    def read(self, value: Any, where: str) -> Any:
        """The value as Python wants it; raises `FieldError` that names the place."""

    @abstractmethod
    def schema(self) -> Json:
        """The same rule as JSON Schema."""

    def write(self, value: Any) -> Any:
        """The value as a document holds it."""
        return value


@dataclass(frozen=True)
class Number(Field):
    """A real number; `above` and `least` bound it from below."""

    above: float | None = None
    least: float | None = None
    finite: bool = False

    def read(self, value: Any, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            raise FieldError(f"{where} must be a number, got {shown(value)}.")
        if (self.above is not None and value <= self.above) or (
            self.least is not None and value < self.least
        ):
            bound = f"above {self.above:g}" if self.above is not None else f"at least {self.least:g}"
            raise FieldError(f"{where} must be {bound}, got {shown(value)}.")
        if self.finite and math.isinf(value):
            raise FieldError(f"{where} must be finite, got {shown(value)}.")
        try:
            return float(value)
        except OverflowError:
            raise FieldError(f"{where} is too large for a number. Use .inf for no bound.") from None

    def schema(self) -> Json:
        bounds = {"exclusiveMinimum": self.above, "minimum": self.least}
        return {"type": "number"} | {name: bound for name, bound in bounds.items() if bound is not None}

    def write(self, value: Any) -> Any:
        number = float(value)
        # 5 reads better than 5.0, and reads back as the same number.
        return int(number) if number.is_integer() and abs(number) < 1e15 else number


@dataclass(frozen=True)
class Whole(Field):
    """A whole number."""

    least: int = 0

    def read(self, value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < self.least:
            raise FieldError(f"{where} must be a whole number from {self.least} up, got {shown(value)}.")
        return value

    def schema(self) -> Json:
        return {"type": "integer", "minimum": self.least}


@dataclass(frozen=True)
class Flag(Field):
    """True or false."""

    def read(self, value: Any, where: str) -> bool:
        if not isinstance(value, bool):
            raise FieldError(f"{where} must be true or false, got {shown(value)}.")
        return value

    def schema(self) -> Json:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Text(Field):
    """Text, not blank unless allowed; a pattern may narrow it."""

    pattern: str | None = None
    blank: bool = False

    def read(self, value: Any, where: str) -> str:
        if not isinstance(value, str):
            raise FieldError(f"{where} must be text, got {shown(value)}. Put it in quotes.")
        if not self.blank and not value.strip():
            raise FieldError(f"{where} is blank. Give some text, or leave it out.")
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            raise FieldError(f"{where} does not have the form {self.pattern}, got {shown(value)}.")
        return value

    def schema(self) -> Json:
        if self.blank:
            return {"type": "string"}
        return {"type": "string", "pattern": rf"^({self.pattern})$" if self.pattern is not None else r"\S"}


@dataclass(frozen=True)
class Choice(Field):
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, value: Any, where: str) -> str:
        if not isinstance(value, str) or value not in self.words:
            hint = did_you_mean(value, self.words)
            raise FieldError(f"{where} must be one of {', '.join(self.words)}, got {shown(value)}.{hint}")
        return value

    def schema(self) -> Json:
        return {"enum": list(self.words)}


@dataclass(frozen=True)
class Several(Field):
    """A list; `exactly` fixes its length."""

    of: Field
    least: int = 0
    exactly: int | None = None

    def read(self, value: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise FieldError(f"{where} must be a list, got {shown(value)}. Write [first, second].")
        if self.exactly is not None and len(value) != self.exactly:
            raise FieldError(f"{where} must have {self.exactly} entries, got {len(value)}.")
        if len(value) < self.least:
            raise FieldError(f"{where} must have at least {self.least} entries, got {len(value)}.")
        return tuple(self.of.read(item, f"{where}[{place}]") for place, item in enumerate(value))

    def schema(self) -> Json:
        sizes = {"minItems": self.least} if self.least else {}
        if self.exactly is not None:
            sizes = {"minItems": self.exactly, "maxItems": self.exactly}
        return {"type": "array", "items": self.of.schema(), **sizes}

    def write(self, value: Any) -> Any:
        return [self.of.write(item) for item in value]


@dataclass(frozen=True)
class Either(Field):
    """Any of several fields; the first that accepts the value reads it."""

    fields: tuple[Field, ...]

    def read(self, value: Any, where: str) -> Any:
        refused = []
        for option in self.fields:
            try:
                return option.read(value, where)
            except FieldError as error:
                refused.append(str(error))
        raise FieldError(f"{refused[0]} Or: {' Or: '.join(refused[1:])}")

    def schema(self) -> Json:
        return {"anyOf": [option.schema() for option in self.fields]}

    def write(self, value: Any) -> Any:
        for option in self.fields:
            try:
                option.read(value, "value")
            except FieldError:
                continue
            return option.write(value)
        return value


@dataclass(frozen=True)
class Nothing(Field):
    """Null: stated to be absent."""

    def read(self, value: Any, where: str) -> None:
        if value is not None:
            raise FieldError(f"{where} must be null, got {shown(value)}.")

    def schema(self) -> Json:
        return {"type": "null"}


@dataclass(frozen=True)
class Named(Field):
    """A mapping from names of one's own to values of one kind."""

    of: Field

    def read(self, value: Any, where: str) -> dict[str, Any]:
        checked = mapping(value, where)
        return {name: self.of.read(item, f"{where}.{name}") for name, item in checked.items()}

    def schema(self) -> Json:
        return {"type": "object", "additionalProperties": self.of.schema()}

    def write(self, value: Any) -> Any:
        return {name: self.of.write(item) for name, item in value.items()}


@dataclass(frozen=True)
class Key:
    """A key of a record."""

    of: Field
    about: str = ""
    required: bool = False
    aside: bool = False  # part of the document, not of the object built from it


@dataclass(frozen=True)
class Record(Field):
    """A mapping with known keys; any other key is refused, with the one that was probably meant."""

    keys: Mapping[str, Key]

    def read(self, value: Any, where: str) -> dict[str, Any]:
        given = mapping(value, where)
        prefix = f"{where}." if where else ""
        for name in given:
            if name not in self.keys:
                known = ", ".join(self.keys)
                hint = did_you_mean(name, self.keys) or f" Known here: {known}."
                raise FieldError(f"{prefix}{name} is not known.{hint}")
        absent = [name for name, key in self.keys.items() if key.required and name not in given]
        if absent:
            raise FieldError(f"{prefix}{absent[0]} is missing: {self.keys[absent[0]].about}")
        return {name: self.keys[name].of.read(item, f"{prefix}{name}") for name, item in given.items()}

    def schema(self) -> Json:
        shape: Json = {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                name: ({"description": key.about} if key.about else {}) | key.of.schema()
                for name, key in self.keys.items()
            },
        }
        required = [name for name, key in self.keys.items() if key.required]
        return shape | ({"required": required} if required else {})

    def write(self, value: Any) -> Any:
        return {name: self.keys[name].of.write(item) for name, item in value.items()}


@dataclass(frozen=True)
class Kind:
    """One of several things that go by a name: how to make it, and its keys."""

    make: Callable[..., Any]
    keys: Mapping[str, Key] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)  # key: attribute, where they differ


@dataclass(frozen=True)
class Kinds(Field):
    """A thing by the name in its `kind`; a name alone stands for the thing with its defaults."""

    what: str
    kinds: Mapping[str, Kind]

    def read(self, value: Any, where: str) -> Any:
        given = {"kind": value} if isinstance(value, str) else dict(mapping(value, where))
        name = Choice(tuple(self.kinds)).read(given.pop("kind", None), f"{where}.kind")
        kind = self.kinds[name]
        found = Record(kind.keys).read(given, where)
        return kind.make(**{key: item for key, item in found.items() if not kind.keys[key].aside})

    def write(self, value: Any) -> Any:
        for name, kind in self.kinds.items():
            if type(value) is kind.make:
                return self._written(name, kind, value)
        known = ", ".join(self.kinds)
        raise FieldError(f"{type(value).__name__} cannot be written in a plan; {self.what} may be {known}.")

    def _written(self, name: str, kind: Kind, value: Any) -> Json:
        found: Json = {"kind": name}
        for key, entry in kind.keys.items():
            if entry.aside:
                continue
            item = getattr(value, kind.attributes.get(key, key))
            entry.of.read(_plain(entry.of, item), f"{self.what}.{key}")  # refuses what no document can hold
            found[key] = entry.of.write(item)
        return found

    def schema(self) -> Json:
        options = []
        for name, kind in self.kinds.items():
            shape = Record(kind.keys).schema()
            shape["properties"] = {"kind": {"const": name}} | shape["properties"]
            shape["required"] = ["kind", *shape.get("required", [])]
            options.append(shape)
        bare = [n for n, kind in self.kinds.items() if not any(key.required for key in kind.keys.values())]
        return {"anyOf": ([{"enum": bare}] if bare else []) + options}


@dataclass(frozen=True)
class Later(Field):
    """A field that is defined elsewhere, perhaps in terms of the one at hand."""

    name: str
    found: Callable[[], Field]

    def read(self, value: Any, where: str) -> Any:
        return self.found().read(value, where)

    def write(self, value: Any) -> Any:
        return self.found().write(value)

    def schema(self) -> Json:
        return {"$ref": f"#/$defs/{self.name}"}


def _plain(of: Field, item: Any) -> Any:
    """What reading would get to see of an object's attribute; things by name check themselves."""
    return of.write(item) if isinstance(of, Kinds | Later | Several | Number) else item


def mapping(value: Any, where: str) -> Mapping[str, Any]:
    """The value, if it is a mapping with text for keys."""
    if not isinstance(value, Mapping):
        raise FieldError(
            f"{where or 'the document'} must be a mapping of keys to values, got {shown(value)}."
        )
    odd = [name for name in value if not isinstance(name, str)]
    if odd:
        raise FieldError(f"{where or 'the document'}: key {shown(odd[0])} is no text. Put it in quotes.")
    return value


def did_you_mean(word: Any, known: Iterable[str]) -> str:
    """A hint at the name that was probably meant, or nothing."""
    near = difflib.get_close_matches(str(word).replace("_", "-"), [k.replace("_", "-") for k in known], 1)
    found = [name for name in known if near and name.replace("_", "-") == near[0]]
    return f" Did you mean {found[0]}?" if found else ""


def shown(value: Any, most: int = 60) -> str:
    """A value from a document in a message, cut to a readable length."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**20:
        return "a number of more than 20 digits"
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"
