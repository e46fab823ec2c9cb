"""What there is to compute for each study, the processes that do it, and the tidy tables it adds up to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pandas as pd

from hedgerow.errors import SettingError
from hedgerow_studies.paper import application, samples, setup
from hedgerow_studies.paper.samples import Replicate
from hedgerow_studies.paper.setup import Scale
from hedgerow_studies.paper.store import Store
from hedgerow_studies.work import Jobs, each

Report = Callable[[str, int, int], None]  # study, finished, of how many
Tables = Mapping[str, pd.DataFrame]  # by name: prices, utility, records …


@dataclass(frozen=True)
class Task:
    """A replicate to compute; the name is that of its file."""

    study: str
    name: str
    function: Callable[..., Replicate]
    arguments: tuple[Any, ...]
    cost: float = 1.0  # relative: the longest start first


@dataclass(frozen=True)
class Step:
    """A task with the columns that tell its rows from those of other replicates."""

    task: Task
    index: Mapping[str, int | str] = field(default_factory=dict)


def choose(only: Sequence[str] | None) -> tuple[str, ...]:
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


def run(tasks: Sequence[Task], store: Store, *, jobs: Jobs, report: Report) -> None:
    """Compute what the store does not hold yet."""
    total: dict[str, int] = {}
    done: dict[str, int] = {}
    pending = []
    for task in tasks:
        total[task.study] = total.get(task.study, 0) + 1
        finished = store.has(task.name)
        done[task.study] = done.get(task.study, 0) + finished
        if not finished:
            pending.append(task)
    for study, count in total.items():
        report(study, done[study], count)
    pending.sort(key=lambda task: -task.cost)
    for task, replicate in each([(task,) for task in pending], _compute, jobs=jobs):
        store.save(task.name, replicate)
        done[task.study] += 1
        report(task.study, done[task.study], total[task.study])


def _compute(task: Task) -> tuple[Task, Replicate]:
    return task, task.function(*task.arguments)


def tables(steps: Iterable[Step], store: Store) -> Tables:
    """The replicates' columns under each other, always in the same order."""
    parts: dict[str, list[pd.DataFrame]] = {}
    for step in steps:
        for name, columns in store.load(step.task.name).items():
            frame = pd.DataFrame(columns)
            for place, (column, value) in enumerate(step.index.items()):
                frame.insert(place, column, value)
            parts.setdefault(name, []).append(frame)
    return MappingProxyType({name: pd.concat(frames, ignore_index=True) for name, frames in parts.items()})
