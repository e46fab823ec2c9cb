"""Making a release: from a plan to a folder of which `public/` may leave the building.

    >>> made = make_release(Plan.load("plan.yaml"), "second")
    >>> sorted(path.name for path in (made.folder / "public").iterdir())
    ['certificate.json', 'certificate.md', 'index.html', 'plan.yaml', 'synthetic-copy-1.csv']

The order is the guarantee. The spend is recorded (`reserve`) before a single copy is on disk. When all of it
is there, the ledger records that it is about to be published (`begin_publishing`), unless the entry was
closed meanwhile; the folder appears whole by one rename; then the ledger is told (`confirm`). A process that
dies in between leaves an entry without copies, which counts as spent until somebody settles it, and never
copies without an entry. The price comes back (`void`) only where the rename provably did not happen and
cannot happen any more.
"""

import hashlib
import os
import secrets
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa

from hedgerow.advice.elicit import expected_errors
from hedgerow.errors import CalibrationError, HedgerowError, HedgerowWarning, LedgerError, SettingError
from hedgerow.evidence.gauge import Gauge
from hedgerow.inference.statistics import write_statistics
from hedgerow.mechanism.calibrate import expected_fits
from hedgerow.mechanism.copies import expected_corrections
from hedgerow.models.families import model_named
from hedgerow.models.families.family import Family
from hedgerow.models.prior import Prior
from hedgerow.numerics.rounding import format_count
from hedgerow.privacy.censored import Censored
from hedgerow.privacy.claims.caveats import write_caveat, write_looks
from hedgerow.privacy.columns import Column
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict import Strict
from hedgerow.privacy.strict.limits import spike_of
from hedgerow.progress import job
from hedgerow.release.certificate import ABOUT, NAMES, VERSION, Assumption, Certificate, Copy
from hedgerow.release.confidential import gauge_of, rows_of_checks, write_confidential
from hedgerow.release.folder import (
    CERTIFICATE,
    CERTIFICATE_TEXT,
    PAGE,
    PLAN,
    PUBLIC,
    RECEIVE,
    STATISTICS,
    Draft,
    check_place,
    find_drafts,
)
from hedgerow.release.ledger import Balance, Ledger, ledger_path, open_ledger
from hedgerow.release.ledger.accounts import CLOSING, charge_unit
from hedgerow.release.ledger.accounts import account as find_account
from hedgerow.release.ledger.charges import WITHHELD, charge_of
from hedgerow.release.pages.layout import Layout
from hedgerow.release.pages.public import write_page
from hedgerow.release.plan import DictionaryEntry, Plan
from hedgerow.release.prepare import Prepared, find_complete, prepare
from hedgerow.release.report import write_pages
from hedgerow.synthesizer import Synthesizer
from hedgerow.threads import Workers

Progress = Callable[[str], None]
Expectation = tuple[str, list[tuple[str, str]]]

_BY_DEFINITION = "The method passes them through, and its neighbours share them."
_LABEL = "Synthetic, not real records: hedgerow release {}"  # SPSS has room for 64 bytes
_NO_REASON = "No reason was given."
_PATIENCE = 300.0  # seconds for which a fit that may have taken hours waits for a ledger in use
_NOTHING_DONE = "Nothing was written or spent."
_SAME_TYPE = "The copies are written in the same type."
_DEFAULT_PRIOR = "It is the same for every table, and reads the predictors alone."
_DECLARED = "The plan says so; the statement does not hold if it was read from the confidential column."


@dataclass(frozen=True, repr=False)
class Made:
    """A release that was made: public facts, where things are, and what its owner may expect of it."""

    folder: Path
    certificate: Certificate
    relation: str
    charged: float | None  # for all rows of one person or firm, where the plan says how many; None: unbounded
    ledger: Path
    # For the owner alone: what the copies are worth, a title and facts. Simulated when asked for, if strict.
    expectation: Callable[[], Expectation] = field(repr=False, compare=False)
    checks: Sequence[Mapping[str, Any]] = ()  # how many rows of each copy break each of the plan's checks

    def __repr__(self) -> str:
        return f"Made({self.folder.name!r}, {self.certificate!r})"


