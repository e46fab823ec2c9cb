"""Independent draws of an exact model's posterior restricted to a box (docs/maths.md, "Draws in a box").

    >>> posterior = Posterior(np.eye(1), np.zeros(1), shape=2.0, rate=1.0)
    >>> far = BoxSampler.of(posterior, low=np.array([40.0, 0.5]), high=np.array([41.0, 2.0]))
    >>> far.draw(2, Key.from_seed(1)).beta.round()
    array([[40.],
           [40.]])

With t = 1/σ and (β − mean) t = L x the posterior is t^(2a−1) exp(−b t²) times a standard normal x, restricted
to ends of each x_k that are affine in t and in the x before it. Given t, x is proposed one coordinate after
the other from normals with means μ, each cut to its ends (Botev 2017). The log ratio ψ(x, t; μ) of target and
proposal is convex in μ and jointly concave in (x, t): where its gradient in x vanishes, at a node t_k, the
tangent ψ_k + s_k (t − t_k) is above it for all x and all t. So every node brings a bound with it, and a few
of them make an envelope of t of the kind that adaptive rejection sampling uses.

Formal guarantees
-----------------
A proposal is kept with probability target / envelope, which is at most 1 whatever μ and the nodes are: kept
draws are independent and follow the restricted posterior, up to floating-point arithmetic. There is no number
of proposals after which the sampler gives up.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from hedgerow.arrays import Array
from hedgerow.models.conjugate import Posterior
from hedgerow.numerics.normal_mass import (
    IntervalMoments,
    interval_moments,
    interval_quantile,
    log_interval_mass,
)
from hedgerow.numerics.scoring import Draws
from hedgerow.randomness import Key

_STEPS = 200  # of Newton's method for a node; its bound holds whether or not they suffice
_SMALL = 1e-20  # decrease that Newton's method must promise for another step
_NODES = 60  # at most; their number matters for speed alone
_TIGHT = 0.15  # the envelope of t may hold this much more than the chords below it, on the log scale
_OUTWARD = 1e-9  # a node's bound is rounded up by this much, and more where x is far out
_BATCH = 200_000  # proposals made at a time


@dataclass(frozen=True, repr=False)
class _Target:
    """The restricted posterior in x and t, one order of the coordinates chosen."""

    order: NDArray[np.int64]  # places of the coefficients
    lower: Array  # A: the lower end of x_k is A_k t − (earlier x), B the upper
    upper: Array
    mixing: Array  # L by rows over its diagonal, below the diagonal
    triangle: Array  # L
    exponent: float  # 2a − 1 where that is positive
    leftover: float  # 1 − 2a where that is: t^-leftover is not log-concave, and bounded cell by cell
    rate: float
    sides: tuple[float, float]  # of t

    @classmethod
    def of(cls, posterior: Posterior, low: Array, high: Array) -> "_Target":
        """Coefficients in the order of Genz and Bretz: first the one with the least chance of its side."""
        width = len(posterior.mean)
        sides = float(1 / high[-1]), float(1 / low[-1])
        excess = 2 * posterior.shape - 1
        usual = np.sqrt(max(excess, 1.0) / (2 * posterior.rate))  # the mode of t without the box
        t = float(np.clip(usual, *sides))
        ends = np.array([low[:-1] - posterior.mean, high[:-1] - posterior.mean])
        # Rows of the root of Λ⁻¹, orthogonalised one after the other: Λ itself is never inverted.
        rows = solve_triangular(posterior.factor, np.eye(width))
        triangle, place, shift = np.zeros((width, width)), np.arange(width), np.zeros(width)
        for k in range(width):
            rest = slice(k, width)
            spread = np.linalg.norm(rows[rest], axis=1)
            cut = (ends[:, place[rest]] * t - shift[rest]) / spread
            chosen = k + int(np.argmin(log_interval_mass(cut[0], cut[1])))
            swap = [chosen, k]
            for each in (rows, triangle, place, shift):
                each[[k, chosen]] = each[swap]
            size = np.linalg.norm(rows[k])
            unit = rows[k] / size
            triangle[rest, k] = rows[rest] @ unit
            triangle[k, k] = size
            cut = (ends[:, place[k]] * t - shift[k]) / size
            shift[k + 1 :] += triangle[k + 1 :, k] * interval_moments(cut[:1], cut[1:]).mean
            rows[k + 1 :] -= np.outer(triangle[k + 1 :, k], unit)
        diagonal = np.diag(triangle)
        lower, upper = ends[:, place] / diagonal
        return cls(
            place, lower, upper, np.tril(triangle, -1) / diagonal[:, None], triangle,
            max(excess, 0.0), max(-excess, 0.0), posterior.rate, sides,
        )  # fmt: skip

    @cached_property
    def reach(self) -> Array:
        """How far from zero x can be in the box, coordinate by coordinate."""
        inverse = np.abs(solve_triangular(self.triangle, np.eye(len(self.order)), lower=True))
        farthest = np.maximum(np.abs(self.lower), np.abs(self.upper)) * np.diag(self.triangle)
        return np.asarray(self.sides[1] * (inverse @ farthest))


@dataclass(frozen=True, repr=False)
class _Node:
    """A point of the envelope: ψ ≤ own + rest + slope (t − place) for every x of the box and every t."""

    place: float
    own: float  # log t^(2a−1) exp(−b t²) there; the bound is it and the rest
    rest: float
    slope: float
    centre: Array  # y
    tilt: Array  # μ

    @classmethod
    def at(cls, target: _Target, t: float, near: "_Node | None" = None) -> "_Node":
        """The saddle point of ψ at t, least in μ and largest in x, by Newton's method with halved steps.

        Written in v, the place of L x over L's diagonal, it is the minimum of the convex function
        v'G⁻¹v/2 + Σ h_k(v_k): G = LL' with rows over their diagonal, h_k the entropic barrier of side k. Its
        variables are y, v_k the mean of N(y_k, 1) on its side. Whatever point they end at is a bound, with
        what is left of the gradient in x added to it.
        """
        width = len(target.order)
        unit = target.mixing + np.eye(width)
        low, high = target.lower * t, target.upper * t

        def measure(y: Array) -> tuple[IntervalMoments, Array, float]:
            moments = interval_moments(low - y, high - y)
            x = solve_triangular(unit, y + moments.mean, lower=True, unit_diagonal=True)
            return moments, x, float(x @ x - moments.mean @ moments.mean) / 2 - float(moments.log_mass.sum())

        y = np.clip(np.zeros(width) if near is None else near.centre * (t / near.place), low, high)
        moments, x, value = measure(y)
        last = np.inf
        for _ in range(_STEPS):
            slope = x - unit.T @ moments.mean  # L' times the gradient by v
            curved = 1 / np.maximum(moments.variance, 1e-300) - 1
            factor = cho_factor(np.eye(width) + unit.T @ (curved[:, None] * unit))
            move = cho_solve(factor, -slope)
            gain = -float(move @ slope)
            if gain <= _SMALL or (last < 1e-3 and gain > last / 2):
                break
            step = (unit @ move) * (curved + 1)
            for share in 0.5 ** np.arange(40):
                there = y + share * step
                after, after_x, after_value = measure(there)
                # Near the minimum the value's own rounding hides what a whole step gains.
                if gain < 1e-3 or after_value <= value - 1e-4 * share * gain:
                    break
            else:
                break  # as near as floating point allows
            y, moments, x, value, last = there, after, after_x, after_value, gain
        force = moments.mean
        tilt, x = target.mixing.T @ force, unit.T @ force
        own = target.exponent * np.log(t) - target.rate * t * t
        moved = target.mixing @ x + tilt
        moments = interval_moments(low - moved, high - moved)
        # (P − p)'(v − x − v* + x*) is what the gradient in x can add over the box, and v is bounded by it.
        farthest = np.maximum(np.abs(target.lower), np.abs(target.upper)) * target.sides[1]
        left = np.abs(moments.mean - force) @ (farthest + np.abs(unit @ x) + target.reach + np.abs(x))
        rest = (
            moments.log_mass.sum()
            - tilt @ x
            + tilt @ tilt / 2
            + left
            + _OUTWARD
            + 1e-13 * (x @ x + tilt @ tilt)
        )
        pushed = target.upper * moments.upper_hazard - target.lower * moments.lower_hazard
        slope_t = target.exponent / t - 2 * target.rate * t + pushed.sum()
        return cls(t, float(own), float(rest), float(slope_t), y, tilt)

    @property
    def height(self) -> float:
        """The bound at the node."""
        return self.own + self.rest


@dataclass(frozen=True, repr=False)
class BoxSampler:
    """An envelope of the restricted posterior, and draws by rejection from it; confidential."""

    posterior: Posterior
    low: Array  # of the coefficients and of σ
    high: Array
    target: _Target
    nodes: tuple[_Node, ...]

    @classmethod
    def of(cls, posterior: Posterior, *, low: Array, high: Array) -> "BoxSampler":
        """Nodes at the ends of t and around its mode, then where the envelope is farthest above its chords.

        ψ at its saddle point is concave in t, so that the chords between nodes are below it.
        """
        target = _Target.of(posterior, low, high)
        first, last = target.sides
        mode, spread = np.sqrt(max(target.exponent, 1.0) / (2 * target.rate)), 0.5 / np.sqrt(target.rate)
        places = {first, last, *np.clip(mode + spread * np.array([-1.5, 0.0, 1.5]), first, last)}
        if target.leftover:
            places |= {*np.geomspace(first, last, min(_NODES, 2 + int(np.log2(last / first))))}
        nodes: list[_Node] = []
        for place in sorted(places):
            nodes.append(_Node.at(target, float(place), nodes[-1] if nodes else None))
        while len(nodes) < _NODES:
            place, height, slope = np.array([[node.place, node.height, node.slope] for node in nodes]).T
            meeting = _meetings(nodes)
            top = height[:-1] + slope[:-1] * (meeting - place[:-1])
            above = np.logaddexp(
                _log_integral(height[:-1], top, meeting - place[:-1]),
                _log_integral(top, height[1:], place[1:] - meeting),
            )
            below = _log_integral(height[:-1], height[1:], np.diff(place))
            total = np.logaddexp.reduce(above)
            if total - np.logaddexp.reduce(below) < _TIGHT:
                break
            worst = int(np.argmax(np.exp(above - total) - np.exp(below - total)))
            t = float(meeting[worst])
            if not place[worst] < t < place[worst + 1]:
                break
            nodes.insert(worst + 1, _Node.at(target, t, nodes[worst]))
        return cls(posterior, low, high, target, tuple(nodes))

    def draw(self, draws: int, key: Key) -> Draws:
        """Independent draws."""
        kept: list[tuple[Array, Array]] = []
        found, proposed = 0, 0
        batch = min(draws, _BATCH)
        while found < draws:
            some = self.propose(batch, key.child(proposed))
            kept.append(some)
            found, proposed = found + len(some[1]), proposed + batch
            batch = min(int(1.2 * (draws - found) * (proposed + 1) / (found + 1)) + 100, _BATCH)
        beta, sigma = (np.concatenate(parts)[:draws] for parts in zip(*kept, strict=True))
        return Draws(beta, sigma)

    def propose(self, count: int, key: Key) -> tuple[Array, Array]:
        """What is kept of some proposals."""
        target, nodes = self.target, self.nodes
        edges = np.array([target.sides[0], *_meetings(nodes), target.sides[1]])
        starts, widths = edges[:-1], np.diff(edges)
        place, own, rest, slope = np.array([[n.place, n.own, n.rest, n.slope] for n in nodes]).T
        left, right = (own + rest + slope * (edge - place) for edge in (starts, edges[1:]))
        log_mass = _log_integral(left, right, widths) - target.leftover * np.log(starts)
        share = np.cumsum(np.exp(log_mass - log_mass.max()))
        stream = key.stream()
        cell = np.searchsorted(share, share[-1] * stream.uniform(count))
        t = starts[cell] + widths[cell] * _exponential(slope[cell] * widths[cell], stream.uniform(count))
        tilt = np.array([node.tilt for node in nodes])[cell]
        x = np.zeros((count, len(target.order)))
        log_ratio = np.sum(tilt * tilt, axis=1) / 2
        for k in range(x.shape[1]):
            moved = x[:, :k] @ target.mixing[k, :k] + tilt[:, k]
            ends = target.lower[k] * t - moved, target.upper[k] * t - moved
            log_ratio += log_interval_mass(*ends)
            x[:, k] = tilt[:, k] + interval_quantile(*ends, stream.uniform(count))
        log_ratio -= np.sum(tilt * x, axis=1)
        ahead = t - place[cell]
        log_ratio += target.exponent * np.log1p(ahead / place[cell])
        log_ratio -= target.rate * ahead * (t + place[cell]) + slope[cell] * ahead + rest[cell]
        log_ratio -= target.leftover * np.log(t / starts[cell])
        keep = np.log(stream.uniform(count)) < log_ratio
        scaled = np.empty_like(x)
        scaled[:, target.order] = x @ target.triangle.T
        beta = self.posterior.mean + scaled[keep] / t[keep, None]
        # The ends hold but for rounding, on which the bound of a record must not depend.
        return np.clip(beta, self.low[:-1], self.high[:-1]), np.clip(1 / t[keep], self.low[-1], self.high[-1])


def _meetings(nodes: Sequence[_Node]) -> Array:
    """Where the bounds of neighbouring nodes meet; halfway where rounding hides it."""
    places = []
    for left, right in itertools.pairwise(nodes):
        turn, gap = left.slope - right.slope, right.place - left.place
        ahead = (right.height - left.height - right.slope * gap) / turn if turn > 0 else gap / 2
        places.append(left.place + (ahead if 0 <= ahead <= gap else gap / 2))
    return np.array(places)


def _log_integral(left: Array, right: Array, width: Array) -> Array:
    """log ∫ exp of the line from `left` to `right` over a width."""
    drop = np.abs(np.subtract(left, right))
    with np.errstate(all="ignore"):
        share = np.where(drop < 1e-8, 1.0, -np.expm1(-drop) / drop)
        return np.asarray(np.maximum(left, right) + np.log(width) + np.log(share))


def _exponential(rise: Array, share: Array) -> Array:
    """Quantiles on [0, 1] of a density proportional to exp(rise · place)."""
    with np.errstate(all="ignore"):
        fall = np.abs(rise)
        place = np.where(fall < 1e-8, share, -np.log1p(share * np.expm1(-fall)) / fall)
    return np.clip(np.where(rise > 0, 1.0 - place, place), 0.0, 1.0)
