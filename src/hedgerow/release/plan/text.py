"""The text of a plan: a small, safe part of YAML in, and the same out.

Values are built here from the parser's events, by fixed rules: null, true, false, numbers and text. No
constructor of any YAML library is ever called, so nothing in a plan can run code. Tags, anchors and aliases
are refused, and with them alias bombs; so are repeated keys, several documents, deep nesting and large files.
Plain words are read as in YAML 1.2: `no` and `on` are text, 1e-3 is a number.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from hedgerow.errors import PlanError

LARGEST = 1 << 18  # bytes; the longest honest plan has a few thousand
_DEEPEST = 20
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_WHOLE = re.compile(r"[-+]?[0-9]+")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"([-+]?)\.?inf")


def load(text: str | bytes, name: str = "plan") -> Any:
    """The value that a text stands for: mappings, lists, text, numbers, true, false and null."""
    if len(text) > LARGEST:
        raise PlanError(f"{name}: {len(text)} bytes; a plan has at most {LARGEST}. Is this the right file?")
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    except UnicodeError:
        raise PlanError(f"{name}: not UTF-8 text. Save it as UTF-8.") from None
    try:
        return _Builder(name, yaml.parse(decoded, Loader=yaml.SafeLoader)).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise PlanError(
            f"{name}{line}: not readable as YAML ({error.problem}). Check the indentation."
        ) from None
    except yaml.YAMLError:
        raise PlanError(f"{name}: not readable as YAML. It must be plain text.") from None


def plain(word: str) -> Any:
    """What an unquoted word stands for."""
    if word in _WORDS:
        return _WORDS[word]
    if _WHOLE.fullmatch(word) and len(word) < 100:
        return int(word)
    if _REAL.fullmatch(word):
        return float(word)
    infinite = _INFINITE.fullmatch(word)
    if infinite:
        return -math.inf if infinite[1] == "-" else math.inf
    return word


class _Builder:
    """Builds values from parsing events, refusing what a plan does not need."""

    def __init__(self, name: str, events: Iterator[yaml.Event]) -> None:
        self._name, self._events = name, events

    def document(self) -> Any:
        value, documents = None, 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._refused(event, "a second document begins here. A plan is one document")
                value = self._value(next(self._events), 1)
        return value

    def _value(self, event: yaml.Event, depth: int) -> Any:
        self._check(event, depth)
        if isinstance(event, yaml.ScalarEvent):
            return plain(event.value) if event.style is None else event.value
        if isinstance(event, yaml.SequenceStartEvent):
            return list(self._until(yaml.SequenceEndEvent, depth))
        found: dict[Any, Any] = {}
        pairs = self._until(yaml.MappingEndEvent, depth)
        for key in pairs:
            if not isinstance(key, str | int | float | bool):
                raise self._refused(event, "a key is neither text nor a number")
            if key in found:
                raise self._refused(event, f"the key {key!r} occurs twice in this mapping. Keep one")
            found[key] = next(pairs)
        return found

    def _until(self, end: type[yaml.Event], depth: int) -> Iterator[Any]:
        for event in self._events:
            if isinstance(event, end):
                return
            yield self._value(event, depth + 1)

    def _check(self, event: yaml.Event, depth: int) -> None:
        if depth > _DEEPEST:
            raise self._refused(event, f"nested more than {_DEEPEST} deep. A plan needs no such depth")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise self._refused(event, "anchors (&) and aliases (*) are refused. Write the value out")
        if getattr(event, "tag", None) is not None:
            raise self._refused(event, "tags (!) are refused: a plan holds plain values. Remove it")

    def _refused(self, event: yaml.Event, why: str) -> PlanError:
        mark = event.start_mark
        line = f", line {mark.line + 1}" if mark is not None else ""
        return PlanError(f"{self._name}{line}: {why}.")


class _Dumper(yaml.SafeDumper):
    """Writes text in quotes wherever `plain` would read something else."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = None if plain(value) is value else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def dump(value: Any) -> str:
    """A value as YAML in blocks."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def dump_line(value: Any) -> str:
    """A value as YAML on one line, for a flag."""
    flow = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=math.inf,
                     default_flow_style=True)  # fmt: skip
    return flow.removesuffix("\n").removesuffix("\n...")
