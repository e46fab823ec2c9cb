"""How a recipe is made, from settings and public predictors alone.

>>> X = np.column_stack([np.ones(200), np.linspace(-1, 1, 200)])
>>> recipe = make_recipe(X, low=-3.0, high=9.0, epsilon=1.0)
>>> recipe.noise, recipe.first_share, recipe.loadings.shape
('laplace', 0.3, (200, 2))
"""

from dataclasses import replace
from fractions import Fraction
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from hedgerow.arrays import Array, Matrix
from hedgerow.errors import SettingError, format_value, is_count, is_finite
from hedgerow.mechanism.noisy.leaves.rows import (
    Beside,
    Capping,
    Chosen,
    HeldRows,
    Part,
    Rows,
    add_parts,
)
from hedgerow.mechanism.noisy.prices import Noise, Sums, find_rho
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT, NORMS, Reading, Recipe, choose_rows
from hedgerow.numerics.sums.clipped import clipped_moments
from hedgerow.numerics.sums.loadings import spreads_by_cap, whiten
from hedgerow.numerics.sums.varimax import rotate_sparse
from hedgerow.numerics.triangular import leaf_factor, merge_factors
from hedgerow.privacy.strict import limits
from hedgerow.privacy.strict.limits import Relation
from hedgerow.threads import one_blas_thread

WINDOWS = (1.8, *np.arange(2.0, 3.51, 0.25).tolist())  # k: standard deviations
_SMALL_NOISE = 0.25  # of the sampling variance: k is the widest window at which noise adds less
_FARTHEST = 1e70  # limits: fourth powers of what lies between them must be numbers


@one_blas_thread()
def make_recipe(
    matrix: Matrix | Rows,
    *,
    low: float,
    high: float,
    epsilon: float,
    relation: Relation = "withheld",
    width: float | None = None,
    noise: limits.Noise = "laplace",
    delta: float = 0.0,
    margin_share: float = 0.0,
    rows_per_unit: int = 1,
    spiked: bool = False,
    reading: Reading | None = None,
) -> Recipe:
    """Everything that is settled beforehand: from settings and public predictors, with no outcome in sight.

    `low`, `high`: limits of the response. `width`: relation "range", how far one response may move within its
    public set. `noise="auto"` takes the kind that promises the smaller error of the line (Gaussian needs δ).
    A person with up to `rows_per_unit` rows is protected as a whole. `spiked`: some outcomes are no amounts
    but lie at one point, and whether they do is protected too. `reading`: what the line reads of other
    protected columns, whose entries are clipped; a record's weight counts with the farthest they reach.

    Predictors are read in passes over leaves, whether held or elsewhere. Rotation, cap and windows are chosen
    by a few rows whose numbers follow from n; the loadings and their largest norm are those of all rows.
    """
    _check(low, high, epsilon, relation, width, noise, delta, margin_share, rows_per_unit)
    if spiked and relation == "range":
        raise SettingError(
            "relation='range' keeps apart amounts of one set alone, and with a spike whether a value is an "
            "amount would be left open. Use relation='withheld' or 'replaced', or a family without a spike."
        )
    rows = matrix if isinstance(matrix, Rows) else HeldRows(np.asarray(matrix, dtype=np.float64))
    sizes, few = _scan(rows)
    basis = whiten(sizes, rows.records, partial(_factor, rows))
    beside, others = None, np.zeros((len(few), 0))
    if reading is not None:
        rows = _lay(reading.rows, basis)
        squares, others = _look_beside(rows, len(basis))
        beside = reading.reach(np.sqrt(squares / rows.records))
    few = few @ basis
    used = np.any(basis != 0, axis=0)  # columns that others explain stay zero
    rotation = rotate_sparse(few[:, used])
    basis[:, used], few[:, used] = basis[:, used] @ rotation, few[:, used] @ rotation
    affordable = delta > 0 and find_rho(epsilon * (1 - margin_share), delta) > 0
    kinds: tuple[Noise, ...] = ("laplace", "gaussian") if affordable else ("laplace",)
    if noise == "gaussian" and not affordable:
        raise SettingError(
            f"epsilon = {epsilon} is too small for Gaussian noise at delta = {delta}. Ask for more, or take "
            "noise='laplace'."
        )
    drafts = [
        Recipe(
            rows=rows,
            basis=basis,
            low=float(low),
            high=float(high),
            relation=relation,
            width=None if width is None else float(width),
            epsilon=float(epsilon),
            delta=float(delta) if kind == "gaussian" else 0.0,
            noise=kind,
            first_share=0.0,
            margin_share=float(margin_share),
            rows_per_unit=int(rows_per_unit),
            spiked=spiked,
        )
        for kind in (kinds if noise == "auto" else (noise,))
    ]
    best = min((_settle(draft, few, beside, others) for draft in drafts), key=lambda choice: choice.error)
    capping = Capping(basis, best.cap, NORMS[best.draft.noise], LOADING_UNIT, beside=beside)
    recipe = replace(best.draft, rows=rows.load(capping))
    if beside is None:
        return recipe
    return replace(recipe, basis=block_diag(basis, np.diag(1 / beside.sizes)), beside=beside)


