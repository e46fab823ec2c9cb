"""The mechanism: fit, risk, weights, refit, price, calibrate, copies. Confidential values pass through here.

Read in this order: `steps` (the procedure), `fit` (draws of a weighted posterior), `price` (what they cost),
`importance` (the posterior without a record, by weighing draws), `planned/` (a weight that no outcome moves),
`calibrate` (the scale that meets a target), `cells` (a column's cells, taken apart and put together), `links`
(designs of what is modelled of them), `copies` (the random numbers behind predictions), `debias` (undoing the
bias of the weights). Beside them `noisy/`, the second mechanism, `streamed/`, the first one leaf by leaf, and
`classes`: where every record's class is public, draws that cost nothing, and copies inside them.
"""
