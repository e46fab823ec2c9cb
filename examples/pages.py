"""Run what a page of docs/ prints, block after block, and compare it with what the page shows.

    python examples/pages.py docs/tutorials/strict.md           # run it, say what differs
    python examples/pages.py --write docs/tutorials/*.md        # put output and pictures into the pages

Blocks marked `sh` and `python` run in their order in an empty folder with a ledger of its own; Python blocks
share their names. A block marked `text` right after one of them is what it prints; a line `…` in it
stands for lines that are left out. Words must be the same, and figures nearly: draws differ between
machines in their last digits.

A tutorial leaves `original` and `copy` behind, tables whose first two columns are drawn side by side.
"""

import argparse
import contextlib
import io
import math
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

import hedgerow as hr

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "figures" / "tutorials"
LEFT_OUT = "…"
BLOCK = re.compile(
    r"^```(?P<kind>sh|python)\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
COLOURS = {"light": ("white", "#222222", "#1f6b4a"), "dark": ("#131416", "#d0d0d0", "#7fd1a8")}


@dataclass
class Page:
    """A page that was run: what each block printed, and the names that its Python left behind."""

    path: Path
    printed: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)

    @property
    def blocks(self) -> list[re.Match[str]]:
        """The blocks that run, with the output that the page shows for them."""
        return list(BLOCK.finditer(self.path.read_text(encoding="utf-8")))

    def differences(self) -> list[str]:
        """Lines that the page shows and no run prints like that, or the other way round."""
        pairs = zip(self.blocks, self.printed, strict=True)
        return [line for block, out in pairs if block["shown"] for line in compare(block["shown"], out)]

    def write(self) -> None:
        """Puts what was printed in the place of what is shown; of a shortened output, line by line."""
        printed = iter(self.printed)

        def replaced(block: re.Match[str]) -> str:
            out = next(printed)
            if not block["shown"]:
                return block[0]
            return f"```{block['kind']}\n{block['code']}```\n\n```text\n{update(block['shown'], out)}```\n"

        text = self.path.read_text(encoding="utf-8")
        self.path.write_text(BLOCK.sub(replaced, text), encoding="utf-8")


def run(path: Path) -> Page:
    """Runs the blocks of a page in a folder that is thrown away."""
    page = Page(path, names={"__name__": "page"})
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), _settings(Path(folder)):
        for block in page.blocks:
            page.printed.append(
                _shell(block["code"]) if block["kind"] == "sh" else _python(block["code"], page)
            )
    return page


def compare(shown: str, printed: str) -> list[str]:
    """What is wrong with the lines that are shown."""
    lines = shown.splitlines()
    if LEFT_OUT not in lines and len(lines) != len(printed.splitlines()):
        return [f"{len(lines)} lines are shown, {len(printed.splitlines())} were printed:\n{printed}"]
    found = dict(_matched(lines, printed))
    missing = [line for place, line in enumerate(lines) if line != LEFT_OUT and place not in found]
    return [f"not printed: {line}" for line in missing] + [
        f"shown: {lines[place]}\nprinted: {line}"
        for place, line in found.items()
        if not _close(lines[place], line)
    ]


def update(shown: str, printed: str) -> str:
    """The same lines with the figures that were printed."""
    lines = shown.splitlines()
    if LEFT_OUT not in lines:
        return printed
    for place, line in _matched(lines, printed):
        lines[place] = line
    return "\n".join(lines) + "\n"


