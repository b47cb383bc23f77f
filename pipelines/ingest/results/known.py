"""Logs of known harnesses, recognised by what they hold and read by their importers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.reading import newest_first
from routeyard.pipelines.ingest.importers.spec import ImportedAnswer, ImportedQuestion, ImportResult
from routeyard.pipelines.ingest.results.values import ReadingNote, cached_notes
from routeyard.schemas.recording import recording

#: Bytes of a file's start that are looked at.
_START = 1 << 16
#: Columns of the normal form that are a field of each answer → the field.
_OF_ANSWER = {"arm": "model", "question": "query"} | {
    name: name
    for name in (
        "sample", "score", "error", "cost_usd", "prompt_tokens", "completion_tokens", "latency_s",
        "served_model", "text",
    )
}  # fmt: skip


def harness_of(paths: Sequence[Path]) -> tuple[str, list[Path]] | None:
    """The harness that wrote these files, and its files among them; None where no known one did."""
    runs = [path for path in paths if path.name == "per_instance_stats.json"]
    if runs:
        return "helm", runs
    samples = [path for path in paths if path.suffix == ".jsonl" and _holds(
        path, b'"doc_id"', b'"arguments"', b'"resps"', b'"filtered_resps"')]  # fmt: skip
    if samples:
        return "lm_eval", samples
    logs = [path for path in paths if path.suffix == ".eval" or (path.suffix == ".json" and _holds(
        path, b'"eval"', b'"run_id"', b'"task_id"', b'"dataset"'))]  # fmt: skip
    return ("inspect", logs) if logs else None


def _holds(path: Path, *keys: bytes) -> bool:
    with path.open("rb") as stream:
        start = stream.read(_START)
        if path.suffix == ".jsonl":  # a first line may be long
            start += stream.readline(1 << 20)
    return all(key in start for key in keys)


def read_harness(
    name: str, paths: Sequence[Path], root: Path
) -> tuple[pa.Table, list[ReadingNote], ImportResult]:
    """Normal form of a harness's logs, notes, and what its importer found.

    Raises:
        SourceError, Unsafe: as the importer does.
    """
    importer = IMPORTERS.get(name)
    ordered = newest_first(paths, importer.newest_first) if importer.newest_first else list(paths)
    result = ImportResult(root)
    answers = list(importer.read(ordered, result))
    notes = [
        ReadingNote("left_out", f"{reason}: {n:,}", n) for reason, n in result.reasons().items()
    ]
    notes += [ReadingNote("choice", choice) for choice in result.choices]
    notes += [ReadingNote("status", doubt) for doubt in result.doubts]
    read = [one for one in answers if one.cache_read_tokens]
    notes += cached_notes(
        sum(one.cache_read_tokens or 0 for one in read),
        sum(one.prompt_tokens or 0 for one in read),
        len(read),
    )
    return _normal(answers, result), notes, result


def _normal(answers: Sequence[ImportedAnswer], result: ImportResult) -> pa.Table:
    asked = [result.questions[one.query] for one in answers]
    columns: dict[str, list[object]] = {
        name: [getattr(one, field) for one in answers] for name, field in _OF_ANSWER.items()
    }
    columns |= {
        "suite": [one.task for one in asked],
        "status": [one.status or one.finish_reason for one in answers],
        "prompt": [_prompt(one) for one in asked],
        "reference": ["\n".join(one.references) or None for one in asked],
        "split": [one.split for one in asked],
        "at": [f"{one.query}, {one.model}" for one in answers],
    }
    return recording(columns)


def _prompt(question: ImportedQuestion) -> str | None:
    return question.question if question.question != question.id else None
