"""Tokens of one call by class, read from the usage record of any provider, whole or incomplete.

Shapes differ in what a prompt's count includes: OpenAI's, Google's, DeepSeek's, OpenRouter's,
vLLM's and llama.cpp's include tokens read from a cache, Anthropic's do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from routeyard.pipelines.errors import BadInput

#: More tokens than any call takes or gives.
_MOST_TOKENS = 100_000_000


class TokenUsage(NamedTuple):
    """Tokens of one call; null where the provider does not say, which is not zero.

    Attributes:
        prompt, completion: All tokens of the prompt and of the answer.
        read, write: Of the prompt, read from the provider's cache and written to it.
        reasoning: Of the answer, hidden.
        write_1h: Of those written, kept for an hour.
        image, audio: Of the prompt, beside text and not read from the cache.
        cached_audio: Of those read, sound.
        output_image, output_audio: Of the answer.
        odd: Values that are no counts, or counts that contradict each other.
    """

    prompt: int | None = None
    completion: int | None = None
    read: int | None = None
    write: int | None = None
    reasoning: int | None = None
    write_1h: int = 0
    image: int = 0
    audio: int = 0
    cached_audio: int = 0
    output_image: int = 0
    output_audio: int = 0
    odd: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, int | None]:
        """The counts under the names that `steps` and `responses` have for them."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "reasoning_tokens": self.reasoning,
            "cache_read_tokens": self.read,
            "cache_write_tokens": self.write,
        }


#: Class → where records keep it; the first value counts.
_PATHS: Mapping[str, tuple[str, ...]] = {
    "prompt": ("prompt_tokens", "input_tokens"),
    "completion": ("completion_tokens", "output_tokens"),
    "read": (
        "prompt_cache_hit_tokens", "cache_read_input_tokens", "input_tokens_cache_read",
        "prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens",
    ),
    "write": (
        "cache_creation_input_tokens", "input_tokens_cache_write",
        "prompt_tokens_details.cache_write_tokens", "input_tokens_details.cache_write_tokens",
        "prompt_tokens_details.cache_creation_tokens", "input_tokens_details.cache_creation_tokens",
    ),
    "reasoning": (
        "completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens",
        "output_tokens_details.thinking_tokens", "reasoning_tokens",
    ),
    "write_1h": ("cache_creation.ephemeral_1h_input_tokens",),
    "image": ("prompt_tokens_details.image_tokens", "input_tokens_details.image_tokens"),
    "audio": ("prompt_tokens_details.audio_tokens", "input_tokens_details.audio_tokens"),
    "output_image": (
        "completion_tokens_details.image_tokens", "output_tokens_details.image_tokens",
    ),
    "output_audio": (
        "completion_tokens_details.audio_tokens", "output_tokens_details.audio_tokens",
    ),
}  # fmt: skip
#: Keys with which a prompt's count leaves out, or may leave out, what the cache had.
_APART = ("cache_read_input_tokens", "cache_creation_input_tokens", "prompt_cache_miss_tokens",
          "input_tokens_cache_read", "input_tokens_cache_write")  # fmt: skip


def usage_of(record: Mapping[str, Any], timings: Mapping[str, Any] | None = None) -> TokenUsage:
    """The classes of a record of OpenAI, Anthropic, Google, DeepSeek, OpenRouter, vLLM or Inspect.

    A record without cached tokens leaves them unknown. What is no whole number is unknown, too, and
    named in `odd`.

    Args:
        record: The `usage` (Google: `usageMetadata`) of a reply.
        timings: What llama.cpp's own server says beside it (`cache_n`, `prompt_n`).

    >>> usage_of({"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}).prompt
    100
    """
    odd: list[str] = []
    if "promptTokenCount" in record:
        found = _google(record, odd)
    else:
        plain, nested, apart = _places(tuple(record))
        counts: dict[str, int | None] = {}
        for name, key in plain:
            if counts.get(name) is None and record[key] is not None:
                counts[name] = _count(record[key], key, odd)
        for outer, inner in nested:
            part = record[outer]
            if isinstance(part, Mapping):
                for key, name in inner.items():
                    if part.get(key) is not None and counts.get(name) is None:
                        counts[name] = _count(part[key], f"{outer}.{key}", odd)
        if apart:
            counts["prompt"] = _whole_prompt(record, counts, odd)
        for name in _PARTS & counts.keys():
            counts[name] = counts[name] or 0
        found = TokenUsage(**counts)  # type: ignore[arg-type]
    if timings is not None and found.read is None:
        kept, asked = (_count(timings.get(n), n, odd) for n in ("cache_n", "prompt_n"))
        both = None if kept is None or asked is None else kept + asked
        found = found._replace(read=kept, prompt=both if found.prompt is None else found.prompt)
    return found._replace(odd=tuple(odd)) if odd else found


#: Classes that are zero where a record does not name them.
_PARTS = {name for name, value in TokenUsage._field_defaults.items() if value == 0}


