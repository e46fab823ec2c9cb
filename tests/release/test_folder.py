"""The release folder: what is in it, what is not, and whether it is still what it was."""

import dataclasses
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import get_args

import jsonschema
import numpy as np
import pandas as pd
import pytest
from helpers.leaks import confidential_values, numbers, spellings

import hedgerow as hr
from hedgerow.errors import DataError, FileError, ReleaseError, SettingError
from hedgerow.privacy.bounds import BOUNDS
from hedgerow.release import certificate as certificates
from hedgerow.release.ledger import Ledger
from hedgerow.release.make import list_assumptions
from hedgerow.release.prepare import prepare

AVERAGED = hr.RangeAveraged(hr.Tail(0.1, hr.Radius(0.2, 2.4), hr.Radius(0.4, 1.8)))
SEED = 918273645


def test_public_holds_no_confidential_value(make, table, tmp_path):
    x = np.loadtxt(table, delimiter=",", skiprows=1)[:, 0]
    made = make(standard=AVERAGED, reasons={"": "printed"}, seed=SEED, copies=2, epsilon=17.0)
    public = made.folder / "public"
    assert sorted(path.name for path in public.iterdir()) == [
        "certificate.json", "certificate.md", "index.html", "plan.yaml",
        "synthetic-copy-1.csv", "synthetic-copy-2.csv",
    ]  # fmt: skip
    values = confidential_values(made.folder, x)
    assert all(len(found) >= 9 for found in values.values())
    # Hundreds of values by record meet every count of three digits by chance; weights of 0 or 1 say nothing.
    least = {kind: 3 if kind in ("summary", "utility") else 4 for kind in values}
    told = {kind: [value for value in found if value not in (0.0, 1.0)] for kind, found in values.items()}
    spelled = {kind: set().union(*(spellings(each, least[kind]) for each in told[kind])) for kind in told}
    in_full = {kind: set().union(*(spellings(each, 6) for each in found)) for kind, found in told.items()}
    for name, text in {path.name: path.read_text() for path in public.iterdir()}.items():
        for secret in (str(SEED), str(tmp_path), tmp_path.name, "table.csv", "ledger.sqlite"):
            assert secret not in text, (name, secret)
        shown = numbers(text)
        for kind in values:
            if name.startswith("synthetic-copy-"):
                # The copies hold whole numbers up to 10^6 and a predictor of three decimals: only a spelling
                # with more decimals could be a leak rather than a coincidence.
                leaks = {word for word in in_full[kind] & shown if len(word.partition(".")[2]) > 3}
            else:
                leaks = spelled[kind] & shown
            assert leaks == set(), (name, kind)


def test_the_search_would_find_a_leak():
    for value in (1.816872516687735, 0.06381178477130692, 53012.4):
        for planted in (f"{value:.4g}", f"{value:.6g}", f"{value:.5f}", repr(value)):
            assert spellings(value, 4) & numbers(f"epsilon: {planted}, of which")


def test_copies_have_the_columns_of_the_input_and_nothing_more(make, table):
    made = make(standard=AVERAGED, reasons={"": "printed"})
    copy = np.genfromtxt(made.folder / "public" / "synthetic-copy-1.csv", delimiter=",", names=True)
    original = np.genfromtxt(table, delimiter=",", names=True)
    assert copy.dtype.names == original.dtype.names
    np.testing.assert_array_equal(copy["z"], original["z"])
    assert (copy["x"] == original["x"]).mean() < 0.05


def test_the_confidential_part_is_for_its_owner_alone(make):
    made = make()
    inside = made.folder / "confidential"
    assert stat.S_IMODE(inside.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in inside.iterdir()} == {0o600}
    summary = json.loads((inside / "summary.json").read_text())
    assert 0 < summary["epsilon"] <= 40
    assert {"lipschitz", "oscillation", "exact", "renyi"} == set(summary["withheld_epsilon"])
    assert summary["seed"] is None
    assert made.folder.stat().st_mode & 0o777 == (made.folder / "public").stat().st_mode & 0o777


