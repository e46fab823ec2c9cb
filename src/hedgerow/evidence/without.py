"""The procedure with and without one outcome: what an audit and an attack compare. Confidential.

Withholding an outcome runs the whole procedure again, calibration to the target included. Where that takes
random numbers of its own (risks read off draws, a scale searched for on draws), what is released is a draw
from a mixture over them: a few sets of them stand for all, the same ones on both sides. Where it takes none,
as with equal weights and a price without draws, one is enough, and nothing is left to estimate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.arrays import Array, Confidential, PerDraw, PerRecord, RecordMask
from hedgerow.errors import CalibrationError, SettingError
from hedgerow.mechanism.calibrate import settle
from hedgerow.mechanism.steps import Outcome, Start, begin, power_of
from hedgerow.models.base import Model, Parameters
from hedgerow.models.chain import Chain, part_of, zero_missing
from hedgerow.models.conjugate import Posterior
from hedgerow.models.exact import Regression
from hedgerow.numerics.renyi import ORDERS, least_epsilon
from hedgerow.numerics.scoring import Draws
from hedgerow.privacy.bounds import LIPSCHITZ
from hedgerow.privacy.claims.neighbours import WITHHELD
from hedgerow.privacy.settings import Settings
from hedgerow.randomness import Key
from hedgerow.tables.design import Design

KEYS = 4  # sets of random numbers that stand for the calibration's own, where it has any


@dataclass(frozen=True, repr=False)
class JointDraws(Confidential):
    """Draws of a chain: paired draws of its links."""

    links: tuple[Draws, ...]


@dataclass(frozen=True, repr=False)
class JointPosterior(Confidential):
    """The posteriors of a chain's links, which are independent: log densities and divergences add."""

    links: tuple[Posterior, ...]

    def draw(self, draws: int, key: Key) -> JointDraws:
        """Independent draws."""
        return JointDraws(tuple(link.draw(draws, key.child(place)) for place, link in enumerate(self.links)))

    def log_density(self, draws: JointDraws) -> PerDraw:
        """log ξ at each draw, normalised."""
        pairs = zip(self.links, draws.links, strict=True)
        return np.asarray(np.sum([link.log_density(own) for link, own in pairs], axis=0))

    def divergences(self, other: "JointPosterior", orders: Array) -> Array:
        """Rényi's D_o of this posterior from another, at each order."""
        pairs = zip(self.links, other.links, strict=True)
        return np.asarray(np.sum([one.divergences(two, orders) for one, two in pairs], axis=0))


def is_closed(model: Model) -> bool:
    """Whether all posteriors of the model have a closed form."""
    return all(
        isinstance(one, Regression) for one in (model.models if isinstance(model, Chain) else (model,))
    )


def closed_posterior(model: Model, design: Design, power: PerRecord) -> Posterior | JointPosterior:
    """The posterior with these powers, of a model with a closed form."""
    if isinstance(model, Chain):
        links = [
            one.posterior(link, zero_missing(link, power))
            for one, link, _ in model.links(design)
            if isinstance(one, Regression)
        ]
        return JointPosterior(tuple(links))
    if not isinstance(model, Regression):
        raise SettingError(f"The {model.name} model has no posterior in closed form.")
    return model.posterior(design, power)


def closed_draws(model: Model, parameters: Parameters) -> Draws | JointDraws:
    """The draws that these parameters are, of a model with a closed form."""
    if isinstance(model, Chain):
        parts = [part_of(parameters, place) for place in range(len(model.models))]
        return JointDraws(tuple(Draws(own["beta"], own["sigma"]) for own in parts))
    return Draws(parameters["beta"], parameters["sigma"])


