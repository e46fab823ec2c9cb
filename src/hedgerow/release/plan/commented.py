"""A plan file for people: every key in its place, what it is for, and those not used as comments."""

import textwrap
from collections.abc import Sequence

from hedgerow.errors import show_controls
from hedgerow.release import text
from hedgerow.release.plan import Plan
from hedgerow.release.plan.keys import ALONE, PlanKeys

_EXAMPLES = {
    "data": "payroll.csv",
    "read": "{encoding: cp1252, delimiter: ;}",
    "prior": "{intercept: [0, 20], slope: [0, 1]}",
    "declared": "{type: integer, range_min: 0}",
    "derived": "{hourly: wage / hours}",
    "checks": '["bonus <= wage"]',
    "design_weight": "weight",
    "analyses": '["log(wage) ~ age + C(sector)"]',
    "dataset": "payroll-2024",
    "ledger": "ledger.sqlite",
    "outputs": "{format: parquet, drop: [name], keep: [size_class], keep_levels: [region]}",
    "unit": "person",
    "rows_per_unit": "3",
    "about": "{purpose: teaching, contact: data@example.org, decided_by: the data board}",
    "seed": "1",
}


def commented_text(plan: Plan, remarks: Sequence[str] = ()) -> str:
    """The plan as YAML with comments; reads back as the same plan. `remarks` are about what is protected."""
    plain = plan.mapping()
    blocks = [
        "# A hedgerow plan. Check it, sign it, run it:\n"
        "#   hedgerow synthesize --plan plan.yaml --out release"
    ]
    for name, key in PlanKeys.model_fields.items():
        other = name in ALONE if "columns" in plain else name == "columns"  # the other way to say it
        if name not in plain and (other or name not in _EXAMPLES):
            continue  # as are weights and bound of a standard that brings its own
        told = [str(key.description).rstrip("."), *(remarks if name in ("formula", "columns") else ())]
        about = "\n".join(
            textwrap.fill(show_controls(each), 96, initial_indent="# ", subsequent_indent="# ")
            for each in told
        )
        body = text.dump({name: plain[name]}).rstrip() if name in plain else f"# {name}: {_EXAMPLES[name]}"
        blocks.append(f"{about}\n{body}")
    return "\n\n".join(blocks) + "\n"
