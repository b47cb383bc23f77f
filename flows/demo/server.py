"""A pool of models behind an OpenAI-compatible HTTP server on loopback.

    python -m routeyard.flows.demo.server simulated

prints the base URL and serves `/v1/chat/completions` (not streamed), `/v1/models` with prices,
 `/counts` (what was asked and answered, for tests) and `/health`.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import logging
import os
import re
import struct
import subprocess
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

from aiohttp import web

from routeyard.flows.demo.answers import (
    BankQuestion,
    SimulatedAnswer,
    SimulatedModel,
    answer,
    bank,
    pool,
    small_talk,
    tokens,
    uniform,
    write,
    write_hops,
)
from routeyard.pipelines.common.machine import collect_rarely
from routeyard.pipelines.common.staging import replacing

# Chat completions of the simulated pool as JSON objects, faults and counts.

CREATED = 1_767_225_600  # a fixed day: nothing the server says depends on the clock


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What goes back: status, body, headers, seconds to wait, and what it answered."""

    status: int
    body: Mapping[str, Any]
    headers: tuple[tuple[str, str], ...] = ()
    wait_s: float = 0.0
    key: tuple[str, str, int] | None = None


@dataclass
class SimulatedPool:
    """The answering side of the server.

    Attributes:
        asked: (model, question or prompt hash, seed) → requests seen.
    """

    seed: int = 0
    faults: float = 1.0
    latency: float = 1.0
    asked: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    _found: dict[str, BankQuestion | None] = field(default_factory=dict)

    def complete(self, request: Any) -> HttpReply:
        """One chat completion request → reply; malformed requests get a 400."""
        if not isinstance(request, dict):
            return _refuse(400, "the body must be a JSON object", "invalid_request_error")
        model = self._model(str(request.get("model")))
        if model is None:
            return _refuse(404, f"the model {request.get('model')!r} does not exist", "not_found")
        prompt = next(reversed(message_texts(request.get("messages"), "user")), None)
        if prompt is None:
            return _refuse(400, "'messages' needs a user message", "invalid_request_error")
        n = 1 if request.get("n") is None else request["n"]
        sample = 0 if request.get("seed") is None else request["seed"]
        limit = request.get("max_completion_tokens", request.get("max_tokens"))
        if not all(isinstance(x, int) for x in (n, sample)) or not 1 <= n <= 128:
            return _refuse(400, "'n' and 'seed' must be whole numbers", "invalid_request_error")
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            return _refuse(400, "'max_tokens' must be at least 1", "invalid_request_error")
        key = (model.model_id, self._name(prompt), sample)
        self.asked[key] += 1
        if fault := self._fault(model, key):
            return fault
        said = [self._answer(model, prompt, sample + i, limit) for i in range(n)]
        body = self._body(model, key, said, request)
        spoken = max(len(tokens(a.text or "")) + a.reasoning_tokens // 8 for a in said)
        jitter = 0.7 + 0.6 * uniform(*key, "latency")
        wait = (model.first_token_ms + model.token_ms * spoken) * jitter / 1000 * self.latency
        return HttpReply(200, body, (), wait, key)

    def models(self) -> dict[str, Any]:
        """What is served, with prices."""
        return price_list()

    def counts(self) -> dict[str, Any]:
        """Requests so far, per model, question and seed."""
        return {"requests": sum(self.asked.values()), "asked": nested(self.asked)}

    def _model(self, name: str) -> SimulatedModel | None:
        return pool().get(name)

    def _name(self, prompt: str) -> str:
        """What a prompt is counted under."""
        question = self._recognise(prompt)
        return question.id if question else sha256(prompt.encode()).hexdigest()[:16]

    def _answer(
        self, model: SimulatedModel, prompt: str, sample: int, limit: int | None
    ) -> SimulatedAnswer:
        question = self._recognise(prompt)
        if question is None:
            return _cut(small_talk(self.seed, model, prompt, sample), limit)
        return _cut(answer(self.seed, model, question, sample), limit)

    def _recognise(self, prompt: str) -> BankQuestion | None:
        """The question that a prompt contains: the longest, so that no part wins over a whole."""
        if prompt not in self._found:
            inside = [q for q in bank() if q.question in prompt]
            best = max(inside, key=lambda q: (len(q.question), q.id), default=None)
            self._found[prompt] = best
        return self._found[prompt]

    def _fault(self, model: SimulatedModel, key: tuple[str, str, int]) -> HttpReply | None:
        """Some questions fail at first; asking again helps."""
        luck = uniform(self.seed, *key, "fault")
        if self.asked[key] > (2 if uniform(self.seed, *key, "stubborn") < 0.3 else 1):
            return None
        if luck < model.throttled * self.faults:
            headers = (("retry-after", "0.05"), ("retry-after-ms", "50"))
            return _refuse(429, "rate limit reached, try again", "rate_limit_error", headers)
        if luck > 1 - model.broken * self.faults:
            return _refuse(500, "the server had an error", "server_error")
        return None

    def _body(
        self,
        model: SimulatedModel,
        key: tuple[str, str, int],
        said: list[SimulatedAnswer],
        request: Mapping[str, Any],
    ) -> dict[str, Any]:
        prompt_tokens = sum(len(tokens(text)) for text in message_texts(request["messages"])) + 7
        reasoning = sum(a.reasoning_tokens for a in said)
        visible = sum(len(tokens(a.text or a.refusal or "")) for a in said)
        cost = (prompt_tokens * model.price_in + (visible + reasoning) * model.price_out) / 1e6
        stamp = sha256(json.dumps([self.seed, *key]).encode()).hexdigest()
        return {
            "id": f"chatcmpl-{stamp[:24]}",
            "object": "chat.completion",
            "created": CREATED,
            "model": model.model_id,
            "provider": "demo",
            "system_fingerprint": f"fp_{sha256(model.model_id.encode()).hexdigest()[:10]}",
            "choices": [
                {
                    "index": i,
                    "message": {"role": "assistant", "content": a.text, "refusal": a.refusal},
                    "finish_reason": a.finish_reason,
                    "logprobs": _logprobs(model, key, a, request),
                }
                for i, a in enumerate(said)
            ],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": visible + reasoning,
                "total_tokens": prompt_tokens + visible + reasoning,
                "completion_tokens_details": {"reasoning_tokens": reasoning},
                "cost": round(cost, 12),
            },
        }


