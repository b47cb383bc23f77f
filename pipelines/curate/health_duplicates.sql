-- Near-duplicates over `queries`, `duplicates` and, in the last, `splits`.

-- name: members
-- Those that curation removed are no longer in `queries`: their source is null.
SELECT group_id, query_id, source, coalesce(label_conflict, false) AS conflict
FROM duplicates LEFT JOIN queries USING (query_id)

-- name: by_source
WITH groups AS (SELECT group_id, bool_or(conflict) AS clash, count(DISTINCT source) AS sources
                FROM members GROUP BY ALL),
counts AS (SELECT source, count(*) AS in_groups,
                  count(DISTINCT group_id) FILTER (sources > 1) AS across,
                  count(DISTINCT group_id) FILTER (clash) AS clashes
           FROM members JOIN groups USING (group_id) GROUP BY ALL)
SELECT source, queries, coalesce(in_groups, 0) AS in_groups,
       coalesce(across, 0) AS groups_across_sources,
       coalesce(clashes, 0) AS groups_with_conflict
FROM (SELECT source, count(*) AS queries FROM queries GROUP BY ALL)
LEFT JOIN counts USING (source) ORDER BY source

-- name: single
SELECT (SELECT count(*) FROM members WHERE source IS NULL),
       (SELECT count(DISTINCT group_id) FROM duplicates WHERE label_conflict)

-- name: across_splits
WITH groups AS (SELECT scheme, group_id, count(DISTINCT split) AS splits
                FROM splits JOIN duplicates USING (query_id) GROUP BY ALL),
counts AS (SELECT scheme, count_if(splits > 1)::BIGINT AS straddling FROM groups GROUP BY ALL)
SELECT scheme, queries, coalesce(straddling, 0) AS groups_straddling
FROM (SELECT scheme, count(DISTINCT query_id) AS queries FROM splits GROUP BY ALL)
LEFT JOIN counts USING (scheme) ORDER BY scheme
