"""mini-swe-agent: one file per trajectory, `<instance>.traj.json`.

Layout: `info` (`exit_status`, `model_stats` with `instance_cost` and `api_calls`, `config.model`),
`messages` whose `extra.response` holds the reply with its usage, `trajectory_format`. Whether an
instance is resolved is not in it: a report of the SWE-bench harness (`resolved_ids`) beside the
files says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from routeyard.pipelines.common.usage import TokenUsage
from routeyard.pipelines.ingest.importers import reading, spec
from routeyard.pipelines.ingest.importers.conversations import (
    TOKENS,
    add_trial,
    harness_reports,
    last_text,
    messages_in,
    sums_of,
)

_NAME = ".traj.json"


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """Each trajectory is a sample; its steps are the replies of the model."""
    resolved = harness_reports(paths, result)
    for path in paths:
        if not path.name.endswith(_NAME):
            continue
        content = reading.load_json(path)
        if not isinstance(content, dict) or "messages" not in content:
            result.skip("files that are not of the format", path.name)
            continue
        yield _answer(content, path, resolved, result)


def _answer(
    content: Mapping[str, Any], path: Path, resolved: Mapping[str, bool], result: spec.ImportResult
) -> spec.ImportedAnswer:
    where = path.name
    info = reading.obj(content.get("info") or {}, where)
    config = reading.obj(info.get("config") or {}, where)
    told = reading.obj(config.get("model") or {}, where)
    task = str(content.get("instance_id") or path.name.removesuffix(_NAME))
    messages = [_with_time(one) for one in messages_in(content["messages"], where)]
    model = str(told.get("model_name") or _served(messages) or path.parent.name)
    asked = next((str(m.get("content")) for m in messages if m["role"] == "user"), task)
    result.ask(result.questions.get(task) or spec.ImportedQuestion(
        task, asked, "swe_bench", prompt=asked, domain="code"
    ), where)  # fmt: skip
    outcome = float(resolved[task]) if task in resolved else None
    sample, steps = add_trial(
        result, messages, task, model, outcome, where, lambda message: _usage(message, where)
    )
    stats = reading.obj(info.get("model_stats") or {}, where)
    counts = sums_of(steps, TOKENS)
    cost = reading.spent(stats.get("instance_cost"), counts["prompt_tokens"] or len(steps), where)
    return spec.ImportedAnswer(
        query=task, model=model, sample=sample,
        text=str(info.get("submission") or last_text(messages) or "") or None,
        score=outcome, cost_usd=cost, calls=len(steps), **counts,
    )  # fmt: skip


def _with_time(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message with the time in its `extra`, as seconds since 1970."""
    extra = message.get("extra")
    seconds = extra.get("timestamp") if isinstance(extra, dict) else None
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 1e9 < seconds < 1e11:
        return {**message, "timestamp": datetime.fromtimestamp(seconds, UTC).isoformat()}
    return {**message}


def _response(message: Mapping[str, Any]) -> Mapping[str, Any]:
    extra = message.get("extra")
    found = extra.get("response") if isinstance(extra, dict) else None
    return found if isinstance(found, dict) else {}


def _usage(message: Mapping[str, Any], where: str) -> TokenUsage:
    return reading.usage(_response(message).get("usage"), where)


def _served(messages: Sequence[Mapping[str, Any]]) -> str | None:
    return next((str(one["model"]) for one in map(_response, messages) if one.get("model")), None)


IMPORTER = spec.importer("mini_swe_agent", read)
