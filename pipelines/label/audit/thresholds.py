"""Verdicts as policies count them: a grade is right from the threshold that the recipe sets."""

from __future__ import annotations

import pyarrow as pa

from routeyard.pipelines.label.audit.questions import answer
from routeyard.schemas.recipe.label import Label


def by_policy(verdicts: pa.Table, queries: pa.Table, policy: Label) -> pa.Table:
    """The verdicts, `outcome` of graded ones by their task's threshold.

    A scorer sets `correct` by its own threshold. Where the recipe sets another for
    the task, labels go by that one, and so must whoever compares verdicts.

    Args:
        verdicts: contract form; rows of unknown questions stay as they are.
        queries: query_id and task.
    """
    tasks = sorted(set(queries.column("task").to_pylist()))
    limits = {task: policy.policy_of(task).threshold for task in tasks}
    if all(limit is None for limit in limits.values()):
        return verdicts
    lowest = pa.table({"task": tasks, "lowest": pa.array(limits.values(), pa.float64())})
    queries = queries.select(["query_id", "task"])
    return answer("by_policy", verdicts=verdicts, queries=queries, limits=lowest)
