"""Whatever is absent from a release, one SQL query says which rule took it and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from routeyard.pipelines.curate.rule import curate
from routeyard.pipelines.release.build import write_release
from routeyard.pipelines.release.reader import open_release

EXPLAIN = (
    "SELECT coalesce(r.stage, 'kept') AS stage, r.reason, r.detail FROM (SELECT '{0}' AS id) "
    "LEFT JOIN removals r ON r.key = id LEFT JOIN queries q ON q.query_id = id "
    "WHERE r.key IS NOT NULL OR q.query_id IS NOT NULL"
)


def test_one_query_explains_any_absent_question(
    make_queries: Any,
    make_models: Any,
    make_labels: Any,
    make_embeddings: Any,
    tmp_path: Path,
) -> None:
    queries = make_queries([{"name": str(i), "task": f"t{i % 2}"} for i in range(40)])
    ids = queries.column("query_id").to_pylist()
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 8))
    vectors[5] = vectors[4]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    models = ["a", "b", "c"]
    tables = {
        "queries": queries,
        "models": make_models(models),
        "labels": make_labels([(q, m, bool(rng.random() < 0.5)) for q in ids for m in models]),
        "embeddings": make_embeddings(ids, vectors),
    }
    rules = [
        ("dedup", {}),
        ("specialist_sample", {"quota": 6, "floor": 2, "demanding": 1.1, "redundant": None}),
        ("prune", {"trade_off": 0.5, "target": 2}),
    ]
    applied = curate(tables, rules)
    write_release(
        {**applied.tables, "removals": applied.removals},
        recipe={"name": "tiny", "version": "1.0.0", "release": {"title": "Tiny"}},
        root=tmp_path,
        render_card=lambda *_, **__: "# Tiny\n",
    )
    reasons = set()
    with open_release(tmp_path / "tiny" / "1.0.0") as release:
        kept = set(release.arrow("queries").column("query_id").to_pylist())
        for query in ids:
            rows = release.sql(EXPLAIN.format(query)).to_pylist()
            assert len(rows) == 1
            assert (rows[0]["stage"] == "kept") == (query in kept)
            if query not in kept:
                assert rows[0]["detail"]
                reasons.add(rows[0]["reason"])
        gone = set(models) - set(release.arrow("models").column("model_id").to_pylist())
        assert len(gone) == 1
        assert release.sql(EXPLAIN.format(gone.pop())).to_pylist()[0]["reason"] == "pruned"
    assert reasons == {"near_duplicate", "generalist_sufficient"}
