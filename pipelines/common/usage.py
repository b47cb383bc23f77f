"""Tokens of one call by class, read from the usage record of any provider, whole or incomplete.

Shapes differ in what a prompt's count includes: OpenAI's, Google's, DeepSeek's, OpenRouter's,
vLLM's and llama.cpp's include tokens read from a cache, Anthropic's do not.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from routeyard.schemas.errors import BadInput
from routeyard.schemas.text import own_table


def whole_sum(values: Sequence[Any]) -> Any:
    """Sum of counts or costs; None as soon as one is unknown."""
    return None if None in values else sum(values)


# Tokens of one call by class.


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
        hidden: Of the stated total, of no stated class.
        beside: What is billed beside tokens, such as searches; its price is not among theirs.
        odd: Values that are no counts, or counts that contradict each other.
        contradictory: Counts contradict each other, so that none of them is known.
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
    hidden: int = 0
    beside: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    contradictory: bool = False

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

    @property
    def known(self) -> TokenUsage:
        """The counts, the answer's unknown where more is billed than its tokens."""
        return self._replace(completion=None) if self.hidden or self.beside else self


#: More tokens than any call takes or gives.
MOST_TOKENS = 100_000_000


#: Keys with which a prompt's count leaves out, or may leave out, what the cache had.
APART = ("cache_read_input_tokens", "cache_creation_input_tokens", "prompt_cache_miss_tokens",
         "input_tokens_cache_read", "input_tokens_cache_write", "cacheReadInputTokens",
         "cacheWriteInputTokens")  # fmt: skip
#: Anthropic's and Bedrock's.
_ALWAYS_APART = ("cache_read_input_tokens", "cache_creation_input_tokens", "cacheReadInputTokens",
                 "cacheWriteInputTokens")  # fmt: skip


def usage_of(record: Mapping[str, Any], timings: Mapping[str, Any] | None = None) -> TokenUsage:
    """The classes of a record of OpenAI, Anthropic, Google, Bedrock, Cohere, Mistral and others.

    A record without cached tokens leaves them unknown. What is no whole number is unknown, too, and
    named in `odd`, as are counts that contradict a total.

    Args:
        record: The `usage` (Google: `usageMetadata`) of a reply.
        timings: What llama.cpp's own server says beside it (`cache_n`, `prompt_n`).

    >>> usage_of({"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}).prompt
    100
    """
    odd: list[str] = []
    if "promptTokenCount" in record or "prompt_token_count" in record:
        usage = _google(record, odd)
    else:
        usage = _plain(record, odd)
    if timings is not None and usage.read is None:
        cached, asked, said = (
            _count(timings.get(n), n, odd) for n in ("cache_n", "prompt_n", "predicted_n")
        )
        both = None if cached is None or asked is None else cached + asked
        usage = usage._replace(
            read=cached,
            prompt=both if usage.prompt is None else usage.prompt,
            completion=said if usage.completion is None else usage.completion,
        )
    return usage._replace(odd=tuple(odd)) if odd else usage


#: Keys whose counts are of the answer.
_OF_ANSWER = re.compile("completion|output|candidates|thoughts|reasoning|cost", re.I)
#: How usage events may be read together: which keys hold increments.
_READINGS = (re.compile(r"(?!)"), _OF_ANSWER, re.compile("^(?!total)"))


def usage_of_events(
    events: Sequence[Mapping[str, Any]], timings: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], TokenUsage]:
    """All usage events of one answer as one record, and its classes.

    Of each count the largest value is taken, because counts of a stream only grow and a zero is
    no count, unless their total says that the events of the answer, or all of them, are
    increments. Where no reading agrees with the total, the first is returned.
    """
    if len(events) < 2:
        record: dict[str, Any] = dict(*events)
        return record, usage_of(record, timings)
    readings = []
    for increments in _READINGS:
        record = {}
        for event in events:
            record = _joined(record, event, increments)
        readings.append((record, usage_of(record, timings)))
        if not readings[-1][1].contradictory and not readings[-1][1].hidden:
            return readings[-1]
    return readings[0]


