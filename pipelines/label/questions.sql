-- Questions of labels and their audit, in DuckDB's SQL. The tables `queries`, `responses`, `verdicts`
-- (the newest), `labels`, `texts` and `duplicates` are registered by
-- `pipelines/audit/labels.py`, and so is `no_answers`; those of the questions at the end by whoever asks them (`questions.answer`).

-- name: same
-- An answer as it is compared between models: no case, spaces, currency or separators.
regexp_replace(regexp_replace(lower(trim(extracted)), '[\s$,*`]+|\.$', '', 'g'),
                          '(\.[0-9]*?)0+$', '\1')

-- name: rules
-- Verdicts of each question's own scorer; a part of other questions.
SELECT v.*, q.task FROM verdicts v JOIN queries q USING (query_id)
WHERE v.scorer = q.scorer AND v.scorer <> 'given'

-- name: confusion
SELECT q.task, a.scorer AS scorer_a, b.scorer AS scorer_b,
       a.outcome AS outcome_a, b.outcome AS outcome_b, count(*) AS n
FROM verdicts a
JOIN verdicts b USING (query_id, model_id, sample)
JOIN queries q USING (query_id)
WHERE a.scorer < b.scorer
GROUP BY ALL ORDER BY ALL

-- name: agreement
-- Pairs of scorers that both decided, and α over all scorers of a task (Krippendorff 2004, ch. 11,
-- of two values): 1 - (sum of m - 1) x (sum of yes x no / (m - 1) over units of m ratings) / all
-- yes / all no.
WITH pairs AS (
    SELECT task, scorer_a, scorer_b,
           sum(n) FILTER (outcome_a = 'correct' AND outcome_b = 'correct') AS "both",
           sum(n) FILTER (outcome_a = 'correct' AND outcome_b = 'incorrect') AS "first",
           sum(n) FILTER (outcome_a = 'incorrect' AND outcome_b = 'correct') AS "second",
           sum(n) FILTER (outcome_a = 'incorrect' AND outcome_b = 'incorrect') AS "none"
    FROM confusion
    WHERE outcome_a IN ('correct', 'incorrect') AND outcome_b IN ('correct', 'incorrect')
    GROUP BY ALL
), units AS (
    SELECT task, count(*) AS m, count(*) FILTER (outcome = 'correct') AS yes, m - yes AS "no"
    FROM verdicts JOIN queries USING (query_id) WHERE outcome IN ('correct', 'incorrect')
    GROUP BY task, query_id, model_id, sample HAVING m > 1
), alphas AS (
    SELECT task, 1 - (sum(m) - 1) * sum(yes * "no" / (m - 1)) / nullif(sum(yes) * sum("no"), 0)
                 AS alpha_all
    FROM units GROUP BY task
)
SELECT task, scorer_a, scorer_b, coalesce("both", 0)::BIGINT AS "both",
       coalesce("first", 0)::BIGINT AS "first", coalesce("second", 0)::BIGINT AS "second",
       coalesce("none", 0)::BIGINT AS "none", alpha_all
FROM pairs JOIN alphas USING (task) ORDER BY task, scorer_a, scorer_b

-- name: abstentions
SELECT model_id, count(*) AS answers,
       count(*) FILTER (outcome = 'abstain') AS abstained,
       count(*) FILTER (outcome = 'error') AS errors,
       abstained / answers AS share
FROM ({rules}) GROUP BY model_id ORDER BY model_id

-- name: conflicts
SELECT model_id, count(*) AS answers, count(*) FILTER (conflict) AS conflicting,
       conflicting / answers AS share, median(share) OVER () AS median_share
FROM ({rules}) GROUP BY model_id ORDER BY model_id

-- name: said
-- What each model answered, as it is compared.
SELECT query_id, model_id, task, len(q.choices) AS options, {same} AS answer,
       outcome = 'correct' AS "right", left(extracted, 200) AS extracted
FROM ({rules}) r JOIN (SELECT query_id, choices FROM queries) q USING (query_id)
WHERE sample = 0 AND outcome IN ('correct', 'incorrect') AND extracted IS NOT NULL

