"""Reads logs of any listed format into the table `steps`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.ingest.importers import reading
from routeyard.pipelines.ingest.logs.chains import Chains
from routeyard.pipelines.ingest.logs.usage import tokens_of
from routeyard.pipelines.io import files
from routeyard.schemas import STEPS

_FILES = ("**/*.jsonl", "**/*.json", "**/*.csv", "**/*.parquet", "**/*.ndjson", "**/*.jsonl.gz")
#: Rows of a table between two turns into Arrow: rows as Python objects are large.
_TOGETHER = 50_000
#: Formats whose CSVs hold numbers as text.
_NUMBERS = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cache_read_tokens",
            "cache_write_tokens")  # fmt: skip


@dataclass
class Log:
    """A log as steps, and what of it was not taken or not known.

    Attributes:
        formats: Format → number of its records.
        left_out: Reason → number of records that were not taken.
        doubts: What a reader must know, one sentence each.
    """

    steps: pa.Table
    formats: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    doubts: list[str] = field(default_factory=list)


def read_log(path: Path, *, session: str | None = None) -> Log:
    """The calls of a log, a file or a folder of files, in order of session and time.

    Args:
        session: Path of the key that names the trajectory of a call, such as
            `metadata.session_id`, where the format has none.

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
        rows.append(_row(record, _paths(name, tuple(record)), session, where, chains))
        if len(rows) == _TOGETHER:
            parts.append(_table(rows))
            rows = []
    parts += [_table(rows)] if rows else []
    if not parts:
        raise SourceError(
            "no record is of a listed format",
            where=str(path),
            next_step="listed: " + "; ".join(f"{n}: {f['title']}" for n, f in _formats().items()),
        )
    log.steps = _numbered(pa.concat_tables(parts), log)
    return log


def format_of(record: Mapping[str, Any]) -> str | None:
    """Name of the first format all of whose needs the record has."""
    for name in _candidates(tuple(record)):
        if all(_at(record, keys) is not None for keys in _formats()[name]["needs"]):
            return name
    return None


