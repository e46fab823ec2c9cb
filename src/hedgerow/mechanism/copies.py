"""From a certified fit to synthetic outcomes: which draws go out, corrected or not, and what they predict.

Predictions come from uniform numbers: independent ones, or stratified ones for smoother copies. Both are
post-processing of the released draws. Stratified numbers fill the unit interval evenly within groups of
records whose fitted values are neighbours, a public function of the draw and the predictors, leaf by leaf of
the table (`numerics.leaves`). Each number by itself is still uniform; together they scatter less than
independent ones, which rules that combine copies and standard errors computed from one copy do not expect
(docs/bias.md).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from hedgerow.arrays import PerLink, PerRecord, columns_of, join_columns
from hedgerow.errors import DataError, SettingError
from hedgerow.mechanism.cells import (
    apply_rules,
    fill_unused,
    take_apart,
    with_fillers,
    write_column,
    write_derived,
)
from hedgerow.mechanism.debias import Corrected, correct, keep_inside, public_draw, public_view
from hedgerow.mechanism.steps import Outcome, Start
from hedgerow.models.base import Confining, Domain, Inverting, Model, Parameters
from hedgerow.models.chain import Chain
from hedgerow.models.exact import Regression
from hedgerow.models.reductions import count_draws
from hedgerow.models.scored import Interval
from hedgerow.numerics.leaves import leaves_of
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.terms import Sampling
from hedgerow.progress import foresee, job, phase
from hedgerow.randomness import Key
from hedgerow.tables.chain import Units
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table
from hedgerow.threads import one_blas_thread

_BELOW_ONE = 1 - 2.0**-53
CORRECTING = "correcting"
_TRIED = 1000  # rows by which it is foreseen whether copies can be made
_FAR = 1e6  # how far down an amount without a lower end may be


class Leaf(NamedTuple):
    """Which records of a longer table a leaf has."""

    number: int
    rows: slice
    of: int


def released_draws(settings: Settings, start: Start, outcome: Outcome, *, key: Key) -> tuple[Corrected, ...]:
    """One draw of the certified fit per copy, chosen at random and corrected if the settings say so."""
    draws = choose_draws(settings, outcome.fit.parameters, key=key)
    if not settings.debias:
        return tuple(Corrected(draw, False, 0) for draw in draws)
    keys = (key.child("correct").child(number) for number in range(len(draws)))
    corrected: list[Corrected] = []
    with job(expected_corrections(settings)), phase(CORRECTING):
        for draw, one in zip(draws, keys, strict=True):
            corrected.append(correct(public_view(settings, start, draw, one)))
            foresee(len(corrected) / len(draws))
    return tuple(corrected)


def choose_draws(settings: Settings, parameters: Parameters, *, key: Key) -> list[Parameters]:
    """Picks as many draws as there are copies, at random."""
    order = np.argsort(key.child("draws").stream().uniform(count_draws(parameters)))[: settings.copies]
    return [public_draw(parameters, int(draw)) for draw in order]


def expected_corrections(settings: Settings) -> dict[str, int]:
    """About how many fits `released_draws` takes, for its phase; none where nothing is corrected."""
    if not settings.debias:
        return {}
    tables = getattr(settings.model, "tables", Regression.tables)
    each = 1 if settings.target is None else 5  # fits a table: the plain one, then a search from a good guess
    return {CORRECTING: settings.copies * tables * 2 * each}  # in two steps, as a rule


@one_blas_thread()
def predict_copies(
    settings: Settings, start: Start, released: Sequence[Corrected], *, key: Key
) -> list[PerLink]:
    """The synthetic outcomes, copy by copy, from the released draws and public things alone."""
    model, design = settings.model, start.design.blank()
    interval = public_interval(settings, start.table)
    units = None if settings.unit is None else Units.of(start.table, settings.unit)
    copies: list[PerLink] = []
    for number, draw in enumerate(released):
        own = key.child("predict").child(number)
        if units is not None and not isinstance(model, Chain) and settings.column.shared:
            copies.append(predict_once(settings.sampling, model, design, draw.parameters, units, own))
            continue
        values = predict_copy(settings, start.table, design, draw.parameters, interval, key=own, units=units)
        if draw.converged and interval is None:
            inside = own.child("inside")
            view = public_view(settings, start, draw.parameters, inside)
            values, _ = keep_inside(view, draw.parameters, values, inside)
        copies.append(values)
    return copies


def predict_copy(
    settings: Settings,
    table: Table,
    design: Design,
    parameters: Parameters,
    interval: Interval | None,
    *,
    key: Key,
    units: Units | None = None,
    leaf: Leaf | None = None,
) -> PerLink:
    """The synthetic outcomes of one released draw; of a leaf, its part of the copy of all records."""
    model = settings.model
    if isinstance(model, Chain):

        def predict_link(place: int, own: Model, here: Design, drawn: Parameters) -> PerRecord:
            if units is not None and settings.links[place].column.shared:
                return predict_once(settings.sampling, own, here, drawn, units, key.child(place))
            numbers = uniforms(settings.sampling, own, here, drawn, key=key.child(place), leaf=leaf)
            return own.predict(here, drawn, numbers)

        return _make_links(settings, table, model, design, parameters, predict_link)
    numbers = uniforms(settings.sampling, model, design, parameters, key=key, leaf=leaf)
    if interval is not None and isinstance(model, Confining):
        return model.predict_inside(design, parameters, interval, numbers)
    return model.predict(design, parameters, numbers)


def foresee_refusal(settings: Settings, table: Table, design: Design) -> str | None:
    """Why a copy could be refused when all is fitted: a formula has no number for what it may hold.

    From public things alone: all columns at the lowest value that their models know, with the first and with
    the last of declared classes, in some rows.
    """
    model = settings.model
    if not isinstance(model, Chain):
        return None
    few = np.arange(min(design.records, _TRIED), dtype=np.intp)
    some, blank = table.take(few), design.take(few).blank()
    for end in (0, -1):

        def take_lowest(
            place: int, own: Model, here: Design, drawn: Parameters, *, end: int = end
        ) -> PerRecord:
            kind = settings.links[place].role == "kind"
            return np.full(here.records, 0.0 if kind else _lowest(settings.domains[place], here, end))

        try:
            _make_links(settings, some, model, blank, {}, take_lowest)
        except DataError as error:
            return f"A copy may turn out so that it cannot be made, after all has been fitted. {error}"
    return None


def _lowest(domain: Domain, design: Design, end: int) -> float:
    """The lowest value that may be predicted, or one end of declared classes."""
    places = getattr(domain, "places", lambda _: ())(design)
    if places:
        return float(places[end])
    support = domain.support
    lower = support.lower if support.spike is None else min(support.lower, support.spike)
    if not np.isfinite(lower):
        return -_FAR
    return float(np.nextafter(lower, np.inf)) if support.above and lower != support.spike else lower


def _make_links(
    settings: Settings,
    table: Table,
    chain: Chain,
    design: Design,
    parameters: Parameters,
    predict: Callable[[int, Model, Design, Parameters], PerRecord],
) -> PerLink:
    """One link after the other, each from the synthetic cells of the columns before it."""
    marks, codes = settings.marks, settings.codes
    read = [*design.predictors, *(name for column in settings.columns for name in column.reads)]
    hidden = {*settings.outcomes, *(mark for each in marks.values() for mark in each)}
    public = [name for name in dict.fromkeys(read) if name not in hidden]
    cells = made = table.select(public) if public else None  # as they are, and as later columns read them
    columns: list[PerRecord] = []
    own: list[PerRecord] = []
    for place, (model, link, drawn) in enumerate(chain.links(design, parameters)):
        here, column = link, settings.links[place].column
        if link.secret and made is not None:
            read_from = made
            if column.reads and cells is not None:
                read_from = fill_unused(settings, column, made, apply_rules(column, cells, codes).applies)
            here = link.encode(read_from)
        own.append(predict(place, model, here, drawn))
        columns.append(own[-1])
        if settings.links[place].role == "kind":
            continue
        source = table.select([column.outcome])
        before = source if cells is None else cells.beside(source)
        typed = Table.of(write_column(settings, column, before, link.levels, own)).select([column.outcome])
        cells = typed if cells is None else cells.beside(typed)
        made = typed if made is None else made.beside(typed)
        if not column.is_plain:
            taken = take_apart(column, cells, settings.domains[place], codes=codes)
            made = with_fillers(made, taken, marks[column.outcome])
        own = []
    return join_columns(columns)


def predict_once(
    sampling: Sampling, model: Model, design: Design, parameters: Parameters, units: Units, key: Key
) -> PerRecord:
    """One value for each unit, from its first row, in all of its rows."""
    once = design.take(units.first)
    return units.spread(model.predict(once, parameters, uniforms(sampling, model, once, parameters, key=key)))


def write_copy(settings: Settings, table: Table, design: Design, copy: PerLink) -> Any:
    """A typed copy: the protected columns one after the other, then those that follow from others."""
    typed: Any = None
    parts, made = list[PerRecord](), table
    for link, each, values in zip(design.links, settings.links, columns_of(copy), strict=True):
        parts.append(values)
        if each.role == "kind":
            continue
        made = made if typed is None else Table.of(typed)
        typed, parts = write_column(settings, each.column, made, link.levels, parts), []
    return write_derived(settings, typed)


def count_moved(settings: Settings, copy: PerLink) -> Counter[str]:
    """How many amounts of a copy, by column, declared limits move, or limits of Strict have moved.

    What was drawn for a cell that a rule fixes counts as well.
    """
    strict = settings.noisy
    limits: Any = {} if strict is None else strict.limits
    if not isinstance(limits, Mapping):
        limits = {settings.column.outcome: limits}
    counts, kinds = Counter[str](), None
    for link, domain, values in zip(settings.links, settings.domains, columns_of(copy), strict=True):
        name, declared = link.column.outcome, link.column.declared
        if link.role == "kind":
            kinds = values
            continue
        amounts, kinds = values if kinds is None else values[kinds == 0], None
        beyond = np.zeros(len(amounts), np.bool_)
        for end in limits.get(name) or ():  # where such an amount already lies
            beyond |= np.isclose(amounts, end, rtol=1e-12, atol=0) & (amounts != domain.support.spike)
        if declared is not None and link.role == "amount":
            least, most = declared.ends
            beyond |= amounts < (-np.inf if least is None else least)
            beyond |= amounts > (np.inf if most is None else most)
        counts[name] += int(np.count_nonzero(beyond))
    return +counts


def count_broken(settings: Settings, copy: Table) -> list[int]:
    """How many rows of a copy break each check, or leave it in doubt."""
    checks = settings.rules.conditions
    return [int((~check.holds(copy, settings.codes, doubt=True)).sum()) for check in checks]


def check_inside(settings: Settings) -> None:
    """Refuse a model that cannot draw inside a range, before any data are seen."""
    if settings.standard.inside and not isinstance(settings.model, Confining):
        raise SettingError(
            f"inside=True: the {settings.model.name} family cannot draw inside a range; the normal and "
            "lognormal families can. Leave inside out."
        )


def public_interval(settings: Settings, table: Table) -> Interval | None:
    """The range of every record from public columns alone, where copies are drawn inside it."""
    if not settings.standard.inside:
        return None
    public_range = settings.standard.range
    table = table.copy_columns(list(dict.fromkeys(public_range.columns)))
    lower, upper = public_range.ends(np.full(table.rows, np.nan), table)  # no outcome is there to be read
    return Interval(lower, upper, np.ones(table.rows, dtype=np.bool_))


def uniforms(
    sampling: Sampling,
    model: Model,
    design: Design,
    parameters: Parameters,
    *,
    key: Key,
    leaf: Leaf | None = None,
) -> PerRecord:
    """One number in (0, 1) for each record; stratified ones within each leaf of records."""
    leaf = leaf or Leaf(0, slice(0, design.records), design.records)
    fresh = key.stream().part(leaf.rows, leaf.of)
    if sampling == "independent":
        return fresh
    if isinstance(model, Inverting) and not model.inverts(design, parameters):
        raise SettingError(
            "sampling='stratified': the model's response distribution has neither cdf nor icdf and can only "
            "be sampled, so that stratified numbers would change nothing. Use sampling='independent'."
        )
    fitted = model.predict(design, parameters, np.full(design.records, 0.5))
    numbers, strata = np.empty(design.records), key.child("strata")
    for number, rows in enumerate(leaves_of(design.records), leaf.number):
        numbers[rows] = stratify_leaf(fitted[rows], fresh[rows], number, key=strata)
    return numbers


def stratify_leaf(fitted: PerRecord, fresh: PerRecord, number: int, *, key: Key) -> PerRecord:
    """Stratified numbers of the leaf with this number, from fresh ones."""
    ties, order = (key.child(number) if number else key).stream().uniform((2, len(fresh)))
    return stratify(fitted, fresh, ties=ties, order=order)


def stratify(fitted: PerRecord, fresh: PerRecord, *, ties: PerRecord, order: PerRecord) -> PerRecord:
    """Uniforms with one in every stratum of each group of neighbouring fitted values.

    `fresh`, `ties` and `order` are independent uniforms: the place within a stratum, who of equals stands
    first, and who of a group gets which stratum. One of them for two of these would tie the number to the
    group, and it would not be uniform.
    """
    records = len(fitted)
    numbers = np.empty(records)
    neighbours = np.lexsort((ties, fitted))  # so that the order of the rows plays no part
    # About √n groups of √n: enough strata in each, and fitted values that are still close.
    for group in np.array_split(neighbours, isqrt(records)):
        stratum = np.argsort(np.argsort(order[group]))
        numbers[group] = (stratum + fresh[group]) / len(group)
    return np.minimum(numbers, _BELOW_ONE)  # rounding must not reach 1