def _scan(rows: Rows) -> tuple[Array, Matrix]:
    """The largest absolute value of every column, and some rows."""
    parts = list(rows.each(partial(_scan_part, rows.records)))
    sizes = np.max([size for size, _ in parts], axis=0) if parts else np.zeros(0)
    if sizes.size == 0 or not np.all(np.isfinite(sizes)):
        raise SettingError(
            "The predictors must be a table of finite numbers with at least one row and column."
        )
    return sizes, np.concatenate([some for _, some in parts])


def _scan_part(records: int, part: Part) -> tuple[Array, Matrix]:
    low, high = part.matrix.min(axis=0), part.matrix.max(axis=0)  # NaN where a column has one
    return np.maximum(np.abs(low), np.abs(high)), part.matrix[part.find(choose_rows(records))]


def _factor(rows: Rows, scale: Array, kept: Chosen) -> Array:
    """The triangular factor of some columns, each divided by its scale."""
    return merge_factors(rows.each(partial(_factor_part, scale, kept)))[:-1, :-1]


def _factor_part(scale: Array, kept: Chosen, part: Part) -> Array:
    columns = (part.matrix / scale)[:, kept]
    return leaf_factor(columns, np.zeros(len(columns)), np.ones(len(columns)))


def _lay(rows: Rows, basis: Array) -> Rows:
    """Rows whose stand-ins are at right angles to public predictors, as entries nearly are."""
    (along,) = add_parts(rows.each(partial(_cross_entries, len(basis))))
    return rows.take_out(basis @ (basis.T @ along) / rows.records)


def _cross_entries(public: int, part: Part) -> tuple[Array]:
    return (part.matrix[:, :public].T @ part.matrix[:, public:],)


def _look_beside(rows: Rows, public: int) -> tuple[Array, Matrix]:
    """Sums of squares of the stand-ins, and those of some rows."""
    squares, some = zip(*rows.each(partial(_look_beside_part, rows.records, public)), strict=True)
    return reduce(np.add, squares), np.concatenate(some)


def _look_beside_part(records: int, public: int, part: Part) -> tuple[Array, Matrix]:
    entries = part.matrix[:, public:]
    return (entries**2).sum(axis=0), entries[part.find(choose_rows(records))]


class _Choice(NamedTuple):
    """The rules' answer for one kind of noise."""

    draft: Recipe
    cap: float  # C: the largest norm of a record's loadings
    error: float  # expected squared error of the line, over σ²


