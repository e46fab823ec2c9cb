"""Certificates of version 2: who answers for a release, whose data a row is, plain words first."""

import html
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
import yaml
from markdown_it import MarkdownIt

import hedgerow as hr
from hedgerow.errors import SettingError
from hedgerow.privacy.claims.caveats import ALWAYS, CAVEATS, find_id, write_caveat
from hedgerow.release import certificate as certificates
from hedgerow.release.certificate import Certificate, Unit
from hedgerow.release.ledger import Ledger
from hedgerow.release.plan import About, Outputs
from hedgerow.release.verify.consistency import certificate_problems, plan_problems

ABOUT = About(
    purpose="teaching | <b>statistics</b>",
    curator="the statistical office",
    contact="data@example.org",
    region="nowhere",
    retention="two years",
    decided_by="the data board",
    epsilon_reason="as for last year's table",
    earlier=True,
)
BOX = {"Intercept": (0.0, 2.0), "z": (0.5, 1.5), "sigma": (0.6, 1.6)}


@pytest.fixture
def people(tmp_path):
    """Three rows of each person."""
    frame = hr.datasets.lognormal(n=150, seed=3).assign(person=[f"p{row // 3}" for row in range(150)])
    frame.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


def content(made) -> dict:
    return json.loads((made.folder / "public" / "certificate.json").read_text())


def test_who_answers_for_a_release_is_in_its_certificate(make, hedgerow):
    made = make(about=ABOUT)
    written = content(made)
    jsonschema.validate(written, certificates.schema())
    assert written["certificate"] == 2
    assert written["about"]["decided_by"] == "the data board"
    assert set(written["about"]) == set(certificates.ABOUT)
    assert written["earlier_releases"] == 0
    text = (made.folder / "public" / "certificate.md").read_text()
    assert "- ε decided by: the data board" in text
    assert "<b>" not in text.replace("\\<b>", "")
    assert "entropy of the operating system, expanded by SHAKE-256" in text
    assert text.index(written["plain"][:40]) < text.index(written["claim"][:40])
    assert hr.verify_release(made.folder).problems == ()
    again = make("again", about=About(earlier=True))
    assert (content(again)["earlier_releases"], content(again)["about"]) == (1, {})
    assert content(make("silent"))["earlier_releases"] is None
    shown = hedgerow("inspect", made.folder)
    assert "decided by" in shown.text
    assert shown.out.index("Suppose somebody") < shown.out.index("With 95% confidence")


STRICT = hr.Strict(BOX, "printed")
THREE = ("--formula", "x ~ z", "--draws", 200, "--unit", "person", "--rows-per-unit", 3)


def test_a_persons_three_rows_are_priced_as_declared(make, people):
    """In the plan, the certificate and the ledger, which charges a person's rows together."""
    made = make(data=people, unit="person", rows_per_unit=3, epsilon=2.1, standard=STRICT)
    unit = content(made)["unit"]
    assert (unit["rows"], unit["column"]) == (3, "person")
    assert "For 3 rows together the price is 3ε = 6.3 over all copies" in unit["covered"]
    assert unit["covered"] in (made.folder / "public" / "certificate.md").read_text()
    assert "rows_per_unit: 3" in (made.folder / "public" / "plan.yaml").read_text()
    with Ledger.open(made.ledger) as ledger:
        assert [entry.epsilon for entry in ledger.entries() if entry.epsilon] == [6.3] * 3
        assert hr.verify_release(made.folder, ledger=ledger).problems == ()


