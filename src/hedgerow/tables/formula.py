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
that is evaluated. The outcome is never a predictor, since predictors are released unchanged. What a formula
expands to is bounded too: its terms are counted on formulaic's own tree before they are multiplied out, and
`Formula.width` bounds the columns of a design before one is made.
"""

import ast
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from hedgerow.errors import DataError, FormulaError, format_value, show_controls
from hedgerow.tables.table import Table

TRANSFORMS = tuple(
    "log log2 log10 log1p exp expm1 sqrt abs I C poly bs cs cr cc center scale standardize".split()  # noqa: SIM905 - one line of words
)
_EXPANDING = ("poly", "bs", "cs", "cr", "cc")  # transforms that make as many columns as they are told
LEARNING = (*_EXPANDING, "center", "scale", "standardize", "C")  # what they do depends on all values
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_MAX_POWER = 10
_MAX_COLUMNS = 100  # that one transform makes
_TOO_MANY = 10**6
_MAX_DEPTH = 20
_MAX_TEXT = 20_000  # characters
_MAX_TERMS = 10_000
BARE, CLASSES, NUMBERS = "bare", "classes", "numbers"  # how a formula reads a column


@dataclass(frozen=True)
class Formula:
    """A formula that is safe to apply to the table it was checked against."""

    text: str
    outcome: str
    predictors: tuple[str, ...]  # table columns that the terms read
    terms: Any  # the right-hand side as formulaic parsed it, under the aliases
    aliases: Mapping[str, str]  # column in backticks → plain name it has in terms
    uses: Mapping[str, frozenset[str]]  # predictor → as itself, as classes, or in a transform of numbers

    def restore_name(self, encoded: str, mark: str = "") -> str:
        """The name of a design column with the table's own names, in marks, in place of the aliases."""
        names = {alias: f"{mark}{name}{mark}" for name, alias in self.aliases.items()}
        return re.sub(r"\bquoted_\d+_*\b", lambda match: names.get(match.group(), match.group()), encoded)

    def with_categories(self, names: Collection[str]) -> str:
        """The formula multiplied out, with C(…) around the named columns where it names them bare."""

        def spell(factor: Any) -> str:
            text = self.restore_name(factor.expr, "`")
            is_bare = factor.eval_method.value == "lookup"
            return f"C({text})" if is_bare and self.restore_name(factor.expr) in names else text

        terms = [":".join(map(spell, term.factors)) for term in self.terms]
        right = terms if "1" in terms else ["0", *terms]
        return f"{quote(self.outcome)} ~ {' + '.join(right)}"

    def set_apart(self, names: Collection[str]) -> tuple[str, tuple[str, ...]]:
        """The formula without the terms that read some columns, and which of these they read.

        A term may read one of them by itself, in whatever transform, and not together with anything else.
        """
        back, kept, apart = {alias: name for name, alias in self.aliases.items()}, [], []
        for term in self.terms:
            read = {back.get(name, name) for factor in term.factors for name in _names_in(factor)}
            if not read & {*names}:
                kept.append(":".join(self.restore_name(factor.expr, "`") for factor in term.factors))
            elif len(read) > 1:
                raise FormulaError(
                    f"Formula '{shorten(self.text)}' combines '{min(read & {*names})}', which is protected, "
                    "with other columns in one term. Strict(limits=…) adds its residual to the line: name it "
                    "in a term of its own."
                )
            else:
                apart += [name for name in read if name not in apart]
        right = kept if "1" in kept else ["0", *kept]
        return f"{quote(self.outcome)} ~ {' + '.join(right)}", tuple(apart)

    def learns_from(self, name: str) -> bool:
        """Whether a transform of the column depends on more than the one value it is applied to."""
        known = self.aliases.get(name, name)
        factors = [factor for term in self.terms for factor in term.factors]
        return any(known in _names_in(factor) and _calls(factor) & {*LEARNING} for factor in factors)

    def as_classes(self, name: str, *, numeric: bool) -> bool:
        """Whether the column is only read as categories: in C(…) alone, or bare where it holds labels."""
        known, spelled = self.aliases.get(name, name), {CLASSES} if numeric else {BARE, CLASSES}
        factors = [factor for term in self.terms for factor in term.factors]
        read = [factor.expr for factor in factors if known in _names_in(factor)]
        return self.uses[name] <= spelled and set(read) <= {known, f"C({known})"}

    def categories(self, table: Table) -> list[tuple[str, ...]]:
        """The columns of each factor that makes categories, whose values together are its levels."""
        names, found = {alias: name for name, alias in self.aliases.items()}, []
        for factor in (factor for term in self.terms for factor in term.factors):
            read = tuple(dict.fromkeys(names.get(name, name) for name in _names_in(factor)))
            words = [name for name in read if not (table.is_numeric(name) or table.is_temporal(name))]
            if words or "C" in _calls(factor):
                found.append(read)
        return list(dict.fromkeys(found))

    def learning_calls(self) -> dict[str, ast.Call]:
        """The calls whose result depends on all values, by their text under the aliases; inner ones first."""
        found: dict[str, ast.Call] = {}

        def walk(node: ast.AST) -> None:
            for child in ast.iter_child_nodes(node):
                walk(child)
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {*LEARNING} - {"C"}:
                found[ast.unparse(node)] = node

        for factor in (factor for term in self.terms for factor in term.factors):
            if factor.eval_method.value == "python":
                walk(ast.parse(factor.expr, mode="eval"))
        return found

    def width(self, table: Table, levels: Mapping[str, tuple[Any, ...]] = MappingProxyType({})) -> int:
        """The most columns that the terms can make of a table, without making them.

        `levels` are those of columns whose values are nobody's to count.
        """
        names = {alias: name for name, alias in self.aliases.items()}
        factors = {factor.expr: factor for term in self.terms for factor in term.factors}
        widths = {text: _width(factor, names, table, levels) for text, factor in factors.items()}
        return sum(math.prod(widths[factor.expr] for factor in term.factors) for term in self.terms)


