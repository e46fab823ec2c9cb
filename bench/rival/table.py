"""Scores of every copy against its own table, averaged over seeds: one Markdown table."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bench.rival.plan import DELTA, Case, Copy, Shelf, arguments, cases, read
from hedgerow.evidence.utility import ecdf_distance, statistics

MEASURES = ("ECDF max", "median", "Q90", "Q99", "mean", "slope", "σ")
GUARANTEES = {
    "none": "none at this ε",
    "lipschitz": "ADP: draw-based, local; not DP",
    "oscillation": "ADP: draw-based, local; not DP",
    "strict": "ε-DP",
    "approximate": f"(ε, δ)-DP, δ = {DELTA:.0e}".replace("e-0", "e-"),
    "pure": "ε-DP",
}
NOTES = f"""\
Each figure is the mean over seeds of the absolute difference between a copy and its own table, ± the standard
error of that mean. ECDF max: the largest gap between the two distribution functions of x. Median, Q90, Q99,
mean: |log(copy / table)|. Slope and σ: of the least-squares line of log x on z. "z kept": one x for each real
z, which is published; "both made": synthetic z as well. Stratified or independent: how x was drawn from what
was released. Joint: in how many of the seeds the method measured the 2-way marginal of z and x at all.

What ε means. AIM, MST, two-way table: for every table, one row (z, x) added or removed, with δ = {DELTA:g} or
0; where z is kept, the same for x_i withheld (its row not counted, its z still published), and 2ε with
(1 + e^ε)δ for x_i replaced. Strict: for every table, x_i withheld, 2ε for x_i replaced; z and n are public,
and the box of parameters must be one that the owner can defend without the data. ADP: x_i withheld, for the
table at hand and the draws made, on a set that holds all but a stated share of the fitted posterior, with
weights held fixed; this is not differential privacy, and its ε is not the same promise as the others' ε.
Unweighted and bins alone promise nothing at this ε: they show what model and bins do without privacy."""


@dataclass(frozen=True)
class Row:
    n: int
    epsilon: float
    method: str
    output: str
    guarantee: str


@dataclass(frozen=True)
class Score:
    measures: np.ndarray
    joint: bool  # whether the fit measured the joint distribution of z and x


def line(x: np.ndarray, z: np.ndarray) -> tuple[float, float]:
    """Slope and residual standard deviation of log x on z."""
    design = np.column_stack([np.ones_like(z), z])
    beta, _, _, _ = np.linalg.lstsq(design, np.log(x), rcond=None)
    residual = np.log(x) - design @ beta
    return float(beta[1]), float(np.sqrt(residual @ residual / (len(x) - 2)))


def score(table: tuple[np.ndarray, np.ndarray], copy: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The measures, in their order."""
    (x, z), (new_x, new_z) = table, copy
    true, found = statistics(x), statistics(new_x)
    logs = [abs(np.log(found[name] / true[name])) for name in ("median", "q90", "q99", "mean")]
    lines = [abs(a - b) for a, b in zip(line(new_x, new_z), line(x, z), strict=True)]
    return np.array([ecdf_distance(x, new_x).maximum, *logs, *lines])


def collect(copies: Iterable[Copy], out, wanted: set[Case]) -> dict[Row, list[Score]]:
    found: dict[Row, list[Score]] = {}
    for copy in copies:
        if copy.case in wanted:
            row = Row(copy.n, copy.epsilon, copy.method, copy.output, copy.guarantee)
            measures = score(read(copy.case.table(out)), read(out / copy.file))
            found.setdefault(row, []).append(Score(measures, "z·y" in copy.detail))
    return found


def markdown(found: dict[Row, list[Score]], *, everything: bool) -> str:
    head = ("n", "ε", "method", "outcomes", "guarantee", *MEASURES, "seeds", "joint")
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    order = {row: place for place, row in enumerate(found)}
    for row in sorted(found, key=lambda row: (row.n, row.epsilon, order[row])):
        rival = not row.method.startswith("hedgerow")
        if not everything and rival and row.output != "z kept, stratified":
            continue
        scores = np.array([one.measures for one in found[row]])
        seeds = len(scores)
        error = scores.std(axis=0, ddof=1) / np.sqrt(seeds) if seeds > 1 else [None] * len(MEASURES)
        joint = sum(one.joint for one in found[row]) if rival and row.guarantee != "none" else ""
        cells = [
            f"{m:.3f}" if e is None else f"{m:.3f} ± {e:.3f}"
            for m, e in zip(scores.mean(axis=0), error, strict=True)
        ]
        lines.append(
            f"| {row.n} | {row.epsilon:g} | {row.method} | {row.output} | {GUARANTEES[row.guarantee]} | "
            f"{' | '.join(cells)} | {seeds} | {joint} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--all", action="store_true", help="every way of drawing the rivals' outcomes")
    given = parser.parse_args()
    copies = [copy for maker in ("ours", "rival") for copy in Shelf(given.out, maker).copies]
    print("# Rivals, the whole table\n")
    print(markdown(collect(copies, given.out, set(cases(given))), everything=given.all))
    print(f"\n{NOTES}")


if __name__ == "__main__":
    main()
