"""Which models an endpoint lists (`GET /models`). Costs nothing and asks no model."""

from __future__ import annotations

from dataclasses import dataclass

from routeyard.pipelines.calls.client import get_json
from routeyard.pipelines.calls.reply import CallFault
from routeyard.pipelines.errors import BadInput
from routeyard.schemas.recipe.pool import Provider

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
    for number in range(1, _ATTEMPTS + 1):
        try:
            data = get_json(provider, "/models", timeout_s=timeout_s).get("data")
            break
        except BadInput as error:
            return ModelList(None, error.what)
        except CallFault as fault:
            if fault.permanent or number == _ATTEMPTS:
                return ModelList(None, f"{fault.kind}: {fault.message[:200]}".rstrip(": "))
    entries = data if isinstance(data, list) else []
    ids = [entry.get("id") for entry in entries if isinstance(entry, dict)]
    names = frozenset(name for name in ids if isinstance(name, str) and name)
    return ModelList(names) if names else ModelList(None, "it lists no models")
