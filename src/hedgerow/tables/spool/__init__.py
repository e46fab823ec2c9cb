"""A table larger than memory: copied once into leaves on a disk, encoded leaf by leaf as the whole would be.

Read in this order: `scratch` (a private folder that never outlives its process for long), `parquet` (files
whose records come in batches, guarded against change), `store` (batches become leaves: `spool`, `Spooled`),
`levels` (a few rows that have every level of public columns), `passes` (what else is learnt of all records).
"""
