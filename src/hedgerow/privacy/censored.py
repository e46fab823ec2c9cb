"""The authors' censored likelihood for models without a closed form (docs/maths.md, "Censored likelihood").

Each record's log density is cut off at both ends of a window that depends on its own outcome and on public
things: the program, its prior, the predictors. Whatever the parameters, the record then moves the posterior
by no more than the window's width times its weight, and min(1, ε/width) makes that at most ε. An exact draw
would be ε-differentially private; a Markov chain draws only approximately, and nothing says how closely.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from hedgerow.arrays import LogLik, PerRecord
from hedgerow.errors import SettingError, format_value, is_finite
from hedgerow.models.base import Model, Parameters, Sample
from hedgerow.models.families.family import Family
from hedgerow.models.programs.sampled import Sampled
from hedgerow.models.reductions import blocked_extremes, blocks
from hedgerow.models.scored import Interval, Linear, Risk, Sensitive
from hedgerow.models.wrapped import Restricted
from hedgerow.numerics.scoring import Extremes
from hedgerow.privacy.bounds import CENSORED, Bound
from hedgerow.privacy.strict import OUTWARD, Bounded
from hedgerow.randomness import Key
from hedgerow.tables.design import Design

_REFERENCE = 400  # draws from the prior that windows are placed by


@dataclass(frozen=True)
class Censored(Bounded):
    """Differential privacy up to sampler error, for models sampled by NUTS.

    Every record's log density is censored to a window.

    A record's window reaches from the best log density that draws from the program's prior give it down to
    the one that `keep` of them reach. So the prior says where information is worth its price, as the box does
    for `Strict`: give it from public knowledge, and no wider than you must. `reason` says why it may be known
    without the data; it is printed in the guarantee.

    Formal guarantees
    -----------------
    An exact draw from the censored posterior would be ε-differentially private for one outcome withheld and
    2ε for one outcome replaced by any value, where ε is the target per copy. The draws are those of a Markov
    chain, so that for the copies this holds up to the sampler's error, which is not known.
    """

    keep: float = 0.9
    reason: str = ""
    label: ClassVar[str] = "Censored"
    bound: ClassVar[Bound] = CENSORED

    def __post_init__(self) -> None:
        if not is_finite(self.keep) or not 0 < self.keep <= 1:
            raise SettingError(
                f"Censored: keep must lie in (0, 1], got {format_value(self.keep)}; 0.9 is usual."
            )

    def assumption(self) -> str:
        return f"the model with its prior, chosen without the outcome; reason: {self.reason or 'none given'}"

    def restrict(self, model: Model, *, default_prior: bool) -> "Clipped":
        """The program with its likelihood censored."""
        if not isinstance(model, Sampled):
            raise SettingError(
                f"Censored is for families without a closed form and programs, not {model.name}. The normal "
                "and lognormal models have Strict(limits=…), which holds without a Markov chain."
            )
        if isinstance(model, Family) and model.prior is None:
            raise SettingError(
                f"Censored places its windows by the prior, and the default prior of {model.name} is so wide "
                "that nothing of the data would be left. Give a Prior from public knowledge."
            )
        return Clipped(model, self.keep)


@dataclass(frozen=True)
class Clipped(Restricted):
    """A program whose log density is censored to a window for each record, sampled by NUTS."""

    base: Sampled
    keep: float = 0.9
    # Computed once per design, and forgotten with it: the ends follow the outcome.
    _windows: WeakKeyDictionary[Design, tuple[PerRecord, PerRecord]] = field(
        init=False, default_factory=WeakKeyDictionary, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.base.name}, censored")

    def window(self, design: Design) -> tuple[PerRecord, PerRecord]:
        """Lower and upper end for each record's log density: functions of its outcome and public things.

        The draws come from the prior under a fixed, public key. A record to which they give no finite density
        gets a window of no width: it says nothing.
        """
        if design not in self._windows:
            key = Key.from_seed(0).child("reference")
            reference = self.base.from_prior(design, draws=_REFERENCE, key=key)
            low, high = np.empty((2, design.records))
            for records in blocks(design.records, _REFERENCE):
                plain = [
                    block[:, records] for block in self.base.log_lik_blocks(design, reference, finite=False)
                ]
                low[records], high[records] = _ends(np.concatenate(plain), self.keep)
            self._windows[design] = low, high
        return self._windows[design]

    def public_risk(self, design: Design) -> Risk:
        low, high = self.window(design)
        size = np.abs(low) + np.abs(high) + 1.0
        return Risk(low - OUTWARD * size, high)

    def sample(self, design: Design, power: PerRecord, *, draws: int, key: Key) -> Sample:
        return self.base.sample(design, power, draws=draws, key=key, window=self.window(design))

    def log_lik(self, design: Design, parameters: Parameters, records: slice) -> LogLik:
        """The censored log density: what enters the posterior, before its power."""
        return np.concatenate([block[:, records] for block in self._censored(design, parameters)])

    def extremes(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> Extremes:
        if not isinstance(sensitive, Linear) or sensitive.uses_mass:
            return blocked_extremes(self, design, parameters, sensitive, interval)
        parts = (sensitive(slice(None), block, block) for block in self._censored(design, parameters))
        return reduce(Extremes.merge, (Extremes(part.min(axis=0), part.max(axis=0)) for part in parts))

    def absolute(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> PerRecord:
        return self.extremes(design, parameters, sensitive, interval).absolute

    def _censored(self, design: Design, parameters: Parameters) -> Iterator[LogLik]:
        low, high = self.window(design)
        for block in self.base.log_lik_blocks(design, parameters, finite=False):
            yield np.where(np.isnan(block), low, np.clip(block, low, high))


def _ends(plain: LogLik, keep: float) -> tuple[PerRecord, PerRecord]:
    """The window of each record: from the density that a share `keep` of the draws reach to the best one."""
    usable = np.where(np.isfinite(plain), plain, -np.inf)
    high = usable.max(axis=0)
    worst = np.where(np.isneginf(usable), np.inf, usable).min(axis=0)
    low = np.maximum(np.quantile(usable, 1 - keep, axis=0, method="lower"), worst)
    none = np.isneginf(high)
    return np.where(none, 0.0, low), np.where(none, 0.0, high)
