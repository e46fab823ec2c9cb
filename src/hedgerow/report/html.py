r"""Pages in HTML that open offline: escaping, the skeleton, tables, facts, figures with their numbers.

    >>> element("p", "a < b", class_="lead")
    '<p class="lead">a &lt; b</p>'
    >>> element("p", element("b", "\u202ecod"), " & more")
    '<p><b>\\u202ecod</b> &amp; more</p>'

Whatever is not `Html` is text, and is escaped where it is put into an element: there is no other way in. What
would steer a page, control characters and marks of direction, is written out. A page holds no script, and its
policy forbids every request and every style but its own, so that even markup that slipped through could load
nothing. Nothing here needs NumPy: a receiver may write a page again to see whether it was changed.
"""

import base64
import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from hedgerow.errors import show_controls
from hedgerow.numerics.rounding import format_figure
from hedgerow.report.style import write_style

if TYPE_CHECKING:
    from hedgerow.report.charts import Chart

LONGEST = 48  # signs of a name that are shown
_SHORT_CELL = 28  # signs of a cell that are not broken
_LONG_CELL = 200  # signs of a cell from which it is cut like a name
_PRINTED = (12, 5)  # rows and columns of numbers up to which a sheet has room for them
_TITLE = 300  # signs of it that are shown when pointed at
_WORD = 16  # signs of a name that stays in one line: as many as a phone has room for
_TALL = 1.2  # times as high as wide, from which others stand beside a picture one below the other
# Invisible, beyond what `show_controls` writes out: soft hyphens, marks of direction, joints of no width.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u180e\u200b\u200e\u200f\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb]"
)
_HARMLESS = re.compile(r"[\w ,.;:()/%+*=…-]*", re.ASCII)
_VOID = ("br", "meta")


class Html(str):
    """Markup that is finished; every other text is escaped."""

    __slots__ = ()


def text(value: object) -> Html:
    """Any value as text: escaped, in one line, with what cannot be seen written out."""
    plain = str(value)
    if _HARMLESS.fullmatch(plain):  # most are figures
        return Html(plain)
    return Html(escape(write_out(plain)))


def write_out(plain: str) -> str:
    """A text in one line, with what cannot be seen written out: as long as it will be on a page."""
    return _INVISIBLE.sub(lambda each: each[0].encode("unicode_escape").decode(), show_controls(plain))


def element(tag: str, *children: object, **attributes: object) -> Html:
    """An element: `Html` goes in as it is, other children and all attributes as text, None not at all.

    A trailing underscore of an attribute is dropped, others become hyphens: `class_`, `aria_label`.
    """
    named = "".join(
        f' {name.removesuffix("_").replace("_", "-")}="{text(value)}"'
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in _VOID:
        return Html(f"<{tag}{named}>")
    return Html(f"<{tag}{named}>{join(children)}</{tag}>")


def join(parts: Iterable[object]) -> Html:
    """Parts one after the other."""
    return Html("".join(part if isinstance(part, Html) else text(part) for part in parts if part is not None))


def shorten(value: object, most: int = LONGEST) -> str:
    """A text cut to a readable length, with its full length behind it."""
    whole = str(value)
    return whole if len(whole) <= most else f"{whole[: most - 1]}… ({len(whole):,} characters)"


def name(value: object) -> Html:
    """A name that somebody else chose, set apart: it turns no text beside it, and is cut where over-long."""
    whole = str(value)
    title = shorten(whole, _TITLE) if len(whole) > LONGEST else None
    return element("bdi", shorten(whole), class_="name s" if len(whole) <= _WORD else "name", title=title)


def names(values: Iterable[object]) -> Html:
    """Names with commas between them."""
    parts: list[object] = []
    for value in values:
        parts += [", ", name(value)] if parts else [name(value)]
    return join(parts)


def code(said: str) -> Html:
    """What is typed, letter by letter."""
    return element("code", said)


def link(file: str) -> Html:
    """A file of the same folder."""
    return element("a", file, href=file)


def page(title: str, *body: object, mark: str = "", about: str = "") -> Html:
    """A whole document in English; `mark` is a word of our own above it and on every printed sheet."""
    if not re.fullmatch(r"[\w ,.:-]*", mark):
        raise ValueError("mark goes into a stylesheet: letters, digits, spaces, commas and dots only")
    style = write_style(mark)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="robots", content="noindex") if mark else None,
        element("meta", name="description", content=about) if about else None,
        element("title", title),
        Html(f"<style>{style}</style>"),
    )
    banner = element("header", paragraph(mark, class_="mark")) if mark else None
    content = element("body", banner, element("main", element("h1", title), *body, class_="wrap"))
    return Html(f'<!doctype html>\n<html lang="en">{head}{content}</html>\n')


def section(title: str, *body: object, id: str) -> Html:
    """A part of a page under its heading."""
    heading = element("h2", title, id=id)
    return element("section", heading, *body, aria_labelledby=id)


