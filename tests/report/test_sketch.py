"""The sketch for a terminal: what its pages show is what it draws, at any width."""

import numpy as np
import pytest

from hedgerow.cards import shapes as draw_card
from hedgerow.evidence.utility import bin_shapes, stack_columns
from hedgerow.report import sketch


@pytest.mark.parametrize("width", [30, 50, 80, 200])
def test_any_width_is_kept_and_nothing_that_is_there_is_left_out(width):
    bins = 60
    spike = np.full(bins, 0.001)
    spike[7] = 1 - spike.sum() + 0.001
    shapes = {
        "lower": np.arange(bins),
        "upper": np.arange(bins) + 1,
        "original": spike,
        "copies": spike[::-1],
    }
    lines = sketch.draw_shapes(shapes, width=width)
    assert max(map(len, lines)) <= width
    assert [line[:10].strip() for line in lines] == ["", "", "original", "", "", "copies", ""]
    assert " " not in lines[2][10:] + lines[5][10:]
    assert lines[0].index("█") < lines[3].index("█"), "the top of each spike"
    assert sketch.draw_shapes(shapes, width=25) == []


def test_classes_and_kinds_have_their_names():
    values = np.array([0.0, 1.0, 1.0, 2.0])
    shapes = bin_shapes(values, {"copies": [values]}, ("single", "married", "widowed for a long time"))
    assert shapes["level"] == ["single", "married", "widowed for a long time"]
    amounts = bin_shapes(values * 1.5, {"copies": [values]})
    lines = sketch.draw_shapes(stack_columns({"pay": amounts, "state": shapes}), width=60)
    assert lines[-1].split("|")[1:] == ["single         ", "married        ", "widowed for a "]
    assert "|0 " in lines[7]
    assert draw_card(shapes).count("<text") == 2  # a name for each group, none for the classes