def _settle(draft: Recipe, few: Array, beside: Beside | None, others: Array) -> _Choice:
    """Cap, window and shares for n records whose whitened rows are like `few`, and stand-ins like `others`.

    Over σ² the expected error of the line is tr M⁻¹(m₂Q'v²Q/n + var(noise)/n²)M⁻¹/η²: σ cancels, because the
    window and with it the noise grow as σ does. Only the range relation compares its width with a σ, for
    which H/4 stands in.
    """
    H, n = draft.half_width, draft.records
    first_share, split = 0.3, 1.3
    if draft.noise == "gaussian":
        first_share, split = 0.2, 0.8  # noise falls with the root of ρ; scores and squares meet in an L2 norm
    elif draft.width is not None and draft.width < H:
        first_share, split = 0.1, 2.0
    if draft.noise == "laplace":
        first_share *= 1 - draft.margin_share
    draft = replace(draft, first_share=first_share, split=split)
    target = draft.budget()[1]
    times = 2.0 if draft.noise == "laplace" else 1.0  # variance of the noise over its squared scale
    steps = 1 << 20
    bound = steps if draft.noise == "laplace" else steps**2
    order = NORMS[draft.noise]
    if beside is None:
        caps, sampling, noisy = spreads_by_cap(few, order=order)
    else:
        whole, summed = np.hstack([few, others / beside.sizes]), np.hstack([few, beside.clip(others)])
        norms = beside.norms(few, order)
        caps, sampling, noisy = spreads_by_cap(whole, order=order, summed=summed, norms=norms)

    choices, small = [], []
    for window in WINDOWS:
        reach = 2.0 if draft.width is None else min(2.0, draft.width / (window * H / 4))
        sums = Sums(draft.noise, bound, steps, draft.relation, max(1, int(reach * steps)), draft.spiked)
        scales = sums.noise_for(target, split=Fraction(split))
        of_scores, of_squares = float(scales.scores) / steps**2, float(scales.squares) / steps**2
        slope, _, second, fourth = (float(moment) for moment in clipped_moments(window))
        variance = sampling * second / slope**2 / n
        added = noisy * times * (of_scores * window / (slope * n)) ** 2
        best = int(np.argmin(variance + added))
        added_to_sigma = times * (of_squares * window**2 / n) ** 2
        small.append(
            added[best] <= _SMALL_NOISE * variance[best]
            and added_to_sigma <= _SMALL_NOISE * (fourth - second**2) / n
        )
        error = float(variance[best] + added[best])
        choices.append(_Choice(replace(draft, window_factor=window), float(caps[best]), error))
    return choices[max(np.flatnonzero(small), default=0)]


def _check(
    low: float,
    high: float,
    epsilon: float,
    relation: str,
    width: float | None,
    noise: str,
    delta: float,
    margin_share: float,
    rows_per_unit: int,
) -> None:
    """Public settings that cannot be used, said before any outcome is read."""
    if not (is_finite(low) and is_finite(high) and -_FARTHEST <= low < high <= _FARTHEST):
        raise SettingError(
            f"limits must be two finite numbers, the lower one first, got {low} and {high}. "
            "Take limits that every value can be expected to keep, from public knowledge."
        )
    if high - low < 1e-12 * max(abs(low), abs(high)) or high - low < 1 / _FARTHEST:
        raise SettingError(f"limits {low} and {high} are too close for arithmetic. Take wider ones.")
    if not is_finite(epsilon) or not 1e-6 <= epsilon <= 1e6:
        raise SettingError(f"epsilon must be between 1e-6 and 1e6, got {epsilon}.")
    if relation not in ("withheld", "replaced", "range"):
        raise SettingError(
            f"relation must be 'withheld', 'replaced' or 'range', got {format_value(relation)}."
        )
    if (relation == "range") != (width is not None):
        raise SettingError('A width goes with relation="range", and with no other.')
    if width is not None and not (is_finite(width) and width > 0):
        raise SettingError(f"width must be a positive number, got {width}. It is the size of a public range.")
    if noise not in ("laplace", "gaussian", "auto"):
        raise SettingError(f"noise must be 'laplace', 'gaussian' or 'auto', got {format_value(noise)}.")
    if not is_finite(delta) or not 0 <= delta < 1 or (noise == "gaussian" and delta == 0):
        raise SettingError(
            f"delta must be at least 0, below 1 and positive for Gaussian noise, got {delta}. 1e-6 is usual."
        )
    if not is_finite(margin_share) or not 0 <= margin_share <= 0.9:
        raise SettingError(f"margin_share must be between 0 and 0.9, got {margin_share}. 0.25 is usual.")
    if not is_count(rows_per_unit) or rows_per_unit < 1:
        raise SettingError(f"rows_per_unit must be a whole number from 1 up, got {rows_per_unit}.")
