-- Figures and questions of the site, over the tables of one release.

-- name: models
-- `floor`, `ceiling`: accuracy if all that is undecided were wrong, or right.
WITH asked AS (SELECT query_no, max(score) AS top FROM outcomes GROUP BY query_no), part AS (
    SELECT *, least(1, coalesce(n_samples, 0) / greatest(n_responses, 1)) AS decided FROM outcomes
), o AS (
    SELECT model_id, count(score) AS labelled, avg(score) AS accuracy,
           avg(coalesce(score, 0) * decided) AS floor,
           avg(coalesce(score, 0) * decided + 1 - decided) AS ceiling,
           avg(top) FILTER (score IS NOT NULL) AS oracle, count(*) AS pairs,
           (SELECT count(top) FROM asked) AS judged,
           count(cost_usd) AS priced, avg(cost_usd / greatest(n_responses, 1)) AS cost_usd,
           median(latency_s) AS latency, avg(completion_tokens / greatest(n_responses, 1)) AS tokens
    FROM part JOIN asked USING (query_no) GROUP BY model_id
)
SELECT m.*, o.* EXCLUDE (model_id) FROM models m LEFT JOIN o USING (model_id)
ORDER BY accuracy DESC NULLS LAST, m.model_id

-- name: task_models
WITH asked AS (
    SELECT query_no, any_value(query_id) AS query_id, avg(score) AS middle
    FROM outcomes GROUP BY query_no
), named AS (SELECT query_no, middle, task FROM asked JOIN queries USING (query_id))
SELECT q.task, o.model_id, avg(o.score) AS accuracy, count(o.score) AS labelled,
       round(sum(o.score - q.middle), 9) AS lead
FROM outcomes o JOIN named q USING (query_no)
GROUP BY q.task, o.model_id ORDER BY q.task, o.model_id

-- name: rivals
-- Questions of a task that only this model, or only the model best overall, gets right.
WITH named AS (
    SELECT DISTINCT query_no, task FROM outcomes JOIN queries USING (query_id)
), generalist AS (
    SELECT model_id FROM outcomes GROUP BY model_id HAVING count(score) > 0
    ORDER BY avg(score) DESC, model_id LIMIT 1
), g AS (SELECT query_no, correct FROM outcomes SEMI JOIN generalist USING (model_id))
SELECT n.task, o.model_id, count(*) FILTER (o.correct AND NOT g.correct) AS won,
       count(*) FILTER (g.correct AND NOT o.correct) AS lost
FROM outcomes o ANTI JOIN generalist USING (model_id)
JOIN g USING (query_no) JOIN named n USING (query_no)
GROUP BY n.task, o.model_id

-- name: tasks
SELECT task, any_value(domain) AS domain, any_value(scorer) AS scorer, count(*) AS queries
FROM queries GROUP BY task ORDER BY task

-- name: counts
SELECT count(score) AS labelled, count(*) FILTER (contested) AS contested,
       count(*) FILTER (decided_by = 'unreadable') AS unreadable, sum(cost_usd) AS cost,
       count(cost_usd) AS priced
FROM outcomes

-- name: decided
SELECT coalesce(decided_by, 'no label') AS decided_by, count(*) AS n,
       count(*) FILTER (contested) AS contested
FROM outcomes GROUP BY 1 ORDER BY n DESC, 1

-- name: removals
SELECT stage, entity, key, reason, left(detail, 400) AS detail FROM removals
ORDER BY ALL LIMIT {most}

-- name: index
WITH q AS (
    SELECT query_id, task, CASE WHEN question = '{withheld}' THEN {instead} ELSE question END AS question
    FROM queries ORDER BY query_id LIMIT {most}
), o AS (
    SELECT query_id, count(score) AS judged, count(*) FILTER (correct) AS total,
           count(*) FILTER (contested) AS contested
    FROM outcomes WHERE query_id <= (SELECT max(query_id) FROM q) GROUP BY query_id
)
SELECT q.query_id, q.task, left(q.question, {excerpt}) || if(len(q.question) > {excerpt}, '…', '') AS text,
       coalesce(o.judged, 0) AS judged, o.total, coalesce(o.contested, 0) AS contested,
       {group} AS duplicate_group
FROM q LEFT JOIN o USING (query_id) {join}
ORDER BY q.query_id

-- name: each
SELECT q.query_id, string_agg(
    CASE WHEN o.score IS NULL THEN '-' WHEN o.correct THEN '1' ELSE '0' END, '' ORDER BY m.model_id
) AS outcomes
FROM (SELECT query_id FROM queries ORDER BY query_id LIMIT {most}) q CROSS JOIN models m
LEFT JOIN outcomes o ON o.query_id = q.query_id AND o.model_id = m.model_id
GROUP BY q.query_id
