"""What is asked, and the hash under which its answers are kept.

The hash covers the provider's address, endpoint path, model name as the endpoint
knows it, every parameter and the messages. So another temperature, a changed
provider pin or another prompt is a new request, and two recipes share the answers
of one address, whatever they call it. It leaves out what does not change what is
asked: `stream`, and `n` (sample 3 of 8 is sample 3 of 20).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from routeyard.pipelines.calls.wire.address import identity_of
from routeyard.pipelines.calls.wire.image_part import message_as_sent
from routeyard.schemas.recipe.pool import Provider

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
    is `wire.address.identity_of`; `label` its name in the recipe, null where it is the same.
    """

    provider: str
    endpoint: str
    endpoint_model: str
    parameters: Mapping[str, Any]
    label: str | None = None

    @classmethod
    def of(
        cls, provider: Provider, endpoint_model: str, parameters: Mapping[str, Any]
    ) -> RequestSettings:
        """Chat completions of a provider's model."""
        identity = identity_of(provider)
        label = None if identity == provider.name else provider.name
        return cls(identity, CHAT_COMPLETIONS, endpoint_model, parameters, label)

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
        kept = tuple(samples)
        return replace(self, samples=kept) if kept else None

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
