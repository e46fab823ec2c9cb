"""The owner's report: what it says follows from the fit, whatever its size, and hostile text stays text."""

import json
import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import FileError, SettingError
from hedgerow.evidence.utility import ecdf_distance
from hedgerow.numerics.rounding import format_figure
from hedgerow.privacy.claims import HARDLY
from hedgerow.report.figures import collect
from hedgerow.report.owner import _SECTIONS, write_page
from hedgerow.report.parts.structure import expect_by_chance
from hedgerow.report.summaries import (
    compare_amounts,
    compare_classes,
    relate_pair,
    relate_weights,
    summarize,
)

PMSE = {"by": "main", "copy": "pooled", "pMSE": 0.01, "expected": 0.005, "S_pMSE": 2.0, "AUC": 0.52}
TERM = {"analysis": "log(x) ~ z", "term": "z", "original": 1.0, "original_low": 0.5, "original_high": 1.5}
TERM |= {"copy": "pooled", "synthetic": 1.5, "synthetic_low": 1.0, "synthetic_high": 2.0, "overlap": 0.5}
LOST = {"rows": 120, "left_out": ["Too few rows for pairs."], "propensity": [PMSE], "analyses": [TERM]}
GROUP = {"column": "x", "by": "sector", "group": "<i>", "copy": "pooled", "records": 40, "original": 0.0}
LOST |= {"groups": [GROUP | {"statistic": "ecdf_max", "synthetic": 0.25, "error": 0.25}]}
LOST |= {
    "two_way": [
        {"first": "x", "second": "z", "copy": copy, "TVD": 0.1} for copy in ("pooled", "lowest", "highest")
    ]
}
HOSTILE = "<img src=x onerror=alert(1)>\u202e" + "y" * 10_000


def fit(formula, table, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.HedgerowWarning)
        return hr.Synthesizer(formula, seed=1, **{"draws": 200, **settings}).fit(table)


def firms(n=120):
    frame = hr.datasets.lognormal(n=n, seed=3)
    return frame.assign(sector=np.where(np.arange(n) % 3, "trade", "<b>farm</b>"))


@pytest.fixture(scope="module")
def synth():
    return fit("x ~ z", firms(), standard=hr.RangeTruncated(hr.Radius(0.4, 1.8)), epsilon=12.0, copies=2)


@pytest.fixture(scope="module")
def document(synth):
    return json.loads(json.dumps(collect(synth)))


def shown(page):
    """The text of a page, without its tags."""
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", re.sub("<style>.*?</style>", "", page, flags=re.S)))


def elements(page):
    """The tags of a page, each with the names of its attributes."""
    found, reader = set(), HTMLParser()
    reader.handle_starttag = lambda tag, attributes: found.update(
        (tag, name) for name, _ in [*attributes, ("", "")]
    )
    reader.handle_startendtag = reader.handle_starttag
    reader.feed(page)
    return found


def test_every_section_is_there_once_and_in_order(document):
    page = write_page(document)

    assert re.findall(r'<h2 id="(\w+)"', page) == list(_SECTIONS)
    assert page.count("<h1>") == 1
    assert page.count("<figure>") == page.count("<summary>Numbers</summary>") >= 8
    assert "nan" not in re.findall(r'd="[^"]*"', page)


def test_the_page_says_what_the_fit_says(synth, document):
    text = shown(write_page(document))

    records = synth.records_.sort_values("price", ascending=False, kind="stable")
    assert document["price"]["total"] == pytest.approx(synth.total_epsilon_, rel=1e-5)
    assert [row["record"] for row in document["records"]["riskiest"]] == records["record"].head(20).tolist()
    assert document["records"]["price"]["highest"][0] == pytest.approx(synth.epsilon_, rel=1e-5)
    withheld = document["price"]["by_bound"]["oscillation"]["withheld"]
    assert withheld == pytest.approx(synth.withheld_epsilon_["oscillation"], rel=1e-5)
    assert synth.sample().guarantee.claim() in shown(write_page(document)).replace("&#x27;", "'")
    assert "12 ε over all copies" in text
    assert "Not run." in text


