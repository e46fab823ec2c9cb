"""Weights that leave nothing of a kind of cells."""

from types import SimpleNamespace

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.fitted import Fitted
from hedgerow.privacy.columns import link_columns


@pytest.mark.parametrize(("alpha", "told"), [([0, 0, 1, 1, 1, 1], ["wage"]), ([0.5, 0.4, 1, 1, 1, 1], [])])
def test_codes_whose_rows_have_no_weight_are_told(alpha, told):
    """Linear weights take the rarest kind for the riskiest: a code may be gone from copies."""
    links = link_columns([hr.Column("wage ~ age", codes=(-8,)), hr.Column("bonus ~ age")])
    kinds = SimpleNamespace(present=None, values=np.array([1.0, 1, 0, 0, 0, 0]))
    design = SimpleNamespace(links=[kinds, kinds, kinds])
    weighted = SimpleNamespace(alpha=np.array(alpha), present=np.ones(6, np.bool_))
    fitted = SimpleNamespace(
        settings=SimpleNamespace(links=links),
        start=SimpleNamespace(design=design),
        outcome=SimpleNamespace(weighted=weighted),
    )
    assert Fitted._silenced_kinds(fitted) == told
