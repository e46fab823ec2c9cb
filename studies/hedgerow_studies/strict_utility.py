"""What strict differential privacy costs: the simulation at ε = 0.5, 1 and 5.7, next to ADP.

`python -m hedgerow_studies.strict_utility` prints the table of docs/honesty.md; `--censored` prints where the
censored likelihood puts σ instead. n = 2000, one copy from each of 20 simulated tables, nothing corrected.
"""

import warnings
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from hedgerow import datasets
from hedgerow.advice.elicit import widen_box
from hedgerow.errors import CalibrationError, HedgerowWarning
from hedgerow.evidence.utility import compare_copies
from hedgerow.models.prior import Prior
from hedgerow.models.programs.program import Program
from hedgerow.privacy.censored import Censored
from hedgerow.privacy.standards import ADP, Standard, Unweighted
from hedgerow.privacy.strict import Strict
from hedgerow.synthesizer import Synthesizer
from hedgerow.tables.table import Table
from hedgerow_studies.breaches import markdown
from hedgerow_studies.work import Jobs, each, processors

RECORDS, SEEDS, TARGETS = 2000, tuple(range(1, 21)), (0.5, 1.0, 5.7)
BOX = {"Intercept": (0.0, 2.0), "z": (0.5, 1.5), "sigma": (0.6, 1.6)}
STANDARDS: dict[str, Standard] = {
    "Strict": Strict(BOX),
    "Strict, box three times as wide": Strict(widen_box(BOX, 3.0)),
    "ADP, linear weights, 2Δ": ADP(),
}
_KEEPS = (0.5, 0.8, 0.85, 0.9, 0.95, 1.0)


def measured(seed: int) -> list[dict[str, Any]]:
    """One simulated table under every standard and target."""
    data = datasets.lognormal(RECORDS, seed=seed)
    plain = Synthesizer("x ~ z", standard=Unweighted(), seed=seed).fit(data)
    rows = [{"standard": "Unweighted", "epsilon": np.inf, **_figures(plain)}]
    for epsilon in TARGETS:
        for label, standard in STANDARDS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HedgerowWarning)
                try:
                    synth = Synthesizer("x ~ z", standard=standard, epsilon=epsilon, seed=seed).fit(data)
                except CalibrationError:
                    continue
            rows.append({"standard": label, "epsilon": epsilon, **_figures(synth)})
    return rows


def _figures(synth: Synthesizer) -> dict[str, float]:
    copy = Table.of(synth.sample().tables[0]).numbers("x")
    tidy = compare_copies(synth.outcome_, [copy])
    gap = dict(zip(tidy["statistic"], zip(tidy["original"], tidy["synthetic"], strict=True), strict=True))
    q90 = float(np.log(float(str(gap["q90"][1])) / float(str(gap["q90"][0]))))
    found = {"ecdf": float(str(gap["ecdf_max"][1])), "q90": abs(q90), "alpha": float(synth.alpha_.mean())}
    found["sigma"] = float(synth._need().outcome.fit.parameters["sigma"].mean())
    if isinstance(synth.settings.standard, Strict):
        found |= {"acceptance": synth.acceptance_, "edge": synth.edge_mass_}
    return found


def table(seeds: Sequence[int] = SEEDS, *, jobs: Jobs = 1) -> pd.DataFrame:
    """One row per standard and target, averaged over simulated tables."""
    rows = [row for part in each([(seed,) for seed in seeds], measured, jobs=jobs) for row in part]
    frame = pd.DataFrame(rows)
    found = []
    for label in (*STANDARDS, "Unweighted"):
        for epsilon in (*TARGETS, np.inf):
            part = frame[(frame["standard"] == label) & (frame["epsilon"] == epsilon)]
            if len(part):
                found.append(_row(label, epsilon, part, len(seeds)))
    return pd.DataFrame(found)


