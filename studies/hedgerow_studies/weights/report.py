"""What the study of weights shows: Markdown tables, where the cap meets Unweighted, and a picture."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hedgerow.advice.candidates import CORRECTED, METHODS, PLAIN, SMOOTH, usual
from hedgerow_studies import bias
from hedgerow_studies.weights import study
from hedgerow_studies.weights.study import OURS, SAMPLES, SIZES, UNWEIGHTED
from hedgerow_studies.work import Jobs, processors

_MARKS = "osv^D<>PX*"
CLOSE = 1.1  # a mean within a tenth of Unweighted's has reached it
_STATISTICS = {"ecdf_max": "ECDF maximum", "log_q90": "error of log Q90"}


def write_report(
    out: Path,
    *,
    quick: bool,
    seed: int,
    jobs: Jobs | None,
    compute: bool,
    progress: Callable[[int, int], None],
) -> str:
    """Compute what the folder does not hold yet, write tables, JSON and pictures; returns the tables."""
    out.mkdir(parents=True, exist_ok=True)
    file, wanted = out / "rows.jsonl", study.cells(quick=quick)
    rows = (
        study.run(file, wanted, seed=seed, jobs=processors(jobs), report=progress)
        if compute
        else study.read_rows(file, wanted, seed=seed)
    )
    markdown = "\n".join(tables(rows))
    (out / "weights.md").write_text(markdown + "\n", encoding="utf-8")
    summary = json.dumps(ratios(rows).to_dict("records"), indent=1, ensure_ascii=False)
    (out / "weights.json").write_text(summary + "\n", encoding="utf-8")
    picture(rows, out / "weights.png")
    return markdown


def ratios(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per setting, candidate and method: means, also over Unweighted's on the same samples."""
    rows = rows.assign(epsilon=rows["epsilon"].astype(np.float64))
    plain = rows[(rows["candidate"] == UNWEIGHTED) & (rows["method"] == PLAIN)]
    base = plain.set_index(["records", "errors", "sample"])[list(_STATISTICS)]
    found = []
    keys = ["records", "errors", "epsilon", "candidate"]
    for (records, errors, epsilon, label), here in rows[rows["epsilon"].notna()].groupby(keys, sort=False):
        samples = here["sample"].nunique()
        for method in METHODS:
            mine = here[here["method"] == method].set_index(["records", "errors", "sample"])
            row: dict[str, Any] = dict(zip(keys, (records, errors, epsilon, label), strict=True))
            row |= {"method": method, "samples": samples, "met": len(mine)}
            if len(mine):
                beside = base.reindex(mine.index)
                for name in _STATISTICS:
                    values, other = mine[name].to_numpy(np.float64), beside[name].to_numpy(np.float64)
                    ratio = values.mean() / other.mean()
                    spread = (values - ratio * other) / other.mean()
                    error = spread.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
                    row |= {name: values.mean(), f"{name}_ratio": ratio, f"{name}_error": error}
                row |= {name: _worst(mine, name) for name in ("loss_recomputed", "loss_either")}
            found.append(row)
    return pd.DataFrame(found)


def _worst(rows: pd.DataFrame, name: str) -> float:
    return float(rows[name].astype(np.float64).max()) if name in rows else np.nan


def tables(rows: pd.DataFrame) -> Iterator[str]:
    """The whole study as Markdown; candidates side by side on the samples that all have."""
    found = ratios(rows[rows["sample"] < SAMPLES])
    for name, words in _STATISTICS.items():
        yield f"**{words}, as a multiple of Unweighted's: plain → corrected → stratified too (samples)**\n"
        for (records, errors), here in found.groupby(["records", "errors"], sort=False):
            yield f"{_size(records)}{'' if errors == 'normal' else ', Student t errors (3 df)'}\n"
            yield from _grid(here, lambda one, name=name: _three(one, name))
    yield "**Audit: largest loss with weights recomputed, over ε; then at draws of either posterior**\n"
    for (records, errors), here in found.groupby(["records", "errors"], sort=False):
        if here["loss_recomputed"].notna().any():
            yield f"{_size(records)}{'' if errors == 'normal' else ', Student t errors (3 df)'}\n"
            yield from _grid(here[here["loss_recomputed"].notna()], _audit)
    yield f"**{OURS}: the smallest ε tried from which on the ECDF maximum is within {CLOSE - 1:.0%}**\n"
    yield from _reached(ratios(rows))


def _size(records: Any) -> str:
    return f"n = {records:,}" if records >= 10_000 else f"n = {records}"


