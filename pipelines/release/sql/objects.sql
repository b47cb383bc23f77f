-- What a database can hold, as DuckDB lists it: kind of object -> what is compared of it.

-- name: table
SELECT schema_name, table_name, sql, comment, tags
FROM duckdb_tables()

-- name: view
SELECT schema_name, view_name, sql, comment, tags
FROM duckdb_views()

-- name: column
SELECT schema_name, table_name || '.' || column_name,
       concat_ws(' ', column_index, data_type, is_nullable, column_default),
       comment, tags
FROM duckdb_columns()

-- name: macro
SELECT schema_name, function_name, macro_definition, comment, tags
FROM duckdb_functions()

-- name: type
SELECT schema_name, type_name, logical_type, comment, tags
FROM duckdb_types()

-- name: sequence
SELECT schema_name, sequence_name, sql, comment, tags
FROM duckdb_sequences()

-- name: index
SELECT schema_name, index_name, sql, comment, tags
FROM duckdb_indexes()

-- name: schema
SELECT schema_name, schema_name, sql, comment, tags
FROM duckdb_schemas()

-- name: constraint
SELECT schema_name, table_name, constraint_text, NULL, NULL
FROM duckdb_constraints()
