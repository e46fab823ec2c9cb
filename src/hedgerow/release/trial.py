"""Trials: what a plan would cost and lose, fitted and thrown away. Confidential; nothing is written."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from hedgerow.advice.elicit import box_cost
from hedgerow.comparison import compare
from hedgerow.errors import CalibrationError
from hedgerow.evidence.attack import Attack
from hedgerow.evidence.audit import Audit
from hedgerow.evidence.more_records import contraction
from hedgerow.privacy.bounds import BY_DRAWS, LIPSCHITZ
from hedgerow.privacy.settings import Terms
from hedgerow.privacy.standards import ADP, RangeAveraged, RangeTruncated, Standard, Unweighted
from hedgerow.privacy.strict import Bounded, Boxed, Strict
from hedgerow.release.ledger import Balance, Ledger
from hedgerow.release.ledger.place import ledger_path
from hedgerow.release.plan import Plan
from hedgerow.release.prepare import prepare
from hedgerow.synthesizer import Synthesizer
from hedgerow.tables.table import Table

Row = dict[str, Any]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Cost:
    """What a plan would spend, and from where; confidential."""

    account: str  # the dataset's name, or what it is called without one
    balance: Balance | None  # None: nothing was recorded for this data under this relation
    prices: list[Row]
    advice: str  # whether more draws would raise the price, or how well a box fits
    wider: list[Row]  # what wider boxes would cost, for a strict plan


def _draw_bound(plan: Plan) -> str:
    """The bound over draws to show beside others: the plan's own, if it is one."""
    bound = plan.settings.bound
    return bound.name if bound.over_draws else LIPSCHITZ.name


def compare_standards(plan: Plan, *, progress: Progress) -> list[Row]:
    """The standards side by side; those with a range if the plan has one."""
    progress("reading")
    prepared = prepare(plan)
    # Unweighted has no weights to scale down, so that it meets no target.
    standards: dict[str, Standard] = {"unweighted": Unweighted()} if plan.settings.epsilon is None else {}
    standards["adp"] = ADP()
    if plan.ranged:
        standards["range-averaged"] = RangeAveraged(plan.settings.standard.range)
        standards["range-truncated"] = RangeTruncated(plan.settings.standard.range)
        if getattr(plan.settings.standard, "public_weight", "alpha") == "one":
            standards["range-truncated, as printed"] = plan.settings.standard
    progress("fitting")
    asked = plan.settings
    own = {} if isinstance(asked.standard, Bounded) else {"weights": asked.weights, "bound": asked.bound}
    terms = {entry.name: getattr(asked, entry.name) for entry in fields(Terms) if entry.name != "bound"}
    comparison = compare(
        asked.formula, prepared.table, family=asked.family, prior=asked.prior, standards=standards,
        left_out=prepared.withheld, seed=plan.seed, **own, **terms,
    )  # fmt: skip
    table = Table.of(comparison.table)
    rows = [dict(zip(table.columns, values, strict=True)) for values in table.frame.iter_rows()]
    lost = [_largest_gap(synth) for synth in comparison.synthesizers.values()]
    return [
        row | {"withheld": row[f"withheld_{_draw_bound(plan)}"], "ecdf_max": gap}
        for row, gap in zip(rows, lost, strict=True)
    ]


def try_targets(plan: Plan, targets: Sequence[float], *, progress: Progress) -> list[Row]:
    """One row per target: the scale it needs, what one copy costs then, what is lost."""
    progress("reading")
    prepared = prepare(plan)
    rows = []
    for target in sorted(set(targets)):
        progress(f"calibrating to {target:g}")
        row: Row = {"epsilon": float(target), "per_copy": target / plan.settings.copies, "met": "no"}
        row |= dict.fromkeys(("scale", "mean_alpha", "achieved", "withheld", "ecdf_max"), np.nan)
        with suppress(CalibrationError):
            synth = prepared.fit(epsilon=float(target))
            row |= {
                "met": "yes",
                "scale": synth.scale_,
                "mean_alpha": float(synth.alpha_.mean()),
                "achieved": synth.epsilon_,
                "withheld": synth.withheld_epsilon_.get(_draw_bound(plan), np.nan),
                "ecdf_max": _largest_gap(synth),
            }
        rows.append(row)
    return rows