def test_the_certificate_says_what_it_should(make):
    made = make(
        standard=AVERAGED, reasons={"": "printed every year", "wider": "as rumoured"}, copies=2, epsilon=17.0
    )
    content = json.loads((made.folder / "public" / "certificate.json").read_text())
    jsonschema.validate(content, certificates.schema())
    assert content["epsilon"] == {"per_copy": 8.5, "total": 17.0}
    assert content["delta"]["total"] == pytest.approx(2 * content["delta"]["per_copy"])
    assert content["protected"] == "x"
    assert content["unchanged"] == ["z"]
    assert "exact value" in content["neighbour"]
    assert "withheld" in content["left_open"]
    reasons = [item["because"] for item in content["assumed_public"]]
    assert reasons[:3] == ["printed every year", "as rumoured", "As for the whole."]
    text = (made.folder / "public" / "certificate.md").read_text()
    for part in (
        "## Claim",
        "leaves open",
        "## Not covered",
        "printed every year",
        "17",
        "95% over 200",
        "sha256",
    ):
        assert part in text
    # The figures of the table are rounded up, as those of the claim are.
    facts = dict(dataclasses.replace(made.certificate, delta=certificates.Price(0.025057, 0.0501)).facts())
    assert (facts["δ for one copy"], facts["δ in total"]) == ("0.026", "0.051")
    assert certificates.Certificate.loads(json.dumps(content).encode()) == made.certificate


def test_caveats_follow_the_bound_and_the_weights(make):
    made = {
        bound: make(bound, bound=bound, weights=weights).certificate
        for bound, weights in (
            ("lipschitz", hr.LinearWeights()),
            ("oscillation", hr.Reweighted(hr.LinearWeights())),
            ("exact", hr.CapWeights(3.0)),
        )
    }
    said = {bound: " ".join(certificate.not_covered) for bound, certificate in made.items()}
    assert [bound for bound, text in said.items() if "decides much of its own fit" in text] == [
        "lipschitz",
        "oscillation",
    ]
    assert [bound for bound, text in said.items() if "move with every record" in text] == ["oscillation"]
    recomputed = {b: sum("Recomputed without one" in t for t in c.not_covered) for b, c in made.items()}
    assert recomputed == {"lipschitz": 0, "oscillation": 1, "exact": 1}
    assert "the reverse direction is not covered" in made["exact"].claim


def test_without_a_target_no_epsilon_is_stated(make):
    made = make(epsilon=None)
    content = json.loads((made.folder / "public" / "certificate.json").read_text())
    assert content["epsilon"] is None
    assert content["delta"] is None
    assert "No ε may be claimed" in content["claim"]
    assert not re.search(r"ε = ?\d", (made.folder / "public" / "certificate.md").read_text())
    assert hr.verify_release(made.folder).problems == ()


def test_a_seed_is_told_and_warned_about(make, table, tmp_path):
    plan = hr.Plan(formula="x ~ z", epsilon=40.0, draws=200, data=table, ledger=tmp_path / "l", seed=SEED)
    with pytest.warns(hr.HedgerowWarning, match="seed"):
        made = hr.make_release(plan, tmp_path / "seeded")
    assert made.certificate.seeded
    assert "must stay secret" in " ".join(made.certificate.not_covered)
    again = make("again", seed=SEED)
    assert [c.sha256 for c in again.certificate.copies] == [c.sha256 for c in made.certificate.copies]
    assert make("other").certificate.copies[0].sha256 != made.certificate.copies[0].sha256


def test_a_range_without_a_reason_is_said_to_have_none(make, table, tmp_path):
    standard = hr.RangeTruncated(hr.Radius(0.4, 1.8))
    plan = hr.Plan(
        formula="x ~ z", epsilon=40.0, draws=200, data=table, ledger=tmp_path / "l", standard=standard
    )
    with pytest.warns(hr.HedgerowWarning, match="No reason"):
        made = hr.make_release(plan, tmp_path / "unreasoned")
    assert made.certificate.assumed_public[0].because == "No reason was given."


def test_what_a_family_and_a_censored_likelihood_rest_on_is_in_the_certificate(table):
    family = hr.Family("negative_binomial", lower=1)
    plan = hr.Plan(
        formula="x ~ z",
        epsilon=1.0,
        data=table,
        family=family,
        prior=hr.Prior(intercept=(1.0, 0.5)),
        standard=hr.Censored(reason="printed medians"),
    )
    found = {item.what: item.because for item in list_assumptions(prepare(plan))}
    assert found["the model with its prior, which place the windows of the censored likelihood"] == (
        "printed medians"
    )
    assert "read from the confidential column" in found["what the plan declares of 'x': lower 1"]


