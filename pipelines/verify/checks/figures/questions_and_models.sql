-- kind: consistent
-- says: questions and models are what the first stages counted, less what curation removed
-- severity: error
-- needs: queries, models
-- key: stage
-- Of the stages that make them, and of the rows that sources left out.
WITH gone AS (
    SELECT CASE WHEN starts_with(stage, 'curate.') THEN entity ELSE 'left out' END AS what,
           count(*) AS n
    FROM removals GROUP BY what
), counted AS (
    SELECT 'ingest' AS stage, 'query' AS what, 'questions were read' AS words,
           whole(told->'figures'->'ingest'->'queries') AS n,
           (SELECT count(*) FROM queries) AS there FROM manifest
    UNION ALL
    SELECT 'pool', 'model', 'models are in the pool', whole(told->'figures'->'pool'->'models'),
           (SELECT count(*) FROM models WHERE kind = 'real') FROM manifest
), adding_up AS (
    SELECT stage, words, counted.n, there, coalesce(gone.n, 0) AS removed
    FROM counted LEFT JOIN gone USING (what)
)
SELECT stage,
       format('{:,} {} and {:,} removed, and {:,} are there', n, words, removed, there) AS found,
       format('{:,}', n - removed) AS expected
FROM adding_up WHERE n - removed <> there
UNION ALL
SELECT 'ingest', format('{:,} rows were left out by sources', n),
       format('{:,}, which removals list', listed)
FROM (SELECT whole(told->'figures'->'ingest'->'removed') AS n,
             coalesce((SELECT n FROM gone WHERE what = 'left out'), 0) AS listed FROM manifest)
WHERE n <> listed
