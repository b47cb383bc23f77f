-- Why pairs of a question and a real model have no label.

-- name: causes
-- One row per cause: cause, scorer, questions, models, pairs, example.
-- A scorer's error comes before an abstention: it is what there is to mend.
WITH short AS ({short}
), pairs AS (
    SELECT q.query_id, m.model_id, q.scorer AS rule
    FROM (FROM queries SEMI JOIN short USING (query_id)) q CROSS JOIN models m
    LEFT JOIN (FROM labels SEMI JOIN short USING (query_id)) l USING (query_id, model_id)
    WHERE l.score IS NULL AND m.kind = 'real'
), answers AS (
    SELECT query_id, model_id, bool_or(status NOT IN ('error', 'timeout', 'unanswered')) AS answered,
           bool_or(status = 'ungraded') AS ungraded
    FROM responses SEMI JOIN pairs USING (query_id, model_id) GROUP BY ALL
), errors AS (
    SELECT query_id, model_id, min(scorer) AS scorer, min(reason) AS reason
    FROM verdicts SEMI JOIN pairs USING (query_id, model_id)
    WHERE outcome = 'error' GROUP BY ALL
), abstained AS (
    SELECT query_id, model_id, bool_and(outcome = 'abstain') AS every
    FROM verdicts SEMI JOIN pairs USING (query_id, model_id) GROUP BY ALL
), told AS (
    SELECT p.query_id, p.model_id, CASE
        WHEN e.scorer IS NOT NULL THEN 'scorer error'
        WHEN a.answered IS NULL THEN 'no response'
        WHEN NOT a.answered THEN 'the call failed'
        WHEN b.every IS NULL AND a.ungraded THEN 'its source has no grade for it'
        WHEN b.every IS NULL THEN 'no scorer has judged it'
        WHEN b.every THEN 'unreadable'
        ELSE 'scorers disagree or one is missing' END AS cause,
        coalesce(e.scorer, CASE WHEN a.answered THEN p.rule END, '') AS scorer, e.reason
    FROM pairs p LEFT JOIN answers a USING (query_id, model_id)
    LEFT JOIN errors e USING (query_id, model_id)
    LEFT JOIN abstained b USING (query_id, model_id)
)
SELECT cause, scorer, count(DISTINCT query_id) AS questions, count(DISTINCT model_id) AS models,
       count(*) AS pairs, coalesce(min(reason), '') AS example,
       min(query_id) AS query_id
FROM told GROUP BY cause, scorer ORDER BY pairs DESC, cause, scorer

-- name: short
-- Questions with a pair that lacks a label: of most, all pairs have one, and none is listed.
SELECT query_id FROM queries ANTI JOIN (
    SELECT query_id FROM labels WHERE score IS NOT NULL GROUP BY query_id
    HAVING count(*) = (SELECT count(*) FROM models)) USING (query_id)

-- name: short_by_number
-- The same without comparing text: outcomes carry row numbers of `queries`.
SELECT query_id
FROM (SELECT row_number() OVER () - 1 AS query_no, query_id FROM queries) ANTI JOIN (
    SELECT query_no FROM outcomes WHERE score IS NOT NULL GROUP BY query_no
    HAVING count(*) = (SELECT count(*) FROM models)) USING (query_no)
