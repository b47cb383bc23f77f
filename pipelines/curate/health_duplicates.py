"""Near-duplicates in the health report: by source, across splits, with conflicting labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def by_source(tables: Mapping[str, pa.Table], duplicates: pa.Table) -> tuple[pa.Table, pa.Table]:
    queries = tables["queries"]
    source = dict(
        zip(
            queries.column("query_id").to_pylist(),
            queries.column("source").to_pylist(),
            strict=True,
        )
    )
    groups: dict[str, list[str]] = defaultdict(list)
    conflict: dict[str, bool] = {}
    for row in duplicates.select(["query_id", "group_id", "label_conflict"]).to_pylist():
        groups[row["group_id"]].append(row["query_id"])
        conflict[row["group_id"]] = row["label_conflict"] or conflict.get(row["group_id"], False)
    names = sorted(set(source.values()))
    zero = dict.fromkeys(names, 0)
    inside, across, clash = dict(zero), dict(zero), dict(zero)
    removed = 0
    for group, members in groups.items():
        present = [source[query] for query in members if query in source]
        # Members that curation removed are no longer in `queries`.
        removed += len(members) - len(present)
        for name in present:
            inside[name] += 1
        for name in set(present):
            across[name] += len(set(present)) > 1
            clash[name] += conflict[group]
    total = pc.value_counts(queries.column("source"))
    sizes = {entry["values"]: entry["counts"] for entry in total.to_pylist()}
    found = pa.table(
        {
            "source": pa.array(names, pa.string()),
            "queries": pa.array([sizes[name] for name in names], pa.int64()),
            "in_groups": pa.array([inside[name] for name in names], pa.int64()),
            "groups_across_sources": pa.array([across[name] for name in names], pa.int64()),
            "groups_with_conflict": pa.array([clash[name] for name in names], pa.int64()),
        }
    ).replace_schema_metadata({"removed_members": str(removed)})
    return found, _across_splits(tables.get("splits"), list(groups.values()))


def _across_splits(splits: pa.Table | None, groups: Sequence[Sequence[str]]) -> pa.Table:
    rows: list[dict[str, Any]] = []
    schemes: dict[str, dict[str, str]] = defaultdict(dict)
    for row in [] if splits is None else splits.to_pylist():
        schemes[row["scheme"]][row["query_id"]] = row["split"]
    for scheme in sorted(schemes):
        where = schemes[scheme]
        straddling = sum(
            len({where[query] for query in group if query in where}) > 1 for group in groups
        )
        rows.append({"scheme": scheme, "queries": len(where), "groups_straddling": straddling})
    return pa.Table.from_pylist(
        rows,
        schema=pa.schema(
            [
                ("scheme", pa.string()),
                ("queries", pa.int64()),
                ("groups_straddling", pa.int64()),
            ]
        ),
    )


def conflicting(duplicates: pa.Table) -> int:
    rows = duplicates.filter(duplicates.column("label_conflict"))
    return int(pc.count_distinct(rows.column("group_id")).as_py())
