"""What changed between two releases: queries, models, labels and by whom, costs, ranks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.errors import SourceError
from pipelines.io.untrusted import literal
from pipelines.release.manifest import read_manifest
from pipelines.release.sealed_files import sealed
from schemas.manifest import Manifest

#: name of the difference → (tables it needs, SQL over `a.<table>` and `b.<table>`).
_DIFFERENCES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "queries": (
        ("queries",),
        """SELECT coalesce(a.query_id, b.query_id) AS query_id,
                  CASE WHEN a.query_id IS NULL THEN 'added' WHEN b.query_id IS NULL THEN 'removed'
                       ELSE 'changed' END AS change,
                  coalesce(b.task, a.task) AS task,
                  left(coalesce(b.question, a.question), 80) AS question
           FROM a_queries a FULL JOIN b_queries b USING (query_id)
           WHERE a.query_id IS NULL OR b.query_id IS NULL OR a IS DISTINCT FROM b""",
    ),
    "models": (
        ("models",),
        """SELECT coalesce(a.model_id, b.model_id) AS model_id,
                  CASE WHEN a.model_id IS NULL THEN 'added' WHEN b.model_id IS NULL THEN 'removed'
                       ELSE 'changed' END AS change
           FROM a_models a FULL JOIN b_models b USING (model_id)
           WHERE a.model_id IS NULL OR b.model_id IS NULL OR a IS DISTINCT FROM b""",
    ),
    "prices": (
        ("models",),
        """SELECT model_id, a.price_in AS price_in_before, b.price_in AS price_in_after,
                  a.price_out AS price_out_before, b.price_out AS price_out_after,
                  a.price_date AS date_before, b.price_date AS date_after
           FROM a_models a JOIN b_models b USING (model_id)
           WHERE a.price_in IS DISTINCT FROM b.price_in
              OR a.price_out IS DISTINCT FROM b.price_out""",
    ),
    "labels": (
        ("labels",),
        """SELECT coalesce(a.query_id, b.query_id) AS query_id,
                  coalesce(a.model_id, b.model_id) AS model_id,
                  CASE WHEN a.score IS NULL THEN 'appeared' WHEN b.score IS NULL THEN 'vanished'
                       WHEN a.correct <> b.correct THEN 'flipped' ELSE 'rescored' END AS change,
                  a.score AS score_before, b.score AS score_after,
                  a.decided_by AS decided_by_before, b.decided_by AS decided_by_after
           FROM a_labels a FULL JOIN b_labels b
             ON a.query_id = b.query_id AND a.model_id = b.model_id
           WHERE a.score IS DISTINCT FROM b.score OR a.correct IS DISTINCT FROM b.correct""",
    ),
    # One row a model: of the pairs that both hold, whose costs or tokens differ, and what they
    # come to. Prices say why only where they are the reason.
    "costs": (
        ("outcomes",),
        """SELECT a.model_id, count_if(a.cost_usd IS DISTINCT FROM b.cost_usd) AS costs_changed,
                  count_if((a.prompt_tokens, a.completion_tokens) IS DISTINCT FROM
                           (b.prompt_tokens, b.completion_tokens)) AS tokens_changed,
                  count(*) AS pairs,
                  count(a.cost_usd) AS known_before, count(b.cost_usd) AS known_after,
                  round(sum(a.cost_usd), 9) AS usd_before, round(sum(b.cost_usd), 9) AS usd_after
           FROM a_outcomes a JOIN b_outcomes b
             ON a.query_id = b.query_id AND a.model_id = b.model_id
           GROUP BY a.model_id HAVING costs_changed > 0 OR tokens_changed > 0""",
    ),
    "deciders": (
        ("labels",),
        """SELECT query_id, model_id, a.decided_by AS decided_by_before,
                  b.decided_by AS decided_by_after,
                  a.contested AS contested_before, b.contested AS contested_after
           FROM a_labels a JOIN b_labels b USING (query_id, model_id)
           WHERE a.score IS NOT DISTINCT FROM b.score
             AND (a.decided_by IS DISTINCT FROM b.decided_by OR a.contested <> b.contested)""",
    ),
    # Verdicts are never overwritten: of each scorer the newest on either side is compared.
    "verdicts": (
        ("verdicts",),
        """WITH other AS (
               SELECT DISTINCT query_id, model_id, sample, scorer
               FROM a_verdicts a FULL JOIN b_verdicts b
                 USING (query_id, model_id, sample, scorer, scorer_version)
               WHERE a.outcome IS NULL OR b.outcome IS NULL
                  OR (a.outcome, a.score, a.extracted, a.reason)
                     IS DISTINCT FROM (b.outcome, b.score, b.extracted, b.reason)
           ), sides AS (
               SELECT 'a' AS side, * FROM a_verdicts SEMI JOIN other
                 USING (query_id, model_id, sample, scorer)
               UNION ALL SELECT 'b', * FROM b_verdicts SEMI JOIN other
                 USING (query_id, model_id, sample, scorer)
           ), newest AS (
               SELECT * FROM sides QUALIFY row_number() OVER (
                   PARTITION BY side, query_id, model_id, sample, scorer
                   ORDER BY list_transform(regexp_extract_all(scorer_version, '[0-9]{1,18}'),
                                           lambda part: part::BIGINT) DESC,
                            scorer_version DESC) = 1
           )
           SELECT query_id, model_id, sample, scorer,
                  CASE WHEN a.outcome IS NULL THEN 'filed' WHEN b.outcome IS NULL THEN 'withdrawn'
                       WHEN a.outcome <> b.outcome THEN 'other outcome'
                       WHEN a.score IS DISTINCT FROM b.score THEN 'rescored'
                       WHEN a.extracted IS DISTINCT FROM b.extracted THEN 'read otherwise'
                       ELSE 'same outcome' END AS change,
                  a.outcome AS outcome_before, b.outcome AS outcome_after,
                  a.score AS score_before, b.score AS score_after,
                  a.extracted AS extracted_before, b.extracted AS extracted_after,
                  a.scorer_version AS version_before, b.scorer_version AS version_after,
                  a.reason AS reason_before, b.reason AS reason_after
           FROM (FROM newest WHERE side = 'a') a FULL JOIN (FROM newest WHERE side = 'b') b
             USING (query_id, model_id, sample, scorer)""",
    ),
    "ranks": (
        ("labels",),
        """WITH ranked AS (
               SELECT side, model_id, avg(score) AS accuracy,
                      rank() OVER (PARTITION BY side ORDER BY avg(score) DESC) AS place
               FROM (SELECT 'a' AS side, * FROM a_labels UNION ALL SELECT 'b', * FROM b_labels)
               WHERE score IS NOT NULL GROUP BY side, model_id)
           SELECT model_id, a.place AS rank_before, b.place AS rank_after,
                  a.accuracy AS accuracy_before, b.accuracy AS accuracy_after
           FROM (FROM ranked WHERE side = 'a') a FULL JOIN (FROM ranked WHERE side = 'b') b
             USING (model_id)
           WHERE a.place IS DISTINCT FROM b.place""",
    ),
    "splits": (
        ("splits",),
        """SELECT coalesce(a.scheme, b.scheme) AS scheme,
                  coalesce(a.query_id, b.query_id) AS query_id,
                  a.split AS split_before, b.split AS split_after
           FROM a_splits a FULL JOIN b_splits b
             ON a.scheme = b.scheme AND a.query_id = b.query_id
           WHERE a.split IS DISTINCT FROM b.split""",
    ),
}


#: Differences of labels and outcomes: found one model at a time, rows of others are skipped.
_BY_MODEL = {"labels": "labels", "deciders": "labels", "costs": "outcomes"}
#: What the comparison holds in memory; larger joins go to the disk.
_MEMORY = "2GB"


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
            kinds = (
                table.column("change").to_pylist()
                if "change" in table.column_names
                else ["changed"] * table.num_rows
            )
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
    found: dict[str, pa.Table] = {}
    with (
        tempfile.TemporaryDirectory(prefix="routeyard-diff-") as spill,
        duckdb.connect() as connection,
    ):
        connection.execute(f"SET memory_limit = '{_MEMORY}'")
        connection.execute("SET temp_directory = ?", [spill])
        held = {side: set(manifest.tables) for side, manifest in manifests.items()}
        for side, manifest in manifests.items():
            for name in {need for needs, _ in _DIFFERENCES.values() for need in needs}:
                if name in held[side]:
                    # A stranger's manifest may name any file of ours.
                    file = manifest.tables[name].file
                    path = sealed(folders[side], file, manifest.files.get(file))
                    _view(connection, f"{side}_{name}", path)
        for name, (needs, sql) in _DIFFERENCES.items():
            if all(need in held["a"] and need in held["b"] for need in needs):
                found[name] = _difference(connection, name, sql)
    found["certificate"] = _certificates(manifests["a"], manifests["b"])
    names = {side: f"{m.name} {m.version}" for side, m in manifests.items()}
    return Diff(names["a"], names["b"], found)


def _certificates(before: Manifest, after: Manifest) -> pa.Table:
    """Verdict, best model and figures that differ, in the words of the certificates."""
    sides = []
    for manifest in (before, after):
        found = _fields(_fields(manifest.figures.get("certify")).get("certificate"))
        values = {name: found.get(name) for name in ("verdict", "best_single", "measure")}
        figures = _fields(found.get("figures"))
        values |= {f"figures.{name}": _fields(one).get("value") for name, one in figures.items()}
        sides.append({name: _shown(value) for name, value in values.items()})
    one, two = sides
    rows = [
        {"figure": name, "before": one.get(name), "after": two.get(name)}
        for name in dict.fromkeys([*one, *two])
        if one.get(name) != two.get(name)
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


def _difference(connection: Any, name: str, sql: str) -> pa.Table:
    if name not in _BY_MODEL:
        return connection.sql(f"SELECT * FROM ({sql}) ORDER BY ALL").to_arrow_table()
    parts = list(_by_model(connection, _BY_MODEL[name], sql))
    connection.register("differences", pa.concat_tables(parts))
    return connection.sql("SELECT * FROM differences ORDER BY ALL").to_arrow_table()


def _by_model(connection: Any, table: str, sql: str) -> Iterator[pa.Table]:
    """The difference of each model's rows; of no model first, for the columns."""
    both = f"SELECT model_id FROM a_{table} UNION SELECT model_id FROM b_{table} ORDER BY ALL"
    models = [model for (model,) in connection.execute(both).fetchall()]
    for where in ["false", *(f"model_id = {_quoted(model)}" for model in models)]:
        part = sql
        for side in "ab":
            rows = f"(FROM {side}_{table} WHERE {where}) {side}"
            part = part.replace(f"{side}_{table} {side}", rows)
        yield connection.sql(part).to_arrow_table()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _view(connection: Any, name: str, path: Path) -> None:
    import duckdb

    try:
        # Labels stay on disk; a name with a star in it means that file and no other.
        connection.from_parquet(literal(str(path))).create_view(name)
    except duckdb.Error as error:
        raise SourceError(
            f"{path.name} cannot be read: {str(error).splitlines()[0]}",
            where=str(path),
            next_step="run `routeyard verify` on that release",
        ) from error
