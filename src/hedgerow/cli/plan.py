"""init, box, schema, datasets: plan files, boxes for them, our JSON Schemas, tables to try things on."""

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli.options import with_plan, with_screen
from hedgerow.cli.screen import Screen
from hedgerow.errors import FileError, HedgerowError, SettingError, reason_of, show_controls

if TYPE_CHECKING:
    from hedgerow.release.plan import Plan

EXPECTED = "Errors to expect of line, log σ and distribution (plain: without privacy), simulated. Public"


def plan_from(flags: dict[str, Any], *, target_needed: bool = True) -> "Plan":
    """The plan of a command line: a plan file, flags, or flags on top of a file."""
    from hedgerow.release.plan import Plan
    from hedgerow.release.plan.flags import from_flags

    given = {name: str(value) if isinstance(value, Path) else value for name, value in flags.items()}
    file = given.pop("plan")
    base = Plan.load(file) if file is not None else None
    return from_flags(given, base=base, target_needed=target_needed)


@with_plan
def init(
    flags: dict[str, Any],
    screen: Screen,
    out: Annotated[
        Path | None, typer.Option(help="The plan file to write; without it the plan is printed.")
    ] = None,
    command: Annotated[bool, typer.Option("--command", help="Print the command that says the same.")] = False,
    protect: Annotated[
        str | None,
        typer.Option(
            help="Columns to protect, in the order of synthesis: wage,bonus,status. Proposes the rest. "
            "A name with a comma goes in backticks."
        ),
    ] = None,
    predictors: Annotated[
        str | None,
        typer.Option(
            help="With --protect: public columns that formulas read (default: all usable ones): age,sector."
        ),
    ] = None,
    metadata: Annotated[
        str | None,
        typer.Option(help='With --protect: a file in SDV\'s words, or "{wage: {range_min: 0}}". Public.'),
    ] = None,
    shared: Annotated[
        str | None,
        typer.Option(help="With --protect and --unit: columns that all rows of a unit share: income."),
    ] = None,
) -> None:
    """Write a commented plan file, from flags, from columns to protect or, on a terminal, from questions.

    For instance:

      hedgerow init payroll.csv --formula "payroll ~ log(employees)" --epsilon 5.7 --out plan.yaml

      hedgerow init people.csv --protect wage,bonus --metadata "{wage: {range_min: 1}, bonus: {range_min: 0}}"
      --epsilon 6 --out plan.yaml

      hedgerow init --plan plan.yaml --command
    """
    from dataclasses import replace

    from hedgerow.release.plan.commented import commented_text
    from hedgerow.release.plan.flags import command as as_command
    from hedgerow.release.prepare import hint_of_plan

    remarks: tuple[str, ...] = ()
    no_formula = all(flags[name] is None for name in ("formula", "columns", "plan"))
    if (
        no_formula
        and all(each is None for each in (protect, predictors, metadata, shared))
        and sys.stdin.isatty()
    ):
        flags, protect = _ask(flags)
    if protect is not None:
        flags, remarks = _propose(flags, protect, predictors, metadata, shared)
    elif any(each is not None for each in (predictors, metadata, shared)):
        raise SettingError(
            "--predictors, --metadata and --shared go with --protect: name the columns to protect."
        )
    plan = plan_from(flags)
    for hint in hint_of_plan(plan):
        screen.note(hint)
    if command:
        screen.say(as_command(plan))
        screen.result({"command": as_command(plan)})
        return
    if out is None:
        screen.say(*commented_text(plan, remarks).rstrip().split("\n"))
        screen.result(plan.mapping())
        return
    paths: dict[str, Any] = {  # as a plan file at `out` should name them: relative to itself
        name: os.path.relpath(path, out.parent)
        for name in ("data", "ledger")
        if (path := getattr(plan, name)) is not None and not Path(path).is_absolute()
    }
    write_new(out, commented_text(replace(plan, **paths), remarks).encode())
    for remark in remarks[1:]:  # what was guessed; the first says in general how to go on from there
        screen.note(remark)
    screen.say(f"{out} is written. Check it, then: hedgerow synthesize --plan {out} --out release")
    screen.result({"plan": str(out)})


