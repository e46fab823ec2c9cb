"""The page that goes out with a release: what it says, that it belongs to it, what it is made from."""

import html
import os
import re
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.privacy.columns import Column, Rules
from hedgerow.release.certificate import Certificate
from hedgerow.release.pages.layout import Layout
from hedgerow.release.pages.public import relate, write_page
from hedgerow.release.plan import About, Outputs
from hedgerow.release.verify import verify_release
from hedgerow.tables.files import read

HOSTILE = "<img src=x onerror=alert(1)>"
TURNED = "\u202egnp.exe"
LONG = "n" * 10_000


def release_of(folder: Path, frame: pd.DataFrame, **changes) -> Path:
    frame.to_parquet(folder / "t.parquet")
    asked = {"epsilon": 60.0, "draws": 100, "data": folder / "t.parquet", "ledger": folder / "l"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.HedgerowWarning)
        return hr.make_release(hr.Plan(**asked | changes), folder / "release").folder


@pytest.fixture(scope="module")
def chain(tmp_path_factory) -> Path:
    """Two columns one after the other, one that follows from them, names that would like to be markup."""
    random = np.random.default_rng(1)
    size, sector = random.integers(1, 300, 60), random.choice(["a", "b"], 60)
    pay = np.exp(3 + 0.9 * np.log(size) + random.normal(0, 0.6, 60))
    frame = pd.DataFrame({HOSTILE: pay, TURNED: size, LONG: sector, "hours": random.normal(38, 3, 60)})
    return release_of(
        tmp_path_factory.mktemp("chain"),
        frame.assign(per=frame[HOSTILE] / frame["hours"]),
        formula={
            HOSTILE: Column(f"`{HOSTILE}` ~ log(`{TURNED}`)"),
            "hours": Column(f"hours ~ `{HOSTILE}`", "normal"),
        },
        rules=Rules(derived={"per": f"`{HOSTILE}` / hours"}),
        copies=2,
        about=About(purpose="<script>alert(1)</script>\nand teaching", contact="data@example.org"),
    )


@pytest.fixture
def public(chain, tmp_path) -> Path:
    """A copy to spoil."""
    shutil.copytree(chain / "public", tmp_path / "public")
    return tmp_path / "public"


def show(page: str) -> str:
    """What a reader sees, in one line."""
    return " ".join(html.unescape(re.sub("(?s)<style>.*</style>|<[^>]*>", " ", page)).split())


def test_the_page_says_what_a_receiver_needs(chain):
    certificate = verify_release(chain).certificate
    page = (chain / "public" / "index.html").read_text()
    titles = re.findall("<h2[^>]*>([^<]*)</h2>", page)
    assert titles == [
        "What this is", "What may be claimed", "What is kept, and what is not", "How to analyse it",
        "Columns", "How to verify it",
    ]  # fmt: skip
    assert page.index("SYNTHETIC DATA, NOT REAL RECORDS") < page.index("<h1")
    shown = show(page)
    for said in (
        certificate.plain,
        certificate.claim,
        certificate.unit.covered,
        certificate.copies[1].sha256,
    ):
        assert said in shown
    assert all(sentence in shown for sentence in certificate.not_covered)
    assert "Real, not synthetic" in shown
    assert "data@example.org" in shown


def test_names_and_words_of_others_are_text(chain):
    page = (chain / "public" / "index.html").read_text()
    assert "<img" not in page
    assert "<script" not in page
    assert "\u202e" not in page
    assert HOSTILE in show(page)
    assert "<script>alert(1)</script>" in show(page)
    assert LONG[:1000] not in page
    assert len(page) < 60_000


def test_the_page_can_be_written_again_from_public_things(chain):
    verified = verify_release(chain / "public")
    first = chain / "public" / verified.certificate.copies[0].file
    layout = Layout.of(pq.read_schema(first), read(first))
    again = write_page(replace(verified.certificate, page=None), verified.plan, layout)
    assert again == (chain / "public" / "index.html").read_text()


def test_the_certificate_has_the_digest_of_the_page(public):
    page = public / "index.html"
    text = page.read_text()
    assert verify_release(public).problems == ()
    page.write_text(text.replace("Real, not synthetic", "All of it synthetic"))
    assert verify_release(public).problems == (
        "index.html was changed: its digest is not the certificate's.",
    )
    page.unlink()
    assert verify_release(public).problems == ("missing: index.html.",)
    page.symlink_to(public / "plan.yaml")
    with pytest.raises(hr.HedgerowError, match="is a link"):
        verify_release(public)


def test_a_page_that_claims_something_else_is_found(public):
    from hashlib import sha256

    page, certificate = public / "index.html", verify_release(public).certificate
    page.write_text(page.read_text().replace(html.escape(certificate.plain), "It is anonymous."))
    forged = replace(certificate, page=sha256(page.read_bytes()).hexdigest())
    (public / "certificate.json").write_text(forged.json())
    (public / "certificate.md").write_text(forged.markdown())
    assert verify_release(public).problems == ("index.html does not hold the claim of certificate.json.",)


