"""Several protected columns as one model: a chain of conditionals (docs/maths.md, "Several columns").

The first column given public predictors, the second given those and the first, and so on. Priors of the links
are independent, and every link has the same power on a record, so that posteriors are independent too, log
likelihoods add, and so do exact losses and Rényi divergences: a chain costs the sum of its parts to fit, and
its price is that of the row, all of whose protected values are withheld together.

    >>> from hedgerow.models.exact import Lognormal, Normal
    >>> Chain((Normal(), Lognormal())).name
    'normal, lognormal'
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.arrays import LogLik, LogMass, PerRecord
from hedgerow.errors import SettingError
from hedgerow.models.base import Blockwise, Health, Influence, Model, Parameters, Sample, Units
from hedgerow.models.scored import Interval
from hedgerow.numerics.dirichlet import SummedNeighbours, join_neighbours
from hedgerow.numerics.renyi import Neighbours
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
            yield link, there(design, share)


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
        samples = [
            model.sample(link, there(link, power), draws=draws, key=key.child(place))
            for place, (model, link, _) in enumerate(self.links(design))
        ]
        parameters = {
            f"{place}.{name}": values
            for place, one in enumerate(samples)
            for name, values in one.parameters.items()
        }
        made = [one.influence for one in samples if one.influence is not None]
        if len(made) < len(samples):
            return Sample(parameters, worst_health([one.health for one in samples]))
        return Sample(
            parameters,
            worst_health([one.health for one in samples]),
            influence=lambda: ChainInfluence(tuple(influence() for influence in made), design),
        )

    def log_lik(self, design: Design, parameters: Parameters, records: slice) -> LogLik:
        scores = []
        for model, link, own in self.links(design, parameters):
            score = model.log_lik(link, own, records)
            scores.append(score if link.present is None else np.where(link.present[records], score, 0.0))
        return np.asarray(sum(scores), dtype=np.float64)

    def log_mass(self, design: Design, parameters: Parameters, interval: Interval, records: slice) -> LogMass:
        if not interval[records].whole:
            raise SettingError("A range on one of several protected columns has no price yet.")
        return np.zeros((len(next(iter(parameters.values()))), len(interval[records].lower)))

    def predict(self, design: Design, parameters: Parameters, uniforms: PerRecord) -> PerRecord:
        raise SettingError("A chain is predicted link by link: each needs the values made before it.")


def there(link: Design, power: PerRecord) -> PerRecord:
    """What a link has of each row's power: nothing where its own value is missing."""
    return power if link.present is None else power * link.present


def part_of(parameters: Parameters, place: int) -> Parameters:
    """The parameters of one link under their own names."""
    start = f"{place}."
    return {name.removeprefix(start): value for name, value in parameters.items() if name.startswith(start)}


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
            yield model.without_units(link, there(link, self.power), there(link, share), self.unit)
