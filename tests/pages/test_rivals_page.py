"""The sentences of docs/rivals.md against the tables that they are about."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rivals.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "bench" / "rival" / "results.md").read_text(encoding="utf-8")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().split("|")[1:-1]]


MEASURED, STATISTICS, _ = re.split("## Strict by noisy statistics|## Real tables", PAGE)


def figures(cell: str) -> list[float]:
    return [float(figure) for figure in cell.split(", ")]


def rows_of(part: str) -> list[list[str]]:
    return [cells(line) for line in part.splitlines() if line.startswith("| ") and "0." in line]


def test_slope_and_sigma_at_one_are_within_what_the_page_says():
    at_one = {row[0]: figures(row[3])[2:] for row in rows_of(MEASURED)}
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


def test_noisy_statistics_are_as_near_as_the_page_says():
    """Of the others the best of each figure; "7 times" for slope and σ, "the same margin" within a tenth."""
    found = {(row[0], row[1]): row for row in rows_of(STATISTICS) if "ε" not in row[3]}
    others = [figures(row[3]) for row in rows_of(MEASURED) if not row[0].startswith(("ADP", "Strict"))]
    best = [min(column) for column in zip(*others, strict=True)]
    ours, plain = figures(found["2000", "stratified"][5]), figures(found["2000", "stratified"][2])
    assert all(theirs >= 7 * own for theirs, own in zip(best[2:], ours[2:], strict=True))
    assert ours[0] <= 1.1 * best[0]
    assert all(own <= 1.15 * without for own, without in zip(ours, plain, strict=True))
    small, none = (figures(found["200", "stratified"][place]) for place in (5, 2))
    assert small[0] <= 1.15 * none[0]
    assert small[2] <= 1.15 * none[2]
    assert 1.4 < small[3] / none[3] < 1.7
    assert figures(found["200", "stratified"][3])[2] > 0.5  # of a slope of 1
    projected = figures(found["2000", "projected"][5])
    assert abs(projected[2] - ours[2]) < 0.003


def test_real_tables_are_as_the_page_says():
    tables: dict[str, dict[str, list[float]]] = {}
    for row in rows_of(PAGE.split("## Real tables")[1]):
        name = row[0].split(",")[0] or name
        tables.setdefault(name, {})[row[1]] = [float(figure) for figure in row[2:6]]
    with_margin = {name: rows for name, rows in tables.items() if "Strict, ε = 1, with margin" in rows}
    assert (len(tables), len(with_margin)) == (5, 4)
    for rows in with_margin.values():
        ours, plain = rows["Strict, ε = 1, with margin"], rows["Unweighted"]
        assert ours[0] < plain[0]
        assert ours[2] <= 1.81 * plain[2]
    spending = with_margin["medical spending"]
    assert spending["Unweighted"][0] >= 4 * spending["Strict, ε = 1, with margin"][0]
    wages = tables["wages"]
    assert round(wages["Strict, ε = 1, model only"][2] / wages["Unweighted"][2]) == 3
    assert round(tables["incomes"]["Strict, ε = 1, with margin"][3], 1) == 0.1
