"""docs/papers.md: every comparison has its row, its test exists, differences are small."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.papers import BEGIN, COMPARISONS, END, Compared

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition(BEGIN)[2].partition(END)[0].splitlines()
    if line.startswith("| ") and not line.startswith(("| Paper", "| ---"))
]


def test_the_table_is_that_of_the_comparisons() -> None:
    assert [(row[0], row[1], row[2]) for row in ROWS] == [one[:3] for one in COMPARISONS]


@pytest.mark.parametrize(
    ("row", "one"), list(zip(ROWS, COMPARISONS, strict=True)), ids=[row[1] for row in ROWS]
)
def test_no_difference_is_larger_than_that_of_finite_differences(
    row: list[str], one: Compared
) -> None:
    if row[4] == "none":  # compared by ==
        assert row[3] == "0"
        return
    assert int(row[3].replace(",", "")) >= 1
    # Probes count in float32, the others in float64.
    assert float(row[4]) <= one.within


@pytest.mark.parametrize("one", COMPARISONS, ids=lambda one: one.system)
def test_the_test_of_a_comparison_exists(one: Compared) -> None:
    file, _, name = one.test.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert re.search(rf"^def {name.partition('[')[0]}\(", text, re.M)


def test_a_comparison_is_run_and_its_numbers_are_recorded() -> None:
    words = [sys.executable, "-m", "benchmarks", "papers", "--only", "Avengers", "--json"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout[done.stdout.index("{") :])["rows"]
    assert row["compared"] > 100
    assert 0 <= row["largest"] < 1e-9