-- name: suspect
SELECT w.query_id, w.task, c.consensus, q."references", w.agreeing, w.answered,
       w.probability, w.apart
FROM wrong w JOIN queries q USING (query_id)
JOIN (SELECT query_id, answer, min(extracted) AS consensus FROM said GROUP BY ALL) c
  USING (query_id, answer)
WHERE NOT w.apart OR w.probability >= 0.5
ORDER BY probability DESC, query_id

-- name: fill_ins
-- Where the text holds no answer, stored labels that are right when the reference
-- is one certain letter, and hardly ever otherwise, show what was filled in.
WITH blind AS (
    SELECT r.model_id, g.outcome = 'correct' AS stored,
           coalesce(p.graded_against, q."references")[1] AS reference
    FROM ({rules}) r
    JOIN verdicts g USING (query_id, model_id, sample)
    JOIN responses p USING (query_id, model_id, sample)
    JOIN queries q USING (query_id)
    WHERE g.scorer = 'given' AND r.outcome = 'abstain'
), tested AS (
    SELECT b.model_id, c.reference AS fill_in, count(*) AS unreadable,
           count(*) FILTER (b.reference = c.reference) AS at_fill_in,
           count(*) FILTER (b.stored) AS right_in_all, any_value(c.letters) AS letters,
           avg(b.stored::INT) FILTER (b.reference = c.reference) AS right_at_fill_in,
           coalesce(avg(b.stored::INT) FILTER (b.reference <> c.reference), 0)
               AS right_elsewhere
    FROM blind b JOIN (
        SELECT model_id, reference, count(*) OVER (PARTITION BY model_id) AS letters
        FROM blind WHERE stored GROUP BY model_id, reference
    ) c USING (model_id)
    GROUP BY b.model_id, c.reference
)
SELECT * FROM tested
WHERE unreadable >= ? AND at_fill_in >= 3 AND right_at_fill_in >= 0.6
      AND right_elsewhere <= right_at_fill_in / 3
QUALIFY row_number() OVER (
    PARTITION BY model_id ORDER BY right_at_fill_in - right_elsewhere DESC, fill_in
) = 1
ORDER BY model_id

-- name: stored
SELECT r.query_id, r.model_id, r.sample, r.task, g.outcome AS stored, r.outcome AS regraded,
       g.score AS stored_score, r.score AS regraded_score, r.extracted, q."references",
       r.reason
FROM ({rules}) r
JOIN verdicts g USING (query_id, model_id, sample)
JOIN queries q USING (query_id)
WHERE g.scorer = 'given' AND r.outcome <> 'error'
      AND (g.outcome = 'correct') <> (r.outcome = 'correct')
ORDER BY r.query_id, r.model_id, r.sample

-- name: stored_accuracy
SELECT r.model_id, count(*) AS answers,
       avg((g.outcome = 'correct')::INT) AS stored,
       avg((r.outcome = 'correct')::INT) AS regraded,
       count(*) FILTER (g.outcome <> 'correct' AND r.outcome = 'correct') AS read_right,
       count(*) FILTER (g.outcome = 'correct' AND r.outcome <> 'correct') AS read_wrong,
       count(*) FILTER ((g.outcome = 'correct') <> (r.outcome = 'correct')) AS differ
FROM ({rules}) r JOIN verdicts g USING (query_id, model_id, sample)
WHERE g.scorer = 'given' AND r.outcome <> 'error'
GROUP BY r.model_id ORDER BY r.model_id

-- name: duplicates
SELECT d.group_id, count(DISTINCT d.query_id) AS questions,
       count(DISTINCT q."references") AS different_references,
       CASE WHEN different_references > 1 THEN different_references || ' different references'
            ELSE 'labels that contradict' END AS conflict,
       list(DISTINCT d.query_id ORDER BY d.query_id)[:5] AS query_ids
FROM duplicates d JOIN queries q USING (query_id)
GROUP BY d.group_id, d.encoder, d.threshold
HAVING bool_or(d.label_conflict) OR different_references > 1
ORDER BY d.group_id