def test_a_certificate_without_a_page_is_written_as_it_was(chain):
    """Releases made before pages verify as before, and their certificates read back byte by byte."""
    certificate = replace(verify_release(chain).certificate, page=None)
    assert '"page"' not in certificate.json()
    assert "index.html" not in certificate.markdown()


def test_relations_are_those_that_the_formulas_name():
    columns = [
        Column("wage ~ log(age) + C(sector)"),
        Column("bonus ~ wage", missing="synthesized", kinds_by="C(region)"),
        Column("rent ~ 1", share_of="wage - tax"),
    ]
    rules = Rules(derived={"hourly": "wage / hours"})
    related = relate(columns, rules, ["age", "sector", "region", "tax", "hours", "colour"])
    assert related == {
        "wage": ("age", "sector", "bonus", "rent", "hourly"),
        "bonus": ("wage", "region"),
        "rent": ("wage", "tax"),
    }


def test_what_is_not_kept_follows_the_weights(chain):
    verified = verify_release(chain)
    layout = Layout(dict.fromkeys(verified.certificate.outcomes, "number"))
    for weights, said in (
        (hr.LinearWeights(), "those in the tails first"),
        (hr.ScalarWeights(1), "same weight"),
    ):
        plan = replace(verified.plan, settings=replace(verified.plan.settings, weights=weights))
        page = show(write_page(verified.certificate, plan, layout))
        assert (said in page, ("tails may be shorter" in page)) == (True, weights == hr.LinearWeights())


def test_what_a_margin_counts_is_kept(tmp_path):
    """Second peaks were told to be lost beside counts that keep them."""
    frame, shown = hr.datasets.lognormal(n=1000, seed=3), {}
    for margin in (None, hr.Margin(0.25)):
        folder = tmp_path / str(margin is None)
        folder.mkdir()
        release = release_of(
            folder, frame, formula="x ~ z", epsilon=4.0, standard=hr.Strict(limits=(0.1, 100), margin=margin)
        )
        shown[margin is None] = show((release / "public" / "index.html").read_text())
    assert ("noisy counts in classes" in shown[False], "second peaks" in shown[False]) == (True, False)
    assert ("noisy counts in classes" in shown[True], "second peaks" in shown[True]) == (False, True)


def test_of_several_columns_a_margin_keeps_those_alone_for_which_counts_pay(tmp_path):
    """The page said of all of them that second peaks are kept."""
    frame = hr.datasets.lognormal(n=400, seed=3)
    frame["few"] = np.arange(400) < 30
    frame["y"] = np.where(frame["few"], frame["x"][::-1], np.nan)
    columns = {"x": Column("x ~ z"), "y": Column("y ~ z", only_where="few == 1")}
    strict = hr.Strict(limits={"x": (0.1, 100), "y": (0.1, 100)}, margin=hr.Margin(0.3))
    release = release_of(tmp_path, frame, formula=columns, epsilon=8.0, standard=strict)
    shown = show((release / "public" / "index.html").read_text())
    assert "synthetic amounts, where it was counted, as far as noisy counts" in shown
    assert "too few to be counted, that the family does not have: heaps, second peaks" in shown


def code_of(page: str, language: str) -> str:
    return html.unescape(
        re.search(f'<pre aria-label="Code in {language}"[^>]*><code>([^<]*)</code>', page)[1]
    )


def test_the_code_on_the_page_runs(chain, monkeypatch):
    monkeypatch.chdir(chain / "public")
    page = Path("index.html").read_text()
    ran: dict = {}
    exec(code_of(page, "Python"), ran)
    copies = [pd.read_parquet(f"synthetic-copy-{number}.parquet") for number in (1, 2)]
    estimates = ran["estimates"] if "estimates" in ran else ran["found"]["estimate"]
    assert np.mean(estimates) == pytest.approx(np.mean([copy[HOSTILE].mean() for copy in copies]), rel=1e-12)


def test_the_code_on_the_page_prints_what_it_finds_in_one_copy(tmp_path):
    release = release_of(tmp_path, hr.datasets.lognormal(n=60, seed=3), formula="x ~ z")
    code = code_of((release / "public" / "index.html").read_text(), "Python")
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, cwd=release / "public", capture_output=True, text=True, check=True)
    copy = pd.read_parquet(release / "public" / "synthetic-copy-1.parquet")
    assert float(done.stdout) == pytest.approx(copy["x"].mean(), rel=1e-6)


