"""`hr.plot`: the paper's violins for one synthesizer or several, and pictures of an audit. Confidential.

    >>> import hedgerow as hr
    >>> synth = hr.Synthesizer("x ~ z", seed=1).fit(hr.datasets.lognormal(n=100, seed=1))
    >>> figure = hr.plot.lipschitz(synth)  # a matplotlib Figure

A source is a synthesizer, a `Comparison`, or synthesizers by label.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hedgerow.comparison import Comparison
from hedgerow.drawing import price_by_records
from hedgerow.evidence.audit import Audit
from hedgerow.evidence.more_draws import Outlook
from hedgerow.synthesizer import Synthesizer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    return found.plot()


def outlook(found: Outlook) -> "Figure":
    """The price as draws were added, and what its tail foretells beyond them."""
    return found.plot()


def contraction(columns: Mapping[str, Sequence[float]]) -> "Figure":
    """Each bound against the number of records, from `evidence.more_records.contraction`."""
    return price_by_records(columns)


def _comparison(source: Source) -> Comparison:
    if isinstance(source, Synthesizer):
        source = {source.settings.standard.label: source}
    return source if isinstance(source, Comparison) else Comparison(source)
