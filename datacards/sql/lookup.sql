-- Views of the questions that a report looks up, over parts of a release's tables in memory.

-- name: queries
SELECT * REPLACE (coalesce(question, prompt) AS question) FROM queries_of

-- name: responses
SELECT * FROM responses_of

-- name: verdicts
SELECT * FROM verdicts_of

-- name: outcomes
-- Means over the samples of a pair; one that is not known makes the mean unknown.
SELECT query_id, model_id, l.score, l.correct, l.decided_by,
       coalesce(l.contested, false) AS contested,
       cost_usd, prompt_tokens, completion_tokens, latency_s
FROM labels_of l FULL JOIN (
    SELECT query_id, model_id, CASE WHEN count(cost_usd) = count(*) THEN avg(cost_usd) END AS cost_usd,
           CASE WHEN count(prompt_tokens) = count(*) THEN avg(prompt_tokens) END AS prompt_tokens,
           CASE WHEN count(completion_tokens) = count(*) THEN avg(completion_tokens) END AS completion_tokens,
           CASE WHEN count(latency_s) = count(*) THEN avg(latency_s) END AS latency_s
    FROM responses_of GROUP BY query_id, model_id
) r USING (query_id, model_id)
