-- name: objects
-- A sentence for each object that the database `found` defines and `expected` does not, or
-- otherwise. The same version of the code describes objects in the same words; of each kind
-- overloads of a macro, and rules of a table, are told apart by their order.
WITH listed(database_name, kind, schema_name, name, definition, comment, tags) AS (
    SELECT database_name, 'table', schema_name, table_name, sql, comment, tags
    FROM duckdb_tables() WHERE NOT internal
    UNION ALL SELECT database_name, 'view', schema_name, view_name, sql, comment, tags
    FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT database_name, 'column', schema_name, table_name || '.' || column_name,
                     concat_ws(' ', column_index, data_type, is_nullable, column_default),
                     comment, tags
    FROM duckdb_columns() WHERE NOT internal
    UNION ALL SELECT database_name, 'macro', schema_name, function_name, macro_definition, comment, tags
    FROM duckdb_functions() WHERE NOT internal
    UNION ALL SELECT database_name, 'type', schema_name, type_name, logical_type, comment, tags
    FROM duckdb_types() WHERE NOT internal
    UNION ALL SELECT database_name, 'sequence', schema_name, sequence_name, sql, comment, tags
    FROM duckdb_sequences()
    UNION ALL SELECT database_name, 'index', schema_name, index_name, sql, comment, tags
    FROM duckdb_indexes()
    UNION ALL SELECT database_name, 'schema', schema_name, schema_name, sql, comment, tags
    FROM duckdb_schemas() WHERE NOT internal
    UNION ALL SELECT database_name, 'constraint', schema_name, table_name, constraint_text, NULL, NULL
    FROM duckdb_constraints()
), numbered AS (
    SELECT database_name, kind, schema_name || '.' || name AS shown, definition,
           CASE WHEN $described THEN concat_ws(' ', comment, tags::VARCHAR) END AS described,
           row_number() OVER (
               PARTITION BY database_name, kind, shown ORDER BY definition, comment, tags::VARCHAR
           ) AS nth
    FROM listed WHERE NOT list_contains($left_out, name)
)
SELECT CASE
    WHEN e.database_name IS NULL THEN format('holds a {} ''{}'' that no release has', kind, shown[:100])
    WHEN f.database_name IS NULL THEN format('lacks its {} ''{}''', kind, shown)
    ELSE format('its {} ''{}'' is not what a release defines', kind, shown[:100])
END
FROM (FROM numbered WHERE database_name = 'found') f
FULL JOIN (FROM numbered WHERE database_name = 'expected') e USING (kind, shown, nth)
WHERE f.database_name IS NULL OR e.database_name IS NULL
      OR f.definition IS DISTINCT FROM e.definition OR f.described IS DISTINCT FROM e.described
ORDER BY kind, shown, nth
