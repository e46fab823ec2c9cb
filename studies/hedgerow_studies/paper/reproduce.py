"""The paper, run: replicates, then figures, table and claims, all from the same tidy tables."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hedgerow.errors import SettingError
from hedgerow_studies.paper import setup, tasks
from hedgerow_studies.paper.bars import Bars
from hedgerow_studies.paper.claims import verdicts
from hedgerow_studies.paper.figures import beyond, numbered, picture, table
from hedgerow_studies.paper.store import Store, sweep
from hedgerow_studies.work import Jobs, each, processors

SEED = 1


@dataclass(frozen=True)
class Reproduced:
    """Where everything is, and how the claims came out."""

    out: Path
    figures: tuple[str, ...]
    verdicts: dict[str, int]


def reproduce(
    out: str | Path,
    *,
    quick: bool = False,
    only: Sequence[str] | None = None,
    seed: int = SEED,
    jobs: Jobs | None = None,
) -> Reproduced:
    """Run the paper's studies and write figures, tables and claims below `out`.

    Parameters
    ----------
    out
        A folder, made if absent. A run that was stopped goes on from the replicates it finished.
    quick
        A few replicates instead of a hundred; every figure is drawn all the same.
    only
        Names among story1, story2, story3, application; claims.* then covers these alone.
    seed
        Of the simulated samples and fits. It changes numbers, never the layout of the results.
    jobs
        Processes, as many as there are cores by default; or `hr.connect(…)`. Results do not depend on it.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise SettingError(f"seed must be a whole number from 0 up, got {seed!r}.")
    studies, workers, folder = tasks.choose(only), processors(jobs), Path(out)
    if folder.exists() and not folder.is_dir():
        raise SettingError(f"out must be a folder, but {folder.name} is a file. Give another name.")
    scale = setup.QUICK if quick else setup.FULL
    store = Store.under(folder, seed)
    steps = {study: tasks.steps(study, seed=seed, scale=scale) for study in studies}
    with Bars(sys.stderr) as bars:
        planned = [step.task for study in studies for step in steps[study]]
        tasks.run(planned, store, jobs=workers, report=bars.report)
        tables = {study: tasks.tables(steps[study], store) for study in studies}
        drawn = [(one, folder / "figures") for s in studies for one in numbered.pictures(s, tables[s])]
        drawn += [(one, folder / "beyond") for s in studies for one in beyond.pictures(s, tables[s])]
        here = workers if isinstance(workers, int) else processors(None)  # where their files go
        names = []
        for count, name in enumerate(each(drawn, picture.save, jobs=here), 1):
            names.append(name)
            bars.report("figures", count, len(drawn))
    if "application" in studies:
        table.save(tables["application"], folder / "figures")
    decided = [claim for study in studies for claim in verdicts.decide(study, tables[study])]
    settings = {
        "studies": ", ".join(studies),
        "samples": scale.samples,
        "fits of the application": scale.fits,
        "seed": seed,
    }
    verdicts.save(decided, folder, settings)
    sweep(folder)
    return Reproduced(folder, tuple(sorted(names)), verdicts.tally(decided))
