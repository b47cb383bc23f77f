-- kind: consistent
-- says: embeddings of an encoder are of all questions with a text, and of one length
-- severity: error
-- needs: queries, embeddings, built, same_code
-- key: encoder
WITH lengths AS (
    SELECT encoder, list(DISTINCT len(vector) ORDER BY len(vector)) AS sizes FROM embeddings GROUP BY ALL
), pairs AS (
    SELECT encoder, query_id FROM lengths, queries WHERE question <> $withheld
), missing AS (
    SELECT encoder, count(*) AS n FROM pairs ANTI JOIN embeddings USING (encoder, query_id) GROUP BY ALL
)
SELECT encoder, format('its embeddings leave out {:,} questions', n) AS found, 'all' AS expected
FROM missing
UNION ALL
SELECT encoder, format('its embeddings have {} numbers', sizes::VARCHAR), 'one length'
FROM lengths WHERE len(sizes) > 1
