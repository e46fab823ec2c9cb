"""Models: sample the weighted posterior, score `log_lik` and `log_mass`, predict.

In reading order: `base` (a model is a check and four functions), `scored` and `reductions` (what prices ask
of it), `correctable` (what corrections ask of it), `prior`, `conjugate` (a posterior in closed form) and
`exact` (the regressions that have one), `box` (such a posterior within a box), `chain/` (several columns as
one model), `wrapped` (models made from models), `programs/` (any NumPyro program) and `families/` (by name).
"""
