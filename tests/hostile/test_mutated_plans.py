"""Plans that somebody or something has changed: read as they now stand, or refused in one line."""

import random

import pytest
import yaml
from hostile.corpus import all_plans
from hostile.limits import within
from hostile.mutations import mutate_plan

from hedgerow.errors import PlanError, SettingError
from hedgerow.release.plan import Plan
from hedgerow.release.plan.keys import PLAN
from hedgerow.release.plan.kinds import RANGES, STANDARDS, WEIGHTS


def test_the_corpus_has_every_key_and_every_kind():
    documents = [yaml.safe_load(plan.text()) for plan in all_plans()]
    assert set().union(*documents) == set(PLAN.json_schema()["properties"])
    kinds = str(documents)
    assert [kind for kind in (*STANDARDS, *RANGES, *WEIGHTS) if f"'kind': '{kind}'" not in kinds] == []


def mutated(count: int, seed: int) -> list[bytes]:
    """From each plan of the corpus in turn; those that came out as they were are left out."""
    choose, plans = random.Random(seed), [plan.text() for plan in all_plans()]
    found: list[bytes] = []
    while len(found) < count:
        text = plans[len(found) % len(plans)]
        raw = mutate_plan(text, choose)
        if raw != text.encode():
            found.append(raw)
    return found


def problem(raw: bytes) -> str | None:
    """What is wrong with how a plan is received; None if it loads and survives, or is refused in one line."""
    try:
        with within(10):
            plan = Plan.loads(raw, "plan.yaml")
    except (PlanError, SettingError) as error:
        message = str(error)
        return None if message.isprintable() and len(message) < 1000 else f"message {message[:600]!r}"
    except BaseException as error:
        return f"{type(error).__name__} {error}"
    try:
        again = Plan.loads(plan.text().encode())
        # Not ==: a range whose ends may be arrays is equal to itself alone.
        same = (again.text(), again.relation, again.reasons) == (plan.text(), plan.relation, plan.reasons)
        return None if same else "reads back as another plan"
    except BaseException as error:
        return f"cannot be written and read again: {type(error).__name__} {error}"


def attack(count: int, seed: int) -> None:
    problems = {raw: found for raw in mutated(count, seed) if (found := problem(raw))}
    print(f"{count} mutated plans, {len(problems)} problems")  # noqa: T201
    assert not problems, "\n\n".join(f"{raw[-1500:]!r}\n{why}" for raw, why in list(problems.items())[:5])


@pytest.mark.parametrize(
    "raw", [b'"\\ud800": 1', b'version: "\\ud800"', b'"\\e[31m": 1', b'"a\\nb": 1', b"x" * 300 + b": 1"]
)
def test_whatever_a_key_is_called_the_refusal_is_one_short_line(raw):
    assert problem(raw) is None
    with pytest.raises(PlanError) as caught:
        Plan.loads(raw)
    assert len(str(caught.value)) < 350


@pytest.mark.parametrize("formula", [r"x\a ~ z", r"\ufeff", r"lo\u200bg(x) ~ z"])
def test_a_formula_with_characters_that_nobody_sees_is_refused_in_one_line_that_shows_them(formula):
    raw = f'version: 1\ndata: table.csv\nformula: "{formula}"\nepsilon: 4\n'.encode()
    with pytest.raises(SettingError, match=r"\\"):
        Plan.loads(raw)
    assert problem(raw) is None


def test_100_mutated_plans():
    attack(100, seed=1)


@pytest.mark.slow
def test_1500_mutated_plans():
    """1,500 plans: each loads and reads back as itself, or is refused with one line; none takes 10 s."""
    attack(1500, seed=2)