def test_missing_values_are_refused_or_said(make, table, tmp_path):
    lines = table.read_text().splitlines()
    holes = tmp_path / "holes.csv"
    holes.write_text("\n".join([*lines[:50], ",1.5", "NA,2.5", "7,", *lines[50:]]) + "\n")
    with pytest.raises(DataError, match="'x' in 2, 'z' in 1 of 153 rows"):
        make(data=holes)
    assert not (tmp_path / "release").exists()
    made = make(data=holes, missing="drop")
    assert made.certificate.records == 150
    assert any("such rows were dropped" in item.what for item in made.certificate.assumed_public)
    summary = json.loads((made.folder / "confidential" / "summary.json").read_text())
    assert summary["dropped_rows"] == 3
    assert summary["missing"]["x"] == {"empty": 1, "NA": 1}
    # The same data: what was dropped is not part of it, so that both pay from one account.
    make("whole", data=table)
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        assert [balance.releases for balance in ledger.balance()] == [2]


def test_rows_sorted_by_the_outcome_are_refused(table, tmp_path):
    head, *rows = table.read_text().splitlines()
    rows.sort(key=lambda row: int(row.split(",")[0]))
    (tmp_path / "sorted.csv").write_text("\n".join([head, *rows]) + "\n")
    plan = hr.Plan(
        formula="x ~ z", epsilon=40.0, draws=200, data=tmp_path / "sorted.csv", ledger=tmp_path / "l"
    )
    with pytest.raises(hr.HedgerowError, match="the order of the rows"):
        hr.make_release(plan, tmp_path / "release")
    assert not (tmp_path / "release").exists()


