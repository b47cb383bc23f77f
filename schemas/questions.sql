-- Which questions of a test split are in the train split too. Tables: `questions` (query_id, mark of
-- its words, withheld), `splits`, and `linked`: the group of near-duplicates that a question is in.

-- name: leaks
WITH asked AS (
  SELECT
    scheme, split, coalesce(withheld AND split IN ('test', 'train'), false) AS unknown,
    bool_or(split = 'train') OVER (PARTITION BY scheme, mark) AS same_words,
    named IS NOT NULL AND bool_or(split = 'train') OVER (PARTITION BY scheme, named) AS same_group
  FROM splits JOIN questions USING (query_id) LEFT JOIN linked USING (query_id)
)
SELECT
  scheme,
  count(*) FILTER (split = 'test') AS test,
  CASE WHEN NOT bool_or(unknown) THEN count(*) FILTER (split = 'test' AND same_words) END AS verbatim,
  CASE WHEN $looked THEN count(*) FILTER (split = 'test' AND same_group) END AS near_duplicates
FROM asked
GROUP BY scheme
ORDER BY scheme
