-- name: licences_kept
-- kind: consistent
-- says: text is withheld where a source may not be passed on, and nowhere else
-- severity: error
-- needs: queries
-- key: source
WITH closed AS (
    SELECT one->>'source' AS source
    FROM (SELECT unnest(told->'$.sources[*]') AS one FROM stated.manifest)
    WHERE (one->>'redistribute_text') = 'false'
)
SELECT DISTINCT source,
       CASE WHEN hidden THEN 'its text is withheld' ELSE 'its text is there' END AS found,
       CASE WHEN hidden THEN 'its text: it may be passed on'
            ELSE 'none: it may not be passed on' END AS expected
FROM (SELECT source, question = {withheld} AS hidden FROM queries)
WHERE hidden <> (source IN (FROM closed))

-- name: tables_of_rules
-- kind: consistent
-- says: tables have rows only where the recipe has what makes them
-- severity: error
-- needs: nothing
-- key: name
WITH rules AS (
    SELECT unnest(told->'recipe'->'$.curate[*]')->>'rule' AS rule FROM stated.manifest
), held AS (
    SELECT name, n AS rows FROM stated.counts, stated.recipe WHERE about = 'rows' AND built
), makers(name, rule) AS (
    VALUES ('duplicates', 'dedup'), ('model_splits', 'unseen_models'),
           ('preferences', 'preference'), ('entropies', 'preference')
), asked(name, word, there) AS (
    SELECT 'embeddings', 'release.include_embeddings',
           ((told->'recipe'->'release')->>'include_embeddings') = 'true' FROM stated.manifest
    UNION ALL
    SELECT 'steps', 'collect.agent', json_type(told->'recipe'->'collect'->'agent') = 'OBJECT'
    FROM stated.manifest
)
SELECT name, format('it has {:,} rows', rows) AS found,
       format('none without the rule {}', rule) AS expected
FROM makers JOIN held USING (name) ANTI JOIN rules USING (rule) WHERE rows > 0
UNION ALL
SELECT name, format('it has {:,} rows', rows), format('none without {}', word)
FROM asked JOIN held USING (name) WHERE rows > 0 AND NOT coalesce(there, false)

-- name: findings_waived
-- kind: consistent
-- says: each finding of the metering audit is waived: no other release is written
-- severity: error
-- needs: nothing
-- key: finding
WITH findings AS (
    SELECT unnest(told->'figures'->'audit'->'$.findings[*]')->>'check' AS finding FROM stated.manifest
), gates AS (SELECT unnest(told->'$.waivers[*]')->>'gate' AS gate FROM stated.manifest)
SELECT DISTINCT coalesce(finding, 'none') AS finding, 'it is not waived' AS found,
       'a waiver, since the release was written' AS expected
FROM findings
WHERE NOT EXISTS (FROM gates WHERE gate IN ('metering', 'metering:' || coalesce(finding, 'None')))

-- name: duplicates_of_figures
-- kind: consistent
-- says: duplicates are those that the figures of their rule tell
-- severity: error
-- needs: duplicates
-- key: figure
WITH applied AS (
    SELECT one->'figures' AS told
    FROM (SELECT unnest(told->'figures'->'curate'->'$.rules[*]') AS one FROM stated.manifest)
    WHERE (one->>'rule') = 'dedup' QUALIFY count(*) OVER () = 1
), there AS (
    SELECT list(DISTINCT threshold) AS thresholds, list(DISTINCT encoder ORDER BY encoder) AS encoders,
           count(DISTINCT group_id) AS groups
    FROM duplicates
)
SELECT 'threshold of duplicates' AS figure, thresholds::VARCHAR AS found, told->>'threshold' AS expected
FROM applied, there WHERE thresholds <> [try_cast(told->>'threshold' AS DOUBLE)]
UNION ALL
SELECT 'encoder of duplicates', encoders::VARCHAR, told->>'encoder'
FROM applied, there WHERE encoders <> [told->>'encoder']
UNION ALL
SELECT 'groups of duplicates', groups::VARCHAR, told->>'groups'
FROM applied, there WHERE groups <> stated.whole(told->'groups')

-- name: embeddings_whole
-- kind: consistent
-- says: embeddings of an encoder are of all questions with a text, and of one length
-- severity: error
-- needs: queries, embeddings, same_code
-- key: encoder
WITH lengths AS (
    SELECT encoder, list(DISTINCT len(vector) ORDER BY len(vector)) AS sizes FROM embeddings GROUP BY ALL
), pairs AS (
    SELECT encoder, query_id FROM lengths, queries WHERE question <> {withheld} AND (SELECT built FROM stated.recipe)
), missing AS (
    SELECT encoder, count(*) AS n FROM pairs ANTI JOIN embeddings USING (encoder, query_id) GROUP BY ALL
)
SELECT encoder, format('its embeddings leave out {:,} questions', n) AS found, 'all' AS expected
FROM missing
UNION ALL
SELECT encoder, format('its embeddings have {} numbers', sizes::VARCHAR), 'one length'
FROM lengths WHERE len(sizes) > 1

