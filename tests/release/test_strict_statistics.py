"""Strict by noisy statistics, from a file to a certificate and a ledger."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.inference.statistics import conclude, read_statistics, write_statistics
from hedgerow.mechanism.noisy.estimate import estimate
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.privacy.settings import Settings
from hedgerow.release.ledger import open_ledger
from hedgerow.release.plan import Outputs, Plan
from hedgerow.release.plan.flags import from_flags, to_flags

ASKED = (
    "--formula",
    "x ~ z",
    "--standard",
    "strict",
    "--limits",
    "10,1e6",
    "--draws",
    "100",
    "--epsilon",
    "0.5",
)


def read(folder):
    return json.loads(Path(folder, "public/certificate.json").read_text())


def test_ten_copies_cost_what_one_costs_in_certificate_and_ledger(hedgerow, table):
    for name, copies in (("one", 1), ("ten", 10)):
        made = hedgerow(
            "synthesize", table, *ASKED, "--copies", copies, "--because", "tariffs", "--out", name
        )
        assert made.code == 0, made.err
        assert hedgerow("verify", name, "--ledger", "ledger.sqlite").code == 0
    one, ten = read("one"), read("ten")
    assert (one["epsilon"]["total"], ten["epsilon"]["total"]) == (0.5, 0.5)
    assert one["bound"] == ten["bound"] == "statistics"
    assert ten["epsilon"]["per_copy"] is None
    assert len(ten["copies"]) == 10
    assert {"what": "values lie between 10 and 1,000,000; others are moved to the nearer limit",
            "because": "tariffs"} in ten["assumed_public"]  # fmt: skip
    with open_ledger("ledger.sqlite") as ledger:
        (account,) = ledger.balance()
    assert (account.relation, account.spent, account.releases) == ("withheld", 1.0, 2)
    assert account.composed < 1.01  # pure ε has a Rényi curve, and enters with the others'


@pytest.mark.parametrize(
    ("flags", "account", "withheld", "bound"),
    [
        pytest.param((), "withheld", 0.5, "statistics", marks=pytest.mark.slow),
        pytest.param(("--relation", "replaced"), "replaced", 0.25, "statistics", marks=pytest.mark.slow),
        (
            ("--relation", "range", "--radius", "0.4,1.8"),
            "replaced in radius(0.4, 1.8)",
            1.9137,
            "statistics",
        ),
        (("--noise", "gaussian", "--delta", "1e-5"), "withheld", 0.5, "gaussian"),
        pytest.param(("--margin", "0.25"), "withheld", 0.5, "statistics", marks=pytest.mark.slow),
    ],
)
def test_each_relation_pays_from_its_account_and_for_withheld(
    hedgerow, table, flags, account, withheld, bound
):
    made = hedgerow("synthesize", table, *ASKED, *flags, "--copies", 2, "--out", "release")
    assert made.code == 0, made.err
    assert hedgerow("verify", "release", "--ledger", "ledger.sqlite").code == 0
    certificate = read("release")
    assert certificate["bound"] == bound
    assert (certificate["delta"] is None) == (bound == "statistics")
    with open_ledger("ledger.sqlite") as ledger:
        accounts = {each.relation: each.spent for each in ledger.balance()}
    assert accounts[account] == 0.5
    assert accounts["withheld"] == pytest.approx(withheld, rel=1e-4)


@pytest.mark.slow
def test_a_certificate_that_says_another_relation_or_bound_is_found_out(hedgerow, table):
    hedgerow("synthesize", table, *ASKED, "--out", "release")
    path = Path("release/public/certificate.json")
    whole = path.read_text()
    for old, new in (
        ('"standard": "Strict, withheld"', '"standard": "Strict, replaced"'),
        ('"bound": "statistics"', '"bound": "strict"'),
        ('"total": 0.5', '"total": 0.25'),
    ):
        assert old in whole
        path.write_text(whole.replace(old, new))
        assert hedgerow("verify", "release").code == 3, new


@pytest.mark.parametrize(
    ("family", "more"),
    [
        pytest.param("zero_lognormal", (), marks=pytest.mark.slow),
        pytest.param("lognormal", ("--margin", "0.5"), marks=pytest.mark.slow),
        pytest.param("lognormal", ("--noise", "gaussian"), marks=pytest.mark.slow),
    ],
)
def test_a_receiver_concludes_from_published_statistics_what_the_owner_does(
    hedgerow, table, monkeypatch, family, more
):
    done = []
    monkeypatch.setattr(
        "hedgerow.release.make.write_statistics",
        lambda *given: done.append(given) or write_statistics(*given),
    )
    asked = (table, *ASKED[:-1], "2", "--family", family, *more, "--statistics", "--draws", "100")
    made = hedgerow("synthesize", *asked, "--out", "release")
    assert made.code == 0, made.err
    assert hedgerow("verify", "release").code == 0
    path, copy = Path("release/public/statistics.json"), pd.read_csv("release/public/synthetic-copy-1.csv")
    document = json.loads(path.read_text())
    assert document == json.loads(write_statistics("x ~ z", family, done[0][2]))
    assert (document["epsilon"], document["records"]) == (2.0, len(copy))
    found, (released, _) = conclude(path, copy, draws=100), read_statistics(document, copy)
    assert found["parameter"][:3] == ["Intercept", "z", "sigma"]
    plugged = np.append(estimate(released).beta, estimate(released).sigma)
    width = (found["upper"] - found["lower"])[:3]
    assert (np.abs(found["estimate"][:3] - plugged) < 0.5 * width).all()
    with pytest.raises(hr.HedgerowError, match="Pass a copy of the same release"):
        conclude(path, copy[1:])
    assert "statistics.json | | " in Path("release/public/certificate.md").read_text()
    whole = path.read_text()
    path.write_text(whole.replace('"squares": ', '"squares": 1'))
    assert "statistics.json was changed" in hedgerow("verify", "release").text
    path.unlink()
    assert "missing: statistics.json" in hedgerow("verify", "release").text
    path.write_text(whole)
    plan = Path("release/public/plan.yaml")
    plan.write_text(plan.read_text().replace("statistics: true", "statistics: false"))
    assert "whether statistics are published" in hedgerow("verify", "release").text


def test_statistics_are_published_where_there_are_some():
    with pytest.raises(hr.HedgerowError, match="only Strict"):
        Plan(formula="x ~ z", epsilon=1.0, outputs=Outputs(statistics=True))


@pytest.mark.slow
def test_plans_and_flags_say_the_same(hedgerow, table):
    plans = [
        Plan(formula="x ~ z", epsilon=1.0, standard=hr.Strict(limits=(10, 1e6), reason="r", **more))
        for more in (
            {},
            {"relation": "replaced", "margin": hr.Margin(0.3)},
            {"relation": "range", "range": hr.Brackets([0, 100, 1000])},
            {"noise": "gaussian"},
            {"noise": "auto"},
        )
    ]
    for plan in plans:
        assert Plan.loads(plan.text()) == plan
        flags = {flag.lstrip("-").partition("=")[0]: flag.partition("=")[2] for flag in to_flags(plan)}
        again = from_flags({k: float(v) if k in ("epsilon", "delta") else v for k, v in flags.items()})
        assert again == plan
    assert "debias" not in plans[0].text()
    text = "version: 1\nformula: x ~ z\nepsilon: 1\nstandard: {kind: strict, limits: [1000, 1e9]}\n"
    assert Plan.loads(text).settings.noisy.limits == (1000, 1e9)
    Path("plan.yaml").write_text(text.replace("1000, 1e9", "10, 1e6") + f"data: {table.name}\n")
    assert hedgerow("synthesize", "--plan", "plan.yaml", "--out", "from-plan").code == 0


@pytest.mark.slow
def test_trials_of_a_strict_plan(hedgerow, table):
    for epsilon, standards in ((40, {"adp", "strict"}), (0.01, {"strict"})):  # no weights meet the second
        compared = hedgerow("compare", table, *ASKED[:-1], epsilon, "--draws", "200", "--json")
        rows = {row["standard"]: row for row in json.loads(compared.out)["standards"]}
        assert rows.keys() == standards
        assert rows["strict"]["epsilon"] == epsilon
    tried = hedgerow("calibrate", table, *ASKED, "--at", "2", "--json")
    assert [row["achieved"] for row in json.loads(tried.out)["targets"]] == [0.5, 2.0]
    audited = hedgerow("audit", table, *ASKED)
    assert "Nothing to find" in audited.text
    attacked = hedgerow("attack", table, *ASKED, "--trials", "200", "--json")
    assert json.loads(attacked.out)["breach"] is False


def test_flags_that_do_not_belong_together(hedgerow, table):
    plain = ("synthesize", table, "--formula", "x ~ z", "--epsilon", "1", "--out", "release")
    assert "--limits goes with --standard strict" in hedgerow(*plain, "--limits", "1,2").text
    strict = (*plain, "--standard", "strict")
    assert "--limits takes two numbers" in hedgerow(*strict, "--limits", "1,2,3").text
    assert "or a box of parameters" in hedgerow(*strict).text
    assert "go together" in hedgerow(*strict, "--limits", "1,2", "--radius", "0.4,1.8").text


@pytest.mark.slow
def test_errors_to_expect_are_told_beforehand_and_no_look_is_counted(hedgerow, table):
    """From the predictors alone: another outcome, the same answer."""
    told = hedgerow("cost", table, *ASKED, "--json")
    assert told.code == 0, told.err
    rows = json.loads(told.out)["expected_errors"]
    assert [row["epsilon"] for row in rows] == [0.25, 0.5, 1.0]
    assert rows[0]["line"] > rows[-1]["line"] > rows[-1]["plain_line"]
    boxed = hedgerow("box", table, "--formula", "x ~ z", "--limits", "10,1e6", "--epsilon", "1", "--json")
    again = {row["epsilon"]: row for row in json.loads(boxed.out)["expected_errors"]}
    assert all(again[row["epsilon"]] == row for row in rows)
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0], *("7," + line.partition(",")[2] for line in lines[1:])]) + "\n")
    assert json.loads(hedgerow("cost", table, *ASKED, "--json").out)["expected_errors"] == rows
    assert hedgerow("synthesize", table, *ASKED, "--out", "release").code == 0
    assert read("release")["looks"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_epsilon_is_the_price_of_a_whole_person_and_charged_once(hedgerow, table, monkeypatch, noise):
    """The noise is that for all rows which the plan declares, in the release as in what cost expects."""
    recipes = []
    monkeypatch.setattr(
        "hedgerow.fitted.noised.release_statistics",
        lambda recipe, *given, **more: recipes.append(recipe) or release_statistics(recipe, *given, **more),
    )
    told, spent = {}, {}
    for rows in (1, 3):
        monkeypatch.setenv("HEDGEROW_LEDGER", str(Path(f"{rows}.sqlite").resolve()))
        asked = (table, *ASKED, "--noise", noise, "--rows-per-unit", rows)
        told[rows] = json.loads(hedgerow("cost", *asked, "--json").out)
        made = hedgerow("synthesize", *asked, "--copies", 2, "--out", f"with-{rows}")
        assert made.code == 0, made.err
        assert hedgerow("verify", f"with-{rows}", "--ledger", f"{rows}.sqlite").code == 0
        with open_ledger(f"{rows}.sqlite") as ledger:
            spent[rows] = ledger.balance()[0]
    one, three = recipes
    scales = [recipe.budget() for recipe in recipes]
    assert [b / a for a, b in zip(*reversed(scales), strict=True) if a] == (
        [3, 3] if noise == "laplace" else [9, 9]
    )
    assert (one.rows_per_unit, three.rows_per_unit, one.epsilon, three.epsilon) == (1, 3, 0.5, 0.5)
    assert spent[1].spent == spent[3].spent == 0.5
    assert spent[3].composed == pytest.approx(spent[1].composed)
    assert "would spend" in told[3]["facts"]
    assert told[3]["facts"]["would spend"].startswith("0.5 for 1 copy and 3 rows")
    assert told[3]["expected_errors"][1]["line"] > told[1]["expected_errors"][1]["line"]
    unit = read("with-3")["unit"]
    assert "the noise is that for all of them: ε = 0.5 " in unit["covered"]
    path = Path("with-3/public/certificate.json")
    path.write_text(path.read_text().replace("has more than 3 rows", "has more than 4 rows"))
    assert hedgerow("verify", "with-3").code == 3


@pytest.mark.slow
def test_that_no_margin_will_be_there_is_told_beforehand(hedgerow, table):
    """By relation and rows of a unit, from public things: nothing is fitted for it."""
    records = len(table.read_text().splitlines()) - 1
    pays = 200 / (0.5 * records) * 1.01  # ε at which half of it is just enough
    asked = (table, *ASKED[:-1], pays, "--margin", "0.5")
    assert "There is no margin" not in hedgerow("cost", *asked).text
    for more, least in (
        (("--relation", "replaced"), "400"),
        (("--relation", "range", "--radius", "0.4,1.8"), "400"),
        (("--rows-per-unit", 3), "600"),
    ):
        assert f"below {least}, where counts" in " ".join(hedgerow("cost", *asked, *more).text.split())


def test_a_unit_of_several_rows_belongs_to_noisy_statistics():
    with pytest.raises(hr.HedgerowError, match="only Strict"):
        Settings.of("x ~ z", epsilon=1.0, rows_per_unit=3)
    strict = hr.Strict(limits=(10, 1e6))
    for rows in (0, 1.5, "3"):
        with pytest.raises(hr.HedgerowError, match="rows_per_unit"):
            Plan(formula="x ~ z", epsilon=1.0, standard=strict, rows_per_unit=rows)
    asked = Settings.of("x ~ z", epsilon=1.0, standard=strict, rows_per_unit=3)
    assert Plan(settings=asked).rows == Plan.loads(Plan(settings=asked).text()).settings.rows_per_unit == 3


@pytest.mark.slow
@pytest.mark.parametrize(("dense", "bound"), [(0, "statistics"), (12, "gaussian")])
def test_auto_noise_becomes_what_the_predictors_ask_for_and_the_certificate_says_so(hedgerow, dense, bound):
    """Also in what is charged and in what cost tells; another bound in the certificate is found out."""
    stream = np.random.default_rng(4)
    names = ["z", *(f"v{place}" for place in range(dense))]
    frame = pd.DataFrame(stream.normal(size=(300, len(names))), columns=names)
    frame.insert(0, "x", np.exp(6 + stream.normal(size=300)))
    frame.to_csv("wide.csv", index=False)
    flags = ("--standard", "strict", "--limits", "10,1e6", "--noise", "auto", "--delta", "1e-5")
    asked = ("wide.csv", "--formula", f"x ~ {' + '.join(names)}", *flags, "--epsilon", 1)
    assert json.loads(hedgerow("cost", *asked, "--json").out)["prices"][0]["bound"] == bound
    made = hedgerow("synthesize", *asked, "--out", "release")
    assert made.code == 0, made.err
    assert hedgerow("verify", "release", "--ledger", "ledger.sqlite").code == 0
    certificate = read("release")
    assert certificate["bound"] == bound
    assert (certificate["delta"] or {"total": None})["total"] == (1e-5 if bound == "gaussian" else None)
    assert "noise: auto" in Path("release/public/plan.yaml").read_text()
    with open_ledger("ledger.sqlite") as ledger:
        (entry,) = [each for each in ledger.entries() if each.event == "reserved"]
    assert (entry.bound, entry.delta) == (bound, 1e-5 if bound == "gaussian" else None)
    path = Path("release/public/certificate.json")
    path.write_text(path.read_text().replace(f'"bound": "{bound}"', '"bound": "strict"'))
    assert hedgerow("verify", "release").code == 3


def test_a_preset_goes_with_limits_as_far_as_there_is_something_to_set():
    plan = from_flags({"formula": "x ~ z", "standard": "strict", "limits": "10,1e6", "epsilon": 1.0,
                       "preset": "recommended"})  # fmt: skip
    assert (plan.settings.sampling, plan.settings.debias) == ("stratified", False)
