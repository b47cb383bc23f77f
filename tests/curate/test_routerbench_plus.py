"""RouterBench+'s rules on an EmbedLLM-shaped matrix of full size with planted structure."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from routeyard.flows.recipe import load
from routeyard.flows.rehearse import Planted, plant
from routeyard.pipelines.curate.rule import curate
from routeyard.schemas import EMBEDDINGS, LABELS, MODELS, QUERIES


def tables_of(planted: Planted) -> dict[str, pa.Table]:
    n, m = len(planted.questions), len(planted.models)
    ids = [f"q{row:020x}" for row in range(n)]
    none = pa.array([[]] * n, pa.list_(pa.string()))
    queries = {
        "query_id": ids, "source": ["embedllm"] * n, "source_id": [str(r) for r in range(n)],
        "task": planted.tasks, "domain": ["general"] * n, "question": planted.questions,
        "prompt": planted.questions, "choices": none, "references": none,
        "scorer": ["given"] * n, "metadata": ["{}"] * n,
    }  # fmt: skip
    right = planted.correct.ravel()
    cells = n * m
    labels = {
        "query_id": pa.array(np.tile(np.array(ids, dtype=object), m), pa.string()),
        "model_id": pa.array(np.repeat(np.array(planted.models, dtype=object), n), pa.string()),
        "score": right.astype(np.float64), "correct": right,
        "decided_by": pa.array(["given"] * cells, pa.string()),
        "contested": np.zeros(cells, dtype=bool), "n_samples": np.ones(cells, dtype=np.int64),
    }  # fmt: skip
    models = [
        {"model_id": name, "kind": "real", "simulated": False,
         "params_b": float(name.rsplit("-", 1)[1].rstrip("b"))}
        for name in planted.models
    ]  # fmt: skip
    return {
        "queries": QUERIES.conform(pa.table(queries)),
        "models": MODELS.from_rows(models),
        "labels": LABELS.conform(pa.table(labels)),
        "embeddings": _vectors(planted, ids),
    }


def _vectors(planted: Planted, ids: list[str]) -> pa.Table:
    """A direction per task (twins share it) with noise; a repeated question, the same vector."""
    random = np.random.default_rng(3)
    names = sorted(set(planted.tasks))
    centre = {name: random.normal(size=64) for name in names}
    for twin, other in planted.twin_tasks.items():
        centre[twin] = centre[other]
    vectors = np.stack([centre[task] for task in planted.tasks])
    vectors += 0.6 * random.normal(size=vectors.shape)
    for row, other in enumerate(planted.twin_of.tolist()):
        if other >= 0:
            vectors[row] = vectors[other]
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 64)
    n = len(ids)
    return EMBEDDINGS.conform(
        pa.table({"query_id": ids, "encoder": ["planted"] * n, "vector": values,
                  "seen_chars": pa.array([None] * n, pa.int64())})
    )  # fmt: skip


@pytest.mark.slow
def test_the_recipes_rules_find_what_was_planted_and_end_at_85_models() -> None:
    planted = plant()
    assert planted.correct.shape == (112, 35_673)
    recipe = load("routerbench_plus")[0]
    done = curate(tables_of(planted), [(rule.rule, rule.parameters) for rule in recipe.curate])
    figures = {one["rule"]: one for one in done.figures}
    # Every planted repeat goes, and nothing else.
    repeats = int((planted.twin_of >= 0).sum())
    assert figures["dedup"]["before"]["queries"] - figures["dedup"]["after"]["queries"] == repeats
    tasks = set(done.tables["queries"].column("task").to_pylist())
    assert len(tasks) == 68
    # Of each pair of like tasks one is left.
    for twin, other in planted.twin_tasks.items():
        assert (twin in tasks) != (other in tasks)
    decisions = {
        row["task"]: row["decision"] for row in figures["specialist_sample"]["figures"]["tasks"]
    }
    assert {decisions[name] for name in planted.specialists} == {"demanding"}
    assert figures["prune"]["after"]["models"] == 82
    gone = {row["model_id"] for row in figures["prune"]["figures"]["order"]}
    alike = planted.copies.keys() | set(planted.copies.values())
    assert len(gone & alike) >= 0.8 * len(gone)
    kinds = Counter(done.tables["models"].column("kind").to_pylist())
    assert kinds == {"real": 82, "pseudo_specialist": 3}
    injected = {one["task"] for one in figures["pseudo_specialists"]["figures"]["injected"]}
    assert injected == set(planted.hard)
