"""One connection pool per provider: sends a request body, returns an answer or a `CallFault`.

Everything but xVerify goes through one session of aiohttp: the models of requests and responses,
the headers and the addresses that a client library makes anew for each call took three fifths of a
call. The `openai` client makes uploads and batches, and sends them through that session too.
Nothing is retried here and no redirect is followed. What a body says comes in through `decoded`
and `completion`, because a server is not trusted to send what its API promises, nor to keep a key
to itself.
"""

from __future__ import annotations

import asyncio
import email.utils
import io
import json
import os
import re
import time
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import Any, TypeVar
from urllib.parse import urlsplit

from routeyard.pipelines.collect.ledger import Ledger
from routeyard.pipelines.collect.reply import (
    Assembled,
    CallFault,
    ModelReply,
    fault_of,
    name_of,
    read_json,
    reply_from,
)
from routeyard.pipelines.collect.request import Secret, address_of, identity_of, on_loopback
from routeyard.schemas.errors import BadInput
from routeyard.schemas.recipe.pool import Provider

# How much of a response is read: bytes on the wire, bytes after decompression, silence.

#: Bytes of one completion, before and after decompression. A million log-probabilities fit.
MOST_BYTES = 64 * 2**20
#: Bytes of the results of one batch.
MOST_FILE_BYTES = 512 * 2**20
_READ_PIECE = 2**20
#: What we ask for, and all that we take: other codings have no bounded decoder at hand.
ACCEPTED = "gzip, deflate, identity"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: in all and for the first byte, for a connection, and between two pieces."""

    deadline_s: float = 600.0
    connect_s: float = 10.0
    idle_s: float = 120.0

    @property
    def connect(self) -> float:
        return min(self.connect_s, self.deadline_s)


def too_large(most: int, why: str) -> CallFault:
    return CallFault("too_large", f"the response has more than {most:,} bytes {why}", status=200)


def silent(idle_s: float) -> CallFault:
    return CallFault("timeout", f"no byte came for {idle_s:g} s in the middle of the answer")


class Decoder:
    """Decompresses piece by piece; refuses what is larger than `most` on either side."""

    def __init__(self, coding: str | None, most: int) -> None:
        coding = (coding or "identity").strip().lower()
        if coding not in ("identity", "", "gzip", "x-gzip", "deflate"):
            raise CallFault("encoding", f"the response is encoded as {coding[:40]!r}", status=200)
        # 47: gzip or zlib, by its head. Raw deflate is tried when there is no head.
        self._zlib = None if coding in ("identity", "") else zlib.decompressobj(47)
        self._deflate = coding == "deflate"
        self._most = most
        self._read = self._made = 0

    def feed(self, piece: bytes) -> bytes:
        """The decoded bytes of a piece.

        Raises:
            CallFault: too large, or not what its header says.
        """
        self._read += len(piece)
        if self._read > self._most:
            raise too_large(self._most, "")
        if self._zlib is None:
            return piece
        made = []
        try:
            while piece:
                part = self._inflate(piece)
                self._made += len(part)
                if self._made > self._most:
                    raise too_large(self._most, "when decompressed")
                made.append(part)
                piece = self._zlib.unconsumed_tail
        except zlib.error as error:
            raise CallFault("encoding", f"the response cannot be decompressed: {error}") from None
        return b"".join(made)

    def _inflate(self, piece: bytes) -> bytes:
        assert self._zlib is not None
        try:
            return self._zlib.decompress(piece, _READ_PIECE)
        except zlib.error:
            if not self._deflate or self._made:
                raise
            self._zlib, self._deflate = zlib.decompressobj(-15), False
            return self._zlib.decompress(piece, _READ_PIECE)


# The one door for what came over the wire: decoded, cleaned of secrets, read.
#
# Live calls, streams, batches, verifiers, judges, lists of models and of prices
# all come in here; no text of a server is used, kept or shown otherwise.

#: Characters of a server's words that are kept.
MOST_CHARACTERS = 500


@contextmanager
def cleaned(secret: Secret) -> Iterator[None]:
    """Faults that leave this block say nothing secret, and not too much."""
    try:
        yield
    except CallFault as fault:
        # Hidden before it is cut: half a key is a key to whoever guesses the rest.
        fault.message = secret.hide(fault.message)[:MOST_CHARACTERS]
        fault.kind = secret.hide(fault.kind)[:60]
        fault.args = (fault.message,)
        fault.usage = fault.usage and secret.clean(fault.usage)
        fault.__context__ = None
        raise


def decoded(body: bytes, secret: Secret) -> dict[str, Any]:
    """A JSON object.

    Raises:
        CallFault: the body is not a JSON object.
    """
    with cleaned(secret):
        return secret.clean(read_json(body))


def completion(data: Mapping[str, Any], secret: Secret, *, tools: bool = False) -> ModelReply:
    """A completion from its decoded object.

    Args:
        tools: The request declared tools: calling them is an answer.

    Raises:
        CallFault: it carries an error, or no answer.
    """
    with cleaned(secret):
        # Twice: reading joins the parts of a text, in which a key may be cut.
        return secret.clean(reply_from(secret.clean(dict(data)), tools=tools))


def refusal(status: int, body: bytes, secret: Secret, *, wait: float | None) -> CallFault:
    """The fault that an HTTP status and its body mean."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = body[:100_000].decode("utf-8", "replace")
    fault = fault_of(data, status, wait=wait)
    if 300 <= status < 400:
        fault = CallFault(
            "redirect",
            "the server sends elsewhere, and questions and keys go to no other host; "
            "write the address that answers as 'base_url'",
            status=status,
            permanent=True,
            concerns="provider",
            maybe_billed=False,
        )
    try:
        with cleaned(secret):
            raise fault
    except CallFault as clean:
        return clean


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


