"""Draws of line and σ given the noisy statistics: what may be concluded from what was released, no more.

Given θ = (β, σ) the statistics of all rounds are nearly normal, with means and covariances of clipped normals
in closed form (`numerics.sums.clipped_offsets`); predictors are grouped into cells of similar fitted values.
Laplace noise is normal with an exponential variance τ. A sweep, in many chains at once:

- the noise given θ and τ, then 1/τ, which is inverse Gaussian;
- the total s² = σ² + |offset of the line from that of round two|², which is what squares tell most about:
  log s walks, and the line keeps its place in the normal N(s, τ) that the statistics, linearised at one
  line, give for it. Noise is integrated out;
- the line for that s, by a step that leaves N(s, τ) as it is: from it, or part of the way. σ makes up for
  what the line takes of s, so that coefficients that noise hides do not hold σ fast, nor σ them;
- log σ walks by itself, for where it is small beside s.

Step sizes and the line at which statistics are linearised are adapted in the first third, then fixed. The
prior is the one of the estimates, from the limits, and σ half normal with scale H/2. Only released and public
things enter: post-processing, any number of draws costs the same ε, and nothing raises because of a value.
Successive draws come from different chains.

    draws = draw_posterior(released, draws=1000, key=key)
    draws.parameters["beta"]  # draws × p
"""

from dataclasses import dataclass

import numpy as np

from hedgerow.arrays import Array, Mask
from hedgerow.mechanism.noisy.estimate import coordinates, estimate, start
from hedgerow.mechanism.noisy.leaves.groups import Cells
from hedgerow.mechanism.noisy.released import Released, Round
from hedgerow.mechanism.noisy.spike import draw_spike
from hedgerow.models.base import Health
from hedgerow.numerics.sums.clipped_offsets import Clip, Clipped, clip_normal, clip_normal_twice
from hedgerow.randomness import Key, Stream
from hedgerow.threads import one_blas_thread

_CHAINS = 32
_SHORTEST, _THIN = 40, 1  # sweeps to adapt; sweeps per kept draw of a chain
_ENOUGH, _DOUBLINGS = 0.3, 3  # effective draws per draw below which sweeps are doubled, that often
_SMALLEST, _LARGEST = 1e-6, 4.0  # σ, as a multiple of H
_GRID, _POLISH = 48, 3  # values of σ, and steps of the line at each, to start from
_LINES = 2  # steps of the line in a sweep
_ACCEPT = np.array([0.4, 0.35, 0.4])  # steps of log s, of the line, of log σ
_LARGEST_STEP = np.array([3.0, 1.0, 3.0])
_FARTHEST = 60.0  # scales of noise: Laplace noise goes further once in e⁶⁰ releases
_HUGE = 1e200  # the corner of a factorisation that nobody looks at
_APART = 1e-2  # of a variance that no other statistic shares: rare records beyond a window are not normal


@dataclass(frozen=True, eq=False)
class PosteriorDraws:
    """Draws given released statistics, and how well the chains mixed. As public as what they come from."""

    parameters: dict[str, Array]  # beta (draws, p), sigma (draws,); with a spike its spike_beta (draws, p)
    effective: float  # independent draws they are worth: the least over the coefficients and log σ
    acceptance: tuple[float, float, float]  # of steps of s, of the line, of σ
    chains: int = _CHAINS  # of which successive draws come in turn

    @property
    def health(self) -> Health:
        """What they are worth."""
        return Health("given noisy statistics", False, effective_draws=self.effective, chains=self.chains)


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


class _Statistics:
    """Mean and covariance of all released statistics given θ, in units of H and per record, and the prior.

    θ is (g, log σ) with Xβ = Qg. Statistics are in the order scores, squares of round one, then of round two.
    """

    def __init__(self, released: Released) -> None:
        recipe, rounds = released.recipe, released.rounds
        self.cells = Cells.of(recipe, estimate(released).beta)
        self.size = len(recipe.basis)
        self.records, self.laplace = recipe.records, recipe.noise == "laplace"
        unit, n = recipe.half_width, recipe.records
        prior = start(recipe)
        self.prior_mean, self.prior_precision = prior.line / unit, np.linalg.inv(prior.noisy / unit**2)
        self.lines = [coordinates(recipe, one.line) / unit for one in rounds]
        reach = recipe.reach
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

    def describe(self, theta: Array) -> "_Expected":
        """What the statistics are expected to be at θ (k, p + 1)."""
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
        bends = np.stack([this.square_bend @ cells.share for this in clipped], axis=1)
        return _Expected(means, spread / self.records, slopes, bends)

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
class _Expected:
    """Moments of the statistics at some θ, noise apart."""

    means: Array  # (k, m)
    spread: Array  # covariances (k, m, m)
    slopes: Array  # the means' derivatives by the line (k, m, p)
    bends: Array  # twice the derivatives of each round's squares by σ² (k, rounds)