def test_a_column_that_is_the_outcome_in_disguise_is_refused(make, table, tmp_path):
    frame = pd.read_csv(table)
    disguised = frame.assign(low=0.4 * frame["x"], minus=-frame["x"], group=frame["x"] // 50_000)
    disguised.to_csv(tmp_path / "disguised.csv", index=False)
    known = {
        "standard": hr.RangeTruncated(hr.Bounds("low", float("inf"))),
        "data": tmp_path / "disguised.csv",
    }
    with pytest.raises(DataError, match=r"publish the outcome 'x' .*: 'low' equals it .*; 'minus' equals it"):
        make(**known)
    made = make(**known, outputs=hr.Outputs(drop=("low", "minus")))
    assert made.certificate.unchanged == ("z", "group")
    assert made.certificate.used_not_released == ("low",)


def test_columns_can_be_left_out_of_the_copies(make, table, tmp_path):
    lines = table.read_text().splitlines()
    wide = tmp_path / "wide.csv"
    wide.write_text(
        "\n".join([lines[0] + ",name,low"] + [f"{line},n{i},1" for i, line in enumerate(lines[1:])])
    )
    known = hr.RangeTruncated(hr.Bounds("low", float("inf")))
    drop = hr.Outputs(drop=("name", "low"))
    made = make(data=wide, outputs=drop, standard=known, reasons={"": "x"})
    assert made.certificate.unchanged == ("z",)
    assert made.certificate.used_not_released == ("low",)
    assert (made.folder / "public" / "synthetic-copy-1.csv").read_text().startswith("x,z\n")
    for bad, told in ((("x",), "protected"), (("nme",), "No column")):
        with pytest.raises((SettingError, DataError), match=told):
            make("bad", data=wide, outputs=hr.Outputs(drop=bad))
    with pytest.raises(SettingError, match="public"):
        make("bad", data=wide, standard=hr.RangeTruncated(hr.Bounds(0.0, "x")))


def tamper(public: Path, how: str) -> None:
    copy, certificate = public / "synthetic-copy-1.csv", public / "certificate.json"
    match how:
        case "changed":
            copy.write_text(copy.read_text().replace("1", "2", 1))
        case "missing":
            copy.unlink()
        case "added":
            (public / "notes.txt").write_text("hello")
        case "added_folder":
            (public / "more").mkdir()
        case "plan":
            (public / "plan.yaml").write_text((public / "plan.yaml").read_text() + "seed: 1\n")
        case "text":
            file = public / "certificate.md"
            file.write_text(file.read_text().replace("Claim", "Promise"))
        case "figure":
            certificate.write_text(certificate.read_text().replace('"total": 40.0', '"total": 4.0'))
        case "key":
            certificate.write_text(certificate.read_text().replace('"bound"', '"bond"'))
        case "twice":
            certificate.write_text(certificate.read_text().replace("{", '{"seeded": true,', 1))
        case "cut":
            certificate.write_text(certificate.read_text()[:200])
        case "gone":
            certificate.unlink()
        case "link":
            moved = public.parent / "elsewhere.csv"
            copy.rename(moved)
            copy.symlink_to(moved)
        case "infinite":
            certificate.write_text(certificate.read_text().replace("40.0", "Infinity"))


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify")
    hr.datasets.lognormal(n=150, seed=3).to_csv(folder / "t.csv", index=False)
    plan = hr.Plan(formula="x ~ z", epsilon=40.0, draws=200, data=folder / "t.csv", ledger=folder / "l")
    return hr.make_release(plan, folder / "release").folder


TAMPERED = [
    "changed", "missing", "added", "added_folder", "plan", "text", "figure", "key", "twice", "cut", "gone",
    "link", "infinite",
]  # fmt: skip


@pytest.mark.parametrize("how", TAMPERED)
@pytest.mark.parametrize("alone", [False, True], ids=["whole", "public alone"])
def test_verify_finds_every_change(original, tmp_path, how, alone):
    release = tmp_path / "release"
    shutil.copytree(original, release)
    if alone:
        shutil.rmtree(release / "confidential")
    assert hr.verify_release(release).problems == ()
    assert hr.verify_release(release / "public").problems == ()
    tamper(release / "public", how)
    for folder in (release, release / "public"):
        try:
            problems = hr.verify_release(folder).problems
        except ReleaseError:
            continue
        assert problems


def loaded(script: str, *arguments: object) -> set[str]:
    """The modules that a fresh interpreter has loaded after a script."""
    command = [sys.executable, "-c", f"import sys\n{script}\nprint(*sys.modules)", *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(Path(hr.__file__).parents[1])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_a_receiver_verifies_without_the_engine(original):
    script = "import hedgerow as hr\nassert hr.verify_release(sys.argv[1]).problems == ()"
    modules = loaded(script, original)
    ours = {name for name in modules if name.startswith("hedgerow.")}
    rooms = ("hedgerow.release", "hedgerow.privacy.claims")
    light = {"hedgerow.errors", "hedgerow.numerics", "hedgerow.numerics.rounding", "hedgerow.privacy"}
    assert not {name for name in ours if not name.startswith(rooms)} - light
    assert not {"hedgerow.release.make", "hedgerow.release.plan", "hedgerow.release.ledger"} & ours
    assert not {"numpy", "pandas", "pyarrow", "numba", "scipy", "sqlite3"} & modules
    # The plan is there for whoever has the engine, from the very bytes that were verified.
    plan = hr.verify_release(original).plan
    assert (plan.settings.column.formula, plan.data, plan.seed) == ("x ~ z", None, None)


def test_importing_the_package_loads_no_schemas():
    modules = loaded("import hedgerow")
    assert not {"pydantic", "yaml", "numpy"} & modules


def test_certificates_and_the_engine_know_the_same_bounds():
    assert get_args(certificates.Bound) == tuple(bound.name for bound in BOUNDS)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"bond": "exact", "bound": None}, "bond is not known. Did you mean bound?"),
        ({"records": 0}, "records must be at least 1, got 0."),
        ({"records": True}, "records must be a whole number, got True."),
        ({"seeded": 1}, "seeded must be true or false, got 1."),
        ({"plan": "ab"}, "plan does not have the form ^[0-9a-f]{64}$, got 'ab'."),
        ({"claim": " "}, "claim is blank."),
        ({"epsilon": {"per_copy": -1.0, "total": 2.0}}, "epsilon.per_copy must be above 0, got -1.0."),
        ({"copies": []}, "copies must have at least 1 entries, got 0."),
        ({"bound": "exakt"}, "Did you mean exact?"),
        ({"assumed_public": [{"what": "x"}]}, "assumed_public[0].because is missing."),
        ({"certificate": 3}, "another version"),
        ({"certificate": 1}, "plain is not known in version 1"),
        ({"certificate": True}, "another version"),
    ],
)
def test_a_certificate_is_refused_with_its_place(original, change, told):
    content = json.loads((original / "public" / "certificate.json").read_text()) | change
    content = {name: value for name, value in content.items() if name != "bound" or value is not None}
    with pytest.raises(ReleaseError) as caught:
        certificates.Certificate.loads(json.dumps(content).encode())
    assert told in str(caught.value)
    assert not jsonschema.Draft202012Validator(certificates.schema()).is_valid(content)


