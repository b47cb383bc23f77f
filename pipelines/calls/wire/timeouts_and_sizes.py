"""How much of a response is read: bytes on the wire, bytes after decompression, silence."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from routeyard.pipelines.calls.reply import CallFault

#: Bytes of one completion, before and after decompression. A million log-probabilities fit.
MOST_BYTES = 64 * 2**20
#: Bytes of the results of one batch.
MOST_FILE_BYTES = 512 * 2**20
_PIECE = 2**20
#: What we ask for, and all that we take: other codings have no bounded decoder at hand.
ACCEPTED = "gzip, deflate, identity"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: for a connection, for the first byte, between two pieces, and in all."""

    connect_s: float = 10.0
    first_byte_s: float | None = None
    idle_s: float = 120.0
    deadline_s: float = 600.0

    @property
    def first(self) -> float:
        return min(self.deadline_s, self.first_byte_s or self.deadline_s)

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
            return self._zlib.decompress(piece, _PIECE)
        except zlib.error:
            if not self._deflate or self._made:
                raise
            self._zlib, self._deflate = zlib.decompressobj(-15), False
            return self._zlib.decompress(piece, _PIECE)


async def bound(response: Any, *, most: int, idle_s: float) -> None:
    """Put a bounded, decoding stream under an HTTP response whose body was not read yet."""
    from httpx2 import AsyncByteStream

    class Bounded(AsyncByteStream):
        def __init__(self, under: Any, coding: str | None) -> None:
            self._under, self._decoder = under, Decoder(coding, most)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            pieces = self._under.__aiter__()
            while True:
                try:
                    async with asyncio.timeout(idle_s):
                        piece = await anext(pieces)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    raise silent(idle_s) from None
                yield self._decoder.feed(piece)

        async def aclose(self) -> None:
            await self._under.aclose()

    response.stream = Bounded(response.stream, response.headers.pop("content-encoding", None))
    response.headers.pop("content-length", None)
