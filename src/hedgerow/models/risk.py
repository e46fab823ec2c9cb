"""By-record risk, from the unweighted fit (docs/maths.md, "Risks and weights")."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from hedgerow.arrays import PerRecord
from hedgerow.errors import SettingError
from hedgerow.numerics.scoring import Extremes

RiskKind = Literal["lipschitz", "oscillation"]


@dataclass(frozen=True, repr=False)
class Risk:
    """How loudly each record speaks: the extremes of its log likelihood over the unweighted draws."""

    low: PerRecord
    high: PerRecord

    @property
    def lipschitz(self) -> PerRecord:
        """max_s |f[s,i]|: depends on the units of the outcome."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def oscillation(self) -> PerRecord:
        """max_s f[s,i] − min_s f[s,i]: does not."""
        return self.high - self.low

    def of(self, kind: RiskKind) -> PerRecord:
        """The risk of that kind."""
        return self.lipschitz if kind == "lipschitz" else self.oscillation

    @property
    def share_above_one(self) -> float:
        """Share of records whose density exceeds 1 at some draw, for which |f| makes the mode look risky."""
        return float((self.high > 0).mean())

    def __repr__(self) -> str:
        return f"Risk({len(self.low)} records, confidential)"


def risk_from(extremes: Extremes) -> Risk:
    """The risk that these extremes of f amount to."""
    return Risk(extremes.low, extremes.high)


def check_kind(kind: str) -> None:
    """Refuse anything but the two kinds of risk."""
    if kind not in ("lipschitz", "oscillation"):
        raise SettingError(f"risk must be 'lipschitz' or 'oscillation', got {kind!r}.")