def parse(formula: str, table: Table) -> Formula:
    """Checks a formula against the columns of a table."""
    if not isinstance(formula, str) or not formula.strip():
        raise FormulaError(f'formula must be text such as "x ~ z", got {format_value(formula)}.')
    if len(formula) > _MAX_TEXT:
        raise FormulaError(
            f"The formula has {len(formula)} characters; at most {_MAX_TEXT} are read. Name fewer columns."
        )
    outcome, right = split(formula)
    table.require([outcome])
    plain, aliases = _replace_backticks(right, formula, table)
    available = tuple(aliases.get(name, name) for name in table.columns if name != outcome)
    try:
        terms = _parse_terms(plain, formula, available)
        names = {alias: name for name, alias in aliases.items()}
        factors = {factor.expr: factor for term in terms for factor in term.factors}
        uses: dict[str, set[str]] = {}
        for factor in factors.values():
            for name in _names_in(factor):
                uses.setdefault(names.get(name, name), set()).add(_use(factor))
        predictors = tuple(uses)
        table.require(predictors)
    except (FormulaError, DataError) as problem:
        bare = [name for name in table.columns if _needs_backticks(name) and name in plain]
        if not bare:
            raise
        raise type(problem)(
            f"{problem} Names that are no plain word stand in backticks: `{shorten(bare[0])}`."
        ) from None
    if outcome in predictors:
        raise FormulaError(
            f"Formula '{shorten(formula)}' uses the outcome '{outcome}' as a predictor. Predictors are "
            "released unchanged, so this would publish it. Remove it from the right-hand side."
        )
    frozen = {name: frozenset(how) for name, how in uses.items()}
    return Formula(formula, outcome, predictors, terms, aliases, frozen)