def test_the_code_on_the_page_takes_no_code_for_an_amount(tmp_path, monkeypatch):
    """A mean over refusals written as -8 is no mean of wages."""
    frame = hr.datasets.lognormal(n=60, seed=3)
    frame.loc[::5, "x"] = -8.0
    release = release_of(
        tmp_path, frame, formula={"x": Column("x ~ z", codes=(-8,))}, epsilon=6.0, copies=2,
        standard=hr.Strict(limits={"x": (0.1, 100)}),
    )  # fmt: skip
    monkeypatch.chdir(release / "public")
    page, ran = Path("index.html").read_text(), {}
    exec(code_of(page, "Python"), ran)
    amounts = [
        pd.read_parquet(f"synthetic-copy-{number}.parquet")["x"].replace(-8, np.nan) for number in (1, 2)
    ]
    assert any(column.isna().any() for column in amounts)
    assert "some cells hold a code, not an amount: -8" in show(page)
    estimates = ran["estimates"] if "estimates" in ran else ran["found"]["estimate"]
    assert np.mean(estimates) == pytest.approx(np.mean([column.mean() for column in amounts]))
    assert '[!copy[["x"]] %in% c(-8' in code_of(page, "R")
    # What says so to programs is the certificate, which differs from the plan if it names other codes.
    found = hr.combine(release, "mean of x")
    assert found["estimate"][0] == pytest.approx(np.mean([column.mean() for column in amounts]))
    told = Path("certificate.json").read_text()
    assert hr.verify_release(release).problems == ()
    other = Certificate.loads(told.replace('"x": [\n   -8\n  ]', '"x": [\n   -9\n  ]').encode())
    assert (Certificate.loads(told.encode()).codes, other.codes) == ({"x": (-8,)}, {"x": (-9,)})
    assert Certificate.loads(told.encode()).json() == told
    Path("certificate.json").write_text(other.json())
    assert any("differ in the codes" in problem for problem in hr.verify_release(release).problems)


def test_the_code_on_the_page_leaves_nothing_among_the_files(tmp_path):
    release = release_of(
        tmp_path, hr.datasets.lognormal(n=60, seed=3), formula="x ~ z", epsilon=6.0, copies=2,
        standard=hr.Strict(limits=(0.1, 100)), outputs=Outputs(receive=True),
    )  # fmt: skip
    code = code_of((release / "public" / "index.html").read_text(), "Python")
    assert "import receive" in code
    others = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", code], cwd=release / "public", env=others, check=True)
    assert hr.verify_release(release).problems == ()


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_the_code_for_r_runs_with_whatever_separates_cells(tmp_path, monkeypatch):
    frame = hr.datasets.lognormal(n=60, seed=3).rename(columns={"x": 'a "b" \\ c'})
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    plan = hr.Plan(
        formula='`a "b" \\ c` ~ z', epsilon=60.0, draws=200, data=tmp_path / "t.csv", ledger=tmp_path / "l"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.HedgerowWarning)
        monkeypatch.chdir(hr.make_release(plan, tmp_path / "release").folder / "public")
    code = code_of(Path("index.html").read_text(), "R")
    done = subprocess.run(["Rscript", "--vanilla", "-e", code], capture_output=True, text=True, check=True)
    copy = pd.read_csv("synthetic-copy-1.csv", sep=";", decimal=",")
    assert float(done.stdout.removeprefix("[1]")) == pytest.approx(copy['a "b" \\ c'].mean(), rel=1e-5)


@pytest.mark.parametrize(
    ("standard", "copies", "rule"),
    [(hr.Strict(limits=(0.1, 100)), 3, "noisy"), (hr.Unweighted(), 1, "proper")],
)
def test_the_page_leads_to_intervals_and_leaves_the_folder_unchanged(tmp_path, standard, copies, rule):
    """One copy of a plain posterior has a rule too, and Python would leave a `__pycache__` there."""
    hr.datasets.lognormal(n=120, seed=3).to_csv(tmp_path / "t.csv", index=False)
    plan = hr.Plan(
        formula="x ~ z", standard=standard, copies=copies, draws=200, data=tmp_path / "t.csv",
        epsilon=1.0 if rule == "noisy" else None, ledger=tmp_path / "l",
        outputs=hr.Outputs(receive=True, statistics=rule == "noisy"),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.HedgerowWarning)
        public = hr.make_release(plan, tmp_path / "release").folder / "public"
    page = (public / "index.html").read_text()
    assert f"({rule})" in show(page)
    assert ('hedgerow.intervals(".", estimator)' in show(page)) == (rule == "noisy")
    assert ("one copy does not show by how much" in show(page)) is False
    ours = hr.combine(public, lambda table: table["x"].mean())
    languages = {"Python": [sys.executable, "-c"]} | (
        {"R": ["Rscript", "-e"]} if shutil.which("Rscript") else {}
    )
    for language, command in languages.items():
        done = subprocess.run(
            [*command, code_of(page, language)],
            cwd=public, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": ""},
        )  # fmt: skip
        printed = re.findall(r"-?[0-9][0-9.]+(?:e[+-]?[0-9]+)?", done.stdout)
        assert any(float(word) == pytest.approx(ours["lower"][0], rel=1e-5) for word in printed), language
    assert verify_release(public).problems == ()
