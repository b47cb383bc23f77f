-- The things people ask a release first, as macros of its database: `FROM leaderboard()`. They start from the schema
-- `numbered`: labels under row numbers, and what was counted once per query, model and task (`derived.sql`). Ids and
-- texts are joined last, to the rows that are shown.
-- Accuracy is over decided labels; `low` and `high` count all undecided and missing ones as wrong, or right, over the
-- questions that any model has a row for. The lower bound orders: a model that is right in all of its few labels is on
-- top of nothing.

-- name: accuracy
-- asks: accuracy per model and task, with the bounds that undecided labels leave open
-- takes: model := NULL
WITH asked AS (
    SELECT task, count(*) AS n
    FROM numbered.per_query JOIN numbered.queries USING (query_no) GROUP BY task
)
SELECT model_id, task, judged || ' of ' || n AS labelled, judged AS n_labelled,
       total / nullif(judged, 0) AS accuracy, n - judged AS undecided, total / n AS low,
       (total + n - judged) / n AS high
FROM numbered.per_task JOIN numbered.models USING (model_no) JOIN asked USING (task)
WHERE model IS NULL OR model_id = model
ORDER BY task, low DESC, accuracy DESC, model_id

-- name: leaderboard
-- asks: models by the lower bound of their accuracy, with a standard error and how much is labelled
-- takes: nothing
WITH per_model AS (
    SELECT model_no, count(score) AS n_labelled, avg(score) AS accuracy,
           stddev_samp(score) / sqrt(count(score)) AS standard_error,
           coalesce(sum(score), 0) AS total
    FROM numbered.labels GROUP BY model_no
), asked AS (SELECT count(*) AS n FROM numbered.per_query)
SELECT model_id, n_labelled || ' of ' || n AS labelled, n_labelled, accuracy, standard_error,
       n - n_labelled AS undecided, total / n AS low, (total + n - n_labelled) / n AS high
FROM per_model JOIN numbered.models USING (model_no), asked
ORDER BY low DESC, accuracy DESC NULLS LAST, model_id

-- name: oracle
-- asks: per task: oracle, best single model and the gap a router can win, on its questions
-- takes: nothing
-- A task's best single model is the one furthest above the mean of the questions it was asked (where no label is
-- missing: the most accurate), and the oracle is over the questions that it has a label for. Means over different
-- questions would contradict. In a task without gaps, sums of scores lead the same way, and are exact.
WITH of_task AS MATERIALIZED (
    SELECT task, count(*) AS asked, avg(top) AS oracle FROM numbered.per_query
    JOIN numbered.queries USING (query_no) WHERE judged > 0 GROUP BY task
), whole AS (
    SELECT task FROM numbered.per_task JOIN of_task USING (task)
    GROUP BY task HAVING count(*) FILTER (judged BETWEEN 1 AND asked - 1) = 0
), led AS (
    SELECT task, model_no, lead, judged AS n, top / judged AS oracle,
           total / judged AS single
    FROM numbered.leads JOIN numbered.per_task USING (task, model_no)
    ANTI JOIN whole USING (task)
    UNION ALL SELECT task, model_no, total, judged, oracle, total / judged
    FROM numbered.per_task JOIN of_task USING (task) SEMI JOIN whole USING (task)
    WHERE judged > 0
), best AS (
    FROM led QUALIFY row_number()
        OVER (PARTITION BY task ORDER BY round(lead, 9) DESC, n DESC, model_no) = 1
), whole_task AS (SELECT task, count(*) AS total FROM numbered.queries GROUP BY task)
SELECT task, n || ' of ' || total AS labelled, n AS queries, oracle, single AS best_single,
       model_id AS best_model, oracle - single AS gap
FROM best JOIN numbered.models USING (model_no) JOIN whole_task USING (task)
ORDER BY gap DESC, task

-- name: hardest
-- asks: queries that fewest models solve, but at least one does
-- takes: n := 20
WITH solved AS (
    SELECT * FROM numbered.per_query WHERE solved_by > 0
    ORDER BY solved_by / judged, judged DESC, query_no LIMIT n
)
SELECT query_id, task, judged::BIGINT AS judged, solved_by::BIGINT AS solved_by,
       model_id AS for_example, left(question, 60) AS question
FROM solved JOIN numbered.queries USING (query_no)
JOIN numbered.models m ON m.model_no = first_solver
ORDER BY solved.solved_by / solved.judged, judged DESC, query_id

-- name: unsolved
-- asks: queries that no model solves, those with most answers first
-- takes: n := 20
WITH missed AS (
    SELECT query_no, judged FROM numbered.per_query WHERE judged > 0 AND solved_by = 0
    ORDER BY judged DESC, query_no LIMIT n
)
SELECT query_id, task, judged::BIGINT AS judged, left(question, 60) AS question
FROM missed JOIN numbered.queries USING (query_no) ORDER BY judged DESC, query_id

-- name: cheapest_correct
-- asks: which model is the cheapest correct one, and how often (unsure: a right answer of unknown cost may be cheaper)
-- takes: nothing
SELECT model_id, queries, unsure, cost_usd / queries AS mean_cost_usd
FROM numbered.cheapest JOIN numbered.models USING (model_no)
ORDER BY queries DESC, model_id

-- name: cost_of
-- asks: cost per correct answer of each model (null where a cost is unknown)
-- takes: model := NULL
SELECT model_id, correct, priced, CASE WHEN priced > 0 THEN cost_usd END AS known_cost_usd,
       CASE WHEN priced = answered THEN cost_usd / nullif(correct, 0) END AS usd_per_correct
FROM numbered.per_model JOIN numbered.models USING (model_no)
WHERE model IS NULL OR model_id = model
ORDER BY usd_per_correct NULLS LAST, model_id

