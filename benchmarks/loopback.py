"""A chat-completions server on loopback that is cheap enough not to be what is measured.

Run as `python -m benchmarks.loopback DELAY_MS [PER_SECOND ERROR_EVERY]`; prints its port.
It answers every POST with the same completion after the delay, from a raw asyncio protocol.
With the last two it refuses more than so many in a second (429 with `Retry-After`, until that
second is over) and fails every so many-th request (500).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

_COMPLETION = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m0",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "The sum is 42, so the answer is 42. " * 20,
            },
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 60, "completion_tokens": 200, "total_tokens": 260},
}
_BODY = json.dumps(_COMPLETION).encode()
_REPLY = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
    + str(len(_BODY)).encode()
    + b"\r\n\r\n"
    + _BODY
)


def _refusal(status: int, wait_s: float | None = None) -> bytes:
    wait = "" if wait_s is None else f"Retry-After: {wait_s:.3f}\r\n"
    return f"HTTP/1.1 {status} X\r\n{wait}Content-Length: 2\r\n\r\n{{}}".encode()


class _Connection(asyncio.Protocol):
    delay = 0.0
    per_second = error_every = 0
    #: Requests in all, the second that is counted, and requests in it.
    seen = second = within = 0

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._buffer[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._buffer) < end + 4 + length:
                return
            self._buffer = self._buffer[end + 4 + length :]
            loop = asyncio.get_running_loop()
            reply, delay = self._reply(loop.time()) if self.per_second else (_REPLY, self.delay)
            loop.call_later(delay, self._transport.write, reply)

    @classmethod
    def _reply(cls, now: float) -> tuple[bytes, float]:
        """The completion or a refusal, and seconds until it is sent; a limit refuses at once."""
        if int(now) != cls.second:
            cls.second, cls.within = int(now), 0
        cls.within += 1
        if cls.within > cls.per_second:
            return _refusal(429, int(now) + 1 - now), 0.0
        cls.seen += 1
        return (_refusal(500) if cls.seen % cls.error_every == 0 else _REPLY), cls.delay


@contextlib.contextmanager
def serving(delay_ms: float, *faults: int) -> Iterator[str]:
    """A server in a separate process; gives its base URL.

    Args:
        faults: Requests that it serves in a second, and after how many one fails; neither
            where there are none.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.loopback", str(delay_ms), *map(str, faults)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.kill()
        process.communicate()


async def _serve() -> None:
    _Connection.delay = float(sys.argv[1]) / 1000
    _Connection.per_second, _Connection.error_every = map(int, sys.argv[2:4] or (0, 0))
    server = await asyncio.get_running_loop().create_server(
        _Connection, "127.0.0.1", 0, backlog=2048
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
