from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import routeyard.pipelines.curate
from routeyard.pipelines.common.errors import RecipeError, UnknownName
from routeyard.pipelines.curate import RULES
from routeyard.pipelines.curate.rule import Rule, check_rules, curate


@pytest.fixture
def tables(make_queries: Any, make_embeddings: Any, make_labels: Any, qid: Any) -> dict[str, Any]:
    ids = [qid(name) for name in "abc"]
    return {
        "queries": make_queries([{"name": name} for name in "abc"]),
        "embeddings": make_embeddings(ids, np.array([[1, 0], [1, 0], [0, 1]])),
        "labels": make_labels([(query, "m", True) for query in ids]),
    }


def test_rows_of_removed_queries_leave_every_table(tables: dict[str, Any], qid: Any) -> None:
    applied = curate(tables, [("dedup", {"threshold": 0.99})])
    for name in ("queries", "embeddings", "labels"):
        assert applied.tables[name].column("query_id").to_pylist() == [qid("a"), qid("c")]
    # The record of the group keeps both members.
    assert len(applied.tables["duplicates"]) == 2
    assert applied.removals.column("key").to_pylist() == [qid("b")]
    assert applied.figures[0]["parameters"]["threshold"] == 0.99


@pytest.mark.parametrize(
    ("rules", "error", "says"),
    [
        ([("dedupe", {})], UnknownName, "dedup"),
        ([("dedup", {"treshold": 0.9})], RecipeError, "threshold"),
        ([("dedup", {"threshold": "high"})], RecipeError, "cannot be 'high'"),
        ([("dedup", {"keep": "some"})], RecipeError, "representative"),
        ([("dedup", {"threshold": True})], RecipeError, "cannot be True"),
        ([("dedup", {"prefer_sources": "abc"})], RecipeError, "cannot be 'abc'"),
    ],
)
def test_parameters_are_checked_before_anything_runs(rules: Any, error: Any, says: str) -> None:
    with pytest.raises(error) as caught:
        check_rules(rules)
    assert says in str(caught.value)


def test_defaults_are_readable() -> None:
    assert RULES.get("dedup").defaults["threshold"] == 0.999


def test_every_rule_module_is_listed() -> None:
    """A module that makes a `Rule(…)` must stand in RULES, under the rule's own name."""
    folder = Path(next(iter(routeyard.pipelines.curate.__path__)))
    listed = set(RULES.builtin.values())
    for path in folder.rglob("*.py"):
        module = ".".join(
            ["routeyard", "pipelines", "curate", *path.relative_to(folder).with_suffix("").parts]
        )
        for made in re.findall(r"^([A-Z_]+) = Rule\(", path.read_text(), re.M):
            assert f"{module}:{made}" in listed, f"list {module}:{made} in pipelines/curate"
    for name in RULES.builtin:
        rule = RULES.get(name)
        assert isinstance(rule, Rule)
        assert rule.name == name
        assert rule.apply.__doc__, f"rule {name!r} does not say what it does"