def test_a_budget_holds_for_a_persons_three_rows(hedgerow, people):
    standard = f"{{kind: strict, box: {json.dumps(BOX)}, reason: printed}}"
    asked = (people, *THREE, "--standard", standard, "--dataset", "people")
    hedgerow("ledger", "budget", 6, "--dataset", "people", "--relation", "withheld")
    refused = hedgerow("synthesize", *asked, "--epsilon", 2.1, "--out", "much")
    assert refused.code == 5
    assert "ε 6.3 exceeds what remains for 'people' under 'withheld': 6.0 of 6.0" in refused.text
    assert hedgerow("cost", *asked, "--epsilon", 2.1).code == 5
    shown = hedgerow("cost", *asked, "--epsilon", 2)
    assert "6 for 1 copy and 3 rows of one person or firm" in shown.text
    made = hedgerow("synthesize", *asked, "--epsilon", 2, "--out", "enough")
    assert made.code == 0, made.err
    assert "ε 6 under 'withheld', for 3 rows of one person or firm" in made.text
    (account,) = json.loads(hedgerow("ledger", "list", "--json").out)["accounts"]
    assert (account["spent"], account["remaining"]) == (6.0, 0.0)
    assert hedgerow("verify", "enough", "--ledger", "ledger.sqlite").code == 0


@pytest.mark.parametrize(
    ("bound", "rows", "epsilon", "delta"),
    [
        ("lipschitz", None, 40.0, 1),
        ("lipschitz", 3, 120.0, 3),
        ("renyi", 2, 80.0, None),
        ("exact", 1, 40.0, 1),
    ],
)
def test_several_rows_under_local_bounds_are_charged_and_compose_to_nothing(
    make, people, bound, rows, epsilon, delta
):
    """Their sum is an account; no curve was computed for rows together, so that none is composed."""
    standard = hr.RangeTruncated(hr.Brackets([0.0, 1e9])) if bound == "lipschitz" else hr.ADP()
    made = make(data=people, bound=bound, rows_per_unit=rows, epsilon=40.0, standard=standard, seed=1)
    with Ledger.open(made.ledger) as ledger:
        entry = next(each for each in ledger.entries() if each.event == "reserved")
    assert entry.epsilon == epsilon
    assert entry.delta == (1.0 if delta is None else delta * made.certificate.delta.total)
    assert (entry.curve is None) == (rows in (2, 3))
    once = make(
        "once", data=people, bound=bound, epsilon=40.0, standard=standard, seed=1, ledger=people.parent / "m"
    )
    with Ledger.open(once.ledger) as ledger:
        alone = next(each for each in ledger.entries() if each.event == "reserved")
    assert (entry.withheld is None) == (alone.withheld is None) == (bound != "lipschitz")
    if alone.withheld is not None:
        assert entry.withheld == pytest.approx((rows or 1) * alone.withheld, rel=1e-12)


@pytest.mark.parametrize(("standard", "rows"), [(hr.ADP(), 1), (hr.ADP(), 2), (STRICT, None), (STRICT, 2)])
def test_a_unit_with_more_rows_than_declared_is_refused(tmp_path, people, standard, rows):
    """Whoever sees the copies can count them, so that refusing tells nothing, under strict standards too."""
    plan = hr.Plan(
        formula="x ~ z", epsilon=60.0, draws=200, data=people, ledger=tmp_path / "l", standard=standard,
        unit="person", rows_per_unit=rows,
    )  # fmt: skip
    says = f"'person' names a person or firm with 3 rows, and the plan declares at most {rows or 1}.*unit 3"
    with pytest.raises(hr.HedgerowError, match=says):
        hr.make_release(plan, tmp_path / "release")
    assert not (tmp_path / "release").exists()


def test_a_unit_that_is_not_released_is_not_named(make, people):
    """Nor is it used: what is priced are rows. One whose rows are priced together is, and is named."""
    dropped = {"unit": "person", "rows_per_unit": 3, "outputs": hr.Outputs(drop=("person",))}
    whole = make("whole", data=people, **dropped)
    assert whole.certificate.used_not_released == ("person",)
    assert whole.certificate.unit.column == "person"
    assert hr.verify_release(whole.folder).problems == ()
    made = make(data=people, **dropped, standard=STRICT, epsilon=2.0, ledger=people.parent / "m")
    public = "".join(path.read_text() for path in (made.folder / "public").iterdir())
    assert "person'" not in public
    assert "unit: person" not in public
    assert content(made)["unit"]["rows"] == 3
    assert hr.verify_release(made.folder).problems == ()


