"""Trials: what a plan would cost and lose, fitted and thrown away. Confidential.

Nothing is released, so that nothing is paid; but whoever chooses by what is shown here has looked. The ledger
counts it, and the certificate of a release says how often its data was looked at.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np

from hedgerow.advice.elicit import box_cost, expected_errors, public_design
from hedgerow.comparison import compare
from hedgerow.errors import CalibrationError, HedgerowWarning
from hedgerow.evidence.attack import Attack
from hedgerow.evidence.audit import Audit
from hedgerow.evidence.more_records import contraction
from hedgerow.evidence.utility.overview import shorten_overview
from hedgerow.fitted import Noised
from hedgerow.mechanism.noisy.chain.run import NO_FORECAST, chain_withheld_epsilon
from hedgerow.mechanism.noisy.run import advise_margin, recipe_of, settle_noise, withheld_epsilon
from hedgerow.privacy.bounds import LIPSCHITZ, LOCAL
from hedgerow.privacy.ranges import Everywhere
from hedgerow.privacy.standards import ADP, RangeAveraged, RangeTruncated, Standard, Unweighted
from hedgerow.privacy.strict import Bounded, Boxed, Strict
from hedgerow.privacy.terms import Terms
from hedgerow.release.confidential import LOOKED_AT, tabulate_columns
from hedgerow.release.ledger import Balance, open_ledger
from hedgerow.release.ledger.accounts import charge_unit
from hedgerow.release.ledger.charges import WITHHELD, charge_of
from hedgerow.release.plan import Plan
from hedgerow.release.prepare import Prepared, prepare
from hedgerow.synthesizer import Synthesizer
from hedgerow.tables.table import Table

Row = dict[str, Any]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Cost:
    """What a plan would spend, and from where; confidential."""

    account: str  # the dataset's name, or what it is called without one
    # By relation: the price (None: none is claimed), and what was recorded for this data under it.
    accounts: list[tuple[str, float | None, Balance | None]]
    prices: list[Row]
    advice: str  # whether more draws would raise the price, or how well a box fits
    wider: list[Row]  # what wider boxes would cost, for a strict plan
    expected: list[Row] = field(default_factory=list)  # errors of noisy statistics, at several ε; public
    utility: list[Row] = field(default_factory=list)  # what copies of this fit keep
    shapes: dict[str, Any] = field(default_factory=dict)
    columns: list[Row] = field(default_factory=list)  # of several: what each costs alone, and its share


@dataclass(frozen=True)
class Compared:
    """Standards side by side: prices, and what their copies keep; confidential."""

    rows: list[Row]
    utility: list[Row]
    shapes: dict[str, Any]
    lost: list[Row]  # whether rows can be told apart, and what is left of the plan's analyses


def _local_bound(plan: Plan) -> str:
    """The local bound to show beside others: the plan's own, if it is one."""
    bound = plan.settings.bound
    return bound.name if bound.local else LIPSCHITZ.name


def compare_standards(plan: Plan, *, progress: Progress) -> Compared:
    """The standards side by side; those with a range if the plan has one."""
    prepared = _look(plan, "compare", progress)
    # Unweighted has no weights to scale down, so that it meets no target.
    standards: dict[str, Standard] = {"unweighted": Unweighted()} if plan.settings.epsilon is None else {}
    standards["adp"] = ADP()
    if plan.ranged:
        standards["range-averaged"] = RangeAveraged(plan.settings.standard.range)
        standards["range-truncated"] = RangeTruncated(plan.settings.standard.range)
        if getattr(plan.settings.standard, "public_weight", "alpha") == "one":
            standards["range-truncated, as printed"] = plan.settings.standard
    if plan.settings.noisy is not None:
        standards["strict"] = plan.settings.noisy
    progress("fitting")
    asked = prepared.plan.settings
    own: dict[str, Any] = {}
    if not isinstance(asked.standard, Bounded):
        own = {"weights": asked.weights, "bound": asked.bound}
    told = {"bound"} if asked.bound.takes_delta else {"bound", "delta"}  # under other bounds nobody chose a δ
    terms = {entry.name: getattr(asked, entry.name) for entry in fields(Terms) if entry.name not in told}
    run = partial(
        compare, {each.outcome: each for each in asked.columns}, prepared.table, rules=asked.rules,
        design_weight=asked.design_weight, left_out=prepared.withheld, keep=plan.outputs.keep,
        seed=plan.seed, **own, **terms,
    )  # fmt: skip
    try:
        comparison = run(standards=standards)
    except CalibrationError:
        if asked.noisy is None:
            raise
        note = "The other standards cannot meet this target, which noise can: they are left out."
        warnings.warn(note, HedgerowWarning, stacklevel=2)
        comparison = run(standards={"strict": asked.noisy})
    table = Table.of(comparison.table)
    rows = [dict(zip(table.columns, values, strict=True)) for values in table.frame.iter_rows()]
    rows = [
        row
        | {"withheld": row[f"withheld_{_local_bound(plan)}"], "ecdf_max": _largest_gap(synth)}
        | {"total": synth.total_epsilon_, "withheld_total": _price_withheld(synth)}
        for row, synth in zip(rows, comparison.synthesizers.values(), strict=True)
    ]
    lost = {
        label: shorten_overview(synth.utility_overview(plan.analyses, most=LOOKED_AT))
        for label, synth in comparison.synthesizers.items()
    }
    names = dict.fromkeys(name for figures in lost.values() for name in figures)
    beside = [{"": name} | {label: figures.get(name) for label, figures in lost.items()} for name in names]
    return Compared(rows, comparison.shown_utility, comparison.shape_columns, beside)


