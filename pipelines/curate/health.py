"""The health of a benchmark in numbers: tasks, pool, duplicates, difficulty, coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from routeyard.pipelines.common.arrays import ratio
from routeyard.pipelines.common.matrix import LabelMatrix, label_matrix
from routeyard.pipelines.curate.dedup import dedup
from routeyard.pipelines.curate.prune import ONE, greedy_order, jaccard_fixed, model_accuracy
from routeyard.pipelines.curate.search import query_vectors
from routeyard.pipelines.curate.task_analysis import (
    Specialist,
    average_ranks,
    cost_kind,
    difficulty,
    known_mean,
    model_costs,
    specialist_scores,
    task_similarity,
)
from routeyard.schemas.contracts import RESULTS, register, statements
from routeyard.schemas.questions import group_of, leaked_tests
from routeyard.schemas.text import SIMILARITY

# Near-duplicates in the health report: by source, across splits, with conflicting labels.

_SQL = statements(Path(__file__).with_name("health_duplicates.sql"))


def duplicate_tables(
    tables: Mapping[str, pa.Table], duplicates: pa.Table
) -> tuple[dict[str, pa.Table], int]:
    """Report tables of near-duplicates by name, and the number of groups whose labels conflict."""
    import duckdb

    with duckdb.connect() as connection:
        register(connection, "queries", tables["queries"])
        register(connection, "duplicates", duplicates)
        connection.execute(f"CREATE TEMP VIEW members AS {_SQL['members']}")
        by_source = connection.sql(_SQL["by_source"]).to_arrow_table()
        ((removed, conflicting),) = connection.execute(_SQL["single"]).fetchall()
        about = {"removed_members": str(removed)}
        result = {"duplicates_by_source": by_source.replace_schema_metadata(about)}
        if "splits" in tables:
            register(connection, "splits", tables["splits"])
            across = connection.sql(_SQL["across_splits"]).to_arrow_table()
            result["duplicates_across_splits"] = across
    return result, conflicting


#: Models beyond which the pairwise table is left out of the report's files.
MOST_PAIRS = 2_000


@dataclass(frozen=True, slots=True)
class Health:
    """Tables by name (written as Parquet beside the report) and single facts."""

    tables: Mapping[str, pa.Table]
    facts: Mapping[str, Any]


def health(
    tables: Mapping[str, pa.Table],
    *,
    encoder: str | None = None,
    threshold: float = SIMILARITY,
    weighting: Literal["query", "task"] = "query",
    trade_off: float | None = None,
) -> Health:
    """All figures of the health report; what cannot be measured is absent and named.

    Args:
        tables: `queries`, `models`, `labels`; `embeddings`, `duplicates`, `splits`,
            `responses` when there.
        encoder: Which embeddings to use when there are several.
        threshold: Cosine for near-duplicates when there is no `duplicates` table.
        trade_off: λ of the pruning order; None leaves that table out.
    """
    matrix = label_matrix(tables, where="health")
    kind = cost_kind(tables)
    cost = model_costs(tables, kind or "usd")
    scores = specialist_scores(matrix, cost, weighting=weighting)
    similarity = jaccard_fixed(matrix.correct, matrix.known)
    missing: list[str] = []
    out = {
        "tasks": _tasks(matrix, scores),
        "models": _models(matrix, cost, similarity),
        "coverage": _coverage(matrix),
        "query_difficulty": _difficulty(matrix),
    }
    if len(matrix.models) <= MOST_PAIRS:
        out["jaccard"] = _long(matrix.models, similarity / ONE, ("model_a", "model_b"))
    if trade_off is not None:
        out["pruning_order"] = _pruning(matrix, similarity, trade_off)
    if "embeddings" in tables and len(tables["embeddings"]):
        vectors, _, name = query_vectors(tables, encoder, where="health")
        close = task_similarity(vectors, matrix.task, len(matrix.tasks))
        out["task_similarity"] = _long(matrix.tasks, close, ("task_a", "task_b"))
    else:
        name = ""
        missing.append("task similarity (no embeddings in it)")
    duplicates = tables.get("duplicates")
    if duplicates is None and name:
        measured = dedup(tables, threshold=threshold, keep="all", encoder=encoder)
        duplicates = measured.added["duplicates"]
    conflicting: int | None = None
    if duplicates is None:
        missing.append("near-duplicates (no embeddings in it, and no table of duplicates)")
    else:
        result, conflicting = duplicate_tables(tables, duplicates)
        out |= result
    if "splits" in tables:
        groups = None if duplicates is None else group_of(duplicates)
        out["test_in_train"] = pa.Table.from_pylist(
            leaked_tests(tables["queries"], tables["splits"], groups), schema=RESULTS["leaks"]
        )
    pseudo = len(tables["models"]) - len(matrix.models)
    return Health(
        out,
        {
            "queries": len(matrix.queries),
            "tasks": len(matrix.tasks),
            "models": len(matrix.models),
            "pseudo_specialists": pseudo,
            "labels": int(matrix.known.sum()),
            "coverage": float(matrix.known.mean()) if matrix.known.size else None,
            "unlimited_budget": scores.unlimited,
            "cost_kind": kind,
            "simulated": any(tables["models"].column("simulated").to_pylist()),
            "budgets": len(scores.budgets),
            "skipped_budgets": scores.skipped_budgets,
            "generalists": sorted(set(scores.generalists)),
            "models_without_cost": list(scores.without_cost),
            "weighting": weighting,
            "encoder": name or None,
            "trade_off": trade_off,
            "duplicate_groups": None
            if duplicates is None
            else pc.count_distinct(duplicates.column("group_id")).as_py(),
            "conflicting_groups": conflicting,
            "not_measured": missing,
        },
    )


def _tasks(matrix: LabelMatrix, scores: Specialist) -> pa.Table:
    right, count = matrix.by_task()
    values = ratio(right, count)
    hard, _ = difficulty(matrix)
    known: NDArray[np.bool_] = np.asarray(~np.isnan(values).all(axis=0))
    levels = np.where(np.isnan(values), -np.inf, values)
    # Models that are equally good are all named.
    best = [
        " and ".join(matrix.models[m] for m in np.flatnonzero(own == own.max()).tolist())
        if there
        else None
        for own, there in zip(levels.T, known, strict=True)
    ]
    top = np.where(known, levels.max(axis=0, initial=-np.inf), np.nan)
    return pa.table(
        {
            "task": pa.array(matrix.tasks, pa.string()),
            "queries": np.bincount(matrix.task, minlength=len(matrix.tasks)),
            "specialist_score": _nullable(scores.score),
            "difficulty": _nullable(hard),
            "best_model": pa.array(best, pa.string()),
            "best_accuracy": _nullable(top),
            "mean_accuracy": _nullable(known_mean(values, axis=0)),
        }
    ).sort_by([("specialist_score", "descending"), ("task", "ascending")])


def _models(
    matrix: LabelMatrix, cost: Mapping[str, float | None], similarity: NDArray[np.uint32]
) -> pa.Table:
    m = len(matrix.models)
    ranks, won = average_ranks(matrix)
    known = matrix.known.sum(axis=1)
    total: NDArray[np.int64] = similarity.sum(axis=1, dtype=np.int64)
    others = (total - np.diag(similarity).astype(np.int64)) / (max(m - 1, 1) * ONE)
    place = np.empty(m, dtype=np.int64)
    place[_cluster_order(similarity / ONE)] = np.arange(m)
    return pa.table(
        {
            "model_id": pa.array(matrix.models, pa.string()),
            "accuracy": _nullable(
                ratio((matrix.correct & matrix.known).sum(axis=1), matrix.known.sum(axis=1))
            ),
            "labels": known,
            "coverage": known / max(len(matrix.queries), 1),
            "mean_rank": _nullable(ranks),
            "tasks_won": won,
            "cost": pa.array([cost.get(model) for model in matrix.models], pa.float64()),
            "mean_jaccard": others,
            "cluster_order": place,
        }
    ).sort_by([("mean_rank", "ascending"), ("model_id", "ascending")])


def _cluster_order(similarity: NDArray[np.float64]) -> NDArray[np.int64]:
    """(m,) rows in the leaf order of average-linkage clustering: similar models are neighbours."""
    if len(similarity) < 3:
        return np.arange(len(similarity))
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    distance = 1 - similarity
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), method="average", optimal_ordering=False)
    return np.asarray(leaves_list(tree), dtype=np.int64)


def _coverage(matrix: LabelMatrix) -> pa.Table:
    _, count = matrix.by_task()
    sizes = np.bincount(matrix.task, minlength=len(matrix.tasks))
    m, t = count.shape
    return pa.table(
        {
            "model_id": pa.array(np.repeat(np.array(matrix.models, dtype=object), t), pa.string()),
            "task": pa.array(matrix.tasks * m if m else [], pa.string()),
            "labels": count.ravel(),
            "queries": np.tile(sizes, m),
        }
    )


def _difficulty(matrix: LabelMatrix) -> pa.Table:
    _, by_query = difficulty(matrix)
    return pa.table(
        {
            "query_id": pa.array(matrix.queries, pa.string()),
            "task": pa.array([matrix.tasks[t] for t in matrix.task.tolist()], pa.string()),
            "models": matrix.known.sum(axis=0),
            "difficulty": _nullable(by_query),
        }
    )


def _pruning(matrix: LabelMatrix, similarity: NDArray[np.uint32], trade_off: float) -> pa.Table:
    steps = greedy_order(similarity, model_accuracy(matrix), trade_off=trade_off)
    return pa.table(
        {
            "removal": pa.array(range(1, len(steps) + 1), pa.int64()),
            "model_id": pa.array([matrix.models[step.model] for step in steps], pa.string()),
            **{
                name: pa.array([getattr(step, name) for step in steps], pa.float64())
                for name in ("score", "accuracy", "mean_similarity")
            },
        }
    )


def _long(names: Sequence[str], values: Any, columns: tuple[str, str]) -> pa.Table:
    n = len(names)
    wide = np.array(names, dtype=object)
    return pa.table(
        {
            columns[0]: pa.array(np.repeat(wide, n), pa.string()),
            columns[1]: pa.array(np.tile(wide, n), pa.string()),
            "similarity": _nullable(np.asarray(values, dtype=np.float64).ravel()),
        }
    )


def _nullable(values: NDArray[np.float64]) -> pa.Array:
    return pa.array(values, pa.float64(), from_pandas=True)
