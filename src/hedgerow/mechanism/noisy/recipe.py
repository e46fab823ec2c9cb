"""What a release by noisy statistics is told beforehand, and what it gives out: both public.

    Recipe (settings, X, n)  →  rounds read the outcome once each  →  Released  →  draws, copies, intervals

Everything after `Released` is post-processing: any number of copies costs the same ε.

    >>> X = np.column_stack([np.ones(200), np.linspace(-1, 1, 200)])
    >>> recipe = make_recipe(X, low=-3.0, high=9.0, epsilon=1.0)
    >>> recipe.noise, recipe.first_share, recipe.loadings.shape
    ('laplace', 0.3, (200, 2))
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.special import expit

from hedgerow.arrays import Array, Matrix, PerRecord
from hedgerow.errors import SettingError, is_count, is_finite
from hedgerow.mechanism.noisy.leaves.rows import (
    NOT_HELD,
    Beside,
    Capping,
    Chosen,
    HeldRows,
    Loadings,
    Part,
    Rows,
    add_parts,
    count_norms,
)
from hedgerow.mechanism.noisy.prices import Noise, Sums, concentrated, convert
from hedgerow.numerics.sums.clipped import clipped_moments
from hedgerow.numerics.sums.loadings import spreads_by_cap, whiten
from hedgerow.numerics.sums.varimax import rotate_sparse
from hedgerow.numerics.triangular import leaf_factor, merge_factors
from hedgerow.privacy.strict import limits
from hedgerow.privacy.strict.limits import Relation
from hedgerow.threads import one_blas_thread

LOADING_UNIT = 2.0**-16  # loadings are whole multiples of it
NORMS: dict[Noise, int] = {"laplace": 1, "gaussian": 2}  # of loadings, by the noise they are priced with
WINDOWS = (1.8, *np.arange(2.0, 3.51, 0.25).tolist())  # k: standard deviations
_SMALL_NOISE = 0.25  # of the sampling variance: k is the widest window at which noise adds less
_ROWS_TO_CHOOSE_BY = 5_000  # rows of X by which rotation and cap are chosen
_LIKE = 0.25  # how far squares of some rows may be from those of all, in any direction, to stand for them
_FARTHEST = 1e70  # limits: fourth powers of what lies between them must be numbers


@dataclass(frozen=True, eq=False)
class Recipe:
    """Settled before any outcome is read: from the plan, the public predictors and their number alone."""

    rows: Rows  # X, n × p, public, and V: v_i q_ij in units of LOADING_UNIT
    basis: Array  # p × p: Q = X · basis has Q'Q/n = I, rows made sparse by a rotation
    low: float  # limits of the response (of log x for the lognormal)
    high: float
    relation: Relation
    width: float | None  # relation "range": the widest set of values, on the response's scale
    epsilon: float
    delta: float  # 0 for Laplace noise
    noise: Noise
    first_share: float  # of ε for round one; of ρ after the margin's ε for Gaussian noise
    margin_share: float  # of ε for the margin's counts; 0: none. Round two has the rest
    window_factor: float = 1.8  # k: the window of round two in standard deviations
    split: float = 1.3  # x = (C/b₁)·(b₂/w): how scores and squares share a round's price
    rows_per_unit: int = 1  # the most rows of one protected person
    spiked: bool = False  # outcomes may lie at a spike, in the rounds' eyes as if they were blank
    presence: "Presence | None" = None  # how many amounts to expect, once the spikes' sums are there
    beside: "Beside | None" = None  # of other protected columns, the last columns of matrix and loadings

    @property
    def records(self) -> int:
        """n, public."""
        return self.rows.records

    @property
    def matrix(self) -> Matrix:
        """X, where it is in memory."""
        return self.rows.matrix

    @property
    def loadings(self) -> Loadings:
        """V, where they are in memory."""
        return self.rows.loadings

    @property
    def half_width(self) -> float:
        """H: half the distance of the limits."""
        return (self.high - self.low) / 2

    @property
    def middle(self) -> float:
        """Half way between the limits."""
        return middle_of((self.low, self.high))

    @cached_property
    def facts(self) -> "Facts":
        """What is said of all rows together: one pass over them."""
        public = len(self.basis) - self.entries
        parts = self.rows.each(partial(_find_facts, self.basis, self.noise, public))
        largest, reach, every, *sums = reduce(Facts.merge, parts)
        constant, gram, squares = (one / self.records for one in sums)
        return Facts(max(largest, 1), reach, every, constant, gram, squares)  # zeros have a price too

    @property
    def bound(self) -> int:
        """C of the prices, a whole number: the largest Σ|V_ij| of a record, or ΣV_ij² for Gaussian noise."""
        return self.facts.bound

    @property
    def cap(self) -> float:
        """C: no record's loadings have a larger norm, up to their rounding."""
        return LOADING_UNIT * (self.bound if self.noise == "laplace" else self.bound**0.5)

    @property
    def amounts(self) -> float:
        """How many of the records the rounds see a value of, as far as is known: n without a spike."""
        return float(self.records) if self.presence is None else max(self.presence.total, 1.0)

    @property
    def weighted_gram(self) -> Array:
        """M = Q'diag(v)Q/n, p × p; over amounts, where there is a spike."""
        return self._crossed[0]

    @property
    def weighted_squares(self) -> Array:
        """Q'diag(v²)Q/n, p × p."""
        return self._crossed[1]

    @cached_property
    def _crossed(self) -> tuple[Array, Array]:
        if self.presence is None:
            return self.facts.gram, self.facts.squares
        crossed = self.rows.each(partial(_cross, self.basis, self.presence))
        gram, squares = add_parts(crossed)
        return gram / self.amounts, squares / self.amounts

    @property
    def constant(self) -> Array:
        """Q'1/n: where constant lines lie among the coordinates of Q; of length 1 with an intercept."""
        return self.facts.constant

    @property
    def reach(self) -> Array:
        """Σ|V_ij| of each coordinate: how far its sum can be from 0 where every residual is 1."""
        return np.asarray(self.facts.reach * LOADING_UNIT)

    def pick(self, chosen: Chosen) -> tuple[Matrix, Loadings]:
        """X and V of some records."""
        matrices, loadings = zip(*self.rows.each(partial(_pick, chosen)), strict=True)
        return np.concatenate(matrices), np.concatenate(loadings)

    def expecting(self, presence: "Presence") -> "Recipe":
        """The same once it is known which records have an amount, as far as it is."""
        other = replace(self, presence=presence)
        vars(other)["facts"] = self.facts  # of all rows, whatever they have
        return other

    @property
    def entries(self) -> int:
        """How many columns of the matrix stand for protected values."""
        return 0 if self.beside is None else len(self.beside.scale)

    def with_entries(self, entries: Array) -> "Recipe":
        """The same in memory with the entries of protected columns themselves: what rounds sum; confidential.

        No entry's loading exceeds the one that the price counts with, whatever the entry.
        """
        if self.beside is None:
            return self
        if not isinstance(self.rows, HeldRows):
            raise SettingError(NOT_HELD)
        public = self.matrix[:, : self.matrix.shape[1] - self.entries]
        whole = np.hstack([public, np.nan_to_num(entries, nan=0.0)])
        return replace(self, rows=replace(self.rows, matrix=whole).load(self.capping))

    @property
    def capping(self) -> Capping:
        """What whoever reads outcomes makes loadings by: none is larger than the noise is made for."""
        capping = self.rows.capping
        if capping is None:
            raise SettingError("The loadings of these rows are not settled yet.")
        return replace(capping, most=self.bound)

    def choose_some(self, rows: int) -> "Recipe":
        """A recipe for some rows of a long table in which noise is as large beside the sampling error.

        The recipe itself where the table has at most twice as many, or rows as rare as some are would be
        missed.
        """
        if self.records <= 2 * rows:
            return self
        # Spread over the table by the golden ratio: every k-th would follow a table's own period.
        places = np.arange(rows) * ((5**0.5 - 1) / 2) % 1
        matrix = self.matrix[np.unique((places * self.records).astype(np.intp))]
        Q = matrix @ self.basis
        values, vectors = np.linalg.eigh(Q.T @ Q / len(Q))
        used = np.count_nonzero(np.any(self.basis != 0, axis=0))
        if (np.abs(values[len(values) - used :] - 1) > _LIKE).any():
            return self
        basis = self.basis @ (vectors / np.sqrt(np.maximum(values, 1 - _LIKE))) @ vectors.T
        times, order = np.sqrt(self.records / len(matrix)), NORMS[self.noise]
        counts = float(times * self.margin_share * self.epsilon)
        rounds = float(times * self.epsilon) - counts
        if self.noise == "gaussian":  # noise falls with the root of ρ
            rho = concentrated((1 - self.margin_share) * self.epsilon, self.delta)
            rounds = convert(float(rho) * times**2, self.delta)
        cap = LOADING_UNIT * self.bound ** (1 / order)
        some = HeldRows(matrix).load(Capping(basis, cap, order, LOADING_UNIT))
        epsilon = counts + rounds
        return replace(self, rows=some, basis=basis, epsilon=epsilon, margin_share=counts / epsilon)

    def budget(self) -> tuple[Fraction, Fraction, Fraction]:
        """What round one, round two and the counts may cost: ε, or ρ of the rounds for Gaussian noise.

        Exact fractions. They add up to what one row may cost: ε over the rows of a unit, and for Gaussian
        noise ρ over the square of their number (group privacy).
        """
        total, rows = Fraction(self.epsilon), self.rows_per_unit
        counts = total * Fraction(self.margin_share)
        if self.noise == "laplace":
            first = total * Fraction(self.first_share)
            return first / rows, (total - counts - first) / rows, counts / rows
        # Counts have Laplace noise and an ε of their own; what is left of ε, with δ, is for both rounds.
        rho = concentrated(float(total - counts), self.delta)
        first = rho * Fraction(self.first_share)
        return first / rows**2, (rho - first) / rows**2, counts / rows

    def spike_budget(self) -> Fraction:
        """What the spike's sum may cost: what the rounds do, or half if an amount may become a zero."""
        first, second, counts = self.budget()
        whole = first + second + (counts if self.noise == "laplace" else 0)
        return whole if self.relation == "withheld" else whole / 2


