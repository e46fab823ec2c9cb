"""Models: sample the weighted posterior, score `log_lik` and `log_mass`, predict."""
