"""What a release is charged beside its ε: which bound, which δ, its Rényi curve, its price with x_i withheld.

    >>> curve = write_curve([2.0, 8.0], {"withheld": [0.1, 0.4]})
    >>> one, two = (compose([curve] * times, "withheld", delta=1e-6) for times in (1, 2))
    >>> bool(one < two < 2 * one)
    True

An ε under a relation with ranges says little about an outcome that nobody knows anything of: with wide ranges
it can be made as small as one likes. So every release is charged to the relation "withheld" as well, at what
the fit at hand costs with x_i withheld under the same bound. That is an achieved price, not a target: it is
computed from the data, stays in the ledger and is in no message. A release whose price is that of all rows of
a unit has a relation of its own, and is charged there what one row of it costs, too.

A curve has copies·D_o at each order o, the larger of both directions and the largest of all records. Releases
from independent draws add theirs.

Formal guarantee: `compose` returns an ε that holds at δ for all releases together, for each the table at hand
with its weights held fixed. The best order for the sum of the largest divergences costs at least as much as
the best one for any single record.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow.synthesizer import Synthesizer

WITHHELD = "withheld"  # the relation that every release is charged under


def charge_of(synth: "Synthesizer", relation: str) -> dict[str, Any]:
    """What `Ledger.reserve` is told of a fitted release; confidential.

    A price of None, where nothing is claimed or the price is infinite, is unbounded.
    """
    from hedgerow.numerics.renyi import COARSE_ORDERS

    if synth.settings.noisy is not None:
        return _charge_of_noise(synth, relation)
    fitted, shares = synth._need(), synth._need().guarantee.shares()
    delta = None if shares is None or shares.delta is None else float(shares.delta[1])
    curves = {
        name: found.tolist()
        for name in {WITHHELD: None, relation: None}
        if (found := fitted.divergences(COARSE_ORDERS, withheld=name == WITHHELD)) is not None
    }
    withheld = None if shares is None or relation == WITHHELD else fitted.withheld_total()
    curve = write_curve(COARSE_ORDERS.tolist(), curves) if curves else None
    finite = None if withheld is None or math.isinf(withheld) else float(withheld)
    return {"bound": fitted.settings.bound.name, "delta": delta, "curve": curve, "withheld": finite}


def _charge_of_noise(synth: "Synthesizer", relation: str) -> dict[str, Any]:
    """Noisy statistics are charged once, however many copies follow from them; all of it is public."""
    from hedgerow.numerics.renyi import COARSE_ORDERS

    noised = synth._noised("statistics_")
    settings = noised.settings  # settled: auto noise has become one
    curves = {
        name: noised.divergences(COARSE_ORDERS, withheld=name == WITHHELD).tolist()
        for name in {WITHHELD: None, relation: None}
    }
    return {
        "bound": settings.bound.name,
        "delta": settings.delta if settings.bound.takes_delta else None,
        "curve": write_curve(COARSE_ORDERS.tolist(), curves),
        "withheld": None if relation == WITHHELD else noised.withheld_epsilon(),
    }


def write_curve(orders: Sequence[float], divergences: Mapping[str, Sequence[float]]) -> str:
    """Curves by relation, on one grid of orders; an infinite divergence is written as null."""
    written = {
        name: [None if math.isinf(value) else value for value in values]
        for name, values in divergences.items()
    }
    return json.dumps({"orders": list(orders), **written})


def compose(curves: Sequence[str | None], relation: str, *, delta: float) -> float | None:
    """ε at δ of all releases together, from their curves; None unless all have one for the relation."""
    read = [json.loads(curve or "{}") for curve in curves]
    if not read or any(relation not in each or each["orders"] != read[0]["orders"] for each in read):
        return None
    import numpy as np

    from hedgerow.numerics.renyi import least_epsilon

    sums = np.array([[np.inf if v is None else v for v in each[relation]] for each in read]).sum(axis=0)
    return least_epsilon(sums, np.array(read[0]["orders"]), delta)
