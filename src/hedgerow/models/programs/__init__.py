"""Models without a closed form, sampled by NUTS: NumPyro programs, a user's own and those of the families.

In reading order: `program` (a user's), `sampled` (what all of them share), `inspection` (what a program may
do), `potential` (the weighted posterior; `compiled` keeps its code), `nuts` and `gate` (draws, and whether to
trust them), `scores`, `response` and `masses` (densities, interval masses, quantiles), `laplace` (modes; for
simulated tables).
"""
