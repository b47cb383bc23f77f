"""Reads logs of any listed format into the table `steps`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.ingest.importers import reading
from routeyard.pipelines.ingest.logs.rows import LoggedCall, format_of, formats, row_of, unread_keys
from routeyard.pipelines.io import files
from routeyard.pipelines.trajectories.chains import Chains
from routeyard.schemas import STEPS

_FILES = ("**/*.jsonl", "**/*.json", "**/*.csv", "**/*.parquet", "**/*.ndjson", "**/*.jsonl.gz")
#: Rows of a table between two turns into Arrow: rows as Python objects are large.
_TOGETHER = 20_000
#: Keys that were not read which a doubt names.
_SHOWN = 30


@dataclass
class Log:
    """A log as steps, and what of it was not taken or not known.

    Attributes:
        formats: Format → number of its records.
        left_out: Reason → number of records that were not taken.
        doubts: What a reader must know, one sentence each.
        unread: Keys of records that hold something, and that their format does not read.
        prompts: What the user asked first in the call of each step; None where it is not kept.
    """

    steps: pa.Table
    prompts: list[str | None] = field(default_factory=list)
    formats: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    doubts: list[str] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)


def read_log(path: Path, *, session: str | None = None, prompts: bool = False) -> Log:
    """The calls of a log, a file or a folder of files, in order of session and time.

    Args:
        session: Path of the key that names the trajectory of a call, such as
            `metadata.session_id`, where the format has none.
        prompts: Keep what users asked, for a router that reads it.

    Raises:
        SourceError: no record is of a listed format, or a value is not of its kind.
    """
    log = Log(STEPS.empty())
    chains = Chains()
    parts: list[pa.Table] = []
    rows: list[dict[str, Any]] = []
    for where, record in _records(path):
        name = format_of(record)
        if name is None:
            log.left_out["records of no listed format"] += 1
            continue
        log.formats[name] += 1
        log.unread.update(key for key in unread_keys(name, tuple(record)) if record[key])
        rows.append(row_of(LoggedCall(record, name, where), session, chains, prompts=prompts))
        if len(rows) == _TOGETHER:
            parts.append(_table(rows))
            rows = []
    parts += [_table(rows)] if rows else []
    if not parts:
        raise SourceError(
            "no record is of a listed format",
            where=str(path),
            next_step="listed: " + "; ".join(f"{n}: {f['title']}" for n, f in formats().items()),
        )
    log.steps = _numbered(pa.concat_tables(parts), log)
    if unread := sorted(log.unread - {(session or "").partition(".")[0]}):
        more = f" and {len(unread) - _SHOWN:,} more" if len(unread) > _SHOWN else ""
        log.doubts.append(f"keys that were not read: {', '.join(unread[:_SHOWN])}{more}")
    if batch := log.formats["batch"]:
        log.doubts.append(
            f"{batch:,} calls are of a batch, which most providers bill at half the price: list "
            "prices are those of single calls, so state a batch's own"
        )
    return log


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    paths = reading.found_files(path, _FILES, "calls as JSON lines, JSON, CSV or Parquet")
    for one in paths:
        for number, record in enumerate(_rows_of(one)):
            yield f"{one.name}, record {number}", record


def _rows_of(path: Path) -> Iterable[dict[str, Any]]:
    """Records of a file: lines, a list, one record, or a list below `data`."""
    if path.suffix not in (".json", ".ndjson"):
        return files.rows(path)
    if path.suffix == ".ndjson":
        return files.rows(path, "jsonl")
    try:
        content = reading.load_json(path)
    except SourceError:  # JSON lines under the name of a document
        return files.rows(path, "jsonl")
    if isinstance(content, dict):
        inner = content.get("data", content.get("logs"))
        content = inner if isinstance(inner, list) else [content]
    return [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []


#: Columns of a row while a log is read: those of `steps`, any of them unknown, and three more.
_SCHEMA = pa.schema(
    [field.with_nullable(True) for field in STEPS.schema]
    + [pa.field(name, pa.string()) for name in ("_parent_hash", "_session", "_prompt")]
    + [pa.field("_alone", pa.bool_())]
)


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table(
        {f.name: pa.array([row.get(f.name) for row in rows], f.type) for f in _SCHEMA}, _SCHEMA
    )


def _numbered(table: pa.Table, log: Log) -> pa.Table:
    """Steps numbered by time within their trajectory, with the parents that prefixes tell."""
    import duckdb

    names = ["query_id", "sample", "_session", "step", "parent", "requested_at", "prefix_hash",
             "_parent_hash", "_alone"]  # fmt: skip
    calls = table.select(names).append_column("place", pa.array(range(table.num_rows), pa.int64()))
    with duckdb.connect() as connection:
        connection.register("calls", calls)
        rows, known, alone, distinct = connection.execute(
            "SELECT count(*), count(step), count(*) FILTER (_alone), "
            "count(DISTINCT (query_id, _session, sample, step)) FILTER (step IS NOT NULL) "
            "FROM calls"
        ).fetchall()[0]
        if alone:
            log.doubts.append(
                f"{alone:,} of {rows:,} calls name no session: each is taken as a separate task, "
                "so that prompt caches and intervals by task are unknown"
            )
        if known and distinct < known:
            log.doubts.append(f"{known - distinct:,} steps repeat a number: all are numbered anew")
        order = "step, " if known == rows == distinct else ""
        sql = Path(__file__).with_name("number.sql").read_text(encoding="utf-8")
        numbers = connection.sql(sql.replace("{order}", order)).to_arrow_table()
    del calls
    if table.column("_prompt").null_count < table.num_rows:
        log.prompts = table.column("_prompt").take(numbers.column("place")).to_pylist()
    kept = [name for name in STEPS.column_names if name not in numbers.column_names]
    table = table.select(kept).take(numbers.column("place"))
    for name in ("sample", "step", "parent"):
        table = table.append_column(name, numbers.column(name))
    return STEPS.check(table, where="the log")
