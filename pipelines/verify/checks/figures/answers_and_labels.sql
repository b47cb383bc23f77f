-- kind: consistent
-- says: answers, verdicts and labels are as many as their stages made, less what was removed
-- severity: error
-- needs: queries, models
-- key: stage
-- How many answers a removed question had is not known: at most one of each model and sample.
WITH real AS (SELECT model_id FROM models WHERE kind = 'real'), gone AS (
    SELECT count(*) FILTER (entity = 'query') AS queries,
           count(*) FILTER (entity = 'model') AS models
    FROM removals WHERE starts_with(stage, 'curate.')
), pairs AS (
    SELECT queries * ((SELECT count(*) FROM real) + models)
           + models * (SELECT count(*) FROM queries) AS removed, queries + models > 0 AS fewer
    FROM gone
), made AS (
    SELECT 'responses' AS stage, whole(told->'figures'->'collect'->'responses') AS n,
           $samples AS each, (SELECT count(*) FROM responses SEMI JOIN real USING (model_id)) AS there
    FROM manifest
    UNION ALL
    SELECT 'labels', whole(told->'figures'->'label'->'labels'), 1,
           (SELECT count(*) FROM labels SEMI JOIN real USING (model_id)) FROM manifest
    UNION ALL
    SELECT 'verdicts', whole(told->'figures'->'label'->'verdicts'), NULL,
           (SELECT count(*) FROM verdicts) FROM manifest
), ranges AS (
    -- A response has a verdict of each scorer.
    SELECT made.*, CASE WHEN NOT fewer THEN n
           ELSE greatest(n - coalesce(each * removed, n), 0) END AS least
    FROM made, pairs
)
SELECT stage, format('the stage counted {:,} {}, and {:,} are there', n, stage, there) AS found,
       format('{:,} to {:,}', least, n) AS expected
FROM ranges SEMI JOIN present USING (stage) WHERE there NOT BETWEEN least AND n
UNION ALL
SELECT 'labels', format('the stage counted {:,} undecided labels, and {:,} are there', n, there),
       format('{:,}{}', n, CASE WHEN fewer THEN ' or fewer' ELSE '' END)
FROM (SELECT whole(told->'figures'->'label'->'undecided') AS n,
             (SELECT count(*) FROM labels WHERE score IS NULL) AS there, fewer FROM manifest, pairs)
WHERE there > n OR (NOT fewer AND there <> n)
