"""Rules of providers' prompt caches, and the prices they apply to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from routeyard.pipelines.errors import UnknownName, did_you_mean

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


def rule_names() -> tuple[str, ...]:
    """Names of all rules."""
    return tuple(_rules())


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
    told = (row.get("price_source"), row.get("price_date"))
    return ArmPrice(
        row.get("price_in"), row.get("price_out"), read, row.get("price_cache_write"), named,
        row.get("price_up_to"), ", ".join(str(one) for one in told if one),
    )  # fmt: skip


@cache
def _rules() -> dict[str, dict[str, Any]]:
    path = Path(__file__).with_name("caches.yaml")
    found: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found
