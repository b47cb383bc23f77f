"""Logs of gateways and tracers: one record per call, as the table `steps`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common import files
from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.trajectories import (
    Chains,
    earlier_prompts,
    epoch,
    iso_time,
    longest_first,
    prefix_hashes,
    seconds,
)
from routeyard.pipelines.ingest.importers import reading
from routeyard.pipelines.ingest.mapping import parse_map
from routeyard.schemas import STEPS
from routeyard.schemas.statuses import ANSWERLESS, status_of
from routeyard.schemas.text import own_table

# One record of a log as a row of `steps`.

_NUMBERS = (
    "prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens",
)  # fmt: skip
#: Unit of a cost → how many make a USD.
_COSTS = {"cost_microdollars": 1e6, "cost_cents": 100, "cost_usd": 1}


class LoggedCall:
    """A record and where its format keeps what is asked of it."""

    def __init__(self, record: dict[str, Any], paths: Paths, where: str) -> None:
        self.record, self.where, self._paths = record, where, paths

    def value(self, field: str) -> Any:
        """The first value of a field; None where the record has none."""
        for keys in self._paths.get(field, ()):
            result = _at(self.record, keys)
            if result is not None:
                return result
        return None

    def opened(self, field: str, kind: type) -> Any:
        """As `value`, opened where it is JSON in a text; None where it is of another kind."""
        result = self.value(field)
        if isinstance(result, str):
            result = reading.parse_json(result.encode(), self.where)
        return result if isinstance(result, kind) else None

    def count(self, field: str) -> int | None:
        """A whole number."""
        result = self.value(field)
        return None if result is None else reading.count(result, self.where)

    def amount(self, field: str) -> float | None:
        """An amount of 0 or more."""
        result = self.value(field)
        return None if result is None else reading.amount(result, self.where)


#: Field of a format → where its records may have it, the first that does counts.
Paths: TypeAlias = "dict[str, list[tuple[str, ...]]]"
_TABLE: dict[str, dict[str, Any]] = own_table(Path(__file__).with_name("formats.yaml"))
#: What `--map` names of a log → the fields of a format that it is.
ROLES: dict[str, list[str]] = _TABLE.pop("roles")


class LogFormats:
    """The listed formats, with the keys that a person names in place of theirs.

    A record of no listed format that has all keys which are named is of the format `named`.

    Args:
        mapping: Role of `ROLES` → path of a key.
    """

    def __init__(self, mapping: Mapping[str, str] = MappingProxyType({})) -> None:
        named: dict[str, list[tuple[str, ...]]] = {}
        for role, path in mapping.items():
            fields = ["latency_ms"] if role == "latency" and path.endswith("ms") else ROLES[role]
            named |= {field: [tuple(path.split("."))] for field in fields}
        self.specs: dict[str, dict[str, Any]] = {
            name: {**spec, **named} for name, spec in formats().items()
        }
        if needs := [path for (path,) in named.values()]:
            self.specs["named"] = {**self.specs["plain"], "needs": needs}
        # Of one set of keys the answers are the same.
        self.candidates = lru_cache(maxsize=1024)(self._candidates)
        self.paths = lru_cache(maxsize=1024)(self._paths)
        self.unread = lru_cache(maxsize=1024)(self._unread)

    def of(self, record: Mapping[str, Any]) -> str | None:
        """Name of the first format all of whose needs the record has."""
        for name in self.candidates(tuple(record)):
            if all(_at(record, keys) is not None for keys in self.specs[name]["needs"]):
                return name
        return None

    def _candidates(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Formats whose needs can be met by a record with these keys."""
        return tuple(
            name
            for name, spec in self.specs.items()
            if all(path[0] in keys for path in spec["needs"])
        )

    def _paths(self, name: str, keys: tuple[str, ...]) -> Paths:
        """Field → paths of a format that can be in a record with these keys."""
        return {
            field: there
            for field, paths in self.specs[name].items()
            if isinstance(paths, list) and (there := [path for path in paths if path[0] in keys])
        }

    def _unread(self, name: str, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Those of a record's keys of which a format reads nothing."""
        lists = (paths for paths in self.specs[name].values() if isinstance(paths, list))
        read = {path[0] for paths in lists for path in paths}
        return tuple(key for key in keys if key not in read)


@cache
def formats() -> dict[str, dict[str, Any]]:
    """Name of a format → its title, the paths it needs, and the paths of its fields."""
    return {
        name: {
            k: [tuple(p.split(".")) for p in v] if isinstance(v, list) else v for k, v in f.items()
        }
        for name, f in _TABLE.items()
    }


def _at(record: Any, keys: Sequence[str]) -> Any:
    """Value at a path of keys, or None; JSON texts on the path are parsed."""
    for key in keys:
        if type(record) is dict:
            record = record.get(key)
            continue
        if isinstance(record, str) and record[:1] in "{[":
            try:
                record = json.loads(record)
            except (ValueError, RecursionError):
                return None
        if isinstance(record, list) and key.isdigit():
            record = record[int(key)] if int(key) < len(record) else None
        elif isinstance(record, dict):
            record = record.get(key)
        else:
            return None
    return None if record == "" else record


def row_of(call: LoggedCall, *, prompts: bool = False) -> dict[str, Any]:
    """A row of `steps` that is not numbered yet, with its session and the prompts it may extend.

    Args:
        prompts: Keep what the user asked, as far as the record holds it.
    """
    tokens = _tokens(call)
    cost = _cost(call, tokens["prompt_tokens"])
    served, asked, finish = (call.value(name) for name in ("served", "asked", "finish"))
    tools = call.opened("tools", list)
    return reading.step(
        _identity(call), call.count("step"), str(served or asked or "unknown"),
        finish in ("tool_calls", "tool_use"), failed=_failed(call.value("status")),
        **tokens,
        served_model=None if served is None else str(served),
        cost_usd=cost,
        cost_source=None if cost is None else "provider",
        latency_s=_latency(call),
        requested_at=iso_time(call.value("time"), call.where),
        tools_offered=None if tools is None else _names(tools),
        outcome=reading.number(call.value("outcome"), call.where),
        propensity=reading.number(call.value("propensity"), call.where),
        _prompt=_asked(call) if prompts else None,
    )  # fmt: skip


def _asked(call: LoggedCall) -> str | None:
    """First message of the user; a prompt given as plain text counts too."""
    for message in call.opened("messages", list) or ():
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, list):
                content = " ".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
            return None if content is None else str(content)
    prompt = call.value("prompt")
    return None if prompt is None else str(prompt)


