"""The columns that are released as they are: refused where they give a protected one away."""

import shlex
from collections.abc import Sequence

from hedgerow.errors import DataError, SettingError, list_some
from hedgerow.evidence.giveaways import COMBINED, INDEX, ORDER_OF_ROWS, find_combined, find_giveaways
from hedgerow.evidence.giveaways.agreement import Finding
from hedgerow.mechanism.cells import find_own_rows, read_parts
from hedgerow.privacy.settings import Settings
from hedgerow.tables.chain import Units
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table

_NAMED = 5  # findings that a message names


def check_released(
    table: Table,
    design: Design,
    settings: Settings,
    *,
    left_out: Sequence[str],
    keep: Sequence[str],
    strict: bool,
    read: Sequence[str] = (),
) -> list[str]:
    """All but the outcome is released as it is: refuse what gives the outcome away, and tell of the rest.

    `read` names columns that are public by declaration, since ranges are read from them.

    Formal guarantees
    -----------------
    Under a strict standard nothing is refused, since whether there is a release may not depend on the
    outcome: the owner is told instead. What is told is confidential either way.
    """
    table.require([*left_out, *keep])
    derived, parts = settings.rules.names, read_parts(table, settings.links)
    for names, fixed, done in ((left_out, (), "left out"), (keep, derived, "kept as it is")):
        for name in set(names).intersection([*settings.outcomes, *fixed]):
            raise SettingError(f"Column '{name}' is protected; it cannot be {done}.")
    both = [name for name in keep if name in left_out]
    if both:
        raise SettingError(f"Columns {list_some(both)} are to be kept and left out. Choose one.")
    hidden = (*settings.protected, *left_out)
    released = [name for name in table.columns if name not in hidden]
    notes: list[str] = []
    given_away: list[tuple[Design, list[Finding]]] = []
    leads = None if settings.unit is None else Units.of(table, settings.unit).leads
    for link, each in zip(design.links, settings.links, strict=True):
        rows = find_own_rows(each.column, table, settings.codes)  # elsewhere the outcome is public
        # Of a shared column one row of each unit: the name of a unit has one value of it by definition.
        rows = rows & leads if each.column.shared and leads is not None else rows
        here = table if rows.all() else table.rows_where(rows)
        looked_at = [link.values, *([parts[link.outcome]] if link.outcome in parts else [])]
        findings = [one for values in looked_at for one in find_giveaways(here, values[rows], released)]
        given_away.append((link, findings))
    if len(design.links) > 1:
        values = {link.outcome: link.values for link in design.links}
        given_away.append((design, find_combined(table, values, released)))
    for link, every in given_away:
        findings = [one for one in every if not one.columns or not set(one.columns) <= set(keep)]
        telling = [finding for finding in findings if finding.refused]
        if telling and not strict:
            raise DataError(_describe(telling, link))
        notes += [_describe(telling, link)] if telling else []
        doubtful = [finding for finding in findings if not finding.refused]
        if doubtful:
            notes.append(
                f"What is released unchanged says much about the outcome '{link.outcome}': "
                f"{_list_findings(doubtful)}. Unless that is public, {_remedy(doubtful, link)}."
            )
    numbers = set(released).intersection(table.number_columns())
    if len(numbers) > COMBINED:
        notes.append(
            f"Of {len(numbers)} columns of numbers the first {COMBINED} were combined with each other to see "
            "whether two together give the outcome away; the others were not."
        )
    named = {*settings.protected, *design.predictors, *left_out, *keep, *read, settings.unit}
    unused = [name for name in table.columns if name not in named]
    if unused:
        names, say, them = f"Columns {list_some(unused, 12)} are", "they say", "them"
        if len(unused) == 1:
            names, say, them = f"Column {unused[0]} is", "it says", "it"
        notes.append(
            f"{names} not in the formula: released unchanged and unprotected. If {say} anything about the "
            f"outcome, leave {them} out: {_flags('--drop', unused)}."
        )
    return notes


def _describe(telling: Sequence[Finding], design: Design) -> str:
    """What gives the outcome away, the worst first, and what can be done about it."""
    named = list(dict.fromkeys(name for finding in telling for name in finding.columns))
    insist = ""
    if named:
        flags = _flags("--keep", named)
        insist = f" To release them all the same, say so ({flags}, keep=); so will the certificate."
    return (
        f"The copies would publish the outcome '{design.outcome}' or nearly so, by what is released "
        f"unchanged: {_list_findings(telling)}. To mend that, {_remedy(telling, design)}.{insist}"
    )


def _list_findings(findings: Sequence[Finding]) -> str:
    """The worst few, which come first."""
    more = f"; and {len(findings) - _NAMED} more" if len(findings) > _NAMED else ""
    return "; ".join(str(finding) for finding in findings[:_NAMED]) + more


def _remedy(findings: Sequence[Finding], design: Design) -> str:
    """What makes an end of all findings: of a pair one column is left out, a predictor last."""
    left_out: list[str] = []
    for finding in findings:
        if finding.columns and not set(finding.columns).intersection(left_out):
            left_out.append(min(finding.columns, key=lambda name: name in design.predictors))
    what = "this column" if len(left_out) == 1 else "these columns"
    remedies = [f"leave out {what}: {_flags('--drop', left_out)} (left_out= in Python)"] if left_out else []
    remedies += ["reset the index"] if any(finding.what == INDEX for finding in findings) else []
    remedies += ["shuffle the rows"] if any(finding.what == ORDER_OF_ROWS for finding in findings) else []
    return "; ".join(remedies)


def _flags(flag: str, names: Sequence[str]) -> str:
    """A flag for each of the first few names, as a shell takes it."""
    return " ".join(f"{flag} {shlex.quote(name)}" for name in names[:12]) + " …" * (len(names) > 12)
