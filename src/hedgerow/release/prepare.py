"""From a plan to a table that can be fitted: columns settled, missing values dealt with, never silently."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import DataError, HedgerowError, SettingError, list_some
from hedgerow.evidence.utility.analyses import check_analyses
from hedgerow.models.families import model_named, on_log_scale
from hedgerow.privacy.columns import Column
from hedgerow.release.plan import Plan
from hedgerow.synthesizer import Synthesizer
from hedgerow.tables import files as formats
from hedgerow.tables.files import DictionaryEntry, Format, Source, Written
from hedgerow.tables.formula import parse, quote
from hedgerow.tables.predictors import hint_at_logs, spell_categories
from hedgerow.tables.table import Table
from hedgerow.threads import WORTH_SHARING, share_out


@dataclass(frozen=True, repr=False)
class Prepared:
    """A plan with its data; confidential."""

    plan: Plan  # its formula spells out which columns are categories
    source: Source  # rows that are synthesized, all columns
    like: Source  # what copies are written like: it says of the protected column what the plan declares
    table: pa.Table  # what the fit sees: columns that are used or released
    outcomes: tuple[str, ...]  # the protected columns, in the order in which they are synthesized
    protected: tuple[str, ...]  # those, and columns that are derived from others
    released: tuple[str, ...]  # columns of the copies, in input order
    withheld: tuple[str, ...]  # columns used and not released
    dropped_rows: int

    def copy_to_write(self, copy: pa.Table) -> pa.Table:
        """A copy as it is written: the released columns, with the levels that the plan keeps."""
        for name in self.plan.outputs.keep_levels:
            copy = copy.set_column(copy.column_names.index(name), name, self.table.column(name))
        return copy.select(self.released)

    def synthesizer(self, **changes: Any) -> Synthesizer:
        """The plan's synthesizer, not fitted; changes replace settings of the plan."""
        return Synthesizer.of(replace(self.plan.settings, **changes), seed=self.plan.seed)

    def fit(self, **changes: Any) -> Synthesizer:
        """The plan's synthesizer, fitted to its data."""
        return self.synthesizer(**changes).fit(
            self.table, left_out=self.withheld, keep=self.plan.outputs.keep
        )

    @property
    def records(self) -> int:
        """How many rows take part, and copies have."""
        return self.table.num_rows

    @property
    def whole(self) -> Any:
        """All rows and columns, by which the ledger knows the data."""
        return self.source.frame

    @property
    def public(self) -> pa.Table | None:
        """All rows of the public columns; None where memory does not hold them."""
        there = [name for name in self.protected if name in self.table.column_names]
        return self.table.drop_columns(there)

    def try_copies(self, synth: Synthesizer) -> None:
        """Makes the copies, or some rows of them: what fails does so before anything is spent."""
        synth.sample()

    def write_copies(
        self, synth: Synthesizer, place: Callable[[int], Path], label: str, tell: Callable[[int], None]
    ) -> list[Written]:
        """Writes every copy to its place; `tell` is told which one is begun."""
        tables = synth.sample().tables

        def write(number: int) -> Written:
            tell(number)
            return formats.write(
                self.copy_to_write(tables[number - 1]), place(number), self.like,
                formulas=self.plan.outputs.formulas, label=label,
            )  # fmt: skip

        # The writers of other formats are Python, one line at a time.
        by_arrow = self.like.format in (Format.CSV, Format.PARQUET, Format.ARROW)
        worth = by_arrow and self.records > WORTH_SHARING
        return share_out(write, range(1, len(tables) + 1), worth=worth)

    def write_records(self, synth: Synthesizer, place: Path) -> None:
        """Writes what was found by record; confidential."""
        formats.write(synth.records_, place, "parquet")

    def __repr__(self) -> str:
        return f"Prepared({self.records} rows, confidential)"


def prepare(plan: Plan) -> Prepared:
    """Reads the plan's data and settles what is used, what is released and which rows take part."""
    return settle(plan, formats.read(data_of(plan), **options_of(plan)))


def data_of(plan: Plan) -> str:
    """The file that the plan names."""
    if plan.data is None:
        raise SettingError("The plan names no data. Give the file: data: payroll.csv, or as an argument.")
    return plan.data


def options_of(plan: Plan) -> dict[str, Any]:
    """How the plan's data is read: options of `formats.read`."""
    # A standard that may refuse no outcome reads as a number what is one, and the rest as missing; declared
    # labels are read as they are.
    withholds, columns = _withholds(plan), plan.settings.columns
    protected = plan.settings.protected
    # What a protected column is read as follows from the plan: words where its classes are, dates where
    # these are declared, else numbers; and so is a derived one, whose cells nobody uses.
    words = plan.settings.worded if withholds else ()
    declared = {column.outcome: column.declared for column in columns}
    dates = [
        name for name, said in declared.items() if withholds and said is not None and said.type == "date"
    ]
    text = (*plan.read.text, *words)
    numbers = [name for name in protected if withholds and name not in (*words, *dates)]
    return vars(replace(plan.read, text=text)) | {"numbers": numbers, "dates": dates}


