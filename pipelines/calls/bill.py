"""What a budget counts for a call: what the provider reports, or a lower bound where that is more.

The bound needs nothing but the text that was asked and answered: a token holds at most two words
or runs of signs, and at most 16 bytes, on average over a text (`least_tokens`). Tokenizers with
byte-pair merges make two to three times as many tokens of running text. What a text does not show,
such as reasoning that is hidden, has no bound: there the provider's word is all there is. Cached
tokens cost the cached price only as far as an earlier prompt began in the same way.

`cost_usd` in the tables stays the provider's figure; the bound is the budget's alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.calls.reply import TOOL_CALLS, CallFault, ReplyChoice, Usage
from routeyard.pipelines.calls.request import Request, canonical
from routeyard.pipelines.calls.wire.image_part import image_tokens
from routeyard.pipelines.ledger.attempt import BILLED

#: Fewest tokens per word (`collect.metering.tokens_per_word`), and bytes that a token holds then.
TOKENS_PER_WORD, BYTES_PER_TOKEN = 0.5, 16
_WORD = re.compile(r"\w+|[^\w\s]+")
#: One sign many times over, and spaces: a single token can hold very many of those.
_REPEATED = re.compile(r"\s+|(\S)\1{7,}")


def words(text: str) -> int:
    """Words and runs of signs: no common tokenizer joins two of them."""
    return len(_WORD.findall(text))


def least_tokens(text: str, per_word: float = TOKENS_PER_WORD) -> int:
    """Fewest tokens that a text can have, by its words and by its bytes."""
    dense = _REPEATED.sub(lambda found: (found[1] or "") * 8, text)
    size = len(dense.encode("utf-8", "surrogatepass"))
    by_bytes = size / BYTES_PER_TOKEN * (per_word / TOKENS_PER_WORD)
    return math.ceil(max(per_word * words(text), by_bytes))


@dataclass(frozen=True, slots=True)
class LeastUsage:
    """Fewest tokens of a call.

    Attributes:
        silent: An answer came that holds no text: it has tokens all the same.
        cached: Most of the prompt that can have been read from a cache, as a share.
    """

    prompt: int = 0
    completion: int = 0
    silent: bool = False
    cached: float = 0.0


def least_usage(
    messages: Sequence[Mapping[str, Any]],
    choices: Iterable[ReplyChoice] = (),
    per_word: float = TOKENS_PER_WORD,
    cached: float = 0.0,
) -> LeastUsage:
    """Lower bounds from the messages of a request and the choices of its reply."""
    texts = [_said(choice) for choice in choices if choice.status != "refused" or choice.text]
    return LeastUsage(
        prompt=sum(least_tokens(_text(one.get("content")), per_word) for one in messages),
        completion=sum(max(1, least_tokens(text, per_word)) for text in texts),
        silent=any(not text.strip() for text in texts),
        cached=cached,
    )


def counted(usage: Usage, price: Price, least: LeastUsage | None = None) -> float | None:
    """USD that a budget counts for an answer; null when it cannot be known.

    Where a server reports no tokens for an answer without text, its usage is not believed at all.
    """
    least = least or LeastUsage()
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    if prompt is None or completion is None or (least.silent and completion == 0):
        by_table = None
    else:
        read = min(usage.cache_read_tokens or 0, int(least.cached * prompt))
        if price.cache_write is not None:  # writing is never cheaper than not caching
            price = replace(price, cache_write=max(price.cache_write, price.input or 0.0))
        by_table = price.of(
            max(prompt, least.prompt), max(completion, least.completion),
            read if price.cache_read is not None else 0, usage.cache_write_tokens,
        )  # fmt: skip
    if by_table is None:
        # Without a price nothing can be held against the provider's own figure.
        return None if price.known else usage.cost_usd
    return max(by_table, usage.cost_usd or 0.0)


def counted_fault(
    fault: CallFault, price: Price, least: LeastUsage, charged: float = math.inf
) -> float | None:
    """USD that a budget counts for an attempt without an answer; null is all that was charged.

    An error whose body holds usage was billed, whatever its status. No text says how much it was
    at least, so that all of the charge stays, or what the server says where that is more.
    """
    if fault.usage is None:
        return None if fault.maybe_billed else 0.0
    told = counted(fault.usage, price, least)
    if fault.kind in BILLED and fault.usage.completion_tokens:
        return told
    return told if told is not None and told > charged else None


#: Digests that are kept of one model's prompts, and bytes between two of them: of the first bytes
#: of a message, and of what follows.
_KEPT, _FINE, _COARSE, _FIRST = 2**16, 64, 1024, 2**14


class PromptsSeen:
    """How the prompts began that one model has answered: only that can have been in a cache.

    The newest are kept, as caches do.
    """

    def __init__(self) -> None:
        self._digests: dict[bytes, None] = {}

    def add(self, request: Request) -> float:
        """Keep a prompt; the share of it with which an earlier one began."""
        shared = whole = 0
        for digest, whole in _beginnings(request):
            shared = whole if digest in self._digests else shared
            self._digests.pop(digest, None)
            self._digests[digest] = None
        while len(self._digests) > _KEPT:
            del self._digests[next(iter(self._digests))]
        return shared / whole if whole else 0.0


def _beginnings(request: Request) -> Iterator[tuple[bytes, int]]:
    """Digests of a prompt's beginnings, the whole last, with their bytes and tokens of images."""
    digest, size = hashlib.blake2b(digest_size=8), 0
    for part in (request.settings.parameters.get("tools", ""), *request.messages):
        text, start = canonical(part), 0
        while piece := text[start : start + (_FINE if start < _FIRST else _COARSE)]:
            digest.update(piece)
            start += len(piece)
            size += len(piece)
            if start == len(text) and isinstance(part, Mapping):  # a message, not the tools
                size += image_tokens(part)
            yield digest.digest(), size


