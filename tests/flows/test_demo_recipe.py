"""The demo recipe fits the bank, the pool and the recipe model."""

from __future__ import annotations

from pathlib import Path

from routeyard.flows.demo.answers import bank, pool, write
from routeyard.flows.recipe import find, read_yaml
from routeyard.pipelines.ingest import ingest
from routeyard.schemas.recipe import Recipe


def demo() -> Recipe:
    return Recipe.model_validate(read_yaml(find("demo")))


def test_every_model_says_that_it_is_simulated():
    recipe = demo()
    assert {m.model_id for m in recipe.pool.models} == set(pool())
    assert all(m.simulated and m.price_date for m in recipe.pool.models)
    assert "SIMULATED" in recipe.release.description


def test_the_sources_take_in_the_whole_bank(tmp_path, monkeypatch):
    monkeypatch.setenv("ROUTEYARD_DEMO_BANK", str(write(tmp_path / "bank.jsonl")))
    taken = ingest(demo().sources, base=Path()).queries.to_pylist()
    by_id = {row["source_id"]: row for row in taken}
    assert len(taken) == len(bank())
    for q in bank():
        row = by_id[q.id]
        assert (row["question"], row["scorer"], row["task"]) == (q.question, q.scorer, q.task)
        assert tuple(row["references"]) == q.references
        # The server finds the question inside the prompt.
        assert q.question in row["prompt"]
