"""Steps of a recorded conversation: one for each reply of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.trajectories import iso_time, prefix_hashes
from routeyard.pipelines.common.usage import TokenUsage
from routeyard.pipelines.ingest.importers import reading
from routeyard.pipelines.ingest.importers import reading as spec
from routeyard.pipelines.ingest.importers.reading import ImportResult

# What importers of agents share: sums over steps, and reports of the SWE-bench harness.

#: Counts of an answer that are those of its steps together.
TOKENS = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")


def sums_of(steps: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Column → sum over all steps; None as soon as one is unknown."""
    values = {name: [step[name] for step in steps] for name in names}
    return {
        name: None if not found or None in found else sum(found) for name, found in values.items()
    }


def harness_reports(paths: Sequence[Path], result: spec.ImportResult) -> dict[str, bool]:
    """Instance → whether it was resolved, from the SWE-bench harness's reports among the files."""
    resolved: dict[str, bool] = {}
    for path in paths:
        if path.suffix != ".json" or path.name.endswith(".traj.json"):
            continue
        content = reading.load_json(path)
        if not isinstance(content, dict) or not isinstance(content.get("resolved_ids"), list):
            result.skip("files that are not of the format", path.name)
            continue
        judged = content.get("completed_ids") or content.get("submitted_ids") or []
        resolved |= dict.fromkeys(map(str, judged), False)
        resolved |= dict.fromkeys(map(str, content["resolved_ids"]), True)
    if not resolved:
        result.doubts.append(
            "whether instances were resolved is not known: put the harness's report, with "
            "`resolved_ids`, beside the trajectories"
        )
    return resolved


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
