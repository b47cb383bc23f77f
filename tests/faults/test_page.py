"""docs/FAULTS.md: its tables hold every attack, and the tests that it names are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.faults.attacks import ATTACKS, Row, read, table
from tests.faults.put_back import FAULTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/FAULTS.md").read_text(encoding="utf-8")


def test_every_attack_has_a_file_that_counts_it() -> None:
    folder = Path(__file__).parent
    for attack, (_, file) in ATTACKS.items():
        text = (folder / file).read_text(encoding="utf-8")
        where = attack.rpartition(", one ")[0]  # several rows of one test differ in their last word
        assert attack in text or "kill -9 in" in attack or (where and where in text), (attack, file)


def test_the_tables_are_whole_and_nothing_is_lost() -> None:
    for who in ("root", "ordinary user"):
        part = re.search(rf"<!-- {who} -->(.*?)<!-- end -->", PAGE, re.S)
        assert part, who
        rows = read(part[1])
        # An attack that was left out says so by its row being gone, and fails here.
        assert list(rows) == list(ATTACKS), who
        for name, found in rows.items():
            assert found.tried == found.held > 0, (who, name)
            assert (found.lost, found.invented) == (0, 0), (who, name)
            assert (found.paid_twice or 0) <= found.in_flight, (who, name)


@pytest.mark.parametrize("page", ["docs/FAULTS.md", "SECURITY.md"])
def test_the_tests_it_names_are_there(page: str) -> None:
    names = re.findall(r"`(tests/[\w./]+?)(?:::(\w+))?`", (ROOT / page).read_text("utf-8"))
    assert len(names) > 20
    for name in names:
        path, function = ROOT / name[0], name[1]
        assert path.exists(), name
        if function:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            assert function in {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}


@pytest.mark.parametrize("name", FAULTS)
def test_what_can_be_put_back_still_has_its_place_and_its_test(name: str) -> None:
    fault = FAULTS[name]
    assert (ROOT / fault.file).read_text(encoding="utf-8").count(fault.right) == 1
    path, function = fault.test.partition("[")[0].split("::")
    assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8")


def test_rows_of_two_processes_are_added() -> None:
    one, other = Row("a", tried=2, held=2), Row("a", tried=1, held=1, paid_twice=1, in_flight=4)
    one.add(other)
    assert (one.tried, one.paid_twice) == (3, 1)
    assert "| a | 3 | 3 | 0 | 0 | 1 of 4 |" in table({"a": one})
    assert read(table({"a": one, "b": Row("b", tried=2_000)})) == {
        "a": one,
        "b": Row("b", tried=2_000),
    }