def _row(label: str, epsilon: float, part: pd.DataFrame, seeds: int) -> dict[str, Any]:
    error = part["ecdf"].std() / np.sqrt(len(part)) if len(part) > 1 else np.nan
    strict = part["acceptance"].notna().any()
    return {
        "standard": label,
        "ε": "none" if np.isinf(epsilon) else f"{epsilon:g}",
        "met": f"{len(part)} of {seeds}",
        "ECDF maximum": f"{part['ecdf'].mean():.3f} ± {error:.3f}",
        "error of log Q90": f"{part['q90'].mean():.2f}",
        "mean σ": f"{part['sigma'].mean():.2f}",
        "mean α": f"{part['alpha'].mean():.2f}",
        "acceptance": f"{part['acceptance'].mean():.2f}" if strict else "",
        "mass at the edge": f"{part['edge'].mean():.2f}" if strict else "",
    }


def edge(
    epsilons: Iterable[float] = (0.003, 0.3, 5.7), places: Iterable[str] = ("as simulated", "elsewhere")
) -> pd.DataFrame:
    """Acceptance and mass at the edge as ε shrinks, with the default prior and with a vague one, n = 200.

    "Elsewhere" is a box that the data contradict: the intercept lies outside it.
    """
    data = datasets.lognormal(200, seed=1)
    rows = []
    for place in places:
        box = BOX if place == "as simulated" else BOX | {"Intercept": (2.5, 4.5)}
        for name, prior in (("centred on the box", None), ("vague", Prior(slope=(0.0, 100.0)))):
            for epsilon in epsilons:
                synth = Synthesizer("x ~ z", standard=Strict(box), epsilon=epsilon, prior=prior, seed=1)
                row: dict[str, Any] = {"box": place, "prior": name, "ε": f"{epsilon:g}"}
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", HedgerowWarning)
                    synth.fit(data)
                row |= {"acceptance": f"{synth.acceptance_:.2g}", "edge": f"{synth.edge_mass_:.2f}"}
                rows.append(row)
    return pd.DataFrame(rows)


def censored(epsilons: Iterable[float] = (1.0, 5.7), keeps: Iterable[float] = _KEEPS) -> pd.DataFrame:
    """σ under the censored likelihood by `keep`, and under a box; the truth is 1. One table, n = 1000."""
    data = datasets.lognormal(1000, seed=2)
    rows = []
    for epsilon in epsilons:
        models: dict[str, dict[str, Any]] = {"Strict": {"standard": Strict(BOX)}}
        for prior, program in (("LogNormal(0, 0.25)", _narrow), ("HalfNormal(1.5)", _wide)):
            for keep in keeps:
                label = f"Censored, σ ~ {prior}, keep {keep:g}"
                models[label] = {"family": Program(program), "standard": Censored(keep)}
        for label, settings in models.items():
            synth = Synthesizer("x ~ z", epsilon=epsilon, seed=1, **settings).fit(data)
            sigma = synth._need().outcome.fit.parameters["sigma"]
            rows.append(
                {
                    "ε": f"{epsilon:g}",
                    "model": label,
                    "mean α": float(synth.alpha_.mean()),
                    "σ": f"{sigma.mean():.2f} ± {sigma.std():.2f}",
                }
            )
    return pd.DataFrame(rows)


def _narrow(X: Any, y: Any = None) -> None:
    """The simulation's model with priors about as wide as the box."""
    from numpyro import distributions as dist

    _regression(X, y, dist.LogNormal(0.0, 0.25))


def _wide(X: Any, y: Any = None) -> None:
    """The same with a prior for σ that reaches down to 0."""
    from numpyro import distributions as dist

    _regression(X, y, dist.HalfNormal(1.5))


def _regression(X: Any, y: Any, spread: Any) -> None:
    import numpyro
    from numpyro import distributions as dist

    level = numpyro.sample("level", dist.Normal(1.0, 0.5))
    slope = numpyro.sample("slope", dist.Normal(1.0, 0.25))
    sigma = numpyro.sample("sigma", spread)
    with numpyro.plate("records", X.shape[0]):
        numpyro.sample("x", dist.LogNormal(level + slope * X[:, 1], sigma), obs=y)


def main(
    jobs: Annotated[int | None, typer.Option(help="Processes; as many as cores.")] = None,
    of_programs: Annotated[bool, typer.Option("--censored", help="The censored likelihood.")] = False,
) -> None:
    """Print the tables."""
    if of_programs:
        typer.echo(markdown(censored()))
        return
    typer.echo(markdown(table(jobs=processors(jobs))) + "\n")
    typer.echo(markdown(edge()))


if __name__ == "__main__":
    typer.run(main)
