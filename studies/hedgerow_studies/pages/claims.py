"""Write docs/claims.md, *What you may claim*, from the very words that certificates use.

python -m hedgerow_studies.pages.claims
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import hedgerow as hr
from hedgerow.mechanism.calibrate import TRIES
from hedgerow.models.base import Health
from hedgerow.privacy.bounds import BOUNDS, GAUSSIAN, LIPSCHITZ, LOCAL, OSCILLATION, STATISTICS, Bound
from hedgerow.privacy.claims.caveats import CAVEATS, CLAIMS, FORMER, Reason, write_caveat
from hedgerow.privacy.guarantee import Guarantee
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.standards import Standard
from hedgerow.privacy.strict import Bounded

PAGE = Path("docs/claims.md")
DRAWS, EFFECTIVE = 1000, 400
WEIGHTS = hr.CapWeights(2.0, risk="oscillation")  # weights that are computed from the fit
RADIUS = hr.Radius(0.4, 1.8)
LIMITS = (1.0, 1e6)
BOX = {"Intercept": (0.0, 2.0), "z": (0.5, 1.5), "sigma": (0.6, 1.6)}
STANDARDS: dict[str, Standard] = {
    "ADP": hr.ADP(),
    "RangeTruncated": hr.RangeTruncated(RADIUS),
    'RangeTruncated(public_weight="one")': hr.RangeTruncated(RADIUS, "one"),
    "RangeAveraged": hr.RangeAveraged(RADIUS),
    "Unweighted": hr.Unweighted(),
    "Strict": hr.Strict(BOX, "published tables"),
    "Censored": hr.Censored(reason="published tables"),
    "Strict(limits=…)": hr.Strict(limits=LIMITS, reason="published tables"),
    'Strict(limits=…, relation="replaced")': hr.Strict(limits=LIMITS, relation="replaced"),
    'Strict(limits=…, relation="range")': hr.Strict(limits=LIMITS, relation="range", range=RADIUS),
    'Strict(limits=…, noise="gaussian")': hr.Strict(limits=LIMITS, noise="gaussian"),
}
# When a caveat joins those that a bound always has: what is changed in the example, in the order of the page.
WHEN: dict[str, dict[str, Any]] = {
    "weights that depend on other records": {"weights": WEIGHTS},
    "linear or inverse weights": {"weights": hr.LinearWeights()},
    "identification weights": {"weights": hr.IdentificationWeights(0.2)},
    "other weights, scaled to a target": {"weights": hr.ScalarWeights(0.5)},
    "the standard is range-truncated": {"standard": hr.RangeTruncated(hr.Brackets([0, 10, 1e6]))},
    "the standard is range-averaged": {"standard": hr.RangeAveraged(hr.Brackets([0, 10, 1e6]))},
    "the range is a radius or a tail": {"standard": hr.RangeAveraged(RADIUS)},
    'outside="public"': {"standard": hr.RangeAveraged(hr.Brackets([0, 10], outside="public"))},
    "a support, levels or a spike were declared": {"declared": "values above 0"},
    "counts, classes or spikes with a range": {"single_values": True},
    "ranges on several columns that hang together": {
        "standard": hr.RangeTruncated(hr.Brackets([0, 10, 1e6])),
        "simulated": True,
    },
    'missing="synthesized"': {"gaps": True},
    'relation="range"': {"standard": hr.Strict(limits=LIMITS, relation="range", range=RADIUS)},
    "a column was kept on purpose": {"kept": ("…",), "protected": "…"},
    "copies are corrected": {"corrected": 1},
    "a model sampled by Markov chain": {"independent": False},
    "a seed was set": {"seeded": True},
}
# What a release adds, under any bound.
ADDED = {
    "C28": "always",
    "C29": "a column is used and not released",
    "C31": "no look at the data was counted",
    "C32": "looks at the data were counted",
}


def bounds_of(label: str) -> tuple[Bound, ...]:
    """The bounds a standard can be calibrated to."""
    return _bounds(STANDARDS[label])


def _bounds(standard: Standard) -> tuple[Bound, ...]:
    if isinstance(standard, Bounded):
        return (standard.bound,)
    return (LIPSCHITZ, OSCILLATION) if isinstance(standard, hr.RangeTruncated) else LOCAL


def guarantee(
    standard: Standard, bound: Bound, *, weights: Any = WEIGHTS, independent: bool = True, **changes: Any
) -> Guarantee:
    """An example guarantee: one copy at ε = 2."""
    own = {} if isinstance(standard, Bounded) else {"bound": bound, "weights": weights}
    family = (
        hr.Family("gamma", prior=hr.Prior(intercept=(0.0, 1.0))) if bound.name == "censored" else "lognormal"
    )
    asked = Settings.of("x ~ z", family, standard=standard, epsilon=2.0, **own)
    health = Health(
        "example", independent, float(DRAWS), assured_draws=None if independent else float(EFFECTIVE)
    )
    made = Guarantee.of(
        asked, bound.statement(DRAWS, health, tries=TRIES), protected="x", passed_through=("z",)
    )
    return replace(made, **changes)


def standard_of(bound: Bound) -> Standard:
    """The standard that a bound comes with, or ADP."""
    return next(
        (one for one in STANDARDS.values() if isinstance(one, Bounded) and one.bound == bound), hr.ADP()
    )


def caveats() -> dict[str, dict[str, str]]:
    """Every sentence about what is not covered, with when it applies under which bound."""
    table: dict[str, dict[str, str]] = {}
    for bound in BOUNDS:
        plain = {"weights": hr.ScalarWeights(0.5), "if_recomputed": ""}  # as if they were not scaled either
        always = guarantee(standard_of(bound), bound, independent=bound.name != "censored", **plain)
        for sentence in always.caveats():
            table.setdefault(sentence, {})[bound.name] = "always"
        for when, changes in WHEN.items():
            given: dict[str, Any] = {"standard": standard_of(bound), "bound": bound}
            given |= changes if "weights" in changes else plain | changes
            standard = given["standard"]
            if bound == GAUSSIAN and _bounds(standard) == (STATISTICS,):
                given["standard"] = standard = replace(standard, noise="gaussian")
            if "standard" in changes and bound not in _bounds(standard):
                continue
            for sentence in guarantee(**given).caveats():
                table.setdefault(sentence, {}).setdefault(bound.name, when)
    for id, when in ADDED.items():
        table[write_caveat(id, "…")] = dict.fromkeys((bound.name for bound in BOUNDS), when)
    for id in FORMER:
        table[write_caveat(id)] = {}
    return table


def page() -> str:
    """The whole page."""
    lines = [
        "# What you may claim",
        "",
        "In the words that certificates use: this page is written by `hedgerow_studies.pages.claims` from",
        "the same source. Without a target no ε may be claimed at all. What a release of yours may say, and",
        "what it does not cover, is printed by `print(synth.sample().guarantee)` and is in its certificate.",
        "",
        "## What a release is compared with",
        "",
        "| standard | the table in which … | bounds |",
        "| --- | --- | --- |",
    ]
    for label, standard in STANDARDS.items():
        bounds = ", ".join(bound.name for bound in bounds_of(label))
        lines.append(f"| {label} | {standard.neighbour} | {bounds} |")
    lines += [
        "",
        "## What each bound lets you write",
        "",
        f"One copy at ε = 2 from {DRAWS} draws. For models sampled by Markov chains the number of draws is",
        f"the {EFFECTIVE} effective ones that the health gate demands of every fit, and the claim is called",
        "approximate. The exact and Rényi bounds and Strict need a closed form, which such models do not",
        "have; what their audit says is an estimate and can never certify. The plain paragraph comes first",
        "([why it follows](maths.md#in-plain-words)), then the formal sentence.",
        "",
    ]
    for bound in BOUNDS:
        example = guarantee(standard_of(bound), bound, independent=bound.name != "censored")
        lines += [f"### {bound}", "", f"> {example.plain()}", ">", f"> {example.claim()}", ""]
        lines += [f"- Proven: {bound.proven}", f"- Estimated: {bound.estimated}", ""]
    names = [bound.name for bound in BOUNDS]
    lines += [
        "## What a claim does not cover",
        "",
        "Each sentence once, with the bounds it belongs to: always (●), or where the third column says (○).",
        "The last columns say what it rests on: the proof, a test below `tests/`, and where a breach was",
        "measured. `hedgerow verify --why ID` prints them; a bound's name is an id too.",
        "",
        f"| id | sentence | where | {' | '.join(names)} | proof | test | measured |",
        f"| --- | --- | --- |{' --- |' * len(names)} --- | --- | --- |",
    ]
    table = caveats()
    for id, reason in CAVEATS.items():
        sentence = reason.text.replace("{}", "…")
        under = table[sentence]
        reasons = ", or ".join(dict.fromkeys(when for when in under.values() if when != "always"))
        reasons = "former certificates" if id in FORMER else reasons
        marks = ["●" if under.get(name) == "always" else "○" if name in under else "" for name in names]
        lines.append(f"| {id} | {sentence} | {reasons} | {' | '.join([*marks, *_origin(reason)])} |")
    lines += [
        "",
        "The claims themselves:",
        "",
        "| bound | proof | test | measured |",
        "| --- |" + " --- |" * 3,
    ]
    lines += [f"| {name} | {' | '.join(_origin(reason))} |" for name, reason in CLAIMS.items()]
    return "\n".join([*lines, ""])


def _origin(reason: Reason) -> list[str]:
    """Links to the proof, the test and the measurement."""
    anchor = reason.proof.lower().replace(" ", "-")
    page = reason.measured.partition("#")[0].removesuffix(".md")
    return [
        f"[{reason.proof}](maths.md#{anchor})",
        f"`{reason.test}`",
        f"[{page}]({reason.measured})" if page else "",
    ]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
