"""The paper's synthesizers under the paper's labels, in its order, and the sizes of its studies."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hedgerow.models.exact import Lognormal
from hedgerow.models.prior import Prior
from hedgerow.privacy.ranges import Radius, Tail
from hedgerow.privacy.standards import ADP, RangeAveraged, RangeTruncated, Standard, Unweighted

# Vague, as the paper's priors of the simulation are; hedgerow's default says more of the slopes.
VAGUE = Lognormal(Prior(slope=(0.0, 20.0)))
WIDE, NARROW, WIDER = Radius(0.4, 1.8), Radius(0.6, 1.2), Radius(0.2, 2.4)

UNWEIGHTED, WEIGHTED = "Unweighted", "(-Inf, Inf)"
WIDE_AVG, WIDE_TRUNC = "(0.4, 1.8) avg", "(0.4, 1.8) trunc"
NARROW_AVG, NARROW_TRUNC = "(0.6, 1.2) avg", "(0.6, 1.2) trunc"
USUAL, TOP_1, TOP_5, TOP_10 = "(0.4, 1.8)", "Top 1%", "Top 5%", "Top 10%"  # story 3, all range-averaged

SIX: Mapping[str, Standard] = MappingProxyType(
    {
        UNWEIGHTED: Unweighted(),
        WEIGHTED: ADP(),
        WIDE_AVG: RangeAveraged(WIDE),
        WIDE_TRUNC: RangeTruncated(WIDE),
        NARROW_AVG: RangeAveraged(NARROW),
        NARROW_TRUNC: RangeTruncated(NARROW),
    }
)
# The sensitivity as the paper prints it: α f − log γ. Its figures come from α (f − log γ), the form in SIX.
AS_PRINTED = {WIDE_TRUNC: "(0.4, 1.8) trunc, as printed", NARROW_TRUNC: "(0.6, 1.2) trunc, as printed"}
PRINTED: Mapping[str, Standard] = MappingProxyType(
    {
        AS_PRINTED[WIDE_TRUNC]: RangeTruncated(WIDE, "one"),
        AS_PRINTED[NARROW_TRUNC]: RangeTruncated(NARROW, "one"),
    }
)
# Beyond the paper: how far narrowing a truncated range keeps helping.
NARROWER: Mapping[str, Standard] = MappingProxyType(
    {
        f"({a:g}, {b:g}) trunc": RangeTruncated(Radius(a, b))
        for a, b in ((0.9, 1.1), (0.97, 1.03), (0.99, 1.01))
    }
)
TAILS: Mapping[str, Standard] = MappingProxyType(
    {
        UNWEIGHTED: Unweighted(),
        WEIGHTED: ADP(),
        USUAL: RangeAveraged(WIDE),
        TOP_1: RangeAveraged(Tail(0.01, WIDER, WIDE)),
        TOP_5: RangeAveraged(Tail(0.05, WIDER, WIDE)),
        TOP_10: RangeAveraged(Tail(0.10, WIDER, WIDE)),
    }
)
COMMON = (UNWEIGHTED, WEIGHTED, WIDE_TRUNC, NARROW_TRUNC)  # story 2
RANGED = (WIDE_AVG, WIDE_TRUNC, NARROW_AVG, NARROW_TRUNC, USUAL, TOP_1, TOP_5, TOP_10)
WITHHELD = " withheld"  # added to a label: the same synthesizer, priced with x_i withheld

# Okabe and Ito's colours, one per synthesizer in every figure; a pair of blues and a pair of greens for the
# two ranges, as in the paper.
COLOURS: Mapping[str, str] = MappingProxyType(
    {
        UNWEIGHTED: "#999999",
        WEIGHTED: "#E69F00",
        WIDE_AVG: "#56B4E9",
        WIDE_TRUNC: "#0072B2",
        NARROW_AVG: "#7FD6B8",
        NARROW_TRUNC: "#009E73",
        USUAL: "#56B4E9",
        TOP_1: "#F0E442",
        TOP_5: "#CC79A7",
        TOP_10: "#D55E00",
    }
)

FORMULA = "x ~ z"
RECORDS = 2000
SIZES = (200, 400, 1600, 6400)
STUDIES = ("story1", "story2", "story3", "application")


@dataclass(frozen=True)
class Scale:
    """How much is run. The layout of what comes out does not depend on it."""

    samples: int  # simulated tables per study
    fits: int  # repeated fits of the application, whose data are fixed


FULL = Scale(samples=100, fits=10)
QUICK = Scale(samples=4, fits=2)
COPIES = 5  # synthetic tables per simulated table; the paper does not say how many it used
MANY_COPIES = 200  # where there is one table only and the violin is over its copies
