"""Wrong models under strict privacy by noisy statistics: what a margin keeps of the distribution.

`python -m hedgerow_studies.strict_margin` prints ECDF maximum / slope error of one copy, means over simulated
tables: the model without privacy, by noisy statistics without and with a margin, and with residuals projected
off the predictors. n = 2000, ε = 1 withheld, limits −6 … 9 about a line with σ near 1. Copies come from a
posterior draw, stratified; slopes are compared with least squares on the original.
"""

from collections.abc import Callable
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from scipy.stats import ks_2samp

from hedgerow.arrays import Array
from hedgerow.mechanism.noisy.copies import predict
from hedgerow.mechanism.noisy.margin import fit_tilt
from hedgerow.mechanism.noisy.posterior import draw_posterior
from hedgerow.mechanism.noisy.recipe import Recipe
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.privacy.terms import Sampling
from hedgerow.randomness import Key
from hedgerow_studies.breaches import markdown
from hedgerow_studies.work import Jobs, each, processors

RECORDS, SAMPLES, LIMITS = 2000, 30, (-6.0, 9.0)
Errors = Callable[[np.random.Generator, Array, Array], Array]


def _groups(random: np.random.Generator, z: Array, g: Array) -> Array:
    second = random.uniform(size=len(z)) < 0.3
    return np.where(second, 1.4, -0.6) + 0.4 * random.normal(size=len(z))


MODELS: dict[str, Errors] = {
    "right": lambda random, z, g: random.normal(size=len(z)),
    "t₃": lambda random, z, g: random.standard_t(3, size=len(z)) / np.sqrt(3),
    "skewed": lambda random, z, g: (random.gamma(1.5, size=len(z)) - 1.5) / np.sqrt(1.5),
    "two groups": _groups,
    "spread growing": lambda random, z, g: 0.7 * np.exp(0.6 * z) * random.normal(size=len(z)),
    "missing interaction": lambda random, z, g: random.normal(size=len(z)) + (2 * g - 1) * z,
}


def measure(model: str, seed: int, epsilon: float, share: float) -> dict[str, float | str]:
    """Errors on one simulated table."""
    random = np.random.default_rng([seed, list(MODELS).index(model)])
    z, g = random.normal(size=RECORDS), (random.uniform(size=RECORDS) < 0.5).astype(np.float64)
    X = np.column_stack((np.ones(RECORDS), z, g))
    outcome = 1 + z + MODELS[model](random, z, g)
    key, present = Key.from_seed(seed), np.ones(RECORDS, dtype=bool)
    line, rest, *_ = np.linalg.lstsq(X, outcome)
    sigma = float(np.sqrt(rest[0] / random.chisquare(RECORDS - 3)))
    drawn = line + sigma * np.linalg.cholesky(np.linalg.inv(X.T @ X)) @ random.normal(size=3)
    row: dict[str, float | str] = {"model": model}

    def note(name: str, copy: Array) -> None:
        slope = np.linalg.lstsq(X, copy)[0][1]
        row[f"{name} ecdf"] = float(ks_2samp(copy, outcome, method="asymp").statistic)
        row[f"{name} slope"] = abs(float(slope - line[1]))

    def settle(part: float) -> Recipe:
        return make_recipe(X, low=LIMITS[0], high=LIMITS[1], epsilon=epsilon, margin_share=part)

    note(
        "Unweighted", predict(settle(0.0), drawn, sigma, None, sampling="stratified", key=key.child("plain"))
    )
    for part in (0.0, share):
        released = release_statistics(settle(part), outcome, present, key=key.child(f"noise {part}"))
        draw = draw_posterior(released, draws=1, key=key).parameters
        beta, spread = draw["beta"][0], float(draw["sigma"][0])
        tilt = fit_tilt(released, beta, spread) if part else None
        ways: tuple[Sampling, ...] = ("stratified", "projected") if part else ("stratified",)
        for way in ways:
            copy = predict(released.recipe, beta, spread, tilt, sampling=way, key=key.child(way))
            note(("margin" if part else "model only") + ", projected" * (way == "projected"), copy)
    return row


def table(
    samples: int = SAMPLES, epsilon: float = 1.0, share: float = 0.25, *, jobs: Jobs = 1
) -> pd.DataFrame:
    """One row per model: ECDF maximum / slope error."""
    tasks = [(model, seed, epsilon, share) for model in MODELS for seed in range(1, samples + 1)]
    means = pd.DataFrame(list(each(tasks, measure, jobs=jobs))).groupby("model").mean().loc[list(MODELS)]
    names = [str(name).removesuffix(" ecdf") for name in means if str(name).endswith("ecdf")]
    shown = {
        name: [
            f"{e:.3f} / {s:.3f}" for e, s in zip(means[f"{name} ecdf"], means[f"{name} slope"], strict=True)
        ]
        for name in names
    }
    return pd.DataFrame({"errors of the model": list(MODELS), **shown})


def main(
    samples: Annotated[int, typer.Option(help="Simulated tables per model.")] = SAMPLES,
    epsilon: Annotated[float, typer.Option(help="ε, withheld.")] = 1.0,
    share: Annotated[float, typer.Option(help="Share of ε for the margin.")] = 0.25,
    jobs: Annotated[int | None, typer.Option(help="Processes; as many as cores.")] = None,
) -> None:
    """Print the table."""
    typer.echo(markdown(table(samples, epsilon, share, jobs=processors(jobs))))


if __name__ == "__main__":
    typer.run(main)