def _identity(call: LoggedCall) -> dict[str, Any]:
    """Task, trial and step as far as the record tells; what only its messages tell is null."""
    own = call.value("session")
    prefix = parts = None
    messages = call.opened("messages", list)
    if messages:
        hashes = prefix_hashes(messages)
        prefix, parts = hashes[-1], earlier_prompts(messages, hashes)
    task, named = call.value("task"), call.value("call")
    alone = own is None and prefix is None
    if alone:
        own = call.where if named is None else named
    of = own if task is None else task
    return {
        "query_id": None if of is None else str(of),
        "model_id": "log",
        "sample": call.count("sample") or 0,
        "parent": call.count("parent"),
        "prefix_hash": prefix,
        "_parts": parts,
        "_call": None if named is None else str(named),
        "_attempt": _number(call.value("attempt")),
        "_session": None if own is None else str(own),
        "_alone": alone and task is None,
    }


def _number(value: Any) -> float | None:
    """A number, also as a text; None for anything else."""
    plain = isinstance(value, int | float) or (isinstance(value, str) and value.isdigit())
    return float(value) if plain else None


def _tokens(call: LoggedCall) -> dict[str, int | None]:
    usage = call.opened("usage", dict)
    if usage is None:
        return {name: call.count(name) for name in _NUMBERS}
    columns = reading.usage(usage, call.where, call.value("timings")).columns
    return {name: call.count(name) if columns[name] is None else columns[name] for name in _NUMBERS}


def _cost(call: LoggedCall, tokens: int | None) -> float | None:
    """USD of a call; 0 beside tokens is a missing price."""
    for name, unit in _COSTS.items():
        if (amount := call.amount(name)) is not None:
            return reading.spent(amount / unit, tokens, call.where)
    return None