def nested(counts: Mapping[tuple[str, str, int], int]) -> dict[str, dict[str, int]]:
    """Counts by (model, question, seed) as JSON: model → `question#seed` → count."""
    out: dict[str, dict[str, int]] = {}
    for (model, question, seed), count in sorted(counts.items()):
        out.setdefault(model, {})[f"{question}#{seed}"] = count
    return out


def price_list() -> dict[str, Any]:
    """`/v1/models` in the form that OpenRouter gives: USD per token, as text."""
    return {
        "object": "list",
        "data": [
            {
                "id": model.model_id,
                "object": "model",
                "created": CREATED,
                "owned_by": "routeyard",
                "name": f"{model.model_id} (simulated)",
                "context_length": model.context_window,
                "pricing": {
                    "prompt": f"{model.price_in / 1e6:.10f}".rstrip("0"),
                    "completion": f"{model.price_out / 1e6:.10f}".rstrip("0"),
                },
            }
            for model in pool().values()
        ],
    }


def _refuse(
    status: int, message: str, kind: str, headers: tuple[tuple[str, str], ...] = ()
) -> HttpReply:
    return HttpReply(status, {"error": {"message": message, "type": kind, "code": status}}, headers)


def message_texts(messages: Any, role: str | None = None) -> list[str]:
    """Texts of all messages, or of those of one role: earlier turns are billed too."""
    results = []
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and role in (None, message.get("role")):
            content = message.get("content")
            if isinstance(content, list):
                content = "".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
            if isinstance(content, str) and content:
                results.append(content)
    return results


def _cut(said: SimulatedAnswer, limit: int | None) -> SimulatedAnswer:
    """The answer within `limit` tokens, hidden reasoning included."""
    pieces = tokens(said.text or "")
    if limit is None or said.reasoning_tokens + len(pieces) <= limit:
        return said
    hidden = min(said.reasoning_tokens, limit)
    return SimulatedAnswer("".join(pieces[: limit - hidden]), "length", reasoning_tokens=hidden)


