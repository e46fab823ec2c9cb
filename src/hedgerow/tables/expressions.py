"""Conditions and arithmetic over the columns of a table, read by a whitelist and never evaluated as Python.

    >>> rule = parse_expression("status == 'employed' and wage / hours > 5")
    >>> rule.names
    ('status', 'wage', 'hours')

Comparisons, `in`, `is None`, `and`, `or`, `not`; + - * / and whole powers; `FUNCTIONS`. What is missing, or
not finite, makes arithmetic missing and a comparison doubtful, as in SQL. A value that stands for no amount
(a code such as -8) is missing in arithmetic and in < <= > >=, and itself in == and `in`.
"""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Mask, PerRecord
from hedgerow.errors import FormulaError
from hedgerow.tables.table import Table

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide,
}  # fmt: skip
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal,
    ast.Eq: np.equal, ast.NotEq: np.not_equal,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "sqrt": np.sqrt, "log": np.log, "exp": np.exp, "floor": np.floor, "round": np.rint,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip
_OF_TWO = ("min", "max")
_MAX_TEXT, _MAX_DEPTH, _MAX_POWER = 2000, 100, 10


@dataclass(frozen=True)
class Expression:
    """A text that was checked, and the columns it reads, in the order in which they occur."""

    text: str
    names: tuple[str, ...]
    is_condition: bool
    tree: ast.expr = field(repr=False, compare=False)
    aliases: Mapping[str, str] = field(repr=False, compare=False)  # plain name in the tree → column

    def holds(
        self, table: Table, codes: Mapping[str, Sequence[Any]] | None = None, *, doubt: bool = False
    ) -> Mask:
        """In which rows a condition is true, and `doubt` where what it compares is missing.

        `codes` are values of columns that stand for no amount.
        """
        with np.errstate(all="ignore"):
            return _Reader(self, table, codes or {}, doubt).truth(self.tree)

    def numbers(self, table: Table, codes: Mapping[str, Sequence[Any]] | None = None) -> PerRecord:
        """The result of arithmetic in every row; NaN where there is none. A condition is 1 or 0."""
        reader = _Reader(self, table, codes or {})
        with np.errstate(all="ignore"):
            found = reader.truth(self.tree) if self.is_condition else reader.number(self.tree)
        whole = np.broadcast_to(np.asarray(found, dtype=np.float64), (table.rows,))
        return np.where(np.isfinite(whole), whole, np.nan)


def parse_expression(text: str) -> Expression:
    """Check a condition or arithmetic; names that are no identifiers stand in backticks."""
    if not isinstance(text, str) or not text.strip() or len(text) > _MAX_TEXT or text.count("`") % 2:
        raise FormulaError(
            f"A rule must be text of at most {_MAX_TEXT} characters such as \"status == 'employed'\", got "
            f"{_describe(text)}."
        )
    quoted = dict.fromkeys(re.findall("`([^`]*)`", text))
    aliases = {f"quoted_{place}_": name for place, name in enumerate(quoted)}
    plain = text
    for alias, name in aliases.items():
        plain = plain.replace(f"`{name}`", alias)
    try:
        tree = ast.parse(plain.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FormulaError(
            f"'{text}' cannot be read as a rule. Names that are no single word stand in backticks."
        ) from None
    names: list[str] = []
    condition = isinstance(tree, ast.Compare | ast.BoolOp) or (
        isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not)
    )
    _check(tree, text, names, condition=condition, depth=0)
    return Expression(
        text, tuple(dict.fromkeys(aliases.get(name, name) for name in names)), condition, tree, aliases
    )


def _check(node: ast.expr, text: str, names: list[str], *, condition: bool, depth: int) -> None:
    """Refuse what is not on the list; add the columns that are read to `names`."""

    def check(*children: ast.expr, condition: bool = False) -> None:
        for child in children:
            _check(child, text, names, condition=condition, depth=depth + 1)

    if depth > _MAX_DEPTH:
        raise FormulaError(f"'{text}' is nested too deeply; {_MAX_DEPTH} levels are allowed.")
    match node:
        case ast.BoolOp(values=parts) if condition:
            check(*parts, condition=True)
        case ast.UnaryOp(op=ast.Not(), operand=part) if condition:
            check(part, condition=True)
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[
            ast.List(elts=items) | ast.Tuple(elts=items)
        ]) if condition and items and all(_is_constant(item) for item in items):  # fmt: skip
            check(left)
        case ast.Compare(
            left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]
        ) if condition:
            names.append(name)
        case ast.Compare(left=left, ops=ops, comparators=others) if condition and all(
            type(each) in _COMPARE for each in ops
        ):
            for side in (left, *others):
                if not (isinstance(side, ast.Constant) and isinstance(side.value, str | bool)):
                    check(side)
        case ast.Name(id=name) if not condition:
            names.append(name)
        case ast.Constant(value=value) if (
            not condition and isinstance(value, int | float) and not isinstance(value, bool)
        ):
            pass
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=part) if not condition:
            check(part)
        case ast.BinOp(left=left, op=op, right=right) if not condition and type(op) in _BINARY:
            check(left, right)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))) if (
            not condition and 0 <= power <= _MAX_POWER
        ):
            check(left)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if (
            not condition and name in FUNCTIONS and len(args) == 1 + (name in _OF_TWO)
        ):
            check(*args)
        case _:
            raise FormulaError(
                f"'{text}' is not allowed in a rule. Use columns, numbers and words with == != < <= > >= in "
                f"and or not is None, + - * / ** (to at most {_MAX_POWER}) and {', '.join(FUNCTIONS)}."
            )


