"""A user's model with just what a model must have: a check and four functions."""

from scipy.special import ndtri
from scipy.stats import norm

from hedgerow.models.base import Health, Model, Sample
from hedgerow.numerics.normal_mass import log_interval_mass


class Level(Model):
    """x = level + e, with a standard normal e and a vague normal prior."""

    name = "level"

    def check(self, design):
        pass

    def sample(self, design, power, *, draws, key):
        total = 0.01 + power.sum()
        noise = key.stream().normal(draws) / total**0.5
        health = Health("exact", independent=True, effective_draws=float(draws))
        return Sample({"level": (power * design.values).sum() / total + noise}, health)

    def log_lik(self, design, parameters, records):
        return norm.logpdf(design.values[records] - parameters["level"][:, None])

    def log_mass(self, design, parameters, interval, records):
        level, ends = parameters["level"][:, None], interval[records]
        return log_interval_mass(ends.lower - level, ends.upper - level)

    def predict(self, design, parameters, uniforms):
        return parameters["level"] + ndtri(uniforms)
