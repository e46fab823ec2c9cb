"""The families in Stan: the priors, and the coordinates of the coefficients, are hedgerow's own."""

_DATA = """
data {
  int n; int k; matrix[n, k] X; matrix[k, k] C; vector[k] mean; vector[k] deviation; vector[k] centre;
  matrix[k, k] root; real guess; real spread; OUTCOME
}
parameters { vector[k] raw; OWN }
transformed parameters { vector[k] beta = centre + root * raw; }
model {
  C * beta ~ normal(mean, deviation);
  LIKELIHOOD
}
"""
_POSITIVE = "scale ~ lognormal(guess, spread);"
_PARTS = {
    "gamma": (
        "vector<lower=0>[n] x;",
        "real<lower=0> scale;",
        f"{_POSITIVE} x ~ gamma(scale, scale * exp(-X * beta));",
    ),
    "beta": (
        "vector<lower=0, upper=1>[n] x;",
        "real<lower=0> scale;",
        f"{_POSITIVE} x ~ beta_proportion(inv_logit(X * beta), scale);",
    ),
    "negative_binomial": (
        "array[n] int<lower=0> x;",
        "real<lower=0> scale;",
        f"{_POSITIVE} x ~ neg_binomial_2_log(X * beta, scale);",
    ),
    "ordinal": (
        "int classes; array[n] int<lower=1> x;",
        "simplex[classes] share;",
        "x ~ ordered_logistic(X * beta, logit(cumulative_sum(share)[1 : (classes - 1)]));",
    ),
}
PROGRAMS = {
    name: _DATA.replace("OUTCOME", outcome).replace("OWN", own).replace("LIKELIHOOD", likelihood)
    for name, (outcome, own, likelihood) in _PARTS.items()
}
GUESSES = {"gamma": 1.0, "beta": 4.0, "negative_binomial": 1.0, "ordinal": 1.0}  # of `scale`, at residual 1
