"""The columns that are released as they are: refused where they give a protected one away."""

import shlex
from collections.abc import Iterator, Sequence

from hedgerow.errors import DataError, SettingError, list_some
from hedgerow.evidence.giveaways import COMBINED, INDEX, ORDER_OF_ROWS, find_combined, find_giveaways
from hedgerow.evidence.giveaways.agreement import Finding
from hedgerow.mechanism.cells import find_own_rows, read_parts
from hedgerow.mechanism.noisy.chain.cells import settle_types
from hedgerow.privacy.settings import Settings
from hedgerow.tables.chain import Units
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table

_NAMED = 5  # findings that a message names
_SPELLED = 3  # columns that a note gives flags for; of more a person picks


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
    _check_names(settings, left_out, keep)
    hidden = (*settings.protected, *left_out)
    released = [name for name in table.columns if name not in hidden]
    notes: list[str] = []
    for protected, findings in _look_through(table, design, settings, released):
        findings = [one for one in findings if not one.columns or not set(one.columns) <= set(keep)]
        refused = [finding for finding in findings if finding.refused]
        if refused and not strict:
            raise DataError(_describe(refused, protected))
        notes += [_describe(refused, protected)] if refused else []
        doubtful = [finding for finding in findings if not finding.refused]
        if doubtful:
            notes.append(
                f"What is released unchanged says much about the outcome '{protected.outcome}': "
                f"{_list_findings(doubtful)}. Unless that is public, {_remedy(doubtful, protected)}."
            )
    numbers = set(released).intersection(table.number_columns())
    if len(numbers) > COMBINED:
        notes.append(
            f"Of {len(numbers)} columns of numbers the first {COMBINED} were combined with each other to see "
            "whether two together give the outcome away; the others were not."
        )
    used = {*settings.protected, *design.predictors, *left_out, *keep, *read, settings.unit}
    return [*notes, *_note_unused([name for name in table.columns if name not in used])]


def _check_names(settings: Settings, left_out: Sequence[str], keep: Sequence[str]) -> None:
    """Refuse to leave out or keep what is protected, and to do both with one column."""
    for names, protected, done in (
        (left_out, settings.outcomes, "left out"),
        (keep, settings.protected, "kept as it is"),
    ):
        for name in set(names).intersection(protected):
            raise SettingError(f"Column '{name}' is protected; it cannot be {done}.")
    both = [name for name in keep if name in left_out]
    if both:
        raise SettingError(f"Columns {list_some(both)} are to be kept and left out. Choose one.")


def _look_through(
    table: Table, design: Design, settings: Settings, released: Sequence[str]
) -> Iterator[tuple[Design, list[Finding]]]:
    """What gives each link away; and, of several, what is made of them alone."""
    parts = read_parts(table, settings.links)
    leads = None if settings.unit is None else Units.of(table, settings.unit).leads
    typed = table if settings.noisy is None else settle_types(settings, table)  # no cell ends a run
    for link, each in zip(design.links, settings.links, strict=True):
        rows = find_own_rows(each.column, typed, settings.codes)  # elsewhere the outcome is public
        # Of a shared column one row of each unit: the name of a unit has one value of it by definition.
        rows = rows & leads if each.column.shared and leads is not None else rows
        some = table if rows.all() else table.rows_where(rows)
        columns = [link.values, *([parts[link.outcome]] if link.outcome in parts else [])]  # shares, amounts
        findings = [one for values in columns for one in find_giveaways(some, values[rows], released)]
        yield link, findings
    if len(design.links) > 1:
        values = {link.outcome: link.values for link in design.links}
        yield design, find_combined(table, values, released)


def _note_unused(names: Sequence[str]) -> list[str]:
    """What the owner should know of columns that are released and in no formula."""
    if not names:
        return []
    listed = list_some(names, 12, quoted=not all(name.isidentifier() for name in names))
    which, say, them = f"Columns {listed} are", "they say", "them"
    if len(names) == 1:
        which, say, them = f"Column {listed} is", "it says", "it"
    flags = _flags("--drop", names) if len(names) <= _SPELLED else "--drop NAME for each"
    return [
        f"{which} not in the formula: released unchanged and unprotected. If {say} anything about the "
        f"outcome, leave {them} out: {flags} (left_out= in Python)."
    ]


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
