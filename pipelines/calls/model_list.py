"""Which models an endpoint lists (`GET /models`). Costs nothing and asks no model."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.calls.reply import Fault
from pipelines.calls.wire.body import Patience
from pipelines.calls.wire.posting import Posting
from pipelines.errors import BadInput
from schemas.recipe.pool import Provider

_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Listing:
    """Names of an endpoint's models; null where they are not known, and `why`."""

    models: frozenset[str] | None
    why: str | None = None


def listed(provider: Provider, *, timeout_s: float = 30.0) -> Listing:
    """Ask an endpoint which models it serves.

    Many serve no list, or an empty one: that says nothing about their models.
    """
    try:
        client = Posting(provider, connections=1, patience=Patience(deadline_s=timeout_s))
    except BadInput as error:
        return Listing(None, error.what)
    with client:
        for number in range(1, _ATTEMPTS + 1):
            try:
                data = client.get("/models").get("data")
                break
            except Fault as fault:
                if fault.permanent or number == _ATTEMPTS:
                    return Listing(None, f"{fault.kind}: {fault.message[:200]}".rstrip(": "))
    entries = data if isinstance(data, list) else []
    said = [entry.get("id") for entry in entries if isinstance(entry, dict)]
    names = frozenset(name for name in said if isinstance(name, str) and name)
    return Listing(names) if names else Listing(None, "it lists no models")
