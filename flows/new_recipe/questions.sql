-- Questions of answers in their normal form. `answers` holds the id of each answer's question and what it states.

-- name: questions
-- Of several values that answers state of a question the one that most of them have counts, then the first in order.
WITH stated AS (
    SELECT id, unnest([{'field': 'suite', 'value': suite}, {'field': 'prompt', 'value': prompt},
                       {'field': 'reference', 'value': reference}, {'field': 'split', 'value': split}],
                      recursive := true)
    FROM answers
), ranked AS (
    SELECT id, field, value, count(*) OVER own > 1 AS several,
           row_number() OVER (own ORDER BY count(*) DESC, value) = 1 AS best
    FROM stated WHERE value <> '' GROUP BY id, field, value WINDOW own AS (PARTITION BY id, field)
)
SELECT id, coalesce(max(value) FILTER (best AND field = 'prompt'), id) AS question,
       coalesce(list(value) FILTER (best AND field = 'reference'), []) AS "references",
       max(value) FILTER (best AND field = 'suite') AS task, max(value) FILTER (best AND field = 'split') AS split,
       coalesce(bool_or(several) FILTER (field = 'prompt'), false) AS several_prompt,
       coalesce(bool_or(several) FILTER (field = 'reference'), false) AS several_reference
FROM (SELECT DISTINCT id FROM answers) LEFT JOIN ranked USING (id) GROUP BY id ORDER BY id