-- name: waivers_of_recipe
-- kind: consistent
-- says: waivers are those of the recipe
-- severity: error
-- needs: nothing
-- key: entry
WITH listed AS (
    SELECT 'manifest' AS of, unnest(told->'$.waivers[*]') AS one FROM stated.manifest
    UNION ALL SELECT 'recipe', unnest(told->'recipe'->'release'->'$.waivers[*]') FROM stated.manifest
)
SELECT format('waiver of {}', one->>'gate') AS entry, 'in ' || string_agg(of, ' and ') AS found,
       'the same in the manifest and in the recipe' AS expected
FROM listed WHERE (SELECT json_type(told->'recipe'->'release') = 'OBJECT' FROM stated.manifest)
GROUP BY one->>'gate', one->>'reason'
HAVING count(*) FILTER (of = 'manifest') <> count(*) FILTER (of = 'recipe')

-- name: tables_of_a_build
-- kind: consistent
-- says: a build has its tables
-- severity: error
-- needs: nothing
-- key: entry
SELECT format('the table {}', name) AS entry, 'is not there' AS found, 'that of a build' AS expected
FROM (SELECT unnest(['queries', 'models', 'responses', 'verdicts', 'labels', 'splits']) AS name)
ANTI JOIN (FROM stated.counts WHERE about = 'rows') USING (name)
WHERE (SELECT built FROM stated.recipe)

-- name: stages_of_a_build
-- kind: consistent
-- says: each stage of a build has figures
-- severity: error
-- needs: same_code
-- key: entry
SELECT format('the stage ''{}'' has no figures', stage) AS entry, 'none' AS found, 'those of a build' AS expected
FROM stated.manifest, (
    SELECT unnest(['ingest', 'pool', 'collect', 'label', 'curate', 'audit', 'certify']) AS stage)
WHERE (SELECT built FROM stated.recipe) AND coalesce((told->'figures')->>stage, '{}') = '{}'

-- name: sources_of_recipe
-- kind: consistent
-- says: sources are those of the recipe and of the stage that read them
-- severity: error
-- needs: nothing
-- key: entry
WITH listed AS (SELECT unnest(told->'$.sources[*]')->>'source' AS source FROM stated.manifest),
named AS (SELECT unnest(told->'recipe'->'$.sources[*]')->>'name' AS source FROM stated.manifest),
counts AS (
    SELECT told->'sources' AS listed, told->'figures'->'ingest'->'sources' AS given,
           stated.whole(told->'figures'->'ingest'->'queries') AS read, built
    FROM stated.manifest, stated.recipe
), gave AS (
    SELECT sum(n) AS total, count(*) FILTER (n IS NULL) AS unknown FROM stated.counts
    WHERE about = 'questions of source'
)
SELECT format('source ''{}'' is not in both', source) AS entry, 'one' AS found,
       'the recipe''s sources in the manifest' AS expected
FROM listed l FULL JOIN named n USING (source)
WHERE (l.source IS NULL OR n.source IS NULL) AND (SELECT built FROM stated.recipe)
UNION ALL
SELECT 'sources', left(given::VARCHAR, 200), left(listed::VARCHAR, 200) FROM counts WHERE given <> listed AND built
UNION ALL
SELECT 'questions of all sources', read::VARCHAR, total::VARCHAR
FROM counts, gave WHERE read <> total AND unknown = 0 AND built

-- name: rules_of_recipe
-- kind: consistent
-- says: rules were applied as the recipe says
-- severity: error
-- needs: nothing
-- key: entry
WITH lists AS (
    SELECT told->'figures'->'curate'->'$.rules[*]' AS applied, told->'recipe'->'$.curate[*]' AS rules
    FROM stated.manifest WHERE json_type(told->'figures'->'curate'->'rules') = 'ARRAY'
), pairs AS (
    SELECT generate_subscripts(applied || rules, 1) AS place, applied, rules FROM lists
), each AS (
    SELECT place, applied[place] AS own, rules[place] AS rule FROM pairs
), parameters AS (SELECT own, rule, unnest(json_keys(rule->'parameters')) AS name FROM each)
SELECT 'rules applied' AS entry, coalesce(own->>'rule', 'none') AS found, coalesce(rule->>'rule', 'none') AS expected
FROM each WHERE (own->>'rule') IS DISTINCT FROM (rule->>'rule')
UNION ALL
SELECT format('{} of the rule ''{}''', name, rule->>'rule'), coalesce((own->'parameters')->>name, 'null'),
       coalesce((rule->'parameters')->>name, 'null')
FROM parameters WHERE own IS NOT NULL AND ((own->'parameters')->>name) IS DISTINCT FROM ((rule->'parameters')->>name)
