"""Disclosure measures against a brute-force count."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.evidence.disclosure import disclosure


def brute(true, fake, town, radius):
    n = len(true)
    rows = []
    for i in range(n):
        ball = sorted((true[i] * (1 - radius), true[i] * (1 + radius)))
        peers = [h for h in range(n) if town[h] == town[i]]
        inside = [h for h in peers if ball[0] <= fake[h] <= ball[1]]
        rows.append((len(inside), i in inside, len(inside) / len(peers)))
    count, own, near = (np.array(column) for column in zip(*rows, strict=True))
    single = count == 1
    return (
        sum(own / np.maximum(count, 1)),
        np.mean(single & own),
        (single & ~own).sum() / single.sum() if single.any() else np.nan,
        np.mean(own * (1 - near)),
    )


values = st.lists(st.integers(1, 12).map(float), min_size=2, max_size=15)


@given(values, st.randoms(use_true_random=False), st.floats(0.05, 0.9))
def test_matches_are_counted(true, random, radius):
    fake = [float(random.randint(1, 12)) for _ in true]
    town = [random.choice("ab") for _ in true]
    original = pd.DataFrame({"x": true, "town": town})
    found = disclosure(original, original.assign(x=fake), "x", radius=radius, known=["town"])
    expected = brute(true, fake, town, radius)
    assert found.expected_match_risk == pytest.approx(expected[0])
    assert found.true_match_rate == pytest.approx(expected[1])
    np.testing.assert_equal(found.false_match_rate, expected[2])
    assert found.identification_risk == pytest.approx(expected[3])


def test_the_data_itself_discloses_more_than_a_copy(payroll):
    synth = hr.Synthesizer("x ~ z", seed=1).fit(payroll)
    copy = disclosure(payroll, synth.sample().tables[0], "x")
    itself = disclosure(payroll, payroll, "x")
    assert itself.expected_match_risk > 5 * copy.expected_match_risk
    assert itself.false_match_rate == 0.0


def test_bad_settings(payroll):
    with pytest.raises(hr.HedgerowError, match="radius"):
        disclosure(payroll, payroll, "x", radius=0)
    with pytest.raises(hr.HedgerowError, match="must match"):
        disclosure(payroll, payroll.iloc[:5], "x")
