"""Strict means strict: of two files that differ in one outcome the same goes out, but for the draws."""

import itertools
import json
import warnings
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from scipy import stats

import hedgerow as hr

BOX = "{Intercept: [6, 10], z: [0.5, 1.5], sigma: [0.6, 1.6]}"
STRICT = f"{{kind: strict, box: {BOX}, reason: published tables}}"
LIMITS = "{kind: strict, limits: [1, 1000000], reason: published tables}"
IN_RANGE = (
    "{kind: strict, limits: [1, 1000000], relation: range, margin: {share: 0.3}, "
    "range: {kind: brackets, edges: [0, 100, 10000], because: published tables}}"
)
INSIDE = (
    "{kind: strict, limits: [1, 1000000], relation: range, inside: true, "
    "range: {kind: bounds, lower: 500, upper: 9000, because: published tables}}"
)
AUTO = "{kind: strict, limits: [1, 1000000], relation: replaced, noise: auto, margin: {share: 0.3}}"


def rows(records=60):
    frame = hr.datasets.lognormal(records, seed=3)
    return [[str(round(1000 * x)), f"{z:.3f}"] for x, z in zip(frame["x"], frame["z"], strict=True)]


def write(path, cells):
    Path(path).write_text("x,z\n" + "".join(",".join(row) + "\n" for row in cells))


# Values that one cell of the outcome may hold: each changed the type, the exit code or the sampler's fate.
CELLS = {
    "one decimal among integers": "22.5",
    "an outlier of 1e6 standard deviations": "1e30",
    "beyond the range of floats": "1e400",
    "a number of 25 digits": "1" * 25,
    "infinite": "inf",
    "zero": "0",
    "negative": "-17",
    "missing": "",
    "a word": "refused to say",
    "with a leading zero": "0042",
}


def public(folder):
    """All that goes out, without what differs between any two releases: draws, digests, name and date."""
    certificate = json.loads((folder / "public/certificate.json").read_text())
    page = (folder / "public/index.html").read_text()
    for copy in certificate["copies"]:
        page = page.replace(copy.pop("sha256"), "").replace(f"{copy.pop('bytes'):,}", "")
    page = page.replace(certificate["release"], "").replace(certificate["date"], "")
    for key in ("release", "date", "page"):
        del certificate[key]
    names = sorted(path.name for path in (folder / "public").iterdir())
    return names, certificate, page, (folder / "public/plan.yaml").read_text()


QUICK = ("missing", "a word")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CELLS]
)
@pytest.mark.parametrize(
    ("family", "standard"),
    [
        pytest.param("lognormal", STRICT, id="box-lognormal", marks=pytest.mark.slow),
        pytest.param("normal", STRICT, id="box-normal", marks=pytest.mark.slow),
        pytest.param("lognormal", LIMITS, id="limits-lognormal"),
        pytest.param("normal", IN_RANGE, id="range-normal", marks=pytest.mark.slow),
        pytest.param("lognormal", INSIDE, id="inside-lognormal", marks=pytest.mark.slow),
        pytest.param("normal", AUTO, id="auto-normal", marks=pytest.mark.slow),
        pytest.param("zero_lognormal", LIMITS, id="limits-zero", marks=pytest.mark.slow),
        pytest.param("zero_normal", AUTO, id="auto-zero", marks=pytest.mark.slow),
    ],
)
def test_one_cell_changes_neither_exit_code_nor_messages_nor_files(
    hedgerow, monkeypatch, name, family, standard
):
    """Each file has a ledger of its own: what a ledger refuses follows the data, and the claim says so."""
    plain = rows()
    changed = [[CELLS[name], plain[0][1]], *plain[1:]]
    done = []
    for file, cells in (("plain", plain), ("changed", changed)):
        write(f"{file}.csv", cells)
        monkeypatch.setenv("HEDGEROW_LEDGER", str(Path(f"{file}.sqlite").resolve()))
        made = hedgerow(
            "synthesize", f"{file}.csv", "--formula", "x ~ z", "--family", family, "--epsilon", "2",
            "--draws", "200", "--standard", standard, "--out", file, "--quiet", "--format", "parquet",
        )  # fmt: skip
        schema = pyarrow.parquet.read_schema(f"{file}/public/synthetic-copy-1.parquet")
        name_of_release = json.loads(Path(f"{file}/public/certificate.json").read_text())["release"]
        described = schema.to_string(truncate_metadata=False).replace(name_of_release, "")
        done.append((made.code, made.out, public(Path(file)), described))
    assert done[0] == done[1]
    assert done[0][0] == 0


