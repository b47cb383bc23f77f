"""The real pool behind an OpenAI-compatible HTTP server on loopback.

Each quantisation is a model; what it is asked in how many words is the
recipe's business. Requests to one model wait for each other, models run side by side.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from routeyard.flows.demo.completions import HttpReply
from routeyard.flows.demo.real.chat import Chat, ChatAnswer, Sampling, TooLong
from routeyard.flows.demo.real.weights import VARIANTS, binding, source, variant
from routeyard.flows.demo.server import running

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
        messages = [one.model_dump() for one in asked.messages]
        wants = bool(asked.logprobs)
        work = functools.partial(self._answer, asked.model, messages, asked.sampling, wants)
        return asyncio.ensure_future(self._in_turn(asked.model, work))

    async def _in_turn(self, name: str, work: Callable[[], HttpReply]) -> HttpReply:
        """Requests to one model take turns in the order they came; so do models for a thread."""
        async with self._turns[name], self._places:
            return await asyncio.get_running_loop().run_in_executor(self._workers, work)

    def models(self) -> dict[str, Any]:
        """`/v1/models`."""
        listed = [{"id": name, "object": "model", "owned_by": "routeyard"} for name in VARIANTS]
        return {"object": "list", "data": listed}

    def counts(self) -> dict[str, Any]:
        """`/counts`: requests so far, and the seconds of one thread that they took."""
        return {"requests": int(self._asked), "seconds": self._seconds}

    def _answer(
        self, name: str, messages: list[dict[str, str]], sampling: Sampling, wants: bool
    ) -> HttpReply:
        with self._making:
            if name not in self._made:
                self._made[name] = Chat(variant(name, self._folder))
        began = time.thread_time()
        try:
            said = self._made[name].answer(messages, sampling)
        except TooLong as error:
            return _refused(400, str(error))
        self._asked += 1
        self._seconds += time.thread_time() - began
        return HttpReply(200, _body(name, said, sampling, wants))


class ChatMessage(BaseModel):
    """One message of a conversation."""

    model_config = ConfigDict(strict=True)

    role: str
    content: str


class ChatRequest(BaseModel):
    """What the server can do: one answer at a time, not streamed."""

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

    @property
    def sampling(self) -> Sampling:
        return Sampling(
            temperature=1.0 if self.temperature is None else self.temperature,
            top_p=self.top_p or 1.0,
            max_tokens=self.max_completion_tokens or self.max_tokens or 256,
            stop=tuple([self.stop] if isinstance(self.stop, str) else self.stop or ()),
            seed=self.seed or 0,
            top_logprobs=self.top_logprobs or 0,
        )


def _body(name: str, said: ChatAnswer, sampling: Sampling, wants: bool) -> dict[str, Any]:
    stamp = hashlib.sha256(json.dumps([name, said.text, sampling.seed]).encode()).hexdigest()
    return {
        "id": f"chatcmpl-{stamp[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": name,
        "system_fingerprint": f"llama.cpp-{binding().__version__}",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": said.text},
                "finish_reason": said.finish_reason,
                "logprobs": {"content": said.logprobs} if wants else None,
            }
        ],
        "usage": {
            "prompt_tokens": said.prompt_tokens,
            "completion_tokens": said.completion_tokens,
            "total_tokens": said.prompt_tokens + said.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": said.cached_tokens},
        },
    }


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