_Made = TypeVar("_Made")
#: Seconds after which an idle connection is closed.
_KEPT_S = 30.0
_JSON = "application/json"
_PIECE = 2**16
_LINE_END = re.compile(rb"\r\n|\r|\n")
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
        use_proxies: Use `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` (they see prompts
            and answers); `.netrc` never is.
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
        self._address = address_of(provider)
        self._connections = connections
        self._timeouts = timeouts
        self._use_proxies = use_proxies
        self._proxy = _proxy(self._address) if use_proxies else None
        self._open: Any = None

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._open is not None:
            await self._open.close()

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
            content = await self._guarded(self._read("POST", path, _encoded(body)))
            data = decoded(content, self.secret)
        reply = completion(data, self.secret, tools=bool(body.get("tools")))
        return TimedReply(reply, time.perf_counter() - sent, first)

    async def get(self, path: str) -> dict[str, Any]:
        """The JSON object behind a GET, e.g. `/batches/<id>`."""
        return decoded(await self._guarded(self._read("GET", path)), self.secret)

    async def lines(self, path: str) -> Iterator[dict[str, Any]]:
        """The JSON objects in a file of lines; any other line is left out."""
        content = await self._guarded(self._read("GET", path))
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
        if (name := name_of(getattr(made, "id", None))) is None:
            raise CallFault("invalid_json", "the server gave no id", status=200)
        return self.secret.hide(name)

    # -- transport -----------------------------------------------------------------

    async def _read(self, method: str, path: str, data: Any = None, **headers: str) -> bytes:
        """The decompressed body of a response.

        Raises:
            CallFault: refused, too large, silent, or not as its headers say.
            aiohttp.ClientError: no connection, or one that broke.
        """
        response = await self._head(method, path, data, headers)
        async with response:
            return await self._whole(response, path)

    async def _events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[str]:
        """The lines of a stream of server-sent events, each as soon as it is there."""
        response = await self._head("POST", path, _encoded(body))
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

    async def _head(
        self, method: str, path: str, data: Any, headers: Mapping[str, str] | None = None
    ) -> Any:
        """The response once its head is there and says success."""
        response = await self._session().request(
            method,
            self._address + path,
            data=data,
            headers=headers,
            proxy=self._proxy,
            allow_redirects=False,
        )
        if 200 <= response.status < 300:
            return response
        async with response:
            said = await self._whole(response, path)
        wait = retry_after(response.headers)
        raise refusal(response.status, said, self.secret, wait=wait)

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
        if self._open is None:
            import aiohttp

            connector = aiohttp.TCPConnector(
                limit=self._connections, keepalive_timeout=_KEPT_S, ssl=_certificates(self._address)
            )
            self._open = aiohttp.ClientSession(
                connector=connector,
                headers=self._headers(),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(sock_connect=self._timeouts.connect),
            )
        return self._open

    def _headers(self) -> dict[str, str]:
        """What every request says; kept nowhere, as it holds the key."""
        headers = {
            "accept": _JSON,
            "accept-encoding": ACCEPTED,
            "content-type": _JSON,
            "user-agent": "routeyard",
        }
        # A local server needs no key and may insist on one; a public list may refuse a wrong one.
        if self.secret.value or self._use_proxies:
            headers["authorization"] = f"Bearer {self.secret.value or 'none'}"
        if urlsplit(self._address).hostname == "api.openai.com":
            named = {"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"}
            headers |= {k: os.environ[v] for k, v in named.items() if os.environ.get(v)}
        return headers

    def _openai(self) -> Any:
        """A client of uploads and batches whose requests are sent as all others are."""
        import httpx2
        import openai

        class Transport(httpx2.AsyncBaseTransport):
            # `self` is the client around it.
            async def handle_async_request(_, request: httpx2.Request) -> httpx2.Response:
                path = str(request.url).removeprefix(self._address)
                kind = {"content-type": request.headers["content-type"]}
                content = io.BytesIO(await request.aread())
                made = await self._read(request.method, path, content, **kind)
                return httpx2.Response(200, content=made, headers={"content-type": _JSON})

        return openai.AsyncOpenAI(
            base_url=self._address,
            api_key="none",  # it is in the session's headers
            max_retries=0,
            http_client=httpx2.AsyncClient(transport=Transport()),
        )

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
        assembled = Assembled()
        first: float | None = None
        lines = self._events(path, body)
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


