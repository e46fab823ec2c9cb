"""Draws of line and σ given the noisy statistics: what may be concluded from what was released, no more.

Given θ = (β, σ) the statistics of all rounds are nearly normal, with means and covariances of clipped normals
in closed form (`numerics.sums.clipped_offsets`); predictors are grouped into cells of similar fitted values.
Laplace noise is normal with an exponential variance τ. A sweep, in many chains at once:

- the noise given θ and τ, then 1/τ, which is inverse Gaussian;
- σ and line together: a step of log σ, and a line drawn from the normal that the statistics, linearised at
  one line, give for that σ and τ. Noise is integrated out;
- a random walk of all coordinates, for where that normal fits badly.

Step sizes, the walk's shape and the line at which statistics are linearised are adapted in the first third,
then fixed. The prior is the one of the estimates, from the limits, and σ half normal with scale H/2. Only
released and public things enter: post-processing, any number of draws costs the same ε, and nothing raises
because of a value. Successive draws come from different chains.

    draws = draw_posterior(released, draws=1000, key=key)
    draws.parameters["beta"]  # draws × p
"""

from dataclasses import dataclass

import numpy as np

from hedgerow.arrays import Array, Mask
from hedgerow.mechanism.noisy.estimate import coordinates, estimate, start
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT, Recipe, Released, Round
from hedgerow.mechanism.noisy.spike import draw_spike
from hedgerow.numerics.sums.clipped_offsets import Clip, Clipped, clip_normal, clip_normal_twice
from hedgerow.randomness import Key, Stream
from hedgerow.threads import one_blas_thread

_CELLS = 40
_CHAINS = 32
_SHORTEST, _THIN = 60, 2  # sweeps to adapt; sweeps per kept draw of a chain
_ENOUGH, _DOUBLINGS = 0.2, 2  # effective draws per draw below which sweeps are doubled, that often
_SMALLEST, _LARGEST = 1e-6, 4.0  # σ, as a multiple of H
_GRID, _POLISH = 48, 3  # values of σ, and steps of the line at each, to start from
_ACCEPT_JOINT, _ACCEPT_WALK = 0.35, 0.25
_FARTHEST = 60.0  # scales of noise: Laplace noise goes further once in e⁶⁰ releases
_APART = 1e-4  # of a variance that no other statistic shares: they are only nearly normal


@dataclass(frozen=True, eq=False)
class PosteriorDraws:
    """Draws given released statistics, and how well the chains mixed. As public as what they come from."""

    parameters: dict[str, Array]  # beta (draws, p), sigma (draws,); with a spike its spike_beta (draws, p)
    effective: float  # independent draws they are worth: the least over the coefficients and log σ
    acceptance: tuple[float, float]  # of the joint step and of the walk
    chains: int = _CHAINS  # of which successive draws come in turn


