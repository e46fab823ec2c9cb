"""From settings and a table to tasks, to the values that rounds read, and back to cells of copies."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hedgerow.arrays import PerRecord
from hedgerow.errors import SettingError
from hedgerow.mechanism.noisy.chain.encode import read_formula
from hedgerow.mechanism.noisy.chain.release import Values
from hedgerow.mechanism.noisy.chain.tasks import Task, split_epsilon
from hedgerow.mechanism.noisy.margin import margin_pays
from hedgerow.models.base import Domain, Model
from hedgerow.models.exact import Regression
from hedgerow.models.families.classes import Classes
from hedgerow.privacy.columns import Column
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict import Strict
from hedgerow.privacy.strict.limits import amounts_of, response_limits, spike_of
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table

NO_FORECAST = "Which errors to expect is told beforehand for one protected column alone."


def halve_replaced(settings: Settings) -> float:
    """At most this is ε for one row withheld: half of replaced, but for a blank adding a whole number."""
    strict, epsilon = _need(settings)
    return epsilon if strict.relation == "withheld" else epsilon / 2 * (1 + 1e-9)


def tasks_of(settings: Settings, table: Table, design: Design) -> list[Task]:
    """What is settled of each column before a value is read."""
    strict, epsilon = _need(settings)
    outcomes = [column.outcome for column in settings.columns]
    shares = [1.0 if strict.shares is None else strict.shares[name] for name in outcomes]
    tasks = []
    for (column, link, model, domain), part in zip(
        _amount_links(settings, design), split_epsilon(epsilon, shares), strict=True
    ):
        places, (formula, reads) = _places(domain, link), read_formula(column, outcomes, table)
        low, high = (
            (-1.0, 1.0) if places else response_limits(_amounts(model), _limits(strict)[column.outcome])
        )
        tasks.append(
            Task(
                outcome=column.outcome,
                formula=formula,
                matrix=link.matrix,
                columns=link.columns,
                reads=reads,
                epsilon=part,
                relation=strict.relation,
                low=low,
                high=high,
                spiked=spike_of(model) is not None or (column.has_gaps_alone and not places),
                classes=len(places) + (1 if column.has_gaps_alone and places else 0),
                margin_share=0.0 if places else _margin(settings, strict, design.records, part),
                rows_per_unit=settings.rows_per_unit,
            )
        )
    return tasks


def read_links(settings: Settings, design: Design) -> list[Values]:
    """Responses, NaN at a spike, and places of classes, and which are there; confidential."""
    strict, _ = _need(settings)
    found = []
    for column, link, model, domain in _amount_links(settings, design):
        present = np.ones(link.records, dtype=np.bool_) if link.present is None else link.present
        there = present | column.has_gaps_alone  # a gap is then a value like others
        places = _places(domain, link)
        if places:
            at = np.searchsorted(places, link.values).clip(0, len(places) - 1)
            hit = present & (np.array(places)[at] == link.values)
            found.append((np.where(hit, at, len(places)).astype(np.float64), hit | column.has_gaps_alone))
            continue
        low, high = _limits(strict)[link.outcome]
        response = _amounts(model).response(np.clip(link.values, low, high))
        spike = spike_of(model)
        apart = ~present if column.has_gaps_alone else np.zeros_like(present)
        if spike is not None:
            apart = link.values == spike
        found.append((np.where(apart, np.nan, response), there))
    return found


def write_links(settings: Settings, design: Design, made: Sequence[PerRecord]) -> list[PerRecord]:
    """What a copy has of each link."""
    cells = []
    for (column, link, model, domain), values in zip(_amount_links(settings, design), made, strict=True):
        if places := _places(domain, link):
            gone = values >= len(places)
            own = np.array(places)[np.where(gone, 0, values).astype(np.intp)]
        else:
            gone, spike = np.isnan(values), spike_of(model)
            own = _amounts(model).outcome(np.where(gone, 0.0, values))
            own = own if spike is None else np.where(gone, spike, own)
        cells += [gone.astype(np.float64), own] if column.has_gaps_alone else [own]
    return cells


def _amount_links(settings: Settings, design: Design) -> Iterator[tuple[Column, Design, Model, Domain]]:
    """Each column with the link of its amounts, or classes."""
    for each, link, model, domain in zip(
        settings.links, design.links, settings.models, settings.domains, strict=True
    ):
        if each.role == "amount":
            yield each.column, link, model, domain


def _places(domain: Domain, link: Design) -> tuple[float, ...]:
    """The numbers that stand for classes; none for amounts."""
    return domain.places(link) if isinstance(domain, Classes) else ()


def _margin(settings: Settings, strict: Strict, records: int, epsilon: float) -> float:
    """The share of a column's ε that goes to counts, where they pay."""
    if strict.margin is None:
        return 0.0
    share = strict.margin.share
    pays = margin_pays(records, share, epsilon, strict.relation, settings.rows_per_unit)
    return share if pays else 0.0


def _amounts(model: Model) -> Regression:
    amounts = amounts_of(model)
    if amounts is None:
        raise SettingError(f"The {model.name} family has no noisy sums of amounts.")
    return amounts


def _limits(strict: Strict) -> Mapping[str, tuple[float, float]]:
    return strict.limits if isinstance(strict.limits, Mapping) else {}


def _need(settings: Settings) -> tuple[Strict, float]:
    """Standard and ε, which settings of noisy statistics by name have."""
    strict = settings.noisy
    if strict is None or not strict.by_name or settings.epsilon is None:
        raise SettingError(f"{settings.standard.label} has no limits by column. Use Strict(limits={{…}}).")
    return strict, settings.epsilon
