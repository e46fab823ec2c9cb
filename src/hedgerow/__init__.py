"""hedgerow: synthetic copies of a confidential table, with a formal privacy guarantee.

    >>> import hedgerow as hr
    >>> table = hr.datasets.lognormal(n=200, seed=1)
    >>> synth = hr.Synthesizer("x ~ z", standard=hr.RangeTruncated(hr.Radius(0.4, 1.8)), seed=1).fit(table)
    >>> synth.sample()
    Release(1 copy, RangeTruncated, no target)

The public names stand in `__init__.pyi`. They load when first used, so that `import hedgerow` is quick.
"""

from importlib import import_module

from lazy_loader import attach_stub

__version__ = "0.1.0"

_MODULES = {
    "plot": "report.plots",
    "survey": "inference.survey",
    "utility": "evidence.utility",
}  # a stub cannot name a module inside a room
_from_stub, _, _names = attach_stub(__name__, __file__)
__all__ = sorted([*_names, *_MODULES])


def __getattr__(name: str) -> object:
    return import_module(f"hedgerow.{_MODULES[name]}") if name in _MODULES else _from_stub(name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
