"""One record of a log as a row of `steps`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml

from routeyard.pipelines.ingest.importers import reading
from routeyard.pipelines.trajectories.chains import earlier_prompts, prefix_hashes
from routeyard.pipelines.trajectories.times import epoch, iso_time
from routeyard.schemas.statuses import ANSWERLESS, status_of

_NUMBERS = (
    "prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens",
)  # fmt: skip
#: Unit of a cost → how many make a USD.
_COSTS = {"cost_microdollars": 1e6, "cost_cents": 100, "cost_usd": 1}


class LoggedCall:
    """A record and where its format keeps what is asked of it."""

    def __init__(self, record: dict[str, Any], name: str, where: str) -> None:
        self.record, self.where = record, where
        self._paths = _paths(name, tuple(record))

    def value(self, field: str) -> Any:
        """The first value of a field; None where the record has none."""
        for keys in self._paths.get(field, ()):
            found = _at(self.record, keys)
            if found is not None:
                return found
        return None

    def opened(self, field: str, kind: type) -> Any:
        """As `value`, opened where it is JSON in a text; None where it is of another kind."""
        found = self.value(field)
        if isinstance(found, str):
            found = reading.parse_json(found.encode(), self.where)
        return found if isinstance(found, kind) else None

    def count(self, field: str) -> int | None:
        """A whole number."""
        found = self.value(field)
        return None if found is None else reading.count(found, self.where)

    def amount(self, field: str) -> float | None:
        """An amount of 0 or more."""
        found = self.value(field)
        return None if found is None else reading.amount(found, self.where)


def format_of(record: Mapping[str, Any]) -> str | None:
    """Name of the first format all of whose needs the record has."""
    for name in _candidates(tuple(record)):
        if all(_at(record, keys) is not None for keys in formats()[name]["needs"]):
            return name
    return None


@lru_cache(maxsize=1024)
def _candidates(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Formats whose needs can be met by a record with these keys."""
    return tuple(
        name for name, told in formats().items() if all(path[0] in keys for path in told["needs"])
    )


@lru_cache(maxsize=1024)
def _paths(name: str, keys: tuple[str, ...]) -> dict[str, list[tuple[str, ...]]]:
    """Field → paths of a format that can be in a record with these keys."""
    return {
        field: there
        for field, paths in formats()[name].items()
        if isinstance(paths, list) and (there := [path for path in paths if path[0] in keys])
    }


@lru_cache(maxsize=1024)
def unread_keys(name: str, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Those of a record's keys of which a format reads nothing."""
    lists = (paths for paths in formats()[name].values() if isinstance(paths, list))
    read = {path[0] for paths in lists for path in paths}
    return tuple(key for key in keys if key not in read)


@cache
def formats() -> dict[str, dict[str, Any]]:
    path = Path(__file__).with_name("formats.yaml")
    found: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    for told in found.values():
        for name, value in told.items():
            if isinstance(value, list):
                told[name] = [tuple(path.split(".")) for path in value]
    return found


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


def row_of(call: LoggedCall, session: str | None, *, prompts: bool = False) -> dict[str, Any]:
    """A row of `steps` that is not numbered yet, with its session and the prompts it may extend.

    Args:
        session: Path of the key that names the trajectory, where the format has none.
        prompts: Keep what the user asked, as far as the record holds it.
    """
    tokens = _tokens(call)
    cost = _cost(call, tokens["prompt_tokens"])
    served, asked, finish = (call.value(name) for name in ("served", "asked", "finish"))
    failed = _failed(call.value("status"))
    tools = call.opened("tools", list)
    return {
        **_identity(call, session),
        **tokens,
        "acted_by": str(served or asked or "unknown"),
        "action": "call" if finish in ("tool_calls", "tool_use") else "answer",
        "queries": [],
        "found": [],
        "status": "error" if failed else "ok",
        "served_model": None if served is None else str(served),
        "cost_usd": cost,
        "cost_source": None if cost is None else "provider",
        "latency_s": _latency(call),
        "attempts": 1,
        "requested_at": iso_time(call.value("time"), call.where),
        "tools_offered": None if tools is None else _names(tools),
        "outcome": reading.number(call.value("outcome"), call.where),
        "propensity": reading.number(call.value("propensity"), call.where),
        "_prompt": _asked(call) if prompts else None,
    }


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


def _identity(call: LoggedCall, session: str | None) -> dict[str, Any]:
    """Task, trial and step as far as the record tells; what only its messages tell is null."""
    own = call.value("session") if session is None else _at(call.record, session.split("."))
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
        "step": call.count("step"),
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
    found = reading.usage(usage, call.where, call.value("timings")).columns
    return {name: call.count(name) if found[name] is None else found[name] for name in _NUMBERS}


def _cost(call: LoggedCall, tokens: int | None) -> float | None:
    """USD of a call; 0 beside tokens is a missing price."""
    for field, unit in _COSTS.items():
        if (found := call.amount(field)) is not None:
            return reading.spent(found / unit, tokens, call.where)
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
    found = []
    for tool in tools:
        of = tool.get("function", tool) if isinstance(tool, Mapping) else {"name": tool}
        found.append(str(of.get("name") if isinstance(of, Mapping) else of))
    return found
