"""The study of what strict privacy by noisy statistics costs: it goes on where it stopped, and tells."""

import json
import sys

from hedgerow_studies import strict


def test_a_run_goes_on_where_it_stopped(monkeypatch, capsys, tmp_path):
    out = tmp_path / "rows.jsonl"
    command = [
        "strict",
        "--samples",
        "3",
        "--records",
        "200",
        "--columns",
        "2",
        "--jobs",
        "1",
        "--out",
        str(out),
    ]
    monkeypatch.setattr(sys, "argv", command)
    strict.main()
    told, lines = capsys.readouterr().out, out.read_text().splitlines(keepends=True)
    assert "200, 2 (3 samples)" in told
    assert len(lines) == 3
    out.write_text("".join(lines[:2]) + lines[2][:40])  # cut short in the middle of a line
    strict.main()
    assert capsys.readouterr().out == told
    assert out.read_text() == "".join(lines)
    errors = [row["sigma"] for line in lines for row in json.loads(line) if row["epsilon"] == 2.0]
    assert max(errors) < 0.3
