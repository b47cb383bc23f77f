"""lm-evaluation-harness: `samples_<task>_<time>.jsonl`, written with `--log_samples`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipelines import files
from pipelines.errors import SourceError
from pipelines.ingest.importers.found import Answer, Found, Importer, Question
from pipelines.ingest.importers.reading import found_files, need, number, text

_COLUMNS = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps")
_LAYOUT = "<model>/samples_<task>_<time>.jsonl, as `lm_eval --log_samples` writes them"
_NAME = re.compile(r"samples_(?P<task>.+)_\d{4}-\d{2}-\d{2}T[\d\-.:]+")
#: Metrics in [0, 1], the most telling first.
_METRICS = (
    "exact_match",
    "acc_norm",
    "acc",
    "pass@1",
    "pass_at_1",
    "prompt_level_strict_acc",
    "f1",
    "mc2",
    "em",
    "rougeL",
)
#: The filter that counts where a task has several.
_FILTERS = ("flexible-extract", "none", "strict-match")


def read(path: Path) -> Found:
    """One folder per model; a task with several filters keeps the first known one."""
    found = Found()
    found.answers = _answers(found, found_files(path, ["**/samples_*.jsonl"], _LAYOUT))
    return found


def _answers(found: Found, paths: list[Path]) -> Iterator[Answer]:
    for path in paths:
        named = _NAME.match(path.stem)
        task = named["task"] if named else path.stem.removeprefix("samples_")
        model = path.parent.name or "model"
        rows = list(files.rows(path, "jsonl"))
        kinds = {str(row.get("filter", "none")) for row in rows}
        chosen = next((name for name in _FILTERS if name in kinds), min(kinds, default="none"))
        for line, row in enumerate(rows, start=1):
            where = f"{model}/{path.name}, line {line}"
            need(row, _COLUMNS, where)
            if str(row.get("filter", "none")) != chosen:
                found.left_out["rows of another filter"] += 1
                continue
            prompt = _prompt(row["arguments"], where)
            query = f"{task}/{row['doc_id']}"
            found.ask(
                Question(
                    id=query,
                    question=prompt,
                    prompt=prompt,
                    task=task,
                    references=(text(row["target"]),) if text(row["target"]) else (),
                ),
                where,
            )
            generated = _generated(row["resps"])
            graded = _score(row, where)
            if graded is None and generated is None:
                found.left_out["rows without text and without a metric in [0, 1]"] += 1
                continue
            yield Answer(query=query, model=model, text=generated, score=graded)


def _prompt(arguments: Any, where: str) -> str:
    """First argument of the first request, in either of the two logged forms."""
    first: Any = None
    if isinstance(arguments, dict):
        request = arguments.get("gen_args_0", next(iter(arguments.values()), None))
        if isinstance(request, dict):
            first = request.get("arg_0", next(iter(request.values()), None))
    elif isinstance(arguments, list) and arguments and isinstance(arguments[0], list):
        first = next(iter(arguments[0]), None)
    if not isinstance(first, str) or not first.strip():
        raise SourceError("'arguments' holds no prompt", where=where)
    return first


def _generated(responses: Any) -> str | None:
    """The generated text; None for log-likelihood tasks, which generate nothing."""
    first = responses
    while isinstance(first, list) and first:
        first = first[0]
    numeric = isinstance(first, str) and isinstance(responses[0], list) and len(responses) > 1
    return first if isinstance(first, str) and not numeric else None


def _score(row: dict[str, Any], where: str) -> float | None:
    for metric in _METRICS:
        if metric in row and not isinstance(row[metric], list | dict):
            value = number(row[metric], where)
            if value is not None and 0 <= value <= 1:
                return value
    return None


IMPORTER = Importer(
    name="lm_eval",
    title="lm-evaluation-harness samples",
    url="https://github.com/EleutherAI/lm-evaluation-harness",
    license="NOASSERTION",
    layout=_LAYOUT,
    lacks=("token usage", "cost", "latency"),
    read=read,
)
