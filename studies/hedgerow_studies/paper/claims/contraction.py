"""What section 4.1 says of growing sample sizes, and sections 1.1 and 2.1 before it."""

from itertools import pairwise

import numpy as np
import pandas as pd

from hedgerow_studies.paper import setup
from hedgerow_studies.paper.claims.checks import ERRORS, Check, Claim, wide


def claims(rows: pd.DataFrame) -> list[Claim]:
    """What samples of four sizes decide."""
    small, large = setup.SIZES[0], setup.SIZES[-1]
    sizes = {n: wide(rows[rows["n"] == n], "lipschitz") for n in setup.SIZES}
    oscillation = {n: wide(rows[rows["n"] == n], "oscillation") for n in (small, large)}
    spread, level, sharper = [], [], []
    for label in setup.SIX:
        count = len(sizes[small])
        ratio = float(sizes[large][label].std() / sizes[small][label].std())
        error = ratio / np.sqrt(max(count - 1, 1))  # of a ratio of two independent standard deviations
        agrees = bool(ratio + ERRORS * error < 1)
        what = f"spread of ε at n = {large} over that at {small}, {label}:"
        spread.append(Check(what, ratio, float(error), agrees, "the spread over samples"))
        for before, after in pairwise(setup.SIZES):
            level.append(
                _moved(sizes[before][label], sizes[after][label], f"{label}, n = {before} to {after}")
            )
        fall = _moved(
            oscillation[small][label], oscillation[large][label], f"{label}, n = {small} to {large}"
        )
        sharper.append(
            Check(
                f"mean oscillation, {fall.quantity.removeprefix('mean ε, ')}",
                fall.estimate,
                fall.error,
                bool(fall.estimate + ERRORS * (fall.error or 0) < 0),
            )
        )
    rate = _rate(sizes)
    return [
        Claim(
            "fig5-contraction",
            "section 4.1, Figure 5, and section 1.1",
            "With the range standards, too, the local sensitivity contracts onto a global one as n grows.",
            "ratio of the spread of ε over samples; change of mean ε from one size to the next",
            (*spread, *level),
        ),
        Claim(
            "sec2-contraction-rate",
            "section 2.1, remark on the global sensitivity",
            "The contraction is of order n^(-1/2).",
            "slope of log spread of ε on log n, pooled over the six synthesizers; −0.5 expected",
            (rate,),
        ),
        Claim(
            "beyond-oscillation-falls-with-n",
            "beyond the paper",
            "Under the oscillation bound the price itself falls with n, for every synthesizer.",
            f"change of the mean oscillation price from n = {small} to {large}",
            tuple(sharper),
        ),
    ]


def _moved(before: "pd.Series[float]", after: "pd.Series[float]", what: str) -> Check:
    """Whether the mean stays where it is; samples of different sizes are independent."""
    change = float(after.mean() - before.mean())
    error = float(np.sqrt(before.var() / len(before) + after.var() / len(after)))
    agrees = bool(abs(change) <= ERRORS * error)
    return Check(f"mean ε, {what}:", change, error, agrees, "a mean ε that does not move with n")


def _rate(sizes: dict[int, pd.DataFrame]) -> Check:
    logs = np.log(list(sizes))
    slopes = [
        float(np.polyfit(logs, np.log([found[label].std() for found in sizes.values()]), 1)[0])
        for label in setup.SIX
    ]
    count = len(next(iter(sizes.values())))
    # A log spread has variance 1/(2(count − 1)); the synthesizers share samples, so their mean gains nothing.
    error = float(np.sqrt(0.5 / max(count - 1, 1)) / np.sqrt(((logs - logs.mean()) ** 2).sum()))
    slope = float(np.mean(slopes))
    detail = f"from {min(slopes):.2f} to {max(slopes):.2f} by synthesizer"
    return Check("slope", slope, error, abs(slope + 0.5) <= ERRORS * error, detail=detail)
