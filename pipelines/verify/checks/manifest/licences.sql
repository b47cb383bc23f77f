-- kind: consistent
-- says: text is withheld where a source may not be passed on, and nowhere else
-- severity: error
-- needs: queries
-- key: source
WITH closed AS (
    SELECT one->>'source' AS source
    FROM (SELECT unnest(told->'$.sources[*]') AS one FROM manifest)
    WHERE (one->>'redistribute_text') = 'false'
)
SELECT DISTINCT source,
       CASE WHEN hidden THEN 'its text is withheld' ELSE 'its text is there' END AS found,
       CASE WHEN hidden THEN 'its text: it may be passed on'
            ELSE 'none: it may not be passed on' END AS expected
FROM (SELECT source, question = $withheld AS hidden FROM queries)
WHERE hidden <> (source IN (FROM closed))
