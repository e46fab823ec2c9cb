"""Write docs/paper.md and its figures from a finished run: python -m hedgerow_studies.pages.paper results

Every number on the page is read from the run's claims.json, table and figure data; none is typed here,
apart from the run's own settings and what the paper prints.
"""

import json
import sys
from pathlib import Path

import pandas as pd
from PIL import Image

import hedgerow as hr

DOCS = Path("docs")
SHOWN = {
    "figures": (
        "fig02-sim-Lbounds-repeated",
        "fig03-sim-ua",
        "fig05-sim-Lbounds-ns",
        "fig07-sim-alphas-single-truncated-similar-eps",
        "fig10-sim-Q90-single-truncated-similar-eps",
        "fig11-sim-Lbounds-top-comparison",
        "fig12-sim-ums-top-comparison",
        "fig15-app-Lbounds",
        "fig16-app-data",
    ),
    "beyond": ("fig02-sim-Lbounds-repeated-lipschitz", "fig05-sim-Lbounds-ns-oscillation"),
}


class Run:
    """A finished run, asked for its numbers."""

    def __init__(self, results: Path) -> None:
        self.results = results
        content = json.loads((results / "claims.json").read_text())
        self.settings, self.verdicts = content["settings"], content["verdicts"]
        self.claims = {claim["id"]: claim for claim in content["claims"]}

    def check(self, claim: str, *words: str, error: bool = True, digits: int = 3) -> str:
        """The one check of a claim whose condition and quantity hold all the words, as value ± error."""
        found = [
            check
            for check in self.claims[claim]["checks"]
            if all(word in f"{check['condition']} | {check['quantity']}" for word in words)
        ]
        if len(found) != 1:
            raise SystemExit(f"{claim} {words}: {len(found)} checks fit")
        text = f"{found[0]['value']:.{digits}g}"
        return f"{text} ± {found[0]['uncertainty']:.1g}" if error else text

    def detail(self, claim: str, *words: str) -> str:
        """What is said beside that check."""
        checks = self.claims[claim]["checks"]
        fit = [c for c in checks if all(word in f"{c['condition']} | {c['quantity']}" for word in words)]
        return fit[0]["detail"].split(";")[0]

    def verdict(self, claim: str) -> str:
        """The verdict, as a link into the list of claims would give it."""
        return f"*{self.claims[claim]['verdict']}*"

    def scatter(self) -> float:
        """Standard deviation of the mean over copies of the application's Unweighted fit, relative to it."""
        table = pd.read_csv(self.results / "figures" / "table1-app-utility.csv")
        row = table.query("prior == 'authors' and statistic == 'mean' and standard == 'Unweighted'").iloc[0]
        return float(row["spread_over_copies"] / row["value"])

    def medians(self, folder: str, name: str, **where: object) -> dict[str, float]:
        """Median of a figure's values by synthesizer."""
        table = pd.read_csv(self.results / folder / f"{name}.csv")
        for column, value in where.items():
            table = table[table[column] == value]
        medians = table.groupby("standard", sort=False)["value"].median()
        return {str(label): float(value) for label, value in medians.items()}


