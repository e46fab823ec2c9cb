"""What a receiver may conclude: `intervals` from released draws, `statistics` from noisy statistics that were
published with copies, `classes` from public classes alone; `survey` has weighted means, totals and shares.
Post-processing, all of it.
"""
