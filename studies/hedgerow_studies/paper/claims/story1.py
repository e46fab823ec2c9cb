"""The sentences of section 4.1 on privacy, and those of sections 2, 3 and 6 that rest on the same samples."""

import numpy as np
import pandas as pd

from hedgerow_studies.paper import setup
from hedgerow_studies.paper.claims import contraction, utility
from hedgerow_studies.paper.claims.checks import (
    Check,
    Claim,
    counted,
    forms,
    in_both_forms,
    lower,
    lower_once,
    wide,
)
from hedgerow_studies.paper.claims.utility import SHORTER
from hedgerow_studies.paper.setup import NARROW_AVG, NARROW_TRUNC, UNWEIGHTED, WEIGHTED, WIDE_AVG, WIDE_TRUNC
from hedgerow_studies.paper.tasks import Tables

BELOW_WEIGHTED = tuple((label, WEIGHTED) for label in (WIDE_AVG, WIDE_TRUNC, NARROW_AVG, NARROW_TRUNC))
AVERAGED_BELOW = ((WIDE_AVG, WIDE_TRUNC), (NARROW_AVG, NARROW_TRUNC))
ORDER = (UNWEIGHTED, WEIGHTED, WIDE_TRUNC, NARROW_TRUNC, WIDE_AVG, NARROW_AVG)


def claims(tables: Tables) -> list[Claim]:
    """Every claim that the samples of story 1 can decide."""
    rows = tables["prices"]
    prices = wide(rows[rows["n"] == setup.RECORDS], "lipschitz")
    return [
        *_one_sample(prices),
        *_many_samples(prices, tables["narrower"]),
        *utility.claims(tables["utility"], prices),
        *contraction.claims(rows),
    ]


def _one_sample(prices: pd.DataFrame) -> list[Claim]:
    where = "section 4.1, Figure 1"
    drop = [
        Check(
            "fall from (0.4, 1.8) to (0.6, 1.2), averaged minus truncated, as shares of ε:",
            float(gap.iloc[0]),
            float(gap.std()) if len(gap) > 1 else None,
            bool(gap.iloc[0] > 0),
            condition=form,
            detail=f"larger in {int((gap > 0).sum())} of {len(gap)} samples",
        )
        for form, found in forms(prices)
        for gap in [(1 - found[NARROW_AVG] / found[WIDE_AVG]) - (1 - found[NARROW_TRUNC] / found[WIDE_TRUNC])]
    ]
    with_all = in_both_forms(prices, [(UNWEIGHTED, WEIGHTED)], lower_once)
    among = in_both_forms(prices, BELOW_WEIGHTED, lower_once)
    return [
        Claim(
            "fig1-weighted-highest",
            where,
            "In one sample the Weighted synthesizer has the highest privacy budget.",
            "ε of each other synthesizer against Weighted, with Unweighted and without",
            (
                *(check.under("all six synthesizers") for check in (*with_all, *among)),
                *(check.under("the five risk-weighted synthesizers") for check in among),
            ),
        ),
        Claim(
            "fig1-truncated-second-third",
            where,
            "In one sample (0.4, 1.8) trunc comes second and (0.6, 1.2) trunc third.",
            "ε in the order Weighted, (0.4, 1.8) trunc, (0.6, 1.2) trunc, then both averaged",
            in_both_forms(
                prices,
                [(WIDE_TRUNC, WEIGHTED), (NARROW_TRUNC, WIDE_TRUNC), (WIDE_AVG, NARROW_TRUNC)],
                lower_once,
            ),
        ),
        Claim(
            "fig1-averaged-smallest",
            where,
            "In one sample the two averaged synthesizers have the smallest budgets.",
            "ε of (0.4, 1.8) avg, the larger of the two, against the truncated ones",
            in_both_forms(
                prices,
                [(NARROW_AVG, WIDE_AVG), (WIDE_AVG, NARROW_TRUNC), (WIDE_AVG, WIDE_TRUNC)],
                lower_once,
            ),
        ),
        Claim(
            "fig1-finite-range-lowers",
            where,
            "In one sample a finite range lowers the budget below that of Weighted, for both standards.",
            "ε of each range standard minus Weighted",
            among,
        ),
        Claim(
            "fig1-shorter-lowers",
            where,
            "In one sample shortening the range from (0.4, 1.8) to (0.6, 1.2) lowers the budget further.",
            "ε at (0.6, 1.2) minus (0.4, 1.8), for either standard",
            in_both_forms(prices, SHORTER, lower_once),
        ),
        Claim(
            "fig1-shorter-lowers-averaged-more",
            where,
            "Shortening the range lowers the averaged budget more sharply than the truncated one.",
            "difference of the relative falls",
            tuple(drop),
        ),
        Claim(
            "fig1-averaged-below-truncated",
            where,
            "At the same range the averaged synthesizer costs less than the truncated one.",
            "ε averaged minus truncated in the sample drawn",
            in_both_forms(prices, AVERAGED_BELOW, lower_once),
        ),
    ]


