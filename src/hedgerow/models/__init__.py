"""Models: sample the weighted posterior, score `log_lik` and `log_mass`, predict.

In reading order: `base` (a model is a check and four functions), `scored` and `reductions` (what prices ask
of it), `correctable` (what corrections ask of it), `prior`, `exact` (closed forms), `wrapped` (models made
from models), `programs` (any NumPyro program) and `families` (by name).
"""