-- name: scored
-- Stored texts with whether they were scored as right, and whether the question's rule read no
-- answer in them (null where it takes the whole text for one).
CREATE OR REPLACE TEMP TABLE scored AS
SELECT t.query_id, t.model_id, t.sample, t.text, q.task, q."references",
       coalesce(g.outcome = 'correct', l.correct) AS is_right, g.outcome IS NOT NULL AS stored,
       -- Scorers of free text abstain on what they cannot compare: that is no missing answer.
       CASE WHEN r.scorer IN (FROM open_scorers) THEN NULL WHEN r.outcome = 'abstain' THEN true
            WHEN r.outcome <> 'error' AND length(r.extracted) < 0.8 * length(trim(t.text))
            THEN false END AS unread
FROM texts t JOIN queries q USING (query_id)
LEFT JOIN (SELECT * FROM verdicts WHERE scorer = 'given') g
       USING (query_id, model_id, sample)
LEFT JOIN ({rules}) r USING (query_id, model_id, sample)
LEFT JOIN labels l USING (query_id, model_id)
WHERE t.text IS NOT NULL

-- name: vocabulary
SELECT task, list(DISTINCT word) FROM (
    SELECT task, unnest(list_concat("references", choices)) AS word FROM queries)
WHERE length(word) <= 60 GROUP BY task

-- name: short
SELECT DISTINCT text FROM scored WHERE length(text) <= 60

-- name: heads
SELECT DISTINCT query_id, left(text, 80) FROM scored WHERE length(text) > 60

-- name: looked_at
-- Each text beside what its task, its model and its repetitions say of it; `?` are signs that end
-- a sentence.
SELECT s.model_id, s.query_id, s.sample, s.task, s.text, s.is_right AS scored_right, s.unread,
       t.typical, coalesce(e.ends, 0) AS ends,
       coalesce(r.answers, 1) AS answers, coalesce(r.different, 1) AS different
FROM scored s
JOIN (SELECT task, median(length(text)) AS typical FROM scored GROUP BY task) t USING (task)
LEFT JOIN (
    SELECT model_id, avg(list_contains(?, right(rtrim(text, E' \n\t\r'), 1))::INT) AS ends
    FROM scored WHERE length(text) > 60 GROUP BY model_id
) e USING (model_id)
LEFT JOIN (
    SELECT model_id, text, count(DISTINCT query_id) AS answers,
           count(DISTINCT "references") AS different
    FROM scored GROUP BY model_id, text HAVING count(DISTINCT query_id) >= 5
) r USING (model_id, text)
ORDER BY s.model_id, s.query_id, s.sample

-- name: readable
SELECT s.model_id, count(*) AS answers, count(n.kind) AS stubs, avg(s.is_right::INT) AS accuracy,
       avg(s.is_right::INT) FILTER (n.kind IS NULL OR s.is_right) AS accuracy_readable
FROM scored s LEFT JOIN no_answers n USING (query_id, model_id, sample)
GROUP BY s.model_id ORDER BY s.model_id

-- name: both_ways
-- The same words under the same question and references, whoever said them; a duplicate row
-- of a file is the case where the query differs.
SELECT min(s.query_id) AS query_id, any_value(trim(s.text))[:200] AS text,
       count(*) AS answers, count(*) FILTER (s.is_right) AS marked_right,
       count(DISTINCT s.query_id) AS queries,
       list(DISTINCT s.model_id ORDER BY s.model_id)[:5] AS models
FROM scored s JOIN queries q USING (query_id)
WHERE s.stored
GROUP BY q.question, q."references", md5(trim(s.text))
HAVING bool_or(s.is_right) AND NOT bool_and(s.is_right)
ORDER BY query_id, text

-- name: intervals
WITH judged AS (
    SELECT *, score IS NULL
              OR (contested AND NOT starts_with(coalesce(decided_by, ''), 'human:'))
              OR (query_id IN (SELECT query_id FROM suspects)
                  AND NOT starts_with(coalesce(decided_by, ''), 'human:')) AS doubt
    FROM labels
    -- a failed call says nothing about the model
    WHERE n_samples > 0 OR contested OR decided_by IS NOT NULL
)
SELECT model_id,
       count(*) AS n,
       count(*) FILTER (score IS NULL) AS undecided,
       count(*) FILTER (decided_by = 'unreadable') AS unreadable,
       count(*) FILTER (doubt) AS doubtful,
       avg(score) AS accuracy,
       avg(score) FILTER (decided_by <> 'unreadable') AS accuracy_readable,
       coalesce(sum(score) FILTER (NOT doubt), 0) / count(*) AS low,
       (coalesce(sum(score) FILTER (NOT doubt), 0) + count(*) FILTER (doubt))
           / count(*) AS high
