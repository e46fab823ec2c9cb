"""Plans: one value, written as YAML and as flags, read back the same; anything else is refused."""

import functools
import json
import math

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.errors import PlanError, SettingError
from hedgerow.privacy.weights import as_weights
from hedgerow.release import text
from hedgerow.release.plan import About, DictionaryEntry, Outputs, Plan, Read
from hedgerow.release.plan.commented import commented_text
from hedgerow.release.plan.flags import from_flags, to_flags
from hedgerow.release.plan.keys import schema

RANGES = {
    "radius": hr.Radius(0.4, 1.8),
    "brackets": hr.Brackets([0, 1000.5, math.inf], outside="public"),
    "bounds": hr.Bounds("low", 1e9),
    "tail": hr.Tail(0.05, hr.Radius(0.2, 2.4), hr.Radius(0.4, 1.8)),
    "where": hr.Where("big", hr.Bounds("lo", "hi"), hr.Tail(0.1, hr.Everywhere(), hr.Radius(0.5, 2))),
    "everywhere": hr.Everywhere(),
    "box": hr.Box({"x": hr.Tail(0.1, hr.Radius(0.2, 3), hr.Radius(0.5, 2))}),
}
WEIGHTS = {
    "linear": hr.LinearWeights(0.9, 0.01, "oscillation"),
    "softmax": hr.SoftmaxWeights(),
    "logistic": hr.LogisticWeights(scale=2),
    "inverse": hr.InverseWeights(),
    "cap": hr.CapWeights(2.5, risk="oscillation"),
    "scalar": hr.ScalarWeights(0.25),
    "identification": hr.IdentificationWeights(0.2, known=("region",), pairwise=True),
    "reweighted": hr.Reweighted(hr.Reweighted(hr.CapWeights(2.0)), k=0.9),
}
SMALL = {"formula": "x ~ z", "epsilon": 5.7}
GOOD = "version: 1\nformula: x ~ z\nepsilon: 1\n"


def parsed(arguments: list[str]) -> Plan:
    """What the command makes of arguments, without running it."""
    import typer

    from hedgerow.cli import app
    from hedgerow.cli import plan as plans

    seen = []
    original = plans.plan_from
    try:
        plans.plan_from = lambda flags, **more: seen.append(original(flags, **more)) or seen[-1]
        typer.main.get_command(app)(["init", "--command", "--quiet", *arguments], standalone_mode=False)
    finally:
        plans.plan_from = original
    return seen[0]


def everywhere_the_same(plan: Plan) -> None:
    for again in (Plan.loads(plan.text()), Plan.loads(commented_text(plan)), parsed(to_flags(plan))):
        assert again.mapping() == plan.mapping()
        assert (again.relation, again.digest) == (plan.relation, plan.digest)
    jsonschema.validate(plan.mapping(), schema())


@pytest.mark.parametrize(
    "declared",
    [
        hr.Declared("number"),
        hr.Declared("integer", range_min=0),
        hr.Declared("integer", multiple_of=100),
        hr.Declared("number", decimal_places=2, range_min=-0.5, range_max=1e9),
    ],
)
def test_what_is_declared_of_the_outcome_is_written_and_read(declared):
    plan = Plan(**SMALL, declared=declared)
    everywhere_the_same(plan)
    assert Plan.loads(plan.text()).settings.column.declared == declared


@pytest.mark.parametrize("name", RANGES)
def test_every_range_is_written_and_read(name):
    for make in (hr.RangeAveraged, lambda known: hr.RangeTruncated(known, public_weight="one")):
        everywhere_the_same(
            Plan(**SMALL, standard=make(RANGES[name]), reasons={"": "It is printed: yearly."})
        )


def test_each_range_of_a_box_keeps_its_reason():
    reasons = {"": "It is printed.", "ranges.x": "yearly", "ranges.x.wider": None}
    plan = Plan(**SMALL, standard=hr.RangeTruncated(RANGES["box"]), reasons=reasons)
    assert Plan.loads(plan.text()).reasons == reasons
    assert {place for place, _ in plan.settings.standard.range.sentences()} > reasons.keys()


