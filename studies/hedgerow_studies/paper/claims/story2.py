"""The empirical sentences of section 4.2: a common ε by scaling the weights."""

import pandas as pd

from hedgerow_studies.paper.claims.checks import (
    Check,
    Claim,
    in_both_forms,
    lower,
    near,
    relative_error,
    steadier,
    wide,
)
from hedgerow_studies.paper.setup import COMMON, NARROW_TRUNC, UNWEIGHTED, WEIGHTED, WIDE_TRUNC
from hedgerow_studies.paper.tasks import Tables

COMMON_EPSILON = 5.7
SCALES = {WEIGHTED: 0.73, WIDE_TRUNC: 0.88, NARROW_TRUNC: 1.0}


def claims(tables: Tables) -> list[Claim]:
    """Every claim of story 2."""
    prices = tables["prices"]
    epsilon, scale, alpha = (wide(prices, name) for name in ("lipschitz", "scale", "mean_power"))
    utility = tables["utility"]
    one = utility[utility["replicate"] == 0]
    apart = (epsilon[list(COMMON[1:])].max(axis=1) / epsilon[list(COMMON[1:])].min(axis=1) - 1).to_numpy()
    return [
        Claim(
            "sec42-scaled-down",
            "section 4.2, second paragraph",
            "Weighted and (0.4, 1.8) trunc cost more than (0.6, 1.2) trunc, so they are scaled down.",
            "paired differences of ε before scaling",
            in_both_forms(
                wide(tables["unscaled"], "lipschitz"),
                ((NARROW_TRUNC, WEIGHTED), (NARROW_TRUNC, WIDE_TRUNC)),
            ),
        ),
        Claim(
            "fig6-common-epsilon",
            "section 4.2, Figure 6",
            "Scaling the weights brings the three synthesizers to a similar budget.",
            "largest over smallest ε of the three, less 1; 2 % allowed",
            (Check("mean over samples", float(apart.mean()), float(apart.std()), bool(apart.mean() < 0.02)),),
        ),
        Claim(
            "fig6-common-epsilon-5.7",
            "section 4.2, Figure 6",
            "The common budget is about 5.7.",
            "ε of (0.6, 1.2) trunc over samples",
            (near(epsilon[NARROW_TRUNC].to_numpy(), COMMON_EPSILON, what="mean common ε", within=0.05),),
        ),
        Claim(
            "sec42-scales",
            "section 4.2, second paragraph",
            "The scaling constants are 0.73 for Weighted, 0.88 for (0.4, 1.8) trunc, 1 for (0.6, 1.2) trunc.",
            "the scale at which ε meets that of (0.6, 1.2) trunc, over samples",
            tuple(
                near(scale[label].to_numpy(), target, what=f"mean scale of {label}", within=0.005)
                for label, target in SCALES.items()
            ),
        ),
        Claim(
            "fig7-weights-order",
            "section 4.2, Figure 7",
            "Unweighted has all weights at 1; then (0.6, 1.2) trunc has the highest, (0.4, 1.8) trunc the "
            "next, Weighted the lowest.",
            "paired differences of the mean weight",
            tuple(
                lower(alpha, first, second, what="mean weight")
                for first, second in (
                    (NARROW_TRUNC, UNWEIGHTED),
                    (WIDE_TRUNC, NARROW_TRUNC),
                    (WEIGHTED, WIDE_TRUNC),
                )
            ),
        ),
        *(_utility_claim(number, name, words, utility, one) for number, name, words in (
            (8, "mean", "mean"), (9, "median", "median"), (10, "q90", "90 % quantile"))),
        Claim(
            "sec42-both-truncated-better",
            "section 4.2, last paragraph",
            "At a similar budget both truncated synthesizers have higher utility than Weighted.",
            "paired difference of the relative error over samples",
            tuple(
                lower(relative_error(utility, name), label, WEIGHTED, what="error").under(f"the {words}")
                for name, words in (("mean", "mean"), ("median", "median"), ("q90", "90 % quantile"))
                for label in (WIDE_TRUNC, NARROW_TRUNC)
            ),
        ),
    ]  # fmt: skip


def _utility_claim(number: int, name: str, words: str, utility: pd.DataFrame, one: pd.DataFrame) -> Claim:
    pairs = ((NARROW_TRUNC, WIDE_TRUNC), (WIDE_TRUNC, WEIGHTED))
    over_samples = relative_error(utility, name)
    # In the one sample the copies are the replicates; their common random numbers make them pairs.
    copies = one[one["statistic"] == name].assign(replicate=lambda rows: rows["copy"].astype(int))
    truth = float(copies["original"].iloc[0])
    level = wide(copies, "synthetic")
    within = (level - truth).abs() / truth
    return Claim(
        f"fig{number}-utility-order-{name}",
        f"section 4.2, Figure {number}",
        f"By the {words}, (0.6, 1.2) trunc has the highest utility, then (0.4, 1.8) trunc, then Weighted.",
        f"paired difference of the relative error of the {words}: over copies of one sample, over "
        "samples; ratio of the copies' standard deviations",
        (
            *(lower(within, *pair, what="error").under("one sample, over its copies") for pair in pairs),
            *(lower(over_samples, *pair, what="error").under("many samples") for pair in pairs),
            *(
                steadier(level, *pair, what=words).under("spread over the copies, not level")
                for pair in pairs
            ),
        ),
    )
