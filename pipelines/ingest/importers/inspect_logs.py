"""Inspect: evaluation logs, `.json` or `.eval` (a zip of a header and one file per sample).

Layout checked against logs of UKGovernmentBEIS/inspect_ai (`tests/log/test_eval_log/`:
`log_formats.json` of 2024, `log_read_sample.json` of 2025) and against logs that its
release 0.3.285 wrote in both formats (its `.eval` files are packed with Zstandard).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.trajectories import epoch, iso_time, prefix_hashes
from routeyard.pipelines.ingest.importers import reading
from routeyard.pipelines.ingest.importers.reading import members
from routeyard.pipelines.ingest.mapping import ANSWERS, STEPS, Record, importer

# Model events of Inspect's samples as steps: usage, tools and times of each call.


def steps_of_sample(sample: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """The calls of a model in the sample's events; none without events."""
    events = reading.objects(sample.get("events") or [], where)
    calls = [event for event in events if event.get("event") == "model" and event.get("output")]
    first: dict[str, int] = {}
    rows = []
    for number, call in enumerate(calls):
        hashes = _prefixes(call)
        output = reading.obj(call["output"], where)
        choice = (output.get("choices") or [{}])[0]
        asked_for = (choice.get("message") or {}).get("tool_calls") or []
        called = [str(item.get("function")) for item in asked_for]
        rows.append(
            {
                "acted_by": call.get("model"),
                "called": called,
                "failed": output.get("error") or call.get("error"),
                "parent": max((first[item] for item in hashes[:-1] if item in first), default=None),
                "prefix_hash": hashes[-1] if hashes else None,
                "served_model": output.get("model"),
                **reading.usage(output.get("usage"), where).columns,
                "latency_s": _seconds(call, output, where),
                "requested_at": iso_time(call.get("timestamp"), where),
                "tools_offered": [str(item.get("name")) for item in call.get("tools") or []],
                "tools_called": called,
            }
        )
        if hashes:
            first.setdefault(hashes[-1], number)
    return rows


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


