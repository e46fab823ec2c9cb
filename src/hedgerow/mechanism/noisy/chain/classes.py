"""Noisy sums of classes, or of kinds of cells: loadings by class, and logistic regressions from them.

Of two classes a record adds its loadings with the sign + for the second and − for the first, and a blank
nothing: T = Σ ±v_i q_i + noise, whose price is C/b withheld and 2C/b replaced. Of more there is a sum for
each class but the last, Σ v_i q_i over its records, at the same prices: a record is in one class alone.
Kinds of cells are classes of which the last is that there is an amount. It adds nothing here, so that sums of
kinds and rounds of amounts cost one record the larger of the two (docs/maths.md, "Kinds of cells").

The chances of the classes are logistic regressions one after the other: of the first, of the second among
those that are not in the first, and so on. Each is fitted to its own sum as a spike's is (`noisy.spike`);
with public cells for predictors these sums are the cells' counts, weighted. All but `read_classes` and
`read_kinds` is post-processing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
from scipy.special import expit

from hedgerow.arrays import Array, Matrix, PerRecord, RecordMask
from hedgerow.mechanism.noisy.leaves.rows import Part
from hedgerow.mechanism.noisy.prices import noise_for_spike, price_spike, rounded_up
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT, Presence, Recipe, chance_left
from hedgerow.mechanism.noisy.released import Spike
from hedgerow.mechanism.noisy.rounds import Reader, add_whole, draw_noise
from hedgerow.mechanism.noisy.spike import draw_spike, noise_variance, presence_given, spike_line
from hedgerow.randomness import Key

_ROWS = 1_000  # there may be many classes, and a mean bends little where draws are


@dataclass(frozen=True, eq=False)
class ClassSum(Spike):
    """The sum of one class as if it were a spike's."""

    before: tuple[Array, ...] = ()  # logits of the classes before it: who is in one is not in this
    signed: bool = False  # half of a sum with signs

    def remaining(self, matrix: Matrix) -> Array | float:
        return chance_left(self.before, matrix) if self.before else 1.0

    def spread_of_entries(self, chance: PerRecord) -> PerRecord | float:
        return 0.25 if self.signed else chance


@dataclass(frozen=True, eq=False)
class ReleasedClasses:
    """What was read off a column of classes, or off the kinds of its cells. Public once ε is paid."""

    recipe: Recipe
    sums: tuple[Spike, ...]  # of each class but the last
    signed: bool  # of two classes with signs

    @property
    def classes(self) -> int:
        """How many there are."""
        return len(self.sums) + 1


def read_classes(recipe: Recipe, classes: int, reader: Reader, *, key: Key) -> ReleasedClasses:
    """The reader gives places of classes, 0 … classes − 1; what is none of them counts as missing."""
    target = Fraction(recipe.epsilon) / recipe.rows_per_unit / (1 if recipe.relation == "withheld" else 2)
    signed = classes == 2
    sums = sum_classes(range(2 if signed else classes - 1), reader)
    if signed:
        first, second = sums
        sums = [[two - one for one, two in zip(first, second, strict=True)]]
    return ReleasedClasses(recipe, _add_noise(recipe, sums, target, key), signed)


def read_kinds(recipe: Recipe, count: int, reader: Reader, *, key: Key) -> ReleasedClasses:
    """The reader gives places of kinds, 0 … count, the last an amount, whose price is left to its rounds."""
    sums = sum_classes(range(count), reader)
    return ReleasedClasses(recipe, _add_noise(recipe, sums, recipe.spike_budget(), key), False)


def sum_classes(places: Sequence[int], reader: Reader) -> list[list[int]]:
    """ΣV_i over the records of each class, exactly, whatever the leaves. Confidential."""
    parts = reader(partial(_sum_part, tuple(places)))
    return [add_whole(sums) for sums in zip(*parts, strict=True)]


def _sum_part(
    places: tuple[int, ...], part: Part, numbers: PerRecord, present: RecordMask
) -> list[list[int]]:
    """Loadings have 30 bits: 64 hold the sum of a leaf."""
    return [[int(total) for total in (present & (numbers == place)) @ part.loadings] for place in places]


def _add_noise(
    recipe: Recipe, sums: Sequence[Sequence[int]], target: Fraction, key: Key
) -> tuple[Spike, ...]:
    """Sums with noise at which a record, which is in one class alone, costs the target."""
    stream, scale = key.stream(), noise_for_spike(recipe.noise, recipe.bound, target)
    price, released = rounded_up(price_spike(recipe.noise, recipe.bound, scale)), []
    for totals in sums:
        noisy = [total + draw_noise(recipe.noise, scale, stream) for total in totals]
        scores = np.array([float(total) for total in noisy]) * LOADING_UNIT
        released.append(Spike(scores, float(scale) * LOADING_UNIT, price))
    return tuple(released)


def expect_amounts(kinds: ReleasedClasses) -> Presence:
    """Which records have an amount, as far as the sums of all other kinds tell together."""
    noise = sum(noise_variance(kinds.recipe, one) for one in kinds.sums)
    return presence_given(kinds.recipe, fit_classes(kinds), noise)


def fit_classes(released: ReleasedClasses) -> Array:
    """Coefficients of each regression at its mode (classes − 1, p)."""
    lines: list[Array] = []
    for one in _sums(released):
        lines.append(spike_line(released.recipe, replace(one, before=tuple(lines))))
    return np.array(lines)


def draw_classes(released: ReleasedClasses, *, draws: int, key: Key) -> Array:
    """Draws of the coefficients (draws, classes − 1, p); each given the modes of those before it."""
    lines, drawn = tuple(fit_classes(released)), []
    for place, one in enumerate(_sums(released)):
        one = replace(one, before=lines[:place])
        drawn.append(draw_spike(released.recipe, one, draws=draws, key=key.child(place), rows=_ROWS))
    return np.stack(drawn, axis=1)


def _sums(released: ReleasedClasses) -> list[ClassSum]:
    """Sums over one class each; a sum with signs is twice that of the second class, less all loadings."""
    if not released.signed:
        return [ClassSum(one.scores, one.scale, one.row_price) for one in released.sums]
    (one,) = released.sums
    every = released.recipe.facts.every * LOADING_UNIT
    return [ClassSum((one.scores + every) / 2, one.scale / 2, one.row_price, signed=True)]


def chances_of(lines: Sequence[Array] | Array, matrix: Matrix, *, signed: bool) -> Array:
    """The chance of every class for every record (n, classes); with signs the regression is of the second."""
    left, chances = np.ones(len(matrix)), []
    for line in lines:
        chances.append(left * expit(matrix @ line))
        left = left * expit(-(matrix @ line))
    chances.append(left)
    if signed:
        chances.reverse()
    return np.column_stack(chances)


def pick_classes(chances: Array, numbers: PerRecord) -> PerRecord:
    """The class at each uniform number."""
    upto = np.cumsum(chances, axis=1)
    return np.asarray((upto[:, :-1] < (numbers * upto[:, -1])[:, None]).sum(axis=1), dtype=np.float64)
