"""ulab LLMRouter: JSONL of one routed answer per line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipelines import files
from pipelines.ingest.importers.found import Answer, Found, Importer, Question
from pipelines.ingest.importers.reading import (
    count,
    found_files,
    need,
    number,
    parse_json,
    score,
    text,
    texts,
)

_COLUMNS = ("task_name", "query", "ground_truth", "model_name", "response", "performance")
_LAYOUT = f"JSONL files with {', '.join(_COLUMNS)}"
_FAILED = "API Error"


def read(path: Path) -> Found:
    """Error texts that stand in place of a response are missing answers."""
    found = Found()
    found.answers = _answers(found, found_files(path, ["**/*.jsonl"], _LAYOUT))
    return found


def _answers(found: Found, paths: list[Path]) -> Iterator[Answer]:
    ids: dict[tuple[str, str], str] = {}
    for path in paths:
        for line, row in enumerate(files.rows(path, "jsonl"), start=1):
            where = f"{path.name}, line {line}"
            need(row, _COLUMNS, where)
            task, asked = text(row["task_name"]), text(row["query"])
            query = ids.setdefault((task, asked), f"{task}/{len(ids)}")
            found.ask(
                Question(
                    id=query,
                    question=asked,
                    prompt=asked,
                    task=task,
                    choices=_choices(row.get("choices"), where),
                    references=texts(row["ground_truth"]),
                ),
                where,
            )
            output = row["response"]
            if output is None or str(output).startswith(_FAILED):
                found.left_out["failed calls"] += 1
                continue
            yield Answer(
                query=query,
                model=str(row["model_name"]),
                text=str(output),
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
    return texts(value)


IMPORTER = Importer(
    name="ulab",
    title="ulab LLMRouter data",
    url="https://github.com/ulab-uiuc/LLMRouter",
    license="MIT",
    layout=_LAYOUT,
    lacks=("cost",),
    read=read,
)
