-- Views over tables inside the database; missing labels stay missing (avg and count skip nulls).

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
