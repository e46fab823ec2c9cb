"""The posterior without one outcome, by weighing the draws at hand (docs/maths.md, "Audit").

With d the part of the log posterior that goes when x_i is withheld, weights exp(−d) turn draws of the
posterior into draws of the one without x_i, and d̄ = −log mean exp(−d) estimates the constant of the privacy
loss L = d − d̄. It lies between the smallest and the largest d seen, so that |L| never exceeds the oscillation
over the same draws: an estimate of this kind can find a loss, and can never certify that there is none.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from hedgerow.arrays import Confidential, LogLik, Mask, PerRecord
from hedgerow.mechanism.fit import Fit
from hedgerow.models.reductions import blocks
from hedgerow.numerics.pareto import TRUSTED, tail_shape


@dataclass(frozen=True, repr=False)
class Importance(Confidential):
    """d̄ by record, with what tells how far it can be trusted; confidential."""

    constant: PerRecord  # d̄_i
    pareto_k: PerRecord  # of the weights exp(−d_i): above 0.7 the estimate cannot be trusted
    effective: PerRecord  # effective number of draws after weighing

    @property
    def untrusted(self) -> Mask:
        """Records whose weights have too heavy a tail for their mean to mean anything."""
        return np.asarray(self.pareto_k > TRUSTED)


def importance(part: LogLik) -> Importance:
    """Leave-one-out estimates for a block of records: `part` holds d[s,i]."""
    log_weights = -part
    total = logsumexp(log_weights, axis=0)
    effective = np.exp(2 * total - logsumexp(2 * log_weights, axis=0))
    return Importance(np.log(len(part)) - total, tail_shape(log_weights), effective)


def importance_of(fit: Fit) -> Importance:
    """Leave-one-out estimates for every record of a fit, x_i withheld, in blocks of records."""
    every = blocks(fit.design.records, fit.draws)
    parts = [vars(importance(fit.power[records] * fit.log_lik(records))) for records in every]
    return Importance(**{name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
