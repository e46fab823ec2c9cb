"""What notebooks show: one piece of sound HTML that runs nothing, and says what is confidential."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import hedgerow as hr
from hedgerow import cards

BAD = "<script>alert('1')</script>\"&\u202e\x1b[31m"

ELEMENTS = {"div", "span", "strong", "table", "tr", "td", "th", "p", "details", "summary", "ul", "li"}
ELEMENTS |= {"svg", "text", "rect"}


class Sound(HTMLParser):
    """Collects elements and attributes, and refuses what is not closed in turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        assert not any("url(" in (value or "") or "javascript" in (value or "") for _, value in attrs)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


def check(text: str) -> str:
    found = Sound(text)
    assert found.elements <= ELEMENTS
    assert not {name for name in found.attributes if name.startswith(("on", "href", "src"))}
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", text)
    return found.words


@pytest.fixture(scope="module")
def hostile(small):
    return small.rename(columns={"x": f"x{BAD}", "z": f"z{BAD}"})[[f"x{BAD}", f"z{BAD}"]]


@pytest.fixture(scope="module")
def synth(hostile):
    known = hr.RangeTruncated(hr.Radius(0.4, 1.8))
    formula = f"`x{BAD}` ~ `z{BAD}`".replace("'", "’")  # a formula has no quotes beside backticks
    table = hostile.rename(columns=lambda name: name.replace("'", "’").replace('"', "”"))
    formula = formula.replace('"', "”")
    return hr.Synthesizer(formula, standard=known, epsilon=40.0, copies=2, draws=100, seed=1).fit(table)


def test_a_synthesizer_says_what_is_confidential(synth, small):
    assert "confidential" not in check(hr.Synthesizer(f"x ~ {BAD}")._repr_html_())
    shown = check(synth._repr_html_())
    assert "confidential" in shown
    assert "What copies keep" not in shown, "showing an object makes no copies"
    synth.sample()
    shown = check(synth._repr_html_())
    assert "<script>alert(’1’)</script>" in shown, "as text"
    median = cards.format_figure(float(small["x"].median()))
    assert median in shown.split("original")[1].split("copies")[0]


def test_what_may_leave_shows_nothing_confidential(synth, small):
    release = synth.sample()
    for shown in (check(release._repr_html_()), check(release.guarantee._repr_html_())):
        assert "confidential" not in shown
        assert "Not covered" in shown
        assert release.guarantee.claim() in shown
        figures = [
            *small["x"],
            synth.epsilon_,
            synth.total_epsilon_,
            synth.scale_,
            *synth.utility()["original"],
        ]
        told = set(re.findall(r"\d+\.\d+", shown))
        assert not {f"{value:.{digits}g}" for value in figures for digits in (3, 4, 6)} & told
    assert "2 copies of 60 rows" in check(release._repr_html_())
    one = hr.Release(release.tables[:1], release.guarantee)
    assert "1 copy of 60 rows" in check(one._repr_html_())


def test_a_comparison_takes_any_label(small):
    compared = hr.compare("x ~ z", small[["x", "z"]], standards={BAD: hr.ADP()}, draws=100, seed=1)
    shown = check(compared._repr_html_())
    assert "confidential" in shown
    assert "<script>alert('1')</script>\"&\\u202e\\x1b[31m" in shown
    assert "oscillation" in shown


def test_bars_are_finite_and_drawn_for_every_group():
    bins = {"lower": np.arange(3.0), "upper": np.arange(1.0, 4.0)}
    drawn = cards.shapes(bins | {"original": np.array([0.0, 1.0, 0.0]), BAD: np.array([0.2, 0.3, 0.5])})
    check(drawn)
    assert drawn.count("<rect") == 4
    assert "nan" not in drawn
