"""compare, calibrate, cost, audit, attack, contraction: what a release would cost, before it is made.

Everything these commands print is computed from the confidential data and is confidential; the ledger counts
that it was looked at.
"""

import io
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from hedgerow.cli.options import NewDataset, with_plan
from hedgerow.cli.plan import EXPECTED, plan_from, write_new
from hedgerow.cli.screen import CONFIDENTIAL, Screen
from hedgerow.errors import CalibrationError, SettingError
from hedgerow.numerics.rounding import format_count

_SHOWN = (
    "epsilon",
    "lipschitz",
    "oscillation",
    "exact",
    "renyi",
    "withheld",
    "scale",
    "mean_alpha",
)


@with_plan
def compare(flags: dict[str, Any], screen: Screen) -> None:
    """Compare the standards on one table: price, price with the outcome withheld, what is lost.

    Example: hedgerow compare payroll.csv --formula "payroll ~ log(employees)" --radius 0.4,1.8
    """
    from hedgerow.release.trial import compare_standards

    # A range alone asks for the standards that use one.
    if flags["standard"] is None and any(
        flags[n] is not None for n in ("radius", "brackets", "bounds", "range")
    ):
        flags = flags | {"standard": "range-truncated"}
    plan = plan_from(flags, target_needed=False)
    with screen.progress(3) as tell:
        compared = compare_standards(plan, progress=tell)
    # Standards beside each other: as rows, their many columns do not fit into a terminal.
    prices = [{"": name} | {row["standard"]: row[name] for row in compared.rows} for name in _SHOWN]
    screen.table(f"ε of one copy. {CONFIDENTIAL}", prices)
    screen.utility(compared.utility, compared.shapes)
    screen.table(f"Whether rows and analyses can be told apart. {CONFIDENTIAL}", compared.lost)
    found = {"standards": compared.rows, "utility": compared.utility, "lost": compared.lost}
    screen.result({"confidential": True, **found})


@with_plan
def calibrate(
    flags: dict[str, Any],
    screen: Screen,
    at: Annotated[
        list[float] | None, typer.Option(help="A target ε to try; may be given several times.")
    ] = None,
) -> None:
    """Try targets: the scale each one puts on the weights, and what is left of the data.

    Example: hedgerow calibrate payroll.csv --formula "payroll ~ log(employees)" --at 2 --at 5.7 --at 12
    """
    from hedgerow.release.trial import try_targets

    plan = plan_from(flags, target_needed=False)
    targets = [target for target in (*(at or []), plan.settings.epsilon) if target is not None]
    if not targets:
        raise SettingError("calibrate needs a target: --at 2 --at 5.7, or --epsilon.")
    with screen.progress(1 + len(targets)) as tell:
        rows = try_targets(plan, targets, progress=tell)
    screen.table(f"Targets over {format_count(plan.settings.copies, 'copy')}. {CONFIDENTIAL}", rows)
    screen.result({"confidential": True, "targets": rows})
    if not any(row["met"] == "yes" for row in rows):
        raise CalibrationError(
            "None of the targets can be met. Use more records, a shorter formula, another range or fewer "
            "copies."
        )


@with_plan
def audit(
    flags: dict[str, Any],
    screen: Screen,
    riskiest: Annotated[
        int | None,
        typer.Option(
            help="How many of the riskiest records get weights computed anew (20; 0 for Markov chains)."
        ),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(help="How many further records, picked at random (10; 0 for Markov chains).")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(help="Draw the losses into this PNG file, which must not exist yet; confidential."),
    ] = None,
) -> None:
    """Withhold outcomes one by one and compute what changes: a loss above the price is a finding.

    Example: hedgerow audit payroll.csv --formula "payroll ~ log(employees)" --epsilon 5.7
    """
    from hedgerow.release.trial import audit_plan

    plan = plan_from(flags, target_needed=False)
    with screen.progress(3) as tell:
        losses = audit_plan(plan, riskiest=riskiest, sample=sample, progress=tell)
    screen.say(*str(losses).split("\n"))
    if picture is not None:
        drawn = io.BytesIO()
        losses.plot().savefig(drawn, format="png", dpi=110)
        write_new(picture, drawn.getvalue())
        screen.say(f"Drawn in {picture}. {CONFIDENTIAL}")
    names = ("kind", "epsilon", "of_claim", "largest_fixed", "largest_recomputed", "largest_reverse")
    figures = {n: getattr(losses, n) for n in names}
    figures |= {"records": len(losses.fixed), "recomputed": len(losses.chosen)}
    breaches = {n: getattr(losses, n).tolist() for n in ("breaches", "reverse_breaches")}
    screen.result({"confidential": True, **figures, **breaches})


