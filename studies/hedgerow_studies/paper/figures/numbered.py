"""The paper's figures, numbered and named as there, each from its tidy table."""

from collections.abc import Iterable

import pandas as pd

from hedgerow import datasets
from hedgerow.drawing import DATA
from hedgerow_studies.paper import application, setup
from hedgerow_studies.paper.figures.picture import Picture
from hedgerow_studies.paper.tasks import Tables

LIPSCHITZ = "Lipschitz bound Δ"
BY_RECORD = "by-record Lipschitz value"
_NAMES = {"mean": "mean", "median": "median", "q90": "90 % quantile"}


def pictures(study: str, tables: Tables) -> list[Picture]:
    """The figures of one study."""
    return {"story1": story1, "story2": story2, "story3": story3, "application": fatigue}[study](tables)


def story1(tables: Tables) -> list[Picture]:
    """Figures 1 to 5."""
    prices, utility = tables["prices"], tables["utility"]
    six = prices[prices["standard"].isin(setup.SIX)]
    main = six[six["n"] == setup.RECORDS]
    return [
        Picture(
            "fig01-sim-Lbounds-single",
            "Figure 1. By-record Lipschitz values, one sample",
            BY_RECORD,
            by_record(tables["records"], "lipschitz", half=True),
            note="twice the largest",
        ),
        Picture(
            "fig02-sim-Lbounds-repeated",
            f"Figure 2. Lipschitz bounds over {_count(main)} samples (median ε above)",
            LIPSCHITZ,
            by_sample(main, "lipschitz", half=True),
            note="twice the median",
        ),
        Picture(
            "fig03-sim-ua",
            f"Figure 3. ECDF, average record-level difference, over {_count(main)} samples",
            "ECDF, mean absolute difference",
            statistic(utility, "ecdf_mean_absolute"),
        ),
        Picture(
            "fig04-sim-Q90s",
            f"Figure 4. 90 % quantile over {_count(main)} samples",
            "90 % quantile",
            statistic(utility, "q90", data=True),
            line=_middle(utility, "q90"),
        ),
        Picture(
            "fig05-sim-Lbounds-ns",
            f"Figure 5. Lipschitz bounds over {_count(main)} samples at four sample sizes (median ε above)",
            LIPSCHITZ,
            by_sample(six[six["n"] != setup.RECORDS], "lipschitz", half=True, keep=("n",)),
            note="twice the median",
            panel="n",
        ),
    ]


def story2(tables: Tables) -> list[Picture]:
    """Figures 6 to 10: one sample, weights scaled to a common ε."""
    records, utility = tables["records"], tables["utility"]
    one = utility[utility["replicate"] == 0]
    found = [
        Picture(
            "fig06-sim-Lbounds-single-truncated-similar-eps",
            "Figure 6. By-record Lipschitz values, weights scaled to a common ε",
            BY_RECORD,
            by_record(records, "lipschitz", half=True),
            note="twice the largest",
        ),
        Picture(
            "fig07-sim-alphas-single-truncated-similar-eps",
            "Figure 7. Privacy weights, scaled to a common ε",
            "weight α",
            by_record(records, "power"),
        ),
    ]
    for number, slug, name in ((8, "mean", "mean"), (9, "Q50", "median"), (10, "Q90", "q90")):
        data = tables["resampled"].query("statistic == @name").assign(standard=DATA)
        table = pd.concat([data, one.query("statistic == @name")], ignore_index=True)
        found.append(
            Picture(
                f"fig{number:02d}-sim-{slug}-single-truncated-similar-eps",
                f"Figure {number}. {_NAMES[name].capitalize()} of the copies at a common ε (Data: resampled)",
                _NAMES[name],
                table[["standard", "copy", "synthetic"]].rename(columns={"synthetic": "value"}),
                line=_middle(one, name),
            )
        )
    return found


