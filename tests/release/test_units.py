"""Units through a plan: what is priced is a household, and plan, certificate, ledger and receiver say so."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import LedgerError
from hedgerow.privacy.claims import Figures, write_claim, write_plain
from hedgerow.privacy.claims.neighbours import NEIGHBOURS, join_columns
from hedgerow.release.certificate import Certificate, Unit
from hedgerow.release.ledger import Ledger, open_ledger
from hedgerow.release.plan.propose import propose
from hedgerow.release.registry import write_record
from hedgerow.release.verify.consistency import certificate_problems, plan_problems
from hedgerow.tables.files import read

COLUMNS = {
    "income": hr.Column("income ~ C(region)", shared=True),
    "wage": hr.Column("wage ~ age + log(income)"),
}
ASKED = {"formula": COLUMNS, "epsilon": 20.0, "copies": 2, "draws": 100, "bound": "renyi", "unit": "home"}


def households(homes=40):
    random = np.random.default_rng(5)
    home = np.repeat(np.arange(homes), random.integers(1, 8, homes))
    region, age = random.choice(list("ns"), homes)[home], random.integers(18, 90, len(home))
    income = np.exp(10 + 0.5 * random.normal(size=homes)[home]).round(2)
    wage = np.exp(0.6 * np.log(income) + 0.01 * age + 0.4 * random.normal(size=len(home))).round(2)
    names = np.array([f"h{number:03}" for number in random.permutation(homes)])
    return pd.DataFrame({"home": names[home], "region": region, "age": age, "income": income, "wage": wage})


def release_of(folder: Path, name="release", **changes):
    households().to_csv(folder / "t.csv", index=False)
    asked = ASKED | {"data": folder / "t.csv", "ledger": folder / "l", "weights": hr.ScalarWeights(0.5)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.HedgerowWarning)
        return hr.make_release(hr.Plan(**asked | changes), folder / name)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return release_of(tmp_path_factory.mktemp("units"))


@pytest.mark.slow
def test_a_certificate_is_about_a_household(made):
    told = made.certificate
    assert told.neighbour.startswith("the outcomes of all records of one 'home', all their protected columns")
    assert "for any 'home' with all its records" in told.claim
    assert "any record" not in told.claim + told.plain
    assert (told.unit.rows, told.unit.column, told.unit.together) == (None, "home", True)
    assert "one 'home': the protected values of all rows with the same value" in told.unit.covered
    assert any("'income' is the same in all rows of one unit" in each.what for each in told.assumed_public)
    assert Certificate.loads((made.folder / "public" / "certificate.json").read_bytes()) == told
    record = write_record(told)
    assert "privacy_unit: The values of 'income', 'wage' together in all rows of one 'home'" in record
    assert "number_of_privacy_units" not in record
    for number in (1, 2):
        copy = pd.read_csv(made.folder / "public" / f"synthetic-copy-{number}.csv")
        assert copy[["home", "region", "age"]].equals(households()[["home", "region", "age"]])
        assert (copy.groupby("home")["income"].nunique() == 1).all()


@pytest.mark.slow
def test_a_receiver_and_the_ledger_agree(made):
    with Ledger.open(made.ledger) as ledger:
        assert hr.verify_release(made.folder, ledger=ledger).problems == ()
        entry = next(each for each in ledger.entries() if each.event == "reserved")
        relations = [balance.relation for balance in ledger.balance()]
    assert (entry.relation, entry.epsilon) == ("withheld by home", 20.0)
    assert set(relations) == {"withheld by home", "withheld"}
    assert 0 < entry.withheld < np.inf
    assert {"withheld", "withheld by home"} <= json.loads(entry.curve).keys()


@pytest.mark.slow
def test_a_single_row_has_an_account_of_its_own(tmp_path):
    """Withholding one row may cost more than withholding all of a home: neither bounds the other."""
    with open_ledger(tmp_path / "l") as ledger:
        ledger.set_budget(0.5, relation="withheld", dataset="homes")
    with pytest.raises(LedgerError, match="exceeds what remains"):
        release_of(tmp_path, dataset="homes")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"unit": Unit(None, "age", "x", True)}, "neighbour is not that"),
        ({"unit": Unit(None, None, "x", True)}, "neighbour is not that"),
        ({"unit": Unit(3, "home", "x", False)}, "neighbour is not that"),
        ({"standard": "Strict, withheld"}, "no unit is priced as a whole"),
        ({"unchanged": ("region", "age")}, "not among those released"),
    ],
)
def test_a_certificate_that_says_two_things_of_its_unit_is_found_out(made, changed, says):
    assert certificate_problems(made.certificate) == []
    assert says in " ".join(certificate_problems(replace(made.certificate, **changed)))


@pytest.mark.slow
def test_a_certificate_of_rows_does_not_go_with_a_claim_for_households(made):
    """Nor does one for households go with a plan that names no unit, or another."""
    plan = hr.Plan.load(made.folder / "public" / "plan.yaml").mapping()
    assert plan_problems(made.certificate, plan) == []
    for other in ({"unit": "region"}, {"rows_per_unit": 3}):
        assert plan_problems(made.certificate, plan | other)
    assert plan_problems(made.certificate, {k: v for k, v in plan.items() if k != "unit"})


@pytest.mark.slow
@pytest.mark.parametrize("bound", ["lipschitz", "oscillation", "exact"])
def test_every_bound_speaks_of_a_household_and_is_verified(tmp_path, bound):
    told = release_of(tmp_path, bound=bound, epsilon=60.0)
    assert "any 'home' with all its records" in told.certificate.claim
    with Ledger.open(told.ledger) as ledger:
        assert hr.verify_release(told.folder, ledger=ledger).problems == ()


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["withheld", "replaced"])
def test_noise_for_all_rows_of_a_household_is_claimed_for_them(tmp_path, relation):
    """Several columns, classes among them, through a plan; charged once, and verified as before too."""
    limits = {"income": (1e3, 1e6), "wage": (1, 1e5)}
    asked = {"formula": {name: replace(each, shared=False) for name, each in COLUMNS.items()}}
    asked["formula"]["wage"] = hr.Column("wage ~ age + income")
    asked |= {"standard": hr.Strict(limits=limits, relation=relation), "weights": None, "bound": None}
    made = release_of(tmp_path, **asked, rows_per_unit=7)
    told = made.certificate
    assert "all records of one person or firm with at most 7 rows, all their protected" in told.claim
    assert "one record" not in told.claim + told.plain
    assert told.unit.together
    assert "has more than 7 rows, and the noise is that for all of them: ε = 20" in told.unit.covered
    with Ledger.open(made.ledger) as ledger:
        assert hr.verify_release(made.folder, ledger=ledger).problems == ()
        assert {entry.epsilon for entry in ledger.entries() if entry.event == "reserved"} == {20.0}
    synth = hr.Synthesizer(asked["formula"], standard=asked["standard"], epsilon=20.0, rows_per_unit=7)
    assert "with at most 7 rows" in synth.fit(households(), left_out=["home"]).sample().guarantee.claim()
    figures = Figures(
        neighbour=join_columns(NEIGHBOURS[told.standard]), epsilon=20.0, copies=2, draws=100, independent=True
    )
    before = replace(
        told, unit=replace(told.unit, together=False), neighbour=figures.neighbour,
        claim=write_claim("statistics", figures),
        plain=write_plain("statistics", figures, records=told.records),
    )  # fmt: skip
    assert certificate_problems(before) == []
    assert certificate_problems(replace(told, unit=replace(told.unit, rows=1)))


@pytest.mark.slow
def test_a_household_in_its_ranges(tmp_path):
    known = hr.RangeTruncated(hr.Box({"income": hr.Radius(0.5, 2)}))
    columns = {"income": COLUMNS["income"], "wage": hr.Column("wage ~ age")}
    told = release_of(tmp_path, formula=columns, standard=known, bound="oscillation", epsilon=60.0)
    assert "are replaced by the statement that each value lies in its range" in told.certificate.neighbour
    assert told.relation == "range-truncated box(income: radius(0.5, 2)) by home"
    with Ledger.open(told.ledger) as ledger:
        assert hr.verify_release(told.folder, ledger=ledger).problems == ()


@pytest.mark.slow
def test_a_household_that_is_not_released_is_named_as_used(tmp_path):
    told = release_of(tmp_path, outputs=hr.Outputs(drop=("home",)))
    assert told.certificate.used_not_released == ("home",)
    assert "home" not in pd.read_csv(told.folder / "public" / "synthetic-copy-1.csv").columns
    assert hr.verify_release(told.folder).problems == ()


def test_planned_weights_are_for_single_rows_and_say_so(tmp_path):
    asked = {"formula": "wage ~ age", "weights": None, "bound": None, "preset": "recommended"}
    with pytest.raises(hr.HedgerowError, match=r"declares at most 1\..*with other weights"):
        release_of(tmp_path, **asked)


def test_a_plan_holds_shared_columns():
    plan = hr.Plan(**ASKED)
    assert hr.Plan.loads(plan.text()) == plan
    assert plan.mapping()["columns"]["income"]["shared"] is True
    assert plan.settings.unit == "home"
    with pytest.raises(hr.HedgerowError, match="'income' is shared by the rows of a unit, and none is named"):
        hr.Plan(**ASKED | {"unit": None})


def test_a_proposal_reads_what_is_a_units_own(tmp_path):
    """The column that names units is no predictor, though it may be a number."""
    households().assign(home=lambda t: t["home"].str[1:].astype(int)).to_csv(tmp_path / "t.csv", index=False)
    table = read(tmp_path / "t.csv").frame
    said = {"income": {"range_min": 1}, "wage": {"range_min": 1}}
    found = propose(table, ["income", "wage"], said, unit="home", shared=["income"]).columns
    assert (found["income"].formula, found["income"].shared) == ("income ~ region", True)
    assert (found["wage"].formula, found["wage"].shared) == ("wage ~ region + age + log(income)", False)
    with pytest.raises(hr.HedgerowError, match="Add --unit"):
        propose(table, ["income"], {}, shared=["income"])
    with pytest.raises(hr.HedgerowError, match="'age' is not protected"):
        propose(table, ["income"], {}, unit="home", shared=["age"])
