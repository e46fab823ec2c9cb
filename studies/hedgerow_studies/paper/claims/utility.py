"""The sentences of section 4.1 on utility, and those of other sections that rest on the same samples."""

import pandas as pd

from hedgerow_studies.paper.claims.checks import Check, Claim, forms, lower, pooled, relative_error, same
from hedgerow_studies.paper.setup import NARROW_AVG, NARROW_TRUNC, UNWEIGHTED, WEIGHTED, WIDE_AVG, WIDE_TRUNC

SHORTER = ((NARROW_AVG, WIDE_AVG), (NARROW_TRUNC, WIDE_TRUNC))
ECDF = {
    "ecdf_mean_absolute": "the mean absolute difference",
    "ecdf_mean_squared": "the mean squared difference",
}


def claims(utility: pd.DataFrame, prices: pd.DataFrame) -> list[Claim]:
    """What the copies of story 1 decide."""
    ecdf = {words: pooled(utility, name) for name, words in ECDF.items()}
    q90 = {"": relative_error(utility, "q90")}
    weighted_family = (WEIGHTED, WIDE_TRUNC, NARROW_TRUNC)

    def best(found: dict[str, pd.DataFrame], what: str) -> tuple[Check, ...]:
        return tuple(
            lower(table, avg, other, what=what).under(f"{reading}{', ' if words else ''}{words}")
            for words, table in found.items()
            for reading, others in (
                ("the risk-weighted synthesizers", weighted_family),
                ("all six synthesizers", (*weighted_family, UNWEIGHTED)),
            )
            for avg in (WIDE_AVG, NARROW_AVG)
            for other in others
        )

    def shorter(found: dict[str, pd.DataFrame], what: str) -> tuple[Check, ...]:
        return tuple(
            lower(table, narrow, broad, what=what).under(f"the {kind} standard{', ' if words else ''}{words}")
            for words, table in found.items()
            for kind, (narrow, broad) in zip(("averaged", "truncated"), SHORTER, strict=True)
        )

    alike = tuple(
        same(table, label, WEIGHTED, what="ECDF difference").under(words)
        for words, table in ecdf.items()
        for label in (WIDE_TRUNC, NARROW_TRUNC)
    )
    no_worse = tuple(
        lower(table, label, WEIGHTED, what="ECDF difference")
        for table in list(ecdf.values())[:1]
        for label in (WIDE_AVG, NARROW_AVG)
    )
    return [
        Claim(
            "fig3-averaged-best",
            "section 4.1, Figure 3",
            "By the average ECDF difference the averaged synthesizers have the highest utility.",
            "paired difference of the average ECDF difference",
            best(ecdf, "ECDF difference"),
        ),
        Claim(
            "fig3-weighted-and-truncated-alike",
            "section 4.1, Figure 3",
            "Weighted and truncated synthesizers have the same utility, for they use the same weights.",
            "paired difference of the average ECDF difference, with common random numbers",
            alike,
        ),
        Claim(
            "fig3-truncated-same-utility-lower-price",
            "section 4.1, after Figure 3",
            "At the same utility truncation gives a stronger guarantee than Weighted.",
            "ECDF difference alike, and ε below Weighted",
            tuple(
                check
                for form, found in forms(prices)
                for label in (WIDE_TRUNC, NARROW_TRUNC)
                for check in (
                    lower(found, label, WEIGHTED).under(form),
                    same(next(iter(ecdf.values())), label, WEIGHTED, what="ECDF difference").under(form),
                )
            ),
        ),
        Claim(
            "fig3-shorter-improves",
            "section 4.1, after Figure 3",
            "A shorter range improves utility further, for either range standard.",
            "paired difference of the average ECDF difference, (0.6, 1.2) minus (0.4, 1.8)",
            shorter(ecdf, "ECDF difference"),
        ),
        Claim(
            "fig4-averaged-best",
            "section 4.1, Figure 4",
            "By the 90 % quantile too the averaged synthesizers have the highest utility.",
            "paired difference of the relative error of the 90 % quantile",
            best(q90, "error of Q90"),
        ),
        Claim(
            "fig4-shorter-improves",
            "section 4.1, Figure 4",
            "A smaller range goes with higher utility by the 90 % quantile.",
            "paired difference of the relative error of the 90 % quantile",
            shorter(q90, "error of Q90"),
        ),
        Claim(
            "sec41-no-price-in-utility",
            "section 4.1, summary, and section 6",
            "The stronger guarantee does not come at the price of utility; averaged copies are better.",
            "ECDF difference of averaged below, of truncated equal to, that of Weighted",
            (*no_worse, *(Check(c.quantity, c.estimate, c.error, c.agrees, "", c.detail) for c in alike[:2])),
        ),
        Claim(
            "sec43-wider-loses-utility",
            "section 4.3, recalling section 4.1",
            "The averaged synthesizer on (0.4, 1.8) has lower utility than on (0.6, 1.2), by global and "
            "by analysis-specific measures.",
            "paired differences, (0.6, 1.2) avg minus (0.4, 1.8) avg",
            (
                *(lower(table, NARROW_AVG, WIDE_AVG, what="ECDF difference").under(words)
                  for words, table in ecdf.items()),
                *(
                    lower(relative_error(utility, name), NARROW_AVG, WIDE_AVG, what="error").under(words)
                    for name, words in (
                        ("mean", "the mean"),
                        ("median", "the median"),
                        ("q90", "the 90 % quantile"),
                    )
                ),
            ),
        ),
    ]  # fmt: skip
