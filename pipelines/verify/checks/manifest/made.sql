-- kind: consistent
-- says: tables have rows only where the recipe has what makes them
-- severity: error
-- needs: built
-- key: name
WITH rules AS (
    SELECT unnest(told->'recipe'->'$.curate[*]')->>'rule' AS rule FROM manifest
), makers(name, rule) AS (
    VALUES ('duplicates', 'dedup'), ('model_splits', 'unseen_models'),
           ('preferences', 'preference'), ('entropies', 'preference')
), asked(name, word, there) AS (
    SELECT 'embeddings', 'release.include_embeddings',
           (told->'recipe'->'release'->>'include_embeddings') = 'true' FROM manifest
    UNION ALL
    SELECT 'steps', 'collect.agent', json_type(told->'recipe'->'collect'->'agent') = 'OBJECT'
    FROM manifest
)
SELECT name, format('it has {:,} rows', rows) AS found,
       format('none without the rule {}', rule) AS expected
FROM makers JOIN held USING (name) ANTI JOIN rules USING (rule) WHERE rows > 0
UNION ALL
SELECT name, format('it has {:,} rows', rows), format('none without {}', word)
FROM asked JOIN held USING (name) WHERE rows > 0 AND NOT coalesce(there, false)
