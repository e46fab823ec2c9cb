"""A table larger than memory: copied once into leaves on a disk, encoded leaf by leaf as the whole would be.

    with Scratch(out.parent, out.name) as scratch:
        spooled = spool("payroll/", scratch.path, columns=["pay", "age", "region"])
        spooled = encode_leaves(spooled, builder, ["pay ~ bs(age, df=4) + region"])
        spooled.table(0), spooled.design(0)

Read in this order: `transforms` (what formulas learn of all values of a column) and `replay` (an encoding
applied again), which `design` asks for as well; `scratch` (a private folder that is gone with its work),
`parquet` and `text` (files whose records come in batches, guarded against change), `store` (batches become
leaves: `spool`, `Spooled`), `levels` (a few rows that have every level of public columns), `arguments` (what
a transform is applied to, in passes) and `learning` (what else a design takes from all records:
`encode_leaves`).
"""

from typing import TYPE_CHECKING

import lazy_loader  # type: ignore[import-untyped]

# When they are asked for: `design`, which they build on, builds on `transforms` itself.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={"learning": ["encode_leaves"], "scratch": ["Scratch"], "store": ["Spooled", "spool"]},
)

if TYPE_CHECKING:
    from hedgerow.tables.spool.learning import encode_leaves as encode_leaves
    from hedgerow.tables.spool.scratch import Scratch as Scratch
    from hedgerow.tables.spool.store import Spooled as Spooled
    from hedgerow.tables.spool.store import spool as spool