def _many_samples(prices: pd.DataFrame, narrower: pd.DataFrame) -> list[Claim]:
    where = "section 4.1, Figure 2"
    very = wide(narrower, "lipschitz").join(prices[[WEIGHTED]])
    gain = [
        (1 - found[label] / found[WEIGHTED]).to_numpy()
        for _, found in forms(prices)
        for label in (WIDE_AVG, NARROW_AVG, WIDE_TRUNC, NARROW_TRUNC)
    ]
    shares = pd.DataFrame(np.array(gain[:4]).T, columns=[WIDE_AVG, NARROW_AVG, WIDE_TRUNC, NARROW_TRUNC])
    return [
        Claim(
            "fig2-finite-range-lowers",
            where,
            "Over 100 samples both kinds of range synthesizers have lower budgets than Weighted.",
            "paired difference of ε to Weighted, mean over samples",
            in_both_forms(prices, BELOW_WEIGHTED),
        ),
        Claim(
            "fig2-shorter-lowers",
            where,
            "Over 100 samples a shorter range lowers the budget for either standard.",
            "paired difference of ε, (0.6, 1.2) minus (0.4, 1.8)",
            in_both_forms(prices, SHORTER),
        ),
        Claim(
            "fig2-averaged-below-truncated",
            where,
            "Over 100 samples the averaged synthesizer costs less than the truncated one at the same range.",
            "paired difference of ε",
            in_both_forms(prices, AVERAGED_BELOW),
        ),
        Claim(
            "fig2-full-order",
            where,
            "The six synthesizers stand in one order in (nearly) every sample: Unweighted, Weighted, "
            "(0.4, 1.8) trunc, (0.6, 1.2) trunc, (0.4, 1.8) avg, (0.6, 1.2) avg.",
            "share of samples with that strict order of ε; 95 % asked for",
            tuple(
                counted(found, ORDER, what="share of samples in full order").under(form)
                for form, found in forms(prices)
            ),
        ),
        Claim(
            "sec2-averaged-never-above",
            "section 2, bound on the averaged sensitivity",
            "The averaged sensitivity is at most that of Weighted (they belong to different posteriors).",
            "share of samples with ε of the averaged synthesizer below Weighted",
            tuple(
                counted(prices, (WEIGHTED, label), what=f"share of samples with {label} below Weighted")
                for label in (WIDE_AVG, NARROW_AVG)
            ),
        ),
        Claim(
            "sec3-truncated-expected-below",
            "section 3, expectation after the truncated sensitivity",
            "The truncated sensitivity is expected not to exceed that of Weighted.",
            "paired difference of ε to Weighted, at the paper's ranges and at narrower ones",
            (
                *(lower(prices, label, WEIGHTED).under("the paper's two ranges, α(f − log γ)")
                  for label in (WIDE_TRUNC, NARROW_TRUNC)),
                *(lower(very, label, WEIGHTED).under(f"range {label.removesuffix(' trunc')}")
                  for label in setup.NARROWER),
                *(lower(prices, label, WEIGHTED).under("the paper's two ranges, as printed")
                  for label in setup.PRINTED),
            ),
        ),
        Claim(
            "sec6-averaged-gains-more",
            "section 6",
            "Averaging improves privacy strongly, truncation more modestly.",
            "share of Weighted's ε that is saved, truncated minus averaged",
            tuple(
                lower(shares, trunc, avg, what="saving")
                for avg, trunc in ((WIDE_AVG, WIDE_TRUNC), (NARROW_AVG, NARROW_TRUNC))
            ),
        ),
    ]  # fmt: skip