def _price_withheld(synth: Synthesizer) -> float:
    """What all copies cost with the outcome withheld; NaN of units, whose rows are withheld together."""
    done, settings = synth._done(), synth.settings
    if isinstance(done, Noised):
        return done.withheld_epsilon()
    if isinstance(settings.standard.range, Everywhere):
        return synth.total_epsilon_
    return synth._need().withheld_total() if settings.unit is None else np.nan


def try_targets(plan: Plan, targets: Sequence[float], *, progress: Progress) -> list[Row]:
    """One row per target: the scale it needs, what one copy costs then, what is lost."""
    prepared, copies = _look(plan, "calibrate", progress), plan.settings.copies
    together = copies > 1 and plan.settings.bound.priced_for == "over all copies"  # no share for one copy
    rows = []
    for target in sorted(set(targets)):
        progress(f"calibrating to {target:g}")
        share = np.nan if together else target / copies
        row: Row = {"epsilon": float(target), "per_copy": share, "met": "no"}
        row |= dict.fromkeys(("scale", "mean_alpha", "achieved", "withheld", "ecdf_max"), np.nan)
        with suppress(CalibrationError):
            synth = prepared.fit(epsilon=float(target))
            row |= {"met": "yes", "achieved": synth.epsilon_, "ecdf_max": _largest_gap(synth)}
            if plan.settings.noisy is None:
                row |= {"scale": synth.scale_, "mean_alpha": float(synth.alpha_.mean())}
                row["withheld"] = synth.withheld_epsilon_.get(_local_bound(plan), np.nan)
            else:
                row["withheld"] = synth._noised("statistics_").withheld_epsilon()
        rows.append(row)
    return rows


def audit_plan(plan: Plan, *, riskiest: int | None, sample: int | None, progress: Progress) -> Audit:
    """Fit the plan, then withhold outcomes one by one and see what changes."""
    prepared = _look(plan, "audit", progress)
    progress("fitting")
    synth = prepared.fit()
    progress("withholding outcomes")
    return synth.audit(riskiest=riskiest, sample=sample)


def attack_plan(plan: Plan, *, record: int | None, trials: int, progress: Progress) -> Attack:
    """Fit the plan, then try to tell from copies whether one outcome was used."""
    prepared = _look(plan, "attack", progress)
    progress("fitting")
    synth = prepared.fit()
    progress("attacking")
    return synth.attack(record, trials=trials)


def contract(plan: Plan, *, progress: Progress) -> list[Row]:
    """Each bound against the number of records, on nested subsamples."""
    prepared = _look(plan, "contraction", progress)
    progress("refitting on subsamples")
    left_out, keep = prepared.withheld, plan.outputs.keep
    make, table = prepared.synthesizer, prepared.table
    return _rows(contraction(make, table, left_out=left_out, keep=keep, seed=plan.seed))


