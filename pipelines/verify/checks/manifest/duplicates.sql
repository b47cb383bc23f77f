-- kind: consistent
-- says: duplicates are those that the figures of their rule tell
-- severity: error
-- needs: duplicates
-- key: figure
WITH applied AS (
    SELECT one->'figures' AS told
    FROM (SELECT unnest(told->'figures'->'curate'->'$.rules[*]') AS one FROM manifest)
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
FROM applied, there WHERE groups <> whole(told->'groups')
