-- Names of the rows in a release's files, beside each table under the name of its contract and the summaries. Names that
-- begin with `numbered_` are in the schema `numbered`; `query_no` and `model_no` are the numbers of rows from 0.

-- name: labels_wide
FROM read_parquet('data/labels_wide.parquet')

-- name: outcomes_by_split
FROM read_parquet('data/outcomes', filename = true)

-- name: numbered_queries
SELECT file_row_number::INTEGER AS query_no, * EXCLUDE (file_row_number)
FROM read_parquet('data/queries.parquet', file_row_number = true)

-- name: numbered_models
SELECT file_row_number::SMALLINT AS model_no, * EXCLUDE (file_row_number)
FROM read_parquet('data/models.parquet', file_row_number = true)

-- name: numbered_labels
SELECT query_no, model_no, score, correct, decided_by, contested, n_samples
FROM read_parquet('data/outcomes.parquet') WHERE n_samples IS NOT NULL

-- name: numbered_splits
SELECT scheme, query_no, split FROM read_parquet('data/splits.parquet')
JOIN (SELECT file_row_number::INTEGER AS query_no, query_id
      FROM read_parquet('data/queries.parquet', file_row_number = true)) USING (query_id)
