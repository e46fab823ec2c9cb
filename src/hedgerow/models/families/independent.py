"""Independent draws of a family's weighted posterior, by rejection (docs/maths.md, "Draws of the families").

A family has a handful of parameters and hundreds of records, so that its posterior is nearly normal. Draws
are proposed by a multivariate t distribution about the mode, with the curvature there, and kept with a
probability proportional to the ratio of the posterior to the proposal. Where the posterior is skewed, as for
a class that few records have, the proposal is wider on one side of the mode than on the other. A rule that
is fixed beforehand says when the proposal is good enough; otherwise there are no draws, and the caller turns
to NUTS.

Formal guarantee: given the ceiling, the draws are independent draws of the posterior wherever it is at most
the ceiling times the proposal, and too rare elsewhere. No proposal that was made exceeded the ceiling.

What the rule says was computed from the confidential data, as the health of a Markov chain is.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from hedgerow.arrays import Array
from hedgerow.models.programs.laplace import find_mode
from hedgerow.models.programs.nuts import move_nearer
from hedgerow.models.programs.potential import Potential
from hedgerow.numerics.pareto import tail_shape
from hedgerow.progress import report
from hedgerow.randomness import Key, Stream

_STARTS = 4  # places from which the mode is looked for, as many as NUTS has chains
_CANDIDATES = 100  # for each of them
_SAME = 0.05  # standard deviations within which two modes are one
_DF = 7.0
_PILOT = 3  # batches of half as many proposals as draws, at least, before the rule decides
_MARGIN = 1.1  # of the ceiling above the largest ratio that was seen
_SKEWED = 3.0  # largest ratio, in means, above which both sides of the mode get scales of their own
_LOOKS = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0])  # scales from the mode at which a side is measured
_SCALES = (0.2, 10.0)  # within which a side's own scale lies
# The rule: within these the proposals stand for the posterior.
LARGEST_RATIO = 20.0  # in means
LARGEST_SHAPE = 0.5  # Pareto k̂ of the ratios: below it their variance is finite
SMALLEST_SHARE = 0.3  # of effective proposals


@dataclass(frozen=True, repr=False)
class Proposal:
    """A multivariate t distribution on the unconstrained scale, perhaps in two halves by axis; confidential.

    Along each column of `root` it is `up` times as wide on one side of its mode and `down` times on the other
    (a two-piece t, whose density is continuous); None: once on both.
    """

    centre: Array
    root: Array  # lower triangular, its square the scale matrix
    sides: tuple[Array, Array] | None = None  # up and down

    def propose(self, potential: Potential, count: int, stream: Stream) -> "Proposed":
        """Positions with their ratios and the uniform numbers that will decide on them."""
        size = len(self.centre)
        steps = stream.normal((count, size)) / np.sqrt(stream.gamma(_DF / 2, count) / (_DF / 2))[:, None]
        density = -(_DF + size) / 2 * np.log1p((steps**2).sum(axis=1) / _DF)
        if self.sides is not None:
            up, down = self.sides
            above = stream.uniform((count, size)) < up / (up + down)
            steps = np.abs(steps) * np.where(above, up, -down)
        positions = self.centre + steps @ self.root.T
        ratios = potential.log_densities(positions) - density
        return Proposed(positions, np.where(np.isnan(ratios), -np.inf, ratios), stream.uniform(count))

    def split(self, potential: Potential, batch: int) -> "Proposal":
        """The proposal with a width of its own on each side: the widest that the posterior asks for there.

        Densities are asked for in batches of one size, for which they are compiled.
        """
        looks = np.array([*_LOOKS, *-_LOOKS])
        places = (self.centre + looks[:, None, None] * self.root.T).reshape(-1, len(self.centre))
        spare = -(len(places) + 1) % batch
        places = np.vstack([places, np.tile(self.centre, (spare + 1, 1))])
        parts = [potential.log_densities(part) for part in np.split(places, len(places) // batch)]
        values = np.concatenate(parts)
        fallen = np.nan_to_num(values[-1] - values[: -spare - 1], nan=np.inf)
        widths = np.abs(looks)[:, None] / np.sqrt(2 * np.maximum(fallen, 1e-6)).reshape(len(looks), -1)
        up, down = (np.clip(half.max(axis=0), *_SCALES) for half in np.split(widths, 2))
        return Proposal(self.centre, self.root, (up, down))

    def __repr__(self) -> str:
        return f"Proposal({len(self.centre)} parameters, confidential)"


@dataclass(frozen=True, repr=False)
class Proposed:
    """Proposed positions; confidential."""

    positions: Array
    log_ratios: Array  # of the posterior to the proposal, up to a constant
    uniforms: Array

    @property
    def ratios(self) -> Array:
        """In units of their mean."""
        ratios = np.exp(self.log_ratios - self.log_ratios.max())
        return np.asarray(ratios / ratios.mean(), dtype=np.float64)

    @property
    def kept(self) -> Array:
        """The positions that are draws. A ceiling that rose with the last batch decides anew on all."""
        ceiling = self.log_ratios.max() + np.log(_MARGIN)
        return self.positions[np.log(self.uniforms) < self.log_ratios - ceiling]

    @property
    def finite(self) -> bool:
        """Whether the ratios are numbers, not all of them zero."""
        return bool(np.isfinite(self.log_ratios.max()))

    @property
    def trusted(self) -> bool:
        """Whether the proposals stand for the posterior: the rule."""
        ratios = self.ratios
        share = 1 / np.mean(ratios**2)
        shape = float(tail_shape(self.log_ratios[:, None])[0])
        return bool(ratios.max() <= LARGEST_RATIO and share >= SMALLEST_SHARE and shape <= LARGEST_SHAPE)

    def join(self, other: "Proposed") -> "Proposed":
        """Both, in this order."""
        return Proposed(*(np.concatenate([mine, vars(other)[name]]) for name, mine in vars(self).items()))

    def __repr__(self) -> str:
        return f"Proposed({len(self.uniforms)} positions, confidential)"


def draw(potential: Potential, *, draws: int, key: Key) -> Array | None:
    """Independent draws on the unconstrained scale; None where the rule does not trust the proposals."""
    proposal = _about_mode(potential)
    if proposal is None:
        return None
    stream, batch = key.stream(), -(-draws // 2)  # batches of one size: compiled once
    proposed = proposal.propose(potential, batch, stream)
    if proposed.finite and proposed.ratios.max() > _SKEWED:
        proposal = proposal.split(potential, batch)
        proposed = proposal.propose(potential, batch, stream)
        if not proposed.finite:
            return None
        kept = _keep(proposal, proposed, potential, draws, stream) if proposed.trusted else None
        if kept is not None:
            return kept
        proposal = _about_mean(proposed.join(proposal.propose(potential, batch, stream)))
        if proposal is None:
            return None
        proposed = proposal.propose(potential, batch, stream)
    return _keep(proposal, proposed, potential, draws, stream)


def _keep(
    proposal: Proposal, proposed: Proposed, potential: Potential, draws: int, stream: Stream
) -> Array | None:
    """As many draws as asked for, from these proposals and more; None where the rule does not trust them."""
    batch = len(proposed.uniforms)
    while proposed.finite and (proposed.trusted or len(proposed.uniforms) < _PILOT * batch):
        kept = proposed.kept
        report("sampling", min(len(kept), draws), draws)
        if len(kept) >= draws and len(proposed.uniforms) >= _PILOT * batch:
            return kept[:draws]
        proposed = proposed.join(proposal.propose(potential, batch, stream))
    return None


def _about_mode(potential: Potential) -> Proposal | None:
    """The proposal about the one mode that the posterior has, as far as searches from several places tell.

    They start at places fixed beforehand, so that draws depend on their key alone.
    """
    places = Key.from_seed(0).child("places")
    modes = []
    for number in range(_STARTS):
        uniforms = places.child(number).stream().uniform((_CANDIDATES, potential.dimensions))
        mode = find_mode(potential, move_nearer(potential, potential.start(uniforms)))
        if mode is None:
            return None
        modes.append(mode)
    centre, factor = modes[0]
    if any(np.linalg.norm(factor @ (other - centre)) > _SAME for other, _ in modes):
        return None
    return Proposal(centre, solve_triangular(factor, np.eye(len(centre))))


def _about_mean(proposed: Proposed) -> Proposal | None:
    """The proposal about the mean of the posterior, as far as a first batch tells it."""
    shares = proposed.ratios / len(proposed.ratios)
    centre = shares @ proposed.positions
    apart = proposed.positions - centre
    try:
        return Proposal(centre, cholesky((apart * shares[:, None]).T @ apart, lower=True))
    except LinAlgError:  # a few proposals have all the weight
        return None