def cost_of(plan: Plan, *, new_dataset: bool = False, progress: Progress) -> Cost:
    """What a release would be charged, what remains, and the price as fitted; raises if it is refused."""
    prepared = _read(plan, progress)
    asked = prepared.plan.settings
    account = plan.dataset or "this data, without a name"
    with open_ledger(plan.ledger) as ledger:
        fingerprint = ledger.fingerprint(prepared.table, prepared.outcomes)
        request: dict[str, Any] = {"fingerprint": fingerprint, "dataset": plan.dataset}
        price: dict[str, Any] = {"epsilon": asked.epsilon}
        request |= {
            "relation": plan.relation,
            "new_dataset": new_dataset,
            **charge_unit(price, plan.rows_charged),
        }
        request |= {"sketch": ledger.sketch(prepared.source.frame, *prepared.outcomes)}
        balances = ledger.check(**request)
        if asked.noisy is not None:  # its price is known, and nothing of the outcome is shown
            return _cost_of_noise(prepared, account, balances)
        ledger.look("cost", fingerprint=fingerprint, dataset=plan.dataset, plan=plan.digest)
        progress("fitting")
        synth = prepared.fit()
        charge = charge_unit(price | charge_of(synth, plan.relation), plan.rows_charged)
        balances = ledger.check(**request, bound=charge["bound"], withheld=charge["withheld"])
    found = {each.relation: each for each in balances}
    accounts = [(plan.relation, charge["epsilon"], found.get(plan.relation))]
    if plan.relation != WITHHELD:
        accounts.append((WITHHELD, charge["withheld"], found.get(WITHHELD)))
    progress("making copies")
    kept: dict[str, Any] = {"utility": tabulate_columns(synth.copies_label, synth.utility_columns())}
    kept["shapes"] = synth.shape_columns()
    if len(asked.columns) > 1:
        kept["columns"] = list(Table.of(synth.price_by_column()).frame.iter_rows(named=True))
        kept["columns"].append({"column": "all together", "alone": synth.total_epsilon_, "share": 1.0})
    withheld, bound = synth.withheld_epsilon_, synth.settings.bound
    pricing = synth._need().outcome.pricing
    prices = [
        {
            "bound": each.name,
            "epsilon": each.epsilon(pricing) if each.has(pricing) else np.nan,
            "total": each.total(pricing, asked.copies) if each.has(pricing) else np.nan,
            "withheld": withheld.get(each.name, np.nan),
        }
        for each in LOCAL
    ]
    if not bound.local:  # what it is really charged for: a supremum over parameters, not over draws
        own = {"epsilon": synth.epsilon_, "total": synth.total_epsilon_, "withheld": synth.epsilon_}
        prices.insert(0, {"bound": bound.name, **own})
    if not isinstance(synth.settings.model, Boxed):
        sure = "The price does not depend on draws."
        advice = synth.outlook().advice() if bound.over_draws else sure
        return Cost(account, accounts, prices, advice, [], **kept)
    advice = f"Acceptance {synth.acceptance_:.3g}; mass at the edge of the box {synth.edge_mass_:.3g}."
    wider: list[Row] = []
    standard, family, target = asked.standard, asked.columns[0].family, asked.epsilon
    box = standard.box if isinstance(standard, Strict) else None
    if box is not None and target is not None and isinstance(family, str):
        # On a simulated outcome: public.
        epsilon = target / asked.copies
        costs = box_cost(asked.column.formula, prepared.table, box, epsilon=epsilon, family=family)
        wider = _rows(costs)
    return Cost(account, accounts, prices, advice, wider, **kept)


def _cost_of_noise(prepared: Prepared, account: str, balances: list[Balance]) -> Cost:
    """What noisy statistics cost, and what errors they will have: from public things alone."""
    plan, asked = prepared.plan, prepared.plan.settings
    table, bound = Table.of(prepared.table), asked.bound
    withheld = chain_withheld_epsilon(asked) if asked.by_name else 0.0
    if not asked.by_name:
        recipe = recipe_of(asked, table, public_design(asked.column.formula, table))
        withheld, bound = withheld_epsilon(recipe), settle_noise(asked, recipe).bound
    found = {each.relation: each for each in balances}
    accounts = [(plan.relation, asked.epsilon, found.get(plan.relation))]
    if plan.relation != WITHHELD:
        accounts.append((WITHHELD, withheld, found.get(WITHHELD)))
    own = {"bound": bound.name, "epsilon": asked.epsilon, "total": asked.epsilon, "withheld": withheld}
    sure = "The price is set beforehand, for any number of copies. Nothing of the protected column was shown."
    if asked.by_name:
        return Cost(account, accounts, [own], f"{sure} {NO_FORECAST}", [], [])
    told = "\n".join(filter(None, [sure, advise_margin(asked, table.rows)]))
    return Cost(account, accounts, [own], told, [], _rows(expected_errors(asked, prepared.table)))


def _look(plan: Plan, what: str, progress: Progress) -> Prepared:
    """The plan's data, once the ledger has counted that it is looked at."""
    prepared = _read(plan, progress)
    with open_ledger(plan.ledger) as ledger:
        fingerprint = ledger.fingerprint(prepared.table, prepared.outcomes)
        ledger.look(what, fingerprint=fingerprint, dataset=plan.dataset, plan=plan.digest)
    return prepared


def _read(plan: Plan, progress: Progress) -> Prepared:
    progress("reading")
    prepared = prepare(plan)
    for note in prepared.source.notes:
        warnings.warn(f"Reading the data: {note}", HedgerowWarning, stacklevel=2)
    return prepared


def _largest_gap(synth: Synthesizer) -> float:
    """The ECDF distance, averaged over copies; of several protected columns the largest."""
    rows = [row for row in _rows(synth.utility_columns()) if row["copy"] == "pooled"]
    return max(float(str(row["synthetic"])) for row in rows if row["statistic"] == "ecdf_max")


def _rows(columns: Mapping[str, Any]) -> list[Row]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