@dataclass(frozen=True, eq=False)
class _State:
    """Chains at θ, with what the statistics look like there."""

    theta: Array  # (k, p + 1)
    residual: Array  # observed less expected (k, m)
    spread: Array  # covariance without noise (k, m, m)
    log_prior: Array

    def log_density(self, tau: Array) -> Array:
        """The log density of θ given the statistics and the variances of the noise, up to a constant."""
        root, scaled = _factor(self.spread, tau, self.residual[:, :, None])
        return self.log_prior - _log_volume(root) - 0.5 * (scaled**2).sum(axis=(1, 2))

    def where(self, taken: Mask, other: "_State") -> "_State":
        """The other state in the chains where it was taken."""
        return _State(
            np.where(taken[:, None], other.theta, self.theta),
            np.where(taken[:, None], other.residual, self.residual),
            np.where(taken[:, None, None], other.spread, self.spread),
            np.where(taken, other.log_prior, self.log_prior),
        )


def _factor(matrices: Array, added: Array | float, columns: Array | None = None) -> tuple[Array, Array]:
    """Root L of matrices (k, m, m) with `added` on their diagonals, and L⁻¹ times columns (k, m, c).

    Both come from one factorisation, of the matrix with the columns as further rows. Whatever rounding did
    to the matrices, there is a root: diagonals grow until all have one.
    """
    chains, size, _ = matrices.shape
    wide = size + (0 if columns is None else columns.shape[2])
    joined, places = np.zeros((chains, wide, wide)), np.arange(wide)
    joined[:, :size, :size] = matrices
    if columns is not None:
        joined[:, size:, :size] = columns.transpose(0, 2, 1)
    diagonal = np.full((chains, wide), _HUGE)
    diagonal[:, :size] = np.maximum(joined[:, places[:size], places[:size]] + added, 1e-300)
    for digits in range(10, -2, -1):
        joined[:, places, places] = diagonal * (1 + 10.0**-digits)
        try:
            root = np.asarray(np.linalg.cholesky(joined), dtype=np.float64)
            break
        except np.linalg.LinAlgError:
            joined[:, size:, :size] *= digits > 0  # beyond that the columns say nothing
    else:
        root = np.sqrt(diagonal)[:, :, None] * np.eye(wide)
    return root[:, :size, :size], root[:, size:, :size].transpose(0, 2, 1)


def _log_volume(root: Array) -> Array:
    return np.asarray(np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1))


def _divide(root: Array, vectors: Array) -> Array:
    """L'⁻¹ times one vector each."""
    return np.asarray(np.linalg.solve(root.transpose(0, 2, 1), vectors[:, :, None])[:, :, 0])


@dataclass(frozen=True, eq=False)
class _Lines:
    """The normal of the line given s and τ, by statistics linearised at one line."""

    log_total: Array  # log s (k,)
    mean: Array
    root: Array  # of the precision

    def at(self, place: Array) -> Array:
        """The line at a place of the standard normal."""
        return self.mean + _divide(self.root, place)

    def place(self, line: Array) -> Array:
        return np.asarray(np.einsum("kji,kj->ki", self.root, line - self.mean))

    def where(self, taken: Mask, other: "_Lines") -> "_Lines":
        """The other normal in the chains where it was taken."""
        return _Lines(
            np.where(taken, other.log_total, self.log_total),
            np.where(taken[:, None], other.mean, self.mean),
            np.where(taken[:, None, None], other.root, self.root),
        )


