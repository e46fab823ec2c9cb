"""`hr.plot`: the paper's violins for one synthesizer or several, and pictures of an audit. Confidential.

    >>> import hedgerow as hr
    >>> synth = hr.Synthesizer("x ~ z", seed=1).fit(hr.datasets.lognormal(n=100, seed=1))
    >>> figure = hr.plot.lipschitz(synth)  # a matplotlib Figure

A source is a synthesizer, a `Comparison`, or synthesizers by label.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from hedgerow.comparison import Comparison
from hedgerow.drawing import price_by_records
from hedgerow.errors import SettingError
from hedgerow.evidence.audit import Audit
from hedgerow.evidence.more_draws import Outlook
from hedgerow.synthesizer import Synthesizer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Kind = TypeVar("Kind", Audit, Outlook)
Source = Synthesizer | Comparison | Mapping[str, Synthesizer]


def lipschitz(source: Source) -> "Figure":
    """By-record Lipschitz values max_s |d|; the price is twice the largest."""
    return _comparison(source).plot("lipschitz")


def alpha(source: Source) -> "Figure":
    """The weights α."""
    return _comparison(source).plot("alpha")


def known(source: Source) -> "Figure":
    """λ, the probability that a fresh value falls outside a record's range."""
    return _comparison(source).plot("known")


def data(source: Source) -> "Figure":
    """The confidential outcome and the copies, on a logarithmic axis where all are positive."""
    return _comparison(source).plot("data")


def utility(source: Source, statistic: str = "ecdf_max") -> "Figure":
    """One statistic of the copies, one dot per copy, with the confidential value as a line."""
    return _comparison(source).plot("utility", statistic=statistic)


def audit(found: Audit) -> "Figure":
    """Losses with weights fixed and recomputed, the largest first, against the stated price."""
    return _made(found, Audit, "audit").plot()


def outlook(found: Outlook) -> "Figure":
    """The price as draws were added, and what its tail foretells beyond them."""
    return _made(found, Outlook, "outlook").plot()


def contraction(columns: Mapping[str, Sequence[float]]) -> "Figure":
    """Each bound against the number of records, from `evidence.more_records.contraction`."""
    if not isinstance(columns, Mapping) or "n" not in columns:
        raise SettingError(
            "A picture of contraction needs its columns, n and one for each bound, got "
            f"{type(columns).__name__}. Pass what contraction(…) returns."
        )
    return price_by_records(columns)


def _comparison(source: Source) -> Comparison:
    if isinstance(source, Comparison):
        return source
    if isinstance(source, Synthesizer):
        source = {source.settings.standard.label: source}
    if not isinstance(source, Mapping) or not all(isinstance(each, Synthesizer) for each in source.values()):
        raise SettingError(
            f"A picture is drawn of a fitted synthesizer, a Comparison or a dict of synthesizers, got "
            f"{type(source).__name__}. Pass the synthesizer itself, not its release or its table."
        )
    if not source:
        raise SettingError("A picture needs at least one synthesizer, and the dict is empty.")
    return Comparison(source)


def _made(found: Any, kind: type[Kind], method: str) -> Kind:
    """What a synthesizer's method returned; the synthesizer itself is a likely slip."""
    if not isinstance(found, kind):
        raise SettingError(
            f"A picture of it needs what synth.{method}() returns, got {type(found).__name__}."
        )
    return found
