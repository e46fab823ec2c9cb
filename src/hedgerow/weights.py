"""`hr.weights`: the rules that turn risk into weights, and advice on which of them suits a job.

    >>> import hedgerow as hr
    >>> hr.weights.as_weights(hr.LinearWeights(scale=0.5))
    LinearWeights(scale=0.5, shift=0.0, risk='lipschitz')

`advise` is made of synthesizers, which are made of weights: hence this module above both.
"""

from hedgerow.advice.advise import Advice, advise
from hedgerow.privacy.weights import (
    CallableWeights,
    CapWeights,
    Evidence,
    FixedWeights,
    IdentificationWeights,
    InverseWeights,
    LinearWeights,
    LogisticWeights,
    PlannedWeights,
    Reweighted,
    ScalarWeights,
    SoftmaxWeights,
    Weights,
    as_weights,
)

__all__ = [
    "Advice", "CallableWeights", "CapWeights", "Evidence", "FixedWeights", "IdentificationWeights",
    "InverseWeights", "LinearWeights", "LogisticWeights", "PlannedWeights", "Reweighted", "ScalarWeights",
    "SoftmaxWeights", "Weights", "advise", "as_weights",
]  # fmt: skip
