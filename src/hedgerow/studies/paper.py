"""The paper, run: replicates, then figures, table and claims, all from the same tidy tables."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hedgerow.errors import SettingError
from hedgerow.studies import beyond, claims, figures, pictures, plan, setup, utility_table
from hedgerow.studies.progress import Bars
from hedgerow.studies.store import Store, sweep
from hedgerow.studies.work import each, processors, run

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
    jobs: int | None = None,
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
        Processes; as many as there are cores by default. Results do not depend on it.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise SettingError(f"seed must be a whole number from 0 up, got {seed!r}.")
    studies, workers, folder = plan.chosen(only), processors(jobs), Path(out)
    if folder.exists() and not folder.is_dir():
        raise SettingError(f"out must be a folder, but {folder.name} is a file. Give another name.")
    scale = setup.QUICK if quick else setup.FULL
    store = Store.under(folder, seed)
    steps = {study: plan.steps(study, seed=seed, scale=scale) for study in studies}
    with Bars(sys.stderr) as bars:
        tasks = [step.task for study in studies for step in steps[study]]
        run(tasks, store, jobs=workers, report=bars.report)
        tables = {study: plan.tables(steps[study], store) for study in studies}
        drawn = [(picture, folder / "figures") for s in studies for picture in figures.pictures(s, tables[s])]
        drawn += [(picture, folder / "beyond") for s in studies for picture in beyond.pictures(s, tables[s])]
        names = []
        for count, name in enumerate(each(drawn, pictures.save, jobs=workers), 1):
            names.append(name)
            bars.report("figures", count, len(drawn))
    if "application" in studies:
        utility_table.save(tables["application"], folder / "figures")
    decided = [claim for study in studies for claim in claims.decide(study, tables[study])]
    settings = {
        "studies": ", ".join(studies),
        "samples": scale.samples,
        "fits of the application": scale.fits,
        "seed": seed,
    }
    claims.save(decided, folder, settings)
    sweep(folder)
    return Reproduced(folder, tuple(sorted(names)), claims.tally(decided))