def contents(entries: Iterable[tuple[str, str]]) -> Html:
    """Links to sections, of which id and title are given; not printed."""
    links = [element("li", element("a", title, href=f"#{id}")) for id, title in entries]
    return element("nav", element("ol", *links), aria_label="Contents")


def paragraph(*children: object, class_: str | None = None) -> Html:
    """A paragraph."""
    return element("p", *children, class_=class_)


def prose(said: str) -> Html:
    """Somebody's own words, which may have several lines."""
    return Html("<br>".join(map(text, said.split("\n"))))


def reading(*children: object) -> Html:
    """The line below a number or a picture that says how to read it."""
    return paragraph(*children, class_="reading")


def bullets(lines: Iterable[object]) -> Html | None:
    """A list, or nothing where there is nothing to list."""
    items = [element("li", line) for line in lines]
    return element("ul", *items) if items else None


def facts(pairs: Iterable[tuple[object, object]]) -> Html:
    """Names and values below each other; what has no value is left out."""
    rows = [
        part
        for label, value in pairs
        if value not in (None, "")
        for part in (element("dt", label), element("dd", value))
    ]
    return element("dl", *rows, class_="facts")


def tiles(cells: Iterable[tuple[object, object, object]]) -> Html:
    """A few large numbers: value, label, how to read it."""
    made = [
        element("div", element("b", value), paragraph(label, class_="label"), reading(how), class_="tile")
        for value, label, how in cells
    ]
    return element("div", *made, class_="tiles")


def details(summary: object, *body: object, class_: str | None = None) -> Html:
    """What is long, behind its title."""
    return element("details", element("summary", summary), *body, class_=class_)


def table(
    rows: Sequence[Mapping[str, object]], *, caption: object = None, label: str | None = None, digits: int = 4
) -> Html:
    """Rows of values under their names; the first cell of a row is its heading, figures stand to the right.

    `label` names a table without a caption to those who cannot see it.
    """
    columns = list(dict.fromkeys(key for row in rows for key in row))
    figures = {
        key
        for key in columns
        if all(row.get(key) is None or isinstance(row.get(key), int | float) for row in rows)
    }
    head = [element("th", key, scope="col", class_="n" if key in figures else None) for key in columns]
    written = {key: _write_figures([row.get(key) for row in rows], digits) for key in figures}
    body = [
        element(
            "tr",
            *(
                _cell(written[key][number] if key in figures else row.get(key), place == 0, key in figures)
                for place, key in enumerate(columns)
            ),
        )
        for number, row in enumerate(rows)
    ]
    made = element(
        "table",
        element("caption", caption) if caption is not None else None,
        element("thead", element("tr", *head)),
        element("tbody", *body),
    )
    # Whoever has only a keyboard can scroll what is wider than the page.
    named = label or (re.sub("<[^>]*>", "", caption) if isinstance(caption, Html) else caption) or "Table"
    return element("div", made, class_="scroll", tabindex="0", role="region", aria_label=named)


def _write_figures(values: Sequence[object], digits: int) -> list[str]:
    """The figures of a column, with as many decimals as others where these are significant: 1.850, 1.861."""
    written = [
        ("yes" if value else "no")
        if isinstance(value, bool)
        else f"{value:,}"
        if isinstance(value, int)
        else format_figure(value, digits)
        for value in values
    ]
    plain = [place for place, words in enumerate(written) if re.fullmatch(r"-?[\d,]+(\.\d+)?", words)]
    longest = max((len(written[place].partition(".")[2]) for place in plain), default=0)
    for place in plain:
        value = values[place]
        if isinstance(value, float) and value != 0:
            known = digits - 1 - math.floor(math.log10(abs(value)))
            rounded = float(written[place].replace(",", ""))
            written[place] = f"{rounded:,.{max(0, min(longest, known))}f}"
    return written


def _cell(value: object, heads: bool, figure: bool) -> Html:
    short = isinstance(value, str) and not isinstance(value, Html) and len(value) <= _SHORT_CELL
    kind = ' class="n"' if figure else ' class="s"' if short else ""  # short text stays in one line
    if isinstance(value, str):
        words = value if isinstance(value, Html) else text(value) if len(value) <= _LONG_CELL else name(value)
    else:
        words = text(_write_figures([value], 4)[0])
    return Html(f'<th scope="row"{kind}>{words}</th>' if heads else f"<td{kind}>{words}</td>")


def figure(chart: "Chart", title: object, *how: object) -> Html:
    """A picture under its title, how to read it, and its numbers as a table; printed where it is short."""
    size = (len(chart.rows), max(map(len, chart.rows), default=0))
    short = all(each <= most for each, most in zip(size, _PRINTED, strict=True))
    numbers = table(chart.rows, label=f"Numbers of: {shorten(chart.title, _LONG_CELL)}")
    return element(
        "figure",
        element("figcaption", title),
        chart.svg,
        reading(*how) if how else None,
        details("Numbers", numbers, class_=None if short else "long"),
        class_="tall" if chart.height > _TALL * chart.width else None,
    )


def figures(*made: object) -> Html:
    """Figures beside each other where there is room."""
    return element("div", *made, class_="figures")
