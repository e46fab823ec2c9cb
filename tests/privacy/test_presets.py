"""Presets fill in what is left out, and change no words of a claim."""

import pytest
from helpers.corrections import BOX

import hedgerow as hr
from hedgerow.errors import SettingError
from hedgerow.privacy.weights import CapWeights, LinearWeights, PlannedWeights, ScalarWeights
from hedgerow.release.plan.flags import from_flags


def recommended(**settings):
    return hr.Synthesizer("x ~ z", **({"epsilon": 3.0, "preset": "recommended"} | settings))


def test_recommended_is_one_weight_planned_beforehand():
    settings = recommended(copies=3).settings
    assert settings.weights == PlannedWeights()
    assert (settings.bound.name, settings.debias, settings.sampling) == ("renyi", False, "stratified")


def test_the_plain_defaults_stay_the_papers():
    synth = hr.Synthesizer("x ~ z", epsilon=3.0)
    assert (
        synth.settings.weights,
        synth.settings.bound.name,
        synth.settings.debias,
        synth.settings.sampling,
    ) == (
        LinearWeights(),
        "lipschitz",
        False,
        "independent",
    )


def test_what_the_caller_says_wins():
    assert recommended(debias=True).settings.debias
    assert recommended(sampling="independent").settings.sampling == "independent"
    assert recommended(weights=PlannedWeights(0.2), bound="renyi").settings.weights.refused == 0.2
    assert recommended(draws=500).settings.draws == 500


def test_weights_of_the_callers_own_do_not_come_under_a_sharper_bound():
    own = recommended(weights=LinearWeights()).settings
    assert (own.bound.name, own.debias, own.sampling) == ("lipschitz", True, "stratified")


def test_it_needs_a_target():
    with pytest.raises(SettingError, match="needs a positive epsilon"):
        recommended(epsilon=None)


def test_what_a_planned_weight_cannot_meet_is_refused_with_the_way_out():
    """Another bound, a range or no closed form: an ε that would not stand up is not recommended."""
    with pytest.raises(SettingError, match=r"bound='exact'. Give weights of your own"):
        recommended(bound="exact")
    with pytest.raises(SettingError, match="got RangeTruncated"):
        recommended(standard=hr.RangeTruncated(hr.Radius(0.4, 1.8)))
    assert recommended(standard=hr.Unweighted()).settings.standard == hr.Unweighted()
    own = recommended(family="gamma", weights=CapWeights(3.0, risk="oscillation"), debias=False)
    assert own.settings.sampling == "stratified"


def test_a_standard_with_its_own_weights_keeps_them():
    synth = recommended(standard=hr.Strict(BOX, "public"))
    assert (synth.settings.bound.name, synth.settings.debias, synth.settings.sampling) == (
        "strict",
        True,
        "stratified",
    )


def test_the_guarantee_speaks_of_the_bound_in_force():
    release = recommended(seed=1, draws=200).fit(hr.datasets.lognormal(200, seed=2)).sample()
    assert release.guarantee.terms.bound.name == "renyi"
    assert "the loss can exceed ε" not in str(release.guarantee)
    settings = {"bound": "renyi", "seed": 1, "draws": 200}
    # One weight for all whose scale follows the data does move with every record, and the words say so.
    scaled = hr.Synthesizer("x ~ z", weights=ScalarWeights(1.0), epsilon=3.0, **settings)
    words = " ".join(str(scaled.fit(hr.datasets.lognormal(200, seed=2)).sample().guarantee).split())
    assert "The scale of the weights is computed from all records" in words
    fixed = hr.Synthesizer("x ~ z", weights=ScalarWeights(1.0), **settings)
    assert "The scale of" not in str(fixed.fit(hr.datasets.lognormal(200, seed=2)).sample().guarantee)


def flags(**given):
    return from_flags({"formula": "x ~ z", "epsilon": 3.0, "standard": None} | given)


def test_a_command_line_writes_a_preset_out_into_its_plan():
    plan = flags(preset="recommended", copies=3)
    assert plan.settings.weights == PlannedWeights()
    assert (plan.settings.bound.name, plan.settings.debias, plan.settings.sampling) == (
        "renyi",
        False,
        "stratified",
    )
    assert flags(preset="recommended", sampling="independent").settings.sampling == "independent"
    assert flags(preset="recommended", weights="linear").settings.bound.name == "lipschitz"
    assert flags(preset="paper").settings.known == "simulated"


def test_a_preset_beside_a_plan_or_without_a_target_is_refused():
    with pytest.raises(SettingError, match="exclude each other"):
        from_flags({"preset": "recommended"}, base=flags())
    with pytest.raises(SettingError, match="needs a positive epsilon"):
        from_flags({"formula": "x ~ z", "preset": "recommended", "no_target": True})
    with pytest.raises(SettingError, match="paper, recommended"):
        flags(preset="best")


def test_what_a_preset_cannot_correct_is_refused_alike_in_python_and_on_a_command_line():
    with pytest.raises(SettingError) as python:
        recommended(standard=hr.Unweighted(), weights=LinearWeights())
    with pytest.raises(SettingError) as line:
        flags(preset="recommended", standard="unweighted", weights="linear")
    same = (
        "no weights whose bias could be undone. Leave debias out. It was the preset that asked for it: say "
    )
    assert same + "debias=False." in str(python.value)
    assert same + "--no-debias." in str(line.value)
    by_record = {"standard": "range-truncated", "bounds": "low,high", "preset": "recommended"}
    with pytest.raises(SettingError, match=r"given by record.*the preset that asked for it: say --no-debias"):
        flags(**by_record, weights="linear")
