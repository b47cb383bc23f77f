"""The transport over `requests`, for xVerify: threads with a connection each.

Proxies and `.netrc` of the machine are not read: they would see the answers.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from routeyard.pipelines.calls.client import TimedReply
from routeyard.pipelines.calls.reply import CallFault
from routeyard.pipelines.calls.wire.address import address_of
from routeyard.pipelines.calls.wire.http import retry_after
from routeyard.pipelines.calls.wire.received import cleaned, completion, decoded, refusal
from routeyard.pipelines.calls.wire.secret import Secret
from routeyard.pipelines.calls.wire.timeouts_and_sizes import (
    ACCEPTED,
    MOST_BYTES,
    Decoder,
    Timeouts,
)
from routeyard.schemas.recipe.pool import Provider

_PIECE = 2**16


class RequestsClient:
    """Asks one provider through `requests`; completes as `client.Client` does.

    Args:
        connections: Calls in flight at most; each has a thread and a connection.
    """

    streams = False

    def __init__(
        self, provider: Provider, *, connections: int, timeouts: Timeouts, stream: bool = False
    ) -> None:
        self.provider = provider
        self.secret = Secret.of(provider)
        self._address = address_of(provider)
        self._timeouts = timeouts
        self._pool = ThreadPoolExecutor(connections, thread_name_prefix="requests")
        self._local = threading.local()
        self._sessions: list[Any] = []

    async def __aenter__(self) -> RequestsClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        for session in self._sessions:
            session.close()

    async def complete(self, path: str, body: Mapping[str, Any]) -> TimedReply:
        """Send one completion request.

        Raises:
            CallFault: no answer came; its fields say whether to ask again.
        """
        sent = time.perf_counter()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeouts.deadline_s):
                data = await loop.run_in_executor(self._pool, self._ask, path, body)
        except TimeoutError:
            raise self._too_late() from None
        return TimedReply(completion(data, self.secret), time.perf_counter() - sent, None)

    def _ask(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        with cleaned(self.secret), _faults():
            response = self._session().post(
                self._address + path,
                json=body,
                timeout=(self._timeouts.connect, self._timeouts.first),
                allow_redirects=False,
                stream=True,
            )
            try:
                content = self._content(response)
            finally:
                response.close()
        if response.status_code != 200:
            wait = retry_after(response.headers)
            raise refusal(response.status_code, content, self.secret, wait=wait)
        return decoded(content, self.secret)

    def _content(self, response: Any) -> bytes:
        until = time.monotonic() + self._timeouts.deadline_s
        decoder = Decoder(response.headers.get("content-encoding"), MOST_BYTES)
        pieces = []
        while piece := response.raw.read1(_PIECE, decode_content=False):
            pieces.append(decoder.feed(piece))
            if time.monotonic() > until:
                raise self._too_late()
        return b"".join(pieces)

    def _too_late(self) -> CallFault:
        return CallFault("timeout", f"no answer within {self._timeouts.deadline_s:g} s")

    def _session(self) -> Any:
        import requests

        session = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = requests.Session()
            session.trust_env = False
            session.headers["accept-encoding"] = ACCEPTED
            if self.secret.value:
                session.headers["authorization"] = f"Bearer {self.secret.value}"
            self._sessions.append(session)
        return session


@contextmanager
def _faults() -> Iterator[None]:
    """What an exception of `requests` means, by its kind and never by its words."""
    import requests
    import urllib3.exceptions as below

    try:
        yield
    except requests.ConnectTimeout as error:
        raise CallFault(
            "connection", f"no connection: {error}", unreachable=True, maybe_billed=False
        ) from None
    except (requests.Timeout, below.ReadTimeoutError) as error:
        raise CallFault("timeout", f"no answer in time: {error}") from None
    except (requests.RequestException, below.HTTPError, OSError) as error:
        # A connection that never came about asked nothing, so nothing is billed.
        causes = [error, *error.args, *(getattr(a, "reason", None) for a in error.args)]
        unreachable = any(isinstance(one, below.NewConnectionError) for one in causes)
        raise CallFault(
            "connection",
            f"{type(error).__name__}: {error}",
            unreachable=unreachable,
            maybe_billed=not unreachable,
        ) from None
