"""How far doubtful labels could move a model's accuracy."""

from __future__ import annotations

import pyarrow as pa


def intervals(labels: pa.Table, suspects: pa.Table | None = None) -> pa.Table:
    """Accuracy of each model with the interval that its doubtful labels leave open.

    A label is doubtful when it is contested, undecided, or rests on a suspect
    reference. The lower end counts every doubtful label as wrong, the upper end as
    right (worst-case bounds, Manski 1989): no assumption about the doubtful ones is
    made, and sampling error is not in it. Labels that a person decided are certain
    unless people were split.

    Args:
        labels: LABELS contract.
        suspects: `query_id` of questions whose reference is in doubt.

    Returns:
        model_id, n (labels of responses that exist), undecided, unreadable, doubtful,
        accuracy (over decided labels), accuracy_readable (over decided labels that
        are not `unreadable`), low, high (over n); sorted by model_id. Accuracies are
        null where nothing was decided.
    """
    import duckdb

    with duckdb.connect() as connection:
        connection.register("labels", labels)
        suspect = (
            suspects if suspects is not None else pa.table({"query_id": pa.array([], "string")})
        )
        connection.register("suspects", suspect.select(["query_id"]))
        return connection.sql(
            """
            WITH judged AS (
                SELECT *, score IS NULL
                          OR (contested AND NOT starts_with(coalesce(decided_by, ''), 'human:'))
                          OR (query_id IN (SELECT query_id FROM suspects)
                              AND NOT starts_with(coalesce(decided_by, ''), 'human:')) AS doubt
                FROM labels
                -- a failed call says nothing about the model
                WHERE n_samples > 0 OR contested OR decided_by IS NOT NULL
            )
            SELECT model_id,
                   count(*) AS n,
                   count(*) FILTER (score IS NULL) AS undecided,
                   count(*) FILTER (decided_by = 'unreadable') AS unreadable,
                   count(*) FILTER (doubt) AS doubtful,
                   avg(score) AS accuracy,
                   avg(score) FILTER (decided_by <> 'unreadable') AS accuracy_readable,
                   coalesce(sum(score) FILTER (NOT doubt), 0) / count(*) AS low,
                   (coalesce(sum(score) FILTER (NOT doubt), 0) + count(*) FILTER (doubt))
                       / count(*) AS high
            FROM judged GROUP BY model_id ORDER BY model_id
            """
        ).to_arrow_table()
