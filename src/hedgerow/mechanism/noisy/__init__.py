"""Strict privacy by noisy statistics: sums of clipped residuals with noise, and what follows from them alone.

The second mechanism beside the pseudo posterior (docs/maths.md, "Strict by noisy statistics"). Read in this
order: `recipe` (what is settled beforehand, from public things; `recipe/make` chooses it), `prices` (ε of a
round), `rounds` (the only place that reads the outcome: integer sums and discrete noise), `released` (these
sums, with their noise), `estimate` (line and σ from a round), `spike` (which outcomes lie at a family's
spike), `posterior` (draws given the noisy statistics), `margin` (noisy counts for wrong models), `copies`,
`expect` (errors beforehand), `run` (from settings to a recipe, and what one outcome changes in what is
released). `leaves` says how all of it runs over records, in memory or elsewhere; `chain` is the same for
several columns, one after the other.
"""
