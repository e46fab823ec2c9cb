"""What share of a chain's tables is refused under a weight, before any protected value is looked at.

As for one column (`planned`), a record's share of each link's residual sum of squares has a known law where
the model holds, and these shares are independent. Two things are new: D_o is added over links before the
least ε is taken, and a link may read protected columns, so that a record that lies far out in one column has
a larger leverage in the next. Both are simulated, from public columns and priors alone. One table of the
model has protected columns whose predictors stand for the confidential ones, and some of its records get many
more values, far ones among them by importance sampling. Where a link reads earlier columns on the scale of
their own regressions, leverages do not depend on coefficients and σ; otherwise the prior's σ is taken for
them, and more or fewer tables may be refused than planned.

Tables are simulated leaf by leaf; one in memory goes the same way (`tables.leaves.Held`).

Formal guarantee: what is read is `Design.blank`, means and spreads of public predictors, and the table's
public columns. Random numbers are the same each time, so that the weight is a function of public things.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import ndtri

from hedgerow.arrays import Array
from hedgerow.errors import DataError, SettingError
from hedgerow.mechanism.planned.leverages import KeptLeverages, Leverages, keep_leverages
from hedgerow.mechanism.streamed.merged import LinkSum, merge_leaves, regressions
from hedgerow.models.chain import Chain
from hedgerow.models.exact import Regression
from hedgerow.numerics.renyi import Neighbours
from hedgerow.numerics.triangular import leaf_factor, leverages, weighted_factor
from hedgerow.privacy.settings import Settings
from hedgerow.randomness import Key
from hedgerow.tables.design import Design
from hedgerow.tables.leaves import Leaves, go_over
from hedgerow.tables.table import Table
from hedgerow.threads import Workers

_PLACES = 9  # records that stand for all, evenly by rank of their leverages and as many by size
_CELLS = 200_000  # simulated values
_FEWEST, _MOST = 300, 2000  # for each of these records
_FAR, _BOTH = 3.0, 2.5  # standard deviations of one value that is far out, and of two
_CLEARLY = 20.0  # times the chance allowed, from which it need not be known well


@dataclass(frozen=True, repr=False)
class _PlannedLink:
    """One link as the plan sees it: nothing protected."""

    model: Regression
    gram: Array  # triangular factor of the predictors of a simulated table
    prior: Array  # the prior's rows, as many as coefficients
    own: Array  # predictors of the chosen records in that table
    rows: Array  # predictors of their simulated values, a row each; empty: their own
    share: Array  # of the residual sum of squares, by simulated value
    left: float  # degrees of freedom

    def neighbours(self, weight: float, records: int) -> Neighbours:
        """The fit without the record beside each of its simulated values, at equal weights."""
        factor = weighted_factor(
            np.sqrt(weight) * self.gram, np.zeros(len(self.gram)), start=np.pad(self.prior, (0, 1))
        )[:-1, :-1]
        inverse = solve_triangular(factor, np.eye(len(factor)))
        scaled = self.own @ inverse
        size = np.einsum("ik,ik->i", scaled, scaled)
        without = np.maximum(1 - weight * size, np.finfo(np.float64).tiny)
        if self.rows.size:
            moved = (self.rows @ inverse).reshape(len(scaled), -1, len(factor))
            across = np.einsum("imk,ik->im", moved, scaled)
            spread = np.einsum("imk,imk->im", moved, moved) + weight * across**2 / without[:, None]
        else:
            spread = np.broadcast_to((size / without)[:, None], (len(scaled), len(self.share)))
        share = np.broadcast_to(self.share, spread.shape).ravel()
        spread = spread.ravel()
        squared = share * self.left * (1 + weight * spread)
        shape = self.model.prior.shape + weight * (records - 1) / 2
        rate = weight * self.left / 2 * (1 - share)
        ones = np.ones_like(spread)
        return Neighbours(weight * ones, spread, squared, shape * ones, rate)


@dataclass(frozen=True, repr=False)
class Plan:
    """What the chance of a refusal is computed from, for any weight."""

    settings: Settings
    records: int
    links: tuple[_PlannedLink, ...]
    chosen: Array  # leverages of the records that stand for all, in order
    leverages: Leverages
    likely: Array  # importance weights of the simulated values

    def chance_of_refusal(self, weight: float, refused: float) -> float:
        """About this share of the model's tables, or less, has a record that is priced above the target."""
        settings = self.settings
        pairs = Neighbours.join([link.neighbours(weight, self.records) for link in self.links])
        epsilon = settings.epsilon or 0.0
        terms: dict[str, Any] = {"delta": settings.delta, "copies": settings.copies}
        above = pairs.perhaps_above(epsilon, **terms)
        chance = self._add_up(above)
        if chance > _CLEARLY * refused or not above.any():
            return chance
        rows = np.flatnonzero(above)
        above[rows] = ~(pairs.of(rows).by_record(**terms) <= epsilon)
        return self._add_up(above)

    def _add_up(self, above: Any) -> float:
        by_place = (above.reshape(len(self.chosen), -1) * self.likely).mean(axis=1)
        return self.leverages.add_up(self.chosen, np.minimum(by_place, 1.0))


