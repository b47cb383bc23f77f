-- kind: consistent
-- says: questions are of listed sources, and at most as many as each gave
-- severity: error
-- needs: queries
-- key: source
WITH listed AS (
    SELECT one->>'source' AS source, whole(one->'queries') AS gave
    FROM (SELECT unnest(told->'$.sources[*]') AS one FROM manifest)
), there AS (SELECT source, count(*) AS n FROM queries GROUP BY source)
SELECT source, format('{:,} questions', n) AS found,
       CASE WHEN listed.source IS NULL THEN 'none: nothing lists that source'
            ELSE format('no more: the source gave {:,} questions', gave) END AS expected
FROM there LEFT JOIN listed USING (source)
WHERE (listed.source IS NULL AND EXISTS (FROM listed)) OR n > gave
