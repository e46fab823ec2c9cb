"""The empirical sentences of section 5 and its table, under two priors."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd

from hedgerow import datasets
from hedgerow.evidence.utility import statistics
from hedgerow_studies.paper import application
from hedgerow_studies.paper.claims.checks import (
    ERRORS,
    Check,
    Claim,
    in_both_forms,
    lower,
    pooled,
    same,
    wide,
)
from hedgerow_studies.paper.claims.story1 import AVERAGED_BELOW, BELOW_WEIGHTED
from hedgerow_studies.paper.claims.utility import SHORTER
from hedgerow_studies.paper.setup import (
    NARROW_AVG,
    NARROW_TRUNC,
    UNWEIGHTED,
    WEIGHTED,
    WIDE_AVG,
    WIDE_TRUNC,
)
from hedgerow_studies.paper.tasks import Tables

PRIORS = {application.AUTHORS: "the authors' prior", application.DEFAULT: "a vague prior"}
ROWS = {"mean": "mean", "median": "median", "q90": "90 % quantile"}
CONFIDENTIAL = {"mean": 57771, "median": 15616, "q90": 165385}
# The paper's table; the truncated columns repeat Weighted.
TABLE = {
    "mean": {UNWEIGHTED: 36413, WEIGHTED: 22743, WIDE_AVG: 24762, NARROW_AVG: 27795},
    "median": {UNWEIGHTED: 20832, WEIGHTED: 15991, WIDE_AVG: 16225, NARROW_AVG: 19951},
    "q90": {UNWEIGHTED: 73446, WEIGHTED: 37595, WIDE_AVG: 42168, NARROW_AVG: 50424},
}
BOLD, UNDERLINED = NARROW_AVG, WIDE_AVG  # in all three rows
TO_DATA, TO_UNWEIGHTED = "distance to the confidential value", "distance to the Unweighted column"


def claims(tables: Tables) -> list[Claim]:
    """Every claim of the application."""
    prices = {prior: wide(_of(tables["prices"], prior), "lipschitz") for prior in PRIORS}
    utility = {prior: _of(tables["utility"], prior) for prior in PRIORS}
    return [*_prices(prices), *_copies(utility), *_table(utility), *_as_printed()]


def _prices(prices: dict[str, pd.DataFrame]) -> list[Claim]:
    where = "section 5, Figure 15"

    def each(pairs: tuple[tuple[str, str], ...]) -> tuple[Check, ...]:
        return tuple(
            check.under(words)
            for prior, words in PRIORS.items()
            for check in in_both_forms(prices[prior], pairs)
        )

    return [
        Claim(
            "fig15-finite-range-lowers",
            where,
            "On the fatigue data, too, range synthesizers have lower budgets than Weighted.",
            "difference of ε to Weighted, over repeated fits",
            each(BELOW_WEIGHTED),
        ),
        Claim(
            "fig15-shorter-lowers",
            where,
            "For both standards the shorter range gives the lower budget.",
            "difference of ε over repeated fits",
            each(SHORTER),
        ),
        Claim(
            "fig15-averaged-below-truncated",
            where,
            "At the same range the averaged synthesizer costs less than the truncated one.",
            "difference of ε over repeated fits",
            each(AVERAGED_BELOW),
        ),
    ]


def _copies(utility: dict[str, pd.DataFrame]) -> list[Claim]:
    def each(
        check: Callable[[pd.DataFrame], tuple[Check, ...]], name: str = "ecdf_mean_absolute"
    ) -> tuple[Check, ...]:
        return tuple(
            found.under(words)
            for prior, words in PRIORS.items()
            for found in check(pooled(utility[prior], name))
        )

    return [
        Claim(
            "fig16-truncated-identical",
            "section 5, Figure 16",
            "Truncated synthesizers give the same synthetic data as Weighted.",
            "difference of the pooled mean, with common random numbers",
            each(
                lambda found: tuple(
                    same(found, label, WEIGHTED, what="mean") for label in (WIDE_TRUNC, NARROW_TRUNC)
                ),
                "mean",
            ),
        ),
        Claim(
            "fig16-averaged-preserve-better",
            "section 5, Figure 16",
            "Averaged synthesizers preserve the distribution of the data better than Weighted.",
            "difference of the average ECDF difference over repeated fits",
            each(
                lambda found: tuple(
                    lower(found, label, WEIGHTED, what="ECDF difference") for label in (WIDE_AVG, NARROW_AVG)
                )
            ),
        ),
        Claim(
            "fig16-shorter-best",
            "section 5, Figure 16",
            "Of the averaged synthesizers the shorter range preserves the distribution best.",
            "difference of the average ECDF difference over repeated fits",
            each(lambda found: (lower(found, NARROW_AVG, WIDE_AVG, what="ECDF difference"),)),
        ),
    ]


def _table(utility: dict[str, pd.DataFrame]) -> list[Claim]:
    found = []
    for name, words in ROWS.items():
        checks: list[Check] = []
        order: list[Check] = []
        printed: list[Check] = []
        for prior, under in PRIORS.items():
            table = pooled(utility[prior], name)
            for reading, target in ((TO_DATA, _truth(name)), (TO_UNWEIGHTED, table[UNWEIGHTED])):
                gap = (
                    table.sub(target, axis=0).abs()
                    if isinstance(target, pd.Series)
                    else (table - target).abs()
                )
                for pair in ((NARROW_AVG, WIDE_AVG), (WIDE_AVG, WEIGHTED)):
                    checks.append(lower(gap, *pair, what="distance").under(f"{under}, {reading}"))
            for pair in ((WEIGHTED, WIDE_AVG), (WIDE_AVG, NARROW_AVG), (NARROW_AVG, UNWEIGHTED)):
                order.append(lower(table, *pair, what=words).under(under))
            printed += [_placed(utility[prior], name, label).under(under) for label in TABLE[name]]
        found += [
            Claim(
                f"table1-best-{name}",
                "section 5, Table 1 and the paragraph before it",
                f"By the {words}, (0.6, 1.2) avg has the highest utility, (0.4, 1.8) avg comes second, "
                "Weighted and truncated are last.",
                f"difference of distances of the {words}, averaged over copies, over repeated fits",
                tuple(checks),
            ),
            Claim(
                f"table1-order-{name}",
                "section 5, Table 1, printed values",
                f"The {words} is lowest for Weighted and rises through (0.4, 1.8) avg and (0.6, 1.2) avg to "
                "Unweighted.",
                f"difference of the {words}, averaged over copies, over repeated fits",
                tuple(order),
            ),
            Claim(
                f"table1-values-{name}",
                "section 5, Table 1, printed values",
                f"The printed values of the {words} are what one synthetic table may show.",
                "share of copies below the printed value; between 2.5 % and 97.5 % asked for",
                tuple(printed),
            ),
        ]
    return found


def _as_printed() -> list[Claim]:
    """What the printed numbers say by themselves."""
    marks = []
    for name, words in ROWS.items():
        for reading, target in ((TO_DATA, CONFIDENTIAL[name]), (TO_UNWEIGHTED, TABLE[name][UNWEIGHTED])):
            gap = {label: abs(value - target) for label, value in TABLE[name].items() if label != UNWEIGHTED}
            ranked = sorted(gap, key=gap.__getitem__)
            marks.append(
                Check(
                    f"printed {words}, nearest is {ranked[0]}, then {ranked[1]}; smallest distance",
                    float(gap[ranked[0]]),
                    None,
                    ranked[:2] == [BOLD, UNDERLINED],
                    reading,
                )
            )
    everyone, chosen = datasets.fatigue()["cycle"], datasets.fatigue(paper=True)["cycle"]
    return [
        Claim(
            "table1-bold-entries",
            "section 5, caption of Table 1",
            "In each row the best synthesizer is in bold and the second best underlined.",
            "from the printed numbers: which two columns lie nearest, to what",
            tuple(marks),
        ),
        Claim(
            "table1-confidential-statistics",
            "section 5, caption of Table 1",
            "The confidential mean, median and 90 % quantile are 57771, 15616 and 165385.",
            "the same statistics of the published data, rounded",
            (
                *(_matches(everyone, f"all {len(everyone)} published specimens")),
                *(_matches(chosen, f"{len(chosen)} of the {len(everyone)} published specimens")),
            ),
        ),
        Claim(
            "table1-confidential-subset",
            "section 5, caption of Table 1",
            "The three statistics tell which specimens the paper used (our reading).",
            "number of ways to leave out at most three of the 22 specimens that give all three numbers",
            (_subsets(everyone.to_numpy(dtype=np.float64)),),
        ),
    ]


def _subsets(values: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> Check:
    matching = 0
    for size in range(4):
        for left_out in combinations(range(len(values)), size):
            matching += all(check.agrees for check in _matches(pd.Series(np.delete(values, left_out)), ""))
    return Check("matching subsets:", float(matching), None, matching == 1)


def _matches(cycles: "pd.Series[float]", under: str) -> tuple[Check, ...]:
    return tuple(
        Check(
            f"{ROWS[name]}:", float(value), None, round(float(value)) == CONFIDENTIAL[name], under,
            f"printed {CONFIDENTIAL[name]}",
        )
        for name, value in statistics(cycles.to_numpy(dtype=np.float64), (0.9,)).items()
    )  # fmt: skip


def _placed(utility: pd.DataFrame, name: str, label: str) -> Check:
    rows = utility[(utility["statistic"] == name) & (utility["standard"] == label)]
    share = float((rows["synthetic"] < TABLE[name][label]).mean())
    error = float(np.sqrt(max(share * (1 - share), 1 / len(rows)) / len(rows)))
    return Check(
        f"share of copies below {TABLE[name][label]} for {label}:",
        share,
        error,
        share + ERRORS * error >= 0.025 and share - ERRORS * error <= 0.975,
    )


def _truth(name: str) -> float:
    cycles = datasets.fatigue(paper=True)["cycle"].to_numpy(dtype=np.float64)
    return statistics(cycles, (0.9,))[name]


def _of(table: pd.DataFrame, prior: str) -> pd.DataFrame:
    return table[table["prior"] == prior]
