"""The toolkit of the pages: nothing gets in but as text, nothing is loaded, colours can be read."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from hedgerow.report import axes, charts, html
from hedgerow.report.style import COLOURS, write_style

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    '"><script>alert(1)</script>',
    "</style><style>@import url(//example.org)",
    "\u202edrawkcab\u2066",
    "a\x00b\x1b[31m\nc",
    "\u200f\u200e\u061c\ufeff\u00ad",
    "]]>&lt;b&gt; &#60;",
    "x" * 10_000,
)


class Elements(HTMLParser):
    """Tags, attributes and text, and whether each element is closed where it should be."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.open, self.said = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.said.append(data)


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_text_wherever_it_is_put(value):
    chart = charts.dots(
        value,
        [charts.Row(value, {value: 1.0}, note=value)],
        x=axes.Axis(value),
        tones={value: 1},
        describe=value,
    )
    line = charts.plot(value, [charts.Line([(0, 1), (1, 2)], value)], x=axes.Axis(value), y=axes.Axis(value))
    body = (
        html.section(value, html.name(value), html.names([value, value]), value, id="a"),
        html.table([{"name": value, value: 1.0}], caption=value),
        html.facts([(value, value)]),
        html.details(value, html.bullets([value])),
        html.tiles([(value, value, value)]),
        html.figure(chart, value, value),
        html.figure(line, value),
    )
    made = html.page(value, *body)

    found = Elements(made)
    assert not found.open
    allowed = set(Elements(html.page("plain", *(_plain_body()))).tags)
    assert set(found.tags) <= allowed
    assert not [key for key, _ in found.attributes if key.startswith("on") or key in ("src", "style")]
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\u00ad]", made
    )


def _plain_body():
    chart = charts.dots("a", [charts.Row("b", {"c": 1.0}, "e")], x=axes.Axis(), tones={"c": 1}, describe="d")
    line = charts.plot("a", [charts.Line([(0, 1), (1, 2)], "a")], x=axes.Axis(), y=axes.Axis())
    dot = charts.plot("a", [charts.Dots([(0, 1)], "a")], x=axes.Axis(), y=axes.Axis())
    return (
        html.section("a", html.name("b"), id="a"),
        html.table([{"a": "b"}], caption="c"),
        html.facts([("a", "b")]),
        html.details("a", html.bullets(["b"])),
        html.tiles([("a", "b", "c")]),
        *(html.figure(each, "a", "b") for each in (chart, line, dot)),
    )


def test_an_over_long_name_is_cut_with_its_length_beside_it():
    made = html.name("x" * 10_000)

    assert "10,000 characters" in made

    assert len(made) < 600


def test_a_page_forbids_every_request_and_every_style_but_its_own():
    import base64
    import hashlib

    made = html.page("A page", html.paragraph("text"), mark="CONFIDENTIAL")

    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', made)[1].replace("&#x27;", "'")
    style = re.search("<style>(.*)</style>", made, re.S)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert not re.search(r"https?:|url\(|@import|<script|<link", made)
    assert made.startswith('<!doctype html>\n<html lang="en">')


def test_a_mark_stays_out_of_the_stylesheets_syntax():
    with pytest.raises(ValueError, match="letters"):
        html.page("A page", mark='"} body{display:none}')