def make_release(
    plan: Plan,
    out: str | os.PathLike[str],
    *,
    new_dataset: bool = False,
    anyway: bool = False,
    stream: bool = False,
    scratch: str | os.PathLike[str] | None = None,
    workers: Workers | None = None,
    progress: Progress | None = None,
) -> Made:
    """Makes the release that a plan describes, in a folder that does not exist yet.

    `stream` reads the data block by block, for files larger than memory (docs/large.md); a folder of Parquet
    files is always read in this way. Meanwhile the data is kept in a private folder, beside the release or in
    `scratch`. `workers` share the work, and imply `stream`.

    `new_dataset` tells a ledger that asks that the data is not a version of another dataset. If the target
    is met only by discarding the data (`evidence.gauge`), a `CalibrationError` says so before anything is
    spent, and the look is counted; `anyway` releases all the same.
    """
    tell = progress or (lambda step: None)
    out = Path(out)
    check_place(out)
    for left in find_drafts(out):
        _warn(
            f"{left.name} was left by a release that did not finish. It holds copies and confidential files. "
            "Settle its entry as void, which removes it; if it is closed, remove it (hedgerow ledger list)."
        )
    tell("reading")
    with ExitStack() as opened:
        prepared: Prepared
        with _before_spending():
            folder = plan.data is not None and Path(plan.data).is_dir()
            by_blocks = stream or workers is not None or folder
            if scratch is not None and not by_blocks:
                raise SettingError(
                    "scratch: only what is read block by block is kept there. Say --stream, or leave it out."
                )
            if by_blocks:
                from hedgerow.release.streamed import stream_plan

                prepared = opened.enter_context(stream_plan(plan, out, scratch, workers))
            else:
                prepared = prepare(plan)
        return _make(prepared, out, tell, new_dataset=new_dataset, anyway=anyway)


def _make(prepared: Prepared, out: Path, tell: Progress, *, new_dataset: bool, anyway: bool) -> Made:
    plan = prepared.plan
    with open_ledger(plan.ledger) as ledger:
        with _before_spending():
            fingerprint = ledger.fingerprint(prepared.whole, prepared.outcomes)
            account: dict[str, Any] = {"fingerprint": fingerprint, "relation": plan.relation}
            price: dict[str, Any] = {"epsilon": plan.settings.epsilon}
            account |= {"dataset": plan.dataset, **charge_unit(price, plan.rows_charged)}
            # Of all columns: a key that is dropped from the copies tells best which records these are.
            account |= {"sketch": ledger.sketch(prepared.whole, *prepared.outcomes)}
            account |= {"new_dataset": new_dataset}
            _warn_before(prepared, ledger.check(**account))
        tell("fitting")
        expected = expected_fits(plan.settings) | expected_corrections(plan.settings)
        with _before_spending(), job(expected):
            with _noting() as notes:
                try:
                    synth = prepared.fit()
                    gauge = gauge_of(synth)
                    if gauge is not None and gauge.discards and not anyway:
                        raise CalibrationError(synth.describe_stop())
                except CalibrationError:  # says what was found in the data
                    ledger.look("synthesize", fingerprint=fingerprint, dataset=plan.dataset, plan=plan.digest)
                    raise
            prepared.try_copies(synth)
        tell("recording the spend")
        ledger.timeout = _PATIENCE
        release = secrets.token_hex(8)
        account |= {"copies": plan.settings.copies, "plan": plan.digest, "note": f"folder {out.name}"}
        account |= charge_unit(price | charge_of(synth, plan.relation), plan.rows_charged)
        with Draft(out, release) as draft:
            try:
                entry = ledger.reserve(**account, release=release, place=draft.place)
                looked = ledger.looks(dataset=entry.dataset, fingerprint=fingerprint)
                draft.begin()
                earlier = _count_released(ledger, account) if plan.about.earlier else None
                certificate = _write_public(
                    draft, prepared, synth, release, tell, looks=len(looked), earlier=earlier
                )
                tell("writing confidential files")
                facts: dict[str, Any] = {"release": release, "fingerprint": fingerprint, "warnings": notes}
                write_confidential(draft, prepared, synth, facts | {"certificate_sha256": certificate.digest})
                write_pages(draft, prepared, synth, certificate, looks=looked, notes=notes)
                draft.seal()
                ledger.begin_publishing(release, certificate=certificate.digest)
                draft.publish()
            except BaseException as error:
                if _undo(draft, ledger, release):
                    error.add_note(_NOTHING_DONE)
                raise
            try:
                ledger.confirm(release, certificate=certificate.digest)
            except LedgerError as error:
                _warn(
                    f"The release is made and its spend recorded, but the ledger could not be told so: "
                    f"{error} Its entry {release} is pending; close it with: hedgerow ledger settle "
                    f"{release} released --release {out.name}"
                )
    place, expectation = ledger_path(plan.ledger), partial(_expect, plan.settings, prepared.public, gauge)
    checks = rows_of_checks(synth)
    return Made(out, certificate, plan.relation, entry.epsilon, place, expectation, checks)


def _expect(asked: Settings, public: pa.Table | None, gauge: Gauge | None) -> Expectation:
    """What the copies are worth: the gauge, or with noisy statistics what public things foretell."""
    if gauge is not None:
        return "Confidential: what the copies carry of the data:", gauge.facts()
    # Over a box nothing but what stays in confidential/, and for limits by column there are no stand-ins.
    if asked.noisy is None or asked.by_name or public is None:
        return "", []
    errors = expected_errors(asked, public, factors=(1.0,))
    ecdf, plain = errors["ecdf_max"][0], errors["plain_ecdf_max"][0]
    words = f"{ecdf:.2g}, without noise {plain:.2g}"
    return "To expect of copies, from public things alone:", [("ECDF maximum of stand-ins", words)]


