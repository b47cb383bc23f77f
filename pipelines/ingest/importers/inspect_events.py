"""Model events of Inspect's samples as steps: usage, tools and times of each call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routeyard.pipelines.ingest.importers import reading
from routeyard.pipelines.trajectories.chains import prefix_hashes
from routeyard.pipelines.trajectories.times import epoch, iso_time


def steps_of_sample(
    sample: Mapping[str, Any], query: str, model: str, where: str
) -> list[dict[str, Any]]:
    """Rows of `steps`, one for each call of a model in the sample's events; none without events."""
    events = reading.objects(sample.get("events") or [], where)
    calls = [one for one in events if one.get("event") == "model" and one.get("output")]
    chains = [_prefixes(call) for call in calls]
    first: dict[str, int] = {}
    for number, hashes in enumerate(chains):
        if hashes:
            first.setdefault(hashes[-1], number)
    key = {"query_id": query, "model_id": model, "sample": int(sample["epoch"]) - 1}
    rows = []
    for number, call in enumerate(calls):
        hashes = chains[number]
        parents = [first[one] for one in hashes[:-1] if first.get(one, number) < number]
        placed = {
            "step": number,
            "parent": max(parents, default=None),
            "prefix_hash": hashes[-1] if hashes else None,
        }
        rows.append({**key, **placed, **_call(call, model, where)})
    return rows


def _call(call: Mapping[str, Any], model: str, where: str) -> dict[str, Any]:
    """What one model event says of itself."""
    output = reading.obj(call["output"], where)
    choice = (output.get("choices") or [{}])[0]
    message = choice.get("message") or {}
    called = [str(one.get("function")) for one in message.get("tool_calls") or []]
    return {
        "acted_by": str(call.get("model") or model),
        "action": "call" if called else "answer",
        "queries": [],
        "found": [],
        "status": "error" if output.get("error") or call.get("error") else "ok",
        "served_model": output.get("model"),
        **reading.usage(output.get("usage"), where).columns,
        "latency_s": _seconds(call, output, where),
        "attempts": 1,
        "requested_at": iso_time(call.get("timestamp"), where),
        "tools_offered": [str(one.get("name")) for one in call.get("tools") or []],
        "tools_called": called,
    }


def _prefixes(call: Mapping[str, Any]) -> list[str]:
    messages = call.get("input")
    if not isinstance(messages, list):
        return []
    asked = ("role", "content", "tool_calls", "tool_call_id")
    return prefix_hashes(
        [{k: m.get(k) for k in asked} if isinstance(m, dict) else m for m in messages]
    )


def _seconds(call: Mapping[str, Any], output: Mapping[str, Any], where: str) -> float | None:
    if (known := reading.amount(output.get("time"), where)) is not None:
        return known
    start, end = epoch(call.get("timestamp")), epoch(call.get("completed"))
    return end - start if start is not None and end is not None and end >= start else None
