"""Inspect: evaluation logs, `.json` or `.eval` (a zip of a header and one file per sample).

Layout checked against logs of UKGovernmentBEIS/inspect_ai (`tests/log/test_eval_log/`:
`log_formats.json` of 2024, `log_read_sample.json` of 2025) and against logs that its
release 0.3.285 wrote in both formats (its `.eval` files are packed with Zstandard).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipelines.errors import SourceError
from pipelines.ingest.importers.archive import members
from pipelines.ingest.importers.importer import (
    ImportedAnswer,
    ImportedQuestion,
    Importer,
    ImportResult,
)
from pipelines.ingest.importers.reading import (
    count,
    found_files,
    load_json,
    need,
    newest_first,
    number,
    obj,
    objects,
    options,
    parse_json,
    text,
    texts,
)

_LAYOUT = "Inspect logs: *.eval or *.json"
_STAMP = re.compile(r"^\d{4}-\d{2}-\d{2}T[\d-]+")
_SAMPLE = ("id", "epoch", "input", "target", "output")
#: Inspect's letters. `N` (no answer given) has no number here: it is not a wrong answer.
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5}


def read(path: Path) -> ImportResult:
    """Epochs become samples; the first scorer whose value is a number or letter counts.

    A task that was retried, or run once more with the same arguments, has several logs;
    the newest counts (of a retry it holds what the older ones had finished).
    """
    found = ImportResult()
    paths = newest_first(found_files(path, ["**/*.eval", "**/*.json"], _LAYOUT), _STAMP)
    found.answers = _answers(found, paths)
    return found


def _answers(found: ImportResult, paths: list[Path]) -> Iterator[ImportedAnswer]:
    seen: set[str] = set()
    tried: set[tuple[str, str, str]] = set()
    for path in paths:
        header, samples = _log(path)
        if not header:
            found.skip("files that are not of the format", path.name)
            continue
        spec = obj(header.get("eval"), str(path))
        need(spec, ("task", "model"), str(path))
        task, model = str(spec["task"]), str(spec["model"])
        if spec.get("task_id") in seen:
            found.skip("older logs of a task that was retried", path.name)
            continue
        # A task that was run once more has an id of its own; asked the same, the newest counts.
        run = (task, model, text(spec.get("task_args")))
        if run in tried:
            found.skip("older logs of the same task and model", path.name)
            continue
        tried.add(run)
        seen |= {str(spec["task_id"])} if spec.get("task_id") else set()
        for sample in samples:
            where = f"{path.name}, sample {sample.get('id')}"
            need(sample, _SAMPLE, where)
            query = f"{task}/{sample['id']}"
            prompt = _prompt(sample["input"])
            found.ask(
                ImportedQuestion(
                    id=query,
                    question=prompt,
                    prompt=prompt,
                    task=task,
                    choices=options(sample.get("choices")),
                    references=texts(sample["target"]),
                ),
                where,
            )
            if sample.get("error"):
                found.left_out["samples that ended in an error"] += 1
                continue
            yield _answer(query, model, sample, where)


def _answer(query: str, model: str, sample: dict[str, Any], where: str) -> ImportedAnswer:
    output = obj(sample["output"], where)
    choices = output.get("choices") or []
    first = choices[0] if choices else {}
    usage = output.get("usage") or {}
    return ImportedAnswer(
        query=query,
        model=model,
        sample=int(sample["epoch"]) - 1,
        text=_content((first.get("message") or {}).get("content")),
        score=_score(sample.get("scores"), where),
        finish_reason="length" if first.get("stop_reason") == "max_tokens" else None,
        served_model=output.get("model"),
        prompt_tokens=count(usage.get("input_tokens"), where),
        completion_tokens=count(usage.get("output_tokens"), where),
        latency_s=number(output.get("time"), where),
    )


def _log(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if path.suffix != ".eval":
        content = load_json(path)
        if not isinstance(content, dict) or not {"eval", "samples"} & set(content):
            return {}, []
        need(content, ("eval", "samples"), str(path))
        return content, objects(content["samples"], str(path))
    header: dict[str, Any] = {}
    samples = []
    for name, data in members(path, ".json"):
        if name == "header.json":
            header = obj(parse_json(data, f"{path.name}:{name}"), path.name)
        elif name.startswith("samples/"):
            samples.append(obj(parse_json(data, f"{path.name}:{name}"), path.name))
    if not header:
        raise SourceError(
            "the log has no header: the evaluation did not end",
            where=str(path),
            next_step="recover it with `inspect log recover`, then import it",
        )
    return header, samples


def _prompt(said: Any) -> str:
    if isinstance(said, list):
        parts = [_content(m.get("content")) or "" for m in said if isinstance(m, dict)]
        return "\n\n".join(part for part in parts if part)
    return text(said)


def _content(said: Any) -> str | None:
    """Text of a message: plain, or the text parts of a list."""
    if isinstance(said, list):
        parts = [str(p.get("text", "")) for p in said if isinstance(p, dict)]
        return "".join(parts)
    return None if said is None else str(said)


def _score(scores: Any, where: str) -> float | None:
    for said in (scores or {}).values():
        value = said.get("value") if isinstance(said, dict) else None
        if isinstance(value, str) and value in _LETTERS:
            return _LETTERS[value]
        if isinstance(value, bool | int | float) and 0 <= float(value) <= 1:
            return float(value)
    return None


IMPORTER = Importer(
    name="inspect",
    title="Inspect evaluation logs",
    url="https://github.com/UKGovernmentBEIS/inspect_ai",
    license="NOASSERTION",
    layout=_LAYOUT,
    lacks=("cost",),
    read=read,
)
