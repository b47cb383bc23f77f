-- Numbers of the card, over the tables of the release, `cells`, `asked` and `pool`.

-- name: of_question
-- What the labels of one question say together, once for all that asks for it.
CREATE TEMP TABLE of_question AS
SELECT question, count(score) AS labelled, sum(score) AS total, max(score) AS top,
       bool_or(correct) FILTER (score IS NOT NULL) AS solvable,
       bool_and(correct) FILTER (score IS NOT NULL) AS every
FROM cells GROUP BY question

-- name: of_model
-- `lead`: how far a model is above the mean of the questions it was asked, added up. `low` and
-- `high`: its accuracy if all that is undecided were wrong, or right (Manski 1989).
CREATE TEMP TABLE of_model AS
SELECT model, count(score) AS labelled, avg(score) AS accuracy,
       count(*) FILTER (score IS NULL) AS undecided,
       sum(coalesce(score, 0) * decided) / count(*) AS low,
       sum(coalesce(score, 0) * decided + 1 - decided) / count(*) AS high,
       avg(top) FILTER (score IS NOT NULL) AS oracle,
       round(sum(score - total / labelled), 9) AS lead
FROM cells JOIN of_question USING (question) GROUP BY model

-- name: models
SELECT m.model_id, m.provider, m.params_b, m.price_in, m.price_out, m.kind, m.simulated,
       coalesce(labelled, 0) AS labelled, accuracy, oracle,
       coalesce(undecided, 0) AS undecided, low, high
FROM pool m LEFT JOIN of_model USING (model)
ORDER BY accuracy DESC NULLS LAST, m.model_id

-- name: tasks
SELECT q.task, q.domain, any_value(q.scorer) AS scorer, count(*) AS queries,
       coalesce(sum(labelled), 0)::BIGINT AS labelled,
       sum(total) / nullif(sum(labelled), 0) AS accuracy
FROM asked q LEFT JOIN of_question USING (question) GROUP BY q.task, q.domain ORDER BY ALL

-- name: sources
SELECT source, count(*) AS queries FROM queries GROUP BY ALL ORDER BY source

-- name: counts
SELECT count(score) AS labelled, count(*) FILTER (score NOT IN (0, 1)) AS graded,
       count(*) FILTER (contested) AS contested,
       count(*) FILTER (decided_by = 'unreadable') AS unreadable,
       count(*) FILTER (score IS NULL) AS undecided,
       avg(score) AS mean_score
FROM labels

-- name: oracle
SELECT avg(top) AS oracle, avg(CAST(NOT solvable AS INT)) AS unsolved,
       avg(CAST(every AS INT)) AS solved_by_all, count(*) AS judged
FROM of_question WHERE labelled > 0

-- name: best_single
-- The model to deploy if there were only one: the one that is furthest above the mean of the
-- questions it was asked, and the oracle on those same questions. Without missing labels it
-- is the most accurate; with some, who was asked easy questions only does not lead, and no
-- model is above an oracle of other questions. Models that are equally good are all named.
SELECT list(model_id ORDER BY model_id) AS models, any_value(accuracy) AS accuracy,
       any_value(oracle) AS oracle, labelled,
       (SELECT count(*) FROM of_question WHERE labelled > 0) AS judged
FROM of_model JOIN pool USING (model) WHERE labelled > 0
GROUP BY lead, labelled, round(accuracy, 9), round(oracle, 9)
ORDER BY lead DESC, labelled DESC, round(accuracy, 9) DESC, round(oracle, 9) DESC LIMIT 1

-- name: decided
SELECT coalesce(decided_by, 'undecided') AS decided_by, count(*) AS labels
FROM labels GROUP BY ALL ORDER BY labels DESC, decided_by

-- name: read_as
-- How `auto` read: its verdict says so in front of the reason, unless the source withholds texts.
SELECT coalesce(nullif(regexp_extract(reason, '^read as ([a-z ]+):', 1), ''), 'not known') AS shape,
       count(*) AS answers, count(*) FILTER (outcome = 'correct') AS correct,
       count(*) FILTER (outcome = 'incorrect') AS incorrect,
       count(*) FILTER (outcome NOT IN ('correct', 'incorrect')) AS unread
FROM verdicts WHERE scorer = 'auto' GROUP BY ALL ORDER BY answers DESC, shape

-- name: cost
SELECT count(*) AS responses, count(cost_usd) AS priced, sum(cost_usd) AS cost_usd,
       sum(prompt_tokens) AS prompt_tokens, sum(completion_tokens) AS completion_tokens,
       count(completion_tokens) AS metered
FROM responses

-- name: status
SELECT status, count(*) AS n FROM responses GROUP BY ALL ORDER BY status

-- name: mean_costs
-- USD per response of models whose every cost is known.
SELECT model_id, CASE WHEN count(cost_usd) = count(*) THEN avg(cost_usd) END AS cost
FROM responses GROUP BY model_id

-- name: unpriced
-- Models with an answer whose cost is not known.
SELECT model_id FROM responses WHERE status NOT IN ('error', 'timeout', 'unanswered')
GROUP BY model_id HAVING count(cost_usd) < count(*) ORDER BY model_id

-- name: prices
-- Where prices were read, and when; most models first.
SELECT price_source, price_date, count(*) AS models,
       min(price_up_to) FILTER (price_in_beyond IS NULL) AS up_to
FROM models WHERE price_in IS NOT NULL OR price_out IS NOT NULL
GROUP BY price_source, price_date ORDER BY models DESC, price_source, price_date

-- name: splits
SELECT scheme, split, count(*) AS queries FROM splits GROUP BY ALL
ORDER BY scheme, min(array_position(['train', 'validation', 'test'], split))

-- name: duplicates
SELECT encoder, threshold, count(DISTINCT group_id) AS groups, count(*) AS queries,
       count(DISTINCT group_id) FILTER (label_conflict) AS conflicts
FROM duplicates GROUP BY ALL ORDER BY ALL

-- name: removals
SELECT stage, entity, reason, count(*) AS n FROM removals GROUP BY ALL ORDER BY ALL
