"""Log-likelihoods from elsewhere: the same prices as the Synthesizer, from any container, in blocks."""

import os
import subprocess
import sys
from pathlib import Path

import arviz as az
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.models.scored import Interval

RADIUS = hr.Radius(0.4, 1.8)
STANDARDS = {"adp": hr.ADP(), "averaged": hr.RangeAveraged(RADIUS), "truncated": hr.RangeTruncated(RADIUS),
             "truncated-one": hr.RangeTruncated(RADIUS, public_weight="one")}  # fmt: skip


class Round:
    """What another program would hand over: matrices of both fits, written by the exact model."""

    def __init__(self, data, standard):
        self.synth = hr.Synthesizer("x ~ z", standard=standard, draws=203, seed=3).fit(data)
        inner = self.synth._fitted
        interval = inner.outcome.weighted.interval
        self.first, self.first_mass = inner.start.fit.log_lik(), inner.start.fit.log_mass(interval)
        self.second, self.second_mass = inner.outcome.fit.log_lik(), inner.outcome.fit.log_mass(interval)
        assert isinstance(interval, Interval)


@pytest.fixture(scope="module", params=STANDARDS.values(), ids=STANDARDS)
def rounds(request, small):
    return Round(small[["x", "z"]], request.param)


@pytest.fixture(scope="module")
def plain(small):
    return Round(small[["x", "z"]], hr.ADP())


def test_both_rounds_give_what_the_synthesizer_gives(rounds, monkeypatch):
    """In blocks that do not divide the draws, too."""
    monkeypatch.setattr("hedgerow.evidence.matrices._CELLS", 60 * 7)
    synth = rounds.synth
    first = hr.assess(rounds.first, rounds.first_mass, standard=synth.settings.standard)
    np.testing.assert_allclose(first.risk.lipschitz, synth.risk_, rtol=1e-12)
    np.testing.assert_allclose(first.alpha, synth.alpha_, rtol=1e-12)
    np.testing.assert_allclose(first.known, synth.known_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(first.power, synth.power_, rtol=1e-9)
    second = hr.assess(
        rounds.second,
        rounds.second_mass,
        alpha=first.alpha,
        known=first.known,
        standard=synth.settings.standard,
        already_weighted=False,
    )
    assert second.epsilon() == pytest.approx(synth.lipschitz_epsilon_, rel=1e-9)
    assert second.epsilon("oscillation") == pytest.approx(synth.oscillation_epsilon_, rel=1e-9)
    for bound in ("lipschitz", "oscillation"):
        assert second.withheld_epsilon[bound] == pytest.approx(synth.withheld_epsilon_[bound], rel=1e-9)
    steps = synth.by_draws_
    assert second.by_draws["draws"] == list(steps["draws"])
    np.testing.assert_allclose(second.by_draws["lipschitz"], steps["lipschitz"], rtol=1e-9)
    weighted = hr.assess(
        rounds.second * first.power,
        rounds.second_mass,
        alpha=first.alpha,
        known=first.known,
        standard=synth.settings.standard,
        already_weighted=True,
    )
    assert weighted.epsilon() == pytest.approx(second.epsilon(), rel=1e-9)


def test_an_unweighted_fit_is_priced_as_such(plain, small):
    unweighted = hr.Synthesizer("x ~ z", standard=hr.Unweighted(), draws=203, seed=3).fit(small[["x", "z"]])
    first = hr.assess(plain.first)
    start = unweighted._fitted.start.risk
    assert first.epsilon() == pytest.approx(2 * start.lipschitz.max(), rel=1e-12)
    assert first.epsilon("oscillation") == pytest.approx(start.oscillation.max(), rel=1e-12)
    assert "confidential" in repr(first)
    softmax = hr.assess(plain.first, weights=hr.SoftmaxWeights())
    assert not np.array_equal(softmax.alpha, first.alpha)
    assert (hr.assess(plain.first, standard=hr.Unweighted()).power == 1).all()


def test_counting_the_weight_twice_would_understate(plain):
    """The trap itself, and the guard that the record of weight 0 gives."""
    alpha = plain.synth.alpha_
    right = hr.assess(plain.second, alpha=alpha, already_weighted=False).epsilon()
    shifted = np.clip(alpha, 0.05, 1.0)  # without a weight of 0 nothing can be noticed
    wrong = hr.assess(plain.second * shifted, alpha=shifted, already_weighted=False).epsilon()
    assert wrong < 0.8 * right
    with pytest.raises(hr.HedgerowError, match="contain the weights already"):
        hr.assess(plain.second * alpha, alpha=alpha, already_weighted=False)
    with pytest.raises(hr.HedgerowError, match="do not contain the weights"):
        hr.assess(plain.second, alpha=alpha, already_weighted=True)


def test_every_container_gives_the_same(plain, tmp_path):
    alpha, matrix = plain.synth.alpha_, plain.second[:200]

    def price(given, **more):
        return hr.assess(given, alpha=alpha, already_weighted=False, **more).epsilon("oscillation")

    expected = price(matrix)
    np.save(tmp_path / "f.npy", matrix)
    assert price(tmp_path / "f.npy") == price(str(tmp_path / "f.npy")) == expected
    frame = pd.DataFrame(matrix, columns=[f"log_lik[{i + 1}]" for i in range(60)])
    frame[".draw"] = np.arange(200)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "f.parquet", row_group_size=50)
    assert price(tmp_path / "f.parquet") == expected
    by_chain = matrix.reshape(4, 50, 60)
    idata = az.from_dict(posterior={"a": np.zeros((4, 50))}, log_likelihood={"y": by_chain})
    assert price(idata) == price(idata["log_likelihood"]) == expected
    two = az.from_dict(log_likelihood={"y": by_chain, "other": by_chain})
    assert price(two, variable="y") == expected
    with pytest.raises(hr.HedgerowError, match="variable="):
        price(two)


