-- Every pair that has a label: query, its split in the release's first scheme, label, answer.

-- name: pairs
SELECT q.query_id, q.task, q.prompt, q.question, q."references", q.choices, q.scorer,
       coalesce(s.split, 'test') AS split, l.model_id, l.score, l.correct,
       r.text, r.prompt_tokens, r.completion_tokens, r.cost_usd, r.latency_s
FROM outcomes l
JOIN numbered.queries q USING (query_no)
LEFT JOIN (SELECT query_no, split FROM numbered.splits
           WHERE scheme = (SELECT min(scheme) FROM splits)) s USING (query_no)
LEFT JOIN responses r
  ON r.query_id = l.query_id AND r.model_id = l.model_id AND r.sample = 0
WHERE l.score IS NOT NULL
ORDER BY l.query_no, l.model_no

-- name: no_responses
(SELECT NULL::VARCHAR AS query_id, NULL::VARCHAR AS model_id, 0 AS sample,
        NULL::VARCHAR AS text, NULL::BIGINT AS prompt_tokens,
        NULL::BIGINT AS completion_tokens, NULL::DOUBLE AS cost_usd, NULL::DOUBLE AS latency_s)
