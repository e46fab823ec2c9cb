"""Advice on weights: from public things alone, at the parameters asked for, never silently refused."""

import numpy as np
import pandas as pd
import pytest
from helpers.corrections import BOX

import hedgerow as hr
from hedgerow.advice.candidates import METHODS, Candidate, usual
from hedgerow.errors import SettingError
from hedgerow.privacy.bounds import LIPSCHITZ, OSCILLATION, STRICT
from hedgerow.privacy.weights import CapWeights, LinearWeights, moves_with_everyone

FEW = (
    Candidate("linear, 2Δ", LIPSCHITZ, LinearWeights()),
    Candidate("cap 1, oscillation", OSCILLATION, CapWeights(1.0, risk="oscillation")),
)
GUESS = {"Intercept": 1.0, "z": 1.0, "sigma": 1.0}


def public(n=80):
    return hr.datasets.lognormal(n, seed=5)


def quick(data, **settings):
    settings = {"epsilon": 6.0, "candidates": FEW, "tables": 1, "draws": 200, "seed": 1} | settings
    return hr.weights.advise("x ~ z", data, **settings)


@pytest.fixture(scope="module")
def advice():
    return quick(public()[["z"]], parameters=GUESS)


@pytest.mark.slow
def test_every_candidate_has_a_row_a_method_and_the_best_stands_first(advice):
    assert len(advice.table) == len(FEW) * len(METHODS)
    assert set(advice.table["weights"]) == {one.label for one in FEW}
    scored = advice.table["score"].dropna()
    assert len(scored)
    assert scored.is_monotonic_increasing
    assert advice.recommended["score"] == scored.iloc[0]


@pytest.mark.slow
def test_the_score_is_the_mean_ratio_of_right_and_wrong(advice):
    row = advice.recommended
    assert row["score"] == pytest.approx(0.75 * row["right"] + 0.25 * row["wrong"])


@pytest.mark.slow
def test_it_says_the_claim_and_where_parameters_came_from(advice):
    told = str(advice)
    assert "public guesses" in told
    assert "different claims" in told
    assert all(claim in told for claim in advice.by_claim["claim"])


@pytest.mark.slow
def test_its_settings_make_a_synthesizer(advice):
    synth = hr.Synthesizer("x ~ z", **advice.settings)
    assert synth.settings.bound.name == advice.recommended["bound"]
    assert synth.settings.debias == (advice.recommended["method"] != "plain")


@pytest.mark.slow
def test_an_outcome_beside_given_parameters_has_no_part_in_it(advice):
    data = public()
    other = data.assign(x=data["x"].to_numpy()[::-1] * 7)
    pd.testing.assert_frame_equal(quick(other, parameters=GUESS).table, advice.table)


@pytest.mark.slow
def test_parameters_come_from_the_stand_in_or_the_prior():
    one = FEW[1:]
    assert "stand-in" in quick(public(), candidates=one).source
    prior = hr.Prior(residual_df=20, coefficients={"Intercept": (1.0, 0.2), "z": (1.0, 0.1)})
    found = quick(public()[["z"]], candidates=one, prior=prior, records=50)
    assert "prior" in found.source
    assert found.records == 50


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "nothing to simulate at"),
        ({"prior": hr.Prior()}, "too vague"),
        ({"parameters": {"z": 1.0, "sigma": 1.0}}, "Intercept, z, sigma"),
        ({"parameters": GUESS | {"sigma": -1.0}}, "sigma must be positive"),
        ({"parameters": GUESS | {"Intercept": 1e6}}, "leave the numbers|beyond"),
        ({"parameters": GUESS, "epsilon": 0.0}, "epsilon"),
        ({"parameters": GUESS, "trust": 2.0}, "trust"),
        ({"parameters": GUESS, "tables": 0}, "tables"),
        ({"parameters": GUESS, "family": "gamma"}, "exact families"),
        ({"parameters": GUESS, "candidates": ()}, "candidates is empty"),
        ({"parameters": GUESS, "candidates": ("linear",)}, "candidates must be .* got a str in it"),
        ({"parameters": GUESS, "candidates": LinearWeights()}, "got a LinearWeights in it"),
        ({"parameters": GUESS, "candidates": (*FEW, FEW[0])}, "the label 'linear, 2Δ' is taken"),
        (
            {"parameters": GUESS, "candidates": [Candidate("Unweighted", LIPSCHITZ)]},
            "the label 'Unweighted' is taken",
        ),
        (
            {"parameters": GUESS, "candidates": [Candidate("none", LIPSCHITZ, standard=hr.Unweighted())]},
            "'none' has the standard Unweighted, which uses no weights",
        ),
    ],
)
def test_what_it_cannot_do_it_refuses_with_a_reason(settings, words):
    with pytest.raises(hr.HedgerowError, match=words):
        quick(public()[["z"]], **settings)


@pytest.mark.slow
def test_a_target_that_cannot_be_met_is_not_recommended():
    found = quick(public(20)[["z"]], parameters=GUESS, candidates=FEW[:1], epsilon=0.05)
    assert found.table["score"].isna().all()
    assert "Nothing to recommend" in str(found)
    with pytest.raises(SettingError, match="Raise ε"):
        _ = found.recommended


@pytest.mark.slow
def test_a_box_far_from_the_guesses_is_scored_like_the_others_and_loses():
    far = hr.Strict({"Intercept": (40.0, 41.0), "z": (0.5, 1.5), "sigma": (0.6, 1.6)}, "wrong")
    chosen = (FEW[1], Candidate("strict", STRICT, None, far))
    found = quick(public()[["z"]], parameters=GUESS, candidates=chosen)
    assert set(found.table["weights"]) == {"cap 1, oscillation", "strict"}
    assert (found.table.query("weights == 'strict'")["met"] > 0).all()
    assert found.recommended["weights"] == "cap 1, oscillation"


def test_a_predictor_called_like_the_residual_deviation_is_refused():
    data = public()[["z"]].rename(columns={"z": "sigma"})
    with pytest.raises(SettingError, match=r"advise: .* Rename the column"):
        hr.weights.advise("x ~ sigma", data, epsilon=6.0, parameters={"Intercept": 1.0, "sigma": 1.0})


def test_the_usual_candidates_put_no_linear_weights_under_a_sharper_bound():
    for one in usual(1.0, box=BOX):
        sharper = one.bound in ("oscillation", "exact")
        assert not (sharper and moves_with_everyone(one.weights))
    assert usual(1.0, box=BOX)[-1].bound.name == "strict"
    assert np.isclose(next(one for one in usual(2.0) if "cap ε," in one.label).weights.cap, 2.0)