TABLE = """
version: 1
data: {file}.csv
columns:
  x: {{formula: "x ~ z"}}
  bonus: {{formula: "bonus ~ z + log(x)", {gaps}}}
{more}derived: {{total: x + bonus}}
epsilon: 2
draws: 200
standard: {standard}
outputs: {{format: {format}}}
"""
CLASSES = """  grade:
    {formula: "grade ~ z", family: {kind: categorical, levels: [low, high]}, missing: synthesized}
  flag: {formula: "flag ~ z", family: bernoulli}
"""
BY_NAME = "{kind: strict, limits: {x: [1, 1000000], bonus: [1, 1000000]}, reason: published tables}"
BOXES = (
    "{kind: strict, box: {x: {Intercept: [6, 10], z: [0.5, 1.5], sigma: [0.6, 1.6]}, "
    "bonus: {Intercept: [0, 4], z: [-1, 1], log(x): [0, 1], sigma: [0.6, 1.6]}}}"
)
ROWS = {
    "a formula": ["=1+1", "", "=HYPERLINK(1)", "7", "=2+2"],
    "gaps": ["", "", "", "", ""],
    "words and infinities": ["refused", "1e400", "none of them", "yes", "n/a"],
    "negative": ["-1", "0", "LOW", "-1", "0042"],
}


@pytest.mark.parametrize(
    ("name", "standard", "file"),
    [
        ("a formula", BOXES, "csv"),
        pytest.param("a formula", BY_NAME, "csv", marks=pytest.mark.slow),
        *(pytest.param(name, BY_NAME, "parquet", marks=pytest.mark.slow) for name in ROWS),
        *(pytest.param(name, BOXES, "parquet", marks=pytest.mark.slow) for name in ROWS),
    ],
)
def test_one_row_of_a_table_changes_neither_exit_code_nor_messages_nor_files(
    hedgerow, monkeypatch, name, standard, file
):
    """All protected cells of a row, and what is derived of them."""
    random, done = np.random.default_rng(5), []
    plain = [[x, str(random.integers(1, 900)), random.choice(["low", "high"]), str(random.integers(2)), "", z]
             for x, z in rows()]  # fmt: skip
    for row in plain:
        row[4] = str(int(row[0]) + int(row[1]))
    changed = [[*ROWS[name], plain[0][5]], *plain[1:]]
    by_name = standard == BY_NAME
    for place, cells in (("plain", plain), ("changed", changed)):
        lines = [["x", "bonus", "grade", "flag", "total", "z"], *cells]
        lines = lines if by_name else [[*line[:2], *line[4:]] for line in lines]
        Path(f"{place}.csv").write_text("".join(",".join(line) + "\n" for line in lines))
        gaps, more = ("missing: synthesized", CLASSES) if by_name else ("family: lognormal", "")
        told = {"file": place, "gaps": gaps, "more": more, "standard": standard, "format": file}
        Path(f"{place}.yaml").write_text(TABLE.format(**told))
        monkeypatch.setenv("HEDGEROW_LEDGER", str(Path(f"{place}.sqlite").resolve()))
        made = hedgerow("synthesize", "--plan", f"{place}.yaml", "--out", place, "--quiet")
        assert made.code == 0, made.err
        copy = Path(f"{place}/public/synthetic-copy-1.{file}")
        shown = copy.read_text().splitlines()[0] if file == "csv" else pyarrow.parquet.read_schema(copy).names
        kinds = [] if file == "csv" else list(map(str, pyarrow.parquet.read_schema(copy).types))
        *told, plan = public(Path(place))
        done.append((made.out, *told, plan.replace(place, ""), shown, kinds))
    assert done[0] == done[1]


RULED = """
version: 1
data: {file}.csv
columns:
  grade:
    {{formula: "grade ~ z", family: {{kind: categorical, levels: [low, high]}}, missing: synthesized}}
  x: {{formula: "x ~ z", missing: withheld, codes: [-8]}}
  part: {{formula: "part ~ z", family: beta, share_of: x, missing: synthesized, codes: [-8]}}
  bonus:
    formula: "bonus ~ z + C(grade) + log(x)"
    family: zero_lognormal
    only_where: "grade == 'high'"
    missing: synthesized
checks: ["part <= x"]
epsilon: 2
draws: 100
standard:
  kind: strict
  limits: {{x: [1, 1000000], part: [0.001, 0.999], bonus: [1, 1000000]}}
  reason: published tables
outputs: {{format: {format}}}
"""
KINDS = {
    "gaps": ["", "", "", ""],
    "words": ["none", "refused", "n/a", "NA"],
    "codes": ["-8", "-8", "-8", "-8"],
    "a part above the whole, of nothing": ["low", "0", "99", "7"],
    "beyond floats": ["high", "1e400", "-inf", "=1+1"],
}


