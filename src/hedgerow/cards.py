"""Small cards in HTML, for what a notebook shows of an object.

    >>> card("Release", [("standard", "<b>")]).count("&lt;b&gt;")
    1

A card is one self-contained piece: no script, no link, nothing fetched, colours taken from the page it stands
on, light or dark. Every text is escaped, and what would steer a page is written out: names of columns, labels
and reasons may hold anything. What is confidential is the business of whoever fills a card.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from hedgerow.errors import show_controls
from hedgerow.numerics.rounding import format_figure

_LINE = "1px solid rgba(128,128,128,.45)"
_CARD = (
    f"font:13px/1.45 system-ui,sans-serif;border:{_LINE};border-radius:6px;padding:.7em 1em;max-width:46em"
)
_CELL = "padding:.1em .9em .1em 0;background:none;border:0;vertical-align:top"
_QUIET = "opacity:.7"
_WARNING = "border:1px solid currentColor;border-radius:3px;padding:0 .4em;margin-left:.6em;font-size:11px"
_LEFT, _WIDE, _HIGH = 150, 420, 40  # of shapes, in pixels
_COLOURS = ("#8c8c8c", "#3f97c9")  # to be seen on white and on black
CONFIDENTIAL = "confidential"


def card(title: str, facts: Iterable[tuple[str, object]], *parts: str, mark: str = "") -> str:
    """A title with a mark beside it, facts below each other, and further parts made here."""
    head = f"<strong>{_text(title)}</strong>"
    head += f'<span style="{_WARNING}">{_text(mark)}</span>' if mark else ""
    rows = "".join(
        f'<tr style="background:none"><td style="{_CELL};text-align:left;{_QUIET}">{_text(name)}</td>'
        f'<td style="{_CELL};text-align:left">{_text(value)}</td></tr>'
        for name, value in facts
        if value not in (None, "")
    )
    body = f'<table style="border-collapse:collapse;margin:.4em 0;border:0">{rows}</table>' if rows else ""
    return f'<div style="{_CARD}">{head}{body}{"".join(parts)}</div>'


def paragraph(text: str) -> str:
    """A paragraph of one sentence or more."""
    return f'<p style="margin:.4em 0">{_text(text)}</p>'


def fold(title: str, lines: Iterable[str]) -> str:
    """A list behind its title, to be opened."""
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return f"<details><summary>{_text(title)}</summary><ul>{items}</ul></details>" if items else ""


def table(caption: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of figures under their names."""
    if not rows:
        return ""
    right, left = f"{_CELL};text-align:right", f"{_CELL};text-align:left;white-space:pre"
    head = "".join(
        f'<th style="{right};border-bottom:{_LINE};font-weight:600">{_text(name)}</th>' for name in rows[0]
    )
    body = "".join(
        '<tr style="background:none">'
        + "".join(
            f'<td style="{left if isinstance(cell, str) else right}">{_text(format_figure(cell))}</td>'
            for cell in row.values()
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div style="margin-top:.6em;{_QUIET}">{_text(caption)}</div><div style="overflow-x:auto"><table '
        'style="border-collapse:collapse;border:0;margin:0">'
        f'<tr style="background:none">{head}</tr>{body}</table></div>'
    )


def shapes(columns: Mapping[str, Sequence[Any]]) -> str:
    """The shapes of `evidence.utility.bin_shapes` below each other, the original in grey."""
    labels = [name for name in columns if name not in ("lower", "upper", "level")]
    every = sorted(float(share) for label in labels for share in columns[label] if share > 0)
    tallest = min(every[-1], 2 * every[int(0.9 * (len(every) - 1))])  # a spike does not flatten the rest
    step, drawn = _WIDE / len(columns["lower"]), []
    for place, label in enumerate(labels):
        base, colour = (place + 1) * (_HIGH + 6), _COLOURS[label != "original"]
        name = label if len(label) <= 22 else f"{label[:21]}…"
        drawn.append(f'<text x="0" y="{base - 2}" fill="#888" font-size="12">{_text(name)}</text>')
        for number, share in enumerate(columns[label]):
            tall = _HIGH * min(1.0, float(share) / tallest)
            if tall > 0:
                where = f'x="{_LEFT + number * step:.1f}" y="{base - tall:.1f}"'
                drawn.append(f'<rect {where} width="{step:.1f}" height="{tall:.1f}" fill="{colour}"/>')
    size = f'width="{_LEFT + _WIDE}" height="{len(labels) * (_HIGH + 6)}"'
    drawing = f'<svg {size} role="img" aria-label="shapes">{"".join(drawn)}</svg>'
    return f'<div style="margin-top:.6em;overflow-x:auto">{drawing}</div>'


def _text(value: object) -> str:
    return escape(show_controls(str(value)))
