"""Formula and table to a frozen design: outcome, matrix, and how to build it again.

A formula may use a fixed list of transforms and nothing else. Every piece of it is checked as a syntax
tree before formulaic, which evaluates Python, sees any data. Names in backticks are replaced by plain ones
before anything is parsed, so that the tree that is checked is the tree that is evaluated.
"""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Matrix, PerRecord
from hedgerow.errors import DataError, FormulaError, SettingError
from hedgerow.numerics.triangular import weighted_factor
from hedgerow.tables.table import Table

TRANSFORMS = tuple(
    "log log2 log10 log1p exp expm1 sqrt abs I C poly bs cs cr cc center scale standardize".split()  # noqa: SIM905 - one line of words
)
_EXPANDING = ("poly", "bs", "cs", "cr", "cc")  # transforms that make as many columns as they are told
_MAX_POWER = 10
_MAX_COLUMNS = 100
_RANK_TOLERANCE = 1e-10
LARGEST = 1e75  # squares and products of four stay finite
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)


@dataclass(frozen=True, repr=False)
class Column:
    """A public column that a model reads beside the design matrix."""

    codes: NDArray[np.int64]  # from 0 up, levels sorted
    levels: int
    numbers: PerRecord | None  # None for text


@dataclass(frozen=True, eq=False, repr=False)  # one design is another only if it is the same object
class Design:
    """What a model sees of a table: the confidential outcome and the public design matrix."""

    outcome: str
    values: PerRecord  # x_i, confidential
    matrix: Matrix  # z_i, public
    columns: tuple[str, ...]  # names of the matrix columns
    predictors: tuple[str, ...]  # table columns the formula reads
    spec: Any  # formulaic's ModelSpec: replays the encoding on new data, under the aliases
    aliases: Mapping[str, str] = field(default_factory=dict)  # column name → name it has in spec
    public: Mapping[str, Column] = field(default_factory=dict)  # further columns the model asked for
    levels: tuple[Any, ...] | None = None  # labels of the outcome, of which values are the places

    @property
    def records(self) -> int:
        """Number of records."""
        return len(self.values)

    def replace_values(self, values: PerRecord) -> "Design":
        """The same predictors with another outcome."""
        return replace(self, values=values)

    def blank(self) -> "Design":
        """The public part, in memory of its own: no outcome, and nothing of how the matrix was made."""
        public = {
            name: Column(
                column.codes.copy(),
                column.levels,
                None if column.numbers is None else np.array(column.numbers, copy=True),
            )
            for name, column in self.public.items()
        }
        return Design(
            self.outcome,
            np.full(self.records, np.nan),
            np.array(self.matrix, copy=True, order="C", subok=False),
            self.columns,
            self.predictors,
            None,
            dict(self.aliases),
            public,
            self.levels,
        )

    def __repr__(self) -> str:
        return f"Design({self.records} records, columns {list(self.columns)}, outcome confidential)"


def build(
    formula: str,
    table: Table,
    also: Sequence[str] = (),
    classes: Callable[[Table, str], tuple[Any, ...] | None] | None = None,
) -> Design:
    """Check the formula, then encode the table.

    `also` names public columns that the model reads itself; `classes` says which labels an outcome that is
    not numbers may have, in order: its values are then their places from 0 up.
    """
    outcome, predictors, parsed, aliases = _checked(formula, table)
    if outcome in also:
        raise FormulaError(
            f"The model asks for the outcome '{outcome}' as a predictor. Predictors are released unchanged, "
            "so this would publish it. Give it another column."
        )
    levels = classes(table, outcome) if classes is not None else None
    values = table.numbers(outcome) if levels is None else table.places(outcome, levels)
    table.complete(predictors)
    matrix, encoded, spec = _encode(formula, parsed, table.renamed(aliases))
    columns = tuple(_restored(name, aliases) for name in encoded)
    _check_rank(matrix, columns)
    public = {name: _column(table, name) for name in also}
    used = tuple(dict.fromkeys([*predictors, *also]))
    return Design(outcome, values, matrix, columns, used, spec, aliases, public, levels)


def _column(table: Table, name: str) -> Column:
    codes, levels = table.codes(name)
    return Column(codes, levels, table.numbers(name) if table.is_numeric(name) else None)


def check_sigma(design: Design, where: str) -> None:
    """Refuse a design column called like the residual standard deviation where both go by name."""
    if "sigma" in design.columns:
        raise SettingError(
            f"{where}: the formula has a column 'sigma', which is also the name of the residual standard "
            "deviation. Rename the column in the table and in the formula."
        )


