"""Logs of gateways and tracers: one record per call, as the table `steps`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

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
from routeyard.pipelines.ingest.results.values import CACHED, factor, plain, rank_of, word
from routeyard.pipelines.ingest.results.values import ROLES as RESULT_ROLES
from routeyard.schemas import STEPS
from routeyard.schemas.statuses import ANSWERLESS, status_of
from routeyard.schemas.text import own_table

# One record of a log as a row of `steps`.

#: Column of `steps` → role in a log, where they differ.
_COUNTS = {
    "prompt_tokens": "prompt_tokens", "completion_tokens": "completion_tokens",
    "cache_read_tokens": "cached_tokens", "cache_write_tokens": "cache_write_tokens",
    "reasoning_tokens": "reasoning_tokens",
}  # fmt: skip
#: What `--map` names of a log.
ROLES = (
    "arm", "question", "session", "sample", "time", "prompt", "messages", "usage", "prompt_tokens",
    "completion_tokens", "cached_tokens", "reasoning_tokens", "cost", "latency", "status", "score",
    "propensity",
)  # fmt: skip
#: Role of a log → where records of a format may have it; the first that has a value counts.
Paths: TypeAlias = "dict[str, list[tuple[str, ...]]]"
#: Name of a format → its title; the paths that it needs, and those of its roles.
_LISTED: dict[str, dict[str, Any]] = own_table(Path(__file__).with_name("names.yaml"))["logs"]
TITLES: dict[str, str] = {name: spec.pop("title") for name, spec in _LISTED.items()}
FORMATS: dict[str, Paths] = {
    name: {role: [tuple(path.split(".")) for path in paths] for role, paths in spec.items()}
    for name, spec in _LISTED.items()
}


class LoggedCall:
    """A record and where its format keeps what is asked of it.

    Attributes:
        unread: Keys of the record that by their names hold a score, and do not.
        below_0: Keys of amounts below 0, which are unknown.
    """

    def __init__(self, record: dict[str, Any], paths: Paths, where: str) -> None:
        self.record, self.where, self._paths = record, where, paths
        self.unread: list[str] = []
        self.below_0: list[str] = []

    def _found(self, role: str) -> tuple[Any, str]:
        """The first value of a role, None where the record has none; and its key."""
        for keys in self._paths.get(role, ()):
            if (result := _at(self.record, keys)) is not None:
                return result, keys[-1]
        return None, ""

    def value(self, role: str) -> Any:
        """The first value of a role; None where the record has none."""
        return self._found(role)[0]

    def score(self) -> float | None:
        """A number, or a word for right or wrong."""
        value, key = self._found("score")
        if isinstance(value, str):
            value = word(value)
        if isinstance(value, dict | list) or value != value:
            self.unread.append(key)
            return None
        return reading.number(value, self.where)

    def opened(self, role: str, kind: type) -> Any:
        """As `value`, opened where it is JSON in a text; None where it is of another kind."""
        result = self.value(role)
        if isinstance(result, str):
            result = reading.parse_json(result.encode(), self.where)
        return result if isinstance(result, kind) else None

    def count(self, role: str) -> int | None:
        """A whole number."""
        return reading.count(self.value(role), self.where)

    def amount(self, role: str, **units: int) -> float | None:
        """USD or seconds: in the unit that the key's name says, or the role's name does.

        Args:
            units: Unit → how many of it make one.
        """
        for unit, many in units.items():
            if (value := self._at_least_0(*self._found(f"{role}_{unit}"))) is not None:
                return value / many
        found, key = self._found(role)
        value, by = self._at_least_0(found, key), factor(key, role)
        return value if value is None or by == 1 else value / (1 / by)

    def _at_least_0(self, value: Any, key: str) -> float | None:
        """Below 0, as logs write what they do not know, it is unknown."""
        result = reading.number(value, self.where)
        if result is not None and result < 0:
            self.below_0.append(key)
            return None
        return reading.amount(value, f"{self.where}, {key}")


#: Roles that only a call has, beside its tokens.
_CALLED = ("cost", "cost_cents", "latency", "latency_ms", "status")


class LogFormat(NamedTuple):
    """A format, as far as it can be that of records with certain keys.

    Attributes:
        unread: Keys of which it reads nothing.
    """

    name: str
    needs: Sequence[tuple[str, ...]]
    paths: Paths
    unread: tuple[str, ...]


class LogFormats:
    """The listed formats, with the keys that a person names in place of theirs.

    A record of no listed format is of the format `named` where it has the keys that are named of
    the arm and its tokens (of neither: all that are named). Where none are, it is `guessed` if
    names of keys say which model answered and how many tokens it took.

    Args:
        mapping: Role of `ROLES` → path of a key.
    """

    def __init__(self, mapping: Mapping[str, str] = MappingProxyType({})) -> None:
        #: Role → key, of records whose format is guessed.
        self.guessed: dict[str, str] = {}
        #: Role → paths that a person names.
        self.named: Paths = {role: [tuple(path.split("."))] for role, path in mapping.items()}
        self._specs = {name: self._whole(spec) for name, spec in FORMATS.items()}
        if self.named:
            counts = [role for role in ("usage", "prompt_tokens") if role in self.named][:1]
            roles = [role for role in ("arm", *counts) if role in self.named] or [*self.named]
            needs = [self.named[role][0] for role in roles]
            self._specs["named"] = self._whole({"needs": needs})
        # Of one set of keys the answers are the same.
        self._fitting = lru_cache(maxsize=1024)(self._formats)

    def of(self, record: Mapping[str, Any]) -> LogFormat | None:
        """The first format all of whose needs the record has."""
        for item in self._fitting(tuple(record)):
            if all(_at(record, keys) is not None for keys in item.needs):
                return item
        return None

    @cached_property
    def _guess(self) -> Paths:
        """The guessed format, when all records were read."""
        return LogFormats(self.guessed)._specs["named"] if self.guessed else {}

    def like(self, record: Mapping[str, Any], names: Sequence[str]) -> LogFormat | None:
        """The first of these formats of which the record is a call that states no tokens.

        It names a model, and what it cost, how long it took or how it ended.
        """
        for name in names:
            item = _format(name, self._specs.get(name, self._guess), tuple(record))
            found = {role: any(_at(record, keys) is not None for keys in item.paths.get(role, ()))
                     for role in ("arm", *_CALLED)}  # fmt: skip
            if found.pop("arm") and any(found.values()):
                return item
        return None

    def _whole(self, spec: Paths) -> Paths:
        """Role → paths of a format: those that a person names, else its own and then the plain."""
        plain = {role: paths for role, paths in FORMATS["plain"].items() if role != "needs"}
        whole = {role: spec.get(role, []) + plain.get(role, []) for role in {**plain, **spec}}
        for role, paths in self.named.items():
            whole = {name: of for name, of in whole.items() if name.partition("_")[0] != role}
            whole[role] = paths
        if "arm" in self.named:
            whole["served_model"] = self.named["arm"]
        return whole

    def _formats(self, keys: tuple[str, ...]) -> list[LogFormat]:
        """Formats whose needs can be met by a record with these keys."""
        specs = {name: spec for name, spec in self._specs.items()
                 if all(path[0] in keys for path in spec["needs"])}  # fmt: skip
        if not specs and not self.named and (guess := guessed_roles(keys)):
            self.guessed |= guess
            specs["guessed"] = LogFormats(guess)._specs["named"]
        return [_format(name, spec, keys) for name, spec in specs.items()]


def _format(name: str, spec: Paths, keys: tuple[str, ...]) -> LogFormat:
    """What of a format records with these keys can have."""
    paths = {r: [p for p in listed if p[0] in keys] for r, listed in spec.items()}
    read = {path[0] for listed in paths.values() for path in listed}
    unread = tuple(key for key in keys if key not in read)
    return LogFormat(name, spec["needs"], paths, unread)


def guessed_roles(keys: Sequence[str]) -> dict[str, str]:
    """Role → key whose name says so; empty without a model and its tokens."""
    plain = FORMATS["plain"]
    guess: dict[str, str] = {}
    for role in ("arm", "usage", *_COUNTS.values(), "cost", "latency", "status", "score", "prompt"):
        listed = [path[0] for path in plain.get(role, ()) if path[0] in keys]
        ranked = sorted((rank, key) for key in keys if (rank := _rank(key, role)) is not None)
        named = [*listed, *(key for _, key in ranked if key not in guess.values())]
        if named:
            guess[role] = named[0]
    return guess if "arm" in guess and {"usage", "prompt_tokens"} & guess.keys() else {}


def _rank(key: str, role: str) -> float | None:
    if role in RESULT_ROLES:
        return rank_of(key, role)
    names = {"usage": ("usage", "tokenusage"), "cached_tokens": CACHED}.get(role, ())
    return names.index(plain(key)) if plain(key) in names else None


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
    failed, cost = status_of(call.value("status")) in ANSWERLESS, call.amount("cost", cents=100)
    if not failed:  # 0 beside tokens is a missing price, but for a call that nobody bills
        cost = reading.spent(cost, tokens["prompt_tokens"], call.where)
    served, asked, finish = (call.value(name) for name in ("served_model", "arm", "finish"))
    tools = call.opened("tools", list)
    return reading.step(
        _identity(call), call.count("step"), str(served or asked or "unknown"),
        finish in ("tool_calls", "tool_use"), failed=failed,
        **tokens,
        served_model=None if served is None else str(served),
        cost_usd=cost,
        cost_source=None if cost is None else "provider",
        latency_s=_latency(call),
        requested_at=iso_time(call.value("time"), call.where),
        tools_offered=None if tools is None else [*map(reading.tool_name, tools)],
        outcome=call.score(),
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
    task, named = call.value("question"), call.value("call")
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
    columns = reading.usage(call.opened("usage", dict), call.where, call.value("timings")).columns
    return {
        name: call.count(role) if columns[name] is None else columns[name]
        for name, role in _COUNTS.items()
    }


def _latency(call: LoggedCall) -> float | None:
    """Seconds as stated, or from the first to the last time."""
    if (known := call.amount("latency", ms=1000)) is not None:
        return known
    start, end = epoch(call.value("time")), epoch(call.value("end"))
    return None if start is None or end is None or end < start else end - start


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
        without_tokens: Calls that state no tokens, such as failed ones.
        below_0: Key → amounts below 0, which are unknown.
        other: The first record that is of no listed format.
        unread: Keys of records that hold something, and that their format does not read.
        prompts: What the user asked first in the call of each step; None where it is not kept.
    """

    steps: pa.Table
    prompts: list[str | None] = field(default_factory=list)
    formats: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    doubts: list[str] = field(default_factory=list)
    without_tokens: int = 0
    below_0: Counter[str] = field(default_factory=Counter)
    other: dict[str, Any] = field(default_factory=dict)
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
    for form, where, record in _calls(path, known, log):
        log.formats[form.name] += 1
        log.unread.update(key for key in form.unread if record[key])
        call = LoggedCall(record, form.paths, where)
        rows.append(row_of(call, prompts=prompts))
        log.unread.update(call.unread)
        log.below_0.update(call.below_0)
        if call.unread and "score" in known.named:
            raise SourceError(
                f"{call.unread[0]!r} holds {str(call.value('score'))[:60]}, which is no score",
                where=f"{where}, --map score",
                next_step="name a key that holds a number, or a word for right or wrong (correct, "
                "pass, no, …): score=KEY.KEY",
            )
        if len(rows) == _TOGETHER:
            parts.append(pa.Table.from_pylist(rows, _SCHEMA))
            rows = []
    parts += [pa.Table.from_pylist(rows, _SCHEMA)] if rows else []
    if not parts:
        raise SourceError(
            "no record is of a listed format",
            where=f"{path}; keys of the first record: {', '.join([*log.other][:_SHOWN])}",
            next_step="say which key is what: --map arm=KEY,session=KEY,time=KEY,usage=KEY (or "
            "prompt_tokens=KEY,completion_tokens=KEY),cost=KEY,latency=KEY; listed are "
            + ", ".join(TITLES.values()),
        )
    if log.formats["guessed"]:
        read = ",".join(f"{role}={key}" for role, key in known.guessed.items())
        log.doubts.append(f"records of no listed format are read as --map {read}")
    log.steps = _numbered(pa.concat_tables(parts), log)
    if unread := sorted(log.unread):
        more = f" and {len(unread) - _SHOWN:,} more" if len(unread) > _SHOWN else ""
        log.doubts.append(f"keys that were not read: {', '.join(unread[:_SHOWN])}{more}")
    log.doubts += [
        f"{count:,} values of {key} are below 0: they are taken as unknown"
        for key, count in sorted(log.below_0.items())
    ]
    if log.without_tokens:
        log.doubts.append(f"{log.without_tokens:,} calls state no tokens, which are unknown")
    if batch := log.formats["batch"]:
        log.doubts.append(
            f"{batch:,} calls are of a batch, which most providers bill at half the price: list "
            "prices are those of single calls, so state a batch's own"
        )
    return log