def test_what_the_certificate_is_to_say_is_written_and_read():
    about = About(
        purpose="teaching: a, b", contact="data@example.org", epsilon_reason="ε as before", earlier=True
    )
    everywhere_the_same(Plan(**SMALL, about=about, unit="person id", rows_per_unit=3))
    dropped = {"unit": "person", "outputs": Outputs(drop=("person",))}
    for more, shown in (({}, ("person", None)), ({"preset": "recommended"}, (None, 1))):
        plan = Plan(**SMALL, **dropped, **more)  # a column that is used is named
        everywhere_the_same(plan)
        assert (plan.public().unit, plan.public().rows) == shown


@pytest.mark.parametrize("name", WEIGHTS)
def test_every_weight_is_written_and_read(name):
    plan = Plan(**SMALL, weights=WEIGHTS[name])
    everywhere_the_same(plan)
    assert Plan.loads(plan.text()).settings.weights == WEIGHTS[name]


def test_everything_at_once():
    plan = Plan(
        formula="`pay roll` ~ log(employees) + C(region)",
        epsilon=None,
        data="folder with blanks/pay'roll.csv",
        read=Read("csv", "cp1252", ";", ",", ("NA", "-9"), ("zip", "1e-3"), header=True),
        missing="drop",
        family="normal",
        prior=hr.Prior(2.0, 3.0, (1.0, 10.0), (0.5, 7.0), {"log(employees)": (1.0, 0.5)}),
        standard=hr.RangeTruncated(RANGES["tail"]),
        reasons={"": "a \"quoted\" reason: yes", "wider": "another", "otherwise": None},
        weights=WEIGHTS["reweighted"],
        bound="oscillation",
        copies=3,
        draws=500,
        known="simulated",
        debias=True,
        sampling="stratified",
        dataset="no",
        ledger="ledger.sqlite",
        outputs=Outputs(
            "parquet", ("null", "12"), "escape",
            ("region",), DictionaryEntry("Pay", {1: "low", 2.5: "no", "a": "1"}, "F8.2"), ("region", "null"),
        ),
        seed=7,
    )  # fmt: skip
    everywhere_the_same(plan)
    assert Plan.loads(plan.text()).reasons == plan.reasons
    public = plan.public().text()
    for secret in ("seed", "ledger", "payroll.csv", "roll.csv", "folder with", "dataset", "drop:", "zip"):
        assert secret not in public


@given(st.text(max_size=30), st.floats(allow_nan=False), st.integers(-(10**18), 10**18))
def test_any_text_and_number_survives(word, real, whole):
    for value in (word, real, whole, [word, {word or "k": [real, None, True]}]):
        assert text.load(text.dump({"value": value}))["value"] == value
        assert text.load(text.dump_line({"value": value}))["value"] == value