def _write_public(
    draft: Draft,
    prepared: Prepared,
    synth: Synthesizer,
    release: str,
    tell: Progress,
    *,
    looks: int,
    earlier: int | None,
) -> Certificate:
    """Writes the copies, the plan, the page and the certificate of them, and what else the plan asks for."""
    plan, ending = prepared.plan, prepared.like.format.suffix.removeprefix(".")
    files = prepared.write_copies(
        synth,
        lambda number: draft.path / PUBLIC / NAMES[VERSION].format(number, ending),
        label=_LABEL.format(release),
        tell=lambda number: tell(f"writing copy {number} of {plan.settings.copies}"),
    )
    sample = synth.sample()
    copies = [Copy(file.path.name, file.format.value, file.sha256, file.size, file.changes) for file in files]
    tell("writing the certificate")
    not_covered = [write_caveat("C28")]
    if prepared.withheld:
        not_covered.append(write_caveat("C29", ", ".join(prepared.withheld)))
    not_covered.append(write_looks(looks))
    public_plan = draft.write(PUBLIC, PLAN, plan.public().text())
    statistics = None
    if plan.outputs.statistics:
        document = write_statistics(plan.settings.described, plan.settings.families, synth.statistics_)
        statistics = hashlib.sha256(draft.write(PUBLIC, STATISTICS, document)).hexdigest()
    receive = {}
    for name in RECEIVE if plan.outputs.receive else ():
        source = (resources.files("hedgerow") / name).read_text(encoding="utf-8")
        receive[name] = hashlib.sha256(draft.write(PUBLIC, name, source)).hexdigest()
    certificate = Certificate.build(
        sample.guarantee,
        release=release,
        date=datetime.now(UTC).date().isoformat(),
        records=prepared.records,
        unchanged=tuple(name for name in prepared.released if name not in prepared.protected),
        used_not_released=prepared.withheld,
        assumed=list_assumptions(prepared),
        also_not_covered=not_covered,
        plan=hashlib.sha256(public_plan).hexdigest(),
        copies=tuple(copies),
        rows_per_unit=plan.rows,
        unit=plan.public().unit,
        about={name: text for name in ABOUT if (text := getattr(plan.about, name)) is not None},
        earlier_releases=earlier,
        looks=looks,
        statistics=statistics,
        receive=receive or None,
    )
    layout = Layout.of(prepared.copy_to_write(sample.tables[0]).schema, prepared.like)
    page = draft.write(PUBLIC, PAGE, write_page(certificate, plan.public(), layout))
    certificate = replace(certificate, page=hashlib.sha256(page).hexdigest())
    draft.write(PUBLIC, CERTIFICATE, certificate.json())
    draft.write(PUBLIC, CERTIFICATE_TEXT, certificate.markdown())
    return certificate


def _count_released(ledger: Ledger, asked: Mapping[str, Any]) -> int:
    """How many releases of the same dataset are out, or may be."""
    rows = find_account(ledger.entries(), asked["dataset"], asked["fingerprint"]).rows
    void = {entry.release for entry in rows if entry.event == "void"}
    return len({entry.release for entry in rows if entry.event in ("publishing", "released")} - void)


@contextmanager
def _before_spending() -> Iterator[None]:
    """Tells whoever stops it here, by a note of the exception, that nothing was done."""
    try:
        yield
    except BaseException as error:
        error.add_note(_NOTHING_DONE)
        raise


def _undo(draft: Draft, ledger: Ledger, release: str) -> bool:
    """After a failure: the spend given back and no draft, unless the copies are out or may be.

    Says whether nothing is left of it.
    """
    try:
        state = ledger.state(release)
        if state in CLOSING:  # by somebody else, before it could be published
            draft.remove()
        elif state is not None:
            note = "hedgerow: the release failed, and its draft was removed unseen"
            ledger.settle(release, "void", note=note, draft=draft)
        return state not in CLOSING
    except HedgerowError as error:
        _warn(f"Entry {release} could not be undone: {error} See: hedgerow ledger list")
        return False


