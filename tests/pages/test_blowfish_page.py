"""The sentences of docs/blowfish.md against its tables."""

from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "blowfish.md").read_text(encoding="utf-8")


def rows_of(start: str, end: str) -> list[list[str]]:
    part = PAGE.split(start)[1].split(end)[0]
    return [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in part.splitlines()
        if line.startswith("| ")
    ][1:]


def pair(cell: str) -> list[float]:
    return [float(figure) for figure in cell.split(", ")]


def test_what_ranges_gain_is_as_the_page_says():
    rows = [row for row in rows_of("strict-ranges.png)", "A copy from the estimates") if row[0].isdigit()]
    ratio = {(row[0], row[1].split(" ")[0]): [pair(cell) for cell in row[2:]] for row in rows}
    at_half = [round(ratio["200", name][1][0], 1) for name in ("in", "withheld", "replaced")]
    assert at_half == [2.0, 3.1, 8.4]
    large = [cell for key, cells in ratio.items() if key[0] != "200" for cell in cells[2:]]
    assert max(max(cell) for cell in large) < 1.25
    assert ratio["200", "in"][2][1] > ratio["200", "withheld"][2][1]  # σ at ε = 1


def test_what_sums_about_midpoints_could_add_is_as_the_page_says():
    found: dict[str, list[float]] = {"few, small": [], "few, large": [], "eight": []}
    for records, classes, epsilon, *cells in rows_of("put at its upper bound", "Eight classes leave"):
        if not records.isdigit():
            continue
        alone, rounds, both, _ = map(pair, cells)
        gains = [1 - b / min(a, r) for a, r, b in zip(alone, rounds, both, strict=True)]
        large = int(records) * float(epsilon) >= 2000
        found["eight" if classes == "8" else "few, large" if large else "few, small"] += gains
    assert max(found["eight"]) < 0.12
    assert 0.2 < max(found["few, small"]) < 0.26
    assert max(found["few, large"]) < 0.1