def _describe(text: Any) -> str:
    if not isinstance(text, str):
        return type(text).__name__
    return repr(text) if len(text) < 80 else f"{len(text)} characters"


def _is_constant(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, str | int | float)


@dataclass(frozen=True, repr=False)
class _Reader:
    """Walks a checked tree over a table."""

    rule: Expression
    table: Table
    codes: Mapping[str, Sequence[Any]]
    doubt: bool = False  # what a comparison with something missing counts as

    def cells(self, node: ast.Name, *, amounts: bool = False) -> NDArray[Any]:
        """A column by its name: numbers, NaN where missing, or an object array of text, None where missing.

        Of `amounts` codes are missing too.
        """
        name = self.rule.aliases.get(node.id, node.id)
        values, known = self.table.raw_cells(name)
        if values.dtype.kind != "f":
            if amounts:
                raise FormulaError(
                    f"'{self.rule.text}': column '{name}' holds no numbers; compare it by == or in."
                )
            words = values.astype(object)
            words[~known] = None
            return words
        codes = [code for code in self.codes.get(name, ()) if amounts and not isinstance(code, str)]
        return np.where(known & ~np.isin(values, codes), values, np.nan)

    def number(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int(value) | float(value)):
                return float(value)
            case ast.Name():
                return self.cells(node, amounts=True)
            case ast.UnaryOp(op=op, operand=part):
                return -self.number(part) if isinstance(op, ast.USub) else self.number(part)
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=power)):
                return self.number(left) ** power
            case ast.BinOp(left=left, op=op, right=right):
                return _BINARY[type(op)](self.number(left), self.number(right))
            case ast.Call(func=ast.Name(id=name), args=args):
                return FUNCTIONS[name](*(self.number(part) for part in args))
        raise AssertionError(node)

    def truth(self, node: ast.expr) -> Mask:
        match node:
            case ast.BoolOp(op=op, values=parts):
                joined = np.logical_and if isinstance(op, ast.And) else np.logical_or
                return np.asarray(joined.reduce([self.truth(part) for part in parts]), dtype=np.bool_)
            case ast.UnaryOp(operand=part):
                return ~replace(self, doubt=not self.doubt).truth(part)
            case ast.Compare(left=ast.Name() as name, ops=[ast.Is() | ast.IsNot() as op]):
                known = ~_gaps(self.cells(name))
                return known if isinstance(op, ast.IsNot) else ~known
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn() as op], comparators=[items]):
                if isinstance(op, ast.NotIn):
                    within = ast.Compare(left=left, ops=[ast.In()], comparators=[items])
                    return ~replace(self, doubt=not self.doubt).truth(within)
                elements = items.elts if isinstance(items, ast.List | ast.Tuple) else []
                found = [self.compare(left, ast.Eq(), item) for item in elements]
                return np.asarray(np.logical_or.reduce(found), dtype=np.bool_)
            case ast.Compare(left=left, ops=ops, comparators=others):
                pairs = zip((left, *others), ops, others, strict=False)
                return np.asarray(np.logical_and.reduce([self.compare(*pair) for pair in pairs]))
        raise AssertionError(node)

    def compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Mask:
        equality = isinstance(op, ast.Eq | ast.NotEq)
        sides = [
            np.broadcast_to(self.side(each, amounts=not equality), (self.table.rows,))
            for each in (left, right)
        ]
        if (sides[0].dtype == object) != (sides[1].dtype == object):
            raise FormulaError(
                f"'{self.rule.text}' compares words with numbers. Put words in quotes, and numbers without."
            )
        known = ~(_gaps(sides[0]) | _gaps(sides[1]))
        found = np.full(self.table.rows, self.doubt)
        found[known] = _COMPARE[type(op)](sides[0][known], sides[1][known])
        return found

    def side(self, node: ast.expr, *, amounts: bool) -> Any:
        """What stands beside a comparison: words as objects, or numbers."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return np.array(node.value, dtype=object)
        if isinstance(node, ast.Name):
            cells = self.cells(node)
            return cells if cells.dtype == object or not amounts else self.number(node)
        return self.number(node)


def _gaps(values: NDArray[Any]) -> Mask:
    if values.dtype == object:
        return np.array([value is None for value in values], dtype=np.bool_)
    return ~np.isfinite(values)
