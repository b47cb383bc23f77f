-- What the release states, beside its tables: the manifest as JSON (`stated.manifest`), its counts, the lines of the
-- card with figures, and what checks ask of the recipe.

-- name: counts
SELECT 'rows' AS about, name, ((told->'tables'->name)->>'rows')::BIGINT AS n
FROM (SELECT told, unnest(json_keys(told, '$.tables')) AS name FROM stated.manifest)
UNION ALL
SELECT 'questions of source', one->>'source', stated.whole(one->'queries')
FROM (SELECT unnest(told->'$.sources[*]') AS one FROM stated.manifest)
UNION ALL
SELECT 'figure', stage || '.' || name, stated.whole(told->'figures'->stage->name)
FROM (SELECT *, unnest(json_keys(told->'figures'->stage)) AS name
      FROM (SELECT told, unnest(json_keys(told, '$.figures')) AS stage FROM stated.manifest))
WHERE stated.whole(told->'figures'->stage->name) IS NOT NULL
ORDER BY ALL

-- name: card
-- Lines of the card that hold a figure.
SELECT line, says, regexp_extract_all(says, '\d[\d,]*(?:\.\d+)?') AS figures
FROM (SELECT unnest(lines) AS says, generate_subscripts(lines, 1) AS line
      FROM (SELECT string_split($card, chr(10)) AS lines))
WHERE regexp_matches(says, '\d') ORDER BY line

-- name: recipe
-- `built`: it is the recipe of a build. `asked`: its answers were asked for, in single calls.
SELECT coalesce(json_exists(r, '$.sources') AND json_exists(r, '$.pool') AND json_exists(r, '$.collect')
                AND json_exists(r, '$.label'), false) AS built,
       NOT json_exists(told, '$.tables.steps') AS calls,
       coalesce(regexp_matches((r->'label')::VARCHAR, '"threshold":[0-9]'), false) AS by_threshold,
       coalesce(((r->'collect')->>'provider') = 'recorded', false) AS recorded,
       calls AND NOT recorded AND json_exists(r, '$.collect') AS asked,
       greatest(coalesce(stated.whole(r->'collect'->'samples'), 1),
                coalesce((SELECT max(stated.whole(one)) FROM (
                    SELECT unnest(told->'recipe'->'pool'->'$.models[*].samples') AS one FROM stated.manifest)), 1)) AS samples
FROM (SELECT told, told->'recipe' AS r FROM stated.manifest)

-- name: real
-- Models that are not injected.
SELECT model_id FROM models WHERE kind = 'real'

-- name: removed
-- Questions and models that curation removed, and the pairs that they had at most.
SELECT queries + models > 0 AS fewer,
       queries * ((SELECT count(*) FROM stated.real) + models) + models * (SELECT count(*) FROM queries) AS pairs
FROM (SELECT count(*) FILTER (entity = 'query') AS queries, count(*) FILTER (entity = 'model') AS models
      FROM removals WHERE starts_with(stage, 'curate.'))
