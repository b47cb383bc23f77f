"""docs/papers.md: every comparison has its row, its test exists, differences are small."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.papers import BEGIN, COMPARISONS, END

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition(BEGIN)[2].partition(END)[0].splitlines()
    if line.startswith("| ") and not line.startswith(("| Paper", "| ---"))
]


def test_the_table_is_that_of_the_comparisons() -> None:
    assert [(row[0], row[1], row[2]) for row in ROWS] == [one[:3] for one in COMPARISONS]


def test_no_difference_is_larger_than_that_of_finite_differences() -> None:
    for row, one in zip(ROWS, COMPARISONS, strict=True):
        if row[4] == "none":  # compared by ==
            assert row[3] == "0", row
        else:
            assert int(row[3].replace(",", "")) >= 1, row
            # Probes count in float32, the others in float64.
            assert float(row[4]) <= one.within, row


def test_the_test_of_a_comparison_exists() -> None:
    for one in COMPARISONS:
        file, _, name = one.test.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^def {name.partition('[')[0]}\(", text, re.M), one.system


def test_a_comparison_is_run_and_its_numbers_are_recorded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["papers", "--only", "Avengers", "--json"]) == 0
    printed = capsys.readouterr().out
    (row,) = json.loads(printed[printed.index("{") :])["rows"]
    assert row["compared"] > 100
    assert 0 <= row["largest"] < 1e-9
