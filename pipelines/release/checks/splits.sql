-- name: leaks_counted
-- kind: consistent
-- says: test questions that are in train word for word are as many as the certificate counts
-- severity: error
-- needs: splits, queries
-- key: scheme
WITH counted AS (
    SELECT scheme, stated.whole(leaks->scheme->'verbatim') AS n
    FROM (SELECT leaks, unnest(json_keys(leaks)) AS scheme
          FROM (SELECT told->'figures'->'certify'->'certificate'->'test_in_train' AS leaks FROM stated.manifest)
          WHERE json_type(leaks) = 'OBJECT')
), placed AS (
    SELECT scheme, split, query_id, trim(regexp_replace(lower(nfc_normalize(prompt)), '[\s\v\x1c-\x1f\x{85}\p{Z}]+', ' ', 'g')) AS words
    FROM splits JOIN queries USING (query_id) WHERE question <> {withheld} AND scheme IN (SELECT scheme FROM counted)
), there AS (
    SELECT scheme, sum(tests) AS n
    FROM (SELECT scheme, count(*) FILTER (split = 'test') AS tests, bool_or(split = 'train') AS leaks
          FROM placed GROUP BY scheme, words)
    WHERE leaks GROUP BY scheme
)
SELECT scheme, format('{:,} test questions are in train', there.n) AS found, format('{:,}', counted.n) AS expected
FROM there JOIN counted USING (scheme) WHERE there.n > counted.n