def _logprobs(
    model: SimulatedModel,
    key: tuple[str, str, int],
    said: SimulatedAnswer,
    request: Mapping[str, Any],
) -> dict[str, Any] | None:
    if not request.get("logprobs"):
        return None
    wanted = int(request.get("top_logprobs") or 0)
    pieces = tokens(said.text or "")
    content = []
    for i, piece in enumerate(pieces):
        sure = -0.02 - 1.5 * uniform(*key, "logprob", i) ** 3
        rivals: list[dict[str, Any]] = [
            {
                "token": pieces[int(uniform(model.model_id, piece, j) * len(pieces))],
                "logprob": round(sure - 0.7 * j - 2 * uniform(*key, i, j), 6),
                "bytes": None,
            }
            for j in range(1, wanted)
        ]
        chosen: dict[str, Any] = {"token": piece, "logprob": round(sure, 6), "bytes": None}
        top = sorted([chosen, *rivals], key=lambda entry: -entry["logprob"]) if wanted else []
        content.append({**chosen, "top_logprobs": top})
    return {"content": content, "refusal": None}


# The HTTP server of the demo, the tests and the benchmarks: routes are functions, on loopback.
#
# with in_process([sys.executable, "-m", "routeyard.flows.demo.server"]) as url: ...

Route = Callable[[web.Request], Awaitable[web.StreamResponse]]
_MOST_BYTES = 4_000_000


async def start(routes: Mapping[str, Route], port: int = 0) -> tuple[web.AppRunner, str]:
    """A running server, and its address without a final slash.

    Args:
        routes: `METHOD /path` → what answers it; `*` answers what no other route does.
    """

    async def answer(request: web.Request) -> web.StreamResponse:
        route = routes.get(f"{request.method} {request.path}", routes.get("*"))
        if route is None:
            return failure(404, f"no route {request.method} {request.path}")
        try:
            return await route(request)
        except web.HTTPException:
            raise
        except Exception as fault:
            return failure(500, f"{type(fault).__name__}: {fault}")

    application = web.Application(client_max_size=_MOST_BYTES)
    application.router.add_route("*", "/{path:.*}", answer)
    # The response says what is wrong with the request; the server's output is the demo's.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


def failure(status: int, message: str) -> web.Response:
    """An error in the form of the OpenAI API."""
    return web.json_response({"error": {"message": message}}, status=status)


