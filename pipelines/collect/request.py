"""What is asked, and the hash under which its answers are kept.

The hash covers the provider's address or `id`, endpoint path, model name as the endpoint
knows it, every parameter and the messages. So another temperature, a changed
provider pin or another prompt is a new request, and two recipes share the answers
of one address, whatever they call it. It leaves out what does not change what is
asked: `stream`, and `n` (sample 3 of 8 is sample 3 of 20).
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import logging
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from routeyard.pipelines.common.files import expanded, missing
from routeyard.schemas.errors import BadInput, RecipeError
from routeyard.schemas.images import MARK, QuestionImage
from routeyard.schemas.recipe.pool import Provider

# Content parts of a message that show images: hashed by what they name, sent as what they show.


class ImagePart(dict[str, Any]):
    """A part of type `image_url`. As a mapping it names the image by its SHA-256 or its address.

    Attributes:
        tokens: Tokens that the provider counts for it at most.
    """

    def __init__(self, image: QuestionImage, folder: Path | None, tokens: int) -> None:
        url = image.reference if image.sha256 is None else f"sha256:{image.sha256}"
        super().__init__(type="image_url", image_url={"url": url})
        self.tokens = tokens
        self._image, self._folder = image, folder

    def sent(self) -> dict[str, Any]:
        """The part with a file as a `data:` URL. An address is sent as it is, and never fetched.

        Raises:
            BadInput: the file is missing, or another than that of the question.
        """
        image = self._image
        if image.sha256 is None:
            return dict(self)
        try:
            data = b"" if self._folder is None else (self._folder / image.sha256).read_bytes()
        except OSError:
            data = b""
        if hashlib.sha256(data).hexdigest() != image.sha256:
            raise BadInput(
                f"the image {image.reference or image.image_id!r} with SHA-256 {image.sha256} is "
                "missing in the workspace, or changed there",
                where="the workspace's stage `ingest`, folder `question_images`",
                next_step="run `routeyard build` on the recipe again: it reads the images anew",
            )
        encoded = base64.b64encode(data).decode("ascii")
        return {
            "type": "image_url",
            "image_url": {"url": f"data:{image.media_type};base64,{encoded}"},
        }


def content_with_images(
    text: str, images: Sequence[QuestionImage], folder: Path | None, tokens: int, where: str
) -> list[dict[str, Any]]:
    """A user message's content: text and images in the order in which the text has their marks.

    Raises:
        RecipeError: the text lacks an image of the question.
    """
    known = {image.image_id: image for image in images}
    parts: list[dict[str, Any]] = []
    said = ""
    pieces = MARK.split(text)
    for before, item in zip(pieces[::2], [*pieces[1::2], None], strict=True):
        said += before
        if item is not None and item not in known:
            said += f"[image:{item}]"
            continue
        if said.strip():
            parts.append({"type": "text", "text": said.strip("\n")})
        said = ""
        if item is not None:
            parts.append(ImagePart(known[item], folder, tokens))
    if lost := sorted(known.keys() - set(pieces[1::2])):
        raise RecipeError(
            f"the prompt leaves out the image {lost[0]} of its question",
            where=where,
            next_step="use '{{ prompt }}' or '{{ question }}' whole: they hold the images' marks",
        )
    return parts


def message_as_sent(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message with its images as they are sent."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = [part.sent() if isinstance(part, ImagePart) else part for part in content]
    return {**message, "content": parts}


def image_tokens(message: Mapping[str, Any]) -> int:
    """Tokens that a provider counts for the images of a message at most."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return sum(part.tokens for part in parts if isinstance(part, ImagePart))


# Where a provider is: its address, and the name under which its answers are shared.


def address_of(provider: Provider) -> str:
    """The address to call, with `$NAME` read from the environment. Never to be shown.

    Raises:
        RecipeError: a variable is not set, or what it holds is no address.
    """
    name = missing(provider.base_url)
    where = f"pool.providers, {provider.name}"
    if name is not None:
        raise RecipeError(
            f"the address of provider {provider.name!r} needs the environment variable "
            f"{name}, which is not set",
            where=where,
            next_step=f"export {name}=https://… and run the same command",
        )
    address = expanded(provider.base_url).rstrip("/")
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        usable = usable and not any(sign.isspace() or not sign.isprintable() for sign in address)
        named = parts.username is not None or parts.password is not None
    except ValueError:
        usable = named = False
    if named:
        raise RecipeError(
            f"the address of provider {provider.name!r} holds a user name or a password",
            where=where,
            next_step="take them out of the address; a key is read from the environment variable "
            "that the provider's `api_key_env` names",
        )
    if not usable:
        raise RecipeError(
            f"the address of provider {provider.name!r} ({provider.base_url}) is no http(s) URL",
            where=where,
            next_step="it must look like https://host/v1",
        )
    return address


