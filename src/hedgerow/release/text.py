r"""The text of a plan: a small, safe part of YAML in, and the same out.

    >>> load("epsilon: 1e-3\nfamily: no")
    {'epsilon': 0.001, 'family': 'no'}

The loader builds mappings, lists, text, numbers, true, false and null, so nothing in a plan can run code.
Tags, anchors and aliases are refused, and with them alias bombs; so are repeated keys, several documents,
deep nesting and large files. Plain words are read as in YAML 1.2: `no` and `on` are text, 1e-3 is a number.
"""

import math
import re
from typing import Any

import yaml

from hedgerow.errors import CONTROLS, PlanError

LARGEST = 1 << 18  # bytes; the longest honest plan has a few thousand
_DEEPEST = 20
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_WHOLE = re.compile(r"[-+]?[0-9]+")
_REAL = re.compile(r"[-+]?(\.?inf|(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)")
_PLAIN = "hedgerow:plain"  # the tag of an unquoted word


def load(text: str | bytes, name: str = "plan") -> Any:
    """The value that a text stands for; raises `PlanError` that names the line."""
    if len(text) > LARGEST:
        raise PlanError(f"{name}: {len(text)} bytes; a plan has at most {LARGEST}. Is this the right file?")
    try:
        return yaml.load(text.decode("utf-8-sig") if isinstance(text, bytes) else text, Loader=_Loader)  # noqa: S506 - safe
    except UnicodeDecodeError:
        raise PlanError(f"{name}: not UTF-8 text. Save it as UTF-8.") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark is not None else ""
        why = f"not readable as YAML ({error.problem}). Check the indentation"
        if isinstance(error, _Refusal):
            why = str(error.problem)
        elif error.problem == "but found another document":
            why = "a second document begins here. A plan is one document"
        raise PlanError(f"{name}{line}: {why}.") from None
    except yaml.YAMLError:
        raise PlanError(f"{name}: not readable as YAML. It must be plain text.") from None


def plain(word: str) -> Any:
    """What an unquoted word stands for."""
    if word in _WORDS:
        return _WORDS[word]
    if _WHOLE.fullmatch(word) and len(word) < 100:
        return int(word)
    return float(word.replace(".inf", "inf")) if _REAL.fullmatch(word) else word


class _Refusal(yaml.MarkedYAMLError):
    """Something that YAML knows and a plan does not need."""


class _Loader(yaml.SafeLoader):
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # PyYAML's
        for why, applies in (
            (f"nested more than {_DEEPEST} deep. A plan needs no such depth", self._depth >= _DEEPEST),
            ("anchors (&) and aliases (*) are refused. Write the value out", event.anchor is not None),
            ("tags (!) are refused: a plan holds plain values. Remove it", event.tag is not None),
        ):
            if applies:
                raise _Refusal(problem=why, problem_mark=event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return _PLAIN
        return str(super().resolve(kind, value, (False, True)))  # type: ignore[no-untyped-call]  # PyYAML's

    def construct_scalar(self, node: Any) -> Any:
        value = super().construct_scalar(node)
        if not value.isprintable() and any("\ud800" <= sign <= "\udfff" for sign in value):
            why = "half of a character (\\ud800 to \\udfff), which no file can hold. Write the whole one"
            raise _Refusal(problem=why, problem_mark=node.start_mark)
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[Any] = set()
        for place, _ in node.value:
            key = self.construct_object(place) if isinstance(place, yaml.ScalarNode) else None
            if key is None:
                raise _Refusal(problem="a key is neither text nor a number", problem_mark=place.start_mark)
            if key in keys:
                why = f"the key {key!r} occurs twice in this mapping. Keep one"
                raise _Refusal(problem=why, problem_mark=place.start_mark)
            keys.add(key)
        return super().construct_mapping(node, deep)


_Loader.add_constructor(_PLAIN, lambda loader, node: plain(node.value))


class _Dumper(yaml.SafeDumper):
    """Writes text in quotes wherever `plain` would read something else."""


_Dumper.add_representer(
    str,
    lambda dumper, value: dumper.represent_scalar(
        "tag:yaml.org,2002:str",
        value,
        # In quotes control characters are escaped, or may be by whoever shows the text.
        style=None if plain(value) is value and not CONTROLS.search(value) else '"',
    ),
)


def dump(value: Any) -> str:
    """A value as YAML in blocks."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def dump_line(value: Any) -> str:
    """A value as YAML on one line, for a flag."""
    flow = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=math.inf,
                     default_flow_style=True)  # fmt: skip
    return flow.removesuffix("\n").removesuffix("\n...")
