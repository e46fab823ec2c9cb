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
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from hedgerow.arrays import Array, Matrix, PerRecord, RecordMask
from hedgerow.mechanism.noisy.prices import noise_for_spike, price_spike, rounded_up
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT, Presence, Recipe, Spike
from hedgerow.mechanism.noisy.rounds import draw_noise
from hedgerow.mechanism.noisy.spike import draw_spike, noise_variance, presence_given, spike_line
from hedgerow.numerics.triangular import ROWS
from hedgerow.randomness import Key

Places = NDArray[np.int64]
_ROWS = 1_000  # there may be many classes, and a mean bends little where draws are


@dataclass(frozen=True, eq=False)
class ClassSum(Spike):
    """The sum of one class as if it were a spike's, and who may still be in it given the classes before."""

    left: PerRecord | float = 1.0
    signed: bool = False  # half of a sum with signs

    def remaining(self, rows: NDArray[np.intp]) -> Array | float:
        return self.left if isinstance(self.left, float) else self.left[rows]

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


def read_classes(
    recipe: Recipe, classes: int, values: PerRecord, present: RecordMask, *, entries: Array | None, key: Key
) -> ReleasedClasses:
    """Values are places of classes, 0 … classes − 1; what is none of them counts as missing."""
    target = Fraction(recipe.epsilon) / recipe.rows_per_unit / (1 if recipe.relation == "withheld" else 2)
    hits = [present & (values == place) for place in range(classes)]
    signs = [hit.astype(np.int64) for hit in hits[:-1]]
    if classes == 2:
        signs = [hits[1].astype(np.int64) - hits[0]]
    return ReleasedClasses(recipe, _read_sums(recipe, signs, target, entries, key), classes == 2)


def read_kinds(
    recipe: Recipe, count: int, kinds: Places, present: RecordMask, *, entries: Array | None, key: Key
) -> ReleasedClasses:
    """Kinds are places 0 … count, the last an amount, whose price is left to its rounds."""
    signs = [(present & (kinds == place)).astype(np.int64) for place in range(count)]
    return ReleasedClasses(recipe, _read_sums(recipe, signs, recipe.spike_budget(), entries, key), False)


def _read_sums(
    recipe: Recipe, signs: Sequence[Places], target: Fraction, entries: Array | None, key: Key
) -> tuple[Spike, ...]:
    """Σ ± V_i with noise, for each list of signs, of which a record has one alone that is not zero."""
    own, stream = recipe if entries is None else recipe.with_entries(entries), key.stream()
    scale = noise_for_spike(recipe.noise, recipe.bound, target)
    price, released = rounded_up(price_spike(recipe.noise, recipe.bound, scale)), []
    for sign in signs:
        totals = [0] * own.loadings.shape[1]
        for first in range(0, own.records, ROWS):
            block = slice(first, first + ROWS)
            for column, total in enumerate(sign[block] @ own.loadings[block]):
                totals[column] += int(total)
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
    lines, left = [], np.ones(released.recipe.records)
    for one in _sums(released):
        one = ClassSum(one.scores, one.scale, one.row_price, left, one.signed)
        lines.append(spike_line(released.recipe, one))
        left = left * expit(-(released.recipe.matrix @ lines[-1]))
    return np.array(lines)


def draw_classes(released: ReleasedClasses, *, draws: int, key: Key) -> Array:
    """Draws of the coefficients (draws, classes − 1, p); each given the modes of those before it."""
    drawn, left, recipe = [], np.ones(released.recipe.records), released.recipe
    for place, (one, line) in enumerate(zip(_sums(released), fit_classes(released), strict=True)):
        one = ClassSum(one.scores, one.scale, one.row_price, left, one.signed)
        drawn.append(draw_spike(recipe, one, draws=draws, key=key.child(place), rows=_ROWS))
        left = left * expit(-(recipe.matrix @ line))
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