def test_an_audit_and_an_attack_are_told_when_they_were_run(document):
    audit = {"kind": "exact", "epsilon": 6.0, "largest_fixed": 1.234, "largest_recomputed": 1.5}
    audit |= {"of_claim": False, "largest_reverse": float("inf"), "records": 120, "recomputed": 30}
    audit |= {"breaches": [3, 4], "reverse_breaches": [7]}
    attack = {
        "of_claim": False,
        "lower": 0.7,
        "estimate": 0.9,
        "confidence": 0.95,
        "claimed": 6.0,
        "trials": 500,
        "breach": False,
    }

    text = shown(write_page(document, audit=audit, attack=attack, utility=LOST))
    of_claim = shown(
        write_page(document, audit=audit | {"of_claim": True}, attack=attack | {"of_claim": True})
    )

    # Under a range nothing is claimed of an outcome withheld, and no page may call that price a claim.
    price = "6, the price of one copy with the outcome withheld, which is not claimed"
    for words in (
        "1.234",
        f"The audit found 3 records above {price}",
        "∞",
        "at least 0.7 ",
        "shows no more than",
    ):
        assert words in text
    assert "Not run." not in text
    assert "The audit found 3 records above 6, the stated ε of one copy" in of_claim
    assert "does not refute the claim" in of_claim


@pytest.mark.parametrize(
    ("bound", "looked", "said"),
    [
        ("lipschitz", True, "how far the log densities"),
        ("renyi", False, "the ε of all copies, at the stated δ,"),
    ],
)
def test_a_loss_is_what_the_bound_prices(document, bound, looked, said):
    audit = {
        "kind": "exact",
        "epsilon": 6.0,
        "largest_fixed": 1.2,
        "largest_recomputed": None,
        "records": 120,
    }
    audit |= {"of_claim": True, "recomputed": 0, "breaches": [], "reverse_breaches": []}
    audit |= {"largest_reverse": 1.1 if looked else None}
    text = shown(write_page(document | {"claim": document["claim"] | {"bound": bound}}, audit=audit))
    assert f"A loss is {said}" in text
    assert ("at draws without" in text) == ("At draws without" in text) == looked


@pytest.mark.parametrize(
    ("sampler", "independent", "said", "unsaid"),
    [
        ("exact", True, "no chain to doubt", "R-hat should"),
        ("exact, independent", True, "no proposal fell is missed", "no chain to doubt"),
        ("exact, numpyro", False, "R-hat should be below 1.01", "no chain to doubt"),
        ("normal approximation", True, "how far it is off is in no figure", "no chain to doubt"),
    ],
)
def test_draws_are_doubted_by_how_they_were_made(document, sampler, independent, said, unsaid):
    health = document["health"] | {"sampler": sampler, "independent": independent}
    text = shown(write_page(document | {"health": health}))
    assert said in text
    assert unsaid not in text


def test_odds_without_an_end_are_told_as_hardly_a_limit(document):
    """And where the paragraph of the claim says so."""
    for after, plain, told in (("97.1 %", "", False), ("99.9 %", HARDLY, True), ("100 %", "", True)):
        claim = document["claim"] | {"odds": [{"before": "10 %", "after": after}], "plain": plain}
        tile = shown(write_page(document | {"claim": claim})).split("Is it")[0]
        assert ("That is hardly a limit." in tile) == told


def test_at_the_top_the_price_of_a_range_does_not_stand_alone(synth, document):
    """With the outcome withheld it is another, which no ε claims."""
    top = shown(write_page(document)).split("Is it labelled?")[0]
    total, withheld = synth.total_epsilon_, 2 * synth.withheld_epsilon_["lipschitz"]
    assert document["price"]["withheld"] == pytest.approx(withheld, rel=1e-5)
    assert withheld > total
    told = f"costs {format_figure(total)} (with the outcome withheld {format_figure(withheld)}, which is not"
    assert told in top
    assert "Audit: not run. Attack: not run" in top


def test_what_a_standard_compares_with_is_drawn_once():
    """Under ADP the outcome is withheld: two bars and two violins said the same."""
    found = json.loads(json.dumps(collect(fit("x ~ z", firms(), epsilon=12.0))))
    page = write_page(found)
    assert found["price"]["withheld"] is None
    assert "ADP compares with the table in which a record&#x27;s value is withheld" in page
    violin = re.search(r"<title>Price by record</title>.*?</svg>", page, re.S)[0]
    assert violin.count('class="area') == 1
    assert "α*</th>" not in page


def test_a_unit_is_what_the_price_is_for():
    table = firms(60).assign(firm=np.repeat(np.arange(20), 3))
    found = collect(fit("x ~ z", table[["x", "z", "firm"]], epsilon=60.0, unit="firm"))
    top = shown(write_page(found)).split("Is it labelled?")[0]
    assert "How far one &#x27;firm&#x27; with all its records can move the copies" in top
    assert "one record can" not in top