def split(formula: str) -> tuple[str, str]:
    """The column left of the tilde, and the terms right of it."""
    left, _, right = (part.strip() for part in formula.partition("~"))
    if not left or not right or "~" in right:
        raise FormulaError(
            f"Formula '{shorten(formula)}' must have the form outcome ~ terms, for instance x ~ z."
        )
    if re.fullmatch("`[^`]*`", left):
        return left[1:-1], right
    several = re.findall(r"`[^`]*`|[^\W\d]\w*", re.sub(r"\w+\(", "(", left))
    if re.search(r"[+,*:|&]", re.sub("`[^`]*`", "", left)) and len(several) > 1:
        names = [shorten(name.strip("`")) for name in several]
        raise FormulaError(
            f"The left-hand side '{shorten(left)}' names {len(several)} columns, and a formula has one "
            "outcome. Several protected columns have a formula each and one price: hedgerow init FILE "
            f"--protect {','.join(names)} proposes a plan, and in Python "
            f'Synthesizer({{"{names[0]}": hr.Column("{shorten(several[0])} ~ …"), …}}). If it is one '
            f"name, write it in backticks: `{shorten(left)}`."
        )
    if not left.isidentifier():
        raise FormulaError(
            f"The left-hand side '{shorten(left)}' must be one column, without transforms: the family "
            "decides the scale (use family='lognormal' instead of log(x)). A name that is no plain word "
            f"stands in backticks: `{shorten(left)}`."
        )
    return left, right


def _replace_backticks(text: str, formula: str, table: Table) -> tuple[str, dict[str, str]]:
    """The right-hand side with names in backticks replaced by plain ones no column has."""
    outside = re.sub("`[^`]*`", "", text)
    if "`" in outside or (outside != text and ("'" in outside or '"' in outside)):
        raise FormulaError(
            f"Formula '{shorten(formula)}': backticks come in pairs, and outside of them not together with "
            "quotes. Rename the column."
        )
    aliases: dict[str, str] = {}
    taken = set(table.columns)

    def alias_of(match: re.Match[str]) -> str:
        name = match.group(1)
        table.require([name])
        if name not in aliases:
            alias = f"quoted_{len(aliases)}"
            while alias in taken:
                alias += "_"
            aliases[name] = alias
        return aliases[name]

    return re.sub(r"`([^`]*)`", alias_of, text), aliases


@lru_cache(maxsize=64)  # every leaf of a table asks again
def _parse_terms(right: str, formula: str, available: tuple[str, ...]) -> Any:
    from formulaic import Formula as Terms
    from formulaic.parser import DefaultFormulaParser

    context = {"__formulaic_variables_available__": list(available)}
    try:
        _check_size(DefaultFormulaParser().get_ast("~ " + right, context=context), len(available))
        terms = Terms("~ " + right, _context=context)
    except FormulaError as problem:
        raise FormulaError(f"Formula '{shorten(formula)}' {problem}") from None
    except Exception as problem:  # whatever formulaic's parser stumbles over, the formula is at fault
        raise FormulaError(
            f"Formula '{shorten(formula)}' cannot be read ({type(problem).__name__}). "
            f"Write outcome ~ terms; allowed transforms: {', '.join(TRANSFORMS)}."
        ) from None
    if type(terms).__name__ != "SimpleFormula":
        raise FormulaError(f"Formula '{shorten(formula)}' has several parts ('|'); give one right-hand side.")
    return terms


def _check_size(tree: Any, available: int) -> None:
    """Refuses a parsed right-hand side that would be multiplied out into too many terms."""
    counts: dict[int, int] = {}  # terms that each node makes at most; a number or a name makes one
    waiting = [(tree, False)]  # no recursion: a sum of a thousand terms is a thousand deep
    while waiting:
        node, ready = waiting.pop()
        if not hasattr(node, "args"):
            counts[id(node)] = 1
            continue
        if not ready:
            waiting += [(node, True), *((child, False) for child in node.args)]
            continue
        parts = [counts[id(child)] for child in node.args]
        match node.operator.symbol:
            case "**" | "^":
                power = getattr(node.args[1], "token", "")
                if not re.fullmatch("[0-9]{1,3}", power, re.ASCII) or int(power) > _MAX_POWER:
                    raise FormulaError(f"has a power that is no whole number up to {_MAX_POWER}.")
                count = parts[0] ** int(power)
            case ":":
                count = math.prod(parts)
            case "*":
                count = sum(parts) + math.prod(parts)
            case ".":
                count = available
            case _:
                count = sum(parts)
        if count > _MAX_TERMS:
            raise FormulaError(
                f"multiplies out to more than {_MAX_TERMS} terms. Use fewer columns, or a lower power."
            )
        counts[id(node)] = count


