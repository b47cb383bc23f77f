"""MINT: one conversation of several turns per line.

Layout checked against xingyaoww/mint-bench: `data/outputs/<model>/<feedback>/<setting>/<kind>/
<task>/results.jsonl`. The outcome is `state.success`, not `state.latest_output.success`; task ids
are unique inside a task only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from routeyard.pipelines.common import files
from routeyard.pipelines.ingest.importers import reading, spec
from routeyard.pipelines.ingest.importers.conversations import add_trial, last_text, messages_in

_ERRORS = ("error", "exception")


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """One answer for each conversation; model, setting and task are folders."""
    placed = {path: _place(path) for path in paths}
    settings = {setting for _, setting, _ in placed.values()}
    for path, (model, setting, task) in placed.items():
        arm = model if len(settings) == 1 else f"{model} ({setting})"
        rows = files.rows(path, "jsonl")
        for where, row in reading.records(rows, ("state", "task"), path.name, result):
            yield _answer(row, arm, task, f"{path.parent.name}/{where}", result)


def _place(path: Path) -> tuple[str, str, str]:
    """(model, setting, task) that the folders name."""
    parts = path.parts
    task = path.parent.name
    if "outputs" in parts and len(parts) > parts.index("outputs") + 3:
        at = parts.index("outputs")
        return parts[at + 1], "/".join(parts[at + 2 : at + 4]), task
    return (parts[-6] if len(parts) > 5 else path.stem), "", task


def _answer(
    row: dict[str, object], arm: str, task: str, where: str, result: spec.ImportResult
) -> spec.ImportedAnswer:
    state, asked = reading.obj(row["state"], where), reading.obj(row["task"], where)
    reading.need(asked, ("task_id", "prompt"), where)
    query = f"{task}/{asked['task_id']}"
    prompt = reading.text(asked["prompt"])
    question = spec.ImportedQuestion(
        query, prompt, task, prompt=prompt, references=reading.texts(asked.get("reference"))
    )
    result.ask(question, where)
    ended = str(state.get("terminate_reason") or "")
    failed = any(word in ended for word in _ERRORS) or bool(state.get("error"))
    success = state.get("success")
    score = None if failed or success is None else reading.score(success, where)
    history = messages_in(state.get("history") or [], where)
    sample, steps = add_trial(result, history, query, arm, score, where)
    # An empty counter is unknown, not free.
    counted = reading.obj(state.get("token_counter") or {}, where)
    return spec.ImportedAnswer(
        query=query,
        model=arm,
        sample=sample,
        text=None if failed else last_text(history),
        score=score,
        prompt_tokens=reading.count(counted.get("prompt_tokens"), where),
        completion_tokens=reading.count(counted.get("completion_tokens"), where),
        calls=len(steps) or None,
        status="error" if failed else None,
        error=ended or None if failed else None,
    )


IMPORTER = spec.importer("mint", read)
