"""The confidential part of a release folder: what was achieved, in all and by record. None may leave."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow.errors import ReleaseError
from hedgerow.evidence.gauge import Gauge
from hedgerow.evidence.utility import tabulate, unstack_columns
from hedgerow.models.base import Parameters
from hedgerow.models.chain import part_of
from hedgerow.privacy.bounds import LOCAL
from hedgerow.privacy.strict import Boxed
from hedgerow.release.folder import CONFIDENTIAL, Draft
from hedgerow.release.prepare import Prepared
from hedgerow.synthesizer import Synthesizer
from hedgerow.tables import files as formats
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table

_README = """Nothing in this folder may be published: it says what was achieved on the data at hand, which the
target does not cover. Keep it with the data, under the same rules.
"""
LOOKED_AT = 20_000  # rows are enough for what models and tables say of a loss


def write_confidential(draft: Draft, prepared: Prepared, synth: Synthesizer, facts: dict[str, Any]) -> None:
    """Writes records, flagged records, utility, draws, the summary and the full plan."""
    frames = {"utility": synth.utility(), "draws": _draws_table(synth)}
    frames["shapes"] = pa.table(synth.shape_columns())
    if synth.settings.noisy is None:
        frames |= {"flagged": synth.flagged_, "by-draws": synth.by_draws_}
        prepared.write_records(synth, draft.path / CONFIDENTIAL / "records.parquet")
    for name, frame in frames.items():
        if len(frame):
            formats.write(frame, draft.path / CONFIDENTIAL / f"{name}.parquet", "parquet")
    lost = synth.utility_overview(prepared.plan.analyses, most=LOOKED_AT)
    overview = json.dumps({"confidential": True} | lost, indent=1, ensure_ascii=False) + "\n"
    summary = json.dumps(_summarize(prepared, synth) | facts, indent=1, ensure_ascii=False) + "\n"
    texts = {
        "summary.json": summary,
        "utility.json": overview,
        "plan.yaml": prepared.plan.text(),
        "README.txt": _README,
    }
    for name, content in texts.items():
        draft.write(CONFIDENTIAL, name, content)


def read_utility(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What the copies of a release keep, as `evidence.utility.tabulate` and `bin_shapes` have it.

    A release made before shapes were kept has none.
    """
    inside, found = folder / CONFIDENTIAL, {}
    try:
        for name in ("utility", "shapes"):
            if name == "utility" or (inside / "shapes.parquet").exists():
                content = (inside / f"{name}.parquet").read_bytes()  # Arrow cannot open every path
                # One thread: a pool's may hold on to the bytes when the interpreter ends, and abort it.
                file = pq.ParquetFile(pa.BufferReader(content))
                found[name] = file.read(use_threads=False).to_pydict()
        label = "copies" if len(set(found["utility"]["copy"])) > 2 else "copy"  # one of them is all together
        return tabulate_columns(label, found["utility"]), found.get("shapes", {})
    except (OSError, pa.ArrowException, KeyError, IndexError, TypeError):
        raise ReleaseError(
            "The confidential utility.parquet is not here, or was changed. Pass the whole release folder."
        ) from None


def tabulate_columns(label: str, utility: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """What copies keep as a table for people; of several protected columns one below the other."""
    if "column" not in utility:
        return tabulate({label: utility})
    return [
        {"column": name} | row
        for name, part in unstack_columns(utility).items()
        for row in tabulate({label: part})
    ]


def gauge_of(synth: Synthesizer) -> Gauge | None:
    """What the copies carry of the data, where that is measured: under a local bound."""
    return synth.gauge_ if synth.settings.bound.local else None


def rows_of_checks(synth: Synthesizer) -> list[dict[str, Any]]:
    """How many rows of each copy break each of the plan's checks; none without checks."""
    checks = synth.sample().checks
    return [] if checks is None else list(Table.of(checks).frame.iter_rows(named=True))


def _summarize(prepared: Prepared, synth: Synthesizer) -> dict[str, Any]:
    health, checks = synth.health_, rows_of_checks(synth)
    return {
        "confidential": True,
        "epsilon": synth.epsilon_,
        "total_epsilon": synth.total_epsilon_,
        **(_summarize_weights(synth) if synth.settings.noisy is None else {"clipped": synth.clipped_}),
        "health": {name: getattr(health, name) for name in ("sampler", "independent", "effective_draws")},
        "moved_to_declared_limits": synth._done().moved,
        **({"checks": checks} if checks else {}),
        "seed": prepared.plan.seed,
        "data": prepared.plan.data,
        "rows": prepared.records,
        "dropped_rows": prepared.dropped_rows,
        "missing": {
            name: {"empty": gaps.empty, **gaps.marked} for name, gaps in prepared.source.missing.items()
        },
        "reading": list(prepared.source.notes),
    }


def _summarize_weights(synth: Synthesizer) -> dict[str, Any]:
    boxed = isinstance(
        synth.settings.model, Boxed
    )  # then: how well the box of a strict release fits the data
    gauge = gauge_of(synth)
    achieved = {bound.name: synth._need().epsilon_by(bound) for bound in LOCAL}
    return {
        "certified_epsilon": synth.certified_epsilon_,
        **({} if gauge is None else {"gauge": asdict(gauge)}),
        "epsilon_by_bound": {bound: value for bound, value in achieved.items() if value is not None},
        "withheld_epsilon": synth.withheld_epsilon_,
        "sensitivity": synth.sensitivity_,
        "scale": synth.scale_,
        "mean_alpha": synth._need().mean_alpha,
        "flagged_records": synth._need().flagged,
        **({"acceptance": synth.acceptance_, "edge_mass": synth.edge_mass_} if boxed else {}),
    }


def _draws_table(synth: Synthesizer) -> pa.Table:
    """The parameter draws, one column per coefficient: beta[Intercept], beta[log(employees)], sigma.

    Of several protected columns each has its own: "wage: sigma".
    """
    design, parameters = synth._done().design, synth._done().parameters
    if not synth.settings.several:
        return pa.table(_name_draws(design, parameters))
    columns: dict[str, Any] = {}
    for place, link in enumerate(design.links):
        own = _name_draws(link, part_of(parameters, place))
        columns |= {f"{link.outcome}: {name}": values for name, values in own.items()}
    return pa.table(columns)


def _name_draws(design: Design, parameters: Parameters) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, values in parameters.items():
        if np.ndim(values) == 1:
            columns[name] = np.asarray(values)
        else:
            flat = np.asarray(values).reshape(len(values), -1)
            places: Sequence[object] = design.columns
            if flat.shape[1] < len(design.columns):  # classes have levels instead
                places = [one for one in design.columns if one != "Intercept"]
            if not name.endswith("beta") or len(places) != flat.shape[1]:
                places = range(flat.shape[1])
            columns |= {f"{name}[{place}]": column for place, column in zip(places, flat.T, strict=True)}
    return columns
