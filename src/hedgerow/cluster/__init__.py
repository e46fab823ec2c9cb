"""Tasks over leaves of records on other processes and machines, by Dask: `hr.connect` (docs/cluster.md).

Reading order: `orders` (what a worker gets and sends back), `probe` (whether it can do the work), `workers`
(who shares tasks out, and what happens when somebody is lost), `connect` (the door).

Formal guarantee: records are read where tasks run. A message holds a task, with draws, factors and seeds, or
a result below `orders.MOST`; tables in memory are not sent at all (`tables.leaves.Held`).
"""