def test_units_without_a_name_have_one_row(make, people):
    frame = pd.read_csv(people)
    frame.assign(person=pd.Series([None] * 150, dtype=object)).to_csv(people, index=False)
    made = make(data=people, unit="person", standard=STRICT, epsilon=2.0)
    assert made.certificate.unit.rows == 1
    with pytest.raises(hr.HedgerowError, match="'person' has 150 missing values"):
        make("whole", data=people, unit="person")


@pytest.mark.parametrize("unit", ["x", "nobody"])
def test_a_column_that_cannot_name_a_unit_is_refused(make, people, unit):
    with pytest.raises(hr.HedgerowError, match=r"protected column|nobody"):
        make(data=people, unit=unit)


def test_a_number_of_rows_is_refused_with_its_bound():
    for rows in (0, 10**10):
        with pytest.raises(SettingError, match="rows_per_unit"):
            hr.Plan(formula="x ~ z", epsilon=1.0, rows_per_unit=rows)


def forged(certificate: Certificate, **changes) -> str:
    assert certificate_problems(certificate) == []
    return " ".join(certificate_problems(replace(certificate, **changes)))


def test_words_that_its_figures_do_not_make_are_found(make, people):
    told = make(data=people, unit="person", rows_per_unit=3).certificate
    assert "plain paragraph" in forged(told, plain="Nobody can learn anything.")
    assert "unit of privacy" in forged(told, unit=None)
    assert "unit of privacy" in forged(told, unit=replace(told.unit, covered="Everybody is safe."))
    assert "unit of privacy" in forged(told, unit=replace(told.unit, rows=1))
    assert "plain paragraph" in forged(told, records=3)  # δ is then below 1/n
    other = make("other", data=people, rows_per_unit=1).certificate
    moved = Unit(1, "w", other.unit.covered.replace("firm has", "firm, as column 'w' names them, has"))
    assert "not among those released" in forged(other, unit=moved)


SETTINGS = {
    "plain": {},
    "seeded": {"seed": 1},
    "strict": {"standard": STRICT, "epsilon": 2.0},
    "renyi": {"bound": "renyi"},
    "no target": {"epsilon": None},
    "averaged": {"standard": hr.RangeAveraged(hr.Brackets([0.0, 1e9]))},
    "truncated": {"standard": hr.RangeTruncated(hr.Brackets([0.0, 1e9]))},
    "everywhere": {"standard": hr.RangeTruncated(hr.Everywhere())},
    "corrected": {"debias": True, "draws": 100},
    "withheld": {"outputs": hr.Outputs(drop=("z",))},
}
# Those that other fields make, beside the ones of every release.
MADE = {
    "plain": "C24", "seeded": "C24 C27", "strict": "", "renyi": "", "no target": "", "averaged": "C17 C24",
    "truncated": "C18 C24", "everywhere": "C24", "corrected": "C24 C25",
    "withheld": "C24 C29",
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_a_caveat_that_follows_from_other_fields_is_not_left_out(make, name):
    told = make(**SETTINGS[name]).certificate
    ids = {find_id(text): text for text in told.not_covered}
    due = {*MADE[name].split(), *ALWAYS[told.bound], "C28"}
    assert due <= ids.keys()
    assert not ids.keys() & {"C17", "C18", "C24", "C25", "C36", "C27", "C29"} - due
    for id in due:
        left = tuple(text for text in told.not_covered if text != ids[id])
        found = forged(told, not_covered=left)
        assert f"lacks {id}," in found or (id == "C18" and "leaves open" in found)
    added = tuple(write_caveat(id) for id in {"C24", "C25", "C36", "C27"} - due)
    found = forged(told, not_covered=(*told.not_covered, *added))
    assert found.count("against its other fields") == len(added)
    if told.left_open is not None:
        assert "leaves open" in forged(told, left_open=None)
    else:
        claimed = {"left_open": write_caveat("C18"), "not_covered": (*told.not_covered, write_caveat("C18"))}
        assert name == "everywhere" or "no range" in forged(told, **claimed)
    chain = forged(told, independent_draws=False)
    assert ("lacks C36," in chain) == (told.confidence is not None)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"about": {"purpose": "another"}}, "words about the release"),
        ({"earlier_releases": 0}, "word on earlier releases"),
    ],
)
def test_what_the_plan_does_not_say_is_found(make, changes, told):
    made = make(about=About(purpose="teaching"))
    public = made.folder / "public"
    certificate = replace(made.certificate, **changes)
    (public / "certificate.json").write_text(certificate.json())
    (public / "certificate.md").write_text(certificate.markdown())
    assert told in " ".join(hr.verify_release(public).problems)