#: Inspect's letters. `N` (no answer given) has no number here: it is not a wrong answer.
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5}
#: Names that name no model: a placeholder, or a solver that calls none.
_NO_MODEL = re.compile(r"^\W*$|^(?:hardcoded|mockllm|none|placeholder)(?:/|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Log:
    """A log's header, samples and names."""

    path: Path
    header: dict[str, Any]
    samples: list[dict[str, Any]]
    task: str
    model: str

    @property
    def run(self) -> tuple[str, str, str]:
        """What a task that is run once more has in common with the first run."""
        return (self.task, self.model, reading.text(self.header["eval"].get("task_args")))

    @property
    def order(self) -> tuple[bool, bool]:
        """Logs that ended well and have scores come first."""
        scored = any(sample.get("scores") or sample.get("score") for sample in self.samples)
        return (self.header.get("status", "success") != "success", not scored)


@importer("inspect", newest_first=re.compile(r"^\d{4}-\d{2}-\d{2}T[\d-]+"))
def inspect(paths: Sequence[Path], result: reading.ImportResult) -> Iterator[Record]:
    """Epochs become samples; the first scorer whose value is a number or letter counts.

    A task that was retried, or run once more with the same arguments, has several logs: one that
    ended well and has scores counts first, then the newest (of a retry it holds what the older ones
    had finished). A log that ended otherwise, or holds less than its header counts, is named.
    """
    logs = [log for path in paths if (log := _named_log(path, result)) is not None]
    tried: set[object] = set()
    for log in sorted(logs, key=lambda log: log.order):  # stable: the newest first
        status = log.header.get("status", "success")
        if status != "success":
            says = (
                f"{log.path.name} ended as {status!r}: its {len(log.samples)} samples are not a run"
            )
            result.doubts.append(says)
        if not log.samples:
            result.skip("logs without samples", log.path.name)
            continue
        task_id = log.header["eval"].get("task_id")
        if task_id in tried:
            result.skip("older logs of a task that was retried", log.path.name)
            continue
        if log.run in tried:
            result.skip("older logs of the same task and model", log.path.name)
            continue
        tried |= {log.run, *([task_id] if task_id and not _NO_MODEL.match(str(task_id)) else [])}
        result.doubts += _doubts(log)
        yield from _answers(log, result)


def _named_log(path: Path, result: reading.ImportResult) -> _Log | None:
    header, samples = _log(path)
    if not header:
        result.skip("files that are not of the format", path.name)
        return None
    evaluation = reading.obj(header.get("eval"), str(path))
    reading.need(evaluation, ("task", "model"), str(path))
    return _Log(path, header, samples, str(evaluation["task"]), str(evaluation["model"]))


def _doubts(log: _Log) -> Iterator[str]:
    """What a log does not say, or says otherwise than its samples do."""
    name = log.path.name
    results = log.header.get("results") or {}
    counted = results.get("total_samples") if isinstance(results, dict) else None
    if isinstance(counted, int) and counted > len(log.samples):
        yield f"{name} counts {counted:,} samples and holds {len(log.samples):,}"
    if _NO_MODEL.match(log.model):
        yield f"the model {log.model!r} of {name} names none"
    without = sum(not (sample.get("scores") or sample.get("score")) for sample in log.samples)
    if without:
        yield f"{without:,} of {len(log.samples):,} samples of {name} have no score"


def _answers(log: _Log, result: reading.ImportResult) -> Iterator[Record]:
    for sample in log.samples:
        where = f"{log.path.name}, sample {sample.get('id')}"
        reading.need(sample, ("id", "epoch", "input"), where)
        asked = _prompt(sample["input"])
        steps = steps_of_sample(sample, where)
        answer = _answer(log.model, sample, len(steps), where)
        answers = [{**answer, STEPS: steps}]
        if all(answer[name] is None for name in ("text", "score", "status")):
            result.left_out["samples without answer and score"] += 1
            answers = []
        yield where, {
            "id": f"{log.task}/{sample['id']}", "task": log.task,
            "question": asked, "prompt": asked,
            "choices": sample.get("choices"), "references": sample.get("target"), ANSWERS: answers,
        }  # fmt: skip


def _answer(model: str, sample: dict[str, Any], calls: int, where: str) -> dict[str, Any]:
    output = reading.obj(sample.get("output") or {}, where)
    first = (output.get("choices") or [{}])[0]
    error = sample.get("error")
    usage = (sample.get("model_usage") or {}).get(model) or output.get("usage") or {}
    used = reading.usage(usage, where).columns
    why = error.get("message") if isinstance(error, dict) else error
    return {
        "model": model,
        "sample": int(sample["epoch"]) - 1,
        "text": _content((first.get("message") or {}).get("content")) if not error else None,
        "score": _score(sample.get("scores") or {"score": sample.get("score")}, where),
        "finish_reason": "length" if first.get("stop_reason") == "max_tokens" else None,
        "served_model": output.get("model"),
        **{name: used[name] for name in reading.TOKENS},
        # The time of the output is that of the last call alone.
        "latency_s": output.get("time") if calls < 2 else None,
        "status": "error" if error else None,
        "error": str(why)[:500] if error else None,
    }


def _log(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if path.suffix != ".eval":
        content = reading.load_json(path)
        if not isinstance(content, dict) or not {"eval", "samples"} & set(content):
            return {}, []
        reading.need(content, ("eval",), str(path))
        return content, reading.objects(content.get("samples") or [], str(path))
    header: dict[str, Any] = {}
    samples = []
    for name, data in members(path, ".json"):
        if name == "header.json":
            header = reading.obj(reading.parse_json(data, f"{path.name}:{name}"), path.name)
        elif name.startswith("samples/"):
            samples.append(reading.obj(reading.parse_json(data, f"{path.name}:{name}"), path.name))
    if not header:
        raise SourceError(
            "the log has no header: the evaluation did not end",
            where=str(path),
            next_step="recover it with `inspect log recover`, then import it",
        )
    return header, samples


def _prompt(content: Any) -> str:
    if isinstance(content, list):
        parts = [_content(m.get("content")) or "" for m in content if isinstance(m, dict)]
        return "\n\n".join(part for part in parts if part)
    return reading.text(content)


def _content(content: Any) -> str | None:
    """Text of a message: plain, or the text parts of a list."""
    if isinstance(content, list):
        parts = [str(p.get("text", "")) for p in content if isinstance(p, dict)]
        return "".join(parts)
    return None if content is None else str(content)


def _score(scores: Any, where: str) -> float | None:
    for content in (scores or {}).values():
        value = content.get("value") if isinstance(content, dict) else None
        if isinstance(value, str) and value in _LETTERS:
            return _LETTERS[value]
        if isinstance(value, bool | int | float) and 0 <= float(value) <= 1:
            return float(value)
    return None
