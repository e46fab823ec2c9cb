"""What was found by record, as a file that grows leaf by leaf. Confidential."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from hedgerow.mechanism.price import shares_of_largest
from hedgerow.mechanism.streamed.leaf import kept_alpha
from hedgerow.release.streamed.views import WeightedView
from hedgerow.tables.files import Format, Source, grow
from hedgerow.tables.files.growing import Cells
from hedgerow.tables.leaves import Leaves


def write_records(view: WeightedView, leaves: Leaves, path: Path) -> None:
    """The columns of `Synthesizer.records_`, of all records."""
    settings, fit = view.settings, view.whole
    uses_known = settings.standard.uses_known and any(fit.overview.ranged or ())
    largest = float(fit.account.dearest.values[0])
    like = Source(pa.table({}), Format.PARQUET)
    with grow(path, like, Cells()) as file:
        for leaf in range(leaves.count):
            rows, price = leaves.rows(leaf), leaves.kept("price", leaf)
            blank = np.zeros(len(price))
            alpha = kept_alpha(settings, leaves, leaf)
            columns = {
                "record": np.arange(rows.start, rows.stop),
                "risk": leaves.kept("risk", leaf),
                "alpha": fit.scale * alpha,
                "power": leaves.kept("power", leaf),
                "known": leaves.kept("known", leaf) if uses_known else blank,
                "price": price,
                "share": shares_of_largest(price, largest),
            }
            file.append(pa.table(columns))
