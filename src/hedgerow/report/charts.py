"""Charts as inline SVG, each with the numbers it shows: lines, bands, shapes, dots, violins.

    >>> price = Line([(100, 5.1), (1000, 5.6)], "these draws", steps=True)
    >>> chart = plot("Price by draws", [price], x=Axis("draws", "log"), y=Axis("ε"))
    >>> chart.rows
    [{'': 'these draws', 'draws': 100, 'ε': 5.1}, {'': 'these draws', 'draws': 1000, 'ε': 5.6}]

`plot` draws marks on two axes, `dots` rows of values on one axis with their names above them, `violins` the
shapes of groups beside each other. A tone is one of the stylesheet's colours, 0 for what others are compared
with. Pictures are as wide as a phone, so that their text stays readable there.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hedgerow.numerics.rounding import format_figure
from hedgerow.report.axes import APART, Axis, Point, find_ends, find_ticks
from hedgerow.report.html import Html, element, join, shorten, text, write_out

WIDTH = 440
_LEFT, _RIGHT, _BOTTOM = 62, 14, 40
_SIGN = 6.8  # the width of a sign of 12 pixels, about
_LABEL = 48  # signs that fit above a row
_TITLE = 200  # of a title, which only some hear


@dataclass(frozen=True)
class Chart:
    """A picture and the numbers it shows."""

    title: str
    svg: Html
    rows: Sequence[Mapping[str, object]]
    height: float
    width: float = WIDTH


@dataclass(frozen=True)
class Line:
    """Points joined by straight lines, or by steps to the right."""

    points: Sequence[Point]
    label: str = ""
    tone: int = 1
    steps: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class Band:
    """What lies between two heights: x, low, high."""

    points: Sequence[tuple[float, float, float]]
    label: str = ""
    tone: int = 1


@dataclass(frozen=True)
class Area:
    """A histogram: edges, and one height for each bin; filled, or its outline alone."""

    edges: Sequence[float]
    heights: Sequence[float]
    label: str = ""
    tone: int = 0
    filled: bool = True


@dataclass(frozen=True)
class Dots:
    """Points by themselves."""

    points: Sequence[Point]
    label: str = ""
    tone: int = 2
    hollow: bool = False


@dataclass(frozen=True)
class Rule:
    """A value marked across the picture: on the vertical axis, or `upright` on the horizontal one."""

    value: float
    label: str = ""
    tone: int = 2
    upright: bool = False


Mark = Line | Band | Area | Dots | Rule


@dataclass(frozen=True)
class Violin:
    """A group summarised: heights of its density at places, quartiles, and single values drawn as points."""

    at: Sequence[float]
    density: Sequence[float]
    lower: float
    median: float
    upper: float
    points: Sequence[float] = ()
    tone: int = 1


@dataclass(frozen=True)
class Row:
    """A named line of `dots`: by series a value, or the lowest, the middle and the highest of several."""

    label: str
    values: Mapping[str, float | tuple[float, float, float] | None]
    note: str = ""


@dataclass
class _Frame:
    """A place on the page with two axes settled."""

    x: Axis
    y: Axis
    x_ends: Point
    y_ends: Point
    top: float
    bottom: float
    parts: list[Html] = field(default_factory=list)
    left: float = _LEFT
    right: float = WIDTH - _RIGHT

    def across(self, value: float) -> float:
        low, high = self.x_ends
        share = (self.x.place(value) - low) / (high - low)
        return self.left + min(max(share, -0.02), 1.02) * (self.right - self.left)

    def up(self, value: float) -> float:
        low, high = self.y_ends
        share = (self.y.place(value) - low) / (high - low)
        return self.bottom - min(max(share, -0.02), 1.04) * (self.bottom - self.top)

    def add(self, tag: str, **attributes: object) -> None:
        self.parts.append(_shape(tag, **attributes))

    def say(self, words: object, x: float, y: float, class_: str) -> None:
        self.parts.append(element("text", words, x=_px(x), y=_px(y), class_=class_))


def plot(
    title: str,
    marks: Sequence[Mark],
    *,
    x: Axis,
    y: Axis,
    describe: str = "",
    height: int = 250,
    rows: Sequence[Mapping[str, object]] | None = None,
) -> Chart:
    """Marks on two axes; `rows` are its numbers where those of the marks read badly."""
    legend, top = _write_legend([(mark.label, mark) for mark in marks if not isinstance(mark, Rule)])
    points = [point for mark in marks for point in _extent(mark)]
    x_ends = find_ends(x, [a for a, _ in points if a is not None])
    y_ends = find_ends(y, [b for _, b in points if b is not None])
    frame = _Frame(x, y, x_ends, y_ends, top + 20, top + height - _BOTTOM)
    _draw_axes(frame)
    for mark in marks:
        _draw(frame, mark)
    made = [row for mark in marks for row in _tabulate(mark, x.label or "x", y.label or "y")]
    svg = _svg(title, describe, top + height, [*legend, *frame.parts])
    return Chart(title, svg, made if rows is None else rows, top + height)


def dots(
    title: str,
    rows: Sequence[Row],
    *,
    x: Axis,
    tones: Mapping[str, int],
    describe: str = "",
    rules: Sequence[Rule] = (),
    bars: bool = False,
) -> Chart:
    """A line for each row, its name above it; a dot for each series, or a dot on the range of several.

    With `bars` a value reaches from 0 instead, each series below the other.
    """
    keys = [Dots((), series, tone, hollow=not tone) for series, tone in tones.items()]
    legend, top = _write_legend([(mark.label, mark) for mark in keys] if len(tones) > 1 else [])
    lines = len(tones) if bars else 1
    step = 22 + 15 * lines
    values = [
        part
        for row in rows
        for value in row.values.values()
        if value is not None
        for part in (value if isinstance(value, tuple) else (value,))
    ] + [rule.value for rule in rules]
    top += 14 * bool(rules)  # their words stand above the rows
    bottom = top + 4 + step * len(rows)
    frame = _Frame(x, Axis(), find_ends(x, values), (0, 1), top, bottom, left=10)
    _draw_ticks(frame)
    for rule in rules:
        _draw(frame, Rule(rule.value, rule.label, rule.tone, upright=True))
    for place, row in enumerate(rows):
        base = top + 4 + place * step
        note = element("tspan", f"  {row.note}", class_="tick") if row.note else None
        label = text(_cut(row.label, _LABEL - len(row.note)))
        frame.say(join([label, note]), frame.left, base + 12, "label")
        for line, (series, tone) in enumerate(tones.items()):
            value, y = row.values.get(series), base + 22 + (15 * line if bars else 0)
            if value is not None:
                _draw_value(frame, value, y, tone, bars=bars)
    numbers = [
        {"": row.label}
        | {key: cell for series in tones for key, cell in _split(series, row.values.get(series)).items()}
        for row in rows
    ]
    tall = bottom + _BOTTOM
    return Chart(title, _svg(title, describe, tall, [*legend, *frame.parts]), numbers, tall)


def violins(
    title: str,
    groups: Mapping[str, Violin],
    *,
    y: Axis,
    describe: str = "",
    rules: Sequence[Rule] = (),
    height: int = 280,
) -> Chart:
    """The shapes of groups beside each other: quartiles as a bar, the median as a dot, points as points."""
    found = [[*group.at, *group.points, group.median] for group in groups.values()]
    values = [value for each in found for value in each] + [rule.value for rule in rules]
    x = Axis(low=-0.5, high=len(groups) - 0.5, ticks={k: _cut(g, 18) for k, g in enumerate(groups)})
    frame = _Frame(x, y, (-0.5, len(groups) - 0.5), find_ends(y, values), 20, height - 24)
    _draw_axes(frame)
    for rule in rules:  # its words stand above the picture: below, shapes would hide them
        spot = frame.up(rule.value)
        frame.add("path", d=_path([(frame.left, spot), (frame.right, spot)]), class_=f"rule t{rule.tone}")
        frame.say(rule.label, frame.right, frame.top - 10, f"said t{rule.tone} end")
    half = min(0.42, 0.42 * 3 / max(3, len(groups)) + 0.2)
    for place, group in enumerate(groups.values()):
        middle, tone = frame.across(place), f"t{group.tone}"
        wide = half * (frame.across(1) - frame.across(0) if len(groups) > 1 else frame.right - frame.left)
        wide, tallest = min(wide, 90.0), max(group.density, default=0.0)
        if tallest > 0:
            sides = [
                (wide * share / tallest, frame.up(at))
                for at, share in zip(group.at, group.density, strict=True)
            ]
            outline = [(middle + d, y) for d, y in sides] + [(middle - d, y) for d, y in reversed(sides)]
            frame.add("path", d=f"{_path(outline)}Z", class_=f"area {tone}")
        frame.add(
            "path",
            d=_path([(middle, frame.up(group.lower)), (middle, frame.up(group.upper))]),
            class_=f"line {tone}",
        )
        for point in group.points:
            frame.add("circle", cx=_px(middle), cy=_px(frame.up(point)), r=2.6, class_="dot t2")
        frame.add("circle", cx=_px(middle), cy=_px(frame.up(group.median)), r=4.5, class_=f"hollow {tone}")
    numbers = [
        {"": label, "lower quartile": each.lower, "median": each.median, "upper quartile": each.upper}
        | ({"highest shown": max(each.points)} if each.points else {})
        for label, each in groups.items()
    ]
    return Chart(title, _svg(title, describe, height, frame.parts), numbers, height)


def _draw(frame: _Frame, mark: Mark) -> None:
    tone = f"t{mark.tone}"
    if isinstance(mark, Rule):
        if mark.upright:
            x = frame.across(mark.value)
            frame.add("path", d=_path([(x, frame.top), (x, frame.bottom)]), class_=f"rule {tone}")
            near = x > (frame.left + frame.right) / 2
            frame.say(mark.label, x + (-4 if near else 4), frame.top - 4, f"said {tone}" + " end" * near)
        else:
            y = frame.up(mark.value)
            frame.add("path", d=_path([(frame.left, y), (frame.right, y)]), class_=f"rule {tone}")
            frame.say(mark.label, frame.right, y - 4 if y > frame.top + 14 else y + 12, f"said {tone} end")
    elif isinstance(mark, Line):
        places = [(frame.across(a), frame.up(b)) for a, b in mark.points]
        if mark.steps:
            places = [
                spot
                for k, (a, b) in enumerate(places)
                for spot in ([(a, places[k - 1][1]), (a, b)] if k else [(a, b)])
            ]
        frame.add("path", d=_path(places), class_=f"line {tone}" + " dashed" * mark.dashed)
    elif isinstance(mark, Band):
        high = [(frame.across(a), frame.up(top)) for a, _, top in mark.points]
        low = [(frame.across(a), frame.up(bottom)) for a, bottom, _ in reversed(mark.points)]
        frame.add("path", d=f"{_path([*high, *low])}Z", class_=f"band {tone}")
    elif isinstance(mark, Area):
        places = [(frame.across(mark.edges[0]), frame.up(0.0))]
        for left, right, tall in zip(mark.edges, mark.edges[1:], mark.heights, strict=False):
            places += [(frame.across(left), frame.up(tall)), (frame.across(right), frame.up(tall))]
        places += [(frame.across(mark.edges[-1]), frame.up(0.0))]
        frame.add("path", d=_path(places), class_=f"{'area' if mark.filled else 'line'} {tone}")
    else:
        for a, b in mark.points:
            kind = "hollow" if mark.hollow else "dot"
            frame.add("circle", cx=_px(frame.across(a)), cy=_px(frame.up(b)), r=3, class_=f"{kind} {tone}")


def _draw_value(
    frame: _Frame, value: float | tuple[float, float, float], y: float, tone: int, *, bars: bool
) -> None:
    low, middle, high = value if isinstance(value, tuple) else (value, value, value)
    if not math.isfinite(middle):
        frame.say("∞" if middle > 0 else "—", frame.right, y + 4, f"said end t{tone}")
        return
    if bars:
        end = frame.across(middle)
        wide = max(end - frame.left, 1)
        frame.add("rect", x=frame.left, y=_px(y - 2), width=_px(wide), height=10, class_=f"bar t{tone}")
        words, room = format_figure(float(middle), 3), frame.right - end
        inside = room < _SIGN * (len(words) + 1)
        frame.say(words, end - 4 if inside else end + 5, y + 7, "inside end" if inside else "tick")
        return
    if high > low:
        frame.add("path", d=_path([(frame.across(low), y), (frame.across(high), y)]), class_=f"line t{tone}")
    kind = "hollow" if not tone else "dot"
    frame.add("circle", cx=_px(frame.across(middle)), cy=_px(y), r=4.5, class_=f"{kind} t{tone}")


def _draw_axes(frame: _Frame) -> None:
    for value, word in find_ticks(frame.y, frame.y_ends):
        y = frame.up(value)
        frame.add("path", d=_path([(frame.left, y), (frame.right, y)]), class_="grid")
        frame.say(word, frame.left - 6, y + 4, "tick end")
    _draw_ticks(frame, grid=False)
    if frame.y.label:
        frame.say(frame.y.label, 2, frame.top - 10, "tick")


def _draw_ticks(frame: _Frame, *, grid: bool = True) -> None:
    """The horizontal axis, below the picture; words that would touch are left out."""
    end = -math.inf
    for value, word in find_ticks(frame.x, frame.x_ends, APART[1]):
        x, half = frame.across(value), _SIGN * len(word) / 2
        if grid:
            frame.add("path", d=_path([(x, frame.top), (x, frame.bottom)]), class_="grid")
        else:
            frame.add("path", d=_path([(x, frame.bottom), (x, frame.bottom + 4)]), class_="axis")
        spot = min(max(x, half), WIDTH - half)
        if spot - half > end + 4:
            frame.say(word, spot, frame.bottom + 17, "tick mid")
            end = spot + half
    frame.add("path", d=_path([(frame.left, frame.bottom), (frame.right, frame.bottom)]), class_="axis")
    if frame.x.label:
        frame.say(frame.x.label, (frame.left + frame.right) / 2, frame.bottom + 34, "tick mid")


def _write_legend(keys: Sequence[tuple[str, Mark]]) -> tuple[list[Html], float]:
    """Swatches with words, in as many lines as they take, and how high they are."""
    parts, x, y = [], 2.0, 12.0
    for word, mark in keys:
        if not word:
            continue
        shown, tone = _cut(word, 40), f"t{mark.tone}"
        wide = 24 + _SIGN * len(shown) + 14
        if x > 2 and x + wide > WIDTH:
            x, y = 2.0, y + 17
        if isinstance(mark, Dots):
            kind = "hollow" if mark.hollow else "dot"
            parts.append(_shape("circle", cx=_px(x + 9), cy=_px(y - 4), r=4, class_=f"{kind} {tone}"))
        elif isinstance(mark, Band) or (isinstance(mark, Area) and mark.filled):
            kind = "band" if isinstance(mark, Band) else "area"
            parts.append(_shape("rect", x=_px(x), y=_px(y - 9), width=18, height=10, class_=f"{kind} {tone}"))
        else:
            dashed = " dashed" * (isinstance(mark, Line) and mark.dashed)
            parts.append(
                _shape("path", d=_path([(x, y - 4), (x + 18, y - 4)]), class_=f"line {tone}{dashed}")
            )
        parts.append(element("text", shown, x=_px(x + 24), y=_px(y), class_="tick"))
        x += wide
    return parts, (y + 12 if parts else 0.0)


def _extent(mark: Mark) -> list[tuple[float | None, float | None]]:
    if isinstance(mark, Rule):
        return [(mark.value, None) if mark.upright else (None, mark.value)]
    if isinstance(mark, Band):
        return [point for a, low, high in mark.points for point in ((a, low), (a, high))]
    if isinstance(mark, Area):
        return [*((edge, 0.0) for edge in mark.edges), *((mark.edges[0], tall) for tall in mark.heights)]
    return list(mark.points)


def _tabulate(mark: Mark, x: str, y: str) -> list[dict[str, object]]:
    if isinstance(mark, Rule):
        return [{"": mark.label, x if mark.upright else y: mark.value}]
    if isinstance(mark, Band):
        return [
            {"": mark.label, x: a, f"{y}, lowest": low, f"{y}, highest": high} for a, low, high in mark.points
        ]
    if isinstance(mark, Area):
        bins = zip(mark.edges, mark.edges[1:], mark.heights, strict=False)
        return [{"": mark.label, f"{x}, from": a, "to": b, y: tall} for a, b, tall in bins]
    return [{"": mark.label, x: a, y: b} for a, b in mark.points]


def _split(series: str, value: float | tuple[float, float, float] | None) -> dict[str, object]:
    if isinstance(value, tuple):
        return {f"{series}, lowest": value[0], series: value[1], f"{series}, highest": value[2]}
    return {series: value}


def _svg(title: str, describe: str, height: float, parts: Sequence[Html]) -> Html:
    told = [element("title", shorten(title, _TITLE)), element("desc", describe) if describe else None]
    return element("svg", *told, *parts, viewBox=f"0 0 {WIDTH} {_px(height)}", role="img")


def _shape(tag: str, **attributes: object) -> Html:
    named = "".join(f' {key.removesuffix("_")}="{text(value)}"' for key, value in attributes.items())
    return Html(f"<{tag}{named}/>")


def _cut(words: str, most: int) -> str:
    """As much of a name as fits; the numbers below the picture have more of it."""
    words = write_out(words)
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _path(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{_px(x)},{_px(y)}" for x, y in points)


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
