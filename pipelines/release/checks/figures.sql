-- name: questions_and_models_counted
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
           stated.whole(told->'figures'->'ingest'->'queries') AS n,
           (SELECT count(*) FROM queries) AS there FROM stated.manifest
    UNION ALL
    SELECT 'pool', 'model', 'models are in the pool', stated.whole(told->'figures'->'pool'->'models'),
           (SELECT count(*) FROM models WHERE kind = 'real') FROM stated.manifest
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
FROM (SELECT stated.whole(told->'figures'->'ingest'->'removed') AS n,
             coalesce((SELECT n FROM gone WHERE what = 'left out'), 0) AS listed FROM stated.manifest)
WHERE n <> listed

-- name: rules_chained
-- kind: consistent
-- says: each curation rule was given what the one before left, and removed what removals list
-- severity: error
-- needs: queries, models
-- key: entity, rule
WITH entities(entity, name, there) AS (
    VALUES ('query', 'queries', (SELECT count(*) FROM queries)),
           ('model', 'models', (SELECT count(*) FROM models))
), rules AS (
    SELECT unnest(told->'figures'->'curate'->'$.rules[*]') AS one,
           generate_subscripts(told->'figures'->'curate'->'$.rules[*]', 1) AS place FROM stated.manifest
), applied AS (
    SELECT entity, name, there, place, one->>'rule' AS rule,
           stated.whole(one->'before'->name) AS before, stated.whole(one->'after'->name) AS after,
           CASE WHEN entity = 'model' AND json_type(one->'figures'->'injected') = 'ARRAY'
                THEN json_array_length(one->'figures'->'injected') ELSE 0 END::BIGINT AS added
    FROM rules, entities
), chained AS (
    SELECT *, lag(after) OVER each_rule AS earlier, lead(after) OVER each_rule AS later
    FROM applied WHERE before IS NOT NULL AND after IS NOT NULL
    WINDOW each_rule AS (PARTITION BY entity ORDER BY place)
), counted AS (
    SELECT entity, 'curate.' || rule AS stage, sum(before + added - after)::BIGINT AS n
    FROM chained GROUP BY ALL
), listed AS (
    SELECT entity, stage, count(*) AS n FROM removals SEMI JOIN entities USING (entity)
    WHERE starts_with(stage, 'curate.') GROUP BY ALL
)
SELECT entity, rule, format('it was given {:,} {}, and the one before left {:,}', before, name,
       earlier) AS found, format('{:,}', earlier) AS expected
FROM chained WHERE earlier <> before
UNION ALL
SELECT entity, rule, format('it is the last, it left {:,} {}, and {:,} are there', after, name, there),
       format('{:,}', after)
FROM chained WHERE later IS NULL AND after <> there
UNION ALL
SELECT entity, stage, format('it removed {:,} by its figures, and removals list {:,}',
       coalesce(counted.n, 0), coalesce(listed.n, 0)), 'as many'
FROM counted FULL JOIN listed USING (entity, stage) WHERE coalesce(counted.n, 0) <> coalesce(listed.n, 0)

-- name: questions_of_sources
-- kind: consistent
-- says: questions are of listed sources, and at most as many as each gave
-- severity: error
-- needs: queries
-- key: source
WITH listed AS (
    SELECT one->>'source' AS source, stated.whole(one->'queries') AS gave
    FROM (SELECT unnest(told->'$.sources[*]') AS one FROM stated.manifest)
), there AS (SELECT source, count(*) AS n FROM queries GROUP BY source)
SELECT source, format('{:,} questions', n) AS found,
       CASE WHEN listed.source IS NULL THEN 'none: nothing lists that source'
            ELSE format('no more: the source gave {:,} questions', gave) END AS expected
FROM there LEFT JOIN listed USING (source)
WHERE (listed.source IS NULL AND EXISTS (FROM listed)) OR n > gave

-- name: labels_counted
-- kind: consistent
-- says: labels are as many as their stage made, less what was removed
-- severity: error
-- needs: queries, models, labels
-- key: stage
SELECT 'labels' AS stage, format('the stage counted {:,} labels, and {:,} are there', n, there) AS found,
       format('{:,} to {:,}', CASE WHEN fewer THEN greatest(n - pairs, 0) ELSE n END, n) AS expected
FROM stated.removed, (SELECT stated.whole(told->'figures'->'label'->'labels') AS n,
                             (SELECT count(*) FROM labels SEMI JOIN stated.real USING (model_id)) AS there
                      FROM stated.manifest)
WHERE there NOT BETWEEN CASE WHEN fewer THEN greatest(n - pairs, 0) ELSE n END AND n

-- name: undecided_counted
-- kind: consistent
-- says: undecided labels are as many as their stage counted, or fewer where rows were removed
-- severity: error
-- needs: queries, models, labels
-- key: stage
SELECT 'labels' AS stage, format('the stage counted {:,} undecided labels, and {:,} are there', n, there) AS found,
       format('{:,}{}', n, CASE WHEN fewer THEN ' or fewer' ELSE '' END) AS expected
FROM stated.removed, (SELECT stated.whole(told->'figures'->'label'->'undecided') AS n,
                             (SELECT count(*) FROM labels WHERE score IS NULL) AS there FROM stated.manifest)
WHERE there > n OR (NOT fewer AND there <> n)

-- name: responses_counted
-- kind: consistent
-- says: responses are as many as their stage collected, less what was removed
-- severity: error
-- needs: queries, models, responses
-- key: stage
-- How many answers a removed question had is not known: at most one of each model and sample.
SELECT 'responses' AS stage, format('the stage counted {:,} responses, and {:,} are there', n, there) AS found,
       format('{:,} to {:,}', CASE WHEN fewer THEN greatest(n - samples * pairs, 0) ELSE n END, n) AS expected
FROM stated.removed, stated.recipe, (
    SELECT stated.whole(told->'figures'->'collect'->'responses') AS n,
           (SELECT count(*) FROM responses SEMI JOIN stated.real USING (model_id)) AS there FROM stated.manifest)
WHERE there NOT BETWEEN CASE WHEN fewer THEN greatest(n - samples * pairs, 0) ELSE n END AND n

-- name: verdicts_counted
-- kind: consistent
-- says: verdicts are as many as their stage filed, or fewer where rows were removed
-- severity: error
-- needs: queries, models, verdicts
-- key: stage
SELECT 'verdicts' AS stage, format('the stage counted {:,} verdicts, and {:,} are there', n, there) AS found,
       format('{:,} to {:,}', CASE WHEN fewer THEN 0 ELSE n END, n) AS expected
FROM stated.removed, (SELECT stated.whole(told->'figures'->'label'->'verdicts') AS n,
                             (SELECT count(*) FROM verdicts) AS there FROM stated.manifest)
WHERE there NOT BETWEEN CASE WHEN fewer THEN 0 ELSE n END AND n

-- name: rows_counted
-- kind: proved
-- says: each table has as many rows as the manifest states
-- severity: error
-- needs: nothing
-- key: name
SELECT name, format('{:,} rows', there.n) AS found, format('{:,}', stated.n) AS expected
FROM ({counted}) there JOIN (FROM stated.counts WHERE about = 'rows') stated USING (name)
WHERE there.n <> stated.n
