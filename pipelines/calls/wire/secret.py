"""A provider's secrets, and how they are taken out of what its server sends back.

A server that is not trusted may send the key back in any field, and in other
forms than it got it: escaped in JSON, in a URL or in HTML, cut into stream
events, content parts or tokens, or with an end cut off. `Secret.clean` knows
them; nothing that came over the wire is used before it went through. What the
libraries log of a request goes through it as well (`logs.py`).
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import urlsplit

from routeyard.pipelines.calls.wire.address import address_of
from routeyard.pipelines.calls.wire.logs import hidden_in_logs
from routeyard.pipelines.errors import BadInput
from routeyard.schemas.recipe.pool import Provider

_Value = TypeVar("_Value")
HIDDEN = "[key]"
#: Characters of a key that are hidden wherever so many of them occur in a row: texts
#: are cut by servers, and a piece is a key to whoever guesses the rest.
_PIECE = 12
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
        given = {text for text in (self.value, *self.others) if text}
        given |= _encoded(self.value or "")
        return tuple(sorted(given, key=lambda text: (-len(text), text)))

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
        for start in range(len(key) - _PIECE + 1):
            after = 0
            while (at := text.find(key[start : start + _PIECE], after)) >= 0:
                # None of it is to the left: that would have been found before.
                length = _PIECE
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
            return {self._cleaned(key): self._cleaned(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._cleaned(one) for one in self._tokens(value)]
        if isinstance(value, tuple):
            return tuple(self._cleaned(one) for one in value)
        if is_dataclass(value) and not isinstance(value, type):
            changed = {one.name: self._cleaned(getattr(value, one.name)) for one in fields(value)}
            return replace(value, **changed)
        return value

    def _tokens(self, values: list[Any]) -> list[Any]:
        """Log-probabilities spell a secret out over several tokens, and again in `bytes`."""
        if not values or not all(
            isinstance(one, dict) and isinstance(one.get("token"), str) for one in values
        ):
            return values
        assert self._pattern is not None
        spelt = "".join(one["token"] for one in values)
        patterns = [self._pattern, *(one for part, one in self._shifted if part in spelt)]
        spans = [found.span() for one in patterns for found in one.finditer(spelt)]
        if not spans:
            return values
        kept, start = [], 0
        for one in values:
            stop = start + len(one["token"])
            if any(start < last and first < stop for first, last in spans):
                one = {"token": HIDDEN, "logprob": one.get("logprob"), "top_logprobs": []}
            kept.append(one)
            start = stop
        return kept


def _encoded(key: str) -> set[str]:
    """A key as base64, hexadecimal, backwards and in one case: anybody reads it out of these.

    Of short keys nothing: their encodings are words.
    """
    if len(key) < _PIECE:
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
    if len(key) < _PIECE:
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
    given = (address, split.username, split.password, split.query, *long_ones)
    return tuple(dict.fromkeys(text for text in given if text))


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
