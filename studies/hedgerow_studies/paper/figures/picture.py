"""A figure as data: the tidy table it is drawn from and how; then as PNG, SVG and CSV.

The same table gives the same bytes: no dates, no random identifiers, no version of a library.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from hedgerow.arrays import Array
from hedgerow.drawing import DATA, draw_violins, round_ticks, violins
from hedgerow_studies.paper import setup
from hedgerow_studies.paper.store import write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Note = Literal["none", "twice the largest", "largest", "twice the median", "median"]

_NOTES: dict[str, Callable[[Array], str]] = {
    "twice the largest": lambda values: f"ε = {_short(2 * values.max())}",
    "largest": lambda values: f"ε = {_short(values.max())}",
    "twice the median": lambda values: f"ε = {_short(2 * float(np.median(values)))}",
    "median": lambda values: f"ε = {_short(float(np.median(values)))}",
}


@dataclass(frozen=True, eq=False)
class Picture:
    """Violins of `value` by `standard`, in the order of the table; a panel for each value of `panel`."""

    name: str
    title: str
    ylabel: str
    table: pd.DataFrame
    log: bool = False
    note: Note = "none"
    panel: str | None = None
    line: float | None = None  # the confidential value, dashed


def _noted(groups: Mapping[str, Array], note: Callable[[Array], str] | None) -> dict[str, str] | None:
    return None if note is None else {label: note(values) for label, values in groups.items()}


def draw(picture: Picture) -> "Figure":
    """The figure."""
    note = _NOTES.get(picture.note)
    labels = list(dict.fromkeys(picture.table["standard"]))
    colours = {label: setup.COLOURS[_own(label)] for label in labels if label != DATA}
    if picture.panel is None:
        groups = _groups(picture.table)
        figure = violins(groups, picture.ylabel, log=picture.log, notes=_noted(groups, note), colours=colours)
        figure.axes[0].set_title(picture.title, fontsize=11, loc="left")
    else:
        from matplotlib.figure import Figure

        panels = list(dict.fromkeys(picture.table[picture.panel]))
        rows = (len(panels) + 1) // 2
        figure = Figure(figsize=(2 * (1.05 * len(labels) + 0.9), 3.9 * rows), layout="constrained")
        grid = figure.subplots(rows, 2, sharey=True, squeeze=False)
        for axes, value in zip(grid.flat, panels, strict=True):
            part = picture.table[picture.table[picture.panel] == value]
            groups = _groups(part)
            draw_violins(
                axes, groups, picture.ylabel, log=picture.log, notes=_noted(groups, note), colours=colours
            )
            axes.set_title(f"{picture.panel} = {value}", fontsize=10, loc="left")
            axes.label_outer()
        if picture.log:
            round_ticks(grid[0, 0])
        figure.suptitle(picture.title, fontsize=11)
    for axes in figure.axes:
        _mark_withheld(axes, labels)
        if picture.line is not None:
            height = np.log10(picture.line) if picture.log else picture.line
            axes.axhline(height, color="black", linewidth=0.8, linestyle="--", zorder=0)
    return figure


def save(picture: Picture, folder: Path) -> str:
    """PNG, SVG and CSV under the picture's name."""
    import matplotlib

    figure = draw(picture)
    content = {}
    with matplotlib.rc_context({"svg.hashsalt": "hedgerow", "svg.fonttype": "path"}):
        for kind, options in (
            ("png", {"dpi": 110, "metadata": {"Software": None}}),
            ("svg", {"metadata": {"Date": None, "Creator": None}}),
        ):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, **options)
            content[kind] = buffer.getvalue()
    content["csv"] = picture.table.to_csv(index=False, lineterminator="\n").encode()
    for kind, data in content.items():
        write(folder / f"{picture.name}.{kind}", data)
    return picture.name


def _groups(table: pd.DataFrame) -> dict[str, Array]:
    return {
        str(label): part["value"].to_numpy(dtype=np.float64)
        for label, part in table.groupby("standard", sort=False)
    }


def _own(label: str) -> str:
    return label.removesuffix(setup.WITHHELD)


def _mark_withheld(axes: object, labels: list[str]) -> None:
    """Hatch the violins of withheld prices, which share the colour of their synthesizer."""
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection

    if not isinstance(axes, Axes) or not any(label.endswith(setup.WITHHELD) for label in labels):
        return
    for body in axes.collections:
        if isinstance(body, PolyCollection):
            middle = np.asarray(body.get_paths()[0].vertices, dtype=np.float64)[:, 0].mean()
            if labels[round(float(middle))].endswith(setup.WITHHELD):
                body.set(hatch="////", alpha=0.45)


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"