@pytest.mark.slow
@pytest.mark.parametrize("file", ["csv", "parquet"])
@pytest.mark.parametrize("name", KINDS)
def test_one_row_of_codes_gaps_and_rules_changes_neither_exit_code_nor_messages_nor_files(
    hedgerow, monkeypatch, name, file
):
    """Also where nobody else has a gap, a code or a cell that a rule fixes."""
    random, done = np.random.default_rng(6), []
    plain = [["high", x, str(int(x) // 2 + 1), str(random.integers(1, 900)), z] for x, z in rows()]
    changed = [[*KINDS[name], plain[0][4]], *plain[1:]]
    for place, cells in (("plain", plain), ("changed", changed)):
        lines = [["grade", "x", "part", "bonus", "z"], *cells]
        Path(f"{place}.csv").write_text("".join(",".join(line) + "\n" for line in lines))
        Path(f"{place}.yaml").write_text(RULED.format(file=place, format=file))
        monkeypatch.setenv("HEDGEROW_LEDGER", str(Path(f"{place}.sqlite").resolve()))
        made = hedgerow("synthesize", "--plan", f"{place}.yaml", "--out", place, "--quiet")
        assert made.code == 0, made.err
        copy = Path(f"{place}/public/synthetic-copy-1.{file}")
        if file == "csv":
            lines = copy.read_text().splitlines()
            assert {line.split(",")[0] for line in lines[1:]} <= {"high", "low", ""}
            kinds = lines[0], len(lines)
        else:
            kinds = [(field.name, str(field.type)) for field in pyarrow.parquet.read_schema(copy)]
        *told, plan = public(Path(place))
        done.append((made.out, *told, plan.replace(place, ""), kinds))
    assert done[0] == done[1]


def test_declared_types_are_written(hedgerow):
    """And CSV copies look alike too: whole numbers, within the declared limits."""
    cells = rows()
    cells[0][0] = "22.5"
    write("table.csv", cells)
    made = hedgerow(
        "synthesize", "table.csv", "--formula", "x ~ z", "--epsilon", "2", "--draws", "200", "--standard",
        STRICT, "--declared", "{type: integer, range_min: 500, range_max: 9000}", "--out", "release",
        "--seed", "1",
    )  # fmt: skip
    assert made.code == 0, made.err
    copy = [
        line.split(",")[0]
        for line in Path("release/public/synthetic-copy-1.csv").read_text().splitlines()[1:]
    ]
    assert all(500 <= int(value) <= 9000 for value in copy)
    assert "9000" in copy
    text = Path("release/public/certificate.md").read_text()
    assert "what the plan declares of 'x': type integer, at least 500, at most 9000" in text
    assert "declared:\n  type: integer" in Path("release/public/plan.yaml").read_text()
    assert hedgerow("verify", "release").code == 0


def test_a_gap_is_told_to_the_owner_alone(hedgerow):
    cells = rows()
    cells[3][0] = ""
    write("table.csv", cells)
    asked = ("synthesize", "table.csv", "--formula", "x ~ z", "--epsilon", "2", "--draws", "200")
    made = hedgerow(*asked, "--standard", STRICT, "--out", "release")
    assert made.code == 0, made.err
    assert "1 of 60 values of 'x' are missing" in made.text
    for file in Path("release/public").iterdir():
        assert "missing or none" not in file.read_text()
    assert len(Path("release/public/synthetic-copy-1.csv").read_text().splitlines()) == 61
    assert "missing in columns of the formula: 'x' in 1" in hedgerow(*asked, "--out", "other").text


def count_large(table, standard, **settings):
    """Of 4000 released intercepts, how many are above 1.3."""
    synth = hr.Synthesizer("x ~ z", standard=standard, draws=4000, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.HedgerowWarning)  # of the gap, to the owner
        return int((synth.fit(table)._fitted.outcome.fit.parameters["beta"][:, 0] > 1.3).sum())


def exceeds(one, other, factor):
    """Whether one rate is above so many times the other: Clopper–Pearson, each end wrong once in 1e5."""
    least = stats.beta.ppf(1e-5, one, 4000 - one + 1) if one else 0.0
    most = stats.beta.ppf(1 - 1e-5, other + 1, 4000 - other) if other < 4000 else 1.0
    return bool(least > factor * most)


def test_copies_of_neighbours_agree_as_claimed():
    """A large intercept is at most e^ε times as likely with x_0 as without it, and e^2ε times with another.

    Over 3 × 2 pairs of tables, false alarm below 2e-4. Without weights the same statistic does tell apart.
    """
    epsilon, frame = 0.3, hr.datasets.lognormal(20, seed=5)
    box = {"Intercept": (0.0, 2.0), "z": (0.5, 1.5), "sigma": (0.6, 1.6)}
    values = {"plain": frame["x"][0], "gone": np.nan, "huge": 1e30}
    tables = {name: frame.assign(x=[value, *frame["x"][1:]]) for name, value in values.items()}
    counts = {
        name: count_large(table, hr.Strict(box), epsilon=epsilon, seed=seed)
        for seed, (name, table) in enumerate(tables.items())
    }
    for one, other in itertools.permutations(counts, 2):
        steps = 1 if "gone" in (one, other) else 2
        assert not exceeds(counts[one], counts[other], np.exp(steps * epsilon)), (one, other)
    plain, huge = (count_large(tables[name], hr.Unweighted(), seed=7) for name in ("plain", "huge"))
    assert exceeds(huge, plain, np.exp(2 * epsilon))


def test_a_value_that_orders_a_column_like_the_outcome_is_told_to_the_owner_alone(hedgerow, monkeypatch):
    order = np.random.default_rng(1).permutation(60)
    cells = [[str(900 + 37 * place + place**2), f"{place / 20:.3f}"] for place in order]
    first = int(np.argmax(order == 30))
    done = []
    for file, value in (("plain", "950"), ("changed", cells[first][0])):
        cells[first][0] = value
        write(f"{file}.csv", cells)
        monkeypatch.setenv("HEDGEROW_LEDGER", str(Path(f"{file}.sqlite").resolve()))
        asked = ("synthesize", f"{file}.csv", "--formula", "x ~ z", "--epsilon", "2", "--draws", "200")
        made = hedgerow(*asked, "--standard", STRICT, "--out", file)
        done.append((made.code, public(Path(file)), "would publish the outcome 'x'" in made.text))
    assert done[0][:2] == done[1][:2]
    assert (done[0][0], done[1][2]) == (0, True)


@pytest.mark.parametrize("cells", [(1e308, -1e308), (5e-324, 1.7e308)])
def test_nor_do_cells_at_the_ends_of_the_doubles_stop_what_the_owner_is_told(tmp_path, monkeypatch, cells):
    """Copies are compared with the original before they go out: arithmetic without an end ended the run."""
    monkeypatch.chdir(tmp_path)
    frame = hr.datasets.lognormal(300, seed=3)
    frame["x"] **= 0.3  # no scale but their own is chosen for amounts that lie together
    frame.loc[[5, 6], "x"] = cells
    frame.to_parquet("far.parquet")
    asked = {"standard": hr.Strict(limits=(1, 1e6)), "epsilon": 20.0, "draws": 200}
    plan = hr.Plan(data="far.parquet", ledger="spent", formula="x ~ z", analyses=["x ~ z", "z ~ x"], **asked)
    hr.make_release(plan, tmp_path / "release")
    assert json.loads((tmp_path / "release/confidential/utility.json").read_text())["propensity"]


def test_a_check_of_words_that_are_derived_needs_none_in_the_original(tmp_path, monkeypatch):
    """Under Strict a derived column is read as numbers, whatever it holds: nobody uses it."""
    monkeypatch.chdir(tmp_path)
    frame = hr.datasets.lognormal(200, seed=3)
    frame["job"] = ["a", "b", "b", "a", "b"] * 40
    frame.assign(title=frame["job"].map({"a": "Alpha", "b": "Beta"})).to_csv("jobs.csv", index=False)
    columns = {
        "x": hr.Column("x ~ z"),
        "job": hr.Column("job ~ z", hr.Family("categorical", levels=["a", "b"])),
    }
    rules = hr.Rules(derived={"title": {"job": {"a": "Alpha", "b": "Beta"}}}, checks=["title == 'Alpha'"])
    asked = {"standard": hr.Strict(limits={"x": (1, 1e6)}), "epsilon": 20.0, "draws": 200, "rules": rules}
    made = hr.make_release(
        hr.Plan(data="jobs.csv", ledger="spent", formula=columns, **asked), tmp_path / "release"
    )
    (broken,) = json.loads((made.folder / "confidential/report.json").read_text())["broken"]
    assert broken["original"] is None
    assert 0 < broken["copies"][1] < 1
