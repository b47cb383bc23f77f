"""What changed between two releases: queries, models, labels and by whom, costs, ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.sql import Runner, quoted, runner
from routeyard.pipelines.release.manifest import existing, read_manifest, yanked
from routeyard.pipelines.release.storage import sealed
from routeyard.schemas import StoredTable
from routeyard.schemas.release import Manifest
from routeyard.schemas.text import markdown

#: Differences found one model at a time: rows of other models are skipped.
_BY_MODEL = frozenset({"labels", "deciders", "costs"})
_SQL = Path(__file__).with_name("differences.sql")


@dataclass(frozen=True, slots=True)
class Diff:
    """Differences by name; a table without rows means nothing changed there."""

    before: str
    after: str
    tables: Mapping[str, pa.Table]

    @property
    def empty(self) -> bool:
        return not any(table.num_rows for table in self.tables.values())

    def counts(self) -> dict[str, dict[str, int]]:
        """Name → kind of change → rows."""
        out: dict[str, dict[str, int]] = {}
        for name, table in self.tables.items():
            if not table.num_rows:
                continue
            changes = "change" in table.column_names
            kinds = table.column("change").to_pylist() if changes else ["changed"] * len(table)
            out[name] = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
        return out


def diff_releases(before: Path, after: Path) -> Diff:
    """Compare two releases row by row, labels one model at a time.

    Raises:
        SourceError: one of them is no release, or cannot be read.
    """
    import duckdb

    manifests = {"a": read_manifest(before), "b": read_manifest(after)}
    folders = {"a": before, "b": after}
    result: dict[str, pa.Table] = {}
    with runner(_SQL, threads=2) as run:
        for name, sql in run.statements.items():
            table = re.findall(r"\ba_(\w+)", sql)[0]
            if not all(table in manifest.tables for manifest in manifests.values()):
                continue
            for side, manifest in manifests.items():
                # A stranger's manifest may name any file of ours.
                file = manifest.tables[table].file
                path = sealed(folders[side], file, manifest.files.get(file))
                try:
                    run.give(**{f"{side}_{table}": StoredTable(path)})
                except duckdb.Error as error:
                    raise SourceError(
                        f"{path.name} cannot be read: {str(error).splitlines()[0]}",
                        where=str(path),
                        next_step="run `routeyard verify` on that release",
                    ) from error
            result[name] = _difference(run, name, table)
    result["certificate"] = _certificates(manifests["a"], manifests["b"])
    names = {side: f"{m.name} {m.version}" for side, m in manifests.items()}
    return Diff(names["a"], names["b"], result)


def _certificates(before: Manifest, after: Manifest) -> pa.Table:
    """Verdict, best model and figures that differ, in the words of the certificates."""
    sides = []
    for manifest in (before, after):
        fields = _fields(_fields(manifest.figures.get("certify")).get("certificate"))
        values = {name: fields.get(name) for name in ("verdict", "best_single", "measure")}
        figures = _fields(fields.get("figures"))
        values |= {f"figures.{name}": _fields(item).get("value") for name, item in figures.items()}
        sides.append({name: _shown(value) for name, value in values.items()})
    old, new = sides
    rows = [
        {"figure": name, "before": old.get(name), "after": new.get(name)}
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    ]
    columns = [(name, pa.string()) for name in ("figure", "before", "after")]
    return pa.Table.from_pylist(rows, schema=pa.schema(columns))


def _fields(value: Any) -> Mapping[str, Any]:
    """What a stranger's manifest may hold as anything else."""
    return value if isinstance(value, dict) else {}


def _shown(value: Any) -> str | None:
    if value is None:
        return None
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def write_diff(diff: Diff, folder: Path) -> list[Path]:
    """One Parquet file per difference that has rows; returns their paths."""
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, table in diff.tables.items():
        if table.num_rows:
            path = folder / f"{name}.parquet"
            pq.write_table(table, path, compression="zstd")
            paths.append(path)
    return paths


def _difference(run: Runner, name: str, table: str) -> pa.Table:
    if name not in _BY_MODEL:
        return run.connection.sql(
            f"SELECT * FROM ({run.statements[name]}\n) ORDER BY ALL"
        ).to_arrow_table()
    parts = list(_by_model(run.connection, table, run.statements[name]))
    run.give(differences=pa.concat_tables(parts))
    return run.connection.sql("FROM differences ORDER BY ALL").to_arrow_table()


def _by_model(connection: Any, table: str, sql: str) -> Iterator[pa.Table]:
    """The difference of each model's rows; of no model first, for the columns."""
    both = f"SELECT model_id FROM a_{table} UNION SELECT model_id FROM b_{table} ORDER BY ALL"
    models = [model for (model,) in connection.execute(both).fetchall()]
    for where in ["false", *(f"model_id = {quoted(model)}" for model in models)]:
        part = sql
        for side in "ab":
            rows = f"(FROM {side}_{table} WHERE {where}) {side}"
            part = part.replace(f"{side}_{table} {side}", rows)
        yield connection.sql(part).to_arrow_table()


# The changelog of a benchmark, from the differences between its versions.

_SHOWN = 5


def changelog(benchmark: Path) -> str:
    """Markdown over all versions under `releases/<name>/`, newest first.

    Raises:
        SourceError: there is no version.
    """
    versions = [".".join(map(str, version)) for version in existing(benchmark)]
    if not versions:
        raise SourceError(
            f"{benchmark} holds no version of a benchmark",
            where=str(benchmark),
            next_step="give the folder releases/<name>",
        )
    parts = []
    for number, version in enumerate(versions):
        folder = benchmark / version
        manifest = read_manifest(folder)
        lines = [f"## {version}", ""]
        if note := yanked(folder):
            instead = f" Use {markdown(note.use_instead)}." if note.use_instead else ""
            lines += [f"**Yanked:** {markdown(note.reason)}.{instead}", ""]
        if number == 0:
            rows = {name: entry.rows for name, entry in manifest.tables.items()}
            lines.append(
                f"- First version: {rows['queries']:,} queries, {rows['models']:,} models, "
                f"{rows['labels']:,} labels."
            )
        else:
            lines += described(diff_releases(benchmark / versions[number - 1], folder))
        parts.append("\n".join(lines))
    title = f"# Changelog of {read_manifest(benchmark / versions[-1]).name}"
    return "\n\n".join([title, *reversed(parts)]) + "\n"


def described(diff: Diff) -> list[str]:
    """A difference as lines of a list; what a reader must know comes first."""
    lines = []
    for name, kinds in diff.counts().items():
        counts = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        lines.append(f"- {name.capitalize()}: {counts}{_examples(diff, name)}.")
    return lines or ["- Only texts of the card or the recipe changed."]


def _examples(diff: Diff, name: str) -> str:
    table = diff.tables[name]
    if name == "labels":
        by: dict[str, int] = {}
        for decider in table.column("decided_by_after").to_pylist():
            by[str(decider)] = by.get(str(decider), 0) + 1
        counts = ", ".join(f"{markdown(k)}: {n:,}" for k, n in sorted(by.items()))
        return f" (decided by {counts})"
    if name in ("models", "prices", "ranks", "costs"):
        models = table.column("model_id").to_pylist()
        more = f" and {len(models) - _SHOWN} more" if len(models) > _SHOWN else ""
        return f" ({', '.join(markdown(str(m)) for m in models[:_SHOWN])}{more})"
    return ""