@with_plan
def attack(
    flags: dict[str, Any],
    screen: Screen,
    record: Annotated[
        int | None, typer.Option(help="Row to attack, from 0 up; the most exposed one by default.")
    ] = None,
    trials: Annotated[int, typer.Option(help="Copies made from each of the two tables.")] = 2000,
) -> None:
    """Try to tell from copies whether one outcome was used: a lower bound on ε next to the claimed one.

    Example: hedgerow attack payroll.csv --formula "payroll ~ log(employees)" --epsilon 5.7
    """
    from hedgerow.release.trial import attack_plan

    plan = plan_from(flags, target_needed=False)
    with screen.progress(3) as tell:
        attempt = attack_plan(plan, record=record, trials=trials, progress=tell)
    screen.say(*str(attempt).split("\n"))
    screen.result({"confidential": True, **asdict(attempt), "breach": attempt.breach})


@with_plan
def contraction(flags: dict[str, Any], screen: Screen) -> None:
    """Refit on nested subsamples and show each bound against the number of records.

    Example: hedgerow contraction payroll.csv --formula "payroll ~ log(employees)"
    """
    from hedgerow.release.trial import contract

    plan = plan_from(flags, target_needed=False)
    with screen.progress(2) as tell:
        rows = contract(plan, progress=tell)
    screen.table(f"ε of one copy by number of records. {CONFIDENTIAL}", rows)
    screen.result({"confidential": True, "sizes": rows})


@with_plan
def cost(flags: dict[str, Any], screen: Screen, new_dataset: NewDataset = False) -> None:
    """Say what a plan would spend, from which account, and whether the budget covers it. Releases nothing.

    Example: hedgerow cost --plan plan.yaml
    """
    from hedgerow.release.trial import cost_of

    plan = plan_from(flags, target_needed=False)
    with screen.progress(3) as tell:
        estimate = cost_of(plan, new_dataset=new_dataset, progress=tell)
    copies = format_count(plan.settings.copies, "copy")
    rows = "" if (plan.rows or 1) == 1 else f" and {plan.rows} rows of one person or firm"
    facts: dict[str, str] = {"account": estimate.account}
    for number, (relation, price, balance) in enumerate(estimate.accounts):
        also, unbounded = ("also, ", "without bound") if number else ("", "no ε is claimed")
        spend = unbounded if price is None else f"{price:g} for {copies}{rows}"
        facts |= {f"{also}relation": relation, f"{also}would spend": spend}
        facts[f"{also}spent so far"] = "nothing yet" if balance is None else f"{balance.spent:zg}"
        if balance is None or balance.remaining is None:
            facts[f"{also}budget"] = "none is set for this account"
        else:
            facts[f"{also}remaining"] = f"{balance.remaining:zg} of {balance.budget:g}"
    screen.facts(list(facts.items()))
    known = plan.settings.noisy is not None  # beforehand, from public things alone
    title = "ε of all copies" if known else f"ε of one copy as fitted. {CONFIDENTIAL}"
    screen.table(title, estimate.prices)
    screen.table(f"ε of all copies of each column alone, and its share. {CONFIDENTIAL}", estimate.columns)
    screen.say(*estimate.advice.split("\n"))
    screen.table("What wider boxes would leave of the records, on a simulated outcome", estimate.wider)
    screen.table(EXPECTED, estimate.expected)
    screen.utility(estimate.utility, estimate.shapes)
    result = {"confidential": True, "facts": facts, "prices": estimate.prices, "advice": estimate.advice}
    result |= {"columns": estimate.columns} if estimate.columns else {}
    result |= {"utility": estimate.utility} if estimate.utility else {}
    result |= {"wider_boxes": estimate.wider} if estimate.wider else {}
    screen.result(result | ({"expected_errors": estimate.expected} if estimate.expected else {}))
