"""Valid plans that between them have every key, range, standard, kind of weights and family setting."""

import math

import hedgerow as hr
from hedgerow.release.plan import About, DictionaryEntry, Outputs, Plan, Read

_SMALL = {"formula": "x ~ z", "epsilon": 40.0, "draws": 100, "dataset": "table"}
_TAIL = hr.Tail(0.05, hr.Radius(0.2, 2.4), hr.Radius(0.4, 1.8))
_BOX = {"Intercept": (0, 40), "z": (-5, 5), "sigma": (0.4, 2.5)}
_WEIGHTS = (
    hr.LinearWeights(0.9, 0.01, "oscillation"),
    hr.SoftmaxWeights(),
    hr.LogisticWeights(scale=2),
    hr.InverseWeights(),
    hr.CapWeights(2.5, risk="oscillation"),
    hr.ScalarWeights(0.25),
    hr.Reweighted(hr.Reweighted(hr.CapWeights(2.0)), k=0.9),
)
_RANGES = (
    hr.Radius(0.4, 1.8),
    hr.Brackets([0, 1000.5, math.inf], outside="public"),
    hr.Bounds(0, 1e15),
    _TAIL,
    hr.Where("big", hr.Bounds("low", "high"), hr.Tail(0.1, hr.Everywhere(), hr.Radius(0.5, 2))),
)


def _limits(**more) -> hr.Strict:
    return hr.Strict(limits=(1, 1e15), reason="published", **more)


def quick_plans() -> list[Plan]:
    """Plans of exact models, which a release takes a moment for; the data is table.csv beside the plan."""
    plans = [Plan(**_SMALL, data="table.csv", weights=weights) for weights in _WEIGHTS]
    for number, known in enumerate(_RANGES[:4]):
        standard = (hr.RangeAveraged, hr.RangeTruncated)[number % 2](known)
        plans.append(Plan(**_SMALL, data="table.csv", standard=standard, reasons={"": "printed yearly"}))
    return [
        *plans,
        Plan(**_SMALL, data="table.csv", standard=hr.Unweighted(), family="normal"),
        Plan(**_SMALL, data="table.csv", standard=hr.Unweighted(), bound="renyi", delta=1e-8),
        Plan(**_SMALL, data="table.csv", declared=hr.Declared("integer", range_min=0, range_max=1e15)),
        Plan(**_SMALL | {"epsilon": 2.0}, data="table.csv", standard=hr.Strict(_BOX, "published"), copies=2),
        Plan(
            **_SMALL | {"epsilon": 2.0}, data="table.csv", standard=_limits(margin=hr.Margin(0.3)), copies=2
        ),
        Plan(**_SMALL | {"epsilon": None}, data="table.csv", seed=3, outputs=Outputs(format="parquet")),
    ]


def all_plans() -> list[Plan]:
    """Those, and what takes longer or other data than a quick release has."""
    everything = Plan(
        formula="`pay roll` ~ log(employees) + C(region)",
        epsilon=5.7,
        data="folder with blanks/payroll.csv",
        read=Read("csv", "cp1252", ";", ",", ("NA", "-9"), ("zip", "1e-3")),
        missing="drop",
        family="normal",
        prior=hr.Prior(2.0, 3.0, (1.0, 10.0), (0.5, 7.0), {"log(employees)": (1.0, 0.5)}),
        standard=hr.RangeTruncated(_TAIL, public_weight="one"),
        reasons={"": 'a "quoted" reason: yes', "wider": "another", "otherwise": None},
        weights=_WEIGHTS[-1],
        bound="oscillation",
        copies=3,
        draws=500,
        known="simulated",
        debias=True,
        sampling="stratified",
        dataset="no",
        ledger="ledger.sqlite",
        outputs=Outputs(
            "parquet", ("null", "12"), "escape", ("zip",), DictionaryEntry("Pay", {1: "low"}), ("region",)
        ),
        unit="true",
        rows_per_unit=3,
        design_weight="z",
        analyses=["log(x) ~ z", hr.utility.Analysis("x ~ z", "poisson")],
        about=About(purpose="~", contact="no", decided_by="1e5", earlier=True),
        seed=7,
    )
    pairwise = hr.IdentificationWeights(0.2, known=("region",), pairwise=True)
    classes = hr.Brackets([0, 1000.5, math.inf], column="class")
    in_classes = _limits(relation="range", range=classes, inside=True)
    noisy = _SMALL | {"epsilon": 2.0, "rows_per_unit": 3, "delta": 1e-8}
    censored = hr.Censored(keep=0.8, reason="published")
    families = (
        hr.Family("beta", lower=0, upper=100),
        hr.Family("ordinal", levels=("low", "middle", "high")),
        hr.Family("lognormal_mixture", components=3),
        hr.Family("log_student", df=4),
        hr.Family("zero_student", scale=1e4, df=3, spike=-8),
        hr.Family("asinh", scale=0.1),
        hr.Family("zero_gamma", spike=0),
    )
    several = {
        "x": hr.Column("x ~ z", prior=hr.Prior(2.0), declared=hr.Declared("integer")),
        "no": hr.Column("no ~ log(x) + z", hr.Family("zero_gamma", spike=-8)),
        "y": hr.Column("y ~ z", missing="synthesized", codes=(-8, -9.5), filler=2.0),
        "w": hr.Column("w ~ z", "beta", share_of="x - y", only_where="z in (1, 'two')", otherwise=0),
    }
    two = {"x": hr.Column("x ~ z"), "y": hr.Column("y ~ x")}
    box = hr.Box({"x": hr.Radius(0.4, 1.8), "y": hr.Brackets([0, 10, 100])})
    rules = hr.Rules({"per": "x / y", "town": {"z": {1: "a", "2": "b"}}}, ["y <= x", "no > 0 or z == 1"])
    return [
        *quick_plans(),
        everything,
        Plan(formula=two, epsilon=4.0, standard=hr.RangeTruncated(box), reasons={"ranges.x": "printed"}),
        Plan(
            formula=several, rules=rules, epsilon=4.0, dictionaries={"no": DictionaryEntry("Pay", {1: "low"})}
        ),
        Plan(**_SMALL, weights=pairwise),
        Plan(**_SMALL, weights=hr.PlannedWeights(), bound="renyi"),
        Plan(**_SMALL, standard=hr.RangeTruncated(_RANGES[4]), reasons={"then": "a register"}),
        Plan(**_SMALL, standard=hr.RangeTruncated(classes, inside=True), reasons={"": "a public column"}),
        Plan(**_SMALL, standard=in_classes, reasons={"": "a public column"}, family="normal"),
        Plan(**noisy, standard=_limits(relation="replaced", noise="auto")),
        Plan(**_SMALL, standard=censored, family="gamma", prior=hr.Prior(intercept=(0.0, 1.0))),
        *(Plan(**_SMALL, family=family) for family in families),
    ]
