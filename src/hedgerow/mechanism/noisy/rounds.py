"""The rounds: the only place of the strict mechanism that reads the outcome, in whole numbers from there on.

    recipe = make_recipe(X, low=-3.0, high=9.0, epsilon=1.0)
    released = release_statistics(recipe, response, present, key=Key.from_seed(None))

A residual about the round's line becomes r = clip(rint((y − c)/γ), −W, W), γ a power of two. Sums of V_i·r
and r² are exact, the noise on them is exact (`numerics.sums.discrete`), its scales are those `prices` asks
for. Round one is about the middle of the limits; line, window and noise of round two are functions of what
round one gave out. Where outcomes may lie at a spike, NaN with `present` stands for one that does: the rounds
take it for a blank, and a sum of its own counts it before them.

Formal guarantees
-----------------
The two rounds and the counts together are ε-differentially private (Laplace noise) or (ε, δ) (Gaussian noise)
for one unit's outcomes in the recipe's relation, whatever they are: values beyond the limits, infinities,
blanks. Nothing is raised, warned of or returned that depends on them otherwise. c = Xb₀ and (y − c)/γ are
floating-point numbers, which is harmless: r_i is a function of record i's own outcome and of public things,
whatever way it is rounded.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, Mask, Matrix, PerRecord, RecordMask
from hedgerow.errors import SettingError
from hedgerow.mechanism.noisy.estimate import estimate, learn, start
from hedgerow.mechanism.noisy.leaves.rows import Part, Rows
from hedgerow.mechanism.noisy.prices import (
    Scales,
    Sums,
    noise_for_counts,
    noise_for_spike,
    price_spike,
    rounded_up,
)
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT, Recipe, middle_of
from hedgerow.mechanism.noisy.released import Counts, Released, Round, Spike
from hedgerow.mechanism.noisy.spike import expect_presence
from hedgerow.numerics.sums.discrete import discrete_gaussian, discrete_laplace
from hedgerow.numerics.triangular import ROWS
from hedgerow.randomness import Key, Stream
from hedgerow.threads import one_blas_thread, share_out

# A reader runs a task on the public rows of every leaf with its outcomes, and which of them are there.
ReadingTask = Callable[[Part, PerRecord, RecordMask], Any]
Reader = Callable[[ReadingTask], list[Any]]
Limits = tuple[float, float]  # of the response
STEPS = 1 << 20  # W is at most this and at least half of it
_NARROWEST = 1e-9  # of H: no window is smaller


@dataclass(frozen=True, eq=False)
class Setup:
    """What a round is told, all of it public: the line, the steps of residuals, and the noise."""

    line: Array  # b₀ (p,)
    step: float  # γ
    sums: Sums
    scales: Scales


def release_statistics(recipe: Recipe, response: PerRecord, present: RecordMask, *, key: Key) -> Released:
    """Read the outcome once per round, and once for the counts where the recipe has a share for them.

    `present` is False where the outcome is missing. NaN counts as missing too or, with a spike, as a value
    that lies there.
    """
    response = np.asarray(response, dtype=np.float64)
    present = np.asarray(present, dtype=np.bool_)
    if not response.shape == present.shape == (recipe.records,):
        raise SettingError(
            f"The outcome and its mask must have one entry for each of {recipe.records} records, got "
            f"{response.shape} and {present.shape}."
        )
    return run_rounds(recipe, hold_outcomes(recipe.rows, response, present), key=key)


def hold_outcomes(rows: Rows, response: PerRecord, present: RecordMask) -> Reader:
    """A reader of outcomes in memory. `rows` have the entries of protected columns themselves."""
    return lambda task: list(rows.each(lambda part: task(part, response[part.rows], present[part.rows])))


@one_blas_thread()
def run_rounds(recipe: Recipe, reader: Reader, *, key: Key) -> Released:
    """Spike, rounds and counts one after the other, each told what those before it gave out.

    A recipe that knows how many amounts to expect has its spikes read by others, within `spike_budget`.
    """
    spike = None
    _ = recipe.facts  # predictors that make no loadings are refused here, before an outcome is read
    if recipe.spiked and recipe.presence is None:
        spike = read_spike(recipe, reader, key.child("spike"))
        recipe = recipe.with_presence(expect_presence(recipe, spike))
    first_budget, second_budget, counts_budget = recipe.budget()
    first = read_round(recipe, first_setup(recipe, first_budget), reader, key.child("first"))
    second = read_round(recipe, second_setup(recipe, first, second_budget), reader, key.child("second"))
    released = Released(recipe, (first, second), None, spike)
    if not counts_budget:
        return released
    from hedgerow.mechanism.noisy.margin import bin_edges

    edges = bin_edges(recipe, estimate(released))
    counts = read_counts(recipe, edges, counts_budget, reader, key.child("counts"))
    return Released(recipe, released.rounds, counts, spike)


def first_setup(recipe: Recipe, target: Fraction, steps: int = STEPS) -> Setup:
    """About the middle of the limits, or the line nearest to it, with a window that clips nothing."""
    line = recipe.basis @ start(recipe).line
    return settle(recipe, line, _clip_nothing(recipe, line), target, steps)


def first_window(recipe: Recipe) -> float:
    """How far an outcome may be from round one's line: H with an intercept, up to 2H without. Public."""
    return _clip_nothing(recipe, recipe.basis @ start(recipe).line)


