-- Checks of the derived tables against the tables that they follow from. Each runs over the tables of a database and over
-- the files of a release alike; `numbered` holds tables by number, `stated` what the release states.

-- name: rows_numbered
-- kind: proved
-- says: each number of a question or a model is that of its row, and each row by number has both
-- severity: error
-- needs: queries, models, labels, splits
-- key: in_table, number
SELECT 'queries' AS in_table, query_no AS number, 'place ' || place AS found, 'place ' || query_no AS expected
FROM (SELECT query_no, row_number() OVER (ORDER BY query_id) - 1 AS place FROM numbered.queries)
WHERE query_no IS DISTINCT FROM place
UNION ALL
SELECT 'models', model_no, 'place ' || place, 'place ' || model_no
FROM (SELECT model_no, row_number() OVER (ORDER BY model_id) - 1 AS place FROM numbered.models)
WHERE model_no IS DISTINCT FROM place
UNION ALL
SELECT DISTINCT name, query_no, 'no question', 'a row of queries'
FROM (SELECT 'labels' AS name, query_no FROM numbered.labels UNION ALL SELECT 'splits', query_no FROM numbered.splits
      UNION ALL SELECT 'per_query', query_no FROM numbered.per_query) ANTI JOIN numbered.queries USING (query_no)
UNION ALL
SELECT DISTINCT name, model_no, 'no model', 'a row of models'
FROM (SELECT 'labels' AS name, model_no FROM numbered.labels UNION ALL SELECT 'per_task', model_no FROM numbered.per_task
      UNION ALL SELECT 'bits', model_no FROM numbered.bits UNION ALL SELECT 'metered', model_no FROM numbered.metered)
ANTI JOIN numbered.models USING (model_no)

-- name: questions_add_up
-- kind: proved
-- says: sums per question are those of its labels
-- severity: error
-- needs: labels
-- key: query_no
WITH fresh AS (
    SELECT query_no, count(score) AS judged, coalesce(sum(score), 0) AS total, max(score) AS top,
           count(*) FILTER (correct) AS solved_by, min(model_no) FILTER (correct) AS first_solver,
           count(*) FILTER (contested) AS contested, coalesce(bool_or(score > 0 AND score < 1), false) AS graded
    FROM numbered.labels GROUP BY query_no
)
SELECT query_no, format('judged {}, total {}, solved by {}', s.judged, s.total, s.solved_by) AS found,
       format('judged {}, total {}, solved by {}', f.judged, f.total, f.solved_by) AS expected
FROM fresh f FULL JOIN numbered.per_query s USING (query_no)
WHERE s.judged IS DISTINCT FROM f.judged OR s.top IS DISTINCT FROM f.top OR s.solved_by IS DISTINCT FROM f.solved_by
   OR s.first_solver IS DISTINCT FROM f.first_solver OR s.contested IS DISTINCT FROM f.contested
   OR s.graded IS DISTINCT FROM f.graded OR abs(s.total - f.total) > 1e-9 * greatest(abs(f.total), 1)

-- name: tasks_add_up
-- kind: proved
-- says: sums per model and task are those of its labels
-- severity: error
-- needs: labels
-- key: model_no, task
WITH fresh AS (
    SELECT model_no, task, count(score) AS judged, coalesce(sum(score), 0) AS total
    FROM numbered.labels JOIN numbered.queries USING (query_no) GROUP BY model_no, task
)
SELECT model_no, task, format('judged {}, total {}', s.judged, s.total) AS found,
       format('judged {}, total {}', f.judged, f.total) AS expected
FROM fresh f FULL JOIN numbered.per_task s USING (model_no, task)
WHERE s.judged IS DISTINCT FROM f.judged OR s.total IS NULL OR abs(s.total - f.total) > 1e-9 * greatest(abs(f.total), 1)