@pytest.mark.parametrize("which", [0, 1], ids=["light", "dark"])
def test_text_and_tones_can_be_read(which):
    def brightness(colour):
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(a, b):
        high, low = sorted((brightness(a), brightness(b)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for name, pair in COLOURS.items():
        if name not in ("paper", "raised", "line"):
            grounds = ["paper"] if name.startswith("tone") else ["paper", "raised"]
            assert all(contrast(pair[which], COLOURS[ground][which]) >= 4.5 for ground in grounds), name


def test_every_class_and_variable_is_in_the_stylesheet():
    style = write_style()
    made = html.page("A page", *_plain_body(), mark="x")

    classes = {word for words in re.findall(r'class="([^"]*)"', made) for word in words.split()}
    assert {word for word in classes if f".{word}" not in style} <= {"label"}
    assert set(re.findall(r"var\(--([\w-]+)\)", style)) <= set(COLOURS)


def test_a_chart_has_its_numbers():
    marks = [
        charts.Line([(1, 10.0), (2, 20.0)], "line", steps=True),
        charts.Band([(1, 5.0, 15.0)], "band"),
        charts.Area([1, 2, 3], [0.25, 0.75], "area"),
        charts.Rule(12.0, "rule"),
    ]
    chart = charts.plot("All", marks, x=axes.Axis("x"), y=axes.Axis("y", zero=True))
    shape = charts.violins("V", {"g": charts.Violin([0, 1], [1, 1], 0.2, 0.5, 0.7, [3.0])}, y=axes.Axis("ε"))

    assert [row[""] for row in chart.rows] == ["line", "line", "band", "area", "area", "rule"]
    assert shape.rows == [
        {"": "g", "lower quartile": 0.2, "median": 0.5, "upper quartile": 0.7, "highest shown": 3.0}
    ]
    assert 'role="img"' in chart.svg
    assert "<title>All</title>" in chart.svg


def test_figures_of_a_column_have_the_decimals_they_share():
    rows = [
        {"a": 1.8612, "b": 100.0, "c": 1e-9},
        {"a": 1.85, "b": 99.987, "c": None},
        {"a": -9113.0, "b": 0.0},
    ]
    cells = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", html.table(rows).partition("<tbody>")[2])
    assert cells == ["1.861", "100.0", "1e-09", "1.850", "99.99", "", "-9,113", "0", ""]


@pytest.mark.parametrize(("points", "printed"), [(12, True), (13, False)])
def test_numbers_that_fit_a_sheet_are_printed(points, printed):
    line = charts.Line([(place, 1.0) for place in range(points)], "line")
    shown = html.figure(charts.plot("P", [line], x=axes.Axis("x"), y=axes.Axis("y")), "P")
    assert "<summary>Numbers</summary>" in shown
    assert ('<details class="long">' in shown) != printed


@pytest.mark.parametrize(
    ("axis", "values", "words"),
    [
        (axes.Axis(), [0.0, 10.0], ["0", "2", "4", "6", "8", "10"]),
        (axes.Axis(kind="log"), [1.0, 1e6], ["1", "10", "100", "1,000", "10,000", "100,000", "1M"]),
        (axes.Axis(kind="log"), [1.0, 1.5], ["1", "1.1", "1.2", "1.3", "1.4", "1.5"]),
        (axes.Axis(kind="log"), [0.7, 1.9], ["0.75", "1", "1.25", "1.5", "1.75"]),
        (axes.Axis(kind="log"), [8.0, 22.0], ["10", "15", "20"]),
        (axes.Axis(kind="knots", knots=[-100.0, -1.0, 0.0, 1.0, 100.0]), [], ["-100", "0", "100"]),
    ],
)
def test_ticks_are_round_and_apart(axis, values, words):
    ticks = axes.find_ticks(axis, axes.find_ends(axis, values))

    shown = [word for _, word in ticks]
    assert [word for word in shown if word in words] == words
    assert len(shown) <= 9
    places = [axis.place(value) for value, _ in ticks]
    assert places == sorted(places)


@pytest.mark.parametrize("kind", ["linear", "log", "knots"])
def test_values_at_the_end_of_the_doubles_make_a_picture(kind):
    values = [1.0, 2.0, 1.7e308] if kind == "log" else [-1.7e308, 0.0, 2.0, 1.7e308]
    axis = axes.Axis("x", kind, knots=values if kind == "knots" else ())
    chart = charts.plot("F", [charts.Line([(value, value) for value in values])], x=axis, y=axis)

    assert not re.search("nan|inf", chart.svg)


def test_degenerate_numbers_make_a_picture():
    flat = charts.plot("F", [charts.Line([(1, 2.0), (1, 2.0)])], x=axes.Axis("x", "log"), y=axes.Axis("y"))
    rows = [charts.Row("a", {"s": float("inf")}), charts.Row("b", {"s": None}), charts.Row("c", {"s": 1.0})]
    dots = charts.dots("D", rows, x=axes.Axis(), tones={"s": 1}, bars=True)
    empty = charts.violins("V", {}, y=axes.Axis())

    for chart in (flat, dots, empty):
        assert not re.search("nan|inf", chart.svg)


def test_pages_need_no_engine():
    code = "import sys, hedgerow.report.charts; print('numpy' in sys.modules, 'pandas' in sys.modules)"
    ours = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ours)
    assert found.stdout.split() == ["False", "False"]
