"""By which rule the copies of a release are combined, and why: from the facts of its certificate alone.

The rules themselves, in numbers, are in `hedgerow.receive`, which reads the choice from a certificate.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

Name = Literal["partial", "noisy", "projected", "proper"]


class Combining(NamedTuple):
    """Which rule combines copies, and why."""

    rule: Name
    why: str


def choose_rule(*, standard: str, bound: str, processing: Sequence[str], copies: int) -> Combining:
    """The rule that fits a release: how its copies were made decides it."""
    done = " ".join(processing)
    evened = "were projected off" in done or "from stratified" in done
    differing: Name = "projected" if evened else "noisy"
    shown = "which shows in how much copies differ"
    shown += (
        ", and hardly have noise of their own: combine them by the rule for projected copies (projected)."
        if evened
        else ": combine them by the rule for noisy statistics (noisy)."
    )
    if 1 < copies < 5:
        shown += f" {copies} copies show it poorly: intervals may be far too narrow, or very wide."
    if bound in ("statistics", "gaussian"):
        why = f"The copies follow from statistics with noise in them, {shown}"
        if copies == 1:
            why += " One copy does not show it: ask for more, which cost no privacy."
        if "noisy counts of a margin" in done:
            why += (
                " Noise in the counts of the margin is the same in all copies, and does not show: "
                "intervals miss it, and cover less often than they say."
            )
        return Combining(differing, why)
    filled = "where a cell was missing" in done
    if filled and standard == "Unweighted" and copies > 1:
        why = f"The copies were drawn from a posterior, also where cells were missing, {shown}"
        return Combining(differing, why)
    why = "Protected values were drawn from a posterior, and public columns are as they were: "
    left = " Values in place of missing ones are taken for observed ones: intervals miss that." * filled
    if standard == "Unweighted" and copies == 1:
        why += "read the one copy by Raab, Nowok and Dibben's rule (proper)."
        return Combining("proper", why + left)
    why += "combine copies by Reiter's rule for partially synthetic data (partial)."
    if "corrected by indirect inference" in done:
        why += (
            " The likelihood was weighted, and draws were corrected for it: intervals are close to right "
            "where the model holds."
        )
    elif standard != "Unweighted":
        why += (
            " The likelihood was weighted, or bounded, for privacy, and draws lean away from the data by a "
            "bias that copies do not show: intervals miss it, and cover less often than they say."
        )
    why += left + " One copy does not show how much copies differ." * (copies == 1)
    return Combining("partial", why)
