-- Summaries of a release over `labels`, `responses`, `queries`, `models` with their numbers, in the
-- order in which one needs another; and at the end the rows that models are metered by.
-- A word of `bits` holds 64 queries.

-- name: queries
SELECT (row_number() OVER (ORDER BY query_id) - 1)::INTEGER AS query_no, *
FROM {of}.queries

-- name: models
SELECT (row_number() OVER (ORDER BY model_id) - 1)::SMALLINT AS model_no, *
FROM {of}.models

-- name: labels
SELECT query_no, model_no, score, correct, decided_by, contested, n_samples
FROM {of}.labels
JOIN numbered.queries USING (query_id)
JOIN numbered.models USING (model_id)

-- name: splits
SELECT scheme, query_no, split
FROM {of}.splits
JOIN numbered.queries USING (query_id)

-- name: priced
SELECT query_no, model_no, count(*) AS n_responses,
       CASE WHEN count(cost_usd) = count(*) THEN sum(cost_usd) END AS cost_usd
FROM {responses}
JOIN numbered.queries USING (query_id)
JOIN numbered.models USING (model_id)
GROUP BY ALL

-- name: per_query
SELECT l.query_no, count(score)::INTEGER AS judged, coalesce(sum(score), 0) AS total,
       max(score) AS top, (count(*) FILTER (correct))::INTEGER AS solved_by,
       min(l.model_no) FILTER (correct) AS first_solver,
       (count(*) FILTER (contested))::INTEGER AS contested,
       coalesce(bool_or(score > 0 AND score < 1), false) AS graded
FROM numbered.labels l GROUP BY ALL

-- name: cheapest
WITH of_query AS (
    SELECT min((cost_usd, model_no)) AS best
    FROM numbered.labels JOIN numbered.priced USING (query_no, model_no)
    WHERE correct AND cost_usd IS NOT NULL GROUP BY query_no)
SELECT best[2] AS model_no, count(*) AS queries, sum(best[1]) AS cost_usd
FROM of_query GROUP BY ALL

-- name: per_task
SELECT model_no, task, count(score) AS judged, coalesce(sum(score), 0) AS total
FROM numbered.labels JOIN numbered.queries USING (query_no) GROUP BY ALL

-- name: leads
SELECT model_no, task, sum(score - l.total / l.judged) AS lead, sum(top) AS top
FROM (SELECT * FROM numbered.labels JOIN numbered.per_query USING (query_no)
      WHERE score IS NOT NULL) l
JOIN numbered.queries USING (query_no) GROUP BY ALL

-- name: per_model
SELECT model_no, count(*) AS answered, count(*) FILTER (correct) AS correct,
       count(cost_usd) AS priced, coalesce(sum(cost_usd), 0) AS cost_usd
FROM numbered.labels JOIN numbered.priced USING (query_no, model_no) GROUP BY ALL

-- name: bits
SELECT model_no, (query_no // 64)::INTEGER AS word,
       bit_or(1::UBIGINT << (query_no % 64)) AS judged,
       coalesce(bit_or(1::UBIGINT << (query_no % 64)) FILTER (score = 1), 0)
           AS solved
FROM numbered.labels JOIN numbered.per_query USING (query_no)
WHERE score IS NOT NULL AND NOT graded GROUP BY ALL

-- name: metered
SELECT {number} AS model_no, count(*) AS responses, avg(prompt_tokens) AS prompt_tokens,
       avg(completion_tokens) AS completion_tokens, sum(cost_usd) AS known_cost_usd,
       count(cost_usd) AS priced, median(latency_s) AS median_latency_s
FROM {responses}