def audit_plan(plan: Plan, *, riskiest: int | None, sample: int | None, progress: Progress) -> Audit:
    """Fit the plan, then withhold outcomes one by one and see what changes."""
    synth = _fit(plan, progress)
    progress("withholding outcomes")
    return synth.audit(riskiest=riskiest, sample=sample)


def attack_plan(plan: Plan, *, record: int | None, trials: int, progress: Progress) -> Attack:
    """Fit the plan, then try to tell from copies whether one outcome was used."""
    synth = _fit(plan, progress)
    progress("attacking")
    return synth.attack(record, trials=trials)


def _fit(plan: Plan, progress: Progress) -> Synthesizer:
    progress("reading")
    prepared = prepare(plan)
    progress("fitting")
    return prepared.fit()


def contract(plan: Plan, *, progress: Progress) -> list[Row]:
    """Each bound against the number of records, on nested subsamples."""
    progress("reading")
    prepared = prepare(plan)
    progress("refitting on subsamples")
    return _rows(
        contraction(prepared.synthesizer, prepared.table, left_out=prepared.withheld, seed=plan.seed)
    )


def cost_of(plan: Plan, *, progress: Progress) -> Cost:
    """What a release would be charged, what remains, and the price as fitted; raises if it is refused."""
    progress("reading")
    prepared = prepare(plan)
    account, balance = plan.dataset or "this data, without a name", None
    place = ledger_path(plan.ledger)
    if place.exists():  # opening a ledger would begin one
        with Ledger.open(place) as ledger:
            fingerprint = ledger.fingerprint(prepared.table, [prepared.outcome])
            balances = ledger.check(
                fingerprint=fingerprint,
                relation=plan.relation,
                epsilon=plan.settings.epsilon,
                dataset=plan.dataset,
            )
        balance = next((each for each in balances if each.relation == plan.relation), None)
    progress("fitting")
    synth = prepared.fit()
    withheld = synth.withheld_epsilon_
    prices = [
        {
            "bound": bound,
            "epsilon": float(getattr(synth, f"{bound}_epsilon_", np.nan)),
            "withheld": withheld.get(bound, np.nan),
        }
        for bound in (each.name for each in BY_DRAWS)
    ]
    bound = synth.settings.bound
    if not bound.over_draws:  # what it is really charged for: a supremum over parameters, not over draws
        prices.insert(0, {"bound": bound.name, "epsilon": synth.epsilon_, "withheld": synth.epsilon_})
    if not isinstance(synth.settings.model, Boxed):
        return Cost(account, balance, prices, synth.outlook().advice(), [])
    advice = f"Acceptance {synth.acceptance_:.3g}; mass at the edge of the box {synth.edge_mass_:.3g}."
    wider: list[Row] = []
    if (
        isinstance(plan.settings.standard, Strict)
        and plan.settings.epsilon is not None
        and isinstance(plan.settings.family, str)
    ):
        # On a simulated outcome: public.
        target, box = plan.settings.epsilon / plan.settings.copies, plan.settings.standard.box
        wider = _rows(
            box_cost(plan.settings.formula, prepared.table, box, epsilon=target, family=plan.settings.family)
        )
    return Cost(account, balance, prices, advice, wider)


def _largest_gap(synth: Synthesizer) -> float:
    """The ECDF distance, averaged over copies."""
    rows = _rows(synth.utility_columns())
    pooled = (row for row in rows if (row["copy"], row["statistic"]) == ("pooled", "ecdf_max"))
    return float(str(next(pooled)["synthetic"]))


def _rows(columns: Mapping[str, Any]) -> list[Row]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