@given(st.text(max_size=200))
def test_any_text_is_a_plan_or_a_plan_error(content):
    with pytest.raises(SettingError):
        Plan.loads(content)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("version: 1\nformulla: x ~ z", "Did you mean formula?"),
        ("version: 1\nformula: x ~ z\nepsilon: " + "9" * 99 + "e400", "epsilon must be finite, got inf."),
        (GOOD + "copies: 0", "copies must be at least 1, got 0."),
        (GOOD + "weights: {cap: 2}", "weights.kind must be one of linear,"),
        (GOOD + "weights: {kind: cap, cap: a}", "weights.cap must be a number"),
        (GOOD + "weights: {kind: cap, cap: 2, x: 1}", "weights.x is not known"),
        (GOOD + "weights: cap", "weights.cap is missing"),
        (GOOD + "prior: {slope: [0]}", "prior.slope must have at least 2 entries"),
        (GOOD + "prior: {slope: [0, x]}", "prior.slope[1] must be a number"),
        (GOOD + "read: {text: zip}", "read.text must be a list, got 'zip'. Write ["),
        (GOOD + "debias: 1", "debias must be true or false, got 1."),
        ("version: 1\nformula: 5\nepsilon: 1", "formula must be text, got 5. Put it in quotes."),
        (GOOD + "5: 1", "the key 5, which is no text"),
        (GOOD + "read: csv", "read must be a mapping of keys to values, got 'csv'."),
        (GOOD + "weights: lineer", "Did you mean linear?"),
        (GOOD + "outputs: {frmat: csv}", "Did you mean format?"),
        ("version: 2\nformula: x ~ z\nepsilon: 1", "Update hedgerow"),
        ("formula: x ~ z\nepsilon: 1", "version is missing"),
        ("version: 1\nformula: x ~ z", "epsilon is missing"),
        ("version: 1\nformula: x ~ z\nepsilon:", "epsilon must be a number"),
        ("version: 1\nformula: x ~ z\nepsilon: -1", "above 0"),
        ("version: 1\nformula: x ~ z\nepsilon: yes", "epsilon must be"),
        (GOOD + "seed: " + "9" * 300, "whole number"),
        ("!!python/object/apply:os.system ['touch /tmp/x']", "tags"),
        ("version: !!int 1", "tags"),
        ("version: 1\nformula: &a x\nepsilon: *a", "aliases"),
        ("a: &a [1]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]", "aliases"),
        ("<<: {version: 1}", "not known"),
        ("version: 1\nversion: 1", "twice"),
        ("[" * 5000, "deep"),
        ("version: 1\n---\nversion: 1", "one document"),
        ("- 1", "mapping"),
        ("version: 1\n  formula: x", "line 2"),
        (b"\xff\xfe\x00", "UTF-8"),
        ("x" * 300_000, "bytes"),
        (GOOD + "standard: {kind: range-truncated}", "range is missing"),
        (
            "version: 1\nformula: x ~ z\nepsilon: 1\n"
            "standard: {kind: range-truncated, range: {kind: radius, a: 0.4, b: 1.8}}",
            "because is missing",
        ),
        (
            "version: 1\nformula: x ~ z\nepsilon: 1\n"
            "standard: {kind: range-averaged, range: {kind: radius, a: 1.4, b: 1.8, because: null}}",
            "below 1",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_and_how(content, told):
    with pytest.raises(SettingError) as caught:
        Plan.loads(content, "plan.yaml")
    assert told in " ".join(str(caught.value).split())
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    "standard",
    [
        hr.Strict({"Intercept": (0, 2), "z": (0.5, 1.5), "sigma": (0.6, 1.6)}, "published"),
        hr.Censored(keep=0.8, reason="published"),
        hr.Censored(),
    ],
    ids=["strict", "censored", "censored without a reason"],
)
def test_a_standard_with_its_own_weights_has_none_in_its_plan(standard):
    sampled = {"family": "gamma", "prior": hr.Prior(intercept=(0.0, 1.0))}
    small = SMALL | (sampled if isinstance(standard, hr.Censored) else {})
    plan = Plan(**small, standard=standard)
    everywhere_the_same(plan)
    assert not {"weights", "bound"} & set(plan.mapping())
    for written in (plan.text(), commented_text(plan), *to_flags(plan)):
        assert "linear" not in written
        assert "lipschitz" not in written
    again = Plan.loads(commented_text(plan))
    assert (again.settings.standard, again.settings.bound) == (standard, standard.bound)
    # What would be ignored is refused, in the words of the synthesizer.
    flag = {"standard": to_flags(plan)[-1].removeprefix("--standard=")}
    for more in ({"weights": "linear"}, {"bound": "lipschitz"}, {"bound": "exact", "weights": "softmax"}):
        words = f"has its own bound and weights; leave out {', '.join(sorted(more))}."
        of_python = {"weights": hr.LinearWeights(), "bound": "exact"}
        for make, settings in (
            (Plan.of, {"given": plan.mapping() | more}),
            (from_flags, {"given": more, "base": plan}),
            (from_flags, {"given": more | flag, "base": Plan(**small)}),
            (hr.Synthesizer, small | {"standard": standard} | {k: of_python[k] for k in more}),
        ):
            with pytest.raises(SettingError, match=words):
                make(**settings)
        assert not jsonschema.Draft202012Validator(schema()).is_valid(plan.mapping() | more)
    with pytest.raises(SettingError, match="leave out weights"):
        Plan(**small, standard=standard, weights=hr.LinearWeights())
    # A plan of another standard leaves its weights behind, and gets the usual ones on the way back.
    capped = Plan(**small, weights=WEIGHTS["cap"], bound="exact")
    strict = from_flags(flag, base=capped)
    assert strict.mapping() == plan.mapping()
    back = from_flags({"standard": "adp"}, base=strict)
    assert (back.settings.weights, back.settings.bound.name) == (hr.LinearWeights(), "lipschitz")