def story3(tables: Tables) -> list[Picture]:
    """Figures 11 to 14, and 17 and 18 of appendix A."""
    prices, utility = tables["prices"], tables["utility"]
    over = f"over {_count(prices)} samples"
    found = [
        Picture(
            "fig11-sim-Lbounds-top-comparison",
            f"Figure 11. Lipschitz bounds {over}, wider range for the top (median ε above)",
            LIPSCHITZ,
            by_sample(prices, "lipschitz", half=True),
            note="twice the median",
        )
    ]
    for number, slug, name, label in (
        (12, "ums", "ecdf_max", "ECDF, maximum difference"),
        (13, "medians", "median", "median"),
        (14, "Q90s", "q90", "90 % quantile"),
        (17, "uas", "ecdf_mean_absolute", "ECDF, mean absolute difference"),
        (18, "means", "mean", "mean"),
    ):
        found.append(
            Picture(
                f"fig{number:02d}-sim-{slug}-top-comparison",
                f"Figure {number}. {label[0].upper()}{label[1:]} {over}, wider range for the top",
                label,
                statistic(utility, name, data=True),
                line=_middle(utility, name),
            )
        )
    return found


def fatigue(tables: Tables, prior: str = application.AUTHORS) -> list[Picture]:
    """Figures 15 and 16, and 19 and 20 of appendix B."""
    records = tables["records"][tables["records"]["prior"] == prior]
    values = tables["values"][tables["values"]["prior"] == prior]
    data = pd.DataFrame({"standard": DATA, "value": datasets.fatigue(paper=True)["cycle"].astype(float)})
    under = "the authors' prior" if prior == application.AUTHORS else "a vague prior"
    known = records[records["standard"].isin((setup.WEIGHTED, setup.WIDE_AVG, setup.NARROW_AVG))]
    return [
        Picture(
            "fig15-app-Lbounds",
            f"Figure 15. By-record Lipschitz values, fatigue data, {under}",
            BY_RECORD,
            by_record(records, "lipschitz", half=True),
            note="twice the largest",
        ),
        Picture(
            "fig16-app-data",
            f"Figure 16. Confidential and synthetic cycles, {under}",
            "cycles (logarithmic axis)",
            pd.concat([data, values[["standard", "value"]]], ignore_index=True),
            log=True,
        ),
        Picture(
            "fig19-app-lambdas",
            f"Figure 19. λ, fatigue data, {under}",
            "probability λ of lying outside the range",
            by_record(known, "known"),
        ),
        Picture(
            "fig20-app-alphas",
            f"Figure 20. Privacy weights, fatigue data, {under}",
            "exponent α* on the likelihood",
            by_record(records[records["standard"] != setup.UNWEIGHTED], "power"),
        ),
    ]


def by_record(records: pd.DataFrame, column: str, *, half: bool = False) -> pd.DataFrame:
    """One row per synthesizer and record. The Lipschitz value is half of its price."""
    value = records[column] / 2 if half else records[column]
    return records[["standard", "record"]].assign(value=value).reset_index(drop=True)


def by_sample(
    prices: pd.DataFrame, column: str, *, half: bool = False, keep: Iterable[str] = ()
) -> pd.DataFrame:
    """One row per sample and synthesizer."""
    value = prices[column] / 2 if half else prices[column]
    return prices[[*keep, "replicate", "standard"]].assign(value=value).reset_index(drop=True)


def statistic(utility: pd.DataFrame, name: str, *, data: bool = False) -> pd.DataFrame:
    """One row per sample and synthesizer: the mean over its copies; with the data's own value if asked."""
    rows = utility[utility["statistic"] == name]
    keys = ["standard", "replicate"]
    mean = rows.groupby(keys, sort=False)[["original", "synthetic"]].mean().reset_index()
    table = mean[[*keys, "synthetic"]].rename(columns={"synthetic": "value"})
    if not data:
        return table
    first = mean[mean["standard"] == mean["standard"].iloc[0]]
    own = first.assign(standard=DATA, value=first["original"])[[*keys, "value"]]
    return pd.concat([own, table], ignore_index=True)


def _middle(utility: pd.DataFrame, name: str) -> float:
    rows = utility[utility["statistic"] == name]
    return float(rows.groupby("replicate")["original"].first().median())


def _count(prices: pd.DataFrame) -> int:
    return int(prices["replicate"].nunique())
