"""All samples of the study, checkpointed, and what they say: `hedgerow study coverage --out folder`.

`rows.jsonl` has one line per sample; a run goes on where it stopped. `coverage.json` counts the samples that
cover, `coverage.md` and `coverage.png` are made of it, and `fill_page` puts both into a page:

    python -m hedgerow_studies.coverage.report study docs/coverage.md
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow_studies.coverage.measure import TERMS, Setting, measure
from hedgerow_studies.work import Jobs, each, processors

ROWS, PAGE, COUNTS, PICTURE = "rows.jsonl", "coverage.md", "coverage.json", "coverage.png"
SETTINGS = (
    Setting("strict", 2000, 1.0, 10, 500),
    Setting("strict", 2000, 0.5, 10, 500),
    Setting("strict", 200, 1.0, 10, 500),
    Setting("strict", 200, 0.5, 10, 500),
    Setting("strict", 20_000, 1.0, 10, 50),
    Setting("strict", 20_000, 0.5, 10, 50),
    Setting("unweighted", 200, None, 5, 500),
    Setting("unweighted", 2000, None, 5, 500),
    Setting("unweighted", 20_000, None, 5, 500),
    Setting("adp", 200, 5.7, 5, 100, 40),
    Setting("adp", 2000, 5.7, 5, 100, 40),
    Setting("adp", 20_000, 5.7, 5, 100, 40),
    Setting("truncated", 200, 5.7, 5, 100, 40),
    Setting("truncated", 2000, 5.7, 5, 100, 40),
    Setting("truncated", 20_000, 5.7, 5, 100, 40),
)
BEGIN, END = "<!-- tables -->", "<!-- end of tables -->"
_FEWEST = 10  # samples below which a share says nothing
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#999999")
QUICK = (Setting("strict", 200, 1.0, 3, 2, 20), Setting("unweighted", 200, None, 3, 2))


def write_report(
    out: Path,
    *,
    quick: bool = False,
    only: str = "",
    samples: int | None = None,
    seed: int = 1,
    jobs: Jobs | None = None,
    compute: bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> str:
    """Measure what the folder does not hold yet, write what all of it says, and return that."""
    out.mkdir(parents=True, exist_ok=True)
    settings = [setting for setting in (QUICK if quick else SETTINGS) if only in setting.label]
    rows = read_rows(out / ROWS, seed)
    held = {(row["setting"], row["sample"]) for row in rows}
    tasks = [
        (setting, number, seed)
        for setting in settings
        for number in range(setting.samples if samples is None else samples)
        if compute and (setting.label, number) not in held
    ]
    tasks.sort(key=lambda task: task[1] / task[0].samples)  # a run that is stopped has some of each
    for done, row in enumerate(each(tasks, measure, jobs=processors(jobs)), 1):
        rows.append(row)
        with (out / ROWS).open("a") as file:
            file.write(json.dumps(row) + "\n")
        progress(done, len(tasks))
    counts = [count for setting in (QUICK if quick else SETTINGS) for count in count_rows(setting, rows)]
    counts = [count for count in counts if quick or count["met"] >= _FEWEST]
    (out / COUNTS).write_text(json.dumps(counts, indent=1, ensure_ascii=False) + "\n")
    page = "\n".join(tabulate(counts)) + "\n"
    (out / PAGE).write_text(page)
    if counts:
        draw(counts, out / PICTURE)
    return page


def fill_page(out: Path, page: Path) -> None:
    """Puts the tables between the page's marks, and the picture among the figures beside it."""
    text = page.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    page.write_text(f"{before}\n{(out / PAGE).read_text()}\n{after}")
    (page.parent / "figures" / PICTURE).write_bytes((out / PICTURE).read_bytes())