FROM judged GROUP BY model_id ORDER BY model_id

-- name: by_policy
SELECT v.* REPLACE (CASE
    WHEN lowest IS NULL OR score IS NULL OR outcome NOT IN ('correct', 'incorrect')
    THEN outcome WHEN score >= lowest THEN 'correct' ELSE 'incorrect'
    END AS outcome)
FROM verdicts v LEFT JOIN queries USING (query_id) LEFT JOIN limits USING (task)

-- name: doubtful
SELECT query_id, model_id, q.task, l.correct,
       CASE WHEN l.correct THEN 'correct' WHEN l.correct IS NULL THEN 'undecided' ELSE 'incorrect' END
           || coalesce(' by ' || nullif(l.decided_by, ''), '') AS label,
       CASE WHEN query_id IN (SELECT query_id FROM suspects)
            THEN 'suspect reference'
            WHEN l.score IS NULL THEN 'undecided' ELSE 'contested' END AS why
FROM labels l JOIN queries q USING (query_id)
WHERE (l.contested OR l.score IS NULL
       OR query_id IN (SELECT query_id FROM suspects))
  AND NOT EXISTS (
      SELECT 1 FROM verdicts v
      WHERE v.query_id = l.query_id AND v.model_id = l.model_id
        AND starts_with(v.scorer, 'human:'))
  AND NOT (l.score IS NULL AND l.n_samples = 0 AND l.decided_by IS NULL
           AND NOT EXISTS (SELECT 1 FROM verdicts v
               WHERE v.query_id = l.query_id AND v.model_id = l.model_id))
ORDER BY query_id, model_id

-- name: right_answers
SELECT model_id, count(*) FILTER (correct) AS n FROM labels GROUP BY model_id ORDER BY model_id

-- name: queue_texts
SELECT w.place, r.sample, q.prompt AS question,
       array_to_string(q."references", ' | ') AS "references",
       r.text AS output,
       (SELECT string_agg(v.scorer || ': ' || v.outcome
                          || coalesce(' (' || left(v.extracted, 80) || ')', ''), '; '
                          ORDER BY v.scorer)
        FROM verdicts v WHERE (v.query_id, v.model_id, v.sample)
                            = (r.query_id, r.model_id, r.sample)) AS readings,
       (SELECT string_agg(v.scorer || ' ' || v.scorer_version || ': ' || v.outcome
                          || coalesce(' (' || left(v.extracted, 80) || ')', '')
                          || ' - ' || coalesce(left(v.reason, 400), ''), chr(10)
                          ORDER BY v.scorer)
        FROM verdicts v WHERE (v.query_id, v.model_id, v.sample)
                            = (r.query_id, r.model_id, r.sample)) AS reasons,
       (SELECT v.span_start || '-' || v.span_end
        FROM verdicts v WHERE (v.query_id, v.model_id, v.sample)
                            = (r.query_id, r.model_id, r.sample)
          AND v.span_start IS NOT NULL AND v.scorer NOT LIKE 'human:%'
        ORDER BY v.scorer <> q.scorer, v.scorer LIMIT 1) AS span
FROM wanted w JOIN queries q USING (query_id)
JOIN responses r USING (query_id, model_id)
WHERE r.status NOT IN ('error', 'timeout', 'unanswered') ORDER BY w.place, r.sample

-- name: changed_labels
SELECT query_id, model_id, q.task,
       b.score AS score_before, a.score AS score_after,
       b.correct AS correct_before, a.correct AS correct_after,
       b.decided_by AS decided_by_before, a.decided_by AS decided_by_after