class RequestsClient(Client):
    """Asks as `Client` does, over `requests`, a thread for each call in flight: for xVerify.

    Proxies and `.netrc` of the machine are not read: they would see the answers.
    """

    def __init__(
        self, provider: Provider, *, connections: int, timeouts: Timeouts, stream: bool = False
    ) -> None:
        super().__init__(provider, connections=connections, timeouts=timeouts, use_proxies=False)
        import requests
        from requests.adapters import HTTPAdapter

        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="requests")
        # Made once, before threads share it.
        self._requests = requests.Session()
        self._requests.trust_env = False
        self._requests.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self._requests.headers.update(self._headers())
        for scheme in ("http://", "https://"):
            self._requests.mount(scheme, HTTPAdapter(pool_maxsize=connections))

    async def __aexit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._requests.close()

    async def _read(self, method: str, path: str, data: Any = None, **headers: str) -> bytes:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._ask, method, path, data)

    def _ask(self, method: str, path: str, data: bytes | None) -> bytes:
        import requests
        import urllib3.exceptions as below

        silence = self._timeouts.connect, self._timeouts.idle_s
        until, pieces = time.monotonic() + self._timeouts.deadline_s, []
        try:
            with self._requests.request(
                method, self._address + path, data=data, timeout=silence, allow_redirects=False,
                stream=True,
            ) as response:  # fmt: skip
                decoder = Decoder(response.headers.get("content-encoding"), MOST_BYTES)
                while piece := response.raw.read1(_PIECE, decode_content=False):
                    pieces.append(decoder.feed(piece))
                    if time.monotonic() > until:  # nobody waits for it any more
                        break
        except (requests.Timeout, below.ReadTimeoutError) as error:
            never = isinstance(error, requests.ConnectTimeout)
            kind = "connection" if never else "timeout"
            raise CallFault(kind, str(error), unreachable=never, maybe_billed=not never) from None
        except (requests.RequestException, below.HTTPError, OSError) as error:
            # A connection that never came about asked nothing, so nothing is billed.
            causes = [error, *error.args, *(getattr(a, "reason", None) for a in error.args)]
            never = any(isinstance(cause, below.NewConnectionError) for cause in causes)
            says = f"{type(error).__name__}: {error}"
            raise CallFault("connection", says, unreachable=never, maybe_billed=not never) from None
        content = b"".join(pieces)
        if 200 <= response.status_code < 300:
            return content
        wait = retry_after(response.headers)
        raise refusal(response.status_code, content, self.secret, wait=wait)