def _grid(here: pd.DataFrame, cell: Any) -> Iterator[str]:
    targets = sorted(here["epsilon"].unique())
    yield f"| weights, bound | {' | '.join(f'ε = {epsilon:g}' for epsilon in targets)} |"
    yield f"| --- |{' --- |' * len(targets)}"
    order = [one.label for one in usual(1.0, box=bias.BOX)]
    for label in [label for label in order if label in set(here["candidate"])]:
        mine = here[here["candidate"] == label]
        yield f"| {label} | {' | '.join(cell(mine[mine['epsilon'] == epsilon]) for epsilon in targets)} |"
    yield ""


def _three(one: pd.DataFrame, name: str) -> str:
    if one.empty:
        return ""
    column = f"{name}_ratio"
    if column not in one or one["met"].max() == 0:
        return f"not met ({int(one['samples'].max())})"
    told = " → ".join(f"{value:.2f}" for value in one[column])
    met, samples = int(one["met"].min()), int(one["samples"].max())
    return f"{told} ({samples})" if met == samples else f"{told} ({met} of {samples} met)"


def _audit(one: pd.DataFrame) -> str:
    found = one[one["method"] == PLAIN]
    return (
        "" if found.empty else f"{found['loss_recomputed'].iloc[0]:.2f}, {found['loss_either'].iloc[0]:.2f}"
    )


def _reached(found: pd.DataFrame) -> Iterator[str]:
    heads = (
        "n | method | ε | ratio ± s.e. | audit | largest ε that misses | ε with first audit figure below 1"
    )
    yield f"| {heads} | samples |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    ours = found[(found["candidate"] == OURS) & (found["errors"] == "normal")]
    for records in sorted(SIZES):
        for method in (CORRECTED, SMOOTH):
            here = ours[(ours["records"] == records) & (ours["method"] == method)].sort_values("epsilon")
            if here.empty:
                continue
            missed = here[~(here["ecdf_max_ratio"] <= CLOSE)]["epsilon"].max()
            after = here[here["epsilon"] > (0 if np.isnan(missed) else missed)]
            if after.empty:
                yield f"| {records} | {method} | none tried | | | {missed:g} | | |"
                continue
            one = after.iloc[0]
            ratio = f"{one['ecdf_max_ratio']:.2f} ± {one['ecdf_max_error']:.2f}"
            told = "none" if np.isnan(missed) else f"{missed:g}"
            audit = f"{one['loss_recomputed']:.2f}, {one['loss_either']:.2f}"
            broken = after[after["loss_recomputed"] > 1]["epsilon"].max()
            kept = after[after["epsilon"] > (0 if np.isnan(broken) else broken)]["epsilon"].min()
            figures = f"{ratio} | {audit} | {told} | {kept:g} | {one['met']}"
            yield f"| {records} | {method} | {one['epsilon']:g} | {figures} |"


def picture(rows: pd.DataFrame, path: Path) -> None:
    """ε against the ECDF maximum over Unweighted's, one panel per size, corrected and stratified."""
    from matplotlib.figure import Figure

    found = ratios(rows[rows["sample"] < SAMPLES])
    found = found[(found["method"] == SMOOTH) & (found["errors"] == "normal")].dropna(
        subset=["ecdf_max_ratio"]
    )
    sizes = sorted(found["records"].unique())
    figure = Figure(figsize=(4.2 * len(sizes) + 0.6, 4.6), layout="constrained")
    panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    order = [one.label for one in usual(1.0, box=bias.BOX) if one.label in set(found["candidate"])]
    for axes, records in zip(panels, sizes, strict=True):
        for number, label in enumerate(order):
            mine = found[(found["records"] == records) & (found["candidate"] == label)].sort_values("epsilon")
            dashes = "-" if label.startswith("cap") else "--"
            axes.plot(mine["epsilon"], mine["ecdf_max_ratio"], dashes, marker=_MARKS[number], label=label)
        axes.axhline(1.0, color="#666666", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks([0.1, 0.5, 1, 2, 4, 8], ["0.1", "0.5", "1", "2", "4", "8"])
        axes.set_yticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
        axes.minorticks_off()
        axes.set_title(_size(records), fontsize=10)
        axes.set_xlabel("ε, each under its own bound")
        axes.grid(linewidth=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("ECDF maximum over Unweighted's")
    panels[0].legend(frameon=False, fontsize=7.5)
    figure.savefig(path, dpi=110, metadata={"Software": None})
