"""What comes over the wire: bounded in bytes and time, decoded, and cleaned of secrets.

`Decoder` and `decoded` read every body; `Secret` says what is hidden, `Timeouts` how long a call
may take.
"""

from __future__ import annotations

import base64
import email.utils
import json
import logging
import os
import re
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import urlsplit

from routeyard.pipelines.collect.reply import (
    CallFault,
    ModelReply,
    fault_of,
    read_json,
    reply_from,
)
from routeyard.pipelines.collect.request import address_of
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


# What the libraries below log of requests, without secrets.
#
# They log whole addresses, and at the level DEBUG bodies and headers as well; whoever
# turns logging on must not turn secrets on.

#: Loggers of everything between us and the socket.
_LOGGERS = (
    "openai", "openai._base_client", "openai._response", "openai._legacy_response", "httpx2",
    "httpcore2", "httpx", "httpcore", "aiohttp.client", "asyncio", "urllib3.connectionpool",
    "urllib3.util.retry", "urllib3.connection", "requests",
)  # fmt: skip


class _Filter(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self.secrets: list[Secret] = []

    def filter(self, record: logging.LogRecord) -> bool:
        said = plain = record.getMessage()
        # Whole ones first: one may contain pieces of another.
        for secret in self.secrets:
            said = secret.whole(said)
        for secret in self.secrets:
            said = secret.hide(said)
        if said != plain:
            record.msg, record.args = said, ()
        return True


_FILTER = _Filter()


def hidden_in_logs(secret: Secret) -> Secret:
    """The secret, from now on hidden in what the libraries log."""
    if secret not in _FILTER.secrets:
        _FILTER.secrets.append(secret)
    for name in _LOGGERS:
        # Adding it again does nothing.
        logging.getLogger(name).addFilter(_FILTER)
    return secret


# A provider's secrets, and how they are taken out of what its server sends back.
#
# A server that is not trusted may send the key back in any field, and in other
# forms than it got it: escaped in JSON, in a URL or in HTML, cut into stream
# events, content parts or tokens, or with an end cut off. `Secret.clean` knows
# them; nothing that came over the wire is used before it went through. What the
# libraries log of a request goes through it as well.

_Value = TypeVar("_Value")
HIDDEN = "[key]"
#: Characters of a key that are hidden wherever so many of them occur in a row: texts
#: are cut by servers, and a piece is a key to whoever guesses the rest.
_SECRET_PIECE = 12
#: A part of an address that is at least so long may be a token.
_LONG = 12


@dataclass(frozen=True)
class Secret:
    """A key (null where a server needs none) and other texts that are shown nowhere."""

    value: str | None = field(repr=False)
    others: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, provider: Provider) -> Secret:
        """The secrets of a provider: its key, and what its address takes from the environment.

        Raises:
            BadInput: a variable is not set.
        """
        others = _parts(address_of(provider)) if "$" in provider.base_url else ()
        if provider.api_key_env is None:
            return hidden_in_logs(cls(None, others))
        value = os.environ.get(provider.api_key_env)
        if not value:
            raise BadInput(
                f"provider {provider.name!r} needs a key, and the environment variable "
                f"{provider.api_key_env} is not set",
                where=f"pool.providers, {provider.name}",
                next_step=f"export {provider.api_key_env}=… and run the same command",
            )
        return hidden_in_logs(cls(value, others))

    @cached_property
    def _values(self) -> tuple[str, ...]:
        # The longest first: one may contain another.
        values = {text for text in (self.value, *self.others) if text}
        values |= _secret_encoded(self.value or "")
        return tuple(sorted(values, key=lambda text: (-len(text), text)))

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        return re.compile("|".join(map(_forms, self._values))) if self._values else None

    @cached_property
    def _shifted(self) -> list[tuple[str, re.Pattern[str]]]:
        return list(_within_base64(self.value or ""))

    def hide(self, text: str) -> str:
        """The text without the secrets, in whatever form it holds them."""
        return self._without_pieces(self.whole(text))

    def whole(self, text: str) -> str:
        """The text without whole secrets; pieces of them are left."""
        text = self._pattern.sub(HIDDEN, text) if self._pattern else text
        for part, pattern in self._shifted:
            text = pattern.sub(HIDDEN, text) if part in text else text
        return text

    def _without_pieces(self, text: str) -> str:
        key = self.value or ""
        for start in range(len(key) - _SECRET_PIECE + 1):
            after = 0
            while (at := text.find(key[start : start + _SECRET_PIECE], after)) >= 0:
                # None of it is to the left: that would have been found before.
                length = _SECRET_PIECE
                while text[at : at + length + 1] == key[start : start + length + 1]:
                    if start + length >= len(key):
                        break
                    length += 1
                text = text[:at] + HIDDEN + text[at + length :]
                after = at + len(HIDDEN)
        return text

    def clean(self, value: _Value) -> _Value:
        """The same value (JSON, or a dataclass of it) with every text in it hidden."""
        if self._pattern is None:
            return value
        cleaned: Any = self._cleaned(value)
        return cleaned  # type: ignore[no-any-return]

    def _cleaned(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, dict):
            return {self._cleaned(key): self._cleaned(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._cleaned(token) for token in self._tokens(value)]
        if isinstance(value, tuple):
            return tuple(self._cleaned(item) for item in value)
        if is_dataclass(value) and not isinstance(value, type):
            changed = {f.name: self._cleaned(getattr(value, f.name)) for f in fields(value)}
            return replace(value, **changed)
        return value

    def _tokens(self, values: list[Any]) -> list[Any]:
        """Log-probabilities spell a secret out over several tokens, and again in `bytes`."""
        if not values or not all(
            isinstance(item, dict) and isinstance(item.get("token"), str) for item in values
        ):
            return values
        assert self._pattern is not None
        spelt = "".join(item["token"] for item in values)
        patterns = [self._pattern, *(item for part, item in self._shifted if part in spelt)]
        spans = [match.span() for pattern in patterns for match in pattern.finditer(spelt)]
        if not spans:
            return values
        tokens, start = [], 0
        for value in values:
            stop = start + len(value["token"])
            if any(start < last and first < stop for first, last in spans):
                value = {"token": HIDDEN, "logprob": value.get("logprob"), "top_logprobs": []}
            tokens.append(value)
            start = stop
        return tokens


def _secret_encoded(key: str) -> set[str]:
    """A key as base64, hexadecimal, backwards and in one case: anybody reads it out of these.

    Of short keys nothing: their encodings are words.
    """
    if len(key) < _SECRET_PIECE:
        return set()
    raw = key.encode("utf-8", "surrogatepass")
    ways = {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()}
    ways = {way.rstrip("=") for way in ways}
    return ways | {raw.hex(), raw.hex().upper(), key[::-1], key.upper(), key.lower()}


def _within_base64(key: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Patterns of a key in base64 behind any other text, such as `Bearer ` or `user:`, each after
    a part of what it matches.

    What comes before shifts the key against the groups of three bytes: of each of three places
    the signs are taken that hold bits of the key alone, and those beside them with it.
    """
    if len(key) < _SECRET_PIECE:
        return
    raw, near = key.encode("utf-8", "surrogatepass"), "[A-Za-z0-9+/_-]"
    for shift, mixed in ((0, 0), (1, 2), (2, 3)):
        whole = (shift + len(raw)) // 3 * 4
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            inner = encode(b"\0" * shift + raw).decode()[mixed:whole]
            pattern = re.compile(f"{near}{{0,4}}{_forms(inner)}{near}{{0,4}}={{0,2}}")
            yield max(re.split(r"[^A-Za-z0-9]", inner), key=len), pattern


def _parts(address: str) -> tuple[str, ...]:
    """What of an expanded address is hidden: all of it, its credentials, its long parts."""
    split = urlsplit(address)
    long_ones = [part for part in re.split(r"[/?&=#]", split.path) if len(part) >= _LONG]
    parts = (address, split.username, split.password, split.query, *long_ones)
    return tuple(dict.fromkeys(text for text in parts if text))


def _forms(secret: str) -> str:
    return "".join(map(_form, secret))


def _form(character: str) -> str:
    """One character as it may be written: itself, or escaped in JSON, a URL or HTML."""
    code = ord(character)
    units = character.encode("utf-16-be", "surrogatepass")
    escaped = "".join(
        rf"\\+u(?i:{units[i]:02x}{units[i + 1]:02x})" for i in range(0, len(units), 2)
    )
    quoted = "".join(f"%(?i:{byte:02x})" for byte in character.encode("utf-8", "surrogatepass"))
    ways = [re.escape(character), escaped, quoted, f"&#0*{code};", f"&#[xX]0*(?i:{code:x});"]
    if not character.isalnum():
        ways.insert(1, rf"\\+{re.escape(character)}")
    named = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}.get(character)
    return f"(?:{'|'.join([*ways, *([named] if named else [])])})"


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
