"""The probability that a record lies in the ranges of several columns (docs/maths.md, "A box of ranges").

Links that do not read each other are independent given public predictors: their probabilities multiply. Those
that do are taken together, a piece at a time:

- one column that others read, all normal on their own scales and linear in it on its scale: one integral of a
  log-concave function, by Gauss' rule, to about ten digits (`log_star_mass`);
- anything else by sequential simulation (Geweke, Hajivassiliou, Keane): a column that is read is drawn inside
  its range, later ones given what was drawn, and the masses on the way are multiplied and averaged.

Formal guarantees
-----------------
Of a record nothing is read but its ranges and its public predictors: a link's matrix is used without the
columns that protected values make, which are made anew of values that are integrated over or drawn. Points of
a simulation are the same for every record, every draw and every table. Its ends hold together for all records
and draws but for a probability of about `MISSED` over the choice of points.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import cast

import numpy as np
from scipy.special import stdtrit

from hedgerow.arrays import Array, LogMass, Matrix
from hedgerow.errors import SettingError
from hedgerow.models.base import Confining, Model, Parameters
from hedgerow.models.exact import Lognormal, Normal, Regression
from hedgerow.models.scored import Interval
from hedgerow.numerics.normal_mass import log_interval_mass
from hedgerow.randomness import Key
from hedgerow.tables.chain import ChainDesign
from hedgerow.tables.design import Column, Design
from hedgerow.tables.predictors import settle_predictors

MISSED = 0.01  # chance that the ends of a simulation miss anywhere
_REACH = 8.5  # standard deviations about the mode beyond which a log-concave integrand is nothing
_CLOSE = 0.02  # half the distance between the ends of a simulated log mass that is close enough
_PAIRS = (16, 64, 256)  # pairs of points, one pair a stratum, tried in turn
_CELLS = 1 << 21
_HALF_LOG_TWO_PI = 0.5 * np.log(2.0 * np.pi)


@dataclass(frozen=True, repr=False)
class Joint:
    """The links of a chain, which of them have ranges, and how they hang together; public but for designs."""

    models: tuple[Model, ...]
    design: Design
    ranged: tuple[bool, ...]

    @property
    def simulated(self) -> bool:
        """Whether the probability of some piece is estimated."""
        return any(len(piece) > 1 and self._root(piece) is None for piece in self.pieces())

    def pieces(self) -> list[list[int]]:
        """Links with a range and those that they read, in order, as far as they hang together."""
        reads = [self._reads(place) for place in range(len(self.models))]
        pieces: list[list[int]] = []
        for place in reversed(range(len(self.models))):
            touched = [piece for piece in pieces if place in piece]
            if not touched and not self.ranged[place]:
                continue
            joined = sorted({place, *reads[place]}.union(*touched))
            pieces = [piece for piece in pieces if piece not in touched] + [joined]
        return _join(pieces)

    def log_mass_ends(
        self, parameters: Sequence[Parameters], interval: Interval, records: slice
    ) -> tuple[LogMass, LogMass]:
        """A lower and an upper bound of the log probability; the same where nothing is simulated."""
        shape = len(next(iter(parameters[0].values()))), len(interval[records].inside)
        low, high = np.zeros(shape), np.zeros(shape)
        for piece in self.pieces():
            if len(piece) == 1:
                (place,) = piece
                link = self.design.links[place]
                found = self.models[place].log_mass(link, parameters[place], interval.link(place), records)
                ends = found, found
            elif (root := self._root(piece)) is not None:
                found = self._integrate(piece, root, parameters, interval, records)
                ends = found, found
            else:
                ends = self._simulate(piece, parameters, interval, records)
            low, high = low + ends[0], high + ends[1]
        return low, high

    def _reads(self, place: int) -> list[int]:
        outcomes = [link.outcome for link in self.design.links]
        found = []
        for name in self.design.links[place].secret:
            if outcomes[:place].count(name) != 1:
                raise SettingError(
                    f"'{outcomes[place]}' reads '{name}', which is not one column of numbers: the "
                    f"probability of a range on '{outcomes[place]}' is not known. Leave '{name}' out "
                    "of its formula, or the range out of the box."
                )
            found.append(outcomes.index(name))
        return found

    def _root(self, piece: Sequence[int]) -> int | None:
        """The one column that the others of a piece read, where all are normal and linear in it."""
        read = {before for place in piece for before in self._reads(place)}
        if len(read) != 1:
            return None
        (root,) = read
        leaves = [place for place in piece if place != root]
        model, name = self.models[root], self.design.links[root].outcome
        if type(model) not in (Normal, Lognormal):
            return None
        for place in leaves:
            link = self.design.links[place]
            if not isinstance(self.models[place], Regression) or not _is_linear(link, name, type(model)):
                return None
        return root

    def _integrate(
        self,
        piece: Sequence[int],
        root: int,
        parameters: Sequence[Parameters],
        interval: Interval,
        records: slice,
    ) -> LogMass:
        model, link = cast(Regression, self.models[root]), self.design.links[root]  # `_root` has seen to it
        mean, sigma = _fitted(link, parameters[root], records)
        low, high = ((end - mean) / sigma for end in _ends(model, interval.link(root)[records]))
        unit = model.outcome(np.ones(1))[
            0
        ]  # at which the response is 1, so that columns are their own slopes
        leaves = []
        for place in piece:
            if place == root:
                continue
            leaf, own = cast(Regression, self.models[place]), self.design.links[place]
            beta, (base, scale) = parameters[place]["beta"], _fitted(own, parameters[place], records)
            places, columns = self._encode(own, {link.outcome: np.full(len(mean.T), unit)}, records, 1)
            slope = beta[:, places] @ columns.T
            ends = _ends(leaf, interval.link(place)[records])
            lower, upper = ((end - base - slope * mean) / scale for end in ends)
            leaves.append((lower, upper, slope * sigma / scale))
        return log_star_mass(low, high, leaves)

    def _simulate(
        self, piece: Sequence[int], parameters: Sequence[Parameters], interval: Interval, records: slice
    ) -> tuple[LogMass, LogMass]:
        draws, count = len(next(iter(parameters[0].values()))), len(interval[records].inside)
        cells = draws * self.design.records
        low, high = np.empty((draws, count)), np.empty((draws, count))
        for pairs in _PAIRS:
            quantile = float(stdtrit(pairs, 1 - MISSED / (2 * cells)))
            step = max(1, _CELLS // (2 * pairs * count))
            for start in range(0, draws, step):
                some = slice(start, start + step)
                taken = [{name: value[some] for name, value in own.items()} for own in parameters]
                logs = self._log_products(piece, taken, interval, records, pairs)
                low[some], high[some] = _bound_mean(logs, quantile)
            with np.errstate(invalid="ignore"):
                if np.nanmax(high - low) <= 2 * _CLOSE:
                    break
        return low, high

    def _log_products(
        self,
        piece: Sequence[int],
        parameters: Sequence[Parameters],
        interval: Interval,
        records: slice,
        pairs: int,
    ) -> Array:
        """By draw, record, pair and its two points: the log of the product of the masses along the way."""
        draws, count, points = (
            len(next(iter(parameters[0].values()))),
            len(interval[records].inside),
            2 * pairs,
        )
        read = sorted({before for place in piece for before in self._reads(place)})
        shares = dict(zip(read, _points(pairs, len(read)), strict=True))
        drawn: dict[str, Array] = {}
        total = np.zeros((draws, count * points))
        for place in piece:
            model, link, own = self.models[place], self.design.links[place], parameters[place]
            wide = _repeat(interval.link(place)[records], points)
            designs = self._designs(link, drawn, records, points, draws)
            values = np.empty((draws, count * points))
            for draw, design in enumerate(designs):
                one = {name: value[draw : draw + 1] for name, value in own.items()}
                if self.ranged[place]:
                    total[draw] += model.log_mass(design, one, wide, slice(None))[0]
                if place in shares:
                    values[draw] = _draw_inside(model, design, one, wide, np.tile(shares[place], count))
            if place in shares:
                drawn[link.outcome] = values
        return total.reshape(draws, count, pairs, 2)

    def _designs(
        self, link: Design, drawn: dict[str, Array], records: slice, points: int, draws: int
    ) -> Iterator[Design]:
        """The link's design at the values that were drawn, draw by draw; one for all where it reads none."""
        hidden = np.isin(np.arange(len(link.columns)), list(link.hidden))
        matrix = np.repeat(np.where(hidden, 0.0, link.matrix[records]), points, axis=0)
        public = {
            name: Column(
                np.repeat(column.codes[records], points),
                column.levels,
                None if column.numbers is None else np.repeat(column.numbers[records], points),
            )
            for name, column in link.public.items()
        }
        plain = replace(
            link, values=np.ones(len(matrix)), matrix=matrix, public=public, present=None, notes=()
        )
        if not link.secret:
            for _ in range(draws):
                yield plain
            return
        flat = {name: drawn[name].ravel() for name in link.secret}
        places, columns = self._encode(link, flat, records, points, draws)
        for block in np.split(columns, draws):
            own = matrix.copy()
            own[:, places] = block
            yield replace(plain, matrix=own)

    def _encode(
        self, link: Design, values: Mapping[str, Array], records: slice, points: int, draws: int = 1
    ) -> tuple[list[int], Matrix]:
        """What values of protected predictors make of the columns that read them."""
        given: dict[str, Array] = {}
        for name, column in values.items():
            levels = next(each.levels for each in self.design.links if each.outcome == name)
            given[name] = column if levels is None else np.asarray(levels)[column.astype(np.intp)]
        public = [name for name in link.predictors if name not in link.secret and _multiplies(link, name)]
        if public:
            if not isinstance(self.design, ChainDesign) or self.design.table is None:
                raise SettingError(f"'{link.outcome}': the public columns of its formula are not at hand.")
            settled = settle_predictors(self.design.table, public, link.classes)[0].frame.to_pandas()
            rows = np.tile(np.repeat(np.arange(self.design.records)[records], points), draws)
            given |= {name: settled[name].iloc[rows].array for name in public}
        return link.encode_secret(given)


