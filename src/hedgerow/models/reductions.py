"""What prices ask of a model over all its draws, made from `log_lik` and `log_mass` in blocks of records.

A matrix of draws × records is never held. A model that knows a faster way (a fused kernel, blocks of draws)
fulfils `Reducing`; the others need nothing but their four functions.
"""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np

from hedgerow.arrays import LogMass, PerRecord
from hedgerow.models.base import Model, Parameters
from hedgerow.models.scored import Interval, Sensitive
from hedgerow.numerics.leaves import leaves_of
from hedgerow.numerics.scoring import Extremes
from hedgerow.tables.design import Design

_COMPILED = 64  # draws in a block, at most: as many as compiled programs score at once
_BLOCK_CELLS = 1 << 21  # 16 MiB of float64 at a time, whatever the number of draws


@runtime_checkable
class Reducing(Protocol):
    """A model with reductions of its own, which agree with its `log_lik` and `log_mass`: they make prices."""

    def extremes(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> Extremes:
        """Smallest and largest d over draws for each record."""

    def absolute(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> PerRecord:
        """Largest |d| over draws for each record, perhaps without both extremes."""

    def mean_mass(self, design: Design, parameters: Parameters, interval: Interval) -> PerRecord:
        """γ averaged over draws."""


@runtime_checkable
class Bounded(Protocol):
    """A model that knows without a scan how large its log densities may be."""

    def density_bound(self, design: Design, parameters: Parameters) -> PerRecord:
        """At least the largest log density of each record over draws."""


@runtime_checkable
class Estimating(Protocol):
    """A model whose `log_mass` may be an estimate, and which bounds it."""

    def log_mass_ends(
        self, design: Design, parameters: Parameters, interval: Interval, records: slice
    ) -> tuple[LogMass, LogMass]:
        """A lower and an upper bound of log γ."""


def extremes(
    model: Model, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
) -> Extremes:
    """Smallest and largest d over draws for each record."""
    if isinstance(model, Reducing):
        return model.extremes(design, parameters, sensitive, interval)
    return blocked_extremes(model, design, parameters, sensitive, interval)


def absolute(
    model: Model, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
) -> PerRecord:
    """Largest |d| over draws for each record."""
    if isinstance(model, Reducing):
        return model.absolute(design, parameters, sensitive, interval)
    return blocked_extremes(model, design, parameters, sensitive, interval).absolute


def mean_mass(model: Model, design: Design, parameters: Parameters, interval: Interval) -> PerRecord:
    """γ averaged over draws; of an estimate its upper bound, so that λ is not too large."""
    if isinstance(model, Reducing):
        return model.mean_mass(design, parameters, interval)
    mean = np.empty(design.records)
    for records in blocks(design.records, count_draws(parameters)):
        mean[records] = np.exp(mass_ends(model, design, parameters, interval, records)[-1]).mean(axis=0)
    return mean


def mass_ends(
    model: Model, design: Design, parameters: Parameters, interval: Interval, records: slice
) -> tuple[LogMass, ...]:
    """log γ; of a model that estimates it, a lower and an upper bound."""
    if isinstance(model, Estimating):
        return model.log_mass_ends(design, parameters, interval, records)
    return (model.log_mass(design, parameters, interval, records),)


def blocked_extremes(
    model: Model, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
) -> Extremes:
    """`extremes` for any model and any form d: where a model's own way does not apply, too."""
    low, high = np.empty(design.records), np.empty(design.records)
    for records in blocks(design.records, count_draws(parameters)):
        log_lik = model.log_lik(design, parameters, records)
        ends: tuple[LogMass, ...] = (log_lik,)  # stands in: a form without mass does not read it
        if sensitive.uses_mass:
            ends = mass_ends(model, design, parameters, interval, records)
        parts = [sensitive(records, log_lik, log_mass) for log_mass in ends]  # the price takes the worse end
        low[records] = np.min([part.min(axis=0) for part in parts], axis=0)
        high[records] = np.max([part.max(axis=0) for part in parts], axis=0)
    return Extremes(low, high)


def drawn_extremes(
    model: Model,
    design: Design,
    parameters: Parameters,
    sensitive: Sensitive,
    interval: Interval,
    records: slice = slice(None),
) -> Extremes:
    """`extremes` by blocks of draws: for models that score the whole table even for a few of its records.

    Of some `records` where the model can score them alone.
    """
    count = len(range(*records.indices(design.records)))
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    for part, _ in draw_blocks(parameters, count):
        log_lik = model.log_lik(design, part, records)
        ends: tuple[LogMass, ...] = (log_lik,)  # stands in, as above
        if sensitive.uses_mass:
            ends = mass_ends(model, design, part, interval, records)
        for log_mass in ends:
            scored = sensitive(records, log_lik, log_mass)
            low, high = np.minimum(low, scored.min(axis=0)), np.maximum(high, scored.max(axis=0))
    return Extremes(low, high)


def draw_blocks(parameters: Parameters, records: int) -> Iterator[tuple[Parameters, int]]:
    """Some draws at a time, and how many: the last block repeats the last draw, so that all have one shape.

    A model that compiles its scores for each shape then does so once.
    """
    draws = count_draws(parameters)
    step = min(_COMPILED, block_rows(records, draws))
    for start in range(0, draws, step):
        rows = np.minimum(np.arange(start, start + step), draws - 1)
        yield {name: value[rows] for name, value in parameters.items()}, min(step, draws - start)


def blocks(records: int, draws: int) -> Iterator[slice]:
    """Slices of records such that a block of all draws stays small; each within one leaf."""
    step = max(1, _BLOCK_CELLS // max(1, draws))
    for leaf in leaves_of(records):
        for start in range(leaf.start, leaf.stop, step):
            yield slice(start, min(start + step, leaf.stop))


def block_rows(records: int, draws: int) -> int:
    """Draws such that a block of all records stays small."""
    return max(1, min(draws, _BLOCK_CELLS // max(1, records)))


def count_draws(parameters: Parameters) -> int:
    """Number of draws that the parameters hold."""
    return len(next(iter(parameters.values())))
