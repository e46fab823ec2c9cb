"""For those who receive a release: read, check and combine its copies, from the downloaded folder alone.

    import receive  # this file, beside the copies; in an installed hedgerow: from hedgerow import receive

    public = receive.read(".")  # tables as columns of NumPy arrays, and the certificate
    receive.verify(".")  # []: every file is the one that the certificate knows
    receive.intervals(".", lambda table: {"mean wage": table["wage"].mean()})

Start Python with -B, or copy the file elsewhere: `__pycache__` beside it is no part of the release, and
`hedgerow verify` says so. The file needs Python from 3.10 on and NumPy, and nothing of hedgerow; `receive.R`
does the same in base R.

How estimates from several copies become one estimate with an interval is a rule, and which rule is right
depends on how the copies were made. With m copies, q̄ and ū the means of estimates and of their variances, b
the variance of the estimates between copies, and c the part of ū that comes from protected values given the
public columns (ū, where an analysis describes protected values given public ones, as a regression does):

- partial: T = ū + b/m (Reiter 2003). Protected values were drawn from a posterior given the data itself;
- noisy: T = ū + max(0, b − 2c) + b/m. The copies follow from statistics with noise in them, and b exceeds 2c
  by its variance. Where it does not, this is `partial`, and where c = ū and it does, it is `full`;
- projected: T = ū − c + (1 + 1/m) b. The same, for copies without noise of their own about their draw;
- full: T = (1 + 1/m) b − ū (Raghunathan, Reiter and Rubin 2003), and ū where that is negative (Reiter 2002).
  All columns, the rows among them, were made anew;
- simple, proper: T = ū (1 + 1/m), ū (1 + 2/m) (Raab, Nowok and Dibben 2016), also from one copy. All values
  were drawn from the fitted model: with its estimates plugged in, or from a posterior.

Intervals are q̄ ± t √T, the degrees of freedom those of the part of T that b is in; normal ones for the last
two. All of them take the model of the synthesis as right for what is estimated. docs/combine.md has more.
"""

import csv
import errno
import hashlib
import io
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