@one_blas_thread()
def draw_posterior(released: Released, *, draws: int, key: Key) -> PosteriorDraws:
    """Draws of β (on X) and σ. The key alone makes it random; equal keys give equal draws."""
    chains = _Chains(_Statistics(released), key.child("posterior").stream())
    keep = -(-draws // _CHAINS)
    thin = _THIN
    chains.adapt(max(_SHORTEST, keep * thin // 2))
    kept: list[Array] = []
    for attempt in range(_DOUBLINGS + 1):
        kept = kept[1::2]  # thinned to half: together with what follows evenly spaced
        while len(kept) < keep:
            kept.append(chains.advance(thin))
        states = np.array(kept)
        effective = _effective(states)
        if effective >= _ENOUGH * draws or attempt == _DOUBLINGS:
            break
        thin *= 2
    theta = states.reshape(-1, states.shape[-1])[:draws]
    parameters = {
        "beta": theta[:, :-1] @ released.recipe.basis.T * released.recipe.half_width,
        "sigma": np.exp(theta[:, -1]) * released.recipe.half_width,
    }
    if released.spike is not None:
        own = key.child("spike")
        parameters["spike_beta"] = draw_spike(released.recipe, released.spike, draws=draws, key=own)
    return PosteriorDraws(parameters, min(effective, float(draws)), chains.acceptance)


def _effective(states: Array) -> float:
    """From how far the chains' means scatter: it counts chains that have not met, too. Least coordinate."""
    sweeps, chains, _ = states.shape
    within = states.reshape(sweeps * chains, -1).var(axis=0)
    between = states.mean(axis=0).var(axis=0, ddof=1)
    return float(np.min(chains * within / np.maximum(between, 1e-300), initial=sweeps * chains))


@dataclass(frozen=True, eq=False)
class _Cells:
    """Sums over records with neighbouring fitted values, so that a sweep does not depend on n. Per record."""

    share: Array  # of the records (cell,)
    centre: Array  # mean q (cell, p)
    loading: Array  # Σ v q / n (cell, p)
    slope: Array  # Σ v q q' / n (cell, p, p)
    square: Array  # Σ v² q q' / n (cell, p, p)
    scatter: Array  # Σ (q − centre)(q − centre)' / n (cell, p, p)
    mixed: tuple[Array, Array, Array] | None = (
        None  # Σ c(1−c){1, v q, v² q q'} / n, c the chance of an amount
    )

    @classmethod
    def of(cls, recipe: Recipe, line: Array) -> "_Cells":
        """Narrow cells that hold few: their measure is half the range of fitted values, half the count."""
        matrix = recipe.matrix
        fitted = np.nan_to_num(matrix @ line)
        order = np.argsort(fitted, kind="stable")
        fitted = fitted[order]
        steps = np.append(0.0, np.diff(fitted)) / max(fitted[-1] - fitted[0], 1e-300)
        measure = np.cumsum(steps + 1 / len(order)) / (2 + 1e-9)
        starts = np.flatnonzero(np.diff(np.floor(measure * min(_CELLS, 2 * len(order))))) + 1
        parts, spiked = [], []
        for rows in np.split(order, starts):
            q, loading = matrix[rows] @ recipe.basis, recipe.loadings[rows] * LOADING_UNIT
            centre = q.mean(axis=0)
            away = q - centre
            sums = (np.array(len(rows)), loading.sum(0), loading.T @ q, loading.T @ loading, away.T @ away)
            if recipe.presence is not None:  # each record counts for its chance of an amount
                chance = recipe.presence.chance[rows]
                seen, mixed = loading * chance[:, None], chance * (1 - chance)
                sums = (chance.sum(), seen.sum(0), seen.T @ q, seen.T @ loading, (away.T * chance) @ away)
                spiked.append((mixed.sum(), mixed @ loading, (loading.T * mixed) @ loading))
            parts.append((centre, *(one / len(order) for one in sums)))
        centres, *sums_by_cell = (np.array(each, dtype=np.float64) for each in zip(*parts, strict=True))
        share, loadings, slope, square, scatter = sums_by_cell
        both = [np.array(each) / len(order) for each in zip(*spiked, strict=True)]
        return cls(
            share, centres, loadings, slope, square, scatter, (both[0], both[1], both[2]) if both else None
        )


class _Statistics:
    """Mean and covariance of all released statistics given θ, in units of H and per record, and the prior.

    θ is (g, log σ) with Xβ = Qg. Statistics are in the order scores, squares of round one, then of round two.
    """

    def __init__(self, released: Released) -> None:
        recipe, rounds = released.recipe, released.rounds
        self.cells = _Cells.of(recipe, estimate(released).beta)
        self.size = recipe.matrix.shape[1]
        self.records, self.laplace = recipe.records, recipe.noise == "laplace"
        unit, n = recipe.half_width, recipe.records
        prior = start(recipe)
        self.prior_mean, self.prior_precision = prior.line / unit, np.linalg.inv(prior.noisy / unit**2)
        self.lines = [coordinates(recipe, one.line) / unit for one in rounds]
        reach = np.abs(recipe.loadings).sum(axis=0) * LOADING_UNIT
        observed, scale = [], []
        for one in rounds:
            # No noise in practice leads further than this from what sums can be; numbers stay numbers.
            far, top = reach * one.window + _FARTHEST * one.score_scale, _FARTHEST * one.square_scale
            observed += [*np.clip(one.scores, -far, far) / unit]
            squares = np.clip(one.squares, -top, n * one.window**2 + top)
            observed += [(squares - one.blank * (n - recipe.amounts)) / unit**2]
            scale += [one.score_scale / unit] * self.size + [one.square_scale / unit**2]
        self.observed, self.scale = np.array(observed) / n, np.array(scale) / n
        self.blanks = [one.blank / unit**2 for one in rounds]
        self.spike_noise = 0.0 if recipe.presence is None else recipe.presence.noise
        limits = recipe.low / unit, recipe.high / unit
        self.clips = [
            self._clip(one, line, unit, limits) for one, line in zip(rounds, self.lines, strict=True)
        ]

    def _clip(self, one: Round, line: Array, unit: float, limits: tuple[float, float]) -> Clip:
        """Values go to the limits first, then residuals to the window: one clip, cell by cell."""
        centre, window = self.cells.centre @ line, one.window / unit
        low, high = (np.clip(limit - centre, -window, window) for limit in limits)
        return Clip(centre, low, high)

    def log_prior(self, theta: Array) -> Array:
        """Up to a constant; σ half normal with scale H/2, as a density of log σ."""
        away, log_sigma = theta[:, :-1] - self.prior_mean, theta[:, -1]
        inside = (log_sigma > np.log(_SMALLEST)) & (log_sigma < np.log(_LARGEST))
        sigma = np.exp(np.where(inside, log_sigma, 0.0))
        line = np.einsum("ki,ij,kj->k", away, self.prior_precision, away)
        return np.where(inside, log_sigma - 2 * sigma**2 - 0.5 * line, -np.inf)

    def describe(self, theta: Array) -> tuple[Array, Array, Array]:
        """Means (k, m), covariances (k, m, m) and the means' derivatives by the line (k, m, p)."""
        chains, size, cells = len(theta), self.size, self.cells
        line, sigma = theta[:, :-1], np.exp(np.clip(theta[:, -1], np.log(_SMALLEST), np.log(_LARGEST)))
        fitted, sd = line @ cells.centre.T, np.broadcast_to(sigma[:, None], (chains, len(cells.share)))
        if len(self.clips) == 2:
            one, two, between = clip_normal_twice(fitted, sd, *self.clips)
            clipped: tuple[Clipped, ...] = (one, two)
        else:
            clipped = tuple(clip_normal(fitted, sd, clip) for clip in self.clips)
        width = size + 1
        means = np.empty((chains, width * len(clipped)))
        slopes = np.empty((chains, width * len(clipped), size))
        spread = np.empty((chains, width * len(clipped), width * len(clipped)))
        for number, (this, about) in enumerate(zip(clipped, self.lines, strict=True)):
            first, second, third, fourth = this.moments
            at, last = slice(number * width, number * width + size), number * width + size
            offset = line - about
            slopes[:, at] = np.tensordot(this.inside, cells.slope, axes=1)
            slopes[:, last] = (2 * this.inside_first * cells.share) @ cells.centre
            # Within a cell the mean of r is a straight line in the offset, the mean of r² a parabola.
            means[:, at] = (first - this.inside * (offset @ cells.centre.T)) @ cells.loading
            means[:, at] += np.einsum("kij,kj->ki", slopes[:, at], offset)
            bends = np.tensordot(this.square_bend, cells.scatter, axes=1)
            bent = np.einsum("kij,kj->ki", bends, offset)
            means[:, last] = second @ cells.share + 0.5 * (bent * offset).sum(axis=1)
            slopes[:, last] += bent
            spread[:, at, at] = np.tensordot(second - first**2, cells.square, axes=1)
            spread[:, at, last] = (third - first * second) @ cells.loading
            spread[:, last, at] = spread[:, at, last]
            spread[:, last, last] = (fourth - second**2) @ cells.share
        if len(clipped) == 2:
            at, last, other, end = slice(0, size), size, slice(width, width + size), width + size
            spread[:, at, other] = np.tensordot(between.line_line, cells.square, axes=1)
            spread[:, at, end] = between.line_square @ cells.loading
            spread[:, last, other] = between.square_line @ cells.loading
            spread[:, last, end] = between.square_square @ cells.share
            spread[:, width:, :width] = spread[:, :width, width:].transpose(0, 2, 1)
        if cells.mixed is not None:
            spread += self._by_zeros([each.moments[:2] for each in clipped], *cells.mixed)
        places = np.arange(spread.shape[1])
        spread[:, places, places] *= 1 + _APART
        return means, spread / self.records, slopes

    def _by_zeros(
        self, moments: list[tuple[Array, ...]], share: Array, loading: Array, square: Array
    ) -> Array:
        """What is added to covariances by not knowing which records are at the spike, given its noisy sum.

        A record of mean t where it has an amount adds c(1 − c)tt', of which the spike's sum explains a part.
        """
        lines = [first for first, _ in moments]
        bends = [second - blank for (_, second), blank in zip(moments, self.blanks, strict=True)]
        size, width = self.size, self.size + 1
        added = np.empty((len(lines[0]), width * len(lines), width * len(lines)))
        by_spike = np.empty((len(lines[0]), width * len(lines), size))
        for a, (line, bend) in enumerate(zip(lines, bends, strict=True)):
            at, last = slice(a * width, a * width + size), a * width + size
            by_spike[:, at], by_spike[:, last] = np.tensordot(line, square, axes=1), bend @ loading
            for b, (other, bent) in enumerate(zip(lines, bends, strict=True)):
                to, end = slice(b * width, b * width + size), b * width + size
                added[:, at, to] = np.tensordot(line * other, square, axes=1)
                added[:, at, end], added[:, last, to] = (line * bent) @ loading, (bend * other) @ loading
                added[:, last, end] = (bend * bent) @ share
        of_spike = square.sum(axis=0) + self.spike_noise / self.records * np.eye(size)
        return added - by_spike @ np.linalg.solve(of_spike, by_spike.transpose(0, 2, 1))


@dataclass(frozen=True, eq=False)
class _State:
    """Chains at θ, with what the statistics look like there."""

    theta: Array  # (k, p + 1)
    residual: Array  # observed less expected (k, m)
    spread: Array  # covariance without noise (k, m, m)
    log_prior: Array

    def log_density(self, tau: Array) -> Array:
        """Of θ given the statistics and the noise's variances, up to a constant."""
        root = _cholesky(_with_noise(self.spread, tau))
        scaled = _forward(root, self.residual[:, :, None])
        log_root = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        return self.log_prior - log_root - 0.5 * (scaled**2).sum(axis=(1, 2))

    def where(self, taken: Mask, other: "_State") -> "_State":
        """The other state in the chains where it was taken."""
        return _State(
            np.where(taken[:, None], other.theta, self.theta),
            np.where(taken[:, None], other.residual, self.residual),
            np.where(taken[:, None, None], other.spread, self.spread),
            np.where(taken, other.log_prior, self.log_prior),
        )


def _with_noise(spread: Array, tau: Array) -> Array:
    total = spread.copy()
    places = np.arange(tau.shape[1])
    total[:, places, places] += tau
    return total


def _cholesky(matrices: Array) -> Array:
    """Lower triangles, whatever rounding did to the matrices: their diagonals grow until all have one."""
    places = np.arange(matrices.shape[1])
    diagonal = np.maximum(matrices[:, places, places], 1e-300)
    grown = matrices.copy()
    for digits in range(10, -2, -1):
        grown[:, places, places] = diagonal * (1 + 10.0**-digits)
        try:
            return np.asarray(np.linalg.cholesky(grown), dtype=np.float64)
        except np.linalg.LinAlgError:
            continue
    return np.sqrt(diagonal)[:, :, None] * np.eye(len(places))


def _forward(root: Array, right: Array) -> Array:
    """L⁻¹ times columns, row by row for all chains at once: (k, m, m) and (k, m, columns)."""
    found = np.empty_like(right)
    for row in range(root.shape[1]):
        known = np.matmul(root[:, row, None, :row], found[:, :row])[:, 0]
        found[:, row] = (right[:, row] - known) / root[:, row, row, None]
    return found


def _backward(root: Array, right: Array) -> Array:
    """L'⁻¹ times columns."""
    return _forward(root[:, ::-1, ::-1].transpose(0, 2, 1), right[:, ::-1])[:, ::-1]


class _Chains:
    """Many chains side by side, with what they learned while adapting."""

    def __init__(self, statistics: _Statistics, stream: Stream) -> None:
        self.model, self.stream = statistics, stream
        self.tau = np.tile((2.0 if statistics.laplace else 1.0) * statistics.scale**2, (_CHAINS, 1))
        self.state, self.centre = self._start()
        self.step = np.array([0.3, 2.4 / np.sqrt(statistics.size + 1)])  # of log σ, of the walk
        self.shape = np.eye(statistics.size + 1)
        self.taken, self.sweeps = np.zeros(2), 0

    @property
    def acceptance(self) -> tuple[float, float]:
        """Shares of proposals taken since adapting."""
        joint, walk = self.taken / max(self.sweeps, 1)
        return float(joint), float(walk)

    def _at(self, theta: Array) -> _State:
        means, spread, _ = self.model.describe(theta)
        return _State(theta, self.model.observed - means, spread, self.model.log_prior(theta))

    def _line_given(self, log_sigma: Array, centre: Array, tau: Array) -> tuple[Array, Array]:
        """Mean and root of the precision of the line for σ and τ, the statistics linearised at `centre`."""
        model = self.model
        centre = np.broadcast_to(centre, (len(log_sigma), model.size))
        means, spread, slopes = model.describe(np.column_stack((centre, log_sigma)))
        root = _cholesky(_with_noise(spread, tau))
        target = model.observed - means + np.einsum("kmi,ki->km", slopes, centre)
        scaled = _forward(root, np.concatenate((slopes, target[:, :, None]), axis=2))
        slopes, target = scaled[:, :, :-1], scaled[:, :, -1]
        precision = model.prior_precision + slopes.transpose(0, 2, 1) @ slopes
        side = model.prior_precision @ model.prior_mean + np.einsum("kmi,km->ki", slopes, target)
        root = _cholesky(precision)
        return _backward(root, _forward(root, side[:, :, None]))[:, :, 0], root

    def _start(self) -> tuple[_State, Array]:
        """Chains spread over a grid of σ by its approximate posterior, each with a line drawn given it."""
        grid = np.linspace(np.log(30 * _SMALLEST), np.log(_LARGEST / 2), _GRID)
        tau = np.tile(self.tau[0], (_GRID, 1))
        lines = np.tile(self.model.lines[-1], (_GRID, 1))
        for _ in range(_POLISH):
            lines, root = self._line_given(grid, lines, tau)
        states = self._at(np.column_stack((lines, grid)))
        log_weight = states.log_density(tau) - np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        weight = np.exp(log_weight - log_weight.max())
        places = (np.arange(_CHAINS) + 0.5) / _CHAINS
        chosen = np.minimum(np.searchsorted(np.cumsum(weight) / weight.sum(), places), _GRID - 1)
        line = lines[chosen] + _backward(root[chosen], self._normal(self.model.size)[:, :, None])[:, :, 0]
        jitter = (grid[1] - grid[0]) * (self.stream.uniform(_CHAINS) - 0.5)
        return self._at(np.column_stack((line, grid[chosen] + jitter))), weight @ lines / weight.sum()

    def _normal(self, width: int) -> Array:
        return self.stream.normal((_CHAINS, width))

    def _sweep(self) -> Array:
        """One update of everything; how many chains took the joint step and the walk."""
        if self.model.laplace:
            self._renew_noise()
        now = self.state.log_density(self.tau)
        # σ and line together, from the normal of the line at either σ.
        old = self.state.theta
        log_sigma = old[:, -1] + self.step[0] * self._normal(1)[:, 0]
        both = np.concatenate((old[:, -1], log_sigma))
        mean, root = self._line_given(both, self.centre, np.tile(self.tau, (2, 1)))
        fresh = self._normal(self.model.size)
        line = mean[_CHAINS:] + _backward(root[_CHAINS:], fresh[:, :, None])[:, :, 0]
        proposed = self._at(np.column_stack((line, log_sigma)))
        back = np.einsum("kji,kj->ki", root[:_CHAINS], old[:, :-1] - mean[:_CHAINS])
        log_roots = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        log_back = log_roots[:_CHAINS] - 0.5 * (back**2).sum(axis=1)
        log_there = log_roots[_CHAINS:] - 0.5 * (fresh**2).sum(axis=1)
        then = proposed.log_density(self.tau)
        joint = np.log(self.stream.uniform(_CHAINS)) < then - now + log_back - log_there
        self.state, now = self.state.where(joint, proposed), np.where(joint, then, now)
        # A walk of everything.
        step = self.step[1] * self._normal(self.model.size + 1) @ self.shape.T
        proposed = self._at(self.state.theta + step)
        walk = np.log(self.stream.uniform(_CHAINS)) < proposed.log_density(self.tau) - now
        self.state = self.state.where(walk, proposed)
        return np.array([joint.mean(), walk.mean()])

    def _renew_noise(self) -> None:
        """Noise given θ and its variances, then the variances: 1/τ is inverse Gaussian."""
        state, scale = self.state, self.model.scale
        root = _cholesky(_with_noise(state.spread, self.tau))
        # A pair (sampling error, noise) from their prior, moved by what the residual says of their sum.
        noise = np.sqrt(self.tau) * self._normal(len(scale))
        error = np.matmul(_cholesky(state.spread), self._normal(len(scale))[:, :, None])[:, :, 0]
        missing = _backward(root, _forward(root, (state.residual - error - noise)[:, :, None]))[:, :, 0]
        noise = noise + self.tau * missing
        average = 1 / np.maximum(np.abs(noise) / scale, 1e-9)
        half = 0.5 * average * self._normal(len(scale)) ** 2
        draw = average / (1 + half + np.sqrt(half * (half + 2)))
        other = self.stream.uniform(average.shape) > average / (average + draw)
        self.tau = scale**2 / np.clip(np.where(other, average**2 / draw, draw), 1e-6, 1e12)

    def adapt(self, sweeps: int) -> None:
        """The first third: steps for their acceptance, the walk's shape and the line at the chains' mean."""
        seen: list[Array] = []
        for sweep in range(sweeps):
            taken = self._sweep()
            seen.append(self.state.theta)
            gain = 2.0 / np.sqrt(sweep + 4)
            self.step = np.clip(self.step * np.exp(gain * (taken - (_ACCEPT_JOINT, _ACCEPT_WALK))), 1e-4, 3.0)
            if sweep % 10 == 9:
                recent = np.concatenate(seen[len(seen) // 2 :])
                self.centre = recent[:, :-1].mean(axis=0)
                self.shape = _cholesky(np.cov(recent.T)[None])[0]

    def advance(self, sweeps: int) -> Array:
        """Where the chains are after some sweeps with nothing adapted."""
        for _ in range(sweeps):
            self.taken = self.taken + self._sweep()
            self.sweeps += 1
        return self.state.theta
