"""Analyses and survey weights of a plan: in the confidential files, and nowhere else."""

import json

import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.release.plan.flags import from_flags, to_flags

LINES = ("log(x) ~ z", {"formula": "x ~ z", "family": "poisson"})


def test_a_plan_holds_analyses_and_survey_weights_and_publishes_no_analysis():
    plan = hr.Plan.of(
        {"version": 1, "formula": "x ~ z", "epsilon": 1, "analyses": [*LINES], "design_weight": "w"}
    )
    assert plan.analyses == (hr.utility.Analysis("log(x) ~ z"), hr.utility.Analysis("x ~ z", "poisson"))
    assert hr.Plan.loads(plan.text()) == plan
    assert plan.mapping()["analyses"] == [*LINES]
    assert "analyses" not in plan.public().mapping()
    assert plan.public().mapping()["design_weight"] == "w"
    flags = dict(flag.removeprefix("--").split("=", 1) for flag in to_flags(plan) if "=" in flag)
    flags = {name.replace("-", "_"): value for name, value in flags.items()}
    assert from_flags({**flags, "epsilon": 1.0}) == plan
    # What the ledger knows a plan by is as it was.
    plain = hr.Plan(formula="x ~ z", epsilon=1.0)
    assert hr.Plan(formula="x ~ z", epsilon=1.0, analyses=["x ~ z"]).digest == plain.digest
    assert "design_weight" not in plain.text()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"analyses": ["x ~ gone"]}, "gone"),
        ({"analyses": ["x ~ open('f')"]}, "open"),
        ({"analyses": ["x ~ name"], "outputs": hr.Outputs(drop=("name",))}, "have 'x', 'z'"),
        ({"analyses": ["outcome ~ z"]}, r"'outcome ~ z' names a column.* have 'x', 'z', ('w', )?'name'\."),
        ({"design_weight": "name", "outputs": hr.Outputs(drop=("name",))}, "is dropped"),
        ({"design_weight": "none"}, "No column named 'none'"),
    ],
)
def test_what_copies_do_not_have_is_refused_before_anything_is_spent(make, table, changes, told):
    pd.read_csv(table).assign(name=1.5).to_csv(table, index=False)
    with pytest.raises(hr.HedgerowError, match=told) as caught:
        make(**changes)
    assert "Nothing was written or spent." in caught.value.__notes__


def test_a_release_tells_its_owner_what_was_lost(make, table, hedgerow):
    pd.read_csv(table).assign(w=lambda each: 1 + each["z"] ** 2).to_csv(table, index=False)
    made = make(analyses=LINES[:1], design_weight="w", copies=2)
    found = json.loads((made.folder / "confidential" / "utility.json").read_text())
    assert found["confidential"] is True
    assert found["design_weight"] == "w"
    assert {row["copy"] for row in found["analyses"]} == {"1", "2", "pooled", "lowest", "highest"}
    assert {row["by"] for row in found["propensity"]} == {"main", "pairs"}
    assert "log(x)" not in (made.folder / "public" / "plan.yaml").read_text()
    assert hr.verify_release(made.folder).problems == ()
    shown = hedgerow("compare", table, "--formula", "x ~ z", "--draws", 200, "--seed", 1, "--json",
                     "--analyses", "['log(x) ~ z']", "--design-weight", "w")  # fmt: skip
    lost = {row[""]: row for row in json.loads(shown.out)["lost"]}
    assert {"S_pMSE, main", "S_pMSE, pairs", "CI overlap, log(x) ~ z"} <= lost.keys()
    assert lost["CI overlap, log(x) ~ z"].keys() == {"", "unweighted", "adp"}