def _encoded(body: Mapping[str, Any]) -> bytes:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode()


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


# Which models an endpoint lists (`GET /models`). Costs nothing and asks no model.

_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class ModelList:
    """Names of an endpoint's models; null where they are not known, and `why`."""

    models: frozenset[str] | None
    why: str | None = None


def list_models(provider: Provider, *, timeout_s: float = 30.0) -> ModelList:
    """Ask an endpoint which models it serves.

    Many serve no list, or an empty one: that says nothing about their models.
    """
    for _ in range(_ATTEMPTS):
        try:
            names = frozenset(_listed(get_json(provider, "/models", timeout_s=timeout_s)))
            return ModelList(names) if names else ModelList(None, "it lists no models")
        except BadInput as error:
            return ModelList(None, error.what)
        except CallFault as fault:
            why = f"{fault.kind}: {fault.message[:200]}".rstrip(": ")
            if fault.permanent:
                break
    return ModelList(None, why)


def _listed(said: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Name of each listed model → what the list says of it."""
    entries = said.get("data")
    models = [e for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []
    return {name: model for model in models if (name := name_of(model.get("id")))}


# A server on this machine may serve another model tomorrow under the same name and address.

#: What each server listed when a benchmark first asked it.
LISTED_NOTE = "listed:"
#: Keys of a listed model that say what is served; others differ at each start, or hold prices.
_TELLS = ("root", "path", "digest", "revision", "quantization", "architecture", "meta")


def check_served(
    ledger: Ledger,
    providers: Iterable[Provider],
    benchmark: str,
    *,
    fetch: Callable[..., Mapping[str, Any]] = get_json,
) -> None:
    """Note what servers on this machine list, before they are asked anything.

    Raises:
        BadInput: a server lists another model under a name than when it was first asked.
    """
    for provider in {item.name: item for item in providers}.values():
        if not on_loopback(provider):
            continue
        try:
            listed = _listed(fetch(provider, "/models", timeout_s=5.0))
        except (BadInput, CallFault):
            continue
        now = {
            name: {key: model[key] for key in _TELLS if model.get(key)}
            for name, model in listed.items()
        }
        note, identity = f"{LISTED_NOTE}{benchmark}/{provider.name}", identity_of(provider)
        lists = json.loads(ledger.recall(note).get("", "{}"))
        before = lists.setdefault(identity, now) if now else {}
        for model in sorted(set(before) & set(now)):
            if before[model] and now[model] and before[model] != now[model]:
                then, served = (json.dumps(item[model])[:200] for item in (before, now))
                raise BadInput(
                    f"{identity} serves another model as {model!r} than when it was first asked: "
                    f"then {then}, now {served}",
                    where=f"provider {provider.name!r}",
                    next_step="serve the new model under another name and write that as "
                    "`endpoint_model`; if it is the same model, give the provider another name",
                )
        ledger.remember({note: json.dumps(lists)})