def test_a_correction_can_be_switched_off_again():
    base = Plan(**SMALL, debias=True)
    assert from_flags({}, base=base).settings.debias
    assert not from_flags({"debias": False}, base=base).settings.debias
    asked = ["--formula=x ~ z", "--epsilon=3"]
    assert parsed([*asked, "--debias"]).settings.debias
    assert not parsed(asked).settings.debias
    own = [*asked, "--preset=recommended", "--weights=linear"]
    assert parsed(own).settings.debias
    off = parsed([*own, "--no-debias"])
    assert (off.settings.debias, off.settings.sampling) == (False, "stratified")


def test_a_plan_holds_nothing_that_no_file_can_hold():
    for odd in (
        {"standard": hr.RangeTruncated(hr.Bounds(np.zeros(3), np.ones(3)))},
        {"standard": hr.RangeTruncated(hr.Bounds(math.nan, 1.0))},
        {"weights": as_weights(np.ones(3))},
        {"standard": object()},
        {"copies": 0},
        {"copies": True},
    ):
        with pytest.raises(SettingError) as caught:
            Plan(**SMALL, **odd)
        assert "array" not in str(caught.value).replace("ndarray", "")  # what it holds may be confidential


def test_prices_share_an_account_only_if_they_compare_the_same():
    def relation(standard):
        return Plan(**SMALL, standard=standard).relation

    ranges = [known for name, known in RANGES.items() if name != "everywhere"]
    for same in (hr.ADP(), hr.Unweighted(), hr.RangeTruncated(hr.Everywhere()), hr.RangeAveraged()):
        assert relation(same) == "withheld"
    others = [make(known) for make in (hr.RangeAveraged, hr.RangeTruncated) for known in ranges]
    others += [hr.RangeTruncated(hr.Radius(0.4, 1.8), public_weight="one"), hr.ADP()]
    others += [hr.RangeTruncated(hr.Radius(0.4, 1.8, outside="public"))]
    assert len({relation(standard) for standard in others}) == len(others)
    again = Plan(**SMALL, standard=hr.RangeTruncated(hr.Radius(0.4, 1.8)), copies=2, reasons={"": "known"})
    assert again.relation == relation(hr.RangeTruncated(hr.Radius(0.4, 1.8)))


def test_paths_in_a_plan_file_are_relative_to_it(tmp_path):
    (tmp_path / "plans").mkdir()
    file = tmp_path / "plans" / "plan.yaml"
    file.write_text(Plan(**SMALL, data="../t.csv", ledger="l.sqlite").text())
    found = Plan.load(file)
    assert found.data == str(tmp_path / "plans" / "../t.csv")
    assert found.ledger == str(tmp_path / "plans" / "l.sqlite")
    with pytest.raises(PlanError, match="cannot be read"):
        Plan.load(tmp_path / "absent.yaml")


def test_flags_on_top_of_a_plan_replace_what_it_says():
    base = Plan(**SMALL, standard=hr.RangeTruncated(hr.Radius(0.4, 1.8)), reasons={"": "printed"}, copies=3)
    changed = from_flags({"epsilon": 2.0, "because": "known"}, base=base)
    assert (changed.settings.epsilon, changed.because, changed.settings.copies) == (2.0, "known", 3)
    averaged = from_flags({"standard": "range-averaged"}, base=base)
    assert averaged.relation == "range-averaged radius(0.4, 1.8)"
    assert averaged.because == "printed"
    assert from_flags({"no_target": True}, base=base).settings.epsilon is None
    for bad in (
        {"radius": "1,2,3"},
        {"radius": "a,b"},
        {"radius": "0.4,1.8", "brackets": "0,1"},
        {"epsilon": 1.0, "no_target": True},
        {"weights": "{kind: cap"},
        {"standard": "[adp]"},
        {"range": "[1]"},
    ):
        with pytest.raises(SettingError):
            from_flags(bad, base=base)
    for bad in (
        {"formula": "x ~ z"},
        {"epsilon": 1.0},
        {**SMALL, "radius": "0.4,1.8"},
        {**SMALL, "because": "x"},
    ):
        with pytest.raises(SettingError):
            from_flags(bad)