def _clip_nothing(recipe: Recipe, line: Array) -> float:
    ends = list(recipe.rows.each(partial(_find_ends, line, recipe.middle)))
    lowest, highest = min(low for low, _ in ends), max(high for _, high in ends)
    return min(max(recipe.high - lowest, highest - recipe.low), 2 * recipe.half_width)


def second_setup(recipe: Recipe, first: Round, target: Fraction, steps: int = STEPS) -> Setup:
    """About the line that round one found, k standard deviations wide: a function of round one's output."""
    state = learn(recipe, start(recipe), first)
    window = recipe.window_factor * math.sqrt(state.uncertain_variance())
    window = min(max(window, _NARROWEST * recipe.half_width), first.window)
    return settle(recipe, recipe.basis @ state.line, window, target, steps)


def settle(recipe: Recipe, line: Array, window: float, target: Fraction, steps: int) -> Setup:
    """Steps of a power of two with at most `steps` of them in the window, and noise of the price `target`."""
    step = math.ldexp(1.0, math.ceil(math.log2(window / steps)))
    whole = max(1, min(steps, round(window / step)))
    reach = 2 * whole
    if recipe.width is not None:
        # Logarithms and the width itself are rounded numbers, of the size of the limits: a little more than
        # they can lose. One step for rounding to steps.
        slack = 2.0**-48 * max(abs(recipe.low), abs(recipe.high), recipe.width)
        reach = min(reach, math.ceil((Fraction(recipe.width) + Fraction(slack)) / Fraction(step)) + 1)
    sums = Sums(recipe.noise, recipe.bound, whole, recipe.relation, reach, recipe.spiked)
    return Setup(line, step, sums, sums.noise_for(target, split=Fraction(recipe.split)))


def read_round(recipe: Recipe, setup: Setup, reader: Reader, key: Key) -> Round:
    """Sums with noise, in the response's units."""
    scores, squares = sum_outcome(recipe, setup, reader)
    noise, scales, stream = setup.sums.noise, setup.scales, key.stream()
    noisy = [total + draw_noise(noise, scales.scores, stream) for total in scores]
    return describe(setup, noisy, squares + draw_noise(noise, scales.squares, stream))


def describe(setup: Setup, scores: list[int], squares: int) -> Round:
    """Noisy sums of whole steps, in the response's units."""
    unit, square, scales = setup.step * LOADING_UNIT, setup.step**2, setup.scales
    return Round(
        line=setup.line,
        window=setup.sums.steps * setup.step,
        blank=scales.blank * square,
        scores=np.array([float(total) for total in scores]) * unit,
        squares=float(squares) * square,
        score_scale=float(scales.scores) * unit,
        square_scale=float(scales.squares) * square,
        row_price=rounded_up(setup.sums.price(scales)),
    )


def sum_outcome(recipe: Recipe, setup: Setup, reader: Reader) -> tuple[list[int], int]:
    """ΣV_i r_i and Σr_i², exactly, whatever the leaves: whole numbers of any size. Confidential."""
    sums = reader(partial(_sum_part, setup, (recipe.low, recipe.high)))
    return add_whole(scores for scores, _ in sums), sum(squares for _, squares in sums)


