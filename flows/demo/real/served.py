"""The real pool behind an OpenAI-compatible HTTP server on loopback.

    python -m flows.demo.real.served --folder FOLDER

prints its base URL. Each quantisation is a model; what it is asked in how many words is the
recipe's business. Requests to one model wait for each other, models run side by side.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import hashlib
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flows.demo.completions import HttpReply
from flows.demo.real.chat import Chat, ChatAnswer, Sampling, TooLong
from flows.demo.real.weights import VARIANTS, binding, source, variant
from flows.demo.server import serve, serving, watch_parent

_KNOWN = frozenset(
    {
        "model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "stop",
        "seed", "logprobs", "top_logprobs", "n", "stream",
    }
)  # fmt: skip


class RealPool:
    """The answering side of the server.

    Args:
        folder: Where quantised files are kept.
        threads: Models that may answer at the same time.
    """

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        self.at_once = self.most_at_once = 0
        self.answered: dict[tuple[str, str, int], int] = defaultdict(int)
        self._folder = folder
        self._workers = ThreadPoolExecutor(threads)
        self._places = asyncio.Semaphore(threads)
        self._turns: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._made: dict[str, Chat] = {}
        self._making = threading.Lock()
        self._asked = self._seconds = 0.0

    def complete(self, request: Any) -> HttpReply | asyncio.Future[HttpReply]:
        """One chat completion, made by a worker; a request that cannot be served gets a 400."""
        try:
            name, messages, sampling, wants = _read(request)
        except ValueError as error:
            return _refused(400, str(error))
        if name not in VARIANTS:
            return _refused(404, f"the model {name!r} does not exist")
        work = functools.partial(self._answer, name, messages, sampling, wants)
        return asyncio.ensure_future(self._in_turn(name, work))

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


def _read(request: Any) -> tuple[str, list[dict[str, str]], Sampling, bool]:
    """Model, messages, sampling, and whether log-probabilities are wanted.

    Raises:
        ValueError: something that this server cannot do, in words.
    """
    if not isinstance(request, dict):
        raise ValueError("the body must be a JSON object")
    if unknown := sorted(set(request) - _KNOWN):
        raise ValueError(f"this server knows no {unknown[0]!r}")
    if request.get("stream") or (request.get("n") or 1) != 1:
        raise ValueError("this server gives one answer at a time and does not stream")
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ValueError("'messages' must be a list of messages")
    for one in messages:
        if not isinstance(one, dict) or not all(
            isinstance(one.get(key), str) for key in ("role", "content")
        ):
            raise ValueError("a message has a 'role' and a 'content', both texts")
    stop = request.get("stop") or []
    limit = request.get("max_completion_tokens", request.get("max_tokens"))
    numbers = {
        "max_tokens": 256 if limit is None else limit,
        "seed": request.get("seed") or 0,
        "top_logprobs": request.get("top_logprobs") or 0,
    }
    if (
        not all(isinstance(n, int) and n >= 0 for n in numbers.values())
        or not numbers["max_tokens"]
    ):
        raise ValueError("'max_tokens', 'seed' and 'top_logprobs' are whole numbers")
    temperature = request.get("temperature")
    if temperature is not None and not (
        isinstance(temperature, int | float) and 0 <= temperature <= 10
    ):
        raise ValueError("'temperature' is a number from 0 to 10")
    share = request.get("top_p")
    if share is not None and not (isinstance(share, int | float) and 0 < share <= 1):
        raise ValueError("'top_p' is a number above 0 and at most 1")
    sampling = Sampling(
        temperature=1.0 if temperature is None else float(temperature),
        top_p=1.0 if share is None else float(share),
        stop=tuple([stop] if isinstance(stop, str) else map(str, stop)),
        **numbers,
    )
    return str(request.get("model")), messages, sampling, bool(request.get("logprobs"))


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
    command = [sys.executable, "-m", "flows.demo.real.served", "--with-parent"]
    with serving([*command, "--folder", str(root / "demo" / "real")]) as url:
        yield url


def main() -> None:
    """Start the server from the command line."""
    parser = argparse.ArgumentParser(description="SmolLM2-135M-Instruct, quantised, on loopback.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--folder", type=Path, required=True, help="keeps quantised files")
    parser.add_argument("--threads", type=int, default=2, help="models that answer at once")
    parser.add_argument("--with-parent", action="store_true", help="end when stdin closes")
    given = parser.parse_args()
    if given.with_parent:
        watch_parent()
    try:
        asyncio.run(serve(RealPool(given.folder, threads=given.threads), given.port))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
