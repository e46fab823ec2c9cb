"""A table larger than memory: copied once into leaves on a disk, encoded leaf by leaf as the whole would be.

    with Scratch(out.parent, out.name) as scratch:
        spooled = spool("payroll/", scratch.path, columns=["pay", "age", "region"])
        spooled = encode_leaves(spooled, builder, ["pay ~ bs(age, df=4) + region"])
        spooled.table(0), spooled.design(0)

Read in this order: `transforms` (what formulas learn of all values of a column, which `design` asks for as
well), `scratch` (a private folder that is gone with its work), `parquet` (files whose records come in
batches, guarded against change), `store` (batches become leaves: `spool`, `Spooled`), `levels` (a few rows
that have every level of public columns), `arguments` (what a transform is applied to, in passes) and
`learning` (what else a design takes from all records: `encode_leaves`).
"""
