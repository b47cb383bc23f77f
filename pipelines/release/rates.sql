-- How probably labelled answers are right, from the kinds that a manifest lists.

-- name: label_kinds
-- One row of each deciding scorer, kind of answer and verdict.
SELECT one->>'scorer' AS decided_by, one->>'verdict' AS verdict, one->>'task' AS task,
       one->>'format' AS format, one->>'length' AS length, one->>'script' AS script,
       (one->>'labels')::BIGINT AS labels, (one->>'p_correct')::DOUBLE AS p_correct
FROM (SELECT unnest($kinds::JSON->'$[*]') AS one)

-- name: label_rates
-- The same for each scorer and label; `p_correct` is null where no kind of them was measured.
SELECT decided_by, verdict = 'correct' AS correct, sum(labels)::BIGINT AS labels,
       coalesce(sum(labels) FILTER (p_correct IS NOT NULL), 0)::BIGINT AS measured,
       sum(labels * p_correct) / sum(labels) FILTER (p_correct IS NOT NULL) AS p_correct
FROM label_kinds WHERE verdict <> 'abstain' GROUP BY ALL ORDER BY ALL