-- name: leads_add_up
-- kind: proved
-- says: leads per model and task follow from its labels
-- severity: error
-- needs: labels
-- key: model_no, task
WITH fresh AS (
    SELECT model_no, task, sum(score - total / judged) AS lead, sum(top) AS top
    FROM numbered.labels JOIN numbered.per_query USING (query_no) JOIN numbered.queries USING (query_no)
    WHERE score IS NOT NULL GROUP BY model_no, task
)
SELECT model_no, task, format('lead {}, top {}', s.lead, s.top) AS found, format('lead {}, top {}', f.lead, f.top) AS expected
FROM fresh f FULL JOIN numbered.leads s USING (model_no, task)
WHERE s.lead IS NULL OR f.lead IS NULL OR abs(s.lead - f.lead) > 1e-6 OR abs(s.top - f.top) > 1e-6

-- name: bits_add_up
-- kind: proved
-- says: bits of a model are its labels of questions whose scores are all 0 or 1
-- severity: error
-- needs: labels
-- key: model_no, word
WITH fresh AS (
    SELECT model_no, query_no // 64 AS word, bit_or(1::UBIGINT << (query_no % 64)) AS judged,
           coalesce(bit_or(1::UBIGINT << (query_no % 64)) FILTER (score = 1), 0) AS solved
    FROM numbered.labels JOIN numbered.per_query USING (query_no)
    WHERE score IS NOT NULL AND NOT graded GROUP BY model_no, word
)
SELECT model_no, word, format('judged {}, solved {}', bit_count(s.judged), bit_count(s.solved)) AS found,
       format('judged {}, solved {}', bit_count(f.judged), bit_count(f.solved)) AS expected
FROM fresh f FULL JOIN numbered.bits s USING (model_no, word)
WHERE s.judged IS DISTINCT FROM f.judged OR s.solved IS DISTINCT FROM f.solved

-- name: outcomes_of_labels
-- kind: proved
-- says: outcomes repeat the labels
-- severity: error
-- needs: outcomes, labels
-- key: query_id, model_id
SELECT query_id, model_id, CASE WHEN o.n_samples IS NULL THEN 'no outcome'
           ELSE format('score {}, correct {}', o.score, o.correct) END AS found,
       CASE WHEN l.n_samples IS NULL THEN 'no outcome: there is no label'
           ELSE format('score {}, correct {}', l.score, l.correct) END AS expected
FROM labels l FULL JOIN (FROM outcomes WHERE n_samples IS NOT NULL) o USING (query_id, model_id)
WHERE l.score IS DISTINCT FROM o.score OR l.correct IS DISTINCT FROM o.correct OR l.decided_by IS DISTINCT FROM o.decided_by
   OR l.contested IS DISTINCT FROM o.contested OR l.n_samples IS DISTINCT FROM o.n_samples

-- name: outcomes_of_responses
-- kind: proved
-- says: outcomes count the responses of their pair, and add up their costs and tokens
-- severity: error
-- needs: outcomes, responses
-- key: query_id, model_id
WITH fresh AS (
    SELECT query_id, model_id, count(*) AS n,
           CASE WHEN count(cost_usd) = count(*) THEN sum(cost_usd) END AS usd,
           CASE WHEN count(prompt_tokens) = count(*) THEN sum(prompt_tokens) END AS asked,
           CASE WHEN count(completion_tokens) = count(*) THEN sum(completion_tokens) END AS wrote
    FROM responses GROUP BY query_id, model_id
)
SELECT query_id, model_id, format('{} responses, cost_usd {}', o.n_responses, o.cost_usd) AS found,
       format('{} responses, cost_usd {}', f.n, f.usd) AS expected
FROM fresh f FULL JOIN (FROM outcomes WHERE n_responses > 0) o USING (query_id, model_id)
WHERE o.n_responses IS DISTINCT FROM f.n OR (o.cost_usd IS NULL) <> (f.usd IS NULL)
   OR abs(o.cost_usd - f.usd) > 1e-12 + 1e-9 * f.usd
   OR o.prompt_tokens IS DISTINCT FROM f.asked OR o.completion_tokens IS DISTINCT FROM f.wrote

-- name: outcomes_numbered
-- kind: proved
-- says: numbers of outcomes are those of their questions and models
-- severity: error
-- needs: outcomes, queries, models
-- key: query_id, model_id
SELECT o.query_id, o.model_id, format('numbers {} and {}', o.query_no, o.model_no) AS found,
       format('{} and {}', q.query_no, m.model_no) AS expected