def identity_of(provider: Provider) -> str:
    """What identifies the provider in a request's hash: its `id`, or else its address.

    A loopback address that a recipe leaves to the environment changes its port at
    each start of the server; such a one is known by the provider's name.
    """
    if provider.id is not None:
        return provider.id
    if not provider.id_in_environment:
        return _normal(address_of(provider))
    if missing(provider.base_url) is not None or on_loopback(provider):
        return provider.name
    # A path from the environment may hold a token: only its digest is kept.
    return "sha256:" + hashlib.sha256(_normal(address_of(provider)).encode()).hexdigest()


def on_loopback(provider: Provider) -> bool:
    """Whether a provider is on this machine, also where its address is left to the environment."""
    if missing(provider.base_url) is not None:
        return False
    host = urlsplit(address_of(provider)).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _normal(address: str) -> str:
    parts = urlsplit(address)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    default = {"http": 80, "https": 443}[parts.scheme]
    port = "" if parts.port in (None, default) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


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

    @cached_property
    def _least(self) -> int:
        """Characters that a text needs to hold a secret or a piece of one: no form is shorter."""
        return min([_SECRET_PIECE, *map(len, self._values)])

    def hide(self, text: str) -> str:
        """The text without the secrets, in whatever form it holds them."""
        if len(text) < self._least:
            return text
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


#: Path under a provider's `base_url` that answers chat completions.
CHAT_COMPLETIONS = "/chat/completions"

Message = Mapping[str, Any]


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no spaces, as UTF-8; NaN is refused."""
    text = json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class RequestSettings:
    """All of a request but its messages: one object per model, shared by its requests.

    `parameters` holds the base seed; sample *s* is asked with seed + *s*. `provider`
    is `identity_of`.
    """

    provider: str
    endpoint: str
    endpoint_model: str
    parameters: Mapping[str, Any]

    @classmethod
    def of(
        cls, provider: Provider, endpoint_model: str, parameters: Mapping[str, Any]
    ) -> RequestSettings:
        """Chat completions of a provider's model."""
        return cls(identity_of(provider), CHAT_COMPLETIONS, endpoint_model, parameters)

    @cached_property
    def identity(self) -> bytes:
        parameters = {k: v for k, v in self.parameters.items() if k not in ("n", "stream")}
        return canonical(
            {
                "provider": self.provider,
                "endpoint": self.endpoint,
                "model": self.endpoint_model,
                "parameters": parameters,
            }
        )

    @property
    def max_tokens(self) -> int | None:
        """Most tokens one answer may have, if the parameters say so."""
        for name in ("max_completion_tokens", "max_tokens"):
            value = self.parameters.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return None

    @cached_property
    def settings_hash(self) -> str:
        return hashlib.sha256(self.identity).hexdigest()

    def request_hash(self, messages: Sequence[Message]) -> str:
        """SHA-256 (hex) of these settings and the messages."""
        digest = hashlib.sha256(self.identity)
        digest.update(b"\n")
        digest.update(canonical(messages))
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Request:
    """One call: the samples it asks for are the answers it wants back."""

    query_id: str
    model_id: str
    settings: RequestSettings
    messages: Sequence[Message]
    samples: tuple[int, ...]
    request_hash: str
    #: Expected prompt tokens (for rate limits), never used as a metered count.
    tokens_expected: int = 0
    #: Attempts of earlier runs that were billed without an answer.
    billed: int = 0

    @property
    def keys(self) -> list[tuple[str, int]]:
        """(request_hash, sample) of each answer wanted."""
        return [(self.request_hash, sample) for sample in self.samples]

    def only(self, samples: Iterable[int]) -> Request | None:
        """The same for some of its samples; null for none."""
        numbers = tuple(samples)
        return replace(self, samples=numbers) if numbers else None

    def among(self, keys: Collection[tuple[str, int]]) -> Request | None:
        """The same for those of its samples whose keys are among these; null for none."""
        return self.only(sample for name, sample in self.keys if (name, sample) in keys)

    def with_billed(self, billed: int) -> Request:
        """The same, after so many billed attempts without an answer."""
        return replace(self, billed=billed) if billed else self

    def singly(self) -> list[Request]:
        """One request for each sample."""
        return [replace(self, samples=(sample,)) for sample in self.samples]

    def body(self, *, stream: bool = False) -> dict[str, Any]:
        """The JSON object that is sent."""
        body: dict[str, Any] = {
            "model": self.settings.endpoint_model,
            "messages": [*map(message_as_sent, self.messages)],
            **self.settings.parameters,
        }
        if isinstance(body.get("seed"), int):
            body["seed"] += self.samples[0]
        if len(self.samples) > 1:
            body["n"] = len(self.samples)
        if stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        return body

    @property
    def max_tokens(self) -> int | None:
        """Most tokens one answer may have, if the request says so."""
        return self.settings.max_tokens