@dataclass(frozen=True, repr=False)
class Mixture(Confidential):
    """Posteriors of one model in equal shares, one for each set of random numbers."""

    parts: tuple[Any, ...]  # all of them Posterior, or all JointPosterior

    @classmethod
    def of(cls, model: Model, design: Design, powers: Sequence[PerRecord]) -> "Mixture":
        """The posteriors with these powers."""
        return cls(tuple(closed_posterior(model, design, power) for power in powers))

    def draw(self, draws: int, key: Key) -> Any:
        """Independent draws, as many of each part as of any other, or one less."""
        shares = (np.arange(draws + len(self.parts) - 1, draws - 1, -1) // len(self.parts)).tolist()
        keys = [key, *(key.child(number) for number in range(1, len(self.parts)))]
        each = zip(self.parts, shares, keys, strict=True)
        found = [part.draw(share, own) for part, share, own in each]
        if isinstance(found[0], JointDraws):
            return JointDraws(tuple(map(_join_draws, zip(*(one.links for one in found), strict=True))))
        return _join_draws(found)

    def log_density(self, draws: Draws | JointDraws) -> PerDraw:
        """log ξ at each draw, normalised."""
        each = [part.log_density(draws) for part in self.parts]
        return np.asarray(np.logaddexp.reduce(each, axis=0) - np.log(len(each)))

    def epsilon(self, other: "Mixture", *, delta: float, copies: int) -> float:
        """ε at δ of so many copies between this and the other, the larger of both directions.

        Of two mixtures part by part: exp((o − 1) D_o) is jointly convex, so that its mean over pairs of parts
        bounds that of the mixtures, whichever way the parts are paired.
        """
        return max(
            least_epsilon(copies * one._divergences(two), ORDERS, delta)
            for one, two in ((self, other), (other, self))
        )

    def _divergences(self, other: "Mixture") -> Array:
        count = max(len(self.parts), len(other.parts))
        pairs = [(self.parts[k % len(self.parts)], other.parts[k % len(other.parts)]) for k in range(count)]
        each = np.array([one.divergences(two, ORDERS) for one, two in pairs])
        return np.asarray((np.logaddexp.reduce((ORDERS - 1) * each, axis=0) - np.log(count)) / (ORDERS - 1))


def _join_draws(parts: Sequence[Draws]) -> Draws:
    return Draws(np.concatenate([one.beta for one in parts]), np.concatenate([one.sigma for one in parts]))


def powers_without(settings: Settings, start: Start, record: int, *, key: Key) -> PerRecord:
    """The powers that the whole procedure gives when one outcome is withheld, on the same random numbers."""
    return _powers(settings, start, np.arange(start.design.records) != record, key)


def keys_and_powers(
    settings: Settings, start: Start, power: PerRecord, *, key: Key, keys: int
) -> tuple[list[Key], list[PerRecord]]:
    """The release's own key and powers, and up to `keys` − 1 others with theirs on the same table.

    The first alone where the second gives the same powers: nothing random decides them. A key with which the
    table leads to no release is left out, since there was one.
    """
    found = [(key, power)]
    for number in range(1, keys):
        fresh = key.child("mixture").child(number)
        try:
            found.append((fresh, _powers(settings, start, None, fresh)))
        except CalibrationError:
            continue
        if len(found) == 2 and np.array_equal(found[1][1], power):
            found.pop()
            break
    return [one for one, _ in found], [powers for _, powers in found]


def _powers(settings: Settings, start: Start, present: RecordMask | None, key: Key) -> PerRecord:
    again = begin(settings.model, start.table, start.design, draws=settings.draws, key=key, present=present)
    return power_of(settings, settle(settings, again, key=key).weighted)


def is_claimed(settings: Settings) -> bool:
    """Whether something is claimed of x_i withheld: there is a target, and it speaks of that."""
    return settings.epsilon is not None and settings.standard.neighbour == WITHHELD


def claimed_epsilon(settings: Settings, outcome: Outcome) -> float:
    """The ε that losses with x_i withheld are held against: the target where it speaks of that.

    Without a target, and under a range standard, whose neighbour is another, the price with x_i withheld. Of
    one copy; under the Rényi bound of all copies together.
    """
    bound = settings.bound if settings.bound.local else LIPSCHITZ
    if settings.epsilon is not None and is_claimed(settings):
        return settings.bound.target(settings.epsilon, settings.copies)
    withheld = outcome.pricing.withheld
    return bound.epsilon(withheld) if bound.over_draws else bound.total(withheld, settings.copies)
