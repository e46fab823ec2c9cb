"""The uniform numbers that predictions are made from: independent, or stratified for smoother copies.

Both are post-processing of the released draw. Stratified numbers fill the unit interval evenly within groups
of records whose fitted values are neighbours, a public function of the draw and the predictors. Each number
by itself is still uniform; together they scatter less than independent ones, which rules that combine copies
and standard errors computed from one copy do not expect (docs/bias.md).
"""

from math import isqrt
from typing import Literal, get_args

import numpy as np

from hedgerow.arrays import PerRecord
from hedgerow.errors import SettingError
from hedgerow.models.base import Inverting, Model, Parameters
from hedgerow.randomness import Key
from hedgerow.tables.design import Design

Sampling = Literal["independent", "stratified"]
SAMPLINGS: tuple[Sampling, ...] = get_args(Sampling)

_BELOW_ONE = 1 - 2.0**-53


def uniforms(
    sampling: Sampling, model: Model, design: Design, parameters: Parameters, *, key: Key
) -> PerRecord:
    """One number in (0, 1) for each record."""
    fresh = key.stream().uniform(design.records)
    if sampling == "independent":
        return fresh
    if isinstance(model, Inverting) and not model.inverts(design, parameters):
        raise SettingError(
            "sampling='stratified': the model's response distribution has neither cdf nor icdf and can only "
            "be sampled, so that stratified numbers would change nothing. Use sampling='independent'."
        )
    fitted = model.predict(design, parameters, np.full(design.records, 0.5))
    ties, order = key.child("strata").stream().uniform((2, design.records))
    return stratified(fitted, fresh, ties=ties, order=order)


def stratified(fitted: PerRecord, fresh: PerRecord, *, ties: PerRecord, order: PerRecord) -> PerRecord:
    """Uniforms with one in every stratum of each group of neighbouring fitted values.

    `fresh`, `ties` and `order` are independent uniforms: the place within a stratum, who of equals stands
    first, and who of a group gets which stratum. One of them for two of these would tie the number to the
    group, and it would not be uniform.
    """
    records = len(fitted)
    found = np.empty(records)
    neighbours = np.lexsort((ties, fitted))  # so that the order of the rows plays no part
    # About √n groups of √n: enough strata in each, and fitted values that are still close.
    for group in np.array_split(neighbours, isqrt(records)):
        stratum = np.argsort(np.argsort(order[group]))
        found[group] = (stratum + fresh[group]) / len(group)
    return np.minimum(found, _BELOW_ONE)  # rounding must not reach 1