-- name: contested
-- asks: contested labels, where the most models are contested first
-- takes: nothing
WITH disputed AS (
    SELECT query_no, contested FROM numbered.per_query WHERE contested > 0
    ORDER BY contested DESC, query_no LIMIT 20
), listed AS (
    SELECT query_no, list(model_id ORDER BY model_id) AS models
    FROM numbered.labels l SEMI JOIN disputed USING (query_no)
    JOIN numbered.models USING (model_no) WHERE l.contested GROUP BY query_no
)
SELECT query_id, task, contested::BIGINT AS contested, models
FROM disputed JOIN listed USING (query_no) JOIN numbered.queries USING (query_no)
ORDER BY contested DESC, query_id

-- name: missing
-- asks: what is missing: pairs without a label, per model
-- takes: nothing
WITH counted AS (
    SELECT model_no, count(score) AS labelled,
           count(*) FILTER (decided_by = 'unreadable') AS unreadable
    FROM numbered.labels GROUP BY model_no
), asked AS (SELECT count(*) AS queries FROM numbered.queries)
SELECT model_id, queries, coalesce(labelled, 0) AS labelled,
       queries - coalesce(labelled, 0) AS missing, coalesce(unreadable, 0) AS unreadable
FROM numbered.models LEFT JOIN counted USING (model_no), asked
ORDER BY missing DESC, model_id

-- name: pairs
-- asks: pairs of models that complement each other: how much the better of two gains
-- takes: nothing
-- Scores of 0 and 1 are counted 64 queries at a time, as bits. Queries with a score between the two are few, or at least
-- no worse than all of them joined with themselves.
WITH plain AS (
    SELECT a.model_no AS a, b.model_no AS b,
           sum(bit_count(a.judged & b.judged)) AS n,
           sum(bit_count((a.solved | b.solved) & a.judged & b.judged)) AS top,
           sum(bit_count(a.solved & b.judged)) AS a_alone,
           sum(bit_count(b.solved & a.judged)) AS b_alone
    FROM numbered.bits a JOIN numbered.bits b
      ON a.word = b.word AND a.model_no < b.model_no GROUP BY ALL HAVING n > 0
), shares AS (
    SELECT query_no, model_no, score
    FROM numbered.labels
    SEMI JOIN (FROM numbered.per_query WHERE graded) USING (query_no)
    WHERE score IS NOT NULL
), graded AS (
    SELECT a.model_no AS a, b.model_no AS b, count(*) AS n,
           sum(greatest(a.score, b.score)) AS top, sum(a.score) AS a_alone,
           sum(b.score) AS b_alone
    FROM shares a JOIN shares b ON a.query_no = b.query_no AND a.model_no < b.model_no
    GROUP BY ALL
), pairs AS (
    SELECT a, b, sum(n)::BIGINT AS queries, sum(top)::DOUBLE / sum(n) AS either,
           greatest(sum(a_alone)::DOUBLE, sum(b_alone)::DOUBLE) / sum(n) AS single
    FROM (FROM plain UNION ALL FROM graded) GROUP BY ALL
)
SELECT one.model_id AS model_a, other.model_id AS model_b,
       queries || ' of ' || total AS labelled, queries, either, either - single AS gain
FROM pairs JOIN numbered.models one ON one.model_no = a
JOIN numbered.models other ON other.model_no = b,
     (SELECT count(*) AS total FROM numbered.queries)
ORDER BY gain DESC, model_a, model_b LIMIT 20

-- name: tokens
-- asks: per model, of what was metered: mean tokens of an answer, sum of known costs, median latency
-- takes: nothing
SELECT model_id, responses, prompt_tokens, completion_tokens, known_cost_usd,
       priced, median_latency_s
FROM numbered.metered JOIN numbered.models USING (model_no) ORDER BY model_id

-- name: splits
-- asks: size and mean score of each split
-- takes: nothing
SELECT scheme, split, count(*) AS queries,
       coalesce(sum(judged), 0) :: BIGINT || ' of ' || count(*) * any_value(models) AS labelled,
       coalesce(sum(judged), 0) :: BIGINT AS n_labelled,
       sum(total) / nullif(sum(judged), 0) AS mean_score
FROM numbered.splits LEFT JOIN numbered.per_query USING (query_no),
     (SELECT count(*) AS models FROM numbered.models)
GROUP BY scheme, split ORDER BY scheme, split

-- name: disagreements
-- asks: questions that one of two models gets right and the other wrong
-- takes: a, b
SELECT query_id, task, CASE WHEN one.correct THEN a ELSE b END AS right_model,
       CASE WHEN one.correct THEN b ELSE a END AS wrong_model, left(question, 60) AS question
FROM (FROM numbered.labels JOIN numbered.models USING (model_no) WHERE model_id = a) one
JOIN (FROM numbered.labels JOIN numbered.models USING (model_no) WHERE model_id = b) other USING (query_no)
JOIN numbered.queries USING (query_no)
WHERE one.correct <> other.correct ORDER BY query_id

-- name: solved_only_by
-- asks: questions that a model gets right and no other does
-- takes: model
SELECT query_id, task, judged::BIGINT AS judged, left(question, 60) AS question
FROM numbered.per_query JOIN numbered.queries USING (query_no) JOIN numbered.models m ON m.model_no = first_solver
WHERE solved_by = 1 AND m.model_id = model ORDER BY query_id

-- name: matrix
-- asks: scores of a task (null: of all), one row per question and one column per model
-- takes: task
SELECT q.query_id{columns}
FROM numbered.labels l JOIN numbered.queries q USING (query_no)
WHERE task IS NULL OR q.task = task GROUP BY q.query_id ORDER BY q.query_id
