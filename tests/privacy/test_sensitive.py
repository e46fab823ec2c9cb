"""Linear standards are recognised; others are scored in blocks to the same numbers."""

from dataclasses import dataclass

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.models.scored import Interval, Linear, Opaque
from hedgerow.privacy.sensitive import sensitive_part


# A user's standard in a few lines: half of what truncation takes as public is public.
@dataclass(frozen=True)
class HalfTruncated(hr.Standard):
    range: hr.Range
    label = "HalfTruncated"
    neighbour = "the outcome of one record is coarsened to its range, at half its weight"

    def power(self, alpha, known):
        return alpha

    def sensitive(self, alpha, known, log_lik, log_mass):
        return alpha * log_lik - alpha / 2 * log_mass


@dataclass(frozen=True)
class Clipped(hr.Standard):
    """Not linear: the sensitive part is cut off below."""

    label = "Clipped"
    neighbour = "x_i withheld, with the log likelihood cut off"

    def power(self, alpha, known):
        return alpha

    def sensitive(self, alpha, known, log_lik, log_mass):
        return np.maximum(alpha * log_lik, -2.0)


class OpaqueTwin(hr.RangeTruncated):
    """RangeTruncated written so that it cannot be recognised."""

    def sensitive(self, alpha, known, log_lik, log_mass):
        return super().sensitive(alpha, known, np.asarray(log_lik), np.asarray(log_mass))


def interval(n):
    return Interval(np.zeros(n), np.ones(n), np.ones(n, dtype=bool))


def test_built_in_standards_are_linear():
    alpha, known = np.array([0.2, 0.7]), np.array([0.5, 0.1])
    expected = {
        hr.Unweighted(): ([1, 1], [0, 0]),
        hr.ADP(): (alpha, [0, 0]),
        hr.RangeAveraged(): ((1 - known) * alpha, [0, 0]),
        hr.RangeTruncated(): (alpha, -alpha),
        hr.RangeTruncated(public_weight="one"): (alpha, [-1, -1]),
    }
    for standard, (density, mass) in expected.items():
        part = sensitive_part(standard, alpha, known, interval(2))
        assert isinstance(part, Linear)
        np.testing.assert_allclose(part.density, density)
        np.testing.assert_allclose(part.mass, mass)


def test_a_standard_of_ones_own_runs_and_prices(small):
    half = hr.Synthesizer("x ~ z", standard=HalfTruncated(hr.Radius(0.4, 1.8)), seed=1, draws=200)
    half.fit(small[["x", "z"]])
    ends = [
        hr.Synthesizer("x ~ z", standard=standard, seed=1, draws=200).fit(small[["x", "z"]]).epsilon_
        for standard in (hr.ADP(), hr.RangeTruncated(hr.Radius(0.4, 1.8)))
    ]
    assert min(ends) < half.epsilon_ < max(ends)
    assert (
        "coarsened to its range, at half its weight"
        in hr.Synthesizer("x ~ z", standard=HalfTruncated(hr.Radius(0.4, 1.8)), epsilon=5, seed=1, draws=200)
        .fit(small[["x", "z"]])
        .sample()
        .guarantee.claim()
    )


def test_blocks_and_kernels_agree(small):
    data = small[["x", "z"]]
    radius = hr.Radius(0.6, 1.2)
    for form in ("alpha", "one"):
        fused = hr.Synthesizer("x ~ z", standard=hr.RangeTruncated(radius, form), seed=2, draws=300).fit(data)
        blocked = hr.Synthesizer("x ~ z", standard=OpaqueTwin(radius, form), seed=2, draws=300).fit(data)
        np.testing.assert_allclose(blocked.lipschitz_, fused.lipschitz_, rtol=1e-9)
        assert blocked.oscillation_epsilon_ == pytest.approx(fused.oscillation_epsilon_, rel=1e-9)


def test_a_nonlinear_standard_is_scored_in_blocks(small):
    part = sensitive_part(Clipped(), np.ones(3), np.zeros(3), interval(3))
    assert isinstance(part, Opaque)
    clipped = hr.Synthesizer("x ~ z", standard=Clipped(), seed=1, draws=200).fit(small[["x", "z"]])
    plain = hr.Synthesizer("x ~ z", seed=1, draws=200).fit(small[["x", "z"]])
    np.testing.assert_allclose(clipped.lipschitz_, np.minimum(plain.lipschitz_, 2.0), rtol=1e-9)
    assert not hasattr(clipped, "exact_epsilon_")
    assert clipped.renyi_epsilon_ is None
    assert set(clipped.withheld_epsilon_) == {"lipschitz", "oscillation", "exact", "renyi"}


@pytest.mark.parametrize(
    "formula",
    [
        lambda f, m: f if (f > 0).all() else -f,
        lambda f, m: f * m,
        lambda f, m: f**2,
        lambda f, m: np.exp(f),
        lambda f, m: np.where(np.isfinite(m), f, 0.0),
        lambda f, m: f[0],
        lambda f, m: float(f),
        lambda f, m: f == m,
    ],
)
def test_anything_but_linear_arithmetic_is_refused_by_the_symbols(formula):
    class Odd(hr.Standard):
        label = neighbour = "odd"

        def power(self, alpha, known):
            return alpha

        def sensitive(self, alpha, known, log_lik, log_mass):
            return formula(log_lik, log_mass)

    assert isinstance(sensitive_part(Odd(), np.ones(2), np.zeros(2), interval(2)), Opaque)