def page(run: Run) -> str:
    """The page."""
    order = run.medians("beyond", "fig02-sim-Lbounds-repeated-lipschitz")
    prices = pd.DataFrame(
        [
            (label, f"{order[label]:.1f}", f"{order.get(label + ' withheld', order[label]):.1f}")
            for label in order
            if not label.endswith("withheld")
        ],
        columns=["synthesizer", "ε, its own neighbour", "ε, x withheld"],
    )
    kinds = run.verdicts
    small, large = (run.medians("beyond", "fig05-sim-Lbounds-ns-oscillation", n=n) for n in (200, 6400))
    table = (run.results / "figures" / "table1-app-utility.md").read_text()
    return f"""# Notes on the paper

What came out when the experiments of Hu, Williams and Savitsky, *Privacy Amplification for Synthetic
data using Range Restriction*, were run again with hedgerow. This page is written by
`hedgerow_studies.pages.paper` from the results of

```
pip install ./studies                 # once, from a checkout
hedgerow reproduce --out results      # or python -m hedgerow_studies --out results; add --quick for a look
```

({run.settings["samples"]} samples a study, seed {run.settings["seed"]}). The run leaves all 20 figures
and the table in `results/figures`, a second set in `results/beyond`, each as PNG, SVG and the CSV it
was drawn from, and the verdict on every empirical sentence in `results/claims.md`. It can be stopped at
any moment; the same command goes on where it stopped and ends with the same bytes. Verdicts are
computed: a difference counts when it exceeds two Monte Carlo standard errors.

**Of {len(run.claims)} claims {kinds["holds"]} hold, {kinds["holds only under"]} hold only under a
condition that is named, {kinds["does not hold"]} do not hold.**

## What was run

- Simulations by the exact lognormal model, 1000 draws, λ from 1000 simulated values as in the paper,
  linear weights. Every synthesizer of a sample gets the same random numbers, so that differences are
  paired.
- Utility from five copies a sample, pooled. The paper does not say how many it used.
- Both truncated sensitivities: α(f − log γ), from which the paper's figures come, and αf − log γ, which
  it prints.
- The application under the authors' prior (coefficients normal with half-t(3, 0, 1) scales and LKJ(6)
  correlation on raw predictors, half-t(3, 0, 1) on σ) and under a vague prior, ten fits
  each. The authors' prior is drawn from without a Markov chain: its hyperprior is replaced by a fixed
  set of quasi-random points, and the posterior under those is exact. A test compares it with
  importance sampling; NUTS diverges on this posterior and misses its tail.

## What was decided after looking

Two choices were made with results in sight, and should be read that way. The seed was not: it is 1, and
decides the single-sample figures and claims; those over many samples rest on all of them.

- The condition "spread over the copies, not level" of Figures 8 to 10 was added after a first full
  evaluation in which these three claims did not hold. By level, which is what the paper speaks of, they
  still do not.
- The allowance for Monte Carlo error in the claims on printed table values came after the same look. It
  then turned the one on the 90 % quantile from "does not hold" to "holds only under the authors' prior".

Without them, more claims would not hold.

## Story 1: a range lowers the price

![Lipschitz bounds over 100 samples](figures/paper/fig02-sim-Lbounds-repeated.png)

The order of the six synthesizers is the paper's: Unweighted, Weighted, (0.4, 1.8) trunc, (0.6, 1.2)
trunc, (0.4, 1.8) avg, (0.6, 1.2) avg, from the dearest to the cheapest, strictly in
{run.detail("fig2-full-order", "the form α")} samples. Paired differences of ε to Weighted:
{run.check("fig2-finite-range-lowers", "the form α", "(0.4, 1.8) trunc")} for (0.4, 1.8) trunc,
{run.check("fig2-finite-range-lowers", "the form α", "(0.6, 1.2) trunc")} for (0.6, 1.2) trunc,
{run.check("fig2-finite-range-lowers", "the form α", "(0.4, 1.8) avg")} for (0.4, 1.8) avg,
{run.check("fig2-finite-range-lowers", "the form α", "(0.6, 1.2) avg")} for (0.6, 1.2) avg.

**The printed formula says the opposite.** With αf − log γ truncation costs
{run.check("sec3-truncated-expected-below", "(0.4, 1.8) trunc, as printed")} and
{run.check("sec3-truncated-expected-below", "(0.6, 1.2) trunc, as printed")} *more* than Weighted: a
record of weight zero is still charged −log γ. Every sentence on the order of truncated budgets
therefore {run.verdict("fig2-finite-range-lowers")}.

**Amplification is not a theorem.** The expectation that truncation never costs more holds at the
paper's two ranges, and need not hold for very narrow ones: ε minus that of Weighted is
{run.check("sec3-truncated-expected-below", "(0.97, 1.03) trunc")} at (0.97, 1.03) and
{run.check("sec3-truncated-expected-below", "(0.99, 1.01) trunc")} at (0.99, 1.01).

"Weighted has the highest budget" leaves out Unweighted, which stands in the same figure with a far
higher one.

![Average ECDF difference over 100 samples](figures/paper/fig03-sim-ua.png)

Averaged synthesizers lose least of the weighted ones; Unweighted loses less still. Weighted and
truncated copies are the same copies. That a shorter range improves utility
{run.verdict("fig3-shorter-improves")}: for truncated ranges it cannot, since the range does not enter
the mechanism. By the 90 % quantile the gain of (0.6, 1.2) avg over (0.4, 1.8) avg is
{run.check("fig4-shorter-improves", "averaged")} of the value.

## Growing samples

![Lipschitz bounds at four sample sizes](figures/paper/fig05-sim-Lbounds-ns.png)

The paper sees the local sensitivity contract onto a global one. Measured: the spread of ε over samples
shrinks from n = 200 to 6400 (for Weighted to {run.check("fig5-contraction", "spread", "(-Inf, Inf)")}
of what it was), but as n to the power {run.check("sec2-contraction-rate")}, not −1/2, and the mean does
not settle: from n = 1600 to 6400 it grows by
{run.check("fig5-contraction", "mean ε, Unweighted", "1600 to 6400")} for Unweighted,
{run.check("fig5-contraction", "mean ε, (-Inf, Inf)", "1600 to 6400")} for Weighted,
{run.check("fig5-contraction", "mean ε, (0.6, 1.2) trunc", "1600 to 6400")} for (0.6, 1.2) trunc. A
maximum over more records reaches further into the tail; for this model there is no finite global
sensitivity to contract onto ([maths](maths.md)). The oscillation behaves as one would hope: its median
falls from {small["(-Inf, Inf)"]:.2g} to {large["(-Inf, Inf)"]:.2g} for Weighted.

![Oscillation at four sample sizes](figures/paper/fig05-sim-Lbounds-ns-oscillation.png)

## Story 2: the same price, the same utility

Scaling the weights to the price of (0.6, 1.2) trunc takes scales
{run.check("sec42-scales", "(-Inf, Inf)")} for Weighted and
{run.check("sec42-scales", "(0.4, 1.8) trunc")} for (0.4, 1.8) trunc (the paper: 0.73 and 0.88), at a
common ε of {run.check("fig6-common-epsilon-5.7")} on average over samples (the paper's sample: 5.7).
The weights stand in the paper's order.

![Weights at a common price](figures/paper/fig07-sim-alphas-single-truncated-similar-eps.png)
![90 % quantile at a common price](figures/paper/fig10-sim-Q90-single-truncated-similar-eps.png)

What the paper concludes from it was not found. The relative error of the 90 % quantile changes by
{run.check("sec42-both-truncated-better", "90 %", "(0.6, 1.2) trunc")} from Weighted to (0.6, 1.2)
trunc, that of the mean by {run.check("sec42-both-truncated-better", "the mean", "(0.6, 1.2) trunc")},
that of the median by {run.check("sec42-both-truncated-better", "the median", "(0.6, 1.2) trunc")}:
nothing, or the wrong way. What is lost is lost to the *shape* of the weights, which moves the centre of
the posterior and does not change when all of them are scaled. Larger weights do make the copies a few
per cent steadier (log ratio of standard deviations
{run.check("fig10-utility-order-q90", "spread over the copies", "(0.4, 1.8) trunc over (-Inf, Inf)")}
and
{run.check("fig10-utility-order-q90", "spread over the copies", "(0.6, 1.2) trunc over (0.4, 1.8) trunc")}
for the 90 % quantile); in that sense only the order holds. Under the printed formula the story cannot
be told: (0.6, 1.2) trunc would be the dearest of the three.

## Story 3: a wider range for the top

![Lipschitz bounds with a wider range for the top](figures/paper/fig11-sim-Lbounds-top-comparison.png)
![Maximum ECDF difference with a wider range for the top](figures/paper/fig12-sim-ums-top-comparison.png)

As in the paper. ε rises by {run.check("fig11-wider-top-costs-more", "Top 1%").lstrip("-")} from Top 1%
to Top 5% and by {run.check("fig11-wider-top-costs-more", "Top 10%").lstrip("-")} from there to Top 10%,
which still costs {run.check("fig11-top-10-below-weighted").lstrip("-")} less than Weighted; the ECDF
maximum, the median, the 90 % quantile and the mean move away from the data step by step.

## The application

The confidential mean, median and 90 % quantile that the paper prints are those of 19 of the 22
published specimens, and of no other 19 or more of them. `hr.datasets.fatigue(paper=True)` returns
these.

![By-record Lipschitz values of the fatigue data](figures/paper/fig15-app-Lbounds.png)
![Confidential and synthetic data](figures/paper/fig16-app-data.png)

{table}
(Our rows: means over copies and fits.)

- The budgets stand in the paper's order under either prior, with α(f − log γ).
- The paper's order of the columns, lowest for Weighted and rising to Unweighted,
  {run.verdict("table1-order-mean")}. With a vague prior the down-weighted fit does not shrink, and the
  weighted mean lies above the unweighted one.
- **Bold entries and caption disagree.** The caption says the best in each row is bold. Of the printed
  medians the nearest to the confidential 15616 is Weighted's 15991, not the bold 19951. In all three
  rows the bold and the underlined entry are the nearest and second nearest to the *Unweighted* column.
  That the shorter averaged range is best {run.verdict("table1-best-median")} for the median.
- The printed values are what a single table of 19 records may show under the authors' prior; means of
  such tables have a standard deviation of {run.scatter():.0%} of their size, so that one table ranks
  nothing.
- Averaged copies preserve the distribution better than Weighted:
  {run.verdict("fig16-averaged-preserve-better")}.

## A range price beside the withheld price

![Range prices beside withheld prices](figures/paper/fig02-sim-Lbounds-repeated-lipschitz.png)

{markdown(prices)}

The averaged standards' neighbour still uses x at power λ. With x withheld the same synthesizers cost
what Unweighted costs. The second set of figures shows this for every figure of ε, under the Lipschitz,
oscillation and exact bounds; the exact loss has no closed form for a truncated range's own neighbour,
nor under the authors' prior.

*Measured with hedgerow {hr.__version__}.*
"""


def markdown(table: pd.DataFrame) -> str:
    """A table in Markdown."""
    rows = [list(table.columns), ["---", *["---:"] * (table.shape[1] - 1)], *table.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def small_copy(source: Path, target: Path) -> None:
    """A picture of at most 60 KB: fewer pixels, then fewer colours."""
    target.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.open(source).convert("RGB")
    for width, colours in ((1000, 128), (1000, 48), (850, 48), (850, 24)):
        height = round(picture.height * width / picture.width)
        smaller = (
            picture.resize((width, height), Image.Resampling.LANCZOS) if picture.width > width else picture
        )
        smaller.quantize(colours, dither=Image.Dither.NONE).save(target, optimize=True)
        if target.stat().st_size <= 60_000:
            return
    raise SystemExit(f"{target.name} stays above 60 KB")


if __name__ == "__main__":
    results = Path(sys.argv[1])
    for folder, names in SHOWN.items():
        for name in names:
            small_copy(results / folder / f"{name}.png", DOCS / "figures" / "paper" / f"{name}.png")
    (DOCS / "paper.md").write_text(page(Run(results)))
