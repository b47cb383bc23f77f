"""Which models an endpoint lists (`GET /models`). Costs nothing and asks no model."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.calls.client import Key
from pipelines.errors import BadInput
from schemas.recipe.pool import Provider


@dataclass(frozen=True, slots=True)
class Listing:
    """Names of an endpoint's models; null where they are not known, and `why`."""

    models: frozenset[str] | None
    why: str | None = None


def listed(provider: Provider, *, timeout_s: float = 30.0) -> Listing:
    """Ask an endpoint which models it serves.

    Many serve no list, or an empty one: that says nothing about their models.
    """
    import openai

    try:
        key = Key.of(provider)
    except BadInput as error:
        return Listing(None, error.what)
    try:
        with openai.OpenAI(
            base_url=provider.base_url,
            api_key=key.value or "none",
            max_retries=1,
            timeout=timeout_s,
        ) as client:
            said = [model.id for model in client.models.list()]
    except Exception as error:  # a server that is not trusted answers anything at all
        told = key.hide(str(error)) or ""
        return Listing(None, f"{type(error).__name__}: {told[:200]}".rstrip(": "))
    names = frozenset(name for name in said if isinstance(name, str) and name)
    return Listing(names) if names else Listing(None, "it lists no models")
