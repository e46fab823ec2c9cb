"""Write docs/claims.md, *What you may claim*, from the very words that certificates use.

python -m hedgerow_studies.pages.claims
"""

from pathlib import Path

import hedgerow as hr
from hedgerow.mechanism.calibrate import TRIES
from hedgerow.mechanism.price import CONFIDENCE, SUPREMA, Bound
from hedgerow.privacy.guarantee import Guarantee
from hedgerow.privacy.standards import Standard
from hedgerow.privacy.strict import Bounded
from hedgerow.privacy.weights import if_recomputed

PAGE = Path("docs/claims.md")
DRAWS = 1000
WEIGHTS = hr.CapWeights(2.0, risk="oscillation")  # those of the recommended preset at ε = 2
RADIUS = hr.Radius(0.4, 1.8)
BOX = {"Intercept": (0.0, 2.0), "z": (0.5, 1.5), "sigma": (0.6, 1.6)}
STANDARDS: dict[str, Standard] = {
    "ADP": hr.ADP(),
    "RangeTruncated": hr.RangeTruncated(RADIUS),
    'RangeTruncated(public_weight="one")': hr.RangeTruncated(RADIUS, "one"),
    "RangeAveraged": hr.RangeAveraged(RADIUS),
    "Unweighted": hr.Unweighted(),
    "Strict": hr.Strict(BOX, "published tables"),
    "Censored": hr.Censored(reason="published tables"),
}
PROVEN: dict[Bound, str] = {
    "lipschitz": "If |d| ≤ ε/2 on a set, the two posteriors restricted to it differ by at most e^ε.",
    "oscillation": "If |d − k| ≤ ε/2 on a set, for centres k fixed beforehand, the same follows.",
    "exact": "The log ratio of the two posterior densities is known in closed form at every parameter.",
    "strict": "Every record's factor oscillates by at most ε over the whole box, whatever the data.",
    "censored": "Every record's factor oscillates by at most ε over all parameters, whatever the data: the "
    "posterior that the sampler aims at has the property. Not that the sampler hits it.",
}
ESTIMATED: dict[Bound, str] = {
    "lipschitz": "How much of the fitted posterior the set holds, with the stated confidence.",
    "oscillation": "How much of the fitted posterior the set holds, with the stated confidence.",
    "exact": "How often a draw exceeds ε, with the stated confidence.",
    "strict": "Nothing.",
    "censored": "Whether the chain has reached its posterior: by its health checks, which can miss a region.",
}


def bounds_of(label: str) -> tuple[Bound, ...]:
    """The bounds a standard can be calibrated to."""
    standard = STANDARDS[label]
    if isinstance(standard, Bounded):
        return (standard.bound,)
    if label.startswith("RangeTruncated"):
        return ("lipschitz", "oscillation")
    return ("lipschitz", "oscillation", "exact")


def guarantee(standard: Standard, bound: Bound, *, independent: bool = True) -> Guarantee:
    """An example guarantee: one copy at ε = 2."""
    supremum = bound in SUPREMA
    return Guarantee(
        standard=standard.label,
        neighbour=standard.neighbour,
        bound=bound,
        family="lognormal" if independent else "program",
        epsilon=2.0,
        copies=1,
        draws=DRAWS if independent else 400,
        delta=0.0 if supremum else 1 - ((1 - CONFIDENCE) / TRIES) ** (1 / (DRAWS if independent else 400)),
        confidence=1.0 if supremum else CONFIDENCE,
        independent=independent,
        protected="x",
        passed_through=("z",),
        known=standard.assumption(),
        averaged=standard.uses_known,
        follows_outcome=standard.range.follows_outcome,
        outside_public=False,
        seeded=False,
        if_recomputed=if_recomputed(WEIGHTS) if standard.weighted else "",
    )


def page() -> str:
    """The whole page."""
    lines = [
        "# What you may claim",
        "",
        "One section per standard and bound, in the words that certificates use: this page is written by",
        "`hedgerow_studies.pages.claims` from the same source. The examples are one copy at ε = 2 from",
        "1000 draws, with the weights of the recommended preset.",
        "Without a target no ε may be claimed at all.",
        "",
    ]
    for label, standard in STANDARDS.items():
        lines += [f"## {label}", "", f"The neighbour: {standard.neighbour}.", ""]
        for bound in bounds_of(label):
            example = guarantee(standard, bound, independent=bound != "censored")
            lines += [f"### {label}, {bound}", ""]
            lines += [f"- Proven: {PROVEN[bound]}", f"- Estimated: {ESTIMATED[bound]}", ""]
            lines += ["You may write:", "", f"> {example.claim()}", "", "It does not cover:", ""]
            lines += [f"- {caveat}" for caveat in example.caveats()]
            lines += [""]
    lines += [
        "## Models sampled by Markov chains",
        "",
        "Under every standard but Strict and Censored, the same claims with the draws that the health gate",
        "demands of every fit, called approximate. The exact bound and Strict need a closed form, which such",
        "models do not have; what their audit says is an estimate and can never certify.",
        "",
        f"> {guarantee(hr.ADP(), 'lipschitz', independent=False).claim()}",
        "",
        f"- {guarantee(hr.ADP(), 'lipschitz', independent=False).caveats()[-1]}",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