def test_the_schema_refuses_what_the_reader_refuses():
    checker = jsonschema.Draft202012Validator(schema())
    jsonschema.Draft202012Validator.check_schema(schema())
    json.dumps(schema())
    good = Plan(**SMALL, standard=hr.RangeAveraged(RANGES["where"]), reasons={"": "x"}).mapping()
    assert checker.is_valid(good)
    for change in (
        {"formulla": "x"}, {"epsilon": None}, {"epsilon": 0}, {"copies": 0}, {"version": 2},
        {"weights": {"kind": "cap"}}, {"weights": "cap"}, {"standard": "range-truncated"},
        {"standard": {"kind": "range-truncated", "range": {"kind": "radius", "a": 0.4, "b": 1.8}}},
        {"outputs": {"format": "sas"}}, {"standard": "censored"}, {"prior": {"residual": 0}}, {"draws": 99},
        {"seed": -1}, {"read": {"delimiter": ";;"}}, {"prior": {"slope": [1]}},
        {"family": {"kind": "lognormal_mixture", "components": 1}},
        {"family": {"kind": "log_student", "df": 1}}, {"copies": True}, {"debias": 1}, {"formula": " "},
        {"standard": {"kind": "range-averaged", "range": "everywhere"}},
        {"family": {"kind": "asinh", "scale": 0}},
    ):  # fmt: skip
        assert not checker.is_valid(good | change), change
        with pytest.raises(SettingError):
            Plan.of(good | change)


def places(document, path=()):
    """Every place in a document."""
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    for step, value in inner:
        yield (*path, step)
        if isinstance(value, dict | list):
            yield from places(value, (*path, step))


def test_what_the_reader_accepts_the_schema_accepts_and_every_refusal_is_ours():
    """Any value put anywhere: no pydantic error gets out, and the schema is never the stricter one."""
    checker = jsonschema.Draft202012Validator(schema())
    standard = hr.RangeTruncated(RANGES["where"])
    plans = [
        Plan(**SMALL, standard=standard, weights=WEIGHTS["reweighted"], prior=hr.Prior(2.0), read=Read("csv"))
    ]
    plans += [Plan(**SMALL, standard=hr.Strict({"z": (0, 2), "sigma": (0.6, 1.6)}), family="normal")]
    odd = (
        None,
        True,
        "x",
        " ",
        -1,
        0.5,
        10**400,
        [1, "a"],
        {},
        {"kind": "cap", "cap": 1, "foo": 2},
        {"kind": 5},
    )
    accepted = 0
    for plan in plans:
        for place in places(plan.mapping()):
            for value in odd:
                changed = plan.mapping()
                holder = functools.reduce(lambda inner, step: inner[step], place[:-1], changed)
                holder[place[-1]] = value
                try:
                    Plan.of(changed)
                except SettingError:
                    continue
                accepted += 1
                assert checker.is_valid(changed), (place, value)
    assert accepted > 20


COLUMNS = {
    "wage": hr.Column("wage ~ age", prior=hr.Prior(residual=2.0), declared=hr.Declared("integer")),
    "net pay": hr.Column("`net pay` ~ log(wage)", hr.Family("zero_lognormal", spike=-8.0)),
}
TWO = "version: 1\nepsilon: 1\ncolumns: {x: {formula: x ~ z}, y: {formula: y ~ x}}\n"


def test_several_protected_columns_are_written_and_read_in_their_order():
    plan = Plan(formula=COLUMNS, epsilon=3.0, dictionaries={"net pay": DictionaryEntry(label="Net")})
    everywhere_the_same(plan)
    assert list(plan.mapping()["columns"]) == ["wage", "net pay"]
    assert "formula" not in plan.mapping()
    again = Plan.loads(plan.text())
    assert again.settings.columns == tuple(COLUMNS.values())
    assert again.dictionary == {"wage": DictionaryEntry(), "net pay": DictionaryEntry(label="Net")}
    assert again.relation == "withheld"