FROM before_labels b FULL JOIN after_labels a USING (query_id, model_id)
LEFT JOIN queries q USING (query_id)
WHERE (b.score, b.correct, b.decided_by) IS DISTINCT FROM
      (a.score, a.correct, a.decided_by)
ORDER BY query_id, model_id

-- name: changed_ranks
-- Accuracy and rank of each `{by}` on both sides, where they differ.
WITH ranked AS (
    SELECT {by}, side, avg(score) AS accuracy, count(score) AS labelled,
           rank() OVER (PARTITION BY side ORDER BY round(avg(score), 12) DESC NULLS LAST) AS place
    FROM (SELECT *, 'before' AS side FROM before_labels UNION ALL BY NAME
          SELECT *, 'after' AS side FROM after_labels)
    JOIN queries USING (query_id) GROUP BY side, {by}
)
SELECT {by}, b.accuracy AS accuracy_before, a.accuracy AS accuracy_after,
       b.place AS rank_before, a.place AS rank_after,
       b.labelled AS labelled_before, a.labelled AS labelled_after
FROM (FROM ranked WHERE side = 'before') b FULL JOIN (FROM ranked WHERE side = 'after') a
     USING ({by})
WHERE (b.accuracy, b.place) IS DISTINCT FROM (a.accuracy, a.place)
ORDER BY {by}

-- name: reworded
-- Questions of each source whose prompt is another one than that under which they were stored.
SELECT q.source, count(*) AS n FROM queries q JOIN stored s USING (query_id)
WHERE q.prompt <> s.prompt GROUP BY q.source ORDER BY q.source

-- name: undecided
-- Answers of a model on a task, and those without a label; calls without an answer are left out.
SELECT q.task, l.model_id, any_value(q.scorer) AS scorer, count(*) AS answers,
       count(*) FILTER (l.score IS NULL) AS undecided, undecided / answers AS share
FROM labels l JOIN queries q USING (query_id)
SEMI JOIN (FROM responses ANTI JOIN answerless USING (status)) USING (query_id, model_id)
GROUP BY ALL ORDER BY ALL

-- name: graded
-- Grades beside what the question's own rule reads of the same text; a part of other questions.
SELECT r.task, q.scorer, r.query_id, r.model_id, r.sample, g.outcome AS given,
       r.outcome AS regraded, r.extracted, q."references"[1] AS reference
FROM ({rules}) r JOIN queries q USING (query_id)
JOIN verdicts g USING (query_id, model_id, sample)
WHERE g.scorer = 'given'

-- name: regraded
-- How often grades and rule say what of each task (without `model_id`) and of each model on it;
-- the change of its accuracy with a paired 95 % interval, and whether it surely `moves`.
WITH counted AS (
    SELECT task, model_id, count(*) AS answers,
           string_agg(DISTINCT scorer, ', ' ORDER BY scorer) AS scorer,
           count(*) FILTER (given = 'correct' AND regraded = 'correct') AS "both",
           count(*) FILTER (given = 'correct' AND regraded = 'incorrect') AS "given",
           count(*) FILTER (given = 'incorrect' AND regraded = 'correct') AS "rule",
           count(*) FILTER (given = 'incorrect' AND regraded = 'incorrect') AS "none"
    FROM ({graded}) GROUP BY GROUPING SETS ((task), (task, model_id))
)
SELECT *, "both" + "given" + "rule" + "none" AS n, ("both" + "given") / n AS graded_right,
       ("both" + "rule") / n AS rule_right, ("rule" - "given") / n AS change,
       1.96 * sqrt(greatest(("rule" + "given") / n - change ** 2, 0) / nullif(n - 1, 0)) AS reach,
       change - reach AS low, change + reach AS high,
       answers >= ? AND abs(change) >= ? AND (low > 0 OR high < 0) AS moves
FROM counted WHERE n > 0 ORDER BY task, abs(change) DESC, model_id DESC

-- name: graded_examples
SELECT query_id, given, regraded, left(extracted, 60) AS extracted,
       left(reference, 60) AS reference
FROM ({graded}) WHERE task = ? AND model_id = ? AND given <> regraded
      AND regraded IN ('correct', 'incorrect')
ORDER BY query_id, sample LIMIT 3
