"""How often intervals from combined copies cover the truth (docs/combine.md).

python -m hedgerow_studies.combining             # the rules in a normal model, where all else is exact
python -m hedgerow_studies.combining --strict 500  # ten strict copies of 2000 rows at ε = 1, so many tables
python -m hedgerow_studies.combining --stratified 300  # five copies of 200 rows, no privacy, both samplings
python -m hedgerow_studies.combining --margin 100  # ten strict copies that follow noisy counts, a wrong model
python -m hedgerow_studies.combining --missing 300  # ten copies of 200 rows, three in ten without an outcome
"""

import argparse
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

import hedgerow as hr
from hedgerow import receive
from hedgerow.privacy.strict.limits import Relation
from hedgerow.privacy.terms import Sampling
from hedgerow_studies.survey import make_copies

CASES = {
    "partial": [(2, 0.0), (5, 0.0), (10, 0.0), (10, 0.25), (10, 1.0), (10, 4.0)],
    "proper": [(1, 0.0), (5, 0.0)],
    "simple": [(1, 0.0), (5, 0.0)],
    "noisy": [(2, 1.0), (5, 0.0), (5, 0.25), (5, 1.0), (5, 4.0), (10, 0.0), (10, 0.25), (10, 1.0), (10, 4.0),
              (20, 0.25), (20, 1.0)],
    "full": [(5, 0.0), (20, 0.0)],
    "projected": [(3, 1.0), (10, 1.0)],
}  # fmt: skip
SAMPLED: tuple[Sampling, ...] = ("independent", "stratified")
RELATIONS: tuple[Relation, ...] = ("withheld", "replaced")
TRUTH = {
    "Intercept": 1.0,
    "z": 0.5,
    "C(group)[T.b]": 0.4,
    "sigma": 1.0,
    "a": 1.0,
    "b": 1.4,
    "pooled slope": 0.5,
}


def cover(rule: str, copies: int, noise: float = 0.0, *, rows: int = 40, runs: int = 4000) -> float:
    """The share of simulated tables of a normal variable whose 95 % interval holds the mean.

    Draws are those of the posterior given the table; given its mean with normal noise, whose variance is
    `noise` times that of the mean, where there is any or the rule is for it; the estimates, for `simple`.
    """
    rng = np.random.default_rng(20)
    data = rng.normal(size=(runs, rows))
    mean, spread = data.mean(axis=1)[:, None], data.var(axis=1, ddof=1)[:, None]
    if rule == "simple":
        centre, scale = (np.repeat(part, copies, axis=1) for part in (mean, np.sqrt(spread)))
    elif noise or rule in ("noisy", "projected"):
        seen = mean + rng.normal(size=mean.shape) * np.sqrt(noise / rows)
        centre = seen + rng.normal(size=(runs, copies)) * np.sqrt((1 + noise) / rows)
        scale = np.ones((runs, copies))
    else:
        scale = np.sqrt(spread * (rows - 1) / rng.chisquare(rows - 1, size=(runs, copies)))
        centre = mean + scale * rng.normal(size=(runs, copies)) / np.sqrt(rows)
    q, u = np.empty((copies, runs)), np.empty((copies, runs))
    for copy in range(copies):
        residuals = rng.normal(size=(runs, rows))
        if rule == "projected":
            residuals -= residuals.mean(axis=1, keepdims=True)
        values = centre[:, [copy]] + scale[:, [copy]] * residuals
        q[copy], u[copy] = values.mean(axis=1), values.var(axis=1, ddof=1) / rows
    found = receive.combine(q, u, rule=rule)
    return float(np.mean((found["lower"] <= 0) & (found["upper"] >= 0)))


def simulate_table(seed: int, rows: int) -> pd.DataFrame:
    """x about a line in z and two public groups, with normal errors."""
    rng = np.random.default_rng(seed)
    group, z = rng.integers(0, 2, rows), rng.normal(size=rows)
    x = 1 + 0.5 * z + 0.4 * group + rng.normal(size=rows)
    return pd.DataFrame({"x": x, "z": z, "group": np.where(group == 1, "b", "a")})


def find_sigma(table: Any) -> Mapping[str, tuple[float, float]]:
    """The residual standard deviation about the whole line, and its variance."""
    design = np.column_stack([np.ones(len(table)), table["z"], table["group"] == "b"]).astype(float)
    _, rest, _, _ = np.linalg.lstsq(design, table["x"].to_numpy(), rcond=None)
    free = len(table) - 3
    return {"sigma": (float(np.sqrt(rest[0] / free)), float(rest[0] / free / (2 * free)))}


def cover_strict(
    seed: int, *, rows: int = 2000, copies: int = 10, sigma: bool = True, **asked: Any
) -> pd.Series:
    """Which true values the intervals from one strict release hold: the model's own, and others."""
    standard = hr.Strict(limits=(-6.0, 8.0))
    told = {"standard": standard, "epsilon": 1.0, "draws": 200, **asked}
    synth = hr.Synthesizer("x ~ z + C(group)", family="normal", copies=copies, seed=seed, **told)
    release = synth.fit(simulate_table(seed, rows)).sample()
    found = [hr.combine(release, "x ~ z + C(group)"), hr.combine(release, "mean of x by group")]
    found += [hr.combine(release, find_sigma)] if sigma else []
    found.append(hr.combine(release, "x ~ z").query("term == 'z'").assign(term="pooled slope"))
    every = pd.concat(found).set_index("term")
    truth = pd.Series(TRUTH)[every.index]
    return (every["lower"] <= truth) & (truth <= every["upper"])