def middle_of(limits: tuple[float, float]) -> float:
    """Half way between limits."""
    low, high = limits
    return low + (high - low) / 2


class Facts(NamedTuple):
    """Of all rows together, or of one leaf: there sums, here the last three over n."""

    bound: int
    reach: NDArray[np.int64]  # Σ|V_ij|
    every: NDArray[np.int64]  # ΣV_ij
    constant: Array  # Q'1
    gram: Array  # Q'diag(v)Q
    squares: Array  # Q'diag(v²)Q

    def merge(self, other: "Facts") -> "Facts":
        """Of the rows of both."""
        return Facts(max(self.bound, other.bound), *add_parts([self[1:], other[1:]]))


def _find_facts(basis: Array, noise: Noise, public: int, part: Part) -> Facts:
    """Of a leaf. `public` is the number of columns that do not stand for protected values."""
    most = part.most  # whatever a protected value is

    def find(rows: slice) -> Facts:
        loadings = part.loadings[rows]
        sizes = np.abs(loadings)
        norms = count_norms(loadings[:, :public], None if most is None else most[rows], NORMS[noise])
        Q, V = part.matrix[rows] @ basis, loadings * LOADING_UNIT
        # Whole numbers of up to 2³⁰ each: 64 bits hold the sums of 2³³ records.
        whole = int(norms.max(initial=0)), sizes.sum(axis=0), loadings.sum(axis=0)
        return Facts(*whole, Q.sum(axis=0), V.T @ Q, V.T @ V)

    return reduce(Facts.merge, part.each_block(find))


