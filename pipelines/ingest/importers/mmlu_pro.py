"""MMLU-Pro's `eval_results`: one zip per model, holding one JSON list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.importers import reading, spec
from routeyard.pipelines.ingest.importers.archive import members

_COLUMNS = ("question_id", "question", "options", "answer", "category")
_OUTPUTS = ("model_outputs", "generated_text")


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """Runs that were graded against a revised key carry that key per answer.

    Upstream revised some questions between runs: the variant that most runs
    used is the question, and a run of another variant keeps its own gold letter.
    """
    variants: dict[str, Counter[spec.ImportedQuestion]] = {}
    for file in paths:
        for question, _ in _records(file, spec.ImportResult(file)):
            variants.setdefault(question.id, Counter())[question] += 1
    for versions in variants.values():
        # The most used variant; the text decides between equally used ones.
        best = max(versions.items(), key=lambda item: (item[1], item[0].question, item[0].choices))
        result.ask(best[0], "variants")
    for file in paths:
        for question, answer in _records(file, result):
            asked = result.questions[question.id]
            if answer is None:
                continue
            other = question.references != asked.references
            yield replace(answer, graded_against=question.references) if other else answer


def _records(
    path: Path, result: spec.ImportResult
) -> Iterator[tuple[spec.ImportedQuestion, spec.ImportedAnswer | None]]:
    model = path.stem.removeprefix("model_outputs_")
    for end in ("_5shots", "_0shots", "_5shot", "_0shot"):
        model = model.removesuffix(end)
    for where, rows in _documents(path):
        for number, row in enumerate(rows, 1):
            if isinstance(row, str):
                result.left_out["bare strings among the records"] += 1
                continue
            place = f"{where}, record {number}"
            if not isinstance(row, dict):
                raise SourceError("a record is no object", where=place)
            reading.need(row, _COLUMNS, place)
            question = spec.ImportedQuestion(
                id=str(row["question_id"]),
                question=reading.text(row["question"]),
                task=reading.text(row["category"]),
                choices=reading.options(row["options"]),
                references=reading.texts(row["answer"]),
                domain="knowledge",
                scorer="mcq",
            )
            output = next((row[name] for name in _OUTPUTS if row.get(name) is not None), None)
            if output is None:
                result.left_out["records without output"] += 1
                yield question, None
                continue
            yield (
                question,
                spec.ImportedAnswer(query=question.id, model=model, text=reading.text(output)),
            )


def _documents(path: Path) -> Iterator[tuple[str, list[Any]]]:
    zipped = path.suffix == ".zip"
    documents = members(path, ".json") if zipped else iter([(path.name, reading.whole(path))])
    for name, data in documents:
        if name.startswith("__MACOSX"):
            continue
        where = f"{path.name}:{name}" if zipped else path.name
        rows = reading.parse_json(data, where)
        if not isinstance(rows, list):
            raise SourceError("a list of records is expected", where=where)
        yield where, rows


IMPORTER = spec.importer("mmlu_pro", read)
