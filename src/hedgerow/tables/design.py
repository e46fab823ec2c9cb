"""Table and formula to a frozen design: outcome, matrix, and how to build it again.

    >>> import pandas as pd
    >>> from hedgerow.tables.table import Table
    >>> build("pay ~ hours", Table.of(pd.DataFrame({"pay": [9.0, 11.0, 12.0], "hours": [1, 2, 4]})))
    Design(3 records, columns ['Intercept', 'hours'], outcome confidential)

The matrix is finite, of full rank and made of public columns only; `formula` says what it may be made of. In
a chain (`chain`) it may hold columns that are protected themselves, and is then confidential.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hedgerow.arrays import Array, Confidential, Mask, Matrix, PerLink, PerRecord, RecordMask
from hedgerow.errors import DataError, FormulaError, SettingError
from hedgerow.numerics import leaves
from hedgerow.numerics.leaves import Columns, sum_powers, summarize_columns
from hedgerow.numerics.rounding import format_count
from hedgerow.numerics.triangular import weighted_factor
from hedgerow.tables.crossing import Crossing
from hedgerow.tables.formula import CLASSES, Formula, parse, quote, shorten
from hedgerow.tables.predictors import settle_predictors
from hedgerow.tables.spool import replay
from hedgerow.tables.spool.transforms import by_leaves
from hedgerow.tables.table import Table

LARGEST = 1e75  # squares and products of four stay finite
_RANK_TOLERANCE = 1e-10
_MOST_COLUMNS = 10_000
_MOST_CELLS = 500_000_000  # 4 GB
_NO_VALUE = 1.0  # in place of an outcome that is not there: any number that every model describes


@dataclass(frozen=True, repr=False)
class Column:
    """A public column that a model reads beside the design matrix."""

    codes: NDArray[np.int64]  # from 0 up, levels sorted
    levels: int
    numbers: PerRecord | None  # None for text


@dataclass(frozen=True, eq=False, repr=False)
class Moments(Confidential):
    """Extremes, sums, means and spreads of a matrix over all rows of its table, named as in `Design`."""

    summary: Columns
    means: Array
    spread: Array


@dataclass(frozen=True, eq=False, repr=False)  # one design is another only if it is the same object
class Design:
    """What a model sees of a table: the confidential outcome and the public design matrix."""

    outcome: str
    values: PerLink  # x_i, confidential
    matrix: Matrix  # z_i, public
    columns: tuple[str, ...]  # names of the matrix columns
    predictors: tuple[str, ...]  # table columns the formula reads
    spec: Any  # formulaic's ModelSpec: replays the encoding on new data, under the aliases
    aliases: Mapping[str, str] = field(default_factory=dict)  # column name → name it has in spec
    public: Mapping[str, Column] = field(default_factory=dict)  # further columns the model asked for
    levels: tuple[Any, ...] | None = None  # labels of the outcome, of which values are the places
    present: Mask | None = None  # outcomes that are there, confidential; the others' values mean nothing
    notes: tuple[str, ...] = ()  # what was decided of the predictors that the owner should know
    secret: tuple[str, ...] = ()  # predictors that are protected themselves: the matrix is as confidential
    classes: tuple[str, ...] = ()  # predictors that are categories whatever they hold
    declared: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # levels of protected predictors
    crossing: Crossing | None = None  # the cells that the predictors make, where the model asks for these
    withheld: Mask | None = None  # cells that are missing, or break the column's rule, if any; confidential

    @property
    def links(self) -> "tuple[Design, ...]":
        """A design for each protected column, in the order in which they are synthesized: this one alone."""
        return (self,)

    @property
    def records(self) -> int:
        """Number of records."""
        return len(self.values)

    @property
    def gappy_values(self) -> PerLink:
        """The outcome, NaN where it is not there; confidential."""
        return self.values if self.present is None else np.where(self.present, self.values, np.nan)

    def present_in(self, records: RecordMask) -> RecordMask:
        """Which of these records have an outcome."""
        return records if self.present is None else records & self.present

    def once(self, name: str, make: Callable[[], Array], *of: object) -> Array:
        """What `make` makes of this design and these objects, made once; nobody may write to it."""
        kept: dict[str, tuple[tuple[object, ...], Array]] = vars(self).setdefault("_kept", {})
        known = kept.get(name)
        if known is not None and all(one is other for one, other in zip(known[0], of, strict=True)):
            return known[1]
        made = make().view()
        made.flags.writeable = False
        kept[name] = of, made
        return made

    def replace_values(self, values: PerRecord) -> "Design":
        """The design with another outcome."""
        other = replace(self, values=values)
        other.keep_moments(self.moments)
        return other

    def take(self, rows: NDArray[np.intp]) -> "Design":
        """The design of some rows."""
        return replace(
            self,
            values=self.values[rows],
            matrix=self.matrix[rows],
            present=None if self.present is None else self.present[rows],
            withheld=None if self.withheld is None else self.withheld[rows],
            public={
                name: replace(
                    column,
                    codes=column.codes[rows],
                    numbers=None if column.numbers is None else column.numbers[rows],
                )
                for name, column in self.public.items()
            },
            crossing=None
            if self.crossing is None
            else replace(self.crossing, codes=self.crossing.codes[rows]),
        )

    @property
    def moments(self) -> Moments:
        """What is known of all rows."""
        return Moments(self.summary, self.means, self.spread)

    def keep_moments(self, moments: Moments) -> None:
        """Know of all rows of a table what its whole design knows, where this one has some of them."""
        vars(self).update(vars(moments))

    @cached_property
    def summary(self) -> Columns:
        """Extremes and sums of the columns of the matrix."""
        return summarize_columns(self.matrix)

    @cached_property
    def spread(self) -> NDArray[np.float64]:
        """How far from its mean each column of the matrix has the variance that few records carry.

        √(m₄/m₂ − 3m₂), with m₂ and m₄ the central moments, and at least √(m₂/2): about 1 for a rare dummy,
        0.4 for an even one, 0.7 standard deviations for a normal column, nearly all of its reach for a long
        tail. Its size, if a column is constant. 1 for a column made of protected values: what is read off it
        would be read off them.
        """
        centre = self.summary.total / self.records
        reach = self.summary.reach(centre)
        spread = find_spread(self.summary, reach, sum_powers(self.matrix, centre, reach) / self.records)
        spread[list(self.hidden)] = 1.0
        return spread

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """The mean of each column of the matrix; 0 for one made of protected values."""
        means = self.summary.total / self.records
        means[list(self.hidden)] = 0.0
        return means

    @cached_property
    def hidden(self) -> frozenset[int]:
        """The columns of the matrix that are made of protected values."""
        names = [self.aliases.get(name, name) for name in self.secret]
        if not names or self.crossing is not None:
            return frozenset()
        return frozenset(place for name in names for place in self.spec.variable_indices.get(name, ()))

    def encode(self, table: Table) -> "Design":
        """Another table's predictors in the same encoding, without an outcome."""
        if self.crossing is not None:
            return replace(
                self, values=np.full(table.rows, np.nan), matrix=np.ones((table.rows, 1)),
                present=None, withheld=None, notes=(), crossing=self.crossing.encode(table),
            )  # fmt: skip
        settled, _ = settle_predictors(table, self.predictors, self.classes, self.declared, tell=False)
        matrix = self.replay(settled)
        bad = [
            name for name, column in zip(self.columns, matrix.T, strict=True) if not np.isfinite(column).all()
        ]
        if bad:
            raise DataError(
                f"Design columns {', '.join(bad)} are not finite for every synthetic value, for instance "
                "the log of one that is not positive. Give that column a family of positive values, write "
                "log1p for zeros, or say where alone the column that reads it has cells of its own, such as "
                "only_where: wage > 0."
            )
        return replace(
            self, values=np.full(len(matrix), np.nan), matrix=matrix, present=None, withheld=None, notes=()
        )

    def replay(self, settled: Table) -> Matrix:
        """The matrix that the encoding makes of settled predictors."""
        from formulaic.errors import DataMismatchWarning

        native, context = settled.rename(self.aliases).native, functions()
        with np.errstate(all="ignore"), warnings.catch_warnings():
            again = replay.encode(self.spec, native, context)
            if again is not None:
                return again
            # Of a cell without a level, which its message would quote.
            warnings.simplefilter("ignore", DataMismatchWarning)
            again = self.spec.get_model_matrix(native, context=context)
        return np.ascontiguousarray(np.asarray(again), dtype=np.float64)

    def hollow(self) -> "Design":
        """The encoding alone, of no records."""
        return replace(
            self, values=np.empty(0), matrix=np.empty((0, len(self.columns))), present=None, withheld=None,
            notes=(), crossing=None if self.crossing is None else self.crossing.hollow(),
        )  # fmt: skip

    def encode_secret(self, columns: Mapping[str, Any]) -> tuple[list[int], Matrix]:
        """The places of columns made of protected predictors, and what other values make of them.

        `columns` holds all that their terms read, row by row; what is not finite is left so.
        """
        secret = {self.aliases.get(name, name) for name in self.secret}
        spec = self.spec.subset([term for term in self.spec.terms if secret & self.spec.term_variables[term]])
        frame = pd.DataFrame({self.aliases.get(name, name): column for name, column in columns.items()})
        with np.errstate(all="ignore"):
            matrix = spec.get_model_matrix(frame, context=functions(), na_action="ignore")
        places = [self.spec.column_names.index(name) for name in spec.column_names]
        return places, np.asarray(matrix, dtype=np.float64)

    def blank(self) -> "Design":
        """The public part, in memory of its own: no outcome, and nothing of how the matrix was made."""
        # Field by field: one that is added later does not slip out.
        matrix = np.array(self.matrix, copy=True, order="C", subok=False)
        public = {name: Column(*deepcopy((c.codes, c.levels, c.numbers))) for name, c in self.public.items()}
        return Design(
            self.outcome, np.full(self.records, np.nan), matrix, self.columns, self.predictors, None,
            dict(self.aliases), public, self.levels,
            crossing=None if self.crossing is None else self.crossing.blank(),
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Design({self.records} records, columns {list(self.columns)}, outcome confidential)"


@dataclass(frozen=True, eq=False, repr=False)
class Learnt:
    """How formulas encode a table that comes in parts; learnt of public columns alone."""

    states: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of transforms, by how they read
    designs: dict[str, Design] = field(default_factory=dict)  # of no records, by the text of the formula


def build(
    formula: str,
    table: Table,
    also: Sequence[str] = (),
    classes: Callable[[Table, str], tuple[Any, ...] | None] | None = None,
    usable: Callable[[PerRecord], Mask] | None = None,
    secret: Sequence[str] = (),
    levels_of: Mapping[str, tuple[Any, ...]] = MappingProxyType({}),
    crossed: bool = False,
    learnt: Learnt | None = None,
) -> Design:
    """Check the formula, then encode the table.

    `also` names public columns that the model reads itself; `classes` says which labels an outcome that is
    not numbers may have, in order: its values are then their places from 0 up. `usable` says which outcomes
    the model can describe, where the others, missing ones among them, count as withheld. `secret` names
    columns that are protected as well: whether the matrix has full rank is then nobody's to know. `levels_of`
    has the declared classes of some of these: as categories they are encoded by them. In a row with another
    value the outcome has nothing to be predicted from, and counts as withheld. With `crossed` the predictors
    make cells, and the matrix is an intercept alone.

    `learnt` is for a table that comes in parts. A formula that it knows encodes this part as the whole. One
    that it does not know is learnt of these rows, which have every level of the whole: neither the outcome
    nor anything that only all rows tell is looked at, and nothing is refused.
    """
    parsed = parse(formula, table)
    whole = None if learnt is None else learnt.designs.get(formula)
    learning = learnt is not None and whole is None
    if learnt is not None and also:
        raise SettingError(
            f"Formula '{shorten(formula)}': its family takes a table in memory alone. Use the normal, "
            "lognormal, asinh or dirichlet family, or a table that fits into memory."
        )
    for name in also:
        if name in (parsed.outcome, *secret):
            raise FormulaError(
                f"The model asks for the outcome '{name}' as a predictor. Predictors are released "
                "unchanged, so this would publish it. Give it another column."
            )
    levels = classes(table, parsed.outcome) if classes is not None else None
    present = None
    if learning:
        values, usable = np.full(table.rows, np.nan), None
    elif usable is None:
        values = table.outcome(parsed.outcome, levels)
    else:
        values = table.gappy_numbers(parsed.outcome)
        present = usable(values)
        values = np.where(present, values, _NO_VALUE)
    declared = {
        name: found
        for name, found in levels_of.items()
        if name in parsed.predictors and parsed.as_classes(name, numeric=table.is_numeric(name))
    }
    for name, found in {} if learning else declared.items():
        known = table.places(name, found) >= 0
        if not known.all():
            present = known if present is None else present & known
    # Where nothing may be refused for what a protected column holds, a row whose protected predictors make no
    # numbers counts as withheld.
    lenient = [name for name in parsed.predictors if usable is not None and name in secret]
    if not learning:
        table.require_complete([name for name in parsed.predictors if name not in (*lenient, *declared)])
    classes_of = [name for name, uses in parsed.uses.items() if uses == {CLASSES}]
    hidden = tuple(name for name in parsed.predictors if name in secret)
    if crossed:
        learned = None if whole is None else whole.crossing
        cells = _cross(parsed, table, declared) if learned is None else learned.encode(table)
        built = Design(
            parsed.outcome, values, np.ones((table.rows, 1)), ("Intercept",), parsed.predictors, None,
            levels=levels, present=present, secret=hidden, declared=declared, crossing=cells,
        )  # fmt: skip
        if learnt is not None and learning:
            learnt.designs[formula] = built.hollow()
        return built
    settled, notes = settle_predictors(table, parsed.predictors, classes_of, declared, tell=whole is None)
    if whole is None:
        states = None if learnt is None else learnt.states
        matrix, columns, spec = encode_terms(parsed, settled, declared, states)
    else:
        matrix, columns, spec, notes = whole.replay(settled), whole.columns, whole.spec, []
    if lenient and present is not None:
        works = (np.abs(np.nan_to_num(matrix, nan=np.inf)) <= LARGEST).all(axis=1)
        matrix, present = np.where(works[:, None], matrix, 0.0), present & works
    if learnt is None:
        summary = summarize_columns(matrix)
        check_columns(summary, columns, len(matrix), rank=not hidden)
        if not hidden:
            check_rank(weighted_factor(matrix, np.zeros(len(matrix))), summary, columns)
    public = {}
    for name in also:
        codes, count = table.codes(name)
        public[name] = Column(codes, count, table.numbers(name) if table.is_numeric(name) else None)
    used = tuple(dict.fromkeys([*parsed.predictors, *also]))
    built = Design(
        parsed.outcome, values, matrix, columns, used, spec, parsed.aliases, public, levels, present,
        tuple(notes), hidden, tuple(classes_of), declared,
    )  # fmt: skip
    if learnt is None:
        vars(built)["summary"] = summary
    elif learning:
        learnt.designs[formula] = built.hollow()
    return built


def _cross(formula: Formula, table: Table, declared: Mapping[str, tuple[Any, ...]]) -> Crossing:
    """The cells of the predictors, all of which must be categories."""
    for name in formula.predictors:
        counted = table.is_numeric(name) or table.is_temporal(name)
        if not formula.as_classes(name, numeric=counted):
            raise FormulaError(
                f"Formula '{shorten(formula.text)}': the family takes cells of categories, and '{name}' is "
                f"read as numbers. Write C({quote(name)}) if it has few values, or put it into classes first."
            )
    return Crossing.of(table, [name for name in formula.predictors if name not in declared], declared)


def find_spread(columns: Columns, reach: NDArray[np.float64], powers: Matrix) -> NDArray[np.float64]:
    """`Design.spread` from the extremes of each column, its reach, and the means of its powers."""
    second, fourth = powers
    with np.errstate(all="ignore"):
        found = reach * np.sqrt(np.maximum(fourth / second - 3 * second, second / 2))
    return np.where(reach == 0, columns.largest, found)


def check_sigma(design: Design, where: str) -> None:
    """Refuse a design column called like the residual standard deviation where both go by name."""
    if "sigma" in design.columns:
        raise SettingError(
            f"{where}: the formula has a column 'sigma', which is also the name of the residual standard "
            "deviation. Rename the column in the table and in the formula."
        )


def functions() -> dict[str, Any]:
    """What formulas may call beside formulaic's own transforms, or in their place."""
    return {"sqrt": np.sqrt, "log1p": np.log1p, "expm1": np.expm1, "abs": np.abs, **by_leaves()}


def encode_terms(
    formula: Formula,
    table: Table,
    levels: Mapping[str, tuple[Any, ...]],
    states: Mapping[str, Mapping[str, Any]] | None = None,
) -> tuple[Matrix, tuple[str, ...], Any]:
    """The matrix, the names of its columns, and formulaic's way to build it again.

    `states` is what transforms learnt of all records, where these are not all of them.
    """
    known = {}
    if states is not None:
        known = {text: states[formula.restore_name(text, "`")] for text in formula.learning_calls()}
    width = formula.width(table, levels)
    if width > min(_MOST_COLUMNS, _MOST_CELLS / table.rows):
        raise FormulaError(
            f"Formula '{shorten(formula.text)}' makes up to {width} columns of {table.rows} rows; at most "
            f"{_MOST_COLUMNS} columns and {_MOST_CELLS} cells are made. Use fewer terms, or columns with "
            "fewer levels."
        )
    alone = table.rows > leaves.LEAF and not formula.learning_calls() and not formula.categories(table)
    table = table.rename(formula.aliases)

    def encode(rows: Table) -> Any:
        return formula.terms.get_model_matrix(
            rows.native, context=functions(), output="numpy", na_action="ignore",
            ensure_full_rank=True, transform_state=deepcopy(known),
        )  # fmt: skip

    try:
        with np.errstate(all="ignore"):
            # A row makes what it makes among any others: some of them say how, and all cores make it.
            encoded = encode(table.head(leaves.LEAF) if alone else table)
            matrix = replay.encode_leaves(encoded.model_spec, table.native, functions()) if alone else None
            if matrix is None:
                encoded = encode(table) if alone else encoded
                matrix = np.ascontiguousarray(np.asarray(encoded), dtype=np.float64)
    except Exception as problem:  # formulaic's messages may quote data, so only their kind is passed on
        raise FormulaError(
            f"Formula '{shorten(formula.text)}' could not be applied to the table "
            f"({type(problem).__name__}). Check that numeric transforms get numeric columns and that splines "
            "stay inside their knots."
        ) from None
    spec = encoded.model_spec
    columns = tuple(formula.restore_name(str(name)) for name in spec.column_names)
    if matrix.shape[1] == 0:
        raise FormulaError(
            f"Formula '{shorten(formula.text)}' has no terms. Use at least an intercept: x ~ 1."
        )
    return matrix, columns, spec


def check_columns(summary: Columns, columns: tuple[str, ...], records: int, *, rank: bool) -> None:
    """Refuse columns that are not finite or too large; where `rank` matters, constant or too many."""
    size = summary.largest
    bad = [name for name, finite in zip(columns, np.isfinite(size), strict=True) if not finite]
    if bad:
        raise DataError(
            f"Design columns {', '.join(bad)} are not finite in every row, for instance the log of a value "
            "that is not positive. Correct the predictor or choose another transform, log1p for zeros; if a "
            "protected column has codes such as -8, name them (codes: [-8])."
        )
    huge = [name for name, top in zip(columns, size, strict=True) if top > LARGEST]
    if huge:
        raise DataError(f"Design columns {', '.join(huge)} exceed {LARGEST:g} in size. Rescale them.")
    if not rank:
        return
    if records < len(columns):
        raise DataError(
            f"The formula has {format_count(len(columns), 'coefficient')}, more than the table has rows: "
            f"{records}. Give more rows or a shorter formula."
        )
    intercept = {"Intercept", "1"} & set(columns)
    for name, largest, span in zip(columns, size, summary.high - summary.low, strict=True):
        if largest == 0 or (intercept and name not in intercept and span == 0):
            raise DataError(f"Predictor '{name}' is constant over all {records} rows. Remove it.")


def check_rank(factor: Matrix, summary: Columns, columns: tuple[str, ...]) -> None:
    """Refuse columns that are made of others, from the factor of the matrix and anything beside it."""
    scaled = factor[:-1, :-1] / summary.largest  # so that no square leaves the range of doubles
    independent = np.diag(scaled) / np.linalg.norm(scaled, axis=0)
    dependent = [name for name, share in zip(columns, independent, strict=True) if share < _RANK_TOLERANCE]
    if dependent:
        raise DataError(
            f"Predictors are collinear: {', '.join(dependent)} can be written in terms of the others. "
            "Remove them."
        )
