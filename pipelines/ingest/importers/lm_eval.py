"""lm-evaluation-harness: `samples_<task>_<time>.jsonl`, written with `--log_samples`.

Layout checked against the writer in EleutherAI/lm-evaluation-harness
(`lm_eval/loggers/evaluation_tracker.py`) and against files that its release 0.4.13
wrote for a generation, a multiple-choice and a log-likelihood task.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from routeyard.pipelines.common import files
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.importers import reading, spec

_COLUMNS = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps")
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T[\d\-.:]+(?=\.json)")
_NAME = re.compile(rf"samples_(?P<task>.+)_{_STAMP.pattern}")
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


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """One folder per model, the newest run of a task; of several filters the first known one."""
    seen: set[tuple[str, str]] = set()
    models: dict[Path, str] = {}
    counted: dict[Path, dict[str, Any]] = {}
    for path in paths:
        named = _NAME.match(path.name)
        task = named["task"] if named else path.stem.removeprefix("samples_")
        if path.parent not in models:
            models[path.parent], counted[path.parent] = _run_of(path.parent)
        model = models[path.parent]
        if (model, task) in seen:
            result.skip("older runs of the same model and task", f"{path.parent.name}/{path.name}")
            continue
        rows = list(files.rows(path, "jsonl"))
        if reading.stray(result, rows, _COLUMNS, f"{path.parent.name}/{path.name}"):
            continue
        seen.add((model, task))
        said = counted[path.parent].get(task)
        asked = said.get("effective") if isinstance(said, dict) else None
        held = len({str(row.get("doc_id")) for row in rows})
        if isinstance(asked, int) and asked > held:
            result.doubts.append(f"{path.name} holds {held:,} of the {asked:,} samples of its run")
        yield from _run(result, path, rows, task, model)


def _run(
    result: spec.ImportResult, path: Path, rows: list[dict[str, Any]], task: str, model: str
) -> Iterator[spec.ImportedAnswer]:
    kinds = {str(row.get("filter", "none")) for row in rows}
    chosen = next((name for name in _FILTERS if name in kinds), min(kinds, default="none"))
    for line, row in enumerate(rows, start=1):
        where = f"{model}/{path.name}, line {line}"
        reading.need(row, _COLUMNS, where)
        if str(row.get("filter", "none")) != chosen:
            result.left_out["rows of another filter"] += 1
            continue
        prompt, generates = _request(row["arguments"], where)
        query = f"{task}/{row['doc_id']}"
        question = spec.ImportedQuestion(
            id=query,
            question=prompt,
            prompt=prompt,
            task=task,
            references=(reading.text(row["target"]),) if reading.text(row["target"]) else (),
        )
        result.ask(question, where)
        generated = _generated(row["resps"]) if generates else None
        graded = _score(row, where)
        if graded is None and generated is None:
            result.left_out["rows without text and without a metric in [0, 1]"] += 1
            continue
        yield spec.ImportedAnswer(query=query, model=model, text=generated, score=graded)


def _run_of(folder: Path) -> tuple[str, dict[str, Any]]:
    """The model in the newest `results_<time>.json`, else the folder's name; task → its counts.

    The folder is called after the model, with `__` for what a file name cannot hold.
    """
    for results in reading.newest_first(folder.glob("results_*.json"), _STAMP):
        reading.inside(results, folder)
        content = reading.obj(reading.load_json(results), str(results))
        if name := content.get("model_name"):
            samples = content.get("n-samples")
            return str(name), samples if isinstance(samples, dict) else {}
    return folder.name or "model", {}


def _request(arguments: Any, where: str) -> tuple[str, bool]:
    """Prompt of the first request, and whether it asks for text: then it has settings.

    Logged as `{"gen_args_0": {"arg_0": …, "arg_1": …}}`, by old versions as lists. A
    request for a log-likelihood has a continuation in place of the settings.
    """
    first: Any = arguments
    if isinstance(arguments, dict):
        first = arguments.get("gen_args_0", next(iter(arguments.values()), None))
        first = list(first.values()) if isinstance(first, dict) else first
    elif isinstance(arguments, list) and arguments:
        first = arguments[0]
    prompt = _asked(first[0]) if isinstance(first, list) and first else ""
    if not prompt.strip():
        raise SourceError("'arguments' holds no prompt", where=where)
    return prompt, len(first) > 1 and isinstance(first[1], dict)


def _asked(prompt: Any) -> str:
    """A prompt: plain text, or a conversation as JSON, which is in a list of one."""
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        return ""
    if prompt.startswith("[{"):
        try:
            turns = json.loads(prompt)
        except ValueError:
            return prompt
        if all(isinstance(turn, dict) and isinstance(turn.get("content"), str) for turn in turns):
            return "\n\n".join(turn["content"] for turn in turns)
    return prompt


def _generated(responses: Any) -> str | None:
    """The first text among the nested responses of a request for text."""
    while isinstance(responses, list) and responses:
        responses = responses[0]
    return responses if isinstance(responses, str) else None


def _score(row: dict[str, Any], where: str) -> float | None:
    for metric in _METRICS:
        if metric in row and not isinstance(row[metric], list | dict):
            value = reading.number(row[metric], where)
            if value is not None and 0 <= value <= 1:
                return value
    return None


IMPORTER = spec.importer("lm_eval", read, newest_first=_STAMP)
