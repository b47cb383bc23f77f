"""The page of studies: the pair it takes, the time it gives, the parts it keeps."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.studies.page import cut, parts_of
from benchmarks.studies.run import TooLong, limited
from benchmarks.zoo.matrices import core_of
from routeyard.papers.reproduction import pair_in_place


def test_the_pair_is_the_median_and_the_best_on_train() -> None:
    level = [0.9, 0.1, 0.5, 0.3, 0.7]
    labels = np.array([[float(q < 10 * p) for p in level] for q in range(10)] * 2)
    # On test the order is turned round: it must not count.
    labels[10:] = 1 - labels[10:]
    names, ids = ["a", "b", "c", "d", "e"], [f"q{k:02d}" for k in range(20)]
    core = core_of(ids, names, labels, ["t"] * 20, ["train"] * 10 + ["test"] * 10)
    assert pair_in_place(core, "dense") == ("c", "a")


def test_a_study_stops_when_its_processor_time_is_used_up() -> None:
    def forgiving() -> None:
        try:
            while True:
                sum(range(1000))
        except Exception:  # what a study forgives must not swallow the limit
            pytest.fail("the limit was taken for a fault")

    with pytest.raises(TooLong), limited(0.05 / 60):
        forgiving()
    with limited(0.05 / 60):
        time.sleep(0.2)  # waiting is no work


def test_parts_of_other_releases_stay(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    assert parts_of(page) == {}
    page.write_text("# Head\n\n## Studies of one\n\n### x\n\n## Studies of two\n\ny\n")
    found = parts_of(page)
    assert list(found) == ["one", "two"]
    assert found["one"] == "## Studies of one\n\n### x\n"


def test_long_tables_are_cut() -> None:
    table = "| a |\n| --- |\n" + "".join(f"| {k} |\n" for k in range(30))
    text = cut(f"# Title\n\n{table}\n| b |\n| --- |\n| 1 |\n")
    assert text.count("\n| ") + text.startswith("| ") == 2 + 12 + 1 + 3
    assert text.startswith("## Title")