def _withholds(plan: Plan) -> bool:
    """Whether no outcome may be refused."""
    return all(domain.usable is not None for domain in plan.settings.domains)


def settle(plan: Plan, source: Source, *, all_rows: bool = True, dropped: int = 0) -> Prepared:
    """What is used, what is released and which rows take part, of a table that was read.

    Without `all_rows` the source has some of the rows, those `dropped` not among them, and its `missing`
    counts the gaps of all.
    """
    withholds = _withholds(plan)
    columns, rules = plan.settings.columns, plan.settings.rules
    outcomes, protected = plan.settings.outcomes, plan.settings.protected
    whole = Table.of(source.frame)
    predictors = find_predictors(plan, whole)
    ruled = [*(column.reads for column in columns), *(rules.reads_of(name) for name in rules.names)]
    of_rules = [name for names in ruled for name in names if name not in protected]
    of_range = plan.settings.standard.range.columns
    units = [] if plan.unit is None else [plan.unit]
    priced = units if plan.by_unit else []
    used = (*outcomes, *predictors, *of_rules, *of_range, *plan.settings.weights.columns, *priced)
    weight = plan.settings.design_weight
    whole.require(
        [
            *used,
            *units,
            *([] if weight is None else [weight]),
            *plan.outputs.drop,
            *plan.outputs.keep,
            *plan.outputs.keep_levels,
        ]
    )
    if weight in plan.outputs.drop:
        raise SettingError(
            f"design_weight: '{weight}' is dropped, and users could not weigh the copies. Take it out "
            "of drop, or leave design_weight out."
        )
    several = len(protected) > 1
    is_protected = "a protected column" if several else "the protected column"
    for outcome in protected:
        if outcome in plan.outputs.drop:
            remedy = f"Take it out of drop, or out of {'columns' if outcome in outcomes else 'derived'}."
            alone = f"Column '{outcome}' is the protected column; without it there is nothing to release."
            one_of = f"Column '{outcome}' is protected and cannot be dropped. {remedy}"
            raise SettingError(one_of if several else alone)
        if outcome == plan.unit:
            raise SettingError(
                f"unit: '{outcome}' is {is_protected}. Name the column that says whose row it is."
            )
        if outcome in of_range:
            raise SettingError(
                f"The range reads the protected column '{outcome}'. A range must come from public columns."
            )
    both = [name for name in plan.outputs.keep if name in plan.outputs.drop]
    if both:
        raise SettingError(f"Columns {list_some(both)} are to be kept and dropped. Choose one.")
    misplaced = [name for name in plan.outputs.keep_levels if name in (*protected, *plan.outputs.drop)]
    if misplaced:
        raise SettingError(
            f"keep_levels: {list_some(misplaced, quoted=True)} is protected or dropped. Name public columns "
            "of the copies; what they may say of a protected one goes under its dictionary."
        )
    if all_rows or plan.missing == "refuse":
        source, dropped = _drop_incomplete(plan, source, find_needed(plan, whole), all_rows=all_rows)
    spelled = [spell_categories(column.formula, source, protected) for column in columns]
    notes = dict.fromkeys(note for _, told in spelled for note in told)
    if notes:
        plan = replace(plan, settings=plan.settings.with_formulas(*(formula for formula, _ in spelled)))
        source = replace(source, notes=(*source.notes, *notes))
    names, outputs = source.frame.column_names, plan.outputs
    left_out = set(outputs.drop)
    there = tuple(name for name in names if name not in left_out)
    released = (*there, *(name for name in rules.names if name not in names))
    fitted = {*released, *used}
    check_analyses(plan.analyses, released)
    like = formats.source_of_copies(
        source, released, dict.fromkeys(protected, DictionaryEntry()) | dict(plan.dictionary),
        # Of some rows it cannot be told here which levels do not occur.
        keep=outputs.keep_levels if all_rows else names,
        format=None if outputs.format is None else Format(outputs.format),
    )  # fmt: skip
    shown = source.frame.select(there)
    for place, name in enumerate(there):
        if withholds and name in protected:  # copies have none of these cells
            shown = shown.set_column(place, name, pa.nulls(shown.num_rows, pa.float64()))
    # Of some rows it is not told how many cells a spreadsheet would run: all leaves are looked through.
    formats.check(shown, like, formulas=outputs.formulas if all_rows else "allow")
    if plan.unit is not None and plan.rows is not None:
        _check_units(plan, plan.unit, plan.rows, source.frame.column(plan.unit))
    return Prepared(
        plan=plan,
        source=source,
        like=like,
        table=source.frame.select([name for name in names if name in fitted]),
        outcomes=outcomes,
        protected=protected,
        released=released,
        withheld=tuple(name for name in dict.fromkeys(used) if name in left_out),
        dropped_rows=dropped,
    )


