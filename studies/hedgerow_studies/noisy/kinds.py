"""Strict for a survey's wage: `python -m hedgerow_studies.noisy.kinds` prints the table of docs/strict.md.

A wage that is missing (6 %), refused (−8, 3 %), zero (20 %) or an amount with t₄ errors on the log scale, and
a bonus that only some of those with a wage have. One stratified copy from a draw, against its own table: mean
absolute errors of the shares of kinds, of log quantiles (10, 50, 90 %) and the 99 % quantile of wages, and of
correlations (of kinds and amounts with age, of bonus and wage). Beside it another table of the same
population in place of a copy: what sampling alone makes.
"""

import argparse
import sys
from collections.abc import Iterator

import numpy as np
import pandas as pd

import hedgerow as hr
from hedgerow.arrays import Array

EPSILONS, RECORDS, SEEDS = (1.0, 2.0, 8.0), 3000, 6
COLUMNS = {
    "wage": hr.Column("wage ~ age + C(sector)", "zero_lognormal", missing="synthesized", codes=(-8,)),
    "bonus": hr.Column("bonus ~ age + log(wage)", "zero_lognormal"),
}
LIMITS = {"wage": (10.0, 1e6), "bonus": (1.0, 1e5)}


def simulate(records: int, seed: int) -> pd.DataFrame:
    """Age and sector are public."""
    random = np.random.default_rng(seed)
    age, sector = (
        random.uniform(18, 66, records),
        random.choice(list("abcd"), records, p=[0.4, 0.3, 0.2, 0.1]),
    )
    wage = np.exp(7 + 0.02 * age + 0.3 * (sector == "b") + 0.35 * random.standard_t(4, records))
    wage = np.where(random.uniform(size=records) < 1 / (1 + np.exp(1.25 + 0.04 * (age - 42))), 0.0, wage)
    draw = random.uniform(size=records)
    wage = np.select([draw < 0.06, draw < 0.06 + 0.03 * age / 42], [np.nan, -8.0], wage)
    paid = (wage > 0) & (random.uniform(size=records) < 0.5)
    bonus = np.where(paid, 0.1 * wage * np.exp(0.5 * random.normal(size=records)), 0.0)
    return pd.DataFrame({"age": age, "sector": sector, "wage": wage, "bonus": bonus})


def make_copy(data: pd.DataFrame, epsilon: float, seed: int) -> pd.DataFrame:
    """One copy of both columns."""
    strict = hr.Strict(limits=LIMITS, reason="a study")
    synth = hr.Synthesizer(
        COLUMNS, standard=strict, epsilon=epsilon, draws=100, sampling="stratified", seed=seed
    )
    copy: pd.DataFrame = synth.fit(data).sample().tables[0]
    return copy


def describe(table: pd.DataFrame) -> Array:
    """Three shares, three log quantiles and a fourth, four correlations."""
    wage, there = table["wage"], (table["wage"] > 0).to_numpy()
    both = there & (table["bonus"] > 0).to_numpy()
    pairs = (
        (np.log(wage[there]), table["age"][there]),
        (wage == 0, table["age"]),
        (there, table["bonus"] > 0),
        (np.log(wage[both]), np.log(table["bonus"][both])),
    )
    return np.array(
        [
            wage.isna().mean(), (wage == -8).mean(), (wage == 0).mean(),
            *np.log(wage[there].quantile([0.1, 0.5, 0.9, 0.99])),
            *(np.corrcoef(one, other)[0, 1] for one, other in pairs),
        ]
    )  # fmt: skip


def tabulate(epsilons: tuple[float, ...] = EPSILONS, seeds: int = SEEDS) -> Iterator[str]:
    """Rows of a Markdown table, each as soon as it is there."""
    yield "| copy | shares of kinds | log quantiles (10, 50, 90 %) | of 99 % | correlations |"
    yield "| --- | --- | --- | --- | --- |"
    tables = [simulate(RECORDS, seed) for seed in range(seeds)]
    for epsilon in (*epsilons, None):
        errors = []
        for seed, table in enumerate(tables):
            other = simulate(RECORDS, 1000 + seed) if epsilon is None else make_copy(table, epsilon, seed)
            errors.append(np.abs(describe(other) - describe(table)))
        found = np.mean(errors, axis=0)
        parts = found[:3].mean(), found[3:6].mean(), found[6], found[7:].mean()
        label = "another table of the same population" if epsilon is None else f"ε = {epsilon:g}"
        yield f"| {label} | {' | '.join(f'{part:.3f}' for part in parts)} |"


def main() -> None:
    argparse.ArgumentParser(prog="python -m hedgerow_studies.noisy.kinds", description=__doc__).parse_args()
    for line in tabulate():
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