def log_star_mass(low: Array, high: Array, leaves: Sequence[tuple[Array, Array, Array]]) -> LogMass:
    """log P(low ≤ t ≤ high and lower_j ≤ κ_j t + e_j ≤ upper_j for all j), t and e_j standard normal.

    `leaves` holds lower, upper and κ. The integrand φ(t) Π_j P(e_j inside) is log-concave with a curvature
    between 1 and 1 + Σκ², so that nothing lies far from its mode, and Gauss' rule needs points as wide as it
    is in units of the smallest feature.
    """
    steep = np.sqrt(1 + sum(slope**2 for _, _, slope in leaves))
    if len(leaves) == 1 and np.isneginf(low).all() and np.isposinf(high).all():
        lower, upper, _ = leaves[0]
        return log_interval_mass(lower / steep, upper / steep)  # the sum of two normals
    mode = np.clip(0.0, low, high)
    for _ in range(4 + 2 * len(leaves)):  # of the integrand with squared distances for log masses
        slope, bend = mode.copy(), np.ones_like(mode)
        for lower, upper, own in leaves:
            away = np.maximum(lower - own * mode, 0.0) + np.minimum(upper - own * mode, 0.0)
            slope -= own * away
            bend += np.where(away != 0, own**2, 0.0)
        mode = np.clip(mode - slope / bend, low, high)
    low, high = np.maximum(low, mode - _REACH), np.minimum(high, mode + _REACH)
    width = (high - low) * steep
    needed = np.ceil(2 ** (np.ceil(2 * np.log2(np.maximum(8 + 1.8 * width.max(axis=0), 12))) / 2))
    found = np.empty(low.shape)
    for points in np.unique(needed):
        chosen = needed == points
        some = [tuple(each[:, chosen] for each in leaf) for leaf in leaves]
        found[:, chosen] = _gauss(low[:, chosen], high[:, chosen], some, int(points))
    return found


