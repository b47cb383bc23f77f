"""ulab LLMRouter: JSONL of one routed answer per line.

Layout checked against ulab-uiuc/LLMRouter: `llmrouter/data/README.md` (output formats)
and `llmrouter/data/api_calling_evaluation.py`, which writes the files. A question is
what upstream takes as one: task, query and ground truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from routeyard.pipelines.common import files
from routeyard.pipelines.ingest.importers import reading, spec

_COLUMNS = ("task_name", "query", "ground_truth", "model_name", "response", "performance")
#: What `call_api` and the script around it write in place of a response.
_FAILED = ("API Error", "ERROR: ")


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """Error texts in place of a response are missing answers."""
    # Files of the same ending beside the routed answers hold only the queries.
    paths = [path for path in paths if "routing" in path.name] or paths
    ids: dict[tuple[str, ...], str] = {}
    for path in paths:
        split = next((s for s in ("train", "test") if f"_{s}" in path.stem), None)
        for where, row in reading.records(files.rows(path, "jsonl"), _COLUMNS, path.name, result):
            task, asked, truth = (reading.text(row[key]) for key in _COLUMNS[:3])
            query = ids.setdefault((task, asked, truth), f"{task}/{len(ids)}")
            there = result.questions.get(query)
            question = spec.ImportedQuestion(
                id=query,
                question=asked,
                prompt=asked,
                task=task,
                choices=_choices(row.get("choices"), where),
                references=reading.texts(row["ground_truth"]),
                # A query of both files is one question; it keeps the split it came with.
                split=there.split if there else split,
            )
            result.ask(question, where)
            output = row["response"]
            unanswered = output is None and row["performance"] is None
            if unanswered or str(output).startswith(_FAILED):
                result.left_out["failed calls"] += 1
                continue
            model = str(row["model_name"])
            yield spec.ImportedAnswer(
                query=query,
                model=model,
                sample=result.next_sample(query, model),
                text=reading.output_text(output),
                score=reading.score(row["performance"], where),
                prompt_tokens=reading.count(row.get("input_tokens"), where),
                completion_tokens=reading.count(row.get("output_tokens"), where),
                latency_s=reading.amount(row.get("response_time"), where),
            )


def _choices(value: object, where: str) -> tuple[str, ...]:
    """Options of a JSON string that holds a list, or an object with `text`."""
    if isinstance(value, str):
        value = reading.parse_json(value.encode(), where) if value.strip() else None
    if isinstance(value, dict):
        value = value.get("text")
    return reading.options(value)


IMPORTER = spec.importer("ulab", read)