def cover_sampled(seed: int, sampling: Sampling, *, rows: int = 200, copies: int = 5) -> pd.Series:
    """Which true values are held by intervals from copies without privacy, by two rules.

    "partial" takes from all copies how much they differ; "proper" takes it from one copy's standard errors.
    """
    table = simulate_table(seed, rows)
    synth = hr.Synthesizer(
        "x ~ z + C(group)", family="normal", standard=hr.Unweighted(), copies=copies, draws=100, seed=seed,
        sampling=sampling,
    )  # fmt: skip
    tables = make_copies(table, synth)
    inside: dict[Any, bool] = {}
    for rule, used in (("partial", tables), ("proper", tables[:1])):
        found = [hr.combine(used, what, rule=rule) for what in ("x ~ z + C(group)", "mean of x by group")]
        every = pd.concat(found).set_index("term")
        truth = pd.Series(TRUTH)[every.index]
        inside |= ((every["lower"] <= truth) & (truth <= every["upper"])).add_prefix(f"{rule}: ").to_dict()
    return pd.Series(inside)


def cover_missing(seed: int, sampling: Sampling, *, rows: int = 200, copies: int = 10) -> pd.Series:
    """Which true values are held where three outcomes in ten are missing and count as withheld, by two rules.

    That of the certificate, and Reiter's, which takes values in their place for observed ones.
    """
    table = simulate_table(seed, rows)
    table.loc[np.random.default_rng([seed, 1]).uniform(size=rows) < 0.3, "x"] = np.nan
    column = hr.Column("x ~ z + C(group)", family="normal", missing="withheld")
    synth = hr.Synthesizer(
        {"x": column}, standard=hr.Unweighted(), copies=copies, draws=100, seed=seed, sampling=sampling
    )
    release = synth.fit(table).sample()
    inside: dict[Any, bool] = {}
    for rule in (None, "partial"):
        found = [hr.combine(release, what, rule=rule) for what in ("x ~ z + C(group)", "mean of x by group")]
        every = pd.concat(found).set_index("term")
        truth = pd.Series(TRUTH)[every.index]
        held = (every["lower"] <= truth) & (truth <= every["upper"])
        inside |= held.add_prefix(f"{every['rule'].iloc[0]}: ").to_dict()
    return pd.Series(inside)


def describe_margin(table: Any) -> Mapping[str, float]:
    """What is asked of copies that follow a margin: it says something of all three."""
    x = table["x"].to_numpy()
    return {"mean": x.mean(), "below 0": np.mean(x < 0), "90 % quantile": np.quantile(x, 0.9)}


def cover_margin(seed: int, relation: Relation, *, rows: int = 2000, copies: int = 10) -> pd.Series:
    """Which true values are held by intervals from a strict release with a margin, of errors in two groups.

    By the rule for noisy statistics, and by a replay of the release.
    """
    rng = np.random.default_rng(seed)
    z = rng.normal(size=rows)
    errors = np.where(rng.uniform(size=rows) < 0.5, -1.5, 1.5) + 0.5 * rng.normal(size=rows)
    standard = hr.Strict(limits=(-8.0, 10.0), relation=relation, margin=hr.Margin(0.25))
    synth = hr.Synthesizer(
        "x ~ z", family="normal", standard=standard, epsilon=1.0, copies=copies, draws=200, seed=seed
    )
    release = synth.fit(pd.DataFrame({"x": 1 + 0.5 * z + errors, "z": z})).sample()
    # x is one of two normals, about −0.5 and 2.5, by even chances.
    spread = np.sqrt(0.5**2 + 0.5**2)
    nodes = np.linspace(-10, 12, 200_001)
    below = (ndtr((nodes + 0.5) / spread) + ndtr((nodes - 2.5) / spread)) / 2
    truth = {
        "mean": 1.0,
        "below 0": np.interp(0, nodes, below),
        "90 % quantile": np.interp(0.9, below, nodes),
    }
    inside: dict[Any, bool] = {}
    for name, found in (
        ("rule", hr.combine(release, describe_margin)),
        ("replay", hr.intervals(release, describe_margin, tables=40)),
    ):
        every = found.set_index("term")
        inside |= {
            f"{name}: {term}": every["lower"][term] <= value <= every["upper"][term]
            for term, value in truth.items()
        }
    return pd.Series(inside)


def main() -> None:
    """Print a table of coverage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--strict", type=int, default=0, help="tables, instead of the rules")
    parser.add_argument("--stratified", type=int, default=0, help="tables, instead of the rules")
    parser.add_argument("--margin", type=int, default=0, help="tables, instead of the rules")
    parser.add_argument("--missing", type=int, default=0, help="tables, instead of the rules")
    given = parser.parse_args()
    warnings.simplefilter("ignore", hr.HedgerowWarning)
    if tables := given.strict or given.stratified or given.margin or given.missing:
        done = []
        for seed in range(tables):
            if given.strict:
                done.append(cover_strict(seed))
            elif given.margin:
                done.append(pd.concat([cover_margin(seed, one).add_prefix(f"{one}, ") for one in RELATIONS]))
            elif given.missing:
                done.append(pd.concat([cover_missing(seed, way).add_prefix(f"{way}, ") for way in SAMPLED]))
            else:
                done.append(pd.concat([cover_sampled(seed, way).add_prefix(f"{way}, ") for way in SAMPLED]))
            if seed % 20 == 19:
                sys.stdout.write(f"{seed + 1} tables: {pd.DataFrame(done).mean().round(3).to_dict()}\n")
                sys.stdout.flush()
        return
    sys.stdout.write("| rule | copies | noise | coverage |\n| --- | --- | --- | --- |\n")
    for rule, copies, noise in [(rule, *case) for rule, cases in CASES.items() for case in cases]:
        sys.stdout.write(f"| {rule} | {copies} | {noise:g} | {cover(rule, copies, noise):.3f} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