def plan_links(settings: Settings, leaves: Leaves, workers: Workers) -> Plan:
    """Simulate what the plan needs of the protected columns."""
    chain = settings.model
    if not isinstance(chain, Chain) or settings.target is None:
        raise SettingError("A plan for several columns needs a target and several columns.")
    key = Key.from_seed(0)  # the same each time: the weight is not to follow chance
    records, count = leaves.records, len(chain.models)
    simulated = _Simulated(chain, records, key.child("table"))
    (facts,) = go_over(workers, _Describe(chain), leaves, [0], stage="plan")
    factors = merge_leaves(regressions(chain), go_over(workers, _Factor(simulated), leaves, stage="plan"))
    grams = [factor.said[:-1, :-1] for factor in factors]
    public_factors = [_factor_public(gram, fact) for gram, fact in zip(grams, facts, strict=True)]
    task = _KeepLeverages(simulated, [fact.public for fact in facts], public_factors)
    ends = list(go_over(workers, task, leaves, stage="plan"))
    every = KeptLeverages(leaves, workers, ends)
    sizes = np.linspace(min(low for low, _ in ends), max(high for _, high in ends), _PLACES)
    by_rank = np.linspace(0, records - 1, _PLACES).astype(int).tolist()
    by_size = [min(below, records - 1) for below in every.count_below(sizes)]
    chosen = np.unique(every.ordered([*by_rank, *by_size]))
    places = every.find(chosen)
    many = int(np.clip(_CELLS // (len(places) * count), _FEWEST, _MOST))
    normal, likely = _draw_far(many, count, key.child("far"))
    # Here, and not by the workers: what leaves have of these rows are public cells, and rows do not travel.
    own, moved = _try_out(simulated, leaves, places, normal)
    links = []
    for place, (model, fact, gram) in enumerate(zip(regressions(chain), facts, grams, strict=True)):
        left = float(max(records - len(gram), 2))
        rest = 2 * key.child("rest").child(place).stream().gamma((left - 1) / 2, many)
        square = normal[:, place] ** 2
        rows = moved[place] if fact.secret else np.empty((0, len(gram)))
        share = square / (square + rest)
        links.append(_PlannedLink(model, gram, fact.prior, own[place], rows, share, left))
    return Plan(settings, records, tuple(links), chosen, every, likely)


@dataclass(frozen=True, repr=False)
class _Facts:
    """What is known of a link's predictors: public."""

    prior: Array  # rows of the prior, as many as coefficients
    public: list[int]  # the columns that no protected value makes
    secret: bool  # whether there are others


@dataclass(frozen=True, repr=False)
class _Simulated:
    """One table of the model, leaf by leaf: its protected columns are simulated, with these errors."""

    chain: Chain
    records: int
    key: Key

    def errors(self, rows: slice) -> Array:
        """Errors of some consecutive records in all links."""
        count = len(self.chain.models)
        numbers = slice(rows.start * count, rows.stop * count)
        uniforms = self.key.stream().part(numbers, self.records * count)
        return np.asarray(ndtri(uniforms), dtype=np.float64).reshape(-1, count)

    def matrices(self, leaves: Leaves, leaf: int) -> list[Array]:
        """The predictors of each link in the rows of a leaf."""
        errors = self.errors(leaves.rows(leaf))
        return _simulate(self.chain, leaves.design(leaf), leaves.table(leaf), errors)


@dataclass(frozen=True, repr=False)
class _Describe:
    """What is known of each link's predictors, from any one leaf."""

    chain: Chain

    def __call__(self, leaves: Leaves, leaf: int) -> list[_Facts]:
        facts = []
        for model, link in zip(regressions(self.chain), leaves.design(leaf).links, strict=True):
            _, deviation = model.prior.moments(link)
            prior = model.prior.contrasts(link) / deviation[:, None]
            public = [place for place in range(len(link.columns)) if place not in link.hidden]
            facts.append(_Facts(prior, public, bool(link.secret)))
        return facts


@dataclass(frozen=True, repr=False)
class _Factor:
    """The factors of a leaf's simulated predictors."""

    simulated: _Simulated

    def __call__(self, leaves: Leaves, leaf: int) -> list[LinkSum]:
        matrices = self.simulated.matrices(leaves, leaf)
        records = len(matrices[0])
        zeros, ones = np.zeros(records), np.ones(records)
        return [LinkSum(leaf_factor(matrix, zeros, ones), float(records), records) for matrix in matrices]


@dataclass(frozen=True, repr=False)
class _KeepLeverages:
    """Keep the leverages of a leaf that public columns give, summed over links."""

    simulated: _Simulated
    public: list[list[int]]
    factors: list[Array]

    def __call__(self, leaves: Leaves, leaf: int) -> tuple[float, float]:
        matrices = self.simulated.matrices(leaves, leaf)
        parts = zip(matrices, self.public, self.factors, strict=True)
        every = np.sum([leverages(matrix[:, public], R) for matrix, public, R in parts], axis=0)
        return keep_leverages(leaves, leaf, every)


def _factor_public(gram: Array, facts: _Facts) -> Array:
    """The factor of the columns that no protected value makes, and of the prior's rows of these."""
    factor = weighted_factor(gram[:, facts.public], np.zeros(len(gram)))
    return weighted_factor(facts.prior[:, facts.public], np.zeros(len(facts.prior)), start=factor)


def _try_out(
    simulated: _Simulated, leaves: Leaves, places: NDArray[np.intp], normal: Array
) -> list[list[Array]]:
    """By link, predictors of some records in the simulated table; and with each of these errors instead."""
    many, size = len(normal), leaves.rows(0).stop
    own: dict[int, list[Array]] = {}
    moved: dict[int, list[Array]] = {}
    for leaf in np.unique(places // size).tolist():
        design, table, errors = leaves.design(leaf), leaves.table(leaf), simulated.errors(leaves.rows(leaf))
        for place in places[places // size == leaf].tolist():
            row = np.array([place % size])
            own[place] = _simulate(simulated.chain, design, table, errors[row], row)
            moved[place] = _simulate(simulated.chain, design, table, normal, np.repeat(row, many))
    return [
        [np.concatenate([found[place][link] for place in places.tolist()]) for link in range(errors.shape[1])]
        for found in (own, moved)
    ]


def _simulate(
    chain: Chain, design: Design, table: Table, errors: Array, rows: NDArray[np.intp] | None = None
) -> list[Array]:
    """The predictors of each link, in all rows or some, if protected columns have these errors there.

    Of the design's own links the means and spreads are read, which it has of public columns alone.
    """
    blank = (design if rows is None else design.take(rows)).blank()
    outcomes = [link.outcome for link in blank.links]
    public = [name for name in blank.predictors if name not in outcomes]
    made: Table | None = None
    if public:
        made = table.select(public) if rows is None else table.select(public).take(rows)
    matrices = []
    for place, (model, link) in enumerate(zip(regressions(chain), blank.links, strict=True)):
        matrix = link.matrix
        if link.secret and made is not None:
            try:
                matrix = link.encode(made).matrix
            except DataError:
                raise SettingError(
                    f"PlannedWeights: the formula of '{link.outcome}' takes a transform of protected columns "
                    "that is not finite for every value their families have. Use families of positive values "
                    "for logarithms and roots, or weights of your own (weights=, --weights)."
                ) from None
        matrices.append(matrix)
        mean, _ = model.prior.moments(design.links[place])
        centre = np.linalg.solve(model.prior.contrasts(design.links[place]), mean)
        with np.errstate(over="ignore"):
            values = model.outcome(matrix @ centre + model.prior.residual * errors[:, place])
        column = Table.of(table.like({link.outcome: values}))
        made = column if made is None else made.beside(column)
    return matrices


def _draw_far(many: int, count: int, key: Key) -> tuple[Array, Array]:
    """Errors of all links, of which one or two are often far out, and how likely they are beside that.

    A mixture of plain errors, of those with one value of a larger spread, and with two: the ratio of its
    density to that of plain errors is a mean of products over values, and never below the plain ones' share.
    """
    parts = (0.2, 0.6, 0.2) if count > 1 else (0.2, 0.8, 0.0)
    normal = key.child("normal").stream().normal((many, count))
    places = np.argsort(key.child("which").stream().uniform((many, count)), axis=1)
    kind = (np.arange(many) + 0.5) / many  # as many of each kind as it has a share
    one = kind > parts[0]
    two = kind > parts[0] + parts[1]
    normal[one & ~two, places[one & ~two, 0]] *= _FAR
    for place in range(min(2, count)):
        normal[two, places[two, place]] *= _BOTH
    far, both = (np.exp(normal**2 / 2 * (1 - 1 / sd**2)) / sd for sd in (_FAR, _BOTH))
    pairs = max(count * (count - 1) / 2, 1.0)
    ratio = parts[0] + parts[1] * far.mean(axis=1)
    ratio += parts[2] * (both.sum(axis=1) ** 2 - (both**2).sum(axis=1)) / 2 / pairs
    return normal, 1 / ratio
