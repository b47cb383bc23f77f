"""Near-duplicates in the health report: by source, across splits, with conflicting labels."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from routeyard.schemas.stored import register

_MEMBERS = """
    SELECT group_id, query_id, source, coalesce(label_conflict, false) AS conflict
    FROM duplicates LEFT JOIN queries USING (query_id)"""
_BY_SOURCE = f"""
    WITH members AS ({_MEMBERS}),
    groups AS (SELECT group_id, bool_or(conflict) AS clash, count(DISTINCT source) AS sources
               FROM members GROUP BY ALL),
    counts AS (SELECT source, count(*) AS in_groups,
                      count(DISTINCT group_id) FILTER (sources > 1) AS across,
                      count(DISTINCT group_id) FILTER (clash) AS clashes
               FROM members JOIN groups USING (group_id) GROUP BY ALL)
    SELECT source, queries, coalesce(in_groups, 0) AS in_groups,
           coalesce(across, 0) AS groups_across_sources,
           coalesce(clashes, 0) AS groups_with_conflict
    FROM (SELECT source, count(*) AS queries FROM queries GROUP BY ALL)
    LEFT JOIN counts USING (source) ORDER BY source"""
#: Members that curation removed are no longer in `queries`.
_REMOVED = f"SELECT count(*) FROM ({_MEMBERS}) WHERE source IS NULL"
_ACROSS_SPLITS = """
    WITH groups AS (SELECT scheme, group_id, count(DISTINCT split) AS splits
                    FROM splits JOIN duplicates USING (query_id) GROUP BY ALL),
    counts AS (SELECT scheme, count_if(splits > 1)::BIGINT AS straddling FROM groups GROUP BY ALL)
    SELECT scheme, queries, coalesce(straddling, 0) AS groups_straddling
    FROM (SELECT scheme, count(DISTINCT query_id) AS queries FROM splits GROUP BY ALL)
    LEFT JOIN counts USING (scheme) ORDER BY scheme"""
_CONFLICTING = "SELECT count(DISTINCT group_id) FROM duplicates WHERE label_conflict"


def duplicate_tables(
    tables: Mapping[str, pa.Table], duplicates: pa.Table
) -> tuple[dict[str, pa.Table], int]:
    """Report tables of near-duplicates by name, and the number of groups whose labels conflict."""
    import duckdb

    with duckdb.connect() as connection:
        register(connection, "queries", tables["queries"])
        register(connection, "duplicates", duplicates)
        found = {"duplicates_by_source": connection.sql(_BY_SOURCE).to_arrow_table()}
        ((removed,),) = connection.execute(_REMOVED).fetchall()
        ((conflicting,),) = connection.execute(_CONFLICTING).fetchall()
        if "splits" in tables:
            register(connection, "splits", tables["splits"])
            across = connection.sql(_ACROSS_SPLITS).to_arrow_table()
            found["duplicates_across_splits"] = across
    about = {"removed_members": str(removed)}
    found["duplicates_by_source"] = found["duplicates_by_source"].replace_schema_metadata(about)
    return found, conflicting