RULES = ("partial", "noisy", "projected", "full", "simple", "proper")
FROM_ONE = ("simple", "proper")  # which do not look at how copies differ
GROUPS = 50  # of rows, that are left out or exchanged in turn
MISSING = ("NA", "N/A", "NaN", "nan", "NULL", "null", "None", ".")
_NUMBER = re.compile(
    r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|Inf|INF|infinity|Infinity)"
)
_CODE = re.compile(r"[+-]?0[0-9].*|\+[0-9]+|-?[0-9]{16,}")  # 00123, +44123, long keys: names, not numbers
_FLAGS = {word: float(word.lower() == "true") for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_FLAGS[""] = math.nan
_RETURN = (
    "the estimator must return a finite number by name, with a variance for all of them or for none: "
    '{"mean": 3.2} or {"mean": (3.2, 0.1)}. On a copy, or on a part of its rows, it did not; gaps, and codes '
    "that stand for no amount, are NaN there: leave them out, as np.nanmean and np.nanquantile do."
)
_AGAIN = "Download the release again."
_OTHERS = {"plan.yaml": "plan", "statistics.json": "statistics", "index.html": "page"}

Table = dict[str, Any]
Estimator = Callable[[Any], Any]


class ReceiveError(ValueError):
    """A folder, a rule or an estimator that does not do; the message says what would."""


class Public(NamedTuple):
    """What a public folder holds: a table per copy, as arrays by column name, and the certificate."""

    tables: list[Table]
    certificate: dict[str, Any]


class Rule(NamedTuple):
    """Which rule combines the copies of a release, and why."""

    name: str
    why: str


class Facts(NamedTuple):
    """What a certificate says of the columns that an analysis has to know, and both in words."""

    codes: dict[str, list[float]]  # numbers that stand for no amount, by column
    unit: str | None  # the column in which rows that belong together have the same; None: there is none
    about_codes: str
    about_units: str


class Estimates(NamedTuple):
    """What copies say one by one: a row for each copy, a column for each term."""

    terms: tuple[str, ...]
    estimates: np.ndarray
    variances: np.ndarray
    given: np.ndarray | None  # variances given the public columns; None where nobody asked


def rule_for(certificate: Mapping[str, Any], asked: str | None = None) -> Rule:
    """The rule that a certificate (a mapping) names for its release, or the one that is asked for."""
    told = certificate.get("combining")
    if told is None and asked is None:
        raise ReceiveError(
            f"the certificate was made before certificates named a rule. Say it: {', '.join(RULES)}."
        )
    if told is not None and asked in (None, told["rule"]):
        return Rule(told["rule"], told["why"])
    why = f"The rule {asked} was asked for."
    return Rule(str(asked), why if told is None else f"{why} {told['why']}")


def facts_of(certificate: Mapping[str, Any], columns: Iterable[str], clusters: str | None = None) -> Facts:
    """Which numbers are codes, and which rows are one unit's, by a certificate (a mapping) or by name."""
    told = {
        name: [float(code) for code in given if not isinstance(code, str)]
        for name, given in (certificate.get("codes") or {}).items()
    }
    codes = {name: given for name, given in told.items() if given}
    about_codes = " ".join(
        f"Cells of '{name}' with {', '.join(f'{code:g}' for code in given)} hold a code, no amount, and "
        "count as missing."
        for name, given in codes.items()
    )
    unit = certificate.get("unit") or {}
    if clusters is None and unit.get("rows") != 1 and unit.get("column") in {*columns}:
        clusters = unit["column"]
    about_units = ""
    if clusters is not None:
        about_units = (
            f"Rows with the same '{clusters}' belong together: standard errors are those of clusters, as far "
            "as copies have such rows alike."
        )
    elif (unit.get("rows") or 1) > 1 or unit.get("together"):
        about_units = (
            "Several rows may be one person's or firm's, and copies do not say which: standard errors are "
            "those of independent rows, and may be too small."
        )
    return Facts(codes, clusters, about_codes, about_units)


def combine(
    estimates: Any,
    variances: Any,
    *,
    rule: str,
    level: float = 0.95,
    given: Any = None,
    ratio: float = 1.0,
) -> dict[str, Any]:
    """One estimate with its interval from those of several copies, for each term.

    `estimates` and `variances` (squared standard errors) have an entry for each copy, or a row with an entry
    for each term. `given` are the parts of the variances that come from protected values given the public
    columns, for the rules `noisy` and `projected`; all of them, if nothing is said. `ratio` is the number of
    rows in a copy by that in the original.
    """
    if rule not in RULES:
        raise ReceiveError(f"rule={rule!r} is not one of {', '.join(RULES)}.")
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise ReceiveError(f"level must lie between 0 and 1, got {level!r}; 0.95 is usual.")
    if not ratio > 0:
        raise ReceiveError(
            f"ratio must be above 0, got {ratio!r}; 1 if copies have as many rows as the data."
        )
    q, u = (rows_by_copy(values) for values in (estimates, variances))
    c = u if given is None else rows_by_copy(given)
    m = len(q)
    if not q.size or q.ndim > 2 or u.shape != q.shape or c.shape != q.shape:
        raise ReceiveError(
            f"estimates have the shape {q.shape}, variances {u.shape}. Give one for each, with an entry for "
            "each copy, or a row for each copy."
        )
    if not (np.isfinite(q).all() and np.isfinite(u).all() and np.isfinite(c).all() and (u >= 0).all()):
        raise ReceiveError("an estimate or a variance is missing, infinite or negative. Look at each copy's.")
    if m == 1 and rule not in FROM_ONE:
        raise ReceiveError(
            f"the rule {rule} asks how much copies differ, and there is one. Use several copies, or "
            f"rule={FROM_ONE[1]!r} where it was drawn from a posterior of the data itself."
        )
    mean, u, c = q.mean(axis=0), u.mean(axis=0), c.mean(axis=0)
    b = q.var(axis=0, ddof=1) if m > 1 else np.zeros_like(mean)
    total, df = total_variance(rule, m, u, b, given=c, ratio=ratio)
    error = np.sqrt(total)
    reach = error * np.array([t_quantile((1 + level) / 2, one) for one in df])
    return {
        "estimate": mean,
        "std_error": error,
        "df": df,
        "lower": mean - reach,
        "upper": mean + reach,
        "rule": rule,
    }


def total_variance(
    rule: str, m: int, within: Any, between: Any, *, given: Any = None, ratio: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """T and its degrees of freedom, from ū, b and c of m copies: the rules, and nothing else."""
    u, b = np.asarray(within, dtype=np.float64), np.asarray(between, dtype=np.float64)
    c = u if given is None else np.asarray(given, dtype=np.float64)
    moving = b / m  # the part of T that is known with m − 1 degrees of freedom only
    if rule == "simple":
        total, moving = u * (ratio + 1 / m), np.zeros_like(b)
    elif rule == "proper":
        total, moving = u * (ratio + (1 + ratio) / m), np.zeros_like(b)
    elif rule == "partial":
        total = ratio * u + b / m
    elif rule == "noisy":
        total = u + np.maximum(b - 2 * c, 0) + b / m
        moving = np.where(b > 2 * c, b + b / m, b / m)
    elif rule == "projected":
        total = np.maximum(u - c, 0) + b + b / m
        moving = b + b / m
    else:
        total = b + b / m - u
        moving = np.where(total > 0, b + b / m, ratio * u)
        total = np.where(total > 0, total, ratio * u)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.where(moving > 0, (m - 1) * (total / moving) ** 2, np.inf)
    return total, df


def intervals(
    folder: str | os.PathLike[str], estimator: Estimator, *, level: float = 0.95, rule: str | None = None
) -> dict[str, Any]:
    """Estimates with intervals from all copies in a folder, by the rule that its certificate calls for.

    `estimator` takes a table and returns numbers by name, and variances if it has them: {"mean": (3.2, 0.1)}.
    Where it gives no variance, parts of the rows are left out in turn (a jackknife over 50 groups), those of
    one unit together. Cells that hold a code, no amount, are missing in its table (NaN): np.nanmean leaves
    them out, and `read` has them.
    """
    tables, certificate = read(folder)
    name, why = rule_for(certificate, rule)
    codes, unit, *notes = facts_of(certificate, tables[0])
    found = estimate(
        [_blank(table, codes) for table in tables],
        estimator,
        given=name in ("noisy", "projected"),
        clusters=None if unit is None else tables[0][unit],
    )
    combined = combine(found.estimates, found.variances, rule=name, level=level, given=found.given)
    return {"term": list(found.terms), **combined, "why": " ".join(filter(None, [why, *notes]))}


def estimate(
    tables: Sequence[Any],
    estimator: Estimator,
    *,
    given: bool,
    clusters: Any = None,
    stack: Callable[[Any, Any], Any] | None = None,
    take: Callable[[Any, np.ndarray], Any] | None = None,
    rows: Callable[[Any], int] | None = None,
) -> Estimates:
    """What `estimator` says of each table, with variances and, if asked for, those given public columns.

    A variance is that of leaving out a group of rows at a time; rows with the same in `clusters`, which has
    an entry for each row, are in one group. Given the public columns, it is that of exchanging a group for
    the same rows of the next copy, so that rows must be in the same order in all, as copies have them: public
    values stay, and d_g, the change of the estimate, has twice the variance of what the protected values of
    the group add to it, so that ½ Σ (d_g − d̄)² · G/(G − 1) is the part asked for.

    For tables that are no columns of arrays: `stack(one, other)` puts one below the other,
    `take(table, places)` is the rows at `places`, and `rows(table)` how many it has.
    """
    stack, take, rows = stack or _stack, take or _take, rows or _count_rows
    counts = [rows(table) for table in tables]
    if len({*counts}) > 1 and (given or clusters is not None):
        raise ReceiveError(
            "copies have different numbers of rows, and are compared row by row. Select rows in the "
            "estimator."
        )
    # What an estimator writes into its table stays there.
    own = (take(table, np.arange(count)) for table, count in zip(tables, counts, strict=True))
    terms, first, told = _values(estimator(next(own)))
    every = [(first, told), *(_match(terms, estimator(table)) for table in own)]
    q = np.array([values for values, _ in every])
    u = np.array([np.full(len(terms), np.nan) if var is None else var for _, var in every])
    by_count = {
        count: _groups(count) if clusters is None else _group_clusters(clusters) for count in {*counts}
    }
    if any(groups.max(initial=0) == 0 for groups in by_count.values()):
        raise ReceiveError("there is one row, or one cluster of rows, alone, which shows no variance.")
    c = np.empty_like(q) if given and len(tables) > 1 else None
    for place, table in enumerate(tables):
        other, count = tables[(place + 1) % len(tables)], counts[place]
        groups = by_count[count]
        size = int(groups.max()) + 1
        if told is None:
            left = (take(table, np.flatnonzero(groups != g)) for g in range(size))
            without = np.array([_match(terms, estimator(each))[0] for each in left])
            u[place] = ((without - without.mean(axis=0)) ** 2).sum(axis=0) * (size - 1) / size
        if c is not None:
            both = stack(table, other)
            swapped = (take(both, np.arange(count) + count * (groups == g)) for g in range(size))
            change = np.array([_match(terms, estimator(each))[0] for each in swapped]) - q[place]
            c[place] = ((change - change.mean(axis=0)) ** 2).sum(axis=0) * size / (size - 1) / 2
    return Estimates(terms, q, u, c)


def read(folder: str | os.PathLike[str], *, encoding: str | None = None) -> Public:
    """The copies and the certificate of a public folder, or of the release folder around it.

    A column of CSV is numbers if each cell is one, empty or a word for a missing value (NaN then), or true or
    false (1 and 0), else text.
    Other formats are read by pandas; of Stata's and SPSS's columns codes, not their labels. Public columns
    must be the same in all copies, row by row. Nothing else is verified: see `verify`.
    """
    public, certificate = _open(folder)
    names = _protected(certificate) + list(certificate["unchanged"])
    tables: list[Table] = []
    for copy in certificate["copies"]:
        name, path = ascii(copy["file"])[1:-1], public / copy["file"]
        try:
            if path.exists() and not path.is_file():  # a pipe would be waited for
                raise OSError(errno.EINVAL, "it is no file")
            table = _read_table(path, copy["format"], names, encoding)
            rows = _count_rows(table)
        except FileNotFoundError:
            raise ReceiveError(f"{name} is missing. {_AGAIN}") from None
        except OSError as error:
            raise ReceiveError(f"{name} cannot be read ({error.strerror}). {_AGAIN}") from None
        except ImportError as error:
            raise ReceiveError(
                f"{name}: pandas reads the format {copy['format']!a}, with what it needs for that. {error}"
            ) from None
        except (ValueError, KeyError, StopIteration, csv.Error):
            raise ReceiveError(
                f"{name} is no table in the format {copy['format']!a}: it was changed or cut short, or "
                f"needs another encoding. {_AGAIN}"
            ) from None
        records = certificate.get("records")
        if records is not None and rows != records:
            raise ReceiveError(f"{name} has {rows} rows, the certificate says {records}. {_AGAIN}")
        if tables and (different := _find_difference(table, tables[0], certificate["unchanged"])):
            raise ReceiveError(f"{name} has other {different} than the first copy: one was changed. {_AGAIN}")
        tables.append(table)
    return Public(tables, certificate)


def verify(folder: str | os.PathLike[str]) -> list[str]:
    """What is wrong with a public folder, in sentences; empty if every file is as the certificate says.

    Sizes and SHA-256 of files; the certificate's own text for people, certificate.md, has none and is not
    looked at. `hedgerow verify` does more: it writes that text and the claim anew from the certificate's
    figures, holds them against the plan, counts records and columns, and checks a signature. Neither can tell
    who made an unsigned release.
    """
    public, certificate = _open(folder)
    copies = {copy["file"]: copy for copy in certificate["copies"]}
    digests = {name: copy.get("sha256") for name, copy in copies.items()}
    digests |= {name: certificate[key] for name, key in _OTHERS.items() if certificate.get(key)}
    digests |= certificate.get("receive") or {}
    there = {place.name for place in public.iterdir()}
    problems = [f"{name} is missing." for name in sorted({*digests, "certificate.md"} - there)]
    known = {*digests, "certificate.json", "certificate.md", "certificate.json.sig"}
    problems += [
        f"{ascii(name)[1:-1]} was added, and is not known to the certificate."
        for name in sorted(there - known)
    ]
    for name in sorted(digests.keys() & there):
        path = public / name
        if not path.is_file() or path.is_symlink():
            problems.append(f"{name} is not a file.")
        elif name in copies and path.stat().st_size != copies[name].get("bytes"):
            problems.append(f"{name} was changed: it has another size than the certificate says.")
        elif _sha256(path) != digests[name]:
            problems.append(f"{name} was changed: its digest is not the certificate's.")
    return problems


def name_values(found: Any) -> dict[str, Any]:
    """What an estimator returned, by name: a mapping, a series with labels, an array or one number.

    A ValueError if a name occurs twice, or if there are more values than labels.
    """
    if isinstance(found, Mapping):
        names, values = list(found), list(found.values())
    else:
        labels, values = getattr(found, "index", None), np.asarray(found).ravel().tolist()
        if labels is not None and not callable(labels):  # of a pandas Series; a list's is a method
            names = list(labels)
        else:
            names = list(range(1, len(values) + 1)) if np.ndim(found) else ["estimate"]
    named = dict(zip(map(str, names), values, strict=True))
    if len(named) < len(values):
        raise ValueError("a name occurs twice")
    return named


def t_quantile(probability: float, df: float) -> float:
    """The quantile of Student's t for a probability above one half; of the normal for df = ∞."""
    if not 0.5 < probability < 1 or not df > 0:
        raise ReceiveError(f"t_quantile({probability!r}, {df!r}): needs 0.5 < probability < 1 and df > 0.")
    z = NormalDist().inv_cdf(probability)
    if df > 1000:  # Fisher and Cornish's series; its next term is below 1e-13
        z2 = z * z
        series = (
            (z2 + 1) / 4,
            ((5 * z2 + 16) * z2 + 3) / 96,
            (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384,
            ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160,
        )
        return z * (1 + sum(term / df**power for power, term in enumerate(series, 1)))
    # Newton's method for log t, in which the log of the tails is concave: from the normal quantile, which is
    # too small, it goes beyond the root at once and then back to it from above.
    target, log_t = math.log(2 * (1 - probability)), math.log(z)
    for _ in range(100):
        tails, slope = _two_tails(log_t, df)
        step = (math.log(tails) - target) * tails / slope
        log_t += step
        if abs(step) < 1e-14:
            break
        if log_t > 700:  # beyond what a number holds, for df next to nothing
            return math.inf
    return math.exp(log_t)


def _two_tails(log_t: float, df: float) -> tuple[float, float]:
    """P(|T| > t), the incomplete beta function at df/(df + t²), and how fast it falls with log t: 2t f(t)."""
    a, b = df / 2, 0.5
    gap = 2 * log_t - math.log(df)  # log of t²/df
    log_x = -(math.log1p(math.exp(gap)) if gap < 30 else gap + math.exp(-gap))
    log_y = gap + log_x
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * log_x + b * log_y)
    x = math.exp(log_x)
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a, 2 * front
    return 1 - front * _fraction(b, a, math.exp(log_y)) / b, 2 * front


def _fraction(a: float, b: float, x: float) -> float:
    """Lentz's evaluation of the incomplete beta function's continued fraction."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for k in range(1, 10_000):
        for top in (
            k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k)),
            -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1)),
        ):
            d, c = 1 / (1 + top * d), 1 + top / c
            value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return value


def rows_by_copy(values: Any) -> np.ndarray:
    """A row for each copy."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ReceiveError("estimates and variances must be numbers, as many for each copy.") from None
    return array[:, None] if array.ndim == 1 else array


def _groups(rows: int) -> np.ndarray:
    """A group for each row, in no relation to their order, and the same on every machine and in R."""
    state, keys = 20_240_229, np.empty(rows)
    for place in range(rows):
        state = state * 16807 % 2147483647
        keys[place] = state
    groups = np.empty(rows, dtype=np.int64)
    groups[np.argsort(keys, kind="stable")] = np.arange(rows) % GROUPS
    return groups


def _group_clusters(clusters: Any) -> np.ndarray:
    """A group for each row, the same for all rows of a cluster; clusters count in the order they come in."""
    _, first, place = np.unique(np.asarray(clusters), return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return np.asarray(_groups(len(first))[order[place.ravel()]])


def _blank(table: Table, codes: Mapping[str, Sequence[float]]) -> Table:
    """The table without the numbers that stand for no amount."""
    return {
        name: np.where(np.isin(cells, codes[name]), np.nan, cells)
        if name in codes and cells.dtype.kind in "iuf"
        else cells
        for name, cells in table.items()
    }


def _find_difference(table: Table, first: Table, unchanged: Iterable[str]) -> str:
    """What a copy does not share with the first though all copies do, in words; empty if there is none."""
    if [*table] != [*first]:
        return "columns"
    for name in filter(first.__contains__, unchanged):
        one, other = first[name], table[name]
        if len(one) != len(other) or not np.all((one == other) | ((one != one) & (other != other))):
            return f"public values in {name!a}, or its rows in another order,"
    return ""


def _count_rows(table: Table) -> int:
    return len(next(iter(table.values())))


def _stack(one: Table, other: Table) -> Table:
    return {name: np.concatenate([one[name], other[name]]) for name in one}


def _take(table: Table, places: np.ndarray) -> Table:
    return {name: values[places] for name, values in table.items()}


def _values(found: Any) -> tuple[tuple[str, ...], np.ndarray, np.ndarray | None]:
    """Terms, numbers and variances, if any, of what an estimator returned."""
    try:
        found = name_values(found)
        pairs = [value if isinstance(value, tuple) else (value, None) for value in found.values()]
        told = [float(variance) for _, variance in pairs if variance is not None]
        values = np.array([float(value) for value, _ in pairs])
    except (TypeError, ValueError):
        raise ReceiveError(_RETURN) from None
    if not len(values) or len(told) not in (0, len(values)) or not np.isfinite(values).all():
        raise ReceiveError(_RETURN)
    return tuple(found), values, np.array(told) if told else None


def _match(terms: tuple[str, ...], found: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Numbers and variances of the same terms as on the first copy."""
    names, values, told = _values(found)
    if names != terms:
        raise ReceiveError(
            "the estimator returns other terms on another copy, or on a part of its rows. Fix them."
        )
    return values, told


def _open(folder: str | os.PathLike[str]) -> tuple[Path, dict[str, Any]]:
    """The public folder and its certificate, whose files are none but those in it."""
    for place in (Path(folder), Path(folder) / "public"):
        if (place / "certificate.json").is_file():
            try:
                certificate = json.loads((place / "certificate.json").read_bytes())
                files = [copy["file"] for copy in certificate["copies"]]
                outside = any(re.search(r"[/\\:]|^\.+$", name) for name in files)
            except (ValueError, KeyError, TypeError, RecursionError):
                files, outside = [], False
            if not files:
                raise ReceiveError(f"certificate.json lists no copies: it was changed or cut short. {_AGAIN}")
            if outside:
                raise ReceiveError(
                    "certificate.json names a copy outside its folder: it was not made by hedgerow."
                )
            if not _is_whole(certificate):
                raise ReceiveError(
                    "certificate.json lacks something that every certificate says: it was changed or cut "
                    f"short. {_AGAIN}"
                )
            return place, certificate
    raise ReceiveError(
        f"{Path(folder).name}: no certificate.json in it. Pass the folder that holds the copies."
    )


def _is_whole(certificate: Mapping[str, Any]) -> bool:
    """Whether there is what this file reads of a certificate, and of the right kind."""
    try:
        combining = certificate.get("combining")
        words = [] if combining is None else [combining["rule"], combining["why"]]
        words += [*_protected(certificate), *certificate["unchanged"]]
        words += [copy["format"] for copy in certificate["copies"]]
        codes, unit, receive = (certificate.get(name) or {} for name in ("codes", "unit", "receive"))
        words += [*receive.keys(), *([] if unit.get("column") is None else [unit["column"]])]
        numbers = [] if unit.get("rows") is None else [unit["rows"]]
        for told in codes.values():
            words += [code for code in told if isinstance(code, str)]
            numbers += [code for code in told if not isinstance(code, str)]
    except (KeyError, TypeError, AttributeError):
        return False
    return all(isinstance(word, str) for word in words) and all(
        isinstance(number, int | float) for number in numbers
    )


def _protected(certificate: Mapping[str, Any]) -> list[str]:
    protected = certificate["protected"]
    return [protected] if isinstance(protected, str) else list(protected)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _read_table(path: Path, format: str, names: Sequence[str], encoding: str | None) -> Table:
    if format == "csv":
        return _read_csv(path.read_bytes(), names, encoding)
    import pandas as pd

    codes = {"convert_categoricals": False}  # not their labels, which some of a column's numbers may have
    readers: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "parquet": (pd.read_parquet, {}), "arrow": (pd.read_feather, {}), "stata": (pd.read_stata, codes),
        "spss": (pd.read_spss, codes), "excel": (pd.read_excel, {"dtype": object}),  # 007 stays text
    }  # fmt: skip
    reader, told = readers[format]
    frame = reader(path, **told).infer_objects()
    for name in frame.columns:
        if frame[name].dtype == object and pd.api.types.infer_dtype(frame[name]) == "boolean":  # with gaps
            frame[name] = frame[name].astype(np.float64)
    numeric = {name for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name])}
    return {
        str(name): frame[name].to_numpy(np.float64, na_value=np.nan)
        if name in numeric and pd.api.types.is_extension_array_dtype(frame[name])
        else frame[name].to_numpy()
        for name in frame.columns
    }


def _read_csv(content: bytes, names: Sequence[str], encoding: str | None) -> Table:
    """By the delimiter that makes most of the certificate's names of the first line."""
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = content.decode(encoding or ("utf-16" if wide else "utf-8-sig"))
    except UnicodeDecodeError:
        if encoding:
            raise
        text = content.decode("cp1252")
    head = {sign: next(csv.reader(io.StringIO(text, ""), delimiter=sign)) for sign in ",;\t|"}
    sign = max(head, key=lambda one: len({*head[one]} & {*names}))
    rows = [row for row in csv.reader(io.StringIO(text, ""), delimiter=sign) if row]
    # An apostrophe keeps a spreadsheet from running what follows it.
    header = [name[1:] if name not in names and name[1:] in names else name for name in rows[0]]
    columns = zip(*rows[1:], strict=True)
    return {name: _convert(cells, sign) for name, cells in zip(header, columns, strict=True)}


def _convert(cells: Iterable[str], sign: str) -> np.ndarray:
    """Numbers, where each cell is one or missing, with a decimal point or (beside another sign) a comma."""
    words = list(cells)
    if _FLAGS.keys() >= {*words} and any(words):
        return np.array([_FLAGS[word] for word in words])
    for decimal in "." if sign == "," else ".,":
        spelled = [
            "nan" if word == "" or word in MISSING else word.replace(decimal, ".") if decimal == "," else word
            for word in words
        ]
        if all(word == "nan" or (_NUMBER.fullmatch(word) and not _CODE.fullmatch(word)) for word in spelled):
            return np.array(spelled, dtype=np.float64)
    return np.array(words)
