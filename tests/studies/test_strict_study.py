"""The study of what strict privacy by noisy statistics costs: it goes on where it stopped, and tells."""

import json
import sys

import pytest

from hedgerow_studies import strict


@pytest.mark.slow
def test_a_run_goes_on_where_it_stopped(monkeypatch, capsys, tmp_path):
    out = tmp_path / "rows.jsonl"
    command = [
        "strict",
        "--samples",
        "2",
        "--records",
        "200",
        "--columns",
        "2",
        "--epsilons",
        "2",
        "--jobs",
        "1",
        "--out",
        str(out),
    ]
    monkeypatch.setattr(sys, "argv", command)
    strict.main()
    told, lines = capsys.readouterr().out, out.read_text().splitlines(keepends=True)
    assert "200, 2 (2 samples)" in told
    assert len(lines) == 2
    out.write_text(lines[0] + lines[1][:40])  # cut short in the middle of a line
    strict.main()
    assert capsys.readouterr().out == told
    assert out.read_text() == "".join(lines)
    rows = [row for line in lines for row in json.loads(line)]
    last = [row[source]["sigma"] for row in rows if row["epsilon"] for source in strict.SOURCES]
    assert max(last) < 0.3


def test_the_goal_is_a_ratio_of_means_with_its_standard_error():
    rows = []
    for sample, (plain, noisy) in enumerate([(1.0, 2.0), (3.0, 4.0)]):
        row = {"n": 2000, "p": 2, "sample": sample, "kind": "withheld"}
        means = {"without": plain, "draw": noisy, "estimate": plain}
        errors = {name: dict.fromkeys(strict.FIGURES, mean) for name, mean in means.items()}
        rows.append(row | {"epsilon": None, "without": errors.pop("without")})
        rows.append(row | {"epsilon": 0.5} | errors)
    _, _, draw, estimate = strict.goal(rows)
    assert draw == "| 2000, 2, 0.5 | draw | " + " | ".join(["1.50 ± 0.25"] * 4) + " |"
    assert estimate == "| 2000, 2, 0.5 | estimate | " + " | ".join(["1.00 ± 0.00"] * 4) + " |"
