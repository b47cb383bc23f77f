"""Times of logs, whatever they are written as."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from routeyard.pipelines.errors import SourceError


def epoch(value: Any) -> float | None:
    """Seconds since 1970 of a number or an ISO 8601 text; None where it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Nanoseconds and milliseconds are distinguished by their size.
        return value / 1e9 if value > 1e17 else value / 1e3 if value > 1e11 else float(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def iso_time(value: Any, where: str) -> str | None:
    """ISO 8601 in UTC; None for null. A time without a zone is taken as UTC."""
    if value is None:
        return None
    if isinstance(value, str) and len(value) >= 20 and value.endswith(("Z", "+00:00")):
        return value
    seconds = epoch(value)
    if seconds is None:
        raise SourceError(f"{str(value)[:40]!r} is no time", where=where)
    return datetime.fromtimestamp(seconds, UTC).isoformat()
