"""What a release is charged under every relation, what charges compose to, and looks that nobody pays for."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import BudgetError, LedgerError
from hedgerow.numerics.renyi import COARSE_ORDERS
from hedgerow.privacy.bounds import OSCILLATION, RENYI
from hedgerow.release.ledger import Entry, Ledger
from hedgerow.release.ledger.charges import charge_of, compose, write_curve
from hedgerow.release.verify import verify_release

DATA, RANGE = "a" * 64, "range-truncated radius(0.4, 1.8)"
WIDE = ("--standard", "range-truncated", "--radius", "1e-6,1e6", "--because", "a test")
QUICK = ("--formula", "x ~ z", "--draws", 100, "--dataset", "table")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.db") as opened:
        yield opened


def reserve(ledger: Ledger, epsilon: float | None = 1.0, relation: str = "withheld", **more: object) -> Entry:
    given: dict[str, object] = {"fingerprint": DATA, "copies": 1, "plan": "p", "bound": "lipschitz"}
    return ledger.reserve(epsilon=epsilon, relation=relation, **(given | more))  # type: ignore[arg-type]


def spent(ledger: Ledger, relation: str = "withheld") -> float:
    return next(each.spent for each in ledger.balance() if each.relation == relation)


def test_wide_ranges_do_not_lead_past_a_spent_budget(hedgerow, table):
    hedgerow("ledger", "budget", 20, "--dataset", "table", "--relation", "withheld")
    assert hedgerow("synthesize", table, *QUICK, "--epsilon", 20, "--out", "first").code == 0
    for number in range(3):
        done = hedgerow("synthesize", table, *QUICK, *WIDE, "--epsilon", 20, "--out", f"more-{number}")
        assert done.code == 5
        assert "0.0 of 20.0" in done.text
        assert not Path(f"more-{number}").exists()
    assert hedgerow("cost", table, *QUICK, *WIDE, "--epsilon", 20).code == 5
    assert json.loads(hedgerow("ledger", "list", "--json").out)["looks"] == []  # nothing was fitted


def test_what_remains_must_cover_the_price_that_only_the_fit_shows(hedgerow, table):
    """Something remains, so that the fit is made; its price with the outcome withheld is above that."""
    hedgerow("ledger", "budget", 1, "--dataset", "table", "--relation", "withheld")
    for command in (("cost",), ("synthesize", "--out", "release")):
        done = hedgerow(*command, table, *QUICK, *WIDE, "--epsilon", 20, "--seed", 1)
        assert done.code == 5
        assert "with an outcome withheld exceeds what remains for 'table' under 'withheld': 1.0" in done.text
    assert not Path("release").exists()
    events = [e["event"] for e in json.loads(hedgerow("ledger", "export").out)["entries"]]
    assert events == ["budget", "looked"]


def test_a_range_release_is_charged_its_achieved_price_and_says_so_nowhere_in_public(make, tmp_path):
    standard = hr.RangeTruncated(hr.Radius(0.4, 1.8))
    made = make(standard=standard, copies=2)
    summary = json.loads((made.folder / "confidential" / "summary.json").read_text())
    with Ledger.open(made.ledger) as ledger:
        prices = {balance.relation: balance.spent for balance in ledger.balance()}
        entry = next(entry for entry in ledger.entries() if entry.event == "reserved")
    assert prices == {RANGE: 40.0, "withheld": pytest.approx(2 * summary["withheld_epsilon"]["lipschitz"])}
    assert (entry.bound, entry.delta) == ("lipschitz", made.certificate.delta.total)
    for file in (made.folder / "public").iterdir():
        assert str(entry.withheld)[:8] not in file.read_text()
    assert verify_release(made.folder).problems == ()


def test_both_budgets_are_checked_at_once(ledger: Ledger) -> None:
    ledger.set_budget(5.0, relation="withheld", fingerprint=DATA)
    ledger.set_budget(3.0, relation=RANGE, fingerprint=DATA)
    reserve(ledger, 1.0, RANGE, withheld=3.5)
    with pytest.raises(BudgetError, match=r"with an outcome withheld exceeds .* 1\.5 of 5\.0") as caught:
        reserve(ledger, 1.0, RANGE, withheld=1.625)
    assert caught.value.remaining == 1.5
    assert "1.625" not in str(caught.value)
    with pytest.raises(BudgetError, match=r"ε 2\.5 exceeds what remains .*radius.*: 2\.0 of 3\.0"):
        reserve(ledger, 2.5, RANGE, withheld=0.1)
    with pytest.raises(BudgetError):  # nothing bounds it
        reserve(ledger, 1.0, RANGE, withheld=None)
    assert (spent(ledger), spent(ledger, RANGE)) == (3.5, 1.0)
    reserve(ledger, 1.5)
    with pytest.raises(BudgetError, match=r"0\.0 of 5\.0"):  # before any fit
        ledger.check(fingerprint=DATA, relation=RANGE, epsilon=0.1)
    reserve(ledger, 1.0, RANGE, withheld=0.0)


def test_a_void_release_gives_both_back(ledger: Ledger) -> None:
    entry = reserve(ledger, 1.0, RANGE, withheld=3.5)
    assert spent(ledger) == 3.5
    assert entry.release is not None
    ledger.settle(entry.release, "void", note="a test")
    assert [balance.spent for balance in ledger.balance()] == [0.0]


def test_rows_of_earlier_versions_are_read_as_before_and_counted(ledger: Ledger) -> None:
    reserve(ledger, 1.0, RANGE, bound=None)
    assert [(each.relation, each.spent) for each in ledger.balance()] == [(RANGE, 1.0)]
    reserve(ledger, 2.0)
    (balance,) = ledger.balance(relation="withheld")
    assert (balance.spent, balance.releases, balance.unpriced) == (2.0, 1, 1)


def test_bounds_are_told_apart_and_curves_compose(ledger: Ledger) -> None:
    curve = write_curve([2.0, 8.0, 32.0], {"withheld": [0.01, 0.04, np.inf]})
    reserve(ledger, 2.0, delta=0.005, curve=curve)
    reserve(ledger, 1.0, bound="renyi", delta=1e-5, curve=curve)
    reserve(ledger, 3.0, RANGE, bound="renyi", delta=1e-5, curve=curve, withheld=0.5)
    (balance,) = ledger.balance(relation="withheld")
    assert [(each.bound, each.epsilon, each.delta, each.releases) for each in balance.by_bound] == [
        ("lipschitz", 2.0, 0.005, 1),
        ("renyi", 1.5, 2e-5, 2),
    ]
    assert (balance.spent, balance.delta) == (3.5, 1e-5)
    assert balance.composed == pytest.approx(3 * 0.04 + np.log(7 / 8) - np.log(8e-5) / 7)
    assert next(each.composed for each in ledger.balance() if each.relation == RANGE) is None
    reserve(ledger, 1.0, bound="strict")  # has none
    assert ledger.balance(relation="withheld")[0].composed is None
    other = write_curve([2.0, 9.0, 32.0], {"withheld": [0.01, 0.04, 0.1]})
    assert compose([curve, other], "withheld", delta=1e-6) is None


def test_an_export_has_no_infinity(ledger: Ledger) -> None:
    reserve(ledger, None, curve=write_curve([2.0], {"withheld": [np.inf]}))
    (account,) = json.loads(json.dumps(ledger.export(), allow_nan=False))["accounts"]
    assert (account["spent"], account["composed"], account["by_bound"][0]["epsilon"]) == (None, None, None)


@pytest.mark.parametrize("standard", [hr.ADP(), hr.RangeAveraged(hr.Radius(0.4, 1.8))])
def test_a_composed_price_holds_and_costs_little_more_than_one_for_all_copies(standard):
    """Five releases of two copies against the price of ten copies of one fit, record by record."""
    settings = {"standard": standard, "epsilon": 20.0, "bound": "oscillation", "copies": 2, "seed": 1}
    weights = hr.CapWeights(1.0, risk="oscillation")
    synth = hr.Synthesizer("x ~ z", draws=200, weights=weights, **settings)
    synth.fit(hr.datasets.lognormal(n=300, seed=2))
    averaged = isinstance(standard, hr.RangeAveraged)
    charge = charge_of(synth, "averaged" if averaged else "withheld")
    pricing = synth._need().outcome.pricing
    for relation, priced in {"withheld": pricing.withheld, "averaged": pricing}.items():
        composed = compose([charge["curve"]] * 5, relation, delta=priced.delta)
        if relation == "averaged" and not averaged:
            assert composed is None
        else:
            assert 1 <= composed / RENYI.total(priced, 10) < 1.05
    assert set(json.loads(charge["curve"])) == {"orders", "withheld"} | ({"averaged"} if averaged else set())
    assert len(json.loads(charge["curve"])["orders"]) == len(COARSE_ORDERS)
    expected = 2 * OSCILLATION.epsilon(pricing.withheld) if averaged else None
    assert charge["withheld"] == expected


def test_what_is_not_bounded_is_charged_as_such():
    synth = hr.Synthesizer("x ~ z", standard=hr.RangeTruncated(hr.Radius(0.4, 1.8)), draws=100, seed=1)
    charge = charge_of(synth.fit(hr.datasets.lognormal(n=100, seed=2)), RANGE)
    assert (charge["bound"], charge["withheld"], charge["delta"]) == ("lipschitz", None, None)


@pytest.mark.parametrize(
    "change",
    ["withheld = 0.1", "withheld = NULL", "bound = NULL", "delta = 0.5", "curve = NULL", "who = 'x'"],
)
def test_what_a_row_says_of_its_charge_is_sealed(ledger: Ledger, tmp_path: Path, change: str) -> None:
    reserve(ledger, 1.0, RANGE, withheld=3.5, delta=1e-6, curve=write_curve([2.0], {"withheld": [0.1]}))
    assert ledger.verify() == ()
    raw = sqlite3.connect(tmp_path / "ledger.db")
    (trigger,) = raw.execute("SELECT sql FROM sqlite_master WHERE name = 'entries_update'").fetchone()
    raw.executescript(f"DROP TRIGGER entries_update; UPDATE entries SET {change}; {trigger}")
    raw.close()
    assert ledger.verify() == ("row 1 was changed.",)


def test_ledger_list_shows_bounds_apart(hedgerow, table):
    for number, bound in enumerate(("lipschitz", "renyi", "renyi")):
        made = (*QUICK, "--epsilon", 30, "--bound", bound, "--out", f"release-{number}")
        assert hedgerow("synthesize", table, *made).code == 0
    listed = hedgerow("ledger", "list")
    assert "do not add up to a claim" in listed.text
    assert "all, composed (renyi)" in listed.out
    (account,) = json.loads(hedgerow("ledger", "list", "--json").out)["accounts"]
    assert [(each["bound"], each["epsilon"]) for each in account["by_bound"]] == [
        ("lipschitz", 30.0),
        ("renyi", 60.0),
    ]
    assert 0 < account["composed"] < account["spent"] == 90.0
    assert json.loads(hedgerow("ledger", "export").out)["accounts"][0]["delta"] == 1e-6


def test_looks_are_counted_shown_and_certified(hedgerow, table):
    plan = ("--formula", "x ~ z", "--draws", 100)
    looks = {
        "compare": (),
        "cost": ("--no-target",),
        "calibrate": ("--at", 30),
        "audit": ("--riskiest", 1, "--sample", 0),
        "attack": ("--trials", 200),
        "contraction": (),
    }
    for command, more in looks.items():
        assert hedgerow(command, table, *plan, *more).code == 0
    made = hedgerow("synthesize", table, *QUICK, "--epsilon", 30, "--out", "release")
    assert made.code == 0
    certificate = json.loads(Path("release/public/certificate.json").read_text())
    assert certificate["looks"] == 6
    assert "looked at 6 times before this release" in certificate["not_covered"][-1]
    assert "| 6 |" in Path("release/public/certificate.md").read_text()
    assert hedgerow("verify", "release", "--ledger", "ledger.sqlite").code == 0
    counted = json.loads(hedgerow("ledger", "list", "--json").out)["looks"]
    assert [(row["look"], row["times"]) for row in counted] == [(name, 1) for name in looks]
    assert all(row["who"] and row["last"] for row in counted)
    shown = json.loads(hedgerow("ledger", "show", certificate["release"], "--json").out)
    assert len(shown["looks"]) == 6
    assert "contraction" in hedgerow("ledger", "show", certificate["release"]).out


def test_a_certificate_whose_looks_were_changed_contradicts_itself(make):
    made = make()
    assert made.certificate.looks == 0
    assert "No look" in made.certificate.not_covered[-1]
    place = made.folder / "public" / "certificate.json"
    place.write_text(place.read_text().replace('"looks": 0', '"looks": 3'))
    problems = " ".join(verify_release(made.folder).problems)
    assert "what it says of looks at the data beforehand is not what their number makes" in problems


def test_a_look_gives_data_no_name_and_no_account(ledger: Ledger) -> None:
    """A name mistyped when looking opens no second account, and is not held against the right one."""
    ledger.look("cost", fingerprint=DATA, dataset="payrol")
    ledger.look("cost", fingerprint="b" * 64, dataset="payroll")
    assert ledger.balance() == []
    entry = reserve(ledger, 2.0, dataset="payroll")
    assert (entry.dataset, spent(ledger)) == ("payroll", 2.0)
    assert len(ledger.looks(dataset="payroll", fingerprint=DATA)) == 2  # by the data, and by the name
    assert reserve(ledger, 1.0, fingerprint="b" * 64).dataset is None
    ledger.set_budget(5.0, relation="withheld", dataset="other")
    ledger.look("cost", fingerprint="c" * 64, dataset="new")
    with pytest.raises(LedgerError, match="cannot tell whether"):
        reserve(ledger, 1.0, fingerprint="c" * 64, dataset="new")