def draw(original: pd.DataFrame, copy: pd.DataFrame, colours: str) -> Figure:
    """The first column against the second, original on the left, copy on the right, on the same axes."""
    paper, ink, dots = COLOURS[colours]
    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    settings: Any = dict.fromkeys(inked, ink) | {"axes.facecolor": paper, "figure.facecolor": paper}
    with mpl.rc_context(settings):
        figure = Figure(figsize=(7.4, 3.3), layout="constrained")
        both = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, table, title in zip(both, (original, copy), ("original", "copy"), strict=True):
            outcome, predictor = original.columns[:2]
            axes.scatter(table[predictor], table[outcome], s=9, alpha=0.45, linewidths=0, color=dots)
            axes.set(xscale="log", yscale="log", xlabel=predictor, title=title)
            axes.spines[["top", "right"]].set_visible(False)
            median = float(table[outcome].median())
            axes.axhline(median, color=ink, linewidth=0.8, linestyle="--")
            axes.annotate(
                f"median {median:,.0f}", (0.98, median), xycoords=("axes fraction", "data"), xytext=(0, 3),
                textcoords="offset points", fontsize=8, ha="right",
            )  # fmt: skip
        both[0].set_ylabel(original.columns[0])
    return figure


def _python(code: str, page: Page) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.HedgerowWarning)  # seeds, which are right here and nowhere else
        exec(compile_block(code, page.path), page.names)  # noqa: S102 - the page's own code
    return _tidy(out.getvalue())


def compile_block(code: str, path: Path) -> Any:
    """The code of a block, named by its page in tracebacks."""
    return compile(code, path.name, "exec")


def _shell(code: str) -> str:
    script = ["bash", "-ec", code]
    done = subprocess.run(script, capture_output=True, text=True, check=False)  # noqa: S603 - the page's own code
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode} of\n{code}\n{done.stdout}\n{done.stderr}")
    return _tidy(done.stdout)


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


@contextlib.contextmanager
def _settings(folder: Path) -> Iterator[None]:
    """`hedgerow` is this package's command, and its ledger is in the folder."""
    command = folder / ".bin" / "hedgerow"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m hedgerow "$@"\n')
    command.chmod(0o755)
    before = dict(os.environ)
    os.environ.pop("HEDGEROW_LEDGER", None)
    os.environ |= {
        "PATH": f"{command.parent}{os.pathsep}{before['PATH']}",
        "PYTHONPATH": str(Path(hr.__file__).parents[1]),
        "XDG_STATE_HOME": str(folder / ".state"),
        "COLUMNS": "100",
    }
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


def _matched(lines: list[str], printed: str) -> Iterator[tuple[int, str]]:
    """For each line that is shown the next printed one with the same words."""
    left = iter(printed.splitlines())
    for place, line in enumerate(lines):
        if line == LEFT_OUT:
            continue
        for candidate in left:
            if _words(candidate) == _words(line):
                yield place, candidate
                break
        else:
            return


def _words(line: str) -> list[str]:
    return NUMBER.sub("#", line).split()


def _close(shown: str, printed: str) -> bool:
    """Whether figures agree to a twentieth or two units of the last digit."""
    for one, two in zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True):
        plain = one.replace(",", "")
        digits = len(plain.partition("e")[0].partition(".")[2])
        unit = 2 * 10.0**-digits if digits else 0.0
        if not math.isclose(float(plain), float(two.replace(",", "")), rel_tol=0.05, abs_tol=unit):
            return False
    return True


def main() -> int:
    """Run the pages that are named; 1 where something differs and nothing is written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="put output and pictures into the pages")
    given = parser.parse_args()
    wrong = False
    for path in given.pages:
        page = run(path.resolve())
        if given.write:
            page.write()
            if "original" in page.names:
                PICTURES.mkdir(parents=True, exist_ok=True)
                for colours, ending in (("light", ""), ("dark", "-dark")):
                    figure = draw(page.names["original"], page.names["copy"], colours)
                    figure.savefig(whole := io.BytesIO(), dpi=150)
                    few = (
                        Image.open(whole).convert("RGB").quantize(48)
                    )  # a third of the bytes, no difference seen
                    few.save(PICTURES / f"{path.stem}{ending}.png", optimize=True)
        differences = page.differences()
        print(f"{path}: {len(page.printed)} blocks", *differences, sep="\n", flush=True)
        wrong |= bool(differences)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
