"""The mechanism over leaves, and a synthesizer that holds a view of what came of it."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import HedgerowWarning
from hedgerow.mechanism.links import note_withheld
from hedgerow.mechanism.noisy.chain.cells import settle_types
from hedgerow.mechanism.noisy.chain.streamed import stream_chain
from hedgerow.mechanism.noisy.leaves.streamed import stream_statistics
from hedgerow.mechanism.streamed.fit import stream_weighted
from hedgerow.mechanism.streamed.leaf import kept_alpha
from hedgerow.mechanism.streamed.view import view
from hedgerow.numerics.leaves import add_in_order
from hedgerow.privacy.settings import Settings
from hedgerow.randomness import Key
from hedgerow.release.streamed.views import (
    NoisedChainView,
    NoisedView,
    WeightedView,
    rows_standing_out,
)
from hedgerow.synthesizer import Synthesizer
from hedgerow.tables.design import Design
from hedgerow.tables.leaves import Leaves
from hedgerow.tables.spool import Spooled
from hedgerow.tables.table import Table
from hedgerow.threads import Here, Workers


def fit_leaves(
    synth: Synthesizer,
    leaves: Spooled,
    looked_at: tuple[Table, Design],
    *,
    seed: int | None,
    compared: NDArray[np.intp],
    left_out: Sequence[str],
    keep: Sequence[str],
    workers: Workers,
) -> Synthesizer:
    """Fits as `Synthesizer.fit` does, on all leaves; what is given away is looked for in some rows."""
    for note in leaves.design_notes:
        warnings.warn(note, HedgerowWarning, stacklevel=3)
    synth._look_over(*looked_at, left_out=left_out, keep=keep)
    settings, key = synth.settings, Key.from_seed(seed)
    common: dict[str, Any] = {"key": key, "seeded": seed is not None, "every": leaves.records}
    common |= {"left_out": tuple(left_out), "keep": tuple(keep)}
    used = looked_at[0].columns
    if settings.noisy is not None:
        table, design = leaves.take(compared)
        common |= {"encoded": design, "rows": compared}
        if settings.by_name:
            chain = stream_chain(settings, leaves, key=key, workers=workers)
            source = settle_types(settings, table.select(used))
            synth._fitted = NoisedChainView(
                **common, settings=settings, source=source, released=chain.released, whole=chain
            )
        else:
            noised = stream_statistics(settings, leaves, key=key, workers=workers)
            synth._fitted = NoisedView(
                **common, settings=noised.settings, source=table.select(used), released=noised.released,
                whole=noised,
            )  # fmt: skip
    else:
        synth._check_closed()
        whole = stream_weighted(settings, leaves, key=key, workers=workers)
        mean = whole.scale * _mean_alpha(settings, leaves, workers)
        common |= {"settings": settings, "whole": whole, "scale": whole.scale, "mean": mean}
        for link, gone in zip(settings.links, whole.overview.withheld, strict=True):
            for note in note_withheld(link.column, gone, leaves.records):
                warnings.warn(note, HedgerowWarning, stacklevel=3)

        def look(rows: NDArray[np.intp], **more: Any) -> WeightedView:
            # Here, and not by the workers: what a leaf has of these rows is more than a message may hold.
            start, outcome = view(whole, leaves, Here(), rows.tolist())
            start = replace(start, table=start.table.select(used))
            return WeightedView(**common, rows=rows, start=start, outcome=outcome, **more)

        synth._fitted = look(compared, standing_out=look(rows_standing_out(whole)))
    for doubt in synth._fitted.doubts():
        warnings.warn(doubt, HedgerowWarning, stacklevel=3)
    return synth


def _mean_alpha(settings: Settings, leaves: Leaves, workers: Workers) -> float:
    """The mean weight before it was scaled."""
    look = partial(_sum_alpha, settings)
    return add_in_order(list(workers.map(look, leaves, range(leaves.count)))) / leaves.records


def _sum_alpha(settings: Settings, leaves: Leaves, leaf: int) -> float:
    return float(kept_alpha(settings, leaves, leaf).sum())