RADIUS = hr.RangeTruncated(hr.Radius(0.4, 1.8, outside="public"))
GAPS = {"x": hr.Column("x ~ z", missing="synthesized")}
RULED = {
    "x": hr.Column("x ~ z", missing="public", codes=[-8], kinds_by="1", filler=900.0),
    "part": hr.Column("part ~ z", "beta", share_of="x", declared=hr.Declared("number", decimal_places=1)),
    "more": hr.Column("more ~ z", hr.Family("normal", lower=-9.0), only_where="z > 0", otherwise=-1),
}


@pytest.mark.parametrize(
    ("settings", "due"),
    [
        ({"standard": RADIUS}, "C18 C21 C22"),
        ({"standard": hr.RangeTruncated(hr.Everywhere())}, ""),
        ({"formula": GAPS, "standard": hr.Strict(limits={"x": (1.0, 1e6)}), "epsilon": 5.0}, "C38"),
        ({"declared": hr.Declared("integer")}, "C19"),
        ({"formula": {"x": hr.Column("x ~ z", codes=[-8], kinds_by="1")}}, "C19"),
        ({"bound": "oscillation"}, "C14"),
        ({"bound": "exact", "weights": hr.CapWeights(5.0)}, "C16"),
        ({"bound": "renyi", "weights": hr.ScalarWeights(0.5)}, "C35"),
        ({"bound": "oscillation", "standard": hr.Unweighted()}, ""),
    ],
)
def test_what_the_plan_leaves_uncovered_is_said(make, settings, due):
    """Ranges and gaps are in the plan: a certificate without their sentences contradicts it."""
    made = make(**settings)
    plan = yaml.safe_load((made.folder / "public" / "plan.yaml").read_text())
    assert plan_problems(made.certificate, plan) == []
    ids = {find_id(text): text for text in made.certificate.not_covered}
    for id in due.split():
        left = tuple(text for text in made.certificate.not_covered if text != ids[id])
        forged = replace(
            made.certificate, not_covered=left, left_open=None if id == "C18" else made.certificate.left_open
        )
        assert certificate_problems(forged) == []
        assert f"by plan.yaml {id} is not covered" in " ".join(plan_problems(forged, plan))


@pytest.mark.parametrize(
    ("settings", "due"),
    [
        (
            {"formula": RULED, "weights": hr.ScalarWeights(0.1), "bound": "oscillation"},
            {
                "which cells of 'x' are missing or cannot be read",
                "that -8 in 'x' stands for no amount",
                "that 900 is a usual amount of 'x'",
                "that 'part' is at most x",
                "that 'more' is -1 unless z > 0",
                "what the plan declares of 'part': type number, decimal places 1",
                "what the plan declares of 'more': lower -9.0",
            },
        ),
        (
            {"formula": GAPS, "standard": hr.Strict(limits={"x": (1.0, 1e6)})},
            {"amounts lie between limits (x 1 to 1,000,000); others are moved to the nearer limit"},
        ),
        (
            {
                "standard": hr.Strict(limits=(1.0, 1e6)),
                "missing": "drop",
                "declared": hr.Declared("integer"),
            },
            {
                "values lie between 1 and 1,000,000; others are moved to the nearer limit",
                "what the plan declares of 'x': type integer",
                "which rows lack a value in 'x' or in a predictor; such rows were dropped",
            },
        ),
    ],
)
def test_what_the_plan_assumes_is_said(tmp_path, make, table, settings, due):
    """What is declared of cells, limits and dropped rows: a certificate without it contradicts the plan."""
    frame = pd.read_csv(table)
    part, more = frame["x"] * (0.2 + frame["x"] % 5 / 9), (frame["x"] % 7).where(frame["z"] > 0, -1.0)
    frame.assign(part=part, more=more).to_csv(tmp_path / "ruled.csv", index=False)
    dropped = () if settings.get("formula") is RULED else ("part", "more")
    told = {"data": tmp_path / "ruled.csv", "epsilon": 300.0, "draws": 500}
    made = make(**told, **settings, outputs=Outputs(drop=dropped))
    plan = yaml.safe_load((made.folder / "public" / "plan.yaml").read_text())
    assumed, found = made.certificate.assumed_public, set()
    assert plan_problems(made.certificate, plan) == []
    for place, item in enumerate(assumed):
        left = replace(made.certificate, assumed_public=(*assumed[:place], *assumed[place + 1 :]))
        assert certificate_problems(left) == []
        if "assumes, and certificate.json does not say" in " ".join(plan_problems(left, plan)):
            found.add(item.what)
    assert found == due


