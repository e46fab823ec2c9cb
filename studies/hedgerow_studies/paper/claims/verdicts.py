"""Every empirical sentence of the paper with its verdict, as claims.json and claims.md."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hedgerow_studies.paper.claims import application, story1, story2, story3
from hedgerow_studies.paper.claims.checks import Claim
from hedgerow_studies.paper.store import write
from hedgerow_studies.paper.tasks import Tables

DECIDE = {
    "story1": story1.claims,
    "story2": story2.claims,
    "story3": story3.claims,
    "application": application.claims,
}


def decide(study: str, tables: Tables) -> list[Claim]:
    """The claims of one study, decided."""
    return DECIDE[study](tables)


def tally(claims: Sequence[Claim]) -> dict[str, int]:
    """How many hold, hold only under a condition, do not hold."""
    kinds = Counter(_kind(claim) for claim in claims)
    return {kind: kinds[kind] for kind in ("holds", "holds only under", "does not hold")}


def save(claims: Sequence[Claim], out: Path, settings: Mapping[str, object]) -> None:
    """claims.json and claims.md."""
    content = {
        "settings": dict(settings),
        "verdicts": tally(claims),
        "claims": [as_json(claim) for claim in claims],
    }
    encoded = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    write(out / "claims.json", (encoded + "\n").encode())
    write(out / "claims.md", as_markdown(claims, settings).encode())


def as_json(claim: Claim) -> dict[str, Any]:
    """A claim with its checks; the first check's number stands for it where one number is wanted."""
    first = claim.checks[0]
    return {
        "id": claim.id,
        "location": claim.location,
        "claim": claim.statement,
        "statistic": claim.statistic,
        "value": _number(first.estimate),
        "uncertainty": _number(first.error),
        "measured": [str(check) for check in claim.checks],
        "verdict": claim.verdict,
        "checks": [
            {
                "condition": check.condition,
                "quantity": check.quantity.rstrip(":"),
                "value": _number(check.estimate),
                "uncertainty": _number(check.error),
                "detail": check.detail,
                "agrees": check.agrees,
            }
            for check in claim.checks
        ],
    }


def as_markdown(claims: Sequence[Claim], settings: Mapping[str, object]) -> str:
    """A page to read: the verdicts, then each claim with everything that was measured for it."""
    count = tally(claims)
    lines = [
        "# The paper, claim by claim",
        "",
        "Sentences are in our words. Numbers come with ± one Monte Carlo standard error unless they say "
        "otherwise; a difference counts when it exceeds two. Verdicts follow from the checks, by code.",
        "",
        ", ".join(f"{name}: {value}" for name, value in settings.items()) + ".",
        "",
        f"Of {len(claims)} claims {count['holds']} hold, {count['holds only under']} hold only under a "
        f"condition, {count['does not hold']} do not hold.",
        "",
        "| claim | where | verdict |",
        "| --- | --- | --- |",
    ]
    lines += [f"| [{claim.id}](#{claim.id}) | {claim.location} | {claim.verdict} |" for claim in claims]
    for claim in claims:
        lines += ["", f"## {claim.id}", "", f"{claim.statement} *({claim.location})*", ""]
        lines += [f"**{claim.verdict[0].upper()}{claim.verdict[1:]}.** Statistic: {claim.statistic}.", ""]
        for condition in dict.fromkeys(check.condition for check in claim.checks):
            lines += [f"- {condition}:"] if condition else []
            for check in claim.checks:
                if check.condition == condition:
                    word = "agrees" if check.agrees else "disagrees"
                    lines.append(f"{'  ' if condition else ''}- {word}: {check}")
    return "\n".join(lines) + "\n"


def _kind(claim: Claim) -> str:
    return "holds only under" if claim.verdict.startswith("holds only") else claim.verdict


def _number(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None