def _failed(status: Any) -> bool:
    """Whether a status says so, by a word or as HTTP does."""
    return status_of(status) in ANSWERLESS


def _latency(call: LoggedCall) -> float | None:
    """Seconds as stated, or from the first to the last time."""
    if (millis := call.amount("latency_ms")) is not None:
        return millis / 1000
    if (known := call.amount("latency_s")) is not None:
        return known
    start, end = epoch(call.value("time")), epoch(call.value("end"))
    return None if start is None or end is None or end < start else end - start


def _names(tools: Sequence[Any]) -> list[str]:
    """Names of tools in OpenAI's or a plain shape."""
    names = []
    for tool in tools:
        of = tool.get("function", tool) if isinstance(tool, Mapping) else {"name": tool}
        names.append(str(of.get("name") if isinstance(of, Mapping) else of))
    return names


# Reads logs of any listed format into the table `steps`.

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


def read_log(path: Path, *, named: str | None = None, prompts: bool = False) -> Log:
    """The calls of a log, a file or a folder of files, in order of session and time.

    Args:
        named: Which key is what, `arm=engine,session=metadata.run`, where it is not as listed.
        prompts: Keep what users asked, for a router that reads it.

    Raises:
        SourceError: no record is of a listed format, or a value is not of its kind.
    """
    log, known = Log(STEPS.empty()), LogFormats(parse_map(named, [*ROLES]))
    parts: list[pa.Table] = []
    rows: list[dict[str, Any]] = []
    seen: dict[str, Any] = {}
    for where, record in _records(path):
        name = known.of(record)
        if name is None:
            seen = seen or record
            log.left_out["records of no listed format"] += 1
            continue
        log.formats[name] += 1
        keys = tuple(record)
        log.unread.update(key for key in known.unread(name, keys) if record[key])
        rows.append(row_of(LoggedCall(record, known.paths(name, keys), where), prompts=prompts))
        if len(rows) == _TOGETHER:
            parts.append(_table(rows))
            rows = []
    parts += [_table(rows)] if rows else []
    if not parts:
        raise SourceError(
            "no record is of a listed format",
            where=f"{path}; keys of the first record: {', '.join(list(seen)[:_SHOWN])}",
            next_step="say which key is what: --map arm=KEY,session=KEY,time=KEY,usage=KEY (or "
            "prompt_tokens=KEY,completion_tokens=KEY),cost=KEY,latency=KEY; listed are "
            + ", ".join(str(item["title"]) for item in formats().values()),
        )
    log.steps = _numbered(pa.concat_tables(parts), log)
    if unread := sorted(log.unread):
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
    for item in paths:
        for number, record in enumerate(_rows_of(item), 1):
            yield f"{item.name}, record {number}", record


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
    return [item for item in content if isinstance(item, dict)] if isinstance(content, list) else []


#: Columns of a row while a log is read: those of `steps`, any of them unknown, and some more.
_SCHEMA = pa.schema(
    [field.with_nullable(True) for field in STEPS.schema]
    + [pa.field(name, pa.string()) for name in ("_session", "_prompt", "_call")]
    + [pa.field("_parts", pa.large_string()), pa.field("_alone", pa.bool_())]
    + [pa.field("_attempt", pa.float64())]
)


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table(
        {f.name: pa.array([row.get(f.name) for row in rows], f.type) for f in _SCHEMA}, _SCHEMA
    )


#: Keys of a later attempt and of what it repeats, beside its number.
_SAME = ("_call", "_session", "query_id", "step", "prefix_hash")


def _retried(table: pa.Table) -> dict[int, int]:
    """Row of an attempt → row of the next attempt at the same call, in order of time.

    That has a greater number and the id of the call; or it follows one that failed, with its
    session, task and prompt.
    """
    number = table.column("_attempt").to_numpy()
    if len(np.unique(number[~np.isnan(number)])) < 2:
        return {}
    attempts = table.select([*_SAME, "status"]).to_pylist()
    latest: dict[tuple[Any, ...], int] = {}
    result: dict[int, int] = {}
    for row in np.lexsort((number, seconds(table, "requested_at"))).tolist():
        call, *rest = (attempts[row][name] for name in _SAME)
        keys = [("call", call, rest[0])] if call is not None else []
        if rest[2:] != [None, None]:
            keys.append(tuple(rest))
        for before in (latest[key] for key in keys if key in latest):
            same = attempts[before]["_call"] == call or attempts[before]["status"] == "error"
            if same and number[before] < number[row]:
                result[before] = row
                break
        latest.update(dict.fromkeys(keys, row))
    return result


