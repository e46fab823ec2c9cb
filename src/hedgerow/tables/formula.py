"""The formula whitelist: what a formula says, checked before anything is evaluated.

    >>> import pandas as pd
    >>> from hedgerow.tables.table import Table
    >>> table = Table.of(pd.DataFrame({"pay": [9.0, 11.0], "hours": [1, 2], "grade": ["a", "b"]}))
    >>> formula = parse("pay ~ log(hours) + C(grade)", table)
    >>> formula.outcome, formula.predictors
    ('pay', ('hours', 'grade'))

Guarantee: formulaic evaluates Python, and of a formula that `parse` returns it can evaluate column names,
numbers, arithmetic and `TRANSFORMS`, nothing else. Every piece is checked as a syntax tree. Names in
backticks are replaced by plain ones before anything is parsed, so that the tree that is checked is the tree
that is evaluated. The outcome is never a predictor, since predictors are released unchanged.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hedgerow.errors import FormulaError
from hedgerow.tables.table import Table

TRANSFORMS = tuple(
    "log log2 log10 log1p exp expm1 sqrt abs I C poly bs cs cr cc center scale standardize".split()  # noqa: SIM905 - one line of words
)
_EXPANDING = ("poly", "bs", "cs", "cr", "cc")  # transforms that make as many columns as they are told
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_MAX_POWER = 10
_MAX_COLUMNS = 100
_MAX_DEPTH = 20


@dataclass(frozen=True)
class Formula:
    """A formula that is safe to apply to the table it was checked against."""

    text: str
    outcome: str
    predictors: tuple[str, ...]  # table columns that the terms read
    terms: Any  # the right-hand side as formulaic parsed it, under the aliases
    aliases: Mapping[str, str]  # column in backticks → plain name it has in terms

    def restore_name(self, encoded: str) -> str:
        """The name of a design column with the table's own names in place of the aliases."""
        names = {alias: name for name, alias in self.aliases.items()}
        return re.sub(r"\bquoted_\d+_*\b", lambda match: names.get(match.group(), match.group()), encoded)


def parse(formula: str, table: Table) -> Formula:
    """Checks a formula against the columns of a table."""
    if not isinstance(formula, str) or not formula.strip():
        raise FormulaError(f'formula must be text such as "x ~ z", got {type(formula).__name__} {formula!r}.')
    outcome, right = split(formula)
    table.require([outcome])
    plain, aliases = _replace_backticks(right, formula, table)
    terms = _parse_terms(
        plain, formula, [aliases.get(name, name) for name in table.columns if name != outcome]
    )
    names = {alias: name for name, alias in aliases.items()}
    read = [name for term in terms for factor in term.factors for name in _names_in(factor, formula)]
    predictors = tuple(names.get(name, name) for name in dict.fromkeys(read))
    if outcome in predictors:
        raise FormulaError(
            f"Formula '{formula}' uses the outcome '{outcome}' as a predictor. Predictors are released "
            "unchanged, so this would publish it. Remove it from the right-hand side."
        )
    table.require(predictors)
    return Formula(formula, outcome, predictors, terms, aliases)


def split(formula: str) -> tuple[str, str]:
    """The column left of the tilde, and the terms right of it."""
    left, _, right = (part.strip() for part in formula.partition("~"))
    if not left or not right or "~" in right:
        raise FormulaError(f"Formula '{formula}' must have the form outcome ~ terms, for instance x ~ z.")
    if re.fullmatch("`[^`]*`", left):
        return left[1:-1], right
    if not left.isidentifier():
        raise FormulaError(
            f"The left-hand side '{left}' must be one column, without transforms: the family decides the "
            "scale (use family='lognormal' instead of log(x)). Put unusual names in backticks."
        )
    return left, right


def _replace_backticks(text: str, formula: str, table: Table) -> tuple[str, dict[str, str]]:
    """The right-hand side with names in backticks replaced by plain ones no column has."""
    if text.count("`") % 2 or ("`" in text and ("'" in text or '"' in text)):
        raise FormulaError(
            f"Formula '{formula}': backticks come in pairs and not together with quotes. Rename the column."
        )
    aliases: dict[str, str] = {}

    def alias_of(match: re.Match[str]) -> str:
        name = match.group(1)
        table.require([name])
        if name not in aliases:
            alias = f"quoted_{len(aliases)}"
            while alias in table.columns:
                alias += "_"
            aliases[name] = alias
        return aliases[name]

    return re.sub(r"`([^`]*)`", alias_of, text), aliases


def _parse_terms(right: str, formula: str, available: list[str]) -> Any:
    from formulaic import Formula as Terms

    try:
        terms = Terms("~ " + right, _context={"__formulaic_variables_available__": available})
    except Exception as problem:  # whatever formulaic's parser stumbles over, the formula is at fault
        raise FormulaError(
            f"Formula '{formula}' cannot be read ({type(problem).__name__}). "
            f"Write outcome ~ terms; allowed transforms: {', '.join(TRANSFORMS)}."
        ) from None
    if type(terms).__name__ != "SimpleFormula":
        raise FormulaError(f"Formula '{formula}' has several parts ('|'); give one right-hand side.")
    return terms


def _names_in(factor: Any, formula: str) -> list[str]:
    """The columns a factor reads, after refusing everything but the listed transforms."""
    if factor.eval_method.value in ("literal", "lookup"):
        return [factor.expr] if factor.eval_method.value == "lookup" else []
    try:
        tree = ast.parse(factor.expr, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FormulaError(f"'{factor.expr}' in formula '{formula}' cannot be read.") from None
    names: list[str] = []
    _check_node(tree, factor.expr, names)
    return names


def _check_node(node: ast.expr, text: str, names: list[str], depth: int = 0) -> None:
    """Refuses a piece of syntax that is not on the list; adds the columns it reads to `names`."""
    if depth > _MAX_DEPTH:
        raise FormulaError(f"'{text}' is nested too deeply; {_MAX_DEPTH} levels are allowed.")

    def check(*children: ast.expr) -> None:
        for child in children:
            _check_node(child, text, names, depth + 1)

    match node:
        case ast.Name(id=name):
            names.append(name)
        case ast.Constant(value=value) if isinstance(value, bool | int | float | str) or value is None:
            pass
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            check(operand)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
            for side in (left, right):
                is_word = isinstance(side, ast.Constant) and not isinstance(side.value, int | float)
                if is_word or isinstance(side, ast.List | ast.Tuple):
                    raise FormulaError(f"'{text}': arithmetic in a formula is for columns and numbers.")
                check(side)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))) if (
            0 <= power <= _MAX_POWER and not isinstance(left, ast.Constant)
        ):
            check(left)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            check(*items)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in TRANSFORMS:
            if any(keyword.arg is None for keyword in keywords):
                raise FormulaError(f"'{text}': '**' arguments are not allowed in a formula.")
            arguments = [*args, *(keyword.value for keyword in keywords)]
            sizes = [
                a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, int | float)
            ]
            if name in _EXPANDING and any(abs(size) > _MAX_COLUMNS for size in sizes):
                raise FormulaError(f"'{text}': a transform may make at most {_MAX_COLUMNS} columns.")
            check(*arguments)
        case _:
            raise FormulaError(
                f"'{text}' is not allowed in a formula. Use column names, numbers, + - * / ** (to at most "
                f"{_MAX_POWER}) and these transforms: {', '.join(TRANSFORMS)}."
            )