HTML = "as <b>printed</b>\n<div\n\\<script>alert(1)</script> <!-- [a link](https://example.org) a < b"


@pytest.mark.parametrize(
    "words",
    [
        {"standard": hr.RangeAveraged(hr.Brackets([0.0, 1e9])), "reasons": {"": HTML}},
        {"standard": hr.Strict(BOX, HTML), "epsilon": 2.0},
        {"about": About(purpose=HTML)},
    ],
)
def test_an_owners_words_are_no_html(make, words):
    made = make(**words)
    text = (made.folder / "public" / "certificate.md").read_text()
    assert "alert(1)" in text
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    shown = html.unescape(re.sub("<[^>]+>", "", page))
    assert "<b>" in shown
    assert "script>alert(1)</script>" in shown
    assert not re.search("<(b|div|script|!--)", page)
    assert hr.verify_release(made.folder).problems == ()


def test_version_1_is_written_as_it_was_read(make):
    document = content(make())
    kept = {k: v for k, v in document.items() if k not in ("plain", "unit", "about", "earlier_releases")}
    text = json.dumps(kept | {"certificate": 1}, indent=1, ensure_ascii=False) + "\n"
    first = Certificate.loads(text.encode())
    assert (first.version, first.json()) == (1, text)
    assert "Formally" not in first.markdown()
    assert "SHAKE" not in first.markdown()


def test_why_a_sentence_stands_in_a_certificate(make, hedgerow):
    made = make()
    text = (made.folder / "public" / "certificate.md").read_text()
    assert "not of every possible table. [C1]" in text
    assert made.certificate.not_covered[0].endswith("not of every possible table.")
    assert "it is public. [C28]" in hedgerow("inspect", made.folder).text
    shown = hedgerow("verify", "--why", "c3")
    assert shown.code == 0
    assert "C3. Weights, their scale" in shown.text
    assert "tests/evidence/test_audit.py::test_linear_weights_breach" in shown.text
    assert json.loads(hedgerow("verify", "--why", "STRICT", "--json").out)["proof"] == (
        "docs/maths.md, Strict mode"
    )
    refused = hedgerow("verify", "--why", "C99")
    assert (refused.code, f"C1 to C{len(CAVEATS)}" in refused.text) == (2, True)
    nothing = hedgerow("verify")
    assert (nothing.code, "is missing" in nothing.text) == (2, True)


def test_why_needs_none_of_the_engine():
    script = (
        "import sys; sys.argv = ['hedgerow', 'verify', '--why', 'C3']\n"
        "from hedgerow.cli import main; main(); sys.stderr.write(' '.join(sys.modules))"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(hr.__file__).parents[1])}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "docs/maths.md" in done.stdout
    assert not {"numpy", "pandas", "pyarrow", "numba", "scipy", "pydantic"} & set(done.stderr.split())


@pytest.mark.parametrize("format", ["parquet", "arrow", "stata", "spss", "csv"])
def test_every_file_says_that_it_is_synthetic(make, format):
    made = make(outputs=hr.Outputs(format=format), copies=2)
    label = f"Synthetic, not real records: hedgerow release {made.certificate.release}"
    assert len(label.encode()) <= 64
    for number, copy in enumerate(made.certificate.copies, 1):
        path = made.folder / "public" / copy.file
        assert path.stem == f"synthetic-copy-{number}"
        if format == "parquet":
            assert pq.read_schema(path).metadata[b"description"].decode() == label
        elif format == "arrow":
            assert pa.ipc.open_file(path).schema.metadata[b"description"].decode() == label
        elif format == "stata":
            assert pd.io.stata.StataReader(path).data_label == label
        elif format == "spss":
            assert pyreadstat.read_sav(str(path), metadataonly=True)[1].file_label == label
    assert hr.verify_release(made.folder).problems == ()


