r"""A sketch for the terminal: the shape of the confidential outcome above that of its copies. Confidential.

    >>> shapes = {"lower": [0, 1, 2, 3], "upper": [1, 2, 3, 4]}
    >>> shapes |= {"original": [0.1, 0.4, 0.4, 0.1], "copies": [0.1, 0.5, 0.3, 0.1]}
    >>> print("\n".join(draw_shapes(shapes, width=38, blocks=False)))
                     :::::: ::::::
                     |||||| ||||||
    original  :::::: |||||| |||||| ::::::
                     ||||||
                     |||||| ||||||
    copies    :::::: |||||| |||||| ::::::
              |0     |1     |2     |3

Shapes are those of `evidence.utility.bin_shapes`, on one scale, so that heights compare.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hedgerow.arrays import Array
from hedgerow.evidence.utility import PLACES, unstack_columns
from hedgerow.numerics.rounding import format_figure

BLOCKS = " ▁▂▃▄▅▆▇█"
_ASCII = " .:|"
_HEIGHT = 3  # lines of one shape; of several, one each


def draw_shapes(shapes: Mapping[str, Sequence[Any]], *, width: int, blocks: bool = True) -> list[str]:
    """Lines of at most `width` signs: a shape for each group, and what stands where.

    Of several columns below each other, each under its name.
    """
    if "column" in shapes:
        drawn = [
            [name, *lines]
            for name, own in unstack_columns(shapes).items()
            if (lines := draw_shapes(own, width=width, blocks=blocks))
        ]
        return [line for lines in drawn for line in lines]
    labels = [name for name in shapes if name not in PLACES]
    margin = max(map(len, labels)) + 2
    bins, room = len(shapes["lower"]), width - margin
    if room < 20:
        return []
    joined = -(-bins // room)  # bins in one column, where there are more than columns
    repeat = max(1, room // bins) if joined == 1 else 1
    gap = int(repeat > 4)  # between the bars of a few values
    heights = {label: _join(np.asarray(shapes[label], dtype=np.float64), joined) for label in labels}
    every = np.concatenate([values[values > 0] for values in heights.values()])
    tallest = min(float(every.max()), 2 * float(np.quantile(every, 0.9)))  # a spike does not flatten the rest
    lines, signs = [], BLOCKS if blocks else _ASCII
    height = _HEIGHT if len(labels) == 2 else 1
    for label, values in heights.items():
        rows = _draw(np.minimum(values / tallest, 1.0), height, signs)
        for place, row in enumerate(rows):
            name = label if place == height - 1 else ""
            bars = "".join(sign * (repeat - gap) + " " * gap for sign in row)
            lines.append(f"{name:{margin}}{bars}".rstrip())
    lower = np.asarray(shapes["lower"], dtype=np.float64)[::joined]
    named = [*filter(None, shapes.get("level", ()))]  # classes have names, bins begin somewhere
    if named:
        marks = _mark([level[: repeat - 2] for level in named[::joined]], repeat, room, every=1)
    else:
        marks = _mark(
            [format_figure(end, 3) for end in lower.tolist()], repeat, room, every=max(1, len(lower) // 4)
        )
    return [*lines, " " * margin + marks]


def _join(values: Array, joined: int) -> Array:
    return np.add.reduceat(values, np.arange(0, len(values), joined))


def _draw(values: Array, height: int, signs: str) -> list[str]:
    """Columns of these heights, 1 for the tallest, as lines from the top; what is there is never blank."""
    steps = len(signs) - 1
    filled = np.ceil(values * height * steps - 1e-9).astype(int)
    lines = []
    for level in range(height - 1, -1, -1):
        lines.append("".join(signs[min(max(one - level * steps, 0), steps)] for one in filled.tolist()))
    return lines


def _mark(words: Sequence[str], repeat: int, room: int, *, every: int) -> str:
    """What stands at the left ends of some columns, as many as fit."""
    line = ""
    for place in range(0, len(words), every):
        word = f"|{words[place]}"
        start = place * repeat
        if len(line) < start + (start == 0) and start + len(word) <= room:
            line = f"{line:{start}}{word}"
    return line
