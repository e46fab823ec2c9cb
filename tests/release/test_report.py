"""A release keeps its report inside, and `hedgerow report` writes it again with what was run since."""

import json
import re
from pathlib import Path

import hedgerow as hr
from hedgerow.numerics.rounding import format_figure

AUDIT = {"kind": "exact", "epsilon": 40.0, "largest_fixed": 1.234, "largest_recomputed": None}
AUDIT |= {"of_claim": True, "largest_reverse": None, "records": 150, "recomputed": 0}
AUDIT |= {"breaches": [], "reverse_breaches": []}


def test_a_release_has_its_report_inside_and_only_there(hedgerow, make):
    made = make(copies=2)
    inside, public = made.folder / "confidential", made.folder / "public"
    figures, page = inside / "report.json", (inside / "report.html").read_text()

    assert json.loads(figures.read_text())["release"]["certificate"] == made.certificate.digest
    assert made.certificate.release in page
    assert {path.stat().st_mode & 0o777 for path in inside.iterdir()} == {0o600}
    assert not [path for path in public.iterdir() if "report" in path.name]
    assert hr.verify_release(made.folder).problems == ()

    (inside / "report.html").unlink()
    done = hedgerow("report", made.folder)
    assert done.code == 0, done.err
    assert (inside / "report.html").read_text() == page

    # What was run since: as its command prints it, and perhaps readable by others.
    (inside / "audit.json").write_text(json.dumps(AUDIT))
    (inside / "audit.json").chmod(0o644)
    done = hedgerow("report", made.folder, "--out", "elsewhere.html", "--json")
    assert json.loads(done.out) == {"confidential": True, "report": "elsewhere.html"}
    assert "1.234" in Path("elsewhere.html").read_text()
    assert Path("elsewhere.html").stat().st_mode & 0o777 == 0o600
    assert hedgerow("report", made.folder, "--out", public / "report.html").code == 3
    assert hedgerow("report", made.folder).code == 0
    assert hr.verify_release(made.folder).problems == ()  # for the owner alone again

    figures.write_text('{"report": 1}')
    assert "has another version than 2. Use the hedgerow" in hedgerow("report", made.folder).text
    figures.write_text('{"report": 2}')
    assert "is not what hedgerow writes" in hedgerow("report", made.folder).text
    figures.unlink()
    done = hedgerow("report", made.folder)
    assert done.code == 3
    assert "made before reports were written" in done.text


def test_other_standards_stand_beside_the_released_one(hedgerow, make):
    made = make(copies=2)
    inside = made.folder / "confidential"
    assert "were not compared" in (inside / "report.html").read_text()

    done = hedgerow("compare", "--plan", inside / "plan.yaml", "--radius", "0.4,1.8", "--json")
    assert done.code == 0, done.err
    (inside / "compare.json").write_text(done.out)
    assert hedgerow("report", made.folder).code == 0

    page, rows = (inside / "report.html").read_text(), json.loads(done.out)["standards"]
    numbers = re.search('aria-label="Numbers of: Price by standard.*?</table>', page, re.S)[0]
    assert re.findall('<th scope="row"[^>]*>([^<]*)<', numbers) == [row["standard"] for row in rows]
    averaged = next(row for row in rows if row["standard"] == "range-averaged")
    assert averaged["withheld_total"] > averaged["total"] == 2 * averaged["epsilon"]
    assert f">{format_figure(averaged['withheld_total'])}<" in numbers
    assert "were not compared" not in page


def test_looks_are_listed(hedgerow, table):
    flags = ("--formula", "x ~ z", "--draws", 200, "--epsilon", 40)
    assert hedgerow("cost", table, *flags).code == 0
    assert hedgerow("synthesize", table, *flags, "--out", "release").code == 0

    page = Path("release/confidential/report.html").read_text()
    looks = re.search('aria-label="Looks".*?</table>', page, re.S)[0]
    assert looks.count("<tr>") == 2
    assert "cost" in looks


def test_in_the_folder_itself_a_release_has_its_name(hedgerow, make, monkeypatch):
    """`hedgerow verify .` is what the page for receivers asks for."""
    monkeypatch.chdir(make().folder / "public")
    assert "public matches its certificate" in hedgerow("verify", ".").text
    Path("extra").touch()
    assert "public does not match its certificate" in hedgerow("verify", ".").text
