"""What usage costs as providers bill it: each class of tokens at its price."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from routeyard.pipelines.token_usage import TokenUsage

_MILLION = Decimal(1_000_000)


#: Class → its price in the list, and the one it takes where it has none. Images are read at the
#: price of text where they have no separate price; sound and cached tokens never are.
_PRICED = {
    "fresh": ("input_mtok",),
    "cache_read": ("cache_read_mtok",),
    "cache_write": ("cache_write_mtok",),
    "cache_write_1h": ("cache_write_1h_mtok",),
    "image": ("input_image_mtok", "input_mtok"),
    "audio": ("input_audio_mtok",),
    "cached_audio": ("cache_audio_read_mtok",),
    "output": ("output_mtok",),
    "reasoning": ("output_reasoning_mtok", "output_mtok"),
    "output_image": ("output_image_mtok",),
    "output_audio": ("output_audio_mtok",),
}


def billed_cost(usage: TokenUsage, prices: Mapping[str, Any]) -> Decimal | None:
    """USD of a call; null where a class with tokens has no price, or more than tokens is billed.

    A provider that does not say what was read from a cache is taken to have read nothing, so
    that the cost is the most that it can be.

    Args:
        prices: price of each class in USD per million tokens, under the names of
            `class_prices`; one with tiers holds for prompts by their length.
    """
    if usage.prompt is None or usage.known.completion is None:
        return None
    total = Decimal(0)
    for name, tokens in usage.classes.items():
        if not tokens:
            continue
        keys = _PRICED[name]
        price = next((prices[key] for key in keys if prices.get(key) is not None), None)
        if price is None:
            return None
        total += tokens * _at_length(price, usage.prompt)
    return total / _MILLION


def _at_length(price: Any, prompt_tokens: int) -> Decimal:
    """A price for prompts of this length: past a threshold all tokens cost what its tier says."""
    found = getattr(price, "base", price)
    for tier in getattr(price, "tiers", ()):
        if prompt_tokens > tier.start:
            found = tier.price
    return found if isinstance(found, Decimal) else Decimal(str(found))


def class_prices(
    provider: str, model: str, when: datetime, context: Mapping[str, str] | None = None
) -> dict[str, Any] | None:
    """List prices of an exact model at a time, with tiers and classes; null where not listed.

    Args:
        provider: address or id, as `list_price` takes it.
        context: what selects other rates: `{"processing": "batch"}`, `{"service_tier": …}`.
    """
    from routeyard.pipelines.metering.list_prices import listed_model

    found = listed_model(provider, model)
    if found is None:
        return None
    prices = found[1].get_prices(when, dict(context) if context else None)
    return {name: one for name, one in vars(prices).items() if one is not None}