def _joined(
    before: Mapping[str, Any], now: Mapping[str, Any], increments: re.Pattern[str], within: str = ""
) -> dict[str, Any]:
    """Two events as one record; a value that says nothing replaces none."""
    result = dict(before)
    for name, value in now.items():
        known = result.get(name)
        if isinstance(value, Mapping) and not within:
            known = known if isinstance(known, Mapping) else {}
            result[name] = _joined(known, value, increments, name)
            continue
        counts = [n for n in (amount_of(known), amount_of(value)) if n is not None]
        if len(counts) == 2:
            result[name] = sum(counts) if increments.search(within or name) else max(counts)
        elif known is None or known == "" or (counts and amount_of(known) is None):
            result[name] = value
    return result


#: Classes that are zero where a record does not name them.
_PARTS = {name for name, value in TokenUsage._field_defaults.items() if value == 0}


def _plain(record: Mapping[str, Any], odd: list[str]) -> TokenUsage:
    """Every shape but Google's."""
    plain, nested, apart = _places(tuple(record))
    counts: dict[str, Any] = {}
    extras: list[str] = []

    def take(name: str, value: Any, path: str) -> None:
        if name == "beside":
            extras.extend([path] if value else ())
        elif value is not None and counts.get(name) is None:
            counts[name] = _count(value, path, odd)

    for name, key in plain:
        take(name, record[key], key)
    for outer, inner in nested:
        part = record[outer]
        if isinstance(part, Mapping):
            for key, name in inner.items():
                take(name, part.get(key), f"{outer}.{key}")
    total, stated = counts.pop("total", None), counts.get("prompt")
    if apart:
        counts["prompt"] = _whole_prompt(record, counts, total, odd)
    if "billed_units" in record:
        counts.pop("read", None)  # Cohere's cached tokens are not among those that it bills
    details = record.get("input_token_details")
    cached = details.get("cached_tokens_details") if isinstance(details, Mapping) else None
    if isinstance(cached, Mapping):
        counts["cached_audio"] = _count(cached.get("audio_tokens"), "cached audio_tokens", odd)
        counts["audio"] = (counts.get("audio") or 0) - (counts["cached_audio"] or 0)
    for name in _PARTS & counts.keys():
        counts[name] = counts[name] or 0
    usage = TokenUsage(**counts, beside=tuple(extras))
    return usage if total is None else _by_total(usage, total, stated, odd)


def _by_total(usage: TokenUsage, total: int, stated: int | None, odd: list[str]) -> TokenUsage:
    """The counts, as the total tells whether hidden tokens of the answer are among its own."""
    if not usage.prompt or usage.completion is None or stated is None or not total:
        return usage
    over = total - usage.completion - usage.prompt
    if over == 0 or total == stated + usage.completion:
        return usage
    if over < 0:
        odd.append(f"{usage.prompt} + {usage.completion} tokens of a total of {total}")
        return TokenUsage(contradictory=True)
    if over == usage.reasoning:  # xAI's
        return usage._replace(completion=usage.completion + over)
    return usage._replace(hidden=over)


@cache
def _paths() -> dict[str, list[str]]:
    paths: dict[str, list[str]] = own_table(Path(__file__).with_name("usage.yaml"))
    return paths


@lru_cache(maxsize=1024)
def _places(
    keys: tuple[str, ...],
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, dict[str, str]], ...], bool]:
    """Where a record with these keys may keep a class: (plain, nested, whether the cache's tokens
    may be beside the prompt's)."""
    plain: list[tuple[str, str]] = []
    nested: dict[str, dict[str, str]] = {}
    for name, paths in _paths().items():
        for path in paths:
            outer, _, key = path.rpartition(".")
            if not outer and key in keys:
                plain.append((name, key))
            elif outer in keys:
                nested.setdefault(outer, {})[key] = name
    return tuple(plain), tuple(nested.items()), not {*APART}.isdisjoint(keys)


