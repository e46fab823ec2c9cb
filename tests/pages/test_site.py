"""The site: tutorials run as printed, every public name is in the reference, and every page in the contents.

`make docs` itself is not run here: it needs what requirements-docs.lock names.
"""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hedgerow as hr

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
_spec = importlib.util.spec_from_file_location("pages", ROOT / "examples" / "pages.py")
pages = importlib.util.module_from_spec(_spec)
sys.modules["pages"] = pages  # dataclasses look their module up
_spec.loader.exec_module(pages)


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_and_prints_what_it_shows(path):
    page = pages.run(path)
    assert page.differences() == [], f"run python examples/pages.py --write {path.relative_to(ROOT)}"
    original, copy = page.names["original"], page.names["copy"]
    assert len(original) == len(copy)
    assert (original[original.columns[1]] == copy[original.columns[1]]).all()
    assert (original[original.columns[0]] != copy[original.columns[0]]).mean() > 0.9
    assert f"../figures/tutorials/{path.stem}.png" in path.read_text(encoding="utf-8")
    assert all((pages.PICTURES / f"{path.stem}{ending}.png").exists() for ending in ("", "-dark"))


def test_differences_are_found():
    """Words must be the same, figures within a twentieth; what is left out may be anything."""
    printed = "a 1.00 of 20\nb\nc 3\n"
    assert pages.compare("a 1.04 of 20\nb\nc 3\n", printed) == []
    assert pages.compare("…\nc 3\n", printed) == []
    assert pages.compare("…\nb\na 1 of 20\n", printed) == ["not printed: a 1 of 20"]
    assert len(pages.compare("a 1.10 of 20\nb\nc 3\n", printed)) == 1
    assert len(pages.compare("a 1.00 of 20\nb\n", printed)) == 1
    assert len(pages.compare("a 1.00 on 20\nb\nc 3\n", printed)) >= 1
    assert pages.update("…\nc 4\n", printed) == "…\nc 3\n"


def test_every_public_name_is_in_the_reference_once():
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^   (\w+)$", text, re.MULTILINE)) == sorted(set(hr.__all__) - {"__version__"})


def test_every_page_is_in_the_contents():
    """Linked from a list of the front page, or from the page above it."""
    front = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^- \[.*?\]\((.*?\.md)\)", front, re.MULTILINE))
    here = {path.relative_to(DOCS).as_posix() for path in [*DOCS.glob("*.md"), *TUTORIALS]}
    assert listed == (here - {"index.md"}) | {
        f"../{name}.md" for name in ("CONTRIBUTING", "SECURITY", "CHANGELOG")
    }


def tracked() -> list[Path]:
    found = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in found.splitlines() if name.endswith(".md")]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a checkout")
def test_links_lead_somewhere():
    """Files and headings that pages link to are there; `make docs` checks the same with its own eyes."""
    missing = []
    for page in tracked():
        for link in re.findall(
            r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        ):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                missing.append(f"{page.relative_to(ROOT)}: {link}")
    assert missing == []


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}
