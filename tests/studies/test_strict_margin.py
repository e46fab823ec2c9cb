"""The study of margins measures what it says, on one table."""

from hedgerow_studies import strict_margin


def test_a_skewed_table_is_nearer_with_a_margin():
    found = strict_margin.measure("skewed", seed=1, epsilon=4.0, share=0.25)
    assert found["margin ecdf"] < 0.7 * found["model only ecdf"]
    assert found["margin, projected slope"] < 0.1
    assert strict_margin.MODELS.keys() >= {"right", "skewed", "missing interaction"}