def _sum_part(
    setup: Setup, limits: Limits, part: Part, response: PerRecord, present: RecordMask
) -> tuple[list[int], int]:
    """64 bits in blocks too short to overflow, any size beyond."""
    W = setup.sums.steps
    longest = int(max(part.loadings.max(initial=1), -part.loadings.min(initial=-1))) * W
    size = max(1, min(ROWS, (1 << 62) // max(longest, W * W)))

    blocks = [slice(first, first + size) for first in range(0, len(response), size)]
    add = partial(_sum_block, setup, limits, part, response, present)
    scores, squares = zip(*share_out(add, blocks), strict=True)
    return add_whole(scores), sum(squares)


def _sum_block(
    setup: Setup, limits: Limits, part: Part, response: PerRecord, present: RecordMask, block: slice
) -> tuple[list[int], int]:
    r, known = steps_of(setup, limits, part.matrix[block], response[block], present[block])
    squares = int(r @ r) + setup.scales.blank * int(np.count_nonzero(~known))
    return (r @ part.loadings[block]).tolist(), squares


def steps_of(
    setup: Setup, limits: Limits, matrix: Matrix, response: PerRecord, present: RecordMask
) -> tuple[NDArray[np.int64], Mask]:
    """r of each record, 0 for a blank, and which are none. Confidential."""
    known = present & ~np.isnan(response)
    W, middle = setup.sums.steps, middle_of(limits)
    with np.errstate(all="ignore"):
        y = np.clip(np.where(known, response, middle), *limits)
        r = np.clip(np.rint((y - centres(matrix, setup.line, middle)) / setup.step), -W, W)
    return np.where(known, r, 0.0).astype(np.int64), known


def centres(matrix: Matrix, line: Array, middle: float) -> Array:
    """c = Xb₀ as finite numbers: public."""
    with np.errstate(all="ignore"):
        c = matrix @ line
    return np.asarray(np.nan_to_num(c, nan=middle, posinf=1e300, neginf=-1e300))


def _find_ends(line: Array, middle: float, part: Part) -> tuple[float, float]:
    c = centres(part.matrix, line, middle)
    return float(c.min()), float(c.max())


def read_spike(recipe: Recipe, reader: Reader, key: Key) -> Spike:
    """The sum of loadings over outcomes at the spike, with noise."""
    target, stream = recipe.spike_budget(), key.stream()
    scale = noise_for_spike(recipe.noise, recipe.bound, target)
    totals = [total + draw_noise(recipe.noise, scale, stream) for total in sum_spike(reader)]
    return Spike(
        scores=np.array([float(total) for total in totals]) * LOADING_UNIT,
        scale=float(scale) * LOADING_UNIT,
        row_price=rounded_up(price_spike(recipe.noise, recipe.bound, scale)),
    )


def sum_spike(reader: Reader) -> list[int]:
    """ΣV_i over outcomes at the spike, exactly. Confidential."""
    return add_whole(reader(_sum_spike_part))


def _sum_spike_part(part: Part, response: PerRecord, present: RecordMask) -> list[int]:
    """Loadings have 30 bits: 64 hold the sum of a leaf."""
    return [int(total) for total in (present & np.isnan(response)) @ part.loadings]


def read_counts(recipe: Recipe, edges: Array, target: Fraction, reader: Reader, key: Key) -> Counts:
    """How many values lie in each bin, with Laplace noise; a blank lies in none."""
    scale, stream = noise_for_counts(recipe.relation, target), key.stream()
    totals = add_whole(reader(partial(_count_part, edges, (recipe.low, recipe.high))))
    counts = [total + discrete_laplace(stream, scale) for total in totals]
    return Counts(np.asarray(edges, dtype=np.float64), np.array(counts, dtype=np.float64), float(scale))


def _count_part(
    edges: Array, limits: Limits, part: Part, response: PerRecord, present: RecordMask
) -> list[int]:
    values = np.clip(response[present & ~np.isnan(response)], *limits)
    found: list[int] = np.bincount(np.searchsorted(edges, values), minlength=edges.size + 1).tolist()
    return found


def add_whole(sums: Iterable[list[int]]) -> list[int]:
    """Column by column."""
    return [sum(column) for column in zip(*sums, strict=True)]


def draw_noise(noise: str, scale: Fraction, stream: Stream) -> int:
    """One whole number of noise."""
    return discrete_laplace(stream, scale) if noise == "laplace" else discrete_gaussian(stream, scale**2)
