-- Arms that went on from the same prompt of the same task, with what came of it.
WITH tried AS (
    SELECT query_id, prefix_hash, min(step) AS step, coalesce(arm, acted_by) AS arm,
        count(outcome) AS trials, avg(outcome) AS success, avg(rest) AS usd
    FROM (SELECT *, sum(cost_usd) OVER (
        PARTITION BY query_id, model_id, sample ORDER BY step
        ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
    ) AS rest FROM steps)
    WHERE prefix_hash IS NOT NULL AND outcome IS NOT NULL
    GROUP BY query_id, prefix_hash, coalesce(arm, acted_by)
)
SELECT query_id, prefix_hash, min(step) AS step, count(*) AS arms,
    arg_min(arm, (usd, arm)) FILTER (success >= ? AND usd IS NOT NULL) AS arm,
    count(*) FILTER (usd IS NULL) AS unpriced, sum(trials) AS trials
FROM tried GROUP BY query_id, prefix_hash HAVING count(*) > 1 ORDER BY query_id, step
