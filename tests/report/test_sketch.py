"""The sketch for a terminal: what its pages show is what it draws, at any width."""

import numpy as np
import pytest

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
