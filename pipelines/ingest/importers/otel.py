"""OpenTelemetry: GenAI spans of any tracer, as OTLP in JSON or one span per line.

Attribute names are those of the GenAI semantic conventions (1.36 to gen-ai/1.42); cached tokens are
among `gen_ai.usage.input_tokens`. A trajectory is a conversation (`gen_ai.conversation.id`), else a
trace. A span that only wraps calls is no call: neither `invoke_agent`, nor the call span of a
framework around that of its client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.trajectories import epoch, iso_time
from routeyard.pipelines.ingest.importers import reading
from routeyard.pipelines.ingest.mapping import STEPS, Record, importer

_CALLS = ("chat", "text_completion", "generate_content", "responses")
#: Attribute of an evaluation's outcome, on any span of the trajectory.
_OUTCOMES = ("gen_ai.evaluation.score.value", "routeyard.outcome")
#: What all calls inside one span have in common, and counts that must agree with theirs.
_SHARED = ("gen_ai.conversation.id", "gen_ai.agent.name", *_OUTCOMES)
#: Kinds of spans that are neither calls nor wrappers of calls.
_APART = ("tool", "agent")
_PARENTS = ("parentSpanId", "parent_span_id", "parent_id", "parentId")
_USED = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
#: Column of `steps` → names below `gen_ai.usage`, of several conventions.
_COUNTS = {
    "prompt_tokens": ("input_tokens", "prompt_tokens"),
    "completion_tokens": ("output_tokens", "completion_tokens"),
    "reasoning_tokens": ("reasoning.output_tokens", "reasoning_tokens"),
    "cache_read_tokens": ("cache_read.input_tokens", "cache_read_input_tokens"),
    "cache_write_tokens": ("cache_creation.input_tokens", "cache_creation_input_tokens"),
}


@importer("otel")
def otel(paths: Sequence[Path], result: reading.ImportResult) -> Iterator[Record]:
    """One answer for each trajectory: the last call's text, and all its tokens."""
    spans = _unwrapped(_once([s for path in paths for s in _spans(path, result)], result), result)
    outcomes: dict[str, float | None] = {}
    conversations: dict[str, list[dict[str, Any]]] = {}
    for span in spans:
        attrs = span["attributes"]
        own = str(attrs.get("gen_ai.conversation.id") or span["trace"])
        for name in _OUTCOMES:
            if attrs.get(name) is not None:
                outcomes[own] = reading.score(attrs[name], span["where"])
        if _is_call(attrs):
            conversations.setdefault(own, []).append(span)
        else:
            result.left_out["spans that are no calls of a model"] += 1
    for own, calls in sorted(conversations.items()):
        calls.sort(key=lambda item: item["start"])
        yield calls[0]["where"], _trajectory(own, calls, outcomes.get(own))


def _once(spans: list[dict[str, Any]], result: reading.ImportResult) -> list[dict[str, Any]]:
    """The spans, each id of a trace once: several exporters may have sent one span."""
    seen: dict[Any, dict[str, Any]] = {}
    for number, span in enumerate(spans):
        key = (span["trace"], span["span"]) if span["span"] else number
        if seen.setdefault(key, span) is not span:
            result.left_out["spans that were exported twice"] += 1
    return list(seen.values())


def _unwrapped(spans: list[dict[str, Any]], result: reading.ImportResult) -> list[dict[str, Any]]:
    """The spans without calls that wrap calls; a tool or an agent between them starts another call.

    What a wrapper knows and the one call inside it does not say (its texts, its usage) is the
    call's; the conversation is that of every call inside.
    """
    by_id = {(item["trace"], item["span"]): item for item in spans if item["span"]}
    around = {id(item): _wrapper(item, by_id) for item in spans if _is_call(item["attributes"])}
    inside: dict[int, list[dict[str, Any]]] = {}
    for span in spans:
        outer = around.get(id(span))
        if outer is not None and _depth(span, around) <= len(around):
            inside.setdefault(id(outer), []).append(span)
    for wrapper in sorted((s for s in spans if id(s) in inside), key=lambda s: _depth(s, around)):
        attrs, calls = wrapper["attributes"], inside[id(wrapper)]
        differ = any(_counts_differ(wrapper, calls, name) for name in _USED)
        other = ", which state other token counts" if differ else ""
        result.left_out[f"spans of calls around the spans of the same calls{other}"] += 1
        for call in calls:
            inherited = attrs if len(calls) == 1 else {k: attrs[k] for k in _SHARED if k in attrs}
            call["attributes"] = {**inherited, **call["attributes"]}
    return [item for item in spans if id(item) not in inside]


def _counts_differ(wrapper: dict[str, Any], calls: Sequence[dict[str, Any]], name: str) -> bool:
    """Whether a wrapper and all the calls inside state a count, and not the same one."""
    whole, *counts = (
        reading.count(s["attributes"].get(name), s["where"]) for s in (wrapper, *calls)
    )
    known = [count for count in counts if count is not None]
    return whole is not None and len(known) == len(counts) and sum(known) != whole


