"""A saved run as one table and one picture: `python -m bench.show bench/results/….json [--publish]`.

Prints the table in Markdown and draws the picture beside the file. With --publish both go into the
documentation, together with the numbers: docs/speed.md between its two marks, docs/bench/scale.svg and
docs/bench/scale.json.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.limits import FLOPS
from bench.scale import CASES, STREAMED
from hedgerow.drawing import PALETTE

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "speed.md"
HOME = ROOT / "docs" / "bench"
BEGIN, END = "<!-- made by bench.show: begin -->", "<!-- made by bench.show: end -->"

Saved = Mapping[str, Any]
Row = Mapping[str, Any]
MEASURES: dict[str, tuple[Callable[[Row], float], Callable[[float], str]]] = {
    "seconds": (lambda row: row["seconds"], lambda value: _seconds(value)),
    "record-draws per second": (lambda row: row["work"] / row["seconds"], lambda value: _short(value)),
    "peak of memory, GiB": (lambda row: row["peak_mb"] / 1024, lambda value: f"{value:.2f}"),
}
COLOURS = (*PALETTE[:7], "#6A3D9A")  # its yellow is too pale for a line
_MARKERS = {"NumPy": "s", "nutpie on PyMC": "^", "PyStan": "X", "brms": "P", "rstan": "D"}


def rows_of(saved: Saved, subject: str) -> dict[tuple[str, int], Row]:
    """The rows of a subject by case and records; of a case measured twice the last."""
    return {(row["case"], row["records"]): row for row in saved["results"] if row["subject"] == subject}


def write_table(saved: Saved) -> str:
    """The machine, its limits, all cases by size, and the contenders: Markdown."""
    machine = saved["machine"]
    about = (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['system']}; "
    )
    about += f"load {machine['load']} beforehand; hedgerow {machine['versions']['hedgerow']}."
    about += f" {saved['note']}" if "note" in saved else ""  # by whoever joined several runs
    parts = [about, _limits(saved), _scale(saved), _peers(saved)]
    return "\n\n".join(part for part in parts if part)


def _limits(saved: Saved) -> str:
    rows = {case: row for (case, _), row in rows_of(saved, "limits").items()}
    if not rows:
        return ""
    lines = ["| limit | measured | a record-draw takes | of dgemm |", "| --- | --- | --- | --- |"]
    for case, row in rows.items():
        rate = row["work"] / row["seconds"]
        if case in FLOPS:
            cells = f"{_short(rate)} record-draws/s", f"{FLOPS[case]} flops", f"{row['of_peak']:.0%}"
        else:
            cells = f"{rate / 1e9:.3g} G{'B' if row['unit'] == 'bytes' else 'FLOP'}/s", "", ""
        lines.append(f"| {case} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _scale(saved: Saved) -> str:
    rows = rows_of(saved, "scale")
    if not rows:
        return ""
    sizes = sorted({records for _, records in rows})
    names = [name for name in _names() if any(case == name for case, _ in rows)]
    lines = [f"| | | {' | '.join(f'10{_superscript(size)}' for size in sizes)} |"]
    lines.append("| --- | --- |" + " ---: |" * len(sizes))
    for measure, (value, show) in MEASURES.items():
        for place, name in enumerate(names):
            cells = [show(value(rows[name, size])) if (name, size) in rows else "" for size in sizes]
            lines.append(f"| {'' if place else measure} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _peers(saved: Saved) -> str:
    rows = rows_of(saved, "peers")
    if not rows:
        return ""
    head = ("records", "by", "s", "processor s", "× hedgerow's s", "× processor s", "ε", "off by, sd")
    lines = [f"| {' | '.join(head)} |", "| ---: | --- |" + " ---: |" * 6]
    for (case, records), row in rows.items():
        ours = rows["hedgerow", records]
        cells = [f"{records:,}", case, *(_seconds(row[one]) for one in ("seconds", "core_seconds"))]
        if row is ours:
            cells += ["", "", f"{row['epsilon']:.3f} ± {row['epsilon_sd']:.3f}", ""]
        else:
            off = (row["epsilon"] - ours["epsilon"]) / ours["epsilon_sd"]
            cells += [_times(row[one] / ours[one]) for one in ("seconds", "core_seconds")]
            cells += [f"{row['epsilon']:.3f}", f"{off:+.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(saved: Saved, path: Path) -> None:
    """Time, rate and peak of memory against the number of records, on logarithmic axes, as SVG."""
    import matplotlib
    from matplotlib.figure import Figure

    rows, peers = rows_of(saved, "scale"), rows_of(saved, "peers")
    with matplotlib.rc_context({"svg.hashsalt": "hedgerow", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(13, 4.6), layout="constrained")
        panels = figure.subplots(1, len(MEASURES))
        for axes, (measure, (value, _)) in zip(panels, MEASURES.items(), strict=True):
            for name, colour in zip(CASES, COLOURS, strict=True):
                for suffix, style in (("", "o-"), (STREAMED, "o--")):
                    points = [
                        (size, value(row)) for (case, size), row in rows.items() if case == name + suffix
                    ]
                    if points:
                        label = name if not suffix else None
                        axes.plot(
                            *zip(*sorted(points), strict=True),
                            style,
                            color=colour,
                            label=label,
                            markersize=3.5,
                        )
            if not measure.startswith("peak"):
                for name, marker in _MARKERS.items():
                    points = [(size, value(row)) for (case, size), row in peers.items() if case == name]
                    if points:
                        axes.plot(*zip(*points, strict=True), marker, color="black", label=name, markersize=6)
            axes.set(xscale="log", yscale="log", xlabel="records", ylabel=measure)
            axes.grid(alpha=0.3)
        _draw_limits(panels[1], saved)
        axes = panels[-1]
        for limit, label in ((2.0, "2 GiB"), (saved["machine"]["memory_gb"], "this machine")):
            if limit:
                _line(axes, limit, label)
        handles = {
            label: handle
            for axes in panels[:1]
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=7, frameon=False)
        figure.suptitle(
            "Solid: from a dataframe to a copy, in memory.  Dashed: from a file to a release, streamed.",
            fontsize=9,
        )
        figure.savefig(path, format="svg", metadata={"Date": None})


def _draw_limits(axes: Any, saved: Saved) -> None:
    """What arithmetic alone, or reading a matrix of draws × records once, would allow."""
    rates = {case: row["work"] / row["seconds"] for (case, _), row in rows_of(saved, "limits").items()}
    if rates:
        for case, flops in FLOPS.items():
            _line(axes, rates["dgemm"] / flops, f"dgemm over {flops} flops ({case})")
        _line(axes, rates["triad"] / 8, "a draws × records matrix, read once")


def _line(axes: Any, height: float, label: str) -> None:
    axes.axhline(height, color="#555555", linestyle=":", linewidth=1)
    axes.annotate(label, (0.02, height), xycoords=("axes fraction", "data"), xytext=(0, 2),
                  textcoords="offset points", fontsize=7, color="#555555")  # fmt: skip


def publish(saved: Saved, *, page: Path = PAGE, home: Path = HOME) -> None:
    """The table into the page between its marks; the picture and the numbers beside it."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n{write_table(saved)}\n\n{END}{after}", encoding="utf-8")
    home.mkdir(exist_ok=True)
    (home / "scale.json").write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
    draw(saved, home / "scale.svg")


def _names() -> list[str]:
    return [*CASES, *(case + STREAMED for case in CASES)]


def _short(value: float) -> str:
    digits, power = f"{value:.1e}".split("e")
    return f"{digits}e{int(power)}"


def _seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.{2 if value < 1 else 3}g}"


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}×" if ratio >= 10 else f"{ratio:.1f}×"


def _superscript(size: int) -> str:
    return str(len(str(size)) - 1).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.show", description=__doc__.splitlines()[0])
    parser.add_argument("saved", type=Path, help="a file that `make bench` saved")
    parser.add_argument("--publish", action="store_true", help="put table, picture and numbers into docs/")
    given = parser.parse_args()
    saved = json.loads(given.saved.read_text(encoding="utf-8"))
    print(write_table(saved))
    draw(saved, given.saved.with_suffix(".svg"))
    if given.publish:
        publish(saved)


if __name__ == "__main__":
    main()
