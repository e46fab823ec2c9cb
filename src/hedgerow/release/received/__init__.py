"""Intervals for whoever holds a release: copies in memory, or a `public/` folder that was received.

    >>> import hedgerow as hr
    >>> table = hr.datasets.lognormal(n=300, seed=1)
    >>> strict = hr.Strict(limits=(0.01, 1e4))
    >>> synth = hr.Synthesizer("x ~ z", standard=strict, epsilon=2.0, copies=2, seed=1).fit(table)
    >>> found = hr.intervals(synth.sample(), lambda copy: {"mean of x": copy["x"].mean()}, tables=20)
    >>> list(found.columns)
    ['term', 'estimate', 'lower', 'upper', 'method']

Of a folder the plan, `statistics.json` and the copies are read, and nothing else is needed. What is computed
from them is post-processing: it costs nothing, and any number of estimands may be asked for.
"""

import os
import warnings
from pathlib import Path
from typing import Any

from hedgerow.errors import HedgerowWarning, ReleaseError, SettingError, reason_of
from hedgerow.fitted import NoisedChain
from hedgerow.fitted.replay import ChainReplay
from hedgerow.inference.bootstrap import TABLES, Estimator, Replay, conclude_from
from hedgerow.inference.bootstrap_noisy import NoisyReplay
from hedgerow.inference.columns import read_columns
from hedgerow.inference.statistics import load_statistics, read_statistics, refusing_damage
from hedgerow.privacy.guarantee import Release
from hedgerow.release.folder import PLAN, PUBLIC, STATISTICS
from hedgerow.release.plan import Plan
from hedgerow.results import Results
from hedgerow.synthesizer import encode
from hedgerow.tables.files import read
from hedgerow.tables.table import Table


def intervals(
    release: Any,
    estimator: Estimator | None = None,
    *,
    level: float = 0.95,
    tables: int = TABLES,
    seed: int = 0,
) -> Any:
    """Interval estimates of any numbers from a release: one row per term, in a table of the copies' kind.

    Parameters
    ----------
    release
        What `Synthesizer.sample` returned, the fitted synthesizer, or the path of a `public/` folder that has
        `statistics.json`.
    estimator
        A function of a table that returns a number, an array or a mapping of numbers; it is called for each
        copy and each simulated table, in which codes that stand for no amount are missing. None: the model's
        own parameters, from the posterior given noisy statistics or from corrected draws.
    level
        Of the intervals.
    tables
        Simulated tables: more make the ends less noisy.
    seed
        Of the simulation, which has nothing to do with that of the release.

    The estimate is the mean over the copies. The truth is what the estimator gives on average on tables like
    the confidential one, whose outcomes follow the model: where the model is wrong, so are the intervals.
    Strict by noisy statistics, and corrected draws of the exact models (docs/coverage.md).

    Formal guarantees
    -----------------
    A function of released and public things: post-processing, covered by the ε of the copies. To look at the
    confidential table before deciding what to give out is not.
    """
    told: dict[str, Any] = {"level": level, "tables": tables}
    if isinstance(release, Results):
        return release.intervals(estimator, **told)
    if isinstance(release, Release):
        return conclude_from(release.replay, estimator, **told, seed=seed)
    if not isinstance(release, str | os.PathLike):
        raise SettingError(
            f"intervals: a release, a fitted synthesizer or a folder is needed, got {type(release).__name__}."
        )
    return conclude_from(read_folder(release), estimator, **told, seed=seed)


def read_folder(folder: str | os.PathLike[str]) -> Replay:
    """What a received folder says of how it was made."""
    place = Path(folder)
    place = place / PUBLIC if (place / PUBLIC).is_dir() else place
    plan = Plan.load(place / PLAN)
    if plan.settings.noisy is None:
        raise ReleaseError(
            "intervals: these copies were drawn from a posterior, which only its owner can replay "
            "(Synthesizer.intervals). hr.combine needs copies alone."
        )
    try:
        document = load_statistics(place / STATISTICS)
    except OSError as error:
        raise ReleaseError(
            f"{STATISTICS} cannot be read ({reason_of(error)}): intervals need it, and a release under "
            "Strict(limits=…) has it with outputs: {statistics: true}. hr.combine needs copies alone."
        ) from None
    files = sorted(place.glob("synthetic-copy-*"), key=lambda file: (len(file.name), file.name))
    missing, words = plan.read.missing, plan.settings.worded
    numbers = [name for name in plan.settings.outcomes if name not in words]
    copies = [read(file, missing=missing, text=words, numbers=numbers).frame.to_pandas() for file in files]
    if not copies:
        raise ReleaseError("The folder has no synthetic-copy-1 … Pass the public folder of a release.")
    with warnings.catch_warnings(action="ignore", category=HedgerowWarning), refusing_damage():
        if "sections" in document:
            columns = tuple(read_columns(document, copies[0]))
            return ChainReplay(NoisedChain, plan.settings, columns, copies=tuple(copies))
        released, _ = read_statistics(document, copies[0])
        design = encode(Table.of(copies[0]), [plan.settings])
    return NoisyReplay(plan.settings, design.blank(), released, copies=tuple(copies))
