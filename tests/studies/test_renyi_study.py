"""The tables behind docs/maths.md, "Rényi price", on a few small samples."""

import pytest

from hedgerow_studies import renyi


@pytest.mark.slow
def test_the_tables_are_made():
    prices = renyi.prices({200: 2}).set_index("weights")
    assert (prices["renyi"] < prices["lipschitz"]).all()
    assert (prices["20 copies, renyi"] < prices["20 copies, oscillation"]).all()
    assert list(renyi.scales(200, 1)["copies"]) == [1, 5, 20]
    again = renyi.again((200,), 2).set_index(["weights", "bound"])["scale"]
    assert again["equal", "renyi"].endswith("± 0.000")
    assert not again["equal", "oscillation"].endswith("± 0.000")
    assert renyi.markdown(renyi.recomputed((200,), 1)).count("of 1 |") == 3