def test_cells_derived_columns_and_checks_are_written_and_read():
    columns = {
        "gross": hr.Column("gross ~ age", missing="synthesized", codes=(-8, "refused"), filler=2000.0),
        "net": hr.Column("net ~ age", "beta", share_of="gross", only_where="status == 'on'", otherwise=0),
    }
    rules = hr.Rules({"rate": "net / gross", "region": {"district": {7: "north"}}}, ["net <= gross"])
    plan = Plan(formula=columns, rules=rules, epsilon=3.0)
    everywhere_the_same(plan)
    again = Plan.loads(plan.text()).settings
    assert again.columns == tuple(columns.values())
    assert again.rules == rules


def test_a_single_column_with_gaps_is_written_by_its_name():
    plan = Plan(formula={"x": hr.Column("x ~ z", missing="public")}, epsilon=3.0)
    assert plan.mapping()["columns"]["x"]["missing"] == "public"
    everywhere_the_same(plan)


def test_one_column_by_name_is_the_same_plan_as_by_its_formula():
    named = Plan.loads(
        "version: 1\nepsilon: 1\ncolumns: {x: {formula: x ~ z, family: gamma, dictionary: {label: Pay}}}"
    )
    alone = "version: 1\nepsilon: 1\nformula: x ~ z\nfamily: gamma\noutputs: {dictionary: {label: Pay}}"
    assert named == Plan.loads(alone)
    assert named.digest == Plan.loads(alone).digest


NAMED = "version: 1\nepsilon: 1\ncolumns: "
AGAINST_THE_SCHEMA = {
    "version: 1\nepsilon: 1": "formula is missing: the protected column",
    f"{TWO}formula: x ~ z": "formula and columns exclude each other",
    f"{TWO}family: gamma": "family and columns exclude each other: with columns each has its own",
    NAMED + "{}": "columns must have at least 1 entries, got 0",
    NAMED + "{x: x ~ z}": "columns.x must be a mapping",
    NAMED + "{x: {family: gamma}}": "columns.x.formula is missing",
    NAMED + "{x: {formula: x ~ z, prior_: 1}}": "columns.x.prior_ is not known. Did you mean prior?",
}
BEYOND_A_SCHEMA = {
    NAMED + "{x: {formula: y ~ z}}": "'x': its formula protects 'y'",
    NAMED
    + "{x: {formula: x ~ z, family: {kind: gamma, lower: 9, upper: 1}}}": "columns.x: Family 'gamma': lo",
    NAMED
    + "{x: {formula: x ~ z, declared: {type: number, range_min: 9, range_max: 1}}}": "columns.x: Declared",
    NAMED + "{x: {formula: x ~ z, codes: [-8, -8.0]}}": "columns.x: codes must be different numbers or words",
    NAMED + "{7: {formula: x ~ z}}": "must be text, got 7. Put it in quotes",
    TWO.replace("y:", "x:"): "the key 'x' occurs twice",
    f"{TWO}outputs: {{dictionary: {{label: Pay}}}}": "outputs.dictionary goes with one protected column",
}


@pytest.mark.parametrize("content", [*AGAINST_THE_SCHEMA, *BEYOND_A_SCHEMA])
def test_columns_that_say_nothing_or_two_things_are_refused(content):
    with pytest.raises(SettingError) as raised:
        Plan.loads(content)
    assert (AGAINST_THE_SCHEMA | BEYOND_A_SCHEMA)[content] in str(raised.value)
    if content in AGAINST_THE_SCHEMA:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(text.load(content), schema())


def test_a_plan_is_shown_in_a_line_without_its_seed_and_file():
    plan = hr.Plan(formula="x ~ z", data="/secret/place.csv", epsilon=5.7, seed=4711)
    assert repr(plan) == "Plan('x ~ z', ADP, ε = 5.7; mapping() has all of it)"