def outcome_of(formula: str) -> str:
    """The column left of the tilde."""
    return _split(formula)[0]


def reads(formula: str, table: Table) -> tuple[str, tuple[str, ...]]:
    """The outcome and the predictors of a formula, which is checked but not applied."""
    outcome, predictors, _, _ = _checked(formula, table)
    return outcome, tuple(predictors)


def _checked(formula: str, table: Table) -> tuple[str, list[str], Any, dict[str, str]]:
    """Outcome, predictors, parsed right-hand side and aliases of a formula that is safe to evaluate."""
    if not isinstance(formula, str) or not formula.strip():
        raise FormulaError(f'formula must be text such as "x ~ z", got {type(formula).__name__} {formula!r}.')
    outcome, right_text = _split(formula)
    table.require([outcome])
    plain, aliases = _without_backticks(right_text, formula, table)
    parsed = _parse(plain, formula, [aliases.get(name, name) for name in table.columns if name != outcome])
    names = {alias: name for name, alias in aliases.items()}
    predictors = [names.get(name, name) for name in _used(parsed, formula)]
    if outcome in predictors:
        raise FormulaError(
            f"Formula '{formula}' uses the outcome '{outcome}' as a predictor. Predictors are released "
            "unchanged, so this would publish it. Remove it from the right-hand side."
        )
    table.require(predictors)
    return outcome, predictors, parsed, aliases


def _without_backticks(text: str, formula: str, table: Table) -> tuple[str, dict[str, str]]:
    """The right-hand side with names in backticks replaced by plain ones no column has."""
    if "`" not in text:
        return text, {}
    if "'" in text or '"' in text or text.count("`") % 2:
        raise FormulaError(
            f"Formula '{formula}': backticks come in pairs and not together with quotes. Rename the column."
        )
    aliases: dict[str, str] = {}

    def plain(match: re.Match[str]) -> str:
        name = match.group(1)
        table.require([name])
        if name not in aliases:
            alias = f"quoted_{len(aliases)}"
            while alias in table.columns:
                alias += "_"
            aliases[name] = alias
        return aliases[name]

    return re.sub(r"`([^`]*)`", plain, text), aliases


def _restored(name: str, aliases: Mapping[str, str]) -> str:
    names = {alias: original for original, alias in aliases.items()}
    return re.sub(r"\bquoted_\d+_*\b", lambda found: names.get(found.group(), found.group()), name)


def _parse(right: str, formula: str, available: list[str]) -> Any:
    from formulaic import Formula

    try:
        parsed = Formula("~ " + right, _context={"__formulaic_variables_available__": available})
    except Exception as problem:  # whatever formulaic's parser stumbles over, the formula is at fault
        raise FormulaError(
            f"Formula '{formula}' cannot be read ({type(problem).__name__}). "
            f"Write outcome ~ terms; allowed transforms: {', '.join(TRANSFORMS)}."
        ) from None
    if type(parsed).__name__ != "SimpleFormula":
        raise FormulaError(f"Formula '{formula}' has several parts ('|'); give one right-hand side.")
    return parsed


def _used(parsed: Any, formula: str) -> list[str]:
    """The columns a formula reads, after refusing everything but the listed transforms."""
    used: dict[str, None] = {}
    for term in parsed:
        for factor in term.factors:
            for name in _names_in(factor, formula):
                used[name] = None
    return list(used)


def _split(formula: str) -> tuple[str, str]:
    parts = formula.split("~")
    if len(parts) != 2 or not parts[0].strip() or not parts[1].strip():
        raise FormulaError(f"Formula '{formula}' must have the form outcome ~ terms, for instance x ~ z.")
    left = parts[0].strip()
    if left.startswith("`") and left.endswith("`") and left.count("`") == 2:
        return left[1:-1], parts[1]
    if not left.isidentifier():
        raise FormulaError(
            f"The left-hand side '{left}' must be one column, without transforms: the family decides the "
            "scale (use family='lognormal' instead of log(x)). Put unusual names in backticks."
        )
    return left, parts[1]


