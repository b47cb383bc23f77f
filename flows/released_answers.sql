SELECT l.model_id AS arm, q.query_id AS question, q.task AS suite, l.score, q.prompt, s.split
FROM labels l JOIN queries q USING (query_id) LEFT JOIN splits s USING (query_id)
ORDER BY q.query_id, l.model_id;
SELECT r.model_id AS arm, q.query_id AS question, q.task AS suite, r.sample, l.score,
       r.status, r.cost_usd, r.prompt_tokens, r.completion_tokens, r.latency_s,
       -- A relay is served by the models it is made of: `steps` says by whom.
       CASE WHEN r.model_id NOT IN (SELECT model_id FROM relays) THEN r.served_model END AS served_model,
       r.text, q.prompt, q.references[1] AS reference, s.split
FROM responses r
JOIN queries q USING (query_id)
LEFT JOIN labels l USING (query_id, model_id)
LEFT JOIN splits s USING (query_id)
ORDER BY q.query_id, r.model_id, r.sample