FROM outcomes o LEFT JOIN numbered.queries q ON q.query_id = o.query_id LEFT JOIN numbered.models m ON m.model_id = o.model_id
WHERE q.query_no IS DISTINCT FROM o.query_no OR m.model_no IS DISTINCT FROM o.model_no

-- name: models_add_up
-- kind: proved
-- says: costs per model are those of its outcomes
-- severity: error
-- needs: outcomes
-- key: model_no
WITH fresh AS (
    SELECT model_no, count(*) AS answered, count(*) FILTER (correct) AS correct, count(cost_usd) AS priced,
           coalesce(sum(cost_usd), 0) AS usd
    FROM outcomes WHERE n_samples IS NOT NULL AND n_responses > 0 GROUP BY model_no
)
SELECT model_no, format('answered {}, correct {}, cost_usd {}', s.answered, s.correct, s.cost_usd) AS found,
       format('answered {}, correct {}, cost_usd {}', f.answered, f.correct, f.usd) AS expected
FROM fresh f FULL JOIN numbered.per_model s USING (model_no)
WHERE s.answered IS DISTINCT FROM f.answered OR s.correct IS DISTINCT FROM f.correct OR s.priced IS DISTINCT FROM f.priced
   OR abs(s.cost_usd - f.usd) > 1e-9 * greatest(f.usd, 1)

-- name: sums_per_model_agree
-- kind: proved
-- says: right answers and costs per model do not contradict the labels, nor sums of pairs, of responses and of the cheapest
-- severity: error
-- needs: labels
-- key: model_no
WITH judged AS (SELECT model_no, count(*) FILTER (correct) AS correct FROM numbered.labels GROUP BY model_no),
solved AS (SELECT count(*) AS n FROM numbered.per_query WHERE solved_by > 0),
facts AS (
    SELECT p.model_no, p.correct, j.correct AS labelled, p.cost_usd, coalesce(m.known_cost_usd, 0) AS known,
           coalesce(c.queries, 0) AS leads, coalesce(c.cost_usd, 0) AS led,
           1e-9 * greatest(p.cost_usd, m.known_cost_usd, 1) AS near,
           p.priced = p.answered AND m.priced = m.responses AND m.responses = p.answered AS whole,
           sum(coalesce(c.queries, 0)) OVER () AS all_leads
    FROM numbered.per_model p LEFT JOIN judged j USING (model_no) LEFT JOIN numbered.metered m USING (model_no)
    LEFT JOIN numbered.cheapest c USING (model_no)
)
SELECT model_no, format('{} right, {} the cheapest, for {} USD; {} USD in all', correct, leads, led, cost_usd) AS found,
       format('at most {} right and {} USD; {} questions with a right answer', labelled, known, n) AS expected
FROM facts, solved
WHERE correct > coalesce(labelled, 0) OR leads > correct OR led > cost_usd + near OR cost_usd > known + near
   OR (whole AND cost_usd < known - near) OR all_leads > n

-- name: cheapest_add_up
-- kind: proved
-- says: the cheapest right answers are those of the outcomes
-- severity: error
-- needs: outcomes
-- key: model_no
WITH fresh AS (
    SELECT model_no, count(*) AS queries, sum(cost_usd) AS usd, count(*) FILTER (unsure) AS unsure
    FROM (SELECT query_no, min((cost_usd, model_no)) FILTER (cost_usd IS NOT NULL) AS best,
                 bool_or(cost_usd IS NULL) AS unsure FROM outcomes WHERE correct GROUP BY query_no)
    JOIN outcomes USING (query_no) WHERE model_no = best[2] GROUP BY model_no
)
SELECT model_no, format('{} questions, {} unsure, cost_usd {}', s.queries, s.unsure, s.cost_usd) AS found,
       format('{} questions, {} unsure, cost_usd {}', f.queries, f.unsure, f.usd) AS expected