class _Chains:
    """Many chains side by side, with what they learned while adapting."""

    def __init__(self, statistics: _Statistics, stream: Stream) -> None:
        self.model, self.stream = statistics, stream
        self.tau = np.tile((2.0 if statistics.laplace else 1.0) * statistics.scale**2, (_CHAINS, 1))
        self.state, self.centre = self._start()
        self.step = np.array([0.3, 1.0, 0.3])  # of log s; of the line, 1 is a fresh one; of log σ
        self.taken, self.sweeps = np.zeros(3), 0

    @property
    def acceptance(self) -> tuple[float, float, float]:
        """Shares of proposals taken since adapting."""
        total, line, sigma = self.taken / max(self.sweeps, 1)
        return float(total), float(line), float(sigma)

    def _at(self, theta: Array) -> _State:
        expected = self.model.describe(theta)
        return _State(
            theta, self.model.observed - expected.means, expected.spread, self.model.log_prior(theta)
        )

    def _offset(self, line: Array) -> Array:
        """Squared, of the line from that of round two: a mean over records, as σ² is."""
        return np.asarray(((line - self.model.lines[-1]) ** 2).sum(axis=1))

    def _with_line(self, line: Array, log_total: Array) -> _State:
        """σ is what the line leaves of s: too small a one, where nothing is left, has no density."""
        left = np.exp(2 * log_total) - self._offset(line)
        return self._at(np.column_stack((line, 0.5 * np.log(np.maximum(left, (_SMALLEST / 2) ** 2)))))

    def _lines_given(self, log_total: Array, centre: Array, tau: Array) -> _Lines:
        """The statistics linearised at `centre`, where clipping counts as if all of s were σ.

        The line's own spread is part of s, and clips as σ does: so much of the bend of the means is in it.
        """
        model = self.model
        centre = np.broadcast_to(centre, (len(log_total), model.size))
        expected = model.describe(np.column_stack((centre, self._left(log_total, centre))))
        slopes = expected.slopes
        squares = slice(model.size, None, model.size + 1)
        slopes[:, squares] -= expected.bends[:, :, None] * (centre - model.lines[-1])[:, None]  # σ gives way
        target = model.observed - expected.means + np.einsum("kmi,ki->km", slopes, centre)
        columns = np.concatenate((slopes, target[:, :, None]), axis=2)
        scaled = _factor(expected.spread, tau, columns)[1]
        slopes, target = scaled[:, :, :-1], scaled[:, :, -1:]
        precision = model.prior_precision + slopes.transpose(0, 2, 1) @ slopes
        side = (model.prior_precision @ model.prior_mean)[:, None] + slopes.transpose(0, 2, 1) @ target
        root, scaled = _factor(precision, 0.0, side)
        return _Lines(log_total, _divide(root, scaled[:, :, 0]), root)

    def _left(self, log_total: Array, line: Array) -> Array:
        """log σ where a line leaves some of s, and a twentieth of s² where it does not."""
        square = np.exp(2 * log_total)
        return np.asarray(0.5 * np.log(np.maximum(square - self._offset(line), 0.05 * square)))

    def _start(self) -> tuple[_State, Array]:
        """Chains spread over a grid of s by its approximate posterior, each with a line drawn given it."""
        grid = np.linspace(np.log(30 * _SMALLEST), np.log(_LARGEST / 2), _GRID)
        tau = np.tile(self.tau[0], (_GRID, 1))
        lines = np.tile(self.model.lines[-1], (_GRID, 1))
        for _ in range(_POLISH):
            normal = self._lines_given(grid, lines, tau)
            lines = normal.mean
        states = self._at(np.column_stack((lines, self._left(grid, lines))))
        log_weight = states.log_density(tau) - _log_volume(normal.root)
        weight = np.exp(log_weight - log_weight.max())
        places = (np.arange(_CHAINS) + 0.5) / _CHAINS
        chosen = np.minimum(np.searchsorted(np.cumsum(weight) / weight.sum(), places), _GRID - 1)
        line = lines[chosen] + _divide(normal.root[chosen], self._normal(self.model.size))
        jitter = (grid[1] - grid[0]) * (self.stream.uniform(_CHAINS) - 0.5)
        theta = np.column_stack((line, states.theta[chosen, -1] + jitter))
        return self._at(theta), weight @ lines / weight.sum()

    def _normal(self, width: int) -> Array:
        return self.stream.normal((_CHAINS, width))

    def _sweep(self) -> Array:
        """One update of everything; the shares of chains that took steps of s, of the line and of σ."""
        if self.model.laplace:
            self._renew_noise()
        theta, now = self.state.theta, self.state.log_density(self.tau)
        log_total = 0.5 * np.log(np.exp(2 * theta[:, -1]) + self._offset(theta[:, :-1]))
        lines = self._lines_given(log_total, self.centre, self.tau)
        place = lines.place(theta[:, :-1])
        taken = np.zeros(3)
        # Densities of (place, log s): dθ is dlog σ/dlog s = s²/σ², over the volume of the root.
        now = now + 2 * (log_total - theta[:, -1]) - _log_volume(lines.root)
        for step in range(1 + _LINES):
            if step == 0:
                moved = log_total + self.step[0] * self._normal(1)[:, 0]
                new_lines, new_place = self._lines_given(moved, self.centre, self.tau), place
            else:
                kept = np.sqrt(1 - self.step[1] ** 2)
                new_lines, new_place = lines, kept * place + self.step[1] * self._normal(self.model.size)
            proposed = self._with_line(new_lines.at(new_place), new_lines.log_total)
            then = proposed.log_density(self.tau) - _log_volume(new_lines.root)
            then = then + 2 * (new_lines.log_total - proposed.theta[:, -1])
            ahead = 0.5 * ((new_place**2).sum(axis=1) - (place**2).sum(axis=1))
            better = np.log(self.stream.uniform(_CHAINS)) < then - now + ahead
            self.state, now = self.state.where(better, proposed), np.where(better, then, now)
            lines, place = lines.where(better, new_lines), np.where(better[:, None], new_place, place)
            taken[min(step, 1)] += better.mean() / (_LINES if step else 1)
        theta = self.state.theta.copy()
        now = now - 2 * (lines.log_total - theta[:, -1]) + _log_volume(lines.root)
        theta[:, -1] += self.step[2] * self._normal(1)[:, 0]
        proposed = self._at(theta)
        better = np.log(self.stream.uniform(_CHAINS)) < proposed.log_density(self.tau) - now
        self.state = self.state.where(better, proposed)
        taken[2] = better.mean()
        return taken

    def _renew_noise(self) -> None:
        """Noise given θ and its variances, then the variances: 1/τ is inverse Gaussian."""
        state, scale = self.state, self.model.scale
        # A pair (sampling error, noise) from their prior, moved by what the residual says of their sum.
        noise = np.sqrt(self.tau) * self._normal(len(scale))
        root, _ = _factor(state.spread, 0.0)
        error = np.matmul(root, self._normal(len(scale))[:, :, None])[:, :, 0]
        root, scaled = _factor(state.spread, self.tau, (state.residual - error - noise)[:, :, None])
        noise = noise + self.tau * _divide(root, scaled[:, :, 0])
        average = 1 / np.maximum(np.abs(noise) / scale, 1e-9)
        half = 0.5 * average * self._normal(len(scale)) ** 2
        draw = average / (1 + half + np.sqrt(half * (half + 2)))
        other = self.stream.uniform(average.shape) > average / (average + draw)
        self.tau = scale**2 / np.clip(np.where(other, average**2 / draw, draw), 1e-6, 1e12)

    def adapt(self, sweeps: int) -> None:
        """The first third: steps for their acceptance, the line of linearisation at the chains' mean."""
        seen: list[Array] = []
        for sweep in range(sweeps):
            taken = self._sweep()
            seen.append(self.state.theta[:, :-1].mean(axis=0))
            gain = 2.0 / np.sqrt(sweep + 4)
            self.step = np.clip(self.step * np.exp(gain * (taken - _ACCEPT)), 1e-4, _LARGEST_STEP)
            if sweep % 10 == 9:
                self.centre = np.mean(seen[len(seen) // 2 :], axis=0)

    def advance(self, sweeps: int) -> Array:
        """Where the chains are after some sweeps with nothing adapted."""
        for _ in range(sweeps):
            self.taken = self.taken + self._sweep()
            self.sweeps += 1
        return self.state.theta
