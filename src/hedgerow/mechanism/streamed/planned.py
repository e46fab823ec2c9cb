"""A planned weight over leaves: `mechanism.planned` with leverages that stay where the leaves are."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from hedgerow.mechanism.planned import chance_by_leverage, largest_weight
from hedgerow.mechanism.planned.leverages import KeptLeverages, keep_leverages
from hedgerow.mechanism.planned.links import plan_links
from hedgerow.mechanism.streamed.merged import LinkSum, merge_leaves, regressions, sum_link
from hedgerow.models.base import Model
from hedgerow.models.chain import Chain
from hedgerow.models.conjugate import Posterior
from hedgerow.numerics.triangular import leverages
from hedgerow.privacy.settings import Settings
from hedgerow.tables.leaves import Leaves, go_over
from hedgerow.threads import Workers


@dataclass(frozen=True)
class SumBlind:
    """Sum a leaf's predictors up at one weight for all: no outcome is read."""

    model: Model
    weight: float

    def __call__(self, leaves: Leaves, leaf: int) -> list[LinkSum]:
        design = leaves.design(leaf)
        blind = design.replace_values(np.ones(design.records))
        (model,) = regressions(self.model)
        return [sum_link(model, blind, np.full(design.records, self.weight), first=leaf == 0)]


@dataclass(frozen=True)
class CountColumns:
    """How many columns the widest design has."""

    def __call__(self, leaves: Leaves, leaf: int) -> int:
        return max(len(link.columns) for link in leaves.design(leaf).links)


@dataclass(frozen=True)
class KeepLeverages:
    """Keep a leaf's leverages, as they come and in order; says the least and the largest."""

    posterior: Posterior

    def __call__(self, leaves: Leaves, leaf: int) -> tuple[float, float]:
        every = leverages(leaves.design(leaf).matrix, self.posterior.factor)
        return keep_leverages(leaves, leaf, every)


def plan_streamed(settings: Settings, leaves: Leaves, workers: Workers, refused: float) -> float:
    """The largest weight at which at most so many of the model's tables are priced above the target."""
    (width,) = go_over(workers, CountColumns(), leaves, [0], stage="plan")
    if isinstance(settings.model, Chain):
        plan = plan_links(settings, leaves, workers)
        chance: Callable[[float], float] = partial(plan.chance_of_refusal, refused=refused)
    else:
        chance = partial(_chance, settings, leaves, workers, width)
    return largest_weight(settings, chance, refused, leaves.records, width)


def _chance(settings: Settings, leaves: Leaves, workers: Workers, width: int, weight: float) -> float:
    models = regressions(settings.model)
    parts = go_over(workers, SumBlind(settings.model, weight), leaves, stage="plan")
    ((model, said),) = zip(models, merge_leaves(models, parts), strict=True)
    posterior = model.posterior_of(said.said, said.power)
    ends = list(go_over(workers, KeepLeverages(posterior), leaves, stage="plan"))
    every = KeptLeverages(leaves, workers, ends)
    return chance_by_leverage(settings, every, leaves.records, width, weight)