FROM fresh f FULL JOIN numbered.cheapest s USING (model_no)
WHERE s.queries IS DISTINCT FROM f.queries OR s.unsure IS DISTINCT FROM f.unsure OR abs(s.cost_usd - f.usd) > 1e-9 * greatest(f.usd, 1)

-- name: responses_add_up
-- kind: proved
-- says: tokens and costs per model are those of its responses
-- severity: error
-- needs: responses, models
-- key: model_id
WITH fresh AS (
    SELECT model_no, count(*) AS n, sum(cost_usd) AS usd, count(cost_usd) AS priced, avg(prompt_tokens) AS asked,
           avg(completion_tokens) AS wrote
    FROM responses JOIN numbered.models USING (model_id) GROUP BY model_no
)
SELECT m.model_id, format('{} responses, cost_usd {}', s.responses, s.known_cost_usd) AS found,
       format('{} responses, cost_usd {}', f.n, f.usd) AS expected
FROM fresh f FULL JOIN numbered.metered s USING (model_no) LEFT JOIN numbered.models m USING (model_no)
WHERE s.responses IS DISTINCT FROM f.n OR s.priced IS DISTINCT FROM f.priced
   OR abs(s.known_cost_usd - f.usd) > 1e-9 * greatest(f.usd, 1) OR (s.known_cost_usd IS NULL) <> (f.usd IS NULL)
   OR abs(s.prompt_tokens - f.asked) > 1e-6 OR abs(s.completion_tokens - f.wrote) > 1e-6

-- name: wide_of_labels
-- kind: proved
-- says: the wide table repeats the scores of the labels
-- severity: error
-- needs: labels, labels_wide
-- key: query_id, model_id
SELECT query_id, model_id, format('score {}', w.score) AS found, format('score {}', l.score::FLOAT) AS expected
FROM (UNPIVOT labels_wide ON COLUMNS(* EXCLUDE (query_id)) INTO NAME model_id VALUE score) w
FULL JOIN (FROM labels WHERE score IS NOT NULL) l USING (query_id, model_id)
WHERE w.score IS DISTINCT FROM l.score::FLOAT

-- name: splits_of_outcomes
-- kind: proved
-- says: the files of outcomes by split hold each outcome once, in the split of its question
-- severity: error
-- needs: outcomes, outcomes_by_split
-- key: folder
WITH files AS (
    SELECT parse_path(filename)[-2] AS folder, parse_filename(filename, true) AS split, query_id, count(*) AS n
    FROM outcomes_by_split GROUP BY ALL
), whole AS (SELECT query_id, count(*) AS n FROM outcomes GROUP BY ALL), folders AS (SELECT DISTINCT folder FROM files)
SELECT folder, format('{:,} questions have more, or fewer, outcomes than in outcomes.parquet', count(*)) AS found, 'none' AS expected
FROM (SELECT folder, query_id, w.n FROM folders, whole w) w
FULL JOIN (SELECT folder, query_id, sum(n) AS n FROM files GROUP BY ALL) f USING (folder, query_id)
WHERE w.n IS DISTINCT FROM f.n GROUP BY folder
UNION ALL
SELECT folder, format('{:,} questions are in another split than splits.parquet says', count(*)), 'none'
FROM files f JOIN splits s ON s.scheme = f.folder AND s.query_id = f.query_id
WHERE s.split <> f.split GROUP BY folder

-- name: accuracies_add_up
-- kind: proved
-- says: the view accuracy shows what the labels give
-- severity: error
-- needs: labels, accuracy
-- key: model_id, task
WITH fresh AS (
    SELECT model_id, task, count(score) AS n, avg(score) AS accuracy
    FROM labels JOIN queries USING (query_id) GROUP BY model_id, task
)
SELECT model_id, task, format('{} labels, accuracy {}', s.n_labelled, s.accuracy) AS found,
       format('{} labels, accuracy {}', f.n, f.accuracy) AS expected
FROM fresh f FULL JOIN accuracy s USING (model_id, task)
WHERE s.n_labelled IS DISTINCT FROM f.n OR (s.accuracy IS NULL) <> (f.accuracy IS NULL)
   OR abs(s.accuracy - f.accuracy) > 1e-9