def _width(factor: Any, names: Mapping[str, str], table: Table, known: Mapping[str, tuple[Any, ...]]) -> int:
    """The most columns that a checked factor can make: one for each level, knot and degree."""
    if factor.eval_method.value == "literal":
        return 1
    calls: list[ast.Call] = []
    read = [factor.expr]
    if factor.eval_method.value != "lookup":
        read = []
        tree = ast.parse(factor.expr, mode="eval").body
        _check_node(tree, factor.expr, read)
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    words = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
    columns = {names.get(name, name) for name in read}
    classes = [name for name in columns if "C" in words or not table.is_numeric(name)]
    levels = (len(known[name]) if name in known else table.levels(name) for name in classes)
    return math.prod(levels) * math.prod(map(_expansion, calls))


def _expansion(call: ast.Call) -> int:
    """The most columns a transform makes of one; more than any may have where its settings do not tell."""
    if not isinstance(call.func, ast.Name) or call.func.id not in _EXPANDING:
        return 1
    count = 4  # the degree of a spline, if it is not given, and one
    settings = [("", value) for value in call.args[1:]] + [(k.arg, k.value) for k in call.keywords]
    for name, value in settings:
        if name == "x":
            continue  # the column
        try:
            setting = ast.literal_eval(value)
        except ValueError:
            return _TOO_MANY
        if isinstance(setting, list | tuple):
            count += len(setting)
        elif name in ("", "df", "degree") and isinstance(setting, int | float):
            count += math.ceil(min(abs(setting), _TOO_MANY))
    return count


def _needs_backticks(name: str) -> bool:
    """Whether a formula can name a column in backticks only."""
    return not name.isidentifier() and "`" not in name and any(map(str.isalpha, name))


def quote(name: str) -> str:
    """A column as a formula names it."""
    return name if name.isidentifier() else f"`{name}`"


def shorten(text: str, most: int = 200) -> str:
    """A text from a formula in a message: in one line, and cut to a readable length."""
    text = show_controls(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def _names_in(factor: Any) -> list[str]:
    """The columns a factor reads, after refusing everything but the listed transforms."""
    if factor.eval_method.value in ("literal", "lookup"):
        return [factor.expr] if factor.eval_method.value == "lookup" else []
    try:
        tree = ast.parse(factor.expr, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FormulaError(f"'{shorten(factor.expr)}' in a formula cannot be read.") from None
    names: list[str] = []
    _check_node(tree, shorten(factor.expr), names)
    return names


def _use(factor: Any) -> str:
    """How a checked factor reads its columns."""
    if factor.eval_method.value == "lookup":
        return BARE
    return CLASSES if _calls(factor) == {"C"} else NUMBERS


def _calls(factor: Any) -> set[str]:
    """The transforms in a checked factor."""
    if factor.eval_method.value != "python":
        return set()
    tree = ast.parse(factor.expr, mode="eval")
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


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
            check(*args, *(keyword.value for keyword in keywords))
            if _expansion(node) > _MAX_COLUMNS + 4:
                raise FormulaError(
                    f"'{text}': a transform may make at most {_MAX_COLUMNS} columns. Write their number, or "
                    "the knots, out as numbers."
                )
        case _:
            raise FormulaError(
                f"'{text}' is not allowed in a formula. Use column names, numbers, + - * / ** (to at most "
                f"{_MAX_POWER}) and these transforms: {', '.join(TRANSFORMS)}."
            )
