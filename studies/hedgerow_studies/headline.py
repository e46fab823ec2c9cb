"""README's picture: ε against error, every line that can be under one and the same price.

`python -m hedgerow_studies.headline` computes what docs/studies/headline/rows.jsonl does not hold yet, ten
minutes of one core for all, and draws docs/figures/headline.png and its dark sister.

The paper's simulation, n = 2000, one copy of each of six samples. Left, local claims: ε at δ = 1e-6 by Rényi
divergence, the paper's linear weights too, whatever they were made for. Without a target a line stands where
its price is. Right, differential privacy, which is another claim. Open dots: the full audit, calibration
included, finds a loss above ε on the first sample.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import typer

from hedgerow import datasets
from hedgerow.errors import CalibrationError
from hedgerow.evidence.utility import ecdf_distance
from hedgerow.privacy.standards import Unweighted
from hedgerow.privacy.strict import Strict
from hedgerow.privacy.weights import LinearWeights
from hedgerow.synthesizer import Synthesizer
from hedgerow_studies.bias import BOX
from hedgerow_studies.work import silence_advice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RECORDS, SEEDS = 2000, tuple(range(4001, 4007))
ROWS, FIGURES = Path("docs/studies/headline/rows.jsonl"), Path("docs/figures")
LOCAL, STRICT = "local", "strict"
LIMITS = (float(np.exp(-3.0)), float(np.exp(9.0)))  # of x: five decades
PAPER: dict[str, Any] = {"weights": LinearWeights(), "bound": "renyi"}


@dataclass(frozen=True)
class Line:
    """One line of the picture; None among its targets is the recipe without a target."""

    label: str
    panel: str
    colour: str
    targets: tuple[float | None, ...]
    recipe: dict[str, Any] = field(hash=False)
    mark: str = "o"


_PAPERS, _ALL = (0.1, 0.25, 0.5, None), (0.25, 0.5, 1.0, 2.0, 4.0)
LINES = (
    Line("the paper's linear weights", LOCAL, "#D55E00", _PAPERS, PAPER),
    Line("the same, corrected", LOCAL, "#E69F00", _PAPERS, PAPER | {"debias": True}, "s"),
    Line("ours: preset recommended (stratified)", LOCAL, "#1E88E5", _ALL, {"preset": "recommended"}),
    Line("Unweighted", LOCAL, "#777777", (None,), {"standard": Unweighted(), "bound": "renyi"}, "D"),
    Line("Unweighted, stratified", LOCAL, "#777777", (None,),
         {"standard": Unweighted(), "bound": "renyi", "sampling": "stratified"}, "d"),
    Line("Strict(box), corrected, stratified", STRICT, "#009E73", _ALL,
         {"standard": Strict(BOX), "debias": True, "sampling": "stratified"}),
    Line("Strict(limits): noisy statistics, any number of copies", STRICT, "#CC79A7", (0.1, *_ALL),
         {"standard": Strict(limits=LIMITS), "sampling": "stratified"}),
)  # fmt: skip


def measured(line: Line, epsilon: float | None, seed: int) -> dict[str, Any]:
    """One copy of one sample: where it stands on the axis, and how far off it is."""
    data = datasets.lognormal(RECORDS, seed=seed)
    found: dict[str, Any] = {"line": line.label, "target": epsilon, "seed": seed, "ecdf": None}
    with silence_advice():
        try:
            synth = Synthesizer("x ~ z", epsilon=epsilon, seed=seed, **line.recipe).fit(data)
        except CalibrationError:
            return found
        copy = np.asarray(synth.sample().tables[0]["x"])
        found["ecdf"] = ecdf_distance(data["x"].to_numpy(), copy).maximum
        if synth.settings.noisy is None:
            found["alpha"] = float(synth.alpha_.mean())
        found["epsilon"] = synth.total_epsilon_ if epsilon is None else epsilon
        if line.panel == LOCAL and seed == SEEDS[0]:
            found["audited"] = synth.audit(riskiest=8, sample=0, keys=1).largest_recomputed
    return found


def run(file: Path) -> pd.DataFrame:
    """Compute what the file does not hold yet, sample by sample, and return all of it."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("}")]
    known = {(row["line"], row["target"], row["seed"]) for row in rows}
    for seed in SEEDS:
        for line in LINES:
            for target in line.targets:
                if (line.label, target, seed) not in known:
                    rows.append(measured(line, target, seed))
                    with file.open("a", encoding="utf-8") as out:
                        out.write(json.dumps(rows[-1], ensure_ascii=False) + "\n")
    return pd.DataFrame(rows)


