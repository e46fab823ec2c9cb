"""How prices move with the number of records: refits on nested subsamples. Confidential."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow.errors import SettingError
from hedgerow.privacy.bounds import LOCAL, prices
from hedgerow.randomness import Key
from hedgerow.tables.table import Table


def contraction(
    make: Any,
    data: Any,
    *,
    sizes: Sequence[int] | None = None,
    left_out: Sequence[str] = (),
    keep: Sequence[str] = (),
    seed: int | None = None,
) -> dict[str, list[float]]:
    """Refit on nested subsamples: each bound against n, own and with x_i withheld.

    `make` builds an unfitted synthesizer: contraction(lambda: Synthesizer("x ~ z"), data).
    """
    table = Table.of(data)
    order = np.argsort(Key.from_seed(seed).child("contraction").stream().uniform(table.rows))
    chosen = sizes if sizes is not None else [table.rows // 2**k for k in range(4, -1, -1)]
    rows: list[dict[str, float]] = []
    for size in chosen:
        if not 1 <= size <= table.rows:
            raise SettingError(f"sizes must lie between 1 and the {table.rows} rows, got {size}.")
        chosen_rows = np.zeros(table.rows, dtype=np.bool_)
        chosen_rows[order[:size]] = True
        synth = make().fit(table.rows_where(chosen_rows).native, left_out=left_out, keep=keep)
        row = {"n": float(size), "epsilon": synth.epsilon_, "mean_alpha": float(synth.alpha_.mean())}
        own, withheld = prices(synth._need().outcome.pricing), synth.withheld_epsilon_
        for bound in LOCAL:
            row[bound.name] = own.get(bound.name, np.nan)
            row[f"withheld_{bound}"] = withheld.get(bound.name, np.nan)
        rows.append(row)
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