def _names_in(factor: Any, formula: str) -> list[str]:
    """The columns a factor reads, after refusing everything but the listed transforms."""
    method = factor.eval_method.value
    if method == "literal":
        return []
    if method == "lookup":
        return [factor.expr]
    try:
        tree = ast.parse(factor.expr, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FormulaError(f"'{factor.expr}' in formula '{formula}' cannot be read.") from None
    names: list[str] = []
    _walk(tree, factor.expr, names)
    return names


def _walk(node: ast.expr, text: str, names: list[str], depth: int = 0) -> None:
    if depth > 20:
        raise FormulaError(f"'{text}' is nested too deeply; 20 levels are allowed.")

    def inner(child: ast.expr) -> None:
        _walk(child, text, names, depth + 1)

    match node:
        case ast.Name(id=name):
            names.append(name)
        case ast.Constant(value=value) if isinstance(value, bool | int | float | str) or value is None:
            pass
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            inner(operand)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
            for side in (left, right):
                if isinstance(side, ast.List | ast.Tuple) or not _number_or_not_constant(side):
                    raise FormulaError(f"'{text}': arithmetic in a formula is for columns and numbers.")
                inner(side)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))) if (
            0 <= power <= _MAX_POWER and not isinstance(left, ast.Constant)
        ):
            inner(left)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            for item in items:
                inner(item)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in TRANSFORMS:
            if name in _EXPANDING:
                _check_size([*args, *(keyword.value for keyword in keywords)], text)
            for arg in args:
                inner(arg)
            for keyword in keywords:
                if keyword.arg is None:
                    raise FormulaError(f"'{text}': '**' arguments are not allowed in a formula.")
                inner(keyword.value)
        case _:
            raise FormulaError(
                f"'{text}' is not allowed in a formula. Use column names, numbers, + - * / ** (to at most "
                f"{_MAX_POWER}) and these transforms: {', '.join(TRANSFORMS)}."
            )


def _number_or_not_constant(node: ast.expr) -> bool:
    return not isinstance(node, ast.Constant) or isinstance(node.value, int | float)


def _check_size(arguments: list[ast.expr], text: str) -> None:
    for node in arguments:
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) > _MAX_COLUMNS:
            raise FormulaError(f"'{text}': a transform may make at most {_MAX_COLUMNS} columns.")


def _encode(formula: str, right: Any, table: Table) -> tuple[Matrix, tuple[str, ...], Any]:
    context = {"sqrt": np.sqrt, "log1p": np.log1p, "expm1": np.expm1, "abs": np.abs}
    try:
        with np.errstate(all="ignore"):
            encoded = right.get_model_matrix(
                table.native, context=context, output="numpy", na_action="ignore", ensure_full_rank=True
            )
    except Exception as problem:  # formulaic's messages may quote data, so only their kind is passed on
        raise FormulaError(
            f"Formula '{formula}' could not be applied to the table ({type(problem).__name__}). Check that "
            "numeric transforms get numeric columns and that splines stay inside their knots."
        ) from None
    matrix = np.ascontiguousarray(np.asarray(encoded), dtype=np.float64)
    spec = encoded.model_spec
    columns = tuple(str(name) for name in spec.column_names)
    if matrix.shape[1] == 0:
        raise FormulaError(f"Formula '{formula}' has no terms. Use at least an intercept: x ~ 1.")
    bad = [
        name
        for name, good in zip(columns, np.atleast_1d(np.isfinite(matrix).all(axis=0)), strict=True)
        if not good
    ]
    if bad:
        raise DataError(
            f"Design columns {', '.join(bad)} are not finite in every row, for instance the log of a value "
            "that is not positive. Correct the predictor or choose another transform."
        )
    huge = [name for name, top in zip(columns, np.abs(matrix).max(axis=0), strict=True) if top > LARGEST]
    if huge:
        raise DataError(f"Design columns {', '.join(huge)} exceed {LARGEST:g} in size. Rescale them.")
    return matrix, columns, spec


def _check_rank(matrix: Matrix, columns: tuple[str, ...]) -> None:
    records, width = matrix.shape
    if records < width:
        raise DataError(
            f"{records} rows are fewer than the {width} coefficients of the formula. "
            "Give more rows or a shorter formula."
        )
    size = np.abs(matrix).max(axis=0)
    intercept = [name for name in columns if name in ("Intercept", "1")]
    for j, name in enumerate(columns):
        if size[j] == 0 or (intercept and name not in intercept and np.ptp(matrix[:, j]) == 0):
            raise DataError(f"Predictor '{name}' is constant over all {records} rows. Remove it.")
    factor = weighted_factor(matrix / size, np.zeros(records), np.ones(records))[:-1, :-1]
    lengths = np.linalg.norm(factor, axis=0)
    independent = np.abs(np.diag(factor)) / lengths
    dependent = [name for name, share in zip(columns, independent, strict=True) if share < _RANK_TOLERANCE]
    if dependent:
        raise DataError(
            f"Predictors are collinear: {', '.join(dependent)} can be written in terms of the others. "
            "Remove them."
        )