def test_what_speaks_against_it_stands_at_the_top(document):
    """Copies 0.2 from the original, where the model without weights is 0.04 away, went without a word."""
    gauge = document["gauge"] | {"ecdf": 0.21, "plain_ecdf": 0.043}
    top = shown(write_page(document | {"gauge": gauge})).split("Is it labelled?")[0]
    assert "Weights take the copies away from the data: the distance is 0.21 in trial copies" in top
    top = shown(write_page(document)).split("Is it labelled?")[0]
    assert "Weights take" not in top
    moving = document | {"draws": document["draws"] | {"settled": False}}
    assert "still grows with the number of draws" in shown(write_page(moving)).split("Is it labelled?")[0]


def test_a_distance_is_told_beside_that_of_chance(document):
    pairs = np.random.default_rng(1).random((200, 2, 120))
    apart = np.mean([ecdf_distance(np.sort(a), np.sort(b)).maximum for a, b in pairs])
    (column,) = document["columns"]
    assert expect_by_chance(column) == pytest.approx(apart, rel=0.05)
    assert f"differ by about {expect_by_chance(column):.2g}" in shown(write_page(document))


def test_rules_are_held_against_the_original():
    """Copies that break what the original breaks as often show no fault of the model."""
    table = firms().assign(y=lambda frame: 2 * frame["x"])
    rules = hr.Rules(derived={"y": "2 * x"}, checks=["x <= 3", "x > 0"])
    found = collect(fit({"x": hr.Column("x ~ z")}, table, epsilon=60.0, rules=rules))
    often, never = found["broken"]
    assert often["original"] == pytest.approx((table["x"] > 3).mean())
    assert often["copies"][1] > 0
    assert (never["original"], never["copies"]) == (0.0, [0.0, 0.0, 0.0])
    first, derived = found["columns"]
    assert (first["column"], derived["column"]) == ("x", "y")
    assert derived["ecdf_max"] == pytest.approx(first["ecdf_max"])
    assert "Checks of the plan: per cent of rows" in shown(write_page(found | {"release": tell()}))


def test_what_stands_at_the_top_is_not_noted_again(document):
    text = shown(write_page(document | {"warnings": ["Twice."], "release": tell(notes=["Twice.", "Once."])}))
    assert (text.count("Twice."), text.count("Once.")) == (1, 1)


def test_what_somebody_wrote_keeps_its_lines_and_can_be_read(document):
    assumed = "what the plan declares of " + ", ".join(f"'column {k}'" for k in range(30))
    told = tell(
        notes=["n" * 20_000],
        about=[["purpose", "one line\nanother"]],
        assumed=[{"what": assumed, "because": "x"}],
    )
    page = write_page(document | {"release": told})
    assert "one line<br>another" in page
    assert assumed in shown(page).replace("&#x27;", "'")
    assert "n" * 1100 not in page
    assert "(20,000 characters)" in page


def tell(**words):
    """What a report says of a release."""
    release = dict.fromkeys(("id", "date", "certificate", "unit"), "") | {"software": {}}
    release |= {key: [] for key in ("files", "about", "looks", "reading", "assumed", "caveats")}
    return release | {"notes": []} | words


def test_the_chosen_price_is_seen_to_move_however_small(document):
    seen = {"draws": [100, 1000], "lipschitz": [10.0, 10.1], "oscillation": [0.01, 0.015]}
    page = write_page(document | {"draws": {"seen": seen}})
    chart = re.search(r"<title>Price by draws</title>.*?</svg>", page, re.S)[0]
    heights = [
        re.findall(r"[ML][\d.]+,([\d.]+)", each) for each in re.findall(r'd="(M[^"]*)" class="line', chart)
    ]
    assert any(abs(float(each[0]) - float(each[-1])) > 5 for each in heights)


def test_a_pair_is_drawn_one_column_along_the_other(synth, document):
    (pair,) = [pair for pair in document["pairs"] if pair["second"] == "z"]
    table, (copy, other) = firms(), synth.sample().tables
    groups = np.searchsorted(np.unique(np.quantile(table["z"], np.arange(1, 10) / 10)), table["z"])

    assert len(pair["along"]) == 10
    medians = table["x"].groupby(groups).median()
    assert [row["original_middle"] for row in pair["along"]] == pytest.approx(medians, rel=1e-5)
    together = pd.concat([copy["x"], other["x"]]).groupby(np.tile(groups, 2)).quantile(0.9)
    assert [row["copies_high"] for row in pair["along"]] == pytest.approx(together, rel=1e-5)
    page = write_page(document)
    assert "<title>x along z</title>" in page
    assert (
        relate_pair(np.arange(90.0), np.repeat([0.0, 1.0, 2.0], 30), [(np.arange(90.0), np.arange(90.0))])
        is None
    )


