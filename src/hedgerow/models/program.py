"""Any NumPyro program as a model: `Program(function)`.

The function is used as it is. It takes the design matrix and the outcome, `(X, y=None)`, or arguments of its
own that are filled from public columns, and has one observed site. hedgerow puts each record's power on that
site, samples with NUTS, scores and predicts from it. docs/programs.md tells the rest.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hedgerow.axes import Array, LogLik, LogMass, PerRecord
from hedgerow.design import Design
from hedgerow.errors import DataError, HealthError, SettingError
from hedgerow.keys import Key
from hedgerow.models.base import Model, Parameters, Sample, block_rows
from hedgerow.numerics.scoring import Extremes
from hedgerow.progress import report
from hedgerow.ranges import Interval
from hedgerow.sensitive import Linear, Sensitive

if TYPE_CHECKING:
    from hedgerow.models.nuts import Chains, SamplerName, Settings
    from hedgerow.models.potential import Potential, Traced

_LEAST_DRAWS = 400


@dataclass(frozen=True)
class Codes:
    """A public column as whole numbers from 0 up, its levels in sorted order."""

    column: str


@dataclass(frozen=True)
class Levels:
    """How many levels a public column has: the size of a plate of groups."""

    column: str


@dataclass(frozen=True)
class Program(Model):
    """A NumPyro program with one observed site.

    Parameters
    ----------
    function
        The program. Called with keyword arguments only; the outcome argument is None or an array.
    data
        Further arguments by name, from public columns of the table: a column name (text becomes codes,
        numbers stay numbers), `Codes(column)` or `Levels(column)`.
    response, matrix
        Names of the arguments that receive the outcome and the formula's design matrix. A program without
        the second does not get it. The matrix has a column of ones unless the formula says `0 +`.
    sampler, chains, warmup, target_accept, thin
        How NUTS runs: "nutpie" or "numpyro"; warm-up counts draws per chain; of every `thin` draws after it
        one is kept, and only kept draws count.
    minimum_ess
        Effective draws every accepted fit must have, and the number of draws its statement rests on.
    allow_unhealthy
        Go on with draws that failed the health checks. The guarantee then says "not certified".

    Formal guarantees
    -----------------
    The outcome enters at the response site alone, raised to each record's power; a program that uses it
    elsewhere is refused. Draws are those of a Markov chain, so statements about them are approximate.
    """

    function: Callable[..., Any]
    data: Mapping[str, str | Codes | Levels] = field(default_factory=dict)
    response: str = "y"
    matrix: str = "X"
    sampler: "SamplerName" = "nutpie"
    chains: int = 4
    warmup: int = 400
    target_accept: float = 0.8
    thin: int = 2
    minimum_ess: int = _LEAST_DRAWS
    allow_unhealthy: bool = False
    name: str = "program"
    correctable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise SettingError(f"Program: function must be callable, got {type(self.function).__name__}.")
        if self.sampler not in ("nutpie", "numpyro"):
            raise SettingError(f"Program: sampler must be 'nutpie' or 'numpyro', got {self.sampler!r}.")
        least = {"chains": 2, "warmup": 50, "thin": 1, "minimum_ess": _LEAST_DRAWS}
        for name, smallest in least.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < smallest:
                raise SettingError(
                    f"Program: {name} must be a whole number from {smallest} up, got {value!r}."
                )
        if not 0.5 <= self.target_accept < 1:
            raise SettingError(
                f"Program: target_accept must be at least 0.5 and below 1, got {self.target_accept!r}."
            )
        for name, source in self.data.items():
            if not isinstance(source, str | Codes | Levels):
                raise SettingError(
                    f"Program: data['{name}'] must be a column name, Codes(column) or Levels(column), got "
                    f"{type(source).__name__}. Bind constants with functools.partial."
                )
        object.__setattr__(self, "data", MappingProxyType(dict(self.data)))
        self._check_arguments()

    @property
    def columns(self) -> tuple[str, ...]:
        sources = (source if isinstance(source, str) else source.column for source in self.data.values())
        return tuple(dict.fromkeys(sources))

    def check(self, design: Design) -> None:
        from hedgerow.models import inspection

        traced = self._traced(design)
        if traced.discrete:
            broken = int((design.values != np.rint(design.values)).sum())
            if broken:
                raise DataError(
                    f"Column '{design.outcome}' has {broken} values in {design.records} rows that are not "
                    "whole numbers, but the program's response is a count or class. Round them, or change it."
                )
        inspection.check(traced, self._arrays(design), _values(traced, design), design.outcome)

    def sample(self, design: Design, power: PerRecord, *, draws: int, key: Key) -> Sample:
        from hedgerow.models.nuts import Settings

        if draws < self.minimum_ess and not self.allow_unhealthy:
            raise SettingError(
                f"draws={draws} is below the {self.minimum_ess} effective draws a Markov chain must reach. "
                "Use draws=1000 or more."
            )
        settings = Settings(self.sampler, self.chains, self.warmup, self.target_accept, self.thin)
        return self._gated(self.potential(design, power), settings, draws, key)

    def potential(self, design: Design, power: PerRecord) -> "Potential":
        """The weighted posterior as samplers see it."""
        from hedgerow.models.potential import Potential

        traced = self._traced(design)
        return Potential.of(traced, self._arrays(design), _values(traced, design), power)

    def stand_in(self, design: Design, near: Parameters) -> Model:
        """The normal approximation: NUTS on every simulated table would take minutes."""
        from hedgerow.models.laplace import Laplace

        return Laplace(self, self.free(design, near))

    def free(self, design: Design, parameters: Parameters) -> Array:
        from hedgerow.models.potential import compiled, x64

        with x64(True):
            found = compiled(self._traced(design)).unconstrain(dict(parameters), self._arrays(design))
            return np.asarray(found, dtype=np.float64)

    def natural(self, design: Design, free: Array) -> Parameters:
        from hedgerow.models.potential import compiled, x64

        with x64(True):
            found = compiled(self._traced(design)).constrain(free[None], self._arrays(design))
            return {name: np.asarray(value[0], dtype=np.float64) for name, value in found.items()}

    def log_lik(self, design: Design, parameters: Parameters, records: slice) -> LogLik:
        parts = [block[:, records] for _, block in self._log_lik(design, parameters)]
        return np.concatenate(parts)

    def log_mass(self, design: Design, parameters: Parameters, interval: Interval, records: slice) -> LogMass:
        parts = [block[:, records] for _, block in self._log_mass(design, parameters, interval)]
        return np.concatenate(parts)

    def predict(self, design: Design, parameters: Parameters, uniforms: PerRecord) -> PerRecord:
        from hedgerow.models import scores

        return scores.predict(self._traced(design), dict(parameters), self._arrays(design), uniforms)

    def extremes(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> Extremes:
        if not isinstance(sensitive, Linear):
            return super().extremes(design, parameters, sensitive, interval)
        low, high = np.full(design.records, np.inf), np.full(design.records, -np.inf)
        every = slice(None)
        masses = self._log_mass(design, parameters, interval) if sensitive.mass.any() else None
        for _, log_lik in self._log_lik(design, parameters):
            log_mass = log_lik if masses is None else next(masses)[1]
            part = sensitive(every, log_lik, log_mass)
            low, high = np.minimum(low, part.min(axis=0)), np.maximum(high, part.max(axis=0))
        return Extremes(low, high)

    def mean_mass(self, design: Design, parameters: Parameters, interval: Interval) -> PerRecord:
        total, draws = np.zeros(design.records), 0
        for _, block in self._log_mass(design, parameters, interval):
            total, draws = total + np.exp(block).sum(axis=0), draws + len(block)
        return total / draws

    def _gated(self, potential: "Potential", settings: "Settings", draws: int, key: Key) -> Sample:
        from hedgerow.models import gate, nuts

        per_chain = -(-draws // settings.chains)
        for attempt, tried in enumerate((settings, settings.patient()), start=1):
            chains = nuts.sample(potential, tried, draws=per_chain, key=key.child(f"attempt {attempt}"))
            density = _densities(potential, chains)
            found = gate.examine(chains, density, tried, needed=self.minimum_ess, attempts=attempt)
            if not found.complaints:
                break
        if found.complaints and (found.hopeless or not self.allow_unhealthy):
            raise HealthError(
                f"The sampler's draws failed {found.health.attempts} times, last with "
                f"{'; '.join(found.complaints)} (computed from the data: confidential). More draws raise the "
                "ESS; warmup= and target_accept= cure divergences, as do tighter priors and non-centred "
                "group effects. allow_unhealthy=True goes on, and the release says it is not certified."
            )
        # Draws of the chains alternate, so that any leading part of them holds all chains.
        mixed = np.swapaxes(chains.positions, 0, 1).reshape(-1, potential.dimensions)[:draws]
        return Sample(potential.constrain(mixed), found.health)

    def _log_lik(self, design: Design, parameters: Parameters) -> Iterator[tuple[slice, LogLik]]:
        from hedgerow.models import scores

        traced = self._traced(design)
        return self._scored(
            scores.scores(traced).log_lik, design, parameters, self._arrays(design), _values(traced, design)
        )

    def _log_mass(
        self, design: Design, parameters: Parameters, interval: Interval
    ) -> Iterator[tuple[slice, LogMass]]:
        from hedgerow.models import scores

        traced = self._traced(design)
        data = self._arrays(design), _values(traced, design), interval.lower, interval.upper
        return self._scored(scores.scores(traced).log_mass, design, parameters, *data)

    def _scored(
        self, score: Callable[..., Any], design: Design, parameters: Parameters, *data: Any
    ) -> Iterator[tuple[slice, Array]]:
        from hedgerow.models import scores

        draws = len(next(iter(parameters.values())))
        for rows, block in scores.in_blocks(
            score, dict(parameters), block_rows(design.records, draws), *data
        ):
            bad = int((~np.isfinite(block)).any(axis=0).sum())
            if bad:
                raise DataError(
                    f"The program gives {bad} of {design.records} records a log density or a log probability "
                    "of its range that is not finite. Widen the ranges, or use a heavier-tailed distribution."
                )
            report("scoring", rows.stop, draws)
            yield rows, block

    def _traced(self, design: Design) -> "Traced":
        try:
            from hedgerow.models import inspection
        except ModuleNotFoundError as missing:
            raise SettingError(
                f"Program needs '{missing.name}', which is not installed. Install hedgerow[programs]."
            ) from None
        shapes = tuple((name, value.shape, str(value.dtype)) for name, value in self._arrays(design).items())
        fixed = tuple(
            (name, design.public[source.column].levels)
            for name, source in self.data.items()
            if isinstance(source, Levels)
        )
        return inspection.read(self.function, self.response, shapes, fixed, design.records)

    def _arrays(self, design: Design) -> dict[str, Any]:
        arrays: dict[str, Any] = {}
        if self.matrix in _accepted(self.function)[0]:
            arrays[self.matrix] = design.matrix
        for name, source in self.data.items():
            if isinstance(source, Codes):
                arrays[name] = design.public[source.column].codes
            elif isinstance(source, str):
                column = design.public[source]
                arrays[name] = column.codes if column.numbers is None else column.numbers
        return arrays

    def _check_arguments(self) -> None:
        accepted, required = _accepted(self.function)
        if self.response not in accepted:
            raise SettingError(
                f"Program: the function has no argument '{self.response}' for the outcome; its arguments are "
                f"{', '.join(sorted(accepted))}. Name it with response=."
            )
        unknown = [name for name in self.data if name not in accepted]
        if unknown or {self.response, self.matrix} & set(self.data):
            raise SettingError(
                f"Program: data names {', '.join(self.data)}; the function takes "
                f"{', '.join(sorted(accepted))}, of which '{self.response}' and "
                f"'{self.matrix}' are filled from the formula."
            )
        missing = sorted(required - {self.response, self.matrix, *self.data})
        if missing:
            raise SettingError(
                f"Program: no source for the arguments {', '.join(missing)}. Name a public column for each "
                "in data=, or bind constants with functools.partial."
            )


def _accepted(function: Callable[..., Any]) -> tuple[set[str], set[str]]:
    """Names a function accepts, and those it cannot do without."""
    import inspect

    named = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    return {p.name for p in named}, {p.name for p in named if p.default is p.empty}


def _values(traced: "Traced", design: Design) -> Any:
    return design.values.astype(np.int64) if traced.discrete else design.values


def _densities(potential: "Potential", chains: "Chains") -> Array:
    flat = chains.positions.reshape(-1, potential.dimensions)
    return potential.log_densities(flat).reshape(chains.positions.shape[:2])