def _wrapper(span: dict[str, Any], by_id: Mapping[Any, dict[str, Any]]) -> dict[str, Any] | None:
    """The next call around a call, with no tool or agent between them."""
    passed: set[int] = set()
    outer = by_id.get((span["trace"], span["parent"]))
    while outer is not None and outer is not span and id(outer) not in passed:
        attrs = outer["attributes"]
        if _is_call(attrs):
            return outer
        if attrs.get("gen_ai.operation.name") or attrs.get("traceloop.span.kind") in _APART:
            return None
        passed.add(id(outer))
        outer = by_id.get((outer["trace"], outer["parent"]))
    return None


def _depth(span: dict[str, Any], around: Mapping[int, dict[str, Any] | None]) -> int:
    """Number of calls around a call; in a circle of parents more than there are."""
    depth, outer = 0, around[id(span)]
    while outer is not None and depth <= len(around):
        depth, outer = depth + 1, around[id(outer)]
    return depth


def _is_call(attrs: Mapping[str, Any]) -> bool:
    operation = attrs.get("gen_ai.operation.name")
    asked = attrs.get("gen_ai.request.model") or attrs.get("gen_ai.response.model")
    return bool(asked) and (operation is None or operation in _CALLS)


def _trajectory(own: str, calls: list[dict[str, Any]], outcome: float | None) -> dict[str, Any]:
    first, last = calls[0]["attributes"], calls[-1]["attributes"]
    asked = reading.text(first.get("gen_ai.input.messages") or first.get("gen_ai.prompt")) or own
    named = first.get("gen_ai.agent.name")
    return {
        "id": own, "question": asked, "prompt": asked, "task": str(named or "traffic"),
        "model": named or _arm(first), "score": outcome, STEPS: [_step(call) for call in calls],
        "text": last.get("gen_ai.output.messages") or last.get("gen_ai.completion"),
        "served_model": last.get("gen_ai.response.model") if len(calls) == 1 else None,
    }  # fmt: skip


def _step(call: Mapping[str, Any]) -> dict[str, Any]:
    attrs = call["attributes"]
    error = attrs.get("error.type")
    return {
        "acted_by": _arm(attrs),
        "called": "tool" in reading.text(attrs.get("gen_ai.response.finish_reasons")),
        "failed": error,
        "error": None if error is None else str(error),
        "served_model": attrs.get("gen_ai.response.model"),
        **{column: _count(call, names) for column, names in _COUNTS.items()},
        "latency_s": call["seconds"],
        "requested_at": iso_time(call["start"], call["where"]),
    }


def _count(call: Mapping[str, Any], names: Sequence[str]) -> int | None:
    counts = (call["attributes"].get(f"gen_ai.usage.{name}") for name in names)
    return reading.count(next((n for n in counts if n is not None), None), call["where"])


def _arm(attrs: Mapping[str, Any]) -> str:
    return str(attrs.get("gen_ai.request.model") or attrs["gen_ai.response.model"])


def _spans(path: Path, result: reading.ImportResult) -> Iterator[dict[str, Any]]:
    """Spans of OTLP documents (`resourceSpans`) or of lines that are spans themselves."""
    for number, record in enumerate(reading.json_rows(path), 1):
        where = f"{path.name}, record {number}"
        listed = list(_nested(record, where)) or [record]
        for span in listed:
            context = span.get("context")
            own = {name: value for name, value in span.items() if value is not None}
            ids = {**(context if isinstance(context, dict) else {}), **own}
            trace = ids.get("traceId") or ids.get("trace_id")
            if trace is None:
                result.left_out["records that are no spans"] += 1
                continue
            start = _seconds(span, "startTimeUnixNano", "start_time", where)
            end = _seconds(span, "endTimeUnixNano", "end_time", where)
            yield {
                "trace": str(trace),
                "span": ids.get("spanId") or ids.get("span_id"),
                "parent": next((ids[n] for n in _PARENTS if ids.get(n)), None),
                "attributes": _attributes(span.get("attributes"), where),
                "start": start,
                "seconds": None if end is None or end < start else end - start,
                "where": where,
            }


def _nested(record: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    for resource in reading.objects(record.get("resourceSpans") or [], where):
        for scope in reading.objects(resource.get("scopeSpans") or [], where):
            yield from reading.objects(scope.get("spans") or [], where)


def _attributes(value: Any, where: str) -> dict[str, Any]:
    """Attributes of OTLP (a list of key and typed value) or of a plain mapping."""
    if value is None or isinstance(value, dict):
        return value or {}
    pairs = reading.objects(value, where)
    return {str(pair.get("key")): _plain(pair.get("value")) for pair in pairs}


def _plain(value: Any) -> Any:
    """A typed value of OTLP: `{"intValue": "12"}` is 12."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    (kind, inner), = value.items()  # fmt: skip
    if kind == "intValue":
        return int(inner)
    if kind == "arrayValue":
        return [_plain(item) for item in (inner or {}).get("values") or []]
    return inner


def _seconds(span: Mapping[str, Any], nano: str, iso: str, where: str) -> Any:
    value = span.get(nano)
    seconds = int(value) / 1e9 if value is not None else epoch(span.get(iso))
    if seconds is None and nano.startswith("start"):
        raise SourceError("a span has no start", where=where)
    return seconds