def _gauss(low: Array, high: Array, leaves: Sequence[tuple[Array, ...]], points: int) -> Array:
    half, middle = (high - low) / 2, (high + low) / 2
    total = np.full(low.shape, -np.inf)
    for node, weight in zip(*_legendre(points), strict=True):
        t = middle + half * node
        part = np.log(weight) - t * t / 2
        for lower, upper, slope in leaves:
            part = part + log_interval_mass(lower - slope * t, upper - slope * t)
        total = np.logaddexp(total, part)
    with np.errstate(divide="ignore"):
        return np.asarray(total + np.log(half) - _HALF_LOG_TWO_PI)


@cache
def _legendre(points: int) -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return nodes, weights


def _join(pieces: list[list[int]]) -> list[list[int]]:
    """Pieces that share a link are one."""
    done: list[list[int]] = []
    for piece in pieces:
        apart = [other for other in done if not set(other) & set(piece)]
        done = [*apart, sorted({*piece}.union(*(other for other in done if other not in apart)))]
    return sorted(done)


def _is_linear(link: Design, name: str, kind: type[Model]) -> bool:
    """Whether every term that reads a column has it once, on the scale on which its errors are normal."""
    alias = link.aliases.get(name, name)
    plain = alias if kind is Normal else f"log({alias})"
    for term in link.spec.terms:
        using = [factor.expr for factor in term.factors if re.search(rf"\b{re.escape(alias)}\b", factor.expr)]
        if using not in ([], [plain]):
            return False
    return True


