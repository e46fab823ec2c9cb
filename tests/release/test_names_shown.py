"""Names may hold anything: they steer no terminal, are no markup, and add nothing to a certificate."""

import json
import re
from dataclasses import replace

import pyarrow as pa
import pytest
from markdown_it import MarkdownIt

import hedgerow as hr
from hedgerow.cli.screen import Screen, json_text, show_error
from hedgerow.errors import show_controls
from hedgerow.release import text
from hedgerow.tables import files as formats

HOSTILE = (
    "line\n\n## Claim\n\nε = 0 for everybody",
    "line\r# Claim",
    "page\u2028# Claim",
    "\x1b]0;title\x07\x1b[31mred",
    "\x9b31mred",
    "turned \u202e gnp.exe",
    "[red]bold[/red] [link=https://example.org]here[/link]",
    "<img src=x onerror=alert(1)>",
    "\\<script>alert(1)</script>",
    "<https://example.org>",
    "![p](https://example.org/p.png)",
    "cell | another \\| cell",
)
SHOWN_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
GOOD = ("--formula", "x ~ z", "--draws", 200, "--epsilon", 40)


def hostile_table(path):
    frame = hr.datasets.lognormal(n=60, seed=3)
    columns = {"x": pa.array(frame["x"]), "z": pa.array(frame["z"])}
    columns |= {name: pa.array([str(row % 3) for row in range(60)]) for name in HOSTILE}
    formats.write(pa.table(columns), path, "parquet")


def tokens(markdown: str) -> list:
    """All tokens of a page, those inside of lines included; with HTML, so that a tag would be seen."""
    whole = MarkdownIt("commonmark", {"html": True}).enable("table").parse(markdown)
    return [inner for token in whole for inner in (token, *(token.children or ()))]


def test_no_name_adds_to_a_certificate(make, tmp_path):
    hostile_table(tmp_path / "in.parquet")
    made = make(data=tmp_path / "in.parquet")
    plain = replace(made.certificate, unchanged=("z",) * (1 + len(HOSTILE)))
    page, ordinary = made.certificate.markdown(), plain.markdown()
    assert set(HOSTILE) < set(made.certificate.unchanged)
    assert not SHOWN_CONTROLS.search(page)
    for kind in ("heading_open", "td_open", "tr_open", "list_item_open", "paragraph_open"):
        assert [t.type for t in tokens(page)].count(kind) == [t.type for t in tokens(ordinary)].count(kind), (
            kind
        )
    assert not {"html_inline", "html_block", "link_open", "image"} & {t.type for t in tokens(page)}
    assert hr.verify_release(made.folder).problems == ()


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("part", ["claim", "protected", "not_covered", "left_open", "used_not_released"])
def test_nor_does_it_anywhere_else(make, name, part):
    certificate = _certificate(make)
    listed = isinstance(getattr(certificate, part), tuple)
    pages = [
        replace(certificate, **{part: (word,) if listed else word}).markdown()
        for word in (f"'{name}'", "'x'")
    ]
    kinds = [[t.type for t in tokens(page) if t.type not in ("text", "text_special")] for page in pages]
    assert kinds[0] == kinds[1]


_MADE: dict[str, object] = {}


def _certificate(make):
    if "certificate" not in _MADE:
        _MADE["certificate"] = make().certificate
    return _MADE["certificate"]


def test_ordinary_certificates_read_as_before(make):
    """Reasons may have lines and links; type names have brackets."""
    certificate = _certificate(make)
    assumed = replace(
        certificate.assumed_public[0],
        what="the type of 'per_head' (dictionary<values=string, indices=int8, ordered=0>), levels ['a', 'b']",
        because="first line\nsecond, see [the register](https://example.org)\n",
    )
    page = replace(certificate, assumed_public=(assumed,)).markdown()
    assert f"- {assumed.what}. *Why:* {assumed.because}\n" in page
    loud = replace(assumed, because="first\n# Claim\nsecond\n---\n")
    page = replace(certificate, assumed_public=(loud,)).markdown()
    headings = [token.type for token in tokens(page)].count("heading_open")
    assert headings == [token.type for token in tokens(certificate.markdown())].count("heading_open")


def test_no_command_prints_what_steers_a_terminal(hedgerow, tmp_path):
    hostile_table(tmp_path / "in.parquet")
    shown = [
        hedgerow("synthesize", "in.parquet", *GOOD, "--out", "release"),
        hedgerow("synthesize", "in.parquet", *GOOD, "--formula", "y ~ z", "--out", "other"),
        hedgerow(
            "synthesize", "in.parquet", *GOOD, "--drop", HOSTILE[3], "--format", "spss", "--out", "other"
        ),
        hedgerow("synthesize", "in.parquet", *GOOD, "--drop", "\x1b[31mno", "--out", "other", "--debug"),
        hedgerow("inspect", "release"),
        hedgerow("inspect", "release", "--json"),
        hedgerow("cost", "in.parquet", *GOOD),
        hedgerow("init", "in.parquet", *GOOD, "--drop", HOSTILE[5], "--drop", HOSTILE[0]),
        hedgerow("ledger", "budget", 100, "--plan", _plan(tmp_path), "--note", HOSTILE[4] + HOSTILE[0]),
        hedgerow("ledger", "export"),
    ]
    assert [done.code for done in shown] == [0, 3, 3, 3, 0, 0, 0, 0, 0, 0]
    for done in shown:
        assert not SHOWN_CONTROLS.search(done.out + done.err), done
    assert HOSTILE[6] in shown[4].text
    assert set(HOSTILE) < set(json.loads(shown[5].out)["unchanged"])
    assert "## Claim" not in shown[4].out.split("\n")
    printed = text.load(shown[7].out)
    assert printed["outputs"]["drop"] == [HOSTILE[5], HOSTILE[0]]


def _plan(folder):
    path = folder / "plan.yaml"
    path.write_text("version: 1\nformula: x ~ z\nepsilon: 1\ndataset: pay\n")
    return path


def test_what_is_no_number_is_null():
    """NaN is no JSON, and other programs stop at it."""
    assert json_text({"rows": [{"exact": float("nan"), "most": float("inf")}]}).split() == [
        "{", '"rows":', "[", "{", '"exact":', "null,", '"most":', "Infinity", "}", "]", "}",
    ]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_is_shown_is_one_line_as_it_is(capsys, monkeypatch, name):
    monkeypatch.setenv("FORCE_COLOR", "1")
    screen = Screen()
    screen.say(name)
    screen.note(name)
    screen.facts([("name", name)])
    screen.table(name, [{"name": name}])
    show_error("error", name)
    shown = capsys.readouterr()
    plain = re.sub("\x1b\\[[0-9;]*m", "", shown.out + shown.err)  # our own colours
    assert not SHOWN_CONTROLS.search(plain)
    assert plain.count(show_controls(name)[:20]) >= 5
    assert json.loads(json_text({"name": name + "\\x41\\u0041"})) == {"name": name + "\\x41\\u0041"}
