"""The probability that a record lies in the ranges of several columns (docs/maths.md, "A box of ranges").

Links that do not read each other are independent given public predictors: their probabilities multiply. Those
that do are taken together, a piece at a time:

- one column that others read, all normal on their own scales and linear in it on its scale: one integral of a
  log-concave function, by Gauss' rule, to about ten digits (`log_star_mass`);
- one column that others read, with declared classes: the sum over these;
- one column that others read, with a density of any kind: Gauss' rule over its range as far as it has mass at
  one of the draws, with the distance from rules of fewer points as its error, and what lies beyond at each
  draw added to the upper end;
- anything else by sequential simulation (Geweke, Hajivassiliou, Keane): columns that are read are drawn
  inside their ranges at two of the draws, one given the other, and masses of those that read them averaged,
  at every draw with the ratio of its density to that with which a point was drawn.

Formal guarantees
-----------------
Of a record nothing is read but its ranges and its public predictors: a link's matrix is used without the
columns that protected values make, which are made anew of values that are integrated over or drawn. Points of
a simulation come from the same random numbers for every record, draw and table. Its ends hold together for
all records and draws but for a probability of about `MISSED` over the choice of these numbers.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from hedgerow.arrays import Array, LogMass, Matrix
from hedgerow.errors import SettingError
from hedgerow.models.base import Confining, Model, Parameters
from hedgerow.models.exact import Lognormal, Normal, Regression
from hedgerow.models.families.classes import Classes
from hedgerow.models.scored import Interval
from hedgerow.numerics.normal_mass import gauss_rule, log_star_mass
from hedgerow.randomness import Key
from hedgerow.tables.chain import ChainDesign
from hedgerow.tables.design import Column, Design
from hedgerow.tables.predictors import settle_predictors

Rows = NDArray[np.intp]

MISSED = 0.01  # chance that the ends of a simulation miss anywhere
_CLOSE = 0.02  # half the distance between the ends of a simulated log mass that is close enough
_NODES = (20, 40, 80, 160)  # of a rule, tried in turn
_CUT = 1e-9  # share of a range's mass that a rule leaves out at either end, at the draw it is laid out for
_DRAWS = 100_000  # draws that the ends hold for together: they may come in blocks
_PAIRS = (64, 256, 1024)  # pairs of points, one pair a stratum, tried in turn
_CELLS = 1 << 22  # draws × points that are held at a time
_FREEDOMS = np.geomspace(1, 2048, 100)  # between them Student's t is interpolated, from above
_ROUNDED = 1e-10  # of a rule's sum, more than arithmetic loses


@dataclass(frozen=True, repr=False)
class Joint:
    """The links of a chain, which of them have ranges, and how they hang together; public but for designs."""

    models: tuple[Model, ...]
    design: Design
    ranged: tuple[bool, ...]

    @property
    def simulated(self) -> bool:
        """Whether the probability of some piece is estimated from random points."""
        return any(
            len(piece) > 1
            and self._root(piece) is None
            and self._classes(piece) is None
            and not self._has_rule(piece)
            for piece in self.pieces()
        )

    def pieces(self) -> list[list[int]]:
        """Links with a range and those that they read, in order, as far as they hang together."""
        pieces: list[list[int]] = []
        for place in reversed(range(len(self.models))):
            touched = [piece for piece in pieces if place in piece]
            if not touched and not self.ranged[place]:
                continue
            joined = sorted({place, *self._reads(place)}.union(*touched))
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
            elif (classes := self._classes(piece)) is not None:
                found = self._add_up(piece, classes, parameters, interval, records)
                ends = found, found
            else:
                ends = self._average(piece, parameters, interval, records)
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
        read = self._read(piece)
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
        rows = np.arange(self.design.records)[records]
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
            places, columns = self._encode(own, {link.outcome: np.full(len(mean.T), unit)}, rows, 1)
            slope = beta[:, places] @ columns.T
            ends = _ends(leaf, interval.link(place)[records])
            lower, upper = ((end - base - slope * mean) / scale for end in ends)
            leaves.append((lower, upper, slope * sigma / scale))
        return log_star_mass(low, high, leaves)

    def _classes(self, piece: Sequence[int]) -> Array | None:
        """The classes of the one column that the others of a piece read, where it has such."""
        read = self._read(piece)
        domain = self.models[read[0]].domain
        if len(read) != 1 or not isinstance(domain, Classes):
            return None
        return np.array(domain.places(self.design.links[read[0]]))

    def _add_up(
        self,
        piece: Sequence[int],
        classes: Array,
        parameters: Sequence[Parameters],
        interval: Interval,
        records: slice,
    ) -> LogMass:
        """The sum over classes of the probability of each, times those of the ranges that read it."""
        rows, (read,) = np.arange(self.design.records)[records], self._read(piece)
        inside = interval.link(read)[records]
        total: Array = np.full((len(next(iter(parameters[0].values()))), len(rows)), -np.inf)
        for one in classes:
            values = np.full(len(rows), one)
            part = np.where((inside.lower <= values) & (values <= inside.upper), 0.0, -np.inf)
            drawn = {self.design.links[read].outcome: values}
            for place in piece:
                model, own = self.models[place], parameters[place]
                if place == read:
                    design = replace(self._spread(self.design.links[place], {}, rows, 1), values=values)
                    part = part + model.log_lik(design, own, slice(None))
                else:
                    design = self._spread(self.design.links[place], drawn, rows, 1)
                    wide = _repeat(interval.link(place), rows, 1)
                    part = part + model.log_mass(design, own, wide, slice(None))
            total = np.logaddexp(total, part)
        return np.minimum(total, 0.0)

    def _average(
        self, piece: Sequence[int], parameters: Sequence[Parameters], interval: Interval, records: slice
    ) -> tuple[LogMass, LogMass]:
        """By points at which columns that are read are put, more of them where they are too few."""
        rows, read = np.arange(self.design.records)[records], self._read(piece)
        draws, todo = len(next(iter(parameters[0].values()))), np.arange(len(rows))
        low, high = np.empty((draws, len(rows))), np.empty((draws, len(rows)))
        missed = MISSED / (2 * max(draws, _DRAWS) * self.design.records)
        by_rule = self._has_rule(piece)
        first = self.models[read[0]].domain
        smooth = not first.atoms or first.support.spike is not None
        for size in _NODES if by_rule else _PAIRS:
            shares = _nodes(size)[None, :] if by_rule else _points(size, len(read), stratified=smooth)
            for some in np.array_split(todo, np.ceil(shares.shape[1] * draws * len(todo) / _CELLS)):
                logs = self._log_products(piece, parameters, interval, rows[some], shares)
                if by_rule:
                    beyond = self._beyond(read[0], parameters[read[0]], interval, rows[some])
                    low[:, some], high[:, some] = _bound_rule(logs, size, beyond)
                else:
                    pairs = logs.reshape(*logs.shape[:2], size, 2)
                    low[:, some], high[:, some] = _bound_mean(pairs, missed)
            with np.errstate(invalid="ignore"):  # a mass of zero has no distance between its ends
                todo = todo[(high[:, todo] - low[:, todo] > 2 * _CLOSE).any(axis=0)]
            if not todo.size:
                break
        return low, high

    def _log_products(
        self,
        piece: Sequence[int],
        parameters: Sequence[Parameters],
        interval: Interval,
        records: Rows,
        shares: Array,
    ) -> Array:
        """By draw, record and point: the log of what is averaged.

        Of a simulation, values of the columns that are read are drawn inside their ranges at two of the
        draws, in turn, and serve all draws: each point has its density at a draw over that with which it was
        drawn, times the masses of the columns that nobody reads. Of a rule they are laid out over the range.
        """
        draws, count, points = len(next(iter(parameters[0].values()))), len(records), shares.shape[1]
        bases = 0, draws // 2
        at = np.tile(np.arange(points) // 2 % 2, count)  # which of them a point is drawn at
        given = dict(zip(self._read(piece), shares, strict=True))
        drawn: dict[str, Array] = {}
        total, proposed = np.zeros((draws, count * points)), np.zeros((2, count * points))
        for place in piece:
            model, own = self.models[place], parameters[place]
            wide = _repeat(interval.link(place), records, points)
            design = self._spread(self.design.links[place], drawn, records, points)
            if place not in given:
                total += model.log_mass(design, own, wide, slice(None))
                continue
            values: Array = np.empty(count * points)
            numbers = np.tile(given[place], count)
            if self._has_rule(piece):
                one = {name: value[draws // 2 : draws // 2 + 1] for name, value in own.items()}
                values, steps = _lay_out(model, design, one, wide, numbers)
                total += model.log_lik(replace(design, values=values), own, slice(None)) + np.log(steps)
                drawn[design.outcome] = values
                continue
            for base, draw in enumerate(bases):
                one = {name: value[draw : draw + 1] for name, value in own.items()}
                values[at == base] = _draw_inside(model, design, one, wide, numbers)[at == base]
                proposed[base] -= model.log_mass(design, one, wide, slice(None))[0]
            scored = model.log_lik(replace(design, values=values), own, slice(None))
            total, proposed = total + scored, proposed + scored[list(bases)]
            drawn[design.outcome] = values
        if not self._has_rule(piece):
            total -= np.logaddexp(*proposed) - np.log(2)
        return total.reshape(draws, count, points)

    def _beyond(self, place: int, parameters: Parameters, interval: Interval, records: Rows) -> Array:
        """By draw and record: the probability of the range of a column beyond where a rule is laid out."""
        model, middle = self.models[place], len(next(iter(parameters.values()))) // 2
        wide = _repeat(interval.link(place), records, 1)
        design = self._spread(self.design.links[place], {}, records, 1)
        one = {name: value[middle : middle + 1] for name, value in parameters.items()}
        low, high = _cut(model, design, one, wide)
        inside = replace(wide, lower=low, upper=high)
        whole, part = (
            np.exp(model.log_mass(design, parameters, each, slice(None))) for each in (wide, inside)
        )
        return np.maximum(whole - part, 0.0)

    def _read(self, piece: Sequence[int]) -> list[int]:
        return sorted({before for place in piece for before in self._reads(place)})

    def _has_rule(self, piece: Sequence[int]) -> bool:
        """Whether one column is read, which has a density: an integral in one dimension."""
        read = self._read(piece)
        return len(read) == 1 and not self.models[read[0]].domain.atoms

    def _spread(self, link: Design, drawn: Mapping[str, Array], records: Rows, points: int) -> Design:
        """The link's design with every record at so many points, and values that were drawn in its matrix."""
        if link.crossing is not None:
            return replace(
                link, values=np.ones(len(records) * points), matrix=np.ones((len(records) * points, 1)),
                present=None, notes=(),
                crossing=link.crossing.spread(records, points, self._places_of(link, drawn)),
            )  # fmt: skip
        hidden = np.isin(np.arange(len(link.columns)), list(link.hidden))
        matrix = np.repeat(np.where(hidden, 0.0, link.matrix[records]), points, axis=0)
        if link.secret:
            places, columns = self._encode(link, {name: drawn[name] for name in link.secret}, records, points)
            matrix[:, places] = columns
        public = {
            name: Column(
                np.repeat(column.codes[records], points),
                column.levels,
                None if column.numbers is None else np.repeat(column.numbers[records], points),
            )
            for name, column in link.public.items()
        }
        return replace(
            link, values=np.ones(len(matrix)), matrix=matrix, public=public, present=None, notes=()
        )

    def _places_of(self, link: Design, drawn: Mapping[str, Array]) -> dict[str, NDArray[np.int64]]:
        """Which of their declared levels drawn values are, for the protected predictors of cells."""
        found = {}
        for name, levels in link.declared.items():
            own = next(each.levels for each in self.design.links if each.outcome == name)
            places = drawn[name] if own is not None else np.searchsorted(np.array(levels), drawn[name])
            found[name] = places.astype(np.int64)
        return found

    def _encode(
        self, link: Design, values: Mapping[str, Array], records: Rows, points: int
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
            rows = np.repeat(records, points)
            given |= {name: settled[name].iloc[rows].array for name in public}
        return link.encode_secret(given)


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


def _repeat(interval: Interval, records: Rows, points: int) -> Interval:
    ends = interval.lower, interval.upper, interval.inside
    lower, upper, inside = (np.repeat(end[records], points) for end in ends)
    return Interval(lower, upper, inside)


def _sizes(size: int) -> tuple[int, int, int]:
    """The points of a rule and of two to compare it with, which do not agree by chance."""
    return size, 3 * size // 4, size // 2


@cache
def _nodes(size: int) -> Array:
    """Gauss' points in (0, 1) of these rules."""
    return np.concatenate([(1 + gauss_rule(count)[0]) / 2 for count in _sizes(size)])


def _lay_out(
    model: Model, design: Design, parameters: Parameters, interval: Interval, shares: Array
) -> tuple[Array, Array]:
    """Values at shares of the way through each range, as far as the column has mass there, and their steps.

    Where values are positive, the way goes by their logs.
    """
    low, high = _cut(model, design, parameters, interval)
    if model.domain.support.lower >= 0 and (low > 0).all():
        values = low * (high / low) ** shares
        return values, values * np.log(high / low)
    return low + shares * (high - low), high - low


def _cut(model: Model, design: Design, parameters: Parameters, interval: Interval) -> tuple[Array, Array]:
    """Where a rule begins and ends in each record's range."""
    ends = (np.full(len(interval.lower), end) for end in (_CUT, 1 - _CUT))
    low, high = (_draw_inside(model, design, parameters, interval, end) for end in ends)
    return low, high


def _bound_rule(logs: Array, size: int, beyond: Array) -> tuple[Array, Array]:
    """The rule's sum, give or take its distance from those of fewer points, and what lies beyond it."""
    top, first = logs.max(axis=2), 0
    with np.errstate(all="ignore"):
        values = np.where(np.isneginf(top)[:, :, None], 0.0, np.exp(logs - top[:, :, None]))
        sums = []
        for count in _sizes(size):
            sums.append(values[..., first : first + count] @ (gauss_rule(count)[1] / 2))
            first += count
        error = np.maximum(np.abs(sums[0] - sums[1]), np.abs(sums[0] - sums[2])) + _ROUNDED * sums[0]
        low, high = (np.log(np.maximum(end, 0.0)) + top for end in (sums[0] - error, sums[0] + error))
        high = np.logaddexp(high, np.log(beyond))
    return np.asarray(low), np.asarray(np.minimum(high, 0.0))


@cache
def _points(pairs: int, dimensions: int, *, stratified: bool) -> Array:
    """Pairs in every stratum of the first coordinate, anywhere in the others; dimensions × points.

    Not along a coordinate of single values alone, such as counts: of its strata nearly all would have one
    value, and the few others would tell of the error.
    """
    numbers = Key.from_seed(0).child("box").child(pairs).stream().uniform((dimensions, pairs, 2))
    if stratified:  # a stratum for each of two draws
        numbers[0] = (np.arange(pairs)[:, None] // 2 + numbers[0]) / (pairs / 2)
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


def _bound_mean(logs: Array, missed: float) -> tuple[Array, Array]:
    """Ends of the log of a mean over strata with two points each, missed with this chance at each of both.

    By Student's t, with Satterthwaite's degrees of freedom: where few strata hold all the variance, few. One
    far point may then leave nothing below, so that the lower end is the higher of two, each missed with half
    the chance. The other is of the values cut off at twice their mean, whose mean is below theirs, by the
    empirical Bernstein bound (Maurer and Pontil 2009).
    """
    top, pairs = logs.max(axis=(2, 3)), logs.shape[2]
    chances = stdtrit(_FREEDOMS[:, None], [1 - missed / 2, 1 - missed]).T
    with np.errstate(all="ignore"):
        values = np.where(np.isneginf(top)[:, :, None, None], 0.0, np.exp(logs - top[:, :, None, None]))
        apart = (values[..., 0] - values[..., 1]) ** 2
        spread = apart.sum(axis=2)
        freedom = np.where(spread > 0, spread**2 / np.sum(apart**2, axis=2), pairs)
        below, above = (np.interp(np.log(freedom), np.log(_FREEDOMS), each) for each in chances)
        mean, error = values.mean(axis=(2, 3)), np.sqrt(spread) / (2 * pairs)
        cut = np.minimum(values, 2 * mean[:, :, None, None]).reshape(*mean.shape, -1)
        count, doubt = 2 * pairs, np.log(4 / missed)
        bernstein = cut.mean(axis=2) - np.sqrt(2 * cut.var(axis=2, ddof=1) * doubt / count)
        bernstein -= 7 * 2 * mean * doubt / (3 * (count - 1))
        low, high = np.maximum(mean - below * error, bernstein), mean + above * error
        low, high = (np.log(np.maximum(end, 0.0)) + top for end in (low, high))
    return np.asarray(low), np.asarray(np.minimum(high, 0.0))
