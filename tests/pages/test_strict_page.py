"""The sentences of docs/strict.md against its tables."""

from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "strict.md").read_text(encoding="utf-8").split("## Measured")[1]
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if line.startswith("| ")
]


def test_the_goal_is_kept_where_the_page_says():
    ratios = {
        (row[0], row[1]): [float(cell.split(" ± ")[0]) for cell in row[2:]]
        for row in ROWS
        if " ± " in row[-1]
    }
    assert len(ratios) == 4
    for (_, source), (ecdf, _, slope, sigma) in ratios.items():
        assert ecdf <= 1.15
        assert (slope <= 1.15, sigma <= 1.15) == (source == "estimate", source == "estimate")
    assert all(max(found) <= 1.15 for (_, source), found in ratios.items() if source == "estimate")


def test_with_a_margin_distributions_are_nearer_than_without_privacy():
    rows = {row[0]: [float(cell.split(" / ")[0]) for cell in row[1:]] for row in ROWS if " / 0." in row[1]}
    assert len(rows) == 6
    assert all(margin < plain for plain, _, margin, _ in rows.values())