def _whole_prompt(
    record: Mapping[str, Any], counts: Mapping[str, int | None], total: int | None, odd: list[str]
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
            return None
        return read + missed if prompt is None else prompt
    if prompt is None or record.get("prompt_tokens") is not None:
        return prompt  # a gateway has added Anthropic's up
    if not {*_ALWAYS_APART}.isdisjoint(record):
        return prompt + cached
    if "input_tokens_cache_read" in record or "input_tokens_cache_write" in record:
        # Inspect keeps a provider's own count; its total tells whether that leaves them out.
        apart = prompt + (counts.get("completion") or 0) + cached == total
        return prompt + cached * apart
    return prompt


def _google(record: Mapping[str, Any], odd: list[str]) -> TokenUsage:
    """Google's, and what its Python client makes of it."""
    if "prompt_token_count" in record:
        record = {_camel(key): value for key, value in record.items()}
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
        # `candidatesTokenCount` is absent where nothing was written, and leaves thoughts out.
        None if silent and "totalTokenCount" not in record else (said or 0) + (thoughts or 0),
        read, None, thoughts,
        image=asked.get("IMAGE", 0) - cached.get("IMAGE", 0),
        audio=asked.get("AUDIO", 0) - cached.get("AUDIO", 0),
        cached_audio=cached.get("AUDIO", 0),
        output_image=shown.get("IMAGE", 0), output_audio=shown.get("AUDIO", 0),
    )  # fmt: skip


def _kinds(record: Mapping[str, Any], name: str, odd: list[str]) -> dict[str, int]:
    """Google's `[{modality, tokenCount}]` as modality → count."""
    result = record.get(name)
    rows = [row for row in result if isinstance(row, Mapping)] if isinstance(result, list) else []
    counts = ((row.get("modality"), row.get("tokenCount", row.get("token_count"))) for row in rows)
    return {str(kind).rpartition(".")[2]: _count(n, name, odd) or 0 for kind, n in counts}


def _camel(key: str) -> str:
    first, *more = key.split("_")
    return first + "".join(word.title() for word in more)


def _count(value: Any, path: str, odd: list[str]) -> int | None:
    """A whole number of tokens, also as logs write it (`12.0`, `"12"`); null is unknown."""
    if value is None or value == "" or value != value:
        return None
    if (count := count_of(value)) is None:
        odd.append(f"{path!r} is {str(value)[:40]}, which is no number of tokens")
    return count


def count_of(value: Any) -> int | None:
    """A whole number of tokens, also as a text; None for anything else."""
    if type(value) is int and 0 <= value < MOST_TOKENS:
        return value
    number = amount_of(value)
    whole = number is not None and number < MOST_TOKENS and number == int(number)
    return int(number) if number is not None and whole else None


def amount_of(value: Any) -> float | None:
    """A finite number of 0 or more, also as a text; None for anything else."""
    if value is None:
        return None
    try:
        number = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 <= number < math.inf else None


# Token log-probabilities of a response, as `responses.logprobs` keeps them.


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token: its log-probability and the alternatives returned with it.

    `top` holds (token, log-probability) in the server's order, most likely
    first as a rule; it need not hold the token itself.
    """

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


def tokens(logprobs: str | None, *, where: str | None = None) -> tuple[Token, ...] | None:
    """Tokens of one response; None when the server returned no log-probabilities.

    Raises:
        BadInput: the column holds something other than the list its contract describes.
    """
    if logprobs is None:
        return None
    try:
        return tuple(
            Token(
                str(entry["token"]),
                _number(entry["logprob"]),
                tuple((str(token), _number(value)) for token, value in entry.get("top") or ()),
            )
            for entry in json.loads(logprobs)
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadInput(
            f"logprobs are not a JSON list of {{token, logprob, top}}: {error!r}",
            where=where,
            next_step="compare with the column's description in schemas/contracts.yaml",
        ) from error


def sequence_logprob(
    sequence: tuple[Token, ...] | None, *, length_normalised: bool = False
) -> float | None:
    """log p(s | x) in nat: the sum over tokens, or their mean.

    None when there are no tokens or one of them has no finite log-probability:
    a probability of zero for a text that was sampled is a gap in the record.
    """
    if not sequence:
        return None
    total = math.fsum(token.logprob for token in sequence)
    if not math.isfinite(total):
        return None
    return total / len(sequence) if length_normalised else total


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a log-probability is {value!r}")
    return float(value)
