"""No sentence claims more than the maths allows: permitted and forbidden words for every combination."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
spec = importlib.util.spec_from_file_location("claims", DOCS / "claims.py")
claims = importlib.util.module_from_spec(spec)
spec.loader.exec_module(claims)

COMBINATIONS = [
    (label, bound, independent)
    for label in claims.STANDARDS
    for bound in claims.bounds_of(label)
    for independent in (True, False)
    if independent or bound not in ("exact", "strict")  # those need a closed form
]


def words(label, bound, independent):
    example = claims.guarantee(claims.STANDARDS[label], bound, independent=independent)
    return example.claim(), " ".join(example.caveats())


@pytest.mark.parametrize(("label", "bound", "independent"), COMBINATIONS)
def test_permitted_words(label, bound, independent):
    claim, caveats = words(label, bound, independent)
    strict = bound == "strict"
    assert ("differentially private" in claim) == strict
    assert ("not differential privacy" in caveats) == (not strict)
    assert "asymptotic" not in claim.lower()
    assert ("confidence" in claim) == (not strict)
    assert ("replaced by any other value" in claim) == strict
    assert ("Replacing an outcome" in caveats) == (not strict)
    assert ("both restricted to that set" in claim) == (bound in ("lipschitz", "oscillation"))
    assert ("the second posterior lies in the set is not covered" in claim) == (
        bound in ("lipschitz", "oscillation")
    )
    assert ("reverse direction is not covered" in claim) == (bound == "exact")
    assert ("can lose more than the draws show" in caveats) == (bound in ("lipschitz", "oscillation"))
    assert ("held fixed" in caveats) == (not strict)
    assert ("approximate" in caveats) == (not independent)
    assert ("repeated until it met the target" in caveats) == (not strict)
    assert ("does not bound what can be learned" in caveats) == (label == "RangeAveraged")
    assert ("whoever knew a record's range" in caveats) == label.startswith("Range")
    assert "number and order of the records" in caveats


def test_two_truncated_forms_make_two_claims():
    one, two = (words(label, "lipschitz", True)[0] for label in list(claims.STANDARDS)[1:3])
    assert one != two
    assert "at the record's own weight" in one
    assert "at full weight" in two


def test_the_page_is_written_by_the_same_words():
    assert (DOCS / "claims.md").read_text(encoding="utf-8") == claims.page(), "run python docs/claims.py"
