"""Strict by statistics over leaves: from settings and a table that is read leaf by leaf to copies of it.

    streamed = stream_statistics(settings, leaves, key=key, workers=Here())
    streamed.released.rounds, streamed.parameters
    copying = streamed.plan_copies()[0]
    predict_leaf(copying, leaves, 0)  # the first copy's outcomes in the rows of the first leaf

The recipe, the rounds, the posterior and the copies are those of a table in memory, with the same key and to
the last digit: there too they are sums, extremes and draws by leaf, in the order of the leaves.

Formal guarantees
-----------------
What is released has the guarantee of `rounds`: bounds of loadings and widths of public sets are the largest
over all rows, sums are exact whole numbers however leaves are cut, and noise is added once to the sum of all.
No loading that is summed exceeds the bound, even if another machine made it and rounds differently.
A task returns public things, or exact sums over a leaf, which are confidential; no outcome leaves it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.arrays import Confidential, PerRecord, RecordMask
from hedgerow.errors import SettingError
from hedgerow.mechanism.copies import write_copy
from hedgerow.mechanism.noisy.copies import Copying, plan_copies
from hedgerow.mechanism.noisy.leaves.rows import STAGE, Capping, LeafRows, Part, part_of
from hedgerow.mechanism.noisy.posterior import PosteriorDraws, draw_posterior
from hedgerow.mechanism.noisy.recipe import Recipe
from hedgerow.mechanism.noisy.released import Released
from hedgerow.mechanism.noisy.rounds import Reader, ReadingTask, run_rounds
from hedgerow.mechanism.noisy.run import (
    classes_within,
    find_width,
    read_outcomes,
    settle_noise,
    settle_recipe,
)
from hedgerow.models.base import Health, Parameters
from hedgerow.privacy.settings import Settings
from hedgerow.randomness import Key
from hedgerow.tables.leaves import Leaves, go_over
from hedgerow.threads import Workers, one_blas_thread


def check_statistics(settings: Settings) -> None:
    """Refuse settings that need all records at once, before any is read."""
    strict = settings.noisy
    if strict is None:
        raise SettingError(
            f"Leaf by leaf: {settings.standard.label} makes no noisy statistics. Use "
            "Strict(limits=(low, high))."
        )
    for column in settings.columns:
        ruled = column.reads and not any(name in settings.outcomes for name in column.reads)
        if ruled or column.missing == "public":
            what = "gaps that are public" if column.missing == "public" else "rules over public columns"
            raise SettingError(
                f"Leaf by leaf: '{column.outcome}' has {what}, and the rows that these leave out are listed "
                "with all records at hand. Give a table that fits into memory, without --stream, or protect "
                "columns without."
            )


@dataclass(frozen=True, repr=False, eq=False)
class StreamedStatistics(Confidential):
    """Noisy statistics of a table in leaves, and what follows from them: nothing grows with the records."""

    settings: Settings  # with the noise that "auto" became
    key: Key
    columns: tuple[str, ...]  # of X
    released: Released
    clipped: float  # the share of outcomes that were moved to a limit; confidential

    @property
    def epsilon(self) -> float:
        """ε, which all copies cost together."""
        return self.released.recipe.epsilon

    @cached_property
    def drawn(self) -> PosteriorDraws:
        """The posterior given the released statistics."""
        return draw_posterior(self.released, draws=self.settings.draws, key=self.key.child("posterior"))

    @property
    def parameters(self) -> Parameters:
        """The draws of that posterior."""
        return self.drawn.parameters

    @property
    def health(self) -> Health:
        """Whether these draws can be trusted."""
        return self.drawn.health

    def plan_copies(self) -> list[Copying]:
        """How each copy is made, leaf by leaf."""
        return plan_copies(self.settings, self.released, self.parameters, key=self.key.child("release"))


@one_blas_thread()
def stream_statistics(
    settings: Settings, leaves: Leaves, *, key: Key, workers: Workers
) -> StreamedStatistics:
    """Clip, sum and add noise, once: the mechanism over a table that is read leaf by leaf."""
    check_statistics(settings)
    recipe = stream_recipe(settings, leaves, workers)
    settings = settle_noise(settings, recipe)
    reader = read_leaves(settings, leaves, workers, recipe)
    released = run_rounds(recipe, reader, key=key.child("statistics"))
    there, moved = (sum(each) for each in zip(*reader(_Clipped(recipe.low, recipe.high)), strict=True))
    (names,) = go_over(workers, _find_names, leaves, [0], stage=STAGE)
    return StreamedStatistics(settings, key, names, released, moved / there if there else 0.0)


def stream_recipe(settings: Settings, leaves: Leaves, workers: Workers) -> Recipe:
    """What is settled before an outcome is read: from the settings and public columns, in passes."""
    strict, width = settings.noisy, None
    if strict is not None and (strict.relation == "range" or strict.inside):
        widths = list(go_over(workers, _FindWidth(settings), leaves, stage=STAGE))
        width = max(widths) if strict.relation == "range" else None
    return settle_recipe(settings, LeafRows(leaves, workers), width)


def read_leaves(settings: Settings, leaves: Leaves, workers: Workers, recipe: Recipe) -> Reader:
    """A reader of outcomes where the leaves are."""
    capping = recipe.capping
    return lambda task: list(go_over(workers, _Read(task, settings, capping), leaves, stage=STAGE))


@one_blas_thread()
def predict_leaf(copying: Copying, leaves: Leaves, leaf: int) -> PerRecord:
    """One copy's outcomes in the rows of a leaf, from public things and a draw given the statistics."""
    classes = None
    if copying.settings.standard.inside:
        classes = classes_within(copying.settings, leaves.table(leaf))
    return copying.values(leaves.design(leaf).blank(), leaves.rows(leaf), classes)


def write_leaf(copying: Copying, leaves: Leaves, leaf: int) -> Any:
    """The rows of a leaf as a typed table with the synthetic column of one copy; all columns are there."""
    values = predict_leaf(copying, leaves, leaf)
    return write_copy(copying.settings, leaves.table(leaf), leaves.design(leaf), values)


@dataclass(frozen=True, eq=False)
class _Read:
    """A task over public rows and outcomes as one over leaves."""

    task: ReadingTask
    settings: Settings
    capping: Capping

    def __call__(self, leaves: Leaves, leaf: int) -> Any:
        design = leaves.design(leaf)
        outcomes = read_outcomes(self.settings, design, leaves.table(leaf))
        return self.task(part_of(design.matrix, leaves.rows(leaf), self.capping), *outcomes)


@dataclass(frozen=True)
class _FindWidth:
    """The widest public set of a leaf's records; classes that no copy can be drawn inside are refused."""

    settings: Settings

    def __call__(self, leaves: Leaves, leaf: int) -> float:
        return find_width(self.settings, leaves.table(leaf)) or 0.0


@dataclass(frozen=True)
class _Clipped:
    """How many outcomes a leaf has, and how many of them lie at a limit or were moved there; confidential."""

    low: float
    high: float

    def __call__(self, part: Part, response: PerRecord, present: RecordMask) -> tuple[int, int]:
        with np.errstate(invalid="ignore"):
            moved = present & ((response <= self.low) | (response >= self.high))
        return int(np.count_nonzero(present)), int(np.count_nonzero(moved))


def _find_names(leaves: Leaves, leaf: int) -> tuple[str, ...]:
    return leaves.design(leaf).columns
