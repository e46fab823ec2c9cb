"""No sentence claims more than the maths allows: permitted and forbidden words for every combination."""

import ast
import re
from pathlib import Path

import pytest

import hedgerow as hr
from hedgerow.privacy.bounds import BOUNDS, LIPSCHITZ
from hedgerow.privacy.claims.caveats import CAVEATS, CLAIMS, find_id, write_caveat
from hedgerow_studies.pages import claims

DOCS = Path(__file__).parents[2] / "docs"

# Whether draws are independent, that is, whether the model has a closed form. Three bounds need one, and
# the censored likelihood is for models that have none.
KINDS = {
    "lipschitz": (True, False),
    "oscillation": (True, False),
    "exact": (True,),
    "renyi": (True,),
    "strict": (True,),
    "censored": (False,),
    "statistics": (False,),
    "gaussian": (False,),
}
COMBINATIONS = [
    (label, bound, independent)
    for label in claims.STANDARDS
    for bound in claims.bounds_of(label)
    for independent in KINDS[bound.name]
]


def words(label, bound, independent):
    example = claims.guarantee(claims.STANDARDS[label], bound, independent=independent)
    return example.claim(), " ".join(example.caveats())


@pytest.mark.parametrize(("label", "bound", "independent"), COMBINATIONS)
def test_permitted_words(label, bound, independent):
    claim, caveats = words(label, bound, independent)
    everything = f"{claim} {caveats}".lower()
    bound = bound.name
    strict, censored = bound == "strict", bound == "censored"
    pure, noisy = bound == "statistics", bound in ("statistics", "gaussian")
    supremum, renyi = strict or censored or noisy, bound == "renyi"
    assert ("differentially private" in claim) == supremum
    assert ("(ε, δ)-differentially private" in claim) == (bound == "gaussian")
    assert ("pure differential privacy" in claim) == (strict or pure)
    assert ("for every table with these predictors" in claim) == noisy
    assert ("on no model, weights or draws" in claim) == noisy
    assert ("Blowfish" in claim) == ("Outcomes of different sets" in caveats) == ("range" in label and noisy)
    assert ("Each copy is ε-differentially private" in claim) == strict
    assert ("an exact draw from the posterior with censored likelihood would be" in claim) == censored
    assert claim.startswith("Approximate, up to sampler error") == censored
    assert ("how far its draws are from it is not known" in claim) == censored
    assert ("do not reveal a region" in caveats) == censored
    assert ("pure" in everything) == (strict or pure)
    assert not re.search(r"\bstrict", everything)  # the word is in the name of its own standard alone
    assert ("not differential privacy" in caveats) == (not supremum)
    assert "asymptotic" not in everything
    assert ("confidence" in claim) == (not supremum and not renyi)
    assert ("given either of the two tables" in claim) == renyi
    assert ("over all parameters and rests on no draws" in claim) == renyi
    assert ("the table is the one at hand, and its weights and their scale are held fixed" in claim) == renyi
    assert ("replaced by any other value" in claim) == (supremum and "range" not in label)
    assert ("Replacing an outcome" in caveats) == (not supremum)
    assert ("both restricted to that set" in claim) == (bound in ("lipschitz", "oscillation"))
    assert ("the second posterior lies in the set is not covered" in claim) == (
        bound in ("lipschitz", "oscillation")
    )
    assert ("reverse direction is not covered" in claim) == (bound == "exact")
    assert ("can lose more than the draws show" in caveats) == (bound in ("lipschitz", "oscillation"))
    assert ("held fixed" in caveats) == (not supremum)
    assert ("Recomputed without one record" in caveats) == (
        bound in ("oscillation", "exact", "renyi") and label != "Unweighted"
    )
    assert ("approximate" in everything) == (not independent and not noisy)
    assert ("repeated until it met the target" in caveats) == (not supremum and not renyi)
    assert ("does not bound what can be learned" in caveats) == (label == "RangeAveraged")
    assert ("whoever knew a record's range" in caveats) == label.startswith("Range")
    assert "number and order of the records" in caveats


def test_two_truncated_forms_make_two_claims():
    one, two = (words(label, LIPSCHITZ, True)[0] for label in list(claims.STANDARDS)[1:3])
    assert one != two
    assert "at the record's own weight" in one
    assert "at full weight" in two


def test_every_caveat_that_can_appear_stands_on_the_page_once():
    """Over all standards, bounds and kinds of draws: no sentence is missing, and none stands there twice."""
    page = claims.page()
    for label, bound, independent in COMBINATIONS:
        example = claims.guarantee(claims.STANDARDS[label], bound, independent=independent, seeded=True)
        for caveat in example.caveats():
            assert page.count(f"| {caveat} |") == 1
            assert f"| {find_id(caveat)} | {caveat} |" in page


def test_sets_that_are_not_kept_apart_are_told_under_either_noise():
    assert {*claims.caveats()[write_caveat("C34")]} == {"statistics", "gaussian"}


ALWAYS = {
    "lipschitz": "C1 C3 C4 C5 C6 C7 C8 C24",
    "oscillation": "C1 C3 C4 C5 C6 C7 C8 C24",
    "exact": "C1 C3 C4 C5 C6 C7 C24",
    "renyi": "C2 C3 C4 C5 C6 C7",
    "strict": "C9 C4 C30",
    "censored": "C11 C12 C4 C13 C7",
    "statistics": "C33 C4 C30",
    "gaussian": "C33 C4 C30",
}


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_which_sentences_a_bound_always_has(bound):
    plain = hr.ScalarWeights(0.5)
    example = claims.guarantee(claims.standard_of(bound), bound, weights=plain, if_recomputed="")
    assert [find_id(caveat) for caveat in example.caveats()] == ALWAYS[bound.name].split()


@pytest.mark.parametrize("reason", [*CLAIMS.values(), *CAVEATS.values()], ids=lambda reason: reason.id)
def test_what_a_sentence_rests_on_is_there(reason):
    """The section, the test and the page with its anchor exist."""
    assert reason.proof in headings("maths.md").values()
    file, _, name = reason.test.partition("::")
    tree = ast.parse((DOCS.parent / "tests" / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if reason.measured:
        page, _, anchor = reason.measured.partition("#")
        assert anchor in headings(page)


def headings(page: str) -> dict[str, str]:
    """The headings of a page by their anchors."""
    lines = re.findall(r"^#+ (.+)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-"): line for line in lines}


def test_a_sentence_with_names_in_it_is_recognised():
    sentence = write_caveat("C23", "a, {b}", "x\ny")
    assert find_id(sentence) == "C23"
    assert find_id(sentence + " Honestly.") is None
    assert [find_id(write_caveat(id, "n", "n")) for id in CAVEATS] == list(CAVEATS)
    assert list(CLAIMS) == [bound.name for bound in BOUNDS]


def test_the_page_is_written_by_the_same_words():
    assert (DOCS / "claims.md").read_text(encoding="utf-8") == claims.page(), (
        "run python -m hedgerow_studies.pages.claims"
    )
