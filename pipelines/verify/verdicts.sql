-- name: known
-- The stored verdicts on sampled answers that were read again, by the same scorer and version.
-- What programs print may differ each time.
SELECT query_id, model_id, sample, scorer, scorer_version, outcome, score, extracted, span_start,
       span_end, conflict, CASE WHEN scorer <> 'code' THEN reason END AS reason
FROM (FROM verdicts SEMI JOIN expected USING (query_id, model_id))
SEMI JOIN expected USING (query_id, model_id, sample, scorer, scorer_version)

-- name: again
-- A verdict of another version may be in the place of one.
SELECT query_id, model_id, sample, scorer, scorer_version, outcome, score, extracted, span_start,
       span_end, conflict, CASE WHEN scorer <> 'code' THEN reason END AS reason
FROM expected e LEFT JOIN (
    SELECT query_id, model_id, sample, scorer, list(scorer_version) AS versions
    FROM verdicts SEMI JOIN expected USING (query_id, model_id) GROUP BY ALL
) USING (query_id, model_id, sample, scorer)
WHERE versions IS NULL OR list_contains(versions, scorer_version)
