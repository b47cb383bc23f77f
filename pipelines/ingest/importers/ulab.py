"""ulab LLMRouter: JSONL of one routed answer per line.

Layout checked against ulab-uiuc/LLMRouter: `llmrouter/data/README.md` (output formats)
and `llmrouter/data/api_calling_evaluation.py`, which writes the files. A question is
what upstream takes as one: task, query and ground truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pipelines.ingest.importers.importer import (
    ImportedAnswer,
    ImportedQuestion,
    Importer,
    ImportResult,
)
from pipelines.ingest.importers.reading import (
    count,
    found_files,
    number,
    options,
    output_text,
    parse_json,
    records,
    score,
    text,
    texts,
)
from pipelines.io import files

_COLUMNS = ("task_name", "query", "ground_truth", "model_name", "response", "performance")
_LAYOUT = f"JSONL files with {', '.join(_COLUMNS)}"
#: What `call_api` and the script around it write in place of a response.
_FAILED = ("API Error", "ERROR: ")


def read(path: Path) -> ImportResult:
    """Error texts that stand in place of a response are missing answers."""
    found = ImportResult()
    paths = found_files(path, ["**/*.jsonl"], _LAYOUT)
    if path.is_dir():
        # The queries alone lie in files of the same ending beside the routed answers.
        paths = [p for p in paths if "routing" in p.name] or paths
    found.answers = _answers(found, paths)
    return found


def _answers(found: ImportResult, paths: list[Path]) -> Iterator[ImportedAnswer]:
    ids: dict[tuple[str, ...], str] = {}
    samples: Counter[tuple[str, str]] = Counter()
    for path in paths:
        split = next((s for s in ("train", "test") if f"_{s}" in path.stem), None)
        for where, row in records(files.rows(path, "jsonl"), _COLUMNS, path.name, found):
            task, asked, truth = (text(row[key]) for key in _COLUMNS[:3])
            query = ids.setdefault((task, asked, truth), f"{task}/{len(ids)}")
            there = found.questions.get(query)
            found.ask(
                ImportedQuestion(
                    id=query,
                    question=asked,
                    prompt=asked,
                    task=task,
                    choices=_choices(row.get("choices"), where),
                    references=texts(row["ground_truth"]),
                    # A query of both files is one question; it keeps the split it came with.
                    split=there.split if there else split,
                ),
                where,
            )
            output = row["response"]
            if output is None or str(output).startswith(_FAILED):
                found.left_out["failed calls"] += 1
                continue
            model = str(row["model_name"])
            sample = samples[query, model]
            samples[query, model] += 1
            yield ImportedAnswer(
                query=query,
                model=model,
                sample=sample,
                text=output_text(output),
                score=score(row["performance"], where),
                prompt_tokens=count(row.get("input_tokens"), where),
                completion_tokens=count(row.get("output_tokens"), where),
                latency_s=number(row.get("response_time"), where),
            )


def _choices(value: object, where: str) -> tuple[str, ...]:
    """Options of a JSON string that holds a list, or an object with `text`."""
    if isinstance(value, str):
        value = parse_json(value.encode(), where) if value.strip() else None
    if isinstance(value, dict):
        value = value.get("text")
    return options(value)


IMPORTER = Importer(
    name="ulab",
    title="ulab LLMRouter data",
    url="https://github.com/ulab-uiuc/LLMRouter",
    license="MIT",
    layout=_LAYOUT,
    lacks=("cost",),
    read=read,
)
