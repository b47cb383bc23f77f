"""Token classes from a provider's usage record, also an incomplete one, as logs hold them.

`metering/billed.py` reads whole records into the classes that have a price, and refuses others;
on those it reads both give the same counts (`tests/metering/test_billed.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Tokens(NamedTuple):
    """Tokens of one call; those of the cache are among the prompt's. None is not known."""

    prompt: int | None = None
    completion: int | None = None
    read: int | None = None
    write: int | None = None
    reasoning: int | None = None


def tokens_of(usage: Mapping[str, Any]) -> Tokens:
    """The classes of OpenAI's, Anthropic's, Google's, DeepSeek's and OpenRouter's records.

    Anthropic's `input_tokens` leaves out what was read from and written to the cache; the others
    count it. A record without cached tokens leaves them unknown, which is not zero.

    >>> tokens_of({"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5})
    Tokens(prompt=100, completion=5, read=90, write=None, reasoning=None)
    """
    if "promptTokenCount" in usage:
        answer, thoughts = usage.get("candidatesTokenCount"), usage.get("thoughtsTokenCount")
        whole = None if answer is None else answer + (thoughts or 0)
        # What tools returned is read as a prompt and is not in the prompt's count.
        asked = usage["promptTokenCount"] + (usage.get("toolUsePromptTokenCount") or 0)
        return Tokens(asked, whole, usage.get("cachedContentTokenCount"), None, thoughts)
    if "cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage:
        return _anthropic(usage)
    before = _first(usage, "prompt_tokens_details", "input_tokens_details")
    after = _first(usage, "completion_tokens_details", "output_tokens_details")
    return Tokens(
        _first(usage, "prompt_tokens", "input_tokens"),
        _first(usage, "completion_tokens", "output_tokens"),
        _first(before or {}, "cached_tokens")
        if before
        else _first(usage, "prompt_cache_hit_tokens", "input_tokens_cache_read"),
        _first(before or {}, "cache_write_tokens", "cache_creation_tokens")
        if before
        else _first(usage, "input_tokens_cache_write"),
        _first(after or {}, "reasoning_tokens") if after else usage.get("reasoning_tokens"),
    )


def _anthropic(usage: Mapping[str, Any]) -> Tokens:
    read, write = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    completion = _first(usage, "output_tokens", "completion_tokens")
    if usage.get("prompt_tokens") is not None:  # a gateway that added them up
        return Tokens(usage["prompt_tokens"], completion, read, write)
    fresh = usage.get("input_tokens")
    prompt = None if fresh is None else fresh + (read or 0) + (write or 0)
    hidden = _first(_first(usage, "output_tokens_details"), "thinking_tokens")
    return Tokens(prompt, completion, read, write, hidden)


def _first(record: Any, *names: str) -> Any:
    """The first value that is there; None where the record is no mapping."""
    if isinstance(record, dict):
        for name in names:
            if record.get(name) is not None:
                return record[name]
    return None
