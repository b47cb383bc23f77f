"""What a run tells automations: a benchmark was released, or a gate stopped it."""

from __future__ import annotations

from typing import Any

from routeyard.flows.tracking.run import tracked

RELEASED = "routeyard.released"
GATE_FAILED = "routeyard.gate-failed"


def emit(event: str, benchmark: str, **payload: Any) -> None:
    """Send an event about a benchmark in a tracked run; nothing otherwise.

    The resource is `routeyard.benchmark.<name>`, so that an automation can watch one or all.
    """
    if tracked():
        from prefect.events import emit_event

        resource = {
            "prefect.resource.id": f"routeyard.benchmark.{benchmark}",
            "prefect.resource.name": benchmark,
        }
        emit_event(event=event, resource=resource, payload=payload)