@lru_cache(maxsize=1024)
def _candidates(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Formats whose needs can be met by a record with these keys."""
    return tuple(
        name for name, told in _formats().items() if all(path[0] in keys for path in told["needs"])
    )


@lru_cache(maxsize=1024)
def _paths(name: str, keys: tuple[str, ...]) -> dict[str, list[tuple[str, ...]]]:
    """Field → paths of a format that can be in a record with these keys."""
    return {
        field: there
        for field, paths in _formats()[name].items()
        if isinstance(paths, list) and (there := [path for path in paths if path[0] in keys])
    }


@cache
def _formats() -> dict[str, dict[str, Any]]:
    path = Path(__file__).with_name("formats.yaml")
    found: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    for told in found.values():
        for name, value in told.items():
            if isinstance(value, list):
                told[name] = [tuple(path.split(".")) for path in value]
    return found


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


def _at(record: Any, keys: Sequence[str]) -> Any:
    """Value below keys; None where there is none. A text that is JSON is opened on the way."""
    for key in keys:
        if type(record) is dict:
            record = record.get(key)
            continue
        if isinstance(record, str) and record[:1] in "{[":
            record = json.loads(record)
        if isinstance(record, list) and key.isdigit():
            record = record[int(key)] if int(key) < len(record) else None
        elif isinstance(record, dict):
            record = record.get(key)
        else:
            return None
    return None if record == "" else record


def _row(
    record: dict[str, Any], paths: Mapping[str, Any], session: str | None, where: str,
    chains: Chains,
) -> dict[str, Any]:  # fmt: skip
    def value(name: str) -> Any:
        for keys in paths.get(name, ()):
            found = _at(record, keys)
            if found is not None:
                return found
        return None

    usage = value("usage")
    usage = json.loads(usage) if isinstance(usage, str) else usage
    tokens: dict[str, Any] = {}
    if isinstance(usage, Mapping):
        of = tokens_of(usage)
        tokens = dict(zip(("prompt_tokens", "completion_tokens", "cache_read_tokens",
                           "cache_write_tokens", "reasoning_tokens"), of, strict=True))  # fmt: skip
    for name in _NUMBERS:
        found = tokens.get(name)
        found = value(name) if found is None else found
        tokens[name] = None if found is None else reading.count(found, where)
    trajectory = _at(record, session.split(".")) if session else value("session")
    messages = value("messages")
    messages = json.loads(messages) if isinstance(messages, str) else messages
    prefix = parent = None
    if isinstance(messages, list) and messages:
        prefix, parent, root = chains.add(messages, value("reply"))
        trajectory = root if trajectory is None else trajectory
    served, asked = value("served"), value("asked")
    cost = _cost(value, tokens["prompt_tokens"], where)
    finish, status = value("finish"), str(value("status") or "ok").lower()
    task = value("task")
    call = value("call")
    own = trajectory if trajectory is not None else f"{where}" if call is None else call
    tools = value("tools")
    return {
        "query_id": str(own if task is None else task),
        "model_id": "log",
        "sample": reading.count(value("sample"), where) or 0,
        "step": reading.count(value("step"), where),
        "acted_by": str(served or asked or "unknown"),
        "action": "call" if finish in ("tool_calls", "tool_use") else "answer",
        "queries": [],
        "found": [],
        "status": "error" if status in ("failure", "error", "failed") else "ok",
        "served_model": None if served is None else str(served),
        **tokens,
        "cost_usd": cost,
        "cost_source": None if cost is None else "provider",
        "latency_s": _latency(value, where),
        "attempts": 1,
        "requested_at": _time(value("time"), where),
        "arm": None if asked is None or served is not None else str(asked),
        "parent": reading.count(value("parent"), where),
        "prefix_hash": prefix,
        "tools_offered": _names(tools) if isinstance(tools, list) else None,
        "outcome": reading.number(value("outcome"), where),
        "propensity": reading.number(value("propensity"), where),
        "_parent_hash": parent,
        "_session": str(own),
        "_alone": trajectory is None and task is None,
    }


def _cost(value: Any, tokens: int | None, where: str) -> float | None:
    """USD of a call; 0 beside tokens is a missing price."""
    micro = reading.amount(value("cost_microdollars"), where)
    usd = reading.amount(value("cost_usd"), where) if micro is None else micro / 1e6
    return reading.spent(usd, tokens, where)


def _latency(value: Any, where: str) -> float | None:
    if (millis := reading.amount(value("latency_ms"), where)) is not None:
        return millis / 1000
    if (known := reading.amount(value("latency_s"), where)) is not None:
        return known
    start, end = _epoch(value("time")), _epoch(value("end"))
    return None if start is None or end is None or end < start else end - start


def _epoch(value: Any) -> float | None:
    """Seconds since 1970 of a number or an ISO 8601 text; None where it is neither."""
    from datetime import UTC, datetime

    if isinstance(value, int | float) and not isinstance(value, bool):
        # Nanoseconds and milliseconds are told by their size.
        return value / 1e9 if value > 1e17 else value / 1e3 if value > 1e11 else float(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _time(value: Any, where: str) -> str | None:
    """ISO 8601 in UTC; None for null. A time without a zone is taken as UTC."""
    from datetime import UTC, datetime

    if value is None:
        return None
    if isinstance(value, str) and len(value) >= 20 and value.endswith(("Z", "+00:00")):
        return value
    seconds = _epoch(value)
    if seconds is None:
        raise SourceError(f"{str(value)[:40]!r} is no time", where=where)
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _names(tools: Sequence[Any]) -> list[str]:
    """Names of tools in OpenAI's or a plain shape."""
    found = []
    for tool in tools:
        of = tool.get("function", tool) if isinstance(tool, Mapping) else {"name": tool}
        found.append(str(of.get("name") if isinstance(of, Mapping) else of))
    return found


#: Columns of a row while a log is read: those of `steps`, any of them unknown, and three more.
_SCHEMA = pa.schema(
    [field.with_nullable(True) for field in STEPS.schema]
    + [pa.field(name, pa.string()) for name in ("_parent_hash", "_session")]
    + [pa.field("_alone", pa.bool_())]
)


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table(
        {f.name: pa.array([row.get(f.name) for row in rows], f.type) for f in _SCHEMA}, _SCHEMA
    )


def _numbered(table: pa.Table, log: Log) -> pa.Table:
    """Steps numbered by time within their trajectory, with the parents that prefixes tell."""
    import duckdb

    with duckdb.connect() as connection:
        connection.register("calls", table)
        rows, known, alone, distinct = connection.execute(
            "SELECT count(*), count(step), count(*) FILTER (_alone), "
            "count(DISTINCT (query_id, _session, sample, step)) FILTER (step IS NOT NULL) "
            "FROM calls"
        ).fetchall()[0]
        if alone:
            log.doubts.append(
                f"{alone:,} of {rows:,} calls name no session: each is taken as a task of its own, "
                "so that prompt caches and intervals by task cannot be told"
            )
        if known and distinct < known:
            log.doubts.append(f"{known - distinct:,} steps repeat a number: all are numbered anew")
        order = "step, " if known == rows == distinct else ""
        sql = Path(__file__).with_name("number.sql").read_text(encoding="utf-8")
        numbered = connection.sql(sql.replace("{order}", order)).to_arrow_table()
    return STEPS.check(numbered.select(STEPS.column_names), where="the log")
