-- Tables derived from `queries`, `models`, `labels` and `responses` of a release, in the order in
-- which one needs another. `queries` and `models` get the numbers of their rows; all else is by
-- number, and read with one thread, so that sums of floats are added in one order.

-- name: query_numbers
SELECT (row_number() OVER (ORDER BY query_id) - 1)::INTEGER AS query_no, query_id, task FROM queries

-- name: model_numbers
SELECT (row_number() OVER (ORDER BY model_id) - 1)::SMALLINT AS model_no, model_id FROM models

-- Sums are null as soon as one answer's value is unknown.
-- name: answered
SELECT query_no, model_no, count(*)::INTEGER AS n_responses,
       CASE WHEN count(cost_usd) = count(*) THEN sum(cost_usd) END AS cost_usd,
       CASE WHEN count(prompt_tokens) = count(*) THEN sum(prompt_tokens) END AS prompt_tokens,
       CASE WHEN count(completion_tokens) = count(*) THEN sum(completion_tokens) END
           AS completion_tokens,
       CASE WHEN count(reasoning_tokens) = count(*) THEN sum(reasoning_tokens) END
           AS reasoning_tokens,
       CASE WHEN count(latency_s) = count(*) THEN sum(latency_s) / count(*) END AS latency_s
FROM responses JOIN query_numbers USING (query_id) JOIN model_numbers USING (model_id)
GROUP BY query_no, model_no

-- Without ids, which are added to the sorted rows.
-- name: outcomes
SELECT query_no, model_no, score, correct, decided_by, cost_usd, prompt_tokens, completion_tokens,
       reasoning_tokens, latency_s, n_samples, coalesce(n_responses, 0) AS n_responses, contested
FROM (SELECT query_no, model_no, score, correct, decided_by, contested, n_samples
      FROM labels JOIN query_numbers USING (query_id) JOIN model_numbers USING (model_id))
FULL JOIN answered USING (query_no, model_no)
ORDER BY query_no, model_no

-- name: places
SELECT scheme, query_no, split FROM splits JOIN query_numbers USING (query_id)
ORDER BY scheme, query_no

-- The same rows once more, as stored. The summaries below read nothing else.
-- name: scores
SELECT query_no, model_no, score FROM stored
WHERE score IS NOT NULL AND query_no >= $first AND query_no < $beyond
ORDER BY query_no, model_no

-- name: per_query
SELECT query_no, count(score)::INTEGER AS judged, coalesce(sum(score), 0) AS total,
       max(score) AS top, (count(*) FILTER (correct))::INTEGER AS solved_by,
       min(model_no) FILTER (correct) AS first_solver,
       (count(*) FILTER (contested))::INTEGER AS contested,
       coalesce(bool_or(score > 0 AND score < 1), false) AS graded
FROM stored WHERE n_samples IS NOT NULL GROUP BY query_no ORDER BY query_no

-- Of equal costs the first model's counts. Unsure: another right answer of unknown cost may be cheaper.
-- name: cheapest
SELECT model_no, count(*) AS queries, sum(cost_usd) AS cost_usd,
       count(*) FILTER (unsure) AS unsure
FROM stored JOIN (SELECT query_no, bool_or(cost_usd IS NULL) AS unsure,
                         min((cost_usd, model_no)) FILTER (cost_usd IS NOT NULL) AS best
                  FROM stored WHERE correct GROUP BY query_no) USING (query_no)
WHERE model_no = best[2] GROUP BY model_no ORDER BY model_no

-- Tasks come in the order of their first questions.
-- name: tasks
SELECT query_no, task, min(query_no) OVER (PARTITION BY task) AS first FROM query_numbers

-- name: per_task
SELECT model_no, task, count(score) AS judged, coalesce(sum(score), 0) AS total
FROM stored JOIN tasks USING (query_no) WHERE n_samples IS NOT NULL
GROUP BY model_no, task, first ORDER BY model_no, first

-- name: leads
SELECT model_no, task, sum(score - total / judged) AS lead, sum(top) AS top
FROM stored JOIN per_query USING (query_no) JOIN tasks USING (query_no)
WHERE score IS NOT NULL GROUP BY model_no, task, first ORDER BY model_no, first

-- name: per_model
SELECT model_no, count(*) AS answered, count(*) FILTER (correct) AS correct,
       count(cost_usd) AS priced, coalesce(sum(cost_usd), 0) AS cost_usd
FROM stored WHERE n_samples IS NOT NULL AND n_responses > 0 GROUP BY model_no ORDER BY model_no

-- A word holds 64 questions whose scores are 0 or 1.
-- name: bits
SELECT model_no, (query_no // 64)::INTEGER AS word,
       bit_or(1::UBIGINT << (query_no % 64))::UBIGINT AS judged,
       coalesce(bit_or(1::UBIGINT << (query_no % 64)) FILTER (score = 1), 0)::UBIGINT AS solved
FROM stored JOIN per_query USING (query_no)
WHERE score IS NOT NULL AND NOT graded GROUP BY model_no, word ORDER BY word, model_no

-- name: metered
SELECT model_no, count(*) AS responses, avg(prompt_tokens) AS prompt_tokens,
       avg(completion_tokens) AS completion_tokens, sum(cost_usd) AS known_cost_usd,
       count(cost_usd) AS priced, median(latency_s) AS median_latency_s
FROM responses JOIN model_numbers USING (model_id) GROUP BY model_no ORDER BY model_no
