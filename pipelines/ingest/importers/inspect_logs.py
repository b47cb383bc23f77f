"""Inspect: evaluation logs, `.json` or `.eval` (a zip of a header and one file per sample).

Layout checked against logs of UKGovernmentBEIS/inspect_ai (`tests/log/test_eval_log/`:
`log_formats.json` of 2024, `log_read_sample.json` of 2025) and against logs that its
release 0.3.285 wrote in both formats (its `.eval` files are packed with Zstandard).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.ingest.importers import reading, spec
from routeyard.pipelines.ingest.importers.archive import members

_STAMP = re.compile(r"^\d{4}-\d{2}-\d{2}T[\d-]+")
_SAMPLE = ("id", "epoch", "input", "target", "output")
#: Inspect's letters. `N` (no answer given) has no number here: it is not a wrong answer.
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5}


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """Epochs become samples; the first scorer whose value is a number or letter counts.

    A task that was retried, or run once more with the same arguments, has several logs;
    the newest counts (of a retry it holds what the older ones had finished).
    """
    seen: set[str] = set()
    tried: set[tuple[str, str, str]] = set()
    for path in paths:
        header, samples = _log(path)
        if not header:
            result.skip("files that are not of the format", path.name)
            continue
        evaluation = reading.obj(header.get("eval"), str(path))
        reading.need(evaluation, ("task", "model"), str(path))
        task, model = str(evaluation["task"]), str(evaluation["model"])
        if evaluation.get("task_id") in seen:
            result.skip("older logs of a task that was retried", path.name)
            continue
        # A task that was run once more has another id; with the same arguments, the newest counts.
        run = (task, model, reading.text(evaluation.get("task_args")))
        if run in tried:
            result.skip("older logs of the same task and model", path.name)
            continue
        tried.add(run)
        seen |= {str(evaluation["task_id"])} if evaluation.get("task_id") else set()
        for sample in samples:
            where = f"{path.name}, sample {sample.get('id')}"
            reading.need(sample, _SAMPLE, where)
            query = f"{task}/{sample['id']}"
            prompt = _prompt(sample["input"])
            question = spec.ImportedQuestion(
                id=query,
                question=prompt,
                prompt=prompt,
                task=task,
                choices=reading.options(sample.get("choices")),
                references=reading.texts(sample["target"]),
            )
            result.ask(question, where)
            if sample.get("error"):
                result.left_out["samples that ended in an error"] += 1
                continue
            yield _answer(query, model, sample, where)


def _answer(query: str, model: str, sample: dict[str, Any], where: str) -> spec.ImportedAnswer:
    output = reading.obj(sample["output"], where)
    choices = output.get("choices") or []
    first = choices[0] if choices else {}
    usage = output.get("usage") or {}
    return spec.ImportedAnswer(
        query=query,
        model=model,
        sample=int(sample["epoch"]) - 1,
        text=_content((first.get("message") or {}).get("content")),
        score=_score(sample.get("scores"), where),
        finish_reason="length" if first.get("stop_reason") == "max_tokens" else None,
        served_model=output.get("model"),
        prompt_tokens=reading.count(usage.get("input_tokens"), where),
        completion_tokens=reading.count(usage.get("output_tokens"), where),
        latency_s=reading.number(output.get("time"), where),
    )


def _log(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if path.suffix != ".eval":
        content = reading.load_json(path)
        if not isinstance(content, dict) or not {"eval", "samples"} & set(content):
            return {}, []
        reading.need(content, ("eval", "samples"), str(path))
        return content, reading.objects(content["samples"], str(path))
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


IMPORTER = spec.importer("inspect", read, newest_first=_STAMP)