def _last_attempts(table: pa.Table, log: Log) -> pa.Table:
    """The table with the last attempt at each call, when it was first sent, and what all cost."""
    retried = _retried(table)
    if not retried:
        return table
    names = ("cost_usd", "requested_at", "attempts")
    columns = [table.column(name).to_pylist() for name in names]
    costs, times, attempts = columns
    unknown = sum(costs[a] is None is not costs[b] for a, b in retried.items())
    for before, row in retried.items():
        attempts[row] += attempts[before]
        times[row] = times[before] or times[row]
        costs[row] = None if costs[row] is None else costs[row] + (costs[before] or 0.0)
    log.doubts.append(
        f"{len(retried):,} earlier attempts are of calls that were sent again: each call counts "
        "once, with the tokens of its last attempt and the cost of all"
        + (f"; {unknown:,} state no cost, and none is counted" if unknown else "")
    )
    for name, values in zip(names, columns, strict=True):
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.array(values, table.schema.field(name).type))
    keep = np.ones(table.num_rows, bool)
    keep[list(retried)] = False
    return table.filter(pa.array(keep))


def _chained(table: pa.Table, sent: Floats, log: Log) -> pa.Table:
    """The table with a session for every call and the prompt that each extends, in order of time.

    Calls that name no session belong together where their messages say so.
    """
    asked = np.flatnonzero(table.column("prefix_hash").is_valid().to_numpy())
    if not len(asked):
        return table.append_column("_parent_hash", pa.nulls(table.num_rows, pa.string()))
    asked = asked[np.argsort(sent[asked], kind="stable")]
    chains, seen = Chains(), set[tuple[str, str]]()
    names = ("query_id", "_session")
    task, session = (table.column(name).to_pylist() for name in names)
    parent: list[str | None] = [None] * table.num_rows
    prompts = table.select(["prefix_hash", "_parts"])
    for rows in np.split(asked, range(_TOGETHER, len(asked), _TOGETHER)):
        for row, item in zip(rows, prompts.take(pa.array(rows)).to_pylist(), strict=True):
            whole, parts = item.values()
            if session[row] is None:
                root, trial = chains.add(whole, parts)
                session[row] = f"{root} {trial}"
                task[row] = task[row] or root
            known = ((session[row], part) for part in longest_first(parts))
            parent[row] = next((two[1] for two in known if two in seen), None)
            seen.add((session[row], whole))
    if chains.unsure:
        log.doubts.append(
            f"{chains.unsure:,} calls without a session extend one of several equal prompts: "
            "each is taken to continue the latest of them"
        )
    for name, values in zip(names, (task, session), strict=True):
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.array(values, pa.string()))
    return table.append_column("_parent_hash", pa.array(parent, pa.string()))


def _numbered(table: pa.Table, log: Log) -> pa.Table:
    """Steps numbered by time within their trajectory, with the parents that prefixes tell."""
    import duckdb

    table = _last_attempts(table, log)
    sent = seconds(table, "requested_at")
    table = _chained(table, sent, log)
    names = ["query_id", "sample", "_session", "step", "parent", "prefix_hash", "_parent_hash",
             "_alone"]  # fmt: skip
    calls = table.select(names).append_column("place", pa.array(range(table.num_rows), pa.int64()))
    calls = calls.append_column("sent", pa.array(sent, from_pandas=True))
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
    columns = [name for name in STEPS.column_names if name not in numbers.column_names]
    table = table.select(columns).take(numbers.column("place"))
    for name in ("sample", "step", "parent"):
        table = table.append_column(name, numbers.column(name))
    return STEPS.check(table, where="the log")
