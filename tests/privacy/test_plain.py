"""What stands before a claim is implied by it: odds and tests by brute force, words by their bound."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from hedgerow.privacy.bounds import BOUNDS
from hedgerow.privacy.claims import HARDLY, SENTENCES, TUNED, Figures, write_plain
from hedgerow.privacy.claims.neighbours import NEIGHBOURS
from hedgerow.privacy.claims.units import WHOLE_UNIT, write_unit

COMMON = {"neighbour": NEIGHBOURS["ADP"], "draws": 1000, "independent": True, "confidence": 0.95}
LOCAL = [bound.name for bound in BOUNDS if bound.local]
PURE = ("strict", "censored", "statistics")


def figures(epsilon: float = 1.0, copies: int = 1, delta: float = 0.005) -> Figures:
    return Figures(epsilon=epsilon, copies=copies, delta=delta, **COMMON)


def percent(text: str) -> float:
    return float(text.partition("at most ")[2].partition(" %")[0]) / 100


def neighbours(rng: np.random.Generator, epsilon: float, values: int) -> np.ndarray:
    """Laws of a release by value of one outcome, each within e^ε of the law with the outcome withheld."""
    withheld = rng.dirichlet(np.ones(6))
    signs = rng.choice([-1.0, 1.0], (values, 6))
    tilted = withheld * np.exp(signs * epsilon)
    mass = tilted.sum(axis=1, keepdims=True)
    # Halved in the exponent where normalising would take it out of the bound.
    tilted = np.where(np.abs(np.log(tilted / mass / withheld)) <= epsilon, tilted / mass, np.nan)
    good = ~np.isnan(tilted).any(axis=1)
    half = withheld * np.exp(signs * epsilon / 2)
    return np.where(good[:, None], tilted, half / half.sum(axis=1, keepdims=True))


def test_odds_under_strict_are_what_bayes_rule_allows_at_worst():
    """No belief of 10 % about an outcome passes the limit; e^ε instead of e^(2ε) would be passed."""
    rng, largest = np.random.default_rng(1), 0.0
    epsilon = 0.7
    for _ in range(4000):
        laws = neighbours(rng, epsilon, 2)
        seen = 0.1 * laws[0] / (0.1 * laws[0] + 0.9 * laws[1])
        largest = max(largest, float(seen.max()))
    limit = percent(write_plain("strict", figures(epsilon)))
    assert largest <= limit
    assert largest > 1 / (1 + 9 * math.exp(-epsilon))
    assert limit == pytest.approx(1 / (1 + 9 * math.exp(-2 * epsilon)), abs=0.001)


def test_the_test_under_renyi_is_the_best_that_epsilon_and_delta_allow():
    """Two laws that meet (ε, δ) with equality: the best test with 5 % false alarms reaches the limit."""
    epsilon, delta = 1.0, 0.01
    other = np.array([0.05, 0.95])
    this = np.array([math.exp(epsilon) * 0.05 + delta, 0.0])
    this[1] = 1 - this[0]
    for subset in itertools.product([0, 1], repeat=2):
        chosen = np.array(subset, bool)
        assert this[chosen].sum() <= math.exp(epsilon) * other[chosen].sum() + delta + 1e-12
    limit = percent(write_plain("renyi", figures(epsilon, delta=delta)))
    assert this[0] <= limit <= this[0] + 0.001


def test_ten_percent_becomes_forty_five():
    for bound, epsilon in (("strict", 1.0), ("censored", 1.0), ("exact", 2.0), ("lipschitz", 2.0)):
        assert "to at most 45.1 %" in write_plain(bound, figures(epsilon))


def test_odds_under_each_relation_of_noisy_statistics():
    """Withheld at ε is replaced at 2ε; within a set odds grow by e^ε for whoever knows the set."""
    withheld, replaced, ranged = (
        write_plain("statistics", replace(figures(1.0, 5), neighbour=NEIGHBOURS[f"Strict, {relation}"]))
        for relation in ("withheld", "replaced", "in range")
    )
    assert "to at most 45.1 %" in withheld
    assert "e^(2ε), with ε = 1 in total, however many copies there are" in withheld
    assert "to at most 23.2 %" in replaced
    assert "to at most 23.2 %" in ranged
    assert "a public set that holds the outcome" in ranged


@pytest.mark.parametrize("bound", SENTENCES)
def test_every_bound_reads_in_its_own_way(bound):
    text = write_plain(bound, figures(2.0))
    assert ("some statement about one outcome" in text) == (bound in PURE)
    assert ("This holds for the table at hand, with its weights held fixed" in text) == (bound in LOCAL)
    assert ("no limit on what can be guessed" in text) == (bound in LOCAL)
    assert ("What being told so gives away is not covered" in text) == (bound in ("lipschitz", "oscillation"))
    assert ("except with probability" in text) == (bound in ("lipschitz", "oscillation", "exact"))
    assert ("A test that wrongly says" in text) == (bound in ("renyi", "gaussian"))
    assert ("how far its draws are from exact ones is not known" in text) == (bound == "censored")
    assert bound in TUNED
    assert HARDLY in write_plain(bound, figures(40.0))
    assert HARDLY not in text


def test_delta_is_held_against_the_number_of_records():
    for bound in SENTENCES:
        many, few = (write_plain(bound, figures(copies=2), records=n) for n in (1000, 50))
        total = 0.005 if SENTENCES[bound].together else 0.01
        assert ("not below 1/n = 0.001" in many) == (bound not in PURE)
        assert f"δ = {total:g} in total" in many or bound in PURE
        assert "1/n" not in few
        large = write_plain(bound, figures(copies=2), records=300_000)
        assert ("not below 1/n = 0.0000033: " in large) == (bound not in PURE)
        assert "1/n" not in write_plain(bound, figures())


def test_three_rows_of_one_person_cost_three_times_as_much_unless_the_noise_is_for_all():
    told = {bound: write_unit(bound, figures(2.0, delta=1e-6), rows=3, column="firm") for bound in SENTENCES}
    whole = {bound: told.pop(bound) for bound in WHOLE_UNIT}
    assert all("none, as column 'firm' names them, has more than 3 rows" in text for text in whole.values())
    assert all("for all of them: ε = 2 " in text and "3ε" not in text for text in whole.values())
    assert "ε = 2 and δ = 0.000001 is" in whole["gaussian"]
    assert "kε and δ times ke^((k − 1)ε)" in write_unit("gaussian", figures(2.0, delta=1e-6), rows=None)
    assert all("as column 'firm' names them, has at most 3." in text for text in told.values())
    assert all("3ε = 6 " in text for text in told.values())
    for bound, text in told.items():
        assert ("together the price is" in text) == (bound in PURE)
        assert ("nothing is claimed" in text) == (bound in ("lipschitz", "oscillation", "exact"))
        assert ("nothing is proven" in text) == (bound == "renyi")
    # k e^((k−1)ε) δ, rounded up: 3 e^4 10^-6
    assert "= 0.00017" in told["renyi"]
    assert "above 1 and says nothing" in write_unit("renyi", figures(9.0, delta=1e-6), rows=3)
    assert "was not declared" in write_unit("strict", figures(), rows=None)
    assert "no person or firm has more than one" in write_unit("strict", figures(), rows=1)
    assert "Nothing is claimed for any number" in write_unit("strict", None, rows=2)


@pytest.mark.parametrize("bound", SENTENCES)
@pytest.mark.parametrize("epsilon", [5e-324, 1e308])
@pytest.mark.parametrize("delta", [0.0, 5e-324, 1e308])
def test_figures_that_only_a_forger_writes_do_not_stop_a_receiver(bound, epsilon, delta):
    odd = figures(epsilon, 3, delta)
    assert write_plain(bound, odd, records=10**400)
    assert write_unit(bound, odd, rows=10**9)