def read_rows(file: Path, seed: int) -> list[dict[str, Any]]:
    """What an earlier run left; a line that was cut short is measured again."""
    if not file.exists():
        return []
    lines = [line for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
    file.write_text("".join(lines))
    return [row for row in map(json.loads, lines) if row["seed"] == seed]


def count_rows(setting: Setting, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """By method: of how many samples each term's truth was covered, and the median width."""
    here = [row for row in rows if row["setting"] == setting.label]
    met = [row for row in here if row["found"]]
    for method in dict.fromkeys(name for row in met for name in row["found"]):
        ends = np.array([row["found"][method] for row in met], dtype=float)
        truth = np.array([row["truth"] for row in met])
        inside = (ends[:, :, 0] <= truth) & (truth <= ends[:, :, 1])
        known = np.isfinite(ends).all(axis=(0, 2))
        widths = np.median(ends[:, :, 1] - ends[:, :, 0], axis=0)
        yield {
            "setting": setting.label, "method": method, "samples": len(here), "met": len(met),
            "covered": {term: int(inside[:, k].sum()) for k, term in enumerate(TERMS) if known[k]},
            "width": {term: float(f"{widths[k]:.4g}") for k, term in enumerate(TERMS) if known[k]},
        }  # fmt: skip


def tabulate(counts: list[dict[str, Any]]) -> Iterator[str]:
    """Coverage and median width in Markdown, one table per setting; bold: two standard errors below 0.95."""
    for setting in dict.fromkeys(count["setting"] for count in counts):
        here = [count for count in counts if count["setting"] == setting]
        met, samples = here[0]["met"], here[0]["samples"]
        unmet = "" if met == samples else f", {samples - met} of which met no target"
        error = np.sqrt(0.95 * 0.05 / met)
        yield f"\n**{setting}**: {samples} samples{unmet}; standard error {error:.3f} at 0.95\n"
        yield f"| covered (median width) | {' | '.join(TERMS)} |"
        yield "| --- " * (len(TERMS) + 1) + "|"
        for count in here:
            cells = []
            for term in TERMS:
                share = count["covered"].get(term, 0) / met
                mark = "**" if share < 0.95 - 2 * error else ""
                there = term in count["covered"]
                cells.append(f"{mark}{share:.3f}{mark} ({count['width'][term]:.3g})" if there else "")
            yield f"| {count['method']} | {' | '.join(cells)} |"


def draw(counts: list[dict[str, Any]], file: Path) -> None:
    """Coverage by term, a panel per setting, with two binomial standard errors either way."""
    from matplotlib.figure import Figure

    settings = list(dict.fromkeys(count["setting"] for count in counts))
    rows = -(-len(settings) // 3)
    figure = Figure(figsize=(12, 2.6 * rows), layout="constrained")
    for place, setting in enumerate(settings):
        axes = figure.add_subplot(rows, min(3, len(settings)), place + 1)
        here = [count for count in counts if count["setting"] == setting]
        axes.axhspan(0.92, 0.97, color="#eeeeee")
        axes.axhline(0.95, color="#999999", linewidth=0.8)
        for number, count in enumerate(here):
            known = [k for k, term in enumerate(TERMS[:-1]) if term in count["covered"]]
            share = np.array([count["covered"][TERMS[k]] for k in known]) / count["met"]
            error = 2 * np.sqrt(share * (1 - share) / count["met"])
            at = np.array(known) + 0.15 * (number - (len(here) - 1) / 2)
            colour = _COLOURS[number % len(_COLOURS)]
            told = {"fmt": "o", "markersize": 3, "color": colour, "label": count["method"]}
            axes.errorbar(at, share, error, **told)
        axes.set_ylim(0.4, 1.02)
        axes.set_title(f"{setting}: {here[0]['met']} samples", fontsize=9)
        axes.set_xticks(range(len(TERMS) - 1), TERMS[:-1], rotation=20, fontsize=7, ha="right")
        axes.legend(fontsize=6, loc="lower left", frameon=False)
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    fill_page(Path(sys.argv[1]), Path(sys.argv[2]))