def _cross(basis: Array, presence: "Presence", part: Part) -> tuple[Array, ...]:
    """Q'diag(cv)Q and Q'diag(cv²)Q of a leaf, c the chance of an amount."""
    chance = presence.chance(part.matrix)

    def cross(rows: slice) -> tuple[Array, Array]:
        V = part.loadings[rows] * LOADING_UNIT
        seen = V * chance[rows, None]
        return seen.T @ (part.matrix[rows] @ basis), seen.T @ V

    return add_parts(part.each_block(cross))


def _pick(chosen: Chosen, part: Part) -> tuple[Matrix, Loadings]:
    places = part.find(chosen)
    return part.matrix[places], part.loadings[places]


@dataclass(frozen=True, eq=False)
class Reading:
    """What a line reads of other protected columns, as far as it is public."""

    rows: Rows  # public predictors, and beside them stand-ins of entries, drawn from what was released
    reach: Callable[[Array], Beside]  # how entries enter sums, by the root mean squares of their stand-ins


@dataclass(frozen=True, eq=False)
class Presence:
    """Which records have an amount, as far as the spike's noisy sum tells. A function of it: public."""

    lines: Array  # of the logits of each kind that is none, among records of no earlier kind (kinds, p)
    total: float  # how many amounts there are expected to be
    variance: float  # of their number, given that sum
    noise: float  # variance of the noise on each of its entries

    def chance(self, matrix: Matrix) -> PerRecord:
        """Of an amount, for records with these predictors."""
        return chance_left(self.lines, matrix)


