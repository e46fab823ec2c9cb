"""What gives the outcome away stays inside, unless the plan says so and the certificate too."""

import json
import warnings
from pathlib import Path

import pandas as pd
import pytest

import hedgerow as hr
from hedgerow import synthesizer

QUICK = ("--formula", "x ~ z", "--draws", 200, "--epsilon", 40)
STRICT = ("--standard", "{kind: strict, box: {Intercept: [0, 16], z: [-1, 3], sigma: [0.3, 3]}}")


@pytest.fixture
def telling(table) -> Path:
    """The small file with a column that is the outcome in other words."""
    frame = pd.read_csv(table)
    frame.assign(words=frame["x"].map("{:,} EUR".format)).to_csv(table, index=False)
    return table


def texts(folder: str) -> str:
    return "\n".join(p.read_text() for p in sorted(Path(folder).iterdir()) if not p.name.startswith("copy"))


def test_a_column_that_is_the_outcome_is_refused_dropped_or_kept(hedgerow, telling):
    refused = hedgerow("synthesize", telling, *QUICK, "--out", "release")
    assert refused.code == 3
    assert "'words' equals it" in refused.text
    assert "--drop words" in refused.text
    assert not Path("release").exists()
    assert hedgerow("synthesize", telling, *QUICK, "--drop", "words", "--out", "dropped").code == 0
    kept = hedgerow("synthesize", telling, *QUICK, "--keep", "words", "--out", "kept")
    assert kept.code == 0
    assert "equals" not in kept.text
    for file in ("certificate.json", "certificate.md"):
        assert "The owner keeps words in the copies on purpose" in (Path("kept/public") / file).read_text()
    assert "keep:" in Path("kept/public/plan.yaml").read_text()
    assert hedgerow("verify", "kept").code == 0
    assert "on purpose" not in texts("dropped/public")
    both = hedgerow("synthesize", telling, *QUICK, "--keep", "words", "--drop", "words", "--out", "both")
    assert "to be kept and dropped" in both.text


def test_a_strict_release_tells_its_owner_and_nobody_else(hedgerow, telling):
    done = hedgerow("synthesize", telling, *QUICK, *STRICT, "--out", "release")
    assert done.code == 0, done.text
    assert "'words' equals it" in done.err
    assert "equals it" not in texts("release/public")
    notes = json.loads(Path("release/confidential/summary.json").read_text())["warnings"]
    assert sum("'words' equals it" in note for note in notes) == 1
    kept = hedgerow("synthesize", telling, *QUICK, *STRICT, "--keep", "words", "--out", "kept")
    assert (kept.code, "equals it" in kept.text) == (0, False)
    assert "keeps words in the copies on purpose" in texts("kept/public")


def test_the_owner_is_told_before_the_fit(telling, tmp_path, monkeypatch):
    events, begin = [], synthesizer.begin
    monkeypatch.setattr(synthesizer, "begin", lambda *a, **k: events.append("fit") or begin(*a, **k))
    box = hr.Strict({"Intercept": (0, 16), "z": (-1, 3), "sigma": (0.3, 3)})
    plan = hr.Plan(
        formula="x ~ z", epsilon=40.0, draws=200, data=telling, ledger=tmp_path / "l", standard=box
    )
    with warnings.catch_warnings():
        warnings.simplefilter("always", hr.HedgerowWarning)
        monkeypatch.setattr(warnings, "showwarning", lambda message, *_, **__: events.append(str(message)))
        hr.make_release(plan, tmp_path / "release")
    told = [place for place, event in enumerate(events) if "'words' equals it" in event]
    assert len(told) == 1
    assert told[0] < events.index("fit")