def test_verify_notices_open_doors_links_and_other_folders(original, tmp_path):
    release = tmp_path / "release"
    shutil.copytree(original, release)
    (release / "confidential" / "summary.json").chmod(0o644)
    assert "others may read" in hr.verify_release(release).problems[0]
    (tmp_path / "link").symlink_to(original)
    with pytest.raises(ReleaseError, match="link"):
        hr.verify_release(tmp_path / "link")
    for absent in (tmp_path, tmp_path / "nothing", release / "confidential" / "summary.json"):
        with pytest.raises(ReleaseError):
            hr.verify_release(absent)


def test_the_ledger_knows_its_certificates(original, make, tmp_path):
    with Ledger.open(original.parent / "l") as ledger:
        assert hr.verify_release(original, ledger=ledger).problems == ()
        other = make()
        problems = hr.verify_release(other.folder, ledger=ledger).problems
        assert any("no entry" in problem for problem in problems)


def test_a_place_that_is_taken_or_absent_is_refused_before_anything_is_read(make, tmp_path):
    (tmp_path / "taken").mkdir()
    for name in ("taken", "table.csv", "absent/release"):
        with pytest.raises(FileError):
            make(name, data=tmp_path / "does-not-matter.csv")
    assert not (tmp_path / "ledger.sqlite").exists()


def test_no_release_is_put_inside_another(make, tmp_path):
    made = make()
    public = made.folder / "public"
    (public / "deeper").mkdir()
    (tmp_path / "link").symlink_to(public)
    shutil.copytree(public, tmp_path / "handed-on")
    (tmp_path / ".release.hedgerow-0123456789abcdef.partial").mkdir()
    for name in (
        "release/again", "release/public/again", "release/public/deeper/again", "release/confidential/again",
        "release/public/../again", "link/again", "link/../again", "handed-on/again", "handed-on/deeper/again",
        ".release.hedgerow-0123456789abcdef.partial/again",
    ):  # fmt: skip
        with pytest.raises(FileError, match="inside a release"):
            make(name, data=tmp_path / "does-not-matter.csv")
    with pytest.raises(FileError, match="inside a release"):
        make("other", ledger=public / "ledger.sqlite")
    assert not (public / "ledger.sqlite").exists()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_modes_under_any_umask(make, umask):
    before = os.umask(umask)
    try:
        made = make()
    finally:
        os.umask(before)
    modes = {
        path.relative_to(made.folder).as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in (made.folder, *made.folder.rglob("*"))
    }
    for name, mode in modes.items():
        if name.startswith("confidential"):
            assert mode == (0o700 if name == "confidential" else 0o600), name
        else:
            assert mode == (0o777 if name in (".", "public") else 0o666) & ~umask, name
    ledger = made.folder.parent / "ledger.sqlite"
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600


def test_a_failure_to_write_gives_the_spend_back(make, monkeypatch, tmp_path):
    for step, error in (("rename", OSError(28, "full")), ("mkdir", PermissionError(30, "read only"))):
        with monkeypatch.context() as patch:

            def fail(self, *args, error=error, **given):
                raise error

            patch.setattr(Path, step, fail)
            with pytest.raises(FileError, match="cannot be written"):
                make("broken")
        assert not (tmp_path / "broken").exists()
        assert not list(tmp_path.glob(".*partial"))
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        assert [entry.event for entry in ledger.entries()] == [
            "reserved",
            "publishing",
            "void",
            "reserved",
            "void",
        ]
        assert ledger.pending() == []
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        with pytest.raises(FileError, match="permission"):
            make("broken")


def test_a_ledger_that_fails_at_the_end_leaves_a_release_and_a_pending_entry(make, monkeypatch, tmp_path):
    from hedgerow.errors import LedgerError

    def fail(self, *args, **given):
        raise LedgerError("locked.")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "confirm", fail)
        made = make()
    assert hr.verify_release(made.folder).problems == ()
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        assert [entry.release for entry in ledger.pending()] == [made.certificate.release]


def test_leftovers_of_a_crash_are_pointed_out(make, table, tmp_path):
    (tmp_path / ".release.hedgerow-0123456789abcdef.partial").mkdir()
    plan = hr.Plan(formula="x ~ z", epsilon=40.0, draws=200, data=table, ledger=tmp_path / "l")
    with pytest.warns(hr.HedgerowWarning, match="did not finish"):
        hr.make_release(plan, tmp_path / "release")
