-- name: known
-- The stored verdicts on sampled answers that were read again, by the same scorer and version.
SELECT v.* FROM (SELECT query_id, model_id, sample, scorer, scorer_version, outcome, score,
                        extracted, span_start, span_end, conflict, reason
                 FROM verdicts SEMI JOIN expected USING (query_id, model_id)) v
SEMI JOIN expected USING (query_id, model_id, sample, scorer, scorer_version)

-- name: again
SELECT query_id, model_id, sample, scorer, scorer_version, outcome, score, extracted, span_start,
       span_end, conflict, reason
FROM expected SEMI JOIN known USING (query_id, model_id, sample, scorer, scorer_version)

-- name: absent
-- A verdict of another version may be in the place of one.
SELECT query_id || '|' || model_id || '|' || sample || ' has none of ''' || scorer || '''' AS says
FROM expected ANTI JOIN verdicts USING (query_id, model_id, sample, scorer)

-- name: equal
-- Verdicts of each scorer that are what it reads.
SELECT scorer, count(*) AS n FROM known k JOIN again a
    USING (query_id, model_id, sample, scorer, scorer_version)
WHERE (k.outcome, k.score, k.extracted, k.span_start, k.span_end, k.conflict) IS NOT DISTINCT FROM
      (a.outcome, a.score, a.extracted, a.span_start, a.span_end, a.conflict)
GROUP BY scorer ORDER BY scorer