@lru_cache(maxsize=1024)
def _places(
    keys: tuple[str, ...],
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, dict[str, str]], ...], bool]:
    """Where a record with these keys may keep a class: (plain, nested, whether the cache's tokens
    may stand beside the prompt's)."""
    plain: list[tuple[str, str]] = []
    nested: dict[str, dict[str, str]] = {}
    for name, paths in _PATHS.items():
        for path in paths:
            outer, _, key = path.rpartition(".")
            if not outer and key in keys:
                plain.append((name, key))
            elif outer in keys:
                nested.setdefault(outer, {})[key] = name
    return tuple(plain), tuple(nested.items()), not {*_APART}.isdisjoint(keys)


def _whole_prompt(
    record: Mapping[str, Any], counts: Mapping[str, int | None], odd: list[str]
) -> int | None:
    """All tokens of the prompt, by what the record's shape counts as one."""
    prompt, read, write = (counts.get(name) for name in ("prompt", "read", "write"))
    cached = (read or 0) + (write or 0)
    if "prompt_cache_miss_tokens" in record:  # DeepSeek
        missed = _count(record["prompt_cache_miss_tokens"], "prompt_cache_miss_tokens", odd)
        if missed is None or read is None:
            return prompt
        if prompt is not None and read + missed != prompt:
            odd.append(f"{read} + {missed} tokens hit and missed of {prompt}")
        return read + missed if prompt is None else prompt
    if prompt is None or record.get("prompt_tokens") is not None:
        return prompt  # a gateway has added Anthropic's up
    if "cache_read_input_tokens" in record or "cache_creation_input_tokens" in record:
        return prompt + cached
    if "input_tokens_cache_read" in record or "input_tokens_cache_write" in record:
        # Inspect keeps a provider's own count; its total tells whether that leaves them out.
        apart = prompt + (counts.get("completion") or 0) + cached == record.get("total_tokens")
        return prompt + cached * apart
    return prompt


def _google(record: Mapping[str, Any], odd: list[str]) -> TokenUsage:
    read, thoughts, tools, said, prompt = (
        _count(record.get(name), name, odd)
        for name in (
            "cachedContentTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount",
            "candidatesTokenCount", "promptTokenCount",
        )
    )  # fmt: skip
    asked, cached, shown = (
        _kinds(record, name, odd)
        for name in ("promptTokensDetails", "cacheTokensDetails", "candidatesTokensDetails")
    )
    silent = said is None and thoughts is None
    return TokenUsage(
        # What tools gave back is read as a prompt and is not in its count.
        None if prompt is None else prompt + (tools or 0),
        # `candidatesTokenCount` is absent where nothing was said, and leaves thoughts out.
        None if silent and "totalTokenCount" not in record else (said or 0) + (thoughts or 0),
        read, None, thoughts,
        image=asked.get("IMAGE", 0) - cached.get("IMAGE", 0),
        audio=asked.get("AUDIO", 0) - cached.get("AUDIO", 0),
        cached_audio=cached.get("AUDIO", 0),
        output_image=shown.get("IMAGE", 0), output_audio=shown.get("AUDIO", 0),
    )  # fmt: skip


def _kinds(record: Mapping[str, Any], name: str, odd: list[str]) -> dict[str, int]:
    """Google's `[{modality, tokenCount}]` as modality → count."""
    found = record.get(name)
    rows = [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
    return {str(one.get("modality")): _count(one.get("tokenCount"), name, odd) or 0 for one in rows}


def _count(value: Any, path: str, odd: list[str]) -> int | None:
    """A whole number of tokens, also as logs write it (`12.0`, `"12"`); null is unknown."""
    if type(value) is int and 0 <= value < _MOST_TOKENS:
        return value
    if value is None or value == "" or value != value:
        return None
    try:
        number = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not 0 <= number < _MOST_TOKENS or number != int(number):
        odd.append(f"{path!r} is {str(value)[:40]}, which is no number of tokens")
        return None
    return int(number)


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
    """The classes of a whole record, apart from each other, as they are billed.

    Raises:
        BadInput: it has no shape that is known, or counts that contradict each other.
    """
    of = usage_of(record)
    if of.odd:
        raise _bad("; ".join(of.odd), "whole numbers of tokens that agree")
    if of.prompt is None or of.completion is None:
        raise _bad("no counts of a shape that is known", f"keys {', '.join(sorted(record)[:8])}")
    read = None if of.read is None else _rest(of.read, (of.cached_audio,), "cached prompt")
    write = None if of.write is None else _rest(of.write, (of.write_1h,), "cache write")
    return BilledUsage(
        fresh=_rest(of.prompt, (of.read, of.write, of.image, of.audio), "prompt"),
        output=_rest(of.completion, (of.reasoning, of.output_image, of.output_audio), "answer"),
        cache_read=read, cache_write=write, cache_write_1h=of.write_1h, reasoning=of.reasoning,
        image=of.image, audio=of.audio, cached_audio=of.cached_audio,
        output_image=of.output_image, output_audio=of.output_audio,
    )  # fmt: skip


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
