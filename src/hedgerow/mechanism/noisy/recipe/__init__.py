"""The recipe: everything that a release by noisy statistics settles before any outcome is read. Public.

    Recipe (settings, X, n)  →  rounds read the outcome once each  →  Released  →  draws, copies, intervals

`make` chooses one. Everything after `Released` is post-processing: any number of copies costs the same ε.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from hedgerow.arrays import Array, Matrix, PerRecord
from hedgerow.errors import SettingError
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
from hedgerow.mechanism.noisy.prices import Noise, find_epsilon, find_rho
from hedgerow.privacy.strict.limits import Relation

LOADING_UNIT = 2.0**-16  # loadings are whole multiples of it
NORMS: dict[Noise, int] = {"laplace": 1, "gaussian": 2}  # of loadings, by the noise they are priced with
_ROWS_TO_CHOOSE_BY = 5_000  # rows of X by which rotation and cap are chosen
_LIKE = 0.25  # how far squares of some rows may be from those of all, in any direction, to stand for them


@dataclass(frozen=True, eq=False)
class Recipe:
    """What a release by noisy statistics settles before it reads any outcome.

    It follows from the plan, the public predictors and the number of records alone, and so is public.
    `make.make_recipe` makes one, and `rounds.release_statistics` carries it out.
    """

    rows: Rows  # predictors X, n × p, public, and loadings V: v_i q_ij in units of LOADING_UNIT
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
    spiked: bool = False  # outcomes may lie at a spike; the rounds treat these as blank
    presence: "Presence | None" = None  # how many amounts to expect, once the spike's sum is released
    beside: "Beside | None" = None  # how entries of other protected columns enter: last columns of X and V

    @property
    def records(self) -> int:
        """n, the number of records: public."""
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
        """What the recipe has to know of all rows together, in one pass over them."""
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

    def with_presence(self, presence: "Presence") -> "Recipe":
        """The recipe with what the spike's released sum says of which records have an amount."""
        return self._told(presence)

    def afresh(self) -> "Recipe":
        """The recipe as it was before anything was released, to release a table by once more."""
        return self._told(None)

    def _told(self, presence: "Presence | None") -> "Recipe":
        other = replace(self, presence=presence)
        vars(other)["facts"] = self.facts  # of all rows, whatever they have
        return other

    @property
    def entries(self) -> int:
        """How many columns of the matrix stand for protected values."""
        return 0 if self.beside is None else len(self.beside.scale)

    def with_entries(self, entries: Array) -> "Recipe":
        """The recipe with protected columns' own entries for stand-ins: what rounds sum; confidential.

        For rows in memory only.

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
        """How a reader of outcomes makes loadings: none is larger than the noise is made for."""
        capping = self.rows.capping
        if capping is None:
            raise SettingError("The loadings of these rows are not settled yet.")
        return replace(capping, most=self.bound)

    def choose_some(self, rows: int) -> "Recipe":
        """A recipe for a few rows of a long table, with noise as large in relation to the sampling error.

        The recipe itself if the table has at most twice as many rows, or if a few would miss rare ones.
        """
        if self.records <= 2 * rows:
            return self
        matrix = self.matrix[choose_rows(self.records, rows)]
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
            rho = find_rho((1 - self.margin_share) * self.epsilon, self.delta)
            rounds = find_epsilon(float(rho) * times**2, self.delta)
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
        rho = find_rho(float(total - counts), self.delta)
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
    """Sums over a leaf, merged into those of all rows; in a recipe the last three are divided by n."""

    bound: int
    reach: NDArray[np.int64]  # Σ|V_ij|
    every: NDArray[np.int64]  # ΣV_ij
    constant: Array  # Q'1
    gram: Array  # Q'diag(v)Q
    squares: Array  # Q'diag(v²)Q

    def merge(self, other: "Facts") -> "Facts":
        """The facts of the rows of both."""
        return Facts(max(self.bound, other.bound), *add_parts([self[1:], other[1:]]))


def _find_facts(basis: Array, noise: Noise, public: int, part: Part) -> Facts:
    """The facts of one leaf. `public` is the number of columns that do not stand for protected values."""
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
        """The chance that records with these predictors have an amount."""
        return chance_left(self.lines, matrix)


def chance_left(lines: Iterable[Array], matrix: Matrix) -> PerRecord:
    """The chance to be of none of the kinds whose logits these lines give, one after the other."""
    left = np.ones(len(matrix))
    for line in lines:
        left = left * expit(-(matrix @ line))
    return left


def choose_rows(records: int, most: int = _ROWS_TO_CHOOSE_BY) -> Chosen:
    """Some rows, spread over the table by the golden ratio: every k-th would follow a table's own period."""
    return np.arange(records) if records <= most else _spread_rows(records, most)


@lru_cache(maxsize=8)
def _spread_rows(records: int, most: int) -> Chosen:
    """The rows of `choose_rows`, kept because each leaf asks for them again."""
    places = np.arange(most) * ((5**0.5 - 1) / 2) % 1
    chosen = np.unique((places * records).astype(np.intp))
    chosen.flags.writeable = False
    return chosen
