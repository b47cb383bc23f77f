"""One connection pool per provider: sends a request body, returns an answer or a `CallFault`.

Completions and files go through `wire.http`, uploads and the start of a batch through
the `openai` client, which neither retries nor follows. What a body says comes in
through `wire.received`, because a server is not trusted to send what its API
promises, nor to keep a key to itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from routeyard.pipelines.calls.reply import CallFault, ModelReply, read_json
from routeyard.pipelines.calls.wire.address import address_of
from routeyard.pipelines.calls.wire.http import Connections, retry_after
from routeyard.pipelines.calls.wire.received import cleaned, completion, decoded, refusal
from routeyard.pipelines.calls.wire.secret import Secret
from routeyard.pipelines.calls.wire.timeouts_and_sizes import (
    ACCEPTED,
    MOST_BYTES,
    Timeouts,
    bound,
)
from routeyard.schemas.recipe.pool import Provider

_Made = TypeVar("_Made")
#: Seconds for what a server sends after the end of a stream, so that its connection is used again.
_REST_S = 1.0


@dataclass(frozen=True, slots=True)
class TimedReply:
    """A completion and how long it took (seconds; first token only when streamed)."""

    reply: ModelReply
    latency_s: float
    ttft_s: float | None


class Client:
    """Asks one provider. Use as an async context manager.

    Args:
        provider: Endpoint and name of its key's environment variable.
        connections: Calls in flight at most; each has a connection that is reused.
        timeouts: Seconds after which a call is given up, and its parts.
        stream: Ask for server-sent events, which gives the time to first token.
        use_proxies: Use proxies and `.netrc` of the machine: they see prompts and answers.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        connections: int,
        timeouts: Timeouts,
        stream: bool = False,
        use_proxies: bool = True,
    ) -> None:
        self.provider = provider
        self.secret = Secret.of(provider)
        self.streams = stream
        self._timeouts = timeouts
        self._use_proxies = use_proxies
        self._http = Connections(
            address_of(provider),
            self.secret,
            number=connections,
            timeouts=timeouts,
            use_proxies=use_proxies,
        )
        self._files: Any = None

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()
        if self._files is not None:
            await self._files.close()

    async def complete(self, path: str, body: Mapping[str, Any]) -> TimedReply:
        """Send one completion request.

        Raises:
            CallFault: no answer came; its fields say whether to ask again.
        """
        sent = time.perf_counter()
        first: float | None = None
        if self.streams:
            data, first = await self._guarded(self._streamed(path, body, sent))
        else:
            content = await self._guarded(self._http.read("POST", path, body))
            data = decoded(content, self.secret)
        reply = completion(data, self.secret, tools=bool(body.get("tools")))
        return TimedReply(reply, time.perf_counter() - sent, first)

    async def get(self, path: str) -> dict[str, Any]:
        """The JSON object behind a GET, e.g. `/batches/<id>`."""
        return decoded(await self._guarded(self._http.read("GET", path)), self.secret)

    async def lines(self, path: str) -> Iterator[dict[str, Any]]:
        """The JSON objects in a file of lines; any other line is left out."""
        content = await self._guarded(self._http.read("GET", path))
        return _objects(content, self.secret)

    async def upload(self, content: bytes) -> str:
        """Upload the lines of a batch (`/v1/files`); returns the file's id."""
        file = ("routeyard.jsonl", content, "application/jsonl")
        return await self._id(self._openai().files.create(file=file, purpose="batch"))

    async def create_batch(self, file_id: str, url: str, window: str, name: str) -> str:
        """Start a batch under a name of ours, by which it can be found again."""
        return await self._id(
            self._openai().batches.create(
                input_file_id=file_id,
                endpoint=url,
                completion_window=window,
                metadata={"routeyard": name},
            )
        )

    async def _id(self, call: Awaitable[Any]) -> str:
        made = await self._guarded(call)
        if not isinstance(getattr(made, "id", None), str):
            raise CallFault("invalid_json", "the server gave no id", status=200)
        return self.secret.hide(str(made.id))

    # -- transport -----------------------------------------------------------------

    def _openai(self) -> Any:
        """The client of uploads and batches, made when one is needed."""
        if self._files is None:
            import httpx2
            import openai

            # First byte and silence are watched here; the transport only bounds connecting.
            timeout = httpx2.Timeout(None, connect=self._timeouts.connect)
            self._files = openai.AsyncOpenAI(
                base_url=address_of(self.provider),
                # A local server needs none, and the library insists on a text.
                api_key=self.secret.value or "none",
                max_retries=0,
                timeout=timeout,
                http_client=openai.DefaultAioHttpClient(
                    timeout=timeout,
                    follow_redirects=False,
                    trust_env=self._use_proxies,
                    event_hooks={"response": [self._bound]},
                ),
                default_headers={"accept-encoding": ACCEPTED},
            )
        return self._files

    async def _bound(self, response: Any) -> None:
        """Before a byte of the body is read, whatever the status."""
        await bound(response, most=MOST_BYTES, idle_s=self._timeouts.idle_s)

    async def _guarded(self, call: Awaitable[_Made]) -> _Made:
        """Its result within the deadline; everything that goes wrong as a clean fault."""
        with cleaned(self.secret):
            try:
                async with asyncio.timeout(self._timeouts.deadline_s):
                    return await call
            except Exception as error:
                if type(error) is TimeoutError:
                    said = f"no answer within {self._timeouts.deadline_s:g} s"
                    raise CallFault("timeout", said) from None
                raise self._fault(error) from None

    async def _streamed(
        self, path: str, body: Mapping[str, Any], sent: float
    ) -> tuple[dict[str, Any], float | None]:
        from routeyard.pipelines.calls.streaming import Assembled

        assembled = Assembled()
        first: float | None = None
        lines = self._http.lines(path, body)
        try:
            async with asyncio.timeout(None) as rest, aclosing(lines):
                async for line in lines:
                    if assembled.add(line) and first is None:
                        first = time.perf_counter() - sent
                    if assembled.ended and rest.when() is None:
                        rest.reschedule(asyncio.get_running_loop().time() + _REST_S)
        except Exception:
            if not assembled.ended:  # else the answer is whole, whatever follows it
                raise
        return assembled.completion(), first

    def _fault(self, error: Exception) -> CallFault:
        """What an exception of the libraries means."""
        import aiohttp

        if isinstance(error, CallFault):
            return error
        response = getattr(error, "response", None)
        if response is not None:  # of an upload or a batch
            wait = retry_after(response.headers)
            return refusal(response.status_code, response.content, self.secret, wait=wait)
        causes = [error]
        while isinstance(cause := causes[-1].__cause__, Exception):
            # A library calls a reset a time-out; the first cause knows better.
            causes.append(cause)
        first = causes[-1]
        if isinstance(first, CallFault):
            return first
        if isinstance(error, TypeError | ValueError | AttributeError | KeyError):
            # Ours, not the server's: never dressed up as a bad connection.
            raise error
        kind = "timeout" if isinstance(first, TimeoutError) else "connection"
        # Where no connection came about nothing was asked, so nothing is billed.
        never = (
            ConnectionRefusedError, aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError,
        )  # fmt: skip
        unreachable = any(isinstance(cause, never) for cause in causes)
        message = f"{type(first).__name__}: {first}"
        return CallFault(kind, message, maybe_billed=not unreachable, unreachable=unreachable)


def _objects(content: bytes, secret: Secret) -> Iterator[dict[str, Any]]:
    for line in content.splitlines():
        try:
            yield secret.clean(read_json(line))
        except CallFault:
            # Its request is then without a result, and says so.
            continue


def get_json(provider: Provider, path: str, *, timeout_s: float) -> dict[str, Any]:
    """The JSON object behind one GET, without the machine's proxies.

    Raises:
        BadInput: the key is not set.
        CallFault: no such object came.
    """

    async def get() -> dict[str, Any]:
        timeouts = Timeouts(deadline_s=timeout_s)
        async with Client(provider, connections=1, timeouts=timeouts, use_proxies=False) as client:
            return await client.get(path)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(get())
    with ThreadPoolExecutor(1) as thread:  # a loop runs here, as in a notebook
        return thread.submit(asyncio.run, get()).result()
