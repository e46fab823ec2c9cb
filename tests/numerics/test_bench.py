from bench import result


def test_table_and_rates():
    row = result.Result("case", 1000, 10, 0.5, 0.6, 0.8, 3, 1e4, "record-draws", 100.0, 1.0, ratio=2.0)
    assert row.rate == 2e4
    assert row.rate_per_core == 1.25e4
    head, line = result.table([row]).splitlines()
    assert head.split()[0] == "case"
    assert "1.25e+04" in line
