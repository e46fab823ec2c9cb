"""Ranges in plain words, for a certificate that people read who never saw the code."""

from collections.abc import Mapping

from hedgerow.privacy.ranges import Bounds, Brackets, Everywhere, Radius, Range, Tail, Where

NO_REASON = "No reason was given."


def assumed_ranges(known: Range, column: str, reasons: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """What a range standard takes the public to know about the column, and why, part by part."""
    return [
        (words, reasons.get(place) or (NO_REASON if place == "" else "As for the whole."))
        for place, words in _parts(known, f"each value of '{column}'", "")
    ]


def _parts(known: Range, subject: str, place: str) -> list[tuple[str, str]]:
    match known:
        case Tail(top=top, wider=wider, otherwise=otherwise):
            rule = (
                f"{subject}: a wider range for the largest {100 * top:g} % of the records, by a public rule"
            )
            inner = [(wider, "wider", "those"), (otherwise, "otherwise", "the other records")]
        case Where(column=flag, then=then, otherwise=otherwise):
            rule = f"{subject}: one range where the public column '{flag}' is true, another elsewhere"
            inner = [(then, "then", "those"), (otherwise, "otherwise", "the other records")]
        case _:
            return [(place, f"{subject} is known to lie {_within(known)}{_outside(known)}")]
    found = [(place, rule + _outside(known))]
    for part, name, whose in inner:
        found += _parts(part, f"{subject}, for {whose}", f"{place}.{name}".lstrip("."))
    return found


def _within(known: Range) -> str:
    match known:
        case Radius(a=a, b=b):
            return f"between {a:g} and {b:g} times itself (a range that is never published by record)"
        case Brackets(edges=edges):
            return "in its class, the classes having the edges " + ", ".join(f"{edge:g}" for edge in edges)
        case Bounds(lower=lower, upper=upper):
            return f"between {_end(lower)} and {_end(upper)}"
        case Everywhere():
            return "anywhere: nothing is known"
        case _:
            return f"in its range {known!r}"


def _end(end: object) -> str:
    if isinstance(end, str):
        return f"its value of the column '{end}'"
    return f"{end:g}" if isinstance(end, int | float) else "a bound given by record"


def _outside(known: Range) -> str:
    if known.outside == "error":
        return ""
    return "; a value outside its range is taken to be public exactly, and is not protected"
