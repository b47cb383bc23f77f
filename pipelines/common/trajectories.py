"""Steps of one trajectory: which call follows which, providers' prompt caches, and their prices."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.common.errors import SourceError
from routeyard.schemas.errors import UnknownName, did_you_mean
from routeyard.schemas.text import own_table

# Which call goes on from which: by the messages that their prompts share.

#: Roles of messages that ask nothing: calls that share no more than these are of several tasks.
_INSTRUCTIONS = ("system", "developer")
#: Hex digits of a hash.
_DIGITS = 32


class Chains:
    """Trajectories of calls that name no session, given in order of time.

    A call continues the earlier call whose prompt its own prompt extends. The same first prompt
    again is a further trial of the task, not a further step of the first one.

    Attributes:
        unsure: calls that continue one of several equal prompts; the latest is taken.
    """

    def __init__(self) -> None:
        self.unsure = 0
        self._trials: Counter[str] = Counter()
        self._waiting: dict[str, list[tuple[str, int]]] = {}
        self._latest: dict[str, tuple[str, int]] = {}

    def add(self, whole: str, parts: str) -> tuple[str, int]:
        """(hash of the trajectory's first prompt, number of the trial).

        Args:
            whole: Hash of the prompt.
            parts: What `earlier_prompts` gave for it.
        """
        parent = next((item for item in longest_first(parts) if item in self._latest), None)
        if parent is None:
            trial = (whole, self._trials[whole])
            self._trials[whole] += 1
        else:
            waiting = self._waiting[parent]
            self.unsure += len(waiting) > 1
            trial = waiting.pop() if waiting else self._latest[parent]
            self._latest[parent] = trial
        self._waiting.setdefault(whole, []).append(trial)
        self._latest[whole] = trial
        return trial


def longest_first(parts: str) -> Iterator[str]:
    """What `earlier_prompts` gave, the longest prompt first."""
    return (parts[k : k + _DIGITS] for k in range(len(parts) - _DIGITS, -1, -_DIGITS))


def earlier_prompts(messages: Sequence[Any], hashes: Sequence[str]) -> str:
    """Hashes of the shorter prompts that a prompt may extend, one after the other."""
    return "".join(
        part
        for part, last in zip(hashes[:-1], messages, strict=False)
        if not (isinstance(last, dict) and last.get("role") in _INSTRUCTIONS)
    )


def prefix_hashes(messages: Sequence[Any]) -> list[str]:
    """Hash of the first one, two, … messages: 32 hex digits each."""
    digest, result = hashlib.sha256(), []
    for message in messages:
        digest.update(json.dumps(message, sort_keys=True, ensure_ascii=False).encode())
        digest.update(b"\x00")
        result.append(digest.copy().hexdigest()[:_DIGITS])
    return result


# Times of logs, whatever they are written as.


def epoch(value: Any) -> float | None:
    """Seconds since 1970 of a number or an ISO 8601 text; None where it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Nanoseconds and milliseconds are distinguished by their size.
        return value / 1e9 if value > 1e17 else value / 1e3 if value > 1e11 else float(value)
    try:
        result = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (result if result.tzinfo else result.replace(tzinfo=UTC)).timestamp()


def iso_time(value: Any, where: str) -> str | None:
    """ISO 8601 in UTC; None for null. A time without a zone is taken as UTC."""
    if value is None:
        return None
    if isinstance(value, str) and len(value) >= 20 and value.endswith(("Z", "+00:00")):
        return value
    seconds = epoch(value)
    if seconds is None:
        raise SourceError(f"{str(value)[:40]!r} is no time", where=where)
    return datetime.fromtimestamp(seconds, UTC).isoformat()


#: Words in the name of a provider or a model → rule, where none is stated.
_KNOWN = {
    "anthropic": "anthropic", "claude": "anthropic", "openai": "openai", "gpt-": "openai",
    "azure": "openai", "google": "google", "gemini": "google", "deepseek": "deepseek",
    "vllm": "vllm", "llama.cpp": "llama_cpp", "llama_cpp": "llama_cpp",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CacheRule:
    """When a prefix is read from a provider's cache; the fields are those of `caches.yaml`."""

    name: str
    ttl_s: float
    minimum: int
    block: int
    premium: bool
    output: bool
    source: str


@dataclass(frozen=True, slots=True)
class ArmPrice:
    """USD per 10^6 tokens of one arm, and its cache.

    Attributes:
        read: Of tokens read from the cache; unknown where the provider states none.
        write: Of tokens written to it, where the rule has a premium.
        up_to: Prompt tokens up to which the prices hold; what a longer prompt costs is unknown.
        source: Where the prices were read, and when; empty where a person stated them.
    """

    input: float | None
    output: float | None
    read: float | None = None
    write: float | None = None
    rule: str = "none"
    up_to: int | None = None
    source: str = ""

    @property
    def lacks(self) -> tuple[str, ...]:
        """Names of the prices that are needed and unknown."""
        rule = cache_rule(self.rule)
        needed = {"price_in": self.input, "price_out": self.output}
        if rule.ttl_s > 0:
            needed["price_cache_read"] = self.read
        if rule.premium:
            needed["price_cache_write"] = self.write
        return tuple(name for name, value in needed.items() if value is None)


def cache_rule(name: str) -> CacheRule:
    """The rule of that name.

    Raises:
        UnknownName: no rule has the name.
    """
    if name not in _rules():
        raise UnknownName(
            f"there is no cache rule {name!r}", next_step=did_you_mean(name, _rules())
        )
    return CacheRule(name, **_rules()[name])


def rule_of(provider: str | None, model: str) -> str | None:
    """Name of the rule that the name of a provider, or else of a model, tells; None unknown.

    >>> rule_of(None, "claude-sonnet-4-5"), rule_of(None, "mystery")
    ('anthropic', None)
    """
    for text in (provider or "", model):
        for word, rule in _KNOWN.items():
            if word in text.lower():
                return rule
    return None


def price_of_row(row: Mapping[str, Any], rule: str | None = None) -> ArmPrice:
    """Price and cache of a row of `models`, or of a model in a pool file.

    Without a price of cache reads a model is taken to have no cache, which is reported.
    """
    named = rule or rule_of(row.get("provider"), str(row["model_id"])) or "none"
    read = row.get("price_cache_read")
    if rule is None and read is None:
        named = "none"
    price = (row.get("price_source"), row.get("price_date"))
    up_to = row.get("price_up_to")
    return ArmPrice(
        row.get("price_in"), row.get("price_out"), read, row.get("price_cache_write"), named,
        up_to["tokens"] if isinstance(up_to, dict) else up_to,
        ", ".join(str(item) for item in price if item),
    )  # fmt: skip


@cache
def _rules() -> dict[str, dict[str, Any]]:
    rules: dict[str, dict[str, Any]] = own_table(Path(__file__).with_name("caches.yaml"))
    return rules


def seconds(table: pa.Table, name: str) -> Floats:
    """(n,) seconds since 1970 of a column of ISO 8601 times; NaN where missing."""
    if name not in table.column_names or table.column(name).null_count == table.num_rows:
        return np.full(table.num_rows, np.nan)
    import duckdb

    times = table.select([name])
    with duckdb.connect() as connection:
        connection.register("times", times)
        result = connection.execute(
            f'SELECT epoch(try_cast("{name}" AS TIMESTAMPTZ)) AS s FROM times'
        ).fetchnumpy()["s"]
    return np.asarray(np.ma.filled(np.ma.asarray(result, dtype=np.float64), np.nan))