def theme(*, dark: bool) -> Any:
    """Ink and ground of a picture that has a light and a dark version."""
    ink, ground = ("#e6edf3", "#0d1117") if dark else ("#1f2328", "#ffffff")
    inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    grounds = ("axes.facecolor", "figure.facecolor", "savefig.facecolor")
    return dict.fromkeys(inks, ink) | dict.fromkeys(grounds, ground)


def picture(rows: pd.DataFrame, path: Path, *, dark: bool) -> None:
    """Both panels, on a light or a dark ground."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style = theme(dark=dark)
    ground = style["axes.facecolor"]
    with rc_context(style):
        figure = Figure(figsize=(10.5, 4.8), layout="constrained")
        local, strict = figure.subplots(1, 2, sharey=True, width_ratios=[1.6, 1])
        for axes, panel in ((local, LOCAL), (strict, STRICT)):
            for line in (one for one in LINES if one.panel == panel):
                _draw(axes, line, rows[rows["line"] == line.label], ground)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xticks([0.1, 0.25, 0.5, 1, 2, 4], ["0.1", "0.25", "0.5", "1", "2", "4"])
            axes.set_xlim(0.08, 5)  # ticks would widen it
            axes.set_yticks([0.02, 0.05, 0.1, 0.2], ["0.02", "0.05", "0.1", "0.2"])
            axes.minorticks_off()
            axes.grid(linewidth=0.3, alpha=0.5)
            axes.spines[["top", "right"]].set_visible(False)
            axes.legend(frameon=False, fontsize=8.5)
        local.set_title("local claims, one price: ε at δ = 1e-6 (Rényi)", fontsize=10.5)
        strict.set_title("another claim: ε-differential privacy", fontsize=10.5)
        local.set_xlabel("ε of one copy. Open: the full audit finds a loss above ε")
        strict.set_xlabel("ε, another than on the left (box: of one copy)")
        local.set_ylabel("largest difference of the empirical\ndistribution functions (less is better)")
        figure.suptitle(
            f"The paper's simulation, n = {RECORDS}: mean of {len(SEEDS)} samples ± a standard error",
            fontsize=11,
        )
        figure.savefig(path, dpi=120, metadata={"Software": None})


def _draw(axes: "Axes", line: Line, rows: pd.DataFrame, ground: str) -> None:
    rows = rows[rows["ecdf"].notna()].assign(at=rows["target"].fillna(0.0).astype(float))
    by = rows.groupby("at")
    found = pd.DataFrame({"x": by["epsilon"].mean(), "y": by["ecdf"].mean(), "error": by["ecdf"].sem()})
    ratio = rows["audited"].astype(float) / rows["epsilon"].astype(float)  # each sample against its own ε
    found = found.assign(above=ratio.groupby(rows["at"]).max() > 1 + 1e-6).sort_values("x")
    joined = "-" if len(found) > 1 else ""
    axes.errorbar(found["x"], found["y"], yerr=found["error"], fmt=line.mark + joined, color=line.colour,
                  label=line.label, capsize=2)  # fmt: skip
    broken = found[found["above"]]
    axes.plot(broken["x"], broken["y"], line.mark, color=line.colour, markerfacecolor=ground, zorder=5)


def main() -> None:
    """Compute what is missing, and draw both pictures."""
    ROWS.parent.mkdir(parents=True, exist_ok=True)
    rows = run(ROWS)
    for name, dark in (("headline.png", False), ("headline-dark.png", True)):
        picture(rows, FIGURES / name, dark=dark)


if __name__ == "__main__":
    typer.run(main)