def test_what_was_lost_of_whole_tables_is_drawn(document):
    page = write_page(document, utility=LOST)
    text = shown(page)

    assert "Analysis log(x) ~ z" in text
    assert "each column AUC 0.52" in text  # its name and a note
    numbers = re.search(r'aria-label="Numbers of: Analysis.*?</table>', page, re.S)[0]
    assert '<td class="n">1.96</td>' in numbers  # an estimate one interval's half above the original's
    assert "Too few rows for pairs." in text
    assert "sector &lt;i&gt; 40 distance of distributions 0.25" in text  # of the data to itself there is none


def test_by_public_group_medians_are_those_of_the_table(document, synth):
    (group,) = [group for group in document["columns"][0]["groups"] if group["by"] == "sector"]

    medians = firms().groupby("sector")["x"].median()
    told = {row["level"]: row["original"] for row in group["rows"]}
    assert told == {level: pytest.approx(value, rel=1e-5) for level, value in medians.items()}
    assert "&lt;b&gt;farm" in write_page(document)


def test_strict_says_why_there_is_no_price_by_record():
    strict = fit("x ~ z", firms(), standard=hr.Strict(limits=(0.01, 1e4), reason="r"), epsilon=8.0)

    found = collect(strict)
    text = shown(write_page(found))

    assert "records" not in found
    assert "Why there is no price by record" in text
    assert "every record has the same price" in text


@pytest.mark.slow
def test_a_chain_has_each_column_its_price_and_its_pairs():
    table = firms().assign(y=lambda frame: frame["x"] * np.exp(frame["z"] / 3))
    columns = {"x": hr.Column("x ~ z"), "y": hr.Column("y ~ log(x) + z")}

    found = collect(fit(columns, table, epsilon=60.0))

    assert [column["column"] for column in found["columns"]] == ["x", "y"]
    assert {row["column"] for row in found["price"]["by_column"]} == {"x", "y"}
    (pair,) = [pair for pair in found["pairs"] if (pair["first"], pair["second"]) == ("x", "y")]
    assert pair["original"] == pytest.approx(table["x"].corr(table["y"], method="spearman"), rel=1e-5)
    assert "x with y" in shown(write_page(found))


def test_a_test_that_would_be_refused_is_not_asked_for():
    table = firms(60).assign(firm=np.repeat(np.arange(20), 3))
    found = collect(fit("x ~ z", table[["x", "z", "firm"]], epsilon=60.0, unit="firm"))

    text = shown(write_page(found))

    assert text.count("leaves out one row, and the price is that of all rows of one &#x27;firm&#x27;") == 2
    assert "synth.audit()" not in text


def test_one_column_beside_text_alone_has_no_pairs():
    only = fit("x ~ sector", firms()[["x", "sector"]].replace("<b>farm</b>", "farm"), epsilon=60.0)

    assert collect(only)["pairs"] == []


def test_hostile_names_and_values_are_text():
    table = pd.DataFrame(
        {HOSTILE: np.arange(60) % 4 / 3.0, "x": firms(60)["x"], "g": ["</td><script>", "b"] * 30}
    )
    synth = fit("x ~ 1", table, epsilon=60.0)

    page = write_page(collect(synth))

    assert not re.search("<img|<script", page)
    assert "\u202e" not in page
    assert "\\u202e" in page or "characters)" in page
    assert "&lt;/td&gt;&lt;script&gt;" in page
    assert len(page) < 200_000


def test_a_protected_column_with_an_endless_name_is_cut_wherever_it_stands():
    table = pd.DataFrame({"y" * 9_999: firms(60)["x"], "z": firms(60)["z"], "g": ["a", "b"] * 30})

    page = write_page(collect(fit(f"`{'y' * 9_999}` ~ z", table, epsilon=60.0)))

    assert page.count("y" * 400) == 9_999 // 400  # in full once, among the long names
    assert len(page) < 120_000


