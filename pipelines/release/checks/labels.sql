-- Labels against verdicts and responses, as far as every policy of a recipe has it; the policy itself decides once more
-- in `routeyard verify`.

-- name: labels_have_responses
-- kind: consistent
-- says: a label counts no more samples than its pair has answers
-- severity: error
-- needs: labels, responses, models
-- key: query_id, model_id
SELECT query_id, model_id, format('n_samples {}', n_samples) AS found, format('at most {} answers', coalesce(n, 0)) AS expected
FROM labels SEMI JOIN stated.real USING (model_id)
LEFT JOIN (SELECT query_id, model_id, count(*) AS n FROM responses
           WHERE status NOT IN ('error', 'timeout', 'unanswered') GROUP BY ALL) USING (query_id, model_id)
WHERE n_samples > coalesce(n, 0)

-- name: labels_have_verdicts
-- kind: consistent
-- says: a label of one sample is what the verdict of the scorer that decided it says
-- severity: error
-- needs: labels, verdicts
-- key: query_id, model_id
WITH said AS (
    SELECT query_id, model_id, scorer AS decided_by, list(DISTINCT outcome) AS outcomes FROM verdicts GROUP BY ALL
)
SELECT query_id, model_id, format('correct {} by {}', correct, decided_by) AS found,
       coalesce(array_to_string(outcomes, ', '), 'a verdict of that scorer') AS expected
FROM labels JOIN (SELECT DISTINCT scorer AS decided_by FROM verdicts) USING (decided_by)
LEFT JOIN said USING (query_id, model_id, decided_by)
WHERE n_samples = 1 AND (outcomes IS NULL OR NOT list_has_any(outcomes, ['correct', 'incorrect'])
      OR (NOT (SELECT by_threshold FROM stated.recipe)
          AND NOT list_contains(outcomes, CASE WHEN correct THEN 'correct' ELSE 'incorrect' END)))

-- name: labels_without_a_reading
-- kind: consistent
-- says: a label that its status decided is wrong, and has a response that ended so
-- severity: error
-- needs: labels, responses, models
-- key: query_id, model_id
SELECT query_id, model_id, format('correct {} by {}', correct, decided_by) AS found,
       format('incorrect, and a response of status {}', decided_by) AS expected
FROM (FROM labels SEMI JOIN stated.real USING (model_id) WHERE decided_by IN ('truncated', 'refused', 'empty')) l
WHERE correct OR NOT EXISTS (FROM responses r WHERE r.query_id = l.query_id AND r.model_id = l.model_id
                             AND r.status = l.decided_by)

-- name: unreadable_labels
-- kind: consistent
-- says: a label of an answer that nobody could read is wrong or undecided
-- severity: error
-- needs: labels
-- key: query_id, model_id
SELECT query_id, model_id, format('score {} by unreadable', score) AS found, '0 or null' AS expected
FROM labels WHERE decided_by = 'unreadable' AND (correct OR score > 0)

-- name: answers_without_a_label
-- kind: consistent
-- says: each response of a real model has a label
-- severity: error
-- needs: responses, labels, models
-- key: query_id, model_id
SELECT DISTINCT query_id, model_id, 'no label' AS found, 'a label, which may be undecided' AS expected
FROM responses SEMI JOIN stated.real USING (model_id) ANTI JOIN labels USING (query_id, model_id)
WHERE (SELECT built FROM stated.recipe)

-- name: injected_marked
-- kind: consistent
-- says: labels of injected models are decided by 'pseudo_specialist', and no others are
-- severity: error
-- needs: labels, models
-- key: query_id, model_id
SELECT query_id, model_id, format('decided by {}', coalesce(decided_by, 'nobody')) AS found,
       CASE WHEN kind = 'real' THEN 'another: the model is real' ELSE 'pseudo_specialist' END AS expected
FROM labels JOIN models USING (model_id)
WHERE (kind = 'real') = (decided_by IS NOT DISTINCT FROM 'pseudo_specialist')
