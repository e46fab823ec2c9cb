"""README's first picture: the first example's original beside a copy of it.

`python -m hedgerow_studies.first_example` makes the release of README's first command, seeded, in Python, and
draws docs/figures/first-example.png and its dark sister. The payroll file is simulated.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from hedgerow import datasets
from hedgerow.privacy.strict import Strict
from hedgerow.synthesizer import Synthesizer
from hedgerow_studies.headline import FIGURES, theme
from hedgerow_studies.work import silence_advice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEED, COPIES = 1, 3
GREY, BLUE = "#8c8c8c", "#1E88E5"


def copies() -> tuple[Any, list[Any]]:
    """The payroll file, and its copies under ε = 1."""
    original = datasets.payroll()
    strict = Strict(limits=(1000, 1e9))
    asked: dict[str, Any] = {
        "family": "lognormal",
        "standard": strict,
        "epsilon": 1.0,
        "copies": COPIES,
        "seed": SEED,
    }
    with silence_advice():
        return original, Synthesizer("payroll ~ log(employees)", **asked).fit(original).sample().tables


def picture(original: Any, made: list[Any], *, dark: bool) -> None:
    """Payroll by employees, original and copy, and the distribution functions of all."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(theme(dark=dark)):
        figure = Figure(figsize=(10.5, 3.5), layout="constrained")
        left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1, 1.1])
        middle.sharex(left)
        middle.sharey(left)
        for axes, table, colour, title in (
            (left, original, GREY, "original, 1000 establishments"),
            (middle, made[0], BLUE, "one of three copies, ε = 1 in all"),
        ):
            axes.plot(table["employees"], table["payroll"], ".", color=colour, markersize=3, alpha=0.7)
            axes.set_title(title, fontsize=10)
            axes.set_xlabel("employees")
            axes.loglog()
        left.set_ylabel("payroll, dollars")
        _draw_shares(right, original["payroll"], GREY, "original", linewidth=3.5)
        for number, table in enumerate(made):
            _draw_shares(right, table["payroll"], BLUE, "copies" if number == 0 else "", linewidth=1.0)
        right.set_xscale("log")
        right.set_title("share of establishments at or below", fontsize=10)
        right.set_xlabel("payroll, dollars")
        right.legend(frameon=False, fontsize=9)
        for axes in (left, middle, right):
            axes.grid(linewidth=0.3, alpha=0.5)
            axes.spines[["top", "right"]].set_visible(False)
        name = f"first-example{'-dark' if dark else ''}.png"
        figure.savefig(FIGURES / name, dpi=120, metadata={"Software": None})


def _draw_shares(axes: "Axes", values: Any, colour: str, label: str, *, linewidth: float) -> None:
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    share = np.arange(1, len(ordered) + 1) / len(ordered)
    axes.plot(ordered, share, color=colour, linewidth=linewidth, label=label or None)


def main() -> None:
    """Make the copies, and draw both pictures."""
    original, made = copies()
    for dark in (False, True):
        picture(original, made, dark=dark)


if __name__ == "__main__":
    typer.run(main)
