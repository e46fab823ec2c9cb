"""hedgerow: synthetic copies of a confidential table, with a formal privacy guarantee.

    >>> import hedgerow as hr
    >>> table = hr.datasets.lognormal(n=200, seed=1)
    >>> synth = hr.Synthesizer("x ~ z", standard=hr.RangeTruncated(hr.Radius(0.4, 1.8)), seed=1).fit(table)
    >>> synth.sample()
    Release(1 copies, RangeTruncated, no target)

Names load when first used, so that `import hedgerow` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hedgerow.errors import HedgerowError, HedgerowWarning

if TYPE_CHECKING:
    from hedgerow import datasets
    from hedgerow.comparison import Comparison, compare
    from hedgerow.evidence import utility
    from hedgerow.evidence.external import Assessment, assess
    from hedgerow.models.exact import Lognormal, Normal
    from hedgerow.models.families.family import Family
    from hedgerow.models.prior import Prior
    from hedgerow.models.programs.program import Codes, Levels, Program
    from hedgerow.privacy import weights
    from hedgerow.privacy.censored import Censored
    from hedgerow.privacy.guarantee import Guarantee, Release
    from hedgerow.privacy.ranges import Bounds, Brackets, Everywhere, Radius, Range, Tail, Where
    from hedgerow.privacy.standards import ADP, RangeAveraged, RangeTruncated, Standard, Unweighted
    from hedgerow.privacy.strict import Strict
    from hedgerow.privacy.weights import (
        CapWeights,
        IdentificationWeights,
        InverseWeights,
        LinearWeights,
        LogisticWeights,
        Reweighted,
        ScalarWeights,
        SoftmaxWeights,
    )
    from hedgerow.progress import watch
    from hedgerow.release.certificate import Certificate
    from hedgerow.release.make import Made, make_release
    from hedgerow.release.plan import Outputs, Plan, Read
    from hedgerow.release.verify import Verified, verify_release
    from hedgerow.report import plots as plot
    from hedgerow.synthesizer import Synthesizer

__version__ = "0.1.0"

_WHERE = {
    "evidence.external": ("Assessment", "assess"),
    "privacy.censored": ("Censored",),
    "release.certificate": ("Certificate",),
    "comparison": ("Comparison", "compare"),
    "models.families.family": ("Family",),
    "models.prior": ("Prior",),
    "models.programs.program": ("Codes", "Levels", "Program"),
    "models.exact": ("Lognormal", "Normal"),
    "progress": ("watch",),
    "release.make": ("Made", "make_release"),
    "release.plan": ("Outputs", "Plan", "Read"),
    "privacy.ranges": ("Bounds", "Brackets", "Everywhere", "Radius", "Range", "Tail", "Where"),
    "privacy.guarantee": ("Guarantee", "Release"),
    "privacy.standards": ("ADP", "RangeAveraged", "RangeTruncated", "Standard", "Unweighted"),
    "privacy.strict": ("Strict",),
    "synthesizer": ("Synthesizer",),
    "release.verify": ("Verified", "verify_release"),
    "privacy.weights": (
        "CapWeights",
        "IdentificationWeights",
        "InverseWeights",
        "LinearWeights",
        "LogisticWeights",
        "Reweighted",
        "ScalarWeights",
        "SoftmaxWeights",
    ),
}
_MODULES = {
    "datasets": "datasets",
    "plot": "report.plots",
    "utility": "evidence.utility",
    "weights": "privacy.weights",
}
_NAMES = {name: module for module, names in _WHERE.items() for name in names}

__all__ = [
    "ADP",
    "Assessment",
    "Bounds",
    "Brackets",
    "CapWeights",
    "Censored",
    "Certificate",
    "Codes",
    "Comparison",
    "Everywhere",
    "Family",
    "Guarantee",
    "HedgerowError",
    "HedgerowWarning",
    "IdentificationWeights",
    "InverseWeights",
    "Levels",
    "LinearWeights",
    "LogisticWeights",
    "Lognormal",
    "Made",
    "Normal",
    "Outputs",
    "Plan",
    "Prior",
    "Program",
    "Radius",
    "Range",
    "RangeAveraged",
    "RangeTruncated",
    "Read",
    "Release",
    "Reweighted",
    "ScalarWeights",
    "SoftmaxWeights",
    "Standard",
    "Strict",
    "Synthesizer",
    "Tail",
    "Unweighted",
    "Verified",
    "Where",
    "assess",
    "compare",
    "datasets",
    "make_release",
    "plot",
    "utility",
    "verify_release",
    "watch",
    "weights",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"hedgerow.{_MODULES[name]}")
    if name in _NAMES:
        return getattr(import_module(f"hedgerow.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'hedgerow' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
