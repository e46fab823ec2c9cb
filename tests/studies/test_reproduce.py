"""The whole command, quick: every file is there, a killed run goes on to the same bytes, claims decided."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import hedgerow_studies as studies
from hedgerow import HedgerowError
from hedgerow_studies.paper import setup
from hedgerow_studies.paper.claims import verdicts
from hedgerow_studies.paper.claims.checks import Check, Claim

ROOT = Path(__file__).parents[2]
FIELDS = {"id", "location", "claim", "statistic", "value", "uncertainty", "measured", "verdict", "checks"}


def start(out: Path, *options: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "hedgerow_studies", "--out", str(out), "--quick", *options],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "studies")])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(out: Path, *options: str) -> None:
    process = start(out, *options)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()


def files(out: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()
    }


@pytest.fixture(scope="module")
def story3(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("results")
    finish(out, "--only", "story3", "--jobs", "2")
    return out


@pytest.mark.slow
def test_every_figure_in_three_formats(story3):
    for number, slug in (
        (11, "Lbounds"),
        (12, "ums"),
        (13, "medians"),
        (14, "Q90s"),
        (17, "uas"),
        (18, "means"),
    ):
        for kind in ("png", "svg", "csv"):
            path = story3 / "figures" / f"fig{number}-sim-{slug}-top-comparison.{kind}"
            assert path.stat().st_size > 200
    svg = (story3 / "figures" / "fig11-sim-Lbounds-top-comparison.svg").read_text()
    assert "<dc:date>" not in svg
    beyond = {path.name for path in (story3 / "beyond").glob("*.png")}
    assert beyond == {
        f"fig11-sim-Lbounds-top-comparison-{b}.png" for b in ("lipschitz", "oscillation", "exact")
    }


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bytes(story3, tmp_path):
    out = tmp_path / "killed"
    process = start(out, "--only", "story3", "--jobs", "2")
    limit = time.monotonic() + 120
    while not list(out.glob(".replicates/*/*.json")):
        assert time.monotonic() < limit
        assert process.poll() is None
        time.sleep(0.02)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert not alive  # they end with the process that started them
    kept = {path.name: path.stat().st_mtime_ns for path in out.glob(".replicates/*/*.json")}
    assert 0 < len(kept) < setup.QUICK.samples + 1
    finish(out, "--only", "story3", "--jobs", "1")
    assert files(out) == files(story3)
    assert kept == {name: next(out.glob(f".replicates/*/{name}")).stat().st_mtime_ns for name in kept}


@pytest.mark.slow
def test_claims_have_one_shape(story3):
    content = json.loads((story3 / "claims.json").read_text())
    assert content["claims"]
    assert len({claim["id"] for claim in content["claims"]}) == len(content["claims"])
    for claim in content["claims"]:
        assert claim.keys() == FIELDS
        assert claim["verdict"] in ("holds", "does not hold") or claim["verdict"].startswith(
            "holds only under "
        )
        assert all(check["value"] is not None for check in claim["checks"])
    assert sum(content["verdicts"].values()) == len(content["claims"])
    page = (story3 / "claims.md").read_text()
    assert all(f"## {claim['id']}\n" in page for claim in content["claims"])


@pytest.mark.slow
def test_the_application(tmp_path, monkeypatch):
    monkeypatch.setattr(setup, "MANY_COPIES", 15)  # enough for a violin
    monkeypatch.setattr(setup, "COPIES", 1)
    done = studies.reproduce(tmp_path, quick=True, only=["application"], jobs=1)
    verdicts = {c["id"]: c["verdict"] for c in json.loads((tmp_path / "claims.json").read_text())["claims"]}
    assert verdicts["table1-bold-entries"] == "holds only under distance to the Unweighted column"
    assert verdicts["table1-confidential-statistics"] == "holds only under 19 of the 22 published specimens"
    assert verdicts["table1-confidential-subset"] == "holds"
    assert verdicts["fig16-truncated-identical"] == "holds"
    for name in ("fig15-app-Lbounds", "fig16-app-data", "fig19-app-lambdas", "fig20-app-alphas"):
        assert name in done.figures
    for kind in ("png", "svg", "csv", "md"):
        assert (tmp_path / "figures" / f"table1-app-utility.{kind}").is_file()


def check(agrees: bool, condition: str = "") -> Check:
    return Check("a number", 1.0, 0.1, agrees, condition)


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [
        ([check(True), check(True)], "holds"),
        ([check(True), check(False)], "does not hold"),
        ([check(True, "a"), check(False, "b"), check(True, "a")], "holds only under a"),
        ([check(True, "a"), check(False, "a"), check(False, "b")], "does not hold"),
        ([check(True, "a"), check(True, "b"), check(False, "c")], "holds only under a; b"),
    ],
)
def test_verdicts_follow_from_checks(checks, verdict):
    claim = Claim("id", "where", "what", "how", tuple(checks))
    assert claim.verdict == verdict
    assert sum(verdicts.tally([claim]).values()) == 1


@pytest.mark.parametrize(
    "settings", [{"only": ["story4"]}, {"only": []}, {"seed": -1}, {"seed": True}, {"jobs": 0}]
)
def test_bad_settings(tmp_path, settings):
    with pytest.raises(HedgerowError):
        studies.reproduce(tmp_path, **settings)
    assert not any(tmp_path.iterdir())


def test_out_is_a_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(HedgerowError, match="folder"):
        studies.reproduce(path, quick=True)
