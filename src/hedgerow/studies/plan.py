"""What there is to compute for each study, and the tidy tables its replicates add up to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import pandas as pd

from hedgerow.errors import SettingError
from hedgerow.studies import application, samples, setup
from hedgerow.studies.setup import Scale
from hedgerow.studies.store import Store
from hedgerow.studies.work import Task

Tables = Mapping[str, pd.DataFrame]  # by name: prices, utility, records …


@dataclass(frozen=True)
class Step:
    """A task with the columns that tell its rows from those of other replicates."""

    task: Task
    index: Mapping[str, int | str] = field(default_factory=dict)


def chosen(only: Sequence[str] | None) -> tuple[str, ...]:
    """The studies asked for, in the paper's order."""
    if only is None:
        return setup.STUDIES
    unknown = [name for name in only if name not in setup.STUDIES]
    if unknown or not only:
        raise SettingError(
            f"only must name studies among {', '.join(setup.STUDIES)}, got {', '.join(unknown) or 'none'}."
        )
    return tuple(name for name in setup.STUDIES if name in only)


def steps(study: str, *, seed: int, scale: Scale) -> list[Step]:
    """Every replicate of a study."""
    if study == "story1":
        return [
            Step(
                Task(study, f"story1-{n}-{r:03d}", samples.story1, (seed, r, n), cost=n),
                {"n": n, "replicate": r},
            )
            for n in (setup.RECORDS, *setup.SIZES)
            for r in range(scale.samples)
        ]
    if study == "application":
        return [
            Step(
                Task(study, f"application-{prior}-{r:03d}", application.fit, (seed, r, prior), cost=4000 + r),
                {"prior": prior, "replicate": r},
            )
            for prior in application.PRIORS
            for r in range(scale.fits)
        ]
    function = {"story2": samples.story2, "story3": samples.story3}[study]
    return [
        Step(Task(study, f"{study}-{r:03d}", function, (seed, r), cost=setup.RECORDS), {"replicate": r})
        for r in range(scale.samples)
    ]


def tables(steps: Iterable[Step], store: Store) -> Tables:
    """The replicates' columns under each other, always in the same order."""
    parts: dict[str, list[pd.DataFrame]] = {}
    for step in steps:
        for name, columns in store.load(step.task.name).items():
            frame = pd.DataFrame(columns)
            for place, (column, value) in enumerate(step.index.items()):
                frame.insert(place, column, value)
            parts.setdefault(name, []).append(frame)
    return MappingProxyType({name: pd.concat(found, ignore_index=True) for name, found in parts.items()})