def _propose(
    flags: dict[str, Any], protect: str, predictors: str | None, metadata: str | None, shared: str | None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The flags with columns as proposed, and remarks for their owner."""
    from hedgerow.release import text
    from hedgerow.release.plan.keys import write_column
    from hedgerow.release.plan.propose import propose, read_metadata
    from hedgerow.tables import files as formats

    for name in ("plan", "formula", "columns"):
        if flags[name] is not None:
            raise SettingError(f"--protect and --{name} exclude each other: --protect proposes formulas.")
    if flags["data"] is None:
        raise SettingError("--protect needs the file, whose columns it goes by: hedgerow init people.csv …")
    told: dict[str, Any] = {"format": flags["read_format"], "missing": flags["missing_word"]}
    told |= {name: flags[name] for name in ("encoding", "delimiter", "decimal", "text", "header", "sheet")}
    read = formats.read(flags["data"], **{name: value for name, value in told.items() if value is not None})
    derived = {} if flags["derived"] is None else text.load(flags["derived"], "--derived")
    left_out = [name for name in read.frame.column_names if name in (*(flags["drop"] or ()), *derived)]
    declared = {} if metadata is None else read_metadata(_load_metadata(metadata))
    names = None if predictors is None else _split_names(predictors)
    found = propose(
        read.frame.drop_columns(left_out), _split_names(protect), declared, names,
        unit=flags["unit"], shared=_split_names(shared or ""),
    )  # fmt: skip
    columns = {name: write_column(column) for name, column in found.columns.items()}
    flags = flags | {"columns": text.dump_line(columns)}
    if any(flags[name] is not None for name in ("standard", "weights", "bound", "preset", "limits")):
        return flags, found.remarks
    return flags | {"weights": "{kind: scalar, alpha: 1}", "bound": "oscillation"}, (
        *found.remarks,
        "One weight for all rows: weights that follow risk would leave out rare classes, codes and gaps.",
    )


def _split_names(given: str) -> list[str]:
    """Names between commas; one that has a comma itself stands in backticks, as in a formula."""
    names = (quoted or plain.strip() for quoted, plain in re.findall(r"\s*`([^`]+)`\s*|([^,]+)", given))
    return [name for name in names if name]


def _load_metadata(given: str) -> Any:
    from hedgerow.release import text

    if given.lstrip().startswith("{"):
        return text.load(given, "--metadata")
    try:
        return text.load(Path(given).read_bytes(), Path(given).name)
    except OSError as error:
        raise FileError(f"--metadata {Path(given).name}: cannot be read ({reason_of(error)}).") from None


def _ask(flags: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The flags with what was missing asked for, in the order in which an owner thinks.

    And several columns to protect, of which the rest is proposed. What cannot be is asked again at once.
    """
    from hedgerow.release.plan.flags import from_flags
    from hedgerow.tables import files as formats
    from hedgerow.tables.formula import parse, quote
    from hedgerow.tables.table import Table

    answers = dict(flags)

    def fill(name: str, question: str, default: Any = None, **kind: Any) -> None:
        if answers[name] is None:
            answers[name] = typer.prompt(question, default=default, **kind)

    def accept(check: Callable[[str], Any]) -> Callable[[str], str]:
        def read(answer: str) -> str:
            try:
                check(answer)
            except HedgerowError as error:
                raise typer.BadParameter(show_controls(str(error))) from None
            return answer

        return read

    fill("data", "Confidential file", type=Path)
    given = {name: answers[name] for name in ("encoding", "delimiter", "header")}
    table = Table.of(formats.read(answers["data"], **given).frame)
    columns = table.columns
    typer.echo(show_controls("Its columns: " + ", ".join(columns[:40]) + (" …" if len(columns) > 40 else "")))
    outcome = typer.prompt(
        "Column to protect, or several with commas",
        value_proc=accept(lambda given: table.require(_names_to_protect(given, columns))),
    )
    names = _names_to_protect(outcome, columns)
    if len(names) > 1:
        _ask_for_price(answers, fill)
        return answers, outcome
    left = f"{quote(names[0])} ~ "
    predictors = typer.prompt(
        "Public columns that explain it, with + between them",
        default="1",
        value_proc=accept(lambda given: parse(left + given, table)),
    )
    answers["formula"] = left + predictors

    def fits(name: str) -> Callable[[str], str]:
        asked = {"formula": left + "1", "family": answers["family"], "standard": answers["standard"]}
        return accept(lambda given: from_flags(asked | {name: given, "epsilon": 1.0}))

    fill(
        "family",
        "Distribution (lognormal, normal, gamma, poisson, …)",
        "lognormal",
        value_proc=accept(
            lambda given: from_flags({"formula": left + "1", "family": given}, target_needed=False)
        ),
    )
    typer.echo(
        "strict is differential privacy, within limits that you can defend; adp makes a statement about this "
        "table alone; range-averaged and range-truncated are for a public that knows ranges; unweighted is "
        "the plain model (docs/tutorials/choosing-a-guarantee.md)."
    )
    limited = str(answers["family"]).removeprefix("zero_") in ("lognormal", "normal")
    fill("standard", "Standard", "strict" if limited else "adp", value_proc=accept(_check_standard))
    if answers["standard"] == "strict":
        fill(
            "limits",
            "Smallest and largest value that matter, known without looking (1000,1e9)",
            value_proc=fits("limits"),
        )
        fill("because", "How do you know? (goes into the certificate)")
    if answers["standard"] in ("range-averaged", "range-truncated"):
        if not any(answers[name] for name in ("brackets", "bounds", "range")):
            known = "The public knows each value to within these factors"
            fill("radius", known, "0.4,1.8", value_proc=fits("radius"))
        fill("because", "Why is that public? (goes into the certificate)")
    _ask_for_price(answers, fill)
    return answers, None


def _check_standard(given: str) -> None:
    from hedgerow.release.plan.kinds import STANDARDS

    if given not in STANDARDS:
        raise SettingError(f"The standard must be one of {', '.join(STANDARDS)}, got '{given}'.")


def _names_to_protect(given: str, columns: Sequence[str]) -> list[str]:
    return [given.strip()] if given.strip() in columns else _split_names(given)


def _ask_for_price(answers: dict[str, Any], fill: Callable[..., None]) -> None:
    if not answers["no_target"]:
        fill("epsilon", "Target ε over all copies", type=float)
    fill("copies", "Copies", 1)


@with_screen
def box(
    predictors: Annotated[Path, typer.Argument(help="A file with the predictors.", show_default=False)],
    screen: Screen,
    formula: Annotated[str, typer.Option(help='"payroll ~ log(employees)"; the outcome is not read.')],
    epsilon: Annotated[
        float, typer.Option(help="Target ε: with a box of one copy, with limits of all.")
    ] = 1.0,
    at: Annotated[
        list[str] | None,
        typer.Option(
            help='For these predictors the median lies between: "{employees: 10, median: [200000, 500000]}".'
        ),
    ] = None,
    spread: Annotated[
        str | None,
        typer.Option(help="The 90 % quantile over the median (normal: minus it) lies between: 1.5,3."),
    ] = None,
    given: Annotated[
        str | None, typer.Option("--box", help='A box to price as it is: "{z: [0, 1], sigma: [0.5, 2]}".')
    ] = None,
    limits: Annotated[
        str | None,
        typer.Option(help="Instead of a box, limits of the outcome: shows which errors to expect. 1000,1e9."),
    ] = None,
    family: Annotated[str, typer.Option(help="lognormal or normal; with limits also zero_.")] = "lognormal",
) -> None:
    """Show beforehand what a strict release will lose: the errors that limits make, or what a box costs.

    With --limits the errors to expect at several ε, on a simulated outcome. Or find a box from public
    statements, and see what a wider one would cost: as many --at as the formula has coefficients, and
    --spread; or --box to price a box as it is.

    Example: hedgerow box payroll.csv --formula "payroll ~ log(employees)" --limits 1000,1e9 --epsilon 0.5

    Example: hedgerow box payroll.csv --formula "payroll ~ log(employees)" --spread 1.5,3
    --at "{employees: 1, median: [20000, 50000]}" --at "{employees: 100, median: [2000000, 5000000]}"
    """
    # The protected column is not looked at: what is printed is public.
    from hedgerow.advice.elicit import box_cost, box_from_medians
    from hedgerow.privacy.strict import Strict
    from hedgerow.release import text
    from hedgerow.tables import files as formats
    from hedgerow.tables.predictors import spell_categories

    source = formats.read(predictors)
    table = source.frame
    formula, notes = spell_categories(formula, source)
    for note in notes:  # of predictors alone: those of the file tell of the protected column too
        screen.note(note)
    if limits is not None:
        if at or spread is not None or given is not None:
            raise SettingError("--limits go without a box: leave out --at, --spread and --box.")
        _show_errors(formula, table, limits, epsilon, family, screen)
        return
    if given is not None:
        if at or spread is not None:
            raise SettingError("--box is priced as it is: leave out --at and --spread.")
        ends = dict(Strict(_parse_mapping(given, "--box")).box or {})
    else:
        if not at or spread is None:
            raise SettingError(
                "Give --limits LOW,HIGH; or, for a box, --at for every coefficient and --spread, or --box."
            )
        ratio: dict[str, Any] = {
            "top_decile_ratio" if family == "lognormal" else "top_decile_gap": _check_pair(
                [text.plain(end.strip()) for end in spread.split(",")], "--spread"
            )
        }
        points = []
        for statement in at:
            values = _parse_mapping(statement, "--at")
            if "median" not in values:
                raise SettingError(
                    "--at needs a median with two ends, and a value for every predictor. See --help."
                )
            median = _check_pair(values.pop("median"), "--at")
            points.append((values, median))
        ends = box_from_medians(formula, table, points, family=family, **ratio)
    columns = box_cost(formula, table, ends, epsilon=epsilon, family=family)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    rounded = {name: [float(f"{end:.6g}") for end in pair] for name, pair in ends.items()}
    standard = text.dump_line({"kind": "strict", "box": rounded, "reason": "why you may know this"})
    screen.say(f"--standard '{standard}'")
    screen.say(
        f"What a box this many times as wide leaves of {table.num_rows} records at ε = {epsilon:g}, on an "
        "outcome simulated at its centre. Public: the protected column was not read."
    )
    screen.table("Wider boxes", rows)
    screen.result({"box": rounded, "epsilon": epsilon, "cost": rows})


def _show_errors(formula: str, table: Any, limits: str, epsilon: float, family: str, screen: Screen) -> None:
    """The errors that limits make at several ε."""
    from hedgerow.advice.elicit import expected_errors
    from hedgerow.mechanism.noisy.run import advise_margin
    from hedgerow.privacy.settings import Settings
    from hedgerow.privacy.strict import Strict
    from hedgerow.release import text

    ends = _check_pair([text.plain(end.strip()) for end in limits.split(",")], "--limits")
    asked = Settings.of(formula, family, standard=Strict(limits=ends), epsilon=epsilon)
    columns = expected_errors(asked, table, factors=(0.25, 0.5, 1.0, 2.0, 4.0))
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    screen.say(f"--standard strict --limits {limits}")
    screen.table(f"{EXPECTED}: the protected column was not read", rows)
    screen.say(advise_margin(asked, len(table)))
    screen.result({"limits": list(ends), "expected_errors": rows})


def _parse_mapping(given: str, flag: str) -> dict[str, Any]:
    from hedgerow.release import text

    parts = text.load(given, flag)
    if not isinstance(parts, dict):
        raise SettingError(f"{flag} takes YAML on one line, with a key for each part. See --help.")
    return parts


def _check_pair(given: Any, flag: str) -> tuple[float, float]:
    if not isinstance(given, list) or len(given) != 2 or not all(isinstance(x, int | float) for x in given):
        raise SettingError(f"{flag} needs two numbers, a lower and an upper end.")
    return float(given[0]), float(given[1])


@with_screen
def schema(
    what: Annotated[str, typer.Argument(help="plan or certificate.", show_default=False)], screen: Screen
) -> None:
    """Print the JSON Schema of plans or of certificates.

    Example: hedgerow schema plan > plan.schema.json
    """
    from hedgerow.release import certificate
    from hedgerow.release.plan import keys

    shapes = {"plan": keys.schema, "certificate": certificate.schema}
    if what not in shapes:
        raise SettingError(f"schema {what!r} is not one of {', '.join(shapes)}.")
    sys.stdout.write(json.dumps(shapes[what](), indent=1, ensure_ascii=False) + "\n")


@with_screen
def datasets(
    screen: Screen,
    name: Annotated[str | None, typer.Argument(help="Leave out for a list.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write; its ending is its format.")] = None,
    rows: Annotated[int | None, typer.Option(help="How many rows.")] = None,
) -> None:
    """Write a made-up table to try things on; none is confidential.

    Example: hedgerow datasets payroll --out payroll.csv
    """
    from hedgerow import datasets as tables
    from hedgerow.models.families import FAMILIES
    from hedgerow.tables import files as formats

    known: dict[str, Callable[..., Any]] = {"payroll": tables.payroll, "lognormal": tables.lognormal}
    if name is None:
        about = [{"dataset": k, "about": (make.__doc__ or "").split("\n")[0]} for k, make in known.items()]
        about.append({"dataset": "gamma, poisson, …", "about": "Simulated data of any family, by its name."})
        screen.facts([(row["dataset"], row["about"]) for row in about])
        screen.result({"datasets": about})
        return
    known = {family: partial(tables.family, family) for family in FAMILIES} | known
    if name not in known:
        raise SettingError(f"dataset {name!r} is not one of {', '.join(known)}.")
    if out is None:
        raise SettingError(f"--out is missing: the file to write, for instance --out {name}.csv")
    frame = known[name](**({} if rows is None else {"n": rows}))
    written = formats.write(frame, out, formats.format_of(out))
    screen.say(f"{out}: {len(frame)} rows, columns {', '.join(frame.columns)}.")
    screen.result({"file": str(out), "rows": len(frame), "bytes": written.size})


def write_new(out: Path, content: bytes) -> None:
    """Writes a confidential file that does not exist yet: for its owner alone, and not into a release."""
    from hedgerow.release.folder import write_private

    write_private(out, content)
