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
    from hedgerow import datasets, utility, weights
    from hedgerow import plots as plot
    from hedgerow.assessment import Assessment, assess
    from hedgerow.censored import Censored
    from hedgerow.certificate import Certificate
    from hedgerow.comparison import Comparison, compare
    from hedgerow.making import Made, make_release
    from hedgerow.models.family import Family
    from hedgerow.models.prior import Prior
    from hedgerow.models.program import Codes, Levels, Program
    from hedgerow.models.regression import Lognormal, Normal
    from hedgerow.plan import Outputs, Plan, Read
    from hedgerow.progress import watch
    from hedgerow.ranges import Bounds, Brackets, Everywhere, Radius, Range, Tail, Where
    from hedgerow.release import Guarantee, Release
    from hedgerow.standards import ADP, RangeAveraged, RangeTruncated, Standard, Unweighted
    from hedgerow.strict import Strict
    from hedgerow.synthesizer import Synthesizer
    from hedgerow.verifying import Verified, verify_release
    from hedgerow.weights import (
        CapWeights,
        IdentificationWeights,
        InverseWeights,
        LinearWeights,
        LogisticWeights,
        Reweighted,
        ScalarWeights,
        SoftmaxWeights,
    )

__version__ = "0.1.0"

_WHERE = {
    "assessment": ("Assessment", "assess"),
    "censored": ("Censored",),
    "certificate": ("Certificate",),
    "comparison": ("Comparison", "compare"),
    "models.family": ("Family",),
    "models.prior": ("Prior",),
    "models.program": ("Codes", "Levels", "Program"),
    "models.regression": ("Lognormal", "Normal"),
    "progress": ("watch",),
    "making": ("Made", "make_release"),
    "plan": ("Outputs", "Plan", "Read"),
    "ranges": ("Bounds", "Brackets", "Everywhere", "Radius", "Range", "Tail", "Where"),
    "release": ("Guarantee", "Release"),
    "standards": ("ADP", "RangeAveraged", "RangeTruncated", "Standard", "Unweighted"),
    "strict": ("Strict",),
    "synthesizer": ("Synthesizer",),
    "verifying": ("Verified", "verify_release"),
    "weights": (
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
_MODULES = {"datasets": "datasets", "plot": "plots", "utility": "utility", "weights": "weights"}
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
