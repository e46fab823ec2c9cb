"""What somebody reads who slips in the first hour: hedgerow's own words, with what to do instead."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.errors import DataError, FormulaError, HedgerowError, SettingError
from hedgerow.evidence.attack import Attack
from hedgerow.evidence.audit import Audit
from hedgerow.numerics.rounding import format_count
from hedgerow.release.plan.flags import from_flags

PLANNED = {"formula": "x ~ z", "epsilon": 3.0}


def test_two_outcomes_are_told_how(small):
    with pytest.raises(FormulaError, match=r"names 2 columns.*--protect x,z .*hr\.Column\(.x ~"):
        hr.Synthesizer("x + z ~ group").fit(small)


@pytest.mark.parametrize(
    ("formula", "told"),
    [
        ("net, € ~ x", "stands in backticks: `net, €`"),
        ("net, to ~ x", "If it is one name, write it in backticks: `net, to`"),
        ("x ~ Alter (Jahre)", r"stand in backticks: `Alter \(Jahre\)`"),
        ("x ~ log(Alter (Jahre))", r"stand in backticks: `Alter \(Jahre\)`"),
        ("x ~ a-b", "stand in backticks: `a-b`"),
        ("x ~ Z", r"No column named 'Z'\. Did you mean z\?"),
    ],
)
def test_names_that_are_no_word_are_told_to_stand_in_backticks(small, formula, told):
    frame = small[["x", "z"]].assign(**{"net, €": 1.0, "Alter (Jahre)": 2.0, "a-b": 3.0})
    with pytest.raises(HedgerowError, match=told):
        hr.Synthesizer(formula).fit(frame)


def test_a_name_with_quotes_stands_in_backticks(small):
    frame = small[["x", "z"]].rename(columns={"z": "Beruf 'ISCO'"}).assign(**{'"k"': small["group"]})
    synth = hr.Synthesizer("x ~ `Beruf 'ISCO'` + C(`\"k\"`)", draws=100, seed=1).fit(frame)
    assert list(synth.sample().tables[0].columns) == ["x", "Beruf 'ISCO'", '"k"']
    with pytest.raises(FormulaError, match="outside of them not together with quotes"):
        hr.Synthesizer("x ~ C(`Beruf 'ISCO'`, levels=['a'])").fit(frame)


@pytest.mark.parametrize("word", ["w", "wgt", "SURVWT"])
def test_survey_weights_are_told_from_the_mechanisms(word):
    with pytest.raises(SettingError, match=f"one of linear, .*, got '{word}'. .*Survey weights are a column"):
        from_flags(PLANNED | {"weights": word})
    with pytest.raises(SettingError, match="Survey weights are a column"):
        hr.Synthesizer("x ~ z", weights=word)
    with pytest.raises(SettingError, match=r"Did you mean linear\?$"):
        from_flags(PLANNED | {"weights": "linaer"})
    assert from_flags(PLANNED | {"weights": "softmax"}).settings.weights == hr.SoftmaxWeights()


@pytest.mark.parametrize("picture", ["lipschitz", "alpha", "known", "data", "utility", "audit", "outlook",
                                     "contraction"])  # fmt: skip
@pytest.mark.parametrize("source", ["x", None, {}, {"a": 3}, [1], pd.DataFrame({"x": [1.0]})], ids=repr)
def test_pictures_refuse_in_hedgerows_words(picture, source):
    with pytest.raises(SettingError, match="picture"):
        getattr(hr.plot, picture)(source)


def test_pictures_of_what_has_none():
    synth = hr.Synthesizer("x ~ z", standard=hr.Strict(limits=(1e-3, 1e4)), epsilon=1.0)
    for picture in (hr.plot.lipschitz, hr.plot.alpha, hr.plot.known):
        with pytest.raises(SettingError, match=r"Strict\(limits=…\) has none. Plot 'data' or 'utility'"):
            picture(synth)
    with pytest.raises(SettingError, match="plot must be one of"):
        hr.Comparison({"strict": synth}).plot(["data"])


@pytest.mark.parametrize("kind", [pd.period_range("2020-01", periods=60, freq="M"), pd.interval_range(0, 60)])
def test_months_and_intervals_are_told_what_to_become(small, kind):
    frame = small[["x"]].assign(w=kind)
    with pytest.raises(DataError, match=r"Column 'w' has the type .* text nor dates.* write C\(w\)"):
        hr.Synthesizer("x ~ w", draws=100, seed=1).fit(frame)


def test_one_is_singular():
    assert [format_count(n, "copy") for n in (1, 2)] == ["1 copy", "2 copies"]
    assert [format_count(n, "record") for n in (0, 1)] == ["0 records", "1 record"]
    tried = Attack(claimed=1.0, estimate=-1e-5, lower=0.0, upper=1.0, confidence=0.95, trials=1)
    assert repr(tried) == "Attack(1 copy from each table, confidential)"
    assert "1 copy from each table; empirical ε 0.000, at least 0.000" in str(tried)


def test_zeros_and_signs_are_told_their_families(small):
    frame = small[["x", "z"]]
    zero, both = frame.copy(), frame.copy()
    zero.loc[:0, "x"] = 0.0
    both.loc[:2, "x"] = [0.0, -1.0, -2.0]
    with pytest.raises(
        DataError, match=r"has 1 zero in 60 rows; .* family='zero_lognormal', which has a spike"
    ):
        hr.Synthesizer("x ~ z").fit(zero)
    with pytest.raises(
        DataError, match=r"1 zero and 2 negative values in .* family='zero_asinh' or 'zero_student'"
    ):
        hr.Synthesizer("x ~ z").fit(both)
    with pytest.raises(DataError, match=r"zero_gamma has a spike .* family='student' and family='asinh'"):
        hr.Synthesizer("x ~ z", family="gamma").fit(both)


def test_a_missing_value_is_one_value(small):
    gap = small[["x", "z"]].copy()
    gap.loc[0, "z"] = np.nan
    with pytest.raises(DataError, match="has 1 missing value in 60 rows"):
        hr.Synthesizer("x ~ z").fit(gap)


def test_an_audits_first_line_is_no_pass_where_the_reverse_direction_exceeds():
    one = np.array([0.5, 0.7])

    def audit(reverse: float, recomputed: float = 0.8) -> list[str]:
        again = {"recomputed": np.array([recomputed]), "recomputed_delta": np.zeros(1)}
        found = Audit(epsilon=1.0, fixed=one, delta=np.zeros(2), chosen=np.array([1]), **again,
                      reverse=np.array([reverse]))  # fmt: skip
        return str(found).split("\n")

    assert audit(0.9)[0] == "hedgerow audit (confidential), exact: no loss above the stated ε found"
    reversed_ = audit(1.2)
    assert reversed_[0] == "hedgerow audit (confidential), exact: a loss above the stated ε was found"
    finding = "Finding: at draws of the posterior without the record, the loss about 1 record exceeds"
    assert any(line.startswith(finding) for line in reversed_)
    assert "no loss" not in "\n".join(reversed_).lower()
    assert any("Finding: the loss about 1 record exceeds" in line for line in audit(0.9, 1.5))


def test_where_an_outcome_withheld_is_not_claimed_an_audit_and_an_attack_say_so():
    again = {"recomputed": np.array([2.0]), "recomputed_delta": np.zeros(1), "reverse": np.array([0.5])}
    found = Audit(epsilon=1.0, fixed=np.array([0.5]), delta=np.zeros(1), chosen=np.array([0]), **again,
                  of_claim=False)  # fmt: skip
    assert "a loss above the price with the outcome withheld was found" in str(found)
    assert "Nothing is claimed" in str(found)
    assert "stated" not in str(found)
    tried = Attack(claimed=1.0, estimate=2.0, lower=1.5, upper=3.0, confidence=0.95, trials=9, of_claim=False)
    assert "1.000 with the outcome withheld, which is not claimed: exceeds it" in str(tried)
    assert "refute" not in str(tried)


def test_draws_name_their_coefficients(make_small):
    names = pq.read_table(make_small / "confidential" / "draws.parquet").column_names
    assert names == ["beta[Intercept]", "beta[log(z)]", "beta[C(group)[T.b]]", "beta[C(group)[T.c]]", "sigma"]


@pytest.fixture
def make_small(small, tmp_path):
    small.assign(z=np.exp(small["z"])).to_csv(tmp_path / "small.csv", index=False)
    plan = hr.Plan(formula="x ~ log(z) + C(group)", data=tmp_path / "small.csv", epsilon=40.0, draws=100,
                   ledger=tmp_path / "ledger.sqlite")  # fmt: skip
    return hr.make_release(plan, tmp_path / "release").folder