def _multiplies(link: Design, name: str) -> bool:
    """Whether a public column stands in a term together with a protected one."""
    alias = link.aliases.get(name, name)
    secret = {link.aliases.get(other, other) for other in link.secret}
    return any(alias in names and secret & names for names in link.spec.term_variables.values())


def _fitted(link: Design, parameters: Parameters, records: slice) -> tuple[Array, Array]:
    """The mean without what protected predictors add, and σ."""
    shown = [place for place in range(len(link.columns)) if place not in link.hidden]
    mean = parameters["beta"][:, shown] @ link.matrix[records][:, shown].T
    return mean, parameters["sigma"][:, None]


def _ends(model: Regression, interval: Interval) -> tuple[Array, Array]:
    return model._end(interval.lower), model._end(interval.upper)


def _repeat(interval: Interval, points: int) -> Interval:
    return Interval(*(np.repeat(part, points) for part in (interval.lower, interval.upper, interval.inside)))


@cache
def _points(pairs: int, dimensions: int) -> Array:
    """Two points in every stratum of the first coordinate, anywhere in the others; dimensions × points."""
    numbers = Key.from_seed(0).child("box").child(pairs).stream().uniform((dimensions, pairs, 2))
    numbers[0] = (np.arange(pairs)[:, None] + numbers[0]) / pairs
    return np.asarray(numbers.reshape(dimensions, 2 * pairs))


def _draw_inside(
    model: Model, design: Design, parameters: Parameters, interval: Interval, shares: Array
) -> Array:
    """A value of each record's distribution restricted to its range, by its share of the mass below."""
    single = {name: value[0] for name, value in parameters.items()}
    if isinstance(model, Confining):
        return model.predict_inside(design, single, interval, shares)
    upto = replace(interval, lower=np.full_like(interval.lower, -np.inf))
    below, inside = (
        np.exp(model.log_mass(design, parameters, each, slice(None))[0]) for each in (upto, interval)
    )
    numbers = np.clip(below - inside + shares * inside, 2.0**-53, 1 - 2.0**-53)
    return np.clip(model.predict(design, single, numbers), interval.lower, interval.upper)


def _bound_mean(logs: Array, quantile: float) -> tuple[Array, Array]:
    """Ends of the log of a mean over strata with two points each: Student's t for every one of the means."""
    top = logs.max(axis=(2, 3))
    with np.errstate(all="ignore"):
        values = np.where(np.isneginf(top)[:, :, None, None], 0.0, np.exp(logs - top[:, :, None, None]))
        mean = values.mean(axis=(2, 3))
        error = (
            quantile * np.sqrt(np.sum((values[..., 0] - values[..., 1]) ** 2, axis=2)) / (2 * values.shape[2])
        )
        low, high = (np.log(np.maximum(each, 0.0)) + top for each in (mean - error, mean + error))
    return np.asarray(low), np.asarray(np.minimum(high, 0.0))
