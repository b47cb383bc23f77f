-- name: scorers_named
-- kind: consistent
-- says: verdicts are of scorers that questions or recipe name
-- severity: error
-- needs: verdicts, queries
-- key: scorer
WITH label AS (SELECT told->'recipe'->'label' AS it FROM stated.manifest), named AS (
    SELECT 'given' AS scorer UNION SELECT scorer FROM queries
    UNION SELECT unnest(it->>'$.default.then[*]') FROM label
    UNION SELECT unnest(it->>'$.tasks.*.then[*]') FROM label
    UNION SELECT 'xverify:' || (unnest(it->'$.verifiers[*]')->>'name') FROM label
    UNION SELECT 'judge:' || (unnest(it->'$.judges[*]')->>'name') FROM label
)
SELECT scorer, format('{:,} verdicts', count(*)) AS found,
       'none: neither questions nor recipe name it' AS expected
FROM verdicts ANTI JOIN named USING (scorer)
WHERE NOT starts_with(scorer, 'human:') AND (SELECT built FROM stated.recipe) GROUP BY scorer
