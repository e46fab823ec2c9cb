"""The empirical sentences of section 4.3 and appendix A: a wider range for the top of the distribution."""

from itertools import pairwise

from hedgerow_studies.paper.claims.checks import Claim, lower, pooled, relative_error, wide
from hedgerow_studies.paper.setup import TOP_1, TOP_5, TOP_10, USUAL, WEIGHTED
from hedgerow_studies.paper.tasks import Tables

STEPS = tuple(pairwise((TOP_1, TOP_5, TOP_10)))


def claims(tables: Tables) -> list[Claim]:
    """Every claim of story 3."""
    epsilon = wide(tables["prices"], "lipschitz")
    utility = tables["utility"]
    found = [
        Claim(
            "fig11-wider-top-costs-more",
            "section 4.3, Figure 11",
            "The more records get the wider range, from 1 % to 10 %, the larger the budget.",
            "paired differences of ε",
            tuple(lower(epsilon, *pair) for pair in STEPS),
        ),
        Claim(
            "fig11-top-10-below-weighted",
            "section 4.3, Figure 11",
            "Even with the top 10 % on the wider range the budget is below that of Weighted.",
            "paired difference of ε",
            (lower(epsilon, TOP_10, WEIGHTED),),
        ),
        Claim(
            "sec43-wider-top-above-usual",
            "section 4.3, last paragraph, and section 6",
            "A wider range for the tail means a less amplified guarantee and some loss of utility.",
            "paired differences to (0.4, 1.8) for all: ε and the maximum ECDF difference",
            (
                *(lower(epsilon, USUAL, label) for label in (TOP_1, TOP_5, TOP_10)),
                *(
                    lower(pooled(utility, "ecdf_max"), USUAL, label, what="ECDF maximum")
                    for label in (TOP_1, TOP_5, TOP_10)
                ),
            ),
        ),
    ]
    for number, name, words, where in (
        (12, "ecdf_max", "maximum ECDF difference", "section 4.3"),
        (17, "ecdf_mean_absolute", "average ECDF difference", "appendix A"),
    ):
        found.append(
            Claim(
                f"fig{number}-utility-falls-{name}",
                f"{where}, Figure {number}",
                f"The {words} rises as the top share grows from 1 % to 5 % to 10 %.",
                f"paired differences of the {words}",
                tuple(lower(pooled(utility, name), *pair, what=words) for pair in STEPS),
            )
        )
    for number, name, words, where in (
        (13, "median", "median", "section 4.3"),
        (14, "q90", "90 % quantile", "section 4.3"),
        (18, "mean", "mean", "appendix A"),
    ):
        error, level = relative_error(utility, name), pooled(utility, name)
        found.append(
            Claim(
                f"fig{number}-utility-falls-{name}",
                f"{where}, Figure {number}",
                f"The {words} of the copies moves further from that of the data as the top share grows.",
                f"paired differences of the relative error of the {words}, and of the {words} itself",
                (
                    *(lower(error, *pair, what="error").under("distance to the data") for pair in STEPS),
                    *(
                        lower(level, second, first, what=words).under("direction: lower and lower")
                        for first, second in STEPS
                    ),
                ),
            )
        )
    return found
