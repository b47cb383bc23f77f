-- Trials of a task by their first call, steps of a trial by time; the parent is the earliest step
-- that was asked the parent's prefix.
WITH sessions AS (
    SELECT query_id, sample, _session, CAST(row_number() OVER (
        PARTITION BY query_id ORDER BY sample, min(sent), min(place)
    ) - 1 AS INTEGER) AS trial
    FROM calls GROUP BY query_id, sample, _session
),
numbered AS (
    SELECT calls.* EXCLUDE (step, sample), trial AS sample, CAST(row_number() OVER (
        PARTITION BY query_id, trial ORDER BY {order} sent, place
    ) - 1 AS INTEGER) AS step
    FROM calls JOIN sessions USING (query_id, sample, _session)
),
told AS (
    SELECT query_id, sample, prefix_hash, min(step) AS first
    FROM numbered WHERE prefix_hash IS NOT NULL GROUP BY ALL
)
SELECT place, numbered.sample, numbered.step, CAST(coalesce(
    CASE WHEN told.first < numbered.step THEN told.first END,
    CASE WHEN numbered.parent < numbered.step THEN numbered.parent END
) AS INTEGER) AS parent
FROM numbered LEFT JOIN told ON numbered.query_id = told.query_id
    AND numbered.sample = told.sample AND numbered._parent_hash = told.prefix_hash
ORDER BY numbered.query_id, numbered.sample, numbered.step
