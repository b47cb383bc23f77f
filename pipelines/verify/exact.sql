-- name: exact
-- Figures of stages that equal rows of the tables, with those that removals list.
WITH gone AS (
    SELECT count(*) FILTER (entity = 'query' AND starts_with(stage, 'curate.')) AS queries,
           count(*) FILTER (entity = 'model' AND starts_with(stage, 'curate.')) AS models,
           count(*) FILTER (NOT starts_with(stage, 'curate.')) AS left_out
    FROM removals
), real AS (SELECT count(*) FILTER (kind = 'real') AS n, count(*) AS of FROM models),
told AS (SELECT told->'figures' AS of FROM stated.manifest),
equal(name, told, rows) AS (
    SELECT 'ingest.queries', of->'ingest'->'queries', (SELECT count(*) FROM queries) + queries
    FROM told, gone
    UNION ALL SELECT 'ingest.removed', of->'ingest'->'removed', left_out FROM told, gone
    UNION ALL SELECT 'pool.models', told.of->'pool'->'models', n + models FROM told, gone, real
    UNION ALL SELECT 'label.verdicts', of->'label'->'verdicts', (SELECT count(*) FROM verdicts)
    FROM told, gone WHERE queries + models = 0
    UNION ALL SELECT 'label.undecided', of->'label'->'undecided',
                     (SELECT count(*) FROM labels WHERE score IS NULL)
    FROM told, gone WHERE queries + models = 0
    UNION ALL SELECT 'collect.responses', told.of->'collect'->'responses',
                     (SELECT count(*) FROM responses)
    FROM told, gone, real WHERE queries + models = 0 AND n = real.of
    UNION ALL SELECT 'label.labels', told.of->'label'->'labels', (SELECT count(*) FROM labels)
    FROM told, gone, real WHERE queries + models = 0 AND n = real.of
)
SELECT name FROM equal WHERE stated.whole(told) = rows ORDER BY name
