"""How the price would move with more draws: a tail fitted to the maxima at hand. Confidential."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.arrays import PerDraw
from hedgerow.drawing import price_by_draws
from hedgerow.errors import SettingError, format_value
from hedgerow.mechanism.price import Pricing, largest_by_draw
from hedgerow.privacy.bounds import EXACT, LIPSCHITZ

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TAIL = 0.2  # the share of per-draw maxima that the tail is fitted to
_SETTLED = 0.05  # a price that grows by less when draws are ten times as many has settled


@dataclass(frozen=True, repr=False)
class Outlook:
    """Per-draw maxima and a generalised Pareto tail fitted to the largest of them; confidential."""

    maxima: PerDraw  # max_i |d_i(θ_s)|, or of |d_i − c_i|
    factor: float  # what a maximum is multiplied by to become a price
    shape: float  # of the tail: 0 or below has light tails, above 0 the price keeps growing
    scale: float
    threshold: float

    def price_at(self, draws: int) -> float:
        """The price expected with this many draws, from the tail beyond those at hand."""
        exceed = max(_TAIL * draws, 1.0)
        reach = (
            np.log(exceed) if abs(self.shape) < 1e-6 else np.expm1(self.shape * np.log(exceed)) / self.shape
        )
        return float(self.factor * (self.threshold + self.scale * reach))

    @property
    def settled(self) -> bool:
        """Whether ten times the draws would raise the price by less than a twentieth."""
        return self.price_at(10 * len(self.maxima)) <= (1 + _SETTLED) * self.price_at(len(self.maxima))

    def advice(self) -> str:
        """What to do about it, without numbers."""
        if self.settled:
            return "The price has settled: more draws would hardly raise it."
        if self.shape > 0.3:
            return (
                "The price has not settled and its tail is heavy: some record decides too much of the fit. "
                "Look at the riskiest records, merge rare categories, or cap the weights."
            )
        return "The price has not settled: use more draws before you calibrate to it."

    def columns(self, multiples: Sequence[int] = (1, 2, 5, 10, 100)) -> dict[str, list[float]]:
        """Tidy columns draws and price."""
        counts = [multiple * len(self.maxima) for multiple in multiples]
        return {"draws": [float(n) for n in counts], "price": [self.price_at(n) for n in counts]}

    def plot(self) -> "Figure":
        """The price against the number of draws, seen and foretold; confidential."""
        return price_by_draws(self.maxima, self.factor, self.price_at, settled=self.settled)

    def __repr__(self) -> str:
        return f"Outlook({len(self.maxima)} draws, confidential)"


def outlook(pricing: Pricing, *, bound: str = "lipschitz") -> Outlook:
    """Fit the tail of the per-draw maxima behind a price."""
    from scipy.stats import genpareto  # slow to import

    records = pricing.fit.design.records
    if bound == LIPSCHITZ.name:
        centre, factor, largest = np.zeros(records), 2.0, pricing.sensitivity
    elif bound == EXACT.name and pricing.constant is not None:
        centre, factor, largest = pricing.constant, 1.0, EXACT.by_record(pricing)
    else:
        raise SettingError(
            f"bound must be 'lipschitz', or 'exact' where it has a closed form, got {format_value(bound)}."
        )
    maxima = largest_by_draw(pricing.fit, pricing.part, pricing.interval, centre, largest)
    threshold = float(np.quantile(maxima, 1 - _TAIL))
    beyond = maxima[maxima > threshold] - threshold
    if len(beyond) < 10 or beyond.max() <= 0:
        return Outlook(maxima, factor, 0.0, 0.0, threshold)
    shape, _, scale = genpareto.fit(beyond, floc=0)
    return Outlook(maxima, factor, float(shape), float(scale), threshold)
