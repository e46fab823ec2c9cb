"""No budget is passed by accident: by a spelling, a forgotten name, another version, another ledger."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hedgerow as hr
from hedgerow.errors import BudgetError, LedgerError, SettingError
from hedgerow.release.ledger import Entry, Ledger, ledger_path
from hedgerow.release.ledger.overlap import share_rows
from hedgerow.release.ledger.sketch import sketch
from hedgerow.tables import files as formats

KEY = b"k" * 32
ADP = "any record replaced"
Frame = pd.DataFrame
Random = np.random.Generator


# Tables of the kinds that offices hold, the outcome in front; each seed is another population sample.


def payroll(n: int, random: Random) -> Frame:
    return hr.datasets.payroll(n, seed=int(random.integers(1 << 30)))


def numbered(n: int, random: Random) -> Frame:
    """Rows and days are counted, as in any other such table."""
    days = pd.date_range("2020-01-01", periods=n).date
    return payroll(n, random).assign(id=np.arange(1, n + 1), line=[f"E{i:05}" for i in range(n)], day=days)


def survey(n: int, random: Random) -> Frame:
    """Rounded or coded throughout, with favourite values."""
    return pd.DataFrame(
        {
            "wage": np.round(np.exp(random.normal(7.8, 0.5, n)), -2),
            "age": random.integers(18, 80, n),
            "sex": random.integers(0, 2, n),
            "occupation": random.zipf(1.3, n) % 400,
            "region": random.integers(0, 16, n),
            "hours": np.where(random.random(n) < 0.4, 40, random.integers(5, 60, n)),
            "education": random.integers(0, 7, n),
        }
    )


def health(n: int, random: Random) -> Frame:
    birth = pd.Timestamp("1940-01-01") + pd.to_timedelta(random.integers(0, 22_000, n), unit="D")
    columns = {"visits": random.poisson(2, n), "bmi": np.round(random.normal(26, 4, n), 1), "birth": birth}
    return pd.DataFrame(columns | {"smoker": random.random(n) < 0.3, "sex": random.choice(["m", "f"], n)})


def panel(n: int, random: Random) -> Frame:
    """The same places and years in every table of the kind."""
    places, years = np.arange(n) // 10, 2010 + np.arange(n) % 10
    columns = {"rate": np.round(random.normal(5, 2, n), 1), "place": [f"Place {i}" for i in places]}
    return pd.DataFrame(columns | {"year": years, "people": np.rint(np.exp(random.normal(9, 1, n)))})


def register(n: int, random: Random) -> Frame:
    vat = [f"DE{number:09}" for number in random.integers(0, 10**9, n)]
    return payroll(n, random).assign(vat=vat, lon=np.round(random.uniform(6, 15, n), 5))


def simulated(n: int, random: Random) -> Frame:
    return hr.datasets.lognormal(n, seed=int(random.integers(1 << 30)))


def classes(n: int, random: Random) -> Frame:
    """Nothing that would single out a record."""
    return pd.DataFrame({name: random.integers(0, 4, n) for name in ("case", "a", "b", "c")})


KINDS = {make.__name__: make for make in (payroll, numbered, survey, health, panel, register, simulated)}


def change_a_digit(frame: Frame, random: Random) -> Frame:
    outcome = frame.iloc[:, 0].to_numpy(copy=True)
    outcome[len(outcome) // 2] += 1
    return frame.assign(**{frame.columns[0]: outcome})


VERSIONS: dict[str, Callable[[Frame, Frame, Random], Frame]] = {
    "the same": lambda frame, other, random: frame,
    "a digit": lambda frame, other, random: change_a_digit(frame, random),
    "a row": lambda frame, other, random: pd.concat([frame, other.head(1)], ignore_index=True),
    "renamed": lambda frame, other, random: frame.set_axis([f"c{i}" for i in range(frame.shape[1])], axis=1),
    "reordered": lambda frame, other, random: frame.sample(frac=1, random_state=1).reset_index(drop=True),
    "another column": lambda frame, other, random: frame.assign(extra=random.integers(0, 30, len(frame))),
    "half": lambda frame, other, random: frame.sample(frac=0.5, random_state=2).reset_index(drop=True),
    "a fifth": lambda frame, other, random: frame.sample(frac=0.2, random_state=2).reset_index(drop=True),
    "appended": lambda frame, other, random: pd.concat([frame, other], ignore_index=True),
    "half and others": lambda frame, other, random: pd.concat([frame[::2], other[::2]], ignore_index=True),
    "a column less": lambda frame, other, random: frame.drop(columns=frame.columns[-1]),
}


def of(frame: Frame) -> str:
    return sketch(frame, str(frame.columns[0]), key=KEY)


@pytest.mark.parametrize("kind", KINDS)
def test_versions_are_recognised(kind: str) -> None:
    """Every version above of 300 rows, for every kind of table."""
    random = np.random.default_rng(1)
    frame, other = (KINDS[kind](300, random) for _ in range(2))
    known = of(frame)
    assert len(known) < 10_000
    missed = [
        name for name, make in VERSIONS.items() if not share_rows(known, of(make(frame, other, random)))
    ]
    assert missed == []
    assert not share_rows(known, of(other))


@pytest.mark.slow
def test_how_often_versions_are_missed_and_other_data_is_asked_about() -> None:
    """7 kinds of tables, 60 to 4000 rows, 11 versions of each, and 3 unrelated tables of the same kind.

    Measured: of 616 versions 0 were missed, and of 168 unrelated tables 0 were taken for one. With eight
    seeds, 25 to 2000 rows and tables of classes as well, 0 of 5952 unrelated pairs. Missed there, from 300
    rows up and classes apart: versions that had lost what singles out their records (one column dropped, 2
    of 112; two dropped, 14 of 112; the outcome rescaled where no other column does, 16 of 112). The limits
    were chosen on these kinds of tables with other seeds: other kinds may do worse.
    """
    missed, alarms, asked, compared = [], [], 0, 0
    for kind, make in KINDS.items():
        for n in (60, 300, 1000, 4000):
            for seed in range(2):
                random = np.random.default_rng([n, seed])
                frame, other = make(n, random), make(n, random)
                known = of(frame)
                for name, version in VERSIONS.items():
                    asked += 1
                    if not share_rows(known, of(version(frame, other, random))):
                        missed.append((kind, n, name))
                for size in (n, n // 3, 3 * n):
                    compared += 1
                    if share_rows(known, of(make(size, random))):
                        alarms.append((kind, n, size))
    assert (asked, missed) == (616, [])
    assert (compared, alarms) == (168, [])


def test_other_formats_are_recognised(tmp_path: Path) -> None:
    frame = change_a_digit(health(200, np.random.default_rng(2)), np.random.default_rng(0))
    known = of(health(200, np.random.default_rng(2)))
    for kind in ("csv", "parquet", "arrow", "stata", "spss"):
        path = tmp_path / f"other{formats.Format(kind).suffix}"
        formats.write(formats.columns.to_arrow(frame), path, kind)
        read = formats.read(path).frame
        assert share_rows(known, sketch(read, read.column_names[0], key=KEY)), kind


def test_a_sketch_shows_nothing_without_the_key() -> None:
    frame = register(300, np.random.default_rng(1))
    one, again, other = (json.loads(sketch(frame, "payroll", key=key)) for key in (KEY, KEY, b"o" * 32))
    assert one == again
    assert not share_rows(json.dumps(one), json.dumps(other))
    shown = {key for feature in one["features"] for key in feature}
    assert shown == {"columns", "chance", "level", "counts", "items"}


def test_what_every_table_has_is_no_evidence() -> None:
    """Row numbers, consecutive days and classes are the same in unrelated tables."""
    random = np.random.default_rng(3)
    common = numbered(400, random)[["id", "line", "day"]]
    frames = [classes(400, random).join(common).assign(fixed=1) for _ in range(2)]
    assert not share_rows(*map(of, frames))
    assert json.loads(of(classes(400, random)))["features"] == []


def test_a_table_of_many_columns_or_few_rows_has_a_small_sketch() -> None:
    random = np.random.default_rng(4)
    wide = pd.DataFrame(random.normal(size=(30, 1000)))
    wide.columns = [f"c{i}" for i in range(1000)]
    known = of(wide)
    assert len(known) < 10_000
    assert share_rows(known, of(wide.drop(columns=["c5", "c7"])))
    for rows in (1, 2, 5):
        assert not share_rows(*[of(wide.iloc[:rows])] * 2)
    empty = pd.DataFrame({"x": [1.5, 2.5], "none": [None, None], "nan": [np.nan, np.nan]})
    assert json.loads(of(empty))["features"] == []


def test_every_type_of_column_is_sketched() -> None:
    count = pa.array(np.random.default_rng(7).choice(80_000, 100, replace=False))
    kinds = [pa.timestamp("us", "UTC"), pa.time64("ns"), pa.duration("s"), pa.uint64()]
    columns = {"x": count, **{str(kind): count.cast(pa.int64()).cast(kind) for kind in kinds}}
    texts = count.cast(pa.string())
    columns |= {"view": texts.cast(pa.string_view()), "class": texts.dictionary_encode()}
    columns |= {"null": pa.nulls(100), "yes": pc.less(count, 9), "price": count.cast(pa.decimal128(23, 2))}
    columns |= {"large": pc.add(count, 2**62), "small": count.cast(pa.float32())}
    columns |= {"day": count.cast(pa.int32()).cast(pa.date32()), "within a day": count.cast(pa.date64())}
    known = sketch(pa.table(columns), "x", key=KEY)
    for name in columns.keys() - {"null", "yes", "within a day"}:
        assert share_rows(known, sketch(pa.table({name: columns[name]}), name, key=KEY)), name


@pytest.mark.slow
def test_a_million_rows_of_twenty_columns_take_seconds() -> None:
    """3.5 s of processor time on two shared cores."""
    import time

    random = np.random.default_rng(5)
    frame = register(1_000_000, random).join(survey(1_000_000, random).add_prefix("s_"))
    frame = frame.join(pd.DataFrame(random.normal(size=(1_000_000, 7))).add_prefix("z"))
    assert frame.shape[1] == 20
    start = time.process_time()
    known = of(frame)
    assert time.process_time() - start < 15
    assert share_rows(known, of(frame.sample(frac=0.2, random_state=1)))


# What the ledger asks


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.db") as opened:
        yield opened


def spend(
    ledger: Ledger, frame: Frame, dataset: str | None = None, *, epsilon: float = 1.0, new: bool = False
) -> Entry:
    """As `make_release` does it: asks first, then records."""
    outcome = str(frame.columns[0])
    account = {"fingerprint": ledger.fingerprint(frame, [outcome]), "relation": ADP, "epsilon": epsilon}
    account |= {"dataset": dataset, "sketch": ledger.sketch(frame, outcome), "new_dataset": new}
    ledger.check(**account)  # type: ignore[arg-type]
    return ledger.reserve(**account, copies=1, plan="p")  # type: ignore[arg-type]


@pytest.fixture
def frames() -> tuple[Frame, Frame, Frame]:
    """Data, a corrected version of it, and other data."""
    random = np.random.default_rng(6)
    frame, other = payroll(300, random), payroll(300, random)
    return frame, change_a_digit(frame, random), other


@pytest.mark.parametrize(
    "same", ["PAYROLL été", "payroll e\u0301te\u0301", "Payroll\u00a0 ÉTÉ", "ｐayroll été"]
)
def test_names_are_matched_without_case_and_shown_as_first_written(
    ledger: Ledger, frames: tuple[Frame, ...], same: str
) -> None:
    ledger.set_budget(2.0, relation=ADP, dataset="Payroll été")
    assert spend(ledger, frames[0], same, epsilon=1.5).dataset == "Payroll été"
    with pytest.raises(BudgetError, match="'Payroll été'"):
        spend(ledger, frames[2], same)
    assert ledger.set_budget(3.0, relation=ADP, dataset=same).dataset == "Payroll été"
    (balance,) = ledger.balance(dataset=same)
    assert ledger.balance() == [balance]
    assert (balance.dataset, balance.budget, balance.spent) == ("Payroll été", 3.0, 1.5)


def test_spellings_that_were_two_accounts_become_one(ledger: Ledger) -> None:
    """As in a ledger written when names were compared letter by letter."""
    with ledger._transaction() as rows:
        for name, fingerprint in (("D", "a" * 64), ("d", "b" * 64)):
            ledger._add(rows, "budget", dataset=name, relation=ADP, epsilon=2.0)
            ledger._add(
                rows, "reserved", dataset=name, fingerprint=fingerprint, relation=ADP, epsilon=1.0,
                release=name,
            )  # fmt: skip
    (balance,) = ledger.balance()
    assert (balance.dataset, balance.spent, balance.remaining) == ("D", 2.0, 0.0)


@pytest.mark.parametrize("name", ["a\u200bb", "\u00a0", "ａ" * 64, "tab\x1b"])
def test_names_that_cannot_be_told_apart_are_refused(ledger: Ledger, name: str) -> None:
    with pytest.raises(SettingError, match="printable"):
        ledger.set_budget(1.0, relation=ADP, dataset=name)


def test_a_forgotten_name_is_asked_for(ledger: Ledger, frames: tuple[Frame, ...]) -> None:
    frame, corrected, other = frames
    ledger.set_budget(3.0, relation=ADP, dataset="payroll")
    # Nothing is recorded that it could be compared with.
    for name in (None, "payrol"):
        with pytest.raises(LedgerError, match=r"set for 'payroll'.*--dataset payroll.*--new-dataset"):
            spend(ledger, frame, name)
    assert [entry.event for entry in ledger.entries()] == ["budget"]
    spend(ledger, frame, "payroll")
    with pytest.raises(LedgerError, match=r"in common with .* 'payroll'.*--dataset payroll.*--new-dataset"):
        spend(ledger, corrected)
    with pytest.raises(LedgerError, match="in common"):
        spend(ledger, corrected, "payrol")
    spend(ledger, corrected, "payroll")
    # Known data needs no name, other data needs no answer.
    assert spend(ledger, corrected).dataset == "payroll"
    assert spend(ledger, other).dataset is None
    with pytest.raises(BudgetError):
        spend(ledger, frame)


def test_a_budget_set_after_a_release_without_a_name(ledger: Ledger, frames: tuple[Frame, ...]) -> None:
    frame = frames[0]
    spend(ledger, frame)
    ledger.set_budget(1.5, relation=ADP, dataset="payroll")
    with pytest.raises(LedgerError, match="budget is set for 'payroll'"):
        spend(ledger, frame)
    with pytest.raises(BudgetError):
        spend(ledger, frame, "payroll")
    spend(ledger, frame, new=True)
    spend(ledger, frame)  # it was answered


def test_an_answer_is_remembered(ledger: Ledger, frames: tuple[Frame, ...]) -> None:
    frame, corrected, _ = frames
    spend(ledger, frame, "payroll")
    assert spend(ledger, corrected, "next year", new=True).note == "said to be a new dataset"
    spend(ledger, corrected)
    later = change_a_digit(corrected, np.random.default_rng(0)).drop(columns="region")
    assert spend(ledger, later, "Next Year").dataset == "next year"
    spent = {balance.dataset: balance.spent for balance in ledger.balance()}
    assert spent == {"payroll": 1.0, "next year": 3.0}


def test_a_name_that_has_other_data_is_doubted(ledger: Ledger, frames: tuple[Frame, ...]) -> None:
    frame, corrected, other = frames
    spend(ledger, frame, "payroll")
    spend(ledger, other, "survey")
    with pytest.raises(LedgerError, match="'payroll'"):
        spend(ledger, corrected, "survey")
    assert spend(ledger, corrected, "payroll").dataset == "payroll"


def test_a_name_takes_over_unnamed_versions(ledger: Ledger, frames: tuple[Frame, ...]) -> None:
    frame, corrected, _ = frames
    release = spend(ledger, frame).release
    with pytest.raises(LedgerError, match=f"without a name .release {release}.*takes over"):
        spend(ledger, corrected)
    spend(ledger, corrected, "payroll")
    assert [entry.event for entry in ledger.entries()] == ["reserved", "named", "reserved"]
    assert ledger.verify() == ()
    (balance,) = ledger.balance()
    assert (balance.dataset, balance.spent) == ("payroll", 2.0)
    ledger.set_budget(2.5, relation=ADP, dataset="payroll")
    with pytest.raises(BudgetError):
        spend(ledger, frame)


def test_the_early_check_counts_what_would_be_taken_over(ledger: Ledger, frames: tuple[Frame, ...]) -> None:
    frame, corrected, _ = frames
    spend(ledger, frame, epsilon=1.0)
    ledger.set_budget(1.5, relation=ADP, dataset="payroll")
    with pytest.raises(BudgetError) as caught:
        spend(ledger, corrected, "payroll")
    assert caught.value.remaining == 0.5
    assert [entry.event for entry in ledger.entries()] == ["reserved", "budget"]


def test_data_that_nothing_singles_out_is_asked_about_under_any_named_budget(ledger: Ledger) -> None:
    frame, other = (classes(200, np.random.default_rng(seed)) for seed in (1, 2))
    ledger.set_budget(5.0, relation=ADP, dataset="cases")
    spend(ledger, frame, "cases")
    with pytest.raises(LedgerError, match="cannot tell"):
        spend(ledger, other)
    spend(ledger, other, new=True)


def test_a_sketch_is_kept_once_and_sealed(ledger: Ledger, frames: tuple[Frame, ...]) -> None:
    for _ in range(3):
        spend(ledger, frames[0])
    assert [entry.sketch is not None for entry in ledger.entries()] == [True, False, False]
    with ledger._transaction() as rows:
        entry = rows[0]
    assert entry.sketch is not None
    assert ledger._hash(entry) == entry.hash
    for changed in (None, entry.sketch.replace("A", "B")):
        assert ledger._hash(Entry(**(vars(entry) | {"sketch": changed}))) != entry.hash


def test_names_can_be_required(ledger: Ledger, frames: tuple[Frame, ...]) -> None:
    frame, corrected, _ = frames
    spend(ledger, frame)
    ledger.require_dataset(note="A. Smith: every file is in the register")
    for data, new in ((frame, False), (corrected, True)):
        with pytest.raises(LedgerError, match="no data without a name"):
            spend(ledger, data, new=new)
    spend(ledger, frame, "payroll")
    assert spend(ledger, frame).dataset == "payroll"  # it has a name
    ledger.require_dataset(False)
    spend(ledger, corrected, new=True)
    assert [e.event for e in ledger.entries() if e.event.startswith("names")] == [
        "names required",
        "names optional",
    ]
    assert ledger.verify() == ()


# By the command


GOOD = ("--formula", "x ~ z", "--epsilon", "40", "--draws", "200")


def test_the_command_asks_and_takes_an_answer(hedgerow, table: Path, tmp_path: Path) -> None:
    assert hedgerow("ledger", "budget", 50, "--dataset", "Table", "--relation", "withheld").code == 0
    asked = hedgerow("synthesize", table, *GOOD, "--out", "first")
    assert (asked.code, (tmp_path / "first").exists()) == (3, False)
    assert "pass --dataset Table;" in asked.text
    assert hedgerow("synthesize", table, *GOOD, "--dataset", "TABLE", "--out", "first").code == 0
    frame = pd.read_csv(table)
    frame.loc[3, "x"] += 1
    frame.to_csv("corrected.csv", index=False)
    for command in (("cost",), ("synthesize", "--out", "second")):
        asked = hedgerow(*command, "corrected.csv", *GOOD)
        assert asked.code == 3
        assert "in common with what is recorded: 'Table'" in asked.text
    assert hedgerow("synthesize", "corrected.csv", *GOOD, "--dataset", "table", "--out", "second").code == 5
    answered = ("corrected.csv", *GOOD, "--new-dataset")
    assert hedgerow("cost", *answered).code == 0
    assert hedgerow("synthesize", *answered, "--out", "second").code == 0
    assert "dataset" not in (tmp_path / "second" / "public" / "plan.yaml").read_text()
    assert hedgerow("ledger", "verify").code == 0


def test_the_command_requires_names(hedgerow, table: Path) -> None:
    assert hedgerow("ledger", "require-dataset", "--note", "A. Smith").code == 0
    assert "Data without a name is refused" in hedgerow("ledger", "list").text
    refused = hedgerow("synthesize", table, *GOOD, "--out", "release")
    assert refused.code == 3
    assert "--dataset NAME" in refused.text
    assert hedgerow("ledger", "require-dataset", "--off").code == 0
    assert hedgerow("synthesize", table, *GOOD, "--out", "release").code == 0
    release = json.loads(hedgerow("ledger", "list", "--json").out)["releases"][0]["release"]
    assert len(hedgerow("ledger", "show", release).text) < 2000  # a sketch is not for reading


def test_nothing_leads_away_from_the_environments_ledger(
    hedgerow, table: Path, monkeypatch, tmp_path
) -> None:
    Path("plan.yaml").write_text(
        "version: 1\ndata: table.csv\nformula: x ~ z\nepsilon: 40\ndraws: 200\nledger: own.sqlite\n"
    )
    budget = ("ledger", "budget", 5, "--dataset", "t", "--relation", "withheld", "--ledger", "own.sqlite")
    for command in (
        ("synthesize", "--plan", "plan.yaml", "--out", "release"),
        ("synthesize", table, *GOOD, "--ledger", "own.sqlite", "--out", "release"),
        ("cost", "--plan", "plan.yaml"),
        budget,
    ):
        refused = hedgerow(*command)
        assert refused.code == 3
        assert "HEDGEROW_LEDGER_OVERRIDE=allow" in refused.text
    assert not Path("own.sqlite").exists()
    # The same file by another way is no other ledger.
    (tmp_path / "way").symlink_to(tmp_path)
    assert ledger_path("way/ledger.sqlite") == Path("way/ledger.sqlite")
    monkeypatch.setenv("HEDGEROW_LEDGER_OVERRIDE", "allow")
    assert hedgerow(*budget).code == 0
    monkeypatch.delenv("HEDGEROW_LEDGER_OVERRIDE")
    assert hedgerow("ledger", "list", "--ledger", "own.sqlite").code == 0  # looking is free
    monkeypatch.delenv("HEDGEROW_LEDGER")
    assert ledger_path("own.sqlite") == Path("own.sqlite")
