"""One connection pool per provider: sends a request body, returns bytes or a `Fault`.

The `openai` client does the transport (its aiohttp one: half the CPU of the
default at 256 in flight); it neither retries nor parses. What a body says is
read by `answer`, because a server is not trusted to send what its API promises.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import os
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipelines.calls.reply import Fault, Reply, from_status, read_reply
from pipelines.errors import BadInput
from schemas.recipe.pool import Provider


@dataclass(frozen=True, slots=True)
class Sent:
    """A completion and how long it took (seconds; first token only when streamed)."""

    reply: Reply
    latency_s: float
    ttft_s: float | None


@dataclass(frozen=True)
class Key:
    """A secret: shown nowhere, and taken out of everything a server sends back."""

    value: str | None = field(repr=False)

    @classmethod
    def of(cls, provider: Provider) -> Key:
        """The key of a provider, from the environment variable it names.

        Raises:
            BadInput: the variable is not set.
        """
        if provider.api_key_env is None:
            return cls(None)
        value = os.environ.get(provider.api_key_env)
        if not value:
            raise BadInput(
                f"provider {provider.name!r} needs a key, and the environment variable "
                f"{provider.api_key_env} is not set",
                where=f"pool.providers, {provider.name}",
                next_step=f"export {provider.api_key_env}=… and run the same command",
            )
        return cls(value)

    def hide(self, text: str | None) -> str | None:
        """The text without the key."""
        if text is None or self.value is None or self.value not in text:
            return text
        return text.replace(self.value, "[key]")


class Client:
    """Asks one provider. Use as an async context manager.

    Args:
        provider: Endpoint and name of its key's environment variable.
        connections: Calls in flight at most; each has a connection that is reused.
        deadline_s: Seconds after which a call is given up.
        stream: Ask for server-sent events, which gives the time to first token.
    """

    def __init__(
        self, provider: Provider, *, connections: int, deadline_s: float, stream: bool = False
    ) -> None:
        import httpx2
        import openai

        self.provider = provider
        self.key = Key.of(provider)
        self._deadline_s = deadline_s
        self.streams = stream
        self._raw = httpx2.Response
        self._events = openai.AsyncStream[Any]
        limits = httpx2.Limits(
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=30.0,
        )
        # The deadline covers the whole call; the transport only bounds connecting.
        timeout = httpx2.Timeout(None, connect=min(30.0, deadline_s))
        self._openai = openai.AsyncOpenAI(
            base_url=provider.base_url,
            # A local server needs none, and the library insists on a text.
            api_key=self.key.value or "none",
            max_retries=0,
            timeout=timeout,
            http_client=openai.DefaultAioHttpClient(limits=limits, timeout=timeout),
        )

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._openai.close()

    async def complete(self, path: str, body: Mapping[str, Any]) -> Sent:
        """Send one completion request.

        Raises:
            Fault: no answer came; its fields say whether to ask again.
        """
        sent = time.perf_counter()
        try:
            async with asyncio.timeout(self._deadline_s):
                if self.streams:
                    reply, first = await self._streamed(path, body, sent)
                else:
                    reply, first = read_reply(await self._post(path, body)), None
        except TimeoutError:
            raise Fault("timeout", f"no answer within {self._deadline_s:g} s") from None
        return Sent(reply, time.perf_counter() - sent, first)

    async def upload(self, content: bytes) -> str:
        """Upload the lines of a batch (`/v1/files`); returns the file's id."""
        file = ("routeyard.jsonl", content, "application/jsonl")
        return await self._id(self._openai.files.create(file=file, purpose="batch"))

    async def create_batch(self, file_id: str, url: str, window: str, name: str) -> str:
        """Start a batch under a name of ours, by which it can be found again."""
        return await self._id(
            self._openai.batches.create(
                input_file_id=file_id,
                endpoint=url,  # type: ignore[arg-type]
                completion_window=window,  # type: ignore[arg-type]
                metadata={"routeyard": name},
            )
        )

    async def get(self, path: str) -> bytes:
        """Body of a GET, e.g. `/batches/<id>` or `/files/<id>/content`."""
        try:
            async with asyncio.timeout(self._deadline_s):
                response = await self._openai.get(path, cast_to=self._raw)
        except TimeoutError:
            raise Fault("timeout", f"no answer within {self._deadline_s:g} s") from None
        except Exception as error:
            raise self.fault(error) from None
        return bytes(response.content)

    async def _id(self, call: Awaitable[Any]) -> str:
        try:
            async with asyncio.timeout(self._deadline_s):
                made = await call
        except TimeoutError:
            raise Fault("timeout", f"no answer within {self._deadline_s:g} s") from None
        except Exception as error:
            raise self.fault(error) from None
        if not isinstance(getattr(made, "id", None), str):
            raise Fault("invalid_json", "the server gave no id", status=200)
        return str(made.id)

    async def _post(self, path: str, body: Mapping[str, Any]) -> bytes:
        try:
            response = await self._openai.post(path, cast_to=self._raw, body=body)
        except Exception as error:
            raise self.fault(error) from None
        return response.content

    async def _streamed(
        self, path: str, body: Mapping[str, Any], sent: float
    ) -> tuple[Reply, float | None]:
        from pipelines.calls.streaming import Assembled

        assembled = Assembled()
        first: float | None = None
        try:
            # Typed as its event stream, given as the raw response that `cast_to` asks for.
            response: Any = await self._openai.post(
                path, cast_to=self._raw, body=body, stream=True, stream_cls=self._events
            )
            try:
                async for line in response.aiter_lines():
                    if assembled.add(line) and first is None:
                        first = time.perf_counter() - sent
            finally:
                await response.aclose()
        except Exception as error:
            raise self.fault(error) from None
        return assembled.reply(), first

    def fault(self, error: Exception) -> Fault:
        """What an exception of the library means."""
        import aiohttp
        import openai

        if isinstance(error, Fault):
            return error
        if isinstance(error, openai.APIStatusError):
            response = error.response
            message, code = _said(response.content)
            return from_status(
                response.status_code,
                self.key.hide(message) or f"HTTP {response.status_code}",
                code_name=code,
                retry_after=retry_after(response.headers),
            )
        if isinstance(error, TypeError | ValueError | AttributeError | KeyError):
            # Ours, not the server's: never dressed up as a bad connection.
            raise error
        cause: BaseException = error
        while cause.__cause__ is not None:
            # The library calls a reset a time-out; the first cause knows better.
            cause = cause.__cause__
        kind = "timeout" if isinstance(cause, TimeoutError) else "connection"
        message = self.key.hide(f"{type(cause).__name__}: {cause}") or kind
        # Where no connection came about nothing was asked, so nothing is billed.
        refused = isinstance(cause, ConnectionRefusedError | aiohttp.ClientConnectorError)
        return Fault(kind, message, maybe_billed=not refused)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that `retry-after-ms` or `Retry-After` (seconds or a date) asks for."""
    try:
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        pass
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError):
            return None
    # NaN compares false with everything: it is no time.
    return max(0.0, seconds) if seconds == seconds else None


def _said(body: bytes) -> tuple[str, str | None]:
    """Message and code of an error body, as far as it can be read."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return body[:300].decode("utf-8", "replace"), None
    error = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(error, dict):
        return str(error)[:500], None
    code = error.get("code") or error.get("type")
    message = error.get("message") or error.get("detail") or error
    return str(message)[:500], code if isinstance(code, str) else None
