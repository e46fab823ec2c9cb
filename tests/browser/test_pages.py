"""The pages of a release in a real browser: offline, silent, readable, and nobody's markup but ours."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from hedgerow.privacy.claims.caveats import CAVEATS
from hedgerow.release.certificate import Assumption
from hedgerow.release.pages import board
from hedgerow.release.pages.board import Findings, write_board
from hedgerow.release.pages.printing import count_sheets, print_page
from hedgerow.release.verify import verify_release

HOSTILE = "<img src=x onerror=alert(1)>"
SECTIONS = {
    "public": {
        "What this is", "What may be claimed", "What is kept, and what is not", "How to analyse it",
        "Columns", "How to verify it",
    },
    "board": {
        "What is asked", "What is promised", "What it rests on, and who answers for it",
        "What was tested, and found", "What stays open", "Decision",
    },
    "owner": {
        "Is it labelled?", "What could be learned?", "Which records decide?", "Does the price hold?",
        "Does it have the structure?", "What is it worth?", "Is it documented?",
    },
}  # fmt: skip
AT = pytest.mark.parametrize("which", SECTIONS)
AUDIT = {"kind": "exact", "epsilon": 2.0, "of_claim": True, "largest_fixed": 1.2, "largest_recomputed": 2.25}
AUDIT |= {"largest_reverse": 2.5, "records": 60, "recomputed": 30, "breaches": [3], "reverse_breaches": [4]}
ATTACK = {"claimed": 2.0, "of_claim": True, "lower": 0.4, "confidence": 0.95, "breach": False}


@pytest.fixture(scope="session")
def pages(release, tmp_path_factory) -> dict[str, Path]:
    board = tmp_path_factory.mktemp("board") / "board.html"
    found = Findings.read(release / "confidential")
    board.write_text(write_board(verify_release(release).certificate, Findings(found.summary, AUDIT, ATTACK)))
    owner = release / "confidential" / "report.html"
    return {"public": release / "public" / "index.html", "board": board, "owner": owner}


@AT
def test_it_asks_for_nothing_and_says_nothing(open_page, pages, which):
    opened = open_page(pages[which])
    assert opened.requested == [opened.url]
    assert opened.said == []


@AT
def test_every_section_is_there(open_page, pages, which):
    page = open_page(pages[which]).page
    shown = page.locator("h2").all()
    assert {each.inner_text() for each in shown} == SECTIONS[which]
    assert all(each.is_visible() for each in shown)
    targets = page.locator("nav a").evaluate_all("links => links.map(link => link.hash.slice(1))")
    assert all(page.locator(f"#{target}").count() == 1 for target in targets)


@AT
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_it_fits_the_screen(open_page, pages, which, width):
    page = open_page(pages[which], width=width).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@AT
def test_on_paper_no_table_leaves_its_figure(open_page, pages, which):
    """A sheet cannot be scrolled: what is wider than its column would lie on the next one."""
    page = open_page(pages[which], width=673).page  # A4 between its margins
    page.emulate_media(media="print")
    try:
        wide = page.locator("figure").evaluate_all(
            "figures => figures.flatMap(figure => [...figure.querySelectorAll('table')]"
            ".map(table => table.getBoundingClientRect().right - figure.getBoundingClientRect().right))"
        )
    finally:
        page.emulate_media(media="screen")
    assert (which == "owner") == any(each != 0 for each in wide)
    assert all(each <= 1 for each in wide)


@AT
def test_it_is_dark_where_that_is_preferred(open_page, pages, which):
    shades = []
    for scheme in ("light", "dark"):
        page = open_page(pages[which], scheme=scheme).page
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        shades.append(sum(map(int, re.findall(r"\d+", colour)[:3])) / 3)
    assert shades[0] > 200
    assert shades[1] < 60


@AT
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(open_page, axe, pages, which, scheme):
    found = axe.run(open_page(pages[which], width=390, scheme=scheme).page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []


@AT
def test_names_are_text(open_page, pages, which):
    page = open_page(pages[which]).page
    assert page.locator("img, script, iframe, object, link").count() == 0
    shown = page.locator("main").inner_text()
    assert HOSTILE in shown
    assert "<script>alert(1)</script>" in shown
    assert "\u202e" not in shown
    assert which == "owner" or "(10,000 characters)" in shown


def test_nobody_misses_that_it_is_synthetic(open_page, pages):
    stamp = open_page(pages["public"], width=390).page.locator(".stamp")
    box = stamp.bounding_box()
    assert stamp.inner_text() == "SYNTHETIC"
    assert box["y"] < 300
    assert box["width"] > 0.8 * 350


def test_the_board_has_two_sheets_whatever_there_is_to_say(browser, release, pages):
    given, words = verify_release(release).certificate, "word " * 200
    long = replace(
        given,
        about=dict.fromkeys(("purpose", "curator", "decided_by", "epsilon_reason"), words),
        unchanged=tuple(f"column number {number} with a long name" for number in range(1000)),
        assumed_public=tuple(Assumption(words, f"{words} {number}") for number in range(30)),
        not_covered=tuple(reason.text for reason in CAVEATS.values()),
    )
    found = Findings.read(release / "confidential")
    many = replace(given, assumed_public=tuple(Assumption("a", f"because {n}") for n in range(60)))
    run = replace(found, audit=AUDIT, attack=ATTACK)
    for page in (pages["board"].read_text(), write_board(long, run), write_board(many, run)):
        assert count_sheets(print_page(page)) == 2


def test_names_of_wide_signs_leave_the_board_two_sheets(browser, release, tmp_path, monkeypatch):
    whole, sheets = board.write_board, []

    def write_wide(certificate, found, lines):
        assumed = tuple(Assumption("W" * 300, f"{'W' * 150}{n}") for n in range(9))
        return whole(replace(certificate, assumed_public=assumed), found, lines)

    def print_counted(page):
        pdf = print_page(page)
        sheets.append(count_sheets(pdf))
        return pdf

    monkeypatch.setattr(board, "write_board", write_wide)
    monkeypatch.setattr(board, "print_page", print_counted)
    place = board.save_board(release, tmp_path / "board.pdf")
    assert sheets[0] > 2
    assert count_sheets(place.read_bytes()) == 2