@dataclass
class UsageWatch:
    """The metering audit of one model while it is asked: is what it reports possible?

    Reported tokens are held against their lower bounds over all answers so far: where they are
    fewer than `_SHARE` of those, no tokenizer can have counted them.

    Args:
        after: Answers before anything is judged.
    """

    after: int = 20
    _answers: int = 0
    _told: list[int] = field(default_factory=lambda: [0, 0])
    _least: list[int] = field(default_factory=lambda: [0, 0])

    def add(self, usage: Usage, least: LeastUsage) -> str | None:
        """Count one answer; why the model's usage is impossible, or null."""
        told = usage.prompt_tokens, usage.completion_tokens
        if told[0] is None or told[1] is None:
            return None
        self._answers += 1
        for at, (count, fewest) in enumerate(
            ((told[0], least.prompt), (told[1], least.completion))
        ):
            self._told[at] += count
            self._least[at] += fewest
        if self._answers < self.after:
            return None
        for what, count, fewest in zip(
            ("prompts", "answers"), self._told, self._least, strict=True
        ):
            if count < _SHARE * fewest:
                return (
                    f"its usage is impossible: {self._answers} {what} of at least {fewest} tokens "
                    f"are reported as {count}; correct the server, or lower "
                    "'collect.metering.tokens_per_word' if its tokens are so few"
                )
        return None


#: Tolerance for servers that strip or rewrite what they count.
_SHARE = 0.8


def _said(choice: ReplyChoice) -> str:
    """What the model wrote of a choice: of called tools, names and arguments."""
    if choice.finish_reason != TOOL_CALLS or not choice.text:
        return choice.text or ""
    try:
        said = json.loads(choice.text)
        calls = [f"{call['name']} {call['arguments']}" for call in said["tool_calls"]]
        return " ".join([said.get("content") or "", *calls])
    except (ValueError, KeyError, TypeError):
        return choice.text


def _text(content: object) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
