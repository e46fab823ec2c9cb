"""The sentences of docs/rivals.md against the tables that they are about."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rivals.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "bench" / "rival" / "results.md").read_text(encoding="utf-8")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| \n").split("|")]


def test_slope_and_sigma_at_one_are_within_what_the_page_says():
    rows = [cells(line) for line in PAGE.splitlines() if line.startswith("| ") and "0." in line]
    at_one = {row[0]: [float(figure) for figure in row[3].split(", ")][2:] for row in rows}
    ours = {name: pair for name, pair in at_one.items() if name.startswith(("ADP", "Strict"))}
    others = [figure for name, pair in at_one.items() if name not in ours for figure in pair]
    off_centre = ours["Strict, corrected, box off centre"].pop()
    found = [figure for pair in ours.values() for figure in pair]
    told = f"off by {min(found):.3f} to {max(found):.3f} (but σ by {off_centre:.3f} where"
    assert told in " ".join(PAGE.split())
    assert (round(min(others), 2), round(max(others), 1)) == (0.12, 1.0)


def test_a_high_cap_touches_nothing():
    rows = [cells(line) for line in RESULTS.splitlines() if line.startswith("| ")]
    for records in ("200", "2000"):
        plain = {
            row[2]: row[5:] for row in rows if row[:2] == [records, "5.7"] and row[3] == "z kept, independent"
        }
        assert plain["hedgerow ADP, oscillation, cap weights"] == plain["hedgerow Unweighted"]
    assert "figures of Unweighted to the digit" in " ".join(PAGE.split())
