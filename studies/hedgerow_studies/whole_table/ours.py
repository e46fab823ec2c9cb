"""hedgerow's copies of the claims: Unweighted and ADP with Rényi prices, and Strict by noisy statistics.

ADP takes families with exact posteriors, whose prices hold without draws: classes by public cells, lognormal
amounts, and for bills of zero a column that says whether there was one. Strict takes the spike as it is.

The study's own question is about a product, period times high earner. Methods "with product" have it in the
formulas of benefits, which rose for high earners, and of weeks; whether somebody is one is a protected column
before the wage, which reads it too. Strict by statistics takes no product with a protected column.
"""

import argparse
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hedgerow.models.families.family import Family
from hedgerow.privacy.columns import Column
from hedgerow.privacy.standards import ADP, Unweighted
from hedgerow.privacy.strict import Strict
from hedgerow.synthesizer import Synthesizer
from hedgerow_studies.whole_table.data import LABELS, LIMITS, is_high, load
from hedgerow_studies.work import silence_advice

EPSILONS = (1.0, 4.0)
FITS = 3
AGES = [0, 24, 34, 44, 54, 100]  # public classes
BECAUSE = "round figures, and the follow-up of 182 weeks"
SHARED = {
    "wage": Column("wage ~ age + male + state + C(married) + C(industry)"),
    "benefit": Column("benefit ~ log(wage) + state + after + male"),
    "weeks": Column("weeks ~ after + male + age + C(injury) + hospital + log(wage) + log(benefit)"),
}
BY_CELLS = {
    "married": Column("married ~ C(ages) + C(male)", Family("dirichlet", levels=LABELS["married"])),
    "industry": Column("industry ~ C(state) + C(male)", Family("dirichlet", levels=LABELS["industry"])),
    "injury": Column("injury ~ C(male) + C(industry)", Family("dirichlet", levels=LABELS["injury"])),
    "hospital": Column("hospital ~ C(injury) + C(ages)", Family("dirichlet", levels=(0, 1))),
    **SHARED,
    "billed": Column("billed ~ C(hospital)", Family("dirichlet", levels=("no", "yes"))),
    "medical": Column(
        "medical ~ hospital + log(weeks) + C(injury) + age", only_where="billed == 'yes'", otherwise=0
    ),
}
BY_SUMS = {
    "married": Column("married ~ age + male", Family("categorical", levels=LABELS["married"])),
    "industry": Column("industry ~ state + male", Family("categorical", levels=LABELS["industry"])),
    "injury": Column("injury ~ male + C(industry)", Family("categorical", levels=LABELS["injury"])),
    "hospital": Column("hospital ~ C(injury) + age", Family("bernoulli")),
    **SHARED,
    "medical": Column("medical ~ hospital + log(weeks) + C(injury) + age", "zero_lognormal"),
}
WITH_PRODUCT = {
    **{name: BY_CELLS[name] for name in ("married", "industry", "injury", "hospital")},
    "high": Column("high ~ C(state) + C(male) + C(ages) + C(industry)", Family("dirichlet", levels=(0, 1))),
    **BY_CELLS,
    "wage": Column("wage ~ age + male + state * high + C(married) + C(industry)"),
    "benefit": Column("benefit ~ log(wage) * high + state + male + after * high"),
    "weeks": Column("weeks ~ after * high + male + age + C(injury) + hospital + log(wage) + log(benefit)"),
}
METHODS: dict[str, tuple[Any, dict[str, Any]]] = {
    "Unweighted": (BY_CELLS, {"standard": Unweighted(), "bound": "renyi"}),
    "ADP": (BY_CELLS, {"standard": ADP(), "bound": "renyi"}),
    "Strict": (BY_SUMS, {"standard": Strict(limits=LIMITS, reason=BECAUSE), "draws": 100}),
}
METHODS |= {
    f"{name} with product": (WITH_PRODUCT, told)
    for name, (columns, told) in METHODS.items()
    if columns is BY_CELLS
}


def prepare(table: pd.DataFrame) -> pd.DataFrame:
    """The table with classes of age, which are public, and whether there was a medical bill and whether the
    wage is a high one, which are not.
    """
    labels = [f"{low + 1}-{high}" for low, high in pairwise(AGES)]
    return table.assign(
        ages=pd.cut(table["age"], AGES, labels=labels).astype(str),
        billed=np.where(table["medical"] > 0, "yes", "no"),
        high=is_high(table).astype(int),
    )


def synthesize(table: pd.DataFrame, method: str, epsilon: float | None, *, seed: int) -> pd.DataFrame:
    """One copy with the columns of the table."""
    columns, told = METHODS[method]
    extra = [name for name in ("ages", "billed", "high") if _reads(columns, name)]
    given = prepare(table)[[*table.columns, *extra]]
    synth = Synthesizer(columns, epsilon=epsilon, sampling="stratified", seed=seed, **told)
    with silence_advice():
        copy: pd.DataFrame = synth.fit(given).sample().tables[0]
    return copy[list(table.columns)]


def _reads(columns: dict[str, Column], name: str) -> bool:
    return name in columns or any(f"C({name})" in column.formula for column in columns.values())


def main() -> None:
    """Every copy that is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fits", type=int, default=FITS)
    parser.add_argument("--only", choices=METHODS, nargs="+", default=list(METHODS))
    given = parser.parse_args()
    folder = given.out / "copies"
    folder.mkdir(parents=True, exist_ok=True)
    table = load()
    for number in range(1, given.fits + 1):
        for method in given.only:
            for epsilon in (None,) if method.startswith("Unweighted") else EPSILONS:
                file = folder / f"{method}-{'none' if epsilon is None else f'{epsilon:g}'}-{number}.csv"
                if file.exists():
                    continue
                start = time.process_time()
                synthesize(table, method, epsilon, seed=number).to_csv(file, index=False)
                print(f"{file.stem}: {time.process_time() - start:.0f} s", flush=True)  # noqa: T201 - hours pass


if __name__ == "__main__":
    main()
