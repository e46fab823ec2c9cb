"""The words of claims: every bound and every standard has them, and the engine uses no others."""

import pytest

import hedgerow as hr
from hedgerow.privacy.bounds import BOUNDS
from hedgerow.privacy.claims import (
    NO_TARGET,
    SENTENCES,
    Figures,
    is_refusal,
    write_claim,
    write_plain,
    write_refusal,
)
from hedgerow.privacy.claims.neighbours import NEIGHBOURS, join_columns, join_records, whose
from hedgerow.privacy.claims.units import write_unit
from hedgerow.release.plan.kinds import STANDARDS

FIGURES = {"neighbour": NEIGHBOURS["ADP"], "epsilon": 40.0, "copies": 3, "draws": 200, "independent": True}


def test_every_bound_has_a_sentence_that_states_its_figures():
    assert list(SENTENCES) == [bound.name for bound in BOUNDS]
    figures = Figures(**FIGURES, delta=0.0149, confidence=0.95)
    for bound in BOUNDS:
        claim, stated = write_claim(bound.name, figures), SENTENCES[bound.name].states
        together = SENTENCES[bound.name].together
        assert ("δ = 0.015" in claim) == ("delta" in stated) == (bound.over_draws or bound.takes_delta)
        assert ("95%" in claim) == ("confidence" in stated) == bound.over_draws
        # One copy's, rounded up: a claim never says less than it must.
        assert ("ε = 13.3334" in claim) != together
        assert "40" in claim
        assert (bound.shares(40.0, 3, stated=0.1, asked=1e-6).epsilon[0] is None) == together


def test_every_standard_that_a_plan_knows_says_what_it_compares_with():
    labels = {kind.makes.label: kind.makes.neighbour for kind in STANDARDS.values()}
    one = hr.RangeTruncated(hr.Radius(0.4, 1.8), public_weight="one")
    strict = [
        hr.Strict(limits=(1, 2)),
        hr.Strict(limits=(1, 2), relation="replaced"),
        hr.Strict(limits=(1, 2), relation="range", range=hr.Radius(0.4, 1.8)),
    ]
    assert labels | {each.label: each.neighbour for each in (one, *strict)} == NEIGHBOURS


@pytest.mark.parametrize(
    ("claim", "refuses"),
    [
        (NO_TARGET, True),
        (write_refusal("the sampler failed its health checks (rhat) and the owner overrode them"), True),
        (write_refusal("ε = 1 holds all the same"), False),
        (write_claim("strict", Figures(**FIGURES)), False),
    ],
)
def test_what_claims_nothing(claim, refuses):
    assert is_refusal(claim) == refuses


@pytest.mark.parametrize("label", NEIGHBOURS)
@pytest.mark.parametrize("several", [False, True])
def test_a_claim_for_units_speaks_of_no_single_record(label, several):
    """Whatever the standard and the bound: all records of a unit, in both paragraphs."""
    alone = join_columns(NEIGHBOURS[label]) if several else NEIGHBOURS[label]
    noisy = label.startswith("Strict,")
    unit = whose(None, 7) if noisy else whose("home: id")
    figures = Figures(
        neighbour=join_records(alone, unit), epsilon=2.0, copies=2, draws=100, independent=True, delta=1e-6,
        confidence=0.95, unit=unit,
    )  # fmt: skip
    assert figures.several == several
    for bound in ("statistics", "gaussian") if noisy else ("lipschitz", "oscillation", "exact", "renyi"):
        for text in (write_claim(bound, figures), write_plain(bound, figures, records=900)):
            assert "one record" not in text.replace("publishing one record of n", "")
            assert "any record" not in text
            assert "one outcome" not in text
            assert f"all records of {unit}" in text
    words = write_unit("renyi", figures, rows=7, column="home: id", several=several, together=True)
    assert "one 'home: id'" in words
    assert "none has more than 7 rows" in words
