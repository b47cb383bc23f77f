SELECT l.model_id AS arm, q.query_id AS question, q.task AS suite, l.score, q.prompt, s.split
FROM labels l JOIN queries q USING (query_id) LEFT JOIN splits s USING (query_id)
ORDER BY q.query_id, l.model_id;
SELECT r.model_id AS arm, q.query_id AS question, q.task AS suite, r.sample, l.score,
       r.status, r.cost_usd, r.prompt_tokens, r.completion_tokens, r.latency_s, r.served_model,
       r.text, q.prompt, q.references[1] AS reference, s.split
FROM responses r
JOIN queries q USING (query_id)
LEFT JOIN labels l USING (query_id, model_id)
LEFT JOIN splits s USING (query_id)
ORDER BY q.query_id, r.model_id, r.sample
