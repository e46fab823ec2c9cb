"""What sums with noise need, in arrays and whole numbers.

`loadings` (predictors whitened and capped), `varimax` (a rotation to sparse rows), `discrete` (noise on whole
numbers with exactly the stated distribution), `clipped` and `clipped_offsets` (moments of clipped
normal variables, centred and not), `neighbours` (groups of fitted values, the same for all leaves), `modes`
(draws of a few coordinates about a mode).
"""
