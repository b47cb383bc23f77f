"""`routeyard diff`: what changed between two releases."""

from __future__ import annotations

from routeyard.flows.cli.options import OptionalWrittenPath
from routeyard.flows.cli.results import Output


def command(
    before: str,
    after: str,
    out: OptionalWrittenPath = None,
    rows: int = 20,
) -> Output:
    """List queries, models, labels and by whom, prices, costs, ranks and figures that differ.

    routeyard diff yard/releases/demo/1.0.0 yard/releases/demo/1.1.0

    routeyard diff A B --out changes

    Args:
        before: Older release, folder or URL.
        after: Newer release, folder or URL.
        out: Write every row as Parquet there.
        rows: Rows to print per difference.
    """
    from routeyard.flows.console import line
    from routeyard.pipelines.release.diff import diff_releases, write_diff
    from routeyard.pipelines.release.query.answers import to_text
    from routeyard.pipelines.release.storage import local_copy

    with local_copy(before) as one, local_copy(after) as two:
        found = diff_releases(one, two)
    if (one_name := found.before.rpartition(" ")[0]) != (other := found.after.rpartition(" ")[0]):
        line("note", f"{one_name} and {other} are two benchmarks, not two versions of one")
    files = [] if out is None else list(write_diff(found, out))
    counts = found.counts()
    lines = [f"{found.before} and {found.after} hold the same"] if found.empty else []
    for name, table in found.tables.items():
        if table.num_rows:
            lines.append(
                f"{name}: {', '.join(f'{n:,} {kind}' for kind, n in counts[name].items())}"
            )
            lines.append(to_text(table.slice(0, rows), "table"))
            if (more := table.num_rows - rows) > 0:
                lines.append(f"… and {more:,} more rows of {name} (--rows N, --out DIR or --json)")
    data: dict[str, object] = {"before": found.before, "after": found.after, "same": found.empty}
    data |= {"counts": counts, "tables": found.tables, "files": files}
    return Output(data, [*lines, *map(str, files)])
