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
    if bound in ("statistics", "gaussian"):
        evened = "were projected off" in done or "from stratified" in done
        why = "The copies follow from statistics with noise in them, which shows in how much copies differ"
        why += (
            ", and hardly have noise of their own: combine them by the rule for projected copies (projected)."
            if evened
            else ": combine them by the rule for noisy statistics (noisy)."
        )
        if copies == 1:
            why += " One copy does not show it: ask for more, which cost no privacy."
        elif copies < 5:
            why += f" {copies} copies show it poorly: intervals may be far too narrow, or very wide."
        if "noisy counts of a margin" in done:
            why += (
                " Noise in the counts of the margin is the same in all copies, and does not show: "
                "intervals miss it, and cover less often than they say."
            )
        return Combining("projected" if evened else "noisy", why)
    why = "Protected values were drawn from a posterior, and public columns are as they were: "
    if standard == "Unweighted" and copies == 1:
        return Combining("proper", f"{why}read the one copy by Raab, Nowok and Dibben's rule (proper).")
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
    return Combining("partial", why + (" One copy does not show how much copies differ." * (copies == 1)))