@pytest.mark.parametrize("version", [1, 2])
def test_a_copy_has_the_name_of_its_version(make, version):
    """Version 1 names copy-1.csv, version 2 synthetic-copy-1.csv, and neither the other."""
    first = make().certificate
    if version == 1:
        first = replace(first, version=1, plain=None, unit=None, about=None)
        first = replace(first, copies=(replace(first.copies[0], file="copy-1.csv"),))
    assert certificate_problems(first) == []
    other = {1: "synthetic-copy-1.csv", 2: "copy-1.csv"}[version]
    found = forged(first, copies=(replace(first.copies[0], file=other),))
    assert f"copy 1 of format csv is named {other}" in found


# The registry's form: its objects take no other keys than these.
FORM = {
    "basic": "name data_curators description intended_use data_product_type data_product_region "
    "data_product_sector publication_date",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details number_of_privacy_units privacy_parameters "
    "privacy_parameters_details",
    "deployment_model": "model_name trust_assumptions actors release_type data_source_type access_type",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms composition post_processing "
    "justification utility additional_information",
    "administrative": "evidence_sources status registry_authors tier",
}


def test_a_record_for_the_registry_says_what_the_certificate_says(make, hedgerow):
    made = make(about=ABOUT, copies=2, bound="renyi", epsilon=3.0)
    shown = hedgerow("certificate", made.folder, "--registry")
    assert shown.code == 0
    record = yaml.safe_load(shown.out)["deployment"]
    assert {name: set(part) - set(FORM[name].split()) for name, part in record.items()} == {
        name: set() for name in FORM
    }
    basic, loss = record["basic"], record["privacy_loss"]
    assert basic["data_curators"] == [{"data_curator_name": "the statistical office"}]
    assert basic["publication_date"] == made.certificate.date
    assert isinstance(basic["publication_date"], str)
    assert basic["data_product_type"] == "Synthetic data"
    assert record["dp_variant"]["variant_name"] == "Custom"
    assert loss["privacy_parameters"] == {"epsilon": 3.0, "delta": 1e-6}
    assert loss["privacy_parameters_details"] == made.certificate.claim
    assert loss["number_of_privacy_units"] == 150
    assert "the data board" in record["implementation"]["justification"]
    assert "priced together" in record["implementation"]["composition"]
    left = [line for line in shown.out.split("\n") if line.startswith("# - ")]
    assert "# - deployment.basic.name" in left
    assert not any("intended_use" in line for line in left)


def test_a_record_invents_nothing(make, hedgerow, people):
    made = make(data=people, standard=STRICT, epsilon=2.0)
    text = hedgerow("certificate", made.folder, "--registry").out
    record = yaml.safe_load(text)["deployment"]
    assert record["dp_variant"]["variant_name"] == "Pure DP"
    assert record["privacy_loss"]["privacy_parameters"] == {"epsilon": 2}
    assert not {"data_curators", "intended_use", "data_product_region"} & set(record["basic"])
    assert "# - deployment.basic.intended_use" in text
    assert record["basic"]["description"].startswith("A synthetic copy of a table of 150 records")
    assert "justification" not in record["implementation"]
    silent = make("silent", epsilon=None)
    record = yaml.safe_load(hedgerow("certificate", silent.folder, "--registry").out)["deployment"]
    assert "privacy_parameters" not in record["privacy_loss"]
    assert record["dp_variant"]["variant_name"] == "Custom"
    assert hedgerow("certificate", silent.folder).out.startswith("# Certificate of release")
    (silent.folder / "public" / "plan.yaml").write_text("formula: x ~ z\n")
    assert hedgerow("certificate", silent.folder, "--registry").code == 3
