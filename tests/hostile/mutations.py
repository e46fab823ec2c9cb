"""Documents with something wrong in them: by structure, by bytes, by files; the same for the same seed."""

import copy
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

NUMBERS = (
    0, -1, 1, 2**31, 2**63, 10**25, -(10**400), 0.0, -0.0, 5e-324, 1e-300, 1e308, 1.0000000000000002, 0.1,
    float("nan"), float("inf"), float("-inf"), True, False,
)  # fmt: skip
TEXTS = (
    "", " ", "\n", "x" * 5000, "\x00", "\x1b[31mred\x1b[0m", "a\nb", "# heading\n\n## Claim",
    "[bold]b[/bold]", "\u202eright to left", "\ud800", "\ufeff", "\U0001f512", "é" * 300, "../../etc", "/",
    "C:\\x", "null", "~", "1e5",
    "=cmd|' /C calc'!A0", "x ~ (z + w)**40", "`", "{0}", "%s", "--help", "synthetic-copy-1.csv",
    "certificate.json",
)  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in ((*path, key), *_places(item, (*path, key)))]


def _nest(value: Any, depth: int) -> Any:
    for level in range(depth):
        value = [value] if level % 2 else {"kind": value}
    return value


def _retype(value: Any, choose: random.Random) -> Any:
    others: list[Any] = [None, [], {}, [value], {"kind": value}, str(value), choose.choice(NUMBERS)]
    return choose.choice([*others, choose.choice(TEXTS), _nest(value, choose.choice((3, 30)))])


def _nudge(value: Any, choose: random.Random) -> Any:
    """Another value of the same kind, often a plausible one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        near = (value + 1, value - 1, -value, value * 10, value / 3, float(value), value * (1 + 1e-15))
        return choose.choice((*near, *NUMBERS))
    if isinstance(value, str):
        place = choose.randrange(len(value) + 1)
        near = (value[:place] + choose.choice("0aZ .|\n\x07é") + value[place:], value[:place], value.upper())
        return choose.choice((*near, value + " ", choose.choice(TEXTS)))
    return _retype(value, choose)


def mutate_document(document: Any, choose: random.Random) -> Any:
    """The document with one to three of its values deleted, doubled, retyped, swapped, renamed or nudged."""
    document = copy.deepcopy(document)
    for _ in range(choose.choice((1, 1, 1, 2, 3))):
        places = _places(document)
        if not places:
            return document
        *path, key = choose.choice(places)
        holder = document
        for step in path:
            holder = holder[step]
        how = choose.choice(("delete", "double", "retype", "swap", "rename", "nudge", "nudge", "nudge"))
        if how == "delete":
            del holder[key]
        elif how == "double" and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        elif how == "swap" and len(holder) > 1:
            other = choose.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
            holder[key], holder[other] = holder[other], holder[key]
        elif how == "rename" and isinstance(holder, dict):
            name = choose.choice(
                (f"{key}x", f"{key}"[:-1], f"{key}".upper(), choose.choice(TEXTS), "version")
            )
            holder[name] = holder.pop(key)
        else:
            holder[key] = (_retype if how == "retype" else _nudge)(holder[key], choose)
    return document


def mutate_bytes(raw: bytes, choose: random.Random) -> bytes:
    """The bytes with one stretch of them flipped, cut, doubled, replaced or moved, or one line of them."""
    start = choose.randrange(len(raw) + 1)
    end = min(len(raw), start + choose.choice((1, 1, 2, 8, 100)))
    part, flipped = (
        raw[start:end],
        bytes(byte ^ (1 << choose.randrange(8)) for byte in raw[start : start + 1]),
    )
    odd = (b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\t", b"&a *a", b"!!x ", b"\r", b"9")
    lines = raw.splitlines(keepends=True) or [b""]
    line = choose.randrange(len(lines))
    how: list[Callable[[], bytes]] = [
        lambda: raw[:start] + flipped + raw[start + 1 :],
        lambda: raw[:start] + raw[end:],
        lambda: raw[:start],
        lambda: raw[:end] + part * choose.choice((1, 3, 2000)) + raw[end:],
        lambda: raw[:start] + choose.choice(odd) + raw[start:],
        lambda: raw[:start] + choose.randbytes(max(1, len(part))) + raw[end:],
        lambda: b"".join(lines[:line] + lines[line : line + 1] * 2 + lines[line + 1 :]),
        lambda: b"".join(lines[:line] + lines[line + 1 :] + lines[line : line + 1]),
        lambda: b"".join(lines[:line] + lines[line + 1 :]),
    ]  # fmt: skip
    return choose.choice(how)()


def as_yaml(document: Any) -> bytes:
    """By PyYAML's own writer, which can write what a plan must not hold; surrogates as escapes."""
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=False).encode()


def mutate_plan(text: str, choose: random.Random) -> bytes:
    """The text of a plan with something wrong in it: two of three by structure, one of three by bytes."""
    if choose.random() < 1 / 3:
        return mutate_bytes(text.encode(), choose)
    return as_yaml(mutate_document(yaml.safe_load(text), choose))


def as_json(document: Any) -> bytes:
    """As hedgerow lays a certificate out, so that nothing but the mutation gives it away."""
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    try:
        return text.encode()
    except UnicodeEncodeError:
        return (json.dumps(document, indent=1) + "\n").encode()


def mutate_files(public: Path, choose: random.Random, *, beside: bool) -> None:
    """Something added to, taken from or exchanged in the public part, or put beside it."""
    files = sorted(public.iterdir())
    one, other = choose.sample(files, 2)
    name = choose.choice((".DS_Store", "synthetic-copy-9.csv", "README", "a\nb", "\x1b[2J", "extra"))

    def replace(make: Callable[[Path], object]) -> None:
        one.unlink()
        make(one)

    def swap() -> None:
        first, second = one.read_bytes(), other.read_bytes()
        one.write_bytes(second)
        other.write_bytes(first)

    how: list[Callable[[], object]] = [
        one.unlink,
        lambda: one.rename(public / name),
        lambda: (public / name).write_text("x"),
        lambda: (public / name).mkdir(),
        lambda: os.mkfifo(public / name),
        lambda: (public / name).symlink_to(one),
        lambda: replace(Path.mkdir),
        lambda: replace(os.mkfifo),
        lambda: replace(lambda path: path.symlink_to(other)),
        lambda: replace(lambda path: path.symlink_to("/dev/zero")),
        swap,
    ]
    if beside:
        how += [
            lambda: (public.parent / "synthetic-copy-1.csv").write_text("x"),
            lambda: os.mkfifo(public.parent / "extra"),
        ]
    choose.choice(how)()
