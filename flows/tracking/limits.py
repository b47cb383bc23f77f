"""Prefect global concurrency limits, one per provider: its calls in flight over all workers."""

from __future__ import annotations

from collections.abc import Mapping


def limit_name(provider: str) -> str:
    """Name of a provider's global concurrency limit."""
    return f"routeyard-provider-{provider}"


def set_limits(providers: Mapping[str, int]) -> dict[str, int]:
    """Give each provider's limit so many slots; returns limit name → slots."""
    from prefect.client.orchestration import get_client

    limits = {limit_name(name): slots for name, slots in providers.items()}
    with get_client(sync_client=True) as client:
        for name, slots in limits.items():
            client.upsert_global_concurrency_limit_by_name(name, slots)
    return limits


def made(providers: Mapping[str, int]) -> dict[str, int]:
    """Provider → slots of its limit as the server has it; made with the given ones if missing.

    A limit that somebody changed in the UI stays as it is.
    """
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    found = {}
    with get_client(sync_client=True) as client:
        for name, slots in providers.items():
            try:
                limit = client.read_global_concurrency_limit_by_name(limit_name(name))
                found[name] = int(limit.limit)
            except ObjectNotFound:
                client.upsert_global_concurrency_limit_by_name(limit_name(name), slots)
                found[name] = slots
    return found
