-- What changed between two releases: SQL over a_<table> and b_<table>, of one table each.

-- name: queries
SELECT coalesce(a.query_id, b.query_id) AS query_id,
       CASE WHEN a.query_id IS NULL THEN 'added' WHEN b.query_id IS NULL THEN 'removed'
            ELSE 'changed' END AS change,
       coalesce(b.task, a.task) AS task,
       left(coalesce(b.question, a.question), 80) AS question
FROM a_queries a FULL JOIN b_queries b USING (query_id)
WHERE a.query_id IS NULL OR b.query_id IS NULL OR a IS DISTINCT FROM b

-- name: models
SELECT coalesce(a.model_id, b.model_id) AS model_id,
       CASE WHEN a.model_id IS NULL THEN 'added' WHEN b.model_id IS NULL THEN 'removed'
            ELSE 'changed' END AS change
FROM a_models a FULL JOIN b_models b USING (model_id)
WHERE a.model_id IS NULL OR b.model_id IS NULL OR a IS DISTINCT FROM b

-- name: prices
SELECT model_id, a.price_in AS price_in_before, b.price_in AS price_in_after,
       a.price_out AS price_out_before, b.price_out AS price_out_after,
       a.price_date AS date_before, b.price_date AS date_after
FROM a_models a JOIN b_models b USING (model_id)
WHERE a.price_in IS DISTINCT FROM b.price_in
   OR a.price_out IS DISTINCT FROM b.price_out

-- name: labels
SELECT coalesce(a.query_id, b.query_id) AS query_id,
       coalesce(a.model_id, b.model_id) AS model_id,
       CASE WHEN a.score IS NULL THEN 'appeared' WHEN b.score IS NULL THEN 'vanished'
            WHEN a.correct <> b.correct THEN 'flipped' ELSE 'rescored' END AS change,
       a.score AS score_before, b.score AS score_after,
       a.decided_by AS decided_by_before, b.decided_by AS decided_by_after
FROM a_labels a FULL JOIN b_labels b
  ON a.query_id = b.query_id AND a.model_id = b.model_id
WHERE a.score IS DISTINCT FROM b.score OR a.correct IS DISTINCT FROM b.correct

-- name: costs
-- One row a model: of the pairs that both hold, whose costs or tokens differ, and what they
-- come to. `prices` says why only where prices are the reason.
SELECT a.model_id, count_if(a.cost_usd IS DISTINCT FROM b.cost_usd) AS costs_changed,
       count_if((a.prompt_tokens, a.completion_tokens) IS DISTINCT FROM
                (b.prompt_tokens, b.completion_tokens)) AS tokens_changed,
       count(*) AS pairs,
       count(a.cost_usd) AS known_before, count(b.cost_usd) AS known_after,
       round(sum(a.cost_usd), 9) AS usd_before, round(sum(b.cost_usd), 9) AS usd_after
FROM a_outcomes a JOIN b_outcomes b
  ON a.query_id = b.query_id AND a.model_id = b.model_id
GROUP BY a.model_id HAVING costs_changed > 0 OR tokens_changed > 0

-- name: deciders
SELECT query_id, model_id, a.decided_by AS decided_by_before,
       b.decided_by AS decided_by_after,
       a.contested AS contested_before, b.contested AS contested_after
FROM a_labels a JOIN b_labels b USING (query_id, model_id)
WHERE a.score IS NOT DISTINCT FROM b.score
  AND (a.decided_by IS DISTINCT FROM b.decided_by OR a.contested <> b.contested)

-- name: verdicts
-- Verdicts are never overwritten: of each scorer the newest on either side is compared.
WITH other AS (
    SELECT DISTINCT query_id, model_id, sample, scorer
    FROM a_verdicts a FULL JOIN b_verdicts b
      USING (query_id, model_id, sample, scorer, scorer_version)
    WHERE a.outcome IS NULL OR b.outcome IS NULL
       OR (a.outcome, a.score, a.extracted, a.reason)
          IS DISTINCT FROM (b.outcome, b.score, b.extracted, b.reason)
), sides AS (
    SELECT 'a' AS side, * FROM a_verdicts SEMI JOIN other
      USING (query_id, model_id, sample, scorer)
    UNION ALL SELECT 'b', * FROM b_verdicts SEMI JOIN other
      USING (query_id, model_id, sample, scorer)
), newest AS (
    SELECT * FROM sides QUALIFY row_number() OVER (
        PARTITION BY side, query_id, model_id, sample, scorer
        ORDER BY list_transform(regexp_extract_all(scorer_version, '[0-9]{1,18}'),
                                lambda part: part::BIGINT) DESC,
                 scorer_version DESC) = 1
)
SELECT query_id, model_id, sample, scorer,
       CASE WHEN a.outcome IS NULL THEN 'filed' WHEN b.outcome IS NULL THEN 'withdrawn'
            WHEN a.outcome <> b.outcome THEN 'other outcome'
            WHEN a.score IS DISTINCT FROM b.score THEN 'rescored'
            WHEN a.extracted IS DISTINCT FROM b.extracted THEN 'read otherwise'
            ELSE 'same outcome' END AS change,
       a.outcome AS outcome_before, b.outcome AS outcome_after,
       a.score AS score_before, b.score AS score_after,
       a.extracted AS extracted_before, b.extracted AS extracted_after,
       a.scorer_version AS version_before, b.scorer_version AS version_after,
       a.reason AS reason_before, b.reason AS reason_after
FROM (FROM newest WHERE side = 'a') a FULL JOIN (FROM newest WHERE side = 'b') b
  USING (query_id, model_id, sample, scorer)

-- name: ranks
WITH ranked AS (
    SELECT side, model_id, avg(score) AS accuracy,
           rank() OVER (PARTITION BY side ORDER BY avg(score) DESC) AS place
    FROM (SELECT 'a' AS side, * FROM a_labels UNION ALL SELECT 'b', * FROM b_labels)
    WHERE score IS NOT NULL GROUP BY side, model_id)
SELECT model_id, a.place AS rank_before, b.place AS rank_after,
       a.accuracy AS accuracy_before, b.accuracy AS accuracy_after
FROM (FROM ranked WHERE side = 'a') a FULL JOIN (FROM ranked WHERE side = 'b') b
  USING (model_id)
WHERE a.place IS DISTINCT FROM b.place

-- name: splits
SELECT coalesce(a.scheme, b.scheme) AS scheme,
       coalesce(a.query_id, b.query_id) AS query_id,
       a.split AS split_before, b.split AS split_after
FROM a_splits a FULL JOIN b_splits b
  ON a.scheme = b.scheme AND a.query_id = b.query_id
WHERE a.split IS DISTINCT FROM b.split
