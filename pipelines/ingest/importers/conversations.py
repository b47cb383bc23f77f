"""Steps of a recorded conversation: one for each reply of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.ingest.importers import reading
from routeyard.pipelines.ingest.importers.spec import ImportResult
from routeyard.pipelines.token_usage import TokenUsage
from routeyard.pipelines.trajectories.chains import prefix_hashes
from routeyard.pipelines.trajectories.times import iso_time


def steps_of(
    messages: Sequence[Mapping[str, Any]],
    key: Mapping[str, Any],
    arm: str,
    outcome: float | None,
    where: str,
    *,
    tokens: Callable[[Mapping[str, Any]], TokenUsage] | None = None,
) -> list[dict[str, Any]]:
    """Rows of `steps`: each assistant's message with the prompt that all earlier ones are.

    Args:
        key: `query_id`, `model_id` and `sample` of the trajectory.
        tokens: Token classes that a message states; messages without a prompt count are no calls,
            such as a greeting that the harness wrote, if another message has one.
    """
    hashes = prefix_hashes([_asked(message) for message in messages]) if messages else []
    found: list[dict[str, Any]] = []
    metered = tokens is not None and any(tokens(m).prompt is not None for m in messages)
    for place, message in enumerate(messages):
        if message.get("role") != "assistant":
            continue
        of = tokens(message) if tokens is not None else TokenUsage()
        if metered and of.prompt is None:
            continue
        called = [_name(call) for call in message.get("tool_calls") or ()]
        text = message.get("content")
        found.append(
            {
                **key,
                "step": len(found),
                "acted_by": arm,
                "action": "call" if called else "answer",
                "said": None if text is None else reading.text(text),
                "queries": [],
                "found": [],
                "status": "ok",
                **of.columns,
                "latency_s": reading.amount(message.get("generation_time_seconds"), where),
                "attempts": 1,
                "requested_at": iso_time(message.get("timestamp"), where),
                "parent": len(found) - 1 if found else None,
                "prefix_hash": hashes[place - 1] if place else None,
                "tools_offered": None,
                "tools_called": called,
                "outcome": outcome,
            }
        )
    return found


def add_trial(
    result: ImportResult,
    messages: Sequence[Mapping[str, Any]],
    query: str,
    model: str,
    outcome: float | None,
    where: str,
    tokens: Callable[[Mapping[str, Any]], TokenUsage] | None = None,
) -> tuple[int, list[dict[str, Any]]]:
    """Number of a model's next trial of a question, and its steps, which the result now has."""
    sample = result.next_sample(query, model)
    key = {"query_id": query, "model_id": model, "sample": sample}
    steps = steps_of(messages, key, model, outcome, where, tokens=tokens)
    result.steps += steps
    return sample, steps


def messages_in(value: Any, where: str) -> list[dict[str, Any]]:
    """A list of messages with roles, also as JSON in a text.

    Raises:
        SourceError: it is something else.
    """
    if isinstance(value, str):
        value = reading.parse_json(value.encode(), where)
    found = reading.objects(value, where)
    if not all(isinstance(one.get("role"), str) for one in found):
        raise SourceError("each message is expected to have a role", where=where)
    return found


def last_text(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Text of the model's last reply that has one."""
    texts = (
        reading.text(one["content"])
        for one in reversed(messages)
        if one.get("role") == "assistant" and one.get("content")
    )
    return next(texts, None)


def _asked(message: Mapping[str, Any]) -> dict[str, Any]:
    """What of a message the model reads: not its times and counts."""
    return {
        name: message[name]
        for name in ("role", "content", "tool_calls", "name")
        if message.get(name) is not None
    }


def _name(call: Any) -> str:
    of = call.get("function", call) if isinstance(call, Mapping) else {}
    return str(of.get("name") if isinstance(of, Mapping) else of)