def test_an_exported_fit_can_be_assessed(plain):
    synth = plain.synth
    data = synth.to_arviz(log_likelihood=True)
    found = hr.assess(data, alpha=synth.alpha_, already_weighted=False)
    assert found.epsilon() == pytest.approx(synth.epsilon_, rel=1e-12)


def bad(matrix, value):
    changed = matrix.copy()
    changed[3, 4] = value
    return changed


def test_bad_input_meets_one_clear_error(plain, tmp_path):
    f, alpha = plain.second, plain.synth.alpha_
    np.save(tmp_path / "fortran.npy", np.asfortranarray(f))
    (tmp_path / "x.csv").write_text("1")
    averaged, truncated = hr.RangeAveraged(RADIUS), hr.RangeTruncated(RADIUS)
    cases = {
        "already_weighted must be said": lambda: hr.assess(f, alpha=alpha),
        "go with alpha": lambda: hr.assess(f, already_weighted=True),
        "looks transposed": lambda: hr.assess(f.T, alpha=alpha, already_weighted=False),
        "outside \\[0, 1\\]": lambda: hr.assess(f, alpha=alpha + 1, already_weighted=False),
        "not finite": lambda: hr.assess(bad(f, np.nan)),
        "not finite among draws": lambda: hr.assess(bad(f, -np.inf)),
        "shape \\(draws, records\\)": lambda: hr.assess(f[0]),
        "no file": lambda: hr.assess(tmp_path / "none.npy"),
        "must end in": lambda: hr.assess(tmp_path / "x.csv"),
        "Fortran order": lambda: hr.assess(tmp_path / "fortran.npy"),
        "no log_likelihood group": lambda: hr.assess(az.from_dict(posterior={"a": np.zeros((1, 5))})),
        "needs log_mass": lambda: hr.assess(f, alpha=alpha, standard=truncated, already_weighted=False),
        "RangeAveraged needs log_mass": lambda: hr.assess(f, standard=averaged),
        "needs known": lambda: hr.assess(f, alpha=alpha, standard=averaged, already_weighted=False),
        "must match": lambda: hr.assess(f, f[:5]),
        "look at the table": lambda: hr.assess(f, weights=hr.IdentificationWeights(0.2)),
        "refit the model": lambda: hr.assess(f, weights=hr.Reweighted(hr.LinearWeights())),
        "not both": lambda: hr.assess(f, alpha=alpha, weights=hr.LinearWeights(), already_weighted=False),
        "exact loss": lambda: hr.assess(f).epsilon("exact"),
    }
    for message, act in cases.items():
        with pytest.raises(hr.HedgerowError, match=message):
            act()


SCRIPT = """
import resource, sys
import numpy as np
import hedgerow as hr
hr.assess(np.zeros((8, 5)) - 1.0)  # everything is loaded before the cap is set
used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
cap = used + (64 << 20)
resource.setrlimit(resource.RLIMIT_DATA, (cap, cap))
try:
    np.ones(100 << 20 >> 3)
    sys.exit("the cap does not hold")
except MemoryError:
    pass
print(hr.assess(sys.argv[1]).epsilon())
"""


@pytest.mark.slow
def test_a_matrix_larger_than_memory_streams(tmp_path):
    """192 MiB of log-likelihoods under a cap of 64 MiB for everything the process may allocate."""
    draws, records = 240, 100_000
    file = np.lib.format.open_memmap(tmp_path / "f.npy", mode="w+", dtype="float64", shape=(draws, records))
    for s in range(draws):
        file[s] = -1.0 - s / draws
    file[7, 99_999] = -30.0
    file.flush()
    del file
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "f.npy")]
    path = {**os.environ, "PYTHONPATH": str(Path(hr.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=path)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == 60.0
