-- Views over tables inside the database; missing labels stay missing (avg and count skip nulls).
-- At the end, the tables that they are views of, each from the rows of its released table.

-- name: queries
SELECT * EXCLUDE (query_no)
FROM numbered.queries

-- name: models
SELECT * EXCLUDE (model_no)
FROM numbered.models

-- name: labels
SELECT query_id, model_id, score, correct, decided_by, contested, n_samples
FROM numbered.labels
JOIN numbered.queries USING (query_no)
JOIN numbered.models USING (model_no)

-- name: splits
SELECT scheme, query_id, split
FROM numbered.splits
JOIN numbered.queries USING (query_no)

-- name: accuracy
SELECT model_id, task, judged AS n_labelled, total / nullif(judged, 0) AS accuracy
FROM numbered.per_task
JOIN numbered.models USING (model_no) ORDER BY ALL

-- name: numbered_queries
SELECT (row_number() OVER () - 1)::INTEGER AS query_no, * FROM incoming

-- name: numbered_models
SELECT (row_number() OVER () - 1)::SMALLINT AS model_no, * FROM incoming

-- name: numbered_splits
SELECT scheme, query_no, split FROM incoming JOIN numbered.queries USING (query_id)
ORDER BY scheme, query_no

-- Model after model: rising numbers of queries compress to almost nothing.
-- name: numbered_labels
SELECT query_no, model_no, score, correct, decided_by, contested, n_samples
FROM incoming JOIN numbered.queries USING (query_id) JOIN numbered.models USING (model_id)