def find_predictors(plan: Plan, table: Table) -> tuple[str, ...]:
    """The public columns that formulas read, those of kinds of cells among them."""
    columns = plan.settings.columns
    protected = (*(column.outcome for column in columns), *plan.settings.rules.names)
    texts = [column.formula for column in columns]
    kinds = [(column.outcome, column.kinds_by) for column in columns if column.kinds_by is not None]
    texts += [f"{quote(outcome)} ~ {terms}" for outcome, terms in kinds]
    formulas = [parse(text, table) for text in texts]
    read = dict.fromkeys(name for formula in formulas for name in formula.predictors)
    return tuple(name for name in read if name not in protected)


def find_needed(plan: Plan, table: Table) -> tuple[str, ...]:
    """The columns of which a row without a value is refused or dropped."""
    predictors = find_predictors(plan, table)
    if _withholds(plan) and plan.missing == "refuse":
        return predictors
    return (*find_complete(plan.settings.columns), *predictors)


def find_complete(columns: Sequence[Column]) -> tuple[str, ...]:
    """The protected columns of which a row without a value is refused or dropped.

    Where a rule fixes cells a gap may be what it says, and rows dropped for it would tell where it holds.
    """
    return tuple(column.outcome for column in columns if column.missing == "refused" and not column.reads)


def hint_of_plan(plan: Plan) -> list[str]:
    """What the public predictors suggest of the formula, where the plan's data is there and can be read."""
    asked = plan.settings
    logs = [column for column in asked.columns if on_log_scale(model_named(column.family, column.prior))]
    if plan.data is None or not Path(plan.data).is_file() or not logs:
        return []
    try:
        table = Table.of(formats.read(plan.data, **vars(plan.read)).frame)
        hints = [hint_at_logs(column.formula, table, asked.outcomes) for column in logs]
        return list(dict.fromkeys(hint for told in hints for hint in told))
    except HedgerowError:  # which whoever runs the plan will be told
        return []


def _check_units(plan: Plan, name: str, declared: int, units: pa.ChunkedArray) -> None:
    """Refuse a column that contradicts what is declared of it; a row without a name is a unit of its own."""
    most = int(pc.max(pc.value_counts(units.drop_null()).field("counts")).as_py() or 1)
    if most > declared:
        local = plan.settings.bound.local and bool(plan.settings.unpriced_by_unit)
        apart = " Rows are priced together with other weights than planned ones, and no correction." * local
        raise DataError(
            f"Column '{name}' names a person or firm with {most} rows, and the plan declares at most "
            f"{declared}. The price for one of them is that of all its rows: say --rows-per-unit {most} "
            f"(rows_per_unit: {most}), or combine its rows.{apart}"
        )


def _drop_incomplete(
    plan: Plan, source: Source, names: tuple[str, ...], *, all_rows: bool
) -> tuple[Source, int]:
    """The source without rows that lack a value in a column of the formula, if the plan says so."""
    gaps = {name: pc.is_null(source.frame.column(name), nan_is_null=True) for name in dict.fromkeys(names)}
    counts = {name: int(pc.sum(gap).as_py() or 0) for name, gap in gaps.items()}
    if not all_rows:
        counts = {name: source.missing[name].total for name in gaps if name in source.missing}
    rows = source.frame.num_rows
    if not any(counts.values()):
        return source, 0
    where = ", ".join(f"'{name}' in {count}" for name, count in counts.items() if count)
    if not all_rows:
        raise DataError(
            f"Values are missing in columns of the formula: {where} rows. Fill them in; or leave these rows "
            "out of the file, if it is public knowledge which they are."
        )
    if plan.missing == "refuse":
        own = [column.outcome for column in plan.settings.columns if counts.get(column.outcome)]
        also = (
            f" Or have gaps of {list_some(own, quoted=True)} synthesized too, under columns: in a plan, or "
            '--columns "{NAME: {formula: …, missing: synthesized}}" in place of --formula.'
        )
        raise DataError(
            f"Values are missing in columns of the formula: {where} of {rows} rows. Fill them in, or say "
            "missing: drop (--drop-missing) if it is public knowledge which rows these are; the certificate "
            f"will say that this is assumed.{also if own else ''}"
        )
    keep = pa.chunked_array([pa.array(~np.logical_or.reduce([gap.to_numpy() for gap in gaps.values()]))])
    frame = source.frame.filter(keep)
    if frame.num_rows == 0:
        raise DataError(f"All {rows} rows lack a value in a column of the formula. Nothing is left to fit.")
    codes = {name: column.filter(keep) for name, column in source.codes.items()}
    return replace(source, frame=frame, codes=codes), rows - frame.num_rows
