"""Usage as providers bill it: tokens of one call by the class that has a price of its own.

Shapes differ in what a prompt's count includes: OpenAI's, Google's, DeepSeek's, OpenRouter's and
vLLM's include tokens read from a cache, Anthropic's do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.errors import BadInput

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class BilledUsage:
    """Tokens of one call; classes share no token.

    Attributes:
        fresh: of the prompt, text that was neither read from a cache nor written to one.
        cache_read, cache_write: of the prompt; null where the provider does not say.
        cached_audio: sound of the prompt that was read from a cache.
        cache_write_1h: written to be kept for an hour, where that has a price of its own.
        image, audio: of the prompt, beside text.
        output: of the answer, text that is seen.
        reasoning: of the answer, hidden; null where the provider does not say.
        output_image, output_audio: of the answer.
    """

    fresh: int
    output: int
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_1h: int = 0
    reasoning: int | None = None
    image: int = 0
    audio: int = 0
    cached_audio: int = 0
    output_image: int = 0
    output_audio: int = 0

    @property
    def prompt_tokens(self) -> int:
        """All tokens of the prompt, whoever had read them before."""
        cached = (self.cache_read or 0) + (self.cache_write or 0) + self.cache_write_1h
        return self.fresh + cached + self.image + self.audio + self.cached_audio

    @property
    def completion_tokens(self) -> int:
        """All tokens of the answer, hidden ones included."""
        return self.output + (self.reasoning or 0) + self.output_image + self.output_audio


def billed_usage(record: Mapping[str, Any]) -> BilledUsage:
    """The classes of a usage record of OpenAI, Anthropic, Google, DeepSeek, OpenRouter or vLLM.

    Args:
        record: the `usage` (Google: `usageMetadata`) of a reply.

    Raises:
        BadInput: it has no shape that is known, or counts that contradict each other.
    """
    if "promptTokenCount" in record:
        return _google(record)
    if {"cache_read_input_tokens", "cache_creation_input_tokens"} & record.keys():
        return _anthropic(record)
    names = ("prompt", "completion") if "prompt_tokens" in record else ("input", "output")
    if f"{names[0]}_tokens" not in record:
        raise _bad("no counts of a shape that is known", f"keys {', '.join(sorted(record)[:8])}")
    return _openai(record, *names)


def _openai(record: Mapping[str, Any], prompt: str, completion: str) -> BilledUsage:
    asked, told = (_part(record, f"{name}_tokens_details") for name in (prompt, completion))
    read = _optional(asked, "cached_tokens")
    if "prompt_cache_hit_tokens" in record:  # DeepSeek
        read = _count(record, "prompt_cache_hit_tokens")
        missed = _optional(record, "prompt_cache_miss_tokens")
        if missed is not None and read + missed != _count(record, "prompt_tokens"):
            raise _bad(f"{read} + {missed} tokens hit and missed", "their sum is prompt_tokens")
    written = _optional(asked, "cache_write_tokens")
    image, audio = (_optional(asked, f"{kind}_tokens") or 0 for kind in ("image", "audio"))
    hidden = _optional(told, "reasoning_tokens")
    shown = [_optional(told, f"{kind}_tokens") or 0 for kind in ("image", "audio")]
    whole, said = _count(record, f"{prompt}_tokens"), _count(record, f"{completion}_tokens")
    return BilledUsage(
        fresh=_rest(whole, (read, written, image, audio), "prompt"),
        output=_rest(said, (hidden, *shown), "answer"),
        cache_read=read, cache_write=written, reasoning=hidden,
        image=image, audio=audio, output_image=shown[0], output_audio=shown[1],
    )  # fmt: skip


def _anthropic(record: Mapping[str, Any]) -> BilledUsage:
    written = _optional(record, "cache_creation_input_tokens")
    kept = _optional(_part(record, "cache_creation"), "ephemeral_1h_input_tokens") or 0
    hidden = _optional(_part(record, "output_tokens_details"), "thinking_tokens")
    return BilledUsage(
        fresh=_count(record, "input_tokens"),
        output=_rest(_count(record, "output_tokens"), (hidden,), "answer"),
        cache_read=_optional(record, "cache_read_input_tokens"),
        cache_write=None if written is None else _rest(written, (kept,), "cache write"),
        cache_write_1h=kept,
        reasoning=hidden,
    )


def _google(record: Mapping[str, Any]) -> BilledUsage:
    read = _optional(record, "cachedContentTokenCount")
    # What tools gave back is read as a prompt and is not in its count.
    tools = _optional(record, "toolUsePromptTokenCount") or 0
    asked, cached = (_kinds(record, name) for name in ("promptTokensDetails", "cacheTokensDetails"))
    said, heard = _kinds(record, "candidatesTokensDetails"), cached.get("AUDIO", 0)
    image, audio = (asked.get(kind, 0) - cached.get(kind, 0) for kind in ("IMAGE", "AUDIO"))
    shown = said.get("IMAGE", 0), said.get("AUDIO", 0)
    # `candidatesTokenCount` is absent where nothing was said, and leaves thoughts out.
    return BilledUsage(
        fresh=tools + _rest(_count(record, "promptTokenCount"), (read, image, audio), "prompt"),
        output=_rest(_optional(record, "candidatesTokenCount") or 0, shown, "answer"),
        cache_read=None if read is None else _rest(read, (heard,), "cached prompt"),
        reasoning=_optional(record, "thoughtsTokenCount"),
        image=image, audio=audio, cached_audio=heard, output_image=shown[0], output_audio=shown[1],
    )  # fmt: skip


#: Class → its price in the list, and the one it takes where it has none. Images are read at the
#: price of text where they have none of their own; sound and cached tokens never are.
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


def billed_cost(usage: BilledUsage, prices: Mapping[str, Any]) -> Decimal | None:
    """USD of a call; null where a class with tokens has no price.

    A provider that does not say what was read from a cache is taken to have read nothing, so
    that the cost is the most that it can be.

    Args:
        prices: price of each class in USD per million tokens, under the names of
            `class_prices`; one with tiers holds for prompts by their length.
    """
    total = Decimal(0)
    for name, keys in _PRICED.items():
        tokens = getattr(usage, name) or 0
        if not tokens:
            continue
        price = next((prices[key] for key in keys if prices.get(key) is not None), None)
        if price is None:
            return None
        total += tokens * _at_length(price, usage.prompt_tokens)
    return total / _MILLION


def _at_length(price: Any, prompt_tokens: int) -> Decimal:
    """A price for prompts of this length: past a threshold all tokens cost what its tier says."""
    found = getattr(price, "base", price)
    for tier in getattr(price, "tiers", ()):
        if prompt_tokens > tier.start:
            found = tier.price
    return found if isinstance(found, Decimal) else Decimal(str(found))


def stated_prices(price: Price, prompt_tokens: int) -> dict[str, Any]:
    """Prices of a recipe's model as `billed_cost` takes them; none where the prompt is longer
    than they hold for."""
    if price.up_to is not None and prompt_tokens > price.up_to:
        return {}
    named = {
        "input_mtok": price.input, "output_mtok": price.output,
        "cache_read_mtok": price.cache_read, "cache_write_mtok": price.cache_write,
    }  # fmt: skip
    return {name: one for name, one in named.items() if one is not None}


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


def _part(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = record.get(name)
    return found if isinstance(found, Mapping) else {}


def _kinds(record: Mapping[str, Any], name: str) -> dict[str, int]:
    """Google's `[{modality, tokenCount}]` as modality → count."""
    found = record.get(name)
    rows = [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
    return {str(one.get("modality")): _count(one, "tokenCount") for one in rows}


def _count(record: Mapping[str, Any], name: str) -> int:
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**40:
        raise _bad(f"{name!r} is {value!r}", "a whole number of tokens")
    return value


def _optional(record: Mapping[str, Any], name: str) -> int | None:
    return None if record.get(name) is None else _count(record, name)


def _rest(whole: int, parts: tuple[int | None, ...], what: str) -> int:
    """What is left of a count without its parts."""
    rest = whole - sum(part or 0 for part in parts)
    if rest < 0 or any((part or 0) < 0 for part in parts):
        raise _bad(f"{what} of {whole} tokens with parts {parts}", "parts that fit in the whole")
    return rest


def _bad(found: str, expected: str) -> BadInput:
    return BadInput(
        f"a usage record has {found}; expected {expected}",
        where="usage",
        next_step="leave the usage of this call unknown, or correct the record",
    )
