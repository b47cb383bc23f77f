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
           generate_subscripts(told->'figures'->'curate'->'$.rules[*]', 1) AS place FROM manifest
), applied AS (
    SELECT entity, name, there, place, one->>'rule' AS rule,
           whole(one->'before'->name) AS before, whole(one->'after'->name) AS after,
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