def _calls(
    path: Path, known: LogFormats, log: Log
) -> Iterator[tuple[LogFormat, str, dict[str, Any]]]:
    """Calls with their format and place; those that state no tokens last."""
    others = 0
    for where, record in _records(path, log):
        if (form := known.of(record)) is None:
            others, log.other = others + 1, log.other or record
        else:
            yield form, where, record
    # Of which format the others are is known when all are read: they are read once more.
    forms = sorted(log.formats, key=lambda name: (-log.formats[name], name))
    for where, record in _records(path, log) if others and forms else ():
        if known.of(record) is not None:
            continue
        if (form := known.like(record, forms)) is None:
            log.left_out["records of no listed format"] += 1
        else:
            log.without_tokens += 1
            yield form, where, record


def _records(path: Path, log: Log) -> Iterator[tuple[str, dict[str, Any]]]:
    """Records of the files: rows, or those in a list below `data` or `logs`.

    Lines that hold no object, such as the last one of a log that was cut off, are left out.
    """
    paths = reading.found_files(path, _FILES, "calls as JSON lines, JSON, CSV or Parquet")
    for item in paths:
        spoilt: list[int] = []
        records = (record for row in files.rows(item, spoilt=spoilt) for record in _inside(row))
        for number, record in enumerate(records, 1):
            line = f"line {record.line}" if isinstance(record, files.Line) else f"record {number}"
            yield f"{item.name}, {line}", record
        if spoilt:
            lines = ", ".join(map(str, spoilt[:_SHOWN])) + (" …" if len(spoilt) > _SHOWN else "")
            log.left_out[f"lines of {item.name} that are no JSON object: {lines}"] = len(spoilt)


