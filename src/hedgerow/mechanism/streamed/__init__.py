"""The mechanism over leaves of records (`tables.leaves`): for tables that are never held as a whole.

Read `support` (what it takes), `merged` (a fit of all leaves), `leaf` (one leaf as the steps see it),
`account` (what a fit costs), `run` (refit, price and calibrate), `weigh` (risks and weights, with `ranks` and
`planned`), `fit` (the door, and what is known afterwards), `copies`, `view` (some rows with the fit of all).

Each step is `mechanism.steps` on the records of one leaf, with a few numbers about all: what is said of all
records is a merge, a sum or an extreme of what leaves say, so that risks, weights, prices and copies are
those of the table in memory, to the last digit.
"""
