"""Several protected columns as one model: a chain of conditionals (docs/maths.md, "Several columns").

The first column given public predictors, the second given those and the first, and so on. Priors of the links
are independent, and every link has the same power on a record, so that posteriors are independent too, log
likelihoods add, and so do exact losses and Rényi divergences: a chain costs the sum of its parts to fit, and
its price is that of the row, all of whose protected values are withheld together.

    >>> from hedgerow.models.exact import Lognormal, Normal
    >>> Chain((Normal(), Lognormal())).name
    'normal, lognormal'
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.arrays import LogLik, LogMass, PerRecord
from hedgerow.errors import HealthError, SettingError
from hedgerow.models.base import Blockwise, Health, Influence, Mergeable, Model, Parameters, Sample, Units
from hedgerow.models.chain.joint import Joint
from hedgerow.models.exact import Regression
from hedgerow.models.reductions import count_draws, draw_blocks, drawn_extremes
from hedgerow.models.scored import Interval, Linear, Sensitive
from hedgerow.numerics.dirichlet import SummedNeighbours, join_neighbours
from hedgerow.numerics.leaves import leaves_of
from hedgerow.numerics.renyi import Neighbours
from hedgerow.numerics.scoring import Draws, Extremes, links_extremes
from hedgerow.randomness import Key
from hedgerow.tables.design import Design


@dataclass(frozen=True, repr=False)
class ChainInfluence(Influence):
    """What a row does to all links, whose fits do not touch each other."""

    links: tuple[Influence, ...]
    design: Design

    @property
    def leverage(self) -> PerRecord:  # type: ignore[override]  # derived, where others have a field
        return np.max([link.leverage for link in self.links], axis=0)

    @property
    def pull(self) -> PerRecord:  # type: ignore[override]  # likewise
        return np.max([link.pull for link in self.links], axis=0)

    def loss_constant(self, share: PerRecord) -> PerRecord:
        return np.sum([link.loss_constant(own) for link, own in self._shares(share)], axis=0)

    def neighbours(self, share: PerRecord) -> Neighbours:
        return join_neighbours([link.neighbours(own) for link, own in self._shares(share)])

    def _shares(self, share: PerRecord) -> Iterator[tuple[Influence, PerRecord]]:
        for link, design in zip(self.links, self.design.links, strict=True):
            yield link, zero_missing(design, share)


@dataclass(frozen=True)
class Chain(Model):
    """One model a column, in the order in which they are synthesized."""

    models: tuple[Model, ...]

    @property
    def name(self) -> str:  # type: ignore[override]  # derived, where others have a field
        return ", ".join(model.name for model in self.models)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for model in self.models for name in model.columns))

    def links(
        self, design: Design, parameters: Parameters | None = None
    ) -> Iterator[tuple[Model, Design, Parameters]]:
        """Each model with its design and, where given, its parameters."""
        for place, (model, link) in enumerate(zip(self.models, design.links, strict=True)):
            own = {} if parameters is None else part_of(parameters, place)
            yield model, link, own

    def check(self, design: Design) -> None:
        for model, link, _ in self.links(design):
            model.check(link)

    def sample(self, design: Design, power: PerRecord, *, draws: int, key: Key) -> Sample:
        samples = []
        for place, own in enumerate(self.by_link(design, power)):
            model, link = self.models[place], design.links[place]
            try:
                samples.append(model.sample(link, zero_missing(link, own), draws=draws, key=key.child(place)))
            except HealthError as error:
                raise HealthError(f"Column '{link.outcome}': {error}") from error
        made = [one.influence for one in samples if one.influence is not None]
        if len(made) < len(samples):
            return join_samples(samples)
        return replace(
            join_samples(samples),
            influence=lambda: ChainInfluence(tuple(influence() for influence in made), design),
        )

    def by_link(self, design: Design, power: PerRecord) -> Sequence[PerRecord]:
        """The power of each link on a row of that power: the same."""
        return [power] * len(self.models)

    def log_lik(self, design: Design, parameters: Parameters, records: slice) -> LogLik:
        scores = []
        for model, link, own in self.links(design, parameters):
            score = model.log_lik(link, own, records)
            scores.append(score if link.present is None else np.where(link.present[records], score, 0.0))
        return np.asarray(sum(scores), dtype=np.float64)

    def log_mass(self, design: Design, parameters: Parameters, interval: Interval, records: slice) -> LogMass:
        low, high = self.log_mass_ends(design, parameters, interval, records)
        return (low + high) / 2

    def log_mass_ends(
        self, design: Design, parameters: Parameters, interval: Interval, records: slice
    ) -> tuple[LogMass, LogMass]:
        """Bounds of the log probability that a record lies in all of its ranges (`models.chain.joint`)."""
        if interval.whole:
            nothing = np.zeros((len(next(iter(parameters.values()))), len(interval[records].lower)))
            return nothing, nothing
        ranged = tuple(not interval.link(place).whole for place in range(len(self.models)))
        joint = Joint(self.models, design, ranged)
        return joint.log_mass_ends([own for _, _, own in self.links(design, parameters)], interval, records)

    def simulates(self, design: Design, ranged: Callable[[str], bool]) -> bool:
        """Whether the probability of ranges on these columns is estimated; a function of public things."""
        on = tuple(ranged(link.outcome) for link in design.links)
        return any(on) and Joint(self.models, design, on).simulated

    @property
    def _by_leaves(self) -> bool:
        """Whether all models score some records as they do among all: compiled ones take whole tables."""
        return all(isinstance(model, Mergeable) for model in self.models)

    def extremes(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> Extremes:
        """In one pass over all links, where all are regressions and d is a multiple of their sum."""
        multiple = isinstance(sensitive, Linear) and not (sensitive.form.uses_mass or sensitive.form.reversed)
        exact = [
            (model, link, Draws(own["beta"], own["sigma"]), zero_missing(link, np.ones(link.records)))
            for model, link, own in self.links(design, parameters)
            if isinstance(model, Regression)
        ]
        if not self._by_leaves:
            return drawn_extremes(self, design, parameters, sensitive, interval)
        if len(exact) < len(self.models) or not (isinstance(sensitive, Linear) and multiple):
            found = [
                drawn_extremes(self, design, parameters, sensitive, interval, rows)
                for rows in leaves_of(design.records)
            ]
            return Extremes(
                np.concatenate([each.low for each in found]), np.concatenate([each.high for each in found])
            )
        scored = links_extremes(
            [(link.matrix, model.responses(link), draws, kept) for model, link, draws, kept in exact]
        )
        jacobian = np.sum([kept * model.jacobians(link) for model, link, _, kept in exact], axis=0)
        shifted, density = scored.shifted(jacobian), sensitive.density
        low, high = (np.where(density == 0, 0.0, density * end) for end in (shifted.low, shifted.high))
        return Extremes(low, high).shifted(sensitive.constant)

    def absolute(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> PerRecord:
        return self.extremes(design, parameters, sensitive, interval).absolute

    def mean_mass(self, design: Design, parameters: Parameters, interval: Interval) -> PerRecord:
        """γ averaged over draws; of an estimate its upper bound, so that λ is not too large."""
        total = np.zeros(design.records)
        for rows in leaves_of(design.records) if self._by_leaves else [slice(None)]:
            for part, count in draw_blocks(parameters, len(total[rows])):
                _, high = self.log_mass_ends(design, part, interval, rows)
                total[rows] += np.exp(high[:count]).sum(axis=0)
        return total / count_draws(parameters)

    def predict(self, design: Design, parameters: Parameters, uniforms: PerRecord) -> PerRecord:
        raise SettingError("A chain is predicted link by link: each needs the values made before it.")


def zero_missing(link: Design, power: PerRecord) -> PerRecord:
    """The power of each row on a link: 0 where its own value is missing."""
    return power if link.present is None else power * link.present


def part_of(parameters: Parameters, place: int) -> Parameters:
    """The parameters of one link under their own names."""
    start = f"{place}."
    return {name.removeprefix(start): value for name, value in parameters.items() if name.startswith(start)}


def name_parts(parts: Sequence[Parameters]) -> Parameters:
    """The parameters of all links under one name each: what `part_of` takes apart."""
    return {f"{place}.{name}": values for place, own in enumerate(parts) for name, values in own.items()}


def join_samples(samples: Sequence[Sample]) -> Sample:
    """Draws of all links, paired; what rows do to them is left open."""
    return Sample(
        name_parts([one.parameters for one in samples]), worst_health([one.health for one in samples])
    )


def worst_health(healths: Sequence[Health]) -> Health:
    """The health of draws that are paired: as doubtful as the worst of them."""
    worst = min(healths, key=lambda health: (health.independent, health.effective_draws))
    assured = [health.assured_draws for health in healths if health.assured_draws is not None]
    return replace(
        worst,
        sampler=", ".join(dict.fromkeys(health.sampler for health in healths)),
        assured_draws=min(assured) if assured else None,
        chains=1,
        failed=tuple(dict.fromkeys(check for health in healths for check in health.failed)),
        overridden=any(health.overridden for health in healths),
    )


@dataclass(frozen=True, repr=False)
class UnitInfluence(Influence):
    """The fit without all records of a unit; each has its unit's figures, and its own leverage and pull."""

    model: Model
    design: Design
    power: PerRecord
    unit: Units
    alone: Influence

    @property
    def leverage(self) -> PerRecord:  # type: ignore[override]  # derived, where others have a field
        return self.alone.leverage

    @property
    def pull(self) -> PerRecord:  # type: ignore[override]  # likewise
        return self.alone.pull

    def loss_constant(self, share: PerRecord) -> PerRecord:
        return np.sum([constant for _, constant in self._links(share)], axis=0)

    def neighbours(self, share: PerRecord) -> Neighbours:
        found = [pairs for pairs, _ in self._links(share)]
        return found[0] if len(found) == 1 else SummedNeighbours(found)

    def _links(self, share: PerRecord) -> Iterator[tuple[Neighbours, PerRecord]]:
        models = self.model.models if isinstance(self.model, Chain) else (self.model,)
        for model, link in zip(models, self.design.links, strict=True):
            if not isinstance(model, Blockwise):
                raise SettingError(
                    f"unit: the {model.name} model has no closed form without several records. Use another "
                    "bound."
                )
            yield model.without_units(
                link, zero_missing(link, self.power), zero_missing(link, share), self.unit
            )