@pytest.mark.parametrize("hostile", ["<img src=x onerror=alert(1)>", "\"'><script>", "\u202e\u200f\x1b\x00"])
def test_whatever_text_a_document_holds_is_text_on_its_page(document, hostile):
    def spoil(value):
        if isinstance(value, dict):
            return {key: spoil(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [spoil(inner) for inner in value]
        return hostile if isinstance(value, str) else value

    release = {
        "id": "",
        "date": "",
        "certificate": "",
        "files": [""],
        "about": [["", ""]],
        "unit": "",
        "notes": [""],
    }
    release |= {
        "assumed": [{"what": "", "because": ""}],
        "caveats": [""],
        "software": {"numpy": ""},
        "reading": [""],
    }
    release |= {"looks": [{"time": "", "look": "", "who": ""}]}
    document = document | {"broken": [{"check": "", "original": 0.1, "copies": [0.1, 0.2, 0.3]}]}
    compared = {"standards": [{"standard": "", "total": 1.0, "withheld_total": None, "ecdf_max": 0.1}]}
    plain = write_page(document | {"release": release}, utility=LOST, compare=compared)

    lost = spoil(LOST) | {"propensity": [PMSE]}
    page = write_page(spoil(document | {"release": release}), utility=lost, compare=spoil(compared))

    assert elements(page) <= elements(plain)
    assert not re.search("[\x00-\x08\x1b\u200f\u202e]", page)


def test_a_million_records_stay_below_a_megabyte_and_show_the_riskiest(document):
    n, generator = 1_000_000, np.random.default_rng(5)
    price = generator.gamma(2.0, 0.3, n)
    price[123_456] = 99.0  # one record decides
    risk, alpha = price * 2, np.clip(1 - price / 5, 0.001, 1)
    risk[654_321] = 777.0  # another is the riskiest, and cheap
    price[654_321] = 0.01
    dearest = np.argsort(-price)[:20]
    large = json.loads(json.dumps(document))
    large["records"] |= {
        "price": summarize(price),
        "withheld": summarize(2 * price),
        "alpha": summarize(alpha),
    }
    large["records"]["alpha_by_risk"] = relate_weights(risk, alpha, dearest)
    column = {"records": n, "axis": "", **compare_amounts(price[:20_000], [price[20_000:40_000]])}
    large["columns"] = [{"column": f"c{k}", **column} for k in range(40)]

    text, page = json.dumps(large), write_page(large)

    assert len(text.encode()) < 1_000_000
    assert len(page.encode()) < 1_000_000
    assert large["records"]["price"]["highest"][0] == 99.0
    violin = re.search(r"<title>Price by record</title>.*?</svg>", page, re.S)[0]
    assert violin.count('class="dot t2"') == 24
    related = large["records"]["alpha_by_risk"]
    assert related["risk"][:2] == [777.0, 198.0]
    assert related["dearest"]["risk"][0] == 198.0
    assert 777.0 not in related["dearest"]["risk"]
    dots = re.search(r"<title>α against risk</title>.*?</svg>", page, re.S)[0]
    assert (dots.count('class="dot t3"'), dots.count('class="dot t2"')) == (21, 21)  # one each in the legend


def test_summaries_of_odd_columns():
    assert summarize(np.array([np.inf, np.inf]))["infinite"] == 2
    same = summarize(np.full(10, 2.5))
    assert same["median"] == 2.5
    assert same["highest"][0] == 2.5
    few = compare_amounts(np.array([0.0, 1.0, 1.0, 2.0]), [np.array([0.0, 2.0, 2.0, 2.0])])
    assert few["few"]
    assert few["ecdf_max"][1] == pytest.approx(0.5)
    classes = compare_classes(np.array([0.0, 1.0, 1.0]), [np.array([0.0, 0.0, 1.0])], ["a", "b"])
    assert [row["copies"][1] for row in classes["levels"]] == pytest.approx([2 / 3, 1 / 3], rel=1e-5)


def test_a_report_is_written_once_for_its_owner(synth, tmp_path):
    place = hr.write_report(synth, tmp_path / "report.html")

    assert place.stat().st_mode & 0o777 == 0o600
    assert "Report on a fit of x" in place.read_text()
    with pytest.raises(FileError, match="exists already"):
        hr.write_report(synth, place)
    (tmp_path / "release" / "public").mkdir(parents=True)
    (tmp_path / "release" / "public" / "certificate.json").touch()
    with pytest.raises(FileError, match="inside a release"):
        hr.write_report(synth, tmp_path / "release" / "public" / "report.html")
    with pytest.raises(SettingError, match="fitted synthesizer"):
        hr.write_report(synth.sample(), tmp_path / "other.html")


def test_the_odds_say_no_more_than_the_bound_does(document):
    local = shown(write_page(document))
    strict = shown(write_page(document | {"claim": document["claim"] | {"bound": "statistics"}}))

    assert "No limit on what can be guessed about an outcome" in local
    assert "for the table at hand and under the conditions below" in local
    assert "to some statement about one outcome" in strict