def chance_left(lines: Iterable[Array], matrix: Matrix) -> PerRecord:
    """The chance to be of none of the kinds whose logits these lines give, one after the other."""
    left = np.ones(len(matrix))
    for line in lines:
        left = left * expit(-(matrix @ line))
    return left


@dataclass(frozen=True, eq=False)
class Spike:
    """The noisy sum over outcomes at the spike, in loadings. Released: public."""

    scores: Array  # T₀ = Σ v_i q_i + noise (p,)
    scale: float  # of the noise
    row_price: float = 0.0  # as a round's

    def remaining(self, matrix: Matrix) -> Array | float:
        """The chance that records with these predictors may still be here."""
        return 1.0

    def spread_of_entries(self, chance: PerRecord) -> PerRecord | float:
        """Mean square of what a record adds beside an entry that is random, entry apart."""
        return chance


@dataclass(frozen=True, eq=False)
class Round:
    """The statistics of one round with their noise, in the response's units. Released: public."""

    line: Array  # b₀: coefficients of the line about which residuals were clipped (p,)
    window: float  # w
    blank: float  # κ: what a blank adds to the sum of squares
    scores: Array  # T₁ = Σ v_i q_i r_i + noise (p,)
    squares: float  # T₂ = Σ r_i² + noise
    score_scale: float  # of the noise: Laplace's b, or a Gaussian's standard deviation
    square_scale: float
    row_price: float = 0.0  # ε that the round costs one row, or ρ with Gaussian noise; rounded up


@dataclass(frozen=True, eq=False)
class Counts:
    """Noisy counts of the response in bins whose edges follow from the rounds. Released: public."""

    edges: Array  # inner edges, one fewer than counts, in the response's units
    counts: Array
    scale: float  # Laplace's b


@dataclass(frozen=True, eq=False)
class Released:
    """All that was read off the confidential outcome: public once ε is paid."""

    recipe: Recipe
    rounds: tuple[Round, ...]
    counts: Counts | None
    spike: Spike | None = None


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
    affordable = delta > 0 and concentrated(epsilon * (1 - margin_share), delta) > 0
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


def choose_rows(records: int, most: int = _ROWS_TO_CHOOSE_BY) -> Chosen:
    """Some rows, spread over the table by the golden ratio: every k-th would follow a table's own period."""
    return np.arange(records) if records <= most else _spread_rows(records, most)


@lru_cache(maxsize=8)
def _spread_rows(records: int, most: int) -> Chosen:
    """Each leaf asks for them again."""
    places = np.arange(most) * ((5**0.5 - 1) / 2) % 1
    chosen = np.unique((places * records).astype(np.intp))
    chosen.flags.writeable = False
    return chosen


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
        raise SettingError(f"relation must be 'withheld', 'replaced' or 'range', got {relation!r}.")
    if (relation == "range") != (width is not None):
        raise SettingError('A width goes with relation="range", and with no other.')
    if width is not None and not (is_finite(width) and width > 0):
        raise SettingError(f"width must be a positive number, got {width}. It is the size of a public range.")
    if noise not in ("laplace", "gaussian", "auto"):
        raise SettingError(f"noise must be 'laplace', 'gaussian' or 'auto', got {noise!r}.")
    if not is_finite(delta) or not 0 <= delta < 1 or (noise == "gaussian" and delta == 0):
        raise SettingError(
            f"delta must be at least 0, below 1 and positive for Gaussian noise, got {delta}. 1e-6 is usual."
        )
    if not is_finite(margin_share) or not 0 <= margin_share <= 0.9:
        raise SettingError(f"margin_share must be between 0 and 0.9, got {margin_share}. 0.25 is usual.")
    if not is_count(rows_per_unit) or rows_per_unit < 1:
        raise SettingError(f"rows_per_unit must be a whole number from 1 up, got {rows_per_unit}.")
