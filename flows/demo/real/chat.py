"""One model file, asked: tokens in, one token at a time out, each with its log-probability.

An answer is a function of the file, the messages and the sampling settings alone: one
thread does the arithmetic of a call, prompts are read in pieces of fixed length, and what is
kept of an earlier prompt is whole pieces only, so its numbers are those of reading it again.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from routeyard.flows.demo.real.weights import binding
from routeyard.pipelines.common.arrays import Floats

#: Tokens of a prompt that are read at once.
PIECE = 64


class TooLong(ValueError):
    """The prompt and the answer that is asked for do not fit the context."""


@dataclass(frozen=True)
class Sampling:
    """How an answer is drawn. `temperature` 0 takes the likeliest token; `top_p` draws from the
    fewest tokens whose share is that large."""

    temperature: float = 1.0
    max_tokens: int = 256
    stop: tuple[str, ...] = ()
    seed: int = 0
    top_logprobs: int = 0
    top_p: float = 1.0


@dataclass(frozen=True)
class ChatAnswer:
    """An answer.

    Attributes:
        cached_tokens: Of the prompt, not evaluated again: the last prompt began with them.
        logprobs: Of each token: its text, its log-probability at temperature 1, and the
            likeliest tokens with theirs.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    logprobs: list[dict[str, Any]]
    cached_tokens: int = field(default=0, compare=False)


class Chat:
    """A chat model of the ChatML form in a GGUF file; one answer at a time."""

    def __init__(self, path: Path, *, context: int = 2048) -> None:
        library = binding()
        self._library = library
        self._llama = library.Llama(
            str(path), n_ctx=context, n_batch=PIECE, n_threads=1, n_threads_batch=1, verbose=False
        )
        self._context = context
        self._vocabulary = library.llama_model_get_vocab(self._llama.model)
        self._held: list[int] = []
        self._lock = threading.Lock()

    def answer(self, messages: Sequence[Mapping[str, str]], sampling: Sampling) -> ChatAnswer:
        """The answer to a conversation.

        Raises:
            TooLong: it does not fit the model's context.
        """
        with self._lock:
            return self._answer(self.prompt(messages), sampling, _digest(messages))

    def log_likelihood(self, messages: Sequence[Mapping[str, str]], reply: str) -> float:
        """Log-probability, in nats, that the answer begins with this reply."""
        with self._lock:
            self._read(self.prompt(messages))
            total = 0.0
            for token in self._text(reply):
                total += float(self._logits()[token])
                self._llama.eval([token])
            return total

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Tokens of a conversation; what a message says is never read as markup."""
        tokens: list[int] = []
        for message in messages:
            tokens += self._markup("<|im_start|>")
            tokens += self._text(f"{message['role']}\n{message['content']}")
            tokens += self._markup("<|im_end|>") + self._text("\n")
        return tokens + self._markup("<|im_start|>") + self._text("assistant\n")

    def _markup(self, text: str) -> list[int]:
        return list(self._llama.tokenize(text.encode(), add_bos=False, special=True))

    def _text(self, text: str) -> list[int]:
        return list(self._llama.tokenize(text.encode(), add_bos=False, special=False))

    def _answer(self, prompt: list[int], sampling: Sampling, digest: int) -> ChatAnswer:
        if len(prompt) + sampling.max_tokens > self._context:
            raise TooLong(
                f"{len(prompt)} prompt tokens and {sampling.max_tokens} for the answer are more "
                f"than the {self._context} of the model's context"
            )
        random = np.random.default_rng([sampling.seed, digest])
        kept = self._read(prompt)
        said: list[int] = []
        shown: list[dict[str, Any]] = []
        text, why = "", "length"
        while len(said) < sampling.max_tokens:
            logits = self._logits()
            token = _draw(logits, sampling, random)
            if self._library.llama_vocab_is_eog(self._vocabulary, token):
                why = "stop"
                break
            said.append(token)
            shown.append(self._shown(logits, token, sampling.top_logprobs))
            text = self._words(said)
            found = [text.find(end) for end in sampling.stop if end in text]
            if found:
                text, why = text[: min(found)], "stop"
                break
            self._llama.eval([token])
        # Its end is a token as well: it was computed, and servers count it.
        ended = len(said) + (why == "stop")
        return ChatAnswer(
            text, why, len(prompt), min(ended, sampling.max_tokens), shown, cached_tokens=kept
        )

    def _read(self, prompt: list[int]) -> int:
        """Bring the model behind the prompt's last token; how many of its tokens it still held."""
        same = 0
        for ours, held in zip(prompt[:-1], self._held, strict=False):
            if ours != held:
                break
            same += 1
        self._llama.n_tokens = same = same // PIECE * PIECE
        self._held = []
        for start in range(same, len(prompt), PIECE):
            self._llama.eval(prompt[start : start + PIECE])
        self._held = prompt
        return same

    def _logits(self) -> Floats:
        """Log-probabilities of the next token, float64 [vocabulary]."""
        raw = self._library.llama_get_logits_ith(self._llama.ctx, -1)
        logits = np.ctypeslib.as_array(raw, shape=(self._llama.n_vocab(),)).astype(np.float64)
        logits -= logits.max()
        logits -= math.log(np.exp(logits).sum())
        return logits

    def _shown(self, logits: Floats, token: int, top: int) -> dict[str, Any]:
        likeliest = [self._token(logits, one) for one in _likeliest(logits, top)]
        return {**self._token(logits, token), "top_logprobs": likeliest}

    def _token(self, logits: Floats, token: int) -> dict[str, Any]:
        logprob = round(float(logits[token]), 6)
        return {"token": self._words([token]), "logprob": logprob, "bytes": None}

    def _words(self, tokens: list[int]) -> str:
        return str(self._llama.detokenize(tokens).decode("utf-8", "replace"))


def _likeliest(logits: Floats, top: int) -> list[int]:
    """The likeliest tokens, of like ones the first; only as many are sorted as can be among them.

    >>> _likeliest(np.array([0.1, 0.5, 0.3, 0.5]), 2)
    [1, 3]
    """
    if not top:
        return []
    top = min(top, len(logits))
    near = np.flatnonzero(logits >= np.partition(logits, -top)[-top])
    return [int(one) for one in near[np.argsort(-logits[near], kind="stable")][:top]]


def _draw(logits: Floats, sampling: Sampling, random: np.random.Generator) -> int:
    if sampling.temperature == 0:
        return int(logits.argmax())
    weights = np.exp((logits - logits.max()) / sampling.temperature)
    if sampling.top_p < 1:
        order = np.argsort(-weights, kind="stable")
        # What comes before a token is short of the share: the token is one of the fewest.
        before = weights[order].cumsum() - weights[order]
        weights[order[before >= sampling.top_p * weights.sum()]] = 0
    shares = weights.cumsum()
    return int(np.searchsorted(shares, random.random() * shares[-1], side="right"))


def _digest(messages: Sequence[Mapping[str, str]]) -> int:
    """A number of the conversation: two questions with one seed draw differently."""
    text = json.dumps([dict(one) for one in messages], sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