def _inside(row: dict[str, Any]) -> list[dict[str, Any]]:
    listed = row.get("data", row.get("logs"))
    return (
        [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else [row]
    )


#: Columns of a row while a log is read: those of `steps`, any of them unknown, and some more.
_SCHEMA = pa.schema(
    [field.with_nullable(True) for field in STEPS.schema]
    + [pa.field(name, pa.string()) for name in ("_session", "_prompt", "_call")]
    + [pa.field("_parts", pa.large_string()), pa.field("_alone", pa.bool_())]
    + [pa.field("_attempt", pa.float64())]
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
    """The table with the last attempt at each call, when it was first sent, what all cost, and the
    seconds from then to the answer: where times are unknown, those of all attempts together.
    """
    retried = _retried(table)
    if not retried:
        return table
    names = ("cost_usd", "requested_at", "attempts", "latency_s")
    columns = [table.column(name).to_pylist() for name in names]
    costs, times, attempts, latencies = columns
    sent = seconds(table, "requested_at")
    unknown = sum(costs[a] is None is not costs[b] for a, b in retried.items())
    for before, row in retried.items():
        attempts[row] += attempts[before]
        if latencies[row] is not None:
            earlier = np.nan if latencies[before] is None else latencies[before]
            waited = np.fmax(sent[row] - sent[before], earlier)
            latencies[row] = None if np.isnan(waited) else float(waited) + latencies[row]
        sent[row] = sent[before]
        times[row] = times[before] or times[row]
        costs[row] = None if costs[row] is None else costs[row] + (costs[before] or 0.0)
    log.doubts.append(
        f"{len(retried):,} earlier attempts are of calls that were sent again: each call counts "
        "once, with the tokens of its last attempt, the cost of all, and the time from the first"
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
    ids = table.column("_call").drop_null()
    if again := len(ids) - len(ids.unique()):
        log.doubts.append(
            f"{again:,} calls have the id of another: all are counted. Leave out those that were "
            "exported twice"
        )
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
