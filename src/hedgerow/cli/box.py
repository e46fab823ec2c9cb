"""box: a box of parameters for a strict release, from public statements, and what a wider one would cost.

Nothing here looks at the protected column: what these commands print is public.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from hedgerow.cli.options import with_screen
from hedgerow.cli.screen import Screen
from hedgerow.errors import SettingError


@with_screen
def box(
    predictors: Annotated[Path, typer.Argument(help="A file with the predictors.", show_default=False)],
    screen: Screen,
    formula: Annotated[str, typer.Option(help='"payroll ~ log(employees)"; the outcome is not read.')],
    epsilon: Annotated[float, typer.Option(help="Target ε of one copy.")] = 1.0,
    at: Annotated[
        list[str] | None,
        typer.Option(help='Between what the median lies there: "{employees: 10, median: [200000, 500000]}".'),
    ] = None,
    spread: Annotated[
        str | None,
        typer.Option(help="The 90 % quantile over the median (normal: minus it) lies between: 1.5,3."),
    ] = None,
    given: Annotated[
        str | None, typer.Option("--box", help='A box to price as it is: "{z: [0, 1], sigma: [0.5, 2]}".')
    ] = None,
    family: Annotated[str, typer.Option(help="lognormal or normal.")] = "lognormal",
) -> None:
    """Find a box for a strict release from public statements, and see what a wider one would cost.

    As many --at as the formula has coefficients, and --spread; or --box to price a box as it is.

    Example: hedgerow box payroll.csv --formula "payroll ~ log(employees)" --spread 1.5,3
    --at "{employees: 1, median: [20000, 50000]}" --at "{employees: 100, median: [2000000, 5000000]}"
    """
    from hedgerow.advice.elicit import box_cost, box_from_medians
    from hedgerow.privacy.strict import Strict
    from hedgerow.release import text
    from hedgerow.tables import files as formats

    table = formats.read(predictors).frame
    if given is not None:
        if at or spread is not None:
            raise SettingError("--box is priced as it is: leave out --at and --spread.")
        ends = dict(Strict(_parse_mapping(given, "--box")).box)
    else:
        if not at or spread is None:
            raise SettingError("Give --at for every coefficient and --spread, or --box. See --help.")
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
