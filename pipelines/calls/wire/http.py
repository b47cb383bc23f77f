"""Requests to one server over connections that are reused; nothing it sends is trusted.

Completions and files are asked through aiohttp itself: the models of requests and
responses, the headers and the addresses that a client library makes anew for each
call took three fifths of a call. Redirects are not followed, bodies are bounded on
the wire and decompressed, and silence ends a call. Proxies of the machine are used
where asked; its `.netrc` never is.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import os
import re
import time
from collections.abc import AsyncGenerator, Mapping
from typing import Any
from urllib.parse import urlsplit

from routeyard.pipelines.calls.reply import CallFault
from routeyard.pipelines.calls.wire.received import refusal
from routeyard.pipelines.calls.wire.secret import Secret
from routeyard.pipelines.calls.wire.timeouts_and_sizes import (
    ACCEPTED,
    MOST_BYTES,
    MOST_FILE_BYTES,
    Decoder,
    Timeouts,
    silent,
)

#: Seconds after which an idle connection is closed.
_KEPT_S = 30.0
_LINE_END = re.compile(rb"\r\n|\r|\n")


class Connections:
    """A pool of connections to one address.

    Args:
        address: Where paths are appended, e.g. `https://host/v1`.
        secret: The key to send, and what to hide in messages.
        number: Connections at most.
        timeouts: For a connection, the first byte and silence; the caller bounds the whole.
        use_proxies: Use `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`.
    """

    def __init__(
        self, address: str, secret: Secret, *, number: int, timeouts: Timeouts, use_proxies: bool
    ) -> None:
        self._address = address.rstrip("/")
        self._secret = secret
        self._number = number
        self._timeouts = timeouts
        self._proxy = _proxy(self._address) if use_proxies else None
        self._headers = {
            "accept": "application/json",
            "accept-encoding": ACCEPTED,
            "content-type": "application/json",
            "user-agent": "routeyard",
        }
        # A local server needs no key and may insist on one; a public list may refuse a wrong one.
        if secret.value or use_proxies:
            self._headers["authorization"] = f"Bearer {secret.value or 'none'}"
        if urlsplit(self._address).hostname == "api.openai.com":
            named = {"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"}
            self._headers |= {k: os.environ[v] for k, v in named.items() if os.environ.get(v)}
        self._made: Any = None

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()

    async def read(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        """The decompressed body of a response.

        Raises:
            CallFault: refused, too large, silent, or not as its headers say.
            aiohttp.ClientError: no connection, or one that broke.
        """
        response = await self._head(method, path, body)
        async with response:
            return await self._whole(response, path)

    async def lines(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[str]:
        """The lines of a stream of server-sent events, each as soon as it is there."""
        response = await self._head("POST", path, body)
        async with response:
            held = b""
            async for piece in self._pieces(response, MOST_BYTES):
                *whole, held = _LINE_END.split(held + piece)
                if whole and not held and piece.endswith(b"\r"):
                    held = whole.pop() + b"\r"  # its line feed may come with the next piece
                for line in whole:
                    yield line.decode("utf-8", "replace")
            for line in _LINE_END.split(held):
                yield line.decode("utf-8", "replace")

    async def _head(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        """The response once its head is there and says success."""
        data = None if body is None else _encoded(body)
        try:
            async with asyncio.timeout(self._timeouts.first):
                response = await self._session().request(
                    method, self._address + path, data=data, proxy=self._proxy,
                    allow_redirects=False,
                )  # fmt: skip
        except TimeoutError as error:
            if type(error) is not TimeoutError:
                raise  # no connection came about in time
            raise CallFault("timeout", f"no byte came within {self._timeouts.first:g} s") from None
        if 200 <= response.status < 300:
            return response
        async with response:
            said = await self._whole(response, path)
        wait = retry_after(response.headers)
        raise refusal(response.status, said, self._secret, wait=wait)

    async def _whole(self, response: Any, path: str) -> bytes:
        most = MOST_FILE_BYTES if path.endswith("/content") else MOST_BYTES
        return b"".join([piece async for piece in self._pieces(response, most)])

    async def _pieces(self, response: Any, most: int) -> AsyncGenerator[bytes]:
        decoder = Decoder(response.headers.get("content-encoding"), most)
        content, idle_s = response.content, self._timeouts.idle_s
        while True:
            try:
                async with asyncio.timeout(idle_s):
                    piece = await content.readany()
            except TimeoutError:
                raise silent(idle_s) from None
            if not piece:
                return
            yield decoder.feed(piece)

    def _session(self) -> Any:
        """Made with the first request: a session belongs to the loop that runs then."""
        if self._made is None:
            import aiohttp

            connector = aiohttp.TCPConnector(
                limit=self._number, keepalive_timeout=_KEPT_S, ssl=_certificates(self._address)
            )
            self._made = aiohttp.ClientSession(
                connector=connector,
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(sock_connect=self._timeouts.connect),
            )
        return self._made


def _encoded(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _certificates(address: str) -> Any:
    """Whom to trust: the machine's list and certifi's, or what `SSL_CERT_FILE` or `_DIR` names."""
    if not address.startswith("https:"):
        return True
    import ssl

    trusted = ssl.create_default_context()
    if not (os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")):
        import certifi

        trusted.load_verify_locations(certifi.where())
    return trusted


def _proxy(address: str) -> str | None:
    """The machine's proxy for an address."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(address)
    if proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


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