@contextmanager
def in_process(command: Sequence[str]) -> Iterator[str]:
    """The address that a server in a child process prints; the process is ended on leaving."""
    # The package may not be installed, only found from where the caller runs.
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(  # noqa: S603  (our own interpreter and module)
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            if not (url := process.stdout.readline().strip()):
                raise RuntimeError(f"{command[2]} did not start (exit code {process.wait(10)})")
            yield url
        finally:
            process.terminate()
            process.wait(10)


#: Pools that a process can serve, by name.
POOLS = {
    "simulated": "routeyard.flows.demo.server:SimulatedPool",
    "pictures": "routeyard.flows.demo.server:PicturePool",
    "rehearsed": "routeyard.flows.rehearse:RehearsedPool",
}


class ServedPool(Protocol):
    """The answering side of the server."""

    def complete(self, request: Any) -> HttpReply:
        """One chat completion."""

    def models(self) -> dict[str, Any]:
        """The body of `/v1/models`."""

    def counts(self) -> dict[str, Any]:
        """What `/counts` has of the pool; the server adds what it sent."""


def routes(pool: ServedPool) -> dict[str, Route]:
    """The routes of a pool, with counts of what was sent in full and at once."""
    answered: Counter[tuple[str, str, int]] = Counter()
    at_once = most_at_once = 0

    async def complete(request: web.Request) -> web.StreamResponse:
        nonlocal at_once, most_at_once
        try:
            asked: Any = json.loads(await request.read())
        except (ValueError, RecursionError):
            asked = None
        if isinstance(asked, dict) and asked.get("stream"):
            return failure(400, "this server does not stream")
        at_once += 1
        most_at_once = max(most_at_once, at_once)
        try:
            reply = pool.complete(asked)
            await asyncio.sleep(reply.wait_s)
        finally:
            at_once -= 1
        if request.transport is None or request.transport.is_closing():
            return web.Response()  # the client went away; nothing was answered
        if reply.key:
            answered[reply.key] += 1
        return web.json_response(reply.body, status=reply.status, headers=dict(reply.headers))

    async def models(request: web.Request) -> web.StreamResponse:
        return web.json_response(pool.models())

    async def counts(request: web.Request) -> web.StreamResponse:
        sent = {"answers": answered.total(), "most_at_once": most_at_once}
        return web.json_response({**pool.counts(), **sent, "answered": nested(answered)})

    async def health(request: web.Request) -> web.StreamResponse:
        return web.json_response({"status": "ok"})

    return {
        "POST /v1/chat/completions": complete,
        "GET /v1/models": models,
        "GET /counts": counts,
        "GET /health": health,
    }


@contextmanager
def running(pool: str = "simulated", *, port: int = 0, **settings: Any) -> Iterator[str]:
    """The base URL (`http://127.0.0.1:PORT/v1`) of one of `POOLS`, served by a child process.

    Args:
        settings: Of the pool. Of the simulated one: `seed`; `latency`, a factor on the simulated
            latencies, of which 0 answers at once; `faults`, one on the rate of 429 and 500.
    """
    command = [sys.executable, "-m", "routeyard.flows.demo.server", pool, "--port", str(port)]
    with in_process([*command, "--settings", json.dumps(settings), "--with-parent"]) as url:
        yield url


async def _serve(pool: ServedPool, port: int) -> None:
    _, address = await start(routes(pool), port)
    print(f"{address}/v1", flush=True)
    await asyncio.Event().wait()


def end_with_parent() -> None:
    """From here on end when the parent's end of stdin closes, also when it was killed."""

    def end() -> None:
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()


def main() -> None:
    """Serve a pool until the process is ended; the first line printed is the base URL."""
    parser = argparse.ArgumentParser(description="A pool of models for demos, on loopback.")
    parser.add_argument("pool", choices=list(POOLS), nargs="?", default="simulated")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--settings", type=json.loads, default={}, help="of the pool, as JSON")
    parser.add_argument("--with-parent", action="store_true", help="end when stdin closes")
    args = parser.parse_args()
    collect_rarely()
    if args.with_parent:
        end_with_parent()
    settings: Mapping[str, Any] = args.settings
    try:
        asyncio.run(_serve(resolve_name(POOLS[args.pool])(**settings), args.port))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()


# Questions about pictures that code draws, and simulated models that look at what they are sent.
#
# `sim-eye` sees colours and stripes, `sim-squint` colours only; `sim-reader` reads text only.

COLOURS = {"red": (214, 40, 40), "green": (30, 140, 60), "blue": (40, 70, 200), "black": (0, 0, 0)}
#: Tokens that the simulated provider counts for a picture.
IMAGE_TOKENS = 85
_LETTERS = "ABCD"


def png(colour: str, stripes: int, size: int) -> bytes:
    """A PNG of white ground with upright stripes of one colour."""
    white = (255, 255, 255)
    row = b"".join(
        bytes(COLOURS[colour] if (x * (2 * stripes + 1) // size) % 2 else white)
        for x in range(size)
    )
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress((b"\0" + row) * size)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def look(data: bytes) -> tuple[str, int]:
    """Colour and number of stripes of a picture that `png` drew."""
    (size,) = struct.unpack_from(">I", data, 16)
    row = zlib.decompressobj().decompress(data[41:], 1 + 3 * size)[1:]  # behind signature and head
    pixels = [(row[x], row[x + 1], row[x + 2]) for x in range(0, len(row), 3)]
    seen = {rgb: name for name, rgb in COLOURS.items()}
    shown = [seen.get(pixel) for pixel in pixels]
    begins = [b for a, b in zip([None, *shown], shown, strict=False) if b is not None and a != b]
    return begins[0] or "", len(begins)


def write_pictures(folder: Path) -> Path:
    """Write `questions.jsonl` and the pictures it names; returns the folder."""
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    rows = []
    for n in range(96):
        colour, stripes = list(COLOURS)[n % 4], n // 4 % 4 + 1
        task = ("colour", "stripes", "caption")[n // 16 % 3]
        name = f"pictures/{n:02}.png"
        (folder / name).write_bytes(png(colour, stripes, 36 + n))
        question, choices, right = {
            "colour": (f"Picture {n}: which colour has it?", list(COLOURS), n % 4),
            "stripes": (f"Picture {n}: how many stripes has it?", list("1234"), stripes - 1),
            "caption": (
                f"Picture {n} shows {colour} stripes, says its caption. Which colour are they?",
                list(COLOURS), n % 4,
            ),
        }[task]  # fmt: skip
        rows.append(
            {"id": n, "task": task, "image": name, "question": question, "choices": choices,
             "answer": _LETTERS[right]}
        )  # fmt: skip
    with replacing(folder / "questions.jsonl") as staged:
        staged.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


class PicturePool:
    """The answering side of the server."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        #: The last user message of each request, as it came.
        self.content: list[Any] = []

    def complete(self, request: Any) -> HttpReply:
        """One chat completion."""
        model, content = str(request["model"]), request["messages"][-1]["content"]
        text = message_texts(request["messages"], "user")[-1]
        parts = content if isinstance(content, list) else []
        urls = [part["image_url"]["url"] for part in parts if part.get("type") == "image_url"]
        self.asked[model] += 1
        self.content.append(content)
        answer = self._answer(model, text, urls)
        prompt = len(tokens(text)) + 7 + IMAGE_TOKENS * len(urls)
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": len(tokens(answer)),
            "total_tokens": prompt + len(tokens(answer)),
            "prompt_tokens_details": {"image_tokens": IMAGE_TOKENS * len(urls)},
        }
        said = {"role": "assistant", "content": answer}
        choice = {"index": 0, "message": said, "finish_reason": "stop"}
        body = {"id": "1", "object": "chat.completion", "model": model, "choices": [choice]}
        wait = 0.002 + 0.004 * uniform(model, text, "latency")
        return HttpReply(200, {**body, "usage": usage}, wait_s=wait)

    def models(self) -> dict[str, Any]:
        """The body of `/v1/models`."""
        return {"object": "list", "data": []}

    def counts(self) -> dict[str, Any]:
        """Requests so far by model, and what the users' messages were."""
        return {"asked": dict(self.asked), "content": self.content}

    def _answer(self, model: str, text: str, urls: list[str]) -> str:
        choices = re.findall(r"^[A-D]\. (\w+)", text, re.MULTILINE)
        match = re.search(r"shows (\w+) stripes", text)
        known = match[1] if match else None
        if urls and known is None:
            colour, stripes = look(base64.b64decode(urls[0].partition(",")[2]))
            counts = "how many" in text
            known = None if counts and model == "sim-squint" else str(stripes) if counts else colour
        if known not in choices or uniform(model, text, "slip") < 0.04:
            known = choices[int(len(choices) * uniform(model, text, "guess"))]
        return f"Answer: {_LETTERS[choices.index(known)]}"


# What `demo`, `agent_demo` and `image_demo` name: questions on disk, addresses of pools.


def bank_file(root: Path) -> AbstractContextManager[str]:
    """The demo's questions, written into the workspace."""
    return nullcontext(str(write(root / "demo" / "bank.jsonl")))


def served_pool(root: Path) -> AbstractContextManager[str]:
    """Address of the simulated pool, which is served while it is needed."""

    return running()


def picture_folder(root: Path) -> AbstractContextManager[str]:
    """The questions of `image_demo` and their pictures, written into the workspace."""

    return nullcontext(str(write_pictures(root / "demo" / "pictures")))


def served_eyes(root: Path) -> AbstractContextManager[str]:
    """Address of the simulated models that see, which are served while they are needed."""

    return running("pictures")


def hops_file(root: Path) -> AbstractContextManager[str]:
    """The questions of `agent_demo`, written into the workspace."""
    return nullcontext(str(write_hops(root / "demo" / "hops")[0]))


def served_agents(root: Path) -> AbstractContextManager[str]:
    """Address of the simulated agents, which are served while they are needed."""

    return running("rehearsed", bank=str(write_hops(root / "demo" / "hops")[1]))
