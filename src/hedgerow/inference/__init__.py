"""What a receiver may conclude: `intervals` from released draws, `statistics` from noisy statistics that were
published with copies, `classes` from public classes alone; `bootstrap` of anything a table tells, by a replay
of the release (`bootstrap_noisy`, `bootstrap_draws`); `combine` by the rules for synthetic copies; `survey`:
weighted means, totals and shares. Post-processing, all of it.
"""
