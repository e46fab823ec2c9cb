"""Models without a closed form, sampled by NUTS: what programs and named families have in common."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hedgerow.arrays import Array, LogLik, LogMass, PerRecord
from hedgerow.errors import HealthError, SettingError, UnscoredError, format_value, is_real
from hedgerow.models.base import Parameters, Sample
from hedgerow.models.correctable import Differentiable, StandIn
from hedgerow.models.reductions import block_rows, blocked_extremes, count_draws
from hedgerow.models.scored import Interval, Linear, Sensitive
from hedgerow.numerics.scoring import Extremes
from hedgerow.progress import report
from hedgerow.randomness import Key
from hedgerow.tables.design import Design

if TYPE_CHECKING:
    from hedgerow.models.programs.nuts import SamplerName
    from hedgerow.models.programs.potential import Potential, Traced

_LEAST_DRAWS = 400
_BLOCK = 64  # draws scored at once: of one number, so that parts of a fit share compiled code


@dataclass(frozen=True, kw_only=True)
class Sampled(Differentiable):
    """A model whose weighted posterior is sampled by NUTS and passes a health gate.

    - `sampler`, `chains`, `warmup`, `target_accept`, `thin`: "nutpie" or "numpyro"; warm-up counts draws per
      chain; of every `thin` draws after it one is kept, and only kept draws count.
    - `minimum_ess`: effective draws every accepted fit must have, and the number of draws its statement
      rests on.
    - `allow_unhealthy`: go on with draws that failed the health checks. The guarantee then says "not
      certified".
    """

    _samplers: ClassVar[tuple[str, ...]] = ("nutpie", "numpyro")
    sampler: "SamplerName" = "nutpie"
    chains: int = 4
    warmup: int = 400
    target_accept: float = 0.8
    thin: int = 2
    minimum_ess: int = _LEAST_DRAWS
    allow_unhealthy: bool = False

    @abstractmethod
    def _traced(self, design: Design) -> "Traced":
        """The model as a NumPyro program, read from shapes alone."""

    @abstractmethod
    def _arrays(self, design: Design) -> dict[str, Any]:
        """The program's public arguments."""

    def _values(self, design: Design) -> Any:
        """The outcome as the program's response wants it."""
        return design.values.astype(np.int64) if self._traced(design).discrete else design.values

    def _check_sampler(self) -> None:
        if self.sampler not in self._samplers:
            raise SettingError(
                f"{type(self).__name__}: sampler must be {' or '.join(map(repr, self._samplers))}, got "
                f"{format_value(self.sampler)}."
            )
        least = {"chains": 2, "warmup": 50, "thin": 1, "minimum_ess": _LEAST_DRAWS}
        for name, smallest in least.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < smallest:
                raise SettingError(
                    f"{type(self).__name__}: {name} must be a whole number from {smallest} up, got "
                    f"{format_value(value)}."
                )
        accept = self.target_accept
        if not is_real(accept) or not 0.5 <= accept < 1:
            raise SettingError(
                f"{type(self).__name__}: target_accept must be at least 0.5 and below 1, got "
                f"{format_value(accept)}."
            )
        if not isinstance(self.allow_unhealthy, bool):
            raise SettingError(
                f"{type(self).__name__}: allow_unhealthy must be True or False, got "
                f"{format_value(self.allow_unhealthy)}."
            )

    def sample(
        self,
        design: Design,
        power: PerRecord,
        *,
        draws: int,
        key: Key,
        window: tuple[PerRecord, PerRecord] | None = None,
    ) -> Sample:
        """Draws from ξ(θ) ∏ p_i^power_i; a window censors each record's log density first."""
        if draws < self.minimum_ess and not self.allow_unhealthy:
            raise SettingError(
                f"draws={draws} is below the {self.minimum_ess} effective draws a Markov chain must reach. "
                "Use draws=1000 or more."
            )
        potential = self.potential(design, power, window)
        return self._draw(potential, draws, key)

    def potential(
        self, design: Design, power: PerRecord, window: tuple[PerRecord, PerRecord] | None = None
    ) -> "Potential":
        """The weighted posterior as samplers see it."""
        traced = self._traced(design)  # first: it says so where JAX is not installed
        from hedgerow.models.programs.potential import Potential

        return Potential.of(traced, self._arrays(design), self._values(design), power, window)

    def stand_in(self, design: Design, near: Parameters) -> StandIn:
        """The normal approximation: NUTS on every simulated table would take minutes."""
        from hedgerow.models.programs.laplace import Laplace

        return Laplace.about(self, design, near)

    def free(self, design: Design, parameters: Parameters) -> Array:
        from hedgerow.models.programs.potential import compiled, x64

        with x64(True):
            found = compiled(self._traced(design)).unconstrain(dict(parameters), self._arrays(design))
            return np.asarray(found, dtype=np.float64)

    def natural(self, design: Design, free: Array) -> Parameters:
        from hedgerow.models.programs.potential import compiled, x64

        with x64(True):
            found = compiled(self._traced(design)).constrain(free[None], self._arrays(design))
            return {name: np.asarray(value[0], dtype=np.float64) for name, value in found.items()}

    def from_prior(self, design: Design, *, draws: int, key: Key) -> Parameters:
        """Draws from the program's prior: the outcome is not looked at."""
        import jax

        from hedgerow.models.programs.potential import compiled, x64

        with x64(True):
            keys = jax.random.split(jax.random.key(key.integer()), draws)
            found = compiled(self._traced(design)).from_prior(keys, self._arrays(design))
            return {name: np.asarray(value, dtype=np.float64) for name, value in found.items()}

    def log_lik(self, design: Design, parameters: Parameters, records: slice) -> LogLik:
        return np.concatenate([block[:, records] for block in self.log_lik_blocks(design, parameters)])

    def log_mass(self, design: Design, parameters: Parameters, interval: Interval, records: slice) -> LogMass:
        return np.concatenate([block[:, records] for block in self._log_mass(design, parameters, interval)])

    def predict(self, design: Design, parameters: Parameters, uniforms: PerRecord) -> PerRecord:
        from hedgerow.models.programs import scores

        return scores.predict(self._traced(design), dict(parameters), self._arrays(design), uniforms)

    def inverts(self, design: Design, parameters: Parameters) -> bool:
        from hedgerow.models.programs import scores

        return scores.inverts(self._traced(design), dict(parameters), self._arrays(design))

    def extremes(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> Extremes:
        if not isinstance(sensitive, Linear):
            return blocked_extremes(self, design, parameters, sensitive, interval)
        if not sensitive.uses_mass:  # a multiple of f: its extremes are those of f, or the other way round
            low, high = self._density_extremes(design, parameters)
            ends = sensitive.density * low + sensitive.constant, sensitive.density * high + sensitive.constant
            return Extremes(np.minimum(*ends), np.maximum(*ends))
        low, high = np.full(design.records, np.inf), np.full(design.records, -np.inf)
        masses = self._log_mass(design, parameters, interval)
        for log_lik, log_mass in zip(self.log_lik_blocks(design, parameters), masses, strict=True):
            part = sensitive(slice(None), log_lik, log_mass)
            low, high = np.minimum(low, part.min(axis=0)), np.maximum(high, part.max(axis=0))
        return Extremes(low, high)

    def _density_extremes(self, design: Design, parameters: Parameters) -> tuple[PerRecord, PerRecord]:
        """The smallest and the largest f over draws, for each record."""
        from hedgerow.models.programs.scores import scores

        low, high = np.full(design.records, np.inf), np.full(design.records, -np.inf)
        score = scores(self._traced(design)).extremes
        for least, most in self._score(score, design, parameters, by_draw=False):
            low, high = np.minimum(low, least), np.maximum(high, most)
        return low, high

    def absolute(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> PerRecord:
        return self.extremes(design, parameters, sensitive, interval).absolute

    def mean_mass(self, design: Design, parameters: Parameters, interval: Interval) -> PerRecord:
        total, draws = np.zeros(design.records), 0
        for block in self._log_mass(design, parameters, interval):
            total, draws = total + np.exp(block).sum(axis=0), draws + len(block)
        return total / draws

    def _draw(self, potential: "Potential", draws: int, key: Key) -> Sample:
        """NUTS, behind its health gate."""
        from hedgerow.models.programs import gate, nuts

        name: nuts.ChainName = "numpyro" if self.sampler == "numpyro" else "nutpie"
        settings = nuts.SamplerSettings(name, self.chains, self.warmup, self.target_accept, self.thin)
        per_chain = -(-draws // settings.chains)
        for attempt in range(1, nuts.TRIES + 1):
            chains = nuts.sample(potential, settings, draws=per_chain, key=key.child(f"attempt {attempt}"))
            found = gate.examine(
                chains,
                partial(_densities, potential),
                settings,
                needed=self.minimum_ess,
                attempts=attempt,
                unthinned=attempt == nuts.TRIES,
            )
            if not found.complaints:
                break
            settings = settings.patient() if attempt == 1 else settings.last(diverged=chains.divergences > 0)
        if found.complaints and (found.hopeless or not self.allow_unhealthy):
            raise HealthError(
                f"The sampler's draws failed {found.health.attempts} times, last with "
                f"{'; '.join(found.complaints)} (computed from the data: confidential). More draws raise the "
                "ESS; warmup= and target_accept= cure divergences, as do tighter priors and non-centred "
                "group effects. allow_unhealthy=True goes on, and the release says it is not certified."
            )
        # Draws of the chains alternate, so that any leading part of them holds all chains.
        mixed = np.swapaxes(chains.positions, 0, 1).reshape(-1, potential.dimensions)[:draws]
        return Sample(potential.constrain(mixed), replace(found.health, overridden=self.allow_unhealthy))

    def log_lik_blocks(
        self, design: Design, parameters: Parameters, *, finite: bool = True
    ) -> Iterator[LogLik]:
        """f for a few draws at a time and all records; `finite` refuses values that are not."""
        from hedgerow.models.programs.scores import scores

        return self._score(scores(self._traced(design)).log_lik, design, parameters, finite=finite)

    def _log_mass(self, design: Design, parameters: Parameters, interval: Interval) -> Iterator[LogMass]:
        from hedgerow.models.programs.scores import scores

        ends = interval.lower, interval.upper
        return self._score(scores(self._traced(design)).log_mass, design, parameters, *ends)

    def _score(
        self,
        score: Callable[..., Any],
        design: Design,
        parameters: Parameters,
        *ends: Any,
        finite: bool = True,
        by_draw: bool = True,
    ) -> Iterator[Array]:
        from hedgerow.models.programs.scores import in_blocks

        draws = count_draws(parameters)
        rows = block_rows(design.records, min(draws, _BLOCK))
        data = self._arrays(design), self._values(design), *ends
        for part, block in in_blocks(score, dict(parameters), rows, *data, by_draw=by_draw):
            bad = int((~np.isfinite(block)).any(axis=0).sum())
            if bad and finite:
                raise UnscoredError(
                    f"The program gives {bad} of {design.records} records a log density or a log probability "
                    "of its range that is not finite. Widen the ranges, or use a heavier-tailed distribution."
                )
            report("scoring", part.stop, draws)
            yield block


def _densities(potential: "Potential", positions: Array) -> Array:
    flat = positions.reshape(-1, potential.dimensions)
    return potential.log_densities(flat).reshape(positions.shape[:2])
