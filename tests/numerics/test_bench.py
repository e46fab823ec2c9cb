import json
from dataclasses import asdict
from itertools import product

import pytest

from bench import result, show
from bench.limits import FLOPS
from bench.scale import CASES, SIZES, STREAMED


def test_table_and_rates():
    row = result.Result("case", 1000, 10, 0.5, 0.6, 0.8, 3, 1e4, "record-draws", 100.0, 1.0, ratio=2.0)
    assert row.rate == 2e4
    assert row.rate_per_core == 1.25e4
    head, line = result.table([row]).splitlines()
    assert head.split()[0] == "case"
    assert "1.25e+04" in line


def row(subject, case, records=1000, seconds=0.5, work=1e6, unit="record-draws", **more):
    made = result.Result(
        case, records, 1000, seconds, seconds, 2 * seconds, 1, work, unit, 512.0, 1.0, **more
    )
    return {"subject": subject, **asdict(made)}


@pytest.fixture(scope="module")
def saved():
    """A run as it is saved, with one case that was not measured at the largest size."""
    scale = [
        row("scale", case + suffix, size, size / 1e6, size * 1e3)
        for case, suffix, size in product(CASES, ("", STREAMED), SIZES)
        if (case, size) != ("ADP", SIZES[-1])
    ]
    limits = [
        row("limits", "triad", work=1e10, unit="bytes"),
        row("limits", "dgemm", work=5e10, unit="flops"),
    ]
    limits += [row("limits", case, of_peak=0.25) for case in FLOPS]
    peers = [
        row("peers", "hedgerow", 100_000, 0.25, epsilon=9.1, epsilon_sd=0.04),
        row("peers", "PyStan", 100_000, 300.0, epsilon=9.12),
    ]
    machine = {
        "processor": "P",
        "cores": 2,
        "memory_gb": 16.0,
        "system": "S",
        "load": 0.1,
        "versions": {"hedgerow": "1"},
    }
    return {"when": "2026-01-02T03:04:05+00:00", "machine": machine, "results": scale + limits + peers}


def test_one_table_of_all_cases(saved):
    lines = show.write_table(saved).splitlines()
    assert "| | | 10³ | 10⁴ | 10⁵ | 10⁶ | 10⁷ | 10⁸ |" in lines
    assert "| seconds | Unweighted | 0.001 | 0.01 | 0.1 | 1 | 10 | 100 |" in lines
    assert sum("| ADP, streamed |" in line for line in lines) == len(show.MEASURES)
    assert "|  | ADP | 0.001 | 0.01 | 0.1 | 1 | 10 |  |" in lines
    assert "| record-draws per second | Unweighted |" + " 1.0e9 |" * 6 in lines
    assert "| dgemm | 100 GFLOP/s |  |  |" in lines
    assert "| density | 2.0e6 record-draws/s | 7 flops | 25% |" in lines
    assert "| 100,000 | PyStan | 300 | 600 | 1,200× | 1,200× | 9.120 | +0.5 |" in lines


def test_publishing_fills_the_page_between_its_marks(saved, tmp_path):
    page = tmp_path / "speed.md"
    page.write_text(f"before\n\n{show.BEGIN}\nold\n{show.END}\n\nafter\n", encoding="utf-8")
    show.publish(saved, page=page, home=tmp_path / "bench")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith(f"{show.END}\n\nafter\n")
    assert "old" not in text
    assert show.write_table(saved) in text
    assert json.loads((tmp_path / "bench" / "scale.json").read_text(encoding="utf-8")) == saved
    picture = (tmp_path / "bench" / "scale.svg").read_text(encoding="utf-8")
    for words in (*CASES, "PyStan", "records", "peak of memory, GiB", "dgemm over 7 flops (density)"):
        assert f">{words}<" in picture, words


def test_the_page_shows_the_published_numbers():
    published = json.loads((show.HOME / "scale.json").read_text(encoding="utf-8"))
    assert show.write_table(published) in show.PAGE.read_text(encoding="utf-8")
