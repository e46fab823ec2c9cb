"""One weight for all, planned before the outcome is looked at (docs/maths.md, "A planned weight").

With equal weights α the Rényi price of record i depends on its leverage, which is public, and on its share of
the residual sum of squares. Where the model holds, that share has a known law, whatever the coefficients and
σ are: r_i²/((1 − α h_i) RSS) ~ Beta(½, (n − p − 1)/2), up to the prior. So the chance that some record is
priced above the target is known beforehand, to within Bonferroni's inequality, and the largest α that keeps
it small is a function of public things alone.

Formal guarantee: the outcome is not read. The weight without a record's outcome is the weight with it, so
that what is released without the record is its neighbour under the Rényi bound, with nothing held fixed.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import betainc

from hedgerow.arrays import Array
from hedgerow.errors import CalibrationError, SettingError
from hedgerow.mechanism.planned.leverages import Leverages, LeveragesHere
from hedgerow.mechanism.planned.links import plan_links
from hedgerow.models.chain import Chain
from hedgerow.models.exact import Regression
from hedgerow.numerics.leaves import interpolate
from hedgerow.numerics.renyi import Neighbours
from hedgerow.numerics.rounding import format_count
from hedgerow.numerics.triangular import leverages
from hedgerow.privacy.settings import Settings
from hedgerow.tables.design import Design
from hedgerow.tables.leaves import Held
from hedgerow.tables.table import Table
from hedgerow.threads import Here

_STEP = 1.5  # the search walks down by this factor, and then halves what is left
_HALVINGS = 7  # 0.3 % of the weight
_PLACES = 17  # leverages that stand for all, evenly by rank and by size
_SHARES = 26  # halvings of the share that is allowed
_SURE = 1e-9  # a share of the sum of squares this close to all of it


def planned_weight(settings: Settings, design: Design, refused: float, table: Table | None = None) -> float:
    """The largest weight at which at most so many of the model's tables are priced above the target.

    With several columns later ones may read earlier ones, which public columns of the table help to simulate.
    """
    width = max(len(link.columns) for link in design.links)
    if isinstance(settings.model, Chain) and table is not None:
        plan = plan_links(settings, Held(table, design), Here())
        chance: Callable[[float], float] = partial(plan.chance_of_refusal, refused=refused)
    else:
        chance = partial(chance_of_refusal, settings, design)
    return largest_weight(settings, chance, refused, design.records, width)


def largest_weight(
    settings: Settings, chance: Callable[[float], float], refused: float, records: int, width: int
) -> float:
    """The largest weight at which the chance of a refusal is at most as large as allowed."""
    least = width / records  # with less, the prior decides
    above, weight = 1.0, 1.0
    while chance(weight) > refused:
        above, weight = weight, weight / _STEP
        if weight < least:
            raise CalibrationError(
                f"PlannedWeights: with {records} records and these predictors no useful weight meets "
                f"ε = {settings.epsilon:g} at δ = {settings.delta:g} for "
                f"{format_count(settings.copies, 'copy')} in all but {refused:.0%} of tables (found without "
                "the outcome). Raise ε or δ, make fewer copies, shorten the formula, or allow for more "
                "refusals."
            )
    for _ in range(_HALVINGS if weight < above else 0):
        middle = (weight * above) ** 0.5
        if chance(middle) <= refused:
            weight = middle
        else:
            above = middle
    return weight


def chance_of_refusal(settings: Settings, design: Design, weight: float) -> float:
    """At most this share of the model's tables has a record that is priced above the target.

    The price rises with a record's share of the sum of squares: for some leverages the share is found that
    the target allows, and between them its tail probability is interpolated.
    """
    records = design.records
    model, _ = _require_closed(settings)
    blind = model.posterior(design.replace_values(np.ones(records)), np.full(records, weight))
    every = LeveragesHere(leverages(design.matrix, blind.factor))
    return chance_by_leverage(settings, every, records, len(design.columns), weight)


def _require_closed(settings: Settings) -> tuple[Regression, float]:
    """The model and the target, which must have a closed form and be there."""
    model, target = settings.model, settings.target
    if not isinstance(model, Regression) or target is None:
        raise SettingError(
            "PlannedWeights need a target and a model with a closed form (normal, lognormal), got the "
            f"{model.name} model and epsilon={settings.epsilon!r}. Give other weights and their bound, or "
            "use Censored()."
        )
    return model, target


def chance_by_leverage(
    settings: Settings, every: Leverages, records: int, width: int, weight: float
) -> float:
    """`chance_of_refusal` from the leverages of the predictors at that weight."""
    model, target = _require_closed(settings)
    left = max(records - width, 2)
    by_rank = _quantiles(every, records)
    places = np.unique(np.concatenate([by_rank, np.linspace(by_rank[0], by_rank[-1], _PLACES)]))
    kept = np.maximum(1 - weight * places, np.finfo(np.float64).tiny)
    shape = np.full(len(places), model.prior.shape + weight * (records - 1) / 2)

    def price(share: Array) -> Array:
        # In units in which RSS = n − p; what the prior knows of σ is left out, which makes it no cheaper.
        squared = share * left * kept
        rate = weight * left / 2 * (1 - share)
        pairs = Neighbours(np.full(len(places), weight), places / kept, squared / kept**2, shape, rate)
        return pairs.by_record(delta=settings.delta, copies=settings.copies)

    allowed, beyond = np.zeros(len(places)), np.full(len(places), 1 - _SURE)
    never = ~(price(allowed) <= target)
    for _ in range(_SHARES):
        middle = (allowed + beyond) / 2
        met = price(middle) <= target
        allowed, beyond = np.where(met, middle, allowed), np.where(met, beyond, middle)
    tail = np.where(never, 1.0, 1 - betainc(0.5, (left - 1) / 2, allowed))
    return every.add_up(places, tail)


def _quantiles(every: Leverages, records: int) -> Array:
    """Evenly by rank, from the least to the largest, as `np.quantile` has them."""
    at = np.linspace(0, 1, _PLACES) * (records - 1)
    below = np.floor(at)
    low, high = every.ordered([*map(int, below), *map(int, np.ceil(at))]).reshape(2, -1)
    return interpolate(low, high, at - below)
