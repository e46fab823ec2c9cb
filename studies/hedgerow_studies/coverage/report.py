"""All samples of the study, checkpointed, and what they say: `hedgerow study coverage --out folder`.

`rows.jsonl` has one line per sample; a run goes on where it stopped. `coverage.md` has the tables of
docs/coverage.md, `coverage.json` the counts they are made from.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow_studies.coverage.measure import TERMS, Setting, measure
from hedgerow_studies.work import each, processors

ROWS, PAGE, COUNTS, PICTURE = "rows.jsonl", "coverage.md", "coverage.json", "coverage.png"
SETTINGS = (
    Setting("strict", 2000, 1.0, 10, 500),
    Setting("strict", 200, 1.0, 10, 200),
    Setting("strict", 2000, 0.5, 10, 200),
    Setting("unweighted", 2000, None, 5, 200),
    Setting("adp", 2000, 5.7, 5, 100, 40),
    Setting("strict", 20_000, 1.0, 10, 100),
    Setting("strict", 200, 0.5, 10, 200),
    Setting("strict", 20_000, 0.5, 10, 100),
    Setting("unweighted", 200, None, 5, 200),
    Setting("unweighted", 20_000, None, 5, 100),
    Setting("adp", 200, 5.7, 5, 100, 40),
    Setting("truncated", 2000, 5.7, 5, 50, 40),
    Setting("truncated", 200, 5.7, 5, 50, 40),
    Setting("adp", 20_000, 5.7, 5, 50, 40),
    Setting("truncated", 20_000, 5.7, 5, 20, 40),
)
QUICK = (Setting("strict", 200, 1.0, 3, 2, 20), Setting("unweighted", 200, None, 3, 2))


def write_report(
    out: Path,
    *,
    quick: bool = False,
    only: str = "",
    samples: int | None = None,
    seed: int = 1,
    jobs: int | None = None,
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
        for number in range(setting.samples if samples is None else min(samples, setting.samples))
        if compute and (setting.label, number) not in held
    ]
    for done, row in enumerate(each(tasks, measure, jobs=processors(jobs)), 1):
        rows.append(row)
        with (out / ROWS).open("a") as file:
            file.write(json.dumps(row) + "\n")
        progress(done, len(tasks))
    counts = [count for setting in (QUICK if quick else SETTINGS) for count in count_rows(setting, rows)]
    (out / COUNTS).write_text(json.dumps(counts, indent=1, ensure_ascii=False) + "\n")
    page = "\n".join(tabulate(counts)) + "\n"
    (out / PAGE).write_text(page)
    return page


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
    """Coverage in Markdown, one table per setting; what lies two standard errors below 0.95 is bold."""
    for setting in dict.fromkeys(count["setting"] for count in counts):
        here = [count for count in counts if count["setting"] == setting]
        met, samples = here[0]["met"], here[0]["samples"]
        unmet = "" if met == samples else f", of which {samples - met} met no target"
        error = np.sqrt(0.95 * 0.05 / met)
        yield f"\n**{setting}**: {samples} samples{unmet}; standard error {error:.3f} at 0.95\n"
        yield f"| | {' | '.join(TERMS)} |"
        yield "| --- " * (len(TERMS) + 1) + "|"
        for count in here:
            shares = {term: number / met for term, number in count["covered"].items()}
            cells = ["" if term not in shares else f"{shares[term]:.3f}" for term in TERMS]
            cells = [f"**{cell}**" if cell and float(cell) < 0.95 - 2 * error else cell for cell in cells]
            yield f"| {count['method']} | {' | '.join(cells)} |"
            if "width" in count:
                widths = [f"{count['width'][term]:.3g}" if term in shares else "" for term in TERMS]
                yield f"| median width | {' | '.join(widths)} |"
