"""Does a certificate agree with itself, and with the plan beside it?

Its claim is written again from its fields, by the words of `privacy.claims`. Each function returns what does
not agree, in sentences. None of it needs the engine: what a plan means is left to whoever can run it, what it
says in plain values is compared.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hedgerow.errors import format_value
from hedgerow.numerics.rounding import format_count
from hedgerow.privacy.claims import (
    CORRECTED,
    NO_TARGET,
    NOTHING,
    OWN_BOUNDS,
    SENTENCES,
    Figures,
    is_refusal,
    list_protected,
    write_claim,
    write_plain,
)
from hedgerow.privacy.claims.caveats import ALWAYS, write_caveat, write_looks
from hedgerow.privacy.claims.cells import describe_cells
from hedgerow.privacy.claims.neighbours import NEIGHBOURS, join_columns, join_records, whose
from hedgerow.privacy.claims.units import WHOLE_UNIT, write_unit
from hedgerow.release.certificate import NAMES, Certificate, Price
from hedgerow.release.folder import CERTIFICATE, PLAN, RECEIVE

ENDINGS = {name: name for name in ("csv", "parquet", "arrow")} | {
    "stata": "dta",
    "spss": "sav",
    "excel": "xlsx",
}
# Bounds that weights were seen to exceed if they are computed anew, and what is said of which weights.
SHARPER = ("oscillation", "exact", "renyi")
RECOMPUTED = {
    **dict.fromkeys(("linear", "inverse"), "C14"),
    **dict.fromkeys(("softmax", "logistic", "cap"), "C16"),
    "identification": "C15",
    "scalar": "C35",
}
ATOMS = ("poisson", "negative_binomial", "bernoulli", "ordinal", "categorical", "dirichlet")
_ALONE = ("family", "declared")  # keys of a plan that protects one column
# What a plan means that does not say so.
USUAL: dict[str, Any] = {
    "family": "lognormal",
    "standard": "adp",
    "bound": "lipschitz",
    "copies": 1,
    "draws": 1000,
    "delta": 1e-6,
}


def certificate_problems(certificate: Certificate) -> list[str]:
    """Where the certificate contradicts itself."""
    checks = (_figures, _words, _looks, _combining, _caveats, _files, _columns)
    found = [problem for check in checks for problem in check(certificate)]
    return [f"{CERTIFICATE} contradicts itself: {problem}" for problem in found]


def plan_problems(certificate: Certificate, plan: dict[str, Any]) -> list[str]:
    """Where the certificate says something else than the published plan."""
    plan = USUAL | plan
    kind, target = _kind(plan["standard"]), plan.get("epsilon")
    standard = plan["standard"] if isinstance(plan["standard"], Mapping) else {}
    label, _, remark = certificate.standard.partition(", ")
    claimed = None if certificate.epsilon is None else certificate.epsilon.total
    pairs = {
        **_protected(plan, certificate),
        "standard": (kind, re.sub("(?<=[a-z])(?=[A-Z])", "-", label).lower()),
        "public weight": (standard.get("public_weight") == "one", remark == "public weight one"),
        "relation": (_relation(standard), remark if kind == "strict" else ""),
        "bound": (_own_bound(kind, standard, certificate) or plan["bound"], certificate.bound),
        "number of copies": (plan["copies"], len(certificate.copies)),
        "target ε": (None if target == "no-target" else target, claimed),
    }
    if certificate.version >= 2 and certificate.unit is not None:
        about = plan.get("about", {})
        said = {k: v for k, v in about.items() if k != "earlier"} if isinstance(about, Mapping) else about
        # Without a word on rows, a unit that is not priced as a whole was declared to have one.
        alone = "unit" in plan and not certificate.unit.together
        rows = plan.get("rows_per_unit", 1 if alone else None)
        pairs |= {
            "words about the release": (said, certificate.about),
            "rows of one unit": (rows, certificate.unit.rows),
            "column that names a unit": (plan.get("unit"), certificate.unit.column),
        }
        if (certificate.earlier_releases is not None) != (
            isinstance(about, Mapping) and about.get("earlier") is True
        ):
            pairs["word on earlier releases"] = (about, certificate.earlier_releases)
    if certificate.bound in ("renyi", "gaussian") and certificate.delta is not None:  # else draws make it
        pairs["δ"] = (plan["delta"], certificate.delta.total)
    if claimed is None and certificate.claim != NO_TARGET:
        del pairs["target ε"]  # a target that the owner gave up by overriding a check
    problems = [
        f"{PLAN} and {CERTIFICATE} differ in the {what}: {format_value(said)} and {format_value(stated)}."
        for what, (said, stated) in pairs.items()
        if said != stated
    ]
    draws = plan["draws"]
    if not isinstance(draws, int) or certificate.draws > draws:
        problems.append(
            f"{CERTIFICATE} counts {format_value(certificate.draws)} draws, {PLAN} {format_value(draws)}."
        )
    outputs = plan.get("outputs")
    asked = isinstance(outputs, Mapping) and outputs.get("statistics") is True
    if asked != (certificate.statistics is not None):
        problems.append(f"{PLAN} and {CERTIFICATE} differ in whether statistics are published.")
    asked = isinstance(outputs, Mapping) and outputs.get("receive") is True
    if {*(certificate.receive or ())} != ({*RECEIVE} if asked else set()):
        problems.append(f"{PLAN} and {CERTIFICATE} differ in whether there are files for receivers.")
    dropped, kept = _names(plan, "drop"), _names(plan, "keep")
    if both := {*dropped} & set(certificate.unchanged):
        problems.append(f"{PLAN} drops a column that {CERTIFICATE} lists as released: {min(both)!r}.")
    said = write_caveat("C23", ", ".join(kept), list_protected(certificate.protected))
    if kept and said not in certificate.not_covered:
        problems.append(f"{PLAN} keeps columns on purpose, and {CERTIFICATE} does not say so: {kept[0]!r}.")
    if certificate.version == 1:
        return problems
    lacking = [id for id in _due(plan, certificate) if write_caveat(id) not in certificate.not_covered]
    problems += [f"by {PLAN} {id} is not covered, and {CERTIFICATE} does not say so." for id in lacking]
    said = tuple(item.what for item in certificate.assumed_public)
    unsaid = [what for what in _assumed(plan) if not any(each.startswith(what) for each in said)]
    problems += [
        f"{PLAN} assumes, and {CERTIFICATE} does not say: {format_value(what)}." for what in unsaid[:1]
    ]
    return problems


def _due(plan: dict[str, Any], certificate: Certificate) -> Iterator[str]:
    """What the published plan leaves uncovered by its weights, its ranges and what it declares of columns."""
    standard, columns = plan["standard"], [keys for _, keys in _list_columns(plan)]
    known = standard.get("range") if isinstance(standard, Mapping) else None
    kinds = {*_list_kinds(known)} - {"box", "everywhere"}
    if certificate.bound not in WHOLE_UNIT:
        if _kind(standard) == "range-truncated" and kinds:
            yield "C18"
        if kinds & {"radius", "tail"}:
            yield "C21"
        if isinstance(known, Mapping) and known.get("outside") == "public":
            yield "C22"
    if certificate.bound in SHARPER and _kind(standard) != "unweighted":
        recomputed = find_recomputed(plan.get("weights"))
        if recomputed != "C35" or plan.get("epsilon") not in (None, "no-target"):
            yield from filter(None, [recomputed])
    families = [keys.get("family", USUAL["family"]) for keys in columns]
    rounded = any(isinstance(family, Mapping) and "rounded" in family for family in families)
    if kinds and (rounded or any(_has_atoms(str(_kind(family))) for family in families)):
        yield "C20"
    declared = [keys for keys in columns if keys.get("declared") or any(describe_cells("", _told(keys)))]
    if declared or any(isinstance(family, Mapping) and len(family) > 1 for family in families):
        yield "C19"
    if "withheld" in certificate.neighbour and any(keys.get("missing") == "synthesized" for keys in columns):
        yield "C38"


def find_recomputed(weights: Any) -> str | None:
    """What is not covered because of a plan's weights, where they are held fixed; None for planned ones."""
    kind, base = _kind(weights), weights
    while _kind(base) == "reweighted" and isinstance(base, Mapping):
        base = base.get("base")
    found = RECOMPUTED.get(str(_kind(base)))
    return found if kind != "reweighted" or found == "C14" else "C16"