def list_assumptions(prepared: Prepared) -> list[Assumption]:
    """What the certificate says is taken as public knowledge, and why."""
    plan, asked, standard = prepared.plan, prepared.plan.settings, prepared.plan.settings.standard
    named, protected = (
        ", ".join(f"'{name}'" for name in names) for names in (prepared.outcomes, prepared.protected)
    )
    strict = standard if isinstance(standard, Strict) else None
    known = plan.ranged and strict is None  # by statistics a range is a policy, and nobody need know it
    sentences = standard.range.sentences(f"each value of {named}") if known else ()
    pairs = [
        (words, plan.reasons.get(place) or ("As for the whole." if place else _NO_REASON))
        for place, words in sentences
    ]
    if strict is not None:
        pairs += [(strict.described(spike_of(asked.model)), strict.reason or _NO_REASON)]
    if strict is not None and strict.policy():
        pairs += [(strict.policy(), plan.because or _NO_REASON)]
    if isinstance(standard, Censored):
        what = "the model with its prior, which place the windows of the censored likelihood"
        pairs += [(what, standard.reason or _NO_REASON)]
    for column in asked.columns:
        pairs += _assume_of_model(column, asked)
        if plan.dictionary[column.outcome] != DictionaryEntry():
            pairs += [(f"what the copies' data dictionary says of '{column.outcome}'", _DECLARED)]
        pairs += [(what, _DECLARED) for what in column.assumptions]
    who = "who is in the table, in which order, how many records there are"
    pairs += [(f"{who}, and all columns but {protected}", _BY_DEFINITION)]
    for column in asked.columns:
        kind = prepared.table.schema.field(column.outcome).type
        if column.declared is not None:
            pairs += [(f"what the plan declares of '{column.outcome}': {column.declared}", _DECLARED)]
        elif strict is None:
            pairs += [(f"the type of '{column.outcome}' ({kind})", _SAME_TYPE)]
    for name in asked.rules.names if strict is None else ():
        if name in prepared.table.column_names:
            pairs += [(f"the type of '{name}' ({prepared.table.schema.field(name).type})", _SAME_TYPE)]
    if plan.missing == "drop":
        lacking = ", ".join(f"'{name}'" for name in find_complete(asked.columns))
        where = f"{lacking} or in a predictor" if lacking else "a predictor"
        what = f"which rows lack a value in {where}; such rows were dropped"
        pairs += [(what, "The plan says missing: drop.")]
    return [Assumption(what, because) for what, because in pairs]


def _assume_of_model(column: Column, asked: Settings) -> list[tuple[str, str]]:
    """What is taken as public of a column's model: its prior, and what the plan declares of its family."""
    family, pairs = column.family, []
    model = model_named(family, column.prior) if asked.several else asked.model
    prior = model.full_prior if isinstance(model, Family) else getattr(model, "prior", None)
    if isinstance(prior, Prior) and asked.noisy is None:
        of = f" of '{column.outcome}'" if asked.several else ""
        pairs += [(f"the prior{of}: {prior.describe()}", _DECLARED if column.prior else _DEFAULT_PRIOR)]
    if isinstance(family, Family) and family.settings():
        declared = ", ".join(f"{name} {value!r}" for name, value in family.settings().items())
        pairs += [(f"what the plan declares of '{column.outcome}': {declared}", _DECLARED)]
    return pairs


def _warn_before(prepared: Prepared, balances: list[Balance]) -> None:
    """Warns of what the owner should know before a fit is waited for."""
    plan = prepared.plan
    budgeted = [balance.relation for balance in balances if balance.budget is not None]
    if budgeted and not {plan.relation, WITHHELD} & {*budgeted}:
        _warn(
            f"This data has a budget under '{budgeted[0]}', but none under '{plan.relation}', from which "
            "this release pays. Prices under different relations do not add up: set a budget under "
            f"'{WITHHELD}', which every release pays from as well."
        )
    for note in prepared.source.notes:
        _warn(f"Reading the data: {note}")
    for note in prepared.like.notes:
        _warn(f"Writing the copies: {note}")
    if prepared.dropped_rows:
        _warn(
            f"Dropped: {format_count(prepared.dropped_rows, 'row')} without a value in a column of the "
            "formula. The certificate says that which they are is assumed to be public."
        )
    if plan.seed is not None:
        _warn(
            "The randomness comes from a seed: whoever knows it can compute from the copies what must stay "
            "secret. The certificate says so. Leave the seed out for a release that leaves the building."
        )
    if plan.ranged and plan.because is None:
        _warn(
            "No reason was given why the range is public, and the certificate says so. Give one: "
            '--because "…", or because: in the plan.'
        )


@contextmanager
def _noting() -> Iterator[list[str]]:
    """Keeps warnings for the confidential files and shows them at once: before a long fit, not after it."""
    notes: list[str] = []
    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=HedgerowWarning, append=True)
        show = warnings.showwarning

        def note(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            notes.extend([str(message)] if issubclass(category, HedgerowWarning) else [])
            show(message, category, *where, **more)

        warnings.showwarning = note
        yield notes


def _warn(message: str) -> None:
    warnings.warn(message, HedgerowWarning, stacklevel=3)