def _assumed(plan: dict[str, Any]) -> Iterator[str]:
    """How the sentences begin that say what the published plan takes as public."""
    standard = plan["standard"]
    for name, keys in _list_columns(plan):
        yield from describe_cells(name, _told(keys))
        family = keys.get("family")
        if keys.get("declared") or (isinstance(family, Mapping) and len(family) > 1):
            yield f"what the plan declares of '{name}'"
    limits = standard.get("limits") if isinstance(standard, Mapping) else None
    if limits:
        yield "amounts lie between limits" if isinstance(limits, Mapping) else "values lie between"
    if plan.get("missing") == "drop":
        yield "which rows lack a value in"


def _list_columns(plan: dict[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The protected columns, with the plan's keys for each."""
    columns = plan.get("columns")
    if not isinstance(columns, Mapping):
        return [(str(_outcome(plan.get("formula"))), {key: plan[key] for key in _ALONE if key in plan})]
    return [(str(name), keys) for name, keys in columns.items() if isinstance(keys, Mapping)]


def _told(keys: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a column, of which codes may be anything in a plan that nobody could run."""
    codes = keys.get("codes")
    return {**keys, "codes": codes if isinstance(codes, list) else []}


def _has_atoms(family: str) -> bool:
    """Whether single values of a family have chances of their own."""
    return family.startswith("zero_") or family in ATOMS


def _list_kinds(written: Any) -> Iterator[str]:
    """The kinds of a range and of those it is made of."""
    if isinstance(written, str):
        yield written
    elif isinstance(written, Mapping):
        if isinstance(kind := written.get("kind"), str):
            yield kind
        for part in written.values():
            yield from _list_kinds(part) if isinstance(part, Mapping) else ()


def _protected(plan: dict[str, Any], certificate: Certificate) -> dict[str, tuple[Any, Any]]:
    """What plan and certificate say of the protected columns and of their model."""
    columns, derived = plan.get("columns"), plan.get("derived")
    made_last = tuple(derived) if isinstance(derived, Mapping) else ()
    if not isinstance(columns, Mapping) or not columns:
        family = _kind(plan["family"])
        model = f"{family}, censored" if _kind(plan["standard"]) == "censored" else family
        said: Any = _outcome(plan.get("formula"))
        pairs = {"protected column": ((said, *made_last) if made_last else said, certificate.protected)}
        return pairs | {"model": (model, certificate.family)}
    said = (*columns, *made_last)
    each = [column if isinstance(column, Mapping) else {} for column in columns.values()]
    formulas = tuple(_outcome(column.get("formula")) for column in each)
    coded = {name: column.get("codes") for name, column in zip(columns, each, strict=True)}
    codes = {name: tuple(told) for name, told in coded.items() if isinstance(told, list) and told}
    families = [str(_kind(column.get("family", USUAL["family"]))) for column in each]
    return {
        "protected columns": (said if len(said) > 1 else said[0], certificate.protected),
        "columns that its formulas protect": (formulas, certificate.outcomes[: len(formulas)]),
        "model": (", ".join(families), certificate.family),
        "codes": (codes if certificate.codes is not None else None, certificate.codes),
    }


def _neighbour(given: Certificate) -> str:
    """What a release under its standard is compared with."""
    alone = NEIGHBOURS[given.standard]
    neighbour = join_columns(alone) if given.several else alone
    unit = _whose(given)
    return neighbour if unit is None else join_records(neighbour, unit)


def _whose(given: Certificate) -> str | None:
    """Whose rows the claim is for, all together; None for one row."""
    if given.unit is None or not given.unit.together:
        return None
    return whose(None, given.unit.rows) if given.bound in WHOLE_UNIT else whose(given.unit.column)


def _names(plan: dict[str, Any], key: str) -> list[str]:
    """The columns that the plan's outputs list under a key."""
    outputs = plan.get("outputs")
    names = outputs.get(key) if isinstance(outputs, Mapping) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


# Whether draws are, where no claim is made of their number: in closed form, by rejection, by a Markov chain.
_INDEPENDENT = {"renyi": True, "strict": True, "statistics": False, "gaussian": False}


def _figures(given: Certificate) -> Iterator[str]:
    copies, sentence = len(given.copies), SENTENCES[given.bound]
    stated = sentence.states
    for name, price in (("ε", given.epsilon), ("δ", given.delta)):
        if price is not None and not _adds_up(price, copies, together=sentence.together, exactly=name == "δ"):
            one = f"{format_count(copies, 'copy')} at {name} = {price.per_copy!r}"
            yield f"{one} {'does' if copies == 1 else 'do'} not make {price.total!r} in total."
    for name, value, due in (
        ("δ", given.delta, "delta" in stated and given.epsilon is not None),
        ("confidence", given.confidence, "confidence" in stated),
    ):
        if (value is not None) != due:
            yield f"a claim of this kind {'needs' if due else 'has no'} {name} under the bound {given.bound}."
    expected = _INDEPENDENT.get(given.bound)
    if expected is not None and given.independent_draws != expected:
        yield f"under the bound {given.bound} draws are {'independent' if expected else 'those of a chain'}."
    if given.confidence is not None and given.confidence >= 1:
        yield f"a confidence must be below 1, got {given.confidence!r}."
    elif given.confidence is not None and given.delta is not None and given.delta.per_copy is not None:
        # What so many draws support at best; one more than stated, since their number was rounded down.
        draws = min(given.draws + 1, 1 << 53)
        least = -math.expm1(math.log1p(-given.confidence) / draws)
        if given.delta.per_copy < least:
            yield (
                f"{format_value(given.draws)} draws support no δ below {least:.3g} at confidence "
                f"{given.confidence!r}, got {given.delta.per_copy!r}."
            )


def _words(given: Certificate) -> Iterator[str]:
    if given.standard not in NEIGHBOURS:
        yield f"the standard {format_value(given.standard)} is not known."
    elif given.neighbour != _neighbour(given):
        yield f"the neighbour is not that of the standard {given.standard}."
    brought = {bound for bounds in OWN_BOUNDS.values() for bound in bounds}
    if given.bound not in OWN_BOUNDS.get(given.standard, SENTENCES.keys() - brought):
        yield f"the standard {format_value(given.standard)} does not go with the bound {given.bound}."
    figures = make_figures(given)
    if figures is None:
        if not is_refusal(given.claim):
            yield "it states no ε, but claims something."
    elif given.claim != write_claim(given.bound, figures):
        yield "the claim is not the one that its figures make."
    if given.version == 1:
        return
    plain = NOTHING if figures is None else write_plain(given.bound, figures, records=given.records)
    if given.plain != plain:
        yield "the plain paragraph is not the one that its figures make."
    unit = given.unit
    if unit is None or unit.covered != write_unit(
        given.bound,
        figures,
        rows=unit.rows,
        column=unit.column,
        several=given.several,
        together=unit.together,
    ):
        yield "what it says of the unit of privacy is not what its figures make."
        return
    by_noise = given.bound in WHOLE_UNIT
    lacks = (unit.rows or 1) == 1 if by_noise else unit.column is None or given.standard in OWN_BOUNDS
    if unit.together and lacks:
        yield f"under the bound {given.bound}, and by what is declared of it, no unit is priced as a whole."
    used = given.used_not_released if unit.together and not by_noise else ()
    if unit.column is not None and unit.column not in (*given.unchanged, *used):
        yield f"the column {format_value(unit.column)} that names a unit is not among those released."


def make_figures(given: Certificate) -> Figures | None:
    """What the words of its claim are made from; None where it states no ε."""
    if given.epsilon is None:
        return None
    one, whole = (0.0, 0.0) if given.delta is None else (given.delta.per_copy, given.delta.total)
    return Figures(
        neighbour=given.neighbour,
        epsilon=given.epsilon.total,
        copies=len(given.copies),
        draws=given.draws,
        independent=given.independent_draws,
        delta=whole if one is None else one,
        confidence=1.0 if given.confidence is None else given.confidence,
        unit=_whose(given),
    )


def _looks(given: Certificate) -> Iterator[str]:
    if given.looks is not None and write_looks(given.looks) not in given.not_covered:
        yield "what it says of looks at the data beforehand is not what their number makes."


def _combining(given: Certificate) -> Iterator[str]:
    if given.combining is not None and given.combining != given.fitting_rule:
        yield "the rule that combines copies is not the one that its other fields call for."


def _caveats(given: Certificate) -> Iterator[str]:
    """What follows from its other fields, since version 2; the rest follows from plan and model."""
    if given.version == 1:
        return
    over_draws = "confidence" in SENTENCES[given.bound].states
    due = dict.fromkeys(ALWAYS[given.bound], True) | {
        "C17": given.standard == "RangeAveraged",
        "C25": any(text.startswith(CORRECTED) for text in given.processing),
        "C36": over_draws and not given.independent_draws,
        "C27": given.seeded,
        "C28": True,
        "C34": given.standard == "Strict, in range",
    }
    if given.epsilon is not None or given.claim == NO_TARGET:  # else the owner gave up a target
        due["C24"] = over_draws and given.epsilon is not None
    sentences = {id: write_caveat(id) for id in due}
    if given.used_not_released:
        due["C29"], sentences["C29"] = True, write_caveat("C29", ", ".join(given.used_not_released))
    for id, applies in due.items():
        if (sentences[id] in given.not_covered) != applies:
            yield f"what is not covered {'lacks' if applies else 'has'} {id}, against its other fields."
    said = [text for id in ("C17", "C18") if (text := write_caveat(id)) in given.not_covered]
    if said != ([] if given.left_open is None else [given.left_open]):
        yield "what its range leaves open is not what it says is not covered."
    if said and not given.standard.startswith("Range"):
        yield f"the standard {given.standard} has no range that could leave something open."


def _files(given: Certificate) -> Iterator[str]:
    first = given.copies[0].format
    for number, copy in enumerate(given.copies, 1):
        if copy.format not in ENDINGS or copy.format != first:
            yield (
                f"{copy.file} has the format {format_value(copy.format)}; all copies have the same one of "
                f"{', '.join(ENDINGS)}."
            )
        elif copy.file != NAMES[given.version].format(number, ENDINGS[copy.format]):
            yield f"copy {number} of format {copy.format} is named {copy.file}."


def _columns(given: Certificate) -> Iterator[str]:
    for name in given.outcomes:
        if name in given.unchanged:
            yield f"the protected column {name!r} is among those passed through."
        if name in given.used_not_released:
            yield f"the protected column {name!r} is among those not released."
    if len({*given.outcomes}) < len(given.outcomes):
        yield "it names a protected column twice."
    if both := set(given.unchanged) & set(given.used_not_released):
        yield f"the column {min(both)!r} is both released and not released."


def _adds_up(price: Price, copies: int, *, together: bool, exactly: bool) -> bool:
    """Whether copies make the total: ε per copy is rounded down, and δ in total is the product."""
    if price.per_copy is None:
        return together and copies > 1
    rounding = 1e-15 if exactly else 1e-9
    return not (together and copies > 1) and math.isclose(
        price.per_copy * copies, price.total, rel_tol=rounding
    )


def _kind(given: Any) -> Any:
    """The word for a part of a plan: a bare one, or that of a record with settings."""
    return given.get("kind") if isinstance(given, Mapping) else given


def _relation(standard: Mapping[str, Any]) -> str:
    """What a strict standard by statistics is compared with, as its label says it; empty for others."""
    if "limits" not in standard:
        return ""
    said = standard.get("relation", "withheld")
    return "in range" if said == "range" else str(said)


def _own_bound(kind: Any, standard: Mapping[str, Any], certificate: Certificate) -> str | None:
    """The bound that a standard brings; None for one under which a plan chooses.

    What `noise: auto` became follows from the predictors, and the certificate says it.
    """
    if kind == "strict" and "limits" in standard:
        noise = standard.get("noise", "laplace")
        if noise == "auto" and certificate.bound in WHOLE_UNIT:
            return certificate.bound
        return "gaussian" if noise == "gaussian" else "statistics"
    return kind if kind in ("strict", "censored") else None


def _outcome(formula: Any) -> Any:
    """The column left of the tilde, without backticks."""
    left = formula.partition("~")[0].strip() if isinstance(formula, str) else None
    quoted = left and re.fullmatch("`([^`]*)`", left)
    return quoted[1] if quoted else left
